package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
)

// randomNetwork has two to five switches more than agents, and probes that pass several of them.
func randomNetwork(r *rand.Rand, name string, switches int) *Network {
	n := &Network{Name: name, Entries: probeEntries}
	for k := range switches {
		n.Switches = append(n.Switches, fmt.Sprintf("s%d", k))
	}
	for k := range 1 + r.IntN(3) {
		n.Agents = append(n.Agents, fmt.Sprintf("s%d", k))
	}
	for k := range 2 + r.IntN(4) {
		p := planner.Probe{ID: fmt.Sprintf("p%d", k), AgentHost: n.Agents[r.IntN(len(n.Agents))], Agent: "elsewhere"}
		for range 2 + r.IntN(3) {
			p.Nodes = append(p.Nodes, n.Switches[r.IntN(switches)])
		}
		for i := range p.Nodes[1:] {
			p.Links = append(p.Links, p.Nodes[i]+"--"+p.Nodes[i+1])
		}
		n.Probes = append(n.Probes, p)
	}
	return n
}

// probeEntries gives a switch an entry for each probe that passes it, and one for all plans.
func probeEntries(p *Plan, sw string) []Entry {
	list := []Entry{{0, "route", "as ever"}, {0, "way of " + p.Network.Name, "as ever"}}
	for k := range p.Probes {
		if x := &p.Probes[k]; slices.Contains(x.Nodes, sw) {
			list = append(list, Entry{p.Epoch, x.ID, fmt.Sprint(p.IsDetailed(x.ID))})
		}
	}
	return list
}

// disconnect ends the connection to a device. What was on its way to a switch may still arrive.
func (w *world) disconnect(n *node, why string) {
	w.note(n.String() + " " + why)
	n.connected, n.answers = false, nil
	if n.Kind == Agent {
		n.requests = nil
	}
	n.requests = slices.Clone(n.requests)
	for i := range n.requests {
		n.requests[i].lost = true
	}
	if !slices.Contains(w.net.Switches, n.Name) {
		n.excused = true
	}
	w.emit(Down{n.Device, why})
}

// become replaces the network.
func (w *world) become(net *Network) {
	w.note("the network becomes " + net.Name)
	w.net = net
	w.link(net)
	w.emit(NetworkChanged{Network: net})
	for k := range w.nodes {
		n := &w.nodes[k]
		d := w.c.find(n.Device)
		if d != nil && !d.heard {
			n.connected = false
		}
		if n.Kind == Switch && slices.Contains(net.Switches, n.Name) {
			n.excused = false
		} else if !n.connected {
			n.excused = true
		}
	}
}

// chance takes a step at random.
func (w *world) chance(r *rand.Rand, nets []*Network) {
	first := r.IntN(len(w.nodes))
	n := &w.nodes[first]
	for k := range w.nodes { // rather one that has something to do
		m := &w.nodes[(first+k)%len(w.nodes)]
		if len(m.requests)+len(m.answers) > 0 || !m.connected && w.c.find(m.Device) != nil {
			n = m
			break
		}
	}
	switch x := r.IntN(1000); {
	case x < 860:
		switch {
		case !n.connected && w.c.find(n.Device) != nil:
			w.connect(n)
		case len(n.answers) > 0 && r.IntN(2) == 0:
			w.answer(n)
		case len(n.requests) > 0:
			w.carryOut(n, w.refusals > 0 && r.IntN(10) == 0 && !w.has(n, n.requests[0].Action))
		case len(n.answers) > 0:
			w.answer(n)
		case w.idle() && r.IntN(2) == 0 || r.IntN(40) == 0:
			if at, ok := w.c.Next(); ok && at < w.lastTick+cycle {
				w.note("time passes")
				w.emit(Wake{at})
			} else {
				w.tick(r.IntN(2) == 0)
			}
		}
	case x < 895:
		w.note(n.forgets)
		if len(n.requests) > 0 && r.IntN(2) == 0 {
			n.requests = slices.Clone(n.requests[1:])
		} else if len(n.answers) > 0 {
			n.answers = slices.Clone(n.answers[1:])
		}
	case x < 905:
		if n.connected {
			w.disconnect(n, "cannot be reached")
		}
	case x < 913:
		w.disconnect(n, "was restarted")
		n.plan, n.entries, n.requests, w.shock, w.moved = nil, nil, nil, true, true
	case x < 921:
		w.crash(r.IntN(2) == 0)
		for k := range w.nodes {
			if n := &w.nodes[k]; n.Kind == Switch && !slices.Contains(w.net.Switches, n.Name) {
				n.excused = true // the new controller is not notified of it
			}
		}
	case x < 930:
		w.become(nets[r.IntN(len(nets))])
	case x < 945:
		v := []Verb{Pause, Resume, Approve, Rollback, Reject, DryRun, WetRun, Resume, WetRun}[r.IntN(9)]
		w.note(string(v))
		w.emit(Command{Verb: v})
	default:
		w.bad = nil
		for _, l := range w.links {
			if r.IntN(4) == 0 {
				w.bad = append(w.bad, Suspect{Link: l, Weight: 1 + r.Float64()})
			}
		}
	}
}

// TestRandom runs larger networks through more of everything: devices that cannot be reached or lose all they have,
// crashes, other networks, operators, full tables. It ends without faults, and everything has to become well.
// 10 000 networks of up to six switches and three agents have 591 632 events and 21 144 plans (1 001 refused).
func TestRandom(t *testing.T) {
	most := [2]int{}
	events, plans, refused, lives := 0, uint64(0), uint64(0), 0
	for seed := range uint64(testkit.Rounds(2000, 10000)) {
		r := rand.New(rand.NewPCG(seed, 14))
		switches := 3 + r.IntN(4)
		nets := []*Network{randomNetwork(r, "one", switches), randomNetwork(r, "two", 2+r.IntN(switches-1))}
		w := newWorld(Config{
			Cycle: cycle, Timeout: timeout, Grace: int64(r.IntN(3)) * grace, Attempts: 2 + r.IntN(3), Audit: r.IntN(3), RetryAfter: 2,
			MaxChanges: r.IntN(4), Budget: float64(r.IntN(3)) * 5, SwitchCost: float64(r.IntN(2)), Approve: r.IntN(4) == 0, DryRun: r.IntN(20) == 0,
		}, nets[0])
		for k := range w.nodes {
			if n := &w.nodes[k]; n.Kind == Switch && r.IntN(3) == 0 {
				n.room = 20
			}
		}
		for _, name := range nets[1].Agents {
			if w.node(Device{Agent, name}) == nil {
				n := node{Device: Device{Agent, name}}
				n.call()
				w.nodes = append(w.nodes, n)
			}
		}
		w.refusals = r.IntN(2)
		for range 30 + r.IntN(120) {
			w.chance(r, nets)
			if bad := w.check(); bad != "" {
				t.Fatalf("seed %d: %s; %v", seed, bad, w)
			}
		}
		if err := w.recover(&most); err != nil {
			t.Fatalf("seed %d: %v; %v", seed, err, w)
		}
		w.count()
		events, plans, refused, lives = events+w.steps, plans+w.plans, refused+w.refusedPlans, lives+w.lives
	}
	t.Logf("at most %d cycles begin until all links are in sight, %d until all is well; %d lives of controllers, %d events, %d plans, %d of them refused", most[0], most[1], lives, events, plans, refused)
	if most[0] > 1 {
		t.Errorf("%d cycles begin until all links are in sight, want 1 at most", most[0])
	}
}

// recover follows a world in which nothing goes wrong any more.
func (w *world) recover(most *[2]int) error {
	w.note("nothing goes wrong any more")
	for k := range w.nodes {
		w.nodes[k].room = 0
	}
	w.refusals = 0
	w.emit(Command{Verb: WetRun})
	w.emit(Command{Verb: Resume})
	sight := -1
	for ticks, n := 0, 0; ticks < 5 && n < 1000; n++ {
		if bad := w.check(); bad != "" {
			return fmt.Errorf("%s, with no further fault", bad)
		}
		if sight < 0 && !slices.Contains(w.covered, false) {
			sight = ticks
		}
		if w.good() == "" && sight >= 0 {
			most[0], most[1] = max(most[0], sight), max(most[1], ticks)
			return nil
		}
		// The first cycle that counts finds every device there, nothing under way, and no plan that was just refused.
		quiet := w.c.settled && w.c.counts.Cycles >= w.c.refusal.until && !slices.ContainsFunc(w.c.devices, func(d device) bool { return !d.live() || d.waits != nothing })
		if w.rest() {
			if ticks > 0 || quiet {
				ticks++
			}
		}
		if w.c.pending != nil && w.c.settled {
			w.emit(Command{Verb: Approve})
		}
	}
	return fmt.Errorf("all is never well again: %s", w.good())
}
