package demux

import (
	"bytes"
	"flag"
	"io"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

var update = flag.Bool("update", false, "write the table of profiles anew")

// TestFormatsPage holds the tables in docs/formats.md against the profiles.
func TestFormatsPage(t *testing.T) {
	const path = "../../docs/formats.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for _, table := range []struct {
		name  string
		write func(io.Writer) error
	}{{"profiles", WriteTable}, {"lies", WriteLies}, {"deviations", WriteDeviations}} {
		begin, end := "<!-- "+table.name+": written by make docs -->\n", "<!-- end of "+table.name+" -->\n"
		before, rest, found := strings.Cut(want, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			t.Fatalf("%s has no place for the table of %s", path, table.name)
		}
		var text bytes.Buffer
		if err := table.write(&text); err != nil {
			t.Fatal(err)
		}
		want = before + begin + "\n" + text.String() + "\n" + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("the tables in %s differ from what the program says; write them with: make docs", path)
	}
}

func TestDescribe(t *testing.T) {
	for _, d := range Describe() {
		var s strings.Builder
		if err := d.Write(&s); err != nil || d.About == "" || !strings.Contains(s.String(), d.About) {
			t.Errorf("%s: %v in\n%s", d.Name, err, s.String())
		}
	}
	p := profile(t, "fabric-tna")
	if got := p.Units.DropReason(29); got != "no route" {
		t.Errorf("drop reason 29 is %q", got)
	}
	p.Wrong, p.Units.QueueBytes = decode.HopLatency|decode.HopDeqOccupancy, 80
	p.INT.Domains = []intmd.Domain{{ID: 7}}
	d := p.Describe()
	if got := strings.Join(d.Wrong, " "); got != "latency deq_occupancy" || d.Units.String() != "ns, queue 80 bytes" || d.Deviations[0] != "INT 2.x: domain 0x0007" {
		t.Errorf("%+v", d)
	}
}

// Fields that are filled wrongly are absent, in reports and in packets of the network, and the rest stays.
func TestWrongFields(t *testing.T) {
	p := profile(t, "auto")
	p.Wrong = decode.HopLatency | decode.HopTxUtilization
	payload := datagrams()[1].payload
	var right, wrong decode.Batch
	New(profile(t, "auto")).Datagram(&right, exporter, payload, 7)
	d := New(p)
	d.Datagram(&wrong, exporter, payload, 7)
	frame := ether(t, ipv4(0, 17, udp(32766, payload)))
	d.Frame(&wrong, 1, frame, len(frame), 7)
	for _, r := range wrong.Reports {
		for i := range r.Hops {
			want := right.Reports[0].Hops[i]
			want.Latency = 0
			want.Has &^= decode.HopLatency
			if r.Hops[i] != want || want.Has == 0 {
				t.Errorf("hop %d: %+v, want %+v", i, r.Hops[i], want)
			}
		}
	}
	var b decode.Batch
	if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Datagram(&b, exporter, payload, 7) }); n != 0 {
		t.Errorf("%v allocations a datagram", n)
	}
}

// A router leaves out lies, and a decoder returns them as on the wire.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		file, profile string
		check         func(raw, got *decode.Report) bool
	}{
		{"geant-int10-reports", "geant", func(raw, got *decode.Report) bool {
			n := len(raw.Hops) - 1
			last, own := &raw.Hops[n], &got.Hops[n]
			ns, ok := got.Units.Latency(own)
			return last.Has&decode.HopLatency != 0 && uint64(last.Latency) == last.EgressTime/1000&0xffffffff && ok &&
				ns == last.EgressTime-last.IngressTime && own.Has&(decode.HopEgressIf|decode.HopTxUtilization) == 0 &&
				got.Hops[0].Has&(decode.HopLatency|decode.HopEgressIf) == decode.HopLatency|decode.HopEgressIf
		}},
		{"geant-int10-maxhop", "geant", func(raw, got *decode.Report) bool { // the sink added nothing
			n := len(raw.Hops) - 1
			return got.Hops[n].Has&decode.HopEgressIf != 0
		}},
		{"hostint05-reports", "host-int", func(raw, got *decode.Report) bool {
			_, ok := got.Units.Latency(&got.Hops[0])
			return raw.Kind == decode.KindDrop || raw.Hops[0].IngressTime == raw.Hops[0].EgressTime && !ok
		}},
		{"onos-int10-reports", "onos", func(raw, got *decode.Report) bool {
			return got.Hops[0].Has&(decode.HopTxUtilization|decode.HopLatency) == decode.HopLatency
		}},
		{"fabric-report05", "fabric-tna", func(raw, got *decode.Report) bool {
			return got.Hops[0].Has&decode.HopEgressIf != 0 == (raw.Hops[0].EgressIf != 0)
		}},
	} {
		p := profile(t, c.profile)
		d, rt := New(p), NewRouter(p, nil)
		var raw, got decode.Batch
		for i, f := range capture(t, "../testdata/"+c.file+".pcap") {
			raw.Reset()
			got.Reset()
			d.Frame(&raw, 1, f.data, f.length, f.time)
			rt.Frame(&got, 1, f.data, f.length, f.time)
			if len(raw.Reports) != 1 || len(got.Reports) != 1 || !c.check(raw.Reports[0], got.Reports[0]) {
				t.Fatalf("%s, frame %d: %+v, raw %+v", c.profile, i+1, got.Reports[0].Hops, raw.Reports[0].Hops)
			}
		}
		f := capture(t, "../testdata/"+c.file+".pcap")[0]
		if n := testing.AllocsPerRun(100, func() { got.Reset(); rt.Frame(&got, 1, f.data, f.length, f.time) }); n != 0 {
			t.Errorf("%s: %v allocations a frame", c.profile, n)
		}
	}
}

// Every name of a deviation turns one thing on and off.
func TestDeviate(t *testing.T) {
	names, about := DeviationNames()
	for i, name := range names {
		p := Profile{Name: "x"}
		if !p.Deviate(name, true) || about[i] == "" {
			t.Errorf("no deviation %s", name)
		}
		if reflect.DeepEqual(p, Profile{Name: "x"}) {
			t.Errorf("%s does nothing", name)
		}
		if p.Deviate(name, false); !reflect.DeepEqual(p, Profile{Name: "x"}) {
			t.Errorf("%s stays", name)
		}
	}
	if (&Profile{}).Deviate("int-sideways", true) {
		t.Error("a deviation that does not exist is taken")
	}
}

// The adopted profile of an address precedes all others, for that address alone, and can be removed.
func TestAdopted(t *testing.T) {
	rt := NewRouter(profile(t, "auto"), []Route{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Profile: profile(t, "fabric-tna")}})
	one, other := decode.AddrFrom4([]byte{10, 0, 0, 1}), decode.AddrFrom4([]byte{10, 0, 0, 2})
	if rt.Profile(one).Name != "fabric-tna" {
		t.Fatal(rt.Profile(one).Name)
	}
	rt.Adopt(&Adopted{Profiles: []Profile{profile(t, "onos")}, Of: map[decode.Addr]int{one: 0}})
	if rt.Profile(one).Name != "onos" || rt.Profile(other).Name != "fabric-tna" {
		t.Errorf("%s, %s", rt.Profile(one).Name, rt.Profile(other).Name)
	}
	rt.Adopt(nil)
	if rt.Profile(one).Name != "fabric-tna" {
		t.Error(rt.Profile(one).Name)
	}
}
