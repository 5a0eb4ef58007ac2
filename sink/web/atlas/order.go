package atlas

import (
	"cmp"
	"slices"
)

// Spot is what the order of rows and columns depends on: the place of a node in a fabric, where it has one.
type Spot struct {
	Tier       int // of a fabric, from its edge: 1, 2, 3; 0 elsewhere
	Pod, Plane int
}

// Order returns the numbers of nodes in an order that keeps neighbours near each other. Switches of a fabric stand by
// pods, the edge of each before its aggregation, and cores behind them by planes. Other nodes follow in the order of
// Cuthill and McKee (ACM National Conference 1969): breadth first from a node of the least degree, neighbours of small
// degree first. Directions are pairs of numbers of nodes. It takes O(n log n + m log m) steps.
func Order(spots []Spot, directions [][2]int) []int {
	near := make([][]int, len(spots))
	for _, d := range directions {
		near[d[0]] = append(near[d[0]], d[1])
		near[d[1]] = append(near[d[1]], d[0])
	}
	for i := range near {
		slices.Sort(near[i])
		near[i] = slices.Compact(near[i])
	}
	byDegree := func(a, b int) int { return cmp.Or(cmp.Compare(len(near[a]), len(near[b])), cmp.Compare(a, b)) }
	var fabric, others []int
	for i := range spots {
		if spots[i].Tier > 0 {
			fabric = append(fabric, i)
		} else {
			others = append(others, i)
		}
	}
	slices.SortFunc(fabric, func(a, b int) int {
		x, y := spots[a], spots[b]
		return cmp.Or(cmp.Compare(x.Tier/3, y.Tier/3), cmp.Compare(x.Pod, y.Pod), cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Plane, y.Plane), cmp.Compare(a, b))
	})
	order, placed := fabric, make([]bool, len(spots))
	for _, i := range fabric {
		placed[i] = true
	}
	slices.SortFunc(others, byDegree)
	for _, first := range others {
		if placed[first] {
			continue
		}
		placed[first] = true
		order = append(order, first)
		for at := len(order) - 1; at < len(order); at++ {
			next := slices.Clone(near[order[at]])
			slices.SortFunc(next, byDegree)
			for _, j := range next {
				if !placed[j] {
					placed[j] = true
					order = append(order, j)
				}
			}
		}
	}
	return order
}
