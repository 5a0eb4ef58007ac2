package spool

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDirectory opens a directory of arbitrary files. Only what a writer wrote is read, and the counts of reports and
// points add up. A record appended afterwards is read, also after another open.
func FuzzDirectory(f *testing.F) {
	first := appendSegmentHeader(nil, 1, totals{})
	first = appendRecord(first, totals{}, 3, 5, whenever, []byte("payload"))
	first = appendRecord(first, totals{1, 3, 5}, 4, 6, whenever, nil)
	second := appendSegmentHeader(nil, 2, totals{2, 7, 11})
	second = appendRecord(second, totals{2, 7, 11}, 1, 1, whenever, []byte("later"))
	old := appendV1(appendV1([]byte(magicV1), 3, []byte("old")), 4, nil)
	state := make([]byte, 4*slotBytes)
	for g := range uint64(2) {
		copy(state[slotAt(slotHead, g):], slot{g, 1, totals{g, 3 * g, 5 * g}}.encode(slotHead))
		copy(state[slotAt(slotTail, g):], slot{g, 2, totals{2 + g, 7 + g, 11 + g}}.encode(slotTail))
	}
	head := []byte(placeV1{5, 31}.String())
	f.Add(first, second, old, state, head)
	f.Add(first[:70], second, []byte{}, state[:600], head[:7])
	f.Add([]byte{}, first, old[:9], []byte{}, []byte{})
	f.Add(second, first, bytes.Repeat(old, 3), bytes.Repeat([]byte{0xff}, 2048), head)
	f.Add(append(bytes.Clone(first), make([]byte, 90)...), append(bytes.Clone(second), marker...), old[3:], state, []byte(placeV1{1 << 60, 1 << 60}.String()))
	f.Fuzz(func(t *testing.T, first, second, old, state, head []byte) {
		c := testConfig("mem")
		c.MaxBytes = 1 << 30
		d := newMemDisk()
		d.put(segmentName(1), first)
		d.put(segmentName(2), second)
		d.put(segmentNameV1(5), old)
		d.put(stateName, state)
		d.put(headNameV1, head)
		for run := range 2 {
			s, err := open(c, d)
			if err != nil {
				t.Fatal(err)
			}
			before := s.DrainLost()
			found := s.Stats()
			if found.DamagedReports != before.Reports || found.DamagedPoints != before.Points {
				t.Fatalf("lost %+v, found %+v", before, found)
			}
			if err := s.Append(99, 98, []byte("last")); err != nil {
				t.Fatal(err)
			}
			var stored Lost
			var last []byte
			for {
				r, err := s.Read(nil)
				if errors.Is(err, errEmpty) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if string(r.Payload) != "last" && !bytes.Contains(first, r.Payload) && !bytes.Contains(second, r.Payload) && !bytes.Contains(old, r.Payload) {
					t.Fatalf("read %d %q, which nobody wrote", r.Reports, r.Payload)
				}
				last = r.Payload
				got := s.Commit(r.End)
				stored.Reports += got.Reports
				stored.Points += got.Points
			}
			lost := s.DrainLost()
			st := s.Stats()
			if string(last) != "last" || found.Reports+99 != stored.Reports+lost.Reports || found.Points+98 != stored.Points+lost.Points || st.Records != 0 {
				t.Fatalf("run %d: found %+v, stored %+v, lost %+v, last %q, now %+v", run, found, stored, lost, last, st)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
