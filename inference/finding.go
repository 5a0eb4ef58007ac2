package inference

import "github.com/hopscope/hopscope/decode"

// Finding is a statement that something is wrong, from its start to its end. It is published at its start and end, when
// its severity rises, when its element changes, and when it rests or is back. Its ID stays the same.
//
// A finding is one of three things. Most stand for themselves. If several have one cause, the cause is a finding of its
// own. It counts them as its Evidence and names the Element that explains them; each of them names it as its Cause.
type Finding struct {
	ID       uint64 // the same from start to end
	Kind     Kind
	Severity Severity // the highest since its start
	Start    int64    // ns since 1970: end of the window in which the cause was first seen
	Updated  int64    // ns since 1970: end of the window of this publication
	End      int64    // 0 as long as the cause lasts

	Cause    uint64  // id of the finding that explains this one; 0 for one that stands for itself
	Evidence int     // findings that this one explains; 0 for one that is no cause of others
	Element  Element // place of the fault
	Learning bool    // the usual values at this place are not learnt well yet
	Resting  bool    // the place is as usual at present; the finding ends if it stays so, or waits for what came back several times

	Node     uint32         // where; 0 for findings about a flow
	EgressIf uint32         // 0 where no interface is meant
	Flow     decode.FlowKey // zero where no flow is meant
	Path     []HopKey       // of packets that vanish and of latencies of a flow: the flow's way; shared, not to be changed
	Exporter decode.Addr    // zero where no exporter is meant
	HWID     uint8          // hardware id of the exporter
	Nameless bool           // the reports of the exporter name no node
	Reason   uint8          // drop reason, for PacketDrops
	Folded   bool           // the node has no series of its own, see window.Admission

	SeenAt    Element // of a cause: place of the symptom that Statistic, Value and Baseline are of; none for other findings
	Statistic string  // name of Value, such as "p99 latency"; empty where the kind implies it
	Value     float64 // what was seen, in the unit that Text names
	Baseline  float64 // what was expected
	Text      string  // the evidence in one sentence
}

// HasNode reports whether the finding is about a node, whose id may be 0, or about an element of one.
func (f *Finding) HasNode() bool {
	switch {
	case f.Nameless:
		return false
	case f.Node != 0 || f.Exporter != decode.Addr{}:
		return true
	}
	switch f.Element.Kind {
	case NodeElement, InterfaceElement, LinkElement:
		return true
	case RouteElement:
		return !f.Element.Prefix().IsValid()
	case ExporterElement:
		return !f.Element.Nameless
	case FlowElement, CollectorElement:
		return false
	}
	return f.Flow.IPVersion == 0 && f.Kind != PathChanged // one of many flows is about none
}
