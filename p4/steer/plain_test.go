package steer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// plainRun collects what the agents of a network without telemetry report, in windows of a second. Each is passed to the
// detectors, after a change.
type plainRun struct {
	*scenario.Plain
	detector *events.Detector
	state    *shard.State
	reader   *demux.Decoder
	start    time.Time
	now      time.Duration
	change   func(*inference.Window)
}

func newPlainRun(t *testing.T, seed uint64, quiet bool) *plainRun {
	t.Helper()
	start := time.Unix(1_700_000_000, 0)
	n, err := scenario.NewPlain(seed, start, quiet)
	if err != nil {
		t.Fatal(err)
	}
	cfg := shard.DefaultConfig()
	cfg.MemoryBytes = 16 << 20
	auto, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("there is no profile auto")
	}
	return &plainRun{
		Plain: n, start: start, detector: events.New(events.DefaultConfig()), state: shard.New(cfg, 1),
		reader: demux.New(auto), change: func(*inference.Window) {},
	}
}

// step runs one window, and returns what is published with it.
func (r *plainRun) step(t *testing.T) []inference.Finding {
	var b decode.Batch
	r.Run(r.now+time.Second, func(k int, payload []byte) {
		b.Reset()
		r.reader.Datagram(&b, decode.AddrFrom(scenario.PlainSource(k)), payload, r.start.Add(r.now).UnixNano())
		for i := range b.Reports {
			if err := b.Reports[i].Error(); err != nil {
				t.Fatal(err)
			}
		}
		r.state.Update(b.Reports)
	})
	from := r.start.Add(r.now).UnixNano()
	r.now += time.Second
	c := r.state.Cut(r.start.Add(r.now).UnixNano())
	var p window.Partial
	c.AddTo(&p)
	p.Start, p.End = from, r.start.Add(r.now).UnixNano()
	r.state.Recycle(c)
	w := p.Window(window.NoLimits())
	r.change(&w)
	return slices.Clone(r.detector.Step(&w))
}

// between reports whether an element is the link between two switches, whose addresses hold their numbers.
func (r *plainRun) between(e inference.Element, a, b string) bool {
	of := func(name string) uint32 {
		n, _ := r.Graph().Lookup(name)
		return 10<<16 | 1<<8 | uint32(n+1)
	}
	x, y := e.Node>>8, e.Peer>>8
	return e.Kind == inference.LinkElement && (x == of(a) && y == of(b) || x == of(b) && y == of(a))
}

// TestPlainLinks names the lossy direction of a link by probes alone, as one finding that explains the losses of paths.
// Without a fault there is none, and where ways are not known no link is named.
func TestPlainLinks(t *testing.T) {
	r := newPlainRun(t, 1, false)
	lossy := r.Script()[0]
	var links, paths, alone []inference.Finding
	for r.now < lossy.Until+30*time.Second && r.now < r.Script()[1].From {
		for _, f := range r.step(t) {
			switch {
			case r.now <= lossy.From:
				t.Fatalf("before the fault: %+v", f)
			case f.Kind == inference.PacketLoss:
				links = append(links, f)
			case f.Kind == inference.ProbeLoss:
				paths = append(paths, f)
			}
		}
		if r.now == lossy.Until {
			alone = slices.DeleteFunc(r.detector.Open(), func(f inference.Finding) bool { return f.Cause != 0 || f.Evidence > 0 })
		}
	}
	if len(alone) > 2 { // losses on the way home may pass the link by a port that no session out has
		t.Errorf("%d findings are not explained: %+v", len(alone), alone)
	}
	if len(links) < 2 || !r.between(links[0].Element, lossy.Node, lossy.Peer) || links[0].Start > r.start.Add(lossy.From+15*time.Second).UnixNano() {
		t.Fatalf("links %+v", links)
	}
	first, caused, last := links[0].ID, map[uint64]int{}, links[len(links)-1]
	for _, f := range links {
		if f.ID != first && f.Evidence == 0 {
			t.Errorf("another link: %+v", f)
		}
	}
	for _, f := range paths {
		if f.End == 0 && f.Evidence == 0 {
			caused[f.Cause]++
		}
	}
	explains := func(f inference.Finding) bool { return f.ID == first && f.Cause != 0 && caused[f.Cause] >= 5 }
	if !slices.ContainsFunc(links, explains) {
		t.Errorf("%d findings of paths, by cause %v, and those of links %+v", len(paths), caused, links)
	}
	if want := "probes were lost from 10.1."; !strings.Contains(links[0].Text, want) || !strings.Contains(links[0].Text, "15 sessions over it") {
		t.Errorf("no %q in %s", want, links[0].Text)
	}
	if last.End == 0 {
		t.Errorf("the finding did not end: %+v", last)
	}
}

// TestPlainQuiet names no link of a healthy network.
func TestPlainQuiet(t *testing.T) {
	r := newPlainRun(t, 2, true)
	for r.now < 40*time.Second {
		if list := r.step(t); len(list) > 0 {
			t.Fatalf("%v: %+v", r.now, list[0])
		}
	}
}

// TestPlainUnknown names no link where no way is known, and says so.
func TestPlainUnknown(t *testing.T) {
	r := newPlainRun(t, 1, false)
	r.change = func(w *inference.Window) {
		for i := range w.Losses {
			if w.Losses[i].OfProbes() {
				w.Losses[i].Path = w.Losses[i].Path[:1]
			}
		}
	}
	lossy, said := r.Script()[0], false
	for r.now < lossy.Until {
		for _, f := range r.step(t) {
			if f.Kind == inference.PacketLoss {
				t.Fatalf("%+v", f)
			}
			said = said || f.Kind == inference.ProbeLoss && strings.Contains(f.Text, "the way of these probes is not known, so that no link is judged")
		}
	}
	if !said {
		t.Error("no finding of a path says that its way is not known")
	}
}
