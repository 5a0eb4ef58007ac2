package solve

// one is the unit of prices: they are whole multiples of 1/one, so that sums of them are exact and a bound is proven.
const one = 1 << 32

// knapsack finds the most valuable set of interfaces that fits into a flow, by branch and bound over the items by
// falling value per size, with the value of the relaxation that may cut one item as bound (Dantzig, 1957).
type knapsack struct {
	split   bool // an item may be cut, so that the relaxation is the problem
	items   []int32
	value   []int64
	size    []int64
	density []float64
	in, top []bool
	part    []float64 // of the last answer, by position in items; a fraction where items may be cut
	best    int64
	nodes   int
}

// maxKnapsackNodes bounds the tree of one knapsack.
const maxKnapsackNodes = 4096

// solve gives an upper bound of the value of any set of the interfaces in path that fits into room, which is the value
// of the best set unless the tree is too large. Where the bound is not above floor it may be any number up to floor, and
// no set is made. The set is in items and part.
func (k *knapsack) solve(path []int32, room, floor int64, demand, price []int64) int64 {
	k.items = k.items[:0]
	var value, size int64
	for _, i := range path {
		if u := price[i]; u > 0 && (k.split || demand[i] <= room) {
			k.items = append(k.items, i)
			value += u
			size += demand[i]
		}
	}
	if value <= floor || room <= 0 {
		return min(value, floor)
	}
	k.part = k.part[:0]
	if size <= room {
		for range k.items {
			k.part = append(k.part, 1)
		}
		return value
	}
	k.value, k.size, k.density = k.value[:0], k.size[:0], k.density[:0]
	for n, i := range k.items { // insertion sort: paths are short
		u, d := price[i], demand[i]
		r := float64(u) / float64(d)
		k.value, k.size, k.density = append(k.value, u), append(k.size, d), append(k.density, r)
		for ; n > 0 && k.density[n-1] < r; n-- {
			k.items[n], k.value[n], k.size[n], k.density[n] = k.items[n-1], k.value[n-1], k.size[n-1], k.density[n-1]
		}
		k.items[n], k.value[n], k.size[n], k.density[n] = i, u, d, r
	}
	relaxed := k.relaxed(0, 0, room)
	if relaxed <= floor {
		return floor
	}
	if k.split {
		for n := range k.items {
			d := min(k.size[n], room)
			k.part = append(k.part, float64(d)/float64(k.size[n]))
			room -= d
		}
		return relaxed
	}
	n := len(k.items)
	k.in, k.top = append(k.in[:0], make([]bool, n)...), append(k.top[:0], make([]bool, n)...)
	k.best, k.nodes = 0, 0
	k.descend(0, 0, room)
	for _, in := range k.top {
		if in {
			k.part = append(k.part, 1)
		} else {
			k.part = append(k.part, 0)
		}
	}
	if k.nodes > maxKnapsackNodes {
		return relaxed
	}
	return k.best
}

// relaxed bounds the value of items n and later in the room, on top of value.
func (k *knapsack) relaxed(n int, value, room int64) int64 {
	for ; n < len(k.items); n++ {
		if k.size[n] > room {
			return value + int64(float64(room)*k.density[n]) + 1 // rounding is below one
		}
		room -= k.size[n]
		value += k.value[n]
	}
	return value
}

func (k *knapsack) descend(n int, value, room int64) {
	if value > k.best {
		k.best = value
		copy(k.top, k.in)
	}
	if k.nodes++; n == len(k.items) || k.nodes > maxKnapsackNodes || k.relaxed(n, value, room) <= k.best {
		return
	}
	if k.size[n] <= room {
		k.in[n] = true
		k.descend(n+1, value+k.value[n], room-k.size[n])
		k.in[n] = false
	}
	k.descend(n+1, value, room)
}
