package digest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/survey"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/plain"
)

// surveyed sends digests of flows over a ring whose node 107 calls itself 914, if it is renamed, and returns the windows.
func surveyed(t *testing.T, rename bool, states ...*table) (windows []inference.Window, watched int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 4))
	nodes, links := plain.Ring(40)
	p := plain.DigestPlan(t, 7)
	type flow struct {
		key  decode.FlowKey
		path []uint32
	}
	var flows []flow
	for i := range 24 {
		f := flow{path: plain.RandomWalk(rng, nodes, links, 6)}
		if !slices.Contains(f.path[1:5], 107) {
			for !slices.Contains(f.path[1:5], 107) {
				f.path = plain.RandomWalk(rng, nodes, links, 6)
			}
		}
		f.key = decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 1, byte(i), 1}), SrcPort: uint16(i), Proto: 17, IPVersion: 4}
		if rename {
			f.path[slices.Index(f.path, 107)] = 914
		}
		flows = append(flows, f)
	}
	now := int64(1e18)
	for range 8 {
		for range 60 {
			for i, f := range flows {
				r := plain.RandomDigest(rng, p, i, f.path, now)
				r.Flow = f.key
				states[i%len(states)].update(r)
				now += 1000
			}
		}
		var all window.Partial
		for _, s := range states {
			b, err := s.cut().AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			var read window.Partial
			if err := read.ReadBinary(b, window.Limits{Hops: 1e5, Flows: 1e5, Paths: 1e5, Drops: 1e5, Faults: 1e5, Deviations: 1e5}); err != nil {
				t.Fatal(err)
			}
			all.Merge(&read)
		}
		windows = append(windows, all.Window(window.NoLimits()))
	}
	for _, s := range states {
		watched += s.d.Stats().Watched
	}
	return windows, watched
}

// A node that calls itself otherwise is named from what shards saw, and the windows are the same whichever shard saw
// which flow.
func TestSurvey(t *testing.T) {
	make := func() *table {
		s, _, _, _ := newPlanTable(t, func(c *Config) { c.SearchIDs = survey.DefaultIDs })
		return s
	}
	one, _ := surveyed(t, true, make())
	three, _ := surveyed(t, true, make(), make(), make())
	last := len(one) - 1
	errors, _ := survey.Decide(one[last].Deviations, 0)
	if len(errors) != 1 || !strings.HasPrefix(errors[0].String(), "node 107 calls itself 914:") {
		t.Errorf("%v of %d deviations", errors, len(one[last].Deviations))
	}
	for i := range one {
		if a, b := one[i].Deviations, three[i].Deviations; !slices.EqualFunc(a, b, func(a, b inference.Deviation) bool {
			return a.Flow == b.Flow && a.Ingress == b.Ingress && a.Digests == b.Digests && a.Last == b.Last && slices.Equal(a.Errors, b.Errors)
		}) {
			t.Errorf("window %d: one shard says %+v, three say %+v", i, a, b)
		}
	}
	right, watched := surveyed(t, false, make())
	for _, w := range right {
		if len(w.Deviations) > 0 {
			t.Errorf("a right map: %+v", w.Deviations)
		}
	}
	if watched > 0 {
		t.Errorf("a right map: %d flows are watched", watched)
	}
}
