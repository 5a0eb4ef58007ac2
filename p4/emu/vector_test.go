package emu

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

func vector(t testing.TB, name string) []byte {
	t.Helper()
	b, err := testkit.Vector(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// program is a network of switches without traffic, whose steps a test takes by itself.
func program(t *testing.T, d Dialect, m marker, instructions uint16, maxHops int) *Network {
	cfg := DefaultConfig()
	cfg.Flows, cfg.Dialect, cfg.Marker, cfg.Instructions, cfg.MaxHops = 0, d, m, instructions, maxHops
	return mustNew(t, cfg, 1)
}

// whole makes a packet of a frame with an IPv4 header of 20 bytes.
func whole(frame []byte) *packet {
	p := &packet{Frame: sim.Frame{Buf: bytes.Clone(frame), Size: len(frame), L3: ethLen, L4: ethLen + 20, Proto: frame[ethLen+9]}, sampled: true, carries: Off}
	return p
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %x\nwant %x", what, got, want)
	}
}

// The frames of the specification's readings are taken apart and put together again.
func TestINT10OverTCP(t *testing.T) {
	want := vector(t, "int10-tcp")
	n := program(t, md10, MarkDSCP, 0x9000, 8)
	p := whole(want)
	p.carries, p.cut, p.shim, p.added = md10, 54, 54, 28
	p.strip()
	if p.Size != len(want)-28 || p.DSCP() != 10 || string(p.Buf[54:]) != "HELLO" {
		t.Fatalf("stripped: %x", p.Buf)
	}
	checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)

	n.source(p, &n.switches[0])
	n.push(p, &device{id: 1}, &Hop{QueueBytes: 42})
	n.push(p, &device{id: 2}, &Hop{QueueBytes: 0x03000150}) // queue 3
	checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)
	wantBytes(t, "INT 1.0", p.Buf, want)
}

func TestINT21OverUDPPort(t *testing.T) {
	want := vector(t, "int21-udp")
	n := program(t, md21, MarkPort, 0xdc00, 8)
	p := whole(want)
	p.carries, p.cut, p.shim, p.added = md21, 42, 42, 72
	p.strip()
	if p.Size != len(want)-72 || string(p.Buf[42:]) != "PAYLOAD!" || be.Uint16(p.Buf[36:]) != 4789 {
		t.Fatalf("stripped: %x", p.Buf)
	}
	checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)

	n.source(p, &n.switches[0])
	n.push(p, &device{id: 1, clock: 1699999999999990000}, &Hop{ingressPort: 3, EgressPort: 4, QueueBytes: 5, Egress: 1250})
	n.push(p, &device{id: 2, clock: 1700000000000001000}, &Hop{ingressPort: 11, EgressPort: 12, QueueBytes: 0x01000060, Egress: 2500})
	checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)
	wantBytes(t, "INT 2.1", p.Buf, want)
}

func TestChecksumComplement(t *testing.T) {
	header := []byte{
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		0x45, 0, 0, 36, 0, 0, 0, 0, 64, udp, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2,
	}
	be.PutUint16(header[ethLen+10:], ^checksum(header[ethLen:]))
	sent := append(header, vector(t, "int21-cc-0")...)
	n := program(t, md21, MarkDSCP, 0x8001, 8)
	p := whole(sent)
	n.source(p, &n.switches[0])
	n.push(p, &device{id: 1}, &Hop{})
	wantBytes(t, "after the source", p.Buf[p.L4:], vector(t, "int21-cc-1"))
	n.push(p, &device{id: 2}, &Hop{})
	wantBytes(t, "after the second node", p.Buf[p.L4:], vector(t, "int21-cc-2"))
	checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)
	p.strip()
	wantBytes(t, "after the sink", p.Buf, sent)
}

// A packet without a UDP checksum stays without one, and its nodes say that the complement is unused.
func TestNoChecksumNoComplement(t *testing.T) {
	sent := vector(t, "int21-udp")
	for _, instructions := range []uint16{0x8000, 0x8001} {
		n := program(t, md21, MarkPort, instructions, 8)
		p := whole(sent)
		p.carries, p.cut, p.shim, p.added = md21, 42, 42, 72
		p.strip()
		p.Buf[40], p.Buf[41] = 0, 0
		n.source(p, &n.switches[0])
		n.push(p, &device{id: 9}, &Hop{})
		if be.Uint16(p.Buf[40:]) != 0 {
			t.Errorf("bitmap %#04x: the UDP checksum became %x", instructions, p.Buf[40:42])
		}
		if block := p.Buf[58:]; instructions&1 != 0 && !bytes.Equal(block[:8], []byte{0, 0, 0, 9, 255, 255, 255, 255}) {
			t.Errorf("block %x", block[:8])
		}
		checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)
	}
}

// The bits that say why a node added nothing.
func TestRefusedBlocks(t *testing.T) {
	for _, d := range []Dialect{md10, md21} {
		for _, full := range []bool{false, true} {
			n := program(t, d, MarkDSCP, 0x8000|insComplement, 1)
			p := whole(vector(t, "int10-tcp"))
			p.carries, p.cut, p.shim, p.added = md10, 54, 54, 28
			p.strip()
			n.source(p, &n.switches[0])
			if full {
				n.cfg.MTU = p.Size - ethLen + 3
			} else {
				n.push(p, &device{id: 1}, &Hop{})
			}
			before, h := len(p.Buf), &Hop{}
			n.push(p, &device{id: 2}, h)
			if len(p.Buf) != before || h.recorded {
				t.Errorf("%v: a block was added", d)
			}
			flags := p.Buf[p.shim+4 : p.shim+6]
			want := map[Dialect][2]byte{md10: {0x11, 0}, md21: {0x24, 0}}[d] // E
			if full {
				want = map[Dialect][2]byte{md10: {0x10, 0x80}, md21: {0x22, 0}}[d] // M
			}
			if [2]byte(flags) != want {
				t.Errorf("%v, MTU %v: flags %x, want %x", d, full, flags, want)
			}
			checkPacket(t, p.Buf[ethLen:], p.Size-ethLen)
		}
	}
}

// The reports of the worked examples, as far as they hold what a switch here reports.
func TestReportHeaders(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Flows, cfg.HardwareIDs, cfg.InnerBytes, cfg.QueueReportBytes = 0, 16, 1400, 1
	cfg.Instructions = insNodeID | insLevel1 | insQueue | insEgress
	n := mustNew(t, cfg, 1)
	var got []byte
	n.emit = func(d Datagram) { got = bytes.Clone(d.Payload) }
	drop := vector(t, "tr05-drop")
	p := whole(drop[24:])

	d := &n.switches[0]
	d.id, d.clock, d.seq[3] = 0xa1, 123456789, 41
	n.report05(p, d, &subject{hop: Hop{ingressPort: 7}, drop: true, reason: 0x50}, 3)
	wantBytes(t, "0.5, drop", got, drop)

	d.clock = 1000000000
	n.report05(p, d, &subject{hop: Hop{ingressPort: 7, EgressPort: 9, QueueBytes: 0x050004b0, Egress: 2500}}, 3)
	wantBytes(t, "0.5, local", got[:28], vector(t, "tr05-local"))

	d.id, d.clock, d.seq[9], n.cfg.IPReports = 0xb2, 0xfffffff0, 100, true
	n.report10(p, d, &subject{hop: Hop{ingressPort: 3, EgressPort: 4, QueueBytes: 0x0200004d, Egress: 528}, local: true}, 9)
	wantBytes(t, "1.0", got[:28], vector(t, "tr10"))
	wantBytes(t, "1.0, inside", got[28:], p.Buf[ethLen:])

	// The first report of the group; its flags have no Q.
	n.cfg.QueueReportBytes, n.cfg.Instructions = 0, insLevel1|insQueue|insIngress
	want := vector(t, "tr20-group")
	p = &packet{Frame: sim.Frame{Buf: append(make([]byte, ethLen), want[36:64]...), Size: 62, L3: ethLen, L4: ethLen + 20, Proto: udp}, carries: Off}
	d.id, d.clock, d.seq[5], n.cfg.InnerBytes = 0xc3, 1700000000000001000, 300, 0
	n.report20(p, d, &subject{hop: Hop{ingressPort: 11, EgressPort: 12, QueueBytes: 0x01000060}, local: true}, 5)
	wantBytes(t, "2.0", got, want[:64])
}
