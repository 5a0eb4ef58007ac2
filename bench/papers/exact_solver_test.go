package papers_test

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// model is a mixed integer programme: the least cost over variables within bounds that keep to all rows.
type model struct {
	Cost    []float64     `json:"cost"`
	Bounds  [][2]*float64 `json:"bounds"`
	Integer []int         `json:"integer"`
	Rows    []row         `json:"rows"`
}

// row holds a sum of variables between two numbers, of which nil is none.
type row struct {
	Low   *float64  `json:"low"`
	High  *float64  `json:"high"`
	At    []int     `json:"at"`
	Value []float64 `json:"value"`
}

// term is a variable times a number.
type term struct {
	at    int
	value float64
}

func num(x float64) *float64 { return &x }

// variable adds a variable from 0 up to a number, which is no limit if it is infinite.
func (m *model) variable(cost, high float64, integer bool) int {
	k := len(m.Cost)
	m.Cost = append(m.Cost, cost)
	bounds := [2]*float64{num(0), num(high)}
	if math.IsInf(high, 1) {
		bounds[1] = nil
	}
	m.Bounds = append(m.Bounds, bounds)
	if integer {
		m.Integer = append(m.Integer, k)
	}
	return k
}

func (m *model) choice(cost float64) int { return m.variable(cost, 1, true) }

func (m *model) row(low, high *float64, terms []term) {
	r := row{Low: low, High: high, At: []int{}, Value: []float64{}}
	for _, t := range terms {
		r.At, r.Value = append(r.At, t.at), append(r.Value, t.value)
	}
	m.Rows = append(m.Rows, r)
}

func (m *model) least(low float64, terms ...term)   { m.row(num(low), nil, terms) }
func (m *model) most(high float64, terms ...term)   { m.row(nil, num(high), terms) }
func (m *model) equal(value float64, terms ...term) { m.row(num(value), num(value), terms) }

// solver is HiGHS in a process of its own.
type solver struct {
	in  io.Writer
	out *bufio.Reader
}

// start starts the solver, which ends with the test.
func start(t *testing.T) *solver {
	t.Helper()
	c := exec.Command(testkit.Python(t), "exact_solve.py")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("HiGHS is not installed: run `make python` (%v)", err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the solver: %v", err)
		}
	})
	return &solver{in, bufio.NewReader(out)}
}

// solve returns the least cost, and whether there is a solution at all.
func (s *solver) solve(t *testing.T, m *model) (x []float64, objective float64, ok bool) {
	t.Helper()
	if m.Integer == nil {
		m.Integer = []int{}
	}
	if m.Rows == nil {
		m.Rows = []row{}
	}
	if err := json.NewEncoder(s.in).Encode(m); err != nil {
		t.Fatal(err)
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the solver ended: %v", err)
	}
	var answer struct {
		Status    string
		Objective float64
		X         []float64
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	switch answer.Status {
	case "Optimal":
		return answer.X, answer.Objective, true
	case "Infeasible":
		return nil, 0, false
	}
	t.Fatalf("HiGHS answers %q", answer.Status)
	return nil, 0, false
}

// near compares with the tolerance of the solver.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(a), math.Abs(b)) }

// TestSolver solves a knapsack that is easy to see: 3 x + 2 y at most 4, of greatest 4 x + 3 y.
func TestSolver(t *testing.T) {
	s := start(t)
	m := new(model)
	x, y := m.variable(-4, math.Inf(1), true), m.variable(-3, 1, true)
	m.most(4, term{x, 3}, term{y, 2})
	if v, objective, ok := s.solve(t, m); !ok || !near(objective, -4) || !near(v[x], 1) {
		t.Errorf("got %v, %v, %v", v, objective, ok)
	}
	m.least(5, term{x, 1})
	if _, _, ok := s.solve(t, m); ok {
		t.Error("an impossible programme has a solution")
	}
}
