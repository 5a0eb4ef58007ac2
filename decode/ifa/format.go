package ifa

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Packets reads IFA in packets of the network.
type Packets struct {
	Protocols []uint8 // of IP; none means [Protocol]
	// Proven: others use the protocols, too. A packet whose header may be another one is passed over, where it is
	// malformed else.
	Proven bool
}

var _ packet.Format = Packets{}

func (f Packets) protocols() []uint8 {
	if len(f.Protocols) == 0 {
		return []uint8{Protocol}
	}
	return f.Protocols
}

// Where is every packet with an IP header.
func (f Packets) Where() packet.Where {
	return packet.Where{Any: true, Mark: "IP protocol " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.protocols())), ", "), "[]")}
}

// NewReader returns a reader that keeps nothing of a packet.
func (f Packets) NewReader() packet.Reader {
	r := &reader{proven: f.Proven}
	for _, p := range f.protocols() {
		r.protocols[p] = true
	}
	return r
}

func (f Packets) String() string { return "IFA 2.0" }

type reader struct {
	protocols [256]bool // that are IFA
	proven    bool
}

// Read reads the IFA stack of a packet. Fragments have none.
func (r *reader) Read(b *decode.Batch, p *packet.Packet, data []byte) int {
	if !r.protocols[p.Proto] || p.IP == 0 || p.L4 == 0 || p.Fragment || r.proven && !proven(behind(p, data)) {
		return 0
	}
	out := b.Next()
	p.Report(out, data)
	decodePacket(out, p, data)
	return 1
}

// behind is the captured part of a packet behind its IP header. The IP length may end within that header.
func behind(p *packet.Packet, data []byte) []byte {
	end := min(p.End, len(data))
	return data[min(p.L4, end):end]
}

// proven reports whether b begins with a header of IFA, by all of its checkable fields. These are its version, a
// protocol that can follow, the reserved flags, and the length of a UDP header. Other bytes pass once in 3,500 times.
func proven(b []byte) bool {
	if len(b) < headerLen || b[0]>>4 != version || b[2]&reservedFlags != 0 {
		return false
	}
	switch b[1] {
	case packet.ProtoUDP:
		return len(b) < headerLen+6 || be.Uint16(b[headerLen+4:]) >= udpLen
	case packet.ProtoTCP, packet.ProtoGRE, 4, 41, 43, 44, 50, 51, 60: // IP in IP, extension headers, ESP and AH
		return true
	}
	return false
}
