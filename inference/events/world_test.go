package events

import (
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// world is a network in which everything goes wrong now and then. Hops slow down, fill up, fall silent and vanish;
// nodes drop packets; links fail. Flows flap; digests are strange; exporters lose, repair, pause and leave. The same
// seed gives the same windows.
type world struct {
	rng    *rand.Rand
	window int64

	slow    map[uint32]uint64 // factor of a node's latencies while its fault lasts
	full    map[uint32]uint64 // of its queues
	gone    map[uint32]bool   // nodes whose hops are not seen
	drops   map[dropCause]uint64
	strange map[uint32]bool // flows by number
	paused  map[uint32]bool // exporters by number
	absent  map[uint32]bool // exporters that left
	storm   bool
}

type dropCause struct {
	node   uint32
	reason uint8
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 77)), slow: map[uint32]uint64{}, full: map[uint32]uint64{}, gone: map[uint32]bool{},
		drops: map[dropCause]uint64{}, strange: map[uint32]bool{}, paused: map[uint32]bool{}, absent: map[uint32]bool{},
	}
}

// chance is true once in n times on average.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// next returns the next window of ten seconds.
func (w *world) next() *inference.Window {
	w.window++
	const second = 1_000_000_000
	out := &inference.Window{Start: (w.window - 1) * 10 * second, End: w.window * 10 * second}
	if w.chance(40) {
		w.storm = !w.storm
	}
	w.hops(out)
	w.paths(out)
	w.dropped(out)
	w.digests(out)
	w.exporters(out)
	return out
}

func (w *world) hops(out *inference.Window) {
	for n := range uint32(14) {
		switch w.rng.IntN(120) {
		case 0:
			w.slow[n] = 1 + w.rng.Uint64N(60)
		case 1:
			w.full[n] = 1 + w.rng.Uint64N(60)
		case 2, 3:
			delete(w.slow, n)
			delete(w.full, n)
		case 4:
			w.gone[n] = !w.gone[n]
		}
		if w.gone[n] || w.chance(30) {
			continue
		}
		count := uint64(100)
		if w.chance(25) {
			count = w.rng.Uint64N(40)
		}
		latency := (1000*uint64(n+1) + w.rng.Uint64N(500)) * max(1, w.slow[n])
		queue := 1500 * w.rng.Uint64N(1+2*uint64(n%3)) * max(1, w.full[n])
		out.Hops = append(out.Hops, inference.HopStats{
			HopKey: inference.HopKey{Node: n / 2, EgressIf: n % 2 * (n + 1)}, Count: count,
			Latency:     inference.Summary{Count: count, P50: latency / 3, P90: latency / 2, P99: latency},
			Queue:       inference.Summary{Count: count, P50: queue / 4, P90: queue / 2, P99: queue},
			Utilization: float64(latency%500) / 5000 * float64(max(1, min(10, w.full[n]))), HasUtilization: n%3 == 0,
		})
	}
	if w.chance(3) {
		s := inference.Summary{Count: 100, P99: 1e6}
		out.Hops = append(out.Hops, inference.HopStats{HopKey: inference.HopKey{Other: true}, Count: 100, Latency: s, Queue: s})
	}
}

func (w *world) flow(n uint32) decode.FlowKey {
	if n%5 == 4 {
		return decode.FlowKey{Src: decode.Addr{0xfd, 15: byte(n)}, Dst: decode.Addr{0xfd, 1, 15: 9}, SrcPort: uint16(n), DstPort: 443, Proto: 17, IPVersion: 6}
	}
	return flow(n * 7919 % 251)
}

func (w *world) path() []inference.HopKey {
	hops := make([]inference.HopKey, w.rng.IntN(5))
	if w.chance(50) {
		hops = make([]inference.HopKey, 20)
	}
	for i := range hops {
		hops[i] = inference.HopKey{Node: w.rng.Uint32N(6), EgressIf: w.rng.Uint32N(3)}
	}
	return hops
}

func (w *world) paths(out *inference.Window) {
	for n := range uint32(30) {
		often := 200
		if w.storm {
			often = 6
		} else if n < 2 {
			often = 3
		}
		if w.chance(often) {
			out.Paths = append(out.Paths, inference.PathChange{Time: out.Start + int64(n), Flow: w.flow(n), From: w.path(), To: w.path(), Packets: w.rng.Uint64N(1000)})
		}
	}
	w.rng.Shuffle(len(out.Paths), func(i, j int) { out.Paths[i], out.Paths[j] = out.Paths[j], out.Paths[i] })
	if w.chance(15) {
		out.OtherPaths = w.rng.Uint64N(5)
	}
}

func (w *world) dropped(out *inference.Window) {
	if w.chance(6) {
		w.drops[dropCause{w.rng.Uint32N(9), uint8(80 + w.rng.IntN(3))}] = 1 + w.rng.Uint64N(30)
	}
	var causes []dropCause
	for c := range w.drops {
		causes = append(causes, c)
	}
	slices.SortFunc(causes, func(a, b dropCause) int {
		return (int(a.node)-int(b.node))*256 + int(a.reason) - int(b.reason)
	})
	for _, c := range causes {
		switch w.rng.IntN(12) {
		case 0:
			delete(w.drops, c)
			continue
		case 1:
			w.drops[c] *= 10
		case 2, 3, 4:
			continue
		}
		s := inference.DropStats{Node: c.node, Reason: c.reason, Count: w.rng.Uint64N(1 + min(w.drops[c], 1e9))}
		if w.chance(2) {
			s.Flow = w.flow(w.rng.Uint32N(30))
		}
		out.Drops = append(out.Drops, s)
	}
}

func (w *world) digests(out *inference.Window) {
	if w.chance(10) {
		n := w.rng.Uint32N(30)
		w.strange[n] = !w.strange[n]
	}
	for _, fault := range []inference.Fault{inference.Inconsistent, inference.Looping} {
		for n := range uint32(30) {
			if !w.strange[n] || w.chance(3) || n%2 == uint32(fault) && !w.chance(20) {
				continue
			}
			f := inference.DigestFault{Flow: w.flow(n), Fault: fault, Count: w.rng.Uint64N(40)}
			if fault == inference.Looping {
				f.Node = w.rng.Uint32N(9)
			}
			out.Digests = append(out.Digests, f)
		}
	}
}

func (w *world) exporters(out *inference.Window) {
	for n := range uint32(8) {
		switch w.rng.IntN(150) {
		case 0, 1:
			w.paused[n] = !w.paused[n]
		case 2:
			w.absent[n] = !w.absent[n]
		}
		if w.absent[n] {
			continue
		}
		s := inference.ExporterStats{
			ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, byte(n / 3), 1}), Node: n % 3, HWID: uint8(n % 2)},
			Reports:     1000 + w.rng.Uint64N(1000), Sequenced: true,
		}
		switch w.rng.IntN(20) {
		case 0:
			s.Lost = w.rng.Int64N(200)
		case 1:
			s.Lost = -w.rng.Int64N(200)
		case 2:
			s.Events = s.Reports
		case 3:
			s.Malformed = w.rng.Uint64N(3)
		}
		if w.paused[n] || n == 3 && !w.chance(3) {
			s.Reports, s.Lost, s.Events = 0, 0, 0
		}
		out.Exporters = append(out.Exporters, s)
	}
}
