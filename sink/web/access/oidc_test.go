package access

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issuer is a server of OpenID Connect with a key of its own. It logs in every user.
type issuer struct {
	*httptest.Server
	key    *rsa.PrivateKey
	now    func() time.Time
	calls  string                      // the name that it gives itself
	grants map[string]grant            // by code
	claims func(claims map[string]any) // changes those of the next token
}

type grant struct{ challenge, nonce string }

const clientSecret = "a secret of the client"

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	is := &issuer{key: key, grants: map[string]grant{}}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"issuer": is.calls, "authorization_endpoint": is.URL + "/authorize", "token_endpoint": is.URL + "/token", "jwks_uri": is.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": b64(key.N.Bytes()), "e": "AQAB"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("client_id") != "page" || !strings.HasPrefix(q.Get("scope"), "openid ") || q.Get("nonce") == "" {
			http.Error(w, "wrong question: "+r.URL.RawQuery, http.StatusBadRequest)
			return
		}
		code := rand.Text()
		is.grants[code] = grant{q.Get("code_challenge"), q.Get("nonce")}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		g, ok := is.grants[r.FormValue("code")]
		delete(is.grants, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if plain, err := url.QueryUnescape(secret); !ok || id != "page" || err != nil || plain != clientSecret || b64(sum[:]) != g.challenge {
			w.WriteHeader(http.StatusBadRequest)
			write(w, map[string]string{"error": "invalid_grant", "error_description": "no such code\x1b[31m"})
			return
		}
		claims := map[string]any{"iss": is.calls, "sub": "1", "aud": "page", "nonce": g.nonce, "iat": is.now().Unix(), "exp": is.now().Add(5 * time.Minute).Unix(),
			"email": "alice@example.com", "email_verified": true, "groups": []string{"staff"}, "realm_access": map[string]any{"roles": []string{"noc"}}}
		if is.claims != nil {
			is.claims(claims)
		}
		write(w, map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 300, "id_token": is.token(t, claims)})
	})
	is.Server = httptest.NewServer(mux)
	t.Cleanup(is.Close)
	is.calls = is.URL
	return is
}

// token signs claims as an id token.
func (is *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	key := is.key
	if claims["forged"] == true {
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	head := `{"alg":"RS256","kid":"1"}`
	if claims["unsigned"] == true {
		return b64([]byte(`{"alg":"none"}`)) + "." + b64(body) + "."
	}
	text := b64([]byte(head)) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(sig)
}

// newOIDCSite is a page behind a proxy with TLS, whose logins the issuer knows.
func newOIDCSite(t *testing.T, is *issuer, change func(*Config)) *site {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(o *Options) {
		o.Token, o.Base = "", "/hopscope"
		c := &o.Config
		c.OIDC.Issuer, c.OIDC.ClientID, c.OIDC.ClientSecretFile, c.OIDC.RedirectURL = is.URL, "page", secret, "https://net.example/hopscope/oidc/callback"
		c.TrustedProxies = []string{"192.0.2.1"}
		c.Viewers, c.Operators, c.Admins = []string{"group:staff"}, []string{"group:noc"}, []string{"user:root@example.com"}
		if change != nil {
			change(c)
		}
		o.Public = func(path string) bool { return strings.HasPrefix(path, "/oidc/") || path == "/login" }
	})
	is.now = s.now
	mux := http.NewServeMux()
	mux.HandleFunc("/oidc/", s.ServeOIDC)
	mux.HandleFunc("/api/whoami", s.Require(Viewer, false, s.ServeWhoami))
	s.Handler = s.Guard(mux)
	return s
}

var overTLS = with("X-Forwarded-Proto", "https")

// leave begins a login, and returns the address at which the issuer sends the browser back, and the browser's cookie.
func (s *site) leave(t *testing.T) (back string, cookie *http.Cookie) {
	t.Helper()
	res := s.ask("GET", "/hopscope/oidc/login", "", overTLS)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		body, _ := io.ReadAll(res.Body) // of a recorder
		t.Fatalf("login: %s %s", res.Status, body)
	}
	cookie = res.Cookies()[0]
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/hopscope/oidc/" {
		t.Errorf("cookie %+v", cookie)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	at, err := client.Get(res.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	defer at.Body.Close()
	u, err := url.Parse(at.Header.Get("Location"))
	if err != nil || u.Host != "net.example" {
		t.Fatalf("the issuer answers %s, and sends to %v (%v)", at.Status, u, err)
	}
	return u.RequestURI(), cookie
}

// back takes the browser back. It returns the session's cookie, nil for none, and the page.
func (s *site) back(at string, cookie *http.Cookie) (int, *http.Cookie, string) {
	change := []func(*http.Request){overTLS, with("Sec-Fetch-Site", "cross-site")}
	if cookie != nil {
		change = append(change, withCookie(cookie))
	}
	res := s.ask("GET", at, "", change...)
	body, _ := io.ReadAll(res.Body) // of a recorder
	for _, c := range res.Cookies() {
		if c.Name == CookieName {
			return res.StatusCode, c, string(body)
		}
	}
	return res.StatusCode, nil, string(body)
}

// TestOIDC logs in at a real issuer, with its keys, PKCE, state and nonce.
func TestOIDC(t *testing.T) {
	is := newIssuer(t)
	for name, c := range map[string]struct {
		settings func(*Config)
		claims   map[string]any
		role     Role
		user     string
	}{
		"viewer":             {nil, nil, Viewer, "alice@example.com"},
		"admin by name":      {nil, map[string]any{"email": "root@example.com"}, Admin, "root@example.com"},
		"nested claim":       {func(c *Config) { c.OIDC.GroupsClaim = "realm_access.roles" }, nil, Operator, "alice@example.com"},
		"one group, a text":  {nil, map[string]any{"groups": "noc"}, Operator, "alice@example.com"},
		"another user claim": {func(c *Config) { c.OIDC.UserClaim = "sub" }, map[string]any{"email_verified": false}, Viewer, "1"},
	} {
		s := newOIDCSite(t, is, c.settings)
		is.claims = func(m map[string]any) { maps.Copy(m, c.claims) }
		at, cookie := s.leave(t)
		status, session, body := s.back(at, cookie)
		if status != 200 || session == nil || !session.Secure || !session.HttpOnly || session.SameSite != http.SameSiteStrictMode || !strings.Contains(body, `content="0;url=../"`) {
			t.Errorf("%s: %d %v %s", name, status, session, body)
			continue
		}
		who := read[Whoami](t, s.ask("GET", "/hopscope/api/whoami", "", withCookie(session)), 200)
		if who.Role != c.role || who.User != c.user || who.Login != ByOIDC {
			t.Errorf("%s: %+v", name, who)
		}
		// The same address again, in the same browser.
		if status, session, body := s.back(at, cookie); status != 401 || session != nil || !strings.Contains(body, "was used already") {
			t.Errorf("%s, replayed: %d %v %s", name, status, session, body)
		}
	}
}

// TestOIDCRefused holds that what an issuer, an attacker or a clock can do wrong is refused with what to do.
func TestOIDCRefused(t *testing.T) {
	is := newIssuer(t)
	for name, c := range map[string]struct {
		settings func(*Config)
		claims   map[string]any
		change   func(s *site, at string, cookie *http.Cookie) (string, *http.Cookie)
		status   int
		want     string
	}{
		"another issuer in the token": {nil, map[string]any{"iss": "https://attacker.example"}, nil, 401, "sets web.access.oidc.issuer"},
		"another client":              {nil, map[string]any{"aud": "other"}, nil, 401, "sets web.access.oidc.client_id"},
		"a party among several":       {nil, map[string]any{"aud": []string{"page", "other"}, "azp": "other"}, nil, 401, "another client"},
		"expired":                     {nil, map[string]any{"exp": 1_700_000_000}, nil, 401, "sets the clocks"},
		"not valid yet":               {nil, map[string]any{"nbf": 1_900_000_000}, nil, 401, "sets the clocks"},
		"forged":                      {nil, map[string]any{"forged": true}, nil, 401, "not signed by the issuer"},
		"unsigned":                    {nil, map[string]any{"unsigned": true}, nil, 401, "not signed by the issuer"},
		"another nonce":               {nil, map[string]any{"nonce": "x"}, nil, 401, "another login"},
		"no user":                     {nil, map[string]any{"email": ""}, nil, 401, "sets user_claim"},
		"an address not verified":     {nil, map[string]any{"email_verified": false}, nil, 401, "verify it there"},
		"no role":                     {nil, map[string]any{"groups": []string{"guests"}}, nil, 403, "adds the user or one of its groups"},
		"wrong secret":                {func(c *Config) { c.OIDC.ClientSecretFile = "" }, nil, nil, 401, "compares client_id, the client&#39;s secret"},
		"another browser":             {nil, nil, func(_ *site, at string, _ *http.Cookie) (string, *http.Cookie) { return at, nil }, 401, "Begin again"},
		"another state": {nil, nil, func(_ *site, at string, c *http.Cookie) (string, *http.Cookie) {
			return strings.Replace(at, "state=", "state=x", 1), c
		}, 401, "Begin again"},
		"another login's cookie": {nil, nil, func(s *site, at string, _ *http.Cookie) (string, *http.Cookie) {
			return at, s.ask("GET", "/hopscope/oidc/login", "", overTLS).Cookies()[0]
		}, 401, "Begin again"},
		"a cookie that was changed": {nil, nil, func(_ *site, at string, c *http.Cookie) (string, *http.Cookie) {
			c.Value = "x" + c.Value
			return at, c
		}, 401, "Begin again"},
		"too late": {nil, nil, func(s *site, at string, c *http.Cookie) (string, *http.Cookie) {
			s.move(loginTime)
			return at, c
		}, 401, "older than ten minutes"},
		"a code that is none": {nil, nil, func(_ *site, at string, c *http.Cookie) (string, *http.Cookie) {
			return strings.Replace(at, "code=", "code=x", 1), c
		}, 401, "did not take the login"},
		"refused there": {nil, nil, func(_ *site, at string, c *http.Cookie) (string, *http.Cookie) {
			return at + "&error=access_denied&error_description=%1b%5b31mno", c
		}, 401, "refused the login: access_denied"},
	} {
		s := newOIDCSite(t, is, c.settings)
		is.claims = func(m map[string]any) { maps.Copy(m, c.claims) }
		at, cookie := s.leave(t)
		if c.change != nil {
			at, cookie = c.change(s, at, cookie)
		}
		status, session, body := s.back(at, cookie)
		if status != c.status || session != nil || !strings.Contains(strings.ReplaceAll(body, "'", "&#39;"), c.want) || strings.Contains(body, "\x1b") {
			t.Errorf("%s: %d %v %q, want %d %q", name, status, session, body, c.status, c.want)
		}
		if n := s.Stats(); n.WrongLogins != 1 || strings.Contains(s.log.String(), clientSecret) {
			t.Errorf("%s: %+v\n%s", name, n, &s.log)
		}
	}
}

// TestOIDCIssuerAway holds that an issuer that does not answer, or calls itself otherwise, keeps nothing from starting.
func TestOIDCIssuerAway(t *testing.T) {
	is := newIssuer(t)
	s := newOIDCSite(t, is, nil)
	is.calls = "https://other.example"
	for want, change := range map[string]func(){"calls itself otherwise": func() {}, "does not answer": is.Close} {
		if want == "does not answer" {
			change()
		}
		res := s.ask("GET", "/hopscope/oidc/login", "")
		body, _ := io.ReadAll(res.Body) // of a recorder
		if got := string(body); res.StatusCode != http.StatusBadGateway || !strings.Contains(got, want) && !strings.Contains(got, "does not answer") {
			t.Errorf("%s: %s", res.Status, got)
		}
	}
	none := newSite(t, nil)
	if res := none.ask("GET", "/oidc/login", ""); res.StatusCode == 200 {
		t.Errorf("without an issuer: %s", res.Status)
	}
}

// TestOIDCBounded holds that logins that come back do not fill the memory.
func TestOIDCBounded(t *testing.T) {
	p, now := &provider{used: map[sessionKey]time.Time{}}, time.Unix(1_800_000_000, 0)
	for i := range 2 * mostUsed {
		if !p.spend(fmt.Sprint(i), now.Add(time.Duration(i)*time.Millisecond)) {
			t.Fatalf("state %d is used", i)
		}
	}
	if len(p.used) != mostUsed || p.spend(fmt.Sprint(2*mostUsed-1), now) {
		t.Errorf("%d states", len(p.used))
	}
}

// TestConfig holds what settings are refused, and why.
func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"trusted_proxies: needed by user_header": func(c *Config) { c.UserHeader, c.Viewers = "X-User", []string{"*"} },
		"trusted_proxies[0]":                     func(c *Config) { c.TrustedProxies = []string{"proxy.example"} },
		"user_header: \"X User\"":                func(c *Config) { c.UserHeader = "X User" },
		"groups_header: needs user_header":       func(c *Config) { c.GroupsHeader = "X-Groups" },
		"no login has a role":                    func(c *Config) { c.UserHeader, c.TrustedProxies = "X-User", []string{"::1"} },
		"admins[0]: * is for viewers":            func(c *Config) { c.Admins = []string{"*"} },
		"operators[1]: \"bob\"":                  func(c *Config) { c.Operators = []string{"group:a", "bob"} },
		"allowed_origins[0]":                     func(c *Config) { c.AllowedOrigins = []string{"https://wiki.example/"} },
		"session_idle":                           func(c *Config) { c.SessionIdle = 2 * c.SessionLife },
		"client_id: is empty": func(c *Config) {
			c.OIDC.Issuer, c.OIDC.RedirectURL = "https://a.example", "https://b.example/oidc/callback"
		},
		"is http, so that logins can be read": func(c *Config) { c.OIDC.Issuer = "http://a.example" },
		"does not end in /oidc/callback":      func(c *Config) { c.OIDC.Issuer, c.OIDC.RedirectURL = "https://a.example", "https://b.example/" },
		"choose one": func(c *Config) {
			c.OIDC.Issuer, c.OIDC.ClientSecretFile, c.OIDC.ClientSecretEnv = "https://a.example", "x", "Y"
		},
	} {
		var c Config
		c.SetDefaults()
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		var texts []string
		for _, err := range []error{c.Validate(), c.OIDC.Validate()} {
			if err != nil {
				texts = append(texts, err.Error())
			}
		}
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("%q, want %q", texts, want)
		}
	}
}
