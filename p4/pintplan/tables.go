package pintplan

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// Names of the tables that hold plans. All but the first have the epoch of a plan as their first field.
const (
	SourceTable = "pint_source" // which epoch the first switch stamps
	PlanTable   = "pint_plan"   // has one entry for each plan that a switch holds
	SetTable    = "pint_set"
	SlotTable   = "pint_slot"
	QueryTable  = "pint_query"
	SaltTable   = "pint_salt"
	LayerTable  = "pint_layer"
	CodeTable   = "pint_code"
)

// Sizes of the tables, for two plans at once.
const (
	Plans      = 2
	maxSets    = 32
	maxQueries = 8
	maxCodes   = 4096
)

// Tables are the tables of a switch that holds plans. Switches compute CRC-32 and add. Probabilities are limits for 32
// uniform bits, and a number equal to a limit is still below the probability.
func Tables() []p4.Table {
	type (
		field  = p4.Field
		param  = p4.Param
		action = p4.Action
	)
	epoch, query := field{Name: "epoch", Bits: 8}, field{Name: "query", Bits: 8}
	hash := field{Name: "hash", Bits: 32, Kind: p4.Range}
	value, bits, instances := param{Name: "value", Bits: 2}, param{Name: "bits", Bits: 8}, param{Name: "instances", Bits: 8}
	return []p4.Table{
		{Name: SourceTable, Size: 0, Actions: []action{{Name: "stamp", Params: []param{{Name: "epoch", Bits: 8}}}, {Name: "pass"}}},
		{Name: PlanTable, Size: Plans, Key: []field{epoch}, Actions: []action{{Name: "hold", Params: []param{bits, {Name: "k_set", Bits: 32}, {Name: "entries", Bits: 16}}}}},
		{Name: SetTable, Size: Plans * maxSets, Key: []field{epoch, hash}, Actions: []action{{Name: "carry", Params: []param{{Name: "set", Bits: 8}}}}},
		{Name: SlotTable, Size: Plans * maxSets * maxQueries, Key: []field{epoch, {Name: "set", Bits: 8}, query}, Actions: []action{{Name: "use", Params: []param{{Name: "shift", Bits: 8}}}}},
		{Name: QueryTable, Size: Plans * maxQueries, Key: []field{epoch, query}, Actions: []action{
			{Name: "path", Params: []param{value, bits, instances}},
			{Name: "fragment", Params: []param{value, bits, instances, {Name: "value_bits", Bits: 8}}},
			{Name: "sample", Params: []param{value, bits, instances}},
			{Name: "maximum", Params: []param{value, bits, {Name: "k_round", Bits: 32}}},
			{Name: "loop", Params: []param{bits, {Name: "matches", Bits: 4}}},
		}},
		{Name: SaltTable, Size: Plans * maxQueries * 8, Key: []field{epoch, query, {Name: "instance", Bits: 8}}, Actions: []action{
			{Name: "keys", Params: []param{{Name: "k_hops", Bits: 32}, {Name: "k_values", Bits: 32}, {Name: "k_layer", Bits: 32}}},
			{Name: "part", Params: []param{{Name: "k_hops", Bits: 32}, {Name: "k_fragment", Bits: 32}, {Name: "k_layer", Bits: 32}}},
		}},
		{Name: LayerTable, Size: Plans * maxQueries * (pint.MaxLayers + 1), Key: []field{epoch, query, hash}, Actions: []action{
			{Name: "replace"}, {Name: "fold", Params: []param{{Name: "limit", Bits: 32}}},
		}},
		{Name: CodeTable, Size: Plans * maxCodes, Key: []field{epoch, query, {Name: "value", Bits: 64, Kind: p4.Range}}, Actions: []action{
			{Name: "round", Params: []param{{Name: "code", Bits: 16}, {Name: "gap", Bits: 64}}}, {Name: "last", Params: []param{{Name: "code", Bits: 16}}},
		}},
	}
}

// values are the numbers of quantities in queries.
var values = []string{pint.NodeValue, pint.LatencyValue, pint.QueueValue, pint.UtilizationValue}

// errTables is a plan that tables cannot hold.
var errTables = errors.New("tables hold plans of hash crc, with codes of levels, and per-packet maxima")

// Stamp is the entry that lets the packets which enter the network at a switch carry a plan's epoch.
func Stamp(epoch uint8) p4.Entry {
	return p4.Entry{Table: SourceTable, Action: "stamp", Params: []p4.Value{p4.Uint(uint64(epoch))}}
}

// Entries returns the entries of a plan, without [Stamp], in a valid order of writing: the plan takes effect with the
// last one.
func Entries(p *pint.Plan) ([]p4.Entry, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Hash != pint.HashCRC {
		return nil, errTables
	}
	if len(p.Sets) > maxSets || len(p.Queries) > maxQueries {
		return nil, fmt.Errorf("%d sets of %d queries: tables hold %d of %d", len(p.Sets), len(p.Queries), maxSets, maxQueries)
	}
	w := writer{epoch: p.Epoch}
	w.sets(p, SetTable)
	for i, s := range p.Sets {
		for _, slot := range s.Slots {
			w.add(SlotTable, "use", []uint64{uint64(i), uint64(slot.Query)}, uint64(slot.Shift))
		}
	}
	for i := range p.Queries {
		if err := w.query(p, i); err != nil {
			return nil, fmt.Errorf("query %q: %w", p.Queries[i].Name, err)
		}
	}
	// The plan's own entry has the number of entries, so that a switch with a part of them knows that it holds no plan.
	w.add(PlanTable, "hold", nil, uint64(p.Bits), uint64(constant(p.Seed, ofSet)), uint64(len(w.entries)+1))
	return w.entries, nil
}

// The functions of a packet id, as decode/pint numbers them.
const (
	ofHops     = 1
	ofValues   = 2
	ofLayer    = 3
	ofFragment = 4
	ofSet      = 5
	ofRounding = 6
)

// constant is k of the comments in decode/pint's tables: what a switch adds to packet ids.
func constant(seed, function uint32) uint32 { return crc(seed + function*0x85ebca6b) }

type writer struct {
	epoch   uint8
	entries []p4.Entry
}

func (w *writer) add(name, action string, key []uint64, params ...uint64) {
	e := p4.Entry{Table: name, Match: []p4.Match{p4.Number(uint64(w.epoch))}, Action: action}
	for _, v := range key {
		e.Match = append(e.Match, p4.Number(v))
	}
	for _, v := range params {
		e.Params = append(e.Params, p4.Uint(v))
	}
	w.entries = append(w.entries, e)
}

func (w *writer) ranged(name, action string, first, last uint64, key []uint64, params ...uint64) {
	w.add(name, action, key, params...)
	e := &w.entries[len(w.entries)-1]
	e.Match, e.Priority = append(e.Match, p4.Between(first, last)), 1
}

// sets writes which set a packet carries, by its hash.
func (w *writer) sets(p *pint.Plan, name string) {
	next, sum := uint64(0), 0.0
	for i, s := range p.Sets {
		sum += s.Share
		end := uint64(sum*(1<<32) + .5) // as Plan.Set chooses
		if i == len(p.Sets)-1 {
			end = 1 << 32
		}
		if end > next { // else no packet carries the set
			w.ranged(name, "carry", next, end-1, nil, uint64(i))
			next = end
		}
	}
}

// instanceSeed is the seed of an instance of a coding scheme.
func instanceSeed(c *pint.Config, n int) uint32 { return c.Seed + uint32(n)*0x9e3779b9 }

func (w *writer) query(p *pint.Plan, i int) error {
	q, at := &p.Queries[i], uint64(i)
	var value uint64
	for v, name := range values {
		if q.Value == name {
			value = uint64(v)
		}
	}
	switch q.Aggregation {
	case pint.Static, pint.Dynamic:
		c := q.Scheme.Config()
		if c.Hash != pint.HashCRC || c.Vectors {
			return errTables
		}
		keys, second := "keys", uint32(ofValues)
		size := []uint64{value, uint64(c.Bits), uint64(c.Instances)}
		switch {
		case q.Aggregation == pint.Dynamic:
			w.add(QueryTable, "sample", []uint64{at}, size...)
		case c.ValueBits > 0:
			keys, second = "part", ofFragment
			w.add(QueryTable, "fragment", []uint64{at}, append(size, uint64(c.ValueBits))...)
		default:
			w.add(QueryTable, "path", []uint64{at}, size...)
		}
		for n := range c.Instances {
			seed := instanceSeed(&c, n)
			w.add(SaltTable, keys, []uint64{at, uint64(n)}, uint64(constant(seed, ofHops)), uint64(constant(seed, second)), uint64(constant(seed, ofLayer)))
		}
		w.layers(LayerTable, "replace", "fold", []uint64{at}, &c)
	case pint.PerPacket:
		if q.Function != pint.Max {
			return errTables
		}
		w.add(QueryTable, "maximum", []uint64{at}, value, uint64(q.Bits), uint64(constant(p.Seed, ofRounding+uint32(i))))
	case pint.Loop:
		l := q.Loops
		if l.Hash != pint.HashCRC {
			return errTables
		}
		w.add(QueryTable, "loop", []uint64{at}, uint64(l.Bits), uint64(l.T))
		w.add(SaltTable, "keys", []uint64{at, 0}, uint64(constant(l.Seed, ofHops)), uint64(constant(l.Seed, ofValues)), 0)
	}
	if q.Code == nil {
		return nil
	}
	l, ok := q.Code.(*pint.Levels)
	if !ok {
		return errTables
	}
	if l.Codes() > maxCodes/maxQueries {
		return fmt.Errorf("%d codes: tables hold %d for each query", l.Codes(), maxCodes/maxQueries)
	}
	w.levels(l, func(c, low, high uint64) {
		w.ranged(CodeTable, "round", low, high-1, []uint64{at}, c, high-low)
	}, func(c, low uint64) {
		w.ranged(CodeTable, "last", low, 1<<64-1, []uint64{at}, c)
	})
	return nil
}

// levels calls between for each code with the values from its own to that of the next one, and last for the last.
func (w *writer) levels(l *pint.Levels, between func(c, low, high uint64), last func(c, low uint64)) {
	codes := uint32(l.Codes())
	for c := range codes - 1 {
		between(uint64(c), l.Level(c), l.Level(c+1))
	}
	last(uint64(codes-1), l.Level(codes-1))
}

// layers writes which layer a packet is of, by its hash: the Baseline layer, or one that XORs.
func (w *writer) layers(name, baseline, xor string, key []uint64, c *pint.Config) {
	tau := probability(c.Tau)
	if len(c.P) == 0 {
		tau = 1 << 32
	}
	if tau > 0 {
		w.ranged(name, baseline, 0, tau-1, key)
	}
	first := tau
	for l, p := range c.P {
		end := tau + uint64(l+1)*(1<<32-tau)/uint64(len(c.P))
		if end > first { // else no packet is of this layer
			w.ranged(name, xor, first, end-1, key, probability(p)-1)
		}
		first = end
	}
}
