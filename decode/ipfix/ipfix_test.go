package ipfix_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goflow "github.com/netsampler/goflow2/v2/decoders/netflow"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/internal/plain"
)

// hexFile returns the messages of a file of hexadecimal lines: a message begins with version 10 or 9.
func hexFile(t testing.TB, name string) (list [][]byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(b, []byte{0, 10}) {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], b...)
	}
	return list
}

// Differences from goflow2 are by the specification. It keeps the enterprise bit in the numbers of elements of
// options templates (RFC 7011, section 3.2: a bit of its own). It reads four zeros behind templates as a template 0
// (section 3.3.1: padding). It reads a withdrawal as a template without fields (section 8.1), and then records of no
// bytes for ever. It returns values that the end of a set cuts off (section 3.3.1: the set is malformed). It reads as
// many sets of NetFlow 9 as the header counts records (RFC 3954, section 5.1).

// reading is a session of ours, and its reports as lines.
type reading struct {
	store   *ipfix.Store
	session *ipfix.Session
	lines   []string
	failed  bool
}

func newReading() *reading {
	st := ipfix.NewStore(ipfix.DefaultLimits(), ipfix.Options{})
	return &reading{store: st, session: st.Session(ipfix.Source{Port: 1}, 1)}
}

func (x *reading) read(b []byte) {
	var rd ipfix.Reader
	var m ipfix.Message
	var set ipfix.Set
	x.lines, x.failed = nil, false
	ok := rd.Start(&m, b, 0, len(b))
	if ok {
		x.lines = append(x.lines, fmt.Sprint("message ", m.Version, m.Time, m.Seq, m.Domain))
	}
	for ok && rd.Next(&set) {
		if templates, _ := set.Templates(); templates {
			var ds ipfix.Definitions
			var d ipfix.Definition
			for ds.Start(m.Version, &set); ds.Next(&d); {
				_, e := x.session.Define(&m, &d)
				x.failed = x.failed || e.Reason != 0
				x.lines = append(x.lines, fmt.Sprint("template ", d.ID, d.Options, d.Fields, d.Scopes))
			}
			x.failed = x.failed || ds.Err.Reason != 0
			continue
		}
		t := x.session.Template(&m, set.ID)
		if t == nil {
			x.lines = append(x.lines, fmt.Sprint("waiting ", set.ID))
			continue
		}
		var r ipfix.Records
		for r.Start(t, &set); r.Next(); {
			line := fmt.Sprint("record ", set.ID)
			for i, e := range t.Fields {
				line += fmt.Sprintf(" %d.%d=%x", e.PEN, e.ID, r.Value(i))
			}
			x.lines = append(x.lines, line)
		}
		x.failed = x.failed || r.Err.Reason != 0
	}
	x.failed = x.failed || rd.Err.Reason != 0
}

// goflowLines is goflow2's reading of a message, in the words of read.
func goflowLines(t testing.TB, b []byte, templates goflow.NetFlowTemplateSystem) (lines []string) {
	var p9 goflow.NFv9Packet
	var p10 goflow.IPFIXPacket
	err := goflow.DecodeMessageVersion(bytes.NewBuffer(b), templates, &p9, &p10)
	if err != nil && !strings.Contains(err.Error(), "template not found") {
		t.Fatalf("goflow2: %v: %x", err, b)
	}
	sets := p10.FlowSets
	if b[1] == 9 {
		sets = p9.FlowSets
		lines = append(lines, fmt.Sprint("message ", p9.Version, p9.UnixSeconds, p9.SequenceNumber, p9.SourceId))
	} else {
		lines = append(lines, fmt.Sprint("message ", p10.Version, p10.ExportTime, p10.SequenceNumber, p10.ObservationDomainId))
	}
	values := func(id uint16, lists ...[]goflow.DataField) {
		line := fmt.Sprint("record ", id)
		for _, l := range lists {
			for _, v := range l {
				n := v.Type
				if v.PenProvided {
					n &= 0x7fff
				}
				line += fmt.Sprintf(" %d.%d=%x", v.Pen, n, v.Value)
			}
		}
		lines = append(lines, line)
	}
	for _, s := range sets {
		switch s := s.(type) {
		case goflow.TemplateFlowSet:
			for _, r := range s.Records {
				lines = append(lines, fmt.Sprint("template ", r.TemplateId, false, len(r.Fields), 0))
			}
		case goflow.NFv9OptionsTemplateFlowSet:
			for _, r := range s.Records {
				lines = append(lines, fmt.Sprint("template ", r.TemplateId, true, len(r.Scopes)+len(r.Options), len(r.Scopes)))
			}
		case goflow.IPFIXOptionsTemplateFlowSet:
			for _, r := range s.Records {
				lines = append(lines, fmt.Sprint("template ", r.TemplateId, true, len(r.Scopes)+len(r.Options), len(r.Scopes)))
			}
		case goflow.RawFlowSet:
			lines = append(lines, fmt.Sprint("waiting ", s.Id))
		case goflow.DataFlowSet:
			for _, r := range s.Records {
				values(s.Id, r.Values)
			}
		case goflow.OptionsDataFlowSet:
			for _, r := range s.Records {
				values(s.Id, r.ScopesValues, r.OptionsValues)
			}
		}
	}
	return lines
}

func same(t *testing.T, x *reading, templates goflow.NetFlowTemplateSystem, b []byte) {
	t.Helper()
	x.read(b)
	if want := goflowLines(t, b, templates); x.failed || !slices.Equal(x.lines, want) {
		t.Fatalf("%x\n%s\nfailed %t, want\n%s", b, strings.Join(x.lines, "\n"), x.failed, strings.Join(want, "\n"))
	}
}

func TestAgainstGoflow2(t *testing.T) {
	records := 0
	for _, file := range []string{"sonic-hft-ipfix.hex", "broadcom-mod-th5.hex"} {
		x, templates := newReading(), goflow.CreateTemplateSystem()
		for _, b := range hexFile(t, file) {
			same(t, x, templates, b)
			records += strings.Count(strings.Join(x.lines, "\n"), "record ")
		}
	}
	if records != 4 {
		t.Errorf("%d records in the recordings, want 4", records)
	}
	// Recordings that are not ours to keep: the sets of each folder's captures, in order.
	files, _ := filepath.Glob(os.Getenv("IPFIX_RECORDINGS"))
	for _, file := range files {
		for _, b := range plain.Payloads(t, file) {
			if len(b) < 2 || b[0] != 0 || b[1] != 9 && b[1] != 10 {
				continue
			}
			x, templates := newReading(), goflow.CreateTemplateSystem()
			if sibling := strings.Replace(file, "-data", "-template", 1); sibling != file {
				for _, d := range plain.Payloads(t, sibling) {
					same(t, x, templates, d)
				}
			}
			same(t, x, templates, b)
			t.Logf("%s: %s", filepath.Base(file), strings.Join(x.lines, "\n"))
		}
	}
	for _, version := range []uint16{ipfix.V9, ipfix.V10} {
		rnd := rand.New(rand.NewPCG(28, uint64(version)))
		for range 100 {
			x, templates := newReading(), goflow.CreateTemplateSystem()
			var list []*decode.Template
			for i := range uint16(12) {
				d := plain.RandomTemplate(rnd, version)
				d.ID, d.Domain = 256+i, 2
				list = append(list, d)
			}
			for seq := range uint32(100) {
				if seq == 5 { // what came before had to wait
					for _, d := range list {
						m := ipfix.Message{Version: version, Domain: 2, Count: 1}
						same(t, x, templates, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
							return ipfix.AppendSet(b, ipfix.TemplateSet(d), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, d) })
						}))
					}
				}
				same(t, x, templates, plain.RandomIPFIX(rnd, version, seq, list))
			}
		}
	}
}

// A message that lies is an error at its place, and never more; one that is cut is none.
func TestMalformed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(28, 3))
	for _, version := range []uint16{ipfix.V9, ipfix.V10} {
		for range 200 {
			var rd ipfix.Reader
			var m ipfix.Message
			var set ipfix.Set
			b := plain.RandomIPFIX(rnd, version, 1, []*decode.Template{plain.RandomTemplate(rnd, version)})
			for n := range b {
				ok := rd.Start(&m, b[:n:n], 0, n)
				for ok && rd.Next(&set) {
				}
				boundary := version == ipfix.V9 && rd.Err.Reason == 0 // NetFlow 9 does not say how long it is
				if rd.Err.Reason == 0 && !boundary || rd.Err.Offset > n || rd.Cut {
					t.Fatalf("%d of %d bytes: %v", n, len(b), rd.Err)
				}
				ok = rd.Start(&m, b[:n:n], 0, len(b))
				for ok && rd.Next(&set) {
				}
				if !rd.Cut || rd.Err.Reason != 0 {
					t.Fatalf("%d of %d bytes captured: %v", n, len(b), rd.Err)
				}
			}
		}
	}
	x := newReading()
	for what, b := range map[string]string{
		"a reserved set":                 "000a0014000000000000000000000000" + "00640004",
		"a set shorter than its header":  "000a0014000000000000000000000000" + "01000003",
		"a set beyond the message":       "000a0014000000000000000000000000" + "01000005",
		"a template below 256":           "000a001c000000000000000000000000" + "0002000c" + "00ff0001" + "00010004",
		"a template beyond its set":      "000a001c000000000000000000000000" + "0002000c" + "01000002" + "00010004",
		"a template of no bytes":         "000a001c000000000000000000000000" + "0002000c" + "01000001" + "00010000",
		"scopes beyond the fields":       "000a001e000000000000000000000000" + "0003000e" + "010000010002" + "00010004",
		"options without a scope":        "000a001e000000000000000000000000" + "0003000e" + "010000010000" + "00010004",
		"a scope of half a field":        "000900010000000000000000000000000000000000" + "01000e" + "010000020002" + "00010004",
		"a message shorter than itself":  "000a000f000000000000000000000000",
		"a message longer than its data": "000a0011000000000000000000000000",
	} {
		raw, err := hex.DecodeString(b)
		if err != nil {
			t.Fatal(what, err)
		}
		if x.read(raw); !x.failed {
			t.Errorf("%s is read: %q", what, x.lines)
		}
	}
}

// Withdrawals take back one template, or all of a kind.
func TestWithdrawal(t *testing.T) {
	x := newReading()
	read := func(sets string) []string {
		raw, err := hex.DecodeString(fmt.Sprintf("000a%04x", 16+len(sets)/2) + "000000000000000000000000" + sets)
		if err != nil {
			t.Fatal(err)
		}
		if x.read(raw); x.failed {
			t.Fatal(sets, x.lines)
		}
		return x.lines[1:]
	}
	define := "00020014" + "0100000100010004" + "0101000100010004" + "0003000e" + "0102000100010001" + "0004"
	read(define)
	if got := read("01000008" + "00000001" + "01010008" + "00000002" + "01020008" + "00000003"); !slices.Equal(got, []string{"record 256 0.1=00000001", "record 257 0.1=00000002", "record 258 0.1=00000003"}) {
		t.Fatal(got)
	}
	read("00020008" + "01000000")
	if got := read("01000008" + "00000001" + "01010008" + "00000002"); !slices.Equal(got, []string{"waiting 256", "record 257 0.1=00000002"}) {
		t.Error(got)
	}
	read("00020008" + "00020000")
	if got := read("01010008" + "00000002" + "01020008" + "00000003"); !slices.Equal(got, []string{"waiting 257", "record 258 0.1=00000003"}) {
		t.Error(got)
	}
	read("00030008" + "00030000")
	if got := read("01020008" + "00000003"); !slices.Equal(got, []string{"waiting 258"}) {
		t.Error(got)
	}
}

// made returns messages of flows as routers send them: one template and 20 records a message.
func made(version uint16) (define []byte, list [][]byte, size int64) {
	rnd := rand.New(rand.NewPCG(28, 5))
	d := &decode.Template{Version: version, ID: 300, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 4, Length: 1}, {ID: 7, Length: 2}, {ID: 11, Length: 2},
		{ID: 1, Length: 8}, {ID: 2, Length: 8}, {ID: 10, Length: 4}, {ID: 14, Length: 4}, {ID: 5, Length: 1}, {ID: 6, Length: 1}, {ID: 152, Length: 8}, {ID: 153, Length: 8}}}
	m := ipfix.Message{Version: version, Count: 1}
	define = ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
		return ipfix.AppendSet(b, ipfix.TemplateSet(d), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, d) })
	})
	for range 256 {
		b := ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
			return ipfix.AppendSet(b, d.ID, 0, func(b []byte) []byte {
				for range 20 {
					b = plain.AppendRandomRecord(b, rnd, d)
				}
				return b
			})
		})
		list = append(list, b)
		size += int64(len(b))
	}
	return define, list, size / 256
}

// readAll reads every value of every record of a message, and sums what it saw.
func readAll(s *ipfix.Session, rd *ipfix.Reader, r *ipfix.Records, b []byte) (sum int) {
	var m ipfix.Message
	var set ipfix.Set
	if !rd.Start(&m, b, 0, len(b)) {
		return 0
	}
	for rd.Next(&set) {
		t := s.Template(&m, set.ID)
		for r.Start(t, &set); r.Next(); {
			for i := range t.Fields {
				sum += len(r.Value(i))
			}
		}
	}
	return sum
}

func TestReadingAllocatesNothing(t *testing.T) {
	define, list, _ := made(ipfix.V10)
	x := newReading()
	x.read(define)
	var rd ipfix.Reader
	var r ipfix.Records
	if n := testing.AllocsPerRun(100, func() { readAll(x.session, &rd, &r, list[0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReader(b *testing.B) {
	define, list, size := made(ipfix.V10)
	x := newReading()
	x.read(define)
	var rd ipfix.Reader
	var r ipfix.Records
	b.SetBytes(size)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if readAll(x.session, &rd, &r, list[i%len(list)]) == 0 {
			b.Fatal("nothing is read")
		}
	}
}

// BenchmarkCopies reads messages of 20 records and of one, alone and with the search for a message that came before,
// in turns.
func BenchmarkCopies(b *testing.B) {
	for _, records := range []int{1, 20} {
		define, list, _ := made(ipfix.V10)
		for i, x := range list { // of the records, so many
			size := (len(x) - 20) / 20 * records
			list[i] = x[:20+size]
			binary.BigEndian.PutUint16(x[2:], uint16(20+size))
			binary.BigEndian.PutUint16(x[18:], uint16(4+size))
		}
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			x := newReading()
			x.read(define)
			var rd ipfix.Reader
			var r ipfix.Records
			var m ipfix.Message
			var spent [2]time.Duration
			now, n := int64(1e18), uint32(0)
			for b.Loop() {
				for which := range spent {
					began := time.Now()
					for _, data := range list {
						if which == 1 {
							if now++; !rd.Start(&m, data, 0, len(data)) {
								b.Fatal("no message")
							}
							m.Seq, n = n, n+uint32(records)
							if _, twice := x.session.Numbers(&m, data, now); twice != ipfix.Once {
								b.Fatal("a copy")
							}
							x.session.End(&m, uint32(records), 0, false)
						}
						if readAll(x.session, &rd, &r, data) == 0 {
							b.Fatal("nothing is read")
						}
					}
					spent[which] += time.Since(began)
				}
			}
			messages := float64(b.N * len(list))
			b.ReportMetric(float64(spent[0])/messages, "ns/alone")
			b.ReportMetric(float64(spent[1])/messages, "ns/checked")
		})
	}
}

func BenchmarkGoflow2(b *testing.B) {
	define, list, size := made(ipfix.V10)
	templates := goflow.CreateTemplateSystem()
	var p9 goflow.NFv9Packet
	var p10 goflow.IPFIXPacket
	if err := goflow.DecodeMessageVersion(bytes.NewBuffer(define), templates, &p9, &p10); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var p goflow.IPFIXPacket
		if err := goflow.DecodeMessageVersion(bytes.NewBuffer(list[i%len(list)]), templates, &p9, &p); err != nil {
			b.Fatal(err)
		}
	}
}
