package plain

import (
	"fmt"
	"math/bits"
	"slices"
)

// shim is where INT begins in a packet.
type shim struct {
	ip     *ip
	at     int
	end    int    // of the IP packet, by its lengths
	udpEnd int    // of the UDP datagram; 0 for TCP, or where the length is not there
	byPort bool   // found by the UDP port
	tunnel string // "gpe" or "geneve" in these, else in TCP or UDP
	tail   bool   // Intel: a tail follows the stack
	loose  bool   // Intel NProto 4: only the datagram bounds INT
}

// find searches the marks of INT in a packet; always is for Intel's NProto 4, which has none. A marked packet without
// room for a shim has no INT.
func find(p *Profile, packet *ip, always bool) *shim {
	if len(p.INT) == 0 || packet.fragment != 0 || packet.l4 < 0 {
		return nil
	}
	s := &shim{ip: packet, end: packet.end, tail: !always, loose: always}
	if always {
		s.end = packet.limit
	}
	marked := always || p.Mask != 0 && packet.tos>>2&p.Mask == p.DSCP
	switch packet.proto {
	case 17:
		s.byPort = packet.udp() && slices.Contains(p.Ports, packet.dstPort())
		s.at = packet.l4 + 8
		if packet.has(6) {
			s.udpEnd = packet.udpEnd()
		}
	case 6:
		s.at = packet.l4 + 20
		if p.BehindOpts && packet.has(13) {
			words := int(packet.b[packet.l4+12] >> 4)
			if words < 5 {
				return nil
			}
			s.at = packet.l4 + 4*words
		}
	default:
		return nil
	}
	if p.Encapsulated && packet.udp() && s.inTunnel() {
		s.byPort = true
	}
	if !marked && !s.byPort || s.at+4 > s.end {
		return nil
	}
	return s
}

// findAnywhere is find in a packet and in those that it carries, the outermost first.
func findAnywhere(p *Profile, packet *ip) *shim {
	for n := 0; packet != nil && n <= 8; n++ {
		if s := find(p, packet, false); s != nil {
			return s
		}
		packet = packet.carried()
	}
	return nil
}

// inTunnel searches INT 2.x in VXLAN-GPE and Geneve, by their ports.
func (s *shim) inTunnel() bool {
	packet := s.ip
	at := packet.l4 + 8 // of the tunnel's header
	switch {
	case !packet.has(12):
	case packet.dstPort() == 4790: // P bit, next protocol 0x82, in 2.0 0x80
		if b := packet.b[at:]; b[0]&4 != 0 && (b[3] == 0x82 || b[3] == 0x80) {
			s.tunnel, s.at, s.end = "gpe", at+8, packet.udpEnd()
			if !packet.has(16) { // a header that is cut has nothing behind it
				s.end = 0
			}
			return true
		}
	case packet.has(16) && packet.dstPort() == 6081 && packet.b[at]>>6 == 0:
		end := at + 8 + 4*int(packet.b[at]&0x3f) // of the options
		for place := at + 8; place+4 <= end && place+4 <= len(packet.b); {
			if u16(packet.b, place) == 0x0103 && place+4 <= packet.udpEnd() {
				s.tunnel, s.at, s.end = "geneve", place, min(packet.udpEnd(), end)
				return true
			}
			place += 4 + 4*int(packet.b[place+3]&0x1f)
		}
	}
	return false
}

// reading is the state of reading INT.
type reading struct {
	version   string
	mx        bool // INT-MX
	opaque    bool // a destination header
	keys      Object
	flags     []string
	hops      []Object // newest first
	err       Object
	truncated bool
	flow      func(o Object) // puts back what INT moved away
}

// into adds what was read to the object of a report or a packet.
func (r *reading) into(o Object) {
	if r.err != nil {
		o["error"] = r.err
		return
	}
	for k, v := range r.keys {
		o[k] = v
	}
	flag(o, r.flags...)
	if r.truncated {
		flag(o, "truncated")
	}
	hops := slices.Clone(r.hops)
	slices.Reverse(hops)
	o["hops"] = hops
	if r.flow != nil {
		r.flow(o)
	}
}

// item is a value of a hop's block.
type item struct {
	width int
	read  func(hop Object, b []byte, at int) // nil: not printed
}

func one(key string, width int) item {
	return item{width, func(hop Object, b []byte, at int) { valid(hop, key, b, at, width) }}
}

// two are two values in one item, of which the first has n bytes.
func two(first string, n int, second string, m int) item {
	return item{n + m, func(hop Object, b []byte, at int) {
		if _, there := hop[first]; !there { // a queue id comes twice in some bitmaps: the first one wins
			valid(hop, first, b, at, n)
		}
		valid(hop, second, b, at+n, m)
	}}
}

// items returns the values of a hop's block for the set bits, bit 0 first.
func items(version string, p *Profile, bitmap, domain uint16) (list []item) {
	time := 4
	if version == "2.1" || p.Geant {
		time = 8
	}
	if version == "2.1" && p.Elavinal {
		bitmap = bits.Reverse16(bitmap)
	}
	for bit := range 16 {
		if bitmap&(0x8000>>bit) == 0 {
			continue
		}
		next := item{width: 4}
		switch bit {
		case 0:
			next = one("node_id", 4)
		case 1:
			next = two("ingress_if", 2, "egress_if", 2)
		case 2:
			next = one("latency", 4)
		case 3:
			next = two("queue_id", 1, "queue_occupancy", 3)
		case 4:
			next = one("ingress_time", time)
		case 5:
			next = one("egress_time", time)
		case 6:
			next = two("l2_ingress_if", 4, "l2_egress_if", 4)
			if p.Geant {
				next = two("l2_ingress_if", 2, "l2_egress_if", 2)
			}
			if version == "0.5" {
				next = two("queue_id", 1, "queue_congestion", 3)
			}
		case 7:
			next = one("tx_utilization", 4)
		case 8:
			if version == "2.1" {
				next = two("buffer_id", 1, "buffer_occupancy", 3)
			}
		case 9, 10, 11:
			if p.FANT && domain == 0xfa17 {
				next = one([]string{"tx_packets", "dropped_packets", "dropped_bytes"}[bit-9], 4)
			}
		case 12, 13, 14:
			if p.FANT && domain == 0xfa17 {
				of := []string{"sr", "ipv4", "ipv6"}[bit-12]
				next = two(of+"_packets", 4, of+"_bytes", 4)
			}
		}
		list = append(list, next)
	}
	return list
}

// decode reads INT from its shim on.
func (s *shim) decode(p *Profile) *reading {
	b, at := s.ip.b, s.at
	if s.loose {
		b = s.ip.whole
	}
	there := func(off, n int) bool { return at+off+n <= len(b) }
	r := &reading{keys: Object{}}
	reject := func(field string, offset int, reason string) *reading {
		return &reading{mx: r.mx, opaque: r.opaque, err: Object{"format": "int-md", "field": field, "offset": uint64(at + offset), "reason": reason}}
	}
	cut := func() *reading {
		r.truncated = true
		return r
	}
	if !there(0, 1) {
		return cut()
	}

	// type, npt
	old := b[at] < 0x10 // 0.5 and 1.0: 8 bits of type, length in byte 2, counting the shim
	lengthAt, npt := 2, uint8(0)
	switch {
	case s.tunnel == "gpe":
		old, lengthAt = false, 1
		r.mx, r.opaque = b[at] == 0x30, b[at] == 0x20
		if b[at] != 0x10 && b[at] != 0x20 && b[at] != 0x30 {
			return reject("type", 0, "bad-type")
		}
	case s.tunnel == "geneve":
		old, lengthAt = false, 3
		if !there(2, 1) {
			return cut()
		}
		r.mx, r.opaque = b[at+2] == 3, b[at+2] == 2
		if b[at+2] < 1 || b[at+2] > 3 {
			return reject("type", 0, "bad-type")
		}
	case old:
		stack := uint8(1)
		if p.Intel {
			stack = 3
		}
		if b[at] != 2 && b[at] != stack || !p.readsINT("0.5") && !p.readsINT("1.0") {
			return reject("type", 0, "bad-type")
		}
		r.opaque = b[at] == 2
	default:
		r.mx = b[at]>>4 == 3 && p.readsINT("2.1")
		if b[at]>>4 > 3 || !p.readsINT("2.1") {
			return reject("type", 0, "bad-type")
		}
		r.opaque = b[at]>>4 == 2
		lengthAt, npt = 1, b[at]>>2&3
		if npt == 3 || npt != 0 && !s.byPort {
			return reject("npt", 0, "bad-type")
		}
	}

	// length too small
	if !there(lengthAt, 1) {
		return cut()
	}
	words := int(b[at+lengthAt])
	if s.tunnel == "geneve" {
		words &= 0x1f
	}
	intEnd := at + 4*words
	if !old {
		intEnd += 4
	}
	least := 3
	switch {
	case r.opaque && old:
		least = 1
	case r.opaque:
		least = 0
	}
	if words < least {
		return reject("length", lengthAt, "bad-length")
	}
	beyond := func(udp bool) bool {
		return !s.loose && (intEnd > s.end || udp && s.udpEnd != 0 && intEnd > s.udpEnd)
	}
	if r.opaque {
		if beyond(true) {
			return reject("length", lengthAt, "bad-length")
		}
		if !there(0, 4) {
			return cut()
		}
		r.version = "1.0"
		if !old {
			r.version = "2.1"
		}
		r.truncated = len(b) < intEnd
		return r
	}

	// version
	if !there(4, 1) {
		if beyond(!old) {
			return reject("length", lengthAt, "bad-length")
		}
		s.restore(p, r, npt, intEnd)
		return cut()
	}
	switch v := b[at+4] >> 4; {
	case old && p.OnosINT && v <= 1, old && v == 1 && p.readsINT("1.0"):
		r.version = "1.0"
	case old && v == 0 && p.readsINT("0.5"):
		r.version = "0.5"
	case !old && v == 2:
		r.version = "2.1"
	default:
		return reject("version", 4, "bad-version")
	}
	if r.version == "0.5" && words < 4 {
		return reject("length", lengthAt, "bad-length")
	}

	// length beyond IP or UDP
	if beyond(r.version != "0.5") {
		return reject("length", lengthAt, "bad-length")
	}
	if len(b) < intEnd {
		r.truncated = true
	}
	s.restore(p, r, npt, intEnd)

	switch {
	case r.version == "0.5":
		return s.decode05(p, r, b, words, reject)
	case r.mx:
		return s.decodeMX(r, b, intEnd)
	}
	return s.decodeStack(p, r, b, intEnd, lengthAt, reject)
}

// restore puts port and protocol back that the source moved away.
func (s *shim) restore(p *Profile, r *reading, npt uint8, intEnd int) {
	b := s.ip.b
	switch {
	case npt == 1 && s.at+4 <= len(b):
		r.flow = func(o Object) {
			if flow := o["flow"].(Object); flow["dst_port"] != nil {
				flow["dst_port"] = uint64(u16(b, s.at+2))
			}
		}
	case npt == 2 && s.at+4 <= len(b):
		r.flow = func(o Object) { replaceL4(o, b, b[s.at+3], intEnd) }
	case p.Intel && s.tail && s.byPort && intEnd-4 < len(b):
		r.flow = func(o Object) { replaceL4(o, b, b[intEnd-4], intEnd) }
	}
}

// replaceL4 gives the flow another protocol, whose header begins at a place.
func replaceL4(o Object, b []byte, proto uint8, at int) {
	flow := o["flow"].(Object)
	flow["proto"] = uint64(proto)
	delete(flow, "src_port")
	delete(flow, "dst_port")
	if (proto == 6 || proto == 17) && at+4 <= len(b) {
		flow["src_port"], flow["dst_port"] = uint64(u16(b, at)), uint64(u16(b, at+2))
	}
}

// decode05 reads header and stack of version 0.5.
func (s *shim) decode05(p *Profile, r *reading, b []byte, words int, reject func(string, int, string) *reading) *reading {
	at := s.at
	there := func(off, n int) bool { return at+off+n <= len(b) }
	if b[at+4]&2 != 0 {
		r.flags = append(r.flags, "copy")
	}
	if b[at+4]&1 != 0 {
		r.flags = append(r.flags, "hop-limit")
	}
	if there(8, 2) {
		bitmap := u16(b, at+8)
		count := int(b[at+5] & 0x1f)
		if count == 0 || count != bits.OnesCount16(bitmap) {
			return reject("ins_cnt", 5, "bad-width")
		}
		if b[at+7] > b[at+6] {
			return reject("total_hop_cnt", 7, "bad-count")
		}
		around := 3 // words that are no stack: shim 1, header 2
		if s.tail {
			around++
		}
		if p.Intel { // its sequence number
			around++
		}
		if 4*(words-around) != 4*count*int(b[at+7]) {
			return reject("length", 2, "bad-length")
		}
		r.keys["instructions"] = fmt.Sprintf("0x%04x", bitmap)
		stackEnd := at + 12 + 4*(words-around)
		s.stack(r, b, at+12, stackEnd, items("0.5", p, bitmap, 0))
		if p.Intel && stackEnd+4 <= len(b) {
			r.keys["source_seq"] = uint64(u32(b, stackEnd))
		}
	}
	return r
}

// decodeMX reads the header of INT-MX and the words behind it.
func (s *shim) decodeMX(r *reading, b []byte, intEnd int) *reading {
	at := s.at
	if b[at+4]&8 != 0 {
		r.flags = append(r.flags, "discard")
	}
	if at+10 <= len(b) {
		r.keys["instructions"] = fmt.Sprintf("0x%04x", u16(b, at+8))
	}
	if at+12 <= len(b) && u16(b, at+10) != 0 {
		r.keys["domain_id"] = uint64(u16(b, at+10))
	}
	if words := (min(intEnd, len(b)) - at - 16) / 4; words > 0 {
		r.keys["source_metadata"] = fmt.Sprintf("0x%x", b[at+16:at+16+4*words])
	}
	return r
}

// decodeStack reads header and stack of INT 1.0, and of INT-MD 2.x.
func (s *shim) decodeStack(p *Profile, r *reading, b []byte, intEnd, lengthAt int, reject func(string, int, string) *reading) *reading {
	at := s.at
	there := func(off, n int) bool { return at+off+n <= len(b) }
	header := 12 // with the shim
	var names map[uint8]string
	if r.version == "1.0" {
		names = map[uint8]string{2: "copy", 1: "hop-limit"}
		if there(5, 1) && b[at+5]&0x80 != 0 {
			r.flags = append(r.flags, "mtu")
		}
	} else {
		header = 16
		names = map[uint8]string{8: "discard", 4: "hop-limit", 2: "mtu"}
	}
	for bit, name := range names {
		if b[at+4]&bit != 0 {
			r.flags = append(r.flags, name)
		}
	}
	if there(7, 1) {
		r.keys["remaining_hops"] = uint64(b[at+7])
	}
	if !there(8, 2) {
		return r
	}
	bitmap := u16(b, at+8)
	r.keys["instructions"] = fmt.Sprintf("0x%04x", bitmap)

	var domain uint16
	ds := false // the domain has instructions of its own
	if r.version == "2.1" {
		switch {
		case p.Elavinal && there(14, 2):
			r.keys["flow_id"] = uint64(u16(b, at+14))
		case p.Elavinal:
		case !there(10, 2):
			return r
		case u16(b, at+10) != 0:
			r.keys["domain_id"] = uint64(u16(b, at+10))
			if !there(12, 2) {
				return r
			}
			domain = u16(b, at+10)
			ds = u16(b, at+12) != 0
			if ds && !(p.FANT && domain == 0xfa17) {
				return reject("domain_id", 10, "unknown-domain")
			}
		}
	}
	if p.Geant && bitmap>>12 == 3 {
		return reject("instructions", 8, "bad-width")
	}
	list := items(r.version, p, bitmap, domain)
	size := 0
	for _, it := range list {
		size += it.width
	}
	stack := intEnd - at - header
	hop := 4 * int(b[at+6]&0x1f)
	if ds && hop > size { // words of the domain, which every hop adds
		list = append(list, item{width: hop - size})
		size = hop
	}
	if hop != size || hop == 0 && stack > 0 {
		return reject("hop_ml", 6, "bad-width")
	}
	if hop > 0 && stack%hop != 0 {
		return reject("length", lengthAt, "bad-stack")
	}
	if p.Geant && there(10, 2) {
		r.keys["source_seq"] = uint64(u16(b, at+10))
	}
	s.stack(r, b, at+header, intEnd, list)
	return r
}

// stack reads blocks, of the one that is cut what is whole.
func (s *shim) stack(r *reading, b []byte, at, end int, list []item) {
	for at < end && at < len(b) && len(list) > 0 {
		hop, found, whole := Object{}, false, true
		for _, it := range list {
			if at+it.width > len(b) {
				whole = false
				break
			}
			if it.read != nil {
				it.read(hop, b, at)
				found = true
			}
			at += it.width
		}
		if whole || found {
			r.hops = append(r.hops, hop)
		}
		if !whole {
			return
		}
	}
}
