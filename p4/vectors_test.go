package p4_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4"
)

var be = binary.BigEndian

// each calls f for all packets that were recorded of a program.
func each(t *testing.T, program string, f func(t *testing.T, g *p4.Group, p *p4.Packet)) {
	t.Helper()
	file, err := p4.Recorded(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, p := range g.Packets {
			t.Run(g.Name+"/"+p.Name, func(t *testing.T) { f(t, g, p) })
		}
	}
}

// Every state of a parser, every table and every action of a table was come to.
func TestCoverage(t *testing.T) {
	for _, program := range programs {
		file, err := p4.Recorded(program)
		if err != nil {
			t.Fatal(err)
		}
		var c compiled
		if err := json.Unmarshal(read(t, "bmv2/"+program+".json"), &c); err != nil {
			t.Fatal(err)
		}
		states, tables, actions := 0, 0, 0
		for _, s := range c.Parsers[0].States {
			states++
			if !slices.Contains(file.Covered.States, s.Name) {
				t.Errorf("%s: no packet came to the state %s of the parser", program, s.Name)
			}
		}
		for _, pipe := range c.Pipelines {
			for _, table := range pipe.Tables {
				if strings.HasPrefix(table.Name, "tbl_") {
					continue // a statement outside of tables
				}
				tables++
				if !slices.Contains(file.Covered.Tables, table.Name) {
					t.Errorf("%s: no packet came to the table %s", program, table.Name)
				}
				for _, a := range table.Actions {
					actions++
					if !slices.Contains(file.Covered.Actions, table.Name+" "+a) {
						t.Errorf("%s: no packet came to the action %s of the table %s", program, a, table.Name)
					}
				}
			}
		}
		t.Logf("%s: %d states, %d tables, %d actions, all of them hit", program, states, tables, actions)
	}
}

// clocked is the hop that a switch wrote into a label, of what it knew: microseconds, as published.
func clocked(p *p4.Pass, device uint32) *decode.Hop {
	return &decode.Hop{
		NodeID: device, IngressIf: p.IngressPort, EgressIf: p.EgressPort, IngressTime: p.Ingress, EgressTime: p.Egress,
		EnqTime: p.Enqueued, QueueOccupancy: p.EnqueueDepth, QueueDelay: p.Queue, DeqOccupancy: p.DequeueDepth,
	}
}

// Probes of the published formats leave as the encoders of decode/srint write them.
func TestPublishedProbes(t *testing.T) {
	seen := 0
	each(t, "srint", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		device := uint32(7)
		if g.Name == "device 0 by default" {
			device = 0
		}
		frame := bytes.Clone(p.In.Bytes)
		port, want := 0, []byte(nil)
		switch {
		case g.Name == "wide" || g.Name == "queue" || p.Name == "IPv4 checksum wrong" || p.Name == "no room in the MTU" || len(p.Passes) == 0 && len(p.Out) == 0:
			return
		case g.Name == "INT-Probe":
			b, to, err := srint.PopProbePort(frame, 12)
			switch {
			case err != nil:
			case p.Name == "255 labels" || p.Name == "other payload":
				port, want = to, b
			default:
				if b, err = srint.PushProbeLabel(b, 12, clocked(&p.Passes[0], device)); err == nil {
					port, want = to, b
				}
			}
		default:
			to, err := srint.PopPort(frame, 14)
			if err != nil {
				if len(p.Passes) > 0 && p.Passes[0].EgressPort != 2 {
					t.Errorf("%v, and it left by port %d instead of that of the table", err, p.Passes[0].EgressPort)
				}
				if len(p.Out) > 0 && !bytes.Equal(p.Out[0].Bytes, p.In.Bytes) {
					t.Errorf("no probe, and it left as\n%v, was\n%v", p.Out[0].Bytes, p.In.Bytes)
				}
				return
			}
			port, want = to, frame
			if b, err := srint.PushLabel(frame, 14, clocked(&p.Passes[0], device)); err == nil {
				want = b
				be.PutUint16(want[24:], 0) // the published program borrows wrongly where it was below 22
				be.PutUint16(want[24:], ^packet.Fold(packet.Sum(want[14:34])))
			}
		}
		if port > 5 { // no interface
			port, want = 0, nil
		}
		switch {
		case want == nil && len(p.Out) != 0:
			t.Errorf("%d frames left, want none", len(p.Out))
		case want == nil:
		case len(p.Out) != 1 || p.Out[0].Port != port || !bytes.Equal(p.Out[0].Bytes, want):
			t.Errorf("left\n%v\nwant port %d\n%x", p.Out, port, want)
		default:
			seen++
		}
	})
	if seen < 10 {
		t.Errorf("%d probes were compared", seen)
	}
}

// unrouted is a frame without the route in front of its IPv4 packet, and that packet's place.
func unrouted(frame []byte) ([]byte, int) {
	b := bytes.Clone(frame)
	at := 12
	if be.Uint16(b[at:]) == srint.TypeRoute {
		if n := 2 + int(b[at+3]); at+n < len(b) {
			b = slices.Delete(b, at, at+n)
		}
	}
	if be.Uint16(b[at:]) == 0x8100 {
		at += 4
	}
	return b, at + 2
}

// packets reports whether an IP packet with 8 bytes behind its header is at frame[ip].
func packets(frame []byte, ip int) bool {
	return len(frame) >= ip+28 && frame[ip]>>4 == 4 || len(frame) >= ip+48 && frame[ip]>>4 == 6
}

// checksums reports whether those of an IP packet at frame[ip] are right, or not there.
func checksums(frame []byte, ip int) bool {
	b := frame[ip:]
	var addresses, l4 []byte
	var proto byte
	if b[0]>>4 == 4 {
		n := int(b[0]&15) * 4
		if packet.Fold(packet.Sum(b[:n])) != 0xffff {
			return false
		}
		if be.Uint16(b[6:])&0x3fff != 0 {
			return true
		}
		addresses, proto, l4 = b[12:20], b[9], b[n:min(len(b), int(be.Uint16(b[2:])))]
	} else {
		addresses, proto, l4 = b[8:40], b[6], b[40:min(len(b), 40+int(be.Uint16(b[4:])))]
	}
	if proto != packet.ProtoTCP && proto != packet.ProtoUDP || len(l4) < 8 || proto == packet.ProtoUDP && be.Uint16(l4[6:]) == 0 {
		return true
	}
	return packet.Fold(packet.PseudoHeader(addresses, proto, len(l4))+packet.Sum(l4)) == 0xffff
}

// controllerPort is that of packet-in.
const controllerPort = 510

// Packets whose checksums were right keep them right, whatever a switch adds and takes away.
func TestChecksums(t *testing.T) {
	kept := 0
	for _, program := range programs {
		each(t, program, func(t *testing.T, g *p4.Group, p *p4.Packet) {
			in, at := unrouted(p.In.Bytes)
			if program == "pint" && be.Uint16(in[at-2:]) == 0x88b5 {
				at += 16
			}
			if !packets(in, at) || !checksums(in, at) {
				return
			}
			for _, o := range p.Out {
				frame := o.Bytes
				if o.Port == controllerPort {
					frame = frame[2:] // behind the header of packet-in
				}
				out, at := unrouted(frame)
				if program == "pint" && be.Uint16(out[at-2:]) == 0x88b5 {
					at += 16
				}
				if !checksums(out, at) {
					t.Errorf("left by port %d with a wrong checksum:\n%x\n%x", o.Port, p.In.Bytes, []byte(o.Bytes))
				}
				kept++
			}
		})
	}
	if kept < 100 {
		t.Errorf("%d packets", kept)
	}
}

func profile(t *testing.T, name string) demux.Profile {
	t.Helper()
	p, ok := demux.Lookup(name)
	if !ok {
		t.Fatalf("there is no profile %q", name)
	}
	return p
}
