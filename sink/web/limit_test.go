package web

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// dial opens a connection to the server and sends text.
func dial(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// answer reads the status of the next answer on c.
func answer(t *testing.T, c net.Conn) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	return res.StatusCode
}

func requestText(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

func probes(t *testing.T, s *Server) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if got := answer(t, dial(t, s, requestText(path))); got != http.StatusOK {
			t.Errorf("GET %s: status %d", path, got)
		}
	}
}

func limitedDeps() Deps {
	deps := sceneDeps(sceneTime)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	deps.Health, deps.Ready, deps.Metrics = ok, ok, ok
	return deps
}

// Any number of connections without a request, or with half a request, keeps no client out.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := serve(t, DefaultConfig(), limitedDeps())
	most := s.cfg.MaxConnections
	for range most {
		dial(t, s, "")
	}
	probes(t, s)
	for range most {
		dial(t, s, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
	}
	probes(t, s)
	for range most { // idle after an answer
		if got := answer(t, dial(t, s, requestText("/healthz"))); got != http.StatusOK {
			t.Fatalf("status %d", got)
		}
	}
	probes(t, s)
	if got := answer(t, dial(t, s, requestText("/"))); got != http.StatusOK {
		t.Errorf("the page: status %d", got)
	}
	if n := s.Stats().connsClosed; n < uint64(2*most) {
		t.Errorf("%d connections were closed for others, want %d or more", n, 2*most)
	}
}

// A connection that is being answered is not closed for another one, and leaves room for probes alone.
func TestProbesHaveAReserve(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxConnections, cfg.MaxStreams = 8, 8
	s := serve(t, cfg, limitedDeps())
	var streams []net.Conn
	for range cfg.MaxConnections {
		c := dial(t, s, requestText("/api/events"))
		if got := answer(t, c); got != http.StatusOK {
			t.Fatalf("stream: status %d", got)
		}
		streams = append(streams, c)
	}
	probes(t, s)
	if got := answer(t, dial(t, s, requestText("/api/status"))); got != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: status %d, want 503", got)
	}
	for range 2 * reserve { // the reserve, too, is not kept by connections that ask nothing
		dial(t, s, "GET /healthz HTTP/1.1\r\n")
	}
	probes(t, s)
	for i, c := range streams { // all of them live: the ledger is sent every second
		_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("stream %d was closed: %v", i, err)
		}
	}
	for _, c := range streams[:2] {
		_ = c.Close()
	}
	testkit.Until(t, "a place that became free is given out", func() bool { return answer(t, dial(t, s, requestText("/api/status"))) == http.StatusOK })
}

// The same over TLS, where an unfinished handshake is half a request.
func TestHalfHandshakesMakeRoom(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.MaxConnections = 8
	cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TokenFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "token")
	roots := writeCertificate(t, &cfg)
	if err := os.WriteFile(cfg.TokenFile, []byte(testToken), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, limitedDeps())
	for range 2 * cfg.MaxConnections {
		dial(t, s, "\x16\x03\x01")
	}
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	res, err := client.Get(s.URL() + "healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("GET /healthz: %s", res.Status)
	}
}
