package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:generate sh -c "cd ui && npm ci && npm run build"

//go:embed dist
var dist embed.FS

// asset is one file of the page.
type asset struct {
	body      []byte
	tag, kind string
}

type assets map[string]asset

// assetTypes are fixed here: the tables of the machine must not decide what a browser takes a file for.
var assetTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// loadAssets reads the built page out of the binary.
func loadAssets() (assets, error) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, err
	}
	a := assets{}
	for _, e := range entries {
		body, err := dist.ReadFile(path.Join("dist", e.Name()))
		if err != nil {
			return nil, err
		}
		kind, ok := assetTypes[path.Ext(e.Name())]
		if !ok {
			return nil, fmt.Errorf("page file %s: unknown type", e.Name())
		}
		a[e.Name()] = newAsset(body, kind)
	}
	for _, name := range []string{"index.html", "login.html", "app.js", "app.css"} {
		if _, ok := a[name]; !ok {
			return nil, fmt.Errorf("page file %s is missing from the binary: run make web and build again", name)
		}
	}
	return a, nil
}

func newAsset(body []byte, kind string) asset {
	sum := sha256.Sum256(body)
	return asset{body, `"` + hex.EncodeToString(sum[:12]) + `"`, kind}
}

// serve answers with a file. Browsers keep it and ask each time whether it is still the same.
func (a assets) serve(w http.ResponseWriter, r *http.Request, name string, status int) {
	f := a[name]
	h := w.Header()
	h.Set("Content-Type", f.kind)
	if status != http.StatusOK {
		h.Set("Content-Length", strconv.Itoa(len(f.body)))
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(f.body) // the client may be gone
		}
		return
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.body))
}

// alertMark is the place of the login form for why a login failed.
const alertMark = `role="alert" hidden>`

// login answers with the form, and why a login failed.
func (a assets) login(w http.ResponseWriter, r *http.Request, status int, problem string, token, openID bool) {
	body := a["login.html"].body
	if problem != "" {
		body = bytes.Replace(body, []byte(alertMark), []byte(`role="alert">`+html.EscapeString(problem)), 1)
	}
	if openID {
		body = bytes.Replace(body, []byte(`id="openid" hidden>`), []byte(`id="openid">`), 1)
	}
	if !token {
		body = bytes.Replace(body, []byte(`id="by-token">`), []byte(`id="by-token" hidden>`), 1)
	}
	assets{"login": newAsset(body, a["login.html"].kind)}.serve(w, r, "login", status)
}

// ServeHTTP finds the file for a path; "/" is the page.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	if _, ok := a[name]; !ok || strings.HasPrefix(name, "login") {
		problem(w, http.StatusNotFound, "nothing here; the page is at /")
		return
	}
	a.serve(w, r, name, http.StatusOK)
}
