package digests

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/topo"
)

const (
	errorBlock   = 1000 // flows of one tracer, which meet the same error
	errorFlows   = 30_000
	errorDigests = 1000
	touchedShare = 0.3
)

// errors measures how often paths are wrong where the map is. Where only some rows are asked for, they are the same
// ones as among all.
func (b *bench) errors() error {
	kdl, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return err
	}
	carrier, err := readNetwork("US Carrier", "uscarrier.txt")
	if err != nil {
		return err
	}
	fabric, err := topo.FatTree(8)
	if err != nil {
		return err
	}
	for _, n := range []*network{kdl, carrier, newNetwork("Fat-tree k = 8", fabric)} {
		for _, k := range knowledges[2:] {
			if err := b.errorTable(n, k, n == kdl); err != nil {
				return err
			}
		}
	}
	if len(b.o.Rows) == 0 {
		return b.certainTable(kdl)
	}
	if len(b.out.Tables) == 0 {
		return fmt.Errorf("no row has %q in its name, as %q has", b.o.Rows, errorName(kdl, &knowledges[2], &mapErrors[1]))
	}
	return nil
}

// errorName is the name by which a row is requested.
func errorName(n *network, k *knowledge, e *mapError) string {
	return n.name + ", " + strings.TrimPrefix(strings.TrimPrefix(k.name, "ours, and "), "the ") + ": " + e.name
}

// wanted reports whether a row is asked for.
func (b *bench) wanted(row string) bool {
	return len(b.o.Rows) == 0 || slices.ContainsFunc(b.o.Rows, func(part string) bool { return strings.Contains(row, part) })
}

// calibration counts, by the probability with which paths were stated to be wrong, how many were.
type calibration [calibrationBins]struct {
	stated, wrong float64
	n             int
}

// Bins are quarters of a power of ten, and those that hold little are left out.
const (
	calibrationBins   = 20
	calibrationLittle = 200
)

func (c *calibration) add(confidence float64, right bool) {
	x := &c[min(int(-4*math.Log10(max(1-confidence, 1e-9))), calibrationBins-1)]
	x.n++
	x.stated += 1 - confidence
	if !right {
		x.wrong++
	}
}

// series is a line of a chart. Where no path was wrong, there is none.
func (c *calibration) series(name string) Series {
	s := Series{Name: name}
	for _, x := range c {
		if x.n >= calibrationLittle && x.wrong > 0 {
			s.X, s.Y = append(s.X, x.stated/float64(x.n)), append(s.Y, x.wrong/float64(x.n))
		}
	}
	return s
}

// errorRuns are the flows of one tracer or more.
type errorRuns struct {
	flows  []errorFlow
	stated calibration
}

func (b *bench) errorTable(n *network, k knowledge, charted bool) error {
	t := table{
		Title: fmt.Sprintf("Errors of the map, %s, %s, 2 × 8 bits, %d digests a flow", n.name, k.name, errorDigests),
		Columns: []string{"error", "flows", "touched", "told without a mark: ever wrong", "at the end, %", "with a mark: ever wrong, %",
			"untouched: right, %", "digests", "touched: right, or its wrong hop named, %", "within 10 ×, %", "digests"},
		Notes: []string{
			fmt.Sprintf("Each %d flows are those of one tracer, which meet the same error; it concerns %.0f %% of the flows where flows can be chosen.", errorBlock, 100*touchedShare),
			"10 ×: within ten times the digests that a flow takes on average until a path is told, where the map is right.",
		},
	}
	chart := Chart{File: "pint-calibration-" + map[bool]string{false: "links", true: "distance"}[k.routing == prior.Distance],
		Title: "Paths that are told, " + n.name + ", " + strings.TrimPrefix(k.name, "ours, and "), X: "stated probability of being wrong", Y: "share that is wrong", logX: true, logY: true}
	chart.Series = append(chart.Series, Series{Name: "as stated", X: []float64{1e-5, 1}, Y: []float64{1e-5, 1}, dashed: true})
	scheme, err := errorScheme(b.o.Seed)
	if err != nil {
		return err
	}
	right, err := prior.NewModel(mapOf(n, k, scheme))
	if err != nil {
		return err
	}
	need := 0.0
	for i := range mapErrors {
		if !b.wanted(errorName(n, &k, &mapErrors[i])) {
			continue
		}
		runs, err := b.errorRow(n, k, &mapErrors[i], right)
		if err != nil {
			return err
		}
		if i == 0 {
			need = soon(runs.flows)
		}
		t.Rows = append(t.Rows, errorCells(mapErrors[i].name, runs.flows, need))
		if line := runs.stated.series(mapErrors[i].name); len(line.X) > 1 {
			chart.Series = append(chart.Series, line)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	b.out.Tables = append(b.out.Tables, t)
	if charted {
		b.out.Charts = append(b.out.Charts, chart)
	}
	return nil
}

// soon is ten times the digests that a flow takes on average until its published path is right.
func soon(flows []errorFlow) float64 {
	digests, right := 0, 0
	for _, f := range flows {
		if f.right > 0 && !f.touched {
			right++
			digests += f.right
		}
	}
	return 10 * float64(digests) / float64(max(right, 1))
}

// errorCells are those of a row. Where it is unknown how many digests are few, need is 0.
func errorCells(name string, flows []errorFlow, need float64) []any {
	var touched, wrong, certain, wrongMarked, right, rightTouched, within int
	var digests, digestsTouched float64
	for _, f := range flows {
		if f.wrong {
			wrong++
		}
		if f.certain {
			certain++
		}
		if f.wrongMarked {
			wrongMarked++
		}
		switch {
		case f.touched:
			touched++
			if f.right > 0 {
				rightTouched++
				digestsTouched += float64(f.right)
			}
			if f.right > 0 && float64(f.right) <= need {
				within++
			}
		case f.right > 0:
			right++
			digests += float64(f.right)
		}
	}
	mean := digests / float64(max(right, 1))
	share := func(n, of int) any {
		if of == 0 {
			return "-"
		}
		return 100 * float64(n) / float64(of)
	}
	within10 := share(within, touched)
	if need == 0 {
		within10 = "-"
	}
	return []any{name, len(flows), touched, wrong, share(certain, len(flows)), share(wrongMarked, len(flows)), share(right, len(flows)-touched), mean,
		share(rightTouched, touched), within10, digestsTouched / float64(max(rightTouched, 1))}
}

// errorScheme is the coding of these tables.
func errorScheme(seed uint64) (*pint.Scheme, error) {
	c := pint.Hybrid(8, 10)
	c.Seed, c.Instances = uint32(seed), 2
	return pint.New(c)
}

// mapOf is a map without errors.
func mapOf(n *network, k knowledge, scheme *pint.Scheme) prior.Config {
	return prior.Config{Scheme: scheme, Nodes: n.nodes(), Links: n.links(), Routing: k.routing}
}

// errorRow follows flows that meet an error. If the map is right, the model of the map without an error is used.
func (b *bench) errorRow(n *network, k knowledge, e *mapError, right *prior.Model) (*errorRuns, error) {
	flows := b.o.Runs
	if flows == 0 {
		flows = errorFlows
	}
	block := min(errorBlock, flows)
	results, err := sample(b, n.name+", "+k.name+": "+e.name, "errors", (flows+block-1)/block, func() (func(*rand.Rand) (*errorRuns, error), error) {
		return func(r *rand.Rand) (*errorRuns, error) { return errorFlowsOf(n, k, e, right, block, r) }, nil
	})
	if err != nil {
		return nil, err
	}
	var all errorRuns
	for _, list := range results {
		all.flows = append(all.flows, list.flows...)
		for i, x := range list.stated {
			all.stated[i].n += x.n
			all.stated[i].stated += x.stated
			all.stated[i].wrong += x.wrong
		}
	}
	return &all, nil
}

// errorFlowsOf follows the flows of one tracer.
func errorFlowsOf(n *network, k knowledge, e *mapError, m *prior.Model, flows int, r *rand.Rand) (*errorRuns, error) {
	w, scheme := newErrorWorld(n), m.Config.Scheme
	for !e.make(w, r) {
	}
	if w.config != nil {
		c := mapOf(n, k, scheme)
		w.config(&c)
		var err error
		if m, err = prior.NewModel(c); err != nil {
			return nil, err
		}
	}
	t := pathtrace.New(m)
	out := &errorRuns{}
	var space [64]uint32
	for range flows {
		touched := (w.touches != nil || w.reroute != nil || w.skipped > 0) && r.Float64() < touchedShare
		path, ok := w.flow(r, touched)
		if !ok {
			continue
		}
		skipped := 0
		if touched {
			skipped = w.skipped
		}
		f := w.trace(t, scheme, path, skipped, errorDigests, r, space[:0], func(_ int, s *pathtrace.Status, right bool) {
			if bits.OnesCount64(s.Known) == len(s.Nodes) {
				out.stated.add(s.Confidence, right)
			}
		})
		f.touched = touched
		out.flows = append(out.flows, f)
	}
	return out, nil
}
