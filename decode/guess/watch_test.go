package guess

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
)

// stream returns n datagrams of a recording from one address, some time apart, over and over.
func stream(t testing.TB, file string, src decode.Addr, n int, start, apart int64) (list []Sample) {
	t.Helper()
	from := datagrams(pcap(t, file))
	if len(from) == 0 {
		t.Fatalf("%s has no datagrams", file)
	}
	for i := range n {
		x := from[i%len(from)]
		x.Src, x.Time = src, start+int64(i)*apart
		list = append(list, x)
	}
	return list
}

// together puts streams in the order of time.
func together(streams ...[]Sample) []Sample {
	list := slices.Concat(streams...)
	slices.SortStableFunc(list, func(a, b Sample) int { return int(a.Time/1e3 - b.Time/1e3) })
	return list
}

const (
	onosFile   = "testdata/onos-int10-reports"
	geantFile  = "testdata/geant-int10-reports"
	fabricFile = "testdata/fabric-report05" // auto reads it
	laofanFile = "../internal/plain/testdata/intmd21-3sw-reports"
)

var (
	exporter = decode.AddrFrom4([]byte{10, 0, 0, 5})
	neighbor = decode.AddrFrom4([]byte{10, 0, 0, 6})
)

// Exporters that speak different dialects do not disturb each other.
func TestManyExporters(t *testing.T) {
	third := decode.AddrFrom4([]byte{10, 0, 0, 7})
	f := follow(t, true)
	f.frames(together(stream(t, onosFile, exporter, 200, 1e9, 3e7), stream(t, geantFile, neighbor, 200, 1e9, 3e7), stream(t, fabricFile, third, 200, 1e9, 3e7)))
	a := f.watch.Adoptions()
	if a == nil || len(a.Of) != 2 || a.Profiles[a.Of[exporter]].Name != "onos" || a.Profiles[a.Of[neighbor]].Name != "geant" {
		t.Fatalf("adopted %v", a)
	}
	if p := f.router.Profile(third); p.Name != "auto" {
		t.Errorf("who auto reads has profile %s", p.Name)
	}
}

// Frames that auto reads keep their reading, for any frames of other senders under their address.
func TestForgedBesideReadable(t *testing.T) {
	for _, forged := range []int{16, 200, 2000} {
		f := follow(t, true)
		apart := int64(2e9) / int64(forged)
		changes := f.frames(together(stream(t, fabricFile, exporter, 60, 1e9, 1e8), stream(t, onosFile, exporter, forged, 15e8, apart)))
		if len(changes) > 0 {
			t.Errorf("%d forged reports made it speak %s", forged, changes[0].Profile.Name)
		}
	}
	// It reported before, too, and was silent while it was forged.
	f := follow(t, true)
	f.known = func(decode.Addr) uint64 { return 1000 }
	f.frames(stream(t, onosFile, exporter, 400, 1e9, 3e7))
	got := f.watch.Findings()
	if len(got) != 1 || got[0].State != Mixed || f.watch.Adoptions() != nil {
		t.Errorf("%v, want a mixed sender", got)
	}
}

// An adopted dialect stays as long as the sender uses it. It is given up after the sender has long used another one
// alone.
func TestGiveUp(t *testing.T) {
	f := follow(t, true)
	f.frames(stream(t, onosFile, exporter, 200, 1e9, 3e7))
	if p := f.router.Profile(exporter); p.Name != "onos" {
		t.Fatalf("profile %s", p.Name)
	}
	// A sender forges it for minutes, a hundred times as often as the exporter reports.
	const minutes = 5
	changes := f.frames(together(stream(t, onosFile, exporter, 60*minutes, 20e9, 1e9), stream(t, geantFile, exporter, 6000*minutes, 20e9, 1e7)))
	if len(changes) > 0 {
		t.Fatalf("forged reports made it speak %s", changes[0].Profile.Name)
	}
	// It was changed for another switch.
	start := f.now + 1e9
	changes = f.frames(stream(t, geantFile, exporter, 3000, start, 5e7))
	if len(changes) != 1 || changes[0].Profile == nil || changes[0].Profile.Name != "geant" {
		t.Fatalf("changes %v", changes)
	}
	if took := changes[0].Samples[0].Time - start; took < spanAgainst { // to the begin of the last round
		t.Errorf("given up after %d s", took/1e9)
	}
	// And for one that needs no dialect.
	changes = f.frames(stream(t, fabricFile, exporter, 3000, f.now+1e9, 5e7))
	if len(changes) != 1 || changes[0].Profile != nil || f.watch.Adoptions() != nil {
		t.Fatalf("changes %v, adoptions %v", changes, f.watch.Adoptions())
	}
	if f.router.Profile(exporter).Name != "auto" {
		t.Error("the router still has it")
	}
}

// A profile that the operator chose is kept.
func TestChosen(t *testing.T) {
	p, _ := demux.Lookup("fabric-tna")
	f := follow(t, true)
	f.home, f.router = &p, demux.NewRouter(p, nil)
	f.frames(stream(t, onosFile, exporter, 300, 1e9, 3e7))
	got := f.watch.Findings()
	if len(got) != 1 || got[0].State != Suggested || f.watch.Adoptions() != nil {
		t.Errorf("%v, want a suggestion", got)
	}
}

// Profiles with the same result for all samples, but other units, are both named.
func TestTied(t *testing.T) {
	onos, _ := demux.Lookup("onos")
	other := onos
	other.Name, other.Units.QueueBytes = "my-switch", 80
	f := &follower{watch: NewWatch([]demux.Profile{*auto(t), onos, other}, true), router: demux.NewRouter(*auto(t), nil), home: auto(t)}
	f.frames(stream(t, onosFile, exporter, 300, 1e9, 3e7))
	got := f.watch.Findings()
	if len(got) != 1 || got[0].State != Tied || !slices.Equal(got[0].Profiles, []string{"onos", "my-switch"}) || f.watch.Adoptions() != nil {
		t.Fatalf("%v", got)
	}
	want := "300 reports of 10.0.0.5 carry INT that profile auto cannot read; onos and my-switch explain all of it alike: choose one in exporters.profiles"
	if got[0].String() != want {
		t.Errorf("%s, want\n%s", &got[0], want)
	}
}

// One burst is no proof.
func TestBurst(t *testing.T) {
	f := follow(t, true)
	if changes := f.frames(stream(t, onosFile, exporter, 5000, 1e9, 1e5)); len(changes) > 0 {
		t.Errorf("a burst of half a second made it speak %s", changes[0].Profile.Name)
	}
}

// A forger of many addresses takes bounded memory, and a real exporter is recognised among them.
func TestManySenders(t *testing.T) {
	f := follow(t, true)
	var noise []Sample
	junk := make([]byte, 4000)
	for i := range 20000 {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(i)*7919)
		noise = append(noise, Sample{Link: Datagram, Src: decode.AddrFrom4(a[:]), Data: junk, Length: len(junk), Time: 1e9 + int64(i)*2e5})
	}
	f.frames(together(noise, stream(t, onosFile, exporter, 130, 1e9, 3e7)))
	kept := 0
	for _, s := range f.watch.senders {
		for _, x := range s.samples {
			kept += len(x.Data)
		}
	}
	if len(f.watch.senders) > maxSenders || kept > maxSenders*maxSamples*maxBytes {
		t.Errorf("%d senders with %d bytes", len(f.watch.senders), kept)
	}
	if p := f.router.Profile(exporter); p.Name != "onos" {
		t.Errorf("the exporter has profile %s", p.Name)
	}
}

// Packets that no profile explains are reported as such.
func TestUnknown(t *testing.T) {
	list := stream(t, onosFile, exporter, 100, 1e9, 3e7)
	for i := range list {
		list[i].Data = slices.Clone(list[i].Data)
		list[i].Data[0] = 0x50
	}
	f := follow(t, true)
	f.frames(list)
	got := f.watch.Findings()
	if len(got) != 1 || got[0].String() != "100 reports of 10.0.0.5 cannot be read by profile auto, and no other profile explains them" {
		t.Errorf("%v", got)
	}
}

// A watch continues with the adoptions of another one from a file. Its own adoptions are added to them, and it gives
// up an inherited one like its own.
func TestInherit(t *testing.T) {
	before := follow(t, true)
	before.frames(stream(t, onosFile, exporter, 200, 1e9, 3e7))
	f := follow(t, true)
	f.watch.Inherit(before.watch)
	f.router.Adopt(f.watch.Adoptions())
	f.frames(stream(t, geantFile, neighbor, 200, 1e15, 3e7)) // the file is old
	a := f.watch.Adoptions()
	if a == nil || len(a.Of) != 2 || a.Profiles[a.Of[exporter]].Name != "onos" || a.Profiles[a.Of[neighbor]].Name != "geant" {
		t.Fatalf("adopted %v", a)
	}
	if got := f.watch.Findings(); len(got) != 2 || got[0].State != Adopted || got[0].Unread == 0 {
		t.Errorf("findings %v", got)
	}
	changes := f.frames(stream(t, fabricFile, exporter, 3000, f.now+1e9, 5e7))
	if len(changes) != 1 || changes[0].Src != exporter || changes[0].Profile != nil {
		t.Errorf("changes %v", changes)
	}
}

// The error with sFlow 4 is its agent's, for any kind of port.
func TestSFlow4IsNamed(t *testing.T) {
	auto, _ := demux.Lookup("auto")
	for _, only := range []demux.Kind{demux.Anything, demux.ReportsOnly, demux.SFlowOnly} {
		w := NewWatch(Builtin(), true)
		x := Sample{Link: Datagram, Data: []byte{0, 0, 0, 4, 0, 0, 0, 1}}
		w.Foreign(decode.AddrFrom4([]byte{10, 0, 0, 9}), decode.SFlow4, &auto, Port{Number: 6343, Only: only}, 12, &x)
		list := w.Findings()
		const want = `12 datagrams of 10.0.0.9 are sFlow 4 or 2: only version 5 is read: set it at the agent ("sflow version 5" or the like)`
		if len(list) != 1 || list[0].String() != want {
			t.Errorf("%v: %v", only, list)
		}
	}
}

// INT in GRE under a number of its own is named beside the dialect of an exporter that has one, in any amount.
func TestHiddenBesideAdopted(t *testing.T) {
	inside, err := testkit.Vector("int21-gre")
	if err != nil {
		t.Fatal(err)
	}
	frame := packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4)
	frame = append(packet.AppendIPv4(frame, &packet.IPv4{TTL: 60, Proto: packet.ProtoGRE, Src: [4]byte{10, 0, 0, 5}, Dst: [4]byte{10, 0, 2, 2}}, len(inside)), inside...)
	for _, n := range []int{3, 400} {
		f := follow(t, true)
		f.frames(stream(t, laofanFile, exporter, 200, 1e9, 3e7))
		before := f.watch.Findings()
		if p := f.router.Profile(exporter); p.Name != "p4-int-laofan" || len(before) != 1 {
			t.Fatalf("profile %s, findings %v", p.Name, before)
		}
		start := f.now + 1e9
		var list []Sample
		for i := range n {
			list = append(list, Sample{Link: packet.LinkEthernet, Src: exporter, Data: frame, Length: len(frame), Time: start + int64(i)*1e9})
		}
		if changes := f.frames(list); len(changes) > 0 {
			t.Errorf("%d frames made it speak %s", n, changes[0].Profile.Name)
		}
		f.watch.Finish()
		got := f.watch.Findings()
		if len(got) != 2 || got[0].String() != before[0].String() {
			t.Fatalf("%d frames: %v, want %v and the number", n, got, before)
		}
		want := fmt.Sprintf("%d reports of 10.0.0.5 carry INT in GRE protocol 0x4569, where profile p4-int-laofan looks for none; p4-int-laofan explains all of it: "+
			"set gre_protocol: 0x4569 in a dialect that has it as its base", n)
		if got[1].String() != want || got[1].GRE != 0x4569 || got[1].State == Adopted {
			t.Errorf("%s, want\n%s", &got[1], want)
		}
	}
}
