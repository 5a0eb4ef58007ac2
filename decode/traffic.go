package decode

// Traffic holds the values of a sample or a flow record about its packets. Their number is [Report.Weight].
type Traffic struct {
	Ingress, Egress uint32 // ifIndex of the node's interfaces; 0 where one is not known
	Octets          uint64 // of all packets, by the sampling rate; 0 where it is not known
	Start, End      int64  // of the first and the last packet, ns since 1970 by the exporter's clock; 0 where it is not known
	Delay           PathDelay
}

// Known reports whether t holds anything.
func (t *Traffic) Known() bool {
	return t != nil && (t.Octets|uint64(t.Start|t.End)|uint64(t.Ingress|t.Egress) != 0 || t.Delay.Has != 0)
}

// AddTraffic returns the traffic of r, to be filled in. A report that is used again keeps its memory.
func (r *Report) AddTraffic() *Traffic {
	x := r.AddRare()
	if x.Traffic == nil {
		x.Traffic = new(Traffic)
	}
	return x.Traffic
}

// DelayField is a set of the values of a [PathDelay].
type DelayField uint8

// One bit for each value.
const (
	DelayMean DelayField = 1 << iota
	DelayMin
	DelayMax
	DelaySum
)

// MostPathDelay is the greatest time on the way that a packet can have, in ns. Of a greater one the clocks disagree.
const MostPathDelay = mostNS

// PathDelay is the delay of a flow's packets from the node that inserted telemetry to the reporting node. It is by
// the clocks of both, and as accurate as these agree. Two path delays are not to be subtracted.
type PathDelay struct {
	Has            DelayField
	Mean, Min, Max uint64 // ns
	Sum            uint64 // ns, of all packets
	Packets        uint64 // 0 where it is not said
}
