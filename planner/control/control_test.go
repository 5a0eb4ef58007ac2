package control

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

// ring is a network of n links, each on one probe of its own and one that passes several.
func ring(n, each int) *Network {
	net := &Network{Name: "ring", Agents: []string{"a", "b"}, Entries: planEntries}
	for k := range n {
		net.Switches = append(net.Switches, fmt.Sprintf("s%02d", k))
	}
	for k := range n {
		p := planner.Probe{ID: fmt.Sprintf("p%02d", k), Agent: net.Agents[k%2]}
		for i := range 1 + k%each {
			p.Links = append(p.Links, fmt.Sprintf("l%02d", (k+i)%n))
			p.Nodes = append(p.Nodes, net.Switches[(k+i)%n])
		}
		net.Probes = append(net.Probes, p)
	}
	return net
}

// follow steps without faults until n cycles have begun and nothing is under way.
func (w *world) follow(t *testing.T, n int) {
	t.Helper()
	for k := 0; ; {
		if bad := w.check(); bad != "" {
			t.Fatalf("%s; %v", bad, w)
		}
		if at, ok := w.c.Next(); k >= n && w.idle() && (!ok || at >= w.lastTick+cycle) {
			return
		}
		if w.rest() {
			k++
		}
	}
}

func steer(t *testing.T, cfg Config, net *Network) *world {
	t.Helper()
	cfg.Cycle, cfg.Timeout, cfg.Grace = cycle, timeout, grace
	w := newWorld(cfg, net)
	w.follow(t, 1)
	return w
}

// TestBudget compares with what a search over all numbers of links gives: of the suspicious links the heaviest get detail,
// as many as the budget has room for, and those left out are named.
func TestBudget(t *testing.T) {
	left := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		net := ring(8, 4)
		budget := float64(1 + r.IntN(12))
		w := steer(t, Config{Budget: budget}, net)
		w.bad = nil
		for k := range 8 {
			if r.IntN(4) > 0 {
				w.bad = append(w.bad, Suspect{Link: fmt.Sprintf("l%02d", k), Weight: float64(1 + r.IntN(100)*12 + k)})
			}
		}
		w.follow(t, 1)
		s := w.c.Target().Stats
		bySet := func(n int) float64 { // the least cost of the heaviest n
			worth := slices.Clone(w.bad)
			slices.SortFunc(worth, func(a, b Suspect) int { return int(b.Weight - a.Weight) })
			best := math.Inf(1)
			for set := range 1 << 8 {
				cost, seen := 0.0, map[string]bool{}
				for k := range net.Probes {
					if set>>k&1 == 1 {
						cost += float64(len(net.Probes[k].Links))
						for _, l := range net.Probes[k].Links {
							seen[l] = true
						}
					}
				}
				if cost < best && !slices.ContainsFunc(worth[:n], func(s Suspect) bool { return !seen[s.Link] }) {
					best = cost
				}
			}
			return best
		}
		n := len(w.bad)
		for n > 0 && bySet(n) > budget {
			n--
		}
		if s.DetailedHops != bySet(n) || s.DetailedHops > budget || !s.Optimal || s.Bound != s.Objective {
			t.Fatalf("seed %d: %+v, want %v hops in detail for the heaviest %d of %d", seed, s, bySet(n), n, len(w.bad))
		}
		left += len(s.LeftOut)
		for _, l := range s.LeftOut {
			if !slices.ContainsFunc(w.bad, func(x Suspect) bool { return x.Link == l }) {
				t.Fatalf("seed %d: %s is left out, which is not suspicious", seed, l)
			}
			for _, p := range net.Probes {
				if w.c.Target().IsDetailed(p.ID) && slices.Contains(p.Links, l) {
					t.Fatalf("seed %d: %s is left out, and on %s, which is detailed", seed, l, p.ID)
				}
			}
		}
		if 32*(s.Hops-s.DetailedHops)+88*s.DetailedHops != s.Bytes || s.AllDetailed != 88*s.Hops || s.HopRatio != s.DetailedHops/s.Hops {
			t.Fatalf("bytes do not follow from hops: %+v", s)
		}
	}
	if left == 0 {
		t.Error("no budget ever left out a link")
	}
}

// TestCap turns no more probes in a cycle than allowed, and gets there in the end.
func TestCap(t *testing.T) {
	w := steer(t, Config{MaxChanges: 2}, ring(12, 1))
	for k := range 7 {
		w.bad = append(w.bad, Suspect{Link: fmt.Sprintf("l%02d", k), Weight: float64(7 - k)})
	}
	for n, want := range []int{2, 4, 6, 7, 7} {
		w.follow(t, 1)
		p := w.c.Target()
		if len(p.Detailed) != want || n < 4 && p.Stats.Changes > 2 {
			t.Errorf("cycle %d: %d probes are detailed after %d changes, want %d after 2", n, len(p.Detailed), p.Stats.Changes, want)
		}
	}
	w.bad = nil
	for _, want := range []int{5, 3, 1, 0, 0} {
		w.follow(t, 1)
		if got := len(w.c.Target().Detailed); got != want {
			t.Errorf("%d probes are detailed, want %d", got, want)
		}
	}
}

// TestStaged replaces a base plan by another in steps. A link that only probes saw which are broken is seen at once.
func TestStaged(t *testing.T) {
	w := steer(t, Config{MaxChanges: 2}, ring(8, 1))
	other := ring(8, 1)
	other.Name = "other"
	for k := range other.Probes {
		other.Probes[k].ID = fmt.Sprintf("q%02d", k)
	}
	w.net = other
	w.emit(NetworkChanged{other, []string{"p00", "p01", "p02"}})
	for n, want := range []int{3, 5, 7, 8, 8, 8} {
		w.follow(t, 1)
		now := 0
		for _, p := range w.c.Target().Probes {
			if p.ID[0] == 'q' {
				now++
			}
		}
		if n == 0 && !slices.ContainsFunc(w.c.Target().Probes, func(p planner.Probe) bool { return p.ID == "q02" }) {
			t.Error("the broken probes were not replaced at once")
		}
		if now < want-1 {
			t.Errorf("cycle %d: %d probes of the new plan, want about %d", n, now, want)
		}
	}
	w.follow(t, 8)
	if s := w.c.Status(); s.Behind != 0 || &w.c.Target().Probes[0] != &other.Probes[0] {
		t.Errorf("%d probes are still to change", s.Behind)
	}
}

// TestStagedOnceBroken changes probes that keep their ids. One that was broken and has taken its new way is broken no more: the cap
// holds for what is left.
func TestStagedOnceBroken(t *testing.T) {
	w := steer(t, Config{MaxChanges: 2}, ring(12, 1))
	other := ring(12, 1)
	other.Name = "other"
	for k := range other.Probes {
		other.Probes[k].Nodes = append(other.Probes[k].Nodes, "s00")
	}
	w.net = other
	w.emit(NetworkChanged{other, []string{"p03", "p07"}})
	for n, want := range []int{2, 4, 6, 8, 10, 12, 12} {
		w.follow(t, 1)
		now, broken := 0, 0
		for _, p := range w.c.Target().Probes {
			if len(p.Nodes) == 2 {
				now++
			} else if p.ID == "p03" || p.ID == "p07" {
				broken++
			}
		}
		if now != want || broken != 0 {
			t.Errorf("cycle %d: %d probes take their new way, want %d; %d are still broken", n, now, want, broken)
		}
	}
}

// TestOperator holds plans for approval, makes them without sending them to a device, and takes them back.
func TestOperator(t *testing.T) {
	w := steer(t, Config{Approve: true}, ring(4, 1))
	w.bad = []Suspect{{Link: "l01", Weight: 1}}
	w.follow(t, 1)
	s := w.c.Status()
	if s.Epoch != 1 || s.Pending == nil || s.Pending.Epoch != 2 {
		t.Fatalf("epoch %d, pending %+v, want epoch 1 and a plan of epoch 2 that waits", s.Epoch, s.Pending)
	}
	w.emit(Command{Verb: Approve, Epoch: 7})
	if w.c.Status().Epoch != 1 {
		t.Error("a plan that does not wait was approved")
	}
	w.emit(Command{Verb: Approve, Epoch: 2})
	w.follow(t, 0)
	if s := w.c.Status(); s.InForce != 2 || s.Before != 1 || s.Pending != nil || w.good() != "" {
		t.Fatalf("%+v %s, want epoch 2 in force", s, w.good())
	}
	w.emit(Command{Verb: Rollback})
	w.follow(t, 3)
	if s := w.c.Status(); s.InForce != 3 || !s.Paused || len(w.c.Target().Detailed) != 0 || w.good() != "" {
		t.Fatalf("%+v, want the first plan under epoch 3, and a pause", s)
	}
	w.emit(Command{Verb: DryRun})
	w.emit(Command{Verb: Resume})
	w.follow(t, 2)
	if s := w.c.Status(); s.Epoch != 3 || s.Would == nil || len(s.Would.Detailed) != 1 {
		t.Fatalf("%+v, want epoch 3, and a plan that would be", s)
	}
}

// TestRefusedWhole keeps what is in force where a plan fails its check, and where one agent refuses what others have
// taken.
func TestRefusedWhole(t *testing.T) {
	net := ring(4, 1)
	net.Check = func(p *Plan) error {
		if p.IsDetailed("p01") {
			return errors.New("p01 is beyond the limits of agent b")
		}
		return nil
	}
	w := steer(t, Config{}, net)
	w.bad = []Suspect{{Link: "l01", Weight: 1}}
	w.follow(t, 3)
	if s := w.c.Status(); s.InForce != 1 || !strings.Contains(s.Why, "beyond the limits") || s.Counts.Refused != 1 || w.good() != "" {
		t.Fatalf("%+v, want epoch 1, and why no other", s)
	}
	net.Check = nil
	w.bad = []Suspect{{Link: "l02", Weight: 1}}
	for w.tick(true); ; {
		a, b := &w.nodes[0], &w.nodes[1]
		if len(b.requests) > 0 {
			w.carryOut(a, false)
			w.answer(a)
			w.carryOut(b, true)
			w.answer(b)
			break
		}
		w.rest()
	}
	w.follow(t, 2)
	if s := w.c.Status(); s.InForce != 3 || len(w.c.Target().Detailed) != 0 || w.good() != "" || !strings.Contains(s.Why, "agent b refused") {
		t.Fatalf("%+v, want what epoch 1 measures under epoch 3: %s", s, w.good())
	}
}

// TestTwoControllers stands down where another controller has taken over, and takes over again from what that one left.
func TestTwoControllers(t *testing.T) {
	w := steer(t, Config{}, ring(4, 1))
	theirs := *w.c.Target()
	theirs.Epoch = 9
	theirs.entries = map[string][]Entry{}
	for k := range w.nodes {
		if n := &w.nodes[k]; n.Kind == Agent {
			n.plan = &theirs
		} else {
			n.entries = with(n.entries, theirs.entriesOf(n.Name))
		}
	}
	w.disconnect(&w.nodes[0], "has gone over to another")
	w.connect(&w.nodes[0])
	w.follow(t, 0)
	if p := w.c.Phase(); p != Deposed {
		t.Fatalf("the controller is %s, want it to have stood down", p)
	}
	w.bad = []Suspect{{Link: "l01", Weight: 1}}
	before := w.steps
	w.follow(t, 2)
	if w.c.Target().Epoch != 1 || w.steps != before+2 {
		t.Error("a controller that has stood down goes on")
	}
	w.emit(Command{Verb: Resume})
	for k := range w.nodes { // the other one is gone
		w.disconnect(&w.nodes[k], "is free")
		w.connect(&w.nodes[k])
	}
	w.follow(t, 2)
	if w.c.Target().Epoch <= 9 || w.good() != "" {
		t.Errorf("epoch %d, want one above 9: %s", w.c.Target().Epoch, w.good())
	}
	w.emit(Superseded{"switch s01 has another primary"})
	if w.c.Phase() != Deposed {
		t.Error("a controller that is not primary goes on")
	}
}

// TestRepair puts back what is gone from a switch, in the next cycle that reads it.
func TestRepair(t *testing.T) {
	w := steer(t, Config{Audit: 1}, ring(4, 2))
	n := w.node(Device{Switch, "s02"})
	n.entries = []Entry{{0, "route", "other"}, {77, "detail", "of somebody"}}
	w.shock, w.moved = true, true
	w.follow(t, 1)
	if s := w.c.Status(); w.good() != "" || s.Counts.Repaired != 1 {
		t.Errorf("%d repairs, want 1: %s", s.Counts.Repaired, w.good())
	}
}

// TestAccept uses reports of one epoch in a cycle, and says when a change-over was.
func TestAccept(t *testing.T) {
	w := steer(t, Config{}, ring(4, 1))
	w.bad = []Suspect{{Link: "l01", Weight: 1}}
	at := w.lastTick + cycle
	w.tick(false)
	for _, tt := range []struct {
		agent string
		epoch uint32
		want  Verdict
	}{{"a", 1, Late}, {"a", 2, Fits}, {"a", 3, Early}, {"a", 0, Late}, {"", 2, Fits}, {"", 1, Late}, {"nobody", 2, Early}} {
		if got := w.c.Accept(tt.agent, tt.epoch); got != tt.want {
			t.Errorf("a report of agent %q of epoch %d: %s, want %s", tt.agent, tt.epoch, got, tt.want)
		}
	}
	if links, from, to := w.c.Changing(at + 5); !slices.Equal(links, []string{"l01"}) || from != at || to != at+5 {
		t.Errorf("changing %v from %d to %d, want l01 from %d until now", links, from, to, at)
	}
	w.follow(t, 0)
	if links, from, to := w.c.Changing(at + 700); len(links) != 1 || from != at || to != at+cycle {
		t.Errorf("changing %v from %d to %d, want until the end of the cycle, %d", links, from, to, at+cycle)
	}
	if links, _, _ := w.c.Changing(at + 3*cycle); links != nil {
		t.Error("a change-over is reported for ever")
	}
	if c := w.c.Status().Counts; c.Accepted != 2 || c.Late != 3 || c.Early != 2 {
		t.Errorf("%+v, want 2 accepted, 3 late and 2 early", c)
	}
}

// TestNew refuses what cannot be steered.
func TestNew(t *testing.T) {
	ok := Config{Cycle: 10, Timeout: 5}
	twice := ring(3, 1)
	twice.Probes[1].ID = "p00"
	lost, unnamed := ring(3, 1), ring(3, 1)
	lost.Probes[0].Agent = "nobody"
	unnamed.Probes[2].Links = []string{"l02", ""}
	for name, f := range map[string]func() (*Controller, error){
		"time limit above the cycle": func() (*Controller, error) { return New(Config{Cycle: 5, Timeout: 5}, ring(3, 1), Seed{}) },
		"negative cap": func() (*Controller, error) {
			return New(Config{Cycle: 10, Timeout: 5, MaxChanges: -1}, ring(3, 1), Seed{})
		},
		"budget that is no number": func() (*Controller, error) {
			return New(Config{Cycle: 10, Timeout: 5, Budget: math.NaN()}, ring(3, 1), Seed{})
		},
		"no network":                 func() (*Controller, error) { return New(ok, nil, Seed{}) },
		"an id twice":                func() (*Controller, error) { return New(ok, twice, Seed{}) },
		"an agent that is not there": func() (*Controller, error) { return New(ok, lost, Seed{}) },
		"a link without a name":      func() (*Controller, error) { return New(ok, unnamed, Seed{}) },
	} {
		if c, err := New(ok, ring(3, 1), Seed{}); err != nil || c == nil {
			t.Fatal(err)
		}
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPlanCheck finds links that a plan on its way to the base plan leaves out, each once, and asks the network in any case.
func TestPlanCheck(t *testing.T) {
	net := ring(4, 1)
	net.Probes[2].Links = []string{"l02", "l03"}
	net.Check = func(p *Plan) error {
		if p.Epoch > 1 {
			return errors.New("beyond the limits")
		}
		return nil
	}
	for _, tt := range []struct {
		epoch  uint32
		probes []planner.Probe
		want   string
	}{
		{1, net.Probes, ""},
		{1, slices.Clone(net.Probes), ""},
		{1, net.Probes[:3], ""},
		{1, net.Probes[1:2], "link l00 is on no probe of the plan, but on probe p00 of the base plan\n" +
			"link l02 is on no probe of the plan, but on probe p02 of the base plan\n" +
			"link l03 is on no probe of the plan, but on probe p02 of the base plan"},
		{2, net.Probes, "beyond the limits"},
		{2, slices.Clone(net.Probes), "beyond the limits"},
	} {
		got := ""
		if err := (&Plan{Epoch: tt.epoch, Network: net, Probes: tt.probes}).check(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("epoch %d with %d probes: %q, want %q", tt.epoch, len(tt.probes), got, tt.want)
		}
	}
}

// TestSuspectsRanked counts a link once: as heavy as it is at most, and of that weight suspicious the longest.
func TestSuspectsRanked(t *testing.T) {
	for _, tt := range []struct{ list, want []Suspect }{
		{[]Suspect{{Link: "a", Weight: 1}, {Link: "b", Weight: 2}}, []Suspect{{Link: "b", Weight: 2}, {Link: "a", Weight: 1}}},
		{[]Suspect{{Link: "a", Weight: 1, Since: 3}, {Link: "a", Weight: 2, Since: 5}}, []Suspect{{Link: "a", Weight: 2, Since: 5}}},
		{[]Suspect{{Link: "a", Weight: 2, Since: 5}, {Link: "a", Weight: 1, Since: 3}}, []Suspect{{Link: "a", Weight: 2, Since: 5}}},
		{[]Suspect{{Link: "a", Weight: 1, Since: 3}, {Link: "a", Weight: 1, Since: 5}}, []Suspect{{Link: "a", Weight: 1, Since: 3}}},
		{[]Suspect{{Link: "a", Weight: 1, Since: 5}, {Link: "a", Weight: 1, Since: 3}}, []Suspect{{Link: "a", Weight: 1, Since: 3}}},
	} {
		if got := ranked(tt.list); !slices.Equal(got, tt.want) {
			t.Errorf("%v become %v, want %v", tt.list, got, tt.want)
		}
	}
}

// TestLongRecord writes what no record has room for into several, each entry once.
func TestLongRecord(t *testing.T) {
	for n, want := range map[int][]int{0: {0}, mostChanges: {mostChanges}, mostChanges + 1: {mostChanges, 1}, 2 * mostChanges: {mostChanges, mostChanges}} {
		var c Controller
		c.recordEntries(Record{Entries: make([]Change, n)})
		var got []int
		for _, a := range c.out {
			got = append(got, len(a.(Journal).Record.Entries))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d entries are in records of %v, want %v", n, got, want)
		}
	}
}

// TestNonsense sends a controller what cannot be, which changes nothing.
func TestNonsense(t *testing.T) {
	w := steer(t, Config{}, ring(4, 1))
	d := Device{Switch, "s01"}
	for _, e := range []Event{
		nil, Acked{99, d}, Refused{Request: 99, Device: d, Why: ""}, ReadBack{Request: 99, Device: d}, Acked{1, Device{Agent, "nobody"}}, Up{Device{Switch, "a"}},
		Down{Device{Agent, "s01"}, ""}, NetworkChanged{}, Command{Verb: "fly"}, Command{Verb: Approve}, Command{Verb: Reject}, Command{Verb: Rollback},
		Tick{Now: -5, Suspects: []Suspect{{Link: "l01", Weight: math.NaN()}, {Link: ""}, {Link: "nowhere", Weight: -1}, {Link: "l01", Weight: math.Inf(1)}}},
	} {
		w.emit(e)
	}
	for k := range w.nodes {
		w.nodes[k].accepted = 0 // a cycle has begun
	}
	w.follow(t, 1)
	if p := w.c.Target(); w.good() != "" || len(p.Detailed) > 1 {
		t.Errorf("%v: %s", p.Detailed, w.good())
	}
}

// TestStateIsWhole fails where a field is added to what decides and not to what the exploration calls a state.
func TestStateIsWhole(t *testing.T) {
	if c, d := reflect.TypeFor[Controller]().NumField(), reflect.TypeFor[device]().NumField(); c != controllerFields || d != deviceFields {
		t.Errorf("the controller has %d fields and its devices %d: see whether appendState has to know of them, and write the numbers there", c, d)
	}
}
