package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Members come and go; every partition always has one owner, all have their share, and no member loses a partition that it could have
// kept.
func TestAssign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	topics := map[string]int{"windows": 16, "reports": 16, "series": 1}
	owned := map[string]map[string][]int{}
	for round := range 200 {
		var members []member
		n := 1 + rng.IntN(20)
		for i := range n {
			id := fmt.Sprint("member-", i)
			members = append(members, member{id, owned[id]})
		}
		rng.Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
		got := assign(topics, members)
		for topic, count := range topics {
			owners := make([]int, count)
			low, high, kept, could := count, 0, 0, 0
			for _, m := range members {
				mine := got[m.id][topic]
				low, high = min(low, len(mine)), max(high, len(mine))
				for _, p := range mine {
					owners[p]++
					for _, q := range m.owned[topic] {
						if p == q {
							kept++
						}
					}
				}
				could += min(len(m.owned[topic]), count/n)
			}
			for p, k := range owners {
				if k != 1 {
					t.Fatalf("round %d: %s/%d has %d owners: %v", round, topic, p, k, got)
				}
			}
			if high-low > 1 {
				t.Errorf("round %d: shares of %s from %d to %d", round, topic, low, high)
			}
			if kept < could {
				t.Errorf("round %d: %d partitions of %s stayed, %d could", round, kept, topic, could)
			}
		}
		owned = got
	}
	// What members say of themselves is not believed.
	got := assign(map[string]int{"a": 2}, []member{{"x", map[string][]int{"a": {-1, 7, 1, 1}, "b": {0}}}, {"y", map[string][]int{"a": {1}}}})
	if fmt.Sprint(got) != "map[x:map[a:[1]] y:map[a:[0]]]" {
		t.Errorf("with false claims: %v", got)
	}
}
