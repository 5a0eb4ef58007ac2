package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxForm = 4096     // bytes of the login form
	maxBody = 24 << 10 // bytes of a change, or of a dashboard, whose JSON may escape each byte of a line
)

// ReadBody reads the JSON of a change, and refuses keys that it does not know.
func ReadBody(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Refusal{Status: http.StatusUnsupportedMediaType, Text: "the body is JSON, with the header Content-Type: application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			return &Refusal{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body has more than %d bytes", maxBody)}
		}
		return fmt.Errorf("the body cannot be read, at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("the body has more than one value, at byte %d", d.InputOffset())
	}
	return nil
}

// CheckNote refuses a note or a comment that is too long, or no text.
func CheckNote(name, text string) error {
	if len(text) > maxNote || !printable(strings.NewReplacer("\n", " ", "\t", " ").Replace(text)) {
		return fmt.Errorf("%s: has more than %d bytes, or characters that cannot be printed", name, maxNote)
	}
	return nil
}

// Done is the answer to a change that was made.
type Done struct {
	Done string `json:"done"` // what was done, in words
}

// Finish answers a change: what was done, or why it was not.
func Finish(w http.ResponseWriter, done string, err error) {
	if !refuse(w, err) {
		answer(w, Done{done})
	}
}

// ServeLogin shows the form, and takes the token from it. The one token of the page is also taken from the address (?token=), as
// earlier versions did; the redirect removes it from there at once.
func (g *Gate) ServeLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !g.needed() && g.tokens == nil {
		http.Redirect(w, r, g.o.Base+"/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		Problem(w, http.StatusBadRequest, "the form could not be read")
		return
	}
	c, now := g.clientOf(r), g.o.Now()
	token := r.Form.Get("token")
	if token == "" {
		g.o.LoginPage(w, r, http.StatusOK, "")
		return
	}
	if r.Method == http.MethodPost && g.crossing.Check(r) != nil {
		g.count.crossSite.Add(1)
		g.o.LoginPage(w, r, http.StatusForbidden, "A page of another site filled in this form. Type the token here.")
		return
	}
	if r.URL.Query().Has("token") {
		g.count.addressTokens.Add(1)
		if _, _, ok := splitToken(token); ok {
			g.o.LoginPage(w, r, http.StatusBadRequest, "A token does not belong into an address, where logs and histories keep it. Revoke this one, and type another one here or send it as Authorization: Bearer.")
			return
		}
		g.o.Warn("a token came in an address, where logs and histories keep it: use the form, or the header Authorization: Bearer. It will be refused two minor versions from now", "from", c.addr.String())
	}
	id, err := g.byToken(token, c, now)
	if refused, ok := err.(*Refusal); ok {
		text := "That is not the token. Check for missing characters at the ends."
		if refused.After > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((refused.After+time.Second-1)/time.Second)))
			text = "Too many wrong tokens came from this address. Wait a minute, then try again."
		} else {
			g.count.unauthorized.Add(1)
		}
		g.o.LoginPage(w, r, refused.Status, text)
		return
	}
	g.begin(w, &id, c, now)
	http.Redirect(w, r, g.o.Base+"/", http.StatusSeeOther)
}

// begin begins a session of a client that logged in, and sets its cookie.
func (g *Gate) begin(w http.ResponseWriter, id *Identity, c client, now time.Time) {
	g.count.logins.Add(1)
	cookie := g.sessions.begin(Session{User: id.User, Role: id.Role, Login: id.Login, From: c.addr.String(), token: id.token}, now)
	http.SetCookie(w, &http.Cookie{
		Name: CookieName, Value: cookie, Path: g.o.Base + "/", MaxAge: int(g.o.Config.SessionLife / time.Second),
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteStrictMode,
	})
}

// Whoami is the client as the page knows it.
type Whoami struct {
	User    string `json:"user"`                   // the user or the token, or "" where no login is configured
	Role    Role   `json:"role"`                   // viewer, operator or admin
	Login   string `json:"login"`                  // how the client is known: open, token, api-token, proxy or oidc
	CSRF    string `json:"csrf"`                   // what a browser sends with each change, in the header X-CSRF-Token
	EndsMS  int64  `json:"ends_ms,omitempty"`      // latest end of the session; absent without one
	Session string `json:"session,omitempty"`      // its id in the list of sessions; absent without a session
	Logins  bool   `json:"logins"`                 // /login leads to another role
	Because string `json:"unchangeable,omitempty"` // why nothing can be changed, whatever the role is
}

// ServeWhoami answers the client as it is known.
func (g *Gate) ServeWhoami(w http.ResponseWriter, r *http.Request) {
	id := IdentityOf(r)
	answer(w, Whoami{User: id.User, Role: id.Role, Login: id.Login, CSRF: g.csrf(&id), EndsMS: id.endsMS, Session: id.session, Logins: g.needed() || g.tokens != nil, Because: g.Unchangeable()})
}

// ServeLogout ends the session of the client.
func (g *Gate) ServeLogout(w http.ResponseWriter, r *http.Request) {
	id := IdentityOf(r)
	if id.session == "" {
		text := "there is no session to end"
		if id.Login == ByProxy {
			text = "the proxy knows you: log out there"
		}
		refuse(w, &Refusal{Status: http.StatusConflict, Text: text})
		return
	}
	g.sessions.end(func(s *Session) bool { return s.ID == id.session })
	http.SetCookie(w, &http.Cookie{Name: CookieName, Path: g.o.Base + "/", MaxAge: -1, HttpOnly: true, Secure: g.clientOf(r).secure, SameSite: http.SameSiteStrictMode})
	Finish(w, "logged out", nil)
}

// TokenList lists the tokens by role.
type TokenList struct {
	Most   int     `json:"most"` // most tokens
	Tokens []Token `json:"tokens"`
}

// ServeTokens lists the tokens, without their secrets.
func (g *Gate) ServeTokens(w http.ResponseWriter, _ *http.Request) {
	answer(w, TokenList{g.o.Config.MaxTokens, g.tokens.list(g.o.Now())})
}

// NewToken asks for a token.
type NewToken struct {
	Name           string `json:"name"` // unique, by what it is for
	Role           Role   `json:"role"` // viewer, operator or admin
	ExpiresSeconds int64  `json:"expires_seconds,omitempty"`
}

// MadeToken is the answer with a new token. Its secret is nowhere else.
type MadeToken struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

const maxExpiry = 10 * 366 * 24 * time.Hour

// ServeNewToken makes a token.
func (g *Gate) ServeNewToken(w http.ResponseWriter, r *http.Request) {
	var in NewToken
	if refuse(w, ReadBody(w, r, &in)) {
		return
	}
	now := g.o.Now()
	var expires time.Time
	switch {
	case checkName(in.Name) != nil:
		refuse(w, fmt.Errorf("name: %w", errName))
		return
	case in.Role == NoRole:
		refuse(w, errors.New("role: viewer, operator or admin"))
		return
	case in.ExpiresSeconds < 0 || in.ExpiresSeconds > int64(maxExpiry/time.Second):
		refuse(w, errors.New("expires_seconds: is outside 0..10 years"))
		return
	case in.ExpiresSeconds > 0:
		expires = now.Add(time.Duration(in.ExpiresSeconds) * time.Second)
	}
	var made MadeToken
	err := g.Do(r, "tokens/create", in.Name, "role "+in.Role.String(), func() (err error) {
		made.Token, made.Secret, err = g.tokens.create(in.Name, in.Role, IdentityOf(r).User, expires, now)
		return err
	})
	if !refuse(w, err) {
		answer(w, made)
	}
}

// Named names a token or a session.
type Named struct {
	ID string `json:"id"` // a token may also be named by its name
}

// ServeRevoke revokes a token, and ends the sessions that began with it.
func (g *Gate) ServeRevoke(w http.ResponseWriter, r *http.Request) {
	var in Named
	if refuse(w, ReadBody(w, r, &in)) || refuse(w, checkID(in.ID)) {
		return
	}
	var gone Token
	err := g.Do(r, "tokens/revoke", in.ID, "", func() (err error) {
		if gone, err = g.tokens.revoke(in.ID); err == nil {
			g.sessions.end(func(s *Session) bool { return s.token == gone.ID })
		}
		return err
	})
	Finish(w, fmt.Sprintf("revoked %s (%s)", gone.Name, gone.ID), err)
}

func checkID(id string) error {
	if checkName(id) != nil {
		return fmt.Errorf("id: %w", errName)
	}
	return nil
}

// SessionList lists the open sessions.
type SessionList struct {
	Most     int       `json:"most"` // most open sessions
	Sessions []Session `json:"sessions"`
}

// ServeSessions lists the sessions, that which was used last first.
func (g *Gate) ServeSessions(w http.ResponseWriter, _ *http.Request) {
	answer(w, SessionList{g.o.Config.MaxSessions, g.sessions.list(g.o.Now())})
}

// ServeEnd ends a session.
func (g *Gate) ServeEnd(w http.ResponseWriter, r *http.Request) {
	var in Named
	if refuse(w, ReadBody(w, r, &in)) || refuse(w, checkID(in.ID)) {
		return
	}
	var user string
	err := g.Do(r, "sessions/end", in.ID, "", func() error {
		gone := g.sessions.end(func(s *Session) bool { return s.ID == in.ID })
		if len(gone) == 0 {
			return errors.New("there is no such session")
		}
		user = gone[0].User
		return nil
	})
	Finish(w, "ended the session of "+user, err)
}

// ChangeList lists changes.
type ChangeList struct {
	Changes []Change `json:"changes"` // the newest first
	More    bool     `json:"more"`    // older ones exist: ask with before
	Kept    int      `json:"kept"`    // changes that can be requested
}

// ServeChanges lists the newest changes.
func (g *Gate) ServeChanges(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := func(name string, def, most uint64) (uint64, error) {
		text := q.Get(name)
		if text == "" {
			return def, nil
		}
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n < 1 || n > most {
			return 0, fmt.Errorf("%s: %.40q is outside 1..%d", name, text, most)
		}
		return n, nil
	}
	limit, err := number("limit", 50, mostKept)
	if refuse(w, err) {
		return
	}
	before, err := number("before", 0, 1<<63-1)
	if refuse(w, err) {
		return
	}
	list, more := g.changes.list(before, q.Get("action"), q.Get("target"), int(limit))
	answer(w, ChangeList{list, more, mostKept})
}

// Comments returns the comments about a target, the newest first, or about all where it is "".
func (g *Gate) Comments(target string, most int) []Change {
	list, _ := g.changes.list(0, "findings/comment", target, most)
	return list
}
