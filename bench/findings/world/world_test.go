package world

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// Packets that come now and then meet the work that queueing theory says, at gaps that are shorter and longer than a
// queue remembers.
func TestQueueWaitsAsTheorySays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, load := range []float64{.3, .5, .8, .9} {
		for _, fixed := range []bool{true, false} {
			for _, gap := range []float64{1, 20, 1000} {
				if load == .9 && gap == 1 {
					continue // too few independent packets
				}
				a := arrivals{load: load, mean: 1e-6, fixed: fixed}
				q, sum, at := queue{}, 0.0, 0.0
				n := testkit.Rounds(40_000, 400_000)
				for range n {
					at += r.ExpFloat64() * gap * 1e-6
					q.advance(at, &a, 1, r)
					sum += q.work
				}
				want := a.wait()
				if got := sum / float64(n); math.Abs(got-want) > .12*want { // neighbours depend on each other at short gaps
					t.Errorf("load %g, fixed %v, a packet in %g services: mean wait %.3g, want %.3g", load, fixed, gap, got, want)
				}
			}
		}
	}
}

// More than a port can send fills its buffer, at the rate of the excess, and no further.
func TestQueueFills(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := arrivals{load: 1.5, mean: 1e-6}
	q := queue{}
	q.advance(1e-3, &a, 1, r)
	if q.work < .4e-3 || q.work > .6e-3 {
		t.Errorf("after 1 ms %g s wait, want 0.5 ms", q.work)
	}
	q.advance(1, &a, 2e-3, r)
	if q.work < 1.9e-3 || q.work > 2e-3 {
		t.Errorf("a buffer of 2 ms holds %g s", q.work)
	}
	if q.advance(2, &arrivals{}, 2e-3, r); q.work != 0 {
		t.Errorf("an idle port holds %g s", q.work)
	}
}

func scenarios(t *testing.T) []Scenario {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The set has the promised properties.
func TestScenarios(t *testing.T) {
	faults, benign, several, tune, names := 0, 0, 0, 0, map[string]bool{}
	for _, s := range scenarios(t) {
		if names[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		names[s.Name] = true
		if s.about == "" {
			t.Errorf("%s does not say what it is about", s.Name)
		}
		switch {
		case s.benign:
			benign++
		case !s.Real:
			faults++
			if s.alternatives() {
				several++
			}
		}
		if s.tune {
			tune++
		}
	}
	if faults < 40 || benign < 20 {
		t.Errorf("%d faults and %d benign changes, want 40 and 20", faults, benign)
	}
	if several*100 > 15*faults {
		t.Errorf("%d of %d faults have several elements that may be named, want 15 %% at most", several, faults)
	}
	if n := len(names); tune*10 < 4*n || tune*10 > 6*n {
		t.Errorf("%d of %d scenarios may be tuned on, want half", tune, n)
	}
}

// short removes the learning from a scenario.
func short(s Scenario) Scenario {
	s.quiet, s.Length, s.after = 10, 5, 1
	s.traffic.packets = min(s.traffic.packets, float64(testkit.Rounds(60, 300)))
	s.known = 0
	return s
}

// Everything that is written can be read: no report of any scenario is refused, and every scenario ends with reports.
func TestScenariosRun(t *testing.T) {
	for _, s := range scenarios(t) {
		s := short(s)
		o, err := Run(t.Context(), &s, 1)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if o.Reports == 0 || o.Refused != 0 {
			t.Errorf("%s: %d reports, %d of them refused", s.Name, o.Reports, o.Refused)
		}
	}
}

// The same seed has the same result, to the letter, and another seed another one.
func TestRunsRepeat(t *testing.T) {
	for _, s := range scenarios(t)[:3] {
		s := short(s)
		a, _ := Run(t.Context(), &s, 7)
		b, _ := Run(t.Context(), &s, 7)
		c, _ := Run(t.Context(), &s, 8)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v and then %+v", s.Name, a, b)
		}
		if a.Reports == c.Reports {
			t.Errorf("%s: two seeds give the same %d reports", s.Name, a.Reports)
		}
	}
}

// A plain fault is published, and a change of reporting is not. The test has one of each by day. By night it has all
// scenarios, against bounds.
func TestJudge(t *testing.T) {
	for _, name := range []string{"loss-uplink", "benign-sink-samples"} {
		r, err := Judge(t.Context(), Options{Seed: 1, Seeds: 1, Half: "all", Scenario: name})
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Outcomes[0]; !o.Benign && !o.Named || o.Critical > 0 {
			t.Errorf("%s: named %v, %d critical statements about healthy elements: %v", name, o.Named, o.Critical, o.False)
		}
	}
	for _, x := range []Options{ // runs in which a healthy element was called critical
		{Seed: 9801, Scenario: "reports-policed"},
		{Seed: 9803, Scenario: "benign-sink-samples-all+real"},
		{Seed: 9915, Scenario: "benign-ids"},
		{Seed: 9922, Scenario: "benign-nat-all"},
		{Seed: 9915, Scenario: "host-port-two"},
		{Seed: 9945, Scenario: "benign-sink-samples-flows"},
	} {
		x.Seeds, x.Half = 1, "all"
		r, err := Judge(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Outcomes[0]; o.Critical > 0 {
			t.Errorf("%s, seed %d: critical about healthy elements: %v", x.Scenario, x.Seed, o.False)
		}
	}
	if !testkit.Night() {
		return
	}
	r, err := Judge(t.Context(), Options{Seed: 1, Seeds: 3, Half: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if float64(r.All.Named) < leastNamed*float64(r.All.Runs) {
		t.Errorf("%d of %d faults have an acceptable element first, want %g", r.All.Named, r.All.Runs, leastNamed)
	}
	if n := r.All.Critical + r.Changes.Critical; float64(n) > mostCritical*(r.All.Hours+r.Changes.Hours)/1000 {
		t.Errorf("%d critical statements about healthy elements in %.0f hours, want %g in 1000", n, r.All.Hours+r.Changes.Hours, mostCritical)
	}
}

// Bounds of TestJudge by night.
const (
	leastNamed   = .93
	mostCritical = 2.0 // in 1000 element-hours
)

func TestParseSaysWhatToDo(t *testing.T) {
	const good = "kind a\nhalf tune\n"
	for _, c := range []struct{ text, want string }{
		{"", "no kind: write kind"},
		{"kind a\n", "no half: write half tune"},
		{good, "nothing happens: write a line"},
		{good + "at 0 for 3 slow spine1 by=5us\n", "no truth: write truth"},
		{good + "at 0 for 3 slow spine9 by=5us\n", `line 3: at: there is no node "spine9": name one of leaf1,`},
		{good + "at 0 for 3 explode spine1\n", `line 3: at: "explode" cannot happen: there are batch,`},
		{good + "at 0 for 3 slow leaf1>spine1\n", `slow does not happen at "leaf1>spine1": write a node`},
		{good + "at 0 for 3 slow spine1 by=5m\n", `by="5m" is no number: write such as`},
		{good + "at 0 for 3 slow spine1 by=5s\n", "by=5s is outside 0 to 1"},
		{good + "at 0 for 3 slow spine1 speed=5s\n", `"speed=5s" is no option: there are by=, every=, lasts=`},
		{good + "at 0 for 3 loss leaf1>leaf2 rate=1%\n", "leaf1 has no such line to leaf2: name neighbours"},
		{good + "at 0 for 3 loss leaf1.7 rate=1%\n", `leaf1 has no host "7": it has 1 to 2`},
		{good + "at 0 for 3 swallow leaf1 x\n", `there is no flow "x": write a line such as flow x`},
		{good + "at 0 for 3 down spine1=leaf1\ntruth port leaf1\n", `line 4: truth: "leaf1" is no port: write`},
		{good + "at 0 for 3 down spine1\ntruth node spine1\nnetwork ring\n", "line 5: network: comes behind lines that name its nodes"},
		{good + "benign\nat 0 for 3 down spine1\ntruth node spine1\n", "benign change has a truth"},
		{good + "at 0 for 3 down spine1\ntruth node spine1\nreal\n", "only a benign change has a real loss"},
		{"colour blue\n", "line 1: colour: is no line of a scenario: there are about"},
		{"network star\n", `"star" is no network: write leaf-spine, ring or clos`},
		{"window 100s\n", "line 1: window: 100s is outside 1 to 60"},
	} {
		if _, err := Parse("x", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	names, err := texts.ReadDir("scenarios")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		text, _ := texts.ReadFile("scenarios/" + n.Name())
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse("fuzzed", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") && !strings.Contains(err.Error(), " lines: write at most") {
				t.Errorf("error without a line: %v", err)
			}
			return
		}
		for _, s := range list {
			s.Window, s.traffic.packets = 1, min(s.traffic.packets, 50)
			s.quiet, s.Length, s.after = 1, 2, 0
			if _, err := Run(t.Context(), &s, 1); err != nil {
				t.Error(err)
			}
		}
	})
}
