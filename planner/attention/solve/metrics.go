package solve

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/planner/attention"
)

// Metrics are what a hop can report, and which of them follow from others.
type Metrics struct {
	Metrics   []Metric   `yaml:"metrics" json:"metrics"`
	Relations []Relation `yaml:"relations" json:"relations"`
}

// Metric is one thing that a hop can report.
type Metric struct {
	Name     string `yaml:"name" json:"name"`
	Bit      int    `yaml:"bit" json:"bit"`           // in the instruction bitmap, 0 for the highest of 16
	Bytes    int    `yaml:"bytes" json:"bytes"`       // that a hop adds for it
	Required bool   `yaml:"required" json:"required"` // wanted of every hop in every cycle

	// DependsOn names metrics without which this one cannot be understood: they are measured with it.
	// Dependencies are chained, and metrics that depend on each other are measured together or not at all.
	DependsOn []string `yaml:"depends_on" json:"depends_on,omitempty"`
}

// Relation states that everything suspicious in metric Of also shows in metric Shows. A probe that reads Shows need not
// read Of for a link to become suspicious. Relations are not transitive: a consequence of two relations has to be
// listed.
type Relation struct {
	Shows string `yaml:"shows" json:"shows"`
	Of    string `yaml:"of" json:"of"`
}

// Categories divide metrics: basic ones are measured always, all of them on suspicious links.
type Categories struct {
	Basic        []string                `json:"basic"`
	Detailed     []string                `json:"detailed"`            // measured on suspicious links only
	ShownBy      map[string]string       `json:"shown_by"`            // for every detailed metric a basic one that shows it
	NeededBy     map[string]string       `json:"needed_by,omitempty"` // for basic metrics a basic one that depends on them
	Instructions *attention.Instructions `json:"instructions"`
	// Published is the basic set of FANT's algorithm 1, where that differs from Basic.
	Published *PublishedCategories `json:"published,omitempty"`
}

// PublishedCategories are the basic metrics of FANT's algorithm 1.
type PublishedCategories struct {
	Basic  []string `json:"basic"`
	Bitmap string   `json:"bitmap"` // of the instructions
	Bytes  int      `json:"bytes"`  // of a hop
}

const maxMetrics = 16 // bits of an instruction bitmap

// Validate returns what is wrong with the metrics.
func (m *Metrics) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("metrics: "+format, args...)) }
	if len(m.Metrics) == 0 || len(m.Metrics) > maxMetrics {
		fail("there are %d metrics; an instruction bitmap has room for 1 to %d", len(m.Metrics), maxMetrics)
	}
	names, bits := map[string]bool{}, map[int]string{}
	for i, x := range m.Metrics {
		switch {
		case x.Name == "":
			fail("metric %d has no name", i+1)
		case names[x.Name]:
			fail("metric %s is there twice", x.Name)
		}
		names[x.Name] = true
		if x.Bit < 0 || x.Bit >= maxMetrics {
			fail("metric %s has bit %d, outside 0..%d", x.Name, x.Bit, maxMetrics-1)
		} else if other, ok := bits[x.Bit]; ok {
			fail("metrics %s and %s have the same bit %d", other, x.Name, x.Bit)
		}
		bits[x.Bit] = x.Name
		if x.Bytes < 1 || x.Bytes > 255 {
			fail("metric %s has %d bytes, outside 1..255", x.Name, x.Bytes)
		}
	}
	for _, x := range m.Metrics {
		for _, name := range x.DependsOn {
			if !names[name] {
				fail("metric %s depends on %q, which is not there", x.Name, name)
			}
			if name == x.Name {
				fail("metric %s depends on itself", name)
			}
		}
	}
	for _, r := range m.Relations {
		for _, name := range []string{r.Shows, r.Of} {
			if !names[name] {
				fail("a relation names metric %q, which is not there", name)
			}
		}
		if r.Shows == r.Of {
			fail("a relation of metric %q with itself", r.Of)
		}
	}
	return errors.Join(errs...)
}

// Categorize divides metrics into basic and detailed ones. Basic metrics are the required ones, those in which every
// other metric shows, and the dependencies of both. Of all such choices it takes the one of fewest bytes a hop, then of
// fewest metrics, then of the first metrics. It tries all of them, at most 2¹⁶. FANT's algorithm 1 makes every metric
// basic from which another can be inferred. It makes metrics without relations detailed, which then show in no basic
// metric. Where that set differs, Published holds it.
func Categorize(m *Metrics) (*Categories, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	index := map[string]int{}
	for i, x := range m.Metrics {
		index[x.Name] = i
	}
	var required uint32
	shows, needs := make([]uint32, len(m.Metrics)), make([]uint32, len(m.Metrics))
	for i, x := range m.Metrics {
		shows[i] = 1 << i
		if x.Required {
			required |= 1 << i
		}
		for _, name := range x.DependsOn {
			needs[i] |= 1 << index[name]
		}
	}
	for _, r := range m.Relations {
		shows[index[r.Shows]] |= 1 << index[r.Of]
	}
	c := m.categories(m.fewestBytes(required, shows, needs), shows, needs)
	if p := m.categories(m.published(required, shows, needs), shows, needs); !slices.Equal(p.Basic, c.Basic) {
		c.Published = &PublishedCategories{p.Basic, p.Instructions.Basic, p.Instructions.BasicBytes}
	}
	return c, nil
}

// published is FANT's algorithm 1. A metric is basic if another can be inferred from it and it cannot be inferred from
// that one (lines 8 and 9). Required metrics are basic (10 and 11), and so are dependencies of basic ones. Of metrics
// that can be inferred from each other, of which none is basic, the one of fewest bytes becomes basic (12 to 18). Its
// dependencies become basic here, which the algorithm omits.
func (m *Metrics) published(required uint32, shows, needs []uint32) uint32 {
	n := len(m.Metrics)
	basic, similar := required, make([]uint32, n)
	for i := range n {
		for k := range n {
			switch mutual := shows[k]>>i&1 == 1; {
			case k == i || shows[i]>>k&1 == 0:
			case mutual:
				similar[i] |= 1 << k
			default:
				basic |= 1 << i
			}
		}
	}
	addNeeded := func() {
		for before := uint32(0); before != basic; {
			before = basic
			for i := range n {
				if basic>>i&1 == 1 {
					basic |= needs[i]
				}
			}
		}
	}
	addNeeded()
	for i := range n {
		if similar[i] == 0 || basic&(similar[i]|1<<i) != 0 {
			continue
		}
		least := i
		for k := range n {
			if similar[i]>>k&1 == 1 && m.Metrics[k].Bytes < m.Metrics[least].Bytes {
				least = k
			}
		}
		basic |= 1 << least
		addNeeded()
	}
	return basic
}

// fewestBytes is the best set of basic metrics.
func (m *Metrics) fewestBytes(required uint32, shows, needs []uint32) uint32 {
	all := uint32(1)<<len(m.Metrics) - 1
	best, least := all, math.MaxInt
	for set := uint32(1); set <= all; set++ {
		if set&required != required {
			continue
		}
		var seen, wanted uint32
		bytes := 0
		for left := set; left != 0; left &= left - 1 {
			i := bits.TrailingZeros32(left)
			seen |= shows[i]
			wanted |= needs[i]
			bytes += m.Metrics[i].Bytes
		}
		if seen != all || wanted&^set != 0 || bytes > least {
			continue
		}
		if bytes < least || bits.OnesCount32(set) < bits.OnesCount32(best) {
			best, least = set, bytes
		}
	}
	return best
}

// categories names what is in a set of basic metrics, and why.
func (m *Metrics) categories(basic uint32, shows, needs []uint32) *Categories {
	c := &Categories{Basic: []string{}, Detailed: []string{}, ShownBy: map[string]string{}, Instructions: &attention.Instructions{}}
	first := func(i int, of []uint32) (string, bool) {
		for k := range m.Metrics {
			if k != i && basic>>k&1 == 1 && of[k]>>i&1 == 1 {
				return m.Metrics[k].Name, true
			}
		}
		return "", false
	}
	var bits, all uint16
	for i, x := range m.Metrics {
		all |= 1 << (15 - x.Bit)
		c.Instructions.DetailedBytes += x.Bytes
		if basic>>i&1 == 0 {
			c.Detailed = append(c.Detailed, x.Name)
			c.ShownBy[x.Name], _ = first(i, shows)
			continue
		}
		c.Basic = append(c.Basic, x.Name)
		bits |= 1 << (15 - x.Bit)
		c.Instructions.BasicBytes += x.Bytes
		if by, ok := first(i, needs); ok {
			if c.NeededBy == nil {
				c.NeededBy = map[string]string{}
			}
			c.NeededBy[x.Name] = by
		}
	}
	c.Instructions.Basic, c.Instructions.Detailed = fmt.Sprintf("0x%04X", bits), fmt.Sprintf("0x%04X", all)
	return c
}
