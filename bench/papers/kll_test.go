package papers_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	ddlib "github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/apache/datasketches-go/common"
	datasketches "github.com/apache/datasketches-go/kll"

	"github.com/hopscope/hopscope/sketches/quantile"
)

const many = 100_000

func codes() (v [8192]uint16) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = quantile.Encode(uint64(8000 + r.ExpFloat64()*4000))
	}
	return v
}

func permutation() []int { return rand.New(rand.NewPCG(2, 2)).Perm(many) }

// sketch is the common interface of the contestants. Calls through it cost all of them the same.
type sketch interface{ Update(v uint16) }

type theirs struct {
	s *datasketches.ItemsSketch[int64]
}

func (t theirs) Update(v uint16) { t.s.Update(int64(v)) }

type datadog struct{ s *ddlib.DDSketch }

func (d datadog) Update(v uint16) { _ = d.s.Add(float64(v) + 1) }

var contestants = []struct {
	name string
	new  func(seed int) sketch
}{
	{"hopscope-tiny", func(seed int) sketch { return &tiny{rng: quantile.Rand(seed)} }},
	{"datasketches-kll", func(int) sketch {
		s, err := datasketches.NewKllItemsSketchWithDefault[int64](common.ItemSketchLongComparator(false), common.ItemSketchLongSerDe{})
		if err != nil {
			panic(err)
		}
		return theirs{s}
	}},
	{"ddsketch", func(int) sketch {
		s, err := ddlib.NewDefaultDDSketch(0.01)
		if err != nil {
			panic(err)
		}
		return datadog{s}
	}},
	{"ddsketch-cubic", func(int) sketch {
		m, err := mapping.NewCubicallyInterpolatedMapping(0.01)
		if err != nil {
			panic(err)
		}
		return datadog{ddlib.NewDDSketch(m, store.NewCollapsingLowestDenseStore(2048), store.NewCollapsingLowestDenseStore(2048))}
	}},
}

type tiny struct {
	quantile.Tiny
	rng quantile.Rand
}

func (t *tiny) Update(v uint16) { t.Tiny.Update(v, &t.rng) }

// BenchmarkUpdate measures our quantile sketch against the libraries that people use, in one run and with the same
// values:
//
//	go test -run xx -bench Update -count 6 ./bench/papers
//
// Values are 16-bit log codes of latencies around 10 µs. "hot" updates one sketch that is never emptied;
// "hot/first=10000" starts again after 10 000 values; "many=100000" updates 100 000 sketches in random order, each of
// which already holds some 2 000 values. The libraries have the accuracy that they come with, which is better than
// that of 120 bytes.
func BenchmarkUpdate(b *testing.B) {
	v := codes()
	for _, c := range contestants {
		b.Run("hot/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			s, i := c.new(1), 0
			for b.Loop() {
				s.Update(v[i&8191])
				i++
			}
		})
	}
	for _, c := range contestants {
		b.Run("hot/first=10000/"+c.name, func(b *testing.B) {
			s, i := c.new(1), 0
			for b.Loop() {
				if i == 10_000 {
					s, i = c.new(1), 0
				}
				s.Update(v[i&8191])
				i++
			}
		})
	}
	for _, c := range contestants {
		b.Run(fmt.Sprintf("many=%d/%s", many, c.name), func(b *testing.B) {
			order := permutation()
			ss := make([]sketch, many)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range ss {
				ss[i] = c.new(i)
				for j := range 2000 + i%16 {
					ss[i].Update(v[(i+j)&8191])
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			i := 0
			for b.Loop() {
				ss[order[i]].Update(v[i&8191])
				if i++; i == many {
					i = 0
				}
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "B/sketch")
		})
	}
}
