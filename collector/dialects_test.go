package collector

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/ingest"
)

// recorded gives the report datagrams of a recording as a socket would, from one address, some time apart.
func recorded(t *testing.T, name string, n int, from netip.Addr, start, apart int64) (frames []ingest.Frame) {
	t.Helper()
	b, err := os.ReadFile("../decode/testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	var payloads [][]byte
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		payloads = append(payloads, b[16+42:16+n])
		b = b[16+n:]
	}
	for i := range n {
		data := payloads[i%len(payloads)]
		frames = append(frames, ingest.Frame{
			Data: data, Length: len(data), Link: ingest.LinkUDP, Time: start + int64(i)*apart, Src: netip.AddrPortFrom(from, 5000),
		})
	}
	return frames
}

var switch5 = netip.MustParseAddr("10.0.0.5")

// An exporter that profile auto cannot read is read in its dialect from the moment that it is known, what was dropped before
// is read again as far as it was kept, and every report is somewhere.
func TestAdoptDialect(t *testing.T) {
	for _, c := range []struct {
		file, dialect   string
		stored, dropped uint64 // of the first 100
		again           int
	}{
		{"onos-int10-reports", "onos", 100, 0, 0},
		{"geant-int10-reports", "geant", 100, 0, 0},
		{"hostint05-reports", "host-int", 0, 100, 48},
	} {
		t.Run(c.dialect, func(t *testing.T) {
			e := newEngine(t, nil, Options{})
			p := e.pipeline
			p.workers = []*worker{{block: true, out: make([]*work, len(p.shards))}}
			router, err := newRouter(&e.cfg.Exporters)
			if err != nil {
				t.Fatal(err)
			}
			w := p.workers[0]
			w.decoder.Store(router())
			p.run()
			frames := recorded(t, c.file, 300, switch5, 1e18, 4e7)
			p.handle(w, frames[:50])
			p.handle(w, frames[50:100])
			e.stepDialects(frames[99].Time)
			list := e.dialectFindings()
			if len(list) != 1 || list[0].State != guess.Adopted || list[0].Profiles[0] != c.dialect || list[0].Unread != 100 || list[0].Stored != c.stored {
				t.Fatalf("findings %+v", list)
			}
			p.handle(w, frames[100:200])
			p.handle(w, frames[200:])
			if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != c.dialect {
				t.Errorf("the worker reads with %s", got)
			}
			again := p.dialects.reread.Load()
			if again > 48 || (again > 0) != (c.again > 0) {
				t.Errorf("%d read again, want some of the samples: %d", again, c.again)
			}
			p.close()
			paths := 0
			for _, s := range p.shards {
				for _, f := range s.state.Flows(100) {
					if f.PathID != 0 {
						paths++
					}
				}
			}
			if paths == 0 {
				t.Error("no flow has a path")
			}
			b := e.ledger.Snapshot()[0]
			if b.Received != 300+again || b.Unsettled != 0 || b.Dropped["malformed"] != int64(c.dropped) || b.InFlight["window"] != int64(300+again-c.dropped) {
				t.Errorf("%d again, ledger %s", again, LedgerLine(&b))
			}
			if s := e.Status(); len(s.Recognised) != 1 || s.Recognised[0].State != "adopted" || len(s.Problems) != 0 {
				t.Errorf("status %+v, problems %q", s.Recognised, s.Problems)
			}
		})
	}
}

// Who wants to decide himself is told, and nothing changes; who does not want to know is not told either.
func TestSuggestDialect(t *testing.T) {
	for _, mode := range []string{"suggest", "off"} {
		e := newEngine(t, func(cfg *program) { cfg.Exporters.Recognise = mode }, Options{})
		p := e.pipeline
		router, err := newRouter(&e.cfg.Exporters)
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{block: true, out: make([]*work, len(p.shards))}
		w.decoder.Store(router())
		p.workers = []*worker{w}
		p.run()
		frames := recorded(t, "onos-int10-reports", 200, switch5, 1e18, 4e7)
		p.handle(w, frames)
		e.stepDialects(frames[199].Time)
		p.close()
		if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "auto" {
			t.Errorf("%s: the worker reads with %s", mode, got)
		}
		s := e.Status()
		want := "dialect: 200 reports of 10.0.0.5 carry INT that profile auto cannot read; onos explains all of it"
		if mode == "off" && len(s.Problems) != 0 || mode == "suggest" && !slices.Equal(s.Problems, []string{want}) {
			t.Errorf("%s: problems %q", mode, s.Problems)
		}
	}
}

// What somebody chose for an address goes before what was adopted, also when he chooses later.
func TestChosenDialect(t *testing.T) {
	e := newEngine(t, nil, Options{})
	p := e.pipeline
	router, err := newRouter(&e.cfg.Exporters)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{block: true, out: make([]*work, len(p.shards))}
	w.decoder.Store(router())
	p.workers = []*worker{w}
	p.run()
	defer p.close()
	frames := recorded(t, "onos-int10-reports", 300, switch5, 1e18, 4e7)
	p.handle(w, frames[:100])
	e.stepDialects(frames[99].Time)
	p.handle(w, frames[100:101])
	if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "onos" {
		t.Fatalf("the worker reads with %s", got)
	}
	cfg := e.cfg
	cfg.Exporters.Profiles = []ExporterProfile{{Prefix: "10.0.0.0/24", Profile: "fabric-tna"}}
	if err := e.Reload(cfg, Analysis{}); err != nil {
		t.Fatal(err)
	}
	p.handle(w, frames[101:200])
	e.stepDialects(frames[199].Time)
	p.handle(w, frames[200:])
	if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "fabric-tna" {
		t.Errorf("the worker reads with %s", got)
	}
}

// A sender that profiles do not name, and cannot read, costs bounded memory of a batch.
func TestDoubtsBounded(t *testing.T) {
	e := newEngine(t, nil, Options{})
	p := e.pipeline
	router, err := newRouter(&e.cfg.Exporters)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{block: true, out: make([]*work, len(p.shards))}
	w.decoder.Store(router())
	p.workers = []*worker{w}
	p.run()
	defer p.close()
	var frames []ingest.Frame
	for i := range 5000 {
		a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		frames = append(frames, ingest.Frame{Data: make([]byte, 100), Length: 100, Link: ingest.LinkUDP, Time: 1e18 + int64(i), Src: netip.AddrPortFrom(a, 1)})
	}
	p.handle(w, frames)
	if n := len(w.doubts.senders); n > mostSenders {
		t.Errorf("%d senders in a batch", n)
	}
	e.stepDialects(2e18)
}

// Dialects of the settings are used by name, say what is wrong with them, and are tried on what nobody reads.
func TestDialectSettings(t *testing.T) {
	e := Exporters{Profile: "my-switch", Recognise: "adopt", Dialects: []Dialect{
		{Name: "my-switch", Base: "onos", DSCP: 0x2a, DSCPMask: 0x3f, Units: DialectUnits{QueueBytes: 80}, Wrong: []string{"latency"},
			DropReasons: []DialectReason{{29, "no route"}}, Domains: []DialectDomain{{ID: 0xabcd, SourceWords: []uint8{1, 2}}}},
		{Name: "my-other", Base: "my-switch", Without: []string{"int-version-0"}, Ports: []uint16{5000}, ReportPorts: []uint16{6000}},
	}}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := e.Lookup("my-other")
	if err != nil || p.INT.Version0 || !p.Report.FlagsFirst || p.Units.QueueBytes != 80 || p.Units.TimeNS != 1000 || p.INT.DSCP != 0x2a ||
		!slices.Equal(p.ReportPorts, []uint16{6000}) || !slices.Equal(p.INT.Ports, []uint16{5000}) || p.Units.DropReason(29) != "no route" ||
		len(p.INT.Domains) != 1 || p.INT.Domains[0].SourceWords[1] != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if n := len(e.Describe()); n != len(e.ProfileNames()) {
		t.Errorf("%d profiles are described, of %d", n, len(e.ProfileNames()))
	}
	list, err := e.Candidates()
	if err != nil || list[len(list)-1].Name != "my-other" {
		t.Errorf("candidates: %v", err)
	}
	if base, _ := (&Exporters{}).Lookup("onos"); base.Units.QueueBytes != 1 || base.INT.DSCP != 0x17 {
		t.Error("the base was changed")
	}
	for _, c := range []struct {
		change func(d *Dialect)
		want   string
	}{
		{func(d *Dialect) { d.Name = "My Switch" }, "name: \"My Switch\" is no name"},
		{func(d *Dialect) { d.Name = "geant" }, "dialects[0].name: there is a profile \"geant\" already"},
		{func(d *Dialect) { d.Base = "my-other" }, "dialects[0].base: \"my-other\" is none of auto"},
		{func(d *Dialect) { d.With = []string{"flags"} }, "with[0]: \"flags\" is none of report-flags-first"},
		{func(d *Dialect) { d.With, d.Without = []string{"int-tunnels"}, []string{"int-tunnels"} }, "without[0]: \"int-tunnels\" is in the list with"},
		{func(d *Dialect) { d.DSCP, d.DSCPMask = 0x20, 0x1f }, "dscp: 32 has bits outside of dscp_mask 31"},
		{func(d *Dialect) { d.Wrong = []string{"speed"} }, "wrong_fields: \"speed\" is none of node_id"},
		{func(d *Dialect) { d.INT = []string{"0.5"} }, "dialects[0]: int-version-0 and INT 0.5 exclude each other"},
		{func(d *Dialect) { d.Domains[0].SourceWords = make([]uint8, 17) }, "domains[0].source_words: has 17 entries"},
		{func(d *Dialect) { d.Base = "int-path" }, ""},
	} {
		d := e.Dialects[0]
		d.Domains = slices.Clone(d.Domains)
		c.change(&d)
		x := Exporters{Profile: "auto", Dialects: []Dialect{d}}
		err := fmt.Sprint(d.Validate(), "\n", x.Validate())
		if c.want != "" && !strings.Contains(err, c.want) || c.want == "" && err != "<nil>\n<nil>" {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}
