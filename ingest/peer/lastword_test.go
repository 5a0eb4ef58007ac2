package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// A server refuses the missing certificate of a client after the client considers the handshake complete. It closes
// the connection while the client writes. The client reads the reason, however late.
func TestAlert(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"server"}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	client := ended(t, func(c net.Conn) {
		if err := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert}).Handshake(); err == nil {
			t.Error("a client that is not known is taken")
		}
	})
	secure := tls.Client(client, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	writeUntilOver(t, secure, client)
	_, err = secure.Read(make([]byte, 1))
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "remote error" {
		t.Errorf("the reason is %v", err)
	}
}

// An answer that came before the end is read, and then the error of the write.
func TestAnswer(t *testing.T) {
	client := ended(t, func(c net.Conn) {
		if _, err := c.Write([]byte("too long")); err != nil {
			t.Error(err)
		}
	})
	writeUntilOver(t, client, client)
	b, err := io.ReadAll(client)
	if op, ok := errors.AsType[*net.OpError](err); string(b) != "too long" || !ok || op.Op != "write" && op.Op != "read" {
		t.Errorf("%q, %v", b, err)
	}
}

// Errors that do not come from the other side are those of the write.
func TestOwnEnd(t *testing.T) {
	client := ended(t, func(net.Conn) {})
	client.Close()
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// ended is a connection to a server that sends a message and closes.
func ended(t *testing.T, says func(net.Conn)) *conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		says(c)
		c.Close()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		l.Close()
		<-done
	})
	return LastWord(c).(*conn)
}

// writeUntilOver writes to w, which is c or lies above it, until c learned that the connection is no more.
func writeUntilOver(t *testing.T, w io.Writer, c *conn) {
	t.Helper()
	testkit.Until(t, "the connection ends", func() bool {
		if _, err := w.Write([]byte("hello")); err != nil {
			t.Fatalf("a write reports the end: %v", err)
		}
		return c.failed.Load() != nil
	})
}
