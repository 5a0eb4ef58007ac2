package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

func TestNewRefuses(t *testing.T) {
	ok := sceneDeps(sceneTime)
	for _, c := range []struct {
		name   string
		change func(*Config, *Deps)
		want   string
	}{
		{"off", func(c *Config, _ *Deps) { c.Listen = "" }, "listen is empty"},
		{"open without token", func(c *Config, _ *Deps) { c.Listen = ":0" }, "token_file: required"},
		{"no token there", func(c *Config, _ *Deps) { c.TokenFile = "testdata/none" }, "read token: open testdata/none"},
		{"no certificate there", func(c *Config, _ *Deps) { c.TLSCertFile, c.TLSKeyFile = "testdata/none", "testdata/none" }, "read certificate"},
		{"a zero configuration", func(c *Config, _ *Deps) { *c = Config{Listen: "127.0.0.1:0"} }, "begin with DefaultConfig"},
		{"no status", func(_ *Config, d *Deps) { d.Status = nil }, "Deps without"},
		{"no ledger", func(_ *Config, d *Deps) { d.Ledger = nil }, "Deps without"},
	} {
		cfg, deps := DefaultConfig(), ok
		c.change(&cfg, &deps)
		if _, err := New(cfg, deps); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "web: ") {
			t.Errorf("%s: New: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	a := serve(t, DefaultConfig(), sceneDeps(sceneTime))
	cfg := DefaultConfig()
	cfg.Listen = a.listener.Addr().String()
	b, err := New(cfg, sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), cfg.Listen) {
		t.Errorf("Serve on a port in use: %v", err)
	}
	res, err := http.Get(a.URL() + "healthz") // now it serves for certain
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Serve(t.Context()); err == nil {
		t.Error("Serve could be called twice")
	}
}

// Shutdown does not wait for event streams, lets a request end, and aborts one that does not end.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deps := sceneDeps(sceneTime)
		hold := make(chan struct{})
		deps.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-hold
			_, _ = io.WriteString(w, "done\n")
		})
		s := runPiped(t, DefaultConfig(), deps)
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return s.l.dial() }}}
		answer := make(chan string, 1)
		go func() {
			res, err := client.Get("http://localhost/metrics")
			if err != nil {
				answer <- err.Error()
				return
			}
			body, err := io.ReadAll(res.Body)
			answer <- fmt.Sprint(string(body), err)
		}()
		synctest.Wait()
		begin := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- s.stop() }()
		time.Sleep(2 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("Serve returned %v while a request was under way", err)
		default:
		}
		close(hold)
		if got := <-answer; got != "done\n<nil>" {
			t.Errorf("the request under way got %q", got)
		}
		if err := <-ended; err != nil || time.Since(begin) > 3*time.Second {
			t.Errorf("Serve ended after %v with %v", time.Since(begin), err)
		}
		// Written after the end: kept, and nothing hangs.
		w := hopWindow(second, hopAt(1, 1, 5))
		if err := s.WriteWindow(context.Background(), sink.NewWindow("here", w, findingN(1))); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Windows != 1 {
			t.Errorf("%+v, want one window", st)
		}
	})
}

func TestShutdownGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deps := sceneDeps(sceneTime)
		deps.Metrics = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s := runPiped(t, DefaultConfig(), deps)
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return s.l.dial() }}}
		failed := make(chan error, 1)
		go func() {
			_, err := client.Get("http://localhost/metrics")
			failed <- err
		}()
		synctest.Wait()
		begin := time.Now()
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < s.cfg.ShutdownTimeout || took > s.cfg.ShutdownTimeout+time.Second {
			t.Errorf("Serve waited %v, want %v", took, s.cfg.ShutdownTimeout)
		}
		if err := <-failed; err == nil {
			t.Error("the request that would not end was answered")
		}
	})
}

// Clients that send slowly or too much are cut off.
func TestRequestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		begin := time.Now()
		conn, err := s.l.dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("a half header was waited for %v", took)
		}
		if conn, err = s.l.dial(); err != nil {
			t.Fatal(err)
		}
		go func() { // the server stops reading in the middle
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
		}()
		head := make([]byte, 12)
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 431" {
			t.Errorf("64 KB of header: %q, %v", head, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TokenFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "token")
	roots := writeCertificate(t, &cfg)
	if err := os.WriteFile(cfg.TokenFile, []byte(testToken), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, cfg, sceneDeps(sceneTime))
	if !strings.HasPrefix(srv.URL(), "https://127.0.0.1:") {
		t.Errorf("URL() = %s", srv.URL())
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(srv.URL() + "login?token=" + testToken)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if len(res.Cookies()) != 1 || !res.Cookies()[0].Secure || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	// The event stream works over HTTP/2, where it has no connection of its own.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL()+"api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	if res, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, 64)
	n, err := io.ReadAtLeast(res.Body, hello, 20)
	if err != nil || res.Proto != "HTTP/2.0" || !strings.Contains(string(hello[:n]), "event: hello\n") {
		t.Errorf("%s: %q, %v", res.Proto, hello[:n], err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	plain, err := http.Get("http://" + srv.listener.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP at the same port: %s", plain.Status)
	}
	if err := plain.Body.Close(); err != nil {
		t.Fatal(err)
	}
	// A handshake that fails is counted, not logged.
	conn, err := tls.Dial("tcp", srv.listener.Addr().String(), &tls.Config{})
	if err == nil {
		err = conn.Close()
		t.Errorf("the handshake without the root succeeded (%v)", err)
	}
	testkit.Until(t, "the failed handshake is counted", func() bool { return srv.Stats().ServerErrors > 0 })
}

// writeCertificate makes one for 127.0.0.1 that lasts as long as the test.
func writeCertificate(t *testing.T, cfg *Config) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, b := range map[string][]byte{cfg.TLSCertFile: cert, cfg.TLSKeyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// Everything at once; the race detector looks on.
func TestConcurrent(t *testing.T) {
	cfg := DefaultConfig()
	cfg.HistoryWindows, cfg.MaxHops, cfg.MaxFlows = 10, 16, 16
	srv := serve(t, cfg, sceneDeps(sceneTime))
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range 300 {
			w := hopWindow(int64(i) * second)
			w.Reports = 1
			for n := range 20 {
				w.Hops = append(w.Hops, hopAt(uint32(n+i%7), 1, 5))
				w.Flows = append(w.Flows, flowOf(n+i%5, 5, make([]uint32, 1+n%4)...))
			}
			write(srv, sink.NewWindow("here", w, []inference.Finding{{ID: uint64(i % 40), End: int64(i % 2)}}))
		}
	})
	for _, path := range []string{"/api/status", "/api/windows", "/api/hops", "/api/hop?node=3&egress_if=1", "/api/flows?q=1", "/api/flow?key=" + url.QueryEscape(flowN(3).String()), "/api/exporters", "/api/findings", "/api/ledger", "/api/names"} {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				res := request(srv, http.MethodGet, path)
				if res.StatusCode != 200 && res.StatusCode != 404 {
					t.Errorf("GET %s: %s", path, res.Status)
				}
				var v any
				if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
					t.Errorf("GET %s: %v", path, err)
				}
				_ = srv.Stats()
			}
		})
	}
	wg.Wait()
}
