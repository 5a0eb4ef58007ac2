package probe

import (
	"net"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Groups puts reports 2.0 about probes into datagrams for one collector. The sequence number counts datagrams to it.
type Groups struct {
	Node uint32
	HWID uint8
	Most int // bytes of a datagram
	seq  uint32
	buf  []byte
	Send func([]byte) // gets the datagram, for as long as the call takes
	Conn net.Conn     // that send writes to; nil where it writes elsewhere
}

// NewGroups reports as the agent with a node id, in datagrams of at most that many bytes. The function send gets each
// datagram for the duration of the call.
func NewGroups(node uint32, most int, send func([]byte)) *Groups {
	return &Groups{Node: node, Most: most, Send: send}
}

// Add appends a report about a, and sends what does not fit with it before.
func (g *Groups) Add(a *Arrival) { g.Packet(a.Packet) }

// Packet appends a report about a packet of IPv4 or IPv6 with telemetry in it.
func (g *Groups) Packet(packet []byte) {
	g.add(&telemetry.Header{Flags: decode.Tracked, Inner: inner(packet)}, packet)
}

// add appends a report about a packet.
func (g *Groups) add(h *telemetry.Header, packet []byte) {
	words := h.Words(len(packet))
	g.makeRoom(words)
	if len(g.buf) == 0 {
		g.buf = telemetry.AppendGroup(g.buf, g.HWID, g.seq, g.Node)
		g.seq = (g.seq + 1) & (1<<22 - 1)
	}
	g.buf = telemetry.Append20(g.buf, h, (len(packet)+3)&^3)
	g.buf = append(g.buf, packet...)
	for n := len(packet); n%4 != 0; n++ {
		g.buf = append(g.buf, 0)
	}
	if words >= telemetry.ToEnd { // such a report is the last of its datagram
		g.Flush()
	}
}

// makeRoom sends what is there if a report of so many words does not fit with it.
func (g *Groups) makeRoom(words int) {
	if len(g.buf) > 0 && len(g.buf)+4+4*words > g.Most {
		g.Flush()
	}
}

// DropMissing is the drop reason in a report about a round that did not come. No list of reasons has it.
const DropMissing = 250

// DropUnsent is the drop reason in a report about a round that the agent's own card did not take. No list of reasons has it.
const DropUnsent = 249

// Unsent appends a report that a probe was not sent, whose packet would have begun so.
func (g *Groups) Unsent(packet []byte) { g.Lost(packet, DropUnsent) }

// Missing appends a report that a probe did not come, whose packet would have begun so.
func (g *Groups) Missing(packet []byte) { g.Lost(packet, DropMissing) }

// mostDelays are the delays of one report about counts, so that it fits into a datagram of any size that the settings allow.
const mostDelays = 64

// Counts appends what became of probes whose packets begin so. Delays beyond those of one report are in further ones, with nothing else. Rounds
// are in a report of their own, before that of the counts and in the same datagram.
func (g *Groups) Counts(packet []byte, p *decode.ProbeCounts) {
	rest := p.Delays
	if p.Rounds.End != decode.NoEnd {
		h := telemetry.Header{Inner: inner(packet), Probes: &decode.ProbeCounts{Path: p.Path, Epoch: p.Epoch, Rounds: p.Rounds}}
		counts := telemetry.Header{Inner: h.Inner, Probes: &decode.ProbeCounts{Delays: rest[:min(len(rest), mostDelays)]}}
		g.makeRoom(h.Words(len(packet)) + 1 + counts.Words(len(packet)))
		if g.add(&h, packet); !counted(p) && len(rest) == 0 {
			return
		}
	}
	for part := *p; ; part = (decode.ProbeCounts{Path: p.Path, Epoch: p.Epoch}) {
		part.Rounds = decode.ProbeRounds{}
		part.Delays = rest[:min(len(rest), mostDelays)]
		rest = rest[len(part.Delays):]
		g.add(&telemetry.Header{Inner: inner(packet), Probes: &part}, packet)
		if len(rest) == 0 {
			return
		}
	}
}

// Way appends a report of the routers on the way of such probes; a zero address is one that did not answer. A way of more
// than [decode.MostWay] routers, or of none that answered, is not reported.
func (g *Groups) Way(packet []byte, path, epoch uint32, routers []netip.Addr) {
	if len(routers) > decode.MostWay || !slices.ContainsFunc(routers, netip.Addr.IsValid) {
		return
	}
	p := decode.ProbeCounts{Path: path, Epoch: epoch, Way: make([]decode.Addr, len(routers))}
	for i, a := range routers {
		if a.IsValid() {
			p.Way[i] = decode.AddrFrom(a)
		}
	}
	g.add(&telemetry.Header{Inner: inner(packet), Probes: &p}, packet)
}

// inner is the type of a packet of IPv4 or IPv6.
func inner(packet []byte) telemetry.InnerType {
	if packet[0]>>4 == 6 {
		return telemetry.InnerIPv6
	}
	return telemetry.InnerIPv4
}

// Lost appends a report of a packet of IPv4 or IPv6 with a drop reason.
func (g *Groups) Lost(packet []byte, reason uint8) {
	g.add(&telemetry.Header{Flags: decode.Dropped, Inner: inner(packet), Metadata: telemetry.MDDrop, DropReason: reason}, packet)
}

// Flush sends what is there.
func (g *Groups) Flush() {
	if len(g.buf) == 0 {
		return
	}
	g.Send(g.buf)
	g.buf = g.buf[:0]
}
