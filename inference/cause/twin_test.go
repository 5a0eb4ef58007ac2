package cause

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// twinStep is [Grouper.Step] with plain lists. It examines everything each time, and searches for the greatest saving.
// It shares with Step the explanations of findings, the costs of elements, and the names of causes.
func twinStep(g *Grouper, w *Window) {
	g.Windows++
	for _, c := range g.Causes {
		c.news, c.openBefore, c.previous = false, true, *c.Finding
	}
	fresh := twinObserve(g, w)
	young := slices.DeleteFunc(slices.Clone(g.Alone), func(a *Alone) bool { return g.Windows > a.Born+4 })
	pool := slices.Concat(g.Alone, fresh)
	if len(fresh)+len(young) == 0 { // nothing is new, and nothing waits
		pool = nil
	}
	g.scene = &Scene{Map: w.Map, Shown: map[inference.Element]Signs{}, Seen: w.Seen}
	for _, a := range slices.Concat(g.Alone, fresh) {
		a.past = a.Finding.End != 0 && a.Quiet > w.Settle
		began := slices.ContainsFunc(slices.Concat(young, fresh), func(b *Alone) bool { return b.Late > 0 && b.Born-b.Late <= a.Born+10 })
		if !a.past || began || g.Windows <= a.Born+10 {
			g.scene.Show(&a.Finding)
		}
	}
	for _, c := range g.Causes {
		for _, x := range c.Shown {
			g.scene.Shown[x.Element] |= x.Signs
		}
	}
	for _, a := range pool {
		a.fits = fits(&a.Finding, g.scene, sortOf(&a.Finding))
	}
	g.around.fill(g.Windows, w.Map, g.Causes, pool, w.Open)
	for _, a := range pool {
		a.fits = g.around.more(a, g.scene)
		if _, a.alone = g.scene.best(a.fits); a.Finding.Element.Kind == inference.NoElement {
			a.alone = 2
		}
	}
	twinChoose(g, w, pool, slices.Concat(young, fresh))
	g.around = around{}
	g.Alone = slices.DeleteFunc(slices.Concat(g.Alone, fresh), func(a *Alone) bool { return a.taken })
	for _, a := range pool {
		a.fits, a.behind = nil, nil
	}
	var causes []*Cause
	for _, c := range g.Causes {
		if c.Quiet++; len(c.Open) > 0 {
			c.Quiet = 0
		}
		over := c.Quiet > w.Settle
		if c.news && !over {
			c.Finding.Resting = true
			for _, id := range c.Open {
				if f := w.Open(id); f != nil && !f.Resting {
					c.Finding.Resting = false
				}
			}
		}
		if over || c.news {
			c.describe(g, w)
		}
		f := c.Finding
		switch {
		case over:
			f.End = max(f.Start, w.Now-int64(c.Quiet-1)*w.Length)
			f.Text = "ended: " + f.Text
			w.Publish(*f)
			continue
		case c.news && (!c.openBefore || f.Severity > c.previous.Severity || f.Element != c.previous.Element || f.Resting != c.previous.Resting):
			w.Publish(*f)
		}
		causes = append(causes, c)
	}
	g.Causes = causes
	var left []*Alone
	for _, a := range g.Alone {
		if a.Finding.End != 0 {
			a.Quiet++
		}
		moved := a.Finding.Kind == inference.PathChanged && a.Finding.Severity != inference.Info
		if a.Quiet <= w.Settle || moved && g.Windows-a.Born < 60 {
			left = append(left, a)
		}
	}
	g.Alone = left
}

// twinHops are the hops of two lists, each once.
func twinHops(a, b []inference.HopKey) (out []inference.HopKey) {
	for _, h := range slices.Concat(a, b) {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

func twinObserve(g *Grouper, w *Window) (fresh []*Alone) {
	for _, a := range g.Alone {
		a.publishedAt = -1
		if more := w.Moved(a.Finding.ID); a.Finding.Kind == inference.StrangeDigests && len(more) > 0 && len(more) < len(a.Moved) {
			a.Moved = twinHops(nil, more)
		}
	}
	last := g.Last
	for i := range w.Published {
		f := &w.Published[i]
		g.Last = max(g.Last, f.ID)
		var known *Alone
		for _, a := range slices.Concat(g.Alone, fresh) {
			if a.Finding.ID == f.ID {
				known = a
			}
		}
		switch {
		case f.Cause != 0:
			for _, c := range g.Causes {
				if c.Finding.ID == f.Cause {
					if f.End != 0 {
						c.Open = slices.DeleteFunc(c.Open, func(id uint64) bool { return id == f.ID })
					}
					twinCount(c, f, 0)
				}
			}
		case known != nil:
			known.Finding, known.publishedAt, known.Moved = *f, i, twinHops(known.Moved, w.Moved(f.ID))
		case f.ID > last:
			a := &Alone{Finding: *f, Born: g.Windows, Moved: twinHops(nil, w.Moved(f.ID)), publishedAt: i}
			if f.Kind == inference.ExporterSilence && f.Value >= 1 && f.Value <= float64(g.Windows) {
				a.Born -= uint64(f.Value) - 1
			}
			if a.Late = w.Late(f.ID); a.Late > a.Born {
				a.Late = a.Born
			}
			fresh = append(fresh, a)
		}
	}
	slices.SortFunc(fresh, func(a, b *Alone) int { return cmp.Compare(a.Finding.ID, b.Finding.ID) })
	return fresh
}

// twinCount brings the tally of a kind up to date by all evidence that there was.
func twinCount(c *Cause, f *inference.Finding, more int) {
	k := slices.IndexFunc(c.Kinds, func(t Tally) bool { return t.Kind == f.Kind })
	if k < 0 {
		k = len(c.Kinds)
		c.Kinds = append(c.Kinds, Tally{Kind: f.Kind, Lead: *f, Severity: f.Severity})
	}
	t := &c.Kinds[k]
	t.Count += more
	t.Severity = max(t.Severity, f.Severity)
	switch worse := cmp.Or(cmp.Compare(f.Severity, t.Lead.Severity), cmp.Compare(t.Lead.ID, f.ID)); {
	case worse > 0, f.ID == t.Lead.ID && f.End == 0:
		t.Lead = *f
	}
	c.Finding.Learning = c.Finding.Learning && f.Learning
	c.news = true
}

// gap is how many windows ago a finding began.
func (a *Alone) gap(now uint64) uint64 {
	if a.Born >= now {
		return 0
	}
	return now - a.Born
}

func twinMisfit(fits []Fit, e inference.Element) (float64, bool) {
	for _, f := range fits {
		if f.Element == e {
			return f.Misfit, true
		}
	}
	return 0, false
}

// twinBegun returns the earliest window in which the last of the new findings began.
func twinBegun(g *Grouper, list []*Alone) uint64 {
	var at []uint64
	for _, a := range list {
		if g.Windows <= a.Born+4 {
			at = append(at, a.Born-a.Late)
			if a.Late == 0 {
				at = append(at, g.Windows)
			}
		}
	}
	if len(at) == 0 {
		return g.Windows
	}
	return slices.Max(at)
}

// twinSaves returns the saving by an element as a new cause of those that it explains, and which it takes.
func twinSaves(g *Grouper, e inference.Element, list []*Alone) (float64, []*Alone) {
	saved := -g.scene.price(e)
	var takes, strange []*Alone
	ready, ripe := false, false
	begun := twinBegun(g, slices.DeleteFunc(slices.Clone(list), func(a *Alone) bool {
		_, explains := twinMisfit(a.fits, e)
		return !explains || a.taken
	}))
	for _, a := range list {
		misfit, explains := twinMisfit(a.fits, e)
		gap := a.gap(begun)
		if !explains || a.taken || gap > 60 || gap > 10 && (misfit >= unlikely || a.past) {
			continue
		}
		if claim, is := g.claims[a]; is && claim != e {
			continue
		}
		less := a.alone - misfit - apart(gap)
		if less <= 0 {
			continue
		}
		saved += less
		takes = append(takes, a)
		wait := uint64(0)
		switch {
		case a.Finding.Kind == inference.StrangeDigests || a.unexplained:
			wait = 4
		case lessens(a.Finding.Kind) || ofFlow(&a.Finding):
			wait = 2
		}
		waited := a.Born+wait <= g.Windows
		ready = ready || waited
		if a.Finding.Kind == inference.StrangeDigests {
			strange, ripe = append(strange, a), ripe || waited
		}
	}
	if len(strange) >= 2 {
		var common []inference.HopKey
		for _, h := range strange[0].Moved {
			if !slices.ContainsFunc(strange, func(a *Alone) bool { return !slices.Contains(a.Moved, h) }) {
				common = append(common, h)
			}
		}
		if len(common) == 1 && e == inference.ElementOfHop(inference.HopKey{Node: common[0].Node}) {
			ready, ripe = true, true
		}
	}
	if len(takes) < 2 || saved <= .05 || !ready || len(strange) > 0 && !ripe && e.Kind != inference.FlowElement {
		return 0, nil
	}
	return saved, takes
}

// twinJoins returns the saving if findings join an open cause, whose element is that of f then.
func twinJoins(g *Grouper, c *Cause, f Fit, list []*Alone) (float64, []*Alone) {
	_, was := g.scene.best(c.Fits)
	saved := was - g.scene.price(f.Element) - f.Misfit
	var takes []*Alone
	for _, a := range list {
		misfit, explains := twinMisfit(a.fits, f.Element)
		if !explains || a.taken || len(c.Open)+len(takes) >= maxEvidence {
			continue
		}
		more, ok := c.later(a)
		if less := a.alone - misfit - more; ok && less > .05 {
			saved += less
			takes = append(takes, a)
		}
	}
	if len(takes) == 0 || saved <= .05 {
		return 0, nil
	}
	return saved, takes
}

func twinChoose(g *Grouper, w *Window, pool, recent []*Alone) {
	g.claims = g.claim(byElement(pool)) // TestClaims holds these
	var offers savings
	offer := func(c *Cause) {
		for _, f := range c.Fits {
			if s, _ := twinJoins(g, c, f, recent); s > 0 {
				offers = append(offers, saving{f.Element, c, s})
			}
		}
	}
	elements := map[inference.Element]bool{}
	for _, a := range pool {
		for _, f := range a.fits {
			elements[f.Element] = true
		}
	}
	for e := range elements {
		if s, _ := twinSaves(g, e, pool); s > 0 {
			offers = append(offers, saving{e, nil, s})
		}
	}
	for _, c := range g.Causes {
		offer(c)
	}
	for len(offers) > 0 {
		k := 0
		for i := range offers {
			if offers.Less(i, k) {
				k = i
			}
		}
		top := offers[k]
		offers = slices.Delete(offers, k, k+1)
		c, saves, takes := top.cause, 0.0, []*Alone(nil)
		if c == nil {
			saves, takes = twinSaves(g, top.element, pool)
		} else if misfit, explains := twinMisfit(c.Fits, top.element); explains {
			saves, takes = twinJoins(g, c, Fit{top.element, misfit}, recent)
		}
		if saves < top.saves-1e-9 { // it saves less than it did
			if saves > 0 {
				offers = append(offers, saving{top.element, c, saves})
			}
			continue
		}
		if c == nil {
			if len(g.Causes) == maxCauses {
				continue
			}
			c = twinStart(g, w, takes)
		} else {
			for _, a := range takes {
				more, _ := c.later(a)
				c.Fits = twinBoth(c.Fits, a.fits, more)
				twinAdd(g, w, c, a)
			}
		}
		offer(c)
	}
	g.claims = nil
}

func twinBoth(a, b []Fit, more float64) (out []Fit) {
	for _, f := range a {
		if misfit, explains := twinMisfit(b, f.Element); explains {
			out = append(out, Fit{f.Element, f.Misfit + misfit + more})
		}
	}
	return out
}

func twinStart(g *Grouper, w *Window, takes []*Alone) *Cause {
	slices.SortFunc(takes, func(a, b *Alone) int { return cmp.Compare(a.Finding.ID, b.Finding.ID) })
	c := &Cause{Born: g.Windows, Last: g.Windows}
	start := int64(math.MaxInt64)
	for i, a := range takes {
		c.Born, start = min(c.Born, a.Born), min(start, a.Finding.Start)
		fits := slices.Clone(a.fits)
		for k := range fits {
			fits[k].Misfit += apart(a.gap(twinBegun(g, takes)))
		}
		if i == 0 {
			c.Fits = fits
		} else {
			c.Fits = twinBoth(c.Fits, fits, 0)
		}
	}
	first := &takes[0].Finding
	c.Finding = w.Start(inference.Finding{Kind: first.Kind, Start: start, Updated: w.Now, Element: first.Element, Learning: true})
	g.Causes = append(g.Causes, c)
	for _, a := range takes {
		twinAdd(g, w, c, a)
	}
	return c
}

func twinAdd(g *Grouper, w *Window, c *Cause, a *Alone) {
	f, open := &a.Finding, w.Open(a.Finding.ID)
	a.taken, f.Cause = true, c.Finding.ID
	if open != nil {
		open.Cause = c.Finding.ID
	}
	switch {
	case a.publishedAt >= 0:
		w.Published[a.publishedAt].Cause = c.Finding.ID
	case open != nil:
		*f = *open
		w.Publish(*f)
	default:
		w.Publish(*f)
	}
	c.Last, c.Quiet = g.Windows, 0
	c.Finding.Evidence++
	if f.End == 0 {
		c.Open = append(c.Open, f.ID)
	}
	if f.FlowText() != "" && len(c.Flows) < maxFlows && !slices.Contains(c.Flows, f.Flow) {
		c.Flows = append(c.Flows, f.Flow)
	}
	if !passes(f) {
		c.Moved = twinHops(c.Moved, a.Moved)
	}
	c.show(f)
	twinCount(c, f, 1)
}

// state returns the published findings of a grouper and its state.
func (s *stage) state() (out []any) {
	out = append(out, s.g.Windows, s.g.Last)
	for _, c := range s.g.Causes {
		out = append(out, *c.Finding, c.Fits, c.Last, c.Quiet, c.Born, slices.Clone(c.Open), slices.Clone(c.Kinds), c.Flows, c.Moved, slices.Clone(c.Shown))
	}
	for _, a := range s.g.Alone {
		out = append(out, a.Finding, a.Born, a.Quiet, a.Moved)
	}
	return out
}

// TestTwin runs groupers and twins through random histories of all kinds of findings. Some become worse, name less of
// their way, wait for others, or come from long ago. Both publish the same in each window, and hold the same.
func TestTwin(t *testing.T) {
	kinds := map[inference.Kind]int{}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		a, b := newStage(t), newStage(t)
		b.step = twinStep
		ways := map[inference.HopKey][]inference.HopKey{}
		for range r.IntN(30) {
			from := inference.HopKey{Node: 1 + r.Uint32N(9), EgressIf: 1 + r.Uint32N(9)}
			ways[from] = append(ways[from], inference.HopKey{Node: 1 + r.Uint32N(9), EgressIf: 1 + r.Uint32N(9)})
		}
		judged := r.IntN(3) // of the interfaces
		for _, s := range []*stage{a, b} {
			if seed%2 == 0 {
				s.shuffle = rand.New(rand.NewPCG(seed, 6))
			}
			s.network.ahead = ways
			s.settle = 1 + int(seed%4)
			s.seen = func(e inference.Element) Signs {
				if e.Kind == inference.InterfaceElement && int(e.Node+e.EgressIf)%3 < judged {
					return Slow | Queues | More | Fewer | Silent
				}
				return 0
			}
		}
		var open []uint64
		for range 120 {
			for range max(0, r.IntN(8)-r.IntN(8)*(1+int(seed%3))) {
				f := twinFinding(r)
				kinds[f.Kind]++
				hops := make([]inference.HopKey, r.IntN(4))
				for i := range hops {
					hops[i] = inference.HopKey{Node: 1 + r.Uint32N(4), EgressIf: r.Uint32N(3)}
				}
				a.moved[a.id+1], b.moved[b.id+1] = hops, hops
				if r.IntN(3) == 0 {
					a.late[a.id+1] = r.Uint64N(40)
					b.late[b.id+1] = a.late[a.id+1]
				}
				id := a.starts(f)
				if other := b.starts(f); other != id {
					t.Fatalf("seed %d: finding %d is %d of the twin", seed, id, other)
				}
				open = append(open, id)
			}
			var news []uint64
			for _, id := range open {
				f, g := a.open[id], b.open[id]
				switch {
				case f.Updated > a.now: // it is new
				case r.IntN(8) == 0:
					a.ends(id)
					b.ends(id)
					continue
				case r.IntN(10) == 0:
					f.Severity = max(f.Severity, inference.Severity(r.IntN(3)))
					f.Updated, f.Value = a.now+1, r.Float64()
					g.Severity, g.Updated, g.Value = f.Severity, f.Updated, f.Value
					a.news, b.news = append(a.news, *f), append(b.news, *g)
				case r.IntN(6) == 0:
					f.Resting, f.Updated = !f.Resting, a.now+1
					g.Resting, g.Updated = f.Resting, f.Updated
					a.news, b.news = append(a.news, *f), append(b.news, *g)
				case r.IntN(6) == 0 && len(a.moved[id]) > 0:
					a.moved[id] = a.moved[id][1:]
					b.moved[id] = a.moved[id]
				case r.IntN(6) == 0 && len(a.moved[id]) > 0:
					a.moved[id] = slices.Clone(a.moved[id])
					a.moved[id][0].Node = 1 + r.Uint32N(9)
					b.moved[id] = a.moved[id]
				case r.IntN(4) == 0: // without a publication
					f.Value = r.Float64()
					g.Value = f.Value
				}
				news = append(news, id)
			}
			open = news
			reported, want := a.window(), b.window()
			if !reflect.DeepEqual(reported, want) {
				t.Fatalf("seed %d, window %d: published\n%s\nwant\n%s", seed, a.now, lines(reported), lines(want))
			}
			if got, want := a.state(), b.state(); !reflect.DeepEqual(got, want) {
				for k := range min(len(got), len(want)) {
					if !reflect.DeepEqual(got[k], want[k]) {
						t.Fatalf("seed %d, window %d: %+v, want %+v", seed, a.now, got[k], want[k])
					}
				}
				t.Fatalf("seed %d, window %d: %d values, want %d", seed, a.now, len(got), len(want))
			}
		}
	}
	if len(kinds) < 12 {
		t.Errorf("kinds %v", kinds)
	}
}

func lines(list []inference.Finding) (out string) {
	for i := range list {
		out += fmt.Sprintf("%+v\n", list[i])
	}
	return out
}

// twinFinding is a finding of any kind at a few places.
func twinFinding(r *rand.Rand) inference.Finding {
	n, p := 1+r.Uint32N(4), 1+r.Uint32N(4)
	flow := fmt.Sprintf("flow 10.0.0.%d:1 > 10.0.0.2:2 tcp", 1+r.IntN(6))
	port := fmt.Sprintf("interface %d:%d", n, p)
	node := fmt.Sprintf("node %d", n)
	all := []inference.Finding{
		at(inference.HighLatency, port), at(inference.HighQueue, port), at(inference.HighUtilization, port), at(inference.LowUtilization, port), at(inference.HopSilence, port),
		at(inference.HighLatency, node), at(inference.PacketDrops, node), at(inference.StrangeDigests, node), at(inference.RoutingLoop, node),
		at(inference.PathChanged, fmt.Sprintf("link %d–%d", n, p)), at(inference.PacketLoss, fmt.Sprintf("link %d–%d", n, p)),
		at(inference.PathChanged, flow), at(inference.StrangeDigests, flow), at(inference.StrangeDigests, flow), at(inference.HighLatency, flow), at(inference.BlackHole, flow),
		at(inference.ExporterSilence, fmt.Sprintf("exporter 10.0.1.%d node %d hardware 0", n, n)),
		at(inference.ExporterLoss, fmt.Sprintf("exporter 10.0.1.%d node %d hardware 1", n, n)),
		at(inference.ExporterSilence, fmt.Sprintf("exporter 10.0.2.%d", n)), {Kind: inference.PathChanged, Text: "many"},
	}
	f := all[r.IntN(len(all))]
	f.Severity, f.Learning, f.Value = inference.Severity(r.IntN(3)), r.IntN(2) == 0, float64(r.IntN(40))
	f.Start = r.Int64N(4)
	return f
}

// TestBounds: a grouper at its bounds begins one cause more, and remembers one finding more, and no other.
func TestBounds(t *testing.T) {
	s := newStage(t)
	for k := range maxCauses - 1 {
		s.g.Causes = append(s.g.Causes, &Cause{Finding: &inference.Finding{ID: uint64(k + 1)}, Open: []uint64{uint64(k + 1)}})
	}
	for k := range maxAlone - 1 {
		s.g.Alone = append(s.g.Alone, &Alone{Finding: inference.Finding{ID: uint64(k + 1)}})
	}
	s.g.Windows, s.g.Last, s.id = 100, maxAlone, maxAlone
	for _, e := range []string{"interface 4:1", "interface 7:8"} {
		s.starts(at(inference.HighQueue, e))
		s.starts(at(inference.HighLatency, e))
	}
	s.now++
	s.g.Step(&Window{
		Now: 1, Length: 1, Settle: 3, Published: s.news, Map: s.network,
		Moved:   func(uint64) []inference.HopKey { return nil },
		Open:    func(uint64) *inference.Finding { return nil },
		Start:   func(f inference.Finding) *inference.Finding { return &f },
		Publish: func(inference.Finding) {},
	})
	if len(s.g.Causes) != maxCauses || len(s.g.Alone) != maxAlone {
		t.Errorf("%d causes and %d findings alone, want %d and %d", len(s.g.Causes), len(s.g.Alone), maxCauses, maxAlone)
	}
}

// TestPublishedTwice: a finding that begins and becomes worse in one window is one finding.
func TestPublishedTwice(t *testing.T) {
	s := newStage(t)
	id := s.starts(at(inference.HighQueue, "interface 4:1"))
	worse := *s.open[id]
	worse.Severity = inference.Critical
	var g Grouper
	g.Step(&Window{
		Now: 1, Length: 1, Settle: 3, Published: append(s.news, worse), Map: s.network,
		Moved:   func(uint64) []inference.HopKey { return nil },
		Open:    func(uint64) *inference.Finding { return &worse },
		Start:   func(f inference.Finding) *inference.Finding { return &f },
		Publish: func(inference.Finding) {},
	})
	if len(g.Causes) > 0 || len(g.Alone) != 1 || g.Alone[0].Finding.Severity != inference.Critical {
		t.Errorf("%d causes and %d findings alone", len(g.Causes), len(g.Alone))
	}
}

// TestTidy: of an element that explains a finding in several ways the best one counts.
func TestTidy(t *testing.T) {
	a, b := at(0, "node 1").Element, at(0, "node 2").Element
	if got, want := tidy([]Fit{{b, .5}, {a, .7}, {b, .2}, {a, .9}, {b, .3}, {a, .1}}), []Fit{{a, .1}, {b, .2}}; !slices.Equal(got, want) {
		t.Errorf("tidy gives %v, want %v", got, want)
	}
}

// TestClaims compares the claims with all sets of elements. Findings that have an element in common are assigned to the
// set that costs the least, each to the element that it fits best. Parts beyond the bounds are left out.
func TestClaims(t *testing.T) {
	claimed, left, large, many := 0, 0, 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 6))
		g := &Grouper{Windows: 100, scene: &Scene{Map: fabric{}, Shown: map[inference.Element]Signs{}}}
		elements := make([]inference.Element, 2+r.IntN(8))
		if seed%50 == 7 {
			elements = make([]inference.Element, 20)
		}
		for i := range elements {
			elements[i] = at(0, fmt.Sprintf([]string{"node %d", "interface %d:1", "link %d–99"}[r.IntN(3)], i+1)).Element
		}
		slices.SortFunc(elements, inference.Element.Compare)
		var pool []*Alone
		n := 2 + r.IntN(10)
		if seed%20 == 0 {
			n = 64 + int(seed/20%3)
		} else if len(elements) > 12 {
			n = 30
		}
		value := r.Float64
		if seed%3 == 0 { // many are equal
			value = func() float64 { return float64(r.IntN(3)) / 4 }
		}
		for k := range n {
			a := &Alone{Finding: inference.Finding{ID: uint64(k + 1), Kind: inference.HighLatency}, Born: 100 - uint64(r.IntN(2)*r.IntN(70)), alone: 2 + value(), taken: n < 64 && r.IntN(12) == 0}
			for _, e := range elements {
				if r.IntN(3) == 0 || n >= 64 && e == elements[0] {
					a.fits = append(a.fits, Fit{e, value()})
				}
			}
			pool = append(pool, a)
		}
		claims := g.claim(byElement(pool))
		for range 3 {
			if second := g.claim(byElement(pool)); !maps.Equal(claims, second) {
				t.Fatalf("seed %d: claims are %v, and then %v", seed, claims, second)
			}
		}
		for a := range claims {
			if a.taken {
				t.Fatalf("seed %d: finding %d is claimed, and taken", seed, a.Finding.ID)
			}
		}
		var rivals []inference.Element
		saves := map[inference.Element]float64{}
		for _, e := range elements {
			if s, takes := twinSaves(g, e, pool); s > 0 && len(takes) <= mostFindings {
				rivals, saves[e] = append(rivals, e), s
			}
		}
		for len(rivals) > 0 {
			part := []inference.Element{rivals[0]}
			rivals = rivals[1:]
			var findings []*Alone
			for grown := true; grown; {
				findings = nil
				for _, a := range pool {
					if !a.taken && slices.ContainsFunc(part, func(e inference.Element) bool { _, is := twinMisfit(a.fits, e); return is }) {
						findings = append(findings, a)
					}
				}
				grown = false
				rivals = slices.DeleteFunc(rivals, func(e inference.Element) bool {
					near := slices.ContainsFunc(findings, func(a *Alone) bool { _, is := twinMisfit(a.fits, e); return is })
					if near {
						part, grown = append(part, e), true
					}
					return near
				})
			}
			if len(findings) > mostFindings {
				large++
			}
			if len(part) > mostCandidates {
				slices.SortFunc(part, func(a, b inference.Element) int { return cmp.Compare(saves[b], saves[a]) })
				if part = part[:mostCandidates]; seed%3 > 0 && len(findings) <= mostFindings {
					many++
				}
			}
			cost := func(set []inference.Element) (sum float64) {
				for _, e := range set {
					sum += g.scene.price(e)
				}
				for _, a := range findings {
					least := a.alone
					for _, e := range set {
						if misfit, is := twinMisfit(a.fits, e); is && a.gap(100) <= 60 && (a.gap(100) <= 10 || misfit < unlikely) {
							least = min(least, misfit+apart(a.gap(100)))
						}
					}
					sum += least
				}
				return sum
			}
			least, size := math.Inf(1), 0
			for set := range uint(1) << len(part) {
				var list []inference.Element
				for i, e := range part {
					if set>>i&1 == 1 {
						list = append(list, e)
					}
				}
				if c := cost(list); c < least-1e-9 {
					least, size = c, len(list)
				}
			}
			var has []inference.Element
			for _, a := range findings {
				if e, is := claims[a]; is && !slices.Contains(has, e) {
					has = append(has, e)
				}
			}
			if len(part) < 2 || len(findings) > mostFindings || size < 2 {
				if left++; len(has) > 0 {
					t.Fatalf("seed %d: of %d findings of %v some are claimed by %v, want none", seed, len(findings), part, has)
				}
				continue
			}
			claimed++
			if size <= mostTogether && math.Abs(cost(has)-least) > 1e-9 {
				t.Fatalf("seed %d: %v claim findings of %v and cost %g, the best %d cost %g", seed, has, part, cost(has), size, least)
			}
			for _, a := range findings {
				e, is := claims[a]
				mine, gap := a.alone, a.gap(100)
				if misfit, explains := twinMisfit(a.fits, e); is && !explains {
					t.Fatalf("seed %d: finding %d is claimed by %v, which does not explain it", seed, a.Finding.ID, e)
				} else if is {
					mine = misfit + apart(gap)
				}
				for _, other := range has {
					misfit, explains := twinMisfit(a.fits, other)
					if explains && gap <= 60 && (gap <= 10 || misfit < unlikely) && misfit+apart(gap) < mine-1e-9 {
						t.Fatalf("seed %d: finding %d costs %g as it is claimed, and %g with %v", seed, a.Finding.ID, mine, misfit+apart(gap), other)
					}
				}
			}
		}
	}
	if claimed < 100 || left < 100 || large < 5 || many < 3 {
		t.Errorf("%d parts are claimed, %d are not, %d of them too large; %d have more elements than are tried", claimed, left, large, many)
	}
}

// TestBegun holds when a finding begins, and how long before a cause that it belongs to.
func TestBegun(t *testing.T) {
	g := &Grouper{Windows: 100}
	for value, want := range map[float64]uint64{0: 100, .5: 100, 1: 100, 2: 99, 99: 2, 100: 1, 101: 100} { // windows of silence
		f := inference.Finding{Kind: inference.ExporterSilence, Value: value}
		if got := g.born(&f); got != want {
			t.Errorf("silent for %g windows: began in window %d, want %d", value, got, want)
		}
		if f.Kind = inference.ExporterLoss; g.born(&f) != 100 {
			t.Errorf("a loss of %g began in window %d", value, g.born(&f))
		}
	}
	e := at(0, "node 1").Element
	for _, tt := range []struct {
		gap    uint64
		misfit float64
		want   bool
	}{{0, 1, true}, {soon, 1, true}, {soon + 1, 1, false}, {soon + 1, unlikely, false}, {soon + 1, unlikely - .01, true}, {longest, 0, true}, {longest + 1, 0, false}} {
		a := &Alone{Born: g.Windows - tt.gap, fits: []Fit{{e, tt.misfit}}}
		if got := a.begunWith(g.Windows, e); got != tt.want {
			t.Errorf("%d windows before, with a misfit of %g: %t, want %t", tt.gap, tt.misfit, got, tt.want)
		}
	}
}
