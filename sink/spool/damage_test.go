package spool

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	damageRecords   = 30
	damageCommitted = 3
)

func damageConfig() Config {
	c := testConfig("mem")
	c.SegmentBytes, c.Sync = 1000, "each"
	return c
}

// sample is a spool of a few segments, of which the first records are stored.
func sample(t testing.TB) *memDisk {
	d := newMemDisk()
	s := mustOpen(t, damageConfig(), d)
	for i := range damageRecords {
		mustAppend(t, s, i+1, 20+i%7)
	}
	for range damageCommitted {
		r, err := s.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Commit(r.End)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d.clone()
}

func sortedNames(d *memDisk) []string { return slices.Sorted(maps.Keys(d.files)) }

// outcome is the result of a spool over two runs, of which the first one ended before it had stored everything.
type outcome struct {
	ids    []uint64
	events []event
	stats  Stats
	lost   Lost
}

// receive reads a damaged spool and compares the read, lost and stored records with the appended ones.
func receive(t *testing.T, where string, d *memDisk, second bool) (o outcome) {
	t.Helper()
	var stored Lost
	for run := range 2 {
		s, err := open(damageConfig(), d)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		for n := 0; ; n++ {
			r, err := s.Read(nil)
			if errors.Is(err, errEmpty) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if r.Points != pointsOf(r.Reports) || !bytes.Equal(r.Payload, payload(int(r.Reports), 20+int(r.Reports-1)%7)) {
				t.Fatalf("%s: read %d reports, %d points, %q", where, r.Reports, r.Points, r.Payload)
			}
			if run == 0 && n >= 12 { // read, and not stored
				continue
			}
			got := s.Commit(r.End)
			stored.Reports += got.Reports
			stored.Points += got.Points
			o.ids = append(o.ids, r.Reports)
		}
		lost := s.DrainLost()
		o.lost.Reports += lost.Reports
		o.lost.Points += lost.Points
		o.stats = s.Stats()
		if run == 1 && (o.stats.Records != 0 || o.stats.Reports != 0 || o.stats.Points != 0) {
			t.Fatalf("%s: left over: %+v", where, o.stats)
		}
		o.events = append(o.events, s.Events()...)
		s.Close()
	}
	if !slices.IsSorted(o.ids) || len(slices.Compact(slices.Clone(o.ids))) != len(o.ids) {
		t.Fatalf("%s: read %v", where, o.ids)
	}
	var want Lost
	for i := uint64(1); i <= damageRecords; i++ {
		if !slices.Contains(o.ids, i) && i > damageCommitted {
			want.Reports += i
			want.Points += pointsOf(i)
		}
	}
	if o.lost != want {
		t.Fatalf("%s: read %v, lost %+v, want %+v\n%+v\n%+v", where, o.ids, o.lost, want, o.stats, o.events)
	}
	if !second && slices.ContainsFunc(o.ids, func(id uint64) bool { return id <= damageCommitted }) {
		t.Fatalf("%s: what was stored is read again: %v", where, o.ids)
	}
	return o
}

// A bit is flipped in every byte of every file. That costs at most the record that it hits, the damaged bytes are kept
// aside, and the damage is reported. Damage of the state costs nothing.
func TestFlippedBit(t *testing.T) {
	whole := sample(t)
	for _, name := range sortedNames(whole) {
		for at := range whole.files[name].b {
			d := whole.clone()
			b := d.files[name].b
			b[at] ^= 1 << (at % 8)
			damaged := bytes.Clone(b)
			where := fmt.Sprintf("%s byte %d", name, at)
			o := receive(t, where, d, name == stateName)
			if name == stateName {
				if o.lost != (Lost{}) {
					t.Fatalf("%s: lost %+v", where, o.lost)
				}
				continue
			}
			missing := damageRecords - damageCommitted - len(o.ids)
			if missing > 1 {
				t.Fatalf("%s: %d records are missing: read %v\n%+v", where, missing, o.ids, o.events)
			}
			if missing == 0 && at >= segmentHeaderLen && !strings.HasPrefix(name, segmentName(1)[:20]) {
				t.Fatalf("%s: the record of the flipped bit was read", where)
			}
			if missing == 1 || at < segmentHeaderLen {
				if len(o.events) == 0 {
					t.Fatalf("%s: nothing was reported", where)
				}
				kept := false
				for other, f := range d.files {
					if strings.HasPrefix(other, quarantineDir+"/"+name+"-") && bytes.Contains(damaged, f.b) && len(f.b) > 0 {
						kept = true
					}
				}
				if !kept {
					t.Fatalf("%s: nothing is kept aside: %v", where, sortedNames(d))
				}
			}
		}
	}
}

// Every file is cut at every byte. Records before the cut are read, and those after it are counted.
func TestCut(t *testing.T) {
	whole := sample(t)
	for _, name := range sortedNames(whole) {
		for size := range whole.files[name].b {
			d := whole.clone()
			d.put(name, whole.files[name].b[:size])
			where := fmt.Sprintf("%s cut at %d", name, size)
			o := receive(t, where, d, name == stateName)
			if name == stateName {
				if o.lost != (Lost{}) {
					t.Fatalf("%s: lost %+v", where, o.lost)
				}
				continue
			}
			if len(o.events) == 0 {
				t.Fatalf("%s: nothing was reported", where)
			}
			if lost := damageRecords - damageCommitted - len(o.ids); lost > 10 {
				t.Fatalf("%s: %d records are missing", where, lost)
			}
		}
	}
}

// What else can happen to the files of a directory.
func TestFiles(t *testing.T) {
	whole := sample(t)
	var names []string
	for _, name := range sortedNames(whole) {
		if name != stateName {
			names = append(names, name)
		}
	}
	if len(names) < 4 {
		t.Fatalf("only %v", names)
	}
	garbage := bytes.Repeat([]byte("garbage \x00\xff"), 70)
	for i, name := range names {
		for what, do := range map[string]func(d *memDisk){
			"removed":   func(d *memDisk) { delete(d.files, name) },
			"emptied":   func(d *memDisk) { d.put(name, nil) },
			"garbage":   func(d *memDisk) { d.put(name, garbage) },
			"zeros":     func(d *memDisk) { d.put(name, make([]byte, 1000)) },
			"directory": func(d *memDisk) { delete(d.files, name); d.dirs[name] = true },
		} {
			d := whole.clone()
			do(d)
			o := receive(t, name+" "+what, d, false)
			if missing := damageRecords - damageCommitted - len(o.ids); missing == 0 || missing > 10 {
				t.Errorf("%s %s: %d records are missing", name, what, missing)
			}
			if len(o.events) == 0 || !slices.ContainsFunc(o.events, func(e event) bool { return e.Lost.Points > 0 }) {
				t.Errorf("%s %s: reported %+v", name, what, o.events)
			}
			if s := mustOpen(t, damageConfig(), d); s.Stats().Records != 0 {
				t.Errorf("%s %s: %+v", name, what, s.Stats())
			}
			if what == "garbage" && !slices.ContainsFunc(sortedNames(d), func(n string) bool {
				return strings.HasPrefix(n, quarantineDir+"/"+name) && bytes.Equal(d.files[n].b, garbage)
			}) {
				t.Errorf("%s: the garbage is gone: %v", name, sortedNames(d))
			}
		}
		// Segments that go unnoticed by their numbers and totals.
		d := whole.clone()
		s := mustOpen(t, damageConfig(), d)
		s.Close()
		delete(d.files, name)
		s = mustOpen(t, damageConfig(), d)
		if n := s.Stats().MissingSegments; n != 1 {
			t.Errorf("%s removed: %d segments are missing: %+v", name, n, s.Events())
		}
		for j, other := range names {
			if i != j {
				d := whole.clone()
				d.put(name, whole.files[other].b)
				d.put(other, whole.files[name].b)
				if o := receive(t, name+" and "+other+" swapped", d, false); o.lost != (Lost{}) || len(o.events) == 0 {
					t.Errorf("%s and %s swapped: lost %+v, reported %+v", name, other, o.lost, o.events)
				}
				d = whole.clone()
				d.put(name, whole.files[other].b)
				receive(t, name+" overwritten by "+other, d, false)
			}
		}
		d = whole.clone()
		d.put(segmentName(90), whole.files[name].b)
		if o := receive(t, name+" doubled", d, false); o.lost != (Lost{}) || len(o.events) == 0 || o.stats.MissingSegments != 0 {
			t.Errorf("%s doubled: lost %+v, reported %+v", name, o.lost, o.events)
		}
	}
	d := whole.clone()
	for _, name := range names {
		delete(d.files, name)
	}
	if o := receive(t, "all removed", d, false); len(o.ids) != 0 || o.lost.Reports == 0 {
		t.Errorf("all removed: %+v", o)
	}
	for _, do := range []func(d *memDisk){
		func(d *memDisk) { delete(d.files, stateName) },
		func(d *memDisk) { delete(d.files, stateName); d.dirs[stateName] = true },
		func(d *memDisk) { d.put(stateName, garbage) },
	} {
		d := whole.clone()
		do(d)
		if o := receive(t, "no state", d, true); o.lost != (Lost{}) || len(o.events) == 0 {
			t.Errorf("no state: lost %+v, reported %+v", o.lost, o.events)
		}
	}
}

// Heads that no crash leaves: after the last record, of records that never existed, and older than the existing ones.
func TestHeads(t *testing.T) {
	whole := sample(t)
	all := sequence(1, damageRecords)
	for _, tt := range []struct {
		where string
		at    totals
		want  []uint64
	}{
		{"behind the end", totals{damageRecords + 5, 10_000, 50_000}, all},
		{"not between records", totals{7, 1, 1}, nil},
		{"far behind the end", totals{1 << 63, 1 << 63, 1 << 63}, all},
	} {
		d := whole.clone()
		b := d.files[stateName].b
		for g := range uint64(2) {
			copy(b[slotAt(slotHead, 100+g):], slot{100 + g, 1, tt.at}.encode(slotHead))
		}
		s := mustOpen(t, damageConfig(), d)
		got := numbers(drain(t, s))
		if tt.want == nil {
			tt.want = sequence(8, damageRecords)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("head %s: read %v", tt.where, got)
		}
	}
}

// Where the quarantine cannot be written the segment itself stays.
func TestNoQuarantine(t *testing.T) {
	whole := sample(t)
	d := whole.clone()
	d.put(quarantineDir, []byte("a file"))
	name := segmentName(2)
	d.files[name].b[500] ^= 1
	want := bytes.Clone(d.files[name].b)
	o := receive(t, "no quarantine", d, false)
	if f := d.files[name+".bad"]; f == nil || !bytes.Equal(f.b, want) {
		t.Errorf("the segment is gone: %v", sortedNames(d))
	}
	if !slices.ContainsFunc(o.events, func(e event) bool { return e.Kind == "quarantine" }) || o.stats.Quarantined != int64(len(want)) {
		t.Errorf("reported %+v, %+v", o.events, o.stats)
	}
	s := mustOpen(t, damageConfig(), d)
	if st := s.Stats(); st.Quarantined != int64(len(want)) {
		t.Errorf("%d bytes are kept aside by the next run", st.Quarantined)
	}
}

// A kill in the middle of a write leaves half a record behind the last one. It is reported, kept aside and counted as
// torn, and no record is lost.
func TestTornTail(t *testing.T) {
	whole := sample(t)
	names := sortedNames(whole)
	name := names[len(names)-2]
	next := appendRecord(nil, totals{damageRecords, 465, 1425}, 31, 94, whenever, payload(31, 20))
	for n := range next {
		if n == 0 {
			continue
		}
		d := whole.clone()
		d.put(name, append(bytes.Clone(whole.files[name].b), next[:n]...))
		s := mustOpen(t, damageConfig(), d)
		if st := s.Stats(); st.TornBytes != int64(n) || st.Records != damageRecords-damageCommitted || st.Quarantined != int64(n) {
			t.Fatalf("%d bytes: %+v", n, st)
		}
		if e := s.Events(); len(e) != 1 || e[0].Kind != "torn" || e[0].Offset != int64(len(whole.files[name].b)) || e[0].Lost.Reports != 0 {
			t.Fatalf("%d bytes: %+v", n, e)
		}
		s.Close()
		o := receive(t, fmt.Sprintf("%d torn bytes", n), d, false)
		if o.stats.TornBytes != 0 || o.lost != (Lost{}) {
			t.Fatalf("%d bytes, second run: %+v", n, o.stats)
		}
	}
}

// A payload contains whole records, even with the next numbers. They are not taken for real records when the payload's
// own header is damaged and real records follow.
func TestMarkerInPayload(t *testing.T) {
	c := damageConfig()
	d := newMemDisk()
	s := mustOpen(t, c, d)
	inner := appendRecord(nil, totals{900, 900, 900}, 1, 1, whenever, []byte("inner"))
	mustAppend(t, s, 1, 1)
	if err := s.Append(2, 2, slices.Concat(marker, marker[:3], inner, marker)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, 3, 1)
	s.Close()
	for at := int64(0); at < headerLen; at++ {
		e := d.clone()
		e.files[segmentName(1)].b[segmentHeaderLen+headerLen+int64(len(payload(1, 1)))+at] ^= 4
		s := mustOpen(t, c, e)
		if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{1, 3}) {
			t.Fatalf("byte %d of the header: read %v", at, got)
		}
	}
}

// The state is damaged just after a segment was removed. The records before the older head are not missed.
func TestStateOlderThanSegments(t *testing.T) {
	whole := sample(t)
	s := mustOpen(t, damageConfig(), whole)
	segments := s.Stats().Segments
	var last uint64
	for s.Stats().Segments == segments {
		r, err := s.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Commit(r.End)
		last = r.Reports
	}
	s.Close()
	for at := range whole.files[stateName].b {
		d := whole.clone()
		d.files[stateName].b[at] ^= 1 << (at % 8)
		s := mustOpen(t, damageConfig(), d)
		if got := numbers(drain(t, s)); len(got) == 0 || got[0] > last+1 || got[len(got)-1] != damageRecords || s.DrainLost() != (Lost{}) {
			t.Fatalf("byte %d: read %v of %d to %d, %+v", at, got, last+1, damageRecords, s.Stats())
		}
		d = whole.clone()
		d.put(stateName, d.files[stateName].b[:at])
		s = mustOpen(t, damageConfig(), d)
		if got := numbers(drain(t, s)); len(got) == 0 || got[0] > last+1 || got[len(got)-1] != damageRecords || s.DrainLost() != (Lost{}) {
			t.Fatalf("cut at %d: read %v of %d to %d, %+v", at, got, last+1, damageRecords, s.Stats())
		}
	}
}

// A full spool is opened without reading its payloads, but for those of the last segment.
func TestOpenReadsLittle(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.MaxBytes, c.SegmentBytes = 1<<30, 64<<10
	s := mustOpen(t, c, d)
	for i := range 300 {
		mustAppend(t, s, i+1, 10_000)
	}
	s.Close()
	d = d.clone()
	s = mustOpen(t, c, d)
	if st := s.Stats(); d.read > 2*c.SegmentBytes || st.Segments < 40 || st.Records != 300 || st.OldestUnacked.IsZero() {
		t.Errorf("%d bytes were read to open %+v", d.read, st)
	}
}
