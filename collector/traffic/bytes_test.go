package traffic

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// TestBytes holds what the generator writes against hashes of what it always wrote: published figures were measured with
// these bytes.
func TestBytes(t *testing.T) {
	tests := []struct {
		cfg  Config
		want string
	}{
		{Config{Seed: 1, Flows: 10_000, Hops: 5, Exporters: 4, Bytes: 200}, "d8bbe0875d2f3473"},
		{Config{Seed: 2, Flows: 100, Hops: 0, Exporters: 1, Bytes: 64}, "13b300dfa86077f3"},
		{Config{Seed: 3, Flows: 1 << 24, Hops: 63, Exporters: 17, Bytes: 1400}, "6af69166d8f35e80"},
		{Config{Seed: 4, Flows: 9, Hops: 1, Exporters: 3, Bytes: 80}, "25d58bdfdf17517e"},
	}
	for _, tt := range tests {
		g, err := New(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		var buf []byte
		for range 1000 {
			buf = g.Next(buf)
			h.Write(buf)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.cfg, got, tt.want)
		}
	}
}
