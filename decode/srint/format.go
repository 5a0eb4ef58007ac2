package srint

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Path reads INT-path probes, in captured packets and behind the socket that they were sent to.
type Path struct {
	// Lenient accepts probes with bytes behind the last whole label, as their own receiver does.
	Lenient bool
	// Port is the UDP destination port of the probes, [PathPort] if it is 0.
	Port uint16
}

// Probe reads INT-Probe frames.
type Probe struct{}

var (
	_ packet.Format        = Path{}
	_ packet.PayloadReader = (*Path)(nil)
	_ packet.Format        = Probe{}
)

// Where is UDP port 2222, unless Port is set.
func (f Path) Where() packet.Where {
	return packet.Where{Ports: []uint16{cmp.Or(f.Port, PathPort)}}
}

// NewReader returns f itself, which keeps nothing.
func (f Path) NewReader() packet.Reader { return &f }

func (f Path) String() string {
	if f.Lenient {
		return "INT-path, lenient"
	}
	return "INT-path"
}

// Read reads a probe over IPv4. Switches that forward these probes read fixed places, so that fragments and IPv4
// options are errors.
func (f *Path) Read(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	if p.IP != 4 {
		return 0
	}
	r := b.Next()
	r.Format, r.Kind = decode.INTPath, decode.KindProbe
	p.Report(r, data)
	switch {
	case p.Fragment:
		r.Fail(decode.INTPath, "fragment", p.FragAt, decode.Unsupported)
	case p.L4-p.L3 != packet.IPv4Len:
		r.Fail(decode.INTPath, "options", p.L3+packet.IPv4Len, decode.Unsupported)
	default:
		DecodePath(r, data[p.L4:], p.End-p.L4, p.L4, f.Lenient)
	}
	return 1
}

// ReadPayload reads a probe that a socket received.
func (f *Path) ReadPayload(b *decode.Batch, payload []byte, length int) {
	DecodePathPayload(b.Next(), payload, length, f.Lenient)
}

// Where is two EtherTypes of its own.
func (Probe) Where() packet.Where { return packet.Where{EtherTypes: []uint16{TypeRoute, TypeINT}} }

// NewReader returns f itself, which keeps nothing.
func (f Probe) NewReader() packet.Reader { return f }

func (Probe) String() string { return "INT-Probe" }

// Read reads a probe. One whose route leads an ordinary packet is none.
func (Probe) Read(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	if !DecodeProbe(b.Next(), p.EtherType, data[p.L3:], p.End-p.L3, p.L3) {
		b.Cancel()
		return 0
	}
	return 1
}
