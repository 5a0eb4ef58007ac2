package cross

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

// datagram is one that was sent, or a copy of one, and which collectors it reaches.
type datagram struct {
	number uint32
	at     int64
	to     []int
}

// hearing is collectors that each have a tracker, one tracker that sees everything, and a Cross.
type hearing struct {
	t        *testing.T
	name     string
	rng      *rand.Rand
	trackers []*sequence.Tracker
	one      *sequence.Tracker
	cross    *Crossing
	limits   Limits
	width    uint8
	addrs    []uint64 // of the collectors
	end      int64
	window   int64
	wide     window.Limits

	sum, oneSum inference.ExporterStats
	last        inference.ExporterStats
	rows        []inference.ExporterStats // of all windows
	same        bool                      // every window is that of one tracker
	shuffled    bool                      // states are written and read between windows
	late        []int                     // collectors whose parts come late
	past        map[int64][]*window.Partial
}

func newHearing(t *testing.T, name string, seed uint64, collectors, runs int) *hearing {
	rng := rand.New(rand.NewPCG(seed, 31))
	w := &hearing{t: t, name: name, rng: rng, end: 1.7e18, window: []int64{1e9, 10e9}[rng.IntN(2)], width: []uint8{22, 32}[rng.IntN(2)], same: true,
		one: sequence.New(sequence.DefaultConfig(), seed), wide: window.Limits{Exporters: 1e6, Numbers: 1e6, Arrivals: 1e6, Paths: 1e6, Flows: 1e6}}
	w.past = map[int64][]*window.Partial{}
	w.limits = DefaultLimits()
	w.limits.Horizon = 40e9
	w.cross = New(w.limits)
	for i := range collectors {
		tr := sequence.New(sequence.DefaultConfig(), seed+uint64(i))
		tr.ReportNumbers(runs)
		w.trackers = append(w.trackers, tr)
		w.addrs = append(w.addrs, 7+uint64(i)*rng.Uint64N(2))
	}
	return w
}

func (w *hearing) report(number uint32, at int64, to uint64) *decode.Report {
	return &decode.Report{
		Time: at, Version: decode.V20, Exporter: decode.AddrFrom4([]byte{192, 0, 2, 1}), NodeID: 7, HWID: 1,
		Seq: number & (^uint32(0) >> (32 - w.width)), SeqBits: w.width, FirstOfGroup: true, To: to,
		Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq,
	}
}

// turn sends the datagrams of a window and ends it. Collectors are missing from parts that are nil.
func (w *hearing) turn(all []datagram) {
	w.t.Helper()
	w.end += w.window
	for _, d := range all {
		for _, c := range d.to {
			w.one.Observe(w.report(d.number, d.at, 7))
			w.trackers[c].Observe(w.report(d.number, d.at, w.addrs[c]))
		}
	}
	var merged, other window.Partial
	second := New(w.limits) // in another order, from its state
	if err := second.ReadState(w.cross.AppendState(nil)); err != nil {
		w.t.Fatalf("%s: %v", w.name, err)
	}
	w.cross.Begin(w.end)
	second.Begin(w.end)
	var parts []*window.Partial
	for _, tr := range w.trackers {
		p := &window.Partial{}
		p.AddExporters(tr.Cut(nil, w.end))
		tr.Numbers(p)
		b, err := p.AppendBinary(nil)
		if err != nil {
			w.t.Fatal(err)
		}
		q := &window.Partial{}
		if err := q.ReadBinary(b, w.wide); err != nil {
			w.t.Fatalf("%s: %v", w.name, err)
		}
		parts = append(parts, q)
	}
	w.past[w.end] = parts
	for i, q := range parts {
		if !slices.Contains(w.late, i) {
			w.cross.Add(fmt.Sprint("collector-", i), q)
			merged.Merge(q)
		}
	}
	for _, i := range w.rng.Perm(len(parts)) {
		if slices.Contains(w.late, i) {
			continue
		}
		second.Add(fmt.Sprint("collector-", i), parts[i])
		other.Merge(parts[i])
	}
	w.cross.Finish(&merged)
	second.Finish(&other)
	got, same := merged.Window(w.wide).Exporters, other.Window(w.wide).Exporters
	if !slices.Equal(got, same) {
		w.t.Fatalf("%s: another order gives %+v, want %+v", w.name, stats(same), stats(got))
	}
	if a, b := w.cross.AppendState(nil), second.AppendState(nil); !slices.Equal(a, b) {
		w.t.Fatalf("%s: another order leaves another state", w.name)
	}
	if w.shuffled {
		w.cross = second
	}
	if len(merged.Numbers())+len(merged.Arrivals()) > 0 {
		w.t.Fatalf("%s: numbers are left", w.name)
	}
	want := w.one.Cut(nil, w.end)
	if len(got) != len(want) && len(w.late) == 0 || len(got) > 1 {
		w.t.Fatalf("%s: %d exporters, want %d", w.name, len(got), len(want))
	}
	w.same = w.same && slices.Equal(got, want)
	for i := range got {
		w.last = got[i]
		w.rows = append(w.rows, got[i])
		addStats(&w.sum, &got[i])
	}
	for i := range want {
		addStats(&w.oneSum, &want[i])
	}
	if len(got) == 0 {
		w.rows = append(w.rows, inference.ExporterStats{})
	}
}

// second makes a window again, with all parts: the one so many windows ago.
func (w *hearing) second(ago int) {
	w.t.Helper()
	end := w.end - int64(ago)*w.window
	a := w.cross.Recross()
	a.Begin(end)
	var merged window.Partial
	for i, q := range w.past[end] {
		a.Add(fmt.Sprint("collector-", i), q)
		merged.Merge(q)
	}
	a.Finish(&merged)
	w.rows[len(w.rows)-1-ago] = merged.Window(w.wide).Exporters[0]
	w.sum = inference.ExporterStats{}
	for i := range w.rows {
		addStats(&w.sum, &w.rows[i])
	}
}

func addStats(to, e *inference.ExporterStats) {
	to.Add(e)
	to.Provisional = e.Provisional
}

func stats(all []inference.ExporterStats) (s string) {
	for _, e := range all {
		s += fmt.Sprintf("[reports %d lost %d provisional %d duplicated %d reordered %d late %d down %d restarts %d]", e.Reports, e.Lost, e.Provisional, e.Duplicated, e.Reordered, e.Late, e.Down, e.Restarts)
	}
	return s
}

// stream makes up what an exporter sends in some windows and what becomes of it.
type sent struct {
	windows   [][]datagram
	arrived   map[uint32]int
	first     uint32
	last      uint32
	copies    uint64
	datagrams uint64
}

// policy returns the collectors that a datagram reaches.
type policy func(at int64) []int

func send(rng *rand.Rand, w *hearing, windows int, reach policy) *sent {
	s := &sent{arrived: map[uint32]int{}}
	mask := ^uint32(0) >> (32 - w.width)
	n := rng.Uint32() & mask
	if rng.IntN(2) == 0 {
		n = (0 - rng.Uint32N(5000)) & mask
	}
	loss := []float64{0, 0.001, 0.02}[rng.IntN(3)]
	twice, disorder := []float64{0, 0.01}[rng.IntN(2)], []int{0, 0, 30}[rng.IntN(3)]
	begun := false
	for i := range windows {
		count := 1 + rng.IntN(400)
		var all []datagram
		for k := range count {
			at := w.end + int64(i)*w.window + int64(k)*w.window/int64(count)
			n = (n + 1) & mask
			if begun && rng.IntN(500) == 0 {
				n = (n + rng.Uint32N(300)) & mask // lost in a row
			}
			d := datagram{n, at, reach(at)}
			if begun && rng.Float64() < loss || len(d.to) == 0 {
				continue
			}
			begun = true
			all = append(all, d)
			if rng.Float64() < twice {
				all = append(all, datagram{n, at, reach(at)})
			}
		}
		if disorder > 0 {
			for k := 2; k < len(all); k++ { // what comes first of all stays there
				if j := k - rng.IntN(disorder); j > 0 && rng.IntN(20) == 0 && (i > 0 || j > 1) {
					all[j].number, all[k].number = all[k].number, all[j].number
				}
			}
		}
		for _, d := range all {
			for range d.to {
				if s.arrived[d.number]++; s.arrived[d.number] > 1 {
					s.copies++
				}
				s.datagrams++
			}
			if len(s.arrived) == 1 {
				s.first, s.last = d.number, d.number
			} else if (d.number-s.last)&mask < mask/2 {
				s.last = d.number
			}
		}
		s.windows = append(s.windows, all)
	}
	return s
}

// settle ends windows until nothing is waited for.
func (w *hearing) settle() {
	for range 60e9/w.window + 2 {
		w.turn(nil)
	}
}

// check holds the sums against the truth.
func (w *hearing) check(s *sent) {
	w.t.Helper()
	mask := ^uint32(0) >> (32 - w.width)
	missing := int64((s.last-s.first)&mask) + 1 - int64(len(s.arrived))
	if w.sum.Lost != missing || w.sum.Duplicated != s.copies || w.sum.Reports != s.datagrams || w.last.Provisional != 0 || w.sum.Restarts != 0 || w.sum.Down != 0 {
		w.t.Errorf("%s: %s, want %d reports, %d lost, %d duplicated; one tracker reports %s\nwindows of %v s: %s", w.name,
			stats([]inference.ExporterStats{w.sum}), s.datagrams, missing, s.copies, stats([]inference.ExporterStats{w.oneSum}), w.window/1e9, stats(w.rows))
	}
}

// policies are the ways in which datagrams are shared out.
func policies(rng *rand.Rand, collectors int, window int64) map[string]policy {
	all := make([]int, collectors)
	for i := range all {
		all[i] = i
	}
	now, next := []int{rng.IntN(collectors)}, int64(0)
	moves := func(at int64) []int {
		if at > next {
			now = []int{rng.IntN(collectors)}
			next = at + rng.Int64N(6*window)
		}
		return now
	}
	var mixed policy
	until := int64(0)
	kinds := []policy{
		func(int64) []int { return all },
		func(int64) []int { return []int{rng.IntN(collectors)} },
		moves,
	}
	return map[string]policy{
		"moves":  moves,
		"spray":  kinds[1],
		"copies": kinds[0],
		"evens and odds": func() policy {
			n := 0
			return func(int64) []int { n++; return []int{n % collectors} }
		}(),
		"some copies": func(int64) (to []int) {
			for _, c := range all {
				if rng.IntN(2) == 0 {
					to = append(to, c)
				}
			}
			if len(to) == 0 {
				return []int{0}
			}
			return to
		},
		"mixed": func(at int64) []int {
			if at > until {
				mixed, until = kinds[rng.IntN(len(kinds))], at+rng.Int64N(8*window)
			}
			return mixed(at)
		},
	}
}

// TestCross shares the datagrams of an exporter out over collectors in many ways, and holds what Cross makes of their
// parts against the truth.
func TestCross(t *testing.T) {
	testkit.Long(t)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 32))
		collectors := 2 + rng.IntN(3)
		for _, name := range []string{"moves", "spray", "copies", "evens and odds", "some copies", "mixed"} {
			w := newHearing(t, fmt.Sprintf("%s among %d, seed %d", name, collectors, seed), seed, collectors, 1000)
			w.limits.Runs = 4000
			w.cross = New(w.limits)
			w.shuffled = seed%2 == 0
			s := send(rng, w, 3+rng.IntN(25), policies(rng, collectors, w.window)[name])
			for _, all := range s.windows {
				w.turn(all)
			}
			w.settle()
			w.check(s)
			if t.Failed() {
				return
			}
		}
	}
}

// TestCrossAlone: as long as one collector hears an exporter, its numbers are those of that collector's tracker, bit
// for bit.
func TestCrossAlone(t *testing.T) {
	for seed := range uint64(100) {
		w := newHearing(t, fmt.Sprint("seed ", seed), seed, 1+int(seed%4), 1+int(seed%64))
		rng := rand.New(rand.NewPCG(seed, 33))
		c := rng.IntN(len(w.trackers))
		s := send(rng, w, 20, func(int64) []int { return []int{c} })
		for i, all := range s.windows {
			if i == 12 && seed%3 == 0 { // a restart changes nothing of that
				for k := range all {
					all[k].number += 1 << 21
				}
			}
			w.turn(all)
		}
		w.settle()
		if !w.same {
			t.Fatalf("%s: %s, one tracker reports %s", w.name, stats(w.rows), stats([]inference.ExporterStats{w.oneSum}))
		}
	}
}

// TestCrossFew: if there is no room for all runs, the lost numbers less the duplicates are still exact.
func TestCrossFew(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 34))
		collectors := 2 + rng.IntN(3)
		for _, name := range []string{"moves", "spray", "evens and odds", "mixed"} {
			w := newHearing(t, fmt.Sprintf("%s among %d, seed %d", name, collectors, seed), seed, collectors, 4+rng.IntN(20))
			w.limits.Runs = 4 + rng.IntN(30)
			w.cross = New(w.limits)
			w.shuffled = true
			s := send(rng, w, 3+rng.IntN(25), policies(rng, collectors, w.window)[name])
			for _, all := range s.windows {
				w.turn(all)
			}
			w.settle()
			missing := int64((s.last-s.first)&(^uint32(0)>>(32-w.width))) + 1 - int64(len(s.arrived))
			want, got := missing-int64(s.copies), w.sum.Lost-int64(w.sum.Duplicated)
			if got != want || w.sum.Lost > missing || w.last.Provisional != 0 || w.sum.Restarts != 0 || s.copies == 0 && w.sum.Lost != missing {
				t.Fatalf("%s: %s, want %d lost and %d duplicated", w.name, stats([]inference.ExporterStats{w.sum}), missing, s.copies)
			}
		}
	}
}

// straight sends numbers to collectors, evenly over a window.
func (w *hearing) straight(first, n uint32, to ...int) (all []datagram) {
	for i := range n {
		all = append(all, datagram{first + i, w.end + int64(i)*w.window/int64(n), to})
	}
	return all
}

// TestCrossHandOver: nothing is lost by a hand-over but what was lost, also when the exporter comes back after the
// horizon or after a long silence.
func TestCrossHandOver(t *testing.T) {
	for _, width := range []uint8{22, 32} {
		w := newHearing(t, "hand-over", 1, 3, 64)
		w.window, w.width = 10e9, width
		n := uint32(1)<<width - 2500 // wraps
		step := func(lost uint32, to ...int) {
			n += lost
			w.turn(w.straight(n, 1000, to...))
			n += 1000
		}
		expect := func(what string, lost int64, duplicated uint64) {
			t.Helper()
			for range 3 {
				w.turn(nil)
			}
			if w.sum.Lost != lost || w.sum.Duplicated != duplicated || w.sum.Restarts != 0 || w.last.Provisional != 0 {
				t.Errorf("%s: %s, want %d lost and %d duplicated in all", what, stats([]inference.ExporterStats{w.sum}), lost, duplicated)
			}
		}
		step(0, 0)
		step(0, 0)
		step(0, 1)
		expect("a hand-over", 0, 0)
		step(0, 0)
		expect("and back", 0, 0)
		step(7, 1)
		expect("what is lost in between", 7, 0)
		for range 12 { // longer than the horizon
			step(0, 1)
		}
		step(0, 0)
		expect("back after the horizon", 7, 0)
		step(0, 0, 1)
		step(0, 0, 1, 2)
		expect("copies", 7, 3000)
		for range 40 {
			w.turn(nil)
		}
		step(5, 2)
		expect("after a silence", 12, 3000)
		if got := w.cross.Stats(); got.Exporters != 1 || got.Shared != 1 || got.refused != 0 {
			t.Errorf("%+v", got)
		}
		for range 10 {
			step(1, 2)
		}
		expect("to one for good", 22, 3000)
		if w.cross.Stats().Shared != 0 {
			t.Errorf("%+v, want none shared", w.cross.Stats())
		}
		for range 400 {
			w.turn(nil)
		}
		if got := w.cross.Stats(); got.Exporters != 0 {
			t.Errorf("after an hour: %+v", got)
		}
	}
}

// TestCrossSkew: a collector whose windows end later than those of the others takes back what was missing without it.
func TestCrossSkew(t *testing.T) {
	w := newHearing(t, "skew", 2, 2, 64)
	w.window = 10e9
	n, held := uint32(100), []datagram(nil)
	for range 20 {
		all := append(held, w.straight(n, 500, 0)...)
		w.turn(all)
		n += 500
		held = w.straight(n, 500, 1) // come in the next window
		n += 500
	}
	w.turn(held)
	w.settle()
	if w.sum.Lost != 0 || w.sum.Duplicated != 0 || w.sum.Restarts != 0 {
		t.Errorf("%s", stats(w.rows))
	}
	for _, e := range w.rows {
		if e.Lost != 0 {
			t.Errorf("%d are reported as lost for a while", e.Lost)
		}
	}
}

// TestCrossRestart: an exporter that begins anew has done so once, however many collectors noticed; and none is claimed
// lost by it.
func TestCrossRestart(t *testing.T) {
	far := func(n uint32) uint32 { return n + 3_000_000 }
	back := func(n uint32) uint32 { return n - 300 }
	zero := func(uint32) uint32 { return 0 }
	for name, tt := range map[string]struct {
		next          func(n uint32) uint32
		before, after []int
	}{
		"far, copies":             {far, []int{0, 1}, []int{0, 1}},
		"to 0, copies":            {zero, []int{0, 1}, []int{0, 1}},
		"inside, copies":          {back, []int{0, 1, 2}, []int{0, 1, 2}},
		"far, one of two":         {far, []int{0, 1}, []int{1}},
		"far, the other one next": {far, []int{0}, []int{1}},
	} {
		w := newHearing(t, name, 3, 3, 64)
		w.window, w.width = 10e9, 32
		n, sent := uint32(5_000_000), int64(0)
		step := func(to []int) {
			w.turn(w.straight(n, 1000, to...))
			n += 1000
			sent += int64(1000 * (len(to) - 1))
		}
		step([]int{0})
		step([]int{1}) // shared
		for range 4 {
			step(tt.before)
		}
		n = tt.next(n)
		for range 4 {
			step(tt.after)
		}
		w.settle()
		slack := int64(len(tt.before) * 64) // by which a restart inside is noticed
		if w.sum.Lost != 0 || w.sum.Restarts != 1 || int64(w.sum.Duplicated) > sent+slack || int64(w.sum.Duplicated) < sent-slack {
			t.Errorf("%s: %s, want one restart and %d duplicated", name, stats([]inference.ExporterStats{w.sum}), sent)
		}
	}
}

// TestCrossTwo: an exporter that numbers its reports for each of two collectors has two sequences.
func TestCrossTwo(t *testing.T) {
	w := newHearing(t, "two", 4, 2, 64)
	w.window, w.width, w.addrs = 10e9, 32, []uint64{1, 2}
	a, b := uint32(1000), uint32(2_000_000_000)
	for i := range uint32(20) {
		all := w.straight(a, 500, 0)
		b += i % 2 // one is lost now and then
		w.turn(append(all, w.straight(b, 700, 1)...))
		a += 500
		b += 700
	}
	w.settle()
	if w.sum.Lost != 9 && w.sum.Lost != 10 || w.sum.Duplicated+w.sum.Restarts != 0 {
		t.Errorf("%s, want 10 lost", stats(w.rows))
	}
}

// TestCrossDown: what was missed while a collector did not run was not missed if another one had it.
func TestCrossDown(t *testing.T) {
	for _, other := range []bool{false, true} {
		w := newHearing(t, fmt.Sprint("another one ", other), 5, 2, 64)
		w.window = 10e9
		n := uint32(1000)
		step := func(to ...int) {
			w.turn(w.straight(n, 100, to...))
			n += 100
		}
		step(1)
		step(0)
		step(0)
		state := w.trackers[0].AppendState(nil)
		if other {
			step(1)
		} else {
			n += 100
			w.turn(nil)
		}
		w.trackers[0] = sequence.New(sequence.DefaultConfig(), 9)
		w.trackers[0].ReportNumbers(64)
		if err := w.trackers[0].ReadState(state, nil); err != nil {
			t.Fatal(err)
		}
		step(0)
		step(0)
		w.settle()
		want := uint64(100)
		if other {
			want = 0
		}
		if w.sum.Lost != 0 || w.sum.Down != want {
			t.Errorf("%s: %s, want %d missed", w.name, stats(w.rows), want)
		}
	}
}

// TestCrossLate: what came late is in its window when that is made again, and what was counted as lost meanwhile is
// taken back.
func TestCrossLate(t *testing.T) {
	w := newHearing(t, "late", 6, 3, 64)
	w.window, w.shuffled = 10e9, true
	n, sent := uint32(1000), uint64(0)
	step := func(lost uint32, to ...int) {
		n += lost
		w.turn(w.straight(n, 1000, to...))
		n += 1000
		sent += uint64(len(to)) * 1000
	}
	step(0, 0)
	step(0, 1)
	step(3, 1)
	w.late = []int{1}
	step(0, 1)
	step(5, 2)
	w.late = nil
	step(0, 2)
	step(0, 0)
	if w.sum.Lost != 1008 {
		t.Errorf("%d are reported as lost before, want all that did not come", w.sum.Lost)
	}
	w.second(3)
	step(0, 0)
	if w.sum.Lost != 8 || w.sum.Reports != sent || w.sum.Duplicated != 0 {
		t.Errorf("%s, want %d reports and 8 lost", stats(w.rows), sent)
	}
	for range 12 { // it is no longer shared
		step(1, 0)
	}
	w.late = []int{1, 2}
	step(0, 0, 1)
	w.late = nil
	step(0, 0)
	w.second(1) // copies came late
	w.settle()
	if w.sum.Lost != 20 || w.sum.Reports != sent || w.sum.Restarts != 0 || w.last.Provisional != 0 {
		t.Errorf("%s, want %d reports and 20 lost", stats(w.rows), sent)
	}
}

// TestCrossLateSpray: a sprayed exporter's windows do not change what was claimed when a part of them comes late.
func TestCrossLateSpray(t *testing.T) {
	w := newHearing(t, "late spray", 7, 2, 4000)
	w.limits.Runs = 4000
	w.cross = New(w.limits)
	w.window = 10e9
	n, k := uint32(1000), 0
	for i := range 10 {
		var all []datagram
		for _, d := range w.straight(n, 600, 0) {
			d.to = []int{k % 2}
			k++
			all = append(all, d)
		}
		n += 601 // one is lost
		if w.late = nil; i == 4 {
			w.late = []int{1}
		}
		w.turn(all)
		if i == 7 {
			if w.sum.Lost != 6+300 {
				t.Errorf("%d are reported as lost before", w.sum.Lost)
			}
			w.second(3)
		}
	}
	w.settle()
	if w.sum.Lost != 9 || w.sum.Duplicated != 0 || w.sum.Reports != 6000 {
		t.Errorf("%s, want 9 lost", stats(w.rows))
	}
}
