package solve

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

	"github.com/hopscope/hopscope/planner/orchestrate"
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

// script solves problems as integer programs: first the least weight left out, then the objective.
const script = `
import json, sys, highspy
inf = highspy.kHighsInf
def best(p, left):
    split, copies = p["Split"], max(p["Redundancy"], 1)
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 1e-6)
    count = 0
    def var(up, cost, whole=True):
        nonlocal count
        h.addVar(0.0, up)
        h.changeColCost(count, cost)
        if whole:
            h.changeColIntegrality(count, highspy.HighsVarType.kInteger)
        count += 1
        return count - 1
    def row(low, high, terms):
        h.addRow(low, high, len(terms), [k for k, _ in terms], [float(v) for _, v in terms])
    rows = [[] for _ in p["interfaces"]]
    out = []
    for k, i in enumerate(p["interfaces"]):
        unit = i["demand"] if split else 1
        worth = (i.get("weight") or i["demand"]) / unit
        o = var(copies * unit, worth if left is None else 0)
        out.append((o, worth))
        rows[k].append((o, 1))
    top = var(inf, 1, False) if left is not None and p["Objective"] == "balance" else None
    for f in p["flows"]:
        load = []
        use = var(1, 1) if left is not None and top is None else None
        for i in f["interfaces"] or []:
            d = p["interfaces"][i]["demand"]
            x = var(d if split else 1, 0)
            rows[i].append((x, 1))
            load.append((x, 1 if split else d))
            if use is not None:
                row(-inf, 0, [(x, 1), (use, -d if split else -1)])
        row(-inf, f["capacity"], load)
        if top is not None:
            row(-inf, 0, load + [(top, -1)])
        if use is not None:
            row(-inf, 0, load + [(use, -f["capacity"])])
    for k, i in enumerate(p["interfaces"]):
        n = copies * (i["demand"] if split else 1)
        row(n, n, rows[k])
    if left is not None:
        row(-inf, left + 1e-6, out)
    h.run()
    return h.getInfo().objective_function_value
found = []
for p in json.load(sys.stdin):
    left = best(p, None)
    found.append([left, best(p, left)])
json.dump(found, sys.stdout)
`

// TestAgainstHiGHS holds plans, bounds and proofs against an exact solver, on problems that are too large for trying
// everything: whole and partial ones, with redundancy, and split.
func TestAgainstHiGHS(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var problems []*orchestrate.Problem
	type named struct {
		*orchestrate.Problem
		Objective  string
		Redundancy int
		Split      bool
	}
	var asked []named
	for n := range 200 {
		p := medium(r)
		p.Redundancy, p.Split = 1+n%8/6, n%4 == 3
		p.Objective = []string{orchestrate.Concentrate, orchestrate.Balance}[n%2]
		if n%8 == 7 {
			p.Objective = orchestrate.Concentrate
		}
		problems = append(problems, p)
		asked = append(asked, named{p, p.Objective, p.Redundancy, p.Split})
	}
	in, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), python(t), "-c", script)
	c.Stdin, c.Stderr = bytes.NewReader(in), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found [][2]float64
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	partial, proven := 0, 0
	for n, p := range problems {
		plan, err := Plan(p, Options{Seed: uint64(n), Partial: true, Stop: after(20000)})
		if err != nil {
			t.Fatalf("seed %d, problem %d: %v", seed, n, err)
		}
		if err := orchestrate.Check(p, plan); err != nil {
			t.Fatalf("seed %d, problem %d: %v", seed, n, err)
		}
		const e = 1e-5
		s, left, best := plan.Stats, found[n][0], found[n][1]
		same := math.Abs(s.LeftOut-left) < e
		if s.LeftOut < left-e || s.LeftOutBound > left+e || same && (s.Objective < best-e || s.LowerBound > best+e) ||
			s.Optimal && (!same || math.Abs(s.Objective-best) > e) {
			t.Errorf("seed %d, problem %d: left out %v (bound %v), %s %v (bound %v), proven %t, HiGHS %v and %v: %+v",
				seed, n, s.LeftOut, s.LeftOutBound, p.Objective, s.Objective, s.LowerBound, s.Optimal, left, best, p)
		}
		if left > e {
			partial++
		}
		if s.Optimal {
			proven++
		}
	}
	t.Logf("%d of %d problems are partial, %d are proven", partial, len(problems), proven)
	if partial < 20 || proven < len(problems)*9/10 {
		t.Errorf("seed %d: of %d problems %d are partial, %d are proven", seed, len(problems), partial, proven)
	}
}

// medium draws problems of every kind: with equal capacities, with the same flow several times, with flows that pass
// everything, and with capacity 0.
func medium(r *rand.Rand) *orchestrate.Problem {
	p := &orchestrate.Problem{}
	ifaces, flows, kind := 4+r.IntN(8), 3+r.IntN(6), r.IntN(4)
	var sum int64
	for i := range ifaces {
		q := orchestrate.Interface{ID: fmt.Sprintf("i%d", i), Demand: 1 + r.Int64N(9)}
		if kind == 0 {
			q.Demand = 3 + 3*r.Int64N(2)
		}
		if r.IntN(4) == 0 {
			q.Weight = 1 + r.Int64N(9)
		}
		sum += q.Demand
		p.Interfaces = append(p.Interfaces, q)
	}
	mean := float64(sum) / float64(flows) * []float64{0.5, 0.8, 1, 1.3, 3}[r.IntN(5)]
	dense := 0.2 + 0.7*r.Float64()
	for f := range flows {
		q := orchestrate.Flow{ID: fmt.Sprintf("f%d", f), Capacity: int64(mean * (0.5 + r.Float64()))}
		if kind == 1 {
			q.Capacity = int64(mean)
		}
		for i := range ifaces {
			if kind == 2 || r.Float64() < dense {
				q.Interfaces = append(q.Interfaces, int32(i))
			}
		}
		if kind == 3 && f > 0 && r.IntN(2) == 0 {
			q.Capacity, q.Interfaces = p.Flows[f-1].Capacity, p.Flows[f-1].Interfaces
		}
		if r.IntN(10) == 0 {
			q.Capacity = 0
		}
		p.Flows = append(p.Flows, q)
	}
	return p
}
