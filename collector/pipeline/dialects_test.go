package pipeline

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/ingest"
)

// recorded returns the report datagrams of a recording as a socket would, from one address, some time apart.
func recorded(t *testing.T, name string, n int, from netip.Addr, start, apart int64) (frames []ingest.Frame) {
	t.Helper()
	b, err := os.ReadFile("../../decode/testdata/" + name + ".pcap")
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

// An exporter that profile auto cannot read is read in its dialect from the moment that it is known. Reports that were
// dropped before are read again as far as they were kept, and every report is somewhere.
func TestAdoptDialect(t *testing.T) {
	for _, c := range []struct {
		file, dialect   string
		stored, dropped uint64 // of the first 100
		second          int
	}{
		{"onos-int10-reports", "onos", 100, 0, 0},
		{"geant-int10-reports", "geant", 100, 0, 0},
		{"hostint05-reports", "host-int", 0, 100, 48},
	} {
		t.Run(c.dialect, func(t *testing.T) {
			p, l := newTest(t, Config{Block: true, Sources: workers(1)}, exporters.DefaultConfig())
			w := p.workers[0]
			p.Start()
			frames := recorded(t, c.file, 300, switch5, 1e18, 4e7)
			p.Handle(w, frames[:50])
			p.Handle(w, frames[50:100])
			p.Dialects.Step(frames[99].Time, known)
			list := p.Dialects.Findings()
			if len(list) != 1 || list[0].State != guess.Adopted || list[0].Profiles[0] != c.dialect || list[0].Unread != 100 || list[0].Stored != c.stored {
				t.Fatalf("findings %+v", list)
			}
			p.Handle(w, frames[100:200])
			p.Handle(w, frames[200:])
			if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != c.dialect {
				t.Errorf("the worker reads with %s", got)
			}
			second := p.Dialects.Reread()
			if second > 48 || (second > 0) != (c.second > 0) {
				t.Errorf("%d read again, want some of the samples: %d", second, c.second)
			}
			p.Close()
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
			b := l.Snapshot()[0]
			if b.Received != 300+second || b.Unsettled != 0 || b.Dropped["malformed"] != int64(c.dropped) || b.InFlight["window"] != int64(300+second-c.dropped) {
				t.Errorf("%d again, ledger %s", second, ledger.Line(&b))
			}
			if s := summary.Dialects(p.Dialects.Findings()); len(s) != 1 || s[0].State != "adopted" || len(summary.DialectProblems(s)) != 0 {
				t.Errorf("%+v, problems %q", s, summary.DialectProblems(s))
			}
		})
	}
}

// For an operator that decides, the dialect is logged and nothing changes; where recognition is off, it is not logged either.
func TestSuggestDialect(t *testing.T) {
	for _, mode := range []string{"suggest", "off"} {
		cfg := exporters.DefaultConfig()
		cfg.Recognise = mode
		p, _ := newTest(t, Config{Block: true, Sources: workers(1)}, cfg)
		w := p.workers[0]
		p.Start()
		frames := recorded(t, "onos-int10-reports", 200, switch5, 1e18, 4e7)
		p.Handle(w, frames)
		p.Dialects.Step(frames[199].Time, known)
		p.Close()
		if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "auto" {
			t.Errorf("%s: the worker reads with %s", mode, got)
		}
		problems := summary.DialectProblems(summary.Dialects(p.Dialects.Findings()))
		want := "dialect: 200 reports of 10.0.0.5 carry INT that profile auto cannot read; onos explains all of it"
		if mode == "off" && len(problems) != 0 || mode == "suggest" && !slices.Equal(problems, []string{want}) {
			t.Errorf("%s: problems %q", mode, problems)
		}
	}
}

// The operator's dialect for an address overrides an adopted one, also when it comes later.
func TestChosenDialect(t *testing.T) {
	p, _ := newTest(t, Config{Block: true, Sources: workers(1)}, exporters.DefaultConfig())
	w := p.workers[0]
	p.Start()
	defer p.Close()
	frames := recorded(t, "onos-int10-reports", 300, switch5, 1e18, 4e7)
	p.Handle(w, frames[:100])
	p.Dialects.Step(frames[99].Time, known)
	p.Handle(w, frames[100:101])
	if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "onos" {
		t.Fatalf("the worker reads with %s", got)
	}
	cfg := exporters.DefaultConfig()
	cfg.Profiles = []exporters.Profile{{Prefix: "10.0.0.0/24", Profile: "fabric-tna"}}
	router, err := cfg.Routers()
	if err != nil {
		t.Fatal(err)
	}
	candidates, err := cfg.Candidates()
	if err != nil {
		t.Fatal(err)
	}
	p.Reload(router, candidates)
	p.Handle(w, frames[101:200])
	p.Dialects.Step(frames[199].Time, known)
	p.Handle(w, frames[200:])
	if got := w.decoder.Load().Profile(decode.AddrFrom(switch5)).Name; got != "fabric-tna" {
		t.Errorf("the worker reads with %s", got)
	}
}

// A sender that profiles do not name, and cannot read, costs bounded memory of a batch.
func TestDoubtsBounded(t *testing.T) {
	p, _ := newTest(t, Config{Block: true, Sources: workers(1)}, exporters.DefaultConfig())
	w := p.workers[0]
	p.Start()
	defer p.Close()
	var frames []ingest.Frame
	for i := range 5000 {
		a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		frames = append(frames, ingest.Frame{Data: make([]byte, 100), Length: 100, Link: ingest.LinkUDP, Time: 1e18 + int64(i), Src: netip.AddrPortFrom(a, 1)})
	}
	p.Handle(w, frames)
	if n := len(w.doubts.senders); n > mostSenders {
		t.Errorf("%d senders in a batch", n)
	}
	p.Dialects.Step(2e18, known)
}
