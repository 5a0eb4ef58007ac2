package inference

import "github.com/hopscope/hopscope/decode"

// Finding is one cause that somebody should know of, from its start to its end. It is told when it starts, when its
// severity rises, and when it ends; ID stays the same.
type Finding struct {
	ID       uint64
	Kind     Kind
	Severity Severity
	Start    int64 // ns since 1970: end of the window in which the cause was first seen
	Updated  int64
	End      int64 // 0 as long as the cause lasts

	Node     uint32 // where; 0 for findings about a flow
	EgressIf uint32
	Flow     decode.FlowKey // zero where no flow is meant
	Exporter decode.Addr    // zero where no exporter is meant
	HWID     uint8
	Reason   uint8 // drop reason, for PacketDrops
	Folded   bool  // the node has no series of its own, see [Admission]

	Value    float64 // what was seen, in the unit that Text names
	Baseline float64 // what was expected
	Text     string  // the evidence in one sentence
}
