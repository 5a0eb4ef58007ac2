package web

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/sink/web/access"
)

const testToken = "correct-horse-battery"

func newTokenServer(t *testing.T) *Server {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Listen = "0.0.0.0:8080"
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.TokenFile, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := New(cfg, sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func TestHostCheck(t *testing.T) {
	cfg := DefaultConfig()
	cfg.AllowedHosts = []string{"Telemetry.Example"}
	srv, err := New(cfg, sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "127.0.0.1": 200, "[::1]:8080": 200, "[::1]": 200, "localhost:8080": 200, "LOCALHOST": 200, "192.0.2.7:8080": 200,
		"telemetry.example:443": 200, "telemetry.example.": 200,
		"attacker.example": 421, "attacker.example:8080": 421, "localhost.attacker.example:8080": 421, "127.0.0.1.attacker.example": 421, "": 421,
		"localhost:8080:1": 421, "[::1": 421, "telemetry.example@attacker.example": 421,
	} {
		for _, path := range []string{"/", "/api/status", "/metrics", "/app.js", "/api/events"} {
			if path == "/api/events" && want == 200 {
				continue // would stream
			}
			if res := request(srv, http.MethodGet, path, func(r *http.Request) { r.Host = host }); res.StatusCode != want {
				t.Errorf("GET %s with Host %q: %s, want %d", path, host, res.Status, want)
			}
		}
	}
	if n := srv.Stats().HostsRefused; n == 0 {
		t.Error("refused hosts were not counted")
	}
	// With a token the name does not matter.
	if res := request(newTokenServer(t), http.MethodGet, "/healthz", func(r *http.Request) { r.Host = "collector.example" }); res.StatusCode != 200 {
		t.Errorf("by name, with token: %s", res.Status)
	}
}

func TestMethods(t *testing.T) {
	srv := newTokenServer(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		for _, path := range []string{"/", "/api/status", "/api/events", "/metrics", "/app.js"} {
			res := request(srv, method, path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) })
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %s, Allow %q", method, path, res.Status, res.Header.Get("Allow"))
			}
		}
	}
	open := newSceneServer(t)
	for _, path := range []string{"/", "/api/status", "/api/windows", "/api/events"} {
		res := request(open, http.MethodHead, path)
		body, _ := io.ReadAll(res.Body) // of a recorder
		if res.StatusCode != 200 {
			t.Errorf("HEAD %s: %s, %d bytes", path, res.Status, len(body))
		}
	}
}

func TestHeaders(t *testing.T) {
	srv := newSceneServer(t)
	for _, path := range []string{"/", "/api/status", "/metrics", "/no/such/thing", "/login", "/app.js"} {
		h := request(srv, http.MethodGet, path).Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("GET %s: %s is %q, want %q", path, name, h.Get(name), want)
			}
		}
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("GET %s: Content-Security-Policy %q", path, csp)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("GET %s: other origins may read it", path)
		}
	}
}

func TestToken(t *testing.T) {
	srv := newTokenServer(t)
	bearer := func(v string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", v) }
	}
	cookie := func(v string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: access.CookieName, Value: v}) }
	}
	in := request(srv, http.MethodPost, "/login", func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = io.NopCloser(strings.NewReader(url.Values{"token": {testToken}}.Encode()))
	})
	if len(in.Cookies()) != 1 {
		t.Fatalf("login: %s", in.Status)
	}
	session := in.Cookies()[0].Value
	nothing := func(*http.Request) {}
	for _, c := range []struct {
		name, path string
		change     func(*http.Request)
		want       int
	}{
		{"nothing", "/api/status", nothing, 401},
		{"nothing, metrics", "/metrics", nothing, 401},
		{"nothing, events", "/api/events", nothing, 401},
		{"nothing, script", "/app.js", nothing, 401},
		{"nothing, unknown path", "/x", nothing, 401},
		{"nothing, page", "/", nothing, 303},
		{"nothing, health", "/healthz", nothing, 200},
		{"nothing, readiness", "/readyz", nothing, 200},
		{"nothing, form", "/login", nothing, 200},
		{"token", "/api/status", bearer("Bearer " + testToken), 200},
		{"token, metrics", "/metrics", bearer("Bearer " + testToken), 200},
		{"token, other case", "/api/status", bearer("bearer  " + testToken), 200},
		{"token, one character more", "/api/status", bearer("Bearer " + testToken + "x"), 401},
		{"token, one character less", "/api/status", bearer("Bearer " + testToken[1:]), 401},
		{"empty token", "/api/status", bearer("Bearer "), 401},
		{"basic", "/api/status", bearer("Basic " + testToken), 401},
		{"token in the address", "/api/status?token=" + testToken, nothing, 401},
		{"cookie", "/api/status", cookie(session), 200},
		{"token as cookie", "/api/status", cookie(testToken), 401},
		{"wrong token, good cookie", "/api/status", func(r *http.Request) { bearer("Bearer x")(r); cookie(session)(r) }, 401},
	} {
		res := request(srv, http.MethodGet, c.path, c.change)
		if res.StatusCode != c.want {
			t.Errorf("%s: GET %s: %s, want %d", c.name, c.path, res.Status, c.want)
		}
		if c.want == 401 && res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", c.name)
		}
	}
	if strings.Contains(session, testToken) {
		t.Error("the cookie holds the token")
	}
}

func TestLogin(t *testing.T) {
	srv := newTokenServer(t)
	form := func(token string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Body = io.NopCloser(strings.NewReader(url.Values{"token": {token}}.Encode()))
		}
	}
	for name, res := range map[string]*http.Response{
		"form":    request(srv, http.MethodPost, "/login", form(testToken)),
		"address": request(srv, http.MethodGet, "/login?token="+testToken),
	} {
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" || len(res.Cookies()) != 1 {
			t.Fatalf("%s: %s %v", name, res.Status, res.Header)
		}
		c := res.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("%s: cookie %+v", name, c)
		}
		if page := request(srv, http.MethodGet, "/", func(r *http.Request) { r.AddCookie(c) }); page.StatusCode != 200 {
			t.Errorf("%s: page with the cookie: %s", name, page.Status)
		}
	}
	for name, res := range map[string]*http.Response{
		"wrong in the form":    request(srv, http.MethodPost, "/login", form("wrong")),
		"wrong in the address": request(srv, http.MethodGet, "/login?token=wrong"),
	} {
		body, _ := io.ReadAll(res.Body) // of a recorder
		if res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) != 0 || strings.Contains(string(body), " hidden>That") || !strings.Contains(string(body), "That is not the token") {
			t.Errorf("%s: %s\n%s", name, res.Status, body)
		}
	}
	if res := request(srv, http.MethodPost, "/login", form(strings.Repeat("x", 4096))); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a form that is too long: %s", res.Status)
	}
	if n := srv.Stats().Unauthorized; n != 2 {
		t.Errorf("%d failed logins counted, want 2", n)
	}
	// Without a token there is nothing to log in to.
	if res := request(newSceneServer(t), http.MethodGet, "/login"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("/login without a token: %s", res.Status)
	}
}

// The page must not name another host, and must include the licences of its parts.
func TestAssets(t *testing.T) {
	a, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range a {
		if strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".woff2") {
			continue
		}
		text := string(f.body)
		// Namespaces are names, not addresses; ONOS is the example of the empty page.
		for _, known := range []string{"http://www.w3.org/2000/svg", "http://ONOS:8181/"} {
			text = strings.ReplaceAll(text, known, "")
		}
		for _, bad := range []string{"http://", "https://", "//cdn", "@import", "sourceMappingURL", "innerHTML", "eval(", "new Function", "document.write"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
		if strings.HasSuffix(name, ".html") && (strings.Contains(text, "<style") || strings.Contains(text, " style=") || strings.Contains(text, " onclick=")) {
			t.Errorf("%s has styles or scripts in it, which the policy forbids", name)
		}
	}
	licenses := string(a["LICENSES.txt"].body)
	for _, want := range []string{"uPlot", "The MIT License", "Inter", "SIL OPEN FONT LICENSE"} {
		if !strings.Contains(licenses, want) {
			t.Errorf("LICENSES.txt does not contain %q", want)
		}
	}
	srv := newSceneServer(t)
	res := request(srv, http.MethodGet, "/app.js")
	tag := res.Header.Get("ETag")
	if tag == "" || res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("GET /app.js: %v", res.Header)
	}
	if res := request(srv, http.MethodGet, "/app.js", func(r *http.Request) { r.Header.Set("If-None-Match", tag) }); res.StatusCode != http.StatusNotModified {
		t.Errorf("GET /app.js again: %s", res.Status)
	}
}
