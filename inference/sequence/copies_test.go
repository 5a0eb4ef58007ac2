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

// tell feeds a tracker datagrams and counts what becomes of the reports, by the bytes that they have.
func tell(t *testing.T, tr *Tracker, list []sent, cutAfter ...int) (counted, copies int) {
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
		b.Take(&decode.Batch{Reports: []*decode.Report{report20(x.id, x.id, x.number, x.at)}})
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

// TestCopies holds which reports are copies: those whose number and bytes came a moment before, of an exporter that counts.
func TestCopies(t *testing.T) {
	const ms = int64(1e6)
	var doubled, tripled, constant, circle, counting, loop, burst, slow, other, late, random []sent
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
		{"bursts of 50, each twice", burst, nil, 1000, 1000},
		{"one a window, each twice: the first number alone does not prove it", slow, everyWindow, 21, 19},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := New(DefaultConfig(), 1)
			if counted, copies := tell(t, tr, c.list, c.cuts...); counted != c.counted || copies != c.copies {
				t.Errorf("%d reports count and %d are copies, want %d and %d", counted, copies, c.counted, c.copies)
			}
		})
	}
}

// TestCopiesOfMany holds that copies of many exporters at once are distinguished, in bounded memory, and that none gets lost,
// whatever comes.
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
		counted, copies := tell(t, tr, list, cuts...)
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
			b.Take(&reports)
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
