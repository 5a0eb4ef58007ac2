package findings

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/findings/world"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/cause"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// worldSeeds are the seeds of each scenario of the second world that ways are counted in, for each five of the
// emulated network.
const worldSeeds = 5

// wayCounts are how often elements were thought of as causes, and how often they were the ones that something had
// happened to.
type wayCounts struct {
	ways        [cause.NumWays][cause.NumSorts]cause.Observation
	later       []cause.Observation // by the lengths of the table: findings that began later after the one before
	behindLater cause.Observation   // of findings that come from behind a place, those later than the first length

	offers  map[offerOf]bool
	brought map[uint64]*brought // findings that were explained by the right element in one way at least
}

type offerOf struct {
	id uint64
	cause.Offer
}

type brought struct {
	window uint64
	behind bool
}

// begin begins a fault.
func (c *wayCounts) begin() { c.offers, c.brought = map[offerOf]bool{}, map[uint64]*brought{} }

// offer counts an element that is thought of for a finding, once for each way.
func (c *wayCounts) offer(id, window uint64, o cause.Offer, right bool) {
	if c.offers[offerOf{id, o}] {
		return
	}
	c.offers[offerOf{id, o}] = true
	x := &c.ways[o.Way][o.Sort]
	if x.Of++; right {
		x.Shown++
		if c.brought[id] == nil {
			c.brought[id] = &brought{window: window}
		}
		c.brought[id].behind = c.brought[id].behind || o.Way == cause.Behind
	}
}

// end counts how late the findings of a fault began.
func (c *wayCounts) end() {
	var list []*brought
	for _, b := range c.brought {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *brought) int { return int(a.window) - int(b.window) })
	for i := 1; i < len(list); i++ {
		gap := list[i].window - list[i-1].window
		for k, l := range cause.Lengths() {
			if len(c.later) <= k {
				c.later = append(c.later, cause.Observation{})
			}
			more := func(x *cause.Observation) {
				if x.Of++; gap > l {
					x.Shown++
				}
			}
			more(&c.later[k])
			if k == 0 && list[i].behind {
				more(&c.behindLater)
			}
		}
	}
}

// runWays counts the ways in the emulated network and in the half of the second world that is for tuning. It prints
// the content of inference/cause/ways_counted.go.
func runWays(ctx context.Context, out io.Writer, o options) error {
	var c wayCounts
	for seed := range uint64(o.Seeds) {
		if err := c.emulated(ctx, o.Seed+seed, nil); err != nil {
			return err
		}
	}
	w := world.Options{Half: "tune"}
	scenarios, err := w.Select()
	if err != nil {
		return err
	}
	for seed := range uint64((o.Seeds + worldSeeds - 1) / worldSeeds) {
		for i := range scenarios {
			c.begin()
			if err := world.Offered(ctx, &scenarios[i], o.Seed+seed, c.offer); err != nil {
				return err
			}
			c.end()
		}
	}
	c.print(out)
	return nil
}

// emulated counts the ways in one emulation, of all faults or of some.
func (c *wayCounts) emulated(ctx context.Context, seed uint64, names []string) error {
	e, down := NewEmulation(seed), NewEmulation(seed)
	e.Names, down.Names = names, []string{"divert-flows"}
	down.Break = failNode
	for _, x := range []*Emulation{&e, &down} {
		cfg, err := x.config()
		if err != nil {
			return err
		}
		all, _, err := x.happenings(cfg)
		if err != nil {
			return err
		}
		detector := events.New(analysis().Events)
		var truth inference.Element
		var from, now int64
		at := -1
		detector.Offered(func(f *inference.Finding, o cause.Offer) {
			if at >= 0 && f.Start > from {
				right := o.Element == truth
				if truth.Kind == inference.ExporterElement { // any address of it
					right = o.Element.Kind == truth.Kind && f.Node == truth.Node
				}
				c.offer(f.ID, uint64(now), o, right)
			}
		})
		var network *emu.Network
		x.Built = func(n *emu.Network, _ []*scenario.Happening) { network = n }
		_, err = x.Windows(ctx, func(epoch int64, w *inference.Window) {
			now = (w.End - epoch) / int64(x.Window)
			for at+1 < len(all) && time.Duration(w.End-epoch) > all[at+1].From {
				if at >= 0 {
					c.end()
				}
				at++
				c.begin()
				truth, from = elementOf(all[at], network, x == &down), epoch+int64(all[at].From)
			}
			detector.Step(w)
		})
		if err != nil {
			return err
		}
		c.end()
	}
	return nil
}

// elementOf is the element that a fault happened at; none where it happened at none.
func elementOf(h *scenario.Happening, n *emu.Network, down bool) inference.Element {
	name := h.Name
	if down {
		name = nodeDown
	}
	for i := range counted {
		if slices.Contains(counted[i].faults, name) {
			return truth(counted[i].on, h, n)
		}
	}
	return inference.Element{}
}

func (c *wayCounts) print(out io.Writer) {
	fmt.Fprint(out, "var later = []lateness{\n")
	for k, l := range cause.Lengths() {
		fmt.Fprintf(out, "\t{%d, %d, %d},\n", l, c.later[k].Shown, c.later[k].Of)
	}
	fmt.Fprintf(out, "}\n\nvar behindLater = lateness{%d, %d, %d}\n\nvar ways = []counted{\n", cause.Lengths()[0], c.behindLater.Shown, c.behindLater.Of)
	for w := range c.ways {
		for s, x := range c.ways[w] {
			if x.Of > 0 {
				fmt.Fprintf(out, "\t{%s, %s, %d, %d},\n", wayNames[w], sortNames[s], x.Shown, x.Of)
			}
		}
	}
	fmt.Fprint(out, "}\n")
}

var (
	wayNames = [...]string{"Itself", "LinkOfHop", "NodeBehind", "NodeOfHop", "HopOfNode", "QueueOfNode", "LinkOfNode", "EndOfLink", "HopOfLink", "AddressOfExporter",
		"NodeOfExporter", "SameFlow", "MovedHere", "HopOnWay", "LinkOnWay", "NodeOnWay", "QueueOnWay", "QueueAhead", "QueueOfOthers", "QueueNext", "QueueSecond",
		"QueueThird", "QueueFourth", "Follows", "Unheard", "Behind", "WroteDigests", "SameMoment"}
	sortNames = [...]string{"slow", "queues", "carriesMore", "drops", "vanish", "otherWays", "fewer", "silent", "unreported", "reportsLost", "strange", "loops", "other", "forged"}
)
