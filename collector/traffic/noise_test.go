package traffic

import (
	"bytes"
	"testing"
)

// Noise is of all lengths, differs from datagram to datagram, and repeats with its seed.
func TestNoise(t *testing.T) {
	cfg := DefaultConfig()
	a, err := NewNoise(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewNoise(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lengths, first := map[int]bool{}, map[byte]bool{}
	var buf []byte
	for i := range 20_000 {
		buf = a.NextFrom(i%a.Exporters(), buf)
		if second := b.NextFrom(i%a.Exporters(), nil); !bytes.Equal(buf, second) {
			t.Fatalf("seed %d gave %x, then %x", cfg.Seed, buf, second)
		}
		if len(buf) > a.Bytes() {
			t.Fatalf("%d bytes, want at most %d", len(buf), a.Bytes())
		}
		lengths[len(buf)] = true
		if len(buf) > 0 {
			first[buf[0]] = true
		}
	}
	// 10 000 draws of 201 lengths, 5 000 of 256 bytes: the chance that one is missing is below 1e-6.
	if len(lengths) != 201 || len(first) != 256 {
		t.Errorf("%d lengths, %d first bytes, want 201 and 256", len(lengths), len(first))
	}
}

// Datagrams of different lengths are sent with their own.
func TestSendNoise(t *testing.T) {
	c, to := listen(t, "127.0.0.1:0")
	noise, err := NewNoise(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	twin, err := NewNoise(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	r, err := Send(t.Context(), SendConfig{To: to, Count: n, burst: 10, sockets: 1}, noise)
	if err != nil {
		t.Fatal(err)
	}
	total := uint64(0)
	buf := make([]byte, 2048)
	for i := range n {
		m, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		total += uint64(m)
		if want := twin.NextFrom(i/10%twin.Exporters(), nil); !bytes.Equal(buf[:m], want) {
			t.Fatalf("datagram %d is %x, want %x", i, buf[:m], want)
		}
	}
	if r.Sent != n || r.Bytes != total {
		t.Errorf("Send: %+v, want %d datagrams of %d bytes", r, n, total)
	}
	if _, err := Send(t.Context(), SendConfig{To: to, Count: n, segment: true}, noise); err == nil {
		t.Error("Send cut datagrams of different lengths out of one buffer")
	}
}
