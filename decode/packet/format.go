package packet

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// Format holds the options of a profile for one format that rides in packets of the network. The package of a format
// has a type that implements it. The choice among formats uses nothing else of them.
type Format interface {
	Where() Where
	NewReader() Reader // for one goroutine
	String() string    // the name for display, with the profile's options
}

// Reader reads one format out of packets.
type Reader interface {
	// Read appends the reports in the packet p, which was read from data, and returns their number. It is 0 if p has
	// none of the format's marks. The reports alias data; offsets of errors count from data[0].
	Read(b *decode.Batch, p *Packet, data []byte) (n int)
}

// PayloadReader is a Reader whose packets end at a host's socket. With such a format, a profile reads its exporters'
// datagrams as such packets.
type PayloadReader interface {
	Reader
	// ReadPayload appends one report about the payload of a UDP datagram of length bytes, of which payload may hold less.
	ReadPayload(b *decode.Batch, payload []byte, length int)
}

// ReportReader is a Reader that also reads packets inside of telemetry reports. Its telemetry becomes part of the report.
type ReportReader interface {
	Reader
	// ReadReport reads the telemetry in the packet p into r, which has no hops, and reports whether p has any. It may change
	// format and kind of r. The values alias data; offsets of errors count from data[0].
	ReadReport(r *decode.Report, p *Packet, data []byte) bool
}

// Where is the set of packets that are searched for a format.
type Where struct {
	Ports      []uint16 // UDP destination ports
	EtherTypes []uint16 // of frames without an IP header
	Any        bool     // every packet with an IP header
	Mark       string   // for display: the mark that the reader itself checks, "IPv4 with TOS byte 1"
	// Alone: a sender of this format sends nothing else. Packets without it are no telemetry.
	Alone bool
}

// Report sets the values of p's IP header: flow, TTL and packet id. It must not be called when p.IP is 0.
func (p *Packet) Report(r *decode.Report, data []byte) {
	p.Flow(&r.Flow, data)
	has := r.Has | decode.HasFlow | decode.HasTTL
	r.TTL = p.TTL
	if p.HasPorts {
		has |= decode.HasPorts
	}
	if p.IP == 4 {
		r.PacketID = p.ID
		has |= decode.HasPacketID
	}
	r.Has = has
}

// ReportPorts sets the ports of r's flow by the transport header at data[at], if r's protocol has ports. The data end
// with the packet, or earlier.
func ReportPorts(r *decode.Report, data []byte, at int) {
	r.Flow.SrcPort, r.Flow.DstPort = 0, 0
	r.Has &^= decode.HasPorts
	if (r.Flow.Proto == ProtoTCP || r.Flow.Proto == ProtoUDP) && len(data)-at >= 4 {
		ports := binary.BigEndian.Uint32(data[at:])
		r.Flow.SrcPort, r.Flow.DstPort = uint16(ports>>16), uint16(ports)
		r.Has |= decode.HasPorts
	}
}
