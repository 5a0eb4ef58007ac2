package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// reserve is how many connections there can be beyond Config.MaxConnections, for probes alone.
const reserve = 16

// probe paths are asked by orchestrators and monitoring, which must get an answer however many others are connected.
func probe(path string) bool { return path == "/healthz" || path == "/readyz" || path == "/metrics" }

// limiter is a listener that bounds open connections. A new one never waits for those that ask nothing: when there is no
// room, the connection that has been idle for longest is closed, and where none is idle the one that has been sending
// its request for longest. When all are being answered there is a reserve, for probes alone.
type limiter struct {
	net.Listener
	max     int
	evicted func()

	mu     sync.Mutex
	freed  *sync.Cond
	conns  map[*limitedConn]bool
	spares int
	clock  uint64 // counts what happens, so that the oldest is known
	closed bool
}

func newLimiter(l net.Listener, most int, evicted func()) *limiter {
	m := &limiter{Listener: l, max: most, evicted: evicted, conns: map[*limitedConn]bool{}}
	m.freed = sync.NewCond(&m.mu)
	return m
}

// limitedConn is a connection of a limiter, which guards everything but the embedded one.
type limitedConn struct {
	net.Conn
	l       *limiter
	spare   bool   // has a place of the reserve
	asking  bool   // a part of a request came
	serving int    // requests that are being answered
	since   uint64 // when that was last different
}

// Accept waits for a connection for which there is a place.
func (l *limiter) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: inner, l: l}
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
func (l *limiter) place(c *limitedConn) (victim *limitedConn, ok bool) {
	if len(l.conns)-l.spares < l.max {
		return nil, true
	}
	if victim = l.useless(false); victim == nil {
		if c.spare = true; l.spares >= reserve {
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

// useless is the connection that is missed least: one that asks nothing before one that has begun to ask, and the one
// that has been so for longest. It is nil where all are being answered.
func (l *limiter) useless(spare bool) (worst *limitedConn) {
	for c := range l.conns {
		switch {
		case c.spare != spare || c.serving > 0:
		case worst == nil, !c.asking && worst.asking, c.asking == worst.asking && c.since < worst.since:
			worst = c
		}
	}
	return worst
}

// forget gives the place of c back.
func (l *limiter) forget(c *limitedConn) {
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
func (l *limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.freed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Read notes that something is being asked.
func (c *limitedConn) Read(b []byte) (int, error) {
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

// Close gives the place back.
func (c *limitedConn) Close() error {
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// begin notes that a request for path is being answered, unless the connection has a place of the reserve that is not
// for such requests. One that is free meanwhile will do.
func (c *limitedConn) begin(path string) (spare, ok bool) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.spare && !probe(path) {
		if !l.conns[c] || len(l.conns)-l.spares >= l.max {
			return true, false
		}
		c.spare = false
		l.spares--
	}
	c.serving++
	return c.spare, true
}

// end notes that a request was answered.
func (c *limitedConn) end() {
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

// withConn is http.Server.ConnContext: requests know their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// limit answers requests by h on the connections that have a place for them.
func limit(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*limitedConn)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		spare, ok := c.begin(r.URL.Path)
		if spare { // it is for one answer
			w.Header().Set("Connection", "close")
		}
		if !ok {
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusServiceUnavailable, "too many connections: web.max_connections says how many there can be")
			return
		}
		defer c.end()
		h.ServeHTTP(w, r)
	})
}
