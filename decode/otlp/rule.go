package otlp

import (
	"slices"
	"strings"
)

// Statistic is the kind of a metric's values.
type Statistic uint8

// The statistics. Gauges report values; of those that count, gauges are sums since a start too, as in SNMP.
const (
	None        Statistic = iota // known, and nothing that windows have a place for
	Latency                      // time in the device
	Queue                        // queue occupancy
	Utilization                  // share of the egress interface in use
	Octets                       // sent by the interface, counted
	Speed                        // of the interface
	Drops                        // packets, counted, of which no direction is known
	Errors                       // packets that were dropped since they were damaged, counted in the same way

	// The counters of an interface by direction, in the order of decode.Counters.
	InPackets
	OutPackets
	InErrors
	OutErrors
	InDiscards
	OutDiscards

	InOctets // received by the interface, counted
)

// Statistics are the names of the statistics in settings, by their numbers.
var Statistics = []string{
	"none", "latency", "queue", "utilization", "octets", "speed", "drops", "errors",
	"in-packets", "out-packets", "in-errors", "out-errors", "in-discards", "out-discards", "in-octets",
}

// Counts reports whether it is a count of an interface by direction.
func (s Statistic) Counts() bool { return s >= InPackets && s <= OutDiscards }

// Units are the units in settings, with their values in nanoseconds, bytes, bits a second or shares.
var Units = map[string]float64{
	"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "bit/s": 1, "mbit/s": 1e6, "gbit/s": 1e9,
	"ratio": 1, "percent": .01,
}

// Rule is the meaning of the points of a metric. The unit in a point is ignored: devices are wrong there.
type Rule struct {
	Metric    string      // name; a * at its end stands for any rest
	Where     [][2]string // attributes of the point, and the values that they must have
	Interface string      // attribute with the name or number of the interface; empty for values of the whole node
	Queue     string      // attribute with the number of the queue; "" is none
	// Joint: the attribute of the interface can have the queue behind a bar: "Ethernet1|3".
	Joint     bool
	Statistic Statistic
	Scale     float64 // of values, to ns, bytes, bit/s or a share; 0 is 1
	Speed     float64 // Octets, InOctets: of the interface in bit/s, where neither a metric nor Config.Speed has it; 0 is not known
	Reason    uint8   // Drops, Errors, and what counts by direction: reason of the drops, where they are reported as such
	Why       string  // None: why nothing counts it, for the list of uncounted metrics; empty leaves it off
	Part      bool    // InDiscards, OutDiscards: among others that a metric of all of them counts; that one counts alone where it comes
}

// matches reports whether a rule is for a point of its metric.
func (r *Rule) matches(attrs []attribute) bool {
	for _, w := range r.Where {
		a := find(attrs, w[0])
		if a == nil || !a.equals(w[1]) {
			return false
		}
	}
	return r.Interface == "" || r.Statistic == None || find(attrs, r.Interface) != nil
}

func (r *Rule) scale(v float64) float64 {
	if r.Scale == 0 {
		return v
	}
	return v * r.Scale
}

// The reasons that drops of counters have, as reports made of sFlow number them.
const (
	noReason   = 139 // unknown
	byACL      = 141 // acl
	noBuffer   = 142 // no buffer space
	vlanTag    = 147 // vlan tag mismatch
	ingressLAN = 148 // ingress vlan filter
	loopback   = 151 // port loopback filter
	damaged    = 167 // unknown l2
	egressLAN  = 184 // egress vlan filter
)

// Builtin are the rules for metrics of Cumulus Linux 5 (NVIDIA Spectrum) and of SONiC. SONiC's countersyncd makes
// names of the numbers of SAI's types and statistics.
//
// Discards of Cumulus by reason count where those of all reasons (if_in_discards, if_out_discards) do not come. Of
// filters whose direction is not documented, they are drops.
//
// Known metrics that are left out count something twice or belong to no egress interface. Their rules hold the
// reason, for the list of uncounted metrics.
func Builtin() (list []Rule) {
	const ports = "nvswitch_interface_"
	port := func(name string, s Statistic, reason uint8) {
		list = append(list, Rule{Metric: ports + name, Interface: "interface", Statistic: s, Reason: reason})
	}
	list = append(list,
		Rule{Metric: "nvswitch_histogram_interface_latency", Interface: "interface", Queue: "tc", Statistic: Latency},
		Rule{Metric: "nvswitch_histogram_interface_egress_buffer", Interface: "interface", Queue: "tc", Statistic: Queue},
	)
	port("if_in_octets", InOctets, 0)
	port("if_out_octets", Octets, 0)
	port("oper_aggregate_speed", Speed, 0)
	for _, name := range []string{"ucast", "multicast", "broadcast"} {
		port("if_in_"+name+"_pkts", InPackets, 0)
		port("if_out_"+name+"_pkts", OutPackets, 0)
	}
	port("if_in_errors", InErrors, damaged)
	port("if_out_errors", OutErrors, damaged)
	port("if_in_discards", InDiscards, noReason)
	port("if_out_discards", OutDiscards, noReason)
	for name, reason := range map[string]uint8{
		"ingress_general": noReason, "ingress_policy_engine": byACL, "ingress_vlan_membership": ingressLAN, "ingress_tag_frame_type": vlanTag,
		"egress_vlan_membership": egressLAN, "loopback_filter": loopback, "egress_general": noReason, "egress_link_down": noReason,
		"egress_hoq": noBuffer, "port_isolation": noReason, "egress_policy_engine": byACL, "ingress_tx_link_down": noReason,
		"egress_stp_filter": noReason, "egress_hoq_stall": noBuffer, "egress_sll": noBuffer,
	} {
		switch way, _, _ := strings.Cut(name, "_"); way {
		case "ingress":
			port("discards_"+name, InDiscards, reason)
			list[len(list)-1].Part = true
		case "egress":
			port("discards_"+name, OutDiscards, reason)
			list[len(list)-1].Part = true
		default:
			port("discards_"+name, Drops, reason)
		}
	}
	left := func(metric, why string) { list = append(list, Rule{Metric: metric, Why: why}) }
	left(ports+"discards_ingress_discard_all", "it is the sum of other discards")
	sai := func(name string, s Statistic, reason uint8) {
		list = append(list, Rule{Metric: "sai_counter_type_" + name, Interface: "object_name", Joint: true, Statistic: s, Reason: reason})
	}
	for stat, of := range map[string]Statistic{ // SAI_PORT_STAT_IF_...
		"1": InPackets, "6": InPackets, "7": InPackets, // IN_UCAST_PKTS, IN_BROADCAST_PKTS, IN_MULTICAST_PKTS
		"10": OutPackets, "15": OutPackets, "16": OutPackets, // the same, OUT
		"0": InOctets, "9": Octets, // IN_OCTETS, OUT_OCTETS
	} {
		sai("1_stat_"+stat, of, 0)
	}
	sai("1_stat_3", InDiscards, noReason)                                                                         // SAI_PORT_STAT_IF_IN_DISCARDS
	sai("1_stat_4", InErrors, damaged)                                                                            // SAI_PORT_STAT_IF_IN_ERRORS
	sai("1_stat_12", OutDiscards, noReason)                                                                       // SAI_PORT_STAT_IF_OUT_DISCARDS
	sai("1_stat_13", OutErrors, damaged)                                                                          // SAI_PORT_STAT_IF_OUT_ERRORS
	left("sai_counter_type_1_stat_2", "packets in that are not unicast are counted as multicast and broadcast")   // SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS
	left("sai_counter_type_1_stat_11", "packets out that are not unicast are counted as multicast and broadcast") // SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS
	left("sai_counter_type_21_stat_2", "packets that a queue dropped are among the discards of its interface")    // SAI_QUEUE_STAT_DROPPED_PACKETS
	sai("21_stat_24", Queue, 0)                                                                                   // SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES
	sai("21_stat_25", Queue, 0)                                                                                   // SAI_QUEUE_STAT_WATERMARK_BYTES
	slices.SortFunc(list, func(a, b Rule) int { return strings.Compare(a.Metric, b.Metric) })
	const sampled = "its buckets hold packets or bytes of a sampling interval, which are neither a queue nor a latency"
	left("nvswitch_histogram_interface_ingress_buffer*", "buffers at ingress are of the interface that packets came by, and queues here of the one that they leave by")
	left("nvswitch_histogram_interface_counter*", sampled)
	left("nvswitch_histogram_interface_microburst*", sampled)
	left("nvswitch_histogram_*", "it is no histogram of an egress queue or a latency of an interface")
	left("nvswitch_wjh_*", `drop events of "what just happened" are among the discards of interfaces`)
	return list
}

// mostNames bounds the names of metrics whose rules are remembered.
const mostNames = 1024

// rules finds rules by the name of a metric.
type rules struct {
	list  []Rule
	known map[string][]*Rule
}

// find returns the rules for a metric, in the order of the list.
func (x *rules) find(name []byte) (found []*Rule) {
	if found, ok := x.known[string(name)]; ok {
		return found
	}
	for i := range x.list {
		r := &x.list[i]
		if begin, any := strings.CutSuffix(r.Metric, "*"); r.Metric == string(name) || any && strings.HasPrefix(string(name), begin) {
			found = append(found, r)
		}
	}
	if len(x.known) >= mostNames {
		clear(x.known)
	}
	x.known[string(name)] = found
	return found
}
