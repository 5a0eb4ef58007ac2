package afxdp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// tested is a program in the kernel whose queue 0 has a ring.
type tested struct {
	*ebpf.Program
	t *testing.T
}

func loadTested(t *testing.T, c *Config) tested {
	t.Helper()
	rings, p, err := load(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rings.Close(); p.Close() })
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := rings.Update(uint32(0), uint32(fd), ebpf.UpdateAny); err != nil {
		t.Fatal(err)
	}
	return tested{p, t}
}

// steers reports whether the program steers a frame into the ring. The kernel runs it on a copy, of at least 14 bytes.
func (p tested) steers(frame []byte) bool {
	p.t.Helper()
	out := make([]byte, len(frame)+stampBytes)
	verdict, err := p.Run(&ebpf.RunOptions{Data: frame, DataOut: out})
	if err != nil {
		p.t.Fatalf("% x: %v", frame, err)
	}
	if verdict != verdictPass && verdict != verdictRedirect {
		p.t.Fatalf("% x: verdict %d", frame, verdict)
	}
	return verdict == verdictRedirect
}

func ports(list ...uint16) map[uint16]ingest.Kind {
	m := map[uint16]ingest.Kind{}
	for _, p := range list {
		m[p] = ingest.Anything
	}
	return m
}

// settingsOf are settings of what is taken.
func settingsOf(change func(c *Config)) *Config {
	c := DefaultConfig()
	c.Datagrams = ports(6343, 32766)
	if change != nil {
		change(&c)
	}
	return &c
}

// TestProgram runs the program in the kernel over frames that are put together by hand.
func TestProgram(t *testing.T) {
	p := loadTested(t, settingsOf(nil))
	types := loadTested(t, settingsOf(func(c *Config) { c.SteerEtherTypes = true }))
	plain := testkit.UDPFrame(1000, 6343, 1, 100)
	change := func(f func(b []byte) []byte) []byte { return f(slices.Clone(plain)) }
	six := func(next byte, rest ...byte) []byte {
		b := append(make([]byte, 12, 200), 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(rest)), next, 64)
		b = append(b, make([]byte, 32)...)
		return append(b, rest...)
	}
	udp := []byte{3, 232, 6343 >> 8, 6343 & 255, 0, 12, 0, 0, 1, 2, 3, 4}
	fragments := testkit.UDPFragments(testkit.UDPPacket(1000, 6343, 1, 2000), 1400)
	probe := change(func(b []byte) []byte { b[12], b[13] = 7, 0; return b })
	for _, tt := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"a report", plain, true},
		{"the other port", testkit.UDPFrame(6343, 32766, 1, 4), true},
		{"another port", testkit.UDPFrame(6343, 53, 1, 100), false},
		{"one tag", testkit.UDPFrame(1000, 6343, 1, 100, 7), true},
		{"three tags", testkit.UDPFrame(1000, 6343, 1, 100, 7, 8, 9), true},
		{"four tags", testkit.UDPFrame(1000, 6343, 1, 100, 7, 8, 9, 10), false},
		{"tag of 802.1ad", change(func(b []byte) []byte { return slices.Insert(b, 12, 0x88, 0xa8, 0, 7) }), true},
		{"TCP", change(func(b []byte) []byte { b[23] = 6; return b }), false},
		{"ARP", change(func(b []byte) []byte { b[13] = 6; return b }), false},
		{"a probe", probe, false},
		{"options of IPv4", change(func(b []byte) []byte { b[14] = 0x46; return slices.Insert(b, 34, 1, 1, 1, 1) }), false},
		{"first fragment", fragments[1], false},
		{"last fragment", fragments[0], false},
		{"may not be fragmented", change(func(b []byte) []byte { b[20] = 0x40; return b }), true},
		{"IPv6", six(17, udp...), true},
		{"IPv6 with hop-by-hop options", six(0, append([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udp...)...), false},
		{"IPv6 fragment", six(44, append([]byte{17, 0, 0, 1, 0, 0, 0, 1}, udp...)...), false},
		{"the longest", testkit.UDPFrame(1000, 6343, 1, roomBytes-42), true},
		{"too long", testkit.UDPFrame(1000, 6343, 1, roomBytes-41), false},
	} {
		if got := p.steers(tt.frame); got != tt.want {
			t.Errorf("%s: steered %t, want %t", tt.name, got, tt.want)
		}
	}
	if !types.steers(probe) || !types.steers(plain) || types.steers(change(func(b []byte) []byte { b[13] = 6; return b })) {
		t.Error("EtherTypes are not steered where they are set")
	}
	whole := map[string]int{string(plain): 42, string(testkit.UDPFrame(1000, 6343, 1, 100, 7)): 46, string(six(17, udp...)): 62}
	for frame, need := range whole {
		for cut := 14; cut < len(frame); cut++ {
			if got := p.steers([]byte(frame[:cut])); got != (cut >= need) {
				t.Errorf("%d of %d bytes: steered %t, headers end at %d", cut, len(frame), got, need)
			}
		}
	}
}

// TestStamp runs the program on a frame, before which there is the time of the kernel's clock afterwards.
func TestStamp(t *testing.T) {
	p := loadTested(t, settingsOf(nil))
	base, err := newBase()
	if err != nil {
		t.Fatal(err)
	}
	frame := testkit.UDPFrame(1000, 6343, 1, 100)
	out := make([]byte, len(frame)+stampBytes)
	before := base.now().monotonic - int64(time.Millisecond)
	if _, err := p.Run(&ebpf.RunOptions{Data: frame, DataOut: out}); err != nil {
		t.Fatal(err)
	}
	after := base.now().monotonic + int64(time.Millisecond)
	if stamp := int64(binary.NativeEndian.Uint64(out)); stamp < before || stamp > after || !bytes.Equal(out[stampBytes:], frame) {
		t.Errorf("time %d, want one of %d..%d, before the frame\n% x", stamp, before, after, out)
	}
}

// TestSteered runs programs of many settings over generated frames. What is steered is what the settings take, less fragments
// and packets with options. The rest passes, so that afpacket takes it by the same settings.
func TestSteered(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	steered := 0
	for _, c := range []*Config{
		settingsOf(nil),
		settingsOf(func(c *Config) { c.SteerEtherTypes, c.EtherTypes = true, []uint16{0x0700, 0x0806} }),
		settingsOf(func(c *Config) { c.Everything = true }),
		settingsOf(func(c *Config) { c.Addresses = []string{"10.0.0.0/8"} }),
		settingsOf(func(c *Config) { c.Addresses = []string{"10.1.128.0/17", "2001:db8::1", "192.0.0.1"} }),
		settingsOf(func(c *Config) { c.Addresses = []string{"0.0.0.0/0", "2001:db8::/47"} }),
		settingsOf(func(c *Config) { c.Addresses = []string{"2001:db8::/113"} }),
		settingsOf(func(c *Config) { c.Addresses = []string{"192.0.0.0/2", "128.0.0.0/1"} }),
	} {
		p := loadTested(t, c)
		prefixes, err := ingest.Prefixes("addresses", c.Addresses)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			h := testkit.MakeFrameHead(rng, 4)
			h.More = rng.IntN(4) == 0
			if rng.IntN(2) == 0 {
				h.Options = 0
			}
			frame := append(h.Frame(true), make([]byte, rng.IntN(40))...)
			in := func(p netip.Prefix) bool { return p.Contains(h.Src) || p.Contains(h.Dst) }
			_, port := c.Datagrams[h.Port]
			isIP := h.Ether == 0x0800 && h.Options == 0 && h.Offset == 0 && !h.More || h.V6
			want := len(h.Tags) <= maxTags && (c.SteerEtherTypes && slices.Contains(c.EtherTypes, h.Ether) && len(frame) >= 42+4*len(h.Tags) ||
				isIP && h.Proto == 17 && port && (len(prefixes) == 0 || slices.ContainsFunc(prefixes, in)))
			if got := p.steers(frame); got != want {
				t.Fatalf("%+v\n%+v\n% x: steered %t, want %t", c, h, frame, got, want)
			}
			if want {
				steered++
			}
		}
	}
	if steered < 1000 {
		t.Errorf("%d frames were steered", steered)
	}
}
