package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

// kill is the kind of a kill of a collector, and the window in which it comes.
type kill struct {
	window int64
	part   bool  // the collector had sent its part of the window
	state  bool  // and had kept how far its exporters had counted by then
	single int   // reports that it had sent one by one; all of them where there is a part
	mark   bool  // it marked them as sent, so that there is no statement; only with a part
	same   bool  // the next run begins in the same window, and not in the next one
	behind int64 // windows after which its part is in the log, 0 for its own
	stated int64 // windows after which the statement is
}

// killed is a collector that is killed again and again, and the log of a slice that comes of it.
type killed struct {
	t       *testing.T
	tracker *sequence.Tracker
	pub     *Publisher
	boot    uint64
	number  uint32 // of the last report that was sent
	lost    int    // reports that are nowhere
	spool   int64  // window before which nothing of the spool is sent
	stored  int
	due     map[int64][]Record // by the window before whose close they are appended
	log     []Record
	m       *Merger
	windows map[int64]inference.ExporterStats // the last of each

	seen    func(n uint32)
	arrived map[uint32]bool // numbers of reports that are stored, of random lives
	gaps    []window.Gap    // that parts have, likewise
}

var killedExporter = decode.AddrFrom4([]byte{192, 0, 2, 1})

func newTrackerOf(state []byte, t *testing.T) *sequence.Tracker {
	cfg := sequence.DefaultConfig()
	cfg.MaxExporters = 16
	tr := sequence.New(cfg, 1)
	tr.ReportNumbers(16)
	if state != nil {
		if err := tr.ReadState(state, nil); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// begin begins a run that goes on from a state.
func (k *killed) begin(state []byte) {
	k.boot++
	k.tracker, k.pub = newTrackerOf(state, k.t), publisher("a", k.boot)
}

// receive has a tracker receive the next n reports.
func (k *killed) receive(tr *sequence.Tracker, n int, window int64) {
	for range n {
		k.number++
		observe(tr, k.number, window)
		if k.seen != nil {
			k.seen(k.number)
		}
	}
}

func observe(tr *sequence.Tracker, number uint32, window int64) {
	tr.Observe(&decode.Report{
		Time: window*tick - tick/2 + int64(number), Version: decode.V20, Exporter: killedExporter, NodeID: 7, HWID: 1, Seq: number, SeqBits: 32, FirstOfGroup: true, To: 9,
		Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq,
	})
}

// seen returns a tracker's partial of a window.
func seen(tr *sequence.Tracker, label int64) *window.Partial {
	p := &window.Partial{}
	p.AddExporters(tr.Cut(nil, label*tick))
	tr.Numbers(p)
	return p
}

func (k *killed) append(at int64, outs []Out) {
	for _, o := range outs {
		k.due[at] = append(k.due[at], Record{Head: o.Head, Value: o.Value})
	}
}

// part sends what the run has of a window.
func (k *killed) part(window, at int64) {
	p := seen(k.tracker, window)
	k.gaps = append(k.gaps, p.Gaps()...)
	outs, err := k.pub.Window(nil, p, window*tick, nil, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	k.spool = max(k.spool, at)
	k.append(k.spool, outs)
}

// state sends the statement for a run: of the next n reports.
func (k *killed) state(window, at int64, first uint32, n int) {
	var list []uint32
	for i := range uint32(n) {
		list = append(list, first+i)
	}
	k.stateOf(window, at, list)
}

// stateOf sends the statement for a run, of reports with these numbers.
func (k *killed) stateOf(window, at int64, numbers []uint32) {
	tr := newTrackerOf(nil, k.t)
	tr.Believe()
	for _, n := range numbers {
		observe(tr, n, window)
	}
	p := seen(tr, window)
	for i := range p.Exporters() {
		e := &p.Exporters()[i]
		e.Lost, e.Provisional, e.Down, e.Restarts = 0, 0, 0, 0
	}
	worker := publisher(PseudoName(int(window%2)), 0)
	outs, err := worker.Statements(nil, []Statement{{Source{From: "a", Boot: k.boot}, p}}, window*tick, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	k.append(at, outs)
	k.append(at, outs) // a worker that begins again says it again
}

const reportsEach = 10 // a window

// run goes through windows from 100 on.
func (k *killed) run(kills []kill, last int64) {
	k.begin(nil)
	before := k.tracker.AppendState(nil)
	for w := int64(100); w <= last; w++ {
		i := slices.IndexFunc(kills, func(x kill) bool { return x.window == w })
		if i < 0 {
			k.receive(k.tracker, reportsEach, w)
			k.stored += reportsEach
			k.part(w, w)
			before = k.tracker.AppendState(nil)
			continue
		}
		x := &kills[i]
		first := k.number + 1
		k.receive(k.tracker, reportsEach, w)
		if x.part {
			k.part(w, w+x.behind)
			k.stored += reportsEach
			if x.state {
				before = k.tracker.AppendState(nil)
			}
			if !x.mark {
				k.state(w, w+x.stated, first, reportsEach)
			}
		} else {
			k.stored += x.single
			k.lost += reportsEach - x.single
			if x.single > 0 {
				k.state(w, w+x.stated, first, x.single)
			}
		}
		k.number += 3 // which no run receives
		k.lost += 3
		k.begin(before)
		if x.same {
			k.receive(k.tracker, reportsEach, w)
			k.stored += reportsEach
			k.part(w, w)
		}
	}
}

// read has a merger read the log, from its state each time. It makes windows again as soon as it can or only now and
// then.
func (k *killed) read(last, every int64) {
	add := func(r Record) {
		r.Offset = int64(len(k.log))
		k.log = append(k.log, r)
		e, err := k.m.Add(&r)
		if err != nil {
			k.t.Fatal(err)
		}
		if e.Closed != nil {
			k.emit(e.Closed)
		}
	}
	for w := int64(100); w <= last; w++ {
		for _, r := range k.due[w] {
			add(r)
		}
		saved := k.m.AppendState(nil)
		if err := k.m.ReadState(saved); err != nil {
			k.t.Fatal(err)
		}
		if second := k.m.AppendState(nil); !bytes.Equal(second, saved) {
			k.t.Fatalf("window %d: the state became another one", w)
		}
		for _, r := range k.log[k.m.Floor():] { // as a reader does that goes on from the state
			if _, err := k.m.AddRecord(&r); err != nil {
				k.t.Fatal(err)
			}
		}
		add(Record{Head: Head{Kind: Close, Start: (w - 1) * tick, End: w * tick}})
		if w%every == 0 || w == last {
			k.second()
		}
	}
}

// second makes all windows again that have to be.
func (k *killed) second() {
	for n := 0; len(k.m.Pending()) > 0; n++ {
		if n > 100 {
			k.t.Fatal("windows are made again and again")
		}
		r := k.m.Rebuild(k.m.Pending()[0])
		for i := range k.log {
			if err := r.Add(&k.log[i]); err != nil {
				k.t.Fatal(err)
			}
		}
		m, err := r.Merged()
		if err != nil {
			k.t.Fatal(err)
		}
		k.emit(m)
	}
}

func (k *killed) emit(m *Merged) {
	k.windows[m.End] = inference.ExporterStats{}
	for _, e := range m.Partial.Exporters() {
		k.windows[m.End] = e
	}
	k.m.Release(m)
}

// TestKilled: the series of exporters have every report once, whatever a collector had sent when it was killed. Its own
// part, the statement for it and the parts of the next run come in any order. Windows are made again at any time.
// Reports sent one by one are there and not missing. Missing ones are there as missed by the collector.
func TestKilled(t *testing.T) {
	testkit.Long(t)
	limits := wide
	limits.Numbers, limits.Arrivals = 1e6, 1e6
	var kinds []kill
	for _, same := range []bool{false, true} {
		for _, single := range []int{0, 6, reportsEach} {
			kinds = append(kinds, kill{single: single, same: same})
		}
		for _, state := range []bool{false, true} {
			for _, mark := range []bool{false, true} {
				kinds = append(kinds, kill{part: true, state: state, mark: mark, same: same})
			}
		}
	}
	delays := []int64{0, 1, 3, 6, 20}
	const last = 140
	cases := 0
	check := func(kills []kill, every int64) {
		cases++
		m := newMerger(t, func(o *Options) {
			shared := cross.DefaultLimits()
			o.Cross, o.Limits, o.Patience = &shared, limits, 3
		})
		k := &killed{t: t, due: map[int64][]Record{}, m: m, windows: map[int64]inference.ExporterStats{}}
		k.run(kills, last)
		k.read(last, every)
		var sum inference.ExporterStats
		left := k.windows[last*tick].Provisional
		for _, e := range k.windows {
			sum.Add(&e)
		}
		if int(sum.Reports) != k.stored || int(sum.Down) != k.lost || sum.Lost != 0 || left != 0 || sum.Duplicated != 0 || k.stored+k.lost != int(k.number) {
			t.Errorf("%+v, made again every %d windows: of %d sent %d reports, want %d; %d down, want %d; %d lost, %d duplicated", kills, every, k.number, sum.Reports, k.stored, sum.Down, k.lost, sum.Lost, sum.Duplicated)
		}
	}
	for _, a := range kinds {
		a.window = 102
		for _, stated := range delays {
			a.stated = stated
			for _, behind := range delays { // as after an outage; what was kept before it is not behind as well
				if a.behind = behind; behind == 0 || a.part {
					check([]kill{a}, 1)
					check([]kill{a}, 4)
				}
			}
			a.behind = 0
			check([]kill{a}, last)
			for i, b := range kinds { // a second one in the window behind it, or in a later one
				b.window, b.stated = 103+int64(i%3), delays[(i+int(stated))%len(delays)]
				check([]kill{a, b}, 1+2*int64(i%2))
			}
		}
	}
	t.Log(cases, "orders")
	if cases < 1200 {
		t.Error(fmt.Sprint("only ", cases))
	}
}

// live goes through windows of a life at random. The network loses reports. The log is out of reach for some windows so
// that those come late as a whole. The state file stays behind. The collector is killed, with or without reports that
// it had sent one by one.
func (k *killed) live(rng *rand.Rand, last int64) {
	k.arrived = map[uint32]bool{}
	k.begin(nil)
	before := k.tracker.AppendState(nil)
	receive := func(w int64) (first, to uint32) {
		for i := range reportsEach {
			if i > 0 && w < last-30 && rng.IntN(30) == 0 {
				k.number += 1 + rng.Uint32N(3) // lost on their way
			}
			if k.receive(k.tracker, 1, w); i == 0 {
				first = k.number
			}
		}
		return first, k.number
	}
	store := func(first, to uint32, got func(n uint32) bool) {
		for n := first; n <= to; n++ {
			if got(n) && !k.arrived[n] {
				k.arrived[n] = true
				k.stored++
			}
		}
	}
	for w := int64(100); w <= last; w++ {
		quiet := w < 102 || w >= last-30
		arrived := map[uint32]bool{}
		k.seen = func(n uint32) { arrived[n] = true }
		if !quiet && rng.IntN(8) == 0 {
			k.spool = max(k.spool, w+rng.Int64N(9))
		}
		dies := !quiet && rng.IntN(6) == 0
		first, to := receive(w)
		sent := !dies || rng.IntN(2) == 0
		if sent {
			store(first, to, func(n uint32) bool { return arrived[n] })
			k.part(w, w)
			if quiet || rng.IntN(4) > 0 {
				before = k.tracker.AppendState(nil)
			}
		}
		if !dies {
			continue
		}
		if single := rng.IntN(reportsEach + 1); single > 0 {
			list := slices.Sorted(maps.Keys(arrived))[:single]
			if !sent {
				store(first, to, func(n uint32) bool { return slices.Contains(list, n) })
				k.stateOf(w, w+rng.Int64N(10), list)
			} else if single == reportsEach {
				k.stateOf(w, w+rng.Int64N(10), list)
			}
		}
		k.number += rng.Uint32N(5) // which no run receives
		k.begin(before)
		if rng.IntN(3) == 0 {
			arrived = map[uint32]bool{}
			first, to := receive(w)
			store(first, to, func(n uint32) bool { return arrived[n] })
			k.part(w, w)
			if rng.IntN(2) == 0 {
				before = k.tracker.AppendState(nil)
			}
		}
	}
}

// TestKilledLate: whatever a life is like, the series of exporters have every report once. Others are missed if they
// were sent while no run was there to receive them, or if a kill cost them. The rest are lost.
func TestKilledLate(t *testing.T) {
	limits := wide
	limits.Numbers, limits.Arrivals = 1e6, 1e6
	const last = 190
	lives, kills := 0, 0
	for seed := range uint64(testkit.Rounds(120, 10000)) {
		rng := rand.New(rand.NewPCG(seed, 27))
		m := newMerger(t, func(o *Options) {
			shared := cross.DefaultLimits()
			o.Cross, o.Limits, o.Patience = &shared, limits, 3
			if seed%2 == 1 {
				shared.Horizon = time.Duration(5 * tick)
			}
		})
		k := &killed{t: t, due: map[int64][]Record{}, m: m, windows: map[int64]inference.ExporterStats{}}
		k.live(rng, last)
		k.read(last, 1+rng.Int64N(6))
		lives, kills = lives+1, kills+int(k.boot)-1
		var sum inference.ExporterStats
		for _, e := range k.windows {
			sum.Add(&e)
		}
		down, lost := 0, 0
		for n := uint32(1); n <= k.number; n++ {
			switch {
			case k.arrived[n]:
			case slices.ContainsFunc(k.gaps, func(g window.Gap) bool { return n-g.First < g.Count }):
				down++
			default:
				lost++
			}
		}
		left := k.windows[last*tick].Provisional
		if int(sum.Reports) != k.stored || int(sum.Down) != down || int(sum.Lost) != lost || left != 0 || sum.Duplicated != 0 {
			t.Errorf("seed %d, %d kills: of %d sent %d reports, want %d; %d down, want %d; %d lost, want %d; %d duplicated, %d left", seed, k.boot-1, k.number, sum.Reports, k.stored, sum.Down, down, sum.Lost, lost, sum.Duplicated, left)
		}
	}
	t.Log(lives, "lives,", kills, "kills")
}
