package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// health says what a page says, and fails when it is not ready.
func TestHealth(t *testing.T) {
	ready := true
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			_, _ = w.Write([]byte("ok\n"))
		case r.URL.Path != "/readyz":
			http.NotFound(w, r)
		case ready:
			_, _ = w.Write([]byte("ready\n"))
		default:
			http.Error(w, "influx: away", http.StatusServiceUnavailable)
		}
	}))
	defer page.Close()
	none := "http://" + testkit.FreeAddr(t)
	for _, tt := range []struct {
		name   string
		ready  bool
		args   []string
		status int
		want   string
	}{
		{"ready", true, []string{"--url", page.URL}, 0, "ready\n"},
		{"not ready", false, []string{"--url", page.URL + "/"}, 1, "influx: away"},
		{"lives", false, []string{"--url", page.URL, "--alive"}, 0, "ok\n"},
		{"no page of ours", true, []string{"--url", page.URL + "/nothing"}, 1, "404"},
		{"nobody", true, []string{"--url", none}, 1, "nothing answers at " + none},
		{"no address", true, []string{"--url", "localhost"}, exitUsage, "is not http://HOST:PORT"},
		{"no time", true, []string{"--url", page.URL, "--timeout", "0s"}, exitUsage, "is not above 0"},
	} {
		ready = tt.ready
		c := rootCommand()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetArgs(append([]string{"health"}, tt.args...))
		err := c.ExecuteContext(t.Context())
		status, text := 0, out.String()
		if err != nil {
			status, text = exitStatus(err), err.Error()
		}
		if status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: status %d, %q, want %d, %q", tt.name, status, text, tt.status, tt.want)
		}
	}
}
