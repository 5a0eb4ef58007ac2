package querymix

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
)

// Plan is an execution plan of PINT: sets of queries that travel together, and the share of packets of each.
// Switches, collector and the tables of P4 programs follow it.
type Plan struct {
	planner.Head
	Algorithm string         `json:"algorithm"`
	Epoch     uint8          `json:"epoch"`
	Bits      int            `json:"bits"` // of the digest
	Hash      string         `json:"hash"` // mix or crc
	Seed      uint32         `json:"seed,omitempty"`
	Queries   []PlannedQuery `json:"queries"`
	Sets      []Set          `json:"sets"`
	LeftOut   []LeftOut      `json:"left_out,omitempty"`
	Held      float64        `json:"held,omitempty"`    // the part of every frequency that is held, where not all of it can be
	Partial   bool           `json:"partial,omitempty"` // queries are left out, or frequencies not held
	Stats     Stats          `json:"stats"`

	// Query by query, of which those have changed that are new, gone or coded in another way. Shares of packets and places in
	// the digest do not count: another epoch changes them for all at once.
	planner.Replacement
}

// LeftOut is one that no packet has room for.
type LeftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// PlannedQuery is a query as it travels. Packets count those of a flow, on average.
type PlannedQuery struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Aggregation string `json:"aggregation"`
	Answer      string `json:"answer,omitempty"`   // quantiles or frequent; dynamic
	Function    string `json:"function,omitempty"` // max, min or sum; per-packet
	Flow        string `json:"flow"`
	SpaceBytes  int    `json:"space_bytes,omitempty"`

	Bits      int       `json:"bits"` // of an instance
	Instances int       `json:"instances"`
	Fragments int       `json:"fragments,omitempty"` // of node ids, one an instance; 0 for hashes of them; static
	Tau       float64   `json:"tau,omitempty"`       // static and dynamic
	XOR       []float64 `json:"xor,omitempty"`       // static
	MinValue  uint64    `json:"min_value,omitempty"`
	MaxValue  uint64    `json:"max_value,omitempty"`
	Matches   int       `json:"matches,omitempty"`

	Share     float64 `json:"share"`               // of the packets that carry it
	Frequency float64 `json:"frequency,omitempty"` // the least share
	Carrying  float64 `json:"carrying"`            // packets that carry it until the answer
	Packets   float64 `json:"packets"`             // packets until the answer: Carrying / Share
	Alone     float64 `json:"alone"`               // the same of the best width on all packets
	Goal      float64 `json:"goal"`                // packets that are wanted: Within, or else Alone
	Demand    string  `json:"demand"`              // within, alone, or frequency: the goal is not pursued before those of others
	Ratio     float64 `json:"ratio"`               // Packets / Goal

	// LimitedBy names the queries that would have to be carried less for this one to be carried more.
	LimitedBy []string `json:"limited_by,omitempty"`

	// Dual prices of being nearer to the goal and of the frequency, which prove the bound: see Check.
	GoalPrice  float64 `json:"goal_price,omitempty"`
	FloorPrice float64 `json:"floor_price,omitempty"`

	Widths []PlannedWidth `json:"widths"`
}

// These are the demands of a query.
const (
	WantWithin    = "within"
	WantAlone     = "alone"
	WantFrequency = "frequency"
)

// PlannedWidth is a width of a query and what speaks against it.
type PlannedWidth struct {
	Bits      int     `json:"bits"`
	Instances int     `json:"instances"`
	Fragments int     `json:"fragments,omitempty"` // of node ids; 0 for hashes of them
	Packets   float64 `json:"packets"`
	Reason    string  `json:"reason,omitempty"`    // why it is not looked at
	Objective float64 `json:"objective,omitempty"` // of the plan with this width instead; 0 if there is none
}

// Width is the width itself.
func (w *PlannedWidth) Width() Width { return Width{w.Bits, w.Instances, w.Packets, w.Fragments} }

// Width is the width in which the query travels.
func (q *PlannedQuery) Width() Width { return Width{q.Bits, q.Instances, q.Carrying, q.Fragments} }

// Set is queries that travel in the packets whose hash is from First to Last.
type Set struct {
	Share float64 `json:"share"`
	First uint32  `json:"first"`
	Last  uint32  `json:"last"`
	Slots []Slot  `json:"slots"`
}

// Slot is the place of a query in the digest.
type Slot struct {
	Query string `json:"query"`
	Shift int    `json:"shift"` // its lowest bit
	Bits  int    `json:"bits"`
}

// Stats describes a plan. The objective is the largest Ratio of the queries with a goal.
type Stats struct {
	planner.Stats
	Queries int    `json:"queries"`
	Sets    int    `json:"sets"`
	Nodes   int    `json:"nodes"`           // of the search among widths
	Worst   string `json:"worst,omitempty"` // the query that the objective is of
}

// Total is the number of bits in a packet.
func (q *PlannedQuery) Total() int { return q.Bits * q.Instances }

// Pursued reports whether the plan's objective counts the query: it has a goal, or none of the queries has.
func (plan *Plan) Pursued(q *PlannedQuery) bool {
	return q.Demand != WantFrequency || !slices.ContainsFunc(plan.Queries, func(o PlannedQuery) bool { return o.Demand != WantFrequency })
}

// Arrange completes a plan whose queries have their coding, packets, goals and prices. From sets of indexes into
// plan.Queries it computes shares, places in the digest, hash ranges and figures. The caller fills in bound, optimality
// and time.
func (plan *Plan) Arrange(sets [][]int, shares []float64) {
	order := opt.Ascending[int](len(sets))
	for k := range sets {
		slices.Sort(sets[k])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), slices.Compare(sets[a], sets[b]))
	})
	plan.Sets = plan.Sets[:0]
	for i := range plan.Queries {
		plan.Queries[i].Share = 0
	}
	place := slices.Repeat([]int{-1}, len(plan.Queries))
	// A set that no hash would choose is none. Hashes are given out by cumulated shares, so that rounding errors do not
	// add up.
	order = slices.DeleteFunc(order, func(k int) bool { return shares[k] < 1./(1<<32) })
	all := 0.0
	for _, k := range order {
		all += shares[k]
	}
	sum, next := 0.0, uint64(0)
	for n, k := range order {
		share := shares[k] / all
		for _, i := range sets[k] {
			plan.Queries[i].Share += share
		}
		sum += share
		end := uint64(math.Round(sum * (1 << 32)))
		if n == len(order)-1 {
			end = 1 << 32
		}
		plan.Sets = append(plan.Sets, Set{Share: share, First: uint32(next), Last: uint32(end - 1), Slots: plan.slots(sets[k], place)})
		next = end
	}
	s := &plan.Stats
	s.Objective, s.Queries, s.Sets = 0, len(plan.Queries), len(plan.Sets)
	for i := range plan.Queries {
		q := &plan.Queries[i]
		q.Share = min(q.Share, 1)
		q.Packets = q.Carrying / q.Share
		q.Ratio = q.Packets / q.Goal
		if plan.Pursued(q) && q.Ratio > s.Objective*(1+1e-9) {
			s.Objective, s.Worst = q.Ratio, q.Name
		}
	}
	if plan.Epoch == 0 {
		plan.Epoch = plan.fingerprint()
	}
}

// slots places queries in the digest: where they were in sets before, as long as all fit.
func (plan *Plan) slots(queries, place []int) []Slot {
	slots := make([]Slot, 0, len(queries))
	free := func(shift, bits int) bool {
		return shift >= 0 && shift+bits <= plan.Bits && !slices.ContainsFunc(slots, func(s Slot) bool { return shift < s.Shift+s.Bits && s.Shift < shift+bits })
	}
	add := func(i, shift int) {
		q := &plan.Queries[i]
		slots = append(slots, Slot{q.Name, shift, q.Total()})
	}
	var homeless []int
	for _, i := range queries {
		if free(place[i], plan.Queries[i].Total()) {
			add(i, place[i])
		} else {
			homeless = append(homeless, i)
		}
	}
	slices.SortStableFunc(homeless, func(a, b int) int { return cmp.Compare(plan.Queries[b].Total(), plan.Queries[a].Total()) })
	for _, i := range homeless {
		shift := 0
		for shift <= plan.Bits && !free(shift, plan.Queries[i].Total()) {
			shift++
		}
		if shift > plan.Bits { // room is scattered: side by side they fit
			slots, shift = slots[:0], 0
			for _, i := range queries {
				add(i, shift)
				shift += plan.Queries[i].Total()
			}
			break
		}
		add(i, shift)
		if place[i] < 0 {
			place[i] = shift
		}
	}
	slices.SortFunc(slots, func(a, b Slot) int { return cmp.Compare(a.Shift, b.Shift) })
	return slots
}

// fingerprint is an epoch, 1 to 255, of what switches and collector must agree on.
func (plan *Plan) fingerprint() uint8 {
	type coding struct {
		Name, Value, Aggregation string
		Function                 string `json:",omitempty"`
		Bits, Instances, Matches int
		Fragments                int `json:",omitempty"`
		Tau                      float64
		XOR                      []float64
		MinValue, MaxValue       uint64
	}
	var same struct {
		Bits    int
		Hash    string
		Seed    uint32
		Queries []coding
		Sets    []Set
	}
	same.Bits, same.Hash, same.Seed = plan.Bits, plan.Hash, plan.Seed
	for _, q := range plan.Queries {
		function := q.Function
		if function == Max {
			function = ""
		}
		same.Queries = append(same.Queries, coding{q.Name, q.Value, q.Aggregation, function, q.Bits, q.Instances, q.Matches, q.Fragments, q.Tau, q.XOR, q.MinValue, q.MaxValue})
	}
	for _, s := range plan.Sets {
		s.Share = 0
		same.Sets = append(same.Sets, s)
	}
	h := fnv.New64a()
	if json.NewEncoder(h).Encode(same) != nil {
		return 1
	}
	return uint8(1 + h.Sum64()%255)
}
