package pintplan

import (
	"errors"
	"fmt"
	"math"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// ErrProgram is a plan that p4/pint.p4 has no room for.
var ErrProgram = errors.New("pint.p4 carries out one query of each kind: a static path of nodes in one or two instances, " +
	"dynamic latency in one, the largest utilization, and loops; with hash crc, and codes of levels")

// errFragments is a plan whose digests carry fragments of node ids, for which pint.p4 has no table.
var errFragments = fmt.Errorf("pint.p4 writes hashes of node ids, not their fragments, so that the path needs a width without fragments: %w", ErrProgram)

// SwitchEntries returns the entries of a plan for the tables of p4/pint.p4, under the names that its p4info has, beside
// [SwitchShared]. They are those of p4/tables.py. The plan takes effect with the last one, and packets carry it when sources stamp
// its epoch (ingress.watch), which is not part of it. The error is [ErrProgram], or names what has no room.
func SwitchEntries(p *pint.Plan) ([]p4.Entry, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Hash != pint.HashCRC {
		return nil, ErrProgram
	}
	if len(p.Sets) > maxSets {
		return nil, fmt.Errorf("%d sets: the tables of pint.p4 hold %d for each of %d plans", len(p.Sets), maxSets, Plans)
	}
	w := switchWriter{writer{epoch: p.Epoch}}
	w.sets(p, "egress.pint_set")
	kinds := map[pint.Aggregation]bool{}
	for i := range p.Queries {
		q := &p.Queries[i]
		if kinds[q.Aggregation] {
			return nil, fmt.Errorf("query %q is the second one that is %s: %w", q.Name, q.Aggregation, ErrProgram)
		}
		kinds[q.Aggregation] = true
		if err := w.query(p, i); err != nil {
			return nil, fmt.Errorf("query %q: %w", q.Name, err)
		}
	}
	wide := uint64(0)
	if p.Bits > 32 {
		wide = 1
	}
	w.add("egress.plan", "set_plan", nil, uint64(constant(p.Seed, ofSet)), wide)
	return w.entries, nil
}

// SwitchShared returns the entries of pint.p4 that all plans share. These are the probability with which hop i replaces
// the digest in a packet of the Baseline layer, and the tables of logarithms and powers.
func SwitchShared() []p4.Entry {
	var list []p4.Entry
	add := func(name string, key int, action string, v uint64) {
		list = append(list, p4.Entry{Table: name, Match: []p4.Match{p4.Number(uint64(key))}, Action: action, Params: []p4.Value{p4.Uint(v)}})
	}
	for hop := 1; hop <= pint.MaxHops; hop++ {
		add("egress.pint_replace", hop, "at_most", 1<<32/uint64(hop)-1)
	}
	for _, name := range []string{"latency.encode.log_rnd", "utilization.encode.log_rnd", "line.log_idle", "line.log_average", "line.log_queue", "line.log_sent"} {
		for cell := range 1024 {
			add("egress."+name+".log", cell, "entry", uint64(pint.LogEntry(cell)))
		}
	}
	for _, name := range []string{"latency.encode.exp_gap", "utilization.encode.exp_gap", "line.exp_decay", "line.exp_queue", "line.exp_sent"} {
		for cell := range 1024 {
			add("egress."+name+".exp", cell, "entry", uint64(pint.ExpEntry(cell)))
		}
	}
	return list
}

// switchWriter writes entries of pint.p4.
type switchWriter struct{ writer }

// slots adds the sets of a query with its place: the lowest bit of each of its slots, the mask, and further parameters.
func (w *switchWriter) slots(p *pint.Plan, i int, name string, above, width int, rest ...uint64) {
	for n, s := range p.Sets {
		for _, slot := range s.Slots {
			if slot.Query == i {
				w.add("egress."+name+".slot", "use", []uint64{uint64(n)}, append([]uint64{uint64(slot.Shift + above), math.MaxUint64 >> (64 - width)}, rest...)...)
			}
		}
	}
}

func (w *switchWriter) query(p *pint.Plan, i int) error {
	q := &p.Queries[i]
	switch {
	case q.Aggregation == pint.Static && q.Value == pint.NodeValue:
		c := q.Scheme.Config()
		if c.ValueBits > 0 {
			return errFragments
		}
		if c.Hash != pint.HashCRC || c.Vectors || c.Instances > 2 {
			return ErrProgram
		}
		for n := range c.Instances {
			name, seed := fmt.Sprintf("path%d", n), instanceSeed(&c, n)
			w.slots(p, i, name, n*c.Bits, c.Bits, uint64(32-c.Bits), uint64(constant(seed, ofHops)), uint64(constant(seed, ofValues)), uint64(constant(seed, ofLayer)))
			w.layers("egress."+name+".layer", "baseline", "xor", nil, &c)
		}
		return nil
	case q.Aggregation == pint.Dynamic && q.Value == pint.LatencyValue:
		c := q.Scheme.Config()
		if c.Hash != pint.HashCRC || c.Instances > 1 {
			return ErrProgram
		}
		w.slots(p, i, "latency", 0, c.Bits, uint64(constant(c.Seed, ofHops)), uint64(constant(c.Seed, ofRounding)))
		return w.codes("egress.latency.encode.code", q.Code)
	case q.Aggregation == pint.PerPacket && q.Value == pint.UtilizationValue && q.Function == pint.Max:
		w.slots(p, i, "utilization", 0, q.Bits, uint64(constant(p.Seed, ofRounding+uint32(i))))
		return w.codes("egress.utilization.encode.code", q.Code)
	case q.Aggregation == pint.Loop:
		l := q.Loops
		if l.Hash != pint.HashCRC {
			return ErrProgram
		}
		w.slots(p, i, "loop", 0, l.Width(), uint64(l.Bits), uint64(l.T), uint64(constant(l.Seed, ofValues)), uint64(constant(l.Seed, ofHops)))
		return nil
	}
	return ErrProgram
}

// codes writes ranges of values, with the logarithm of the gap to the next one in 2^-16.
func (w *switchWriter) codes(name string, code pint.Code) error {
	l, ok := code.(*pint.Levels)
	if !ok {
		return ErrProgram
	}
	if l.Codes() > maxCodes {
		return fmt.Errorf("%d codes: the tables of pint.p4 hold %d for each of %d plans", l.Codes(), maxCodes, Plans)
	}
	w.levels(l, func(c, low, high uint64) {
		w.ranged(name, "level", low, high-1, nil, c, low, uint64(math.Floor(math.Log2(float64(high-low))*65536+.5)))
	}, func(c, low uint64) {
		w.ranged(name, "last", low, math.MaxUint64, nil, c)
	})
	return nil
}
