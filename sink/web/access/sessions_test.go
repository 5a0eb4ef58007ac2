package access

import (
	"testing"
	"time"
)

// TestSessionsBounded holds web.access.max_sessions: for one more, that which was not used for longest ends, and is counted.
func TestSessionsBounded(t *testing.T) {
	s, now := newSessions(3, time.Hour, 2*time.Hour), time.Unix(1_800_000_000, 0)
	var cookies []string
	for range 3 {
		cookies = append(cookies, s.begin(Session{User: "a", Role: Viewer}, now))
		now = now.Add(time.Second)
	}
	if _, ok := s.use(cookies[0], "192.0.2.1", now); !ok {
		t.Fatal("the first is gone")
	}
	s.begin(Session{User: "b"}, now)
	if _, ok := s.use(cookies[1], "", now); ok || s.evicted != 1 || len(s.all) != 3 {
		t.Errorf("evicted %d of %d, open: %v", s.evicted, len(s.all), ok)
	}
	if _, ok := s.use(cookies[0], "", now); !ok {
		t.Error("that which was used is gone")
	}
	for range 1000 {
		s.begin(Session{User: "b"}, now)
	}
	if len(s.all) != 3 || s.evicted != 1001 {
		t.Errorf("%d open, %d evicted", len(s.all), s.evicted)
	}
	if s.begin(Session{}, now.Add(time.Hour)); len(s.all) != 1 || s.expired != 3 {
		t.Errorf("%d open, %d expired", len(s.all), s.expired)
	}
}
