package probe

import (
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4/agent/agentpb"
)

// Rounds are counts of rounds up to a moment: of the probes that an agent sends, and of those that come to it. All numbers of rounds wrap
// around at 32 bits.
type Rounds struct {
	Epoch      uint32     // of the plan whose probes are in Sent; 0 without one
	Address    netip.Addr // that they come from
	Sent       []SentRounds
	Received   []ReceivedRounds
	Spoiled    uint64 // frames that may have been probes and were not read: dropped by the kernel, or malformed
	Unfollowed uint64 // probes that came and for whose rounds there was no room
	leftOut    uint32 // of Sent and Came, where a message had no room for them
}

// SentRounds are those of a probe that the agent sends.
type SentRounds struct {
	ID       string
	Number   uint32 // number of the probe in packets, among those of the agent
	Route    []int  // as in the plan
	Interval time.Duration
	Next     uint32 // round that is sent next; the card took all below
	Failed   uint32 // rounds of the schedule that the card did not take, beside them
}

// ReceivedRounds are those of a probe that came, of the last epoch in which any did.
type ReceivedRounds struct {
	Source   [4]byte // address of its sender
	Number   uint32
	Epoch    uint32
	First    uint32 // round that came first
	Next     uint32 // the one behind the latest that came
	Received uint32 // rounds from First on that came, each counted once
	Window   uint64 // the last 64 rounds below Next, the latest one in the lowest bit: those that came
	Begun    uint32 // times that counting began: with First, with an epoch, and when the sender began anew
	Transit  uint64 // times in switches since then, ns, added up and wrapped around
	Transits uint32 // of Received, the rounds that these are of
	Corrupt  uint32 // of Received, the rounds whose frames were changed on their way, and not read
}

// Received are the rounds that a track follows.
func (t *Track) Received() []ReceivedRounds {
	list := make([]ReceivedRounds, 0, len(t.last))
	for k, x := range t.last {
		list = append(list, ReceivedRounds{Source: k.Source, Number: k.Number, Epoch: x.epoch, First: x.first, Next: x.seq + 1, Received: x.received, Window: x.window, Begun: x.begun,
			Transit: x.transit, Transits: x.transits, Corrupt: x.corrupt})
	}
	return list
}

// Bounds of what an agent may report of rounds.
const (
	mostRounds     = 1 << 15 // entries of Sent, and of Came
	mostRoundBytes = 900_000 // of a message, which a controller takes up to a megabyte of
)

// Proto is the message of an agent of a name, as the answer to a question of a number. Rounds without room in it are
// left out, and counted.
func (r *Rounds) Proto(name string, about uint64) *agentpb.Rounds {
	m := &agentpb.Rounds{Agent: name, About: about, Epoch: r.Epoch, Spoiled: r.Spoiled, Unfollowed: r.Unfollowed, LeftOut: r.leftOut}
	if r.Address.IsValid() {
		m.Address = r.Address.AsSlice()
	}
	room := mostRoundBytes
	fits := func(x proto.Message) bool {
		const head = 5 // of an entry
		if n := proto.Size(x) + head; n <= room {
			room -= n
			return true
		}
		m.LeftOut++
		return false
	}
	for k := range r.Sent {
		x := &r.Sent[k]
		y := &agentpb.Sent{Id: x.ID, Number: x.Number, IntervalNs: uint64(x.Interval), Next: x.Next, Failed: x.Failed}
		for _, port := range x.Route {
			y.Route = append(y.Route, byte(port))
		}
		if fits(y) {
			m.Sent = append(m.Sent, y)
		}
	}
	for k := range r.Received {
		x := &r.Received[k]
		y := &agentpb.Came{Source: x.Source[:], Number: x.Number, Epoch: x.Epoch, First: x.First, Next: x.Next, Received: x.Received, Window: x.Window, Begun: x.Begun,
			TransitNs: x.Transit, Transits: x.Transits, Corrupt: x.Corrupt}
		if fits(y) {
			m.Came = append(m.Came, y)
		}
	}
	return m
}

// RoundsOf decodes the rounds that an agent reported. Impossible values are an error, and the result must not be used
// then.
func RoundsOf(m *agentpb.Rounds) (*Rounds, error) {
	r := &Rounds{Epoch: m.GetEpoch(), Spoiled: m.GetSpoiled(), Unfollowed: m.GetUnfollowed(), leftOut: m.GetLeftOut()}
	if len(m.GetSent()) > mostRounds || len(m.GetCame()) > mostRounds {
		return nil, fmt.Errorf("rounds of %d and %d probes; the most are %d", len(m.GetSent()), len(m.GetCame()), mostRounds)
	}
	if b := m.GetAddress(); len(b) > 0 {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !a.Is4() {
			return nil, fmt.Errorf("an address of %d bytes is none of IPv4", len(b))
		}
		r.Address = a
	}
	if len(m.GetSent()) > 0 && (r.Epoch == 0 || !r.Address.IsValid()) {
		return nil, fmt.Errorf("probes are sent without an epoch or an address")
	}
	ids := make(map[string]bool, len(m.GetSent()))
	numbers := make(map[uint32]bool, len(m.GetSent()))
	for _, x := range m.GetSent() {
		id := x.GetId()
		switch {
		case id == "" || len(id) > maxName:
			return nil, fmt.Errorf("a probe's id %.40q has not 1 to %d bytes", id, maxName)
		case ids[id] || numbers[x.GetNumber()]:
			return nil, fmt.Errorf("probe %.40q, or its number %d, is there twice", id, x.GetNumber())
		case x.GetIntervalNs() < uint64(minInterval) || x.GetIntervalNs() > uint64(maxInterval):
			return nil, fmt.Errorf("probe %.40q has an interval of %d ns", id, x.GetIntervalNs())
		case len(x.GetRoute()) == 0 || len(x.GetRoute()) > math.MaxUint8/2:
			return nil, fmt.Errorf("probe %.40q has a route of %d ports", id, len(x.GetRoute()))
		}
		ids[id], numbers[x.GetNumber()] = true, true
		y := SentRounds{ID: id, Number: x.GetNumber(), Interval: time.Duration(x.GetIntervalNs()), Next: x.GetNext(), Failed: x.GetFailed()}
		for _, port := range x.GetRoute() {
			y.Route = append(y.Route, int(port))
		}
		r.Sent = append(r.Sent, y)
	}
	seen := make(map[TrackKey]bool, len(m.GetCame()))
	for _, x := range m.GetCame() {
		if len(x.GetSource()) != 4 {
			return nil, fmt.Errorf("a source of %d bytes is no IPv4 address", len(x.GetSource()))
		}
		y := ReceivedRounds{Source: [4]byte(x.GetSource()), Number: x.GetNumber(), Epoch: x.GetEpoch(), First: x.GetFirst(), Next: x.GetNext(), Received: x.GetReceived(),
			Window: x.GetWindow(), Begun: x.GetBegun(), Transit: x.GetTransitNs(), Transits: x.GetTransits(), Corrupt: x.GetCorrupt()}
		k := TrackKey{y.Source, y.Number}
		switch {
		case seen[k]:
			return nil, fmt.Errorf("number %d of %v is there twice", y.Number, netip.AddrFrom4(y.Source))
		case y.Window&1 == 0 || uint32(bits.OnesCount64(y.Window)) > y.Received:
			return nil, fmt.Errorf("number %d of %v: %#x are not the last of %d rounds", y.Number, netip.AddrFrom4(y.Source), y.Window, y.Received)
		case y.Corrupt > y.Received:
			return nil, fmt.Errorf("number %d of %v: %d rounds are corrupt of %d that came", y.Number, netip.AddrFrom4(y.Source), y.Corrupt, y.Received)
		case y.Received == 0 || y.Received > y.Next-y.First && y.Next != y.First: // which have wrapped around to each other
			return nil, fmt.Errorf("number %d of %v: %d rounds came from %d on, below %d", y.Number, netip.AddrFrom4(y.Source), y.Received, y.First, y.Next)
		}
		seen[k] = true
		r.Received = append(r.Received, y)
	}
	return r, nil
}

// SentRounds returns those of the probes of a work, as far as its sender has reported them.
func (w *Work) SentRounds() []SentRounds {
	list := make([]SentRounds, len(w.Templates))
	for k := range w.Templates {
		x := &w.Plan.Probes[w.Templates[k].Probe]
		list[k] = SentRounds{ID: x.ID, Number: w.Templates[k].Number, Route: x.Route, Interval: x.Interval, Next: w.Next[k].Load(), Failed: w.Failed[k].Load()}
	}
	return list
}
