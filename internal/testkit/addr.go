package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Systems give ports from 32768 on (Linux) or 49152 on (others) to listeners that ask for any, and to connections.
const first, last = 15000, 32767

// tokens keep ports from other calls, of this process and others, until it ends: a server may be stopped and started
// again.
var (
	mu     sync.Mutex
	tokens []net.PacketConn
)

// FreeAddr returns an address of the loopback at which no process listens, neither with TCP nor with UDP. No other call
// returns it while this process lives. A port from a listener on port 0 that was closed again may belong to another
// process when the server starts.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := first + rand.IntN(last-first+1)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		token, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.2:%d", port))
		if err != nil {
			continue
		}
		if isFree(addr) {
			mu.Lock()
			defer mu.Unlock()
			tokens = append(tokens, token)
			return addr
		}
		token.Close()
	}
	t.Fatal("testkit: 1000 tries found no free port")
	return ""
}

func isFree(addr string) bool {
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return false
	}
	l.Close()
	p, err := net.ListenPacket("udp4", addr)
	if err != nil {
		return false
	}
	p.Close()
	return true
}
