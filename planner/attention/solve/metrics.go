package solve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/attention"
)

// Metrics are what a hop can report, and how these tell of each other.
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
}

// Relation says that whatever is suspicious in one metric shows in another one: someone who reads Shows need not read Of
// to become suspicious. Relations are not chained: what follows from two of them has to be said.
type Relation struct {
	Shows string `yaml:"shows" json:"shows"`
	Of    string `yaml:"of" json:"of"`
}

// Categories divide metrics: basic ones are measured always, all of them on suspicious links.
type Categories struct {
	Basic        []string                `json:"basic"`
	Detailed     []string                `json:"detailed"` // measured on suspicious links only
	ShownBy      map[string]string       `json:"shown_by"` // for every detailed metric a basic one that shows it
	Instructions *attention.Instructions `json:"instructions"`
}

const maxMetrics = 16 // bits of an instruction bitmap

// Validate says what is wrong with the metrics.
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

// Categorize divides metrics into basic and detailed ones: the algorithm 1 of FANT, with the reading that basic metrics
// are those that are required, and those that make every other metric show. Of all such choices it takes the one of
// fewest bytes a hop; this is a set cover again, with metrics as rows and as columns.
func Categorize(m *Metrics) (*Categories, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	index := map[string]int32{}
	for i, x := range m.Metrics {
		index[x.Name] = int32(i)
	}
	shows := make([][]int32, len(m.Metrics))
	cost := make([]float64, len(m.Metrics))
	var rows, required []int32
	for i, x := range m.Metrics {
		shows[i] = []int32{int32(i)}
		if rows = append(rows, int32(i)); x.Required {
			required = append(required, int32(i))
		} else {
			cost[i] = float64(x.Bytes)
		}
	}
	for _, r := range m.Relations {
		shows[index[r.Shows]] = append(shows[index[r.Shows]], index[r.Of])
	}
	choice, err := NewTraces(len(rows), shows, cost, 0).Switch(rows, nil, Options{})
	if err != nil {
		return nil, err
	}
	basic := slices.Concat(choice.Probes, required)
	slices.Sort(basic)
	basic = slices.Compact(basic)
	c := &Categories{Basic: []string{}, Detailed: []string{}, ShownBy: map[string]string{}, Instructions: &attention.Instructions{}}
	var bits, all uint16
	for i, x := range m.Metrics {
		all |= 1 << (15 - x.Bit)
		c.Instructions.DetailedBytes += x.Bytes
		if slices.Contains(basic, int32(i)) {
			c.Basic = append(c.Basic, x.Name)
			bits |= 1 << (15 - x.Bit)
			c.Instructions.BasicBytes += x.Bytes
			continue
		}
		c.Detailed = append(c.Detailed, x.Name)
		for _, k := range basic {
			if slices.Contains(shows[k], int32(i)) {
				c.ShownBy[x.Name] = m.Metrics[k].Name
				break
			}
		}
	}
	c.Instructions.Basic, c.Instructions.Detailed = fmt.Sprintf("0x%04X", bits), fmt.Sprintf("0x%04X", all)
	return c, nil
}
