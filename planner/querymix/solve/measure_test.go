package solve

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/querymix"
)

// table answers from a list of packets by tau, for 8 bits; fewer bits take as many times more.
type table struct {
	packets map[float64]float64
	asked   []querymix.PathCoding
	err     error
}

func (t *table) Codings(int) []querymix.PathCoding {
	return []querymix.PathCoding{{Tau: 0.5, XOR: []float64{0.5}}, {Tau: 0.25, XOR: []float64{0.5}}}
}

func (t *table) Packets(c querymix.PathCoding, _ int, limit float64) (float64, error) {
	t.asked = append(t.asked, c)
	n := t.packets[c.Tau] * 8 / float64(c.Total())
	if n > limit {
		n = math.Inf(1)
	}
	return n, t.err
}

func problem() *querymix.Problem {
	return &querymix.Problem{Bits: 8, Seed: 5, Hash: "crc", Queries: []querymix.Query{
		{Name: "path", Value: "node", Aggregation: querymix.Static, Hops: 5, Nodes: 20,
			Widths: []querymix.Width{{Bits: 8, Instances: 1}, {Bits: 4, Instances: 1}, {Bits: 2, Instances: 1, Packets: 99}, {Bits: 16, Instances: 1}}},
		{Name: "load", Value: "utilization", Aggregation: querymix.PerPacket, MaxValue: 9, Widths: []querymix.Width{{Bits: 8, Instances: 1}}},
	}}
}

func TestMeasure(t *testing.T) {
	p := problem()
	tracer := &table{packets: map[float64]float64{0.75: 20, 0.5: 12, 0.25: 70}}
	var steps []string
	if err := Measure(p, tracer, func(query string, c querymix.PathCoding) { steps = append(steps, query+" "+c.Width.String()) }); err != nil {
		t.Fatal(err)
	}
	q := &p.Queries[0]
	if q.Tau != 0.5 || !slices.Equal(q.XOR, []float64{0.5}) {
		t.Errorf("coding tau %v, xor %v, want that with the fewest packets: tau 0.5, xor 0.5", q.Tau, q.XOR)
	}
	if q.Widths[0].Packets != 12 || q.Widths[1].Packets != 24 || q.Widths[2].Packets != 99 || q.Widths[3].Packets != 0 {
		t.Errorf("widths %+v, want 12 and 24 packets, 99 as given, and none for what no packet has room for", q.Widths)
	}
	// Codings that take more than twice the packets are given up at their first width.
	if want := strings.Split("path 8,path 4,path 8,path 4,path 8,path 8,path 4", ","); !slices.Equal(steps, want) {
		t.Errorf("asked for %v, want %v", steps, want)
	}
	if a := tracer.asked[0]; a.Hash != "crc" || a.Seed != 5 || a.Hops != 5 {
		t.Errorf("asked for %+v, want hash, seed and hops of the problem", a)
	}
}

// A coding that is given stays.
func TestMeasureKeepsCoding(t *testing.T) {
	p := problem()
	p.Queries[0].Tau, p.Queries[0].XOR = 0.25, []float64{0.1}
	tracer := &table{packets: map[float64]float64{0.25: 30}}
	if err := Measure(p, tracer, nil); err != nil {
		t.Fatal(err)
	}
	if q := p.Queries[0]; q.Tau != 0.25 || q.XOR[0] != 0.1 || q.Widths[0].Packets != 30 || len(tracer.asked) != 2 {
		t.Errorf("query %+v after %d questions, want its own coding and 30 packets after 2", q, len(tracer.asked))
	}
}

func TestMeasureError(t *testing.T) {
	broken := errors.New("no such path")
	err := Measure(problem(), &table{err: broken}, nil)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), `query "path": width 8: `) {
		t.Errorf("Measure: %v, want the error of the tracer, with query and width", err)
	}
}
