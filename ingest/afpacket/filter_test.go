package afpacket

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// ports are datagrams of any kind to take.
func ports(list ...uint16) map[uint16]ingest.Kind {
	m := map[uint16]ingest.Kind{}
	for _, p := range list {
		m[p] = ingest.Anything
	}
	return m
}

// wanted is whether the settings take a frame of a head.
func wanted(c *Config, h *testkit.FrameHead, ethernet bool) bool {
	if c.Everything || ethernet && slices.Contains(c.EtherTypes, h.Ether) {
		return true
	}
	if h.Ether != 0x0800 && h.Ether != 0x86dd {
		return false
	}
	in := func(p netip.Prefix) bool { return p.Contains(h.Src) || p.Contains(h.Dst) }
	if prefixes, _ := c.prefixes(); len(prefixes) > 0 && !slices.ContainsFunc(prefixes, in) {
		return false
	}
	if slices.Contains(c.Protocols, h.Proto) {
		return true
	}
	return h.Proto == 17 && (h.V6 || h.Offset == 0) && slices.Contains(c.ports(), h.Port)
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
				h := testkit.MakeFrameHead(rng, maxTags)
				if !ethernet {
					h.Tags = nil
					if h.Ether != 0x0800 && h.Ether != 0x86dd {
						continue
					}
				}
				frame := h.Frame(ethernet)
				n, err := vm.Run(frame)
				if err != nil {
					t.Fatal(err)
				}
				want := wanted(&c, &h, ethernet)
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
