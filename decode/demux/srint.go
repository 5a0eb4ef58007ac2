package demux

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
)

// path decodes an INT-path probe, which p shows to be one. Switches that forward these probes look at fixed places.
func (d *Decoder) path(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	r := d.next(b, time)
	r.Format, r.Kind = decode.INTPath, decode.KindProbe
	setFlow(r, p, data)
	switch {
	case p.Fragment:
		r.Fail(decode.INTPath, "fragment", p.FragAt, decode.Unsupported)
	case p.L4-p.L3 != 20:
		r.Fail(decode.INTPath, "options", p.L3+20, decode.Unsupported)
	default:
		srint.DecodePath(r, data[p.L4:], p.End-p.L4, p.L4, d.profile.LenientPath)
	}
	return 1
}

// probe decodes an INT-Probe frame, if p is one. One whose route leads an ordinary packet is none.
func (d *Decoder) probe(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	if !d.profile.INTProbe || p.EtherType != srint.TypeRoute && p.EtherType != srint.TypeINT {
		return 0
	}
	if !srint.DecodeProbe(d.next(b, time), p.EtherType, data[p.L3:], p.End-p.L3, p.L3) {
		b.Cancel()
		return 0
	}
	return 1
}
