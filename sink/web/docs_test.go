package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/notify"
)

// TestDocs holds that the address to which alerts of a kind point is answered without a token, and has the section.
func TestDocs(t *testing.T) {
	cfg := DefaultConfig()
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.TokenFile, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := New(cfg, sceneDeps(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for _, k := range inference.Kinds() {
		path, anchor, _ := strings.Cut(notify.Runbook("", k), "#")
		status, body := ask(path)
		if status != http.StatusOK || !strings.Contains(body, `<h3 id="`+anchor+`"><code>`+k.String()+"</code></h3>") {
			t.Errorf("%v: %s answers %d without a section %s", k, path, status, anchor)
		}
	}
	for _, page := range []string{"", "findings", "operating", "fleet", "api", "access", "getting-started/sonic"} {
		status, body := ask("/docs/" + page)
		if status != http.StatusOK || strings.Contains(body, "```") || strings.Contains(body, "](") || strings.Contains(body, "| --- |") {
			t.Errorf("%s: %d, or Markdown remains", page, status)
		}
	}
	if status, _ := ask("/docs/agents"); status != http.StatusNotFound {
		t.Errorf("a page that is not held: %d", status)
	}
}
