package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// LastWord returns a connection that delivers the last bytes of the peer. Its writes do not fail because the peer has
// closed it. Reads return what was received until then, and after that the error of the write. It suits protocols that
// read, or wait to read, after every write, and belongs below TLS.
//
// A server that closes a connection often sends the reason first. One is a TLS alert about the client's certificate,
// which TLS 1.3 sends only after the client considers the handshake complete. Another is an answer to a request that
// is too long. If the client still writes, the system reports a broken pipe. A client that stops there never reads the
// reason, although it was received. Which of the two comes first is chance.
func LastWord(c net.Conn) net.Conn { return &conn{Conn: c} }

// Dial connects to HOST:PORT over TCP, with [LastWord].
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
