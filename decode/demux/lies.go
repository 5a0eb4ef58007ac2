package demux

import "github.com/hopscope/hopscope/decode"

// Lie is a well-formed value of a data plane that is not true: a value of another meaning, or one that is always the same. [Decoder]
// gives it as it stands on the wire; a [Router] leaves it out, so that it comes into no statistics. Where the truth stands beside it,
// such as the two times of which a latency is the difference, it counts instead.
type Lie struct {
	Fields decode.HopField
	Of     LieOf
	Why    string // for display
}

// LieOf says which hops carry a lie.
type LieOf uint8

// The hops that carry lies.
const (
	EveryHop LieOf = iota
	// SinkHop is the block of the node that sends a report, which is the last one of the stack: in a report without it, the
	// hop limit was used up.
	SinkHop
	// DropHop is the hop of a drop report, of which a value of 0 stands for one that is not known.
	DropHop
)

func (o LieOf) String() string {
	return [...]string{"every hop", "the hop of the reporting node", "the hop of a drop, where it is 0"}[min(o, DropHop)]
}

// lies is a list of lies, resolved.
type lies struct{ every, sink, drop decode.HopField }

func resolveLies(list []Lie) (l lies) {
	for _, x := range list {
		switch x.Of {
		case EveryHop:
			l.every |= x.Fields
		case SinkHop:
			l.sink |= x.Fields
		case DropHop:
			l.drop |= x.Fields
		}
	}
	return l
}

// Correct takes out of a report what is known to be wrong in those of p.
func (p *Profile) Correct(r *decode.Report) {
	l := resolveLies(p.Lies)
	l.correct(r)
}

func (l *lies) correct(r *decode.Report) {
	if l.every != 0 {
		for i := range r.Hops {
			r.Hops[i].Drop(l.every)
		}
	}
	n := len(r.Hops)
	if n == 0 || r.Format != decode.TelemetryReport {
		return
	}
	last := &r.Hops[n-1]
	if l.sink != 0 && r.INT != 0 && r.Flags&decode.HopLimit == 0 {
		last.Drop(l.sink)
	}
	if l.drop != 0 && r.Kind == decode.KindDrop {
		if last.EgressIf == 0 {
			last.Drop(l.drop & decode.HopEgressIf)
		}
		if last.QueueID == 0 {
			last.Drop(l.drop & decode.HopQueueID)
		}
	}
}

// The lies of public programs.
var (
	noUtilization = Lie{decode.HopTxUtilization, EveryHop, "always 0: the software switch knows no utilisation"}
	geantLies     = []Lie{
		{decode.HopLatency, SinkHop, "the low 32 bits of its egress time; its two times are right"},
		{decode.HopEgressIf, SinkHop, "the port of the report, not that of the packet"},
		{decode.HopTxUtilization, EveryHop, "always 0"},
		{decode.HopL2IngressIf | decode.HopL2EgressIf, EveryHop, "always 0"},
	}
	fabricLies = []Lie{
		{decode.HopEgressIf | decode.HopQueueID, DropHop, "the packet never reached its egress"},
	}
	hostLies = []Lie{
		{decode.HopEgressTime, EveryHop, "a copy of the ingress time: a host's own latency is not measured"},
	}
)
