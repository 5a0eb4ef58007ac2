package sequence

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// sum adds up windows of one exporter.
func sum(all []inference.ExporterStats) (s inference.ExporterStats) {
	for _, e := range all {
		s.Reports += e.Reports
		s.Lost += e.Lost
		s.Duplicated += e.Duplicated
		s.Reordered += e.Reordered
		s.Late += e.Late
		s.Down += e.Down
		s.Restarts += e.Restarts
		s.Provisional = e.Provisional
	}
	return s
}

// Four datagrams that come after 1100 later ones are late: nothing is lost, and nothing began anew.
func TestFourLateByEleven(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	numbers := slices.Concat(span(0, 1000), span(1004, 2104), span(1000, 1004), span(2104, 3000))
	for i, n := range numbers {
		tr.Observe(report20(1, 1, n, int64(i)*1000))
	}
	tr.Settle()
	got := sum(tr.Cut(nil, 1e9))
	if got.Lost != 0 || got.Late+got.Reordered != 4 || got.Restarts != 0 || got.Reports != 3000 {
		t.Errorf("%+v, want nothing lost and 4 late", got)
	}
}

// In whatever order the workers of a source hand on reports, the lost ones are those that did not come.
func TestWorkers(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		tr := New(DefaultConfig(), 1)
		const n = 200000
		workers := make([][]uint32, 4)
		dropped := 0
		for i := range uint32(n) {
			if rng.IntN(1000) == 0 && i > 0 && i < n-1 {
				dropped++
				continue
			}
			w := rng.IntN(len(workers))
			workers[w] = append(workers[w], i)
		}
		var stats []inference.ExporterStats
		// Workers take turns of random length, so that some fall behind by up to some ten thousand.
		for left, cut := n-dropped, int64(0); left > 0; {
			w := rng.IntN(len(workers))
			if len(workers[w]) == 0 {
				continue
			}
			oldest := uint32(n)
			for _, q := range workers {
				if len(q) > 0 {
					oldest = min(oldest, q[0])
				}
			}
			for range 64 * (1 + rng.IntN(40)) {
				if len(workers[w]) == 0 || workers[w][0] > oldest+40000 {
					break
				}
				seq := workers[w][0]
				workers[w] = workers[w][1:]
				left--
				tr.Observe(report20(1, 1, seq, int64(seq)*6667))
			}
			if at := int64(oldest) * 6667; at > cut+1e8 {
				cut = at
				stats = append(stats, tr.Cut(nil, cut)...)
			}
		}
		tr.Settle()
		stats = append(stats, tr.Cut(nil, 1<<40)...)
		got := sum(stats)
		if got.Lost != int64(dropped) || got.Restarts != 0 || got.Duplicated != 0 || got.Provisional != 0 || got.Reports != uint64(n-dropped) {
			t.Errorf("seed %d: %+v, want %d lost", seed, got, dropped)
		}
	}
}

// An exporter that sends to two ports, with numbers of its own for each, has two sequences that are reported as one.
func TestTwoDestinations(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	for i := range uint32(1000) {
		for port := range uint64(2) {
			if i == 500 && port == 1 {
				continue
			}
			r := report20(1, 1, i+uint32(port)*300, int64(i)*1000)
			r.To = port
			tr.Observe(r)
		}
	}
	tr.Settle()
	got := tr.Cut(nil, 1e9)
	if len(got) != 1 || got[0].Lost != 1 || got[0].Reports != 1999 || got[0].Duplicated+got[0].Reordered+got[0].Late+got[0].Restarts != 0 {
		t.Errorf("%+v, want one exporter that lost one report", got)
	}
}

// Two processes behind one address that number their reports far apart: nothing is reported of one that is the other's.
func TestTwoProcesses(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	rng := rand.New(rand.NewPCG(1, 1))
	next := [2]uint32{1000, 2_000_000}
	for i := range 100000 {
		p := rng.IntN(2)
		for range 1 + rng.IntN(12) {
			tr.Observe(report20(1, 1, next[p], int64(i)*1000))
			next[p]++
		}
	}
	tr.Settle()
	if got := sum(tr.Cut(nil, 1e9)); got.Lost != 0 || got.Restarts > 1 {
		t.Errorf("%+v, want nothing lost and at most one restart", got)
	}
}

// Missing numbers of an exporter that falls silent are counted when they are old, and not before.
func TestSilence(t *testing.T) {
	tr := New(DefaultConfig(), 1)
	for _, n := range []uint32{1, 2, 3, 6} {
		tr.Observe(report20(1, 1, n, 1e9))
	}
	const second = int64(1e9)
	got := tr.Cut(nil, 2*second)
	if got[0].Lost != 0 || got[0].Provisional != 2 {
		t.Errorf("at first: %+v, want 2 provisional", got[0])
	}
	if got = tr.Cut(got[:0], 3*second); got[0].Lost != 0 || got[0].Provisional != 2 {
		t.Errorf("a second later: %+v, want 2 provisional", got[0])
	}
	if got = tr.Cut(got[:0], 4*second); got[0].Lost != 2 || got[0].Provisional != 0 {
		t.Errorf("two seconds later: %+v, want 2 lost", got[0])
	}
	tr.Observe(report20(1, 1, 4, 5*second))
	if got = tr.Cut(got[:0], 6*second); got[0].Lost != -1 || got[0].Late != 1 || got[0].Reordered != 0 {
		t.Errorf("one came after all: %+v, want one taken back", got[0])
	}
}

// The wait follows the disorder, and records that are not needed any more are given back.
func TestRecordFollows(t *testing.T) {
	m := testRoom(1 << 16)
	s := follow(32, m)
	n, at := uint32(0), int64(0)
	feed := func(count, late int) {
		for range count {
			at += 1000
			s.observe(n, at, m)
			n++
		}
		if late > 0 {
			held := n
			n++
			for range late {
				at += 1000
				s.observe(n, at, m)
				n++
			}
			s.observe(held, at, m)
		}
		check(t, s, m)
	}
	feed(5000, 0)
	if s.size() != leastWait || s.wait != leastWait {
		t.Errorf("in order: a record of %d, a wait of %d", s.size(), s.wait)
	}
	feed(5000, 20000)
	if s.size() < 20000 || s.wait < 20000 || s.lost != 0 {
		t.Errorf("with one late by 20000: a record of %d, a wait of %d, %d lost", s.size(), s.wait, s.lost)
	}
	for range 100 {
		feed(1000, 0)
		at += 1e9
		s.cut(at, m)
	}
	if s.size() != leastWait || s.wait != leastWait {
		t.Errorf("after calm: a record of %d, a wait of %d", s.size(), s.wait)
	}
	check(t, s, m)
	// A long wait does not count what a short one would.
	feed(100, 3000)
	before := s.late
	feed(100, 3000)
	if s.late != before || s.lost != 0 {
		t.Errorf("the second as late as the first: %d late, %d lost", s.late-before, s.lost)
	}
}

// Records of strangers take at most a quarter of the memory that is common to all.
func TestRecordsOfStrangers(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxExporters = 256
	tr := New(cfg, 1)
	for e := range uint32(200) {
		for _, n := range []uint32{1, 2, 60000, 60001} {
			tr.Observe(report20(e, e, n, 1))
		}
	}
	p := tr.places
	if taken := p.allWords - p.words.Load(); taken > p.allWords/4 || taken < p.allWords/8 {
		t.Errorf("%d words of %d are taken by strangers", taken, p.allWords)
	}
	tr.Cut(nil, 2)
	tr.Cut(nil, 1e18) // forgets them
	if p.words.Load() != p.allWords {
		t.Errorf("%d words of %d are given back", p.words.Load(), p.allWords)
	}
}

// TestKeptBack holds what reports mean that were received before the newest one: they neither begin a sequence anew nor
// end what seems to.
func TestKeptBack(t *testing.T) {
	for before, restarts := range map[int64]uint64{0: 1, 1: 0} {
		m := testRoom(testWindow)
		s := follow(32, m)
		for n := range uint32(200) {
			s.observe(n, 1e12+int64(n), m)
		}
		for n := range uint32(duplicateRun) {
			s.observe(n, s.time-before, m)
		}
		if s.restarts != restarts {
			t.Errorf("duplicates received %d ns before the newest one: %+v", before, s.counts)
		}
	}
	for before, restarts := range map[int64]uint64{0: 0, 1: 1} {
		m := testRoom(testWindow)
		s := follow(32, m)
		for n := range uint32(200) {
			s.observe(n, 1e12, m)
		}
		for n := range uint32(confirmations - 1) {
			s.observe(1<<20+n, 2e12+int64(n), m)
		}
		s.observe(200, 2e12-before, m)
		if s.observe(1<<20+confirmations, 3e12, m); s.restarts != restarts {
			t.Errorf("the sequence goes on %d ns before numbers far away: %+v", before, s.counts)
		}
	}
}

// TestMissedAndLate: the record forgets the first of the numbers for which no collector ran, and those that come late
// are late.
func TestMissedAndLate(t *testing.T) {
	m := testRoom(testWindow)
	s := follow(32, m)
	s.head, s.started, s.resumed, s.wait = 1000, true, true, m.least()
	s.observe(6000, 2e12, m)
	if s.observe(3000, 1e12, m); s.late != 0 {
		t.Errorf("a minute before: %+v", s.counts)
	}
	if s.observe(3001, 2e12-1, m); s.late != 1 || s.duplicated != 0 || s.down+uint64(s.provisional) != 4999 {
		t.Errorf("%+v with %d provisional", s.counts, s.provisional)
	}
}
