package peer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Limiter is a listener that bounds open connections. A new connection never waits for one without a request. When
// there is no room, the connection that has been idle for longest is closed. If none is idle, the one that has been
// sending its request for longest is closed. When all are being answered, there is a reserve for requests that
// [Conn.Begin] marks for it.
type Limiter struct {
	net.Listener
	max, silent, reserve int
	evicted              func()

	mu     sync.Mutex
	freed  *sync.Cond
	conns  map[*Conn]bool
	spares int
	clock  uint64 // counts what happens, so that the oldest is known
	closed bool
}

// Limits bound the connections of a [Limiter].
type Limits struct {
	Max     int    // open at a time
	Silent  int    // of these, that are not being answered, such as those that have shown no certificate yet; 0 for Max
	Reserve int    // beyond Max
	Evicted func() // called for each connection that was closed for another one; nil for nothing
}

// Limit bounds the connections of a listener.
func Limit(l net.Listener, x Limits) *Limiter {
	if x.Silent == 0 {
		x.Silent = x.Max
	}
	if x.Evicted == nil {
		x.Evicted = func() {}
	}
	m := &Limiter{Listener: l, max: x.Max, silent: x.Silent, reserve: x.Reserve, evicted: x.Evicted, conns: map[*Conn]bool{}}
	m.freed = sync.NewCond(&m.mu)
	return m
}

// Open returns the number of open connections.
func (l *Limiter) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Conn is a connection of a [Limiter], which guards everything but the embedded one.
type Conn struct {
	net.Conn
	l       *Limiter
	spare   bool   // has a place of the reserve
	asking  bool   // a part of a request came
	serving int    // requests that are being answered
	since   uint64 // when that was last different
}

// Accept waits for a connection for which there is a place.
func (l *Limiter) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: inner, l: l}
	l.mu.Lock()
	for !l.closed {
		victim, ok := l.place(c)
		if ok {
			l.clock++
			c.since = l.clock
			l.conns[c] = true
			l.mu.Unlock()
			if victim != nil {
				_ = victim.Conn.Close() // it is of no use any more
				l.evicted()
			}
			return c, nil
		}
		l.freed.Wait()
	}
	l.mu.Unlock()
	_ = inner.Close()
	return nil, net.ErrClosed
}

// place finds room for c, which may be at the cost of another connection.
func (l *Limiter) place(c *Conn) (victim *Conn, ok bool) {
	if l.quiet() >= l.silent {
		if victim = l.useless(false); victim != nil {
			l.forget(victim)
			return victim, true
		}
	}
	if len(l.conns)-l.spares < l.max {
		return nil, true
	}
	if victim = l.useless(false); victim == nil {
		if c.spare = true; l.spares >= l.reserve {
			if victim = l.useless(true); victim == nil {
				c.spare = false
				return nil, false
			}
		}
	}
	if victim != nil {
		l.forget(victim)
	}
	if c.spare {
		l.spares++
	}
	return victim, true
}

// quiet counts the connections that are not being answered, without those of the reserve.
func (l *Limiter) quiet() (n int) {
	if l.silent == l.max {
		return 0 // there is no other bound
	}
	for c := range l.conns {
		if !c.spare && c.serving == 0 {
			n++
		}
	}
	return n
}

// useless returns the connection to close first. One without a request comes before one that has begun a request, and
// then the one that has been so for longest. It returns nil if all are being answered.
func (l *Limiter) useless(spare bool) (worst *Conn) {
	for c := range l.conns {
		switch {
		case c.spare != spare || c.serving > 0:
		case worst == nil, !c.asking && worst.asking, c.asking == worst.asking && c.since < worst.since:
			worst = c
		}
	}
	return worst
}

// forget frees the place of c.
func (l *Limiter) forget(c *Conn) {
	if !l.conns[c] {
		return
	}
	delete(l.conns, c)
	if c.spare {
		l.spares--
	}
	l.freed.Signal()
}

// Close ends waiting for a place, too.
func (l *Limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.freed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Read notes that something is being asked.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.l.mu.Lock()
		if !c.asking && c.serving == 0 {
			c.l.clock++
			c.asking, c.since = true, c.l.clock
		}
		c.l.mu.Unlock()
	}
	return n, err
}

// Close frees the place of the connection.
func (c *Conn) Close() error {
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// Begin notes that a request is being answered, unless the connection has a place of the reserve that is not for such requests. One that is free
// meanwhile will do.
func (c *Conn) Begin(reserved bool) (spare, ok bool) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.spare && !reserved {
		if !l.conns[c] || len(l.conns)-l.spares >= l.max {
			return true, false
		}
		c.spare = false
		l.spares--
	}
	c.serving++
	return c.spare, true
}

// End notes that a request was answered.
func (c *Conn) End() {
	l := c.l
	l.mu.Lock()
	l.clock++
	c.serving--
	c.asking, c.since = false, l.clock
	if c.serving == 0 {
		l.freed.Signal() // it can be closed for another one now
	}
	l.mu.Unlock()
}

type connKey struct{}

// WithConn is the ConnContext of an http.Server: it puts the connection into the context of requests.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// LimitHTTP serves requests with h on the connections that have a place for them. reserved reports which paths may use
// the reserve. Others are refused, with the header Retry-After.
func LimitHTTP(h http.Handler, reserved func(path string) bool, refuse func(w http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*Conn)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		spare, ok := c.Begin(reserved(r.URL.Path))
		if spare { // it is for one answer
			w.Header().Set("Connection", "close")
		}
		if !ok {
			w.Header().Set("Retry-After", "1")
			refuse(w)
			return
		}
		defer c.End()
		h.ServeHTTP(w, r)
	})
}

// Probe reports whether orchestrators and monitoring ask a path, which must get an answer however many others are connected.
func Probe(path string) bool { return path == "/healthz" || path == "/readyz" || path == "/metrics" }
