package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ContentSecurityPolicy lets the page load its own files and nothing else, and lets no script turn text into markup.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

func lower(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// bearer returns the token in the header of a request.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "bearer")
}

// hostAllowed refuses names that others may have pointed here. An address cannot be, and where a login is needed the browser keeps
// the cookie from other names by itself.
func (g *Gate) hostAllowed(hostport string) bool {
	if g.needed() {
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
	return g.hosts[lower(host)]
}

// Guard wraps the handlers with everything that holds for all of them.
func (g *Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.count.requests.Add(1)
		h := w.Header()
		h.Set("Content-Security-Policy", ContentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if g.o.TLS {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !g.hostAllowed(r.Host) {
			g.count.hosts.Add(1)
			Problem(w, http.StatusMisdirectedRequest, "this server does not answer to that host name; "+
				"use its IP address or localhost, or add the name to allowed_hosts")
			return
		}
		if r.URL.Path == g.o.Base && g.o.Base != "" {
			http.Redirect(w, r, g.o.Base+"/", http.StatusMovedPermanently)
			return
		}
		r = g.stripped(r)
		path := r.URL.Path
		if g.shared(w, r) {
			return
		}
		allow := "GET, HEAD"
		allowed := r.Method == http.MethodGet || r.Method == http.MethodHead || path == "/login" && r.Method == http.MethodPost
		if g.o.Post(path) {
			allow, allowed = "POST", r.Method == http.MethodPost
		}
		if !allowed {
			h.Set("Allow", allow)
			text := "read only: GET and HEAD"
			if allow == "POST" {
				text = "this changes something: POST"
			}
			Problem(w, http.StatusMethodNotAllowed, text)
			return
		}
		if g.o.Public(path) {
			next.ServeHTTP(w, r)
			return
		}
		id, err := g.identify(r)
		if refused, ok := err.(*Refusal); ok {
			g.turnAway(w, r, refused)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}

// turnAway answers a client that is not known. The page itself leads to the form.
func (g *Gate) turnAway(w http.ResponseWriter, r *http.Request, refused *Refusal) {
	page := r.URL.Path == "/"
	if page && refused.Status == http.StatusUnauthorized {
		http.Redirect(w, r, g.o.Base+"/login", http.StatusSeeOther)
		return
	}
	if refused.Status == http.StatusUnauthorized {
		g.count.unauthorized.Add(1)
		w.Header().Set("WWW-Authenticate", `Bearer realm="hopscope"`)
	} else {
		g.count.forbidden.Add(1)
	}
	if page {
		g.o.LoginPage(w, r, refused.Status, refused.Text)
		return
	}
	refuse(w, refused)
}

// stripped returns the request without the base path. One without it is taken as it is: a proxy may have removed it, and probes of
// this machine need not know it.
func (g *Gate) stripped(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, g.o.Base+"/")
	if g.o.Base == "" || !ok {
		return r
	}
	out := r.Clone(r.Context())
	out.URL.Path = "/" + rest
	out.URL.RawPath = ""
	return out
}

// shared allows scripts of the named origins to use the API, and answers their browsers' first question. They send no cookie, so that
// only a token that the script has lets it in.
func (g *Gate) shared(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(g.o.Config.AllowedOrigins) == 0 || !strings.HasPrefix(r.URL.Path, "/api/") {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(g.o.Config.AllowedOrigins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "ETag, Retry-After, WWW-Authenticate")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, "+CSRFHeader)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
