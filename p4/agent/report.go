package agent

import (
	"net"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Groups puts reports 2.0 about probes into datagrams for one collector. The sequence number counts datagrams to it.
type Groups struct {
	node uint32
	hwID uint8
	most int // bytes of a datagram
	seq  uint32
	buf  []byte
	send func([]byte) // gets the datagram, for as long as the call takes
	conn net.Conn     // that send writes to; nil where it writes elsewhere
}

// NewGroups reports as the agent with a node id, in datagrams of at most so many bytes, each of which send gets for as long as the
// call takes.
func NewGroups(node uint32, most int, send func([]byte)) *Groups {
	return &Groups{node: node, most: most, send: send}
}

// Add appends a report about a, and sends what does not fit with it before.
func (g *Groups) Add(a *Arrival) {
	h := telemetry.Header{Flags: decode.Tracked, Inner: telemetry.InnerIPv4}
	words := h.Words(len(a.Packet))
	if len(g.buf) > 0 && len(g.buf)+4+4*words > g.most {
		g.Flush()
	}
	if len(g.buf) == 0 {
		g.buf = telemetry.AppendGroup(g.buf, g.hwID, g.seq, g.node)
		g.seq = (g.seq + 1) & (1<<22 - 1)
	}
	g.buf = telemetry.Append20(g.buf, &h, (len(a.Packet)+3)&^3)
	g.buf = append(g.buf, a.Packet...)
	for n := len(a.Packet); n%4 != 0; n++ {
		g.buf = append(g.buf, 0)
	}
	if words >= telemetry.ToEnd { // such a report is the last of its datagram
		g.Flush()
	}
}

// Flush sends what is there.
func (g *Groups) Flush() {
	if len(g.buf) == 0 {
		return
	}
	g.send(g.buf)
	g.buf = g.buf[:0]
}

// Track follows the rounds of probes that come back, to count those that are lost, late or come twice. It has room for a
// number of probes; what comes of others is reported, and not followed.
type Track struct {
	most int
	last map[trackKey]*trackState
}

type trackKey struct {
	source [4]byte
	number uint32
}

// NewTrack makes one that follows so many probes at most.
func NewTrack(most int) *Track { return &Track{most: most, last: map[trackKey]*trackState{}} }

// Add follows a probe that came; ok is false where there is no room to.
func (t *Track) Add(a *Arrival) (ok bool) { return !t.see(a).unknown }

// trackState is what came of one probe. Window is a bit for each of the last 64 rounds up to Seq: the lowest is that of Seq.
type trackState struct {
	epoch, seq uint32
	window     uint64
	sent       int64 // time of Seq

	first, received uint32 // the round that it began with, and how many came from it on
	begun           uint32 // times that it did
	transit         uint64 // of those of received that have one
	transits        uint32 // how many they are
}

// begin is the first arrival of a probe, or one with which it begins anew.
func (x *trackState) begin(a *Arrival) {
	*x = trackState{epoch: a.Epoch, seq: a.Seq, window: 1, sent: a.Sent, first: a.Seq, begun: x.begun + 1}
	x.arrived(a)
}

// arrived counts a round that came for the first time.
func (x *trackState) arrived(a *Arrival) {
	x.received++
	if a.Transit > 0 {
		x.transit += a.Transit
		x.transits++
	}
}

// seen is what an arrival says about the rounds of its probe.
type seen struct {
	lost    int64 // rounds that were passed over; -1 for one that was counted as lost and is late
	twice   bool
	unknown bool // there is no room to follow it
}

func (t *Track) see(a *Arrival) (s seen) {
	k := trackKey{a.Source, a.Number}
	x, ok := t.last[k]
	switch {
	case !ok && len(t.last) >= t.most:
		return seen{unknown: true}
	case !ok:
		x = new(trackState)
		x.begin(a)
		t.last[k] = x
		return s
	case a.Epoch != x.epoch:
		if int32(a.Epoch-x.epoch) > 0 { // a new plan counts from its beginning
			x.begin(a)
		}
		return s
	}
	const most = 1 << 16 // a gap above is another beginning, such as that of a sender that was started again
	switch d := int64(int32(a.Seq - x.seq)); {
	case d > most || d < -most || d <= 0 && a.Sent > x.sent: // sent later, and yet an earlier round
		x.begin(a)
	case d > 0:
		s.lost = d - 1
		x.seq, x.sent = a.Seq, a.Sent
		x.arrived(a)
		if d < 64 {
			x.window = x.window<<d | 1
		} else {
			x.window = 1
		}
	case d <= -64: // too old to tell
	case x.window&(1<<-d) != 0:
		s.twice = true
	default:
		if int32(a.Seq-x.first) > 0 { // one from before the first was never taken for lost
			x.window |= 1 << -d
			x.arrived(a)
			s.lost = -1
		}
	}
	return s
}
