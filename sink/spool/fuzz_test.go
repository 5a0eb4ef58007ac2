package spool

import (
	"bytes"
	"testing"
)

// FuzzSegment: whatever is in a segment, as the last one and as an earlier one, it opens, what is read is what a
// writer wrote, the counts add up, and a record appended behind it comes out.
func FuzzSegment(f *testing.F) {
	good := appendRecord([]byte(magic), 3, []byte("payload"))
	good = appendRecord(good, 4, nil)
	f.Add(good, int64(0))
	f.Add(good[:len(good)-3], int64(8))
	f.Add(append(bytes.Clone(good), make([]byte, 64)...), int64(35))
	f.Add([]byte("hopspol1\xff\xff\xff\xff"), int64(-1))
	f.Add([]byte{}, int64(1<<62))
	f.Fuzz(func(t *testing.T, b []byte, head int64) {
		c := testConfig("mem")
		c.MaxBytes = 1 << 30
		for _, later := range []bool{false, true} {
			d := newMemDisk()
			d.files[segmentName(5)] = &memFile{d: d, b: bytes.Clone(b)}
			d.files["head"] = &memFile{d: d, b: []byte(Position{5, head}.String())}
			if later {
				d.files[segmentName(6)] = &memFile{d: d, b: appendRecord([]byte(magic), 77, []byte("later"))}
			}
			s, err := open(c, d)
			if err != nil {
				t.Fatal(err)
			}
			found := s.Stats()
			if err := s.Append(99, 1, []byte("last")); err != nil {
				t.Fatal(err)
			}
			var records, reports uint64
			var last []byte
			for {
				r, err := s.Read(nil)
				if err != nil {
					break
				}
				if at := bytes.Index(b, appendRecord(nil, r.Reports, r.Payload)); at < 0 && string(r.Payload) != "later" && string(r.Payload) != "last" {
					t.Fatalf("read %d %q, which nobody wrote", r.Reports, r.Payload)
				}
				records++
				reports += r.Reports
				last = r.Payload
			}
			st := s.Stats()
			if string(last) != "last" || found.Records+1 != records+st.DamagedRecords || found.Reports+99 != reports+st.DamagedReports {
				t.Fatalf("found %+v, read %d records with %d reports, now %+v", found, records, reports, st)
			}
			s.Close()
		}
	})
}
