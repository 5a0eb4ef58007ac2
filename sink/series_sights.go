package sink

import "github.com/hopscope/hopscope/inference"

// flowSight is the view that a node has of one of the busiest flows.
type flowSight struct {
	*inference.FlowSight
	name string // of the flow
}

var sights = series("flow_seen", "Observation of one of the busiest flows at a node in one window, by samples (sFlow) or flow records (IPFIX, NetFlow 9). "+
	"Several nodes observe the same packets: do not add them up. A flow record counts in the window of its receipt.",
	[]tag[flowSight]{
		{"egress_if", "egress interface; 0 if unknown", func(s *flowSight) string { return decimal(s.Egress) }},
		{"flow", "key of the flow", func(s *flowSight) string { return s.name }},
		{"ingress_if", "ingress interface; 0 if unknown", func(s *flowSight) string { return decimal(s.Ingress) }},
		{"node", "node ID", func(s *flowSight) string { return decimal(s.Node) }},
	},
	[]field[flowSight]{
		integer("records", "", "samples and flow records", func(s *flowSight) uint64 { return s.Records }),
		integer("packets", "", "packets that these represent, by the sampling rate", func(s *flowSight) uint64 { return s.Packets }),
		{FieldSpec{"octets", Int, "bytes", "octets of these packets: frames in sFlow, IP packets in flow records"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.Octets)}, s.Octets > 0 }},
		{FieldSpec{"duration", Int, "ns", "time from the first to the last packet, by the exporter's clock"},
			func(s *flowSight) (Field, bool) {
				return Field{Int: s.Last - s.First}, s.First != 0 && s.Last >= s.First
			}},
		{FieldSpec{"path_delay_mean", Int, "ns", "mean time of packets since the source node, by the clocks of both"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMean())}, s.Delayed > 0 }},
		{FieldSpec{"path_delay_packets", Int, "", "packets of this mean"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.Delayed)}, s.Delayed > 0 }},
		{FieldSpec{"path_delay_min", Int, "ns", "minimum delay in the records"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMin)}, s.HasDelayBounds() }},
		{FieldSpec{"path_delay_max", Int, "ns", "maximum delay in the records"},
			func(s *flowSight) (Field, bool) { return Field{Int: int64(s.DelayMax)}, s.HasDelayBounds() }},
	}).revised()
