package solve

import "math"

// tree is a branch and bound over variables that are 0 or 1, for objectives that are whole numbers.
type tree struct {
	m        *model
	whole    []int32               // in the order in which they matter
	separate func(l *program) bool // adds rows that the present values violate
	leaf     func(l *program) bool // whether whole values will do; nil for always
	best     float64               // objective of the best leaf; only better ones are looked for
	enough   float64               // search ends when best is no more
	bound    float64               // of the root
	found    func(l *program)      // takes a leaf
	held     int                   // numbers in tableaus that wait
	cut      bool                  // search was incomplete
	limit    int                   // nodes left; 0 for any number
	root     bool
	slack    float64 // tolerance of costs
}

// costSlack is the tolerance of a solution's cost. It covers a small error of every variable, the tiny extra costs of
// all rates, and large costs.
func (m *model) costSlack(cost []float64) float64 {
	total, sum := 0.0, 0.0
	for _, d := range m.demand {
		total += d
	}
	for _, c := range cost {
		sum += math.Abs(c)
	}
	return max(1e-3, 4e-7*total, 1e-7*sum)
}

func (t *tree) run(l *program) {
	t.root = true
	t.bound = math.Inf(1)
	t.slack = t.m.costSlack(l.cost)
	t.node(l)
}

func (t *tree) node(l *program) {
	if t.limit > 0 {
		if t.limit--; t.limit == 0 {
			t.limit, t.cut = -1, true
		}
	}
	if t.limit < 0 || t.best <= t.enough {
		return
	}
	if t.m.nodes++; t.m.stopped() {
		if t.cut = true; t.root {
			t.root, t.bound = false, math.Inf(-1)
		}
		return
	}
	for {
		switch l.solve() {
		case infeasible:
			t.root = false
			return
		case stalled:
			if t.cut = true; t.root {
				t.root, t.bound = false, math.Inf(-1)
			}
			return
		}
		if math.Ceil(l.objective()-t.slack) >= t.best {
			if t.root {
				t.root, t.bound = false, t.best
			}
			return
		}
		if !t.separate(l) {
			break
		}
	}
	if t.root {
		t.root, t.bound = false, math.Ceil(l.objective()-t.slack)
	}
	branch, most := int32(-1), 1e-6
	for _, v := range t.whole {
		if x := l.x(v); !l.fixed(v) && min(x, 1-x) > 1e-6 {
			if x > most { // the one closest to 1 above all
				branch, most = v, x
			}
		}
	}
	if branch < 0 {
		if t.leaf == nil || t.leaf(l) {
			t.best = math.Round(l.objective())
			t.found(l)
			return
		}
		for _, v := range t.whole {
			if !l.fixed(v) && (branch < 0 || l.x(v) > l.x(branch)) {
				branch = v
			}
		}
		if branch < 0 {
			return
		}
	}
	if t.held+len(l.t) > maxHeld {
		t.cut = true // on with the better half alone
		l.fix(branch, 1)
		t.node(l)
		return
	}
	t.held += len(l.t)
	one := l.clone()
	one.fix(branch, 1)
	t.node(one)
	t.held -= len(l.t)
	l.fix(branch, 0)
	t.node(l)
}

// maxHeld bounds the numbers in the tableaus that wait for their second half.
const maxHeld = 1 << 24

func (m *model) stopped() bool {
	if !m.timeout && m.stop() {
		m.timeout, m.unsure = true, true
	}
	return m.timeout
}
