package inference

import "github.com/hopscope/hopscope/decode"

// Severity orders findings by how soon somebody should look.
type Severity uint8

// From what is worth knowing to what wakes somebody.
const (
	Info Severity = iota
	Warning
	Critical
)

func (s Severity) String() string {
	return [...]string{"info", "warning", "critical"}[min(s, Critical)]
}

// Kind says what a finding is about.
type Kind uint8

// The closed list of kinds.
const (
	_ Kind = iota
	PathChanged
	PacketDrops
	ExporterLoss
	ExporterSilence
	HighLatency
	HighQueue
	StrangeDigests
	RoutingLoop
	numKinds
)

var kindNames = [numKinds]string{"", "path-change", "drops", "exporter-loss", "exporter-silence", "high-latency", "high-queue", "strange-digests", "routing-loop"}

func (k Kind) String() string { return kindNames[min(k, numKinds-1)] }

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

	Value    float64 // what was seen, in the unit that Text names
	Baseline float64 // what was expected
	Text     string  // the evidence in one sentence
}
