package sequence

import (
	"slices"
	"testing"
)

// The waits, repeated here: a change of one changes what counts as lost.
const (
	least       = 1024 // numbers
	held        = 500e6
	settled     = 2e9 // ns, as held
	calmWindows = 8
)

// waitingRoom has room for records of 4096 numbers; the shortest have least.
func waitingRoom() *room {
	m := testRoom(4096)
	if m.least() != least {
		panic("the least length of a record is another one")
	}
	return m
}

// oneMissing is a sequence from 1 on that lacks number 5 and goes on to last, all of which came at a time.
func oneMissing(m *room, at int64, last uint32) *sequence {
	s := follow(32, m)
	for n := uint32(1); n <= last; n++ {
		if n != 5 {
			s.observe(n, at, m)
		}
	}
	return s
}

// A missing number becomes lost when least numbers are behind it, and not one before, if it is old enough.
func TestWaitInNumbers(t *testing.T) {
	m := waitingRoom()
	s := oneMissing(m, 0, 10)
	for at := int64(0); at < 4; at++ { // these say how old it is
		s.observe(uint32(11+at), at*held, m)
	}
	for n := uint32(15); n < 5+least; n++ {
		if s.observe(n, 4*held, m); s.lost != 0 || s.provisional != 1 {
			t.Fatalf("lost with %d numbers behind it, of %d that are waited for: %+v", n-5, least, s.counts)
		}
	}
	if s.observe(5+least, 4*held, m); s.lost != 1 || s.provisional != 0 {
		t.Errorf("not lost with %d numbers behind it: %+v", least, s.counts)
	}
}

// A late number just before the first one that is still waited for is no longer lost, and those that are waited for
// stay so.
func TestWaitJustOver(t *testing.T) {
	m := waitingRoom()
	s := follow(32, m)
	for n := uint32(1); n <= 5+least; n++ {
		if n != 5 && n != 6 {
			s.observe(n, int64(n)*held, m)
		}
	}
	if s.lost != 1 || s.provisional != 1 || s.edge != 6 {
		t.Fatalf("%d are waited for from %d on: %+v, want number 6 alone", s.provisional, s.edge, s.counts)
	}
	if s.observe(5, (5+least)*held, m); s.counts != (counts{late: 1}) || s.provisional != 1 {
		t.Errorf("%d are waited for, %+v, want one, and one that came late", s.provisional, s.counts)
	}
}

// However many numbers are behind a missing one, it is waited for at least held, as long as it has a record. Ages from
// before the sequence restarted do not count.
func TestWaitInTime(t *testing.T) {
	m := waitingRoom()
	s := follow(32, m)
	s.aged, s.ageHead, s.ageTime = 1500, 1500, -held
	for n := uint32(1); n <= 2000; n++ {
		if n != 5 {
			s.observe(n, 0, m)
		}
	}
	if s.lost != 0 {
		t.Errorf("lost at once: %+v", s.counts)
	}
	if s.observe(2001, held-1, m); s.lost != 0 {
		t.Errorf("lost after less than holdFor: %+v", s.counts)
	}
	if s.observe(2002, held, m); s.lost != 0 {
		t.Errorf("lost with the first number that is so old as holdFor: %+v", s.counts)
	}
	if s.observe(2003, 2*held-1, m); s.lost != 0 {
		t.Errorf("lost before the next one is so old: %+v", s.counts)
	}
	if s.observe(2004, 2*held, m); s.lost != 1 {
		t.Errorf("not lost after twice holdFor: %+v", s.counts)
	}
}

// The end of a window makes a missing number lost that was missing at the end of another one, settled before.
func TestWaitInWindows(t *testing.T) {
	m := waitingRoom()
	s := oneMissing(m, 0, 10)
	s.cut(1000, m)
	if s.cut(1000+settled-1, m); s.lost != 0 {
		t.Errorf("lost after less than settleAfter: %+v", s.counts)
	}
	if s.cut(1000+settled, m); s.lost != 1 {
		t.Errorf("not lost after settleAfter: %+v", s.counts)
	}
}

// If a number comes late by half of the wait or more, the wait becomes the power of two of at least twice its lateness.
func TestWaitWidens(t *testing.T) {
	for behind, want := range map[uint32]uint32{least/2 - 1: least, least / 2: least, least/2 + 1: 2 * least, least - 1: 2 * least} {
		m := waitingRoom()
		s := oneMissing(m, 0, 5+behind)
		if s.observe(5, 0, m); s.wait != want || s.reordered != 1 {
			t.Errorf("a number that is %d late: waits for %d numbers, want %d; %+v", behind, s.wait, want, s.counts)
		}
	}
}

// The wait halves after calmWindows windows in which nothing was late by a quarter of it, down to least.
func TestWaitHalves(t *testing.T) {
	m := waitingRoom()
	s := oneMissing(m, 0, 10)
	s.wait = 4 * least
	for cut := range 4 * calmWindows {
		want := max(uint32(4*least)>>(cut/calmWindows), least)
		if s.wait != want {
			t.Fatalf("after %d calm windows: waits for %d numbers, want %d", cut, s.wait, want)
		}
		s.cut(int64(cut)*1e9, m)
	}
	s.wait = 4 * least
	for cut := range 2 * calmWindows {
		s.worst = least
		if s.cut(int64(cut)*1e9, m); s.wait != 4*least {
			t.Fatalf("a quarter of the wait was needed, and it is %d after %d windows", s.wait, cut)
		}
	}
}

// A record that was given back is empty when it is used again, and the longer ones give their memory back.
func TestRecordAgain(t *testing.T) {
	m := waitingRoom()
	s := oneMissing(m, 0, 2*least)
	if s.size() != 2*least || m.places.words.Load() != m.places.allWords-2*least/64 {
		t.Fatalf("a record of %d, %d words of %d are left", s.size(), m.places.words.Load(), m.places.allWords)
	}
	for _, seen := range [][]uint64{s.seen, slices.Repeat([]uint64{7}, least/64)} {
		m.giveBack(seen)
	}
	if m.places.words.Load() != m.places.allWords || len(m.spare) != 2 {
		t.Errorf("%d words of %d are left, %d records are kept", m.places.words.Load(), m.places.allWords, len(m.spare))
	}
	for range 3 {
		if r := m.record(); len(r) != least/64 || slices.Max(r) != 0 {
			t.Errorf("a record of %d words, up to %d", len(r), slices.Max(r))
		}
	}
	if len(m.spare) != 0 {
		t.Errorf("%d records are kept", len(m.spare))
	}
}

// The record halves when the missing numbers of its older half have been missing for long, and not before. Those that
// come after that are late.
func TestRecordHalves(t *testing.T) {
	for _, long := range []bool{false, true} {
		for _, base := range []uint32{1000, 1<<32 - 20} {
			m := waitingRoom()
			s := follow(32, m)
			for n := range uint32(2 * least) {
				if n != 5 && n != 1500 {
					s.observe(base+n, int64(n), m)
				}
			}
			for cut := range int64(2 + 2*calmWindows) {
				end := int64(0)
				if long {
					end = cut * settled
				}
				s.cut(end, m)
			}
			check(t, s, m)
			if want := map[bool]uint32{false: 2 * least, true: least}[long]; s.size() != want || s.wait != least {
				t.Fatalf("missing for long: %t: a record of %d, that waits for %d; want %d", long, s.size(), s.wait, want)
			}
			if !long {
				continue
			}
			if s.open != 1 || s.lost != 2 {
				t.Errorf("%d are missing, %d are lost", s.open, s.lost)
			}
			if s.observe(base+5, 0, m); s.late != 1 || s.duplicated != 0 {
				t.Errorf("what the record has left is no late one: %+v", s.counts)
			}
		}
	}
}

// The record stays as long as what is waited for.
func TestWaitKeepsRecord(t *testing.T) {
	m := waitingRoom()
	s := oneMissing(m, 0, 2*least)
	s.wait = 4 * least
	for cut := range int64(2 * calmWindows) {
		want := uint32(2 * least)
		if cut == 2*calmWindows-1 {
			want = least
		}
		if s.cut((2+cut)*settled, m); s.size() != want {
			t.Fatalf("after %d calm windows: a record of %d, that waits for %d; want %d", cut+1, s.size(), s.wait, want)
		}
	}
}

// Numbers missed while no collector ran are counted as that once: numbers are lost that are missing there a round
// later.
func TestMissedOnce(t *testing.T) {
	m := testRoom(testWindow)
	s := follow(14, m)
	s.started, s.resumed, s.sequenced, s.head, s.wait = true, true, true, 100, m.least()
	s.observe(110, 0, m)
	s.cut(0, m)
	for n := uint32(111); n < 1<<14+105; n++ {
		s.observe(n, 0, m)
	}
	s.observe(110, 0, m)
	s.settle()
	if want := (counts{down: 9, lost: 5}); s.counts != want {
		t.Errorf("%+v, want %+v", s.counts, want)
	}
}

// A number before the first one makes the wait longer, too.
func TestLongerBeforeFirst(t *testing.T) {
	m := waitingRoom()
	s := follow(32, m)
	s.observe(10_000, 1e9, m)
	s.observe(10_001, 1e9, m)
	if s.observe(10_001-least/2-1, 1e9-1, m); s.wait != 2*least || s.reordered != 1 {
		t.Errorf("waits for %d numbers, %+v", s.wait, s.counts)
	}
}

// A sequence comes back within returnWithin of its last number, or is another one.
func TestReturnWithin(t *testing.T) {
	for later, restarts := range []uint64{1, 2} {
		m := testRoom(testWindow)
		s := follow(32, m)
		for n := range uint32(100) {
			s.observe(n, 1e12, m)
		}
		for n := range uint32(20) {
			s.observe(1<<20+n, 2e12, m)
		}
		for n := range uint32(20) {
			if s.observe(100+n, 1e12+returnWithin+int64(later)+2e12, m); n == 0 {
				s.oldTime += 2e12
			}
		}
		if s.restarts != restarts {
			t.Errorf("%d ns later: %+v", later, s.counts)
		}
	}
}
