package kafka

import (
	"cmp"
	"slices"
)

// member is one of a group, with the partitions that it had before.
type member struct {
	id    string
	owned map[string][]int
}

// assign shares out the partitions of topics. For each topic, the counts of two members differ by at most one. A
// member keeps its partitions as far as that allows. The order of members does not matter.
func assign(topics map[string]int, members []member) map[string]map[string][]int {
	out := make(map[string]map[string][]int, len(members))
	if len(members) == 0 {
		return out
	}
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.id, b.id) })
	total := make([]int, len(members)) // of all topics
	for _, m := range members {
		out[m.id] = map[string][]int{}
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(topics[b], topics[a]), cmp.Compare(a, b)) })
	for _, topic := range names {
		n := topics[topic]
		each, more := n/len(members), n%len(members) // as many members have one more
		taken := make([]bool, n)
		count := make([]int, len(members))
		give := func(m, partition int) {
			taken[partition] = true
			id := members[m].id
			out[id][topic] = append(out[id][topic], partition)
			if count[m]++; count[m] == each+1 {
				more--
			}
			total[m]++
		}
		for m := range members {
			for _, p := range members[m].owned[topic] {
				if p >= 0 && p < n && !taken[p] && (count[m] < each || count[m] == each && more > 0) {
					give(m, p)
				}
			}
		}
		for p := range n {
			if taken[p] {
				continue
			}
			best := 0
			for m := range members {
				if cmp.Or(cmp.Compare(count[m], count[best]), cmp.Compare(total[m], total[best])) < 0 {
					best = m
				}
			}
			give(best, p)
		}
		for _, parts := range out {
			slices.Sort(parts[topic])
		}
	}
	return out
}
