package querymix

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// Problem asks which packets carry which queries. Each packet has room for Bits bits, and a query in it takes the bits
// of one of its widths. This is the query engine of PINT (SIGCOMM 2020, section 3.4).
type Problem struct {
	Bits    int     `json:"bits"`
	Epoch   uint8   `json:"epoch,omitempty"` // number of the plan; 0 derives one from its contents
	Hash    string  `json:"hash,omitempty"`  // how switches hash: mix (left out, too) or crc
	Seed    uint32  `json:"seed,omitempty"`  // of those hashes
	Queries []Query `json:"queries"`
}

// Query is one question to the network. It has PINT's tuple: value type, aggregation type, bit budget (one of the
// widths), space budget, flow definition and frequency. It adds what is known of the paths and wanted of the answer.
//
// Its answer takes a mean number of packets that carry it: Packets of the width, or a model's. A query on a share x of
// all packets needs 1/x times as many packets of the flow. Within limits that number; Frequency alone asks for nothing
// more than a share. A query with neither aims at the number that it would need on all packets.
type Query struct {
	Name        string   `json:"name"`
	Value       string   `json:"value"`                 // node, latency, queue or utilization
	Aggregation string   `json:"aggregation"`           // static, dynamic, per-packet or loop
	Answer      string   `json:"answer,omitempty"`      // what the collector keeps of values: quantiles (left out, too) or frequent; dynamic
	Function    string   `json:"function,omitempty"`    // of the values along the path: max (left out, too), min or sum; per-packet
	Flow        string   `json:"flow,omitempty"`        // definition of a flow: 5-tuple (left out, too), pair, source or destination
	SpaceBytes  int      `json:"space_bytes,omitempty"` // memory of a flow, and hop if dynamic; 0 is no limit
	Frequency   Fraction `json:"frequency,omitempty"`   // the least share of packets
	Within      float64  `json:"within,omitempty"`      // packets of the flow after which the answer is wanted, on average
	Widths      []Width  `json:"widths"`                // ways to code it, of which a plan uses one
	Weight      float64  `json:"weight,omitempty"`      // how bad it is to leave it out; 0 is 1

	Hops      int     `json:"hops,omitempty"`       // of the paths; static and dynamic
	Nodes     int     `json:"nodes,omitempty"`      // that a digest can stand for; static
	IDBits    int     `json:"id_bits,omitempty"`    // of node ids; widths that are hashes can then be fragments of ids, too; static
	Samples   float64 `json:"samples,omitempty"`    // wanted of every hop (dynamic) or of the path (per-packet)
	RankError float64 `json:"rank_error,omitempty"` // of quantiles, or of the shares of frequent values, with 99 % confidence, in place of Samples; dynamic
	MinValue  uint64  `json:"min_value,omitempty"`  // the smallest that differs from 0, for the code of values; 0 is 1
	MaxValue  uint64  `json:"max_value,omitempty"`  // the largest; dynamic and per-packet
	MaxError  float64 `json:"max_error,omitempty"`  // relative error of a value: coarser widths are left out
	Matches   int     `json:"matches,omitempty"`    // that pass before a loop is reported, T of Algorithm 2; loop

	// Coding of a static query: the probability of the Baseline layer, and that of a hop to write in each XOR layer. Both
	// left out is the hybrid scheme of section 4.2.
	Tau float64   `json:"tau,omitempty"`
	XOR []float64 `json:"xor,omitempty"`
}

// LeftOutWeight returns the cost of leaving the query out.
func (q *Query) LeftOutWeight() float64 {
	if q.Weight == 0 {
		return 1
	}
	return q.Weight
}

// The words of queries.
const (
	Static    = "static"
	Dynamic   = "dynamic"
	PerPacket = "per-packet"
	Loop      = "loop"

	Quantiles = "quantiles"
	Frequent  = "frequent"

	Max = "max"
	Min = "min"
	Sum = "sum"
)

var (
	queryValues       = []string{"node", "latency", "queue", "utilization"}
	queryAggregations = []string{Static, Dynamic, PerPacket, Loop}
	queryAnswers      = []string{"", Quantiles, Frequent}
	queryFunctions    = []string{"", Max, Min, Sum}
	queryFlows        = []string{"", "5-tuple", "pair", "source", "destination"}
	queryHashes       = []string{"", "mix", "crc"}
)

// Limits of a problem.
const (
	MaxQueries   = 64
	maxWidths    = 32
	maxIDBits    = 32
	maxQueryBits = 64             // of a digest
	maxPackets   = 1e9            // to an answer
	MinShare     = 1. / (1 << 20) // of every query: none is left out altogether
)

// Width is a way to code a query. In JSON it is an object, a number of bits, or "2x8" for two instances of eight.
type Width struct {
	Bits      int     `json:"bits"` // of an instance
	Instances int     `json:"instances,omitempty"`
	Packets   float64 `json:"packets,omitempty"` // that carry it until the answer, on average, if measured; 0 asks a model

	// Fragments is the number of parts in which node ids travel, one in each instance of a packet (section 4.2). Ids of
	// q bits take ⌈q/Bits⌉. At 0 digests are hashes of ids.
	Fragments int `json:"fragments,omitempty"`
}

// Total is the number of bits of a packet.
func (w Width) Total() int { return w.Bits * w.Instances }

// Coded reports whether packets carry the same digests in both widths.
func (w Width) Coded(v Width) bool {
	return w.Bits == v.Bits && w.Instances == v.Instances && w.Fragments == v.Fragments
}

func (w Width) String() string {
	s := strconv.Itoa(w.Bits)
	if w.Instances != 1 {
		s = fmt.Sprintf("%dx%d", w.Instances, w.Bits)
	}
	switch w.Fragments {
	case 0:
		return s
	case 1:
		return s + " with whole ids"
	}
	return fmt.Sprintf("%s with ids in %d fragments", s, w.Fragments)
}

// UnmarshalJSON reads any of the three forms.
func (w *Width) UnmarshalJSON(b []byte) error {
	*w = Width{Instances: 1}
	switch b[0] {
	case '{':
		type plain Width
		return planner.InElement(json.Unmarshal(b, (*plain)(w)), "a width")
	case '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		before, after, found := strings.Cut(s, "x")
		if !found {
			before, after = "1", before
		}
		var errs [2]error
		w.Instances, errs[0] = strconv.Atoi(before)
		w.Bits, errs[1] = strconv.Atoi(after)
		if errors.Join(errs[:]...) != nil {
			return fmt.Errorf("width %q is neither a number of bits nor instances and bits as 2x8", s)
		}
		return nil
	}
	if json.Unmarshal(b, &w.Bits) != nil {
		return fmt.Errorf("width %s is no number of bits", b)
	}
	return nil
}

// Fraction is a share of packets. In JSON it is a number or "1/16".
type Fraction float64

// UnmarshalJSON reads either form.
func (f *Fraction) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return planner.InElement(json.Unmarshal(b, (*float64)(f)), "a share of packets")
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	above, below, found := strings.Cut(s, "/")
	if !found {
		below = "1"
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(above), 64)
	y, err2 := strconv.ParseFloat(strings.TrimSpace(below), 64)
	if err != nil || err2 != nil || y == 0 {
		return fmt.Errorf("%q is no share of packets such as 0.25 or 1/4", s)
	}
	*f = Fraction(x / y)
	return nil
}

// Read reads and validates a problem in JSON.
func Read(r io.Reader) (*Problem, error) {
	p, err := Decode(r)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Decode is Read without the validation.
func Decode(r io.Reader) (*Problem, error) {
	var p *Problem
	if err := planner.ReadJSON(r, &p); err != nil {
		return nil, err
	}
	if p == nil { // null, as from an empty YAML file
		return nil, errors.New("the instance is empty")
	}
	for i := range p.Queries {
		p.Queries[i].addFragments()
	}
	return p, nil
}

// addFragments adds for each width of hashes the same width of fragments, if the size of ids is known.
func (q *Query) addFragments() {
	if q.IDBits < 1 || q.IDBits > maxIDBits || q.Aggregation != Static {
		return
	}
	for _, w := range q.Widths {
		if w.Fragments != 0 || w.Bits < 1 {
			continue
		}
		w.Fragments, w.Packets = (q.IDBits+w.Bits-1)/w.Bits, 0
		if !slices.ContainsFunc(q.Widths, w.Coded) {
			q.Widths = append(q.Widths, w)
		}
	}
}

// Validate returns what is wrong with the problem itself. Queries that do not fit into the bits together, or not as
// often as asked, are no error: such a problem has a partial plan.
func (p *Problem) Validate() error {
	var bad planner.Errors
	if p.Bits < 1 || p.Bits > maxQueryBits {
		bad.Add("queries: a budget of %d bits: want 1 to %d", p.Bits, maxQueryBits)
	}
	if !slices.Contains(queryHashes, p.Hash) {
		bad.Add("queries: hash %q: want mix or crc", p.Hash)
	}
	switch {
	case len(p.Queries) == 0:
		bad.Add("queries: there are none")
	case len(p.Queries) > MaxQueries:
		bad.Add("queries: there are %d, more than %d", len(p.Queries), MaxQueries)
	}
	names := map[string]bool{}
	for i := range p.Queries {
		q := &p.Queries[i]
		if q.Name == "" {
			bad.Add("query %d has no name", i)
			continue
		}
		if names[q.Name] {
			bad.Add("query %q is there twice", q.Name)
		}
		names[q.Name] = true
		q.validate(&bad)
	}
	return bad.Join()
}

func (q *Query) validate(bad *planner.Errors) {
	add := func(format string, args ...any) { bad.Add("query %q: "+format, append([]any{q.Name}, args...)...) }
	if !slices.Contains(queryAggregations, q.Aggregation) {
		add("aggregation %q: want one of %s", q.Aggregation, strings.Join(queryAggregations, ", "))
	}
	switch {
	case !slices.Contains(queryValues, q.Value):
		add("value %q: want one of %s", q.Value, strings.Join(queryValues, ", "))
	case (q.Aggregation == Static || q.Aggregation == Loop) != (q.Value == "node") && slices.Contains(queryAggregations, q.Aggregation):
		add("aggregation %s does not go with value %s", q.Aggregation, q.Value)
	}
	switch {
	case !slices.Contains(queryAnswers, q.Answer):
		add("answer %q: want one of %s", q.Answer, strings.Join(queryAnswers[1:], ", "))
	case q.Answer != "" && q.Aggregation != Dynamic:
		add("answer is not for aggregation %s", q.Aggregation)
	}
	switch {
	case !slices.Contains(queryFunctions, q.Function):
		add("function %q: want one of %s", q.Function, strings.Join(queryFunctions[1:], ", "))
	case q.Function != "" && q.Aggregation != PerPacket:
		add("function is not for aggregation %s", q.Aggregation)
	}
	if !slices.Contains(queryFlows, q.Flow) {
		add("flow %q: want one of %s", q.Flow, strings.Join(queryFlows[1:], ", "))
	}
	for _, x := range []struct {
		name         string
		value        float64
		least, most  float64
		aggregations string
	}{
		{"frequency", float64(q.Frequency), MinShare, 1, ""},
		{"within", q.Within, 1, maxPackets, ""},
		{"weight", q.Weight, 1e-6, 1e9, ""},
		{"space_bytes", float64(q.SpaceBytes), 1, 1 << 30, ""},
		{"hops", float64(q.Hops), 1, 64, Static + Dynamic},
		{"nodes", float64(q.Nodes), 1, 1 << 24, Static},
		{"id_bits", float64(q.IDBits), 1, maxIDBits, Static},
		{"samples", q.Samples, 1, 1e6, Dynamic + PerPacket},
		{"rank_error", q.RankError, 1e-3, 0.5, Dynamic},
		{"max_error", q.MaxError, 1e-6, 1, Dynamic + PerPacket},
		{"min_value", float64(q.MinValue), 1, math.MaxUint64, Dynamic + PerPacket},
		{"max_value", float64(q.MaxValue), 1, math.MaxUint64, Dynamic + PerPacket},
		{"matches", float64(q.Matches), 1, 15, Loop},
		{"tau", q.Tau, 1e-6, 1, Static},
	} {
		switch {
		case x.value == 0:
		case x.aggregations != "" && !strings.Contains(x.aggregations, q.Aggregation):
			add("%s is not for aggregation %s", x.name, q.Aggregation)
		case !(x.value >= x.least && x.value <= x.most):
			add("%s %v is outside %g..%g", x.name, x.value, x.least, x.most)
		}
	}
	if q.Samples != 0 && q.RankError != 0 {
		add("samples and rank_error: one gives the other")
	}
	switch {
	case q.Aggregation != Dynamic && q.Aggregation != PerPacket:
	case q.MaxValue == 0:
		add("max_value is missing: the largest value decides how coarse codes are")
	case q.MaxValue < q.MinValue:
		add("max_value %d is below min_value %d", q.MaxValue, q.MinValue)
	}
	switch {
	case len(q.XOR) == 0:
	case q.Aggregation != Static:
		add("xor is not for aggregation %s", q.Aggregation)
	case len(q.XOR) > 8:
		add("xor: %d layers, more than 8", len(q.XOR))
	case slices.ContainsFunc(q.XOR, func(p float64) bool { return !(p > 0 && p <= 1) }):
		add("xor %v: a probability is outside 0..1", q.XOR)
	case q.Tau == 1:
		add("tau 1 leaves nothing for XOR layers")
	}
	if q.Aggregation == Static && q.Hops == 0 && q.Tau == 0 && len(q.XOR) == 0 {
		add("hops are missing: the coding follows from the length of paths (or from tau and xor)")
	}
	if q.MaxValue > 0 && q.MaxError == 0 && len(q.Widths) > 1 {
		add("max_error is missing: it decides which widths are too coarse")
	}
	if len(q.XOR) == 0 && q.Tau > 0 && q.Tau < 1 {
		add("tau %v: below 1 there must be an XOR layer", q.Tau)
	}
	if q.IDBits > 0 && q.IDBits <= maxIDBits && q.Nodes > 1<<q.IDBits {
		add("id_bits %d: so many bits distinguish %d nodes, and there are %d", q.IDBits, 1<<q.IDBits, q.Nodes)
	}
	q.validateWidths(add)
}

func (q *Query) validateWidths(add func(string, ...any)) {
	switch {
	case len(q.Widths) == 0:
		add("there are no widths")
	case len(q.Widths) > maxWidths:
		add("there are %d widths, more than %d", len(q.Widths), maxWidths)
	}
	for i, w := range q.Widths {
		if w.Bits < 1 || w.Bits > 32 || w.Instances < 1 || w.Instances > 8 || w.Total() > maxQueryBits {
			add("width %s: want 1 to 32 bits, 1 to 8 instances and %d bits in all", w, maxQueryBits)
			continue
		}
		if w.Instances > 1 && (q.Aggregation == PerPacket || q.Aggregation == Loop) {
			add("width %s: instances are for static and dynamic aggregation", w)
		}
		if (q.Aggregation == Dynamic || q.Aggregation == PerPacket) && w.Bits > 16 {
			add("width %s: codes of values have 16 bits at most", w)
		}
		if slices.ContainsFunc(q.Widths[:i], w.Coded) {
			add("width %s is there twice", w)
		}
		q.validateFragments(w, add)
		switch {
		case w.Packets != 0 && !(w.Packets >= 1 && w.Packets <= maxPackets):
			add("width %s: %v packets are outside 1..%g", w, w.Packets, maxPackets)
		case w.Packets != 0:
		case q.Aggregation == Static && (q.Hops == 0 || q.Nodes == 0):
			add("width %s: hops and nodes are missing, or else the packets that it takes", w)
		case q.Aggregation == Dynamic && (q.Hops == 0 || q.Samples == 0 && q.RankError == 0):
			add("width %s: hops and samples (or rank_error) are missing, or else the packets that it takes", w)
		}
	}
	if q.Aggregation == Loop {
		for _, w := range q.Widths {
			if counter := bits.Len(uint(q.Matches)); w.Bits <= counter {
				add("width %s: the counter of %d matches takes %d bits, and leaves none for the hash", w, q.Matches, counter)
			}
		}
	}
}

// validateFragments checks the fragments of a width whose bits and instances are valid.
func (q *Query) validateFragments(w Width, add func(string, ...any)) {
	switch {
	case w.Fragments == 0:
	case q.Aggregation != Static:
		add("width %s: fragments are for aggregation static", w)
	case w.Fragments < 0 || w.Fragments > maxIDBits || (w.Fragments-1)*w.Bits >= maxIDBits:
		add("width %s: want fragments of at most %d bits in all, the last one begun", w, maxIDBits)
	case w.Fragments*w.Bits < q.IDBits:
		add("width %s: ids have %d bits", w, q.IDBits)
	case w.Fragments*w.Bits < 24 && q.Nodes > 1<<(w.Fragments*w.Bits):
		add("width %s: so many bits distinguish fewer than %d nodes", w, q.Nodes)
	}
}
