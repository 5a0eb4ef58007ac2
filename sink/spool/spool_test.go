package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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
	if err := s.Append(uint64(i), 1, payload(i, n)); err != nil {
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
	if n := s.Commit(records[99].End).Reports; n != 100*101/2 {
		t.Errorf("Commit settles %d reports", n)
	}
	if n := s.Commit(records[49].End).Reports; n != 0 {
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
	if n := s.Commit(first.End).Reports; n != 0 {
		t.Errorf("Commit of an evicted record settles %d reports", n)
	}
	st := s.Stats()
	if st.EvictedReports == 0 || st.EvictedReports != s.TakeLost().Reports || s.TakeLost().Reports != 0 {
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
	if err := s.Append(1, 1, make([]byte, s.MaxRecord()+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Append = %v", err)
	}
	for range 3 {
		if err := s.Append(1, 1, make([]byte, s.MaxRecord())); err != nil {
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
		if carried.Reports != sum+st.DamagedReports || carried.Records != uint64(len(records))+st.DamagedRecords || s.TakeLost().Reports != st.DamagedReports {
			t.Fatalf("%s: %d reports found at the start, %d read, %+v", where, carried.Reports, sum, st)
		}
		perSegment := int(c.SegmentBytes) / (headerLen + 200)
		if len(records) < n-perSegment || len(records) == n || st.DamagedBytes+st.TornBytes == 0 {
			t.Fatalf("%s: %d of %d records, %+v", where, len(records), n, st)
		}
	}
}
