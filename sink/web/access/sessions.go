package access

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

// Session is a login of a browser.
type Session struct {
	ID      string `json:"id"` // a name, which gives no access
	User    string `json:"user"`
	Role    Role   `json:"role"`  // viewer, operator or admin
	Login   string `json:"login"` // how it began: token, api-token, oidc
	From    string `json:"from"`  // the address that used it last
	BeganMS int64  `json:"began_ms"`
	UsedMS  int64  `json:"last_used_ms"`
	EndsMS  int64  `json:"ends_ms"` // its end, if it is used until then

	token string // id of the API token that it began with, or ""
}

// sessionKey is the SHA-256 of the cookie: the table holds no cookie, and a look-up compares no secrets.
type sessionKey [sha256.Size]byte

// sessions are the open logins. When there are too many, that which was not used for longest ends.
type sessions struct {
	max        int
	idle, life time.Duration

	mu      sync.Mutex
	all     map[sessionKey]*Session
	evicted uint64
	expired uint64
}

func newSessions(most int, idle, life time.Duration) *sessions {
	return &sessions{max: most, idle: idle, life: life, all: map[sessionKey]*Session{}}
}

func keyOf(cookie string) sessionKey { return sha256.Sum256([]byte(cookie)) }

// begin begins a session, and returns the text of its cookie.
func (s *sessions) begin(x Session, now time.Time) (cookie string) {
	raw := make([]byte, 40)
	rand.Read(raw) // never fails
	cookie = base64.RawURLEncoding.EncodeToString(raw[8:])
	x.ID, x.BeganMS, x.UsedMS, x.EndsMS = hex.EncodeToString(raw[:8]), now.UnixMilli(), now.UnixMilli(), now.Add(s.life).UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if len(s.all) >= s.max {
		var oldest sessionKey
		at := int64(1<<63 - 1)
		for k, y := range s.all {
			if y.UsedMS < at || y.UsedMS == at && y.ID < s.all[oldest].ID {
				oldest, at = k, y.UsedMS
			}
		}
		delete(s.all, oldest)
		s.evicted++
	}
	s.all[keyOf(cookie)] = &x
	return cookie
}

func (s *sessions) ended(x *Session, now time.Time) bool {
	ms := now.UnixMilli()
	return ms >= x.EndsMS || ms-x.UsedMS >= s.idle.Milliseconds()
}

// expire ends the sessions whose time is over. The caller holds the lock.
func (s *sessions) expire(now time.Time) {
	for k, x := range s.all {
		if s.ended(x, now) {
			delete(s.all, k)
			s.expired++
		}
	}
}

// use returns the session of a cookie, and notes that it is used from an address.
func (s *sessions) use(cookie, from string, now time.Time) (Session, bool) {
	k := keyOf(cookie)
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.all[k]
	if !ok {
		return Session{}, false
	}
	if s.ended(x, now) {
		delete(s.all, k)
		s.expired++
		return Session{}, false
	}
	x.UsedMS, x.From = max(x.UsedMS, now.UnixMilli()), from
	return *x, true
}

// end ends the sessions for which which is true, and returns them.
func (s *sessions) end(which func(*Session) bool) (gone []Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, x := range s.all {
		if which(x) {
			gone = append(gone, *x)
			delete(s.all, k)
		}
	}
	return gone
}

// list returns the open sessions, that which was used last first.
func (s *sessions) list(now time.Time) []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	out := []Session{}
	for _, x := range s.all {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b Session) int { return cmp.Or(cmp.Compare(b.UsedMS, a.UsedMS), cmp.Compare(a.ID, b.ID)) })
	return out
}

// open reports whether the session of a cookie is open, without using it.
func (s *sessions) open(cookie string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.all[keyOf(cookie)]
	return ok && !s.ended(x, now)
}
