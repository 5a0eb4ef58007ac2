package agent

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRefused has a socket with a port send to a host that refuses all of it. Its errors take room in the receive
// buffer, and stay there only until the next packet.
func TestRefused(t *testing.T) {
	namespace(t)
	for _, to := range []string{"127.0.0.1:8620", "[::1]:8620"} {
		l, err := dialUDP(context.Background(), &socketConfig{to: to, port: 49152})
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		for n := range 100 {
			if err := l.send(make([]byte, 44)); err != nil {
				t.Fatalf("%s: request %d: %v", to, n, err)
			}
		}
		waiting := 0
		raw, err := l.conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "there is what the host says of the last request", func() bool {
			before := waiting
			if err := raw.Control(func(fd uintptr) {
				for b := make([]byte, 64); ; waiting++ {
					if _, _, _, _, err := unix.Recvmsg(int(fd), b, b[:0], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT); err != nil {
						return
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
			return waiting > 0 && waiting == before
		})
		if waiting > 10 {
			t.Errorf("%s: %d errors of the network wait in the socket", to, waiting)
		}
	}
}
