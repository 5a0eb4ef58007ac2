package plain

import (
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// report is a telemetry report that is being read: its object, and the hop of the reporting node, if it has one.
type report struct {
	Object
	own      Object // the reporting node's values outside of the stack
	announce bool   // an INT stack was announced
	traced   bool   // the packet has an IOAM trace
	postcard bool   // its contents are a postcard, and no packet
	unknown  bool   // there are words that no field describes
	found    bool   // there is a packet among the TLVs
}

func newReport(p *ip) *report {
	return &report{Object: Object{"format": "telemetry-report", "exporter": p.src}}
}

// close returns the object of a report whose header was accepted: its kind follows from the flags.
func (r *report) close() Object {
	kind := "postcard"
	flags, _ := r.Object["flags"].([]string)
	switch {
	case slices.Contains(flags, "dropped"):
		kind = "drop"
	case slices.Contains(flags, "congested"):
		kind = "queue"
	case r.announce:
		kind = "int-stack"
	case r.traced:
		kind = "trace"
	}
	if r.Object["probes"] != nil {
		kind = "probes"
	}
	r.Object["kind"] = kind
	if r.own != nil {
		hops, _ := r.Object["hops"].([]Object)
		if n := len(hops); n > 0 && !r.traced && hops[n-1]["node_id"] == r.own["node_id"] {
			for k, v := range r.own {
				if _, there := hops[n-1][k]; !there {
					hops[n-1][k] = v
				}
			}
		} else {
			hops = append(hops, r.own)
		}
		r.Object["hops"] = hops
	}
	return r.Object
}

// probes reads counts of probes of an agent, and reports whether there are any.
func (r *report) probes(b []byte, at, end int, domain, dsMdBits uint16) bool {
	if domain == 0x5052 && dsMdBits == 0x4000 {
		return r.way(b, at, end)
	}
	if domain == 0x5052 && dsMdBits == 0x2000 {
		return r.rounds(b, at, end)
	}
	if domain != 0x5052 || dsMdBits != 0x8000 || end-at < 44 {
		return false
	}
	o, delays := Object{}, [][]uint64{}
	for i, key := range []string{"path", "epoch", "sent", "received", "missed", "late", "twice", "corrupt", "reordered"} {
		o[key] = uint64(u32(b, at+4*i))
	}
	o["lost_forward"], o["lost_back"] = int64(int32(u32(b, at+36))), int64(int32(u32(b, at+40)))
	last := -1
	for at += 44; at < end; at += 4 {
		code := int(u16(b, at))
		if code <= last || code > 543 {
			return false
		}
		last = code
		longest := uint64(code)
		switch {
		case code == 543:
			longest = 31 << 32
		case code >= 32:
			longest = uint64(16+code%16+1)<<(code/16-1) - 1
		}
		delays = append(delays, []uint64{longest, uint64(u16(b, at+2))})
	}
	if len(delays) > 0 {
		o["delays"] = delays
	}
	r.Object["probes"] = o
	return true
}

// way reads the way of an agent's probes.
func (r *report) way(b []byte, at, end int) bool {
	if n := end - at - 8; n < 16 || n%16 != 0 || n > 28*16 {
		return false
	}
	routers, known := []any{}, false
	for i := at + 8; i < end; i += 16 {
		a := netip.AddrFrom16([16]byte(b[i:])).Unmap()
		if a.IsUnspecified() && a.Is6() {
			routers = append(routers, nil)
			continue
		}
		routers, known = append(routers, a.String()), true
	}
	if known {
		r.Object["probes"] = Object{"path": uint64(u32(b, at)), "epoch": uint64(u32(b, at+4)), "way": routers}
	}
	return known
}

// rounds reads the rounds of a path that one end of it has counted.
func (r *report) rounds(b []byte, at, end int) bool {
	if end-at != 32 {
		return false
	}
	side, first, next, received := u32(b, at+8), u32(b, at+20), u32(b, at+24), u32(b, at+28)
	o := Object{"count": uint64(u32(b, at+12)), "turn": uint64(u32(b, at+16)), "first": uint64(first), "next": uint64(next), "received": uint64(received)}
	switch {
	case side == 1 && first|received == 0:
		o["end"] = "sender"
	case side == 2 && uint64(received) <= (uint64(next)-uint64(first))&math.MaxUint32:
		o["end"] = "receiver"
	default:
		return false
	}
	r.Object["probes"] = Object{"path": uint64(u32(b, at)), "epoch": uint64(u32(b, at+4)), "rounds": o}
	return true
}

func (r *report) flag(set bool, name string) {
	if set {
		flag(r.Object, name)
	}
}

func (r *report) fail(field string, offset int, reason string) Object {
	return fail(r.Object, "telemetry-report", field, offset, reason)
}

// queue sets the queue id that stands beside a drop reason: where there is one already, the first one wins.
func (r *report) queue(b []byte, at int) {
	if _, there := r.own["queue_id"]; !there {
		valid(r.own, "queue_id", b, at, 1)
	}
}

// cut is a report whose header is not whole in the capture.
func (r *report) cut() []Object {
	flag(r.Object, "truncated")
	return []Object{r.Object}
}

// reports reads the payload of a datagram to a report port.
func reports(p *Profile, packet *ip) []Object {
	r := newReport(packet)
	if packet.fragment != 0 {
		return []Object{r.fail("fragment", packet.fragment, "unsupported")}
	}
	at := packet.l4 + 8
	if at >= packet.end {
		return []Object{r.fail("version", at, "short")}
	}
	if !packet.has(8) {
		return r.cut()
	}
	end := packet.udpEnd()
	b := packet.b[:min(len(packet.b), max(end, 0))]
	if at >= end {
		return []Object{r.fail("version", at, "short")}
	}
	if at >= len(b) {
		return r.cut()
	}
	version := ""
	switch v, low := b[at]>>4, b[at]&0x0f; {
	case v == 0, v == 1 && low <= 2:
		version = "0.5"
	case v == 1 && low >= 4:
		version = "1.0"
	case v == 2:
		version = "2.0"
	}
	if version == "" || !p.reads(version) {
		return []Object{r.fail("version", at, "bad-version")}
	}
	switch version {
	case "0.5":
		return report05(p, packet, r, b, at, end)
	case "1.0":
		return report10(p, packet, r, b, at, end)
	}
	return report20(p, packet, b, at, end)
}

func report05(p *Profile, packet *ip, r *report, b []byte, at, end int) []Object {
	nproto := b[at] & 0x0f
	if nproto > 2 && !(p.Intel && nproto <= 4) {
		return []Object{r.fail("nproto", at, "bad-type")}
	}
	if at+12 > end {
		return []Object{r.fail("version", at, "short")}
	}
	if at+12 > len(b) {
		return r.cut()
	}
	time := u32(b, at+8)
	r.Object["version"] = "0.5"
	r.Object["hw_id"] = uint64(b[at+3] & 0x3f)
	r.Object["seq"] = uint64(u32(b, at+4))
	r.Object["header_time"] = uint64(time)
	r.flag(b[at+1]&0x80 != 0, "dropped")
	r.flag(b[at+1]&0x40 != 0, "congested")
	r.flag(b[at+1]&0x20 != 0, "tracked")
	clean := u32(b, at)&0x1fffc0 == 0
	at += 12

	size := [...]int{0, 12, 16, 24, 4}[nproto]
	if nproto == 4 && p.NoSinkID {
		size = 0
	}
	if at+size > end {
		r.fail("nproto", at, "short")
		return []Object{r.close()}
	}
	if at+size > len(b) {
		r.flag(true, "truncated")
		return []Object{r.close()}
	}
	switch nproto {
	case 1, 2:
		r.Object["node_id"] = uint64(u32(b, at))
		r.own = Object{"node_id": uint64(u32(b, at))}
		valid(r.own, "ingress_if", b, at+4, 2)
		valid(r.own, "egress_if", b, at+6, 2)
		valid(r.own, "queue_id", b, at+8, 1)
		if nproto == 1 {
			r.Object["drop_reason"] = uint64(b[at+9])
		} else {
			valid(r.own, "queue_occupancy", b, at+9, 3)
			valid(r.own, "egress_time", b, at+12, 4)
		}
		if time != 1<<32-1 {
			r.own["ingress_time"] = uint64(time)
		}
	case 3:
		r.Object["node_id"] = uint64(u32(b, at+4))
		r.Object["gap_time"] = uint64(u32(b, at+12))
		r.Object["source_seq"] = uint64(u32(b, at+16))
		r.Object["lost"] = uint64(u32(b, at+20))
		source, sink := Object{}, Object{}
		valid(source, "node_id", b, at, 4)
		sink["node_id"] = uint64(u32(b, at+4))
		valid(source, "egress_if", b, at+8, 2)
		valid(sink, "ingress_if", b, at+10, 2)
		r.Object["hops"] = []Object{source, sink}
	case 4:
		if size > 0 {
			r.Object["node_id"] = uint64(u32(b, at))
		}
	}
	at += size
	switch nproto {
	case 0, 1, 2:
		r.inner(p, b, at, end, "ethernet", b[packet.l4+8+1]&0x20 != 0)
		r.prove(b, at, end, "ethernet", clean, clean)
	case 3:
		if inner := parseIP(b, at, end, 4, true); inner != nil {
			addFlow(r.Object, inner)
			delete(r.Object, "packet_id") // a stand-in
		}
		r.prove(b, at, end, "ipv4", true, clean)
	case 4:
		if inner := parseIP(b, at, end, 4, true); inner != nil {
			addFlow(r.Object, inner)
			r.stack(p, find(p, inner, true))
		}
		r.prove(b, at, end, "ipv4", true, clean)
	}
	return []Object{r.close()}
}

func report10(p *Profile, packet *ip, r *report, b []byte, at, end int) []Object {
	if at+16 > end {
		return []Object{r.fail("version", at, "short")}
	}
	if at+16 > len(b) {
		return r.cut()
	}
	word := u32(b, at)
	nprot := word >> 21 & 7
	if nprot > 2 {
		return []Object{r.fail("nprot", at+1, "bad-type")}
	}
	repMdBits := uint16(word >> 15 & 0x3f)
	words := int(word >> 24 & 0x0f)
	if words != 4+bits.OnesCount16(repMdBits) || at+4*words > end {
		return []Object{r.fail("length", at, "bad-length")}
	}
	size := 4 * words
	if p.Braine {
		if size = 40; at+size > end {
			return []Object{r.fail("length", at, "short")}
		}
	}
	if at+size > len(b) {
		return r.cut()
	}
	d, q, f := word&(1<<8) != 0, word&(1<<7) != 0, word&(1<<6) != 0
	if p.FlagsOnos {
		d, q, f = word&(1<<14) != 0, word&(1<<13) != 0, word&(1<<12) != 0
	}
	r.flag(d, "dropped")
	r.flag(q, "congested")
	r.flag(f, "tracked")
	node := uint64(u32(b, at+4))
	r.Object["version"] = "1.0"
	r.Object["node_id"] = node
	r.Object["hw_id"] = uint64(word & 0x3f)
	r.Object["seq"] = uint64(u32(b, at+8))
	if p.Braine {
		r.postcard = true
		r.Object["flow_id"] = uint64(u32(b, at+12))
		r.own = Object{"node_id": node}
		valid(r.own, "latency", b, at+16, 4)
		valid(r.own, "queue_id", b, at+20, 1)
		valid(r.own, "queue_occupancy", b, at+21, 3)
		valid(r.own, "ingress_time", b, at+24, 4)
		valid(r.own, "egress_time", b, at+28, 4)
		valid(r.own, "ingress_if", b, at+32, 2)
		valid(r.own, "egress_if", b, at+34, 2)
		valid(r.own, "tx_utilization", b, at+36, 4)
	} else {
		r.Object["header_time"] = uint64(u32(b, at+12))
		if repMdBits != 0 {
			r.own = Object{"node_id": node}
			valid(r.own, "ingress_time", b, at+12, 4)
			place := at + 16
			for bit := range 6 {
				if repMdBits&(0x20>>bit) == 0 {
					continue
				}
				switch bit {
				case 0:
					valid(r.own, "ingress_if", b, place, 2)
					valid(r.own, "egress_if", b, place+2, 2)
				case 1:
					valid(r.own, "latency", b, place, 4)
				case 2:
					valid(r.own, "queue_id", b, place, 1)
					valid(r.own, "queue_occupancy", b, place+1, 3)
				case 3:
					valid(r.own, "egress_time", b, place, 4)
				case 4:
					r.queue(b, place)
					r.Object["drop_reason"] = uint64(b[place+1])
				case 5:
					valid(r.own, "tx_utilization", b, place, 4)
				}
				place += 4
			}
		}
	}
	r.inner(p, b, at+size, end, [...]string{"ethernet", "ipv4", "ipv6"}[nprot], f)
	unused := uint32(0x7e00)
	if p.FlagsOnos {
		unused = 0xfc0
	}
	r.prove(b, at+size, end, [...]string{"ethernet", "ipv4", "ipv6"}[nprot], true, word&unused == 0 && (at+size != end || !isDNS(b[at:min(len(b), end)])))
	return []Object{r.close()}
}

// isDNS reports whether the header of a report is a DNS message with one question. It has no more than 16 records of a
// kind, and begins with a label of a host's name.
func isDNS(b []byte) bool {
	if len(b) < 16 || b[2]>>3&15 != 0 || u16(b, 4) != 1 || max(u16(b, 6), u16(b, 8), u16(b, 10)) > 16 || b[12] < 1 || b[12] > 63 {
		return false
	}
	label := string(b[13:min(len(b), 13+int(b[12]))])
	return strings.TrimLeft(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// report20 reads a group. b ends where the datagram or the capture does.
func report20(p *Profile, packet *ip, b []byte, at, end int) (list []Object) {
	if at+8 > end {
		return []Object{newReport(packet).fail("version", at, "short")}
	}
	if at+8 > len(b) {
		return newReport(packet).cut()
	}
	word := u32(b, at)
	group := func() *report {
		r := newReport(packet)
		r.Object["version"] = "2.0"
		r.Object["hw_id"] = uint64(word >> 22 & 0x3f)
		r.Object["seq"] = uint64(word & 0x3fffff)
		r.Object["node_id"] = uint64(u32(b, at+4))
		return r
	}
	// A report without a flow and without a wholly read hop counts only in a datagram whose other reports can be read.
	// A cut one counts only if later ones can be read.
	var read []*report
	defer func() {
		failed := func(o Object) bool { return o["error"] != nil }
		first, last := slices.IndexFunc(list, failed), len(list)-1
		for last >= 0 && !failed(list[last]) {
			last--
		}
		if first < 0 {
			return
		}
		for k, o := range list {
			if o["error"] != nil || o["flow"] != nil || o["hops"] != nil && !(k < len(read) && read[k].unknown) {
				continue
			}
			flags, _ := o["flags"].([]string)
			if k < last || k > first && o["digest"] == nil && !slices.Contains(flags, "truncated") {
				fail(o, "telemetry-report", "report_length", at, "bad-length")
			}
		}
	}()
	later := false
	for place := at + 8; place < end || place == at+8; {
		r := group()
		if place+4 > end {
			return append(list, r.fail("report_length", place, "short"))
		}
		if place+2 > len(b) || b[place]>>4 == 1 && place+3 > len(b) { // what report_length is checked by
			return append(list, r.cut()...)
		}
		repType, inType := b[place]>>4, b[place]&0x0f
		words, mdWords := int(b[place+1]), 0
		next := place + 4 + 4*words

		// report_length
		if words == 0xff {
			next = end
			if place+4+4*255 > end {
				return append(list, r.fail("report_length", place+1, "bad-length"))
			}
		}
		if p.ToTheEnd && repType == 1 && words == 0 {
			next = end
		}
		if next > end {
			return append(list, r.fail("report_length", place+1, "bad-length"))
		}
		header := 4
		if repType == 1 {
			mdWords = int(b[place+2])
			header = 12 + 4*mdWords
			if place+header > next {
				return append(list, r.fail("report_length", place+1, "bad-length"))
			}
		}

		object, whole := oneReport20(p, r, b, place, header, next, repType, inType, mdWords, later)
		later = later || object["error"] != nil
		list = append(list, object)
		read = append(read, r)
		if !whole {
			return list
		}
		place = next
	}
	return list
}

// oneReport20 reads one report of a group, which ends at next by its length. The argument later is true if one before
// it failed. It reports whether the header was whole.
func oneReport20(p *Profile, r *report, b []byte, place, header, next int, repType, inType byte, mdWords int, later bool) (o Object, whole bool) {
	if repType > 1 {
		reason := "bad-type"
		if repType == 2 {
			reason = "unsupported"
		}
		return r.fail("rep_type", place, reason), true
	}
	var repMdBits, dsMdBits, domain uint16
	if repType == 1 {
		if place+6 > len(b) {
			return r.cut()[0], false
		}
		repMdBits = u16(b, place+4)
		if repMdBits&0x8000 != 0 {
			return r.fail("rep_md_bits", place+4, "unsupported"), true
		}
		base := bits.OnesCount16(repMdBits) + bits.OnesCount16(repMdBits&0x0e00)
		if mdWords < base {
			return r.fail("md_length", place+2, "bad-width"), true
		}
		if mdWords > base && place+10 > len(b) { // whether there may be more words is not known
			return r.cut()[0], false
		}
		if place+10 <= len(b) {
			domain, dsMdBits = u16(b, place+6), u16(b, place+8)
		}
		if (domain == 0 || dsMdBits == 0) && mdWords != base {
			return r.fail("md_length", place+2, "bad-width"), true
		}
	}
	if inType == 0 && place+header < next {
		return r.fail("in_type", place, "bad-length"), true
	}
	if place+header > len(b) {
		return r.cut()[0], false
	}
	flags := b[place+3]
	r.flag(flags&0x80 != 0, "dropped")
	r.flag(flags&0x40 != 0, "congested")
	r.flag(flags&0x20 != 0, "tracked")
	r.flag(flags&0x10 != 0, "transit")
	if domain != 0 {
		r.Object["domain_id"] = uint64(domain)
	}
	if repMdBits != 0 {
		r.own = Object{"node_id": r.Object["node_id"]}
		at := place + 12
		for bit := range 16 {
			if repMdBits&(0x8000>>bit) == 0 {
				continue
			}
			size := 4
			switch bit {
			case 1:
				valid(r.own, "ingress_if", b, at, 2)
				valid(r.own, "egress_if", b, at+2, 2)
			case 2:
				valid(r.own, "latency", b, at, 4)
			case 3:
				valid(r.own, "queue_id", b, at, 1)
				valid(r.own, "queue_occupancy", b, at+1, 3)
			case 4:
				size = 8
				valid(r.own, "ingress_time", b, at, 8)
			case 5:
				size = 8
				valid(r.own, "egress_time", b, at, 8)
			case 6:
				size = 8
				valid(r.own, "l2_ingress_if", b, at, 4)
				valid(r.own, "l2_egress_if", b, at+4, 4)
			case 7:
				valid(r.own, "tx_utilization", b, at, 4)
			case 8:
				valid(r.own, "buffer_id", b, at, 1)
				valid(r.own, "buffer_occupancy", b, at+1, 3)
			case 15:
				r.queue(b, at)
				r.Object["drop_reason"] = uint64(b[at+1])
			}
			at += size
		}
	}

	counts := repType == 1 && repMdBits == 0 && r.probes(b, place+12+4*(bits.OnesCount16(repMdBits)+bits.OnesCount16(repMdBits&0x0e00)), place+header, domain, dsMdBits)
	r.unknown = !counts && repType == 1 && mdWords > bits.OnesCount16(repMdBits)+bits.OnesCount16(repMdBits&0x0e00) || inType == 2

	// The inner contents are the next layer.
	tracked := flags&0x20 != 0
	at := place + header
	contents := b[:min(len(b), next)]
	switch {
	case inType > 5:
		r.fail("in_type", place, "bad-type")
	case inType == 1:
		r.tlvs(p, contents, at, next, tracked)
	case inType >= 3:
		r.inner(p, contents, at, next, [...]string{"ethernet", "ipv4", "ipv6"}[inType-3], tracked)
		r.prove(contents, at, next, [...]string{"ethernet", "ipv4", "ipv6"}[inType-3], true, true)
	}
	if none := inType < 2 && !r.found || inType == 2; none && r.Object["error"] == nil && (r.unknown || later) {
		reserved := repMdBits&0x7e != 0 || domain != 0 && mdWords < bits.OnesCount16(repMdBits)+bits.OnesCount16(repMdBits&0x0e00)+bits.OnesCount16(dsMdBits)
		if b[place+3]&15 != 0 || repType == 0 && b[place+1] == 0xff && b[place+2] != 0 || repType == 1 && reserved {
			r.fail("in_type", place, "bad-type")
		}
	}
	if inType == 0 || inType == 1 && !r.found {
		if flags, _ := r.Object["flags"].([]string); r.Object["error"] == nil && r.own == nil && !r.unknown && !slices.Contains(flags, "truncated") {
			r.fail("in_type", min(at, len(b)), "bad-type") // nothing is in it
		}
	}
	return r.close(), true
}

// tlvs reads the packet in the first TLV that has one, after all of them were checked.
func (r *report) tlvs(p *Profile, b []byte, at, end int, tracked bool) {
	found := ""
	from, to := 0, 0
	for at < end {
		if at+4 > end {
			r.fail("tlv_length", at, "short")
			return
		}
		if at+4 > len(b) {
			flag(r.Object, "truncated")
			break
		}
		next := at + 4 + 4*int(b[at+1])
		if next > end {
			r.fail("tlv_length", at+1, "bad-length")
			return
		}
		if b[at]>>4 == 0 || b[at]>>4 > 3 {
			r.unknown = true
		}
		if kind := b[at] >> 4; found == "" && kind >= 1 && kind <= 3 {
			found, from, to = [...]string{"ethernet", "ipv4", "ipv6"}[kind-1], at+4, next
		}
		at = next
	}
	if found != "" {
		r.found = true
		r.inner(p, b[:min(len(b), to)], from, to, found, tracked)
		r.prove(b[:min(len(b), to)], from, to, found, true, true)
	}
}

// prove fails a report in which no packet is where one should be. The flag clean means that the reserved bits of its
// header are 0. The flag unused means that all bits are 0 that senders leave so.
func (r *report) prove(b []byte, at, end int, kind string, clean, unused bool) {
	if r.Object["error"] != nil {
		return
	}
	captured := len(b) < end
	cut := captured || r.Object["version"] == "2.0"
	b = b[:min(len(b), max(end, 0))]
	bad := func(at int) { r.fail("inner", min(at, len(b)), "bad-type") }
	if kind != "ethernet" {
		version, size := 4, 20
		if kind == "ipv6" {
			version, size = 6, 40
		}
		if at >= len(b) {
			if !captured && !r.bare(end-at, unused) {
				bad(at)
			}
			return
		}
		packet := parseIP(b, at, end, version, true)
		switch {
		case packet == nil && cut && len(b)-at < size && int(b[at]>>4) == version:
		case packet == nil || !holds(packet, b, end, captured):
			bad(at)
		}
		return
	}
	flags, _ := r.Object["flags"].([]string)
	why := slices.ContainsFunc(flags, func(s string) bool { return s == "dropped" || s == "congested" || s == "tracked" })
	switch at += 12; {
	case end-at < 2:
		if !r.bare(end-at+12, unused) {
			bad(at)
		}
		return
	case !clean && !why:
		bad(at - 12)
		return
	case len(b)-at < 2:
		return
	}
	place, ethertype := ethernet(b, at-12)
	version := map[uint16]int{0x0800: 4, 0x86dd: 6}[ethertype]
	var packet *ip
	if version != 0 {
		packet = parseIP(b, place, end, version, true)
	}
	switch proven := packet != nil && holds(packet, b, end, captured); {
	case ethertype == 0 && tagTypes[u16(b, at)] > 0 && cutTags(b, at), tagTypes[ethertype] > 0:
		if !clean && !captured {
			bad(place)
		}
	case slices.Contains([]uint16{0x0806, 0x8847, 0x8848, 0x8863, 0x8864, 0x8809, 0x88cc, 0x888e, 0x88f7}, ethertype):
		if !clean || !begins(b, place, ethertype) {
			bad(place)
		}
	case version == 0:
		bad(at)
	case place < len(b) && int(b[place]>>4) != version:
		bad(place)
	case !clean && !proven && !(captured && packet == nil):
		bad(place)
	}
}

// bare reports whether a report has content without the packet that it announces, of which size bytes are there.
func (r *report) bare(size int, unused bool) bool {
	flags, _ := r.Object["flags"].([]string)
	why := slices.ContainsFunc(flags, func(s string) bool { return s == "dropped" || s == "congested" || s == "tracked" })
	switch {
	case r.postcard:
		return true
	case r.Object["version"] == "2.0":
		return size > 0 || r.own != nil || r.unknown
	}
	return size == 0 && why && unused && (r.own != nil || r.Object["hops"] != nil || r.Object["version"] == "1.0")
}

// holds reports whether a header of IP is more than bytes that begin like one.
func holds(p *ip, b []byte, end int, captured bool) bool {
	both := []uint8{0, 1, 2, 4, 6, 17, 33, 41, 43, 44, 46, 47, 50, 51, 58, 59, 60, 88, 89, 131, 132, 135, 137, 143, 253, 254}
	if !slices.Contains(both, p.proto) && !(p.version == 4 && slices.Contains([]uint8{94, 103, 112, 115}, p.proto)) {
		return false
	}
	if p.end <= end && p.end >= end-3 {
		return true
	}
	if p.version == 4 {
		if u16(b, p.at+6)&0x1fff == 0 || u16(b, p.at+10) == 0 {
			return true
		}
		size := 4 * int(b[p.at]&15)
		if p.at+size > len(b) {
			return captured
		}
		sum := uint32(0)
		for i := 0; i < size; i += 2 {
			sum += uint32(u16(b, p.at+i))
		}
		return sum != 0 && sum%0xffff == 0
	}
	if slices.Contains([]uint8{1, 2, 59, 131}, p.proto) || b[p.at+8] == 0xff || !given(b[p.at+8:p.at+24]) || !given(b[p.at+24:p.at+40]) {
		return false
	}
	if p.l4 < 0 || p.fragment != 0 || p.l4 > len(b) {
		return true
	}
	switch h := b[p.l4:]; {
	case p.proto == 6 && len(h) >= 13:
		return h[12] >= 0x50 && h[12]&14 == 0
	case p.proto == 17 && len(h) >= 6:
		length := int(u16(h, 4))
		return length == 0 || length >= 8 && p.l4+length <= p.end
	}
	return true
}

// given reports whether networks have addresses of IPv6 of this kind.
func given(a []byte) bool {
	return a[0] >= 0x20 && a[0] <= 0x2f || slices.Contains([]byte{0, 0x3f, 0x5f, 0xfc, 0xfd, 0xff}, a[0]) || a[0] == 0xfe && a[1] >= 0x80 || strings.Contains(string(a), "\x00\x00\x00\x00")
}

// begins reports whether the bytes at a place can be the beginning of a payload of an EtherType other than those of IP.
func begins(b []byte, at int, kind uint16) bool {
	if at >= len(b) {
		return true
	}
	switch b = b[at:]; kind {
	case 0x0806:
		return strings.HasPrefix("\x00\x01\x08\x00\x06\x04", string(b[:min(len(b), 6)]))
	case 0x8847, 0x8848:
		for n := range 16 {
			if 4*n+2 >= len(b) {
				return true
			}
			if b[4*n+2]&1 == 0 {
				continue
			}
			if b = b[min(4*n+4, len(b)):]; len(b) == 0 || b[0] < 0x20 || b[0] >= 0x45 && b[0] < 0x50 || b[0]>>4 == 6 {
				return true
			}
			if len(b) < 14 {
				return false
			}
			kind := u16(b, 12)
			return kind < 0x600 || tagTypes[kind] > 0 || slices.Contains([]uint16{0x0800, 0x86dd, 0x0806, 0x8847, 0x8848, 0x8863, 0x8864, 0x8809, 0x88cc, 0x888e, 0x88f7}, kind)
		}
		return false
	case 0x8863, 0x8864:
		return b[0] == 0x11
	case 0x8809:
		return slices.Contains([]byte{1, 2, 3, 10}, b[0])
	case 0x88cc:
		return b[0] == 2
	case 0x888e:
		return slices.Contains([]byte{1, 2, 3}, b[0])
	case 0x88f7:
		return len(b) == 1 || b[1]&15 == 2
	}
	return true
}

// inner reads the packet inside of a report, whose bytes end with b; end is where the contents end by their lengths.
func (r *report) inner(p *Profile, b []byte, at, end int, kind string, tracked bool) {
	version, labelled := 0, false
	switch kind {
	case "ipv4":
		version = 4
	case "ipv6":
		version = 6
	default:
		place, ethertype := ethernet(b, at)
		if labelled = wrapped(ethertype); labelled {
			place, ethertype = unwrap(b, place, ethertype)
		}
		switch at = place; ethertype {
		case 0x0800:
			version = 4
		case 0x86dd:
			version = 6
		default:
			return
		}
	}
	packet := parseIP(b, at, end, version, true)
	if packet == nil {
		return
	}
	if !labelled { // the flow behind labels is that of a packet inside
		addFlow(r.Object, packet)
	}
	if !tracked {
		return
	}
	if p.IOAM && version == 6 && !labelled && r.trace(packet) {
		return
	}
	s := findAnywhere(p, packet)
	if s != nil && (s.ip != packet || labelled) {
		delete(r.Object, "packet_id")
		addFlow(r.Object, s.ip)
	}
	r.stack(p, s)
}

// trace reads the first IOAM trace of the packet in a report, and reports whether there is one.
func (r *report) trace(packet *ip) bool {
	for _, o := range ioam(packet) {
		if o[traceOption] == nil {
			continue
		}
		r.traced = o["kind"] != nil
		flags, _ := o["flags"].([]string)
		flag(r.Object, flags...)
		for _, key := range []string{"namespace", "remaining_len", "instructions", "hops", "error"} {
			if v, there := o[key]; there {
				r.Object[key] = v
			}
		}
		return true
	}
	return false
}

// stack reads INT inside of a report.
func (r *report) stack(p *Profile, s *shim) {
	if s == nil {
		return
	}
	got := s.decode(p)
	r.announce = !got.mx && !got.opaque
	if got.version != "" {
		r.Object["int_version"] = got.version
	}
	got.into(r.Object)
}

// cutTags reports whether b ends within the tags that begin with the type at at.
func cutTags(b []byte, at int) bool {
	for n := 0; at+2 <= len(b) && tagTypes[u16(b, at)] > 0; at += n {
		if n = tagTypes[u16(b, at)]; at+2+n > len(b) {
			return true
		}
	}
	return false
}
