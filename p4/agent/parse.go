package agent

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
)

// Reason is why a frame that came is no probe that can be reported.
type Reason uint8

// The reasons. String gives their names in metrics.
const (
	OK         Reason = iota
	Foreign           // no IPv4 packet to the port of INT, a fragment, or without our mark
	unfinished        // its route has entries left: it came to a host too early
	badINT            // the INT part breaks a rule of its format
	badPayload        // behind INT is no payload of a probe
	numReasons
)

var reasonNames = [numReasons]string{"ok", "foreign", "unfinished", "bad-int", "bad-payload"}

func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Arrival is a probe that came back.
type Arrival struct {
	Source [4]byte // address of who sent it
	Number uint32  // of the probe, among those of its sender
	Epoch  uint32
	Seq    uint32
	Sent   int64 // ns since 1970, by the sender's clock
	Hops   int
	// Transit is the time that it spent in all switches together, in ns; 0 where it is not known.
	Transit uint64
	Flags   decode.Flags // HopLimit and MTU: a switch added nothing, and why
	Packet  []byte       // from the IP header on; part of the frame that was read
}

// Parser reads frames. It is for one goroutine, keeps nothing between two of them and allocates nothing.
type Parser struct {
	mark   uint8
	ints   *intmd.Decoder
	report decode.Report
}

// NewParser makes a parser of probes with a DSCP.
func NewParser(mark uint8) *Parser {
	return &Parser{mark: mark, ints: intmd.New(intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}})}
}

// Parse reads a frame from its Ethernet header on. Nothing in it is trusted: whatever it holds, a is either a probe whose
// stack is whole, or a reason is given.
func (ps *Parser) Parse(a *Arrival, frame []byte) Reason {
	*a = Arrival{}
	var p packet.Packet
	p.Frame(packet.LinkEthernet, frame, len(frame))
	switch {
	case p.EtherType == srint.TypeRoute:
		return unfinished
	case p.IP != 4 || p.Fragment || p.Proto != packet.ProtoUDP || !p.HasPorts || p.DstPort() != intPort || p.DSCP() != ps.mark:
		return Foreign
	}
	end := p.UDPEnd(frame)
	place := intmd.Place{At: p.L4 + packet.UDPLen, IPEnd: min(p.End, len(frame)), End: min(end, len(frame)), ByPort: true}
	if place.End < place.At+intLen || p.End > len(frame) {
		return badINT
	}
	r := &ps.report
	r.Reset()
	v := ps.ints.Decode(r, frame, &place)
	if v != decode.V21 || r.Err.Reason != 0 || r.Flags&decode.Truncated != 0 || place.Type != intmd.TypeMD || place.NPT != 1 || place.Original != probePort {
		return badINT
	}
	if place.Next < 0 || place.End-place.Next != payloadLen {
		return badPayload
	}
	be, b := binary.BigEndian, frame[place.Next:place.End]
	if be.Uint32(b) != magic {
		return badPayload
	}
	copy(a.Source[:], frame[p.L3+12:])
	a.Number, a.Epoch, a.Seq, a.Sent = be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:]), int64(be.Uint64(b[16:]))
	a.Hops, a.Flags, a.Packet = len(r.Hops), r.Flags&(decode.HopLimit|decode.MTU), frame[p.L3:p.End]
	if a.Flags == 0 {
		a.Transit = transit(r.Hops)
	}
	return OK
}

// MostTransit bounds the times that one probe spends in switches: above it a clock is wrong, and not a queue long.
const MostTransit = uint64(time.Minute)

// transit adds up the times in switches. Each is by one clock, so that no two have to agree. It is 0 where a switch reports none.
func transit(hops []decode.Hop) (ns uint64) {
	for k := range hops {
		d, ok := decode.DefaultUnits.Latency(&hops[k])
		if ok = ok && d <= MostTransit-ns; !ok {
			return 0
		}
		ns += d
	}
	return ns
}
