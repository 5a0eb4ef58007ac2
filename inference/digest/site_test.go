package digest

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/inference/survey"
	"github.com/hopscope/hopscope/internal/plain"
)

// unbased takes a base away from every node that a window or a flow names, and fails where one has none.
func unbased(t *testing.T, base uint32, windows []inference.Window, flows []inference.FlowStats) {
	t.Helper()
	receive := func(n *uint32) {
		if *n&^0xffffff != base {
			t.Fatalf("node %d is reported without its site", *n)
		}
		*n &^= base
	}
	path := func(p []inference.HopKey) {
		for i := range p {
			receive(&p[i].Node)
		}
	}
	flow := func(f *inference.FlowStats) {
		for i := range f.Hops {
			if !f.Hops[i].Unknown {
				receive(&f.Hops[i].Node)
			}
			f.Hops[i].Node &^= base
		}
		for i := range f.Others {
			for k := range f.Others[i].Nodes {
				receive(&f.Others[i].Nodes[k])
			}
		}
		for i := range f.Inseparable {
			for _, p := range f.Inseparable[i].Paths {
				for k := range p {
					receive(&p[k])
				}
			}
		}
		f.PathID = 0 // a hash of the nodes
	}
	for i := range windows {
		w := &windows[i]
		for k := range w.Hops {
			if !w.Hops[k].Other {
				receive(&w.Hops[k].Node)
			}
		}
		for k := range w.Flows {
			flow(&w.Flows[k])
		}
		for k := range w.Digests {
			if n := &w.Digests[k].Node; *n != 0 {
				receive(n)
			}
		}
		for k := range w.Paths {
			path(w.Paths[k].From)
			path(w.Paths[k].To)
			w.Paths[k].PathID = 0
		}
		for k := range w.Deviations {
			d := &w.Deviations[k]
			if d.Ingress != inference.NoNode {
				receive(&d.Ingress)
			}
			for m := range d.Errors {
				if e := &d.Errors[m]; e.Kind != inference.LowTTL {
					for _, n := range []*uint32{&e.A, &e.B, &e.Node} {
						if *n != inference.NoNode {
							*n &^= base
						}
					}
				}
			}
		}
	}
	for i := range flows {
		flow(&flows[i])
	}
}

// All values of digests are published for the nodes of their site: paths, their changes, mixtures, values of hops and
// errors of the map. They are those of a network of no site, with the site before each node.
func TestDigestsOfASite(t *testing.T) {
	const base = 7 << 24
	run := func(base uint32) (windows []inference.Window, flows []inference.FlowStats) {
		rng := rand.New(rand.NewPCG(3, 3))
		plan := plain.DigestPlan(t, 7)
		nodes, links := plain.Ring(40)
		model, err := prior.NewModel(prior.Config{Scheme: plan.Queries[0].Scheme, Nodes: nodes, Links: links, Routing: prior.None})
		if err != nil {
			t.Fatal(err)
		}
		d := Config{Plans: []Plan{{Plan: plan, Models: []*prior.Model{model, nil, nil}}}, Values: aggregation.DefaultConfig(), SprayBytes: 1 << 20, SearchIDs: 1 << 12, Base: base}
		d.Values.Hops = 400
		d.Plans[0].Loads = make([]*aggregation.LoadTracker, 3)
		s := newTable(t, d)
		paths := make([][]uint32, 12)
		for f := range paths {
			paths[f] = plain.RandomWalk(rng, nodes, links, 3+f%6)
		}
		now := int64(1e18)
		for w := range 12 {
			if w == 6 {
				paths[1] = plain.RandomWalk(rng, nodes, links, 5)
			}
			for range 150 {
				for f, path := range paths {
					now += 1000
					if f == 2 && rng.IntN(2) == 0 {
						path = paths[8] // as long, so that the flow is sprayed
					}
					s.update(plain.RandomDigest(rng, plan, f, path, now))
				}
			}
			windows = append(windows, s.window())
		}
		return windows, s.stats()
	}
	plain, plainFlows := run(0)
	windows, flows := run(base)
	unbased(t, base, windows, flows)
	unbased(t, 0, plain, plainFlows)
	if !reflect.DeepEqual(flows, plainFlows) {
		t.Errorf("flows of the site\n%+v\nwant\n%+v", flows, plainFlows)
	}
	changes, hops, others := 0, 0, 0
	for i := range windows {
		if !reflect.DeepEqual(windows[i], plain[i]) {
			t.Errorf("window %d of the site\n%+v\nwant\n%+v", i, windows[i], plain[i])
		}
		changes, hops = changes+len(windows[i].Paths), hops+len(windows[i].Hops)
	}
	for i := range flows {
		others += len(flows[i].Others)
	}
	if changes == 0 || hops == 0 || others == 0 {
		t.Errorf("%d changes, %d hops, %d other paths: not all is tried", changes, hops, others)
	}
}

// Errors of the map of a site name its nodes.
func TestSurveyOfASite(t *testing.T) {
	s, _, _, _ := newPlanTable(t, func(c *Config) { c.SearchIDs, c.Base = survey.DefaultIDs, 5<<24 })
	windows, _ := surveyed(t, true, s)
	last := &windows[len(windows)-1]
	errors, _ := survey.Decide(last.Deviations, 0)
	if len(errors) != 1 || errors[0].A != 5<<24|107 || errors[0].Node != 5<<24|914 || errors[0].Kind != inference.Renamed {
		t.Errorf("%+v of %d deviations", errors, len(last.Deviations))
	}
	unbased(t, 5<<24, windows, nil)
	for _, e := range []inference.MapError{{Kind: inference.LowTTL, Node: 254}, {Kind: inference.Unnamed, A: inference.NoNode, B: inference.NoNode}} {
		if e.Based(1<<24) != e {
			t.Errorf("%+v becomes %+v", e, e.Based(1<<24))
		}
	}
	if e := (inference.MapError{Kind: inference.Unlinked, A: 4, B: 9}).Based(1 << 24); e.A != 1<<24|4 || e.B != 1<<24|9 || e.Node != 0 {
		t.Errorf("%+v", e)
	}
}

// A sprayed flow of a site, too.
func TestSprayOfASite(t *testing.T) {
	reported := func(base uint32) (windows []inference.Window, flows []inference.FlowStats) {
		x := newSpraying(t, 5, 1<<20)
		x.s.d.base = base
		for range 5 {
			x.send(1, 600, x.over(4))
			windows = append(windows, x.window())
		}
		return windows, x.s.stats()
	}
	plain, plainFlows := reported(0)
	windows, flows := reported(3 << 24)
	unbased(t, 3<<24, windows, flows)
	unbased(t, 0, plain, plainFlows)
	if !reflect.DeepEqual(flows, plainFlows) || !reflect.DeepEqual(windows, plain) || len(flows[0].Others) != 3 {
		t.Errorf("of the site\n%+v\nwant\n%+v", flows, plainFlows)
	}
}

// Digests of another network are counted and not read.
func TestDigestsOfOthers(t *testing.T) {
	x := newSpraying(t, 1, 1<<20)
	x.s.d.read = func(r *decode.Report) bool { return r.Flow.SrcPort != 2 }
	one := func() []uint32 { return []uint32{0, 100, 1} }
	x.send(1, 100, one)
	x.send(2, 100, func() []uint32 { return []uint32{3, 107, 4} })
	w := x.window()
	if st := x.s.d.Stats(); st.Elsewhere != 100 || st.Digests != 200 || st.Unexplained != 0 || st.Unread != 0 || st.Decoded != 1 {
		t.Errorf("%+v", st)
	}
	for i := range w.Flows {
		if f := &w.Flows[i]; f.Packets != 100 || (len(f.Hops) == 3) != (f.Key.SrcPort == 1) {
			t.Errorf("%+v", f)
		}
	}
}
