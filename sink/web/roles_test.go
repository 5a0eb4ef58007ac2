package web

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/sink/web/access"
)

// newTeamServer has a token by each role.
func newTeamServer(t *testing.T, change func(*Config, *Deps)) (*Server, map[access.Role]string) {
	t.Helper()
	cfg, deps := DefaultConfig(), sceneDeps(sceneTime)
	dir := t.TempDir()
	cfg.TokenFile, cfg.Access.Dir = filepath.Join(dir, "token"), filepath.Join(dir, "access")
	if err := os.WriteFile(cfg.TokenFile, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&cfg, &deps)
	}
	srv, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.gate.Close() })
	tokens := map[access.Role]string{}
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
		var made access.MadeToken
		if text := do(t, srv, testToken, "tokens/create", `{"name":"`+role.String()+`","role":"`+role.String()+`"}`, 200); json.Unmarshal([]byte(text), &made) != nil {
			t.Fatal(text)
		}
		tokens[role] = made.Secret
	}
	return srv, tokens
}

// do makes a change with a token, and returns the answer.
func do(t *testing.T, srv *Server, token, path, body string, want int) string {
	t.Helper()
	res := request(srv, http.MethodPost, "/api/v1/"+path, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(strings.NewReader(body))
	})
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Fatalf("%s %s: %s %s, want %d", path, body, res.Status, text, want)
	}
	return string(text)
}

// TestEveryEndpointHasARole walks the list of endpoints: each states a role, refuses those below it and clients that are not known, and
// takes one method.
func TestEveryEndpointHasARole(t *testing.T) {
	srv, tokens := newTeamServer(t, nil)
	changes := 0
	for i := range endpoints {
		e := &endpoints[i]
		if e.role < access.Viewer || e.role > access.Admin {
			t.Errorf("%s states no role", e.path)
		}
		method, wrong := http.MethodGet, http.MethodPost
		if e.change {
			method, wrong = wrong, method
			changes++
		}
		if e.path == "events" {
			method = http.MethodHead // which ends
		}
		for _, prefix := range []string{"/api/", "/api/v1/"} {
			if res := request(srv, method, prefix+e.path); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s without a token: %s", e.path, res.Status)
			}
			for role, token := range tokens {
				as := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
				res := request(srv, method, prefix+e.path, as)
				if refused := res.StatusCode == http.StatusForbidden; refused != (role < e.role) || res.StatusCode == http.StatusUnauthorized {
					t.Errorf("%s %s as %v: %s, needs %v", method, e.path, role, res.Status, e.role)
				}
				if res := request(srv, wrong, prefix+e.path, as); res.StatusCode != http.StatusMethodNotAllowed {
					t.Errorf("%s %s: %s", wrong, e.path, res.Status)
				}
			}
		}
	}
	if changes < 9 {
		t.Errorf("%d changes", changes)
	}
	// Everything else that needs a login needs the first role, and is a question.
	for _, path := range []string{"/", "/app.js", "/metrics", "/api/openapi.json", "/api/docs", "/LICENSES.txt"} {
		if public(path) {
			t.Errorf("%s is public", path)
		}
		if res := request(srv, http.MethodGet, path); res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}
