package program

import "slices"

// Packet is a frame in a switch, from its ingress to the end of its egress. A Packet that is used again takes no new
// memory. The zero value is ready for [Switch.Ingress].
//
// Of a frame only the head is in memory: all headers, and as much of the payload as the caller wants to see again. The
// rest is a number of bytes.
type Packet struct {
	Instance uint32 // 0 for the packet itself, 1 for a clone of its ingress, 2 for one of its egress
	Port     uint16 // by which it leaves
	Head     []byte // of the frame that leaves, after [Switch.Egress]; valid until the next call
	Length   int    // of that frame

	in     uint16
	length int    // of the frame that came
	frame  []byte // its head; the headers are parts of it, or of made
	made   []byte // headers that the switch put in
	rest   []byte // of the head, while it is parsed
	failed bool   // the parser
	bad4   bool   // it failed for the IPv4 header

	// Headers in the order of the wire; nil is one that is not valid.
	packetIn              []byte // to the controller
	eth                   ethernet
	vlan                  []byte
	pint                  digest
	route, entry, entries []byte
	type2, labels, label  []byte
	v4                    ip4
	options               []byte
	v6                    ip6
	routing               []byte // the first bytes behind it
	udp                   udp
	tcp                   tcp
	shim                  shim
	head                  intHead
	block                 []byte // of this node
	stack                 []byte
	path, pathLabel       []byte
	empty                 []byte // the action id of an empty probe
	payload               []byte

	l4Len            uint16
	proto            uint8
	src, dst         []byte
	srcPort, dstPort uint16
	flow             [flowBytes + 2]byte // the key of tables of flows, and a port
	keyed            bool                // flow is set

	form     uint8 // what it looks like: a probe, or a packet with a digest
	followed bool  // it is a probe
	segment  bool  // IPv6 with a header of segment routing
	offered  pair  // to its port, with it
	plain    bool  // it leaves as it came

	cloned   bool   // a clone follows
	session  uint32 // of the clone
	returned bool   // the frame that left is a report, and comes back into the switch
	// INT that the sink node took out.
	keptShim  shim
	keptHead  intHead
	keptStack []byte
	meta      metadata
}

// metadata is what a program keeps of a packet from its ingress to its egress, and preserves for a clone.
type metadata struct {
	collector, hardware uint8
	size                uint16 // of the packet, as reports state it
	inserts             bool   // the source puts INT in

	// INT
	about, reason   uint8 // what a clone is about
	congested       bool
	asked           uint16
	ingress, egress uint16
	depth           uint32
	arrived, left   uint64
	source          Track
	own             bool // the packet is a report of this switch, which came back

	// PINT
	carries bool // it gets a digest
	epoch   uint8
	id      uint32
	written digest // as a report has it
	wide    bool
	rewrite uint8

	// The report of INT that follows the digest's; nextAbout is 0 for none.
	nextAbout, nextCollector uint8
	nextSize                 uint16
	nextSession              uint32
}

// Grew reports whether the switch has put a block of INT or a label into a packet.
func (p *Packet) Grew() bool { return p.block != nil || p.label != nil || p.pathLabel != nil }

// Instructions returns the bitmap of the INT that a packet has, or gets when it leaves. The result ok is false for a packet
// without INT, which the egress writes nothing measured into.
func (p *Packet) Instructions() (bitmap uint16, ok bool) {
	switch {
	case p.hasINT():
		return get(p.head, 4), true
	case p.meta.inserts:
		return p.meta.source.Bitmap, true
	}
	return 0, false
}

// Reason is the drop reason of a packet that did not get through the ingress; 0 for none.
func (p *Packet) Reason() uint8 { return p.meta.reason }

// NewPacket returns a Packet with room for a frame of the usual length behind it, so that a prefetch finds both.
func NewPacket() *Packet {
	x := &struct {
		Packet
		room [madeRoom + frameRoom]byte
	}{}
	x.made, x.frame = x.room[:0:madeRoom], x.room[madeRoom:madeRoom]
	return &x.Packet
}

// frameRoom is enough for the heads of most frames.
const frameRoom = 512

// madeRoom is enough for all headers that a switch puts into a packet.
const madeRoom = 256

// begin takes a frame that comes by a port.
func (p *Packet) begin(port uint16, head []byte, length int) {
	made := p.made
	if made == nil {
		made = make([]byte, 0, madeRoom)
	}
	*p = Packet{in: port, length: length, frame: append(p.frame[:0], head...), made: made[:0], Head: p.Head[:0]}
	p.rest = p.frame
}

// restart makes p a clone of its ingress: the frame that came, to be parsed again, with what the program preserves.
func (p *Packet) restart(head []byte) {
	instance, port, m := p.Instance, p.Port, p.meta
	p.begin(p.in, head, p.length)
	p.Instance, p.Port = instance, port
	p.meta = metadata{
		collector: m.collector, hardware: m.hardware, size: m.size, about: m.about, reason: m.reason, congested: m.congested, asked: m.asked,
		ingress: m.ingress, egress: m.egress, depth: m.depth, arrived: m.arrived, left: m.left,
	}
}

// read returns the next n bytes. They are nil if they are not there, and nothing more is read then.
func (p *Packet) read(n int) []byte {
	if p.failed || n > len(p.rest) {
		p.failed = true
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

// verify stops the parser if something does not hold.
func (p *Packet) verify(ok bool) bool {
	p.failed = p.failed || !ok
	return ok && !p.failed
}

// put makes a header of n zeros.
func (p *Packet) put(n int) []byte {
	at := len(p.made)
	p.made = slices.Grow(p.made, n)[:at+n]
	b := p.made[at : at+n : at+n]
	clear(b)
	return b
}

// size is the length of the frame as its headers are now.
func (p *Packet) size() int {
	n := len(p.packetIn) + len(p.eth) + len(p.vlan) + len(p.pint) + len(p.route) + len(p.entry) + len(p.entries) + len(p.type2) + len(p.labels) + len(p.label)
	n += len(p.v4) + len(p.options) + len(p.v6) + len(p.routing) + len(p.udp) + len(p.tcp) + len(p.shim) + len(p.head) + len(p.block) + len(p.stack)
	return n + len(p.path) + len(p.pathLabel) + len(p.empty) + len(p.payload) + p.length - len(p.frame)
}

// deparse writes the frame behind the front of a report, or behind nothing. It is cut at limit, if that is above 0.
func (p *Packet) deparse(limit int) {
	if p.v4 != nil && !p.plain {
		put(p.v4, 10, csum16(p.v4, p.options))
	}
	b := append(append(append(append(p.Head, p.packetIn...), p.eth...), p.vlan...), p.pint...)
	if p.type2 != nil || p.labels != nil || p.route != nil { // of few packets
		b = append(append(append(append(b, p.route...), p.entry...), p.entries...), p.type2...)
		b = append(append(b, p.labels...), p.label...)
	}
	b = append(append(append(append(append(append(b, p.v4...), p.options...), p.v6...), p.routing...), p.udp...), p.tcp...)
	b = append(append(append(append(b, p.shim...), p.head...), p.block...), p.stack...)
	b = append(append(append(append(b, p.path...), p.pathLabel...), p.empty...), p.payload...)
	p.Head, p.Length = b, len(b)+p.length-len(p.frame)
	if limit > 0 && p.Length > limit {
		p.Length = limit
		p.Head = b[:min(limit, len(b))]
	}
}
