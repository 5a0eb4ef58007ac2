package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/topo"
)

// methods are the compared methods, in the order of the columns. FANT's two deviations come first, with two pairs of
// limits. The suspects of "hopscope control" follow. The first are by lost rounds of the same probes and by times in
// switches. The second add values of hops and lines, the third findings about the switches' reports. The last one is
// a foreign program, if there is one.
var methods = []string{"FANT 1, 3", "FANT 3, 10", "ours, rounds", "ours, probes", "ours", "theirs"}

const (
	fantNarrow = iota
	fantWide
	oursRounds
	oursProbes
	oursAll
	theirs
	allMethods
)

// methods are those that are compared.
func (o *options) methods() []string {
	if o.Algorithm == nil {
		return methods[:theirs]
	}
	return methods
}

// soon is within how many cycles a fault is to be suspected.
const soon = 2

// suspects are the methods at work.
type suspects struct {
	fants  [2]*suspicion.Fant
	links  *steer.Links
	ours   [3]*steer.Suspects
	now    [allMethods][]int32 // links that are suspected, by method, sorted
	past   [allMethods][]int32
	found  [3][]control.Suspect // of the last cycle, by method of ours
	coming [][]int32            // suspects of a foreign program in all cycles that are to come; nil without one
}

func newSuspects(n *emu.Network, all []route, r *receiver) (*suspects, error) {
	g := n.Graph()
	lists, ids := make([][]int32, len(all)), make([]uint32, g.NumNodes())
	for i, r := range all {
		lists[i] = r
	}
	for i := range ids {
		ids[i] = n.NodeID(i)
	}
	x := &suspects{links: steer.NewLinks(g, ids)}
	for k, limits := range [2][2]float64{{1, 3}, {3, 10}} {
		x.fants[k] = suspicion.NewFant(g.NumInterfaces(), hopMetrics, lists, limits[0], limits[1])
	}
	probes := planned(g, all)
	passed, err := x.links.Route(probes)
	if err != nil {
		return nil, err
	}
	c := steer.Config{Suspicion: suspicion.DefaultConfig(), Links: x.links, Probes: probes, Passed: passed, Interval: probeEvery, Rounds: r}
	c.Suspicion.LatencyFloor, c.Suspicion.QueueFloor = float64(findings.EventsConfig().LatencyFloor), 6 // packets
	for k := range x.ours {
		if x.ours[k], err = steer.New(&c); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// planned are the probes as a plan has them.
func planned(g *topo.Graph, all []route) []planner.Probe {
	probes := make([]planner.Probe, len(all))
	for k, r := range all {
		p := &probes[k]
		p.ID = fmt.Sprintf("p%d", k+1)
		for h, i := range r {
			p.Nodes = append(p.Nodes, g.NodeName(g.Node(int(i))))
			if h < len(r)-1 {
				p.Ports = append(p.Ports, g.Port(int(i)))
			}
		}
		last := int(r[len(r)-1])
		p.Agent, p.Collector, p.CollectorPort = p.Nodes[0], p.Nodes[len(p.Nodes)-1], g.Port(last)
	}
	return probes
}

// cycle observes a cycle.
func (x *suspects) cycle(w *inference.Window, r *receiver, open []inference.Finding) {
	x.now, x.past = x.past, x.now
	for k, f := range x.fants {
		r.feed(f)
		x.now[fantNarrow+k] = f.AppendSuspicious(x.now[fantNarrow+k][:0])
	}
	observed := r.window(w.Start, w.End)
	for k, s := range x.ours {
		if oursRounds+k >= oursProbes {
			s.Feed.Observe(observed)
		}
		if oursRounds+k == oursAll {
			s.SetFindings(open)
		}
		list := x.now[oursRounds+k][:0]
		x.found[k] = s.Suspects(w.End)
		for _, s := range x.found[k] {
			if i, ok := x.links.Lookup(s.Link); ok {
				list = append(list, int32(i))
			}
		}
		slices.Sort(list)
		x.now[oursRounds+k] = list
	}
	x.now[theirs] = x.now[theirs][:0]
	if len(x.coming) > 0 {
		x.now[theirs], x.coming = append(x.now[theirs], x.coming[0]...), x.coming[1:]
	}
}

// fault is the result of the methods with a fault.
type fault struct {
	*scenario.Happening
	Links  []int32 // that its element touches
	counts bool    // something happened that could be seen
	enough int     // cycle from which on what happened was enough to be seen; 0 for never (see judge)
	plain  int     // the same without regard to other explanations of a loss, and 1 for other faults
	scores [allMethods]score
	losing losing
	shown  int // cycle in which it showed last
	forged forged

	touched bool // microburst: a probe was in it
}

// score is the result of a method with a fault.
type score struct {
	delay int // cycle in which a link of the fault was suspected first; 0 for never
	soon  tally
	ever  tally
	Plain [2]tally // the same where links that are in trouble without being the fault's are wrong, and cycles count from its beginning

	raised [2]map[int32]bool
	listed map[int32]bool
}

// tally counts links that were not suspected in the cycle before: those that the fault touches, and others, each once.
type tally struct{ right, wrong int }

// Detection is the result of one seed.
type Detection struct {
	faults []*fault
	Quiet  [allMethods]int // links that were raised before the first fault, after the warm-up
	Cycles int             // of that time
}

// warm is when detectors have learnt.
const warm = 70 * time.Second

// detect runs one seed, with the suspects of a foreign program in each cycle, if there is one.
func detect(ctx context.Context, o options, seed uint64, foreign [][]int32) (*Detection, error) {
	return o.emulate(ctx, seed, &detection{foreign: foreign})
}

// emulate lets the faults of one seed happen to d.
func (o *options) emulate(ctx context.Context, seed uint64, d *detection) (*Detection, error) {
	e := findings.NewEmulation(seed)
	e.Quiet, e.Pause, e.Names = o.Quiet, o.pause, o.Faults
	d.emulation, d.out, d.detector = &e, &Detection{}, events.New(findings.EventsConfig())
	e.Tune, e.Built, e.Probe = d.tune, d.built, func(g emu.Datagram) { d.receiver.receive(g) }
	out, err := e.Windows(ctx, d.window)
	if err == nil {
		err = d.err
	}
	if err != nil {
		return nil, err
	}
	for i, f := range d.out.faults {
		f.counts = !out.Faults[i].Idle && (f.touched || f.Name != "microburst")
	}
	return d.out, nil
}

// detection is a seed at work.
type detection struct {
	emulation *findings.Emulation
	network   *emu.Network
	receiver  *receiver
	places    *places
	truth     *truth
	forging   *fault // nil if none is among them
	suspects  *suspects
	detector  *events.Detector
	routes    []route
	out       *Detection
	foreign   [][]int32 // suspects of a foreign program, by cycle
	recording *problem  // the question for it, or nil
	err       error
}

// tune adds the probes.
func (d *detection) tune(c *emu.Config) {
	quiet := *c
	quiet.Script, quiet.ExtraFlows, quiet.OnFault = nil, nil, nil
	n, err := emu.New(quiet, d.emulation.Seed)
	if err == nil {
		d.routes, err = routes(n.Graph())
	}
	if err != nil {
		d.err = err
		return
	}
	c.Probes, c.Observe = configured(n.Graph(), d.routes), d.journey
}

func (d *detection) built(n *emu.Network, all []*scenario.Happening) {
	d.network, d.receiver, d.truth = n, newReceiver(n, d.routes), newTruth(n.Graph())
	d.places = newPlaces(n)
	for _, h := range all {
		f := &fault{Happening: h, Links: d.places.touched(h), enough: 1, plain: 1}
		if silent(f) {
			f.plain = 0
		}
		if silent(f) || gradual(f) || f.Name == forging {
			f.enough = 0
		}
		if f.Name == forging {
			d.forging = f
		}
		d.out.faults = append(d.out.faults, f)
	}
	if d.suspects, d.err = newSuspects(n, d.routes, d.receiver); d.err != nil {
		d.suspects = nil
		return
	}
	d.suspects.coming = d.foreign
	if d.recording != nil {
		d.recording.describe(n.Graph(), d.routes, d.emulation.Window)
	}
}

// window is a cycle.
func (d *detection) window(epoch int64, w *inference.Window) {
	if d.err != nil {
		return
	}
	now := time.Duration(w.End - epoch)
	d.receiver.expire(now)
	if d.recording != nil {
		d.recording.cycle(d.receiver)
	}
	d.detector.Step(w)
	d.places.flows(w)
	d.suspects.cycle(w, d.receiver, d.detector.Open())
	d.truth.cycle(d.quiet(now))
	d.score(now, w)
	d.receiver.clear()
}

// score assigns the suspects to the current fault.
func (d *detection) score(now time.Duration, w *inference.Window) {
	var f *fault
	for _, x := range d.out.faults {
		if now > x.From {
			f = x
		}
	}
	if f == nil {
		if now > warm {
			d.out.Cycles++
			for m := range methods {
				for _, l := range d.suspects.now[m] {
					if !contains(d.suspects.past[m], l) {
						d.out.Quiet[m]++
					}
				}
			}
		}
		return
	}
	cycle := int((now - f.From + d.emulation.Window - 1) / d.emulation.Window)
	d.judge(f, w, cycle)
	for m := range methods {
		f.scores[m].countCycle(f, cycle, d.suspects.now[m], d.suspects.past[m], now <= f.Until+soon*d.emulation.Window, d.truth.troubled)
	}
}

// quiet reports whether a cycle that ends now is one without a fault, long after the last one.
func (d *detection) quiet(now time.Duration) bool {
	const recovered = 5 * time.Second
	for _, f := range d.out.faults {
		if now > f.From && now-d.emulation.Window < f.Until+recovered {
			return false
		}
	}
	return true
}

func contains(list []int32, l int32) bool {
	_, there := slices.BinarySearch(list, l)
	return there
}

// countCycle counts a cycle. A link is right if the fault touches it, or if packets truly wait there.
func (s *score) countCycle(f *fault, cycle int, now, past []int32, lasts bool, troubled func(int32) bool) {
	if s.listed == nil {
		s.listed, s.raised = map[int32]bool{}, [2]map[int32]bool{{}, {}}
	}
	for _, l := range now {
		touched := slices.Contains(f.Links, l)
		if touched && s.delay == 0 && lasts {
			s.delay = cycle
		}
		if contains(past, l) && cycle > 1 || contains(past, l) && !touched {
			continue // it was suspected before the fault, or is counted
		}
		if !s.listed[l] {
			s.listed[l] = true
			s.Plain[1].add(touched)
			if cycle <= soon {
				s.Plain[0].add(touched)
			}
		}
		right := touched || troubled(l)
		for k, t := range []*tally{&s.soon, &s.ever} {
			if k == 0 && f.enough > 0 && cycle >= f.enough+soon || s.raised[k][l] {
				continue
			}
			s.raised[k][l] = true
			t.add(right)
		}
	}
}

func (t *tally) add(right bool) {
	if right {
		t.right++
	} else {
		t.wrong++
	}
}
