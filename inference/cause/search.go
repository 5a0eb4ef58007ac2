package cause

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Bounds of the search for the elements that explain findings best together.
const (
	mostTogether   = 3  // elements of which all sets are tried
	mostCandidates = 12 // elements, those that save most
	mostFindings   = 64
)

// problem is a part of the findings that stand alone, and the elements that explain several of them.
type problem struct {
	price  []float64   // of the elements
	alone  []float64   // what findings cost that none of the elements explains
	misfit [][]float64 // of each element with each finding; infinite where it does not explain it
}

// cost is that of a set of elements, as each finding belongs to the one that it fits best, or to none.
func (p *problem) cost(set []int) float64 {
	sum := 0.0
	for _, e := range set {
		sum += p.price[e]
	}
	for a, least := range p.alone {
		for _, e := range set {
			least = min(least, p.misfit[e][a])
		}
		sum += least
	}
	return sum
}

// best returns the set of at most mostTogether elements of the least cost, the first of equal ones. It goes on from
// there with one element more, or another one in the place of one, as long as that saves anything.
func (p *problem) best() (set []int, cost float64) {
	cost = p.cost(nil)
	var try func(from int, chosen []int)
	try = func(from int, chosen []int) {
		for e := from; e < len(p.price); e++ {
			next := append(chosen, e)
			if c := p.cost(next); c < cost-1e-9 {
				set, cost = slices.Clone(next), c
			}
			if len(next) < mostTogether {
				try(e+1, next)
			}
		}
	}
	try(0, make([]int, 0, mostTogether))
	for better := true; better; {
		better = false
		for e := range p.price {
			if slices.Contains(set, e) {
				continue
			}
			for i := 0; i <= len(set); i++ { // the place of an element, or one more
				next := slices.Clone(set)
				if i < len(set) {
					next[i] = e
				} else {
					next = append(next, e)
				}
				if c := p.cost(next); c < cost-1e-9 {
					set, cost, better = next, c, true
				}
			}
		}
	}
	return set, cost
}

// claim finds the elements that together best explain the findings that stand alone. It assigns each of these findings
// to its element. Findings that have no element in common are examined separately. Parts beyond the bounds are left to
// the greedy choice.
func (g *Grouper) claim(items map[inference.Element][]*Alone) map[*Alone]inference.Element {
	type candidate struct {
		element inference.Element
		saves   float64
	}
	var all []candidate
	for e, list := range items {
		if s, takes := g.saves(e, list); s > 0 && len(takes) <= mostFindings {
			all = append(all, candidate{e, s})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.element.Compare(b.element) })
	claims := map[*Alone]inference.Element{}
	index := make(map[inference.Element]int, len(all))
	for i := range all {
		index[all[i].element] = i
	}
	done := make([]bool, len(all))
	for i := range all {
		if done[i] {
			continue
		}
		part, findings := []candidate{}, []*Alone{}
		in := map[*Alone]int{}
		queue := []int{i}
		done[i] = true
		for len(queue) > 0 {
			c := all[queue[0]]
			queue = queue[1:]
			part = append(part, c)
			for _, a := range items[c.element] {
				if _, known := in[a]; known || a.taken {
					continue
				}
				in[a] = len(findings)
				findings = append(findings, a)
				for _, f := range a.fits {
					if k, is := index[f.Element]; is && !done[k] {
						done[k] = true
						queue = append(queue, k)
					}
				}
			}
		}
		if len(part) < 2 || len(findings) > mostFindings {
			continue
		}
		slices.SortStableFunc(part, func(a, b candidate) int {
			if math.Abs(a.saves-b.saves) <= 1e-9 {
				return 0
			}
			return cmp.Compare(b.saves, a.saves)
		})
		part = first(part, mostCandidates)
		p := problem{alone: make([]float64, len(findings))}
		for k, a := range findings {
			p.alone[k] = a.alone
		}
		for _, c := range part {
			row, begun := slices.Repeat([]float64{math.Inf(1)}, len(findings)), g.begun(items[c.element])
			for _, a := range items[c.element] {
				if k, known := in[a]; known && a.begunWith(begun, c.element) {
					row[k] = a.misfit(c.element) + apart(a.before(begun))
				}
			}
			p.price, p.misfit = append(p.price, g.scene.price(c.element)), append(p.misfit, row)
		}
		set, _ := p.best()
		if len(set) < 2 { // one element has no rival
			continue
		}
		slices.Sort(set)
		for k, a := range findings {
			least := p.alone[k]
			for _, e := range set {
				if p.misfit[e][k] < least {
					least, claims[a] = p.misfit[e][k], part[e].element
				}
			}
		}
	}
	return claims
}
