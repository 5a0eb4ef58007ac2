package spool

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
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

// pointsOf is the number of points of record i in tests, which has i reports.
func pointsOf(i uint64) uint64 { return 3*i + 1 }

func mustAppend(t testing.TB, s *Spool, i, n int) {
	t.Helper()
	if err := s.Append(uint64(i), pointsOf(uint64(i)), payload(i, n)); err != nil {
		t.Fatalf("Append(%d) = %v", i, err)
	}
}

// drain reads everything without committing it.
func drain(t testing.TB, s *Spool) (out []Record) {
	t.Helper()
	for {
		r, err := s.Read(nil)
		if errors.Is(err, errEmpty) {
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
	if _, err := s.Read(nil); !errors.Is(err, errEmpty) {
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
	if st := s.Stats(); st.Records != 100 || st.Reports != 200*201/2-100*101/2 || st.TornBytes != 0 || st.damagedBytes != 0 {
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
	if st.EvictedReports == 0 || st.EvictedReports != s.DrainLost().Reports || s.DrainLost().Reports != 0 {
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
