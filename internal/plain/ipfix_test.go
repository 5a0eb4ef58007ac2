package plain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// ipfixReading is the product's reading of messages, in the words of [IPFIX].
type ipfixReading struct{ session *ipfix.Session }

func newIPFIXReading() *ipfixReading {
	return &ipfixReading{ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{}).Session(ipfix.Source{}, 0)}
}

func (x *ipfixReading) read(b []byte) (lines []string, bad bool) {
	var rd ipfix.Reader
	var m ipfix.Message
	var set ipfix.Set
	p := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ok := rd.Start(&m, b, 0, len(b))
	if ok {
		p("v%d time %d seq %d domain %d", m.Version, m.Time, m.Seq, m.Domain)
	}
	for ok && rd.Next(&set) {
		if templates, _ := set.Templates(); templates {
			var ds ipfix.Definitions
			var d ipfix.Definition
			for ds.Start(m.Version, &set); ds.Next(&d); {
				p("template %d of %d scopes %d", d.ID, d.Fields, d.Scopes)
				if _, e := x.session.Define(&m, &d); e.Reason != 0 {
					p("refused")
				}
			}
			bad = bad || ds.Err.Reason != 0
			continue
		}
		t := x.session.Template(&m, set.ID)
		if t == nil {
			p("waiting for %d: %x", set.ID, set.Data)
			continue
		}
		var r ipfix.Records
		for r.Start(t, &set); r.Next(); {
			line := fmt.Sprintf("record %d", set.ID)
			for e, v := range t.Values(r.Record) {
				line += fmt.Sprintf(" %d.%d:%x", e.PEN, e.ID, v)
			}
			p("%s", line)
		}
		bad = bad || r.Err.Reason != 0
	}
	return lines, bad || rd.Err.Reason != 0
}

// equalIPFIX holds both readers to the same, message by message.
func equalIPFIX(t testing.TB, messages [][]byte, good bool) {
	t.Helper()
	x, y := newIPFIXReading(), &IPFIX{}
	for _, b := range messages {
		got, failed := x.read(b)
		want, bad := y.Read(b)
		if failed != bad || !slices.Equal(got, want) || good && bad {
			t.Fatalf("%x: failed %t, want %t\n%s\nwant\n%s", b, failed, bad, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// ipfixSession makes the messages of an exporter: templates, then data of these and of others.
func ipfixSession(rnd *rand.Rand) (list [][]byte) {
	version := uint16(9 + rnd.IntN(2))
	var templates []*decode.Template
	for i := range uint16(1 + rnd.IntN(6)) {
		d := RandomTemplate(rnd, version)
		d.ID, d.Domain = 256+i, 3
		templates = append(templates, d)
		m := ipfix.Message{Version: version, Domain: 3, Count: 1}
		list = append(list, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
			return ipfix.AppendSet(b, ipfix.TemplateSet(d), rnd.IntN(4), func(b []byte) []byte { return ipfix.AppendTemplate(b, d) })
		}))
	}
	for i := range uint32(8) {
		list = append(list, RandomIPFIX(rnd, version, i, templates))
	}
	return list
}

// Both read the same of made messages, and of those with bits changed and bytes cut off.
func TestIPFIX(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 30))
	for i := range 3000 {
		list := ipfixSession(rnd)
		if i >= 1500 {
			for k := range list {
				for range rnd.IntN(4) {
					list[k][rnd.IntN(len(list[k]))] ^= 1 << rnd.IntN(8)
				}
				list[k] = list[k][:len(list[k])-rnd.IntN(3)]
			}
		}
		equalIPFIX(t, list, i < 1500)
	}
}

func FuzzIPFIX(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 31))
	for range 20 {
		list := ipfixSession(rnd)
		f.Add(list[0], list[len(list)-1])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) { equalIPFIX(t, [][]byte{a, b, a, b}, false) })
}

// Both read the same exceptions of Juniper, whatever is in the values and however long they are.
func TestJuniperException(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 32))
	for range 20_000 {
		d := &decode.Template{Version: ipfix.V10, ID: 256}
		var values [][]byte
		var record []byte
		for range 1 + rnd.IntN(7) {
			v := make([]byte, 1+rnd.IntN(5))
			for i := range v {
				v[i] = byte(rnd.Uint32())
			}
			v[0] = byte(rnd.IntN(8))<<2 | v[0]&3
			d.Fields = append(d.Fields, decode.Element{PEN: ipfix.Juniper, ID: 137, Length: uint16(len(v))})
			values, record = append(values, v), append(record, v...)
		}
		x := newIPFIXReading()
		m := ipfix.Message{Version: ipfix.V10}
		x.read(ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
			return ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, d) })
		}))
		var r ipfix.Records
		r.Start(x.session.Template(&m, 256), &ipfix.Set{ID: 256, Data: record})
		if !r.Next() {
			t.Fatal(r.Err)
		}
		e := r.Exception()
		var got []string
		for name, v := range map[string]uint32{"class": e.Class, "next hop": e.NextHop, "egress": e.Egress, "underlying": e.Underlying, "ingress": e.Ingress} {
			if v != 0 {
				got = append(got, fmt.Sprint(name, " ", v))
			}
		}
		if e.HasCode {
			got = append(got, fmt.Sprint("code ", e.Code))
		}
		slices.Sort(got)
		want := slices.DeleteFunc(exception(values...), func(w string) bool { return strings.HasSuffix(w, " 0") && !strings.HasPrefix(w, "code") })
		if !slices.Equal(got, want) {
			t.Fatalf("%x: %q, want %q", values, got, want)
		}
	}
}
