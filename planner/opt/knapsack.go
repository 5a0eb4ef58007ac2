package opt

import "slices"

// Knapsack finds the most valuable set of items that fits into a room, by branch and bound over the items by falling value per size. Its
// bound is the value of the relaxation that may cut one item (G. Dantzig, "Discrete-variable extremum problems", Operations Research 5,
// 1957). It keeps its memory between answers.
type Knapsack struct {
	Split   bool // an item may be cut, so that the relaxation is the problem
	Items   []int32
	value   []int64
	size    []int64
	density []float64
	in, top []bool
	Part    []float64 // of the last answer, by position in items; a fraction where items may be cut
	best    int64
	nodes   int
}

// maxKnapsackNodes bounds the tree of one knapsack.
const maxKnapsackNodes = 4096

// Solve returns an upper bound of the value of any set of items that fits into room. It is the value of the best set
// unless the tree has more than 4096 nodes. Where the bound is not above floor it may be any number up to floor, and no
// set is made. The set is in Items and Part. The slices size and value are by item. O(n²) for n items, besides the
// tree.
func (k *Knapsack) Solve(items []int32, room, floor int64, size, value []int64) int64 {
	k.Items = k.Items[:0]
	var worth, volume int64
	for _, i := range items {
		if u := value[i]; u > 0 && (k.Split || size[i] <= room) {
			k.Items = append(k.Items, i)
			worth += u
			volume += size[i]
		}
	}
	if worth <= floor || room <= 0 {
		return min(worth, floor)
	}
	k.Part = k.Part[:0]
	if volume <= room {
		for range k.Items {
			k.Part = append(k.Part, 1)
		}
		return worth
	}
	k.value, k.size, k.density = k.value[:0], k.size[:0], k.density[:0]
	for n, i := range k.Items { // insertion sort: mostly they are few
		u, d := value[i], size[i]
		r := float64(u) / float64(d)
		k.value, k.size, k.density = append(k.value, u), append(k.size, d), append(k.density, r)
		for ; n > 0 && k.density[n-1] < r; n-- {
			k.Items[n], k.value[n], k.size[n], k.density[n] = k.Items[n-1], k.value[n-1], k.size[n-1], k.density[n-1]
		}
		k.Items[n], k.value[n], k.size[n], k.density[n] = i, u, d, r
	}
	relaxed := k.relaxed(0, 0, room)
	if relaxed <= floor {
		return floor
	}
	if k.Split {
		for n := range k.Items {
			d := min(k.size[n], room)
			k.Part = append(k.Part, float64(d)/float64(k.size[n]))
			room -= d
		}
		return relaxed
	}
	n := len(k.Items)
	k.in, k.top = append(k.in[:0], make([]bool, n)...), append(k.top[:0], make([]bool, n)...)
	k.best, k.nodes = 0, 0
	k.descend(0, 0, room)
	for _, in := range k.top {
		if in {
			k.Part = append(k.Part, 1)
		} else {
			k.Part = append(k.Part, 0)
		}
	}
	if k.nodes > maxKnapsackNodes {
		return relaxed
	}
	return k.best
}

// relaxed bounds the value of items n and later in the room, on top of value.
func (k *Knapsack) relaxed(n int, value, room int64) int64 {
	for ; n < len(k.Items); n++ {
		if k.size[n] > room {
			return value + int64(float64(room)*k.density[n]) + 1 // rounding is below one
		}
		room -= k.size[n]
		value += k.value[n]
	}
	return value
}

func (k *Knapsack) descend(n int, value, room int64) {
	if value > k.best {
		k.best = value
		copy(k.top, k.in)
	}
	if k.nodes++; n == len(k.Items) || k.nodes > maxKnapsackNodes || k.relaxed(n, value, room) <= k.best {
		return
	}
	if k.size[n] <= room {
		k.in[n] = true
		k.descend(n+1, value+k.value[n], room-k.size[n])
		k.in[n] = false
	}
	k.descend(n+1, value, room)
}

// FractionalKnapsack is an upper bound of the value of items that fit into room, with at most count copies of each.
// Copies may be cut (Dantzig, 1957), so that it is the bound of the relaxation, rounded up. The slices value, size and
// count are indexed by item. O(n log n).
func FractionalKnapsack(items []int32, value, size []int64, count []int32, room int64) (sum int64) {
	// Few items mostly have a value; those that fit one by one are whole numbers.
	type entry struct {
		density float64
		i       int32
	}
	list := make([]entry, 0, len(items))
	all := int64(0)
	for _, i := range items {
		if value[i] > 0 && count[i] > 0 {
			list = append(list, entry{float64(value[i]) / float64(size[i]), i})
			all += size[i] * int64(count[i])
		}
	}
	if all > room {
		slices.SortFunc(list, func(a, b entry) int {
			switch {
			case a.density > b.density:
				return -1
			case a.density < b.density:
				return 1
			}
			return int(a.i - b.i)
		})
	}
	for _, e := range list {
		volume := size[e.i] * int64(count[e.i])
		if volume <= room {
			room -= volume
			sum += value[e.i] * int64(count[e.i])
			continue
		}
		return sum + int64(float64(room)*e.density*(1+1e-12)) + 1
	}
	return sum
}
