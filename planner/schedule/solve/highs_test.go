package solve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// python is the interpreter that .ci/python.sh installed.
func python(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("HOPSCOPE_TEST_PYTHON"); p != "" {
		return p
	}
	p, err := filepath.Abs("../../../.cache/python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatal(fmt.Errorf("HiGHS is not installed: run `make python` (%w)", err))
	}
	return p
}

// program is an integer program: the least weight left out, and then the fewest bytes a second.
type program struct {
	Left, Bytes []float64
	Rows        []programRow
}

type programRow struct {
	Low, High float64
	Index     []int
	Value     []float64
}

// milp says a problem as an integer program: a column for every interval and phase of a probe and one for every link that
// is left out; a row for every window as long as the period of a link, in which a probe must start.
func milp(p *schedule.Problem) *program {
	r, err := p.Resolve()
	if err != nil {
		panic(err)
	}
	m := &program{}
	n := r.Hyper / r.Base
	windows := make([][]programRow, len(r.Links))
	for l := range r.Links {
		windows[l] = make([]programRow, n)
		for t := range windows[l] {
			windows[l][t] = programRow{Low: 1, High: 1e30, Index: []int{l}, Value: []float64{1}}
		}
		m.Left, m.Bytes = append(m.Left, r.Links[l].Weight), append(m.Bytes, 0)
	}
	load := make([]programRow, len(r.Links)+2*len(r.Agents))
	for k := range load {
		load[k] = programRow{Low: -1e30, High: 1e30}
		switch a := k - len(r.Links); {
		case a < 0:
			load[k].High = min(1e30, r.Links[k].Limit/8)
		case a%2 == 0:
			load[k].High = min(1e30, r.Agents[a/2].Send/8)
		default:
			load[k].High = min(1e30, r.Agents[a/2].Receive/8)
		}
	}
	use := func(k, column int, bytes float64) {
		load[k].Index, load[k].Value = append(load[k].Index, column), append(load[k].Value, bytes)
	}
	for k := range r.Probes {
		x := &r.Probes[k]
		one := programRow{Low: 0, High: 1}
		for _, i := range r.Grid {
			for c := 0; c < i/r.Base; c++ {
				column := len(m.Left)
				m.Left, m.Bytes = append(m.Left, 0), append(m.Bytes, float64(x.Total)/r.Seconds(i))
				one.Index, one.Value = append(one.Index, column), append(one.Value, 1)
				for at, l := range x.Links {
					for t := range n {
						period := r.Links[l].Period / r.Base
						if wait := (c - t%(i/r.Base) + i/r.Base) % (i / r.Base); wait < period {
							w := &windows[l][t]
							w.Index, w.Value = append(w.Index, column), append(w.Value, 1)
						}
					}
					use(int(l), column, float64(x.Bytes[at])/r.Seconds(i))
				}
				use(len(r.Links)+2*int(x.Agent), column, float64(x.Sent)/r.Seconds(i))
				use(len(r.Links)+2*int(x.Collector)+1, column, float64(x.Received)/r.Seconds(i))
			}
		}
		m.Rows = append(m.Rows, one)
	}
	for _, w := range windows {
		m.Rows = append(m.Rows, w...)
	}
	m.Rows = append(m.Rows, load...)
	return m
}

const script = `
import json, sys, highspy
def best(m, cost, rows):
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 1e-9)
    n = len(cost)
    for c in cost:
        h.addVar(0.0, 1.0)
    for k, c in enumerate(cost):
        h.changeColCost(k, c)
        h.changeColIntegrality(k, highspy.HighsVarType.kInteger)
    for low, high, index, value in rows:
        h.addRow(low, high, len(index), index, value)
    h.run()
    return h.getInfo().objective_function_value
out = []
for m in json.load(sys.stdin):
    rows = [(r["Low"], r["High"], r["Index"] or [], r["Value"] or []) for r in m["Rows"]]
    left = best(m, m["Left"], rows)
    rows.append((-1e30, left + 1e-6, list(range(len(m["Left"]))), m["Left"]))
    out.append([left, best(m, m["Bytes"], rows)])
json.dump(out, sys.stdout)
`

// TestAgainstHiGHS holds bounds and proofs against an exact solver, on problems that are too large for the twin.
func TestAgainstHiGHS(t *testing.T) {
	var programs []*program
	var problems []*schedule.Problem
	for seed := range uint64(240) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := random(rng, 4+rng.IntN(6), 5+rng.IntN(10))
		problems, programs = append(problems, p), append(programs, milp(p))
	}
	in, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), python(t), "-c", script)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(in), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var best [][2]float64
	if err := json.Unmarshal(out, &best); err != nil || len(best) != len(problems) {
		t.Fatalf("%d answers, %v", len(best), err)
	}
	proven := 0
	for k, p := range problems {
		plan, err := solve.Plan(p, solve.Options{Seed: 1, Partial: true})
		if err == nil {
			err = schedule.Check(p, plan)
		}
		if err != nil {
			t.Fatalf("problem %d: %v", k, err)
		}
		s, left, bytes := &plan.Stats, best[k][0], best[k][1]
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) }
		above := func(a, b float64) bool { return a > b && !near(a, b) }
		switch {
		case above(left, s.LeftOut) || near(left, s.LeftOut) && above(bytes, s.Objective):
			t.Errorf("problem %d: %v left out, %v bytes/s; HiGHS has %v, %v: the programs are not the same", k, s.LeftOut, s.Objective, left, bytes)
		case above(s.LeftOutBound, left) || near(left, s.LeftOut) && above(s.LowerBound, bytes):
			t.Errorf("problem %d: bounds %v and %v, but %v and %v can be", k, s.LeftOutBound, s.LowerBound, left, bytes)
		case s.Optimal && !(near(s.LeftOut, left) && near(s.Objective, bytes)):
			t.Errorf("problem %d: %v left out, %v bytes/s, called optimal; HiGHS has %v, %v", k, s.LeftOut, s.Objective, left, bytes)
		}
		if s.Optimal {
			proven++
		} else {
			t.Logf("problem %d: %d probes, %v left out (%v), %v bytes/s (%v), HiGHS %v, %v", k, len(p.Probes), s.LeftOut, s.LeftOutBound, s.Objective, s.LowerBound, left, bytes)
		}
	}
	if proven < 200 {
		t.Errorf("%d of %d are proven", proven, len(problems))
	}
}
