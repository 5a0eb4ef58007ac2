package sflow

import "maps"

// The reasons for which packets are discarded: the codes of ICMP destination unreachable, and those from 256 on. Two
// of the table are out of order, dev_hdr at 33 and tc_egress at 36. Each is accepted under both of its numbers.
const firstReason = 256

// Unknown is the unspecific reason.
const Unknown uint32 = firstReason

var icmpReasons = [...]string{
	"net unreachable", "host unreachable", "protocol unreachable", "port unreachable", "frag needed", "src route failed",
	"dst net unknown", "dst host unknown", "src host isolated", "dst net prohibited", "dst host prohibited",
	"dst net tos unreachable", "dst host tos unreachable", "comm admin prohibited", "host precedence violation",
	"precedence cutoff",
}

var reasons = [...]string{
	"unknown", "ttl exceeded", "acl", "no buffer space", "red", "traffic shaping", "pkt too big", "src mac is multicast",
	"vlan tag mismatch", "ingress vlan filter", "ingress spanning tree filter", "port list is empty", "port loopback filter",
	"blackhole route", "non ip", "uc dip over mc dmac", "dip is loopback address", "sip is mc", "sip is loopback address",
	"ip header corrupted", "ipv4 sip is limited bc", "ipv6 mc dip reserved scope", "ipv6 mc dip interface local scope",
	"unresolved neigh", "mc reverse path forwarding", "non routable packet", "decap error", "overlay smac is mc", "unknown l2",
	"unknown l3", "unknown l3 exception", "unknown buffer", "unknown tunnel", "unknown l4", "sip is unspecified",
	"mlag port isolation", "blackhole arp neigh", "src mac is dmac", "dmac is reserved", "sip is class e", "mc dmac mismatch",
	"sip is dip", "dip is local network", "dip is link local", "overlay smac is dmac", "egress vlan filter",
	"uc reverse path forwarding", "split horizon", "locked port", "dmac filter", "blackhole nexthop", "vxlan parsing",
	"llc snap parsing", "vlan parsing", "pppoe ppp parsing", "mpls parsing", "arp parsing", "ip 1 parsing", "ip n parsing",
	"gre parsing", "udp parsing", "tcp parsing", "ipsec parsing", "sctp parsing", "dccp parsing", "gtp parsing", "esp parsing",
	"unknown parsing", "pkt too small", "unhandled proto", "ipv6disabled", "invalid proto", "ip noproto", "skb csum",
	"skb ucopy fault", "dev ready", "dev hdr", "dup frag", "skb gso seg", "reverse path forwarding", "icmp parsing",
	"tcp md5notfound", "tcp md5unexpected", "tcp md5failure", "tcp flags", "tcp zerowindow", "tcp old data", "tcp overwindow",
	"tcp ofomerge", "tcp rfc7323 paws", "tcp invalid sequence", "tcp reset", "tcp invalid syn", "tcp close", "tcp fastopen",
	"tcp old ack", "tcp too old ack", "tcp ack unsent data", "tcp ofo queue prune", "tcp ofo drop", "tcp minttl", "ipv6 bad exthdr",
	"ipv6 ndisc frag", "ipv6 ndisc hop limit", "ipv6 ndisc bad code", "ipv6 ndisc bad options", "ipv6 ndisc ns otherhost",
	"tap filter", "tap txfilter", "tc ingress", "tc egress", "xdp", "cpu backlog", "bpf cgroup egress", "xfrm policy",
	"socket filter", "bgp flowspec",
}

// ReasonName returns the name of a reason, or "".
func ReasonName(reason uint32) string {
	switch {
	case reason < uint32(len(icmpReasons)):
		return icmpReasons[reason]
	case reason == 33:
		reason = 332
	case reason == 36:
		reason = 366
	}
	if i := reason - firstReason; i < uint32(len(reasons)) {
		return reasons[i]
	}
	return ""
}

// spelt are the names of traps of devlink that the table spells otherwise.
var spelt = map[string]uint32{
	"ttl value is too small": 257, "ingress flow action drop": 258, "egress flow action drop": 258, "tail drop": 259, "early drop": 260, "mtu value is too small": 262,
	"source mac is multicast": 263,
}

var byName = func() map[string]uint32 {
	m := maps.Clone(spelt)
	for i, name := range reasons[1:] {
		m[name] = firstReason + 1 + uint32(i)
	}
	return m
}()

// BetterReason is the reason of a discarded packet by the name of a trap or of Linux ("tail_drop", "TCP_RESET"). It
// is reason unless that is unspecific and the name is known.
func BetterReason(reason uint32, name []byte) uint32 {
	if reason != firstReason && ReasonName(reason) != "" || len(name) > maxString {
		return reason
	}
	var b [maxString]byte
	for i, c := range name {
		switch {
		case c == '_':
			c = ' '
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		b[i] = c
	}
	if r, ok := byName[string(b[:len(name)])]; ok {
		return r
	}
	return reason
}

// Reasons is one more than the largest reason that has a name.
const Reasons = firstReason + len(reasons)

// ReasonCode is a reason in the 8 bits of a report's drop reason. Codes of ICMP are 123 to 138, and reasons from 256
// on are 139 and above. Numbers without a name are 139, unknown.
func ReasonCode(reason uint32) uint8 {
	const icmp, first = uint32(123), 123 + uint32(len(icmpReasons))
	switch {
	case reason < uint32(len(icmpReasons)):
		return uint8(icmp + reason)
	case reason == 33:
		reason = 332
	case reason == 36:
		reason = 366
	}
	if i := reason - firstReason; i < uint32(len(reasons)) {
		return uint8(first + i)
	}
	return uint8(first)
}
