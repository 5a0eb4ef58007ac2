package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/hopscope/hopscope/ingest/peer"
)

// OIDC is the login by OpenID Connect: the authorization code flow with PKCE.
type OIDC struct {
	Issuer           string   `yaml:"issuer" doc:"Address of the issuer, such as https://login.example/realms/net. Empty switches this login off."`
	ClientID         string   `yaml:"client_id" doc:"Name under which the issuer knows this page."`
	ClientSecretFile string   `yaml:"client_secret_file" doc:"File with the client's secret. A public client has none."`
	ClientSecretEnv  string   `yaml:"client_secret_env" doc:"Environment variable with the secret, instead of client_secret_file."`
	RedirectURL      string   `yaml:"redirect_url" doc:"Address of this page's /oidc/callback as browsers see it, which the issuer has to allow."`
	Scopes           []string `yaml:"scopes" doc:"What is asked for beside openid."`
	UserClaim        string   `yaml:"user_claim" doc:"Claim that names the user. An email that the issuer did not verify is refused."`
	GroupsClaim      string   `yaml:"groups_claim" doc:"Claim that lists the groups. Dots lead into objects, as in realm_access.roles."`
	CAFile           string   `yaml:"ca_file" doc:"PEM file with the authorities of the issuer's certificate. Empty is the system's."`
}

// SetDefaults makes c the default settings.
func (c *OIDC) SetDefaults() {
	*c = OIDC{Scopes: []string{"profile", "email"}, UserClaim: "email", GroupsClaim: "groups"}
}

// Validate names all problems between the fields at once.
func (c *OIDC) Validate() error {
	if c.Issuer == "" {
		return nil
	}
	var errs []error
	for _, a := range []struct{ key, text string }{{"issuer", c.Issuer}, {"redirect_url", c.RedirectURL}} {
		u, err := url.Parse(a.text)
		switch {
		case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
			errs = append(errs, fmt.Errorf("%s: %q is no address such as https://login.example/path", a.key, a.text))
		case u.Scheme == "http" && !peer.Loopback(u.Hostname()):
			errs = append(errs, fmt.Errorf("%s: %s is http, so that logins can be read on the way: https", a.key, a.text))
		case a.key == "redirect_url" && !strings.HasSuffix(u.Path, callbackPath):
			errs = append(errs, fmt.Errorf("redirect_url: %s does not end in %s", a.text, callbackPath))
		}
	}
	for _, f := range []struct{ key, text string }{{"client_id", c.ClientID}, {"user_claim", c.UserClaim}, {"groups_claim", c.GroupsClaim}} {
		if f.text == "" {
			errs = append(errs, fmt.Errorf("%s: is empty", f.key))
		}
	}
	if c.ClientSecretFile != "" && c.ClientSecretEnv != "" {
		errs = append(errs, errors.New("client_secret_file: client_secret_env is set too; choose one"))
	}
	return errors.Join(errs...)
}

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *OIDC) CheckFiles() error {
	if c.Issuer == "" {
		return nil
	}
	_, secretErr := peer.Secret("client_secret", c.ClientSecretFile, "")
	_, _, caErr := peer.Optional(c.CAFile, "", "")
	return errors.Join(secretErr, caErr)
}

const (
	loginPath     = "/oidc/login"
	callbackPath  = "/oidc/callback"
	loginCookie   = "hopscope-login"
	loginTime     = 10 * time.Minute // from the form to the issuer and back
	mostUsed      = 4096             // states that are remembered as used
	maxIssuerBody = 1 << 20
	issuerTimeout = 10 * time.Second
)

// provider is the issuer of the settings.
type provider struct {
	OIDC
	secret string
	client *http.Client

	mu   sync.Mutex
	is   *oidc.Provider           // nil until the issuer answered
	used map[sessionKey]time.Time // states of logins that came back
}

// newProvider reads the secret. The issuer is asked at the first login, and need not answer yet. It returns nil where none is set.
func newProvider(c *OIDC) (*provider, error) {
	if c.Issuer == "" {
		return nil, nil
	}
	secret, err := peer.Secret("client_secret", c.ClientSecretFile, c.ClientSecretEnv)
	if err != nil {
		return nil, err
	}
	authorities, _, err := peer.Optional(c.CAFile, "", "")
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return &provider{OIDC: *c, secret: secret, client: &http.Client{Timeout: issuerTimeout, Transport: bounded{transport}}, used: map[sessionKey]time.Time{}}, nil
}

// bounded bounds the answers of an issuer.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxIssuerBody), res.Body}
	}
	return res, err
}

// issuer asks the issuer for its addresses, once.
func (p *provider) issuer() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.is != nil {
		return p.is, nil
	}
	// The provider keeps this context for the keys that it fetches later.
	is, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.client), p.Issuer)
	if err == nil {
		p.is = is
	}
	return is, err
}

func (p *provider) oauth(is *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.secret, Endpoint: is.Endpoint(), RedirectURL: p.RedirectURL, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...)}
}

// spend marks a state as used. It returns false for one that was.
func (p *provider) spend(state string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := keyOf(state)
	if _, used := p.used[k]; used {
		return false
	}
	if len(p.used) >= mostUsed {
		var oldest sessionKey
		var at time.Time
		for k, t := range p.used {
			if now.Sub(t) > loginTime {
				delete(p.used, k)
			} else if at.IsZero() || t.Before(at) {
				oldest, at = k, t
			}
		}
		if len(p.used) >= mostUsed {
			delete(p.used, oldest)
		}
	}
	p.used[k] = now
	return true
}

// pending is a login that is at the issuer. It is in a cookie of the browser, with a MAC, so that logins that never come back take no
// memory.
type pending struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE
	UntilMS  int64  `json:"t"`
}

func (g *Gate) seal(p *pending) (string, error) {
	b, err := json.Marshal(p)
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + g.mac(text), err
}

func (g *Gate) mac(text string) string {
	m := hmac.New(sha256.New, g.key[:])
	m.Write([]byte("login\x00" + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// unseal returns the login of a cookie, if this process made it and it has not expired.
func (g *Gate) unseal(cookie string, now time.Time) (p pending, ok bool) {
	text, mac, _ := strings.Cut(cookie, ".")
	if !hmac.Equal([]byte(mac), []byte(g.mac(text))) {
		return p, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return p, false
	}
	return p, now.UnixMilli() < p.UntilMS
}

// ServeOIDC sends a browser to the issuer, and takes it back.
func (g *Gate) ServeOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case g.oidc == nil || r.URL.Path != loginPath && r.URL.Path != callbackPath:
		Problem(w, http.StatusNotFound, "there is no login by OpenID Connect: web.access.oidc.issuer is empty")
	case r.Method == http.MethodHead:
	case r.URL.Path == loginPath:
		g.serveLeave(w, r)
	default:
		g.serveReturn(w, r)
	}
}

func (g *Gate) loginCookie(value string, age int, secure bool) *http.Cookie {
	// Lax: the issuer leads the browser back, so that the request comes from another site.
	return &http.Cookie{Name: loginCookie, Value: value, Path: g.o.Base + "/oidc/", MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// serveLeave sends the browser to the issuer.
func (g *Gate) serveLeave(w http.ResponseWriter, r *http.Request) {
	is, err := g.oidc.issuer()
	if err != nil {
		g.o.Warn("the issuer of logins does not answer", "issuer", g.oidc.Issuer, "error", err.Error())
		text := "The issuer of logins does not answer: try again later, or log in with a token."
		if strings.Contains(err.Error(), "did not match") {
			text = "The issuer calls itself otherwise than web.access.oidc.issuer does: an administrator sets that to the issuer's own address."
		}
		g.o.LoginPage(w, r, http.StatusBadGateway, text)
		return
	}
	p := pending{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), UntilMS: g.o.Now().Add(loginTime).UnixMilli()}
	sealed, err := g.seal(&p)
	if err != nil {
		g.o.LoginPage(w, r, http.StatusInternalServerError, "The login could not begin.")
		return
	}
	http.SetCookie(w, g.loginCookie(sealed, int(loginTime/time.Second), g.clientOf(r).secure))
	http.Redirect(w, r, g.oidc.oauth(is).AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)), http.StatusSeeOther)
}

// serveReturn takes the browser back, and begins a session.
func (g *Gate) serveReturn(w http.ResponseWriter, r *http.Request) {
	c, now := g.clientOf(r), g.o.Now()
	if after := g.attempts.wait(c.addr, now); after > 0 {
		g.o.LoginPage(w, r, http.StatusTooManyRequests, "Too many wrong logins came from this address. Wait a minute, then try again.")
		return
	}
	http.SetCookie(w, g.loginCookie("", -1, c.secure))
	id, err := g.returned(r, now)
	if err != nil {
		refused, ok := errors.AsType[*Refusal](err)
		if !ok {
			refused = &Refusal{Status: http.StatusUnauthorized, Text: readable(err.Error())}
		}
		g.wrong(c, now)
		g.count.unauthorized.Add(1)
		g.o.Warn("login by OpenID Connect refused", "from", c.addr.String(), "reason", refused.Text)
		g.o.LoginPage(w, r, refused.Status, refused.Text)
		return
	}
	g.begin(w, &id, c, now)
	// A redirect would still count as the issuer's, and SameSite=Strict would keep the cookie back. The page's own link does not.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=../"><title>hopscope</title></head><body><p>You are logged in. <a href="../">Open the page</a>.</p></body></html>`)
}

const restart = "This login did not begin in this browser, is older than ten minutes, or was used already. Begin again."

// denied refuses a login with a sentence for the form.
func denied(format string, args ...any) error {
	return &Refusal{Status: http.StatusUnauthorized, Text: fmt.Sprintf(format, args...)}
}

// returned checks what the issuer sent the browser back with.
func (g *Gate) returned(r *http.Request, now time.Time) (id Identity, err error) {
	q, p := r.URL.Query(), g.oidc
	cookie, err := r.Cookie(loginCookie)
	if err != nil {
		return id, denied("%s", restart)
	}
	at, ok := g.unseal(cookie.Value, now)
	if !ok || !hmac.Equal([]byte(at.State), []byte(q.Get("state"))) || !p.spend(at.State, now) {
		return id, denied("%s", restart)
	}
	if text := q.Get("error"); text != "" {
		return id, denied("The issuer refused the login: %s", readable(strings.TrimSpace(text+" "+q.Get("error_description"))))
	}
	is, err := p.issuer()
	if err != nil {
		return id, &Refusal{Status: http.StatusBadGateway, Text: "The issuer of logins does not answer: try again later, or log in with a token."}
	}
	ctx := oidc.ClientContext(r.Context(), p.client)
	token, err := p.oauth(is).Exchange(ctx, q.Get("code"), oauth2.VerifierOption(at.Verifier))
	if err != nil {
		text := err.Error()
		if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && answer.ErrorCode != "" {
			text = answer.ErrorCode + " " + answer.ErrorDescription
		}
		return id, denied("The issuer did not take the login: %s. Begin again; if that does not help, an administrator compares client_id, the client's secret and redirect_url with those at the issuer.", readable(text))
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return id, denied("The issuer sent no id token: an administrator allows the scope openid for this client there.")
	}
	verified, err := is.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, Now: g.o.Now}).Verify(ctx, raw)
	if err != nil {
		return id, p.explain(err)
	}
	if !hmac.Equal([]byte(verified.Nonce), []byte(at.Nonce)) {
		return id, denied("The id token belongs to another login. Begin again.")
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return id, denied("The claims of the id token cannot be read: an administrator looks at the issuer's client.")
	}
	if party, _ := claims["azp"].(string); len(verified.Audience) > 1 && party != p.ClientID {
		return id, denied("The id token was issued to another client, which web.access.oidc.client_id does not name.")
	}
	return p.member(claims, &g.o.Config.Members)
}

// member returns the user of claims, with its role.
func (p *provider) member(claims map[string]any, m *Members) (id Identity, err error) {
	user, _ := claim(claims, p.UserClaim).(string)
	if checkName(user) != nil {
		return id, denied("The id token has no claim %s that names the user: an administrator sets user_claim or scopes under web.access.oidc.", p.UserClaim)
	}
	if verified, there := claims["email_verified"]; p.UserClaim == "email" && there && verified != true && verified != "true" {
		return id, denied("The issuer has not verified the address %s: verify it there, then log in again.", user)
	}
	var groups []string
	switch list := claim(claims, p.GroupsClaim).(type) {
	case string:
		groups = []string{list}
	case []any:
		for _, x := range list {
			if name, ok := x.(string); ok {
				groups = append(groups, name)
			}
		}
	}
	id = Identity{User: user, Role: m.role(user, groups), Login: ByOIDC}
	if id.Role == NoRole {
		return id, noRole(user)
	}
	return id, nil
}

// claim returns a claim by its name, or by the names of objects that lead to it.
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	outer, inner, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	in, _ := claims[outer].(map[string]any)
	return claim(in, inner)
}

// explain adds the remedy to the error of an id token that does not verify.
func (p *provider) explain(err error) error {
	text := err.Error()
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	if expired, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return denied("The id token expired at %s: begin again; if that does not help, an administrator sets the clocks of this machine and of the issuer.", expired.Expiry.UTC().Format(time.RFC3339))
	}
	switch {
	case has("different provider"):
		return denied("The id token is of another issuer than %s: an administrator sets web.access.oidc.issuer to the address that the issuer calls itself.", p.Issuer)
	case has("audience"):
		return denied("The id token is for another client than %s: an administrator sets web.access.oidc.client_id to the name of this page at the issuer.", p.ClientID)
	case has("before the nbf"):
		return denied("The id token is not valid yet: an administrator sets the clocks of this machine and of the issuer.")
	case has("signature", "signed with unsupported", "malformed"):
		return denied("The id token is not signed by the issuer: begin again; if that does not help, an administrator looks at the keys of the issuer.")
	}
	return denied("The id token was not accepted: %s. Begin again.", readable(text))
}

// readable is a text of an issuer for a page and a log.
func readable(text string) string {
	return cmp.Or(cut(strings.Map(func(r rune) rune {
		if !printable(string(r)) {
			return -1
		}
		return r
	}, text), maxReason), "without a reason")
}
