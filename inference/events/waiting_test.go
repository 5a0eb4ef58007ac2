package events

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// summaryOf is that of all values, by nearest rank.
func summaryOf(v []uint64) inference.Summary {
	slices.Sort(v)
	at := func(q float64) uint64 { return v[max(int(math.Ceil(q*float64(len(v))-1e-9))-1, 0)] }
	return inference.Summary{Count: uint64(len(v)), P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

// waitWindow returns a window of a hop on which one packet of fifty waits for a part of another one's sending time.
// That is 1 ms for 1200 bytes. The argument extra is added to all latencies, and as many packets as burst are in front
// of all.
func waitWindow(r *rand.Rand, at int, count int, extra, burst uint64) *inference.Window {
	var latencies, queues []uint64
	for range count {
		l, q := 20_000+r.Uint64N(10_000)+extra, burst
		if r.IntN(50) == 0 {
			q++
		}
		if q > 0 {
			l += (q-1)*1_000_000 + r.Uint64N(1_000_000)
		}
		latencies, queues = append(latencies, l), append(queues, q*1200)
	}
	return &inference.Window{Start: int64(at) * 1e9, End: int64(at+1) * 1e9, Hops: []inference.HopStats{{
		HopKey: inference.HopKey{Node: 7, EgressIf: 2}, Count: uint64(count), Latency: summaryOf(latencies), Queue: summaryOf(queues)}}}
}

// A packet that waits for one other is no finding, however rarely it happens, and a fault on the same hop is. The time
// that a packet takes is learnt from the hop itself.
func TestOnePacketThatWaitsIsNoNews(t *testing.T) {
	for _, count := range []int{2, 8, 20, 70, 300} {
		for name, fault := range map[string][2]uint64{"8 ms more": {8_000_000, 0}, "20 packets in front": {0, 20}} {
			r, d := rand.New(rand.NewPCG(1, uint64(count))), New(DefaultConfig())
			at := 0
			for ; at < 1500; at++ {
				for _, f := range d.Step(waitWindow(r, at, count, 0, 0)) {
					t.Errorf("%d packets, window %d: %s: %s", count, at, f.Kind, f.Text)
				}
			}
			delay := 0
			for k := 1; k <= 20 && delay == 0; k++ {
				if len(d.Step(waitWindow(r, at+k, count, fault[0], fault[1]))) > 0 {
					delay = k
				}
			}
			if most := map[bool]int{true: 3, false: 1}[count < 20]; count >= 5 && (delay == 0 || delay > most) {
				t.Errorf("%d packets, %s: found after %d windows, want %d at most", count, name, delay, most)
			}
		}
	}
}

// The learnt time of packets that wait hides neither a tail that was there first, nor one that comes later.
func TestWaitingLearnsNoTail(t *testing.T) {
	var w waiting
	learn := func(s *inference.HopStats) float64 { // and what it shows is no finding
		later := w.learn(s)
		w.settle(later, false)
		return later
	}
	window := func(p50, p90, p99, q50, q99 uint64) *inference.HopStats {
		return &inference.HopStats{Latency: inference.Summary{Count: 100, P50: p50, P90: p90, P99: p99}, Queue: inference.Summary{Count: 100, P50: q50, P99: q99}}
	}
	for range 100 { // latencies differ as much without a queue
		learn(window(10_000, 36_000, 100_000, 0, 0))
		learn(window(10_000, 36_000, 110_000, 0, 1500))
	}
	if got := w.floor(0); got != 0 {
		t.Errorf("a tail that is no queue gives a floor of %v ns", got)
	}
	w = waiting{}
	for range 20 {
		learn(window(25_000, 29_000, 29_500, 0, 0))
		learn(window(25_000, 29_000, 900_000, 0, 1200))
	}
	if got := w.floor(0); got < waitFloor*850_000 || got > 2*waitFloor*900_000 {
		t.Errorf("packets of 0.9 ms give a floor of %v ns", got)
	}
	if learn(window(25_000, 29_000, 50_000_000, 0, 1200)) == 0 {
		t.Error("one packet that takes 50 ms is not judged first")
	}
	for range 1000 {
		learn(window(25_000, 29_000, 50_000_000, 0, 1200))
	}
	if got := w.floor(0); got > waitMost {
		t.Errorf("the floor grows to %v ns", got)
	}
	for range 1000 {
		learn(window(25_000, 29_000, 900_000, 0, 1200))
	}
	if got := w.floor(w.floor(0)); got > 8*waitFloor*900_000 {
		t.Errorf("and stays at %v ns", got)
	}
}

// While it is not known whether a value of a hop of few packets comes again, it is not the usual time of its packets.
// It is learnt when that is known.
func TestWaitingHoldsWhatIsPending(t *testing.T) {
	known := waiting{idle: 4000, packet: 900_000, score: 4, seen: 20}
	slow := &inference.HopStats{Latency: inference.Summary{Count: 50, P50: 25_000, P90: 29_000, P99: 50_000_000}, Queue: inference.Summary{Count: 50, P99: 1200}}
	known.learn(slow)
	before := known
	later := known.learn(slow)
	if later < 49_000_000 || known != before {
		t.Fatalf("one packet that takes 50 ms is learnt before it is judged: %+v", known)
	}
	if known.settle(later, true) || known.settle(known.learn(slow), true) || known.packet != 900_000 || known.seen != 20 {
		t.Errorf("what is pending is learnt: %+v", known)
	}
	if !known.settle(0, false) || known.packet != 1_350_000 || known.seen != 21 || known.settle(0, false) {
		t.Errorf("what was pending is not learnt once: %+v", known)
	}

	// The same through a detector: the floor stands still while the latency of the hop is pending.
	r, d := rand.New(rand.NewPCG(1, 50)), New(DefaultConfig())
	at := 0
	for ; at < 300; at++ {
		d.Step(waitWindow(r, at, 50, 0, 0))
	}
	h := &d.hops.List[0].State
	h.waiting.seen = waitFirst
	was := h.waiting
	w := waitWindow(r, at, 50, 0, 0)
	s := &w.Hops[0]
	s.Latency.P99, s.Latency.Max = 400_000_000, 400_000_000
	s.Queue.P50, s.Queue.P90, s.Queue.P99 = 0, 0, 1200
	d.Step(w)
	if !h.series[latency].Pending() || h.waiting.packet != was.packet || h.waiting.pendingTime < 300_000_000 {
		t.Errorf("one packet that takes 400 ms: pending %v, %+v, before %+v", h.series[latency].Pending(), h.waiting, was)
	}
	for k := 1; k < 8; k++ {
		d.Step(waitWindow(r, at+k, 50, 0, 0))
	}
	if h.series[latency].Pending() || h.waiting.packet <= was.packet || h.waiting.pendingTime != 0 {
		t.Errorf("it did not come again: pending %v, %+v, before %+v", h.series[latency].Pending(), h.waiting, was)
	}
}
