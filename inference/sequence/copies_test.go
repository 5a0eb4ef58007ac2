package sequence

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// sent is a datagram of an exporter.
type sent struct {
	id, number uint32
	bytes      byte // what else is in it
	at         int64
}

// emit feeds a tracker datagrams and counts what becomes of the reports, by the bytes that they have.
func emit(t *testing.T, tr *Tracker, list []sent, cutAfter ...int) (counted, copies int) {
	t.Helper()
	var b decode.LazyBatch
	see := func() {
		tr.Decided(&b)
		for _, r := range b.List {
			switch {
			case r.Waits:
			case r.Copy:
				copies++
			default:
				counted++
			}
		}
		b.Reset()
	}
	for i, x := range list {
		b.AppendBatch(&decode.Batch{Reports: []*decode.Report{report20(x.id, x.id, x.number, x.at)}})
		b.SetSum(1, decode.Sum([]byte{byte(x.number), byte(x.number >> 8), x.bytes}))
		for _, r := range b.List {
			tr.ObserveLazy(r)
		}
		see()
		if slices.Contains(cutAfter, i) {
			tr.DecideAll()
			see()
			tr.Cut(nil, x.at)
		}
	}
	tr.DecideAll()
	see()
	return counted, copies
}

// TestCopies holds which reports are copies: those whose number and bytes came a moment before, of an exporter that
// counts.
func TestCopies(t *testing.T) {
	const ms = int64(1e6)
	var doubled, tripled, constant, circle, counting, loop, pairs, burst, slow, other, late, random []sent
	for i := range uint32(1000) {
		at := int64(1e18) + int64(i)*50*ms
		x := sent{1, i, 0, at}
		later := sent{1, i, 0, at + 10_000}
		doubled = append(doubled, x, later)
		tripled = append(tripled, x, later, later)
		constant = append(constant, sent{1, 0, 0, at}, sent{1, 0, 0, at})
		circle = append(circle, sent{1, i % 16, 0, int64(1e18) + int64(i)*ms/100})
		counting = append(counting, x)
		loop = append(loop, sent{1, i % 200, 0, int64(1e18) + int64(i)*ms/100})
		other = append(other, x, sent{1, i, 1, at})
		if i%2 == 1 {
			pairs = append(pairs, sent{1, i - 1, 0, at}, x, sent{1, i - 1, 0, at}, x)
		}
		late = append(late, x)
		if i >= 100 {
			late = append(late, sent{1, i - 100, 0, at}) // five seconds later
		}
		random = append(random, sent{1, i * 2654435761 & (1<<22 - 1), 0, at}, sent{1, i * 2654435761 & (1<<22 - 1), 0, at})
	}
	for i := range uint32(20) {
		for range 2 {
			for k := range uint32(50) {
				burst = append(burst, sent{1, i*50 + k, 0, int64(1e18) + int64(i)*ms})
			}
		}
		slow = append(slow, sent{1, i, 0, int64(i) * 30e9}, sent{1, i, 0, int64(i)*30e9 + 10_000})
	}
	var everyWindow []int
	for i := 1; i < len(slow); i += 2 {
		everyWindow = append(everyWindow, i)
	}
	for _, c := range []struct {
		name            string
		list            []sent
		cuts            []int
		counted, copies int
	}{
		{"each number once", counting, nil, 1000, 0},
		{"each datagram twice", doubled, nil, 1000, 1000},
		{"each datagram three times", tripled, nil, 1000, 2000},
		{"always the same number and the same bytes", constant, nil, 2000, 0},
		{"the same, in two windows", constant, []int{20, 40}, 2000, 0},
		{"numbers that go in a circle of 16", circle, nil, 1000, 0},
		{"a recording of 200 that is played again and again", loop, nil, 1000, 0},
		{"numbers twice with other bytes", other, nil, 2000, 0},
		{"numbers again after five seconds", late, nil, 1900, 0},
		{"random numbers, each twice", random, nil, 2000, 0},
		{"two, and the same two again", pairs, nil, 1000, 1000},
		{"bursts of 50, each twice", burst, nil, 1000, 1000},
		{"beside another one, where a third one was forgotten", []sent{
			{9, 1, 0, 0}, {1, 10, 0, 4e12}, {1, 11, 0, 4e12}, {1, 11, 0, 4e12}, {2, 1, 0, 4e12}, {2, 1, 0, 4e12}, {2, 2, 0, 4e12},
		}, []int{0, 1}, 6, 1},
		{"one a window, each twice: the first number alone does not prove it", slow, everyWindow, 21, 19},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := New(DefaultConfig(), 1)
			if counted, copies := emit(t, tr, c.list, c.cuts...); counted != c.counted || copies != c.copies {
				t.Errorf("%d reports count and %d are copies, want %d and %d", counted, copies, c.counted, c.copies)
			}
		})
	}
}

// TestCopiesOfMany holds that copies of many exporters at once are distinguished, in bounded memory, and that none gets
// lost, whatever comes.
func TestCopiesOfMany(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxExporters = 100
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		tr := New(cfg, seed)
		var list []sent
		var cuts []int
		var next [301]uint32
		for i := range 20_000 {
			id := rng.Uint32N(1 + 300*uint32(seed%2))
			x := sent{id, next[id], byte(rng.IntN(2)), int64(i) * 1000}
			for range 1 + rng.IntN(3) {
				list = append(list, x)
			}
			next[id] += rng.Uint32N(3)
			if rng.IntN(500) == 0 {
				cuts = append(cuts, i)
			}
		}
		counted, copies := emit(t, tr, list, cuts...)
		if counted+copies != len(list) {
			t.Errorf("seed %d: %d reports count and %d are copies, of %d", seed, counted, copies, len(list))
		}
		if w := &tr.copies; len(w.spare)+len(w.waiting) > w.most {
			t.Errorf("seed %d: %d reports are kept, want %d at most", seed, len(w.spare)+len(w.waiting), w.most)
		}
	}
}

// TestCopiesAllocate holds that copies take no memory once some were there.
func TestCopiesAllocate(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	var b decode.LazyBatch
	reports := decode.Batch{}
	n := uint32(0)
	step := func() {
		for range 2 {
			b.Reset()
			reports.Reset()
			r := reports.Next()
			*r = *report20(1, 1, n/2, int64(n))
			b.AppendBatch(&reports)
			b.SetSum(1, n/2+1)
			tr.ObserveLazy(b.List[0])
			tr.Decided(&b)
			n++
		}
	}
	for range 100 {
		step()
	}
	if a := testing.AllocsPerRun(1000, step); a > 1 { // the report of the test
		t.Errorf("%v allocations a report", a)
	}
}

// outcome is the treatment of a report.
type outcome string

// copyTwin follows the copies of one exporter with a list of all datagrams that were remembered, and of all reports
// that wait.
type copyTwin struct {
	twin
	past    []datagram
	trait   trait
	copies  int // since the last new number
	stamps  int
	stamp   uint32
	last    outcome // of the datagram that came last
	reports uint64
}

type datagram struct {
	seq, sum, stamp uint32
	at              int64
}

// has reports whether a number is in the record.
func (w *copyTwin) has(seq uint32) bool { return w.started && w.behind(seq) < w.span && w.arrived[seq] }

// see takes a datagram, and returns the outcome of its reports. The call of decide ends the wait of those before.
func (w *copyTwin) see(d datagram, decide func(outcome)) outcome {
	remember := func() {
		w.past = append(w.past, d)
		w.observe(d.seq, d.at)
	}
	if !w.has(d.seq) {
		if remember(); w.copies > 0 && w.sequenced && w.has(d.seq) {
			switch w.copies = 0; w.trait {
			case untried:
				w.trait = doubled
				decide("copy")
			case repeating:
				w.trait = untried
			}
		}
		return "counts"
	}
	var before datagram
	for _, x := range w.past {
		if x.seq%remembered == d.seq%remembered {
			before = x
		}
	}
	apart := d.at>>momentShift - before.at>>momentShift
	if d.sum == 0 || d.sum != before.sum || max(apart, -apart) > copyWithin>>momentShift {
		remember()
		if d.stamp == w.stamp {
			w.stamps = 0
			return "counts"
		}
		if w.stamp, w.stamps = d.stamp, w.stamps+1; w.stamps == mostStamps {
			decide("copy")
		}
		if w.stamps >= mostStamps {
			w.copies = 0
		}
		return "counts"
	}
	w.copies++
	if (w.trait == doubled || w.stamps >= mostStamps) && w.copies <= mostCopies {
		w.duplicated++
		return "copy"
	}
	if w.trait == untried && w.copies <= mostWaiting {
		w.observe(d.seq, d.at)
		return "waits"
	}
	w.copies, w.trait = mostCopies, repeating
	decide("alike")
	w.observe(d.seq, d.at)
	return "alike"
}

// TestTwinOfCopies compares the verdict on each report, and the counts, with twins. Exporters are doubled now and then,
// go in circles, are constant, or set times in their reports. Others repeat old numbers with the same bytes and with
// others.
func TestTwinOfCopies(t *testing.T) {
	cfg := testConfig()
	cfg.MaxGap = testGap
	sums := map[outcome]int{}
	shape := decode.Shape{Common: *report20(0, 0, 0, 0), Blocks: func([]decode.Hop, []byte, int) {}}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 13))
		tr := New(cfg, seed)
		var twins []*copyTwin
		modes, next, stamps := [3]int{}, [3]uint32{}, [3]uint32{}
		got, want, all := map[int64]outcome{}, map[int64]outcome{}, 0
		waiting := map[int64]int{} // exporters of reports
		var b decode.LazyBatch
		read := func() {
			tr.Decided(&b)
			for _, r := range b.List {
				x := outcome("counts")
				switch {
				case r.Waits:
					continue
				case r.Copy:
					x = "copy"
				case r.Alike:
					x = "alike"
				}
				if got[r.Time] != "" {
					t.Fatalf("seed %d: a report comes out twice", seed)
				}
				got[r.Time] = x
			}
			b.Reset()
		}
		decide := func(k int) func(outcome) {
			return func(o outcome) {
				for id, of := range waiting {
					if of == k {
						want[id] = o
						delete(waiting, id)
					}
				}
			}
		}
		at := int64(1e12)
		twinOf := map[int]int{}
		for step := range 4000 {
			at += 100 + rng.Int64N([]int64{1e5, 2e6, 1e8}[seed%3])
			if rng.IntN(300) == 0 {
				at += 2e9
			}
			k := rng.IntN(3)
			if _, is := twinOf[k]; !is {
				twinOf[k] = len(twins)
				twins = append(twins, &copyTwin{twin: twin{width: 22, longest: testWindow, maxGap: testGap, least: testWindow, size: testWindow, arrived: map[uint32]bool{}, absent: map[uint32]absent{}}})
				next[k] = rng.Uint32()
			}
			w := twins[twinOf[k]]
			if rng.IntN(120) == 0 {
				modes[k] = rng.IntN(7)
			}
			d := datagram{seq: next[k], sum: 1 + next[k], stamp: stamps[k]}
			repeats := 1
			switch modes[k] {
			case 0: // counts
				next[k]++
			case 1: // doubled
				next[k]++
				repeats = 2
			case 2: // constant
				repeats = 1 + rng.IntN(40)
			case 3: // a circle
				next[k] = next[k]&^15 | (next[k]+1)&15
			case 4: // other bytes, and times
				if stamps[k]++; rng.IntN(2) == 0 {
					next[k]++
				}
				d.seq, d.stamp = next[k]-rng.Uint32N(3), stamps[k]
				d.sum = d.seq + rng.Uint32N(2)*stamps[k]
			case 5: // old ones
				next[k] += rng.Uint32N(3)
				d.seq = next[k] - rng.Uint32N(300)
				d.sum = 1 + d.seq
			case 6: // without sums
				next[k] += rng.Uint32N(2)
				d.sum = rng.Uint32N(2) * d.seq
			}
			for range repeats {
				at += 10
				d.at = at
				x := report20(uint32(k), 1, d.seq, d.at)
				x.HeaderTime = d.stamp
				x.Has |= decode.HasHeaderTime // no uptime, since it is not of sFlow
				y := *x
				short := false
				if y.Time++; rng.IntN(3) == 0 {
					short = true
					r := b.Next()
					r.Shape, r.Time, r.Exporter, r.To, r.NodeID, r.HWID, r.Seq, r.HeaderTime = &shape, x.Time, x.Exporter, x.To, x.NodeID, x.HWID, x.Seq, x.HeaderTime
				} else if rng.IntN(2) == 0 { // shares the datagram
					y.FirstOfGroup = false
					b.AppendBatch(&decode.Batch{Reports: []*decode.Report{x, &y}})
				} else {
					b.AppendBatch(&decode.Batch{Reports: []*decode.Report{x}})
				}
				b.SetSum(len(b.List), d.sum)
				known := !short && rng.IntN(40) == 0 // its decoder knows
				this := d
				this.seq &= 1<<22 - 1
				for i, r := range b.List {
					r.Copy = known
					switch {
					case known && i == 0:
						w.duplicated++
						want[r.Time] = "copy"
					case known:
						want[r.Time] = "copy"
					case i == 0:
						w.last = w.see(this, decide(twinOf[k]))
						fallthrough
					default:
						switch {
						case w.last != "waits":
							want[r.Time] = w.last
						case len(waiting) < cfg.MaxExporters:
							waiting[r.Time] = twinOf[k]
						default:
							want[r.Time] = "counts"
						}
					}
					w.reports++
					all++
				}
				for _, r := range b.List {
					tr.ObserveLazy(r)
				}
				read()
				if len(got) != len(want) || len(tr.copies.waiting) != len(waiting) || len(tr.copies.waiting)+len(tr.copies.spare) > cfg.MaxExporters {
					t.Fatalf("seed %d, step %d: %d reports are decided and %d wait, want %d and %d", seed, step, len(got), len(tr.copies.waiting), len(want), len(waiting))
				}
				at++
			}
			if rng.IntN(150) == 0 {
				tr.DecideAll()
				read()
				for k := range twins {
					decide(k)("alike")
				}
				for i, x := range tr.Cut(nil, at) {
					var w *copyTwin
					for k, j := range twinOf {
						if x.Addr == addr(uint32(k)) {
							w = twins[j]
						}
					}
					w.cut(at)
					if x.Reports != w.reports || x.Duplicated != w.duplicated || x.Lost != w.lost || x.Reordered != w.reordered || x.Late != w.late || x.Restarts != w.begunAnew {
						t.Fatalf("seed %d, step %d, exporter %d: %+v, want %d reports, %d duplicated, %d lost, %d reordered, %d late, %d restarts", seed, step, i, x, w.reports, w.duplicated, w.lost, w.reordered, w.late, w.begunAnew)
					}
					w.reports, w.duplicated, w.lost, w.reordered, w.late, w.begunAnew = 0, 0, 0, 0, 0, 0
				}
			}
			if step%50 == 0 || step == 3999 {
				for id, o := range want {
					if got[id] != o {
						t.Fatalf("seed %d, step %d: %s, want %s", seed, step, got[id], o)
					}
					sums[o]++
				}
				clear(want)
				clear(got)
				for _, w := range twins {
					w.past = w.past[max(0, len(w.past)-2000):]
				}
			}
		}
	}
	if sums["copy"] < 2000 || sums["alike"] < 2000 || sums["counts"] < 2000 {
		t.Errorf("too few of %v", sums)
	}
}

// TestRepeatedForLong: an exporter that is known to be doubled, by its times, and repeats a number for ever has no more
// than mostCopies copies.
func TestRepeatedForLong(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	tr.Observe(report20(1, 1, 7, 1e9))
	e, copies := &tr.entries[0], 0
	e.stamps = mostStamps
	for range 1<<16 + 2*mostCopies {
		if tr.repeated(e, 7, 1e9) == isCopy {
			copies++
		}
	}
	if copies != mostCopies {
		t.Errorf("%d are copies, want %d", copies, mostCopies)
	}
}

// TestMoments holds how soon a copy comes, before what it is one of or after it.
func TestMoments(t *testing.T) {
	const within, at = copyWithin >> momentShift, int64(1) << 40
	for _, tt := range []struct {
		moments int64
		copies  int
	}{{within, 1}, {within + 1, 0}, {-within, 1}, {-within - 1, 0}} {
		tr := New(DefaultConfig(), 1)
		// The first two are known to be doubled.
		list := []sent{{1, 1, 0, at}, {1, 1, 0, at}, {1, 2, 0, at}, {1, 2, 0, at + tt.moments<<momentShift}}
		if counted, copies := emit(t, tr, list); copies != 1+tt.copies || counted != 3-tt.copies {
			t.Errorf("%d moments later: %d count and %d are copies", tt.moments, counted, copies)
		}
	}
}

// TestResumedCopies: copies of exporters of an earlier run are those of each of them.
func TestResumedCopies(t *testing.T) {
	first, second := New(DefaultConfig(), 1), New(DefaultConfig(), 2)
	for n := range uint32(3) {
		for id := range uint32(3) {
			first.Observe(report20(id, id, n, 1e12))
		}
	}
	if err := second.ReadState(first.AppendState(nil), nil); err != nil {
		t.Fatal(err)
	}
	var list []sent
	for n := uint32(3); n < 103; n++ {
		for range 2 {
			for id := range uint32(3) {
				list = append(list, sent{id, n, byte(id), 2e12 + int64(n)})
			}
		}
	}
	if counted, copies := emit(t, second, list); counted != 300 || copies != 300 {
		t.Errorf("%d reports count and %d are copies", counted, copies)
	}
}

// TestKnownCopies: a copy that its decoder marks is counted as one where it has a number of its own or none at all.
func TestKnownCopies(t *testing.T) {
	for _, tt := range []struct {
		has    decode.Field
		first  bool
		copies uint64
	}{
		{decode.HasSeq, true, 1},
		{decode.HasSeq, false, 0},
		{0, true, 1},
		{0, false, 1},
	} {
		tr := New(DefaultConfig(), 1)
		var b decode.LazyBatch
		r := report20(1, 1, 7, 1e12)
		r.Has, r.FirstOfGroup = r.Has&^decode.HasSeq|tt.has, tt.first
		b.AppendBatch(&decode.Batch{Reports: []*decode.Report{r}})
		b.List[0].Copy = true
		tr.ObserveLazy(b.List[0])
		if got := tr.Cut(nil, 2e12)[0]; got.Duplicated != tt.copies || got.Reports != 1 || got.Sequenced {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// TestEndOfWait: what waits counts when a window ends, or when its exporter is displaced, and may be a copy.
func TestEndOfWait(t *testing.T) {
	for name, end := range map[string]func(*Tracker){
		"a cut": func(tr *Tracker) { tr.Cut(nil, 3e9) },
		"a newcomer": func(tr *Tracker) {
			for range 9 {
				tr.Observe(report20(2, 2, 1, 2e9))
			}
		},
	} {
		cfg := testConfig()
		cfg.MaxExporters = 1
		tr := New(cfg, 1)
		var b decode.LazyBatch
		for range 3 {
			b.AppendBatch(&decode.Batch{Reports: []*decode.Report{report20(1, 1, 7, 1e9)}})
		}
		b.SetSum(3, 9)
		for _, r := range b.List {
			tr.ObserveLazy(r)
		}
		b.Reset()
		if tr.Decided(&b); len(b.List) != 0 {
			t.Errorf("%s: %d reports do not wait", name, len(b.List))
		}
		end(tr)
		if tr.Decided(&b); len(b.List) != 2 || !b.List[0].Alike || b.List[0].Copy || b.List[0].Waits {
			t.Errorf("%s: %d reports come out, want 2 that may be copies", name, len(b.List))
		}
	}
}
