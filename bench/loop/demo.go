package loop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/bench/papers/digests"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/topo"
)

// demo is the network of "hopscope demo" under its control, in virtual time. It holds the directions of links that
// were suspected, and those that a fault of the script touched.
type demo struct {
	Seconds   int            `json:"seconds"`
	Suspected []demoSpan     `json:"suspected"`
	Faults    []demoSpan     `json:"faults"`
	Healthy   map[string]int `json:"healthy"`   // longest time that a direction was suspected without a fault there, cycles, where it is above 0
	Alike     map[string]int `json:"alike"`     // the same where all probes that cross it cross a faulty direction, too, and no others do
	Lingering map[string]int `json:"lingering"` // longest time that it stayed suspected after a fault there had ended, cycles
}

// demoSpan is a time of a direction of a link, in seconds.
type demoSpan struct {
	Link     string  `json:"link"`
	Why      string  `json:"why"`
	From, To float64 // s
}

// touches returns the directions that a fault of the script touches: those at its line or switch, and those of flows
// that it diverts. A fault of reports alone touches none.
func (d *demo) touches(g *topo.Graph, f emu.Fault) (list []int) {
	if strings.HasSuffix(f.Kind.String(), "reports") {
		return nil
	}
	if f.Kind == emu.DivertFlows {
		f.Peer = ""
	}
	for i := range g.NumInterfaces() {
		a, b := g.NodeName(g.Node(i)), "" // of the port of a host
		if j := g.Peer(i); j >= 0 {
			b = g.NodeName(g.Node(j))
		}
		at := a == f.Node && (f.Peer == "" || b == f.Peer)
		if at || b == f.Node && (f.Peer == "" || a == f.Peer) {
			list = append(list, i)
		}
	}
	return list
}

const demoStep = 20 * time.Millisecond

// runDemo lets time pass.
func runDemo(ctx context.Context, o options) (*demo, error) {
	seconds := int(o.Demo / time.Second)
	out := &demo{Seconds: seconds, Healthy: map[string]int{}, Alike: map[string]int{}, Lingering: map[string]int{}}
	cfg, err := scenario.PINTDemo()
	if err != nil {
		return nil, err
	}
	var s *steer.Emulated
	var now time.Duration
	on := map[int]int{}                         // faults at a direction at present
	since, last := map[int]int{}, map[int]int{} // cycle in which it was touched last, and cycles that it has been suspected since
	began := map[string]time.Duration{}
	cfg.OnFault = func(at time.Duration, f emu.Fault, begins bool) {
		for _, l := range out.touches(s.Network.Graph(), f) {
			name := s.Links.Name(l)
			if begins {
				on[l]++
				began[name+f.String()] = at
				continue
			}
			on[l]--
			out.Faults = append(out.Faults, demoSpan{name, f.String(), began[name+f.String()].Seconds(), at.Seconds()})
			delete(began, name+f.String())
		}
	}
	clock := func() int64 { return cfg.Epoch.UnixNano() + int64(now) + 1 }
	if s, err = steer.NewEmulated(cfg, o.Seed, nil, slog.New(slog.DiscardHandler), clock); err != nil {
		return nil, err
	}
	col, err := findings.NewDemoCollector(s.Network, &cfg)
	if err != nil {
		return nil, err
	}
	crossed := crossings(s.Config.Passed)
	open := map[string]*demoSpan{} // suspected at present
	cycle := 0
	for ; now < time.Duration(seconds)*time.Second; now += demoStep {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.Loop.Step(clock())
		s.Deliver()
		s.Network.Run(now+demoStep, col.Receive)
		if (now+demoStep)%steer.EmulatedCycle != 0 {
			continue
		}
		w, found := col.Window(now + demoStep)
		s.Suspects.Observe(w, found)
		if cycle++; cycle%60 == 0 && o.Progress != nil {
			o.Progress(fmt.Sprintf("minute %d", cycle/60))
		}
		for l, n := range on {
			if n > 0 {
				since[l] = cycle
			}
		}
		at := (now + demoStep).Seconds()
		seen := map[string]bool{}
		for _, x := range s.Loop.Controller().Status().Suspects {
			seen[x.Link] = true
			if open[x.Link] == nil {
				open[x.Link] = &demoSpan{Link: x.Link, Why: x.Why, From: at}
			}
			l, ok := s.Links.Lookup(x.Link)
			if !ok {
				continue
			}
			touched, ever := since[l]
			switch last[l]++; {
			case on[l] > 0:
				last[l] = 0
			case ever && cycle-touched == last[l]: // since the fault ended, without a break
				out.Lingering[x.Link] = max(out.Lingering[x.Link], last[l])
			case slices.ContainsFunc(slices.Collect(maps.Keys(since)), func(k int) bool {
				return cycle-since[k] <= last[l] && len(crossed[l]) > 0 && slices.Equal(crossed[k], crossed[l])
			}):
				out.Alike[x.Link] = max(out.Alike[x.Link], last[l])
			default:
				out.Healthy[x.Link] = max(out.Healthy[x.Link], last[l])
			}
		}
		for name, x := range open {
			if seen[name] {
				continue
			}
			if l, ok := s.Links.Lookup(name); ok {
				delete(last, l)
			}
			x.To = at
			out.Suspected = append(out.Suspected, *x)
			delete(open, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		open[name].To = float64(seconds)
		out.Suspected = append(out.Suspected, *open[name])
	}
	order := func(a, b demoSpan) int {
		if a.From != b.From {
			return int(math.Copysign(1, a.From-b.From))
		}
		return strings.Compare(a.Link, b.Link)
	}
	slices.SortFunc(out.Suspected, order)
	slices.SortFunc(out.Faults, order)
	return out, nil
}

// crossings returns the probes that cross each direction.
func crossings(passed [][]int32) map[int][]int {
	m := map[int][]int{}
	for k, way := range passed {
		for _, l := range way {
			if !slices.Contains(m[int(l)], k) {
				m[int(l)] = append(m[int(l)], k)
			}
		}
	}
	return m
}

// longest returns the greatest of some times, with its direction.
func longest(m map[string]int) (n int, link string) {
	for _, l := range slices.Sorted(maps.Keys(m)) {
		if m[l] > n {
			n, link = m[l], l
		}
	}
	return n, link
}

// Print writes the suspected directions, and how long each was suspected.
func (d *demo) Print(out io.Writer) error {
	linger, where := longest(d.Lingering)
	alike, beside := longest(d.Alike)
	healthy, there := longest(d.Healthy)
	spurious := 0
	for _, n := range d.Healthy {
		if n > 3 {
			spurious++
		}
	}
	_, err := fmt.Fprintf(out, `%d s of the demonstration: %d times that a direction was suspected, %d that a fault touched one
after a fault there, suspected for %d cycles at most (%s); clear_after is %d
without one, and crossed by the same probes as one with a fault, suspected for %d cycles at most (%s)
without one, and crossed by other probes, suspected for %d cycles at most (%s); %d directions for more than 3
`, d.Seconds, len(d.Suspected), len(d.Faults), linger, where, suspicion.DefaultConfig().ClearAfter, alike, beside, healthy, there, spurious)
	return err
}

// picture draws the directions over time, faults above suspects.
func (d *demo) picture(out io.Writer) error {
	rows := map[string]float64{}
	for _, list := range [][]demoSpan{d.Faults, d.Suspected} {
		for _, x := range list {
			rows[x.Link] = 0
		}
	}
	for k, l := range slices.Sorted(maps.Keys(rows)) {
		rows[l] = float64(k + 1)
	}
	lines := func(list []demoSpan, above float64) (x, y []float64) {
		for _, s := range list {
			at := rows[s.Link] + above
			x, y = append(x, s.From/60, s.To/60, s.To/60), append(y, at, at, math.NaN())
		}
		return x, y
	}
	c := digests.Chart{Title: "The demonstration: suspected directions of links, and faults", X: "minutes", Y: "directions of links, by name", Width: 1440, Height: 900}
	x, y := lines(d.Faults, .4)
	c.Series = append(c.Series, digests.Series{Name: "a fault touches it", X: x, Y: y})
	x, y = lines(d.Suspected, 0)
	c.Series = append(c.Series, digests.Series{Name: "suspected", X: x, Y: y})
	return c.Write(out)
}
