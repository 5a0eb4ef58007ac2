package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const pageToken = "correct-horse-battery"

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// site is a page behind a gate, with its log.
type site struct {
	*Gate
	http.Handler
	*clock
	log bytes.Buffer
}

// newSite opens a gate. change changes its options.
func newSite(t *testing.T, change func(*Options)) *site {
	t.Helper()
	s := &site{clock: &clock{t: time.Unix(1_800_000_000, 0)}}
	var conf Config
	conf.SetDefaults()
	conf.Dir = filepath.Join(t.TempDir(), "access")
	o := Options{
		Config: conf, Token: pageToken, Now: s.now,
		Public: func(path string) bool { return path == "/login" },
		Post:   func(path string) bool { return strings.HasPrefix(path, "/api/do/") || path == "/api/logout" },
		LoginPage: func(w http.ResponseWriter, _ *http.Request, status int, problem string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "form: %s", problem)
		},
		Warn: func(message string, args ...any) { fmt.Fprintln(&s.log, append([]any{message}, args...)...) },
	}
	if change != nil {
		change(&o)
	}
	g, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	s.Gate = g
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"/login": g.ServeLogin, "/api/logout": g.Require(Viewer, true, g.ServeLogout), "/api/whoami": g.Require(Viewer, false, g.ServeWhoami),
		"/api/changes": g.Require(Operator, false, g.ServeChanges), "/api/tokens": g.Require(Admin, false, g.ServeTokens), "/api/sessions": g.Require(Admin, false, g.ServeSessions),
		"/api/do/create": g.Require(Admin, true, g.ServeNewToken), "/api/do/revoke": g.Require(Admin, true, g.ServeRevoke), "/api/do/end": g.Require(Admin, true, g.ServeEnd),
		"/api/do/work": g.Require(Operator, true, func(w http.ResponseWriter, r *http.Request) {
			Finish(w, "worked", g.Do(r, "work", "it", "", func() error { return nil }))
		}),
		"/": func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "page %s", r.URL.Path) },
	} {
		mux.HandleFunc(path, h)
	}
	s.Handler = g.Guard(mux)
	return s
}

// ask sends a request from 192.0.2.1.
func (s *site) ask(method, path, body string, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}
func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr + ":4711" }
}
func withToken(token string) func(*http.Request) { return with("Authorization", "Bearer "+token) }
func inJSON(r *http.Request)                     { r.Header.Set("Content-Type", "application/json") }
func withCookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(c) }
}

// read reads an answer as JSON, and fails the test where its status is another one.
func read[T any](t *testing.T, res *http.Response, status int) (v T) {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("%s: %s (%v), want %d", res.Status, body, err, status)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

type failed struct{ Error string }

// login logs in by the form, and returns the cookie.
func (s *site) login(t *testing.T, token string, change ...func(*http.Request)) *http.Cookie {
	t.Helper()
	res := s.ask("POST", "/login", url.Values{"token": {token}}.Encode(), append(change, with("Content-Type", "application/x-www-form-urlencoded"))...)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		body, _ := io.ReadAll(res.Body) // of a recorder
		t.Fatalf("login: %s %s", res.Status, body)
	}
	return res.Cookies()[0]
}

// make makes a token by role, as the page's own one may.
func (s *site) make(t *testing.T, name string, role Role, seconds int) MadeToken {
	t.Helper()
	return read[MadeToken](t, s.ask("POST", "/api/do/create", fmt.Sprintf(`{"name":%q,"role":%q,"expires_seconds":%d}`, name, role, seconds), withToken(pageToken), inJSON), 200)
}

// TestRoles holds what each role may do, by each way to be known.
func TestRoles(t *testing.T) {
	s := newSite(t, nil)
	paths := []struct {
		method, path, body string
		least              Role
	}{{"GET", "/api/whoami", "", Viewer}, {"GET", "/api/changes", "", Operator}, {"POST", "/api/do/work", "{}", Operator}, {"GET", "/api/tokens", "", Admin}, {"GET", "/api/sessions", "", Admin},
		{"POST", "/api/do/end", `{"id":"none"}`, Admin}}
	for _, role := range []Role{Viewer, Operator, Admin} {
		made := s.make(t, "for "+role.String(), role, 0)
		cookie := s.login(t, made.Secret)
		who := read[Whoami](t, s.ask("GET", "/api/whoami", "", withCookie(cookie)), 200)
		if who.Role != role || who.User != "for "+role.String() || who.Login != ByAPIToken || who.EndsMS == 0 {
			t.Fatalf("%v: %+v", role, who)
		}
		for _, p := range paths {
			for way, change := range map[string][]func(*http.Request){
				"token": {withToken(made.Secret), inJSON}, "session": {withCookie(cookie), inJSON, with(CSRFHeader, who.CSRF)},
			} {
				res := s.ask(p.method, p.path, p.body, change...)
				if got := res.StatusCode == http.StatusForbidden; got != (role < p.least) || res.StatusCode == http.StatusUnauthorized {
					t.Errorf("%v by %s: %s %s: %s", role, way, p.method, p.path, res.Status)
				}
			}
		}
	}
	if n := s.Stats(); n.Forbidden != 2*(5+3) || n.Tokens != 3 {
		t.Errorf("%+v", n)
	}
}

// TestTokensAreKept holds that tokens outlive the program, that their secrets are nowhere, and that revoking ends all that began with one.
func TestTokensAreKept(t *testing.T) {
	var dir string
	s := newSite(t, func(o *Options) { dir = o.Config.Dir })
	a, b := s.make(t, "a", Operator, 0), s.make(t, "b", Viewer, 60)
	if !strings.HasPrefix(a.Secret, "hop_"+a.Token.ID+"_") || a.Secret == b.Secret {
		t.Fatalf("%+v, %+v", a, b)
	}
	if e := read[failed](t, s.ask("POST", "/api/do/create", `{"name":"a","role":"viewer"}`, withToken(pageToken), inJSON), 400); !strings.Contains(e.Error, `there is a token "a"`) {
		t.Error(e)
	}
	s.login(t, a.Secret)
	s.move(time.Second)
	read[Whoami](t, s.ask("GET", "/api/whoami", "", withToken(a.Secret), from("192.0.2.9")), 200)
	for _, name := range []string{tokensName, changesName} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || bytes.Contains(text, []byte(a.Secret[len("hop_")+tokenIDLen:])) {
			t.Errorf("%s holds a secret, or nothing: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, tokensName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the tokens: %v %v", info.Mode(), err)
	}
	if _, err := Open(s.o); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second gate of the directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := newSite(t, func(o *Options) { o.Config.Dir = dir })
	again.move(2 * time.Second)
	list := read[TokenList](t, again.ask("GET", "/api/tokens", "", withToken(pageToken)), 200).Tokens
	if len(list) != 2 || list[0].Name != "a" || list[0].UsedFrom != "192.0.2.9" || list[0].UsedMS != time.Unix(1_800_000_001, 0).UnixMilli() || list[1].UsedMS != 0 || list[0].CreatedBy != "token file" {
		t.Fatalf("%+v", list)
	}
	cookie := again.login(t, a.Secret)
	read[Done](t, again.ask("POST", "/api/do/revoke", `{"id":"a"}`, withToken(pageToken), inJSON), 200)
	for way, change := range map[string]func(*http.Request){"token": withToken(a.Secret), "session": withCookie(cookie)} {
		if res := again.ask("GET", "/api/whoami", "", change); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("revoked, by %s: %s", way, res.Status)
		}
	}
	read[Whoami](t, again.ask("GET", "/api/whoami", "", withToken(b.Secret)), 200)
	again.move(time.Minute)
	if res := again.ask("GET", "/api/whoami", "", withToken(b.Secret)); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("expired: %s", res.Status)
	}
	var actions []string
	for _, c := range read[ChangeList](t, again.ask("GET", "/api/changes", "", withToken(pageToken)), 200).Changes {
		actions = append(actions, c.Action+" "+c.Target+" "+c.Failed)
		if c.User != "token file" || c.From != "192.0.2.1" || c.Role != Admin {
			t.Errorf("%+v", c)
		}
	}
	want := `tokens/revoke a , tokens/create a there is a token "a": revoke it, or choose another name, tokens/create a , tokens/create b , tokens/create a `
	if got := strings.Join(actions, ", "); got != want {
		t.Errorf("changes %s\nwant %s", got, want)
	}
}

// TestTooManyTokens holds the bound, and that expired ones make room.
func TestTooManyTokens(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Config.MaxTokens = 2 })
	s.make(t, "a", Viewer, 5)
	s.make(t, "b", Viewer, 0)
	e := read[failed](t, s.ask("POST", "/api/do/create", `{"name":"c","role":"viewer"}`, withToken(pageToken), inJSON), 400)
	if !strings.Contains(e.Error, "web.access.max_tokens") {
		t.Error(e)
	}
	s.move(5 * time.Second)
	s.make(t, "c", Viewer, 0)
}

// TestWrongBodies holds that what makes no sense is refused with a sentence, and not recorded.
func TestWrongBodies(t *testing.T) {
	s := newSite(t, nil)
	for body, want := range map[string]string{
		``: "byte 0", `{"name":"x","role":"king"}`: "viewer, operator or admin", `{"name":"x"}`: "role", `{"name":"","role":"viewer"}`: "name",
		`{"name":"a\u001b[1m","role":"viewer"}`: "printable", `{"name":"x","role":"viewer","expires_seconds":-1}`: "10 years", `{"name":"x","role":"viewer","color":1}`: "color",
		`{"name":"x","role":"viewer"} {}`: "more than one value", `{"name":"` + strings.Repeat("x", maxBody) + `"}`: "bytes", `{"name":"` + strings.Repeat("x", maxName+1) + `","role":"viewer"}`: "128",
	} {
		res := s.ask("POST", "/api/do/create", body, withToken(pageToken), inJSON)
		text, _ := io.ReadAll(res.Body) // of a recorder
		if res.StatusCode/100 != 4 || !strings.Contains(string(text), want) {
			t.Errorf("%.60s: %s %s, want %q", body, res.Status, text, want)
		}
	}
	if res := s.ask("POST", "/api/do/create", `{"name":"x","role":"viewer"}`, withToken(pageToken)); res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("without a type: %s", res.Status)
	}
	if n := s.Stats(); n.Changes != 0 || n.Tokens != 0 {
		t.Errorf("%+v", n)
	}
}

// TestReadOnly holds that without a directory nothing can be changed, and that this is said.
func TestReadOnly(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Config.Dir = "" })
	e := read[failed](t, s.ask("POST", "/api/do/work", "{}", withToken(pageToken), inJSON), http.StatusConflict)
	if !strings.Contains(e.Error, "web.access.dir") {
		t.Error(e)
	}
	if who := read[Whoami](t, s.ask("GET", "/api/whoami", "", withToken(pageToken)), 200); who.Because == "" || who.Role != Admin {
		t.Errorf("%+v", who)
	}
}

// TestCSRF holds that a change by a session needs its text, and comes from the page itself.
func TestCSRF(t *testing.T) {
	s := newSite(t, nil)
	cookie, other := s.login(t, pageToken), s.login(t, pageToken)
	csrf := read[Whoami](t, s.ask("GET", "/api/whoami", "", withCookie(cookie)), 200).CSRF
	foreign := read[Whoami](t, s.ask("GET", "/api/whoami", "", withCookie(other)), 200).CSRF
	for name, c := range map[string]struct {
		change []func(*http.Request)
		want   int
	}{
		"right":                   {[]func(*http.Request){with(CSRFHeader, csrf)}, 200},
		"right, same origin":      {[]func(*http.Request){with(CSRFHeader, csrf), with("Sec-Fetch-Site", "same-origin"), with("Origin", "http://127.0.0.1:8080")}, 200},
		"none":                    {nil, 403},
		"that of another session": {[]func(*http.Request){with(CSRFHeader, foreign)}, 403},
		"another site":            {[]func(*http.Request){with(CSRFHeader, csrf), with("Sec-Fetch-Site", "cross-site")}, 403},
		"another origin":          {[]func(*http.Request){with(CSRFHeader, csrf), with("Origin", "https://attacker.example")}, 403},
	} {
		if res := s.ask("POST", "/api/do/work", "{}", append(c.change, withCookie(cookie), inJSON)...); res.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, res.Status, c.want)
		}
	}
	// A token in the header is proof enough: no page of another site has it.
	if res := s.ask("POST", "/api/do/work", "{}", withToken(pageToken), inJSON, with("Origin", "https://tools.example")); res.StatusCode != 200 {
		t.Errorf("with a token: %s", res.Status)
	}
	// Nor does another site fill in the form.
	res := s.ask("POST", "/login", url.Values{"token": {pageToken}}.Encode(), with("Content-Type", "application/x-www-form-urlencoded"), with("Sec-Fetch-Site", "cross-site"))
	if res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
		t.Errorf("form from another site: %s", res.Status)
	}
	if n := s.Stats().CrossSite; n != 5 {
		t.Errorf("%d were counted", n)
	}
}

// TestSessionsEnd holds that sessions end by logout, by idleness, by age and by an admin.
func TestSessionsEnd(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Config.SessionIdle, o.Config.SessionLife = 10*time.Minute, time.Hour })
	open := func(c *http.Cookie) bool { return s.ask("GET", "/api/whoami", "", withCookie(c)).StatusCode == 200 }
	idle, used := s.login(t, pageToken), s.login(t, pageToken)
	if !idle.HttpOnly || idle.SameSite != http.SameSiteStrictMode || idle.Secure || idle.Path != "/" || idle.MaxAge != 3600 {
		t.Errorf("cookie %+v", idle)
	}
	for range 7 {
		s.move(9 * time.Minute)
		if s.now().Sub(time.Unix(1_800_000_000, 0)) < time.Hour && !open(used) {
			t.Fatal("a session that is used ended")
		}
	}
	if open(used) || open(idle) {
		t.Error("a session is open behind its time")
	}
	c := s.login(t, pageToken)
	who := read[Whoami](t, s.ask("GET", "/api/whoami", "", withCookie(c)), 200)
	var stream *http.Request // one that began before
	s.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stream = r })).ServeHTTP(httptest.NewRecorder(), func() *http.Request {
		r := httptest.NewRequest("GET", "/api/events", nil)
		r.AddCookie(c)
		return r
	}())
	if !s.Still(stream) {
		t.Error("the stream of an open session ends")
	}
	out := s.ask("POST", "/api/logout", "", withCookie(c), with(CSRFHeader, who.CSRF))
	if out.StatusCode != 200 || len(out.Cookies()) != 1 || out.Cookies()[0].MaxAge >= 0 || open(c) || s.Still(stream) {
		t.Errorf("logout: %s %v, the stream goes on: %v", out.Status, out.Cookies(), s.Still(stream))
	}
	c = s.login(t, pageToken, from("192.0.2.77"))
	list := read[SessionList](t, s.ask("GET", "/api/sessions", "", withToken(pageToken)), 200).Sessions
	if len(list) != 1 || list[0].From != "192.0.2.77" || strings.Contains(fmt.Sprint(list), c.Value) {
		t.Fatalf("%+v", list)
	}
	read[Done](t, s.ask("POST", "/api/do/end", fmt.Sprintf(`{"id":%q}`, list[0].ID), withToken(pageToken), inJSON), 200)
	if open(c) {
		t.Error("a session is open that an admin ended")
	}
}

// TestSlowDown holds that an address with many wrong logins waits, that others do not, and that each gets one line of the log a minute.
func TestSlowDown(t *testing.T) {
	s := newSite(t, nil)
	made := s.make(t, "a", Viewer, 0)
	try := func(addr, token string) *http.Response {
		return s.ask("GET", "/api/whoami", "", withToken(token), from(addr))
	}
	for i := range freeAttempts {
		if res := try("192.0.2.5", "wrong"); res.StatusCode != 401 {
			t.Fatalf("attempt %d: %s", i, res.Status)
		}
	}
	res := try("192.0.2.5", pageToken)
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "1" {
		t.Errorf("the right token of a slowed address: %s, %q", res.Status, res.Header.Get("Retry-After"))
	}
	if res := try("192.0.2.5", made.Secret); res.StatusCode != 200 {
		t.Errorf("a right token by role of a slowed address: %s", res.Status)
	}
	if res := try("192.0.2.6", pageToken); res.StatusCode != 200 {
		t.Errorf("another address: %s", res.Status)
	}
	s.move(time.Second)
	if res := try("192.0.2.5", pageToken); res.StatusCode != 200 {
		t.Errorf("after the wait: %s", res.Status)
	}
	for range 20 { // each wait is longer, up to a minute
		s.move(mostWait)
		try("192.0.2.5", "wrong")
	}
	if res := try("192.0.2.5", pageToken); res.Header.Get("Retry-After") != "60" {
		t.Errorf("waits %q seconds", res.Header.Get("Retry-After"))
	}
	for i := range 3 { // neighbours in one /64 are one
		try(fmt.Sprintf("[2001:db8::%d]", i), "wrong")
		try(fmt.Sprintf("[2001:db8::%d]", i+8), "wrong")
	}
	if res := try("[2001:db8::77]", pageToken); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a neighbour: %s", res.Status)
	}
	if n := strings.Count(s.log.String(), "wrong login"); n != 22 {
		t.Errorf("%d lines of the log:\n%s", n, &s.log)
	}
	if strings.Contains(s.log.String(), "wrong\n") || s.Stats().WrongLogins != freeAttempts+20+5 || s.Stats().Slowed < 3 {
		t.Errorf("%+v\n%s", s.Stats(), &s.log)
	}
}

// TestTrustedProxy holds that headers of a proxy count from its address alone.
func TestTrustedProxy(t *testing.T) {
	s := newSite(t, func(o *Options) {
		c := &o.Config
		c.TrustedProxies, c.UserHeader, c.GroupsHeader = []string{"10.0.0.0/24", "2001:db8::1"}, "X-Forwarded-User", "X-Forwarded-Groups"
		c.Viewers, c.Operators, c.Admins = []string{"group:staff"}, []string{"group:noc", "user:carol"}, []string{"user:root"}
		o.Token = ""
	})
	who := func(change ...func(*http.Request)) (Whoami, int) {
		res := s.ask("GET", "/api/whoami", "", change...)
		var w Whoami
		_ = json.NewDecoder(res.Body).Decode(&w) // a refusal is another object
		return w, res.StatusCode
	}
	user, groups := func(u string) func(*http.Request) { return with("X-Forwarded-User", u) }, func(g string) func(*http.Request) { return with("X-Forwarded-Groups", g) }
	for name, c := range map[string]struct {
		change []func(*http.Request)
		role   Role
		status int
	}{
		"viewer by group":     {[]func(*http.Request){from("10.0.0.9"), user("alice"), groups("dev, staff")}, Viewer, 200},
		"operator by group":   {[]func(*http.Request){from("10.0.0.9"), user("bob"), groups("staff"), groups("noc")}, Operator, 200},
		"operator by name":    {[]func(*http.Request){from("[2001:db8::1]"), user("carol")}, Operator, 200},
		"admin":               {[]func(*http.Request){from("10.0.0.9"), user("root")}, Admin, 200},
		"a group called root": {[]func(*http.Request){from("10.0.0.9"), user("eve"), groups("root,user:root")}, NoRole, 403},
		"no group":            {[]func(*http.Request){from("10.0.0.9"), user("eve")}, NoRole, 403},
		"two users":           {[]func(*http.Request){from("10.0.0.9"), user("alice"), user("root")}, NoRole, 400},
		"no user":             {[]func(*http.Request){from("10.0.0.9")}, NoRole, 401},
		"from elsewhere":      {[]func(*http.Request){from("10.0.1.9"), user("root")}, NoRole, 401},
		"through another":     {[]func(*http.Request){from("192.0.2.7"), user("root"), with("X-Forwarded-For", "10.0.0.9")}, NoRole, 401},
	} {
		if w, status := who(c.change...); w.Role != c.role || status != c.status {
			t.Errorf("%s: %d %+v, want %d %v", name, status, w, c.status, c.role)
		}
	}
	if n := s.Stats().Ignored; n != 2 {
		t.Errorf("%d requests with ignored headers, want 2", n)
	}
	for list, want := range map[string]string{"192.0.2.1": "192.0.2.1", "6.6.6.6, 192.0.2.1, 10.0.0.7": "192.0.2.1", "6.6.6.6, 192.0.2.1:5511": "192.0.2.1", "nonsense": "10.0.0.9", "192.0.2.3, nonsense": "10.0.0.9", "": "10.0.0.9", "[2001:db8::7]:80": "2001:db8::7"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.9:1"
		r.Header.Set("X-Forwarded-For", list)
		if c := s.clientOf(r); c.addr.String() != want || c.secure {
			t.Errorf("forwarded for %q: %v, want %s", list, c.addr, want)
		}
		r.Header.Set("X-Forwarded-Proto", "https")
		if !s.clientOf(r).secure {
			t.Error("https at the proxy is not seen")
		}
	}
	// The user of a proxy makes changes with the text of whoami alone, since the proxy vouches for requests of other sites, too.
	w, _ := who(from("10.0.0.9"), user("carol"))
	for text, want := range map[string]int{"": 403, "x": 403, w.CSRF: 200} {
		if res := s.ask("POST", "/api/do/work", "{}", from("10.0.0.9"), user("carol"), inJSON, with(CSRFHeader, text), with("X-Forwarded-For", "192.0.2.44")); res.StatusCode != want {
			t.Errorf("change with %q: %s, want %d", text, res.Status, want)
		}
	}
	if c, _ := s.changes.list(0, "work", "", 1); len(c) != 1 || c[0].User != "carol" || c[0].From != "192.0.2.44" || c[0].Login != ByProxy {
		t.Errorf("recorded %+v", c)
	}
	if e := read[failed](t, s.ask("POST", "/api/logout", "", from("10.0.0.9"), user("carol"), with(CSRFHeader, w.CSRF)), http.StatusConflict); !strings.Contains(e.Error, "proxy") {
		t.Error(e)
	}
}

// TestSecureCookie holds that the cookie is for TLS alone where TLS ends here or at a trusted proxy.
func TestSecureCookie(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Config.TrustedProxies = []string{"10.0.0.9"} })
	https := with("X-Forwarded-Proto", "https")
	if !s.login(t, pageToken, from("10.0.0.9"), https).Secure || s.login(t, pageToken, from("10.0.0.9")).Secure || s.login(t, pageToken, from("10.0.0.8"), https).Secure {
		t.Error("Secure does not follow the trusted proxy")
	}
	if n := s.Stats().Ignored; n != 1 {
		t.Errorf("%d ignored", n)
	}
}

// TestBasePath holds that everything is answered below the prefix, and what a proxy has removed it from.
func TestBasePath(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Base = "/hop/scope" })
	for path, want := range map[string]string{"/hop/scope": "301 /hop/scope/", "/hop/scope/": "303 /hop/scope/login", "/": "303 /hop/scope/login", "/hop/scope/login": "200 ", "/hop/scopes/x": "401 "} {
		res := s.ask("GET", path, "")
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Location")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	c := s.login(t, pageToken)
	if c.Path != "/hop/scope/" {
		t.Errorf("cookie for %q", c.Path)
	}
	for path, want := range map[string]string{"/hop/scope/": "page /", "/hop/scope/a/b": "page /a/b", "/a": "page /a"} {
		body, _ := io.ReadAll(s.ask("GET", path, "", withCookie(c)).Body) // of a recorder
		if string(body) != want {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
}

// TestCORS holds that the API is shared with named origins alone, and without cookies.
func TestCORS(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Config.AllowedOrigins = []string{"https://wiki.example"} })
	for _, c := range []struct {
		method, path, origin string
		status               int
		allowed              bool
	}{
		{"GET", "/api/whoami", "https://wiki.example", 200, true}, {"OPTIONS", "/api/whoami", "https://wiki.example", 204, true}, {"OPTIONS", "/api/do/work", "https://wiki.example", 204, true},
		{"GET", "/api/whoami", "https://attacker.example", 200, false}, {"OPTIONS", "/api/whoami", "https://attacker.example", 405, false},
		{"GET", "/", "https://wiki.example", 200, false}, {"GET", "/api/whoami", "null", 200, false}, {"GET", "/api/whoami", "https://wiki.example.attacker.example", 200, false},
	} {
		change := []func(*http.Request){with("Origin", c.origin)}
		if c.method == "OPTIONS" {
			change = append(change, with("Access-Control-Request-Method", "POST"))
		} else {
			change = append(change, withToken(pageToken))
		}
		res := s.ask(c.method, c.path, "", change...)
		allow := res.Header.Get("Access-Control-Allow-Origin")
		if res.StatusCode != c.status || (allow == c.origin) != c.allowed || res.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s of %s: %s, allows %q", c.method, c.path, c.origin, res.Status, allow)
		}
	}
}

// TestAddressToken holds that a token by role is refused in an address, and that the page's own one brings a warning.
func TestAddressToken(t *testing.T) {
	s := newSite(t, nil)
	made := s.make(t, "a", Viewer, 0)
	res := s.ask("GET", "/login?token="+made.Secret, "")
	body, _ := io.ReadAll(res.Body) // of a recorder
	if res.StatusCode != http.StatusBadRequest || len(res.Cookies()) != 0 || !strings.Contains(string(body), "Revoke this one") {
		t.Errorf("%s: %s", res.Status, body)
	}
	if res := s.ask("GET", "/login?token="+pageToken, ""); res.StatusCode != http.StatusSeeOther || !strings.Contains(s.log.String(), "in an address") || strings.Contains(s.log.String(), pageToken) {
		t.Errorf("%s\n%s", res.Status, &s.log)
	}
	if e := read[failed](t, s.ask("GET", "/api/whoami?token="+made.Secret, ""), 401); !strings.Contains(e.Error, "not in the address") {
		t.Error(e)
	}
	if n := s.Stats().AddressTokens; n != 2 {
		t.Errorf("%d counted", n)
	}
}

// TestOpen holds the role of a page without a login, and that a token gives another one there.
func TestOpen(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Token = "" })
	who := read[Whoami](t, s.ask("GET", "/api/whoami", ""), 200)
	if who.Role != Viewer || who.Login != ByNothing {
		t.Errorf("%+v", who)
	}
	if res := s.ask("POST", "/api/do/work", "{}", inJSON, with(CSRFHeader, who.CSRF)); res.StatusCode != 403 {
		t.Errorf("a viewer works: %s", res.Status)
	}
	o := newSite(t, func(o *Options) { o.Token, o.Config.OpenRole = "", "admin" })
	who = read[Whoami](t, o.ask("GET", "/api/whoami", ""), 200)
	for text, want := range map[string]int{"": 403, who.CSRF: 200} { // a page of another site in this browser must not
		if res := o.ask("POST", "/api/do/work", "{}", inJSON, with(CSRFHeader, text)); res.StatusCode != want {
			t.Errorf("%q: %s, want %d", text, res.Status, want)
		}
	}
	if res := o.ask("GET", "/api/whoami", "", func(r *http.Request) { r.Host = "attacker.example" }); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %s", res.Status)
	}
}
