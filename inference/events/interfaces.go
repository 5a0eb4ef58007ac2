package events

import (
	"cmp"
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// interfaces finds interfaces whose counters show damaged or discarded packets. Devices send counters every 10 to 60
// seconds, so that most windows have none of an interface: that is not a window without errors.
type interfaces struct {
	*subject.Table[countKey, counted]
}

// countKey is one of the counts of an interface.
type countKey struct {
	inference.HopKey
	which uint8
}

func (k countKey) compare(o countKey) int {
	return cmp.Or(k.HopKey.Compare(o.HopKey), cmp.Compare(k.which, o.which))
}

func codeCountKey(c *subject.Coder, k *countKey) {
	c.Hop(&k.HopKey)
	subject.Number(c, &k.which)
	c.Check("count of an interface", int(k.which) < len(counts))
}

// counted is the state of one count.
type counted struct{ lossHistory }

func codeCounted(c *subject.Coder, x *counted) { codeLossHistory(c, &x.lossHistory) }

// String returns the interface.
func (k countKey) String() string { return k.Place() }

// counts are the counts that are judged.
var counts = [...]struct {
	kind         inference.Kind
	has, packets decode.CounterField
	name         string
	of, among    func(*decode.Counters) uint64
}{
	{inference.InterfaceErrors, decode.CountInErrors, decode.CountInPackets, "errors in",
		func(c *decode.Counters) uint64 { return c.InErrors }, func(c *decode.Counters) uint64 { return c.InPackets }},
	{inference.InterfaceErrors, decode.CountOutErrors, decode.CountOutPackets, "errors out",
		func(c *decode.Counters) uint64 { return c.OutErrors }, func(c *decode.Counters) uint64 { return c.OutPackets }},
	{inference.InterfaceDiscards, decode.CountInDiscards, decode.CountInPackets, "discards in",
		func(c *decode.Counters) uint64 { return c.InDiscards }, func(c *decode.Counters) uint64 { return c.InPackets }},
	{inference.InterfaceDiscards, decode.CountOutDiscards, decode.CountOutPackets, "discards out",
		func(c *decode.Counters) uint64 { return c.OutDiscards }, func(c *decode.Counters) uint64 { return c.OutPackets }},
}

func newInterfaces(j *subject.Journal) interfaces {
	return interfaces{subject.NewTable(j, countKey.compare, codeCountKey, codeCounted)}
}

func (x interfaces) Step(w *inference.Window) {
	for i := range w.Interfaces {
		s := &w.Interfaces[i]
		for which := range counts {
			n := &counts[which]
			if s.Has&n.has == 0 {
				continue
			}
			k := countKey{s.Key(), uint8(which)}
			if n.of(&s.Counters) == 0 && x.Index[k] == nil {
				continue // of most interfaces nothing is to be remembered
			}
			if h := x.Observe(k, len(counts)*x.Cfg.MaxHops); h != nil {
				x.judge(h, k, s, w.Start)
			} else {
				x.Unjudged++
			}
		}
	}
	x.ForEachAbsent(func(k countKey, h *counted, windows int) bool {
		if windows < x.Cfg.ForgetAfter {
			return false
		}
		x.End(&h.loss, k.Place()+" is forgotten")
		return true
	})
}

// judge weighs the errors or discards among the packets of one direction.
func (x interfaces) judge(h *counted, k countKey, s *inference.InterfaceStats, start int64) {
	n := &counts[k.which]
	t := ratioTest{
		limit: x.Cfg.ErrorRatio, severe: x.Cfg.InterfaceSevere, start: start, unknown: s.Has&n.packets == 0,
		finding: inference.Finding{
			Kind: n.kind, Severity: inference.Warning, Node: k.Node, EgressIf: k.EgressIf, Element: inference.ElementOfHop(k.HopKey), Statistic: n.name,
		},
		subject: &k, verb: "counted", of: "packets as " + n.name, all: "may count all packets by the settings", idle: "no packet passed",
	}
	if n.kind == inference.InterfaceDiscards {
		t.limit = x.Cfg.DiscardRatio
	}
	if t.unknown {
		t.idle = "none"
	}
	passed := n.among(&s.Counters)
	judgeRatio(x.Journal, &h.lossHistory, &t, int64(min(n.of(&s.Counters), math.MaxInt64)), passed, passed)
}
