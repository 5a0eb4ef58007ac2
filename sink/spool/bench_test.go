package spool

import (
	"fmt"
	"testing"
)

// One record is appended, read and committed, as the queue of a store that is up does it.
func BenchmarkThrough(b *testing.B) {
	for _, sync := range []string{"never", "interval", "each"} {
		for _, size := range []int{1 << 10, 100 << 10} {
			b.Run(fmt.Sprintf("sync=%s/bytes=%d", sync, size), func(b *testing.B) {
				c := DefaultConfig()
				c.Dir, c.Sync = b.TempDir(), sync
				s := mustOpen(b, c, nil)
				payload := make([]byte, size)
				var buf []byte
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Append(1, 1, payload); err != nil {
						b.Fatal(err)
					}
					r, err := s.Read(buf)
					if err != nil {
						b.Fatal(err)
					}
					buf = r.Payload
					s.Commit(r.End)
				}
			})
		}
	}
}
