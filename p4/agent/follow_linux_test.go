package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"log/slog"
	"math/big"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/probe"
)

// authority signs certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	a := &authority{}
	a.cert, a.key, a.pem, _ = issue(t, nil, "authority")
	return a
}

// issue makes a certificate of a name; without an authority, one that signs others.
func issue(t testing.TB, by *authority, name string) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	fail(err)
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	} else {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	fail(err)
	cert, err := x509.ParseCertificate(der)
	fail(err)
	b, err := x509.MarshalECPrivateKey(key)
	fail(err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// files writes a certificate of a name, its key and the authority.
func (a *authority) files(t testing.TB, name string) (ca, cert, key string) {
	t.Helper()
	_, _, c, k := issue(t, a, name)
	dir := t.TempDir()
	for file, b := range map[string][]byte{"ca.pem": a.pem, "cert.pem": c, "key.pem": k} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// controller is one of tests: plans that are put into its channel go to the one agent that follows.
type controller struct {
	agentpb.UnimplementedPlansServer
	plans   chan *agentpb.Plan
	answers chan *agentpb.Answer
	server  *grpc.Server
	address string
}

func (c *controller) Follow(s agentpb.Plans_FollowServer) error {
	go func() {
		for {
			a, err := s.Recv()
			if err != nil {
				return
			}
			c.answers <- a
		}
	}()
	for {
		select {
		case p := <-c.plans:
			if err := s.Send(p); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// startController serves with a certificate of a name that by signed, and takes agents whose certificates agents signed.
func startController(t testing.TB, address, name string, by, agents *authority) *controller {
	t.Helper()
	return startServer(t, address, name, by, agents, func(c *controller) agentpb.PlansServer { return c })
}

// startServer is startController for one that does more.
func startServer(t testing.TB, address, name string, by, agents *authority, more func(c *controller) agentpb.PlansServer) *controller {
	t.Helper()
	_, cert, key := by.files(t, name)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(agents.cert)
	c := &controller{plans: make(chan *agentpb.Plan, 16), answers: make(chan *agentpb.Answer, 64),
		server: grpc.NewServer(ServerOptions(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool})...)}
	agentpb.RegisterPlansServer(c.server, more(c))
	l := listen(t, address)
	c.address = l.Addr().String()
	go c.server.Serve(l)
	t.Cleanup(c.server.Stop)
	return c
}

// listen opens a socket in the network namespace of the machine, where the agent's connections are made. Only the
// goroutine of the test is in another one.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	opened := make(chan struct{})
	go func() {
		l, err = net.Listen("tcp", address)
		close(opened)
	}()
	if <-opened; err != nil {
		t.Fatal(err)
	}
	return l
}

// next is the next answer.
func (c *controller) next(t testing.TB) *agentpb.Answer {
	t.Helper()
	select {
	case a := <-c.answers:
		return a
	case <-time.After(testkit.Patience):
		t.Fatal("no answer")
	}
	return nil
}

// planProto is a plan of one probe of the agent of tests.
func planProto(t testing.TB, epoch uint32, interval time.Duration) *agentpb.Plan {
	t.Helper()
	p := planOfOne(probe.INT21, false, 1, 2)
	p.Epoch, p.Probes[0].Agent, p.Probes[0].Interval = epoch, "edge-0-0", interval
	m, err := p.Proto()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asking is a controller that wants to know of rounds: of every number that is put into its channel.
type asking struct {
	*controller
	asks   chan uint64
	rounds chan *agentpb.Rounds
}

func (c *asking) Tell(s agentpb.Plans_TellServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		c.rounds <- m
		select {
		case n := <-c.asks:
			if err := s.Send(&agentpb.Ask{Number: n}); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// TestReport: an agent reports to a controller the rounds that it sent and received, over real sockets: exactly those
// that the network did not lose. A plan that replaces another one begins anew.
func TestReport(t *testing.T) {
	namespace(t)
	ca := newAuthority(t)
	ask := &asking{asks: make(chan uint64), rounds: make(chan *agentpb.Rounds)}
	c := startServer(t, "127.0.0.1:0", "controller.example", ca, ca, func(c *controller) agentpb.PlansServer { ask.controller = c; return ask })
	var seqs atomic.Uint32 // of rounds that came to the network; every fifth of them gets lost
	startFabric(t, probe.INT21, func(int) bool { return seqs.Add(1)%5 == 0 })
	cfg, _ := testConfig(t)
	cfg.Controller = Controller{Address: c.address, Name: "controller.example"}
	cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile = ca.files(t, "edge-0-0")
	a, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	next := func() *agentpb.Rounds {
		t.Helper()
		select {
		case r := <-ask.rounds:
			return r
		case <-time.After(testkit.Patience):
			t.Fatal("no rounds")
		}
		return nil
	}
	if h := next(); h.Agent != "edge-0-0" || h.About != 0 || len(h.Sent)+len(h.Came) > 0 {
		t.Fatalf("the first message is %v", h)
	}
	c.next(t)
	number := uint64(0)
	for epoch := uint32(1); epoch <= 2; epoch++ {
		c.plans <- planProto(t, epoch, 2*time.Millisecond)
		if x := c.next(t); x.InForce != epoch {
			t.Fatalf("epoch %d is answered with %v", epoch, x)
		}
		for arrived := uint32(0); arrived < 150; {
			number++
			ask.asks <- number
			m := next()
			r, err := probe.RoundsOf(m)
			if err != nil || m.About != number || m.Agent != "edge-0-0" || r.Spoiled != 0 || r.Unfollowed != 0 {
				t.Fatalf("question %d: %v, %v", number, m, err)
			}
			if r.Epoch != epoch || len(r.Received) == 0 || r.Received[0].Epoch != epoch {
				continue
			}
			s, x := r.Sent[0], r.Received[0]
			if s.ID != "p1" || s.Interval != 2*time.Millisecond || !slices.Equal(s.Route, []int{1, 2}) || s.Number != x.Number || r.Address != netip.AddrFrom4(x.Source) {
				t.Fatalf("sent %+v, came %+v", s, x)
			}
			if epoch == 1 { // the first round came to the network first
				want := x.Next - x.Next/5
				if x.First != 0 || x.Received != want {
					t.Fatalf("of %d rounds came %d, want %d", x.Next, x.Received, want)
				}
			}
			for k := 0; k+5 <= int(min(64, x.Next-x.First)); k++ { // of five in a row one is missing
				if n := bits.OnesCount64(x.Window >> k & 31); n != 4 {
					t.Fatalf("window %#x: %d of five came", x.Window, n)
				}
			}
			arrived = x.Received
		}
	}
}

// TestFollow goes through the life of an agent with a controller. Plans are answered by their epoch, and wrong ones are
// refused whole. The plan stays when the controller is gone, and another controller in its place learns which one that
// is.
func TestFollow(t *testing.T) {
	namespace(t)
	ca := newAuthority(t)
	c := startController(t, "127.0.0.1:0", "controller.example", ca, ca)
	cfg, _ := testConfig(t)
	cfg.Controller = Controller{Address: c.address, Name: "controller.example"}
	cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile = ca.files(t, "edge-0-0")
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	if h := c.next(t); h.Agent != "edge-0-0" || h.InForce != 0 || h.About != 0 || h.Limits.GetSendBps() != cfg.SendLimit || h.Limits.GetMtu() != 1500 {
		t.Fatalf("the first answer is %v", h)
	}
	wide := planProto(t, 5, time.Second)
	wide.Basic = 1 << 16
	for _, x := range []struct {
		plan    *agentpb.Plan
		refused string
		inForce uint32
	}{
		{planProto(t, 3, 5*time.Millisecond), "", 3},
		{planProto(t, 4, 20*time.Microsecond), "would send 50000 probes a second", 3},
		{planProto(t, 2, time.Second), "there is a later plan", 3},
		{wide, "the basic bitmap 0x10000 has more than 16 bits", 3},
		{&agentpb.Plan{Epoch: 6}, `dialect "" is neither`, 3},
		{planProto(t, 3, 5*time.Millisecond), "", 3},
		{planProto(t, 7, 4*time.Millisecond), "", 7},
	} {
		c.plans <- x.plan
		got := c.next(t)
		if got.About != x.plan.Epoch || got.InForce != x.inForce || (x.refused == "") != (got.Refused == "") || !strings.Contains(got.Refused, x.refused) {
			t.Errorf("epoch %d is answered with %v, want %q and %d in force", x.plan.Epoch, got, x.refused, x.inForce)
		}
	}
	if s := a.Status(); !s.controller.Connected || s.From != "controller controller.example" {
		t.Errorf("%+v", s)
	}
	c.server.Stop()
	wait(t, "word of the end", func() bool { return !a.Status().controller.Connected })
	sent := a.Stats().Sent
	wait(t, "probe without a controller", func() bool { return a.Stats().Sent > sent })
	if s := a.Status(); s.Epoch != 7 || s.controller.problem == "" {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(logged.String(), "the controller is gone; the plan stays in force") {
		t.Errorf("logged: %s", logged.String())
	}
	second := startController(t, c.address, "controller.example", ca, ca)
	if h := second.next(t); h.InForce != 7 || h.Load.GetProbes() != 1 {
		t.Errorf("another controller hears %v", h)
	}
	second.plans <- planProto(t, 8, time.Second)
	if got := second.next(t); got.InForce != 8 || got.Refused != "" {
		t.Errorf("%v", got)
	}
}

// TestKept starts an agent without its controller. It continues with the kept plan. A file that is no plan is ignored,
// and one that exceeds the settings is refused.
func TestKept(t *testing.T) {
	namespace(t)
	ca := newAuthority(t)
	c := startController(t, "127.0.0.1:0", "controller.example", ca, ca)
	cfg, _ := testConfig(t)
	cfg.Controller = Controller{Address: c.address, Name: "controller.example", PlanFile: filepath.Join(t.TempDir(), "plan")}
	cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile = ca.files(t, "edge-0-0")
	open := func(cfg Config) (*Agent, *logLines, func()) {
		logged := &logLines{}
		a, err := Open(cfg, logged.logger())
		if err != nil {
			t.Fatal(err)
		}
		return a, logged, runAgent(t, a)
	}
	_, _, stop := open(cfg)
	c.next(t)
	c.plans <- planProto(t, 3, 5*time.Millisecond)
	if got := c.next(t); got.InForce != 3 {
		t.Fatal(got)
	}
	c.plans <- planProto(t, 4, time.Microsecond) // refused, and not kept
	c.next(t)
	stop()
	c.server.Stop()
	a, _, stop := open(cfg)
	wait(t, "probe of the kept plan", func() bool { return a.Stats().Sent > 0 })
	if s := a.Status(); s.Epoch != 3 || s.From != cfg.Controller.PlanFile || s.controller.Connected {
		t.Errorf("%+v", s)
	}
	stop()
	small := cfg
	small.ProbesPerSecond = 10
	a, _, stop = open(small)
	wait(t, "refusal", func() bool { return strings.Contains(a.Status().Refused, "would send 200 probes a second") })
	stop()
	if err := os.WriteFile(cfg.Controller.PlanFile, []byte("no plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, logged, stop := open(cfg)
	wait(t, "word of the file", func() bool { return strings.Contains(logged.String(), "the plan that was kept cannot be read") })
	if s := a.Status(); s.Epoch != 0 {
		t.Errorf("%+v", s)
	}
	stop()
	list, err := os.ReadDir(filepath.Dir(cfg.Controller.PlanFile))
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestStrangers holds that plans come from the named certificate alone. Another name or another authority is refused,
// and an agent without a certificate of the right authority gets no plan.
func TestStrangers(t *testing.T) {
	namespace(t)
	ca, other := newAuthority(t), newAuthority(t)
	for _, x := range []struct {
		what, name   string
		signs, takes *authority
		agent        *authority
		want         string
	}{
		{"another name", "other.example", ca, ca, ca, "certificate is valid for other.example, not controller.example"},
		{"another authority", "controller.example", other, ca, ca, "certificate signed by unknown authority"},
		{"an agent that is not known", "controller.example", ca, other, ca, "bad certificate|unknown certificate authority|certificate required"},
	} {
		c := startController(t, "127.0.0.1:0", x.name, x.signs, x.takes)
		c.plans <- planProto(t, 3, time.Second)
		cfg, _ := testConfig(t)
		cfg.Controller = Controller{Address: c.address, Name: "controller.example"}
		cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile = ca.files(t, "edge-0-0")
		a, err := Open(cfg, (&logLines{}).logger())
		if err != nil {
			t.Fatal(err)
		}
		stop := runAgent(t, a)
		reported := func() bool {
			for want := range strings.SplitSeq(x.want, "|") {
				if strings.Contains(a.Status().controller.problem, want) {
					return true
				}
			}
			return false
		}
		for end := time.Now().Add(testkit.Patience); !reported() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		}
		if s := a.Status(); !reported() || s.Epoch != 0 || len(c.answers) > 0 {
			t.Errorf("%s: %+v, want %q", x.what, s, x.want)
		}
		stop()
	}
	// Without TLS nothing is said at all.
	plain := grpc.NewServer()
	c := &controller{plans: make(chan *agentpb.Plan, 1), answers: make(chan *agentpb.Answer, 8)}
	agentpb.RegisterPlansServer(plain, c)
	l := listen(t, "127.0.0.1:0")
	go plain.Serve(l)
	defer plain.Stop()
	cfg, _ := testConfig(t)
	cfg.Controller = Controller{Address: l.Addr().String(), Name: "controller.example"}
	cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile = ca.files(t, "edge-0-0")
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	wait(t, "word of why there is no controller", func() bool { return a.Status().controller.problem != "" })
	if len(c.answers) > 0 || a.Status().Epoch != 0 {
		t.Errorf("a controller without TLS is talked to: %+v", a.Status())
	}
}

// TestProto sends plans there and back, and refuses what does not fit.
func TestProto(t *testing.T) {
	p := planOfOne(probe.FANT, true, 255, 0, 3)
	p.Probes[0].Phase, p.Probes[0].To = 5*time.Millisecond, netip.MustParseAddr("10.1.2.3")
	m, err := p.Proto()
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var second agentpb.Plan
	if err := proto.Unmarshal(b, &second); err != nil {
		t.Fatal(err)
	}
	q, err := probe.PlanOf(&second)
	if err != nil || !reflect.DeepEqual(p, q) {
		t.Errorf("%+v, %v, want %+v", q, err, p)
	}
	for want, change := range map[string]func(m *agentpb.Plan){
		"the detailed bitmap 0x12345 has more": func(m *agentpb.Plan) { m.Detailed = 0x12345 },
		"a destination of 3 bytes":             func(m *agentpb.Plan) { m.Probes[0].Destination = []byte{1, 2, 3} },
	} {
		bad := proto.Clone(m).(*agentpb.Plan)
		change(bad)
		if _, err := probe.PlanOf(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	huge := proto.Clone(m).(*agentpb.Plan)
	huge.Probes[0].IntervalNs = 1 << 63
	if q, err := probe.PlanOf(huge); err != nil || q.Probes[0].Interval >= 0 {
		t.Errorf("%+v, %v", q, err)
	}
}

// FuzzPlan holds that no message makes a plan that agents accept and cannot send.
func FuzzPlan(f *testing.F) {
	for _, d := range []probe.Dialect{probe.INT21, probe.FANT} {
		m, err := planOfOne(d, true, 1, 2, 3).Proto()
		if err != nil {
			f.Fatal(err)
		}
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	c := DefaultConfig()
	c.Name = "a"
	l := c.Limits()
	f.Fuzz(func(t *testing.T, b []byte) {
		var m agentpb.Plan
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		p, err := probe.PlanOf(&m)
		if err != nil {
			return
		}
		load, err := p.Check(&l)
		if err != nil {
			return
		}
		slots := []probe.Slot{}
		for k := range p.Probes {
			x := &p.Probes[k]
			if _, err := probe.NewTemplate(p, x, uint32(k), &agentEnds); err != nil {
				t.Fatalf("%x is accepted, and probe %d cannot be sent: %v", b, k, err)
			}
			slots = append(slots, probe.Slot{Interval: x.Interval, Phase: x.Phase})
		}
		if len(slots) > 0 {
			probe.NewTimetable(slots, 1).Pop(1 << 40)
		}
		if load.SendBPS > l.SendBPS*(1+1e-9) {
			t.Fatalf("%x is accepted with %v bit/s", b, load.SendBPS)
		}
	})
}

// TestGenerated holds that the generated code is that of the source.
func TestGenerated(t *testing.T) {
	source, err := os.ReadFile("agentpb/agent.proto")
	if err != nil {
		t.Fatal(err)
	}
	reported, err := os.ReadFile("agentpb/agent.proto.sha256")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(source)
	if !strings.HasPrefix(string(reported), hex.EncodeToString(sum[:])) {
		t.Error("agentpb/agent.proto has changed without its code: make proto")
	}
}
