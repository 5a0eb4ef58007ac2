package decode

// IOAMField is a set of the values that an [IOAMOption] can hold.
type IOAMField uint16

// One bit for each value of an IOAMOption.
const (
	IOAMNamespace IOAMField = 1 << iota
	IOAMTraceType
	IOAMRemainingLen
	IOAMSeq
	IOAMSeconds
	IOAMFraction
	IOAMProofPacket
	IOAMProofCumulative
	IFARequested
)

// IOAMOption holds the values of an IOAM option, and of an IFA header, for which reports of other formats have no
// place. Has marks the present values. The others are zero.
type IOAMOption struct {
	Has          IOAMField
	RemainingLen uint8  // words still free, or still allowed
	Requested    uint8  // IFA: the request vector
	Namespace    uint16 // selects meanings
	TraceType    uint32 // 24 bits as on the wire
	Seconds      uint32 // edge to edge
	Fraction     uint32
	Seq          uint64 // edge to edge and direct export; no loss counter of an exporter

	ProofPacket, ProofCumulative uint64

	// Nodes holds further values of each node. It has the order of the report's hops, and their length but for a hop of the
	// reporting node behind them. They keep their memory when a report is reused.
	Nodes []IOAMNode
}

// GrowNodes lengthens Nodes to n zero nodes and returns them.
func (x *IOAMOption) GrowNodes(n int) []IOAMNode {
	if n > cap(x.Nodes) {
		x.Nodes = make([]IOAMNode, n)
	}
	x.Nodes = x.Nodes[:n]
	clear(x.Nodes)
	return x.Nodes
}

// IOAMNodeField is a set of the values that an [IOAMNode] can hold.
type IOAMNodeField uint16

// One bit for each value of an IOAMNode.
const (
	IOAMHopLimit IOAMNodeField = 1 << iota
	IOAMNodeIDWide
	IOAMIngressIfWide
	IOAMEgressIfWide
	IOAMIngressSeconds
	IOAMIngressFraction
	IOAMNamespaceData
	IOAMNamespaceDataWide
	IOAMSchemaID
	IOAMOpaque
	// IOAMNodeIDTaken: the hop's node id is the wide one, since the node gave no other and it has at most 32 bits.
	IOAMNodeIDTaken
	IFAPortSpeed
	IFAQueueCells
)

// IOAMNode holds the values of a node beside its [Hop]: raw wire values, with a presence mask as there. Opaque
// aliases the bytes that were decoded.
type IOAMNode struct {
	Has               IOAMNodeField
	HopLimit          uint8  // as the packet left the node
	PortSpeed         uint8  // IFA: 4 bits, a number for the speed of the egress port
	QueueCells        uint16 // IFA: of the egress port
	NodeIDWide        uint64 // 56 bits
	IngressIfWide     uint32
	EgressIfWide      uint32
	IngressSeconds    uint32 // of an epoch that the namespace selects
	IngressFraction   uint32 // ns, us or 2^-32 s, as the namespace selects
	NamespaceData     uint32
	NamespaceDataWide uint64
	SchemaID          uint32 // 24 bits, of Opaque
	Opaque            []byte // whole words
}
