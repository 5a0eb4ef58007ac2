package events

import (
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// detectorOf returns the detector of a type.
func detectorOf[T detector](t *testing.T, d *Detector) T {
	t.Helper()
	for _, x := range d.detectors {
		if x, ok := x.(T); ok {
			return x
		}
	}
	t.Fatalf("there is no detector of type %T", *new(T))
	panic("unreachable")
}

// Each limit of a detector counts exactly: one below it, at it, and one above.
func TestThresholds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.EndAfter, cfg.PolicyWindows, cfg.PathStable, cfg.PathFlaps, cfg.LearnAfter = 4, 3, 5, 4, 20
	empty := func(n int) []*inference.Window {
		return windows(n, func(int) *inference.Window { return &inference.Window{} })
	}
	times := func(n int, w inference.Window) []*inference.Window {
		return windows(n, func(int) *inference.Window { c := w; return &c })
	}
	then := func(parts ...[]*inference.Window) (all []*inference.Window) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	drops := func(n int) inference.Window {
		return inference.Window{Drops: []inference.DropStats{{Node: 4, Reason: 80, Count: uint64(n), Flow: flow(1)}}}
	}
	digests := func(n int) inference.Window {
		return inference.Window{Digests: []inference.DigestFault{{Flow: flow(1), Count: uint64(n)}}}
	}
	stray := inference.Window{Strays: []inference.Stray{{StrayKey: inference.StrayKey{Rule: "web", Reason: inference.Forbidden, Node: 9}, Flows: 1, Flow: flow(1)}}}
	var renamed inference.Window
	deviate(&renamed, 3, other)
	moved := inference.Window{Paths: []inference.PathChange{{Flow: flow(1), From: []inference.HopKey{{Node: 1}, {Node: 2}}, To: []inference.HopKey{{Node: 1}, {Node: 3}}}}}
	others := func(n int) inference.Window { return inference.Window{OtherPaths: uint64(n)} }
	var turns inference.Window
	for i := range 8 {
		c := change(t, 1, "1:1-2:1-3:9", "1:2-4:1-3:9")
		if c.Packets = 1; i%2 == 1 {
			c.From, c.To = c.To, c.From
		}
		turns.Paths = append(turns.Paths, c)
	}
	reports := inference.Window{Exporters: []inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: 5}, Reports: 1000}}}
	silence := inference.Window{Exporters: []inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: 5}}}}

	severe, few := cfg.DropsSevere, int(cfg.DigestsStrange)
	tests := []struct {
		name             string
		limit            int
		make             func(n int) []*inference.Window
		below, at, above []string
	}{
		{"drops that are critical", severe, func(n int) []*inference.Window { return times(1, drops(n)) },
			[]string{"1 drops warning started"}, []string{"1 drops critical started"}, []string{"1 drops critical started"}},
		{"drops of every fifth packet", 22, func(n int) []*inference.Window {
			w := drops(n)
			w.Hops = []inference.HopStats{{HopKey: inference.HopKey{Node: 3}, Count: 9}, {HopKey: inference.HopKey{Node: 4, EgressIf: 1}, Count: 70 - uint64(n)}, {HopKey: inference.HopKey{Node: 4, EgressIf: 2}, Count: 30}, {HopKey: inference.HopKey{Other: true}}}
			return times(1, w)
		}, []string{"1 drops warning started"}, []string{"1 drops critical started"}, []string{"1 drops critical started"}},
		{"windows without drops", cfg.EndAfter, func(n int) []*inference.Window { return then(times(1, drops(1)), empty(n), times(1, drops(1))) },
			[]string{"1 drops warning started"},
			[]string{"1 drops warning started", "5 drops warning ended", "6 drops warning started"},
			[]string{"1 drops warning started", "5 drops warning ended", "7 drops warning started"}},
		{"digests that fit no path", few, func(n int) []*inference.Window { return times(1, digests(n)) },
			nil, []string{"1 strange-digests warning started"}, []string{"1 strange-digests warning started"}},
		{"windows without such digests", cfg.EndAfter, func(n int) []*inference.Window { return then(times(1, digests(few)), empty(n), times(1, digests(few))) },
			[]string{"1 strange-digests warning started"},
			[]string{"1 strange-digests warning started", "5 strange-digests warning ended", "6 strange-digests warning started"},
			[]string{"1 strange-digests warning started", "5 strange-digests warning ended", "7 strange-digests warning started"}},
		{"windows off the policy", cfg.PolicyWindows, func(n int) []*inference.Window { return times(n, stray) },
			nil, []string{"3 off-policy warning started"}, []string{"3 off-policy warning started"}},
		{"windows on the policy", cfg.EndAfter, func(n int) []*inference.Window { return then(times(3, stray), empty(n), times(3, stray)) },
			[]string{"3 off-policy warning started"},
			[]string{"3 off-policy warning started", "7 off-policy warning ended", "10 off-policy warning started"},
			[]string{"3 off-policy warning started", "7 off-policy warning ended", "11 off-policy warning started"}},
		{"windows without an error of the inventory", cfg.EndAfter, func(n int) []*inference.Window { return then(times(1, renamed), empty(n), times(1, renamed)) },
			[]string{"1 inventory-error warning started"},
			[]string{"1 inventory-error warning started", "5 inventory-error warning ended", "6 inventory-error warning started"},
			[]string{"1 inventory-error warning started", "5 inventory-error warning ended", "7 inventory-error warning started"}},
		{"windows without a change of path", cfg.PathStable, func(n int) []*inference.Window { return then(times(1, moved), empty(n), times(1, moved)) },
			[]string{"1 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "7 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "8 path-change info started"}},
		{"changes of path that are no accident", cfg.PathFlaps, func(n int) []*inference.Window { return times(1, others(n)) },
			[]string{"1 path-change info started"}, []string{"1 path-change warning started"}, []string{"1 path-change warning started"}},
		{"windows without changes that are not listed", cfg.PathStable, func(n int) []*inference.Window { return then(times(1, others(1)), empty(n), times(1, others(1))) },
			[]string{"1 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "7 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "8 path-change info started"}},
		{"windows in which a flow is sprayed", cfg.LearnAfter + 1, func(n int) []*inference.Window { return times(n, turns) },
			[]string{"1 path-change info started"},
			[]string{"1 path-change info started", "21 path-change info ended"},
			[]string{"1 path-change info started", "21 path-change info ended"}},
		{"windows in which no flow is sprayed", cfg.PathStable, func(n int) []*inference.Window { return then(times(1, turns), empty(n), times(1, turns)) },
			[]string{"1 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "7 path-change info started"},
			[]string{"1 path-change info started", "6 path-change info ended", "8 path-change info started"}},
		{"silence that is critical", cfg.SilentSevere, func(n int) []*inference.Window { return then(times(100, reports), times(n, silence)) },
			[]string{"104 exporter-silence warning started"},
			[]string{"104 exporter-silence warning started", "130 exporter-silence critical escalated"},
			[]string{"104 exporter-silence warning started", "130 exporter-silence critical escalated"}},
		// Windows fade, so that one more is needed.
		{"windows that are a history", cfg.SilenceHistory + 1, func(n int) []*inference.Window { return then(times(n, reports), times(20, silence)) },
			nil, []string{"39 exporter-silence warning started"}, []string{"39 exporter-silence warning started"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, want := range [][]string{tt.below, tt.at, tt.above} {
				if got := reported(t, New(cfg), tt.make(tt.limit-1+i)...); !reflect.DeepEqual(got, want) {
					t.Errorf("%d: %q, want %q", tt.limit-1+i, got, want)
				}
			}
		})
	}
}

// A subject that is not observed for some time is forgotten in the window of the limit, and not one earlier.
func TestForgetThresholds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ForgetAfter = 7
	first := &inference.Window{
		Hops: hopWindow(0, 1000, 0, 100).Hops,
		Flows: []inference.FlowStats{{Key: flow(1), Hops: []inference.FlowHop{
			{HopKey: inference.HopKey{Node: 1, EgressIf: 2}}, {HopKey: inference.HopKey{Node: 3, EgressIf: 4}}}}},
		Links: []inference.LinkStats{
			{LinkKey: inference.LinkKey{Node: 1, EgressIf: 2, Peer: 3, PeerIf: 1}, Count: 9, At: 1},
			{LinkKey: inference.LinkKey{Node: 3, EgressIf: 1, Peer: 1, PeerIf: 2}, Count: 9, At: 1}},
		Losses: []inference.FlowLoss{{Flow: flow(1), Packets: 9, Path: []inference.HopKey{{Node: 1}, {Node: 3}}}},
	}
	for _, x := range []struct {
		name   string
		limit  int
		length func(d *Detector) int
	}{
		{"hops", cfg.ForgetAfter, func(d *Detector) int { return d.Stats().Hops }},
		{"links of which times are known", cfg.ForgetAfter, func(d *Detector) int { return len(detectorOf[*transits](t, d).List) }},
		{"links", cfg.ForgetAfter, func(d *Detector) int { return len(detectorOf[*ways.Wires](t, d).List) }},
	} {
		d := New(cfg)
		d.Step(first)
		if n := x.length(d); n != 1 {
			t.Errorf("%s: %d are known, want 1", x.name, n)
		}
		for n := 1; n <= x.limit+1; n++ {
			d.Step(&inference.Window{End: int64(n + 1)})
			if got, want := x.length(d), map[bool]int{true: 1}[n < x.limit]; got != want {
				t.Errorf("%s: %d are known after %d windows, want %d", x.name, got, n, want)
			}
		}
	}
}

// A flow is judged from as many reports in a window as the settings ask for.
func TestBusyThreshold(t *testing.T) {
	cfg := DefaultConfig()
	for i, want := range []int{0, 1, 1} {
		n := cfg.BusyReports - 1 + uint64(i)
		d := New(cfg)
		d.Step(&inference.Window{End: 1, Flows: []inference.FlowStats{{Key: flow(1), Packets: n, Hops: []inference.FlowHop{
			{HopKey: inference.HopKey{Node: 1, EgressIf: 2}, Latency: inference.Summary{Count: n, P50: 1000, P90: 1000, P99: 1000}}}}}})
		if got := len(detectorOf[*flows](t, d).List); got != want {
			t.Errorf("%d reports: %d flows are judged, want %d", n, got, want)
		}
	}
}

// The time that a packet takes is learnt from windows with at most fewPackets in the queue. Their tail must be
// waitsLonger times the usual difference between packets. A time more than three times the known one is judged first,
// between waitFirst windows and waitSamples.
func TestWaitingThresholds(t *testing.T) {
	window := func(tail, queue uint64) *inference.HopStats {
		return &inference.HopStats{Latency: inference.Summary{Count: 100, P50: 1000, P90: 1100, P99: 1000 + tail}, Queue: inference.Summary{Count: 100, P99: queue}}
	}
	for _, x := range []struct {
		name   string
		before waiting
		window *inference.HopStats
		seen   int
		later  bool
	}{
		{"a byte less than the queue that counts", waiting{idle: 100}, window(1000, fewPackets-1), 1, false},
		{"the longest queue that counts", waiting{idle: 100}, window(1000, fewPackets), 1, false},
		{"a byte more", waiting{idle: 100}, window(1000, fewPackets+1), 0, false},
		{"a tail that is too short", waiting{idle: 100}, window(999, 1), 0, false},
		{"the shortest tail", waiting{idle: 100}, window(1000, 1), 1, false},
		{"a longer one", waiting{idle: 100}, window(1001, 1), 1, false},
		{"three times what is known", waiting{idle: 100, packet: 1000, seen: 20}, window(3000, 1), 21, false},
		{"more than that", waiting{idle: 100, packet: 1000, seen: 20}, window(3001, 1), 20, true},
		{"more, while little is known", waiting{idle: 100, packet: 1000, seen: waitFirst - 1}, window(3001, 1), waitFirst, false},
		{"more, as soon as something is", waiting{idle: 100, packet: 1000, seen: waitFirst}, window(3001, 1), waitFirst, true},
		{"more, while not all is known", waiting{idle: 100, packet: 1000, seen: waitSamples - 1}, window(3001, 1), waitSamples - 1, true},
		{"more, once all is known", waiting{idle: 100, packet: 1000, seen: waitSamples}, window(3001, 1), waitSamples, false},
	} {
		w := x.before
		x.window.Latency.P90 = x.window.Latency.P50 + 100
		if later := w.learn(x.window) > 0; later != x.later || w.seen != x.seen {
			t.Errorf("%s: judged first %v after %d windows, want %v after %d", x.name, later, w.seen, x.later, x.seen)
		}
	}
}
