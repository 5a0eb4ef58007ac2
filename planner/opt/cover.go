package opt

import (
	"math"
	"slices"
)

// CoverConfig is the input of [Cover] beside the sets.
type CoverConfig struct {
	Elements int
	// Separate is set if the chosen sets must separate elements. A set separates two elements if it has exactly one of them.
	// Pairs that no set separates, and pairs of elements of no set, are exempt.
	Separate bool
	Rounds   int // of the search for fewer sets
	Seed     uint64
}

// Cover chooses few of the sets, whose elements are numbers from 0. The chosen sets together have every element of all
// sets. No choice has fewer sets than bound. The bound follows from prices of the elements of which no set has more
// than 1 in total. A choice of bound sets is a minimum set cover. The search starts greedily (V. Chvátal, Math. Oper.
// Res. 4, 1979). It then drops some sets at random and covers their elements again.
func Cover(sets [][]int32, cfg CoverConfig) (chosen []int32, bound int) {
	c := coverer{sets: sets, separate: cfg.Separate, class: make([]int32, cfg.Elements), rng: SplitMix(cfg.Seed)}
	c.count = make([]int32, cfg.Elements+2)
	c.moved = make([]int32, cfg.Elements+2)
	c.reset()
	for i := range sets {
		c.add(int32(i))
	}
	c.goal, c.covered = len(c.size), cfg.Elements-int(c.size[0])
	bound = c.bound()
	chosen = c.fill(nil)
	for range cfg.Rounds {
		if len(chosen) <= bound {
			break
		}
		next := slices.Clone(chosen)
		c.rng.Shuffle(next)
		next = next[:len(next)-1-c.rng.Below(min(len(next), 4+len(next)/8))]
		if next = c.fill(next); len(next) <= len(chosen) {
			chosen = next
		}
	}
	slices.Sort(chosen)
	return chosen, min(bound, len(chosen))
}

// coverer holds a partition of the elements. Class 0 has the elements of no chosen set. With separation, each other
// class has the elements of the same chosen sets.
type coverer struct {
	sets          [][]int32
	separate      bool
	class         []int32 // by element
	size          []int32 // by class
	goal, covered int     // classes and covered elements with all sets
	count, moved  []int32 // by class: elements of the set at hand; the class that they go to
	touched       []int32
	rng           SplitMix
}

func (c *coverer) reset() {
	clear(c.class)
	c.size = append(c.size[:0], int32(len(c.class)))
}

// look counts the elements of a set by class.
func (c *coverer) look(set int32) {
	c.touched = c.touched[:0]
	for _, e := range c.sets[set] {
		k := c.class[e]
		if c.count[k] == 0 {
			c.touched = append(c.touched, k)
		}
		c.count[k]++
	}
}

// splits reports whether the elements of the set at hand leave a class that they touch.
func (c *coverer) splits(k int32) bool {
	return k == 0 || c.separate && c.count[k] < c.size[k]
}

// gain is how much of what is left to do a set does.
func (c *coverer) gain(set int32) (sum float64) {
	c.look(set)
	for _, k := range c.touched {
		n, all := float64(c.count[k]), float64(c.size[k])
		switch {
		case !c.separate:
			if k == 0 {
				sum += n
			}
		case c.splits(k): // by the entropy of the partition
			sum += all*math.Log(all) - n*math.Log(n)
			if n < all {
				sum -= (all - n) * math.Log(all-n)
			}
			if k == 0 {
				sum += n
			}
		}
		c.count[k] = 0
	}
	return sum
}

// add chooses a set.
func (c *coverer) add(set int32) {
	c.look(set)
	for _, k := range c.touched {
		c.moved[k] = k
		if !c.splits(k) {
			continue
		}
		if k == 0 && !c.separate {
			if len(c.size) == 1 {
				c.size = append(c.size, 0)
			}
			c.moved[k] = 1
		} else {
			c.moved[k] = int32(len(c.size))
			c.size = append(c.size, 0)
		}
	}
	for _, e := range c.sets[set] {
		from := c.class[e]
		if to := c.moved[from]; to != from && c.count[from] > 0 {
			c.class[e] = to
			c.size[from]--
			c.size[to]++
		}
	}
	for _, k := range c.touched {
		c.count[k] = 0
	}
}

// done reports whether nothing is left to do.
func (c *coverer) done() bool {
	return len(c.class)-int(c.size[0]) == c.covered && len(c.size) >= c.goal
}

// does reports whether a choice without the one at a place does all.
func (c *coverer) does(chosen []int32, without int) bool {
	c.reset()
	for i, set := range chosen {
		if i != without {
			c.add(set)
		}
	}
	return c.done()
}

// fill adds sets to a choice until it does all, the one that does most first, and drops what is not needed then.
func (c *coverer) fill(chosen []int32) []int32 {
	c.reset()
	for _, set := range chosen {
		c.add(set)
	}
	for !c.done() {
		best, most, same := int32(-1), 0.0, 0
		for i := range c.sets {
			switch g := c.gain(int32(i)); {
			case g > most:
				best, most, same = int32(i), g, 1
			case g == most && g > 0:
				if same++; c.rng.Below(same) == 0 {
					best = int32(i)
				}
			}
		}
		if best < 0 {
			break
		}
		c.add(best)
		chosen = append(chosen, best)
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		if c.does(chosen, i) {
			chosen = slices.Delete(chosen, i, i+1)
		}
	}
	return chosen
}

// boundSweeps is the number of sweeps of the programme whose prices give a bound. boundRest is the number of them
// between two averages.
const boundSweeps, boundRest = 4000, 100

// bound is less than or equal to the number of sets of any choice.
func (c *coverer) bound() int {
	b := make([]float64, len(c.class))
	for e := range b {
		if c.class[e] > 0 {
			b[e] = 1
		}
	}
	lp := NewLP(b)
	ones := make([]float64, len(c.class))
	for i := range ones {
		ones[i] = 1
	}
	longest, classes := 0, map[int32]bool{}
	for _, set := range c.sets {
		if len(set) > 0 {
			lp.Add(set, ones[:len(set)], 1, 0)
		}
		clear(classes)
		for _, e := range set {
			classes[c.class[e]] = true
		}
		longest = max(longest, len(classes))
	}
	best := 0.0
	for sweep := 1; sweep <= boundSweeps && len(lp.costs) > 0; sweep++ {
		lp.Sweep()
		if sweep%boundRest == 0 {
			lp.Average()
			best = max(best, c.worth(lp.Prices, b))
		}
	}
	least := int(math.Ceil(best - 1e-6))
	if c.separate && longest > 0 {
		// Of n sets at most n classes are those of one set alone. Each other class is in two sets or more, and a set is
		// in at most longest classes.
		least = max(least, (2*(c.goal-1)+longest)/(longest+1))
	}
	return least
}

// worth is the sum of the prices of elements, which are made so small that those of no set are more than 1.
func (c *coverer) worth(prices, b []float64) float64 {
	sum, most := 0.0, 0.0
	for e, p := range prices {
		sum += p * b[e]
	}
	for _, set := range c.sets {
		of := 0.0
		for _, e := range set {
			of += prices[e]
		}
		most = max(most, of)
	}
	if most == 0 {
		return 0
	}
	return sum / most
}
