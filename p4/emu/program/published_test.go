package program

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

func newSwitch(t testing.TB, program string, commands ...string) *Switch {
	t.Helper()
	s, err := New(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if err := s.Command(c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func known(t testing.TB, name string) []byte {
	t.Helper()
	b, err := testkit.Vector(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// one returns the only frame that leaves.
func one(t testing.TB, s *Switch, in Frame, passes ...Pass) Frame {
	t.Helper()
	out, _, err := s.Process(in, passes)
	if err != nil || len(out) != 1 {
		t.Fatalf("%x: %d frames, %v", in.Bytes, len(out), err)
	}
	return out[0]
}

func same(t testing.TB, what string, got Frame, port uint16, want []byte) {
	t.Helper()
	if got.Port != port || !bytes.Equal(got.Bytes, want) {
		t.Errorf("%s: by port %d\n got %x\nwant %x by port %d", what, got.Port, got.Bytes, want, port)
	}
}

// The worked example of INT-Probe, two switches.
func TestINTProbe(t *testing.T) {
	f := one(t, newSwitch(t, "srint", "table_set_default egress.device set_device 4 0"), Frame{1, known(t, "int-probe-sent")},
		Pass{IngressTime: 100000, EgressTime: 100400, EnqueueTime: 100050, QueueDelay: 300, DequeueDepth: 2})
	same(t, "first switch", f, 3, known(t, "int-probe-one-hop"))
	f = one(t, newSwitch(t, "srint", "table_set_default egress.device set_device 9 0"), Frame{2, f.Bytes},
		Pass{IngressTime: 200000, EgressTime: 200250, EnqueueTime: 200040, EnqueueDepth: 1, QueueDelay: 180})
	same(t, "second switch", f, 2, known(t, "int-probe-two-hops"))
}

// The worked example of INT-path: ports 2, 4 and 1.
func TestINTPath(t *testing.T) {
	payload := known(t, "int-path-sent")
	frame, _ := hex.DecodeString("020000000002020000000001" + "0800" + "4500" + "0060" + "00000000" + "4011" + "0000" + "0a000101" + "0a000202" + "c00008ae" + "004c" + "0000")
	put(frame, 24, csum16(frame[14:34], nil))
	f := Frame{3, append(frame, payload...)}
	in := []uint16{3, 1, 2}
	passes := []Pass{
		{IngressTime: 1000100, EnqueueTime: 1000150, QueueDelay: 12, DequeueDepth: 1},
		{IngressTime: 2000500, EnqueueTime: 2000555, EnqueueDepth: 7, QueueDelay: 340, DequeueDepth: 5},
		{IngressTime: 3000900, EnqueueTime: 3000960, EnqueueDepth: 2, QueueDelay: 45},
	}
	for i, port := range []uint16{2, 4, 1} {
		f.Port = in[i]
		f = one(t, newSwitch(t, "srint", "table_set_default egress.device set_device "+string(rune('0'+i))+" 0"), f, passes[i])
		if f.Port != port || int(get(f.Bytes, 38)) != 76+22*(i+1) || csum16(f.Bytes[14:34], nil) != get(f.Bytes, 24) {
			t.Fatalf("switch %d: port %d, %x", i, f.Port, f.Bytes)
		}
	}
	if want := known(t, "int-path-received"); !bytes.Equal(f.Bytes[42:], want) {
		t.Errorf("labels %x, want %x", f.Bytes[42:], want)
	}
}

const (
	toHost2 = "table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.2.0/24 => 2 0x020000000002 0x020000000001"
	all     = "0&&&0 0&&&0 0&&&0 0&&&0 0&&&0"
)

// The worked example of the checksum complement: source, and a transit node.
func TestComplement(t *testing.T) {
	sent := known(t, "int21-cc-0")
	header, _ := hex.DecodeString("020000000002020000000001" + "0800" + "45000024" + "00000000" + "4111" + "0000" + "0a000101" + "0a000202")
	put(header, 24, csum16(header[14:34], nil))
	source := newSwitch(t, "intmd", toHost2, "table_set_default egress.device set_device 1 0", "table_add ingress.ingress_port host 1 => 0 0",
		"table_add ingress.watch track "+all+" => 0xffffffff 0x8001 0 8 0 1")
	f := one(t, source, Frame{1, append(header, sent...)}, Pass{PacketLength: 50})
	if got := f.Bytes[34:]; !bytes.Equal(got, known(t, "int21-cc-1")) {
		t.Errorf("source:\n got %x\nwant %x", got, known(t, "int21-cc-1"))
	}
	transit := newSwitch(t, "intmd", toHost2, "table_set_default egress.device set_device 2 0")
	f = one(t, transit, Frame{4, f.Bytes}, Pass{PacketLength: uint32(len(f.Bytes))})
	if got := f.Bytes[34:]; !bytes.Equal(got, known(t, "int21-cc-2")) {
		t.Errorf("transit:\n got %x\nwant %x", got, known(t, "int21-cc-2"))
	}
}

// A frame that cannot be decoded is dropped or goes on as it is, whatever is in it. Nothing panics, and what leaves has
// a correct checksum.
func FuzzProcess(f *testing.F) {
	for _, name := range []string{"int-probe-sent", "int-probe-one-hop", "int21-udp", "int10-tcp"} {
		f.Add(known(f, name), uint8(1))
	}
	digested := udpFrame(1, 2)
	put(digested, 12, typePINT)
	f.Add(append(append(digested[:14:14], 0, 1, 8, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0), digested[14:]...), uint8(4))
	f.Fuzz(func(t *testing.T, b []byte, port uint8) {
		for _, name := range []string{"srint", "intmd", "pint"} {
			commands := []string{
				"table_add ingress.forward.forwarding4 forward 0.0.0.0/0 => 2 1 2", "table_add ingress.forward.forwarding6 forward ::/0 => 3 1 2", "mirroring_add 100 5",
				"table_add egress.envelope.collector send 1 => 1 2 10.0.0.1 10.0.0.2 3 4 400", "table_add egress.egress_port to_host 2 => 1500 100 1",
			}
			switch name {
			case "srint":
				commands = []string{"table_add ingress.forwarding forward 0.0.0.0/0 => 2"}
			case "intmd":
				commands = append(commands, "table_add egress.queues watch_queue 3 => 0 0 100 1 0x5c00", "table_add ingress.drops report_drop 80 => 100 1",
					"table_add ingress.ingress_port host 1 => 3 0", "table_add ingress.watch track "+all+" => 0xffffffff 0xff81 0 3 0 1")
			case "pint":
				commands = append(append(commands, common()[3:]...), planTables(0, &pint.Config{Seed: 1, Tau: .5, P: []float64{.5}}, &pint.Loops{Bits: 6})...)
				commands = append(commands, "table_add ingress.ingress_port host 1 => 3", "table_add ingress.watch carry "+all+" => 0xffffffff 0 1 1")
			}
			s := newSwitch(t, name, commands...)
			before := bytes.Clone(b)
			out, _, err := s.Process(Frame{uint16(port), b}, []Pass{{PacketLength: uint32(len(b))}, {Instance: ingressClone}, {Instance: egressClone}})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, b) {
				t.Fatal("the frame that came has changed")
			}
			for _, o := range out {
				if len(o.Bytes) >= 34 && get(o.Bytes, 12) == typeIPv4 && o.Bytes[14] == 0x45 && csum16(o.Bytes[14:34], nil) != get(o.Bytes, 24) {
					t.Fatalf("checksum of %x", o.Bytes)
				}
			}
		}
	})
}

func TestCommandErrors(t *testing.T) {
	s := newSwitch(t, "intmd")
	for line, want := range map[string]string{
		"table_add":                                                    "too short",
		"table_delete ingress.watch 1":                                 "unknown command",
		"table_add ingress.none act 1 =>":                              "no such table",
		"table_add ingress.watch track 1":                              "a key of -1 fields, want 5",
		"table_add ingress.drops x 1 =>":                               `no action "x"`,
		"mirroring_add x 5":                                            "invalid syntax",
		"mirroring_add 1 512":                                          "out of range",
		"table_add ingress.drops report_drop 256 => 1 1":               "no number of 8 bits",
		"table_add ingress.drops report_drop 26 => 1":                  "with 1 parameters, want 2",
		"table_add ingress.watch track " + all + " =>":                 "no priority",
		"table_add ingress.watch NoAction " + all + " => x":            "invalid syntax",
		"table_add ingress.drops report_drop x => 1 1":                 "neither a number nor an address",
		"table_add ingress.forward.forwarding4 no_route 10.0.0.0/x =>": "invalid syntax",
	} {
		if err := s.Command(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if _, err := New("x"); err == nil {
		t.Error("a program that is not there")
	}
	s = newSwitch(t, "intmd", toHost2)
	header, _ := hex.DecodeString("020000000002020000000001" + "0800" + "45000014" + "00000000" + "4101" + "0000" + "0a000101" + "0a000202")
	put(header, 24, csum16(header[14:34], nil))
	if _, _, err := s.Process(Frame{1, header}, nil); !errors.Is(err, errPass) {
		t.Errorf("a frame without a pass: %v", err)
	}
}
