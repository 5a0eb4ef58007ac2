package pintplan

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/querymix"
)

// stored writes entries into the tables of a switch and reads them back.
func stored(t testing.TB, entries []p4.Entry) []p4.Entry {
	t.Helper()
	s := p4.NewStore(Tables())
	for _, e := range entries {
		if err := s.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	return s.Read("")
}

// randomPlan is a plan of hash CRC with up to four queries of every kind in up to three sets.
func randomPlan(t testing.TB, r *rand.Rand) *pint.Plan {
	t.Helper()
	p := &pint.Plan{Epoch: uint8(r.Uint32()), Hash: pint.HashCRC, Seed: r.Uint32(), Bits: 64}
	at := 0
	for len(p.Queries) == 0 || r.IntN(4) > 0 && len(p.Queries) < 4 {
		q := pint.Query{Name: string(rune('a' + len(p.Queries))), Value: values[r.IntN(len(values))], Aggregation: []pint.Aggregation{pint.Static, pint.Dynamic, pint.PerPacket, pint.Loop}[r.IntN(4)]}
		b := 1 + r.IntN(8)
		c := pint.Config{Hash: pint.HashCRC, Seed: r.Uint32(), Bits: b, Instances: 1 + r.IntN(2), Tau: 1}
		var err error
		switch q.Aggregation {
		case pint.Static:
			for range r.IntN(3) {
				c.P = append(c.P, max(1e-9, r.Float64()))
				c.Tau = float64(r.IntN(4)) / 3
			}
			if r.IntN(3) == 0 {
				c.ValueBits = 1 + r.IntN(32)
			}
			q.Scheme, err = pint.New(c)
		case pint.Dynamic:
			if q.Scheme, err = pint.New(c); err != nil {
				t.Fatal(err)
			}
			q.Code, err = pint.NewCode(pint.CodeConfig{Bits: b, Unit: 1 + r.Uint64N(1000), Epsilon: .01 + 3*r.Float64()})
		case pint.PerPacket:
			q.Code, err = pint.NewCode(pint.CodeConfig{Bits: b, Epsilon: .1 + r.Float64()})
			c.Instances = 1
		case pint.Loop:
			q.Value, c.Instances = pint.NodeValue, 1
			q.Loops = &pint.Loops{Hash: pint.HashCRC, Seed: r.Uint32(), Bits: b, T: r.IntN(4)}
			b = q.Loops.Width()
		}
		if err != nil {
			t.Fatal(err)
		}
		q.Bits = b * c.Instances
		p.Queries = append(p.Queries, q)
	}
	sets := 1 + r.IntN(3)
	for n := range sets {
		s := pint.Set{Share: 1 / float64(sets)}
		at = 0
		for i := range p.Queries {
			if n == 0 || r.IntN(2) == 0 {
				s.Slots = append(s.Slots, pint.Slot{Query: i, Shift: at})
				at += p.Queries[i].Bits
			}
		}
		p.Sets = append(p.Sets, s)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A switch with a plan's table entries alone writes what the plan writes, bit for bit.
func TestProgramIsPlan(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 13))
		plan := randomPlan(t, r)
		entries, err := Entries(plan)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(plan.Epoch, stored(t, entries))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.Bits != plan.Bits {
			t.Fatalf("seed %d: %d bits, want %d", seed, p.Bits, plan.Bits)
		}
		for range 100 {
			id, want := r.Uint32(), uint64(0)
			var got uint64
			for hop := 1; hop < 70; hop += 1 + hop/12*r.IntN(9) {
				v := pint.Values{Node: uint32(r.IntN(3)), Latency: r.Uint64() >> r.IntN(64), Queue: r.Uint64() >> r.IntN(64), Utilization: uint64(r.Uint32() >> 14)}
				rnd, looped := r.Uint32(), uint8(0)
				for _, slot := range plan.Sets[plan.Set(id)].Slots {
					if l := plan.Queries[slot.Query].Loops; l != nil {
						if _, second := l.Step(plan.Part(want, slot), id, hop, v.Node); second {
							looped = uint8(l.T + 1)
						}
					}
				}
				want = plan.Write(want, id, hop, v, rnd)
				var reported uint8
				if got, reported = p.Write(got, id, hop, v, rnd); got != want || reported != looped {
					t.Fatalf("seed %d, packet %#x at hop %d of %+v: digest %#x, loop %d, want %#x, %d", seed, id, hop, v, got, reported, want, looped)
				}
			}
		}
	}
}

// A part of a plan's entries is no plan, and neither are entries that no switch can carry out.
func TestCompileErrors(t *testing.T) {
	_, plan := made(t, problem)
	entries, err := Entries(plan)
	if err != nil {
		t.Fatal(err)
	}
	entries = stored(t, entries)
	for i := range entries {
		if _, err := Compile(plan.Epoch, slices.Delete(slices.Clone(entries), i, i+1)); err == nil {
			t.Fatalf("a plan without %v", &entries[i])
		}
	}
	if _, err := Compile(plan.Epoch+1, entries); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a plan of another epoch: %v", err)
	}
	change := func(name string, edit func(e *p4.Entry)) {
		list := slices.Clone(entries)
		i := slices.IndexFunc(list, func(e p4.Entry) bool { return e.Table == name })
		list[i].Match, list[i].Params = slices.Clone(list[i].Match), slices.Clone(list[i].Params)
		edit(&list[i])
		if _, err := Compile(plan.Epoch, list); err == nil {
			t.Errorf("a plan with %v", &list[i])
		}
	}
	change(PlanTable, func(e *p4.Entry) { e.Params[0] = p4.Uint(65) })
	change(PlanTable, func(e *p4.Entry) { e.Params[0] = p4.Uint(3) })
	change(SetTable, func(e *p4.Entry) { e.Match[1] = p4.Between(1, e.Match[1].To.Uint64()) })
	change(SlotTable, func(e *p4.Entry) { e.Params[0] = p4.Uint(64) })
	change(SlotTable, func(e *p4.Entry) { e.Match[2] = p4.Number(200) })
	change(QueryTable, func(e *p4.Entry) { e.Params[1] = p4.Uint(0) })
	change(SaltTable, func(e *p4.Entry) { e.Match[2] = p4.Number(8) })
	change(LayerTable, func(e *p4.Entry) { e.Match[2] = p4.Between(0, 1) })
	change(CodeTable, func(e *p4.Entry) { e.Match[2] = p4.Between(1, 1) })

	mixed := *plan
	mixed.Hash = pint.HashMix
	if _, err := Entries(&mixed); !errors.Is(err, errTables) {
		t.Errorf("entries of hash mix: %v", err)
	}
}

// Two plans fit, and a third one does not.
func TestTwoPlans(t *testing.T) {
	s := p4.NewStore(Tables())
	_, plan := made(t, problem)
	for epoch := range uint8(3) {
		p := *plan
		p.Epoch = epoch
		entries, err := Entries(&p)
		if err != nil {
			t.Fatal(err)
		}
		full := false
		for _, e := range entries {
			if err := s.Insert(e); errors.Is(err, p4.ErrFull) {
				full = true
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Compile(epoch, s.Read("")); (err != nil) != full || full != (epoch == 2) {
			t.Errorf("plan %d: table full: %v, %v", epoch, full, err)
		}
	}
}

// Fragments of ids travel in the tables of the emulated switch, with their own keys. pint.p4 refuses them, by a reason.
func TestFragments(t *testing.T) {
	const text = `{"bits":8,"hash":"crc","queries":[{"name":"path","value":"node","aggregation":"static","hops":5,"nodes":80,"widths":[{"bits":4,"fragments":2}]}]}`
	from, plan := made(t, text)
	c := plan.Queries[0].Scheme.Config()
	if from.Queries[0].Fragments != 2 || c.ValueBits != 8 || plan.Queries[0].Scheme.Fragments() != 2 {
		t.Fatalf("planned %+v, made %+v", from.Queries[0], c)
	}
	entries, err := Entries(plan)
	if err != nil {
		t.Fatal(err)
	}
	entries = stored(t, entries)
	if _, err := Compile(plan.Epoch, entries); err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		list := slices.Clone(entries)
		switch e.Table {
		case SaltTable:
			list[i].Action = "keys" // of hashes
		case QueryTable:
			list[i].Params = append(slices.Clone(e.Params[:3]), p4.Uint(33))
		default:
			continue
		}
		if _, err := Compile(plan.Epoch, list); err == nil {
			t.Errorf("a plan with %v", &list[i])
		}
	}
	if _, err := SwitchEntries(plan); !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "not their fragments") {
		t.Errorf("entries of pint.p4: %v", err)
	}
	for _, change := range []func(q *querymix.PlannedQuery){
		func(q *querymix.PlannedQuery) { q.Fragments = 9 },
		func(q *querymix.PlannedQuery) { q.Fragments = -1 },
		func(q *querymix.PlannedQuery) { q.Aggregation = querymix.Dynamic },
	} {
		bad := *from
		bad.Queries = slices.Clone(from.Queries)
		change(&bad.Queries[0])
		if _, err := New(&bad); err == nil || !strings.Contains(err.Error(), "fragments") {
			t.Errorf("%+v: %v", bad.Queries[0], err)
		}
	}
}
