// Package plain is a second decoder of the formats that "hopscope decode" reads, for tests alone: the program never
// imports it. It was written from the pages of the formats, apart from the collector's decoder, and shares no code with
// it. It is slow, allocates freely, and follows the order of the pages. If the two disagree about a packet, one of them
// is wrong.
//
// The package also makes the bytes that tests of both decoders begin with. They are sFlow datagrams of any samples, and
// messages of IPFIX and NetFlow 9 with any templates and records. Others are reports with PINT digests, and the
// datagrams of a capture.
//
// # Other decoders
//
// Tests compare every value that hopscope and decoders of other projects read from the same bytes:
//
//	| decoder | what is compared | with | test |
//	| --- | --- | --- | --- |
//	| goflow2 2.2.6 | every field of sFlow | 10,000 made datagrams, recordings of tcpdump | `go test ./decode/sflow -run Goflow2` |
//	| goflow2 2.2.6 | every template of IPFIX and NetFlow 9, and the bytes of every value | 20,000 made messages, recordings of SONiC and Broadcom | `go test ./decode/ipfix -run Goflow2` |
//	| tshark 4.0.17 | every field that it has | 10,000 made datagrams (45,013 samples), recordings of tcpdump | `go test -tags check ./internal/plain -run SFlowAgainstTshark` |
//	| tshark 4.0.17 | every element of templates, and the place of each value | 10,004 made messages; it shows 236,507 of 241,734 values | `go test -tags check ./internal/plain -run IPFIXAgainstTshark` |
//	| this package | all that is read, and which bytes are refused | 20,000 datagrams and 30,000 messages, half of each damaged | `go test ./internal/plain -run 'SFlow|IPFIX'` |
//
// SFLOW_RECORDINGS and IPFIX_RECORDINGS are patterns of captures outside the tree. bench/RESULTS.md compares the speed with
// goflow2. Others were compared by hand:
//
//	| decoder | input | equal |
//	| --- | --- | --- |
//	| crate sflow-parser 0.7.0 | 10,000 made datagrams and 29 recorded ones | 10,029 of 10,029 in all that both know |
//	| crate netgauze-flow-pkt 0.13.0 | 10,009 messages of IPFIX and NetFlow 9 | 9,496; it gives up the 513 others |
//	| ipfixDump (libfixbuf 2.4) | IPFIX of softflowd 1.1.0: every element of 60 records | 936 of 936 values |
//	| nfdump 1.7.1 | NetFlow 9 of softflowd: addresses, protocol, ports or ICMP type and code, packets, octets, TCP flags, class of service, interfaces, direction, duration of 60 flows | 57 in all, 3 in all but the type of ICMPv6 |
//	| nfdump 1.7.1 | the same in IPFIX | 60 in all but the duration |
//	| Scapy's layer for IFA (`scapy/contrib/ifa.py`) | 3,000 packets (IPv4 and IPv6; TCP with options, UDP and GRE with keys; up to 7 hops) | 135,756 of 135,756 values |
//
// The flows are of a capture of 6,000 packets; the programs are those of Debian 12:
//
//	nfcapd -w flows -p 19909 -b 127.0.0.1 -t 3600
//	softflowd -r traffic.pcap -n 127.0.0.1:18909 -v 9 -d -c none     # and -v 10, -v 5
//	nfdump -r flows/nfcapd.* -o json
//	ipfixDump -d -i export.ipfix
//	hopscope decode export.pcap
//
// # What differs
//
// All values are equal but these, of which none is a known error of hopscope:
//
//	| decoder | behaviour | specification |
//	| --- | --- | --- |
//	| goflow2 | gives up a datagram at an unknown sample; keeps the padding of sampled headers; lacks the records 1039 to 1043 and 1005 | sFlow 5, sections 5 and 4 (XDR) |
//	| goflow2 | keeps the enterprise bit in element numbers of options templates; gives values that the end of a set cuts off | RFC 7011, sections 3.2 and 3.3.1 |
//	| goflow2, netgauze-flow-pkt | take padding behind templates for a template 0 | RFC 7011, section 3.3.1 |
//	| goflow2 | takes a withdrawal for a template without fields, and reads empty records for ever | RFC 7011, section 8.1 |
//	| goflow2, netgauze-flow-pkt | take the header's count of NetFlow 9 for sets, or refuse a wrong one | RFC 3954, section 5.1: the count is of records; exporters count otherwise |
//	| tshark | lacks discarded packets and the records 1005 and 1036 to 1043, and misreads what follows the latter | sFlow 5, section 5: skip by the length |
//	| tshark | keeps the first template of a number | RFC 7011, section 8.1, and RFC 3954, section 9: the new one counts |
//	| tshark | gives up a message at an address of a wrong length (867 of 10,004); misreads ICMPv6 codes behind a value of one byte | RFC 7011, section 6.2: only integers may be shorter |
//	| nfdump | swaps start and end of IPFIX flows (elements 22 and 21); shows 0 for type and code of ICMPv6 (element 139) | IANA |
//	| sflow-parser | calls drop reasons above 303 unknown (256), and lacks the record 1043 | hopscope keeps the number |
//	| netgauze-flow-pkt | takes more than two bytes behind 255 for the length of a value; gives up a message with an unknown element, length or text, or without a template | RFC 7011, sections 7 and 9 |
package plain

import (
	"encoding/binary"
	"slices"
	"sort"
)

// Object is one JSON object. Its values are uint64, int64, string, []string, []uint64, Object and []Object.
type Object = map[string]any

// Frame is a frame as a capture has it.
type Frame struct {
	Number uint64 // in the file, from 1
	Time   int64  // ns since 1970
	Link   uint16 // LINKTYPE number
	Data   []byte // what was captured
	Length int    // bytes on the wire
}

// Profile holds the settings of a dialect for this decoder.
type Profile struct {
	ReportPorts []uint16
	Reports     []string // versions that are read

	Braine       bool // 40 bytes behind the first word of a report 1.0
	FlagsOnos    bool // D, Q and F of report 1.0 in bits 14, 13 and 12 from the right
	Intel        bool // NProto 3 and 4
	NoSinkID     bool // NProto 4 without the sink node's id
	ToTheEnd     bool // Report Length 0 of RepType 1
	INT          []string
	DSCP, Mask   uint8 // mark of INT, if Mask is not 0
	Ports        []uint16
	BehindOpts   bool // INT behind TCP options
	Geant        bool // widths and sequence number of GEANT's INT 1.0
	OnosINT      bool // the 1.0 layout under Ver 0
	Elavinal     bool // INT-MD bitmap from the right
	FANT         bool // bits 9 to 14 are counts in domain 0xfa17, the last three of two
	Path, Probe  bool // INT-path, INT-Probe
	PINT         bool // digests in the destination MAC
	IOAM         bool // options of IPv6
	IFA          bool // protocol 253
	sureIFA      bool // only what begins with a header of it
	Encapsulated bool // INT in VXLAN-GPE and Geneve
}

// Profiles are the built-in profiles.
var Profiles = map[string]Profile{
	"auto": {
		ReportPorts: []uint16{32766}, Reports: []string{"0.5", "1.0", "2.0"}, INT: []string{"0.5", "1.0", "2.1"},
		DSCP: 0x17, Mask: 0x3f, Ports: []uint16{17768}, Probe: true, Encapsulated: true, IOAM: true, IFA: true, sureIFA: true,
	},
	"prometheus-exporter": {
		ReportPorts: []uint16{1234}, Reports: []string{"0.5"}, INT: []string{"0.5"}, DSCP: 1, Mask: 1, BehindOpts: true,
	},
	"fabric-tna": {ReportPorts: []uint16{32766}, Reports: []string{"0.5"}},
	"geant": {
		ReportPorts: []uint16{8090}, Reports: []string{"1.0"}, INT: []string{"1.0"}, DSCP: 0x20, Mask: 0x3f, Geant: true,
	},
	"onos": {
		ReportPorts: []uint16{32766}, Reports: []string{"1.0"}, INT: []string{"1.0"}, DSCP: 0x17, Mask: 0x3f,
		FlagsOnos: true, OnosINT: true,
	},
	"host-int": {
		ReportPorts: []uint16{32766}, Reports: []string{"0.5"}, INT: []string{"0.5"}, DSCP: 1, Mask: 1,
		Ports: []uint16{33122}, Intel: true,
	},
	"host-int-no-sink-id": {
		ReportPorts: []uint16{32766}, Reports: []string{"0.5"}, INT: []string{"0.5"}, DSCP: 1, Mask: 1,
		Ports: []uint16{33122}, Intel: true, NoSinkID: true,
	},
	"p4-int-laofan": {
		ReportPorts: []uint16{1234}, Reports: []string{"2.0"}, INT: []string{"2.1"}, DSCP: 0x17, Mask: 0x3f, ToTheEnd: true,
	},
	"p4-int-elavinal": {INT: []string{"2.1"}, DSCP: 0x17, Mask: 0x3f, Elavinal: true},
	"fant": {
		ReportPorts: []uint16{32766}, Reports: []string{"2.0"}, INT: []string{"2.1"}, DSCP: 0x17, Mask: 0x3f, Ports: []uint16{17768}, FANT: true,
	},
	"postcard-braine": {ReportPorts: []uint16{32766}, Reports: []string{"1.0"}, FlagsOnos: true, Braine: true},
	"int-path":        {Path: true},
	"int-probe":       {Probe: true},
	"pint-mininet":    {PINT: true},
	"ioam-ipv6":       {IOAM: true},
	"ifa":             {IFA: true},
}

func (p *Profile) reads(version string) bool    { return slices.Contains(p.Reports, version) }
func (p *Profile) readsINT(version string) bool { return slices.Contains(p.INT, version) }

// Decode returns the objects of one frame.
func Decode(p Profile, f Frame) []Object {
	wire := max(f.Length, len(f.Data))
	var list []Object
	at, kind := link(f.Link, f.Data)
	if wrapped(kind) {
		at, kind = unwrap(f.Data[:min(len(f.Data), wire)], at, kind)
	}
	switch kind {
	case 0x0800:
		list = network(&p, f.Data, at, wire, 4, f.Link == 1)
	case 0x86dd:
		list = network(&p, f.Data, at, wire, 6, f.Link == 1)
	case 0x0700, 0x0701:
		if p.Probe {
			if o := probe(f.Data, at, wire, kind); o != nil {
				list = []Object{o}
			}
		}
	}
	for _, o := range list {
		o["frame"], o["time_ns"] = f.Number, f.Time
		if e, ok := o["error"].(Object); ok { // what is missing is where the bytes end
			e["offset"] = min(e["offset"].(uint64), uint64(len(f.Data)))
		}
		finish(o)
	}
	return list
}

// link walks what lies in front of the packet. It returns the place of the packet and its EtherType, 0 if there is none.
func link(kind uint16, b []byte) (at int, ethertype uint16) {
	switch kind {
	case 1:
		return ethernet(b, 0)
	case 101, 12, 14: // raw IP: the version is in the packet itself
		if len(b) > 0 && b[0]>>4 == 4 {
			return 0, 0x0800
		}
		if len(b) > 0 && b[0]>>4 == 6 {
			return 0, 0x86dd
		}
	case 228:
		return 0, 0x0800
	case 229:
		return 0, 0x86dd
	case 0, 108: // loopback of BSD: 4 bytes of address family, with 108 big-endian, else as the machine has it
		if len(b) < 4 {
			return 0, 0
		}
		family := u32(b, 0)
		if kind == 0 && family > 0xffff {
			family = binary.LittleEndian.Uint32(b)
		}
		switch family {
		case 2:
			return 4, 0x0800
		case 10, 24, 28, 30: // Linux, NetBSD and OpenBSD, FreeBSD, macOS
			return 4, 0x86dd
		}
	case 9: // PPP, with or without the two bytes of its framing
		at := 0
		if len(b) >= 2 && u16(b, 0) == 0xff03 {
			at = 2
		}
		if at+2 > len(b) {
			return 0, 0
		}
		switch u16(b, at) {
		case 0x0021:
			return at + 2, 0x0800
		case 0x0057:
			return at + 2, 0x86dd
		}
	case 113: // Linux cooked capture: 14 bytes and the protocol
		if len(b) >= 16 {
			return tags(b, 16, u16(b, 14))
		}
	case 276: // its second version: protocol first, 20 bytes in all
		if len(b) >= 20 {
			return tags(b, 20, u16(b, 0))
		}
	}
	return 0, 0
}

// wrapped reports whether an EtherType is that of labels of MPLS or of a session of PPPoE.
func wrapped(kind uint16) bool { return kind == 0x8847 || kind == 0x8848 || kind == 0x8864 }

// ethernet reads an Ethernet header at a place: where its contents begin, and their EtherType.
func ethernet(b []byte, at int) (int, uint16) {
	if at+14 > len(b) {
		return 0, 0
	}
	return tags(b, at+14, u16(b, at+12))
}

// tagTypes are the EtherTypes of tags, with their lengths to the end of the next EtherType.
var tagTypes = map[uint16]int{0x8100: 4, 0x88a8: 4, 0x9100: 4, 0x8926: 6, 0x893f: 8, 0x88e7: 18}

// tag is the length of a tag, or of LLC and SNAP behind a length; 0 if there is none.
func tag(b []byte, at int, kind uint16) int {
	if kind < 0x600 && at+6 <= len(b) && string(b[at:at+6]) == "\xaa\xaa\x03\x00\x00\x00" {
		return 8
	}
	return tagTypes[kind]
}

// tags skips up to 8 tags.
func tags(b []byte, at int, kind uint16) (int, uint16) {
	for range 8 {
		n := tag(b, at, kind)
		if n == 0 {
			break
		}
		if at+n > len(b) {
			return 0, 0
		}
		at += n
		kind = u16(b, at-2)
	}
	return at, kind
}

// network reads what an IP packet of the network holds.
func network(p *Profile, b []byte, at, wire, version int, mac bool) []Object {
	ip := parseIP(b, at, wire, version, false)
	if ip == nil {
		return nil
	}
	if family := known(ip, p.ReportPorts); family != "" {
		o := Object{"format": family, "exporter": ip.src}
		return []Object{fail(o, family, "version", ip.l4+8, "not-read")}
	}
	if ip.udp() && slices.Contains(p.ReportPorts, ip.dstPort()) {
		return reports(p, ip)
	}
	if p.Path && version == 4 && ip.udp() && ip.dstPort() == 2222 {
		return []Object{path(ip)}
	}
	if p.PINT && version == 4 && mac && b[at+1] == 1 {
		return []Object{digest(b, ip)}
	}
	if p.IOAM && version == 6 {
		if list := ioam(ip); len(list) > 0 {
			for _, o := range list {
				delete(o, traceOption)
			}
			return list
		}
	}
	if p.IFA && !(p.sureIFA && !beginsIFA(ip)) {
		if o := ifa(ip); o != nil {
			return []Object{o}
		}
	}
	if s := findAnywhere(p, ip); s != nil {
		r := s.decode(p)
		o := Object{"format": "int-md", "kind": "int-stack"}
		if r.mx {
			o["format"], o["kind"] = "int-mx", "instruction"
		}
		if r.version != "" {
			o["version"] = r.version
		}
		addFlow(o, s.ip)
		r.into(o)
		return []Object{o}
	}
	return nil
}

// known names the other family of formats that the payload of a UDP datagram begins as, or "". At a port of reports the
// first bytes are enough.
func known(p *ip, reportPorts []uint16) string {
	if !p.udp() || p.fragment != 0 || !p.has(8) {
		return ""
	}
	at, end := p.l4+8, p.udpEnd()
	if at > len(p.b) || at > end {
		return ""
	}
	b, size := p.b[at:min(len(p.b), end)], end-at
	if len(b) < 4 {
		return ""
	}
	reports := slices.Contains(reportPorts, p.dstPort())
	if first, second := u16(b, 0), int(u16(b, 2)); len(b) >= 8 && first == 0 && slices.Contains([]int{2, 4, 5}, second) && (u32(b, 4) == 1 || u32(b, 4) == 2) {
		return map[int]string{2: "sflow-4", 4: "sflow-4", 5: "sflow"}[second]
	} else if reports && first == 10 {
		return "ipfix"
	} else if reports && first == 9 && second > 0 {
		return "netflow-9"
	} else if reports && first == 5 && second > 0 && second <= 30 {
		return "netflow-5"
	}
	if len(b) < 20 {
		return ""
	}
	first, second := u16(b, 0), int(u16(b, 2))
	switch {
	case first == 5 && second > 0 && second <= 30 && size == 24+48*second:
		return "netflow-5"
	case first == 9 && second > 0 && wholeSets(b[20:], size-20, 0, 1):
		return "netflow-9"
	case first == 10 && second == size && wholeSets(b[16:], size-16, 2, 3):
		return "ipfix"
	}
	return ""
}

// wholeSets reports whether size bytes are sets of templates, options and data, as far as b holds them.
func wholeSets(b []byte, size int, templates, options uint16) bool {
	at := 0
	for at < size {
		if at+4 > len(b) {
			return size > len(b)
		}
		id, length := u16(b, at), int(u16(b, at+2))
		if at += length; length < 4 || at > size || id != templates && id != options && id < 256 {
			return false
		}
	}
	return true
}

// finish drops what is empty, and sorts the flags.
func finish(o Object) {
	if flags, ok := o["flags"].([]string); ok {
		sort.Strings(flags)
		o["flags"] = slices.Compact(flags)
		if len(flags) == 0 {
			delete(o, "flags")
		}
	}
	if hops, ok := o["hops"].([]Object); ok && len(hops) == 0 {
		delete(o, "hops")
	}
}

func flag(o Object, names ...string) {
	flags, _ := o["flags"].([]string)
	o["flags"] = append(slices.Clone(flags), names...)
}

func fail(o Object, format, field string, offset int, reason string) Object {
	o["error"] = Object{"format": format, "field": field, "offset": uint64(offset), "reason": reason}
	return o
}

func u16(b []byte, at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }

// number reads n bytes, big-endian.
func number(b []byte, at, n int) (v uint64) {
	for _, c := range b[at : at+n] {
		v = v<<8 | uint64(c)
	}
	return v
}

// bitField reads n bits that begin at bit first of b, bit 0 being the most significant of b[0].
func bitField(b []byte, first, n int) (v uint64) {
	for i := first; i < first+n; i++ {
		v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
	}
	return v
}

// valid sets a value of n bytes unless it is all ones.
func valid(o Object, key string, b []byte, at, n int) {
	v := number(b, at, n)
	if n == 8 && v == 1<<64-1 || n < 8 && v == 1<<(8*n)-1 {
		return
	}
	o[key] = v
}
