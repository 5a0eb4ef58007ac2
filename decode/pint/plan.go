package pint

import (
	"errors"
	"fmt"
	"math"
)

// Aggregation is the treatment of the values at the switches on a path.
type Aggregation uint8

// The aggregations of PINT, section 4, and the detection of loops of its appendix.
const (
	Static    Aggregation = iota // per flow, values stay the same: the path
	Dynamic                      // per flow, values change: quantiles of latency or of queues by hop
	PerPacket                    // one value of the whole path, by Function: utilisation of the bottleneck, latency from end to end
	Loop                         // Algorithm 2: has the packet been here before?
)

var aggregations = [...]string{"static", "dynamic", "per-packet", "loop"}

func (a Aggregation) String() string {
	if int(a) < len(aggregations) {
		return aggregations[a]
	}
	return fmt.Sprintf("aggregation(%d)", uint8(a))
}

// Answer is the statistic that the collector keeps of the values of a [Dynamic] query. Switches do the same for each.
type Answer uint8

// The answers of PINT, section 4.1.
const (
	Quantiles Answer = iota // theorem 1
	Frequent                // theorem 2: the values that come most often, and their shares
)

// Function is the function of the values along the path in a digest of a [PerPacket] query.
type Function uint8

// The functions of section 4.3. A product of values is the sum of their logarithms, and no value of a switch asks for
// one.
const (
	Max Function = iota
	Min
	Sum // by approximate counting, see [Levels.Add]
)

var functions = [...]string{"max", "min", "sum"}

func (f Function) String() string {
	if int(f) < len(functions) {
		return functions[f]
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}

// The values of a switch that queries request.
const (
	NodeValue        = "node"
	LatencyValue     = "latency"
	QueueValue       = "queue"
	UtilizationValue = "utilization"
)

// Values holds the values of one switch while it forwards a packet.
type Values struct {
	Node        uint32 // node id
	Latency     uint64 // nanoseconds in the switch
	Queue       uint64 // bytes in the queue of the egress port
	Utilization uint64 // of the egress link, in parts of UtilizationUnit
}

// UtilizationUnit is the Utilization of a link that is just full.
const UtilizationUnit = 1 << 16

// named returns the value that a query requests by name.
func (v *Values) named(name string) uint64 {
	switch name {
	case NodeValue:
		return uint64(v.Node)
	case LatencyValue:
		return v.Latency
	case QueueValue:
		return v.Queue
	}
	return v.Utilization
}

// Code compresses values to a few bits.
type Code interface {
	// Encode rounds v to one of two neighbouring codes, so that Decode is v on average over a uniform rnd. Larger
	// values have codes that are not smaller.
	Encode(v uint64, rnd uint32) uint32
	Decode(code uint32) float64
	Bits() int
}

// Query is one question to the network and the bits of the digest that answer it.
type Query struct {
	Name        string
	Value       string // NodeValue and so on
	Aggregation Aggregation
	Answer      Answer   // Dynamic
	Function    Function // PerPacket
	Bits        int      // of the packets that carry it
	Scheme      *Scheme  // Static and Dynamic: the writers; Dynamic needs Baseline alone
	Code        Code     // Dynamic and PerPacket: how values become digests
	Loops       *Loops   // Loop: width of the digest and number of matches
}

// Slot is the place of a query in the digest of a packet.
type Slot struct {
	Query int // index in Plan.Queries
	Shift int // its lowest bit
}

// Set is queries that travel in the same packets.
type Set struct {
	Share float64 // of the packets, above 0
	Slots []Slot
}

// Plan is the execution plan of section 3.4: which packets carry which queries, and where. Switches, the
// collector and the tables of P4 programs follow the same plan. Check it with Validate before use; it is not changed by
// its methods and safe for concurrent use.
type Plan struct {
	Epoch   uint8 // distinguishes the packets of one plan from those of its successor
	Hash    Hash  // of the function that chooses the set
	Seed    uint32
	Bits    int // of the digest, 1 to 64
	Queries []Query
	Sets    []Set
}

// shareTolerance is how far from 1 the sum of shares may be: less than a packet in 2³².
const shareTolerance = 1e-10

// Validate names everything that is wrong with the plan.
func (p *Plan) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("pint: plan: "+format, args...))
	}
	if p.Bits < 1 || p.Bits > 64 {
		bad("%d bits: want 1 to 64", p.Bits)
	}
	if p.Hash > HashCRC {
		bad("hash %d: unknown", p.Hash)
	}
	for i := range p.Queries {
		if err := p.Queries[i].check(); err != nil {
			bad("query %d (%s): %w", i, p.Queries[i].Name, err)
		}
	}
	travels := make([]bool, len(p.Queries))
	var sum float64
	for n, set := range p.Sets {
		if !(set.Share > 0 && set.Share <= 1) {
			bad("set %d: share %v: want above 0, up to 1", n, set.Share)
		}
		sum += set.Share
		var used uint64
		seen := make(map[int]bool)
		for _, slot := range set.Slots {
			if slot.Query < 0 || slot.Query >= len(p.Queries) {
				bad("set %d: query %d of %d", n, slot.Query, len(p.Queries))
				continue
			}
			q := &p.Queries[slot.Query]
			if seen[slot.Query] {
				bad("set %d: query %s twice", n, q.Name)
			}
			seen[slot.Query], travels[slot.Query] = true, true
			if q.Bits < 1 || slot.Shift < 0 || slot.Shift > p.Bits-q.Bits {
				bad("set %d: query %s at bit %d, %d wide: the digest has %d", n, q.Name, slot.Shift, q.Bits, p.Bits)
				continue
			}
			room := mask64(q.Bits) << slot.Shift
			if used&room != 0 {
				bad("set %d: query %s overlaps another", n, q.Name)
			}
			used |= room
		}
	}
	if !(math.Abs(sum-1) <= shareTolerance) {
		bad("shares of %d sets sum to %.10g: want 1", len(p.Sets), sum)
	}
	for i, ok := range travels {
		if !ok {
			bad("query %d (%s) is in no set", i, p.Queries[i].Name)
		}
	}
	return errors.Join(problems...)
}

func (q *Query) check() error {
	switch q.Value {
	case NodeValue, LatencyValue, QueueValue, UtilizationValue:
	default:
		return fmt.Errorf("value %q: want node, latency, queue or utilization", q.Value)
	}
	if q.Bits < 1 || q.Bits > 64 {
		return fmt.Errorf("%d bits: want 1 to 64", q.Bits)
	}
	if q.Function > Sum || q.Function != Max && q.Aggregation != PerPacket {
		return fmt.Errorf("function %s of aggregation %s: want max, min or sum of a per-packet query", q.Function, q.Aggregation)
	}
	if q.Answer > Frequent || q.Answer != Quantiles && q.Aggregation != Dynamic {
		return fmt.Errorf("answer %d of aggregation %s: want quantiles, or frequent values of a dynamic query", q.Answer, q.Aggregation)
	}
	switch q.Aggregation {
	case Static, Dynamic:
		if q.Scheme == nil {
			return errors.New("no coding scheme")
		}
		if w := q.Scheme.Width() * q.Scheme.Instances(); w != q.Bits {
			return fmt.Errorf("%d bits: its coding scheme has %d", q.Bits, w)
		}
		if q.Aggregation == Static {
			break
		}
		if q.Scheme.dialect != own || q.Scheme.layers[0].upTo < 1<<32 {
			return errors.New("dynamic values want the Baseline scheme: XORed values that change cannot be separated")
		}
		if q.Code == nil || q.Code.Bits() != q.Scheme.Width() {
			return fmt.Errorf("want a code of %d bits", q.Scheme.Width())
		}
	case PerPacket:
		if q.Code == nil || q.Code.Bits() != q.Bits {
			return fmt.Errorf("want a code of %d bits", q.Bits)
		}
		if _, adds := q.Code.(adder); q.Function == Sum && !adds {
			return errors.New("want a code that can be added to")
		}
	case Loop:
		if q.Value != NodeValue || q.Loops == nil || q.Loops.Validate() != nil || q.Loops.Width() != q.Bits {
			return fmt.Errorf("want Loops of %d bits over nodes", q.Bits)
		}
	default:
		return fmt.Errorf("%s: unknown", q.Aggregation)
	}
	return nil
}

// Set is the index of the set of queries that the packet carries: the global hash H over the cumulated shares.
func (p *Plan) Set(packetID uint32) int {
	h := uint64(p.Hash.global(p.Hash.salt(p.Seed, ofSet), packetID))
	var sum float64
	for i := range p.Sets {
		if sum += p.Sets[i].Share; h < uint64(sum*(1<<32)+.5) {
			return i
		}
	}
	return len(p.Sets) - 1
}

// Part returns the part of the digest in a slot.
func (p *Plan) Part(digest uint64, slot Slot) uint64 {
	return digest >> slot.Shift & mask64(p.Queries[slot.Query].Bits)
}

// Write returns the digest of a packet after the switch at that hop, counted from 1. The uniform number rnd rounds
// sums and values that one switch writes alone. The largest and the smallest value along the path are rounded by a
// hash of the packet id instead, alike in all switches. With independent random numbers the luckiest one would stay,
// which is too large or too small on average.
func (p *Plan) Write(digest uint64, id uint32, hop int, v Values, rnd uint32) uint64 {
	for _, slot := range p.Sets[p.Set(id)].Slots {
		q := &p.Queries[slot.Query]
		var r uint32
		switch q.Aggregation {
		case Dynamic: // independently for different queries
			r = uint32(finish(uint64(rnd)<<8+uint64(slot.Query)) >> 32)
		case PerPacket:
			if q.Function == Sum {
				r = uint32(finish(uint64(rnd)<<8+uint64(slot.Query)) >> 32)
				break
			}
			r = p.Hash.global(p.Hash.salt(p.Seed, ofRounding+uint32(slot.Query)), id)
		}
		part := q.write(p.Part(digest, slot), id, hop, &v, r)
		digest = digest&^(mask64(q.Bits)<<slot.Shift) | part<<slot.Shift
	}
	return digest
}

func (q *Query) write(part uint64, id uint32, hop int, v *Values, rnd uint32) uint64 {
	switch q.Aggregation {
	case Static:
		return q.Scheme.Write(part, id, hop, uint32(v.named(q.Value)))
	case Dynamic:
		w := q.Scheme.Width()
		for n := range q.Scheme.Instances() {
			if p := q.Scheme.Packet(id, n); q.Scheme.Writes(&p, hop) {
				code := uint64(q.Code.Encode(v.named(q.Value), rnd)) & mask64(w)
				part = part&^(mask64(w)<<(w*n)) | code<<(w*n)
			}
		}
	case PerPacket:
		own := uint64(q.Code.Encode(v.named(q.Value), rnd)) & mask64(q.Bits)
		switch {
		case hop == 1 && q.Function != Max: // an empty digest is no value
			part = own
		case q.Function == Min:
			part = min(part, own)
		case q.Function == Sum:
			part = uint64(q.Code.(adder).Add(uint32(part), v.named(q.Value), rnd)) & mask64(q.Bits)
		default:
			part = max(part, own)
		}
	case Loop:
		part, _ = q.Loops.Step(part, id, hop, v.Node)
	}
	return part
}

// adder is a code whose values can be added up in a digest.
type adder interface {
	Add(code uint32, v uint64, rnd uint32) uint32
}

// mask64 is n ones, n up to 64.
func mask64(n int) uint64 { return 1<<n - 1 }
