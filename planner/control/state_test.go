package control

import (
	"encoding/binary"
	"slices"
)

// coder writes numbers, texts, plans and entries.
type coder []byte

func (b *coder) num(x int64) { *b = binary.AppendVarint(*b, x) }

func (b *coder) flag(list ...bool) {
	x := int64(0)
	for _, f := range list {
		if x <<= 1; f {
			x |= 1
		}
	}
	b.num(x)
}

func (b *coder) text(s string) { b.num(int64(len(s))); *b = append(*b, s...) }

func (b *coder) plan(p *Plan) {
	if p == nil {
		b.num(-1)
		return
	}
	b.num(int64(p.Epoch))
	for _, id := range p.Detailed {
		b.text(id)
	}
	b.text(p.Network.Name)
	b.num(int64(len(p.Probes)))
	b.flag(p.rollback)
}

func (b *coder) entries(list []Entry) {
	b.num(int64(len(list)))
	for _, e := range list {
		b.num(int64(e.Epoch))
		b.text(e.Key)
		b.text(e.Value)
	}
}

// appendDevice is what the controller knows of a device.
func (b *coder) device(c *Controller, d *device) {
	b.flag(d.up, d.known, d.heard, d.leaving, d.silent, d.retry, d.failed != "", d.surplus, d.met, d.foreign, d.clean, d.made, d.checked == c.version)
	b.num(int64(d.retryAt))
	b.num(int64(d.attempts))
	b.num(int64(d.refusals))
	b.num(int64(d.fruitless))
	b.flag(d.program != "", d.mayLoad, d.approved, d.announced, d.journaled)
	b.num(int64(d.loads))
	b.num(int64(d.waits))
	if d.waits != nothing {
		b.num(d.deadline - c.now)
	}
	b.entries(d.batch)
	b.plan(d.sent)
	for _, x := range [...]uint32{d.inForce, d.mayHave, d.expect, d.seen} {
		b.num(int64(x))
	}
	if d.waits == sending {
		b.num(int64(d.had))
	}
	b.entries(d.have)
}

// node is a device as it is, with what is on its way. Of the numbers of requests it matters which one is waited for.
func (b *coder) node(n *node, d *device) {
	current := func(id Request) bool { return d != nil && d.waits != nothing && d.request == id }
	b.flag(n.connected, n.forgot)
	b.num(int64(len(n.requests)))
	for _, r := range n.requests {
		b.flag(r.lost, current(r.id))
		switch a := r.Action.(type) {
		case SendPlan:
			b.plan(a.Plan)
		case Install:
			b.num(-2)
			b.entries(a.Entries)
		case Remove:
			b.num(-3)
			b.entries(a.Entries)
		case Read:
			b.num(-4)
		}
	}
	b.num(int64(len(n.answers)))
	for _, e := range n.answers {
		switch e := e.(type) {
		case Acked:
			b.num(-1)
			b.flag(current(e.Request))
		case Refused:
			b.num(-2)
			b.flag(current(e.Request))
			b.num(int64(len(e.Did)))
			for _, x := range e.Did {
				b.text(x.Why)
				b.text(x.Key)
			}
		case ReadBack:
			b.num(int64(e.Epoch))
			b.flag(current(e.Request))
			b.entries(e.Entries)
		}
	}
	b.plan(n.plan)
	b.num(int64(n.atStart))
	for _, e := range n.had {
		b.num(int64(e))
	}
	b.num(int64(n.accepted))
	b.entries(n.entries)
}

// appendState is all that decides what a world does from here on. Where the switches are alike it does not matter which
// of them it is, so that worlds that differ in that alone count once.
func (w *world) appendState(dst []byte) []byte {
	c := w.c
	b := coder(dst)
	b.num(c.now - w.lastTick)
	b.num(int64(c.counts.Cycles))
	b.num(max(0, c.graceUntil-c.now))
	for _, p := range [...]*Plan{c.target, c.inForce, c.before, c.pending, c.refusal.plan} {
		b.plan(p)
	}
	b.num(int64(c.refusal.until))
	b.num(int64(c.refusal.times))
	b.text(c.refusal.at.String())
	b.text(c.trial.String())
	b.num(int64(len(c.known)))
	for _, p := range c.known {
		b.plan(p)
	}
	b.num(int64(c.first))
	b.num(int64(c.last))
	b.num(int64(c.highestHeld))
	b.flag(c.paused, c.dry, c.deposedBy != "", c.held != "", c.settled, c.tableFull)
	b.text(c.net.Name)
	if c.target == nil {
		for _, id := range c.seed.Detailed {
			b.text(id)
		}
	}
	b.flag(w.covered...)
	b.flag(w.attends)
	for _, x := range [...]int{w.ticks, w.faults, w.crashes, w.restarts, w.refusals, w.singles, w.forgets, min(w.ticked, 2)} {
		b.num(int64(x))
	}
	at := make([]int, 0, 8)
	for k := range w.nodes {
		n := &w.nodes[k]
		if n.Kind == Switch {
			at = append(at, len(b))
		}
		d := c.find(n.Device)
		if d != nil {
			b.device(c, d)
		}
		b.node(n, d)
	}
	if !w.alike || len(at) == 0 {
		return b
	}
	parts, rest := make([]string, len(at)), string(b[at[0]:])
	for k, from := range at {
		to := len(b)
		if k+1 < len(at) {
			to = at[k+1]
		}
		parts[k] = rest[from-at[0] : to-at[0]]
	}
	slices.Sort(parts)
	b = b[:at[0]]
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// What is not part of a state: what is counted, what people are shown, and what follows from the rest.
const controllerFields, deviceFields = 39, 35
