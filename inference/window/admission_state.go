package window

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// The state of an Admission as bytes, which only the version that wrote them reads:
//
//	state:  version<1b> day<uvarint> folded hops<uvarint> flows<uvarint> rest<uvarint> hops nodes flows exporters
//	places: count<uvarint> { key seen<varint> }, ordered by key; seen is in ns since the day began
//
// Keys are written as in a partial. A hop is its node and its interface, a node a uvarint, and a flow 38 bytes. An
// exporter is its address, its node and its hardware.
const admissionVersion = 1

// AppendState appends which series have begun, for [Admission.ReadState]: some 45 bytes for each flow, 30 for each
// exporter and 15 for each hop.
func (a *Admission) AppendState(dst []byte) []byte { return state.Append(dst, a.code) }

// ReadState replaces what is known of series with what [Admission.AppendState] wrote; the limits stay. From then on it
// admits what the one that wrote would have. If b was written with higher limits, those that were seen last keep their
// places. Other bytes are refused with a [*state.Error], and leave the admission as it is. The memory that it takes is
// in proportion to the length of b, which is not kept.
func (a *Admission) ReadState(b []byte) error {
	fresh := NewAdmission(AdmissionLimits{a.hops.max, a.flows.max, a.exporters.max})
	if err := state.Read("state of admitted series", b, fresh.code); err != nil {
		return err
	}
	*a = *fresh
	return nil
}

func (a *Admission) code(c *state.Coder) {
	c.Version(admissionVersion, admissionVersion)
	day := uint64(a.day)
	state.UintTo(c, "day", uint64(math.MaxInt64/int64(24*time.Hour)), &day)
	a.day = int64(day)
	state.Uint(c, "folded series", &a.foldedHops, &a.foldedFlows, &a.rest)
	began := a.day * int64(24*time.Hour)
	a.hops.code(c, "hops", 3, began, inference.HopKey.Compare, func(k *inference.HopKey, c *state.Coder) {
		place := uint64(k.EgressIf) << 1 // of no other hop, which needs no place
		state.Uint(c, "hop", &k.Node)
		state.UintTo(c, "hop", math.MaxUint32<<1, &place)
		c.Check("hop", place&1 == 0)
		k.EgressIf = uint32(place >> 1)
	})
	a.nodes.code(c, "nodes", 2, began, cmp.Compare[uint32], func(k *uint32, c *state.Coder) { state.Uint(c, "node", k) })
	a.flows.code(c, "flows", 39, began, compareFlows, func(k *decode.FlowKey, c *state.Coder) { c.Flow("flow", k) })
	a.exporters.code(c, "exporters", 19, began, inference.ExporterKey.Compare, func(k *inference.ExporterKey, c *state.Coder) {
		c.Addr("exporter", &k.Addr)
		k.CodeNode(c)
		state.Fixed(c, "exporter", &k.HWID)
	})
}

func compareFlows(a, b decode.FlowKey) int { return a.Compare(&b) }

// code codes a set whose members take size bytes or more.
func (p *places[K]) code(c *state.Coder, field string, size int, began int64, compare func(a, b K) int, code func(*K, *state.Coder)) {
	if c.Reading() {
		p.seen = map[K]int64{}
	}
	state.Map(c, field, math.MaxInt, size, p.seen, compare, func(k *K, at *int64, c *state.Coder) {
		code(k, c)
		after := *at - began
		state.Int(c, field, &after)
		*at = began + after
	})
	if len(p.seen) <= p.max || !c.Reading() {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(p.seen), func(a, b K) int { return cmp.Or(cmp.Compare(p.seen[a], p.seen[b]), compare(b, a)) })
	for _, k := range oldest[:len(oldest)-max(p.max, 0)] {
		delete(p.seen, k)
	}
}
