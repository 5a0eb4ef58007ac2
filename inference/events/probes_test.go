package events

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// probedPath is a path of probes, of which a hundred are sent in each window.
type probedPath struct {
	d     *Detector
	rng   *rand.Rand
	start int64
	epoch uint32
	delay float64 // ns, about
	// Of a hundred probes:
	lost, corrupt int
}

// step takes n windows, and returns what is published in them.
func (p *probedPath) step(n int) (published []inference.Finding) {
	for range n {
		w := inference.Window{Start: p.start, End: p.start + int64(time.Second)}
		p.start = w.End
		arrived := uint64(100 - p.lost - p.corrupt)
		s := inference.ProbeStats{
			ProbeKey: inference.ProbeKey{From: decode.AddrFrom4([]byte{10, 0, 0, 1}), To: decode.AddrFrom4([]byte{10, 0, 0, 2}), Path: 5, Epoch: p.epoch}, Node: 9,
			Flow: decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 0, 0, 1}), Dst: decode.AddrFrom4([]byte{10, 0, 0, 2}), SrcPort: 40000, DstPort: 862, Proto: 17, IPVersion: 4},
			Sent: 100, Received: arrived, Missed: uint64(p.lost), Corrupt: uint64(p.corrupt), Forward: int64(p.lost),
		}
		if arrived > 0 {
			at := func(q float64) uint64 { return uint64(p.delay * q * (1 + .02*p.rng.NormFloat64())) }
			s.Delay = inference.Summary{Count: arrived, P50: at(1), P90: at(1.2), P99: at(1.4), Max: at(1.6)}
		}
		w.Probes = []inference.ProbeStats{s}
		published = append(published, p.d.Step(&w)...)
		p.d.Mark(&w)
	}
	return published
}

func newProbedPath() *probedPath {
	return &probedPath{d: New(DefaultConfig()), rng: rand.New(rand.NewPCG(1, 29)), delay: 2e6}
}

// TestProbeFindings holds that loss, damage and delay of a path are findings, and that they end. Their texts have the
// amount, the path and the way.
func TestProbeFindings(t *testing.T) {
	for _, x := range []struct {
		name     string
		kind     inference.Kind
		severity inference.Severity
		change   func(*probedPath)
		says     []string
	}{
		{"all are lost", inference.ProbeLoss, inference.Critical, func(p *probedPath) { p.lost = 100 }, []string{"path 5 from 10.0.0.1 to 10.0.0.2 lost 100 of ", " on the way out, 0 home)"}},
		{"3 % are lost", inference.ProbeLoss, inference.Warning, func(p *probedPath) { p.lost = 3 }, []string{"path 5 from 10.0.0.1 to 10.0.0.2 lost "}},
		{"1 % are damaged", inference.ProbeCorruption, inference.Warning, func(p *probedPath) { p.corrupt = 1 }, []string{"path 5 from 10.0.0.1 to 10.0.0.2 damaged "}},
		{"thrice as late", inference.ProbeDelay, inference.Warning, func(p *probedPath) { p.delay *= 3 }, []string{"delay of path 5 from 10.0.0.1 to 10.0.0.2: ", "usually "}},
	} {
		p := newProbedPath()
		if early := p.step(400); len(early) > 0 {
			t.Fatalf("%s: findings without a fault: %+v", x.name, early)
		}
		x.change(p)
		found := p.step(20)
		if len(found) == 0 || found[0].Kind != x.kind || found[0].Severity != x.severity || found[0].Element.Kind != inference.FlowElement {
			t.Fatalf("%s: %+v", x.name, found)
		}
		for _, part := range x.says {
			if !strings.Contains(found[0].Text, part) {
				t.Errorf("%s: %q does not say %q", x.name, found[0].Text, part)
			}
		}

		// A saved state goes on alike, and the finding ends.
		second := New(DefaultConfig())
		state := p.d.AppendState(nil)
		if err := second.ReadState(state); err != nil || !bytes.Equal(second.AppendState(nil), state) || len(second.Open()) != len(p.d.Open()) {
			t.Fatalf("%s: the state is read as another one: %v", x.name, err)
		}
		p.d, p.lost, p.corrupt, p.delay = second, 0, 0, 2e6
		p.step(200)
		if open := p.d.Open(); len(open) > 0 {
			t.Errorf("%s: still open: %+v", x.name, open)
		}
	}
}

// TestProbeEpoch holds that a path of another epoch has a delay of its own, and that losses go on.
func TestProbeEpoch(t *testing.T) {
	p := newProbedPath()
	p.step(400)
	p.delay *= 5
	p.lost = 50
	p.step(10)
	open := func(k inference.Kind) bool {
		return slices.ContainsFunc(p.d.Open(), func(f inference.Finding) bool { return f.Kind == k && f.Evidence == 0 })
	}
	if !open(inference.ProbeLoss) || !open(inference.ProbeDelay) {
		t.Fatalf("loss and delay give %+v", p.d.Open())
	}
	p.epoch++
	p.step(3)
	if !open(inference.ProbeLoss) || open(inference.ProbeDelay) {
		t.Errorf("in another epoch are open %+v", p.d.Open())
	}
}

// TestProbeCoverage holds that what could not be judged is known: delays of a path that is young, or of which nothing
// comes.
func TestProbeCoverage(t *testing.T) {
	p := newProbedPath()
	p.step(1)
	c := p.d.Coverage()
	if c.Paths != 1 || c.PathsJudged != 0 || c.Text() != "1 path of probes seen, and losses judged on all of them; of 1 delays are not, which takes 60 windows with answers" {
		t.Errorf("%+v: %s", c, c.Text())
	}
	p.step(100)
	if c := p.d.Coverage(); c.PathsJudged != 1 || c.Text() != "1 path of probes seen, and all judged" {
		t.Errorf("%+v: %s", c, c.Text())
	}
	p.lost = 100
	p.step(1)
	if c := p.d.Coverage(); c.PathsJudged != 0 {
		t.Errorf("the delay of a path without answers is judged: %+v", c)
	}
}

// planned is what two agents report of a path of a plan in a window. Nothing came yet if the sender is unheard.
func planned(s inference.ProbeStats, path uint32, unheard bool) inference.ProbeStats {
	from, to := decode.AddrFrom4([]byte{10, 0, 0, 1}), decode.AddrFrom4([]byte{10, 0, 0, 2})
	if unheard {
		from = decode.AddrFrom4([]byte{0, 0, 0, 0})
	}
	s.ProbeKey = inference.ProbeKey{From: from, To: to, Path: path, Epoch: 7}
	s.Flow = decode.FlowKey{Src: from, Dst: to, SrcPort: 49152 + uint16(path), DstPort: 17769, Proto: 17, IPVersion: 4}
	return s
}

// TestPlannedLoss holds that a path of a plan is accused of rounds that are known as lost, and of those that did not come
// and were sent. What its agents do not agree on is unknown, and counted.
func TestPlannedLoss(t *testing.T) {
	for _, x := range []struct {
		name    string
		paths   []inference.ProbeStats
		accused string // share in its finding, "" for none
		unknown int
	}{
		{"nothing lost", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100, Received: 100}, 3, false)}, "", 0},
		{"all lost", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100, Missed: 100}, 3, false)}, "100 %", 0},
		{"nothing ever came", []inference.ProbeStats{planned(inference.ProbeStats{Missed: 100}, 3, true), planned(inference.ProbeStats{Sent: 100}, 3, false)},
			"100 %", 0},
		{"lost between others, without a sender's report", []inference.ProbeStats{planned(inference.ProbeStats{Received: 90, Missed: 10, Forward: 10}, 3, false)},
			"10 %", 0},
		{"to the own agent", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100, Received: 90, Missed: 10, Forward: 10}, 3, false)},
			"10 %", 0},
		{"the sender does not run", []inference.ProbeStats{planned(inference.ProbeStats{Missed: 100}, 3, false)}, "", 1},
		{"the sender ran for a while", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 60, Received: 60, Missed: 40}, 3, false)}, "", 1},
		{"no sender is known", []inference.ProbeStats{planned(inference.ProbeStats{Missed: 100}, 3, true)}, "", 1},
		{"no receiver reports", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100}, 3, false)}, "", 1},
		{"of another path nothing ever came", []inference.ProbeStats{planned(inference.ProbeStats{Missed: 100}, 4, true), planned(inference.ProbeStats{Sent: 100, Received: 100}, 3, false)}, "", 1},
		{"late ones", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100, Received: 100, Late: 5, Missed: 5}, 3, false)}, "", 0},
		{"late ones of before", []inference.ProbeStats{planned(inference.ProbeStats{Sent: 100, Received: 105, Late: 5, Forward: -5}, 3, false)}, "", 0},
	} {
		d := New(DefaultConfig())
		text := ""
		for k := range int64(10) {
			w := inference.Window{Start: k * 1e9, End: (k + 1) * 1e9, Probes: slices.Clone(x.paths)}
			for _, f := range d.Step(&w) {
				if f.Kind != inference.ProbeLoss {
					t.Errorf("%s: %+v", x.name, f)
				}
				text = f.Text
			}
			c := d.Coverage()
			if n := len(x.paths); c.PathsUnknown != x.unknown || c.PathsJudged != c.Paths || c.Paths > n || x.unknown > 0 != strings.Contains(c.Text(), "only one of two agents reported") {
				t.Errorf("%s: %+v: %s", x.name, c, c.Text())
			}
		}
		if (x.accused == "") != (text == "") || !strings.Contains(text, ", "+x.accused+", ") && text != "" {
			t.Errorf("%s: %q, want %q", x.name, text, x.accused)
		}
		if text != "" && !strings.HasPrefix(text, "path 3 from 10.0.0.1 to 10.0.0.2 lost ") || text != "" && !strings.HasSuffix(text, "; the path is one of the plan of epoch 7") {
			t.Errorf("%s: %q does not have the epoch", x.name, text)
		}
	}
}

// TestPlannedPause: what was missed while a sender paused was not judged, so that its end takes nothing off what is lost.
func TestPlannedPause(t *testing.T) {
	d := New(DefaultConfig())
	text, k := "", int64(0)
	step := func(s inference.ProbeStats) {
		w := inference.Window{Start: k * 1e9, End: (k + 1) * 1e9, Probes: []inference.ProbeStats{planned(s, 3, false)}}
		k++
		for _, f := range d.Step(&w) {
			text = f.Text
		}
	}
	loses := inference.ProbeStats{Sent: 100, Received: 90, Missed: 10, Forward: 10}
	for range 20 {
		step(loses)
	}
	for range 20 {
		step(inference.ProbeStats{Missed: 100})
	}
	step(inference.ProbeStats{Sent: 100, Received: 90, Missed: 10, Late: 2000, Forward: 10})
	for range 400 {
		step(inference.ProbeStats{Sent: 100, Received: 100})
	}
	if !strings.Contains(text, "lost 200 of 2390 ") {
		t.Errorf("%q", text)
	}
}
