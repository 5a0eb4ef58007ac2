package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// LastWord returns a connection that hears what the other side said last. Its writes do not fail because the other side has ended it:
// that is left to reads, which give what was received until then, and after that the error of the write. It suits protocols that
// read, or wait to read, whenever they have written, and belongs below TLS.
//
// A server that ends a connection often says why before: by a TLS alert that it does not know the client's certificate, which it sees
// under TLS 1.3 only after the client has taken the handshake for done; or by an answer to a request that is too long. If the client
// still writes, the system reports a broken pipe, and a client that takes that for the end of the connection never reads the reason,
// although it has been received. Which comes first is chance.
func LastWord(c net.Conn) net.Conn { return &conn{Conn: c} }

// Dial connects to HOST:PORT over TCP, and hears the [LastWord] of the other side.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return LastWord(c), nil
}

type conn struct {
	net.Conn
	failed atomic.Pointer[error] // of the first write that failed
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		c.failed.CompareAndSwap(nil, &err)
		return len(b), nil
	}
	return n, err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if why := c.failed.Load(); why != nil && n == 0 && errors.Is(err, io.EOF) {
		return 0, *why
	}
	return n, err
}
