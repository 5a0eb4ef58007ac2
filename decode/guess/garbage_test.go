package guess

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// report05 is a report 0.5 about a UDP packet with DSCP 0x17. The packet carries an INT header of a version, with two
// items of three hops.
func report05(seq uint32, version byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(be.AppendUint32([]byte{0, 0x20, 0, 1}, seq), 1_000_000+1000*seq)
	b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)
	const words = 1 + 2 + 3*2 + 1
	ip := []byte{0x45, 0x17 << 2, 0, 20 + 8 + 4*words, 0, byte(seq), 0, 0, 64, 17, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2}
	b = append(append(b, ip...), 0x0f, 0xa0, 0x13, 0x89, 0, 8+4*words, 0, 0)
	b = append(b, 1, 0, words, 0, version<<4, 2, 8, 3, 0xa0, 0, 0, 0)
	for hop := uint32(3); hop > 0; hop-- {
		b = be.AppendUint32(be.AppendUint32(b, hop), 1000+hop)
	}
	return append(b, 17, 0x13, 0x89, 0)
}

// TestGarbage holds that no laxer dialect, which skips bytes, is adopted for garbage. This is reports around an INT
// of an invalid version, cut or not, or around random bytes. They fail, and a sentence names their exporter. If half
// of them are good, the result is the same.
func TestGarbage(t *testing.T) {
	const n = 60
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(b []byte, from int) []byte {
		for i := from; i < len(b); i++ {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	const inner, shim = 12, 12 + 14 + 20 + 8
	cases := map[string]func(i uint32) []byte{
		"random bytes in place of INT":        func(i uint32) []byte { return random(report05(i, 0), shim+4) },
		"random bytes in place of the packet": func(i uint32) []byte { return random(report05(i, 0), inner) },
		"half of them good":                   func(i uint32) []byte { return report05(i, byte(i%2*9)) },
		"cut in the stack":                    func(i uint32) []byte { return report05(i, 9)[:shim+4+8+6] },
	}
	for v := byte(1); v < 16; v++ {
		cases[fmt.Sprintf("version %d", v)] = func(i uint32) []byte { return report05(i, v) }
	}
	src := decode.AddrFrom4([]byte{192, 0, 2, 2})
	for name, bytes := range cases {
		t.Run(name, func(t *testing.T) {
			f := follow(t, true)
			malformed := 0
			for i := range uint32(n) {
				x := Sample{Link: Datagram, Src: src, Data: bytes(i), Time: int64(1e18) + int64(i)*1e8}
				x.Length = len(x.Data)
				if changes := f.frames([]Sample{x}); len(changes) > 0 {
					t.Fatalf("%s is adopted", changes[0].Profile.Name)
				}
				for _, r := range f.batch.Reports {
					if r.Err.Reason != 0 {
						malformed++
					}
				}
			}
			f.watch.Finish()
			want := n
			if strings.HasPrefix(name, "half") {
				want = n / 2
			}
			if malformed != want {
				t.Errorf("%d malformed, want %d", malformed, want)
			}
			got := f.watch.Findings()
			if len(got) != 1 || got[0].Src != src || got[0].State != Unknown || !strings.Contains(got[0].String(), src.String()) {
				t.Errorf("findings %v, want one that %s is not read", got, src)
			}
		})
	}
}

// TestMost holds that where no profile explains all, the one is named that explains most.
func TestMost(t *testing.T) {
	list := datagrams(pcap(t, "testdata/onos-int10-reports"))
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range list {
		if i%4 == 0 {
			list[i].Data = append([]byte(nil), list[i].Data...)
			for k := 16; k < len(list[i].Data); k++ {
				list[i].Data[k] = byte(rng.Uint32())
			}
		}
	}
	f := follow(t, true)
	f.frames(list)
	f.watch.Finish()
	got := f.watch.Findings()
	if len(got) != 1 || got[0].State != Unknown || !strings.Contains(got[0].String(), "onos explains") {
		t.Errorf("findings %v, want one that names onos", got)
	}
}
