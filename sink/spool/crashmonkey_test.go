package spool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// life is a spool in use and what it owes to its user.
type life struct {
	acked      []uint64        // records that Append took, in order
	trying     uint64          // the record that is being appended
	refused    map[uint64]bool // records that Append refused: they may be there, as writes that were cut off may
	committed  uint64          // everything up to it is stored
	committing uint64          // and up to it after the Commit that is under way
	lost       Lost
	stored     Lost
	broken     bool // the disk did not read, or did not move the head
}

// use appends, reads, commits, begins segments, evicts and opens again, under all answers of the disk.
func (l *life) use(d *memDisk, c Config, evict bool) error {
	l.refused = map[uint64]bool{}
	var s *Spool
	reopen := func() error {
		var err error
		if s, err = open(c, d); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		return nil
	}
	if err := reopen(); err != nil {
		return err
	}
	next := uint64(1)
	for round := range 4 {
		for i := range 9 {
			l.trying = next
			if s.Append(next, pointsOf(next), payload(int(next), 300+100*(i%3))) == nil {
				l.acked = append(l.acked, next)
			} else {
				l.refused[next] = true
			}
			next++
			l.trying = 0
			s.Sync()
		}
		if !evict || round == 3 {
			for range 7 {
				r, err := s.Read(nil)
				if err != nil {
					break
				}
				l.committing = r.Reports
				if r.Reports%2 == 0 {
					got := s.Commit(r.End)
					l.committed = r.Reports
					l.stored.Reports += got.Reports
					l.stored.Points += got.Points
				}
			}
		}
		lost := s.DrainLost()
		l.lost.Reports += lost.Reports
		l.lost.Points += lost.Points
		if round == 1 || round == 2 {
			if round == 2 {
				s.Close() // else it ends as by kill -9
			}
			if err := reopen(); err != nil {
				return err
			}
		}
	}
	s.Close()
	return nil
}

// check opens a disk and holds it against what is owed. With whole nothing that was taken and neither stored nor
// evicted may be missing.
func (l *life) check(d *memDisk, c Config, whole bool) error {
	s, err := open(c, d)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	at := s.DrainLost()
	held := s.Stats()
	var ids []uint64
	var sum Lost
	for {
		r, err := s.Read(nil)
		if errors.Is(err, errEmpty) {
			break
		}
		if err != nil {
			return err
		}
		if !slices.Contains(l.acked, r.Reports) && !l.refused[r.Reports] && r.Reports != l.trying {
			return fmt.Errorf("record %d is invented", r.Reports)
		}
		if len(ids) > 0 && r.Reports <= ids[len(ids)-1] {
			return fmt.Errorf("%d is read behind %d", r.Reports, ids[len(ids)-1])
		}
		if r.Points != pointsOf(r.Reports) || !strings.HasPrefix(string(r.Payload), fmt.Sprintf("record %d ", r.Reports)) {
			return fmt.Errorf("record %d is read as %d points, %.20q", r.Reports, r.Points, r.Payload)
		}
		ids = append(ids, r.Reports)
		got := s.Commit(r.End)
		sum.Reports += got.Reports
		sum.Points += got.Points
	}
	lost := s.DrainLost()
	if held.Reports != sum.Reports+lost.Reports || held.Points != sum.Points+lost.Points {
		return fmt.Errorf("%d reports and %d points were held, %+v were stored and %+v lost", held.Reports, held.Points, sum, lost)
	}
	lost.Reports += at.Reports
	if st := s.Stats(); st.Records != 0 || st.DamagedReports+st.EvictedReports != lost.Reports {
		return fmt.Errorf("lost %+v, %+v", lost, st)
	}
	// With sync: interval the record that is just being appended may be known of and not be there.
	known := lost.Reports == l.trying && c.Sync == "interval"
	if (whole || c.Sync == "each" && !l.broken) && lost.Reports != 0 && !known {
		return fmt.Errorf("lost %+v: %+v", lost, s.Events())
	}
	if c.Sync == "each" && !l.broken && len(ids) > 0 && ids[0] <= l.committed {
		return fmt.Errorf("%d is read again; committed %d", ids[0], l.committed)
	}
	if !whole {
		return nil
	}
	from := l.committed
	if len(ids) > 0 && ids[0] > from && ids[0] <= l.committing+1 {
		from = ids[0] - 1
	}
	for _, id := range l.acked {
		if id > from && id > l.committing && !slices.Contains(ids, id) {
			return fmt.Errorf("record %d is missing of %v; committed %d", id, ids, l.committed)
		}
	}
	return nil
}

func smallConfig(sync string) Config {
	c := testConfig("mem")
	c.SegmentBytes, c.MaxBytes, c.Sync, c.SyncInterval = 4096, 1<<20, sync, 0
	return c
}

// The machine crashes after every operation of a run, and forgets the bytes that were not forced to the disk in every
// way.
func TestCrash(t *testing.T) {
	for _, sync := range []string{"each", "interval", "never"} {
		for _, evict := range []bool{false, true} {
			c := smallConfig(sync)
			if evict {
				c.MaxBytes = 4 * 4096
			}
			d := newMemDisk()
			var l life
			crashed := map[string]int{}
			d.done = func(what, name string) {
				crashed[what]++
				for _, variant := range crashes {
					// A crash of the process leaves all. What an eviction took is not owed.
					whole := (sync != "never" || variant == "all") && !evict // the interval is 0
					if err := l.check(d.crash(variant), c, whole); err != nil {
						t.Fatalf("sync: %s, evict %t, crash %q behind %s of %q (operation %d): %v", sync, evict, variant, what, name, d.ops, err)
					}
				}
			}
			if err := l.use(d, c, evict); err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"create", "write", "remove"} {
				if crashed[what] == 0 {
					t.Errorf("sync: %s, evict %t: no crash behind a %s: %v", sync, evict, what, crashed)
				}
			}
		}
	}
}

// One operation fails, or all from one on until the disk is repaired. No record that was taken is missing, and the
// counts are exact. At the end the disk also crashes, and loses what it did not confirm.
func TestFaults(t *testing.T) {
	testkit.Long(t)
	lengths := []int{1, 4, 1 << 30}
	if testkit.Night() {
		lengths = []int{1, 2, 3, 4, 5, 6, 7, 8, 1 << 30}
	}
	for _, sync := range []string{"each", "interval"} {
		c := smallConfig(sync)
		for _, evict := range []bool{false, true} {
			if evict {
				c.MaxBytes = 4 * 4096
			}
			count := newMemDisk()
			if err := new(life).use(count, c, evict); err != nil {
				t.Fatal(err)
			}
			for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
				for _, length := range lengths {
					for at := range count.ops {
						d := newMemDisk()
						where := ""
						d.fault = func(n int, what, name string) error {
							if n < at || n >= at+length || fault == syscall.ENOSPC && (what == "read" || what == "list" || what == "stat") {
								return nil
							}
							if n == at {
								where = what + " of " + name
							}
							return fault
						}
						l := life{broken: true}
						err := l.use(d, c, evict)
						d.fault = nil
						if err != nil && !errors.Is(err, fault) {
							t.Fatal(err)
						}
						read := strings.HasPrefix(where, "read") || length > 1
						if err := l.check(d.clone(), c, !evict && !read); err != nil {
							t.Fatalf("sync: %s, evict %t, %v at %d (%s), %d long: %v", sync, evict, fault, at, where, length, err)
						}
						if sync == "each" {
							if err := l.check(d.crash("nothing"), c, !evict && !read); err != nil {
								t.Fatalf("sync: %s, evict %t, %v at %d (%s), %d long, and a crash: %v", sync, evict, fault, at, where, length, err)
							}
						}
					}
				}
			}
		}
	}
}

// A disk that shows neither a segment nor the state keeps the spool from being opened, and nothing is written: new records would have
// the numbers of those that are there. Once the disk shows them again, all are read.
func TestOpenBlind(t *testing.T) {
	for _, hidden := range []string{"stat", "open"} {
		c, d := smallConfig("each"), newMemDisk()
		s := mustOpen(t, c, d)
		for i := range 30 {
			mustAppend(t, s, i+1, 400)
		}
		s.Close()
		for _, names := range []string{suffixV2, "2" + suffixV2} {
			d.fault = func(_ int, what, name string) error {
				switch {
				case what == hidden && strings.HasSuffix(name, names), what == "open" && name == stateName:
					return syscall.EIO
				case what == "write" || what == "create" || what == "rename":
					t.Errorf("%s of %s", what, name)
				}
				return nil
			}
			if _, err := open(c, d); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), suffixV2) || !strings.Contains(err.Error(), "move the directory away") {
				t.Errorf("%s of %v fails: %v", hidden, names, err)
			}
		}
		d.fault = nil
		s = mustOpen(t, c, d)
		for i := range 30 {
			if r, err := s.Read(nil); err != nil || r.Reports != uint64(i+1) {
				t.Fatalf("%s: record %d: %+v, %v", hidden, i+1, r, err)
			}
		}
	}
}

// A sync that fails is not believed later: the disk has forgotten what it was given, and a crash shows it.
func TestSyncFailsAndCrashes(t *testing.T) {
	for _, sync := range []string{"each", "interval"} {
		d := newMemDisk()
		c := smallConfig(sync)
		s := mustOpen(t, c, d)
		mustAppend(t, s, 1, 10)
		failed := 0
		d.fault = func(n int, what, name string) error {
			if what == "sync" && strings.HasSuffix(name, "1"+suffixV2) {
				failed++
				return syscall.EIO
			}
			return nil
		}
		for i := 2; i < 6; i++ {
			mustAppend(t, s, i, 10)
			s.Sync()
		}
		if st := s.Stats(); failed != 1 || st.SyncFailures != 1 || st.Segments != 2 {
			t.Errorf("sync: %s: %d syncs of the failed segment, %+v", sync, failed, st)
		}
		if e := s.Events(); len(e) == 0 || e[0].Kind != "sync" || e[0].Segment != segmentName(1) {
			t.Errorf("sync: %s: events %+v", sync, e)
		}
		s = mustOpen(t, c, d.crash("nothing"))
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(1, 5)) {
			t.Errorf("sync: %s: read %v after the crash", sync, got)
		}
	}
}

// No segment can be made for the records that a failed sync left in doubt. They stay in memory and are read from
// there, and no others are taken. They go to the disk when it works again.
func TestKeptInMemory(t *testing.T) {
	d := newMemDisk()
	c := smallConfig("interval")
	s := mustOpen(t, c, d)
	for i := range 3 {
		mustAppend(t, s, i+1, 10)
	}
	c.SyncInterval = 1 << 62
	s.conf.SyncInterval = 1 << 62
	for i := range 3 {
		mustAppend(t, s, i+4, 10)
	}
	s.conf.SyncInterval = 0
	d.fault = func(n int, what, name string) error {
		if what == "sync" {
			return syscall.EIO
		}
		return nil
	}
	s.Sync()
	for range 2 {
		if err := s.Append(7, 7, nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("Append = %v", err)
		}
	}
	records := drain(t, s)
	if !slices.Equal(numbers(records), sequence(1, 6)) {
		t.Fatalf("read %v", numbers(records))
	}
	d.fault = nil
	s.Commit(records[3].End)
	mustAppend(t, s, 8, 10)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{8}) {
		t.Errorf("then read %v", got)
	}
	for _, left := range []*memDisk{d.clone(), d.crash("nothing")} {
		s := mustOpen(t, c, left)
		if got := numbers(drain(t, s)); len(got) < 3 || !slices.Equal(got[len(got)-3:], []uint64{5, 6, 8}) {
			t.Errorf("read %v after opening again", got)
		}
		if lost := s.DrainLost(); lost != (Lost{}) {
			t.Errorf("lost %+v", lost)
		}
	}
}

// The directory of the operating system does what the one in memory does.
func TestOSDisk(t *testing.T) {
	d := osDisk(t.TempDir())
	if err := d.mkdir("q"); err != nil {
		t.Fatal(err)
	}
	f, err := d.open("q/a", true)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("x"), 0)
	f.Close()
	if _, err := d.open("q/a", true); !errors.Is(err, os.ErrExist) {
		t.Errorf("open = %v", err)
	}
	if err := errors.Join(d.rename("q/a", "b"), d.sync("q"), d.sync("")); err != nil {
		t.Error(err)
	}
	if in, err := d.stat("b"); err != nil || in.size != 1 || in.dir {
		t.Errorf("stat = %+v, %v", in, err)
	}
	if in, err := d.stat("q"); err != nil || !in.dir {
		t.Errorf("stat = %+v, %v", in, err)
	}
	if names, err := d.list("q"); err != nil || len(names) != 0 {
		t.Errorf("list = %v, %v", names, err)
	}
}
