package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	freeAttempts = 5 // wrong logins of an address before it has to wait
	mostWait     = time.Minute
	forgetAfter  = 15 * time.Minute
	mostAddrs    = 4096
	logEvery     = time.Minute // for an address
)

// attempt is what is remembered of the wrong logins of an address.
type attempt struct {
	n           int
	last, until time.Time
	logged      time.Time
}

// attempts slow down wrong logins by address. IPv6 addresses of one /64 count together, since a host has all of them.
type attempts struct {
	mu     sync.Mutex
	all    map[netip.Addr]*attempt
	wrong  uint64
	slowed uint64
}

func newAttempts() *attempts { return &attempts{all: map[netip.Addr]*attempt{}} }

func neighbourhood(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// wait returns how long an address has to wait until its next login is looked at.
func (t *attempts) wait(a netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.all[neighbourhood(a)]
	if x == nil || !now.Before(x.until) {
		return 0
	}
	t.slowed++
	return x.until.Sub(now)
}

// fail counts a wrong login. log is how many there were of the address if that is worth a line of the log, or else 0.
func (t *attempts) fail(a netip.Addr, now time.Time) (log int) {
	a = neighbourhood(a)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong++
	x := t.all[a]
	if x == nil {
		if len(t.all) >= mostAddrs {
			t.evict(now)
		}
		x = &attempt{}
		t.all[a] = x
	}
	if now.Sub(x.last) > forgetAfter {
		x.n = 0
	}
	x.n, x.last = x.n+1, now
	if over := x.n - freeAttempts; over >= 0 {
		x.until = now.Add(min(time.Second<<min(over, 6), mostWait))
	}
	if now.Sub(x.logged) < logEvery {
		return 0
	}
	x.logged = now
	return x.n
}

// evict removes what is old, or else the address whose last wrong login is the oldest.
func (t *attempts) evict(now time.Time) {
	var oldest netip.Addr
	var at time.Time
	for a, x := range t.all {
		if now.Sub(x.last) > forgetAfter {
			delete(t.all, a)
			continue
		}
		if at.IsZero() || x.last.Before(at) {
			oldest, at = a, x.last
		}
	}
	if len(t.all) >= mostAddrs {
		delete(t.all, oldest)
	}
}
