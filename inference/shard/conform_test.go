package shard

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/plain"
)

func ways(t testing.TB, rules ...inference.PolicyRule) *inference.Policy {
	t.Helper()
	p, err := inference.NewPolicy(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// straysOf returns the flows off their way in a window.
func straysOf(states []*State, end int64) []inference.Stray {
	var p window.Partial
	for _, s := range states {
		c := s.Cut(end)
		c.AddTo(&p)
		s.Recycle(c)
	}
	return p.Window(s0(states).Limits()).Strays
}

// Every flow off its way is counted once in each window in which it is seen, however flows are shared out over shards.
func TestConform(t *testing.T) {
	cfg := testConfig()
	one, four := []*State{New(cfg, 1)}, []*State{New(cfg, 2), New(cfg, 3), New(cfg, 4), New(cfg, 5)}
	rule := inference.PolicyRule{Name: "through 2", Via: [][]uint32{{2}}, Avoid: []uint32{7}}
	for _, s := range slices.Concat(one, four) {
		s.Judge(ways(t, rule))
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for window := range 4 {
		want := map[inference.StrayKey]inference.Stray{}
		reported := map[uint32]bool{}
		for i := range 3000 {
			flow := rng.Uint32N(200)
			at := int64(1e18) + int64(window*3000+i)
			path := [][]decode.Hop{ // a flow keeps to its way
				{hop(1, 1, 10), hop(2, 1, 10), hop(3, 1, 10)}, {hop(1, 2, 10), hop(3, 1, 10)}, {hop(1, 1, 10), hop(2, 3, 10), hop(7, 2, 10)},
			}[flow%3]
			r := stack(flow, at, path...)
			switch rng.IntN(10) {
			case 0: // a report without a path is passed over
				r = stack(flow, at, hop(7, 1, 10))
				r.Kind = decode.KindDrop
			case 1: // and so is a part of one
				r = stack(flow, at, path[1:]...)
				r.Flags = decode.Truncated
			default:
				if reported[flow] {
					break
				}
				reported[flow] = true
				key := inference.StrayKey{Rule: "through 2", Reason: inference.Missed, Node: 2}
				if flow%3 == 2 {
					key.Reason, key.Node = inference.Forbidden, 7
				}
				if flow%3 == 0 {
					break
				}
				s, known := want[key]
				s.StrayKey = key
				if s.Flows++; !known || r.Flow.Compare(&s.Flow) < 0 {
					s.Flow, s.Path = r.Flow, nil
					for i := range path {
						s.Path = append(s.Path, hopKey(&path[i]))
					}
				}
				want[key] = s
			}
			for _, s := range []*State{one[0], four[flow%4]} {
				s.Update([]*decode.Report{r})
			}
		}
		got, second := straysOf(one, int64(window+1)), straysOf(four, int64(window+1))
		if !reflect.DeepEqual(got, second) {
			t.Errorf("window %d: one shard reports %+v, four report %+v", window, got, second)
		}
		if len(got) != 2 || len(want) != 2 {
			t.Fatalf("window %d: %+v, want %+v", window, got, want)
		}
		for _, s := range got {
			if !reflect.DeepEqual(s, want[s.StrayKey]) {
				t.Errorf("window %d: %+v, want %+v", window, s, want[s.StrayKey])
			}
		}
	}
	for _, s := range one { // no policy, no strays
		s.Judge(nil)
		s.Update([]*decode.Report{stack(1, 1e18, hop(7, 1, 10))})
	}
	if got := straysOf(one, 9); len(got) != 0 {
		t.Errorf("without a policy: %+v", got)
	}
}

// A list of hops that is no way of a flow, or is not known whole, breaks no rule.
func TestConformSilent(t *testing.T) {
	cfg := testConfig()
	s := New(cfg, 1)
	s.Judge(ways(t, inference.PolicyRule{Name: "r", Via: [][]uint32{{2}}}))
	probe := stack(1, 1e18, hop(1, 1, 10))
	probe.Kind = decode.KindProbe
	cut := stack(2, 1e18, hop(1, 1, 10))
	cut.Flags = decode.Truncated
	s.Update([]*decode.Report{probe, cut, postcard(3, 1e18, 1, 64), postcard(3, 1e18, 3, 62)})
	if got := straysOf([]*State{s}, 1); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for i := range manyPostcards * 2 {
		s.Update([]*decode.Report{postcard(3, 1e18+int64(i), 1, 64), postcard(3, 1e18+int64(i), 3, 62)})
	}
	if got := straysOf([]*State{s}, 2); len(got) != 1 || got[0].Flows != 1 || !slices.Equal(pathNodes(got[0].Path), []uint32{1, 3}) {
		t.Errorf("of postcards: %+v", got)
	}
}

// Paths from digests are judged when they are certain, and not before.
func TestConformDigests(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	s, p, _, _ := newDigestState(t)
	path := []uint32{100, 101, 102, 103, 104, 109}
	s.Judge(ways(t, inference.PolicyRule{Name: "not 103", Avoid: []uint32{103}}))
	reported := 0
	for window := range 40 {
		for f := range 50 {
			for range 3 {
				s.Update([]*decode.Report{plain.RandomDigest(rng, p, f, path, 1e18)})
			}
		}
		for _, x := range straysOf([]*State{s}, int64(window+1)) {
			reported = int(x.Flows)
			if x.Node != 103 || !slices.Equal(pathNodes(x.Path), path) {
				t.Fatalf("window %d: %+v", window, x)
			}
		}
		certain := 0
		for _, f := range s.Flows(50) {
			if !f.Partial && f.Confidence > 0 && !slices.ContainsFunc(f.Hops, func(h inference.FlowHop) bool { return h.Inferred }) {
				certain++
			}
		}
		if reported > certain {
			t.Fatalf("window %d: %d flows are reported, and the paths of %d are certain", window, reported, certain)
		}
	}
	if reported != 50 {
		t.Errorf("%d of 50 flows are reported at last", reported)
	}
}

// A flow in use costs nothing more to judge but the walk along the rules, once a window.
func BenchmarkConform(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(testConfig(), 1)
			var rules []inference.PolicyRule
			for i := range n {
				rules = append(rules, inference.PolicyRule{Name: fmt.Sprint(i), Protocol: 200, Avoid: []uint32{9}})
			}
			s.Judge(ways(b, rules...))
			var batch []*decode.Report
			for f := range uint32(batchSize) {
				batch = append(batch, stack(f, 1e18, hop(1, 1, 10), hop(2, 1, 10), hop(3, 1, 10)))
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(batch) {
				s.Update(batch)
			}
		})
	}
}
