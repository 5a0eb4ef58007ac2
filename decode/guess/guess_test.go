package guess

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// pcap reads a classic capture of Ethernet frames.
func pcap(t testing.TB, file string) (list []Sample) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", file+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	for b = b[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		list = append(list, Sample{
			Link: 1, Data: b[16 : 16+n : 16+n], Length: int(le.Uint32(b[12:])), Time: int64(le.Uint32(b))*1e9 + int64(le.Uint32(b[4:]))*1e3,
		})
		b = b[16+n:]
	}
	if len(list) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return list
}

// captures are recordings of public programs, with the profile that reads what auto does not; "" is none.
var captures = []struct{ file, profile string }{
	{"testdata/fabric-report05", ""},
	{"testdata/geant-int10-maxhop", "geant"},
	{"testdata/geant-int10-network", "geant"},
	{"testdata/geant-int10-reports", "geant"},
	{"testdata/hostint05-network", "host-int"},
	{"testdata/hostint05-reports", "host-int"},
	{"testdata/int05-in-report05", "prometheus-exporter"},
	{"testdata/onos-int10-network.auto", "onos"},
	{"testdata/onos-int10-network", "onos"},
	{"testdata/onos-int10-reports", "onos"},
	{"testdata/postcard-reports", "postcard-braine"},
	{"ioam/testdata/ioam6-linux", ""},
	{"ioam/testdata/ioam6-linux-inside", ""},
	{"srint/testdata/int-path", "int-path"},
	{"srint/testdata/int-probe", ""},
	{"../internal/plain/testdata/geant-int10-3sw-after-sink", ""},
	{"../internal/plain/testdata/intmd20-elav-4sw-before-sink", "p4-int-elavinal"},
	{"../internal/plain/testdata/intmd21-3sw-before-sink", ""},
	{"../internal/plain/testdata/intmd21-3sw-reports", "p4-int-laofan"},
	{"../internal/plain/testdata/intprobe-ring5", ""},
	{"../internal/plain/testdata/onos-int10-4sw-iperf-before-sink", "onos"},
	{"../internal/plain/testdata/onos-int10-4sw-iperf-reports", "onos"},
	{"../internal/plain/testdata/pint-path12", "pint-mininet"},
}

func auto(t testing.TB) *demux.Profile {
	t.Helper()
	p, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("there is no profile auto")
	}
	return &p
}

// follower passes frames to a watch as a collector does, which reads them with the adopted profiles.
type follower struct {
	watch  *Watch
	router *demux.Router
	home   *demux.Profile
	batch  decode.Batch
	now    int64
	known  func(decode.Addr) uint64
}

func follow(t testing.TB, adopt bool) *follower {
	p := auto(t)
	return &follower{watch: NewWatch(Builtin(), adopt), router: demux.NewRouter(*p, nil), home: p}
}

func (f *follower) frames(list []Sample) (changes []Change) {
	for _, x := range list {
		f.batch.Reset()
		if x.Link == Datagram {
			f.router.DatagramCut(&f.batch, x.Src, x.Data, x.Length, x.Time)
		} else {
			f.router.Frame(&f.batch, x.Link, x.Data, x.Length, x.Time)
		}
		f.watch.Look(f.router.Profile, x, f.batch.Reports)
		f.now = max(f.now, x.Time)
		changes = append(changes, f.step()...)
	}
	return changes
}

func (f *follower) step() []Change {
	changes := f.watch.Step(f.now, func(decode.Addr) *demux.Profile { return f.home }, f.known)
	if len(changes) > 0 {
		f.router.Adopt(f.watch.Adoptions())
	}
	return changes
}

// names returns the profiles that are named, without repetition.
func names(list []Finding) (out []string) {
	for i := range list {
		for _, p := range list[i].Profiles {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// datagrams are the UDP frames in list to their most frequent port, as a socket returns them.
func datagrams(list []Sample) (out []Sample) {
	port := commonPort(list)
	for _, x := range list {
		if src, ok := Sender(x.Link, x.Data, x.Length); ok && udpPort(&x) == port && len(x.Data) > 42 {
			out = append(out, Sample{Link: Datagram, Src: src, Data: x.Data[42:], Length: x.Length - 42, Time: x.Time})
		}
	}
	return out
}

// Every recording is recognised, whole and cut off after any frame, and never taken for another.
func TestCaptures(t *testing.T) {
	for _, c := range captures {
		t.Run(c.file, func(t *testing.T) {
			list := pcap(t, c.file)
			for n := 1; n <= len(list); n += 1 + n/16 {
				f := follow(t, true)
				f.frames(list[:n])
				f.watch.Finish()
				got := f.watch.Findings()
				for _, p := range names(got) {
					if p != c.profile {
						t.Fatalf("%d frames: %s is named, want %q", n, p, c.profile)
					}
				}
			}
			f := follow(t, true)
			f.frames(list)
			f.watch.Finish()
			got := f.watch.Findings()
			if c.profile == "" && len(got) > 0 {
				t.Errorf("%v, want nothing", &got[0])
			}
			if c.profile != "" && !slices.Equal(names(got), []string{c.profile}) {
				t.Errorf("%q named, want %s", names(got), c.profile)
			}
			for i := range got {
				t.Log(got[i].String())
			}
		})
	}
}

// Recordings that are long enough make an exporter speak the dialect, on a socket too, and from then on it is read.
func TestAdopt(t *testing.T) {
	for _, c := range []struct {
		file, profile string
		reports       bool
	}{
		{"testdata/onos-int10-reports", "onos", true},
		{"testdata/geant-int10-reports", "geant", true},
		{"testdata/geant-int10-maxhop", "geant", true},
		{"testdata/hostint05-reports", "host-int", true},
		{"testdata/geant-int10-network", "geant", false},
		{"testdata/hostint05-network", "host-int", false},
		{"testdata/onos-int10-network.auto", "onos", false},
	} {
		list := pcap(t, c.file)
		ways := [][]Sample{list}
		if c.reports {
			ways = append(ways, datagrams(list))
		}
		for _, list := range ways {
			f := follow(t, true)
			changes := f.frames(list)
			got := f.watch.Findings()
			if len(changes) != 1 || len(got) != 1 || got[0].State != Adopted || !slices.Equal(got[0].Profiles, []string{c.profile}) {
				t.Errorf("%s: changes %d, findings %v", c.file, len(changes), got)
				continue
			}
			if changes[0].Profile.Name != c.profile || len(changes[0].Samples) < enough {
				t.Errorf("%s: %s with %d samples", c.file, changes[0].Profile.Name, len(changes[0].Samples))
			}
			if got[0].Unread == 0 || got[0].Unread > uint64(len(list)) {
				t.Errorf("%s: %d of %d unread before it was adopted", c.file, got[0].Unread, len(list))
			}
			if f.router.Profile(changes[0].Src).Name != c.profile {
				t.Errorf("%s: the router does not know", c.file)
			}
			f = follow(t, false)
			if f.frames(list); len(f.watch.Findings()) != 1 || f.watch.Findings()[0].State != Suggested || f.watch.Adoptions() != nil {
				t.Errorf("%s: %v, want a suggestion", c.file, f.watch.Findings())
			}
		}
	}
}

// Bytes that were changed at random make no profile take a recording for another.
func TestMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	g := New(Builtin())
	for _, c := range captures {
		list := pcap(t, c.file)
		for range 60 {
			var samples []Sample
			for range maxSamples {
				x := list[rng.IntN(len(list))]
				x.Data = slices.Clone(x.Data)
				for range rng.IntN(4) {
					x.Data[rng.IntN(len(x.Data))] = byte(rng.Uint32())
				}
				if rng.IntN(8) == 0 {
					x.Data = x.Data[:rng.IntN(len(x.Data)+1)]
				}
				samples = append(samples, x)
			}
			for _, s := range g.Judge(samples, auto(t)).Best {
				if c.profile != "" && s.Profile.Name != c.profile {
					t.Fatalf("%s: %s is named", c.file, s.Profile.Name)
				}
				if c.profile == "" && s.Profile.Name != "auto" && !slices.Contains([]string{"fabric-tna", "ioam-ipv6", "int-probe", "p4-int-laofan", "fant"}, s.Profile.Name) {
					t.Fatalf("%s: %s is named", c.file, s.Profile.Name)
				}
			}
		}
	}
}

// No profile explains random bytes, at any port.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	g := New(Builtin())
	frame := pcap(t, "testdata/onos-int10-reports")[0]
	for _, port := range []uint16{53, 1234, 2222, 8090, 32766} {
		for range 5000 {
			x := frame
			x.Data = slices.Clone(frame.Data)
			binary.BigEndian.PutUint16(x.Data[36:], port)
			for i := 42; i < len(x.Data); i++ {
				x.Data[i] = byte(rng.Uint32())
			}
			x.Data[42] &= 0x17 // versions 0 and 1 more often than by chance
			if g.Explains(&x) {
				t.Fatalf("noise to port %d is explained: %x", port, x.Data)
			}
		}
	}
}

// to replaces the destination port of the UDP frames of list to one port.
func to(list []Sample, from, port uint16) []Sample {
	list = slices.Clone(list)
	for i := range list {
		if x := &list[i]; udpPort(x) == from {
			x.Data = slices.Clone(x.Data)
			binary.BigEndian.PutUint16(x.Data[36:], port)
		}
	}
	return list
}

// If only the port is wrong, the sentence states so, with the setting.
func TestOtherPort(t *testing.T) {
	for _, c := range []struct {
		file  string
		from  uint16
		state State
		adopt bool
		text  string
	}{
		{
			"testdata/fabric-report05", 32766, Tied, true, " carry postcards to UDP port 40001, where profile auto looks for none; auto, fabric-tna and host-int explain all of it alike: " +
				"choose one in exporters.profiles, as base of a dialect with report_ports: [40001]; auto is for exporters that follow the specifications",
		},
		{
			"testdata/onos-int10-reports", 32766, Suggested, false, " carry INT to UDP port 40001, where profile auto looks for none; onos explains all of it" +
				"; to choose it, make it the base of a dialect with report_ports: [40001]",
		},
		{"srint/testdata/int-path", 2222, Suggested, false, " carry INT-path to UDP port 40001, where profile auto looks for none; int-path explains all of it, but there is too little to adopt it"},
	} {
		f := follow(t, c.adopt)
		f.frames(to(pcap(t, c.file), c.from, 40001))
		f.watch.Finish()
		got := f.watch.Findings()
		if len(got) == 0 {
			t.Fatalf("%s: nothing is named", c.file)
		}
		for i := range got {
			if text := got[i].String(); got[i].State != c.state || !strings.HasSuffix(text, c.text) {
				t.Errorf("%s: %v: %s", c.file, got[i].State, text)
			}
		}
	}
}

// An exporter whose probes go to another port is read there once that was adopted.
func TestPathOtherPort(t *testing.T) {
	var list []Sample
	for k := range 10 { // it is short
		for _, x := range to(pcap(t, "srint/testdata/int-path"), 2222, 3333) {
			x.Time += int64(k) * 2e9
			list = append(list, x)
		}
	}
	f := follow(t, true)
	f.frames(list)
	a := f.watch.Adoptions()
	if a == nil || len(a.Profiles) != 1 || a.Profiles[0].Name != "int-path" {
		t.Fatalf("adopted %v", a)
	}
	p := a.Profiles[0]
	read := 0
	for i := range list {
		if f.watch.guesser.Reads(&p, &list[i]) {
			read++
		}
	}
	if read == 0 || read != count(list, 3333) {
		t.Errorf("%d of %d probes are read", read, count(list, 3333))
	}
}

func count(list []Sample, port uint16) (n int) {
	for i := range list {
		if udpPort(&list[i]) == port {
			n++
		}
	}
	return n
}

// Payloads of the length of an INT-path probe are none because of it, however regular they are.
func TestNoPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	g := New(Builtin())
	frame := pcap(t, "testdata/onos-int10-reports")[0]
	fills := map[string]func(i int) byte{
		"zeros": func(int) byte { return 0 }, "ones": func(int) byte { return 0xff }, "counting": func(i int) byte { return byte(i) },
		"noise": func(int) byte { return byte(rng.Uint32()) },
		"zeros, then noise": func(i int) byte {
			if i < 64 {
				return 0
			}
			return byte(rng.Uint32())
		},
	}
	for name, fill := range fills {
		var samples []Sample
		for k := range 2000 {
			labels := 1 + k%4
			x := frame
			x.Data = append(slices.Clone(frame.Data[:42]), make([]byte, 68+22*labels)...)
			x.Length, x.Time = len(x.Data), int64(k)*1e8
			binary.BigEndian.PutUint16(x.Data[16:], uint16(len(x.Data)-14))
			binary.BigEndian.PutUint16(x.Data[36:], 3333)
			binary.BigEndian.PutUint16(x.Data[38:], uint16(len(x.Data)-34))
			for i := range x.Data[42:] {
				x.Data[42+i] = fill(i)
			}
			samples = append(samples, x)
		}
		if v := g.Judge(samples, auto(t)); len(v.Best) > 0 {
			t.Errorf("%s: %s is named", name, v.Best[0].Profile.Name)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	g := New(Builtin())
	list := pcap(b, "testdata/onos-int10-reports")[:maxSamples]
	for b.Loop() {
		if len(g.Judge(list, auto(b)).Best) != 1 {
			b.Fatal("not recognised")
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, c := range captures {
		f.Add(pcap(f, c.file)[0].Data, uint16(1))
	}
	g := New(Builtin())
	f.Fuzz(func(t *testing.T, data []byte, link uint16) {
		x := Sample{Link: link, Data: data, Length: len(data), Time: 1}
		v := g.Judge([]Sample{x, x, x}, &g.profiles[0])
		if len(v.Best) > 0 && !g.Explains(&x) {
			t.Errorf("%s explains what nothing explains", v.Best[0].Profile.Name)
		}
		w := NewWatch(Builtin(), true)
		w.Look(func(decode.Addr) *demux.Profile { return &g.profiles[0] }, x, nil)
		w.Finish()
		for _, f := range w.Findings() {
			_ = f.String()
		}
	})
}
