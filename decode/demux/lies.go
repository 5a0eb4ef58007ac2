package demux

import "github.com/hopscope/hopscope/decode"

// Lie is a well-formed but false value of a data plane: one of another meaning, or one that is always the same. A
// [Decoder] returns it as on the wire. A [Router] leaves it out, so that no statistics contain it. If the report also
// has the truth, such as the two times whose difference is the latency, that counts instead.
type Lie struct {
	Fields decode.HopField
	Of     LieOf
	Why    string // for display
}

// LieOf is the set of hops that carry a lie.
type LieOf uint8

// The hops that carry lies.
const (
	EveryHop LieOf = iota
	// SinkHop is the block of the node that sends a report, the last one of the stack. A stack without it means that
	// the hop limit was used up.
	SinkHop
	// DropHop is the hop of a drop report, in which a value of 0 means unknown.
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

// Correct removes the lies of p from a report.
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
