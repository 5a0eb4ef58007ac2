package afpacket

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/hopscope/hopscope/ingest"
)

// head is the headers of a generated frame: the oracle of the filter, which reads no bytes.
type head struct {
	tags     []uint16
	ether    uint16
	v6       bool
	src, dst netip.Addr
	proto    uint8
	options  int // bytes of options of IPv4
	offset   uint16
	port     uint16
}

// ports are datagrams of any kind to take.
func ports(list ...uint16) map[uint16]ingest.Kind {
	m := map[uint16]ingest.Kind{}
	for _, p := range list {
		m[p] = ingest.Anything
	}
	return m
}

func makeHead(rng *rand.Rand) (h head) {
	pick := func(n ...uint16) uint16 { return n[rng.IntN(len(n))] }
	for range rng.IntN(3) {
		h.tags = append(h.tags, pick(0x8100, 0x88a8, 0x9100))
	}
	h.ether = pick(0x0800, 0x0800, 0x86dd, 0x86dd, 0x0700, 0x0701, 0x0806, 0x88cc)
	h.v6 = h.ether == 0x86dd
	address := func() netip.Addr {
		if h.v6 {
			a := netip.MustParseAddr("2001:db8::1").As16()
			a[rng.IntN(16)] ^= byte(pick(0, 1, 128))
			return netip.AddrFrom16(a)
		}
		return netip.AddrFrom4([4]byte{byte(pick(10, 192)), byte(rng.IntN(3)), byte(pick(0, 127, 128)), 1})
	}
	h.src, h.dst = address(), address()
	h.proto = uint8(pick(17, 17, 17, 6, 0, 253))
	h.options = 4 * rng.IntN(11)
	h.offset = pick(0, 0, 0, 185)
	h.port = pick(6343, 32766, 53, 4739)
	return h
}

// frame is the head in bytes.
func (h *head) frame(ethernet bool) (b []byte) {
	if ethernet {
		b = make([]byte, 12)
		for _, t := range h.tags {
			b = binary.BigEndian.AppendUint16(b, t)
			b = append(b, 0, 7)
		}
		b = binary.BigEndian.AppendUint16(b, h.ether)
	}
	switch h.ether {
	case 0x0800:
		ip := make([]byte, 20+h.options)
		ip[0] = 4<<4 | byte(len(ip)/4)
		binary.BigEndian.PutUint16(ip[6:], h.offset|0x2000) // more fragments
		ip[9] = h.proto
		copy(ip[12:], h.src.AsSlice())
		copy(ip[16:], h.dst.AsSlice())
		b = append(b, ip...)
	case 0x86dd:
		ip := make([]byte, 40)
		ip[0], ip[6] = 6<<4, h.proto
		copy(ip[8:], h.src.AsSlice())
		copy(ip[24:], h.dst.AsSlice())
		b = append(b, ip...)
	}
	b = append(b, 9, 9)
	b = binary.BigEndian.AppendUint16(b, h.port)
	return append(b, 0, 8, 0, 0)
}

// wanted is whether the settings take a frame of the head.
func (h *head) wanted(c *Config, ethernet bool) bool {
	if c.Everything || ethernet && slices.Contains(c.EtherTypes, h.ether) {
		return true
	}
	if h.ether != 0x0800 && h.ether != 0x86dd {
		return false
	}
	in := func(p netip.Prefix) bool { return p.Contains(h.src) || p.Contains(h.dst) }
	if prefixes, _ := c.prefixes(); len(prefixes) > 0 && !slices.ContainsFunc(prefixes, in) {
		return false
	}
	if slices.Contains(c.Protocols, h.proto) {
		return true
	}
	return h.proto == 17 && (h.v6 || h.offset == 0) && slices.Contains(c.ports(), h.port)
}

// TestFilter runs filters of many settings over made frames, and compares what they take with what the settings say of the
// headers.
func TestFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	took := 0
	for _, c := range []Config{
		{}, {Everything: true}, DefaultConfig(),
		{Datagrams: ports(6343, 32766)},
		{EtherTypes: []uint16{0x0700}, Protocols: []uint8{6, 253}},
		{Datagrams: ports(6343, 53), Addresses: []string{"10.0.0.0/8"}},
		{Datagrams: ports(6343, 53), Addresses: []string{"10.1.128.0/17", "2001:db8::1", "192.0.0.1"}},
		{Datagrams: ports(6343, 53), Protocols: []uint8{0}, Addresses: []string{"0.0.0.0/0", "2001:db8::/47"}},
		{Protocols: []uint8{17}, Addresses: []string{"2001:db8::/113"}},
	} {
		c.MaxFrameBytes = 9216
		for _, ethernet := range []bool{true, false} {
			program, err := c.filter(ethernet)
			if err != nil {
				t.Fatal(err)
			}
			list, ok := bpf.Disassemble(program)
			if !ok {
				t.Fatal("the program is not understood")
			}
			vm, err := bpf.NewVM(list)
			if err != nil {
				t.Fatal(err)
			}
			for range 2000 {
				h := makeHead(rng)
				if !ethernet {
					h.tags = nil
					if h.ether != 0x0800 && h.ether != 0x86dd {
						continue
					}
				}
				frame := h.frame(ethernet)
				n, err := vm.Run(frame)
				if err != nil {
					t.Fatal(err)
				}
				want := h.wanted(&c, ethernet)
				if (n > 0) != want {
					t.Fatalf("%+v\n%+v\n% x: took %d bytes, want %t", c, h, frame, n, want)
				}
				if want {
					took++
				}
				for cut := range frame { // what is cut may be rejected, and must not fail
					if _, err := vm.Run(frame[:cut]); err != nil {
						t.Fatalf("%d bytes: %v", cut, err)
					}
				}
			}
		}
	}
	if took < 5000 {
		t.Errorf("%d frames were taken", took)
	}
}

func TestValidate(t *testing.T) {
	many := DefaultConfig()
	for i := range 300 {
		many.Addresses = append(many.Addresses, netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)}).String())
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Interfaces: []string{""}}, "interfaces: one has no name"},
		{Config{Interfaces: []string{"eth0", "eth1", "eth0"}}, "interfaces: eth0 is listed twice"},
		{Config{Addresses: []string{"10.0.0.0/33"}}, `addresses: "10.0.0.0/33" is neither a prefix`},
		{many, "make a filter of"},
	} {
		if err := c.cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: want %q", err, c.want)
		}
	}
	d := DefaultConfig()
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if s, err := d.Open(); s != nil || err != nil {
		t.Errorf("without interfaces: %v, %v", s, err)
	}
}
