package ipfix_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/internal/plain"
)

// flat is a template of one element, so many times.
func flat(id uint16, elements int) *decode.Template {
	t := &decode.Template{Version: ipfix.V10, ID: id}
	for i := range elements {
		t.Fields = append(t.Fields, decode.Element{ID: uint16(i + 1), Length: 4})
	}
	return t
}

// define lets a session take in a template.
func define(t testing.TB, s *ipfix.Session, domain uint32, d *decode.Template) (*ipfix.Template, decode.Error) {
	t.Helper()
	m := ipfix.Message{Version: d.Version, Domain: domain}
	set := ipfix.Set{ID: ipfix.TemplateSet(d), Data: ipfix.AppendTemplate(nil, d)}
	var ds ipfix.Definitions
	var def ipfix.Definition
	if ds.Start(d.Version, &set); !ds.Next(&def) {
		t.Fatal(ds.Err)
	}
	return s.Define(&m, &def)
}

func source(n uint32) (s ipfix.Source) {
	binary.BigEndian.PutUint32(s.Addr[12:], n)
	return s
}

// An exporter may have as many templates as the limit says; the next one takes the place of one.
func TestTenThousandTemplates(t *testing.T) {
	st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	s := st.Session(source(1), 1)
	for i := range 10_000 {
		if _, e := define(t, s, uint32(i/5000), flat(uint16(256+i%5000), 3)); e.Reason != 0 {
			t.Fatal(i, e)
		}
	}
	for i := range 10_000 {
		if s.Template(&ipfix.Message{Version: ipfix.V10, Domain: uint32(i / 5000)}, uint16(256+i%5000)) == nil {
			t.Fatalf("template %d is gone", i)
		}
	}
	if _, e := define(t, s, 7, flat(300, 3)); e.Reason != 0 || s.Template(&ipfix.Message{Version: ipfix.V10, Domain: 7}, 300) == nil {
		t.Error("no room for one more:", e)
	}
	if f := st.Figures(); f.Templates != 10_000 || f.Evicted != 1 || f.Refused != 0 {
		t.Errorf("%+v", f)
	}
	// Templates in use stay when another exporter arrives. Templates that no record used for an hour do not.
	other := st.Session(source(2), 2)
	for _, x := range []struct {
		at     time.Duration
		reason decode.Reason
	}{{30 * time.Second, decode.Unsupported}, {2 * time.Hour, 0}} {
		if !other.Begin(int64(x.at)) {
			t.Fatal("it is gone")
		}
		_, e := define(t, other, 7, flat(300, 3))
		other.Unlock()
		if n := st.Figures().Templates; e.Reason != x.reason || n != 10_000 {
			t.Errorf("after %s: %v, %d templates", x.at, e, n)
		}
	}
	// The same definition once more is nothing new.
	before := st.Changes()
	if d, _ := define(t, other, 7, flat(300, 3)); d != nil || st.Changes() != before {
		t.Error("the same template is another one")
	}
}

// For any traffic of any sender, memory is bounded, and existing templates stay.
func TestHostileExporters(t *testing.T) {
	limits := ipfix.DefaultLimits()
	limits.Exporters, limits.Templates, limits.Elements, limits.Bytes = 200, 1000, 50_000, 1<<20
	st := ipfix.NewStore(limits, ipfix.Options{})
	now := int64(time.Hour)
	honest := st.Session(source(1), now)
	if _, e := define(t, honest, 1, flat(300, 12)); e.Reason != 0 {
		t.Fatal(e)
	}
	rnd := rand.New(rand.NewPCG(28, 9))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20_000 {
		now += int64(time.Millisecond)
		s := st.Session(source(10+uint32(i)), now)
		if s == nil || !s.Begin(now) {
			continue
		}
		switch rnd.IntN(3) {
		case 0:
			define(t, s, rnd.Uint32(), flat(uint16(256+rnd.IntN(60_000)), 1+rnd.IntN(600)))
		case 1:
			for range 80 {
				s.Park(&ipfix.Message{Version: ipfix.V10, Domain: rnd.Uint32()}, &ipfix.Set{ID: uint16(256 + rnd.IntN(1000)), Data: make([]byte, rnd.IntN(9000))}, now)
			}
		default:
			for range 20 {
				m := ipfix.Message{Version: ipfix.V10, Domain: rnd.Uint32(), Seq: rnd.Uint32()}
				s.Numbers(&m, nil, now)
				s.End(&m, 3, 3, false)
				s.SetRate(&m, rnd.Uint64(), 5)
			}
		}
		s.Unlock()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d MB more", grown>>20)
	}
	f := st.Figures()
	if f.Exporters > 200 || f.Templates > 1000 || f.Evicted == 0 || f.Expired == 0 {
		t.Errorf("%+v", f)
	}
	if honest = st.Session(source(1), now); honest.Template(&ipfix.Message{Version: ipfix.V10, Domain: 1}, 300) == nil {
		t.Errorf("the honest exporter's template is gone: %+v", f)
	}
	runtime.KeepAlive(st)
}

// A set waits for its template, for so long and among so many.
func TestParked(t *testing.T) {
	st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	s := st.Session(source(1), 0)
	m := ipfix.Message{Version: ipfix.V10, Domain: 5}
	park := func(id uint16, v uint32, at time.Duration) {
		s.Park(&m, &ipfix.Set{ID: id, Data: plain.Uint32(nil, v)}, int64(at))
	}
	park(300, 1, 0)
	for i := range uint32(70) {
		park(301, i, 20*time.Minute)
	}
	if x := st.Status(); len(x) != 1 || len(x[0].Waiting) != 1 || x[0].Waiting[0].ID != 301 || x[0].Waiting[0].Sets != 64 {
		t.Fatalf("%+v", x)
	}
	park(302, 7, 40*time.Minute)
	d, e := define(t, s, 5, flat(301, 1))
	if e.Reason != 0 {
		t.Fatal(e)
	}
	var got []uint32
	s.Release(d, int64(45*time.Minute), func(set *ipfix.Set) { got = append(got, binary.BigEndian.Uint32(set.Data)) })
	if len(got) != 63 || got[0] != 7 || got[62] != 69 {
		t.Errorf("released %v", got)
	}
	if d, e = define(t, s, 5, flat(302, 1)); e.Reason != 0 {
		t.Fatal(e)
	}
	n := 0
	if s.Release(d, int64(71*time.Minute), func(*ipfix.Set) { n++ }); n != 0 || st.Figures().Waiting != 0 {
		t.Errorf("%d sets waited for more than half an hour: %+v", n, st.Figures())
	}
}

// Templates of one run serve the next one. What is none is refused.
func TestSaved(t *testing.T) {
	st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	rnd := rand.New(rand.NewPCG(28, 8))
	var all []*decode.Template
	for i := range 50 {
		d := plain.RandomTemplate(rnd, uint16(9+i%2))
		d.ID = uint16(256 + i)
		all = append(all, d)
		if _, e := define(t, st.Session(source(uint32(i%3)), 0), d.Domain, d); e.Reason != 0 {
			t.Fatal(e)
		}
	}
	later := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	for _, x := range st.Save() {
		if !later.Restore(&x, 0) {
			t.Errorf("%+v is refused", x)
		}
		x.Raw = x.Raw[:len(x.Raw)-1]
		if ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}).Restore(&x, 0) {
			t.Errorf("%+v is taken", x)
		}
	}
	for i, d := range all {
		got := later.Session(source(uint32(i%3)), 0).Template(&ipfix.Message{Version: d.Version, Domain: d.Domain}, d.ID)
		if got == nil || len(got.Fields) != len(d.Fields) || got.Fields[0] != d.Fields[0] || got.Scopes != d.Scopes {
			t.Errorf("%+v is %+v", d, got)
		}
	}
}

// messages feeds a session messages, each with its number and its records, and returns what numbers they got: -1 is none.
func messages(s *ipfix.Session, list ...[2]uint32) (got []int64) {
	for _, x := range list {
		m := ipfix.Message{Version: ipfix.V10, Seq: x[0]}
		n, _ := s.Numbers(&m, nil, 0)
		s.End(&m, x[1]&0xff, 5*(x[1]&0xff), x[1] == unknownCount)
		if n.Records || n.Message {
			got = append(got, int64(n.First))
		} else {
			got = append(got, -1)
		}
	}
	return got
}

const unknownCount = 0x100

// Numbers continue if no loss is known, for any unit that an exporter counts. It is learned before anything is
// reported.
func TestNumbers(t *testing.T) {
	run := func(step func(i uint32) (seq, records uint32)) (gaps int64, reported int) {
		s := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}).Session(source(1), 0)
		next := int64(-1)
		for i := range uint32(100) {
			seq, n := step(i)
			got := messages(s, [2]uint32{seq, n})[0]
			if got < 0 {
				continue
			}
			if reported++; next >= 0 {
				gaps += got - next
			}
			next = got + int64(n&0xff)
		}
		return gaps, reported
	}
	total := uint32(0)
	records := func(i uint32) (uint32, uint32) { n := 2 + i%3; total += n; return total - n, n }
	if gaps, reported := run(records); gaps != 0 || reported < 90 {
		t.Errorf("records: %d lost, %d reported", gaps, reported)
	}
	total = 0
	if gaps, reported := run(func(i uint32) (uint32, uint32) { // ten records are lost
		if i == 50 {
			total += 10
		}
		return records(i)
	}); gaps != 10 || reported < 90 {
		t.Errorf("a gap: %d lost, want 10, %d reported", gaps, reported)
	}
	total = 0
	if gaps, reported := run(func(i uint32) (uint32, uint32) { // a set waits for its template, and holds seven records
		seq, n := records(i)
		if i == 50 {
			total += 7
			return seq, unknownCount
		}
		return seq, n
	}); gaps > 0 || reported < 90 {
		t.Errorf("an unknown template: %d lost, %d reported", gaps, reported)
	}
	for name, step := range map[string]func(i uint32) (uint32, uint32){
		"constant": func(i uint32) (uint32, uint32) { return 1, 3 },
		"fields":   func(i uint32) (uint32, uint32) { return 15 * i, 3 },
	} {
		if _, reported := run(step); reported > 0 {
			t.Errorf("%s: %d reported", name, reported)
		}
	}
	s := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}).Session(source(1), 0)
	var list [][2]uint32
	for i := range uint32(20) {
		list = append(list, [2]uint32{i + 2*(i/15), 3}) // two messages are lost
	}
	got := messages(s, list...)
	if first, last := got[10], got[19]; first < 0 || last-first != 9+2 {
		t.Errorf("messages: %v", got)
	}
	// Late and repeated messages have the numbers that are theirs.
	s = ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}).Session(source(1), 0)
	got = messages(s, [2]uint32{0, 3}, [2]uint32{3, 4}, [2]uint32{7, 3}, [2]uint32{10, 4}, [2]uint32{14, 3}, [2]uint32{17, 4}, [2]uint32{24, 4}, [2]uint32{21, 3}, [2]uint32{28, 3}, [2]uint32{28, 3})
	if base := got[5]; base < 0 || got[6] != base+7 || got[7] != base+4 || got[8] != base+11 || got[9] != base+11 {
		t.Errorf("late: %v", got)
	}
}
