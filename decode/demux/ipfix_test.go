package demux

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/internal/plain"
)

var ipfixExporter = decode.AddrFrom4([]byte{192, 0, 2, 1})

// messageOf is an IPFIX message with sets.
func messageOf(seq uint32, sets ...[]byte) []byte {
	m := ipfix.Message{Version: ipfix.V10, Seq: seq, Domain: 7, Time: 1_790_000_000}
	return ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
		for _, s := range sets {
			b = append(b, s...)
		}
		return b
	})
}

// elements makes a template of elements as "id/length" or "pen.id/length"; length v is variable.
func elements(id uint16, scopes int, list ...string) *decode.Template {
	t := &decode.Template{Version: ipfix.V10, ID: id, Scopes: scopes}
	for _, s := range list {
		e := decode.Element{Length: decode.VariableLength}
		name, length, _ := strings.Cut(s, "/")
		if pen, id, ok := strings.Cut(name, "."); ok {
			fmt.Sscan(pen, &e.PEN)
			name = id
		}
		fmt.Sscan(name, &e.ID)
		if length != "v" {
			fmt.Sscan(length, &e.Length)
		}
		t.Fields = append(t.Fields, e)
	}
	return t
}

func defineSet(list ...*decode.Template) (b []byte) {
	return ipfix.AppendSet(nil, ipfix.TemplateSet(list[0]), 0, func(b []byte) []byte {
		for _, t := range list {
			b = ipfix.AppendTemplate(b, t)
		}
		return b
	})
}

// dataOf is a set of records in hexadecimal.
func dataOf(id uint16, records ...string) []byte {
	return ipfix.AppendSet(nil, id, 0, func(b []byte) []byte {
		for _, s := range records {
			x, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
			if err != nil {
				panic(err)
			}
			b = append(b, x...)
		}
		return b
	})
}

// ipfixReader reads payloads of one exporter.
type ipfixReader struct {
	t testing.TB
	d *Router
	b decode.Batch
}

func newIPFIXReader(t testing.TB, store *ipfix.Store) *ipfixReader {
	x := &ipfixReader{t: t, d: NewRouter(profile(t, "auto"), nil).ShareIPFIX(store)}
	x.d.From(4000)
	return x
}

func newStore(o ipfix.Options) *ipfix.Store { return ipfix.NewStore(ipfix.DefaultLimits(), o) }

// read returns the reports of a payload, all of which has to be well-formed.
func (x *ipfixReader) read(payload []byte) []*decode.Report {
	x.t.Helper()
	x.b.Reset()
	if n := x.d.Datagram(&x.b, ipfixExporter, payload, 7); n != len(x.b.Reports) || n == 0 {
		x.t.Fatalf("%d reports, and says %d", len(x.b.Reports), n)
	}
	for _, r := range x.b.Reports {
		if r.Err.Reason != 0 || r.Exporter != ipfixExporter || r.HWID != 7 {
			x.t.Fatalf("%x: %+v", payload, r)
		}
	}
	return x.b.Reports
}

// broadcomMessage is a message of a Broadcom chip with a frame.
func broadcomMessage(set uint16, node uint32, ports, reasons string, frame []byte) []byte {
	return messageOf(1, ipfix.AppendSet(nil, set, 0, func(b []byte) []byte {
		b = plain.Uint32(b, 1_790_000_000, 5, node)
		x, _ := hex.DecodeString(ports + reasons + "1234" + "00ff")
		return append(binary.BigEndian.AppendUint16(append(b, x...), uint16(len(frame))), frame...)
	}))
}

func TestBroadcom(t *testing.T) {
	x := newIPFIXReader(t, newStore(ipfix.Options{}))
	frame := udpFrame(make([]byte, 20), Profile{}, 53)
	for _, c := range []struct {
		set            uint16
		node           uint32
		ports, reasons string
		want           string
	}{
		{ipfix.Tomahawk5, 9, "00000001", "1a00", "Broadcom: L3 destination discard"},
		{ipfix.Tomahawk5, 9, "00000001", "1000", "Broadcom: ingress ACL"},
		{ipfix.Tomahawk5, 0, "00000001", "0001", "Broadcom: MMU, ingress priority group"},
		{ipfix.Tomahawk5, 9, "00000001", "0003", "Broadcom: MMU, egress port"},
		{ipfix.Tomahawk5, 9, "00000001", "0000", ""},
		{ipfix.Tomahawk6, 9, "00900001", "93ff", "Broadcom: MMU, egress port"},
		{ipfix.Tomahawk6, 9, "00900001", "0000", "Broadcom: ingress reason 0"},
		{ipfix.Tomahawk6, 9, "00900001", "7900", "Broadcom: unknown reason 121"},
		{ipfix.Tomahawk6, 9, "00900001", "9a00", "Broadcom: egress reason 2"},
	} {
		r := x.read(broadcomMessage(c.set, c.node, c.ports, c.reasons, frame))[0]
		node := c.node
		if node == 0 {
			node = 0xc0000201
		}
		why := ""
		if r.Has&decode.HasDropReason != 0 {
			why = r.Units.DropReason(r.DropReason)
		}
		h := r.Hops[0]
		if r.Kind != decode.KindDrop || r.Flags&decode.Dropped == 0 || r.NodeID != node || h.NodeID != node || h.IngressIf != 1 || why != c.want || r.Flow.DstPort != 53 {
			t.Errorf("%+v: %q, %+v", c, why, r)
		}
		if set := h.Has&decode.HopEgressIf != 0; set != (c.ports == "00900001") || set && h.EgressIf != 144 {
			t.Errorf("%+v: egress %d", c, h.EgressIf)
		}
	}
	// Data that break the rules are refused if no template can follow.
	good := broadcomMessage(ipfix.Tomahawk5, 9, "00000001", "1a00", frame)
	for at, field := range map[int]string{41: "sampled_marker", 43: "sampled_length"} {
		bad := append([]byte(nil), good...)
		bad[at] ^= 1
		x.b.Reset()
		if x.d.Datagram(&x.b, ipfixExporter, bad, 7); len(x.b.Reports) != 1 || x.b.Reports[0].Err.Field != field || x.b.Reports[0].Err.Offset != at&^1 && x.b.Reports[0].Err.Offset != at {
			t.Errorf("byte %d: %s", at, lines(&x.b))
		}
	}
	// An exporter with templates has one for this number, too.
	x.read(messageOf(2, defineSet(elements(300, 0, "1/4"))))
	if r := x.read(good)[0]; r.Kind != decode.KindRecord || r.Rare == nil || r.Rare.Template == nil || r.Rare.Template.ID != ipfix.Tomahawk5 {
		t.Errorf("waiting: %+v", r)
	}
}

// juniperElements is the template of the exceptions, with names that are ours.
var juniperElements = []string{"2636.137/4", "2636.137/2", "2636.137/4", "2636.137/4", "2636.137/4", "2636.137/4", "10/4", "14/4", "61/1", "312/2", "315/v"}

func juniperRecord(code uint16, frame []byte) string {
	return fmt.Sprintf("04000000 %04x 0c0fffff 10000000 140001c2 180001b5 000002e1 00000000 00 0076 %02x", 2<<10|code, len(frame)) + hex.EncodeToString(frame)
}

// An exception is a drop, whichever of data and template comes first, and whichever worker reads them; a packet that
// was forwarded is a sample.
func TestJuniper(t *testing.T) {
	frame := udpFrame(make([]byte, 20), Profile{}, 53)
	def := messageOf(0, defineSet(elements(384, 0, juniperElements...)))
	drop := messageOf(0, dataOf(384, juniperRecord(195, frame)))
	check := func(what string, r *decode.Report) {
		t.Helper()
		h := r.Hops[0]
		if r.Kind != decode.KindDrop || r.DropReason != 195 || r.NodeID != 0xc0000201 || r.Flow.DstPort != 53 || h.IngressIf != 737 || h.L2IngressIf != 437 || h.Has&decode.HopEgressIf != 0 || r.Weight != 1 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	x := newIPFIXReader(t, newStore(ipfix.Options{}))
	x.read(def)
	check("template first", x.read(drop)[0])

	store := newStore(ipfix.Options{})
	x, y := newIPFIXReader(t, store), newIPFIXReader(t, store)
	if r := x.read(drop)[0]; r.Kind != decode.KindRecord || r.Has&decode.HasFlow != 0 {
		t.Errorf("data first: %+v", r)
	}
	check("data first, read by another worker", y.read(def)[0])
	check("then", x.read(drop)[0])
	if f := store.Figures(); f.Waiting != 0 || f.Parked != 1 {
		t.Errorf("%+v", f)
	}

	// A later run reads data at once.
	later := newStore(ipfix.Options{})
	for _, s := range store.Save() {
		later.Restore(&s, 8)
	}
	check("after a restart", newIPFIXReader(t, later).read(drop)[0])

	// Templates belong to the port that they came from.
	x.d.From(4001)
	if r := x.read(drop)[0]; r.Kind != decode.KindRecord {
		t.Errorf("another port: %+v", r)
	}
	x.d.From(4000)
	if r := x.read(messageOf(1, dataOf(384, juniperRecord(0, frame))))[0]; r.Kind != decode.KindSample || r.Flags != 0 || len(r.Hops) != 0 || r.Flow.DstPort != 53 {
		t.Errorf("forwarded: %+v", r)
	}
	if r := x.read(messageOf(2, dataOf(384, juniperRecord(700, frame))))[0]; r.Kind != decode.KindDrop || r.DropReason != 255 {
		t.Errorf("a code of 700: %+v", r)
	}
	if n := testing.AllocsPerRun(100, func() { x.b.Reset(); x.d.Datagram(&x.b, ipfixExporter, drop, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	// In a capture, at any port.
	f := udpFrame(def, profile(t, "auto"), 9999)
	d := New(profile(t, "auto"))
	x.b.Reset()
	d.Frame(&x.b, packet.LinkEthernet, f, len(f), 7)
	f = udpFrame(drop, profile(t, "auto"), 9999)
	x.b.Reset()
	if d.Frame(&x.b, packet.LinkEthernet, f, len(f), 7); len(x.b.Reports) != 1 || x.b.Reports[0].Kind != decode.KindDrop {
		t.Errorf("frame: %s", lines(&x.b))
	}
	// A format that is not switched on is named.
	off := NewRouter(profile(t, "auto"), nil).ShareIPFIX(nil)
	x.b.Reset()
	if off.Datagram(&x.b, ipfixExporter, drop, 7); len(x.b.Reports) != 1 || x.b.Reports[0].Err.Reason != decode.NotRead || x.b.Reports[0].Format != decode.IPFIX {
		t.Errorf("off: %s", lines(&x.b))
	}
}

// Delays are those of RFC 9951 or of others that number them otherwise, and are said as what they are.
func TestPathDelay(t *testing.T) {
	flow := []string{"8/4", "12/4", "4/1", "7/2", "11/2", "10/4", "14/4", "2/4"}
	const values = "0a000001 0a000002 11 0035 1f90 00000003 00000004 0000000a"
	for _, c := range []struct {
		what     string
		options  ipfix.Options
		elements []string
		delays   string
		want     string
	}{
		{"RFC 9951", ipfix.Options{}, []string{"530/4", "531/4", "532/4"}, "00000064 00000032 000000c8", `"path_delay":{"mean_ns":100000,"min_ns":50000,"max_ns":200000,"packets":10}`},
		{"its sum, reduced", ipfix.Options{}, []string{"531/2", "532/3", "533/5"}, "0032 0000c8 00000003e8", `"path_delay":{"mean_ns":100000,"min_ns":50000,"max_ns":200000,"sum_ns":1000000,"packets":10}`},
		{"Huawei", ipfix.Options{}, []string{"2011.521/4", "2011.523/4", "2011.525/4", "2011.527/8"}, "00000064 00000032 000000c8 00000000000003e8",
			`"path_delay":{"mean_ns":100000,"min_ns":50000,"max_ns":200000,"sum_ns":1000000,"packets":10}`},
		{"pmacct", ipfix.Options{}, []string{"600/4", "601/4", "602/4"}, "00000064 00000032 000000c8", `"path_delay":{"mean_ns":100000,"min_ns":50000,"max_ns":200000,"packets":10}`},
		{"fluvia", ipfix.Options{Delays: ipfix.Fluvia}, []string{"521/4", "523/4", "525/4", "527/4"}, "00000064 00000032 000000c8 000003e8",
			`"path_delay":{"mean_ns":100000,"min_ns":50000,"max_ns":200000,"sum_ns":1000000,"packets":10}`},
		{"fluvia in ns", ipfix.Options{Delays: ipfix.Fluvia}, []string{"522/4", "524/4", "526/4"}, "00000064 00000032 000000c8", `"path_delay":{"mean_ns":100,"min_ns":50,"max_ns":200,"packets":10}`},
		{"TCP options", ipfix.Options{}, []string{"521/4"}, "00000064", ``},
		{"what nobody has", ipfix.Options{Delays: ipfix.Strict}, []string{"600/4"}, "00000064", ``},
	} {
		store := newStore(c.options)
		x := newIPFIXReader(t, store)
		x.read(messageOf(0, defineSet(elements(256, 0, append(flow, c.elements...)...))))
		r := x.read(messageOf(0, dataOf(256, values+c.delays)))[0]
		line := string(reportjson.Append(nil, 1, r))
		kind := decode.KindDelay
		if c.want == "" {
			kind = decode.KindSample
		}
		if !strings.Contains(line, c.want) || strings.Contains(line, "path_delay") != (c.want != "") || r.Kind != kind || r.Weight != 10 || r.Flow.DstPort != 8080 || len(r.Hops) != 0 {
			t.Errorf("%s: %s", c.what, line)
		}
		if c.want == "" {
			continue
		}
		x.read(messageOf(1, dataOf(256, values+c.delays)))
		s := store.Status()[0]
		if len(s.Delays) != 1 || s.Delays[0].Ingress != 3 || s.Delays[0].Egress != 4 || s.Delays[0].Records != 2 || s.Delays[0].Packets != 20 || s.Delays[0].Mean != 2*float64(s.Delays[0].Min) {
			t.Errorf("%s: %+v", c.what, s)
		}
	}
}

// Rates of options records, of samplers and of the settings become weights; names become names.
func TestOptions(t *testing.T) {
	store := newStore(ipfix.Options{Rates: []ipfix.Rate{{Prefix: netip.MustParsePrefix("192.0.0.0/8"), Rate: 7}, {Prefix: netip.MustParsePrefix("10.0.0.0/8"), Rate: 9}}})
	x := newIPFIXReader(t, store)
	x.read(messageOf(0, defineSet(elements(256, 0, "8/4", "12/4", "2/4"), elements(257, 0, "8/4", "12/4", "2/4", "48/1"), elements(258, 0, "8/4", "12/4", "34/4")),
		defineSet(elements(300, 1, "48/1", "50/4"), elements(301, 2, "149/4", "145/2", "305/4", "306/4"), elements(302, 1, "10/4", "82/v", "83/4"))))
	weight := func(id uint16, record string) uint32 { return x.read(messageOf(0, dataOf(id, record)))[0].Weight }
	const flow = "0a000001 0a000002 00000003"
	if got := weight(256, flow); got != 3*7 {
		t.Errorf("by the settings: %d", got)
	}
	x.read(messageOf(0, dataOf(300, "02 00000064", "03 000000c8")))
	if a, b, c := weight(257, flow+"02"), weight(257, flow+"03"), weight(257, flow+"04"); a != 300 || b != 600 || c != 21 {
		t.Errorf("by the sampler: %d, %d, and %d of one that is not known", a, b, c)
	}
	x.read(messageOf(0, dataOf(301, "00000007 0100 00000001 000003e7")))
	if got := weight(256, flow); got != 3000 {
		t.Errorf("by the template: %d", got)
	}
	if got := weight(258, "0a000001 0a000002 00000800"); got != 2048 {
		t.Errorf("by the record: %d", got)
	}
	if got := weight(256, "0a000001 0a000002 ffffffff"); got != 1<<32-1 {
		t.Errorf("beyond 32 bits: %d", got)
	}
	if r := x.read(messageOf(0, dataOf(302, "00000011 04 65742d30 78787878")))[0]; r.Kind != decode.KindRecord {
		t.Errorf("%+v", r)
	}
	x.read(messageOf(0, dataOf(302, "00000011 04 65742d30 78787878")))
	if got := store.Learned(); len(got) != 1 || got[0].Node != 0xc0000201 || got[0].Index != 17 || got[0].Name != "et-0" {
		t.Errorf("%+v", got)
	}
}

// Unknown records are printed with all of their known parts, and counted.
func TestUnknownRecords(t *testing.T) {
	store := newStore(ipfix.Options{})
	x := newIPFIXReader(t, store)
	x.read(messageOf(0, defineSet(elements(256, 0, "400/2", "9.77/v"))))
	r := x.read(messageOf(0, dataOf(256, "0102 03 aabbcc", "0304 00")))
	if len(r) != 2 {
		t.Fatalf("%d reports", len(r))
	}
	line := string(reportjson.Append(nil, 1, r[0]))
	if want := `"kind":"record","template":256,"observation_domain":7,"elements":[{"id":400,"length":2,"value":"0x0102"},{"id":77,"pen":9,"length":3,"value":"0xaabbcc"}]`; !strings.Contains(line, want) {
		t.Error(line)
	}
	s := store.Status()[0]
	if len(s.Tallies) != 1 || s.Tallies[0] != (ipfix.Tally{Version: 10, ID: 256, Domain: 7, Kind: ipfix.Other, Records: 2}) {
		t.Errorf("%+v", s)
	}
	// Another exporter's data of that template are reported as waiting.
	r = x.read(messageOf(1, dataOf(999, "0102")))
	if line = string(reportjson.Append(nil, 1, r[0])); !strings.Contains(line, `"template":999,"observation_domain":7,"waiting":true,"unknown":"0x0102"`) {
		t.Error(line)
	}
}

// Every record has a number once it is known that numbers count records; those of messages count for the first report.
func TestIPFIXNumbers(t *testing.T) {
	x := newIPFIXReader(t, newStore(ipfix.Options{}))
	x.read(messageOf(100, defineSet(elements(256, 0, "400/2"))))
	for i := range uint32(10) {
		r := x.read(messageOf(100+3*i, dataOf(256, "0001", "0002", "0003")))
		for k, r := range r {
			if has := r.Has&decode.HasSeq != 0; i > 3 != has && i != 3 || has && (r.Seq != 100+3*i+uint32(k) || !r.FirstOfGroup || r.SeqBits != 32) {
				t.Errorf("message %d, record %d: %+v", i, k, r)
			}
		}
	}
	x = newIPFIXReader(t, newStore(ipfix.Options{}))
	x.read(messageOf(0, defineSet(elements(256, 0, "400/2"))))
	for i := range uint32(10) {
		r := x.read(messageOf(1+i, dataOf(256, "0001", "0002", "0003")))
		if has := r[0].Has&decode.HasSeq != 0; has && (r[0].Seq != 1+i || !r[0].FirstOfGroup || r[1].FirstOfGroup) || i > 4 && !has {
			t.Errorf("message %d: %+v", i, r[0])
		}
	}
}

func FuzzIPFIXReports(f *testing.F) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for i := range 12 {
		version := uint16(9 + i%2)
		d := plain.RandomTemplate(rnd, version)
		f.Add(plain.RandomIPFIX(rnd, version, 1, nil), plain.RandomIPFIX(rnd, version, 2, []*decode.Template{d}))
	}
	f.Add(messageOf(0, defineSet(elements(384, 0, juniperElements...))), messageOf(0, dataOf(384, juniperRecord(195, udpFrame(nil, Profile{}, 53)))))
	f.Add(broadcomMessage(ipfix.Tomahawk5, 9, "00000001", "1a00", udpFrame(nil, Profile{}, 53)), []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		d := New(Profile{IPFIX: true, Units: decode.DefaultUnits})
		var b decode.Batch
		for _, payload := range [][]byte{one, two, one, two} {
			b.Reset()
			if n := d.Datagram(&b, decode.Addr{}, payload, 7); n != len(b.Reports) || n == 0 {
				t.Fatalf("%d reports, and says %d", len(b.Reports), n)
			}
			sane(t, &b, len(payload))
			for _, r := range b.Reports {
				reportjson.Append(nil, 1, r)
			}
		}
	})
}
