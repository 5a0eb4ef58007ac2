package spool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// What cannot be read is distinguished from what can: short, of another kind, or with a sum that does not agree.
func TestParse(t *testing.T) {
	good := appendRecord(nil, totals{7, 8, 9}, 2, 3, time.Unix(1, 0), []byte("payload"))
	if got, ok := parseHeader(good); !ok || got.before != (totals{7, 8, 9}) || got.own != (totals{1, 2, 3}) || got.size() != int64(len(good)) || got.after() != (totals{8, 10, 12}) {
		t.Errorf("parseHeader = %+v, %t", got, ok)
	}
	seg := appendSegmentHeader(nil, 5, totals{7, 8, 9})
	if n, before, ok := parseSegmentHeader(seg); n != 5 || before != (totals{7, 8, 9}) || !ok {
		t.Errorf("parseSegmentHeader = %d, %v, %t", n, before, ok)
	}
	sl := slot{generation: 4, segment: 3, at: totals{1, 2, 3}}.encode(slotHead)
	if got, ok := parseSlot(sl, slotHead); !ok || got.generation != 4 || got.at != (totals{1, 2, 3}) {
		t.Errorf("parseSlot = %+v, %t", got, ok)
	}
	if _, ok := parseSlot(sl, slotTail); ok {
		t.Error("a head is taken for a tail")
	}
	for _, x := range []struct {
		name  string
		whole []byte
		parse func(b []byte) bool
	}{
		{"record", good[:headerLen], func(b []byte) bool { _, ok := parseHeader(b); return ok }},
		{"segment", seg, func(b []byte) bool { _, _, ok := parseSegmentHeader(b); return ok }},
		{"slot", sl, func(b []byte) bool { _, ok := parseSlot(b, slotHead); return ok }},
	} {
		for n := range x.whole {
			if x.parse(x.whole[:n]) {
				t.Errorf("%s: %d of %d bytes are taken for whole", x.name, n, len(x.whole))
			}
			b := slices.Clone(x.whole)
			b[n] ^= 1
			if x.parse(b) {
				t.Errorf("%s: byte %d was changed, and nobody saw it", x.name, n)
			}
		}
	}
	// A head that is right in itself, and of something else.
	for name, b := range map[string][]byte{"marker": good[:headerLen], "magic": seg} {
		b = slices.Clone(b)
		b[0] ^= 1
		b = appendSum(b[:len(b)-4], 0)
		_, ok := parseHeader(b)
		_, _, ok2 := parseSegmentHeader(b)
		if ok || ok2 {
			t.Errorf("another %s is taken", name)
		}
	}
	place := placeV1{3, 40}.String()
	for text, want := range map[string]placeV1{
		place: {3, 40}, (placeV1{3, 0}).String(): {3, 0}, "": {}, "1": {}, "1 2": {}, "3 40 0\n": {}, place[:len(place)-1]: {}, strings.Replace(place, "40", "41", 1): {}, place + "x": {},
	} {
		if p, ok := parsePlaceV1([]byte(text)); p != want || ok != (want != placeV1{}) {
			t.Errorf("parsePlaceV1(%q) = %+v, %t, want %+v", text, p, ok, want)
		}
	}
	if _, ok := parsePlaceV1([]byte(placeV1{3, -1}.String())); ok {
		t.Error("a place before the beginning is taken")
	}
	v1 := appendSum(make([]byte, headerLenV1-4), 0)
	for n := range v1 {
		if _, ok := parseHeaderV1(v1[:n]); ok {
			t.Errorf("%d bytes are a head of version 1", n)
		}
	}
	v1[3] ^= 1
	if _, ok := parseHeaderV1(v1); ok {
		t.Error("a head of version 1 has a wrong sum")
	}
	for name, want := range map[string]int{
		segmentName(7): 2, segmentNameV1(7): 1, "7" + suffixV2: 0, "0000000000000000000" + suffixV2: 0, "+000000000000000000" + "7" + suffixV2: 0,
		"0000000000000000000_" + suffixV2: 0, "0000000000000000000x" + suffixV2: 0, suffixV2: 0, "x": 0, segmentName(7) + "x": 0,
	} {
		if n, version := parseSegmentName(name); version != want || want > 0 && n != 7 || want == 0 && n != 0 {
			t.Errorf("parseSegmentName(%q) = %d, %d, want version %d", name, n, version, want)
		}
	}
	for _, x := range []struct {
		a, b totals
		want bool
	}{
		{totals{1, 2, 3}, totals{1, 2, 3}, true}, {totals{2, 2, 3}, totals{1, 2, 3}, false}, {totals{1, 3, 3}, totals{1, 2, 3}, false},
		{totals{1, 2, 4}, totals{1, 2, 3}, false}, {totals{0, 0, 0}, totals{1, 2, 3}, true}, {totals{2, 3, 3}, totals{1, 2, 3}, false}, {totals{2, 2, 4}, totals{1, 2, 3}, false},
	} {
		if got := x.a.notAfter(x.b); got != x.want {
			t.Errorf("%v.notAfter(%v) = %t", x.a, x.b, got)
		}
	}
}

// Of two slots the newer good one counts, and only two that follow each other say that none is missing.
func TestReadSlots(t *testing.T) {
	for _, x := range []struct {
		name   string
		a, b   uint64 // generations in the two places; 0 for none
		want   uint64
		ok     bool
		whole  bool
		broken int // 1 and 2: a bit of that slot is flipped
	}{
		{name: "none"}, {name: "first", a: 2, want: 2, ok: true}, {name: "second", b: 3, want: 3, ok: true}, {name: "both", a: 2, b: 3, want: 3, ok: true, whole: true},
		{name: "both, the other way", a: 4, b: 3, want: 4, ok: true, whole: true}, {name: "one is old", a: 2, b: 5, want: 5, ok: true},
		{name: "newer is broken", a: 2, b: 3, broken: 2, want: 2, ok: true}, {name: "older is broken", a: 2, b: 3, broken: 1, want: 3, ok: true},
		{name: "in the other's place", a: 3, b: 4}, {name: "one in the other's place", a: 4, b: 4, want: 4, ok: true},
	} {
		f := make(memory, 4*slotBytes)
		for i, g := range []uint64{x.a, x.b} {
			if g > 0 {
				b := slot{generation: g}.encode(slotHead)
				if x.broken == i+1 {
					b[9] ^= 1
				}
				copy(f[slotAt(slotHead, uint64(i)):], b)
			}
		}
		got, ok, whole := readSlots(f, slotHead)
		if got.generation != x.want || ok != x.ok || whole != x.whole {
			t.Errorf("%s: readSlots = %d, %t, %t; want %d, %t, %t", x.name, got.generation, ok, whole, x.want, x.ok, x.whole)
		}
		if _, ok, _ := readSlots(f, slotTail); ok {
			t.Errorf("%s: heads are read as tails", x.name)
		}
	}
}

func TestCounts(t *testing.T) {
	s := mustOpen(t, testConfig("mem"), newMemDisk())
	for i := 1; i <= 3; i++ {
		select {
		case <-s.Ready():
			t.Error("ready before there is anything")
		default:
		}
		mustAppend(t, s, i, 10)
		select {
		case <-s.Ready():
		default:
			t.Error("not ready behind a record")
		}
	}
	if err := s.Append(1, 1, make([]byte, s.MaxRecord()+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Append = %v", err)
	}
	if err := s.Append(4, 13, make([]byte, s.MaxRecord())); err != nil {
		t.Errorf("Append of the longest record = %v", err)
	}
	if st := s.Stats(); st.Appended != 4 || st.RefusedRecords != 1 || st.Records != 4 || st.Reports != 10 || st.Points != 4+7+10+13 || s.End() != 4 {
		t.Errorf("Stats = %+v", st)
	}
	list := drain(t, s)
	if got := s.Commit(Position{}); got != (Lost{}) {
		t.Errorf("Commit of nothing = %+v", got)
	}
	if got := s.Commit(list[1].End); got != (Lost{1 + 2, 4 + 7}) {
		t.Errorf("Commit = %+v", got)
	}
	if got := s.Commit(list[1].End); got != (Lost{}) {
		t.Errorf("the same Commit again = %+v", got)
	}
	if got := s.Commit(list[3].End); got != (Lost{3 + 4, 10 + 13}) {
		t.Errorf("Commit of the rest = %+v", got)
	}
	if st := s.Stats(); st.Records != 0 || st.EvictedRecords+st.damagedRecords != 0 || s.DrainLost() != (Lost{}) {
		t.Errorf("Stats = %+v", st)
	}
}

// Room reports beforehand whether Append evicts, to the byte.
func TestRoom(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := testConfig("mem")
		c.MaxBytes, c.Sync = 16384, "never"
		s := mustOpen(t, c, newMemDisk())
		var read []Record
		for i := range 60 {
			n := r.IntN(s.MaxRecord())
			if left := int(c.MaxBytes - s.onDisk() - headerLen - segmentHeaderLen); r.IntN(2) == 0 && left > 0 && left < s.MaxRecord() {
				n = left + r.IntN(2) // the last one that has room, or the first that has none
			}
			room, before := s.Room(n), s.Stats().EvictedRecords
			mustAppendBytes(t, s, n)
			if evicted := s.Stats().EvictedRecords > before; evicted == room && len(s.segments) > 1 {
				t.Fatalf("seed %d, record %d: Room(%d) = %t, and %t that records were evicted", seed, i, n, room, evicted)
			}
			if r.IntN(3) == 0 {
				read = append(read, drain(t, s)...)
			}
			if len(read) > 0 && r.IntN(3) == 0 {
				k := r.IntN(len(read))
				s.Commit(read[k].End)
				read = read[k+1:]
			}
		}
	}
}

func mustAppendBytes(t *testing.T, s *Spool, n int) {
	t.Helper()
	if err := s.Append(1, 1, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

// An evicted record is counted once, whether it was read before or not, and all other records are read.
func TestEvictedIsCounted(t *testing.T) {
	for reads := range 30 {
		c := testConfig("mem")
		c.MaxBytes = 16384
		s := mustOpen(t, c, newMemDisk())
		for i := 1; i <= 30; i++ {
			mustAppend(t, s, i, 300)
		}
		var got []uint64
		for range reads {
			r, err := s.Read(nil)
			if err != nil {
				break
			}
			got = append(got, r.Reports)
		}
		for i := 31; i <= 60; i++ {
			mustAppend(t, s, i, 300)
		}
		rest := drain(t, s)
		got = append(got, numbers(rest)...)
		st := s.Stats()
		var lost Lost
		stored := s.Commit(rest[len(rest)-1].End)
		for i := uint64(1); i <= 60; i++ {
			lost.Reports, lost.Points = lost.Reports+i, lost.Points+pointsOf(i)
		}
		if st.EvictedRecords+st.Records != 60 || st.EvictedReports+stored.Reports != lost.Reports || st.EvictedPoints+stored.Points != lost.Points {
			t.Errorf("%d read: evicted %d, %d, %d; stored %+v of %+v", reads, st.EvictedRecords, st.EvictedReports, st.EvictedPoints, stored, lost)
		}
		if l := s.DrainLost(); l != (Lost{st.EvictedReports, st.EvictedPoints}) {
			t.Errorf("%d read: lost %+v", reads, l)
		}
		if e := s.Events(); len(e) > 0 {
			t.Errorf("%d read: %+v", reads, e)
		}
		if !slices.IsSorted(got) || len(slices.Compact(got)) < int(st.Records) || got[len(got)-1] != 60 || s.Stats().damagedRecords != 0 {
			t.Errorf("%d read: %v", reads, got)
		}
	}
}

// An eviction that the disk refuses evicts nothing, and is said; the next one does.
func TestEvictionFails(t *testing.T) {
	for _, x := range []struct{ what, in, says string }{
		{"write", "state", "the head cannot be moved: "}, {"remove", suffixV2, "evict " + segmentName(0)}, {"sync", "state", ""},
	} {
		c := testConfig("mem")
		c.MaxBytes, c.SyncInterval = 16384, time.Hour
		d := newMemDisk()
		s := mustOpen(t, c, d)
		for i := 1; i <= 30; i++ {
			mustAppend(t, s, i, 300)
		}
		if _, err := s.Read(nil); err != nil {
			t.Fatal(err)
		}
		first := s.segments[0].name
		d.fault = func(_ int, what, name string) error {
			if what == x.what && strings.Contains(name, x.in) {
				return syscall.EIO
			}
			return nil
		}
		var err error
		n := 31
		for ; err == nil && n < 60; n++ {
			err = s.Append(uint64(n), pointsOf(uint64(n)), payload(n, 300))
		}
		st := s.Stats()
		if err == nil || !strings.HasPrefix(err.Error(), "evict "+first+": ") || !strings.Contains(err.Error(), x.says) && x.what == "write" || s.segments[0].name != first {
			t.Errorf("%s: Append = %v", x.what, err)
		}
		if x.what == "write" && (st.EvictedRecords != 0 || s.DrainLost() != (Lost{})) {
			t.Errorf("%s: %d records count as evicted", x.what, st.EvictedRecords)
		}
		unacked := int64(0)
		for i, g := range s.segments {
			if s.limit(i).records > s.head.records {
				unacked += g.size - g.from
			}
		}
		if st.RefusedRecords != 1 || st.LastError == "" || st.UnackedBytes != unacked {
			t.Errorf("%s: Stats = %+v, want %d bytes that are not stored", x.what, st, unacked)
		}
		d.fault = nil
		mustAppend(t, s, n, 300)
		if s.segments[0].name == first || s.Stats().EvictedRecords == 0 {
			t.Errorf("%s: nothing was evicted afterwards", x.what)
		}
	}
}

// A segment that cannot be opened is tried again, passed over in the end, and kept.
func TestUnopenable(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	s := mustOpen(t, c, d)
	for i := 1; i <= 30; i++ {
		mustAppend(t, s, i, 300)
	}
	bad := s.segments[1]
	d.fault = func(_ int, what, name string) error {
		if what == "open" && name == bad.name {
			return syscall.EMFILE
		}
		return nil
	}
	var got []uint64
	errs := 0
	for {
		r, err := s.Read(nil)
		if errors.Is(err, errEmpty) {
			break
		}
		if err != nil {
			if errs++; !errors.Is(err, syscall.EMFILE) || !strings.Contains(s.Stats().LastError, syscall.EMFILE.Error()) {
				t.Fatalf("Read = %v, %+v", err, s.Stats())
			}
			continue
		}
		got = append(got, r.Reports)
		s.Commit(r.End)
	}
	gone := s.segments
	if errs != openAttempts-1 {
		t.Errorf("%d errors before the segment is passed over", errs)
	}
	lost := int(30) - len(got)
	st := s.Stats()
	if lost < 5 || lost > 12 || st.damagedRecords != uint64(lost) || st.DamagedReports == 0 || len(gone) > 2 {
		t.Errorf("%d lost: %+v", lost, st)
	}
	events := s.Events()
	if len(events) != 2 || events[0].Kind != "missing" || events[0].Segment != bad.name || events[0].Records != uint64(lost) || events[0].Bytes != bad.size ||
		events[0].Lost.Reports != st.DamagedReports || events[0].Lost.Points != st.DamagedPoints || events[1].Kind != "quarantine" {
		t.Errorf("%+v", events)
	}
	if d.files[bad.name+".bad"] == nil || d.files[bad.name] != nil || st.Quarantined != bad.size {
		t.Errorf("the segment is not kept: %v, %d bytes", sortedNames(d), st.Quarantined)
	}
	// And one that is not there is passed over at once.
	for i := 31; i <= 60; i++ {
		mustAppend(t, s, i, 300)
	}
	delete(d.files, s.segments[1].name)
	d.fault = nil
	rest := drain(t, s)
	if len(rest) == 0 || rest[len(rest)-1].Reports != 60 {
		t.Fatalf("read %v", numbers(rest))
	}
	s.Commit(rest[len(rest)-1].End)
	if e := s.Events(); s.Stats().Quarantined != bad.size || len(e) != 1 || e[0].Kind != "missing" || !strings.Contains(e[0].Message, "cannot be opened") {
		t.Errorf("%+v", e)
	}
}

// Every kind of damage is reported with its place, its length and what it stood for, and counted.
func TestDamageIsReported(t *testing.T) {
	const n = 20
	size := int64(headerLen + len(payload(5, 100)))
	for _, x := range []struct {
		name   string
		record int   // from 1; the damage is in it
		at     int64 // in the record
		want   string
		lost   uint64
	}{
		{"payload", 5, headerLen + 3, "damaged payload", 1},
		{"header", 5, 9, "damaged header", 1},
		{"marker", 5, 0, "damaged header", 1},
		{"header of the first", 1, 9, "damaged header", 1},
	} {
		d := newMemDisk()
		c := testConfig("mem")
		s := mustOpen(t, c, d)
		for i := 1; i <= n; i++ {
			mustAppend(t, s, i, 100)
		}
		off := int64(segmentHeaderLen)
		for i := 1; i < x.record; i++ {
			off += int64(headerLen + len(payload(i, 100)))
		}
		g := s.segments[0]
		d.files[g.name].b[off+x.at] ^= 1
		got := drain(t, s)
		s.Commit(got[len(got)-1].End)
		want := slices.DeleteFunc(sequence(1, n), func(i uint64) bool { return i == uint64(x.record) })
		st := s.Stats()
		if !slices.Equal(numbers(got), want) || st.damagedRecords != x.lost || st.DamagedReports != uint64(x.record) || st.DamagedPoints != pointsOf(uint64(x.record)) || st.damagedBytes != size {
			t.Errorf("%s: read %v, %+v", x.name, numbers(got), st)
		}
		if l := s.DrainLost(); l != (Lost{uint64(x.record), pointsOf(uint64(x.record))}) {
			t.Errorf("%s: lost %+v", x.name, l)
		}
		events := s.Events()
		wantEvent := event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: size, Records: x.lost, Lost: Lost{uint64(x.record), pointsOf(uint64(x.record))}, Message: x.want}
		if len(events) != 1 || events[0] != wantEvent {
			t.Errorf("%s: %+v, want %+v", x.name, events, wantEvent)
		}
		aside := d.files[fmt.Sprintf("%s/%s-%d.bad", quarantineDir, g.name, off)]
		if aside == nil || int64(len(aside.b)) != size {
			t.Errorf("%s: the damage is not kept: %v", x.name, sortedNames(d))
		}
	}
}

// A record that cannot be written whole is cut off, and one that cannot be cut off ends its segment.
func TestHalfWritten(t *testing.T) {
	for _, x := range []struct {
		cut  bool
		sync string
	}{{true, "interval"}, {false, "interval"}, {true, "never"}, {false, "never"}, {false, "each"}} {
		d := newMemDisk()
		c := testConfig("mem")
		c.Sync, c.SyncInterval = x.sync, 1
		s := mustOpen(t, c, d)
		for i := 1; i <= 5; i++ {
			mustAppend(t, s, i, 100)
		}
		tail, segments := s.last().name, len(s.segments)
		d.fault = func(_ int, what, name string) error {
			if name == tail && (what == "write" || what == "truncate" && !x.cut) {
				return syscall.EIO
			}
			return nil
		}
		if err := s.Append(6, 1, payload(6, 100)); !errors.Is(err, syscall.EIO) {
			t.Errorf("%+v: Append = %v", x, err)
		}
		d.fault = nil
		for i := 7; i <= 9; i++ {
			mustAppend(t, s, i, 100)
		}
		if more := len(s.segments) > segments; more == x.cut {
			t.Errorf("%+v: %d segments, %d before", x, len(s.segments), segments)
		}
		want := append(sequence(1, 5), sequence(7, 9)...)
		s.Sync()
		for where, disk := range map[string]*memDisk{"reopened": d.clone(), "crashed": d.crash("nothing")} {
			if where == "crashed" && x.sync == "never" {
				continue
			}
			second := mustOpen(t, c, disk)
			if got := numbers(drain(t, second)); !slices.Equal(got, want) || second.Stats().damagedRecords != 0 {
				t.Errorf("%+v: %s: read %v, %+v", x, where, got, second.Stats())
			}
		}
		if got := numbers(drain(t, s)); !slices.Equal(got, want) || s.Stats().damagedRecords != 0 {
			t.Errorf("%+v: read %v, %+v", x, got, s.Stats())
		}
	}
}

// A segment is removed when all of it is stored and the head on disk shows that. It is tried again when the disk
// refuses.
func TestStoredSegmentsGo(t *testing.T) {
	for _, sync := range []string{"each", "interval", "never"} {
		d := newMemDisk()
		c := testConfig("mem")
		c.Sync = sync
		s := mustOpen(t, c, d)
		for i := 1; i <= 40; i++ {
			mustAppend(t, s, i, 300)
		}
		n := len(s.segments)
		list := drain(t, s)
		d.fault = func(_ int, what, name string) error {
			if what == "remove" && strings.HasSuffix(name, suffixV2) {
				return syscall.EACCES
			}
			return nil
		}
		s.Commit(list[len(list)/2].End)
		if st := s.Stats(); len(s.segments) != n || !strings.Contains(st.LastError, syscall.EACCES.Error()) {
			t.Errorf("%s: %d of %d segments, %+v", sync, len(s.segments), n, st)
		}
		var order []string
		d.done = func(what, name string) {
			if what == "remove" || what == "sync" || what == "write" && strings.Contains(name, "state") {
				order = append(order, what)
			}
		}
		d.fault = nil
		s.Commit(list[len(list)-1].End)
		if len(s.segments) != 1 {
			t.Errorf("%s: %d segments are left", sync, len(s.segments))
		}
		first := slices.Index(order, "remove")
		if head := slices.Index(order, "write"); head < 0 || head > first {
			t.Errorf("%s: the head goes after a segment: %v", sync, order)
		}
		if forced := slices.Contains(order[:max(first, 0)], "sync"); forced != (sync != "never") {
			t.Errorf("%s: %v", sync, order)
		}
		if last := order[len(order)-1]; (last == "sync") != (sync == "each") {
			t.Errorf("%s: %v", sync, order)
		}
		second := mustOpen(t, c, d.clone())
		if got := drain(t, second); len(got) != 0 || second.Stats().MissingSegments != 0 {
			t.Errorf("%s: read %v again, %+v", sync, numbers(got), second.Stats())
		}
	}
}

// Damage behind which no record of its segment is readable is reported up to the end of the segment.
func TestDamageAtTheEnd(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, testConfig("mem"), d)
	for i := 1; i <= 20; i++ {
		mustAppend(t, s, i, 300)
	}
	g, last := s.segments[0], s.segments[1].start.records
	size := int64(headerLen + len(payload(int(last), 300)))
	d.files[g.name].b[g.size-size+9] ^= 1
	got := drain(t, s)
	if want := slices.DeleteFunc(sequence(1, 20), func(i uint64) bool { return i == last }); !slices.Equal(numbers(got), want) {
		t.Errorf("read %v, want %v", numbers(got), want)
	}
	want := event{Kind: "damaged", Segment: g.name, Offset: g.size - size, Bytes: size, Records: 1, Lost: Lost{last, pointsOf(last)},
		Message: "no record is readable up to the end of the segment"}
	if events := s.Events(); len(events) != 1 || events[0] != want || s.Stats().damagedBytes != size {
		t.Errorf("%+v, want %+v", events, want)
	}
}

// What is between records is reported where it begins: bytes that are none, without a loss, and records that are missing, also before the first
// segment. What is there twice is read once, and a segment that ends before its last record is said to.
func TestStretchesAreReported(t *testing.T) {
	const n = 20
	at := func(record int) (off int64) { // of 1 to n, in the first segment
		off = segmentHeaderLen
		for i := 1; i < record; i++ {
			off += int64(headerLen + len(payload(i, 100)))
		}
		return off
	}
	lost := func(from, to uint64) (l Lost) {
		for i := from; i <= to; i++ {
			l.Reports, l.Points = l.Reports+i, l.Points+pointsOf(i)
		}
		return l
	}
	for _, x := range []struct {
		name     string
		change   func(b []byte, last int) []byte // the records of a segment, up to the last one
		from, to func(last int) uint64           // records that are lost
		want     func(last int) event
	}{
		{"bytes, and an old record", func(b []byte, _ int) []byte {
			return slices.Concat(b[:at(3)], []byte("something"), b[at(1):at(2)], b[at(3):])
		}, nil, nil, func(int) event { return event{Offset: at(3), Bytes: 9, Kind: "damaged", Message: "damaged bytes"} }},
		{"two are missing", func(b []byte, _ int) []byte { return slices.Concat(b[:at(3)], b[at(5):]) },
			func(int) uint64 { return 3 }, func(int) uint64 { return 4 }, func(int) event {
				return event{Offset: at(3), Kind: "missing", Message: "records before this one are missing"}
			}},
		{"the last one is missing", func(b []byte, last int) []byte { return b[:at(last)] },
			func(last int) uint64 { return uint64(last) }, func(last int) uint64 { return uint64(last) }, func(last int) event {
				return event{Offset: at(last), Kind: "damaged", Message: "the segment ends before its last record"}
			}},
	} {
		d := newMemDisk()
		s := mustOpen(t, testConfig("mem"), d)
		for i := 1; len(s.segments) < 2 || i <= n; i++ {
			mustAppend(t, s, i, 100)
		}
		g, last := s.segments[0], int(s.segments[1].start.records)
		d.files[g.name].b = x.change(d.files[g.name].b, last)
		g.size = int64(len(d.files[g.name].b))
		want, all := x.want(last), sequence(1, s.End())
		want.Segment = g.name
		if x.from != nil {
			from, to := x.from(last), x.to(last)
			want.Records, want.Lost = to-from+1, lost(from, to)
			all = slices.DeleteFunc(all, func(i uint64) bool { return from <= i && i <= to })
		}
		if got := numbers(drain(t, s)); !slices.Equal(got, all) {
			t.Errorf("%s: read %v, want %v", x.name, got, all)
		}
		if e := s.Events(); len(e) != 1 || e[0] != want {
			t.Errorf("%s: %+v, want %+v", x.name, e, want)
		}
	}
	s := mustOpen(t, testConfig("mem"), newMemDisk())
	for i := 1; len(s.segments) < 2 || i <= n; i++ {
		mustAppend(t, s, i, 100)
	}
	s.segments = s.segments[1:]
	g := s.segments[0]
	if got := numbers(drain(t, s)); !slices.Equal(got, sequence(g.start.records+1, s.End())) {
		t.Errorf("without the first segment: read %v", got)
	}
	want := event{Kind: "missing", Segment: g.name, Records: g.start.records, Lost: lost(1, g.start.records), Message: "records before this segment are missing"}
	if e := s.Events(); len(e) != 1 || e[0] != want {
		t.Errorf("without the first segment: %+v, want %+v", e, want)
	}
}

// A segment that was read to its end is not open any more when it goes.
func TestReadSegmentIsClosed(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, testConfig("mem"), d)
	for i := 1; i <= 30; i++ {
		mustAppend(t, s, i, 300)
	}
	var end Position
	for range s.segments[1].start.records {
		r, err := s.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		end = r.End
	}
	n, open := len(s.segments), d.opened
	if s.Commit(end); len(s.segments) != n-1 || s.reading != nil || d.opened != open-1 {
		t.Errorf("%d of %d segments, %d files are open, %d before", len(s.segments), n, d.opened, open)
	}
}

// A segment that the disk did not confirm is written again before the next one begins, and is there after a crash, once.
func TestUnconfirmedIsWrittenAgain(t *testing.T) {
	for _, x := range []struct {
		name string
		bad  []int // syncs of segments that fail, from 1
		due  time.Duration
	}{{"the first", []int{1}, time.Hour}, {"the second", []int{2}, time.Hour}, {"two records behind each other", []int{1, 3}, 1}} {
		d := newMemDisk()
		c := testConfig("mem")
		c.Sync, c.SyncInterval = "interval", x.due
		s := mustOpen(t, c, d)
		syncs := 0
		d.fault = func(_ int, what, name string) error {
			if what == "sync" && strings.Contains(name, ".v2.") {
				if syncs++; slices.Contains(x.bad, syncs) {
					return syscall.EIO
				}
			}
			return nil
		}
		for i := 1; len(s.segments) < 5; i++ {
			mustAppend(t, s, i, 300)
		}
		if e := s.Events(); len(e) != len(x.bad) {
			t.Errorf("%s: %+v", x.name, e)
		}
		for _, g := range s.segments {
			if g.size < segmentHeaderLen || g.size > c.SegmentBytes {
				t.Errorf("%s: %s has %d bytes", x.name, g.name, g.size)
			}
		}
		kept := s.segments[4].start.records
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(1, s.End())) || s.Stats().damagedRecords != 0 {
			t.Errorf("%s: read %v, %+v", x.name, got, s.Stats())
		}
		second := mustOpen(t, c, d.crash("nothing"))
		got := numbers(drain(t, second))
		if len(got) < int(kept) || !slices.Equal(got, sequence(1, uint64(len(got)))) || second.Stats().damagedBytes != 0 {
			t.Errorf("%s: after a crash: read %v, want %d at least: %+v", x.name, got, kept, second.Stats())
		}
	}
}

// The records of a segment that the disk did not confirm are in the next one, and no longer in the file where they were.
func TestUnconfirmedMoves(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.Sync, c.SyncInterval = "interval", time.Hour
	s := mustOpen(t, c, d)
	mustAppend(t, s, 1, 300)
	tail, failed := s.last().name, false
	d.fault = func(_ int, what, name string) error {
		if what == "sync" && name == tail && !failed {
			failed = true
			return syscall.EIO
		}
		return nil
	}
	for i := 2; len(s.segments) < 3; i++ {
		mustAppend(t, s, i, 300)
	}
	if e := s.Events(); !failed || len(e) != 1 || e[0].Kind != "sync" || e[0].Segment != tail {
		t.Errorf("%t, %+v", failed, e)
	}
	if s.segments[0].size != segmentHeaderLen || int64(len(s.unsynced)) != s.last().size-segmentHeaderLen {
		t.Errorf("the first segment ends at %d; %d bytes of the last are not confirmed, it has %d", s.segments[0].size, len(s.unsynced), s.last().size)
	}
	kept := s.segments[2].start.records
	if got := numbers(drain(t, s)); !slices.Equal(got, sequence(1, s.End())) || s.Stats().damagedRecords != 0 {
		t.Errorf("read %v, %+v", got, s.Stats())
	}
	second := mustOpen(t, c, d.crash("nothing"))
	if got := numbers(drain(t, second)); len(got) < int(kept) || !slices.Equal(got, sequence(1, uint64(len(got)))) {
		t.Errorf("after a crash: read %v, want %d at least", got, kept)
	}
}

// A spool has only the files open that it writes to and reads from, whatever happens to them, and none when it is
// closed.
func TestFilesAreClosed(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := testConfig("mem")
		c.MaxBytes, c.Sync, c.SyncInterval = 16384, []string{"each", "interval", "never"}[seed%3], time.Nanosecond
		d := newMemDisk()
		s := mustOpen(t, c, d)
		var read []Record
		for step := range 200 {
			d.fault = nil
			if r.IntN(4) == 0 {
				at := d.ops + r.IntN(6)
				d.fault = func(n int, _, _ string) error {
					if n == at {
						return syscall.EIO
					}
					return nil
				}
			}
			switch r.IntN(6) {
			case 0, 1, 2:
				s.Append(1, 1, make([]byte, r.IntN(1500)))
			case 3:
				for range r.IntN(10) {
					if rec, err := s.Read(nil); err == nil {
						read = append(read, rec)
					}
				}
			case 4:
				if len(read) > 0 {
					s.Commit(read[r.IntN(len(read))].End)
				}
			case 5:
				s.Sync()
				s.Stats()
			}
			want := 0
			for _, f := range []file{s.tail, s.state} {
				if f != nil {
					want++
				}
			}
			if _, is := s.reader.(*memFile); is {
				want++
			}
			if d.opened != want {
				t.Fatalf("seed %d, step %d: %d files are open, want %d", seed, step, d.opened, want)
			}
		}
		d.fault = nil
		if err := s.Close(); err != nil || d.opened != 0 {
			t.Fatalf("seed %d: Close() = %v with %d files open", seed, err, d.opened)
		}
	}
}

// A stored segment whose head the disk did not take is removed when room is needed and the disk takes the head. Until
// then Append returns the reason.
func TestEvictStored(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.MaxBytes = 16384
	s := mustOpen(t, c, d)
	for i := 1; i <= 30; i++ {
		mustAppend(t, s, i, 300)
	}
	list := drain(t, s)
	d.fault = func(_ int, what, name string) error {
		if what == "write" && name == stateName {
			return syscall.EIO
		}
		return nil
	}
	s.Commit(list[29].End)
	first := s.segments[0].name
	appended := make(chan error)
	go func() {
		var err error
		for n := 31; err == nil && n < 90; n++ {
			err = s.Append(uint64(n), pointsOf(uint64(n)), payload(n, 300))
		}
		d.fault = nil
		appended <- err
		appended <- s.Append(1, 1, payload(1, 300))
	}()
	for _, want := range []string{"evict " + first + ": the head cannot be moved: ", ""} {
		select {
		case err := <-appended:
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("Append = %v, want %q", err, want)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("Append does not return")
		}
	}
	if st := s.Stats(); st.EvictedRecords != 0 || s.segments[0].name == first || st.RefusedRecords != 1 {
		t.Errorf("%+v", st)
	}
}

// Attempts to open are counted for one segment after the other.
func TestAttemptsOfEach(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, testConfig("mem"), d)
	for i := 1; i <= 30; i++ {
		mustAppend(t, s, i, 300)
	}
	left := map[string]int{}
	for _, g := range s.segments[:3] {
		left[g.name] = openAttempts - 1
	}
	d.fault = func(_ int, what, name string) error {
		if what == "open" && left[name] > 0 {
			left[name]--
			return syscall.EMFILE
		}
		return nil
	}
	var got []uint64
	for range 200 {
		if r, err := s.Read(nil); err == nil {
			got = append(got, r.Reports)
		}
	}
	if e := s.Events(); !slices.Equal(got, sequence(1, 30)) || len(e) > 0 {
		t.Errorf("read %v, %+v", got, e)
	}
}

// A segment stays where the disk does not take the head, or does not rename what has to be kept, and goes later.
func TestStoredSegmentsStay(t *testing.T) {
	for _, x := range []struct{ what, in string }{{"sync", "state"}, {"rename", suffixV2}} {
		d := newMemDisk()
		c := testConfig("mem")
		c.Sync, c.SyncInterval = "interval", time.Hour
		s := mustOpen(t, c, d)
		for i := 1; i <= 30; i++ {
			mustAppend(t, s, i, 300)
		}
		list := drain(t, s)
		n, first := len(s.segments), s.segments[0]
		first.keep = x.what == "rename"
		d.fault = func(_ int, what, name string) error {
			if what == x.what && strings.Contains(name, x.in) {
				return syscall.EIO
			}
			return nil
		}
		s.Commit(list[19].End)
		if st := s.Stats(); len(s.segments) != n || st.Quarantined != 0 || st.Records != 10 || !strings.Contains(st.LastError, syscall.EIO.Error()) {
			t.Errorf("%s of %s fails: %d of %d segments, %+v", x.what, x.in, len(s.segments), n, st)
		}
		d.fault = nil
		s.Commit(list[29].End)
		if st := s.Stats(); len(s.segments) != 1 || st.Quarantined != map[bool]int64{true: first.size}[first.keep] || (d.files[first.name+".bad"] != nil) != first.keep || d.files[first.name] != nil {
			t.Errorf("%s of %s: %d segments, %+v, %v", x.what, x.in, len(s.segments), st, sortedNames(d))
		}
	}
}

// A record whose sync fails is cut off where it was written, is written again to another segment, and counts as appended.
func TestSyncEachFails(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.Sync = "each"
	s := mustOpen(t, c, d)
	for i := 1; i <= 5; i++ {
		mustAppend(t, s, i, 100)
	}
	tail := s.last()
	d.fault = func(_ int, what, name string) error {
		if what == "sync" && name == tail.name {
			return syscall.EIO
		}
		return nil
	}
	for i := range uint64(2) { // read before it is written again
		if r, err := s.Read(nil); err != nil || r.Reports != i+1 {
			t.Fatal(r, err)
		}
	}
	mustAppend(t, s, 6, 100)
	d.fault = nil
	if e := s.Events(); len(e) != 1 || e[0].Kind != "sync" {
		t.Errorf("%+v", e)
	}
	if int64(len(d.files[tail.name].b)) != tail.size || s.slots[slotTail].at.records != 6 || s.End() != 6 || len(s.segments) != 2 {
		t.Errorf("%d bytes of %d, the tail is at %d, %d segments", len(d.files[tail.name].b), tail.size, s.slots[slotTail].at.records, len(s.segments))
	}
	mustAppend(t, s, 7, 100)
	for first, second := range map[uint64]*Spool{3: s, 1: mustOpen(t, c, d.clone())} {
		if got := numbers(drain(t, second)); !slices.Equal(got, sequence(first, 7)) || second.Stats().damagedRecords != 0 || second.Stats().damagedBytes != 0 {
			t.Errorf("read %v, want %d to 7", got, first)
		}
		if e := second.Events(); len(e) > 0 {
			t.Errorf("from %d on: %+v", first, e)
		}
	}
}
