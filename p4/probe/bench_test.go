package probe

import "testing"

// BenchmarkAppendFrame fills in what is new in a round.
func BenchmarkAppendFrame(b *testing.B) {
	p := onePlan(INT21, false, 1, 2, 3, 4)
	for _, c := range []struct {
		name     string
		checksum bool
		digest   bool
	}{{"bare", false, false}, {"checksum", true, false}, {"digest", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			ends := testEnds
			if ends.Checksum = c.checksum; c.digest {
				ends.Digests = parserOf(keysOf(b, oneKey)).Keys
			}
			t, err := NewTemplate(p, &p.Probes[0], 5, &ends)
			if err != nil {
				b.Fatal(err)
			}
			var room [256]byte
			b.ReportAllocs()
			for b.Loop() {
				t.AppendFrame(room[:0], 42)
			}
		})
	}
}

// BenchmarkParse reads a probe that came over four switches.
func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name string
		keys *Keys
	}{{"checksum", nil}, {"digest", keysOf(b, oneKey)}} {
		b.Run(c.name, func(b *testing.B) {
			frame, ps := sealed(b, c.keys, 4), parserOf(c.keys)
			var a Arrival
			b.ReportAllocs()
			for b.Loop() {
				if why := ps.Parse(&a, frame); why != OK {
					b.Fatal(why)
				}
			}
		})
	}
}
