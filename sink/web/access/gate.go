package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// How a client is known.
const (
	ByNothing  = "open"      // no login is configured
	ByToken    = "token"     // the one token of the page
	ByAPIToken = "api-token" // a token by role
	ByProxy    = "proxy"     // the header of a trusted proxy
	ByOIDC     = "oidc"      // OpenID Connect
)

// The files of the directory.
const (
	tokensName  = "tokens.json"
	changesName = "changes.jsonl"
	lockName    = "lock"
)

const (
	// CookieName is the name of the cookie of a session.
	CookieName = "hopscope"
	// CSRFHeader is the header in which a browser sends the text that whoami answered, with each change.
	CSRFHeader = "X-CSRF-Token"
)

// Identity is a client as it is known.
type Identity struct {
	User  string
	Role  Role
	Login string

	from    string // the client's address
	cookie  string // of its session
	token   string // id of its API token
	endsMS  int64  // of its session
	session string // id
	bearer  bool   // it sent a token with this request, which no page of another site can
}

// Options are the parts of a page that its gate has to know.
type Options struct {
	Config Config
	Token  string   // of web.token_file, or ""
	TLS    bool     // the page is served over TLS
	Base   string   // web.base_path: "" or /x
	Hosts  []string // names by which the page may be asked for while no login is needed

	Public func(path string) bool // paths that need no login
	Post   func(path string) bool // paths that take POST, and no other method
	// LoginPage answers with the form. problem is why a login failed, or "".
	LoginPage func(w http.ResponseWriter, r *http.Request, status int, problem string)
	Warn      func(message string, args ...any) // writes a line of the log; nil writes none
	Now       func() time.Time                  // nil is the clock
}

// Gate knows clients, and lets them do what their roles allow.
type Gate struct {
	o       Options
	proxies []netip.Prefix
	hosts   map[string]bool
	sum     [sha256.Size]byte // of the one token; comparing sums reveals nothing about its length
	key     [32]byte          // of this process, for CSRF
	open    Role

	lock     *os.File
	tokens   *tokens  // nil without a directory
	changes  *journal // nil without a directory
	sessions *sessions
	oidc     *provider // nil without one
	attempts *attempts
	crossing *http.CrossOriginProtection

	count struct{ requests, hosts, unauthorized, forbidden, crossSite, headersIgnored, addressTokens, logins, changes, unrecorded atomic.Uint64 }
}

// Open reads the tokens and the log of changes, and locks their directory. Close gives them back.
func Open(o Options) (*Gate, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	c := &o.Config
	if err := c.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{
		o: o, hosts: map[string]bool{"localhost": true}, sum: sha256.Sum256([]byte(o.Token)), attempts: newAttempts(),
		sessions: newSessions(c.MaxSessions, c.SessionIdle, c.SessionLife), crossing: http.NewCrossOriginProtection(),
	}
	rand.Read(g.key[:]) // never fails
	for _, h := range o.Hosts {
		g.hosts[lower(h)] = true
	}
	var err error
	if g.proxies, err = prefixes(c.TrustedProxies); err != nil {
		return nil, err
	}
	if !g.needed() {
		if g.open, err = ParseRole(c.OpenRole); err != nil {
			return nil, fmt.Errorf("open_%w", err)
		}
	}
	if g.oidc, err = newProvider(&c.OIDC); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	if c.Dir != "" {
		if err := g.openDir(c); err != nil {
			return nil, errors.Join(fmt.Errorf("dir: %w", err), g.Close())
		}
	}
	return g, nil
}

func (g *Gate) openDir(c *Config) (err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if g.lock, err = os.OpenFile(filepath.Join(c.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := flock.Lock(g.lock); err != nil {
		return fmt.Errorf("%s %w: give each program a directory of its own", c.Dir, err)
	}
	path := filepath.Join(c.Dir, tokensName)
	if err := flock.RemoveUnfinished(path, g.o.Now()); err != nil {
		return err
	}
	if g.tokens, err = openTokens(path, c.MaxTokens); err != nil {
		return err
	}
	g.changes, err = openJournal(filepath.Join(c.Dir, changesName), c.ChangesBytes)
	return err
}

// Close writes what is not written yet, and gives the directory back.
func (g *Gate) Close() error {
	err := errors.Join(g.tokens.flush(), g.changes.close())
	if g.lock != nil {
		err = errors.Join(err, g.lock.Close())
		g.lock = nil
	}
	return err
}

// Run writes the times of last use until ctx ends, and closes the gate.
func (g *Gate) Run(ctx context.Context) {
	tick := time.NewTicker(usedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := g.Close(); err != nil {
				g.o.Warn("files of the page's access not closed", "error", err.Error())
			}
			return
		case <-tick.C:
			if err := g.tokens.flush(); err != nil {
				g.o.Warn("times of last use of tokens not written", "error", err.Error())
			}
		}
	}
}

// Ways reports how a client can log in at the form: with a token, and by OpenID Connect.
func (g *Gate) Ways() (token, openID bool) {
	return g.o.Token != "" || g.tokens != nil, g.oidc != nil
}

// needed reports whether a login is needed.
func (g *Gate) needed() bool { return g.o.Token != "" || g.o.Config.Logins() }

// isToken reports whether a text is the one token of the page.
func (g *Gate) isToken(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], g.sum[:]) == 1 && g.o.Token != ""
}

// identify returns the client of a request. An error is a [Refusal].
func (g *Gate) identify(r *http.Request) (Identity, error) {
	c, now := g.clientOf(r), g.o.Now()
	from := c.addr.String()
	if token, ok := bearer(r); ok {
		id, err := g.byToken(token, c, now)
		id.bearer = true
		return id, err
	}
	id, ok, err := g.proxyUser(r, c)
	if id.from = from; ok || err != nil {
		return id, err
	}
	for _, cookie := range r.CookiesNamed(CookieName) {
		if s, ok := g.sessions.use(cookie.Value, from, now); ok && g.holds(&s, now) {
			return Identity{User: s.User, Role: s.Role, Login: s.Login, from: from, cookie: cookie.Value, token: s.token, endsMS: s.EndsMS, session: s.ID}, nil
		}
	}
	if !g.needed() {
		return Identity{Role: g.open, Login: ByNothing, from: from}, nil
	}
	text := "token required: send the header Authorization: Bearer TOKEN"
	if r.URL.Query().Has("token") {
		text = "token required, and not in the address, where logs and histories keep it: send the header Authorization: Bearer TOKEN"
	}
	return Identity{from: from}, &Refusal{Status: http.StatusUnauthorized, Text: text}
}

// holds reports whether the token that a session began with still holds.
func (g *Gate) holds(s *Session, now time.Time) bool {
	return s.token == "" || g.tokens != nil && g.tokens.valid(s.token, now)
}

// byToken returns the client that has a token. A right token by role is never slowed down: its secret cannot be guessed.
func (g *Gate) byToken(token string, c client, now time.Time) (Identity, error) {
	from := c.addr.String()
	if t, ok := g.tokens.match(token, from, now); ok {
		return Identity{User: t.Name, Role: t.Role, Login: ByAPIToken, from: from, token: t.ID}, nil
	}
	if after := g.attempts.wait(c.addr, now); after > 0 {
		return Identity{from: from}, &Refusal{Status: http.StatusTooManyRequests, After: after, Text: "too many wrong tokens came from this address: wait, then try again with the right one"}
	}
	if g.isToken(token) {
		return Identity{User: "token file", Role: Admin, Login: ByToken, from: from}, nil
	}
	if !g.needed() && g.tokens == nil {
		return Identity{Role: g.open, Login: ByNothing, from: from}, nil // no token is right where there is none
	}
	g.wrong(c, now)
	return Identity{from: from}, &Refusal{Status: http.StatusUnauthorized, Text: "token required: this one is wrong, was revoked, or has expired"}
}

// wrong counts a wrong login, and logs it.
func (g *Gate) wrong(c client, now time.Time) {
	if n := g.attempts.fail(c.addr, now); n > 0 {
		g.o.Warn("wrong login at the page", "from", c.addr.String(), "attempts", n)
	}
}

// Still reports whether the client of a request that goes on, such as a stream, would be let in again.
func (g *Gate) Still(r *http.Request) bool {
	id := IdentityOf(r)
	now := g.o.Now()
	if id.token != "" && (g.tokens == nil || !g.tokens.valid(id.token, now)) {
		return false
	}
	return id.cookie == "" || g.sessions.open(id.cookie, now)
}

// csrf returns the text that a browser has to send with a change.
func (g *Gate) csrf(id *Identity) string {
	mac := hmac.New(sha256.New, g.key[:])
	mac.Write([]byte(id.Login + "\x00" + id.User + "\x00" + id.cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkChange refuses a change that a page of another site may have caused. A request with a bearer token cannot be one.
func (g *Gate) checkChange(r *http.Request, id *Identity) error {
	if id.bearer {
		return nil
	}
	if err := g.crossing.Check(r); err != nil {
		g.count.crossSite.Add(1)
		return &Refusal{Status: http.StatusForbidden, Text: "a page of another site asked for this change"}
	}
	if !hmac.Equal([]byte(r.Header.Get(CSRFHeader)), []byte(g.csrf(id))) {
		g.count.crossSite.Add(1)
		return &Refusal{Status: http.StatusForbidden, Text: "the header " + CSRFHeader + " is missing or old: it is csrf in the answer of /api/whoami; load the page again"}
	}
	return nil
}

type identityKey struct{}

// IdentityOf returns the client of a request that passed [Gate.Guard].
func IdentityOf(r *http.Request) Identity {
	id, _ := r.Context().Value(identityKey{}).(Identity)
	return id
}

// Require lets the clients pass that have a role.
func (g *Gate) Require(role Role, change bool, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := IdentityOf(r)
		if id.Role < role {
			g.count.forbidden.Add(1)
			name := id.User
			if name == "" {
				name = "this request"
			}
			Problem(w, http.StatusForbidden, fmt.Sprintf("this needs the role %v, and %s has the role %v", role, name, id.Role))
			return
		}
		if change && refuse(w, g.checkChange(r, &id)) {
			return
		}
		h(w, r)
	}
}

// Do records a change, makes it, and records why it failed if it does. What cannot be recorded is not done.
func (g *Gate) Do(r *http.Request, action, target, text string, change func() error) error {
	if g.changes == nil {
		return &Refusal{Status: http.StatusConflict, Text: g.Unchangeable()}
	}
	id := IdentityOf(r)
	c := Change{AtMS: g.o.Now().UnixMilli(), User: id.User, Role: id.Role, Login: id.Login, From: id.from, Action: action, Target: target, Text: text}
	if err := g.changes.append(c); err != nil {
		g.count.unrecorded.Add(1)
		g.o.Warn("a change was refused, because it cannot be recorded", "action", action, "error", err.Error())
		return &Refusal{Status: http.StatusInsufficientStorage, Text: "not done, because it cannot be recorded: " + err.Error()}
	}
	err := change()
	if err == nil {
		g.count.changes.Add(1)
		return nil
	}
	c.AtMS, c.Failed = g.o.Now().UnixMilli(), err.Error()
	if err2 := g.changes.append(c); err2 != nil {
		g.count.unrecorded.Add(1)
		g.o.Warn("the failure of a change cannot be recorded", "action", action, "error", err2.Error())
	}
	return err
}

// Unchangeable returns why nothing can be changed, or "".
func (g *Gate) Unchangeable() string {
	if g.changes != nil {
		return ""
	}
	return "the page is read-only: web.access.dir names the directory in which changes are recorded"
}
