package shard

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// A packet of the network that is captured on several links of its way comes with a longer list of hops each time: its
// views. They are one packet, whose hops count once, in whatever order the views come and whatever comes between them.
//
// A view belongs to the oldest packet of its flow with the same identification that was not seen at that place (number
// of hops, TTL). One of the two lists of hops is contained in the other in one piece, with all values. Where packets
// differ in nothing, as many count as were seen at one place. A second view at the same place is the same packet only
// if identifications, or the times in hops, differ between packets of the flow.
const (
	// viewsWithin is how long the views of a packet come, in ns.
	viewsWithin = 1e9
	// mostViewed is how many packets are remembered.
	mostViewed = 1 << 12
	// viewedHops and viewedPlaces are how many hops and places of a packet are remembered. A packet with more counts
	// each time.
	viewedHops, viewedPlaces = 24, 16
	// mostAlike is how many packets of a flow that differ in nothing are looked through, without those before that are
	// too old.
	mostAlike = 64
	// provenBy is how many identifications must differ in a row, and heldFor how often one comes until they do not.
	provenBy, heldFor = 3, 8

	viewBuckets = mostViewed // of packets, and of flows
	viewsMemory = mostViewed*int64(unsafe.Sizeof(packetViews{})) + viewBuckets*int64(unsafe.Sizeof(viewBucket{})+unsafe.Sizeof(identifications{}))
)

// packetViews is a packet of the network. Items behind the ends of its lists are left over.
type packetViews struct {
	key    uint64 // of its flow and its identification
	time   int64  // of its newest view
	path   uint64 // which it made that of its flow; 0 if that has another one, or had it before
	next   uint32 // packet of the bucket that came later, +1
	change uint32 // number of the flow's change that it made
	n, at  uint8  // hops, places
	places [viewedPlaces]uint16
	hops   [viewedHops]uint32
}

// identifications is the state of those of a flow's packets.
type identifications struct {
	flow, last uint32
	differ     uint8
	held       uint8
}

// views remembers the packets of the network that came last, as a ring. The packets of a bucket are linked from the
// oldest one on.
type views struct {
	packets []packetViews
	oldest  int
	buckets []viewBucket
	flows   []identifications
	hops    [viewedHops]uint32 // memory
}

// viewBucket is the packets of one bucket, by their place in the ring, +1. The past packets before recent have no views
// after a time.
type viewBucket struct {
	first, newest uint32
	recent        uint32 // 0: all are past
	past          uint32
	after         int64
}

// view is the state of a packet before its report at hand.
type view struct {
	packet   *packetViews // nil for no packet of the network
	repeated bool         // it was seen
	hops     uint64       // those of the report that were counted, by their place in the list
}

// inNetwork reports whether r is a packet of the network, of which there can be several views.
func inNetwork(r *decode.Report) bool {
	switch r.Format {
	case decode.INTMD, decode.INTMX, decode.IOAM, decode.IFA:
		return r.Has&(decode.HasFlow|decode.HasExporter) == decode.HasFlow && r.Flags&decode.Sampled == 0 && len(r.Hops) <= viewedHops
	}
	return false
}

// observe returns the state of the packet of r, which is seen now.
func (v *views) observe(r *decode.Report, flow uint64) view {
	if v.buckets == nil {
		v.packets = make([]packetViews, 0, mostViewed) // which do not move: a batch points to them
		v.buckets, v.flows = make([]viewBucket, viewBuckets), make([]identifications, viewBuckets)
	}
	id := uint32(0)
	if r.Has&decode.HasPacketID != 0 {
		id = uint32(r.PacketID)
	}
	list := v.hops[:len(r.Hops)]
	for i := range list {
		list[i] = hopHash(&r.Hops[i])
	}
	key, numbered := flow^uint64(id)*0x9e3779b97f4a7c15, id != 0
	if len(r.Hops) > 0 && !numbered {
		if h := &r.Hops[0]; h.IngressTime%1e9 != 0 || h.EgressTime%1e9 != 0 {
			id = list[0]
		}
	}
	f := &v.flows[flow%viewBuckets]
	if f.flow != uint32(flow>>32) {
		*f = identifications{flow: uint32(flow >> 32)}
	}
	proven := f.differ >= provenBy && id != 0
	place := uint16(len(r.Hops))<<8 | uint16(r.TTL)
	b := &v.buckets[key>>40%viewBuckets]
	for at, n := b.from(r.Time), 0; at != 0 && n < mostAlike; n++ {
		p := &v.packets[at-1]
		b.pass(p, at, r.Time)
		at = p.next
		if p.key != key || p.time-r.Time > viewsWithin || r.Time-p.time > viewsWithin || int(p.at) == len(p.places) {
			continue
		}
		seen := p.seenAt(place)
		if seen && (!proven || len(list) > 0 && !slices.Contains(p.hops[:p.n], list[0])) {
			continue
		}
		known := p.common(list)
		if seen {
			if bits.OnesCount64(known) == len(list) {
				f.see(id)
				return view{p, true, known}
			}
			continue
		}
		if proven && numbered || inOnePiece(list, p.hops[:p.n]) || inOnePiece(p.hops[:p.n], list) {
			p.add(list, known, place, r.Time)
			return view{p, true, known}
		}
	}
	f.see(id)
	p := v.next(b)
	p.key, p.time, p.path, p.next, p.change, p.n, p.at = key, r.Time, 0, 0, 0, 0, 0
	p.add(list, 0, place, r.Time)
	return view{packet: p}
}

// see notes the identification of a packet.
func (f *identifications) see(id uint32) {
	switch {
	case id != f.last:
		f.last, f.held = id, 0
		f.differ = min(f.differ+1, provenBy)
	case f.held == heldFor:
		f.differ = 0
	default:
		f.held++
	}
}

// next returns the memory of a packet of a bucket: that of the oldest one.
func (v *views) next(b *viewBucket) *packetViews {
	i := len(v.packets)
	if i < mostViewed {
		v.packets = append(v.packets, packetViews{})
	} else {
		i = v.oldest
		v.oldest = (v.oldest + 1) % mostViewed
		p := &v.packets[i]
		from := &v.buckets[p.key>>40%viewBuckets] // where it is the oldest one, too
		from.first = p.next
		if from.past > 0 {
			from.past--
		}
	}
	place := uint32(i + 1)
	if b.first == 0 {
		b.first = place
	} else {
		v.packets[b.newest-1].next = place
	}
	if b.recent == 0 {
		b.recent = place
	}
	b.newest = place
	return &v.packets[i]
}

// from returns the first packet of the bucket that can have a view at a time.
func (b *viewBucket) from(time int64) uint32 {
	if b.past > 0 && time >= b.after {
		return b.recent
	}
	b.past, b.after = 0, math.MinInt64
	return b.first
}

// pass notes that p, at a place of the ring, is past at a time, if it is and all before it are.
func (b *viewBucket) pass(p *packetViews, at uint32, time int64) {
	if time-p.time <= viewsWithin || b.past > 0 && at != b.recent || b.past == 0 && at != b.first {
		return
	}
	b.past++
	b.recent, b.after = p.next, max(b.after, p.time+viewsWithin+1)
}

// seenAt reports whether the packet was seen at a place.
func (p *packetViews) seenAt(place uint16) bool { return slices.Contains(p.places[:p.at], place) }

// common returns the hops of list that the packet has, by their place, each of them once.
func (p *packetViews) common(list []uint32) (known uint64) {
	taken := uint64(0)
	for i, h := range list {
		for j, x := range p.hops[:p.n] {
			if x == h && taken>>j&1 == 0 {
				known |= 1 << i
				taken |= 1 << j
				break
			}
		}
	}
	return known
}

// add notes a view of the packet, of whose hops it has the known ones.
func (p *packetViews) add(list []uint32, known uint64, place uint16, at int64) {
	p.places[p.at] = place
	p.at++
	p.time = max(p.time, at)
	if bits.OnesCount64(known) == int(p.n) {
		p.n = uint8(copy(p.hops[:], list))
		return
	}
	for i, h := range list {
		if known>>i&1 == 0 && int(p.n) < len(p.hops) {
			p.hops[p.n] = h
			p.n++
		}
	}
}

// inOnePiece reports whether part, which is not empty, stands in whole in one piece.
func inOnePiece(part, whole []uint32) bool {
	if len(part) == 0 {
		return false
	}
	for at := 0; at+len(part) <= len(whole); at++ {
		if slices.Equal(whole[at:at+len(part)], part) {
			return true
		}
	}
	return false
}

// hopHash hashes all that a hop holds.
func hopHash(h *decode.Hop) uint32 {
	x := mix(uint64(h.Has)<<32|uint64(h.NodeID), uint64(h.IngressIf)<<48|uint64(h.EgressIf)<<32|uint64(h.Latency), 1) +
		mix(uint64(h.QueueOccupancy)<<32|uint64(h.BufferOccupancy), uint64(h.TxUtilization)<<32|uint64(h.QueueCongestion), 2) +
		mix(uint64(h.L2IngressIf)<<32|uint64(h.L2EgressIf), uint64(h.DeqOccupancy)<<16|uint64(h.QueueID)<<8|uint64(h.BufferID), 3) +
		mix(h.IngressTime, h.EgressTime, 4) +
		mix(uint64(h.EnqTime)<<32|uint64(h.QueueDelay), 0, 5) // terms do not wait for each other
	return uint32(x ^ x>>32)
}

// mix hashes two words at a place.
func mix(x, y, place uint64) uint64 {
	hi, lo := bits.Mul64(x^place*0x9e3779b97f4a7c15, y^0xe7037ed1a0b428db)
	return hi ^ lo
}

// recount counts what a report of a packet that was seen has beyond what was.
func (s *State) recount(f *flow, slot uint32, r *decode.Report, v *view) {
	f.last = max(f.last, r.Time)
	if bits.OnesCount64(v.hops) == len(r.Hops) {
		return
	}
	path, whole := reportsPath(r)
	if path = path && whole && len(r.Hops) >= int(v.packet.n); path {
		s.lengthen(f, slot, r, v.packet)
		if v.packet.change != 0 {
			s.path = s.path[:0]
			for i := range r.Hops[:min(len(r.Hops), s.cfg.MaxPathLength)] {
				s.path = append(s.path, hopKey(&r.Hops[i]))
			}
			s.cut.partial.LengthenPath(&inference.PathChange{Flow: r.Flow, Changes: v.packet.change, PathID: inference.PathID(r.Hops), To: s.path})
		}
	}
	rest := *r
	rest.Hops = s.restOf(r, v.hops)
	s.countPartial(f, &rest)
	if path && timed(f.inWindow) {
		s.cut.countTimesOf(r, v.hops)
	}
}

// restOf returns the hops of r that were not counted, in memory of the batch.
func (s *State) restOf(r *decode.Report, counted uint64) []decode.Hop {
	from := len(s.rest.hops)
	for i := range r.Hops {
		if counted>>i&1 == 0 {
			s.rest.hops = append(s.rest.hops, r.Hops[i])
		}
	}
	return s.rest.hops[from:len(s.rest.hops):len(s.rest.hops)]
}

// lengthen makes r, a view of p with more hops, the path of f. If a shorter view of p began that path, it is no other
// one.
func (s *State) lengthen(f *flow, slot uint32, r *decode.Report, p *packetViews) {
	id, before := inference.PathID(r.Hops), f.pathID
	part := 0
	switch {
	case id == before:
	case p.path != 0 && p.path == before:
		part = 1
	case before != 0 && f.flags&(postcards|partial) == 0:
		part = s.partOf(f, r)
	}
	if part < 0 {
		return
	}
	f.views, f.flags = 0, f.flags&^viewed
	if id == before {
		return
	}
	if part > 0 {
		f.flags |= partial
	}
	changes := f.changes
	s.setPath(f, slot, r, id)
	f.flags &^= partial
	if f.changes != changes {
		p.change = f.changes
	}
	p.path = id
	f.onPath = 1
}

// countSeen is count for a report whose packet has the state v.
func (s *State) countSeen(r *decode.Report, slot uint32, v *view) {
	f := &s.flows.At(slot).Value
	switch {
	case v.packet == nil:
		s.count(r, slot)
	case v.repeated:
		if f.window != s.window {
			s.enter(f, slot, r.Time)
		}
		s.recount(f, slot, r, v)
	default:
		path, changes := f.pathID, f.changes
		s.count(r, slot)
		if f.pathID != path {
			v.packet.path = f.pathID
		}
		if f.changes != changes {
			v.packet.change = f.changes
		}
	}
}
