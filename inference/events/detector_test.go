package events

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

func flow(n uint32) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n)), Dst: decode.AddrFrom4([]byte{10, 9, 9, 9}),
		SrcPort: 1000, DstPort: 80, Proto: 6, IPVersion: 4,
	}
}

// reported runs windows through a detector and writes down what it publishes: "window kind severity state". Causes, and
// evidence that is published once more when it gets one, are left out.
func reported(t *testing.T, d *Detector, windows ...*inference.Window) []string {
	t.Helper()
	var out []string
	open := map[uint64]inference.Severity{}
	for i, w := range windows {
		w.End = int64(i + 1)
		for _, f := range d.Step(w) {
			state := "started"
			old, known := open[f.ID]
			switch {
			case f.Evidence > 0:
				if open[f.ID] = f.Severity; f.End != 0 {
					delete(open, f.ID)
				}
				continue
			case f.Cause != 0 && (f.End != 0 && f.End < w.End || f.End == 0 && known && old == f.Severity):
				continue
			case f.End != 0:
				state = "ended"
				delete(open, f.ID)
				if !known || f.End != w.End {
					t.Errorf("window %d: %+v ends what was not open, or not now", i+1, f)
				}
			case known && f.Resting:
				state = "rests"
			case known:
				state = "escalated"
				if f.Severity <= old {
					t.Errorf("window %d: %+v reported without being more severe", i+1, f)
				}
			default:
				if f.Start != w.End {
					t.Errorf("window %d: %+v starts in another window", i+1, f)
				}
			}
			if f.End == 0 {
				open[f.ID] = f.Severity
			}
			if f.Text == "" {
				t.Errorf("window %d: %+v has no text", i+1, f)
			}
			out = append(out, fmt.Sprintf("%d %s %s %s", i+1, f.Kind, f.Severity, state))
		}
		if got := d.Open(); len(got) != len(open) || d.Stats().Open != len(open) {
			t.Errorf("window %d: %d open findings, want %d", i+1, len(got), len(open))
		}
	}
	return out
}

func windows(n int, make func(i int) *inference.Window) (ws []*inference.Window) {
	for i := range n {
		ws = append(ws, make(i))
	}
	return ws
}

// sequence makes windows from one letter each.
func sequence(letters string, make func(c byte) *inference.Window) []*inference.Window {
	return windows(len(letters), func(i int) *inference.Window { return make(letters[i]) })
}

func TestLifecycle(t *testing.T) {
	latency := func(c byte) *inference.Window { // the letter is the p99 in 10 µs; "_" is a window with few packets
		switch c {
		case '_':
			return hopWindow(0, 1e9, 0, 3)
		case ' ':
			return &inference.Window{}
		case '?':
			return &inference.Window{Missing: []string{"west"}}
		}
		return hopWindow(0, 10000*uint64(c-'0'), 0, 100)
	}
	warm := strings.Repeat("1", 400)
	drop := func(c byte) *inference.Window {
		if c == '.' {
			return &inference.Window{}
		}
		n := map[byte]uint64{'1': 1, 'M': 5000}[c]
		return &inference.Window{Drops: []inference.DropStats{{Node: 4, Reason: 80, Count: n, Flow: flow(1)}}}
	}
	path := func(c byte) *inference.Window {
		w := &inference.Window{}
		if c == 'c' || c == 'C' {
			w.Paths = append(w.Paths, inference.PathChange{Flow: flow(1),
				From: []inference.HopKey{{Node: 1, EgressIf: 2}, {Node: 3}}, To: []inference.HopKey{{Node: 1, EgressIf: 3}, {Node: 4}}})
		}
		if c == 'o' || c == 'C' {
			w.OtherPaths = 7
		}
		return w
	}
	often := strings.Repeat(".", 60)
	export := func(c byte) *inference.Window {
		s := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: 5}, Reports: 1000, Sequenced: true}
		switch c {
		case '1':
			s.Lost = 1
		case 'l':
			s.Lost = 10
		case 'L':
			s.Lost = 500
		case 'f': // fills ten gaps of the window before
			s.Lost = -10
		case '_':
			s.Reports = 0
		case ' ':
			return &inference.Window{}
		}
		return &inference.Window{Exporters: []inference.ExporterStats{s}}
	}
	digest := func(c byte) *inference.Window {
		f := inference.DigestFault{Flow: flow(1), Count: DefaultConfig().DigestsStrange}
		switch c {
		case '.':
			return &inference.Window{}
		case 's':
			f.Count--
		case 'o':
			f.Fault, f.Node, f.Count = inference.Looping, 3, 1
		}
		return &inference.Window{Digests: []inference.DigestFault{f}}
	}
	tests := []struct {
		name    string
		windows []*inference.Window
		want    []string
	}{
		{"latency steps and comes back", sequence(warm+"1222"+strings.Repeat("1", 14), latency), []string{"402 high-latency warning started", "407 high-latency warning rests", "414 high-latency warning ended"}},
		{"one window above the limit", sequence(warm+"19111111111111", latency), []string{"402 high-latency critical started", "405 high-latency critical rests", "412 high-latency critical ended"}},
		{"a constant hop is nothing", sequence(warm+strings.Repeat("1", 50), latency), nil},
		{"latency escalates", sequence(warm+"2299", latency),
			[]string{"401 high-latency warning started", "403 high-latency critical escalated"}},
		{"latency falls", sequence(strings.Repeat("4", 400)+"2222", latency), []string{"401 low-latency warning started"}},
		{"windows with few packets say nothing", sequence(warm+"_2_2_1", latency), []string{"402 high-latency warning started"}},
		{"no packets any more", sequence(warm+"22____   ", latency),
			[]string{"401 high-latency warning started", "409 high-latency warning ended", "409 hop-silence warning started"}},
		{"packets come again", sequence(warm+"     111", latency),
			[]string{"403 hop-silence warning started", "408 hop-silence warning ended"}},
		{"no judgement before the warm-up", sequence("11111999", latency), nil},
		{"new normal is learnt", sequence(warm+strings.Repeat("3", 400), latency),
			[]string{"401 high-latency warning started", "764 high-latency warning ended"}},
		{"nobody knows whether a hop is silent", sequence(warm+"??????", latency), nil},

		{"one drop", sequence("..1.....", drop), []string{"3 drops warning started", "6 drops warning ended"}},
		{"drops go on and grow", sequence("1.11M1...", drop),
			[]string{"1 drops warning started", "5 drops critical escalated", "9 drops critical ended"}},
		{"drops come again", sequence("1...1...", drop), []string{"1 drops warning started", "4 drops warning ended", "5 drops warning started", "8 drops warning ended"}},

		{"digests that fit no path", sequence(".sS...", digest), []string{"3 strange-digests warning started", "6 strange-digests warning ended"}},
		{"packets loop", sequence(".o.o...", digest), []string{"2 routing-loop critical started", "7 routing-loop critical ended"}},

		{"path changes once", sequence(".c....", path), []string{"2 path-change info started", "5 path-change info ended"}},
		{"path flaps", sequence("cccccc...", path), []string{"1 path-change info started", "4 path-change warning escalated", "9 path-change warning ended"}},
		{"many paths change", sequence("C...", path),
			[]string{"1 path-change info started", "1 path-change warning started", "4 path-change warning ended", "4 path-change info ended"}},

		{"loss", sequence("..l"+strings.Repeat(".", 70), export), []string{"3 exporter-loss warning started", "63 exporter-loss warning ended"}},
		{"one of a thousand is nothing", sequence("..1......", export), nil},
		{"one of a thousand again and again", sequence(strings.Repeat("1", 30), export), []string{"12 exporter-loss warning started"}},
		{"what comes late is taken back", sequence("..lf....", export), []string{"3 exporter-loss warning started", "6 exporter-loss warning ended"}},
		{"severe loss", sequence(".lL"+strings.Repeat(".", 70), export),
			[]string{"2 exporter-loss warning started", "3 exporter-loss critical escalated", "21 exporter-loss critical ended"}},
		{"loss that falls", sequence(".L"+strings.Repeat("l", 30)+strings.Repeat(".", 70), export),
			[]string{"2 exporter-loss critical started", "92 exporter-loss critical ended"}},
		{"loss of an exporter that leaves off", sequence("..l"+strings.Repeat("_", 40), export),
			[]string{"3 exporter-loss warning started", "33 exporter-loss warning ended"}},
		{"exporter falls silent", sequence(often+"__________..", export), []string{"65 exporter-silence warning started", "71 exporter-silence warning ended"}},
		{"exporter stays silent", sequence(often+strings.Repeat("_", 40), export),
			[]string{"65 exporter-silence warning started", "90 exporter-silence critical escalated"}},
		{"exporter is forgotten", sequence(often+"__________ ", export), []string{"65 exporter-silence warning started", "71 exporter-silence warning ended"}},
		{"exporter that spoke rarely", sequence(often[:29]+"__________", export), nil},
		{"exporter that pauses", sequence(strings.Repeat(".__", 60)+strings.Repeat(".____", 2), export), nil},
		{"exporter that sleeps, forgotten or not", sequence(often+strings.Repeat(strings.Repeat("_", 40)+strings.Repeat(" ", 40)+often, 5), export),
			[]string{"65 exporter-silence warning started", "90 exporter-silence critical escalated", "101 exporter-silence critical ended",
				"204 exporter-silence warning started", "230 exporter-silence critical escalated", "241 exporter-silence critical ended"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.MinRecords = 5
			if got := reported(t, New(cfg), tt.windows...); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("reported %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	d := New(DefaultConfig())
	var got []string
	step := func(w *inference.Window) {
		for _, f := range d.Step(w) {
			got = append(got, f.Text)
		}
	}
	for range 100 {
		step(hopWindow(0, 12000, 0, 500))
	}
	step(hopWindow(0, 84000, 64000, 500))
	exporters := []inference.ExporterStats{{ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, 0, 1}), Node: 5, HWID: 2},
		Lost: 30, Reports: 997}}
	step(&inference.Window{
		Exporters: exporters,
		Drops:     []inference.DropStats{{Node: 4, Reason: 80, Count: 12, Flow: flow(1)}},
		Paths:     []inference.PathChange{{Flow: flow(1), From: []inference.HopKey{{Node: 1, EgressIf: 2}, {Node: 3}}, To: []inference.HopKey{{Node: 4}}, Packets: 99}},
	})
	want := []string{
		"latency of node 7 interface 3: p50 84µs over 500 packets, usually 12µs; the hop is still being learnt",
		"queue of node 7 interface 3: p50 64000 B over 500 packets, usually 0 B; the hop is still being learnt",
		"interface 7:3 explains 2 findings: 1 high-queue, 1 high-latency; queue of node 7 interface 3: p50 64000 B over 500 packets, usually 0 B; the hop is still being learnt",
		"10.0.0.1:1000 > 10.9.9.9:80 tcp left 1:2-3 for 4 after 99 packets",
		"node 4 dropped 12 packets for reason 80, the last of 10.0.0.1:1000 > 10.9.9.9:80 tcp",
		"exporter 10.0.0.1 node 5 hardware 2 lost 30 of 1027 reports since 1970-01-01 00:00:00, 2.92 %, at least 0.85 %",
		"node 4 explains 2 findings: 1 path-change, 1 drops; node 4 dropped 12 packets for reason 80, the last of 10.0.0.1:1000 > 10.9.9.9:80 tcp",
	}
	for i := range got {
		if i >= len(want) || got[i] != want[i] {
			t.Errorf("text %d: %q", i, got[i])
		}
	}
	if len(got) < len(want) {
		t.Errorf("%d texts, want %d", len(got), len(want))
	}
}

func TestBounds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxHops, cfg.MaxFlows, cfg.MaxDrops, cfg.ForgetAfter = 10, 3, 5, 2
	d := New(cfg)
	w := &inference.Window{End: 1, OtherPaths: 1}
	for i := range uint32(20) {
		w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: i}})
		w.Paths = append(w.Paths, inference.PathChange{Flow: flow(i)})
		w.Drops = append(w.Drops, inference.DropStats{Node: i, Count: 1})
	}
	w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Other: true}})
	got := d.Step(w)
	if len(got) != cfg.MaxFlows+1+cfg.MaxDrops || got[cfg.MaxFlows].Value != 20-3+1 {
		t.Errorf("%d findings, want %d: %+v", len(got), cfg.MaxFlows+1+cfg.MaxDrops, got)
	}
	if s := d.Stats(); s.Hops != 10 || s.HopsRefused != 10 || s.DropsRefused != 15 {
		t.Errorf("stats %+v", s)
	}
	// A link that flows left is remembered for 60 windows after its finding.
	for i := range 60 + cfg.PathStable + cfg.CauseSettle {
		d.Step(&inference.Window{End: int64(i + 2)})
	}
	if s, left := d.Stats(), len(d.AppendState(nil))-len(New(cfg).AppendState(nil)); s.Hops != 0 || s.Open != 0 || left != 0 {
		t.Errorf("after silence: %+v, %d bytes of state are left", s, left)
	}
}

// TestDeterministic replays random windows and wants the same findings.
func TestDeterministic(t *testing.T) {
	testkit.Long(t)
	run := func(seed uint64) (all []inference.Finding) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d := New(DefaultConfig())
		for i := range 300 {
			w := &inference.Window{End: int64(i)}
			for n := range uint32(20) {
				if rng.IntN(4) == 0 {
					w.Drops = append(w.Drops, inference.DropStats{Node: n, Count: rng.Uint64N(2000)})
				}
				if rng.IntN(4) == 0 {
					w.Paths = append(w.Paths, inference.PathChange{Flow: flow(n)})
				}
				if rng.IntN(50) != 0 && n > 0 {
					w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n},
						Lost: rng.Int64N(3) - 1, Reports: rng.Uint64N(3) * 100})
				}
				if n == 0 { // a regular one that falls silent
					w.Exporters = append(w.Exporters, inference.ExporterStats{Reports: uint64(max(0, 250-i))})
				}
				if rng.IntN(10) != 0 {
					v := 1000 + rng.Uint64N(1000)
					if i > 100 && i/20%3 == 2 {
						v *= 1 + rng.Uint64N(20)
					}
					w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n},
						Latency: inference.Summary{Count: 100, P50: v / 2, P90: v, P99: v}, Queue: inference.Summary{Count: 100, P50: v, P90: v, P99: v}})
				}
			}
			all = append(all, d.Step(w)...)
		}
		return append(all, d.Open()...)
	}
	for seed := range uint64(5) {
		a, b := run(seed), run(seed)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		kinds := map[inference.Kind]bool{}
		for _, f := range a {
			kinds[f.Kind] = true
		}
		if len(kinds) < 5 {
			t.Errorf("seed %d: findings of %d kinds, want 5 and more: %v", seed, len(kinds), kinds)
		}
	}
}

func TestConfig(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	cfg.LossSevere, cfg.SilentSevere = 0, 1
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v, want two problems", err)
	}
}

// TestPathGroup: a failed link moves many flows at once. They share one finding that names the link they left; a
// flow that moved for its own reason keeps its own.
func TestPathGroup(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PathGroup, cfg.PathStable = 5, 2
	d := New(cfg)
	hop := func(node, egress uint32) inference.HopKey { return inference.HopKey{Node: node, EgressIf: egress} }
	var w inference.Window
	for i := range uint16(7) {
		c := inference.PathChange{From: []inference.HopKey{hop(1, uint32(i)), hop(2, 3), hop(9, 1)}, To: []inference.HopKey{hop(1, 20), hop(4, 1), hop(9, 1)}}
		c.Flow.SrcPort, c.Flow.IPVersion = i, 4
		w.Paths = append(w.Paths, c)
	}
	alone := inference.PathChange{From: []inference.HopKey{hop(7, 1), hop(8, 1)}, To: []inference.HopKey{hop(7, 2), hop(6, 1)}}
	alone.Flow.SrcPort, alone.Flow.IPVersion = 99, 4
	w.Paths = append(w.Paths, alone)
	w.End = 1
	got := append([]inference.Finding(nil), d.Step(&w)...)
	if len(got) != 2 || got[0].Element != inference.ElementOfLink(1, 2) || got[0].Value != 7 || got[1].Flow != alone.Flow {
		t.Fatalf("Step = %+v, want one finding for link 1–2 with 7 flows and one for the flow", got)
	}
	ended := 0
	for end := int64(2); end < 5; end++ {
		back := inference.Window{End: end, Hops: []inference.HopStats{{HopKey: hop(1, 0), Count: 1}, {HopKey: hop(1, 1), Count: 1}}}
		for _, f := range d.Step(&back) {
			if f.End == 0 {
				t.Errorf("%+v does not end", f)
			}
			ended++
		}
	}
	if ended != 2 || len(d.Open()) != 0 {
		t.Errorf("%d findings ended, %d are open", ended, len(d.Open()))
	}
}

// TestEventsAreNoRhythm: an exporter that spoke only of drops and queues is not silent when these end.
func TestEventsAreNoRhythm(t *testing.T) {
	for _, events := range []bool{true, false} {
		d := New(DefaultConfig())
		found := 0
		for i := range int64(120) {
			s := inference.ExporterStats{Sequenced: true}
			if i < 60 {
				s.Reports = 5
				if events {
					s.Events = 5
				}
			}
			found += len(d.Step(&inference.Window{End: i + 1, Exporters: []inference.ExporterStats{s}}))
		}
		if (found == 0) != events {
			t.Errorf("events %v: %d findings", events, found)
		}
	}
}

// TestLearning holds that a hop learns until it has shown as much as its statistics need. A reader of the state has the
// same mark.
func TestLearning(t *testing.T) {
	d := New(DefaultConfig())
	window := func(n int64, nodes ...uint32) *inference.Window {
		w := &inference.Window{Start: n * 1e10, End: (n + 1) * 1e10}
		for _, node := range nodes {
			// No two windows are the same, which would be values that stand still.
			s := inference.Summary{Count: 100, P50: 1000 + uint64(n*37%100), P90: 2000 + uint64(n*53%100), P99: 3000 + uint64(n*71%100)}
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: node}, Count: 100, Latency: s})
		}
		w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Other: true}, Count: 5})
		return w
	}
	for n := range int64(720) {
		nodes := []uint32{1}
		if n >= 360 {
			nodes = append(nodes, 2)
		}
		w := window(n, nodes...)
		d.Step(w)
		d.Mark(w)
		young := n-360 < 359
		if w.Hops[0].Learning != (n < 359) || n >= 360 && w.Hops[1].Learning != young || w.Hops[len(w.Hops)-1].Learning {
			t.Fatalf("window %d: %+v", n, w.Hops)
		}
		want := 0
		for _, h := range w.Hops {
			if h.Learning {
				want++
			}
		}
		if got := d.Stats().Learning; got != want {
			t.Fatalf("window %d: %d hops are learning, want %d", n, got, want)
		}
		if n == 500 {
			second := New(DefaultConfig())
			if err := second.ReadState(d.AppendState(nil)); err != nil || second.Stats() != d.Stats() {
				t.Fatalf("after a restart: %v, %+v, want %+v", err, second.Stats(), d.Stats())
			}
			d = second
		}
	}
}

// TestStepAllocations: as long as all is well, a window costs no memory.
func TestStepAllocations(t *testing.T) {
	w := &inference.Window{End: 1}
	for n := range uint32(640) {
		s := inference.Summary{Count: 100, P99: 1000 + uint64(n)}
		w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n}, Count: 100, Latency: s, Queue: s})
		w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n}, Reports: 100})
	}
	cfg := DefaultConfig()
	d := New(cfg)
	for range 2 * cfg.Warmup {
		d.Step(w)
	}
	if n := testing.AllocsPerRun(10, func() { d.Step(w) }); n != 0 {
		t.Errorf("%v allocations per window, want 0", n)
	}
}
