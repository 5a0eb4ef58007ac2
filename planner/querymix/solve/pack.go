package solve

// item is a query in one of its widths, which a packet can carry.
type item struct {
	query, width int // by index
	bits         int
	need         float64 // of packets until the answer, relative to the goal, if every packet carried it
}

// pack finds the items that earn most together in a packet: at most one of each query, within the bits. It is a
// knapsack with groups, solved by dynamic programming over bits. Items come query by query; items that earn nothing
// stay out.
type pack struct {
	bits   int
	best   []float64 // by bits used at most
	choice [][]int16 // by group and bits: item, or none
	chosen []int16
}

const none = -1

func newPack(bits int) *pack { return &pack{bits: bits, best: make([]float64, bits+1)} }

// solve returns the profit, and the items. The result is valid until the next call.
func (k *pack) solve(items []item, profit []float64) (float64, []int16) {
	clear(k.best)
	groups := 0
	for from := 0; from < len(items); groups++ {
		to := from + 1
		for to < len(items) && items[to].query == items[from].query {
			to++
		}
		if groups == len(k.choice) {
			k.choice = append(k.choice, make([]int16, k.bits+1))
		}
		choice := k.choice[groups]
		for b := k.bits; b >= 0; b-- {
			choice[b] = none
			top := k.best[b]
			for i := from; i < to; i++ {
				if w := items[i].bits; w <= b && profit[i] > 0 && k.best[b-w]+profit[i] > top {
					top, choice[b] = k.best[b-w]+profit[i], int16(i)
				}
			}
			k.best[b] = top
		}
		from = to
	}
	k.chosen = k.chosen[:0]
	b := k.bits
	for g := groups - 1; g >= 0; g-- {
		if i := k.choice[g][b]; i != none {
			k.chosen = append(k.chosen, i)
			b -= items[i].bits
		}
	}
	return k.best[k.bits], k.chosen
}
