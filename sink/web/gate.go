package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const cookieName = "hopscope"

// gate decides which requests are allowed.
type gate struct {
	token   [sha256.Size]byte // of the token; comparing digests reveals nothing about the token's length
	session string            // what the cookie holds
	needed  bool              // a token is set
	hosts   map[string]bool
	secure  bool // served over TLS
}

func newGate(c *Config, token string) *gate {
	g := &gate{hosts: map[string]bool{"localhost": true}, needed: token != "", secure: c.TLSCertFile != ""}
	for _, h := range c.AllowedHosts {
		g.hosts[strings.ToLower(h)] = true
	}
	g.token = sha256.Sum256([]byte(token))
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("hopscope page session"))
	g.session = hex.EncodeToString(mac.Sum(nil))
	return g
}

// hostAllowed refuses names that others may have pointed here. An address cannot be, and where a token is set the browser keeps the
// cookie from other names by itself.
func (g *gate) hostAllowed(hostport string) bool {
	if g.needed {
		return true
	}
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return false
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return g.hosts[strings.TrimSuffix(strings.ToLower(host), ".")]
}

func (g *gate) tokenMatches(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// authorized reports whether the request carries the token or the cookie.
func (g *gate) authorized(r *http.Request) bool {
	if !g.needed {
		return true
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		return g.tokenMatches(strings.TrimSpace(token))
	}
	c, err := r.Cookie(cookieName)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.session)) == 1
}

// public paths need no token: the probes of an orchestrator, and what the login form is drawn with.
func public(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/login", "/app.css", "/favicon.svg", "/inter.woff2":
		return true
	}
	return strings.HasPrefix(path, "/docs/") // the documentation of the program, which alerts point at
}

// contentSecurityPolicy lets the page load its own files and nothing else, and lets no script turn text into markup.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// guard wraps the handlers with everything that holds for all of them.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.counters.requests.Add(1)
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.gate.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.gate.hostAllowed(r.Host) {
			s.counters.hostsRefused.Add(1)
			problem(w, http.StatusMisdirectedRequest, "this server does not answer to that host name; "+
				"use its IP address or localhost, or add the name to allowed_hosts")
			return
		}
		login := r.URL.Path == "/login"
		if r.Method != http.MethodGet && r.Method != http.MethodHead && (!login || r.Method != http.MethodPost) {
			h.Set("Allow", "GET, HEAD")
			problem(w, http.StatusMethodNotAllowed, "read only: GET and HEAD")
			return
		}
		if !public(r.URL.Path) && !s.gate.authorized(r) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
				return
			}
			s.counters.unauthorized.Add(1)
			h.Set("WWW-Authenticate", `Bearer realm="hopscope"`)
			problem(w, http.StatusUnauthorized, "token required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// maxForm bounds the body of the login form.
const maxForm = 4096

// serveLogin shows the form, and takes the token from it or from the address (?token=), from where it is removed at
// once by the redirect.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !s.gate.needed {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		problem(w, http.StatusBadRequest, "the form could not be read")
		return
	}
	token := r.Form.Get("token")
	switch {
	case token == "":
		s.assets.serve(w, r, "login.html", http.StatusOK)
	case !s.gate.tokenMatches(token):
		s.counters.unauthorized.Add(1)
		s.assets.serve(w, r, "login-failed.html", http.StatusUnauthorized)
	default:
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: s.gate.session, Path: "/",
			HttpOnly: true, Secure: s.gate.secure, SameSite: http.SameSiteStrictMode,
		})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}
