package orchestrate

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/planner"
)

// Concentrate and Balance are the objectives of an Problem.
const (
	Concentrate = "concentrate" // the fewest flows that carry items
	Balance     = "balance"     // the smallest largest load of a flow
)

// maxItems bounds the sum of all demands, and every capacity: numbers up to it are exact in float64 too.
const maxItems = 1 << 44

// MaxRedundancy bounds the redundancy of a problem.
const MaxRedundancy = 64

// Problem is in-band network telemetry orchestration (INTO; Marques, Luizelli, Costa Filho, Gaspary, Journal of
// Internet Services and Applications 10:12, 2019). Packets of flows that pass an interface must carry its items away.
//
// As in the paper, an interface puts all its items on one flow. Redundancy and Split go beyond it.
type Problem struct {
	Interfaces []Interface `json:"interfaces"`
	Flows      []Flow      `json:"flows"`

	Objective  string `json:"-"` // Concentrate or Balance
	Redundancy int    `json:"-"` // flows that carry every item of an interface, all different; 0 stands for 1
	Split      bool   `json:"-"` // whether the items of one interface may travel on different flows
}

// Interface is an interface, or a direction of a link, with telemetry to be collected.
type Interface struct {
	ID     string `json:"id"`
	Demand int64  `json:"demand"`           // items, at least 1
	Weight int64  `json:"weight,omitempty"` // what it is worth to carry all of them once; 0 stands for the demand
}

// Worth is the weight of the interface, which is its demand unless a weight is set.
func (i *Interface) Worth() int64 {
	if i.Weight == 0 {
		return i.Demand
	}
	return i.Weight
}

// Flow is a flow of production packets.
type Flow struct {
	ID         string  `json:"id"`
	Capacity   int64   `json:"capacity"`       // items that a packet can carry
	Rate       float64 `json:"rate,omitempty"` // packets a second; 0 if not known
	Class      string  `json:"class,omitempty"`
	Interfaces []int32 `json:"interfaces"` // those passed, as indices, in the order in which packets pass them; none twice
}

// Copies returns the number of flows that carry each item.
func (p *Problem) Copies() int { return max(p.Redundancy, 1) }

// Validate returns what is wrong with the problem itself. Whether it has a solution is another question; see Servable.
func (p *Problem) Validate() error {
	var bad planner.Errors
	if p.Objective != Concentrate && p.Objective != Balance {
		bad.Add("objective %q is neither %s nor %s", p.Objective, Concentrate, Balance)
	}
	if p.Redundancy < 0 || p.Redundancy > MaxRedundancy {
		bad.Add("redundancy %d is outside 0..%d", p.Redundancy, MaxRedundancy)
	}
	if len(p.Interfaces) == 0 {
		bad.Add("no interfaces")
	}
	if len(p.Flows) == 0 {
		bad.Add("no flows")
	}
	if len(p.Interfaces) > math.MaxInt32 || len(p.Flows) > math.MaxInt32 {
		return fmt.Errorf("%d interfaces and %d flows are too many", len(p.Interfaces), len(p.Flows))
	}
	ids := make(map[string]int, len(p.Interfaces))
	var sum, worth int64
	for k, i := range p.Interfaces {
		if first, twice := ids[i.ID]; twice {
			bad.Add("interface %q is listed twice, at %d and %d", i.ID, first+1, k+1)
		}
		ids[i.ID] = k
		if i.Demand < 1 || i.Demand > maxItems {
			bad.Add("interface %q: demand %d is outside 1..%d", i.ID, i.Demand, int64(maxItems))
		} else if sum = min(sum+i.Demand, maxItems+1); sum > maxItems {
			bad.Add("interface %q: the demands up to here are more than %d", i.ID, int64(maxItems))
			break
		}
		if i.Weight < 0 || i.Weight > maxItems {
			bad.Add("interface %q: weight %d is outside 1..%d", i.ID, i.Weight, int64(maxItems))
		} else if worth = min(worth+i.Worth(), maxItems+1); worth > maxItems {
			bad.Add("interface %q: the weights up to here are more than %d", i.ID, int64(maxItems))
			break
		}
	}
	ids = make(map[string]int, len(p.Flows))
	seen := make([]int32, len(p.Interfaces))
	for k, f := range p.Flows {
		if first, twice := ids[f.ID]; twice {
			bad.Add("flow %q is listed twice, at %d and %d", f.ID, first+1, k+1)
		}
		ids[f.ID] = k
		if f.Capacity < 0 || f.Capacity > maxItems {
			bad.Add("flow %q: capacity %d is outside 0..%d", f.ID, f.Capacity, int64(maxItems))
		}
		if !(f.Rate >= 0) || math.IsInf(f.Rate, 0) {
			bad.Add("flow %q: a rate of %v packets a second", f.ID, f.Rate)
		}
		for _, i := range f.Interfaces {
			switch {
			case i < 0 || int(i) >= len(p.Interfaces):
				bad.Add("flow %q: interface %d is none of the %d", f.ID, i, len(p.Interfaces))
			case seen[i] == int32(k)+1:
				bad.Add("flow %q: passes interface %q twice", f.ID, p.Interfaces[i].ID)
			default:
				seen[i] = int32(k) + 1
			}
		}
	}
	return bad.Join()
}

// Unservable is an interface that no plan can serve, whatever the others get.
type Unservable struct {
	Interface string `json:"interface"`
	Reason    string `json:"reason"`
}

// Unservable returns the interfaces that no plan can serve whole. Even if there are none, flows may be too scarce for
// all interfaces together.
func (p *Problem) Unservable() []Unservable {
	passing, able := make([]int, len(p.Interfaces)), make([]int, len(p.Interfaces))
	largest, room := make([]int64, len(p.Interfaces)), make([]int64, len(p.Interfaces))
	for _, f := range p.Flows {
		for _, i := range f.Interfaces {
			d := p.Interfaces[i].Demand
			passing[i]++
			largest[i] = max(largest[i], f.Capacity)
			room[i] = min(room[i]+min(f.Capacity, d), maxItems)
			if f.Capacity >= d {
				able[i]++
			}
		}
	}
	var list []Unservable
	for k, i := range p.Interfaces {
		c, reason := p.Copies(), ""
		switch {
		case passing[k] == 0:
			reason = "no flow passes it"
		case passing[k] < c:
			reason = fmt.Sprintf("%d flows pass it, %d are to carry each item", passing[k], c)
		case p.Split && float64(room[k]) < float64(i.Demand)*float64(c):
			reason = fmt.Sprintf("the flows that pass it have a capacity of %d items together, %d times %d are to be carried", room[k], c, i.Demand)
		case !p.Split && able[k] == 0:
			reason = fmt.Sprintf("demand %d is above the capacity of every flow that passes it, at most %d", i.Demand, largest[k])
		case !p.Split && able[k] < c:
			reason = fmt.Sprintf("%d of the flows that pass it have a capacity for demand %d, %d are wanted", able[k], i.Demand, c)
		}
		if reason != "" {
			list = append(list, Unservable{i.ID, reason})
		}
	}
	return list
}

// Sizing turns the sizes of packets into capacities, in items. The capacity is the MTU less a percentile of the packet
// sizes, less the header of the telemetry.
type Sizing struct {
	MTU         int64   // bytes of the largest packet
	Percentile  float64 // 0 to 100, by the nearest rank
	HeaderBytes int64   // of the telemetry, once a packet
	ItemBytes   int64
}

// DefaultSizing is for Ethernet and INT-MD 2.1: 12 bytes of shim and header, items of 4 bytes, and room in 95 of 100
// packets.
func DefaultSizing() Sizing { return Sizing{MTU: 1500, Percentile: 95, HeaderBytes: 12, ItemBytes: 4} }

// Validate returns what is wrong with the numbers.
func (s *Sizing) Validate() error {
	switch {
	case s.MTU < 1 || s.MTU > maxItems:
		return fmt.Errorf("an MTU of %d bytes", s.MTU)
	case !(s.Percentile >= 0 && s.Percentile <= 100):
		return fmt.Errorf("percentile %v is outside 0..100", s.Percentile)
	case s.HeaderBytes < 0 || s.ItemBytes < 1:
		return fmt.Errorf("a header of %d bytes and items of %d", s.HeaderBytes, s.ItemBytes)
	}
	return nil
}

// Capacity returns the number of items that fit into a packet.
func (s *Sizing) Capacity(sizes []int64) int64 {
	sorted := slices.Sorted(slices.Values(sizes))
	rank := max(int(math.Ceil(s.Percentile/100*float64(len(sorted)))), 1)
	return max(0, s.MTU-s.HeaderBytes-sorted[rank-1]) / s.ItemBytes
}

// OfClass is the instance of one traffic class: its flows, and the interfaces that any of them passes.
func (p *Problem) OfClass(class string) (*Problem, error) {
	q := *p
	q.Interfaces, q.Flows = nil, nil
	index := make([]int32, len(p.Interfaces)) // one more than the new one
	var others []string
	for _, f := range p.Flows {
		if f.Class != class {
			others = append(others, f.Class)
			continue
		}
		for _, i := range f.Interfaces {
			index[i] = 1
		}
	}
	for k, i := range p.Interfaces {
		if index[k] > 0 {
			q.Interfaces = append(q.Interfaces, i)
			index[k] = int32(len(q.Interfaces))
		}
	}
	for _, f := range p.Flows {
		if f.Class == class {
			path := make([]int32, len(f.Interfaces))
			for k, i := range f.Interfaces {
				path[k] = index[i] - 1
			}
			f.Interfaces = path
			q.Flows = append(q.Flows, f)
		}
	}
	if len(q.Interfaces) == 0 {
		slices.Sort(others)
		return nil, fmt.Errorf("no flow of class %q passes an interface; the others are of %q", class, slices.Compact(others))
	}
	return &q, nil
}

// Read reads an instance in JSON, {"interfaces":[{"id","demand"}],"flows":[{"id","capacity",
// "interfaces":[...]}]}, and validates it for the objective. Interfaces may have a "weight", and flows a "class", and a
// "rate" in packets a second. Instead of a capacity a flow may have "packet_sizes" in bytes, a sample of its packets,
// which become one by [DefaultSizing].
func Read(r io.Reader, objective string) (*Problem, error) {
	return ReadSized(r, objective, DefaultSizing())
}

// ReadSized is Read with other figures for the capacities of flows that have packet sizes.
func ReadSized(r io.Reader, objective string, sizing Sizing) (*Problem, error) {
	if err := sizing.Validate(); err != nil {
		return nil, err
	}
	var raw struct {
		Interfaces []struct {
			ID     *string   `json:"id"`
			Demand *rawValue `json:"demand"`
			Weight *rawValue `json:"weight"`
		} `json:"interfaces"`
		Flows []struct {
			ID         *string   `json:"id"`
			Capacity   *rawValue `json:"capacity"`
			Rate       *rawValue `json:"rate"`
			Class      string    `json:"class"`
			Sizes      []int64   `json:"packet_sizes"`
			Interfaces []string  `json:"interfaces"`
		} `json:"flows"`
	}
	if err := planner.ReadJSON(r, &raw); err != nil {
		return nil, err
	}
	p := &Problem{Objective: objective}
	p.Interfaces = make([]Interface, len(raw.Interfaces))
	p.Flows = make([]Flow, len(raw.Flows))
	var bad planner.Errors
	index := make(map[string]int32, len(raw.Interfaces))
	for k, i := range raw.Interfaces {
		if i.ID == nil {
			bad.Add("interface %d of the list: no id", k+1)
			continue
		}
		if _, twice := index[*i.ID]; twice {
			bad.Add("interface %q is listed twice", *i.ID)
		}
		index[*i.ID] = int32(k)
		p.Interfaces[k].ID = *i.ID
		var err error
		if p.Interfaces[k].Demand, err = items(i.Demand); err != nil {
			bad.Add("interface %q: demand: %w", *i.ID, err)
		}
		if i.Weight == nil {
			continue
		}
		if p.Interfaces[k].Weight, err = items(i.Weight); err == nil && p.Interfaces[k].Weight == 0 {
			err = errors.New("0 is outside 1 and up: leave out an interface that is worth nothing")
		}
		if err != nil {
			bad.Add("interface %q: weight: %w", *i.ID, err)
		}
	}
	for k, f := range raw.Flows {
		if f.ID == nil {
			bad.Add("flow %d of the list: no id", k+1)
			continue
		}
		out := &p.Flows[k]
		out.ID = *f.ID
		var err error
		out.Class = f.Class
		if out.Capacity, err = capacity(f.Capacity, f.Sizes, &sizing); err != nil {
			bad.Add("flow %q: %w", *f.ID, err)
		}
		if f.Rate != nil {
			if out.Rate, err = strconv.ParseFloat(string(*f.Rate), 64); err != nil {
				bad.Add("flow %q: rate: %s is not a number", *f.ID, *f.Rate)
			}
		}
		out.Interfaces = make([]int32, 0, len(f.Interfaces))
		for _, id := range f.Interfaces {
			i, ok := index[id]
			if !ok {
				bad.Add("flow %q: passes interface %q, which is not listed", *f.ID, id)
				continue
			}
			out.Interfaces = append(out.Interfaces, i)
		}
	}
	if err := bad.Join(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// capacity reads the capacity of a flow, or makes it of the sizes of its packets.
func capacity(n *rawValue, sizes []int64, sizing *Sizing) (int64, error) {
	switch {
	case sizes == nil:
		v, err := items(n)
		if err != nil {
			err = fmt.Errorf("capacity: %w", err)
		}
		return v, err
	case n != nil:
		return 0, errors.New("has both a capacity and packet_sizes: one of them says what fits")
	case len(sizes) == 0 || slices.Min(sizes) < 1:
		return 0, errors.New("packet_sizes: are missing, or not all above 0")
	}
	return sizing.Capacity(sizes), nil
}

// items reads a whole number of items; 7.0 and 1e3 are whole.
func items(n *rawValue) (int64, error) {
	if n == nil {
		return 0, errors.New("is missing")
	}
	if v, err := strconv.ParseInt(string(*n), 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseFloat(string(*n), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxItems {
		return 0, fmt.Errorf("%s is not a whole number up to %d", *n, int64(maxItems))
	}
	return int64(v), nil
}

// rawValue is a JSON value as it is in the file.
type rawValue string

// UnmarshalJSON takes any value.
func (v *rawValue) UnmarshalJSON(b []byte) error {
	*v = rawValue(b)
	return nil
}
