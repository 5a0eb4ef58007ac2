package pathmix

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

const (
	maxEnds   = 16 // nodes that are tried as the first, or the last, of a path
	maxLayer  = 48 // nodes that are tried at a hop where nothing is known about links
	far       = 255
	leastSeen = 2    // digests that a candidate has to explain beyond those that all candidates explain
	leastPart = .005 // of these digests
)

// candidate is a path that may be used, with the packets that it may have been the path of.
type candidate struct {
	path   []uint16
	agree  []uint64
	weight float64
}

// walk enumerates the paths of k nodes that explain digests of some weight, by depth-first search.
type walk struct {
	m      *Model
	e      *evidence
	layers [][]uint16 // by hop: what can be there, where nothing is known about links
	first  []uint16
	toEnd  []uint8   // links from each node to the nearest last one
	weight []float64 // of packets
	least  float64   // a path that explains less is no candidate
	most   int       // candidates
	steps  int       // that are left

	path []uint16
	used []bool
	sets [][]uint64 // packets that the path explains up to each hop
	sums []uint32   // of the parts that several hops wrote, up to the last hop of path
	ends [][]int32  // by hop: indices into wrote of parts whose last writer the hop is

	good   [][]bool // by hop and node: digests confirm the node; nil if all are tried alike
	misses int      // how many more nodes of the path may be others

	open bool // there may be more candidates than those found
	out  []candidate
}

// candidates lists the paths that explain most, the best ones first. The result complete is true if there are no others
// worth a look.
func (m *Model) candidates(e *evidence, ingress, egress uint16) (list []candidate, complete bool) {
	w := m.begin(e, ingress, egress)
	if w == nil {
		return nil, true
	}
	total := w.weigh()
	return w.search(total, min(max(leastSeen, leastPart*total), total))
}

// improve lists candidates that explain digests of more than some weight, the heaviest first.
func (m *Model) improve(e *evidence, ingress, egress uint16, weight []float64, least float64) []candidate {
	w := m.begin(e, ingress, egress)
	if w == nil {
		return nil
	}
	w.weight = weight
	total := 0.0
	for _, x := range weight {
		total += x
	}
	list, _ := w.search(total, least)
	return list
}

// search finds all paths that explain a weight of floor. If these are too many, it finds those first that only a few
// hops contradict, and those that explain much. All of it takes no more than Config.Steps.
func (w *walk) search(total, floor float64) (list []candidate, complete bool) {
	budget, found := w.m.config.Steps, map[string]candidate{}
	run := func(misses int, least float64) bool {
		w.misses, w.least, w.steps = misses, least, budget/4
		before := w.steps
		w.open, w.out = false, w.out[:0]
		w.run()
		budget -= before - max(w.steps, 0)
		for _, c := range w.out {
			found[string(bytesOf(c.path))] = c
		}
		return !w.open
	}
	if complete = run(w.e.k, floor); !complete {
		w.mark()
		for misses := range w.e.k {
			closed := true
			for least := total / 2; closed && least > floor && budget > 256; least /= 3 {
				closed = run(misses, least)
			}
			if !closed || !run(misses, floor) {
				break
			}
		}
	}
	for _, c := range found {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), slices.Compare(a.path, b.path))
	})
	most := w.m.config.Candidates
	return list[:min(len(list), most)], complete && len(list) <= most
}

// mark finds the nodes that digests confirm at each hop. They explain more of the digests that the hop wrote alone than
// chance leaves to any node.
func (w *walk) mark() {
	w.good = make([][]bool, w.e.k)
	for h := range w.good {
		weights, mean, variance := w.m.support(w.e, h, w.weight), 0.0, 0.0
		for i := range w.e.single[h] {
			x := w.weight[w.e.single[h][i].number] * math.Exp2(-w.m.bits)
			mean += x
			variance += x * w.weight[w.e.single[h][i].number]
		}
		w.good[h] = make([]bool, len(weights))
		for u, n := range weights {
			w.good[h][u] = n > mean+3*math.Sqrt(variance)
		}
	}
}

// begin finds where paths can begin and end. It is nil if there can be no path.
func (m *Model) begin(e *evidence, ingress, egress uint16) *walk {
	w := &walk{m: m, e: e, most: 2 * m.config.Candidates, used: make([]bool, len(m.nodes)), sums: make([]uint32, len(e.multi)), path: make([]uint16, e.k)}
	w.ends, w.sets = make([][]int32, e.k), make([][]uint64, e.k)
	for h := range e.k {
		w.sets[h] = make([]uint64, e.words)
		for i, j := range e.wrote[h] {
			if bits.Len64(e.multi[j].writers)-1 == h {
				w.ends[h] = append(w.ends[h], int32(i))
			}
		}
	}
	w.first = m.likely(e, 0, maxEnds, m.lucky(e, 0), m.ends(ingress))
	last := m.likely(e, e.k-1, maxEnds, m.lucky(e, e.k-1), m.ends(egress))
	if m.first == nil {
		for h := range e.k {
			w.layers = append(w.layers, m.likely(e, h, maxLayer, 1, nil))
		}
		w.layers[0], w.layers[e.k-1] = w.first, last
		return w
	}
	w.toEnd = make([]uint8, len(m.nodes))
	for u := range w.toEnd {
		w.toEnd[u] = far
	}
	queue := slices.Clone(last)
	for _, u := range queue {
		w.toEnd[u] = 0
	}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		if int(w.toEnd[u]) == e.k-1 {
			break
		}
		for _, x := range m.neighbours(u) {
			if w.toEnd[x] == far {
				w.toEnd[x] = w.toEnd[u] + 1
				queue = append(queue, x)
			}
		}
	}
	w.first = slices.DeleteFunc(w.first, func(u uint16) bool { return int(w.toEnd[u]) > e.k-1 })
	if len(w.first) == 0 {
		return nil
	}
	return w
}

// likely lists the nodes that explain most of the digests that a hop wrote alone, the best ones first. They are of a
// set if there is one. Nodes that explain less than floor are left out, unless the best one does not explain twice as
// much.
func (m *Model) likely(e *evidence, h, most int, floor float64, set []int32) []uint16 {
	counts := m.support(e, h, nil)
	var list []uint16
	if set != nil {
		for _, u := range set {
			list = append(list, uint16(u))
		}
		slices.Sort(list)
		list = slices.Compact(list)
	} else {
		for u := range m.nodes {
			list = append(list, uint16(u))
		}
	}
	slices.SortStableFunc(list, func(a, b uint16) int { return cmp.Compare(counts[b], counts[a]) })
	if len(list) == 0 {
		return nil
	}
	floor = min(counts[list[0]]/2, floor)
	for i, u := range list {
		if i == most || counts[u] < floor {
			return list[:i]
		}
	}
	return list
}

// lucky returns how many digests that a hop wrote alone have to agree with a node to be more than chance. Fewer than
// one of all nodes is expected to have as many.
func (m *Model) lucky(e *evidence, h int) float64 {
	mean := float64(len(e.single[h])) * math.Exp2(-m.bits)
	tail, p := 1-math.Exp(-mean), math.Exp(-mean)
	n := 1.0
	for ; tail*float64(len(m.nodes)) > 1 && n < float64(len(e.single[h])); n++ {
		p *= mean / n
		tail -= p
	}
	return n
}

// weigh gives every packet the weight 1, but 0 to those that any path explains because all their writers are at hops
// with one candidate. It returns the sum.
func (w *walk) weigh() (total float64) {
	fixed := uint64(0)
	for h, layer := range w.spread() {
		if len(layer) == 1 {
			fixed |= 1 << h
		}
	}
	w.weight = make([]float64, w.e.n)
	for h := range w.e.k {
		if fixed>>h&1 != 0 {
			continue
		}
		for i, n := range w.e.count[h] {
			if n > 0 && i < w.e.n {
				w.weight[i] = 1
			}
		}
	}
	for _, x := range w.weight {
		total += x
	}
	return total
}

// spread returns, by hop, the nodes that some path could have there.
func (w *walk) spread() [][]uint16 {
	if w.layers != nil {
		return w.layers
	}
	layers := [][]uint16{w.first}
	for h := 1; h < w.e.k; h++ {
		seen := make([]bool, len(w.m.nodes))
		var next []uint16
		for _, u := range layers[h-1] {
			for _, x := range w.m.neighbours(u) {
				if !seen[x] && int(w.toEnd[x]) <= w.e.k-1-h {
					seen[x] = true
					next = append(next, x)
				}
			}
		}
		layers = append(layers, next)
	}
	return layers
}

func (w *walk) run() {
	total := 0.0
	for _, x := range w.weight {
		total += x
	}
	for _, u := range w.first {
		w.visit(0, u, w.e.all(), total)
	}
}

// visit goes on with node u at hop h. Packets in before are explained up to there, and weigh so much.
func (w *walk) visit(h int, u uint16, before []uint64, weight float64) {
	if w.steps--; w.steps < 0 || len(w.out) >= w.most {
		w.open = true
		return
	}
	if w.good != nil && !w.good[h][u] {
		if w.misses == 0 {
			return
		}
		w.misses--
		defer func() { w.misses++ }()
	}
	e, c := w.e, w.m.at(w.e, h, u)
	for i, j := range e.wrote[h] {
		w.sums[j] ^= c.values[i]
	}
	defer func() {
		for i, j := range e.wrote[h] {
			w.sums[j] ^= c.values[i]
		}
	}()
	set := w.sets[h]
	for i := range set {
		set[i] = before[i] & c.agree[i]
	}
	for _, i := range w.ends[h] {
		j := e.wrote[h][i]
		if x := &e.multi[j]; w.sums[j] != x.want {
			set[x.number>>6] &^= 1 << (x.number & 63)
		}
	}
	for i, s := range set {
		for gone := before[i] &^ s; gone != 0; gone &= gone - 1 {
			weight -= w.weight[i<<6+bits.TrailingZeros64(gone)]
		}
	}
	if weight < w.least {
		return
	}
	if w.path[h] = u; h == e.k-1 {
		w.out = append(w.out, candidate{slices.Clone(w.path), slices.Clone(set), weight})
		return
	}
	w.used[u] = true
	next := w.next(h, u)
	for _, x := range next {
		if w.toEnd != nil && int(w.toEnd[x]) > e.k-2-h || w.used[x] && !w.m.config.Loops {
			continue
		}
		w.visit(h+1, x, set, weight)
	}
	w.used[u] = false
}

func (w *walk) next(h int, u uint16) []uint16 {
	if w.layers != nil {
		return w.layers[h+1]
	}
	return w.m.neighbours(u)
}
