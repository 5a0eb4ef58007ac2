package demux

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Kind is the kind of datagrams that a port accepts.
type Kind uint8

// The kinds.
const (
	Anything    Kind = iota
	ReportsOnly      // telemetry reports, and other formats of the profile
	SFlowOnly
	IPFIXOnly // and NetFlow 9
)

var kindNames = [...]string{"anything", "reports", "sFlow", "IPFIX and NetFlow 9"}

func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// Takes reports whether a port of this kind accepts reports of a format.
func (k Kind) Takes(f decode.Format) bool {
	switch f {
	case decode.SFlow:
		return k == Anything || k == SFlowOnly
	case decode.IPFIX, decode.NetFlow9:
		return k == Anything || k == IPFIXOnly
	case decode.NetFlow5:
		return k == Anything
	case decode.SFlow4: // no port is for it, and another kind of port does not make it read
		return true
	}
	return k == Anything || k == ReportsOnly
}

// packetOnly is packet and forget for a frame to a port that accepts one kind of datagrams. Packets of the network
// are on their way, and no datagrams to it.
func (d *Decoder) packetOnly(only Kind, b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	at, end := p.L4+packet.UDPLen, p.UDPEnd(data)
	payload := data[min(at, len(data)):max(min(at, len(data)), min(end, len(data)))]
	f := Recognise(payload, end-at)
	if f == 0 && d.table.payload == nil {
		f = begins(payload)
	}
	if f != 0 && !only.Takes(f) {
		r, to := d.next(b, time), p.Dst(data)
		r.Format, r.Exporter, r.To = f, p.Src(data), decode.Destination(&to, p.DstPort())
		r.Has |= decode.HasExporter
		r.Fail(f, "version", at, decode.NotRead)
		return 1
	}
	n = d.packet(b, p, data, time)
	if d.special {
		d.forget(b, n)
	}
	for _, r := range b.Reports[len(b.Reports)-n:] {
		if r.Err.Reason == 0 && r.Has&decode.HasExporter != 0 && !only.Takes(r.Format) {
			r.Fail(r.Format, "version", at, decode.NotRead)
		}
	}
	return n
}

// lazyOnly is lazy for a datagram at a port for one kind. A datagram of another kind fails like one that no profile
// reads. No shape is taken from it.
func (d *Decoder) lazyOnly(only Kind, b *decode.LazyBatch, src *decode.Addr, payload []byte, length int, time int64) (n int) {
	f := Recognise(payload, length)
	if f == 0 && d.table.payload == nil {
		f = begins(payload)
	}
	if f != 0 && only.Takes(f) || f == 0 && only == ReportsOnly {
		return d.lazy(b, src, payload, length, time)
	}
	general := d.shapes.memory()
	if f != 0 {
		r := d.next(general, time)
		r.Format, r.Exporter = f, *src
		r.Has |= decode.HasExporter
		r.Fail(f, "version", 0, decode.NotRead)
		n = 1
	} else {
		n = d.DatagramCut(general, *src, payload, length, time)
		for _, r := range general.Reports {
			if r.Err.Reason == 0 {
				r.Fail(r.Format, "version", 0, decode.NotRead)
			}
		}
	}
	b.AppendBatch(general)
	b.SetSum(n, decode.Sum(payload))
	return n
}
