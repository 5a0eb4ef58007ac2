package ioam

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// IFA reads IFA in packets of the network.
type IFA struct {
	Protocols []uint8 // of IP; none means [IFAProtocol]
	// Proven: others use the protocols, too. A packet whose header may be another one is passed over, where it is
	// malformed else.
	Proven bool
}

var _ packet.Format = IFA{}

func (f IFA) protocols() []uint8 {
	if len(f.Protocols) == 0 {
		return []uint8{IFAProtocol}
	}
	return f.Protocols
}

// Where is every packet with an IP header.
func (f IFA) Where() packet.Where {
	return packet.Where{Any: true, Mark: "IP protocol " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.protocols())), ", "), "[]")}
}

// NewReader returns a reader that keeps nothing of a packet.
func (f IFA) NewReader() packet.Reader {
	r := &ifaReader{proven: f.Proven}
	for _, p := range f.protocols() {
		r.protocols[p] = true
	}
	return r
}

func (f IFA) String() string { return "IFA 2.0" }

type ifaReader struct {
	protocols [256]bool // that are IFA
	proven    bool
}

// Read reads the IFA stack of a packet. Fragments have none.
func (r *ifaReader) Read(b *decode.Batch, p *packet.Packet, data []byte) int {
	if !r.protocols[p.Proto] || p.IP == 0 || p.L4 == 0 || p.Fragment || r.proven && !proven(behind(p, data)) {
		return 0
	}
	out := b.Next()
	p.Report(out, data)
	decodeIFA(out, p, data)
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
