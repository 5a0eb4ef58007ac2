package sink

import "github.com/hopscope/hopscope/inference"

// flowSight is the view that a node has of one of the busiest flows.
type flowSight struct {
	*inference.FlowSight
	name string // of the flow
}

var sights = series("flow_seen", "One point per window, flow and place at which a node saw the flow by samples (sFlow) or flow records (IPFIX, NetFlow 9), for the busiest flows. "+
	"Several nodes see the same packets: what they saw is not to be added up. A flow record counts in the window in which it came.",
	[]tag[flowSight]{
		{"egress_if", "interface by which packets left; 0 where it is not known", func(s *flowSight) string { return decimal(s.Egress) }},
		{"flow", "the flow's key as text", func(s *flowSight) string { return s.name }},
		{"ingress_if", "interface by which packets came; 0 where it is not known", func(s *flowSight) string { return decimal(s.Ingress) }},
		{"node", "node ID", func(s *flowSight) string { return decimal(s.Node) }},
	},
	[]field[flowSight]{
		integer("records", "", "samples and flow records", func(s *flowSight) uint64 { return s.Records }),
		integer("packets", "", "packets that these stand for, by the sampling rate", func(s *flowSight) uint64 { return s.Packets }),
		{FieldSpec{"octets", Int, "bytes", "octets of these packets, of frames in sFlow and of IP packets in flow records; absent where they are not known"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.Octets)}, s.Octets > 0 }},
		{FieldSpec{"duration", Int, "ns", "time from the first to the last packet, by the exporter's clock; absent where records do not say it"},
			func(s *flowSight) (Field, bool) {
				return Field{Int: s.Last - s.First}, s.First != 0 && s.Last >= s.First
			}},
		{FieldSpec{"path_delay_mean", Int, "ns", "mean time of packets since the node that put telemetry into them, by the clocks of the two; absent where no record says it"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMean())}, s.Delayed > 0 }},
		{FieldSpec{"path_delay_packets", Int, "", "packets that the mean is of"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.Delayed)}, s.Delayed > 0 }},
		{FieldSpec{"path_delay_min", Int, "ns", "the least delay that a record says; quantiles are not known"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMin)}, s.HasDelayBounds() }},
		{FieldSpec{"path_delay_max", Int, "ns", "the greatest delay that a record says"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMax)}, s.HasDelayBounds() }},
	}).revised()
