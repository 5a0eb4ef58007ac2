package pintplan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
)

// maxFile bounds what is read: a plan is some kilobytes.
const maxFile = 1 << 20

// ReadFile reads a plan that hopscope plan queries wrote in JSON.
func ReadFile(path string) (*pint.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", path, err)
	}
	return p, nil
}

// Read is ReadFile for a stream. The plan is valid.
func Read(r io.Reader) (*pint.Plan, error) {
	in := &io.LimitedReader{R: r, N: maxFile + 1}
	var p querymix.Plan
	err := planner.ReadPlan(in, "queries", &p)
	if in.N == 0 {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, err
	}
	return New(&p)
}

// New makes a plan ready for switches and decoders. The error names everything that is wrong with it.
//
// A set is on packets of hash First to Last. Its share follows from these, so that nothing is rounded. Queries hash
// with separate seeds, so that the writers for one are independent of the writers for another.
func New(p *querymix.Plan) (*pint.Plan, error) {
	b, err := begin(p)
	if err != nil {
		return nil, err
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		made, err := newQuery(q, b.plan.Hash, p.Seed+uint32(i+1)*0x632be5ab)
		if err != nil {
			b.bad("query %q: %w", q.Name, err)
		}
		b.add(q, made)
	}
	return b.finish()
}

// With is New for queries that the caller has prepared. Each query of the plan is the prepared one of the same name,
// with coding and hashes as they are.
func With(p *querymix.Plan, queries []pint.Query) (*pint.Plan, error) {
	b, err := begin(p)
	if err != nil {
		return nil, err
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		k := slices.IndexFunc(queries, func(made pint.Query) bool { return made.Name == q.Name })
		if k < 0 {
			return nil, fmt.Errorf("query %q is not there", q.Name)
		}
		b.add(q, queries[k])
	}
	return b.finish()
}

// bridge is a plan in the making.
type bridge struct {
	from  *querymix.Plan
	plan  *pint.Plan
	index map[string]int // of queries
	errs  []error
}

// begin takes over what all queries share.
func begin(p *querymix.Plan) (*bridge, error) {
	b := &bridge{from: p, plan: &pint.Plan{Epoch: p.Epoch, Seed: p.Seed, Bits: p.Bits}, index: map[string]int{}}
	switch p.Hash {
	case "mix":
		b.plan.Hash = pint.HashMix
	case "crc":
		b.plan.Hash = pint.HashCRC
	default:
		return nil, fmt.Errorf("hash %q is neither mix nor crc", p.Hash)
	}
	if len(p.Queries) > querymix.MaxQueries || len(p.Queries) == 0 {
		return nil, fmt.Errorf("%d queries: want 1 to %d", len(p.Queries), querymix.MaxQueries)
	}
	return b, nil
}

func (b *bridge) bad(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// add takes over a query.
func (b *bridge) add(q *querymix.PlannedQuery, made pint.Query) {
	if _, twice := b.index[q.Name]; twice {
		b.bad("query %q is there twice", q.Name)
	}
	b.index[q.Name] = len(b.plan.Queries)
	b.plan.Queries = append(b.plan.Queries, made)
}

// finish takes over the sets, and validates everything.
func (b *bridge) finish() (*pint.Plan, error) {
	next := uint64(0)
	for n, s := range b.from.Sets {
		if uint64(s.First) != next || s.Last < s.First {
			b.bad("set %d: hashes %#x to %#x, want them to begin at %#x", n, s.First, s.Last, next)
		}
		next = uint64(s.Last) + 1
		set := pint.Set{Share: float64(next-uint64(s.First)) / (1 << 32)}
		for _, slot := range s.Slots {
			i, ok := b.index[slot.Query]
			if !ok {
				b.bad("set %d: query %q is not there", n, slot.Query)
				continue
			}
			if bits := b.from.Queries[i].Total(); bits != slot.Bits {
				b.bad("set %d: query %q with %d bits: it has %d", n, slot.Query, slot.Bits, bits)
			}
			set.Slots = append(set.Slots, pint.Slot{Query: i, Shift: slot.Shift})
		}
		b.plan.Sets = append(b.plan.Sets, set)
	}
	if next != 1<<32 {
		b.bad("the hashes of sets end at %#x", next)
	}
	if b.errs == nil {
		if err := b.plan.Validate(); err != nil {
			return nil, err
		}
		return b.plan, nil
	}
	return nil, errors.Join(b.errs...)
}

func newQuery(q *querymix.PlannedQuery, hash pint.Hash, seed uint32) (made pint.Query, err error) {
	made = pint.Query{Name: q.Name, Value: q.Value, Bits: q.Total()}
	scheme := pint.Config{Hash: hash, Seed: seed, Bits: q.Bits, Instances: q.Instances, Tau: q.Tau, P: q.XOR}
	switch most := (32 + q.Bits - 1) / max(q.Bits, 1); {
	case q.Fragments == 0:
	case q.Fragments < 0 || q.Fragments > most || q.Aggregation != querymix.Static:
		return made, fmt.Errorf("%d fragments of %d bits, aggregation %s: want 1 to %d of a static query", q.Fragments, q.Bits, q.Aggregation, most)
	default:
		scheme.ValueBits = min(q.Fragments*q.Bits, 32)
	}
	code := pint.CodeConfig{Bits: q.Bits, Unit: q.MinValue, Max: q.MaxValue}
	switch q.Answer {
	case "", querymix.Quantiles:
	case querymix.Frequent:
		made.Answer = pint.Frequent
	default:
		return made, fmt.Errorf("answer %q: unknown", q.Answer)
	}
	switch q.Function {
	case "", querymix.Max:
	case querymix.Min:
		made.Function = pint.Min
	case querymix.Sum:
		made.Function = pint.Sum
	default:
		return made, fmt.Errorf("function %q: unknown", q.Function)
	}
	switch q.Aggregation {
	case querymix.Static:
		made.Aggregation = pint.Static
		made.Scheme, err = pint.New(scheme)
	case querymix.Dynamic:
		made.Aggregation = pint.Dynamic
		if made.Scheme, err = pint.New(scheme); err == nil {
			made.Code, err = newCode(code)
		}
	case querymix.PerPacket:
		made.Aggregation = pint.PerPacket
		made.Code, err = newCode(code)
	case querymix.Loop:
		made.Aggregation = pint.Loop
		l := &pint.Loops{Hash: hash, Seed: seed, T: q.Matches}
		l.Bits = q.Bits - (l.Width() - l.Bits) // the counter is above the hash
		made.Loops, err = l, l.Validate()
	default:
		err = fmt.Errorf("aggregation %q: unknown", q.Aggregation)
	}
	return made, err
}

// newCode keeps a nil *Levels from becoming a Code that is not nil.
func newCode(c pint.CodeConfig) (pint.Code, error) {
	l, err := pint.NewCode(c)
	if err != nil {
		return nil, err
	}
	return l, nil
}
