package loop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
)

// authority signs certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// issue makes a certificate of a name, behind which addresses may stand; without an authority, one that signs others.
func issue(t *testing.T, by *authority, name string) (*authority, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name, more, _ := strings.Cut(name, " ")
	var addresses []net.IP
	for text := range strings.FieldsSeq(more) {
		addresses = append(addresses, net.ParseIP(text))
	}
	c := &x509.Certificate{IPAddresses: addresses, SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	} else {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// files writes a certificate of a name, its key and the authority.
func (a *authority) files(t *testing.T, name string) (ca, cert, key string) {
	t.Helper()
	c, k := issue(t, a, name)
	dir := t.TempDir()
	for file, b := range map[string][]byte{"ca.pem": a.pem, "cert.pem": c.pem, "key.pem": k} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// served is a server of tests and what it posts.
type served struct {
	*Server
	address string
	events  chan control.Event
	by      *authority
}

func serveAgents(t *testing.T, names ...string) *served {
	t.Helper()
	by, _ := issue(t, nil, "authority")
	conf, err := TLS(by.files(t, "controller"))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{events: make(chan control.Event, 1000), by: by}
	s.Server = NewServer(names, func(e control.Event) { s.events <- e }, slog.New(slog.DiscardHandler))
	g := grpc.NewServer(agent.ServerOptions(conf)...)
	agentpb.RegisterPlansServer(g, s.Server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	go g.Serve(l)
	t.Cleanup(g.Stop)
	return s
}

// follow connects as an agent with a certificate of a name.
func (s *served) follow(t *testing.T, by *authority, certificate string) (agentpb.Plans_FollowClient, error) {
	t.Helper()
	c, ctx := s.connect(t, by, certificate)
	return c.Follow(ctx)
}

// connect is follow, before it does.
func (s *served) connect(t *testing.T, by *authority, certificate string) (agentpb.PlansClient, context.Context) {
	t.Helper()
	_, cert, key := by.files(t, certificate)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.by.cert)
	conn, err := grpc.NewClient("passthrough:///"+s.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: "controller", RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return agentpb.NewPlansClient(conn), ctx
}

func (s *served) next(t *testing.T) control.Event {
	t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(testkit.Patience):
		t.Fatal("nothing was posted")
		return nil
	}
}

func say(t *testing.T, c agentpb.Plans_FollowClient, a *agentpb.Answer) {
	t.Helper()
	if err := c.Send(a); err != nil {
		t.Fatal(err)
	}
}

// An agent is up with its first message, which holds its limits and epoch, and a plan is answered by its epoch. A later
// connection replaces an earlier one, and the end of the stream is reported.
func TestServer(t *testing.T) {
	s := serveAgents(t, "edge-0", "edge-1")
	d := control.Device{Kind: control.Agent, Name: "edge-0"}
	c, err := s.follow(t, s.by, "edge-0")
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, &agentpb.Answer{Agent: "edge-0", InForce: 4, Limits: &agentpb.Limits{Probes: 7}})
	if e := s.next(t); e != (control.Up{Device: d}) {
		t.Fatalf("%+v", e)
	}
	if l, ok := s.Limits("edge-0"); !ok || l.Probes != 7 {
		t.Errorf("limits %+v", l)
	}
	s.ReadPlan("edge-0", 1)
	if e := s.next(t).(control.ReadBack); e.Request != 1 || e.Epoch != 4 {
		t.Fatalf("%+v", e)
	}
	plan := func(epoch uint32) *probe.Plan {
		return &probe.Plan{Epoch: epoch, Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80}
	}
	s.SendPlan("edge-1", 2, plan(5)) // is not there
	for k, want := range []control.Event{control.Acked{Request: 3, Device: d}, control.Refused{Request: 4, Device: d, Why: "no"}, control.Refused{Request: 5, Device: d, Why: "it says that epoch 5 is in force"}} {
		s.SendPlan("edge-0", control.Request(3+k), plan(uint32(5+k)))
		m, err := c.Recv()
		if err != nil || m.GetEpoch() != uint32(5+k) {
			t.Fatalf("%v, %+v", err, m)
		}
		a := &agentpb.Answer{Agent: "edge-0", InForce: 5, About: m.GetEpoch()}
		if k == 1 {
			a.Refused = "no"
		}
		say(t, c, &agentpb.Answer{Agent: "edge-0", InForce: 5, About: 99}) // about nothing that waits
		say(t, c, a)
		if e := s.next(t); !reflect.DeepEqual(e, want) {
			t.Fatalf("%+v, want %+v", e, want)
		}
	}
	second, err := s.follow(t, s.by, "edge-0")
	if err != nil {
		t.Fatal(err)
	}
	say(t, second, &agentpb.Answer{Agent: "edge-0", InForce: 5})
	if e, ok := s.next(t).(control.Down); !ok || e.Device != d {
		t.Fatalf("%+v", e)
	}
	if e := s.next(t); e != (control.Up{Device: d}) {
		t.Fatalf("%+v", e)
	}
	if _, err := c.Recv(); status.Code(err) != codes.Aborted {
		t.Errorf("the earlier connection ends with %v", err)
	}
	if err := second.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if e, ok := s.next(t).(control.Down); !ok || e.Device != d {
		t.Fatalf("%+v", e)
	}
}

// Agents of other networks, with the certificate of another agent or of another authority, and silent ones are refused.
// Nothing is posted.
func TestServerRefuses(t *testing.T) {
	s := serveAgents(t, "edge-0", "edge-1")
	other, _ := issue(t, nil, "other")
	for _, x := range []struct {
		certificate, name string
		by                *authority
		want              codes.Code
	}{
		{"edge-9", "edge-9", s.by, codes.PermissionDenied}, {"edge-1", "edge-0", s.by, codes.PermissionDenied}, {"edge-0", "edge-0", other, codes.Unavailable},
		{"edge-0", "", s.by, codes.DeadlineExceeded},
	} {
		if x.name == "" {
			s.hold = 50 * time.Millisecond
		}
		c, err := s.follow(t, x.by, x.certificate)
		if x.want == codes.Unavailable && err != nil {
			continue // the handshake was over before the stream began
		}
		if err != nil {
			t.Fatal(err)
		}
		if x.name != "" {
			_ = c.Send(&agentpb.Answer{Agent: x.name}) // the error is for the receiver
		}
		if _, err := c.Recv(); status.Code(err) != x.want && (x.want != codes.Unavailable || err == nil) {
			t.Errorf("certificate of %q, name %q: %v, want %v", x.certificate, x.name, err, x.want)
		}
	}
	if len(s.events) > 0 {
		t.Errorf("posted %+v", <-s.events)
	}
}
