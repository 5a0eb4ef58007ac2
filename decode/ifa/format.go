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
	r := &reader{}
	for _, p := range f.protocols() {
		r[p] = true
	}
	return r
}

func (f Packets) String() string { return "IFA 2.0" }

// reader has the protocols that are IFA.
type reader [256]bool

// Read reads the IFA stack of a packet. Fragments have none.
func (r *reader) Read(b *decode.Batch, p *packet.Packet, data []byte) int {
	if !r[p.Proto] || p.IP == 0 || p.L4 == 0 || p.Fragment {
		return 0
	}
	out := b.Next()
	p.Report(out, data)
	decodePacket(out, p, data)
	return 1
}
