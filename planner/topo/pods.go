package topo

import (
	"fmt"
	"slices"
	"strconv"
)

// Pods numbers, from 1, what holds together without the cores and has an aggregation switch, in the order of the lowest
// nodes. Leaves that are linked to cores alone are in no pod.
func (g *Graph) Pods() []int {
	pods := make([]int, g.NumNodes())
	seen := make([]bool, g.NumNodes())
	count := 0
	for v := range pods {
		if seen[v] || !g.inPod(v) {
			continue
		}
		seen[v] = true
		members, fabric := []int{v}, false
		for at := 0; at < len(members); at++ {
			u := members[at]
			fabric = fabric || g.Tier(u) == Aggregation
			lo, hi := g.Interfaces(u)
			for i := lo; i < hi; i++ {
				if w := g.Neighbor(i); w >= 0 && !seen[w] && g.inPod(w) {
					seen[w] = true
					members = append(members, w)
				}
			}
		}
		if !fabric {
			continue
		}
		count++
		for _, u := range members {
			pods[u] = count
		}
	}
	return pods
}

func (g *Graph) inPod(v int) bool {
	return !g.Host(v) && (g.Tier(v) == Edge || g.Tier(v) == Aggregation)
}

// Planes numbers, from 1, the cores that have the same neighbours, in the order of the lowest cores. Where most cores have
// neighbours of their own there are no planes.
func (g *Graph) Planes() []int {
	planes, by, cores := make([]int, g.NumNodes()), map[string]int{}, 0
	for v := range planes {
		if g.Tier(v) != Core {
			continue
		}
		cores++
		var to []int
		lo, hi := g.Interfaces(v)
		for i := lo; i < hi; i++ {
			if w := g.Neighbor(i); w >= 0 {
				to = append(to, w)
			}
		}
		slices.Sort(to)
		key := fmt.Sprint(to)
		if by[key] == 0 {
			by[key] = len(by) + 1
		}
		planes[v] = by[key]
	}
	if 2*len(by) > cores {
		clear(planes)
	}
	return planes
}

// IDs are the node ids of a graph in reports. They are the names if all of these are numbers, and otherwise numbers
// from 0 in the order of the file.
func (g *Graph) IDs() (ids []uint32, numbers bool) {
	named, counted := make([]uint32, g.NumNodes()), make([]uint32, g.NumNodes())
	all := true
	for i := range named {
		id, err := strconv.ParseUint(g.NodeName(i), 10, 32)
		named[i], counted[i] = uint32(id), uint32(i)
		all = all && err == nil
	}
	if all {
		return named, true
	}
	return counted, false
}
