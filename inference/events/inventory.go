package events

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/survey"
)

// inventory finds errors of the inventory by which digests are read. It names them without a memory: a window lists all
// flows that contradict the inventory.
type inventory struct {
	*subject.Table[inventoryKey, subject.Tally]
}

// inventoryKey is the identity of an error as long as it lasts, also when more of it is found.
type inventoryKey struct {
	kind       inference.MapErrorKind
	node, a, b uint32
	senders    decode.Addr // the first of those that may begin with the TTL
}

func (k inventoryKey) compare(o inventoryKey) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.node, o.node), cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b),
		bytes.Compare(k.senders[:], o.senders[:]))
}

func codeInventoryKey(c *subject.Coder, k *inventoryKey) {
	subject.Number(c, &k.kind)
	c.Check("error of an inventory", k.kind < inference.NumMapErrors)
	subject.Number(c, &k.node)
	subject.Number(c, &k.a)
	subject.Number(c, &k.b)
	c.Address(&k.senders)
}

func newInventory(j *subject.Journal) inventory {
	return inventory{subject.NewTable(j, inventoryKey.compare, codeInventoryKey, (*subject.Coder).Tally)}
}

func inventoryKeyOf(e *survey.Error) inventoryKey {
	switch e.Kind {
	case inference.Foreign, inference.Renamed: // which node it stands for may become known, or doubtful
		return inventoryKey{kind: inference.Foreign, node: e.Node}
	case inference.LowTTL: // and so may how many addresses begin with the TTL
		return inventoryKey{kind: e.Kind, node: e.Node, senders: decode.AddrFrom(survey.Senders(e.Prefix.Addr()).Addr())}
	}
	return inventoryKey{kind: e.Kind, node: e.Node, a: e.A, b: e.B}
}

// inventoryElement returns the element of an error of the inventory.
func inventoryElement(e *survey.Error) inference.Element {
	switch e.Kind {
	case inference.Foreign:
		return inference.ElementOfNode(e.Node)
	case inference.Renamed:
		return inference.ElementOfNode(e.A)
	case inference.LowTTL:
		return inference.ElementOfPrefix(e.Prefix)
	case inference.Unnamed:
		if e.B == inference.NoNode {
			return inference.ElementOfNode(e.A)
		}
		return inference.ElementOfRoute(e.A, e.B)
	}
	return inference.ElementOfLink(e.A, e.B)
}

func (d inventory) Step(w *inference.Window) {
	errors, explained := survey.DecideBeside(w.Deviations, fine(w), d.Cfg.InventoryFlows)
	d.Explained = explained
	for i := range errors {
		e := &errors[i]
		t := d.Observe(inventoryKeyOf(e), d.Cfg.MaxFlows)
		if t == nil {
			d.Unlisted++
			continue
		}
		t.Count = uint64(e.Flows)
		d.Publish(&t.Finding, inference.Finding{
			Kind: inference.InventoryError, Severity: inference.Warning, Element: inventoryElement(e), Node: inventoryElement(e).Node,
			Value: float64(e.Flows), Text: e.String(),
		})
	}
	d.ForEachAbsent(func(k inventoryKey, t *subject.Tally, windows int) bool {
		if windows < d.Cfg.EndAfter {
			return false
		}
		t.Finding.Value = 0
		d.End(&t.Finding, "no longer: "+k.String())
		return true
	})
}

// fine lists those of the busiest flows whose digests agree with the map. A digest holds a value of one hop at most,
// and an INT stack one of each, which does not show where digests are wrong.
func fine(w *inference.Window) (list []survey.Fine) {
	if len(w.Deviations) == 0 {
		return nil
	}
	unexplained := map[decode.FlowKey]bool{}
	for i := range w.Deviations {
		unexplained[w.Deviations[i].Flow] = true
	}
	for i := range w.Digests {
		unexplained[w.Digests[i].Flow] = true
	}
	for i := range w.Flows {
		f := &w.Flows[i]
		if unexplained[f.Key] || f.Partial || f.Unsettled || f.PathID == 0 {
			continue
		}
		values, whole, path := uint64(0), true, make([]uint32, 0, len(f.Hops))
		for k := range f.Hops {
			h := &f.Hops[k]
			values += h.Latency.Count + h.Queue.Count
			whole = whole && !h.Unknown && !h.Inferred && !h.Other
			path = append(path, h.Node)
		}
		if whole && values <= f.Packets {
			list = append(list, survey.Fine{Src: f.Key.SrcAddr(), Path: path})
		}
	}
	return list
}

func (k inventoryKey) String() string {
	if k.kind == inference.LowTTL {
		return fmt.Sprintf("hosts of %s start with TTL %d", survey.Senders(k.senders.Netip()), k.node)
	}
	e := inference.MapError{Kind: k.kind, Node: k.node, A: k.a, B: k.b}
	if k.kind == inference.Foreign {
		return fmt.Sprintf("a node calls itself %d and is not in the topology", k.node)
	}
	return e.String()
}
