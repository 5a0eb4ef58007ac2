//go:build linux

package udp

import (
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkReceive takes 200-byte datagrams that wait in the socket buffer; the kernel's work before that is not in it.
func BenchmarkReceive(b *testing.B) {
	const n = 2048 // datagrams waiting at a time
	fill := func(b *testing.B, s source) {
		b.Helper()
		b.StopTimer()
		defer b.StartTimer()
		c, err := dialAddr(s.Addrs()[0])
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for range n {
			if _, err := c.Write(make([]byte, 200)); err != nil {
				b.Fatal(err)
			}
		}
	}
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers = 1
	b.Run("recvmmsg", func(b *testing.B) {
		s, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.ReportAllocs()
		left := 0
		for i := 0; i < b.N; {
			if left == 0 {
				fill(b, s)
				left = n
			}
			if _, err := s.workers[0].round(func(_ int, batch *ingest.Batch) {
				i += len(batch.Frames)
				left -= len(batch.Frames)
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("net", func(b *testing.B) {
		s, err := newPortable(cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.ReportAllocs()
		buf := make([]byte, 9216)
		left := 0
		for range b.N {
			if left == 0 {
				fill(b, s)
				left = n
			}
			if _, _, err := s.conns[0].ReadFromUDPAddrPort(buf); err != nil {
				b.Fatal(err)
			}
			left--
		}
	})
}
