package quantile

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestBriefTailSize(t *testing.T) {
	if got := unsafe.Sizeof(BriefTail{}); got != 52 {
		t.Errorf("a brief sketch takes %d bytes, want 52", got)
	}
}

// A sketch that is held in few bytes whenever there is room for it is that of the same codes which never was.
func TestBriefTailTwin(t *testing.T) {
	g := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	held, added, lost := 0, 0, 0
	for run := range 2000 {
		var want, got Tail
		var b BriefTail
		isBrief, seed := true, Rand(g.Uint64())
		r, o := seed, seed
		d, scale := distributions[run%len(distributions)], float64(uint64(1)<<g.UintN(24))
		for most := 1 + g.IntN(60); want.Count() < 500; {
			codes := make([]uint16, g.IntN(most+1))
			for i := range codes {
				if codes[i] = Encode(uint64(scale * d.draw(g))); g.IntN(200) == 0 {
					codes[i] = uint16(g.UintN(Codes))
				}
			}
			want.Add(codes, &r)
			before := b
			switch {
			case isBrief && b.Add(codes):
				added++
			case isBrief:
				if b != before {
					t.Fatalf("Add(%d) reports false and leaves %+v, which was %+v", codes, b, before)
				}
				got = b.Tail()
				got.Add(codes, &o)
				if isBrief = b.Hold(&got); isBrief {
					held++
				} else if b != before {
					t.Fatalf("Hold(%+v) reports false and leaves %+v, which was %+v", got, b, before)
				}
			default:
				got.Add(codes, &o)
				isBrief = b.Hold(&got)
			}
			if isBrief {
				got = b.Tail()
			} else {
				lost++
			}
			if got != want || r != o {
				t.Fatalf("%s: after %d codes %+v, want %+v", d.name, want.Count(), got, want)
			}
		}
	}
	t.Logf("%d batches were added in place, %d after a look at the sketch, %d sketches were not brief", added, held, lost)
	if added == 0 || held == 0 || lost == 0 {
		t.Error("a case is missing")
	}
}

// Most sketches of 100 codes are brief, but for small numbers, many of which are equal.
func TestBriefTailRoom(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	const runs = 1000
	for _, d := range distributions {
		brief := 0
		for range runs {
			var s Tail
			var b BriefTail
			r := Rand(g.Uint64())
			codes := make([]uint16, 20)
			for range 5 {
				for i := range codes {
					codes[i] = Encode(uint64(d.draw(g)))
				}
				s.Add(codes, &r)
			}
			if b.Hold(&s) {
				brief++
			}
		}
		t.Logf("%s: %d of %d", d.name, brief, runs)
		if brief < runs/2 {
			t.Errorf("%s: %d sketches of %d are brief", d.name, brief, runs)
		}
	}
}
