package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func testConfig(dir string) Config {
	c := DefaultConfig()
	c.Dir, c.MaxBytes, c.SegmentBytes = dir, 1<<20, 4096
	return c
}

func mustOpen(t testing.TB, c Config, d disk) *Spool {
	t.Helper()
	var s *Spool
	var err error
	if d == nil {
		s, err = Open(c)
	} else {
		s, err = open(c, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// payload is a recognisable payload of n bytes or a little more.
func payload(i, n int) []byte {
	return fmt.Appendf(nil, "record %d %s", i, strings.Repeat(string(rune('a'+i%26)), n))
}

func mustAppend(t testing.TB, s *Spool, i, n int) {
	t.Helper()
	if err := s.Append(uint64(i), payload(i, n)); err != nil {
		t.Fatalf("Append(%d) = %v", i, err)
	}
}

// drain reads everything without committing it.
func drain(t testing.TB, s *Spool) (out []Record) {
	t.Helper()
	for {
		r, err := s.Read(nil)
		if errors.Is(err, ErrEmpty) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
}

func numbers(records []Record) (out []uint64) {
	for _, r := range records {
		out = append(out, r.Reports)
	}
	return out
}

// sequence is from, from+1, ..., to.
func sequence(from, to uint64) (out []uint64) {
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func TestOrderAndCommit(t *testing.T) {
	c := testConfig(t.TempDir())
	s := mustOpen(t, c, nil)
	if _, err := s.Read(nil); !errors.Is(err, ErrEmpty) {
		t.Fatalf("Read of an empty spool = %v", err)
	}
	for i := range 200 {
		mustAppend(t, s, i+1, 100)
	}
	records := drain(t, s)
	if !slices.Equal(numbers(records), sequence(1, 200)) {
		t.Fatalf("read %v", numbers(records))
	}
	for i, r := range records {
		if !bytes.Equal(r.Payload, payload(i+1, 100)) {
			t.Fatalf("record %d = %q", i+1, r.Payload)
		}
	}
	if st := s.Stats(); st.Records != 200 || st.Reports != 200*201/2 || st.Segments < 5 {
		t.Errorf("Stats = %+v", st)
	}
	if n := s.Commit(records[99].End); n != 100*101/2 {
		t.Errorf("Commit settles %d reports", n)
	}
	if n := s.Commit(records[49].End); n != 0 {
		t.Errorf("an older Commit settles %d reports", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = mustOpen(t, c, nil)
	if st := s.Stats(); st.Records != 100 || st.Reports != 200*201/2-100*101/2 || st.TornBytes != 0 || st.DamagedBytes != 0 {
		t.Errorf("Stats after reopening = %+v", st)
	}
	records = drain(t, s)
	if !slices.Equal(numbers(records), sequence(101, 200)) {
		t.Fatalf("read %v after reopening", numbers(records))
	}
	mustAppend(t, s, 201, 100)
	records = append(records, drain(t, s)...)
	s.Commit(records[len(records)-1].End)
	if st := s.Stats(); st.Records != 0 || st.Reports != 0 || st.Segments != 1 {
		t.Errorf("Stats of an empty spool = %+v", st)
	}
}

func TestLock(t *testing.T) {
	c := testConfig(t.TempDir())
	s := mustOpen(t, c, nil)
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second Open = %v", err)
	}
	s.Close()
	mustOpen(t, c, nil)
}

func TestEviction(t *testing.T) {
	c := testConfig(t.TempDir())
	c.MaxBytes = 4 * c.SegmentBytes
	s := mustOpen(t, c, nil)
	mustAppend(t, s, 1, 1000)
	first, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	var appended uint64
	for i := range 100 {
		mustAppend(t, s, i+2, 1000)
		appended += uint64(i + 2)
		if b := s.Stats().Bytes; b > c.MaxBytes {
			t.Fatalf("%d bytes on disk", b)
		}
	}
	// The first record was read, but its segment is gone: that it is stored now is no news.
	if n := s.Commit(first.End); n != 0 {
		t.Errorf("Commit of an evicted record settles %d reports", n)
	}
	st := s.Stats()
	if st.EvictedReports == 0 || st.EvictedReports != s.TakeLost() || s.TakeLost() != 0 {
		t.Errorf("Stats = %+v", st)
	}
	records := drain(t, s)
	var sum uint64
	for _, r := range records {
		sum += r.Reports
	}
	if sum+st.EvictedReports != appended+1 || uint64(len(records))+st.EvictedRecords != 101 {
		t.Errorf("%d records with %d reports left, %+v", len(records), sum, st)
	}
	if last := records[len(records)-1].Reports; last != 101 {
		t.Errorf("the last record is %d", last)
	}
}

func TestTooLarge(t *testing.T) {
	s := mustOpen(t, testConfig(t.TempDir()), nil)
	if err := s.Append(1, make([]byte, s.MaxRecord()+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Append = %v", err)
	}
	for range 3 {
		if err := s.Append(1, make([]byte, s.MaxRecord())); err != nil {
			t.Errorf("Append = %v", err)
		}
	}
	if n := len(drain(t, s)); n != 3 {
		t.Errorf("%d records", n)
	}
}

// The last segment is cut at every byte: what was whole is read, and the spool goes on behind it.
func TestTornTail(t *testing.T) {
	whole := newMemDisk()
	c := testConfig("mem")
	s := mustOpen(t, c, whole)
	ends := []int64{int64(len(magic))}
	for i := range 5 {
		mustAppend(t, s, i+1, i*7)
		ends = append(ends, s.last().size)
	}
	name := segmentName(1)
	content := whole.files[name].b
	for cut := range len(content) + 1 {
		d := newMemDisk()
		d.files[name] = &memFile{d: d, b: slices.Clone(content[:cut])}
		n := 0 // whole records
		for n < 5 && int64(cut) >= ends[n+1] {
			n++
		}
		s := mustOpen(t, c, d)
		torn := int64(cut) - ends[n]
		if cut < len(magic) {
			torn = int64(cut)
		}
		if st := s.Stats(); st.Records != uint64(n) || st.TornBytes != torn || st.DamagedBytes != 0 {
			t.Fatalf("cut at %d: Stats = %+v, want %d records and %d torn bytes", cut, st, n, torn)
		}
		mustAppend(t, s, n+1, 3)
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(1, uint64(n+1))) {
			t.Fatalf("cut at %d: read %v", cut, got)
		}
	}
}

// The head is at every byte of a segment whose tail is torn: a head between two records is believed, any other one
// means the whole segment.
func TestHeadAnywhere(t *testing.T) {
	whole := newMemDisk()
	c := testConfig("mem")
	s := mustOpen(t, c, whole)
	ends := []int64{int64(len(magic))}
	for i := range 4 {
		mustAppend(t, s, i+1, 5)
		ends = append(ends, s.last().size)
	}
	content := append(slices.Clone(whole.files[segmentName(1)].b), "torn bytes"...)
	for at := range int64(len(content)) + 20 {
		d := newMemDisk()
		d.files[segmentName(1)] = &memFile{d: d, b: slices.Clone(content)}
		d.files["head"] = &memFile{d: d, b: []byte(Position{1, at}.String())}
		s := mustOpen(t, c, d)
		from := uint64(1)
		if i := slices.Index(ends, at); i >= 0 {
			from = uint64(i) + 1
		}
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(from, 4)) {
			t.Fatalf("head at %d: read %v, want %d to 4", at, got, from)
		}
		if st := s.Stats(); st.DamagedBytes != 0 || st.TornBytes != int64(len("torn bytes")) {
			t.Fatalf("head at %d: %+v", at, st)
		}
	}
	slot := func(at int64) string { return Position{1, at}.String() }
	gap := strings.Repeat("\x00", headSlot-slotLen)
	for _, tt := range []struct {
		head string
		want []uint64
	}{
		{"", sequence(1, 4)},
		{"x", sequence(1, 4)},
		{slot(ends[2]) + gap + slot(ends[3]), sequence(4, 4)},
		{slot(ends[3]) + gap + slot(ends[2]), sequence(4, 4)},
		{slot(ends[2]) + gap + slot(ends[3])[:40], sequence(3, 4)}, // torn
		{slot(ends[2])[:42] + slot(ends[3])[42:] + gap + slot(ends[1]), sequence(2, 4)},
		{slot(ends[2])[:slotLen-1] + "x", sequence(1, 4)},
		{slot(-1), sequence(1, 4)},
		{Position{7, 8}.String(), nil}, // a later segment than there is: all is stored
	} {
		d := newMemDisk()
		d.files[segmentName(1)] = &memFile{d: d, b: slices.Clone(content)}
		d.files["head"] = &memFile{d: d, b: []byte(tt.head)}
		s := mustOpen(t, c, d)
		mustAppend(t, s, 5, 1)
		if got := numbers(drain(t, s)); !slices.Equal(got, append(tt.want, 5)) {
			t.Errorf("head %q: read %v, want %v and 5", tt.head, got, tt.want)
		}
		s.Commit(Position{9, 9})
		s.Commit(Position{9, 10})
		if p, _ := readHead(s.headFile); p != (Position{9, 10}) {
			t.Errorf("head %q: the head is %v after two commits", tt.head, p)
		}
	}
}

// One byte is changed, anywhere in any segment: at most one segment is lost, everything read is what was written,
// and what is missing is counted.
func TestDamage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	c := testConfig("mem")
	c.SegmentBytes = 4096
	whole := newMemDisk()
	s := mustOpen(t, c, whole)
	const n = 60
	for i := range n {
		mustAppend(t, s, i+1, 200)
	}
	for range 400 {
		d := newMemDisk()
		var names []string
		for name, f := range whole.files {
			if name == "head" {
				continue
			}
			d.files[name] = &memFile{d: d, b: slices.Clone(f.b)}
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[r.IntN(len(names))]
		at := r.IntN(len(d.files[name].b))
		d.files[name].b[at] ^= 1 << r.IntN(8)
		where := fmt.Sprintf("seed %d: %s byte %d", seed, name, at)

		s := mustOpen(t, c, d)
		carried := s.Stats()
		records := drain(t, s)
		st := s.Stats()
		var sum uint64
		for _, rec := range records {
			sum += rec.Reports
			if !bytes.Equal(rec.Payload, payload(int(rec.Reports), 200)) {
				t.Fatalf("%s: record %d is %q", where, rec.Reports, rec.Payload)
			}
		}
		if !slices.IsSorted(numbers(records)) {
			t.Fatalf("%s: out of order: %v", where, numbers(records))
		}
		if carried.Reports != sum+st.DamagedReports || carried.Records != uint64(len(records))+st.DamagedRecords || s.TakeLost() != st.DamagedReports {
			t.Fatalf("%s: %d reports found at the start, %d read, %+v", where, carried.Reports, sum, st)
		}
		perSegment := int(c.SegmentBytes) / (headerLen + 200)
		if len(records) < n-perSegment || len(records) == n || st.DamagedBytes+st.TornBytes == 0 {
			t.Fatalf("%s: %d of %d records, %+v", where, len(records), n, st)
		}
	}
}

// The disk is full: Append says so, nothing else happens, and when there is room again it goes on.
func TestDiskFull(t *testing.T) {
	for _, noCut := range []bool{false, true} {
		d := newMemDisk()
		c := testConfig("mem")
		s := mustOpen(t, c, d)
		for i := range 20 {
			mustAppend(t, s, i+1, 100)
		}
		d.capacity, d.noCut = d.used()+50, noCut // in the middle of the next record
		for range 3 {
			if err := s.Append(99, payload(99, 100)); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("Append to a full disk = %v", err)
			}
		}
		st := s.Stats()
		if st.RefusedRecords != 3 || st.Records != 20 || !strings.Contains(st.LastError, "no space left") || st.LastErrorTime.IsZero() {
			t.Errorf("Stats = %+v", st)
		}
		records := drain(t, s)
		if !slices.Equal(numbers(records), sequence(1, 20)) {
			t.Fatalf("read %v from a full disk", numbers(records))
		}
		s.Commit(records[9].End) // the head cannot be written, which stops nothing
		d.capacity, d.noCut = 1<<40, false
		mustAppend(t, s, 21, 100)
		if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{21}) {
			t.Fatalf("read %v behind the full disk", got)
		}
		s.Sync()
		s.Close()
		s = mustOpen(t, c, d)
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(11, 21)) {
			t.Fatalf("noCut %t: read %v after reopening", noCut, got)
		}
	}
}

// A real file system of half a megabyte, where there is the right to mount one.
func TestDiskFullTmpfs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no right to mount a small file system (%v); TestDiskFull does it in memory", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	c := testConfig(dir)
	c.SegmentBytes = 64 << 10
	s := mustOpen(t, c, nil)
	i := 0
	var err error
	for ; i < 2000 && err == nil; i++ {
		err = s.Append(uint64(i+1), payload(i+1, 1000))
	}
	full := uint64(i - 1)
	if !errors.Is(err, syscall.ENOSPC) || full == 0 {
		t.Fatalf("after %d records: %v", full, err)
	}
	records := drain(t, s)
	if !slices.Equal(numbers(records), sequence(1, full)) {
		t.Fatalf("read %d of %d records", len(records), full)
	}
	s.Commit(records[len(records)/2].End) // frees segments
	mustAppend(t, s, int(full)+1, 1000)
	s.Close()
	s = mustOpen(t, c, nil)
	if got := numbers(drain(t, s)); !slices.Equal(got, sequence(uint64(len(records)/2)+2, full+1)) {
		t.Errorf("read %d to %d after reopening", got[0], got[len(got)-1])
	}
}

func TestSyncFails(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.Sync = "each"
	s := mustOpen(t, c, d)
	mustAppend(t, s, 1, 10)
	d.noSync = true
	if err := s.Append(2, payload(2, 10)); !errors.Is(err, syscall.EIO) {
		t.Errorf("Append = %v, want the error of the sync", err)
	}
	d.noSync = false
	mustAppend(t, s, 3, 10)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("read %v", got)
	}
}

// syncCounter counts syncs.
type syncCounter struct {
	*memDisk
	n int
}

type countedFile struct {
	file
	d *syncCounter
}

func (d *syncCounter) open(name string, create bool) (file, error) {
	f, err := d.memDisk.open(name, create)
	return countedFile{f, d}, err
}

func (f countedFile) Sync() error { f.d.n++; return f.file.Sync() }

func TestSyncPolicy(t *testing.T) {
	for policy, want := range map[string]int{"each": 10, "interval": 5, "never": 0} {
		synctest.Test(t, func(t *testing.T) {
			d := &syncCounter{memDisk: newMemDisk()}
			c := testConfig("mem")
			c.Sync, c.SyncInterval = policy, time.Second
			s := mustOpen(t, c, d)
			for i := range 10 {
				time.Sleep(400 * time.Millisecond)
				mustAppend(t, s, i+1, 1)
				if i%2 == 1 {
					time.Sleep(time.Second)
					s.Sync()
					s.Sync()
				}
			}
			if d.n != want && policy != "interval" || policy == "interval" && (d.n < 5 || d.n > 8) {
				t.Errorf("sync: %s: %d syncs, want %d", policy, d.n, want)
			}
		})
	}
}

// Everything at random against a list: append, read, commit, close and open, crash.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, round))
		where := fmt.Sprintf("seed %d round %d", seed, round)
		d := newMemDisk()
		c := testConfig("mem")
		c.MaxBytes = c.SegmentBytes * int64(4+r.IntN(20))
		s := mustOpen(t, c, d)
		var (
			model     []uint64 // appended and not committed, lost ones among them
			read      []Record
			next      = uint64(1)
			in, out   uint64 // reports
			lost      uint64
			committed uint64
		)
		for step := range 1500 {
			switch op := r.IntN(100); {
			case op < 45:
				if err := s.Append(next, payload(int(next), r.IntN(900))); err != nil {
					t.Fatalf("%s step %d: %v", where, step, err)
				}
				model = append(model, next)
				in += next
				next++
			case op < 80:
				rec, err := s.Read(nil)
				if errors.Is(err, ErrEmpty) {
					break
				}
				i := slices.Index(model, rec.Reports)
				if i < 0 || len(read) > 0 && rec.Reports <= read[len(read)-1].Reports || rec.Reports <= committed ||
					!bytes.HasPrefix(rec.Payload, fmt.Appendf(nil, "record %d ", rec.Reports)) {
					t.Fatalf("%s step %d: read %d %.20q, last %v", where, step, rec.Reports, rec.Payload, numbers(read))
				}
				read = append(read, rec)
			case op < 97:
				if len(read) == 0 {
					break
				}
				k := r.IntN(len(read))
				out += s.Commit(read[k].End)
				committed = read[k].Reports
				read = read[k+1:]
				for len(model) > 0 && model[0] <= committed {
					model = model[1:]
				}
			default:
				lost += s.TakeLost()
				if r.IntN(2) == 0 {
					s.Close()
				} // else a crash: nothing is closed
				s = mustOpen(t, c, d)
				read = read[:0]
			}
			lost += s.TakeLost()
			if st := s.Stats(); in != out+lost+st.Reports || st.Bytes > c.MaxBytes || st.DamagedBytes+st.TornBytes != 0 {
				t.Fatalf("%s step %d: in %d, out %d, lost %d, %+v", where, step, in, out, lost, st)
			}
		}
		// What was not read yet is the end of the model, whole. What was read may have been evicted since.
		left := numbers(drain(t, s))
		if len(left) > len(model) || !slices.Equal(left, model[len(model)-len(left):]) {
			t.Fatalf("%s: left %v, want the end of %v", where, left, model)
		}
		if lost == 0 && len(read)+len(left) != len(model) {
			t.Fatalf("%s: nothing was lost, yet %d and %d of %d are left", where, len(read), len(left), len(model))
		}
	}
}

func TestStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "1.seg", "00000000000000000002.seg.bak", "99999999999999999999.seg"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, testConfig(dir), nil)
	mustAppend(t, s, 1, 1)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("read %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	c := DefaultConfig()
	c.Dir = "x"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c = Config{MaxBytes: 100, SegmentBytes: 26}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("Validate = %v, want two problems", err)
	}
}
