package opt

// Sets is a partition of numbers into disjoint sets, of which each has a root (R. Tarjan, "Efficiency of a good but not
// linear set union algorithm", Journal of the ACM 22, 1975). Paths are halved, and sets united into the smaller root, so
// that the root is the least number of a set: O(log n) a call, mostly far less.
type Sets []int32

// NewSets has a set for each number from 0 to n-1.
func NewSets(n int) Sets { return Ascending[int32](n) }

// Root is the least number of the set that x is in.
func (s Sets) Root(x int32) int32 {
	for s[x] != x {
		s[x] = s[s[x]]
		x = s[x]
	}
	return x
}

// Unite makes one set of those of two numbers.
func (s Sets) Unite(a, b int32) {
	a, b = s.Root(a), s.Root(b)
	s[max(a, b)] = min(a, b)
}
