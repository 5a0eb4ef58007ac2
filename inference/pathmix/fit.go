package pathmix

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// column is a possible part of a mixture: a path, a path with some hops that differ from the links, or chance. It has
// the likelihood of each packet's digest.
type column struct {
	path    []uint16
	unknown uint64   // hops that can be any node, also one outside the model; all of them for chance
	packets []uint16 // whose digests have a likelihood above 0,
	parts   []uint8  // and how many instances of each are no evidence, each of a likelihood of 2⁻ᵇ; nil for none of any packet
	price   float64  // what the column has to add to the logarithm of the likelihood to be in a mixture
}

// real reports whether the column is a path that can be published.
func (c *column) real() bool { return c.unknown == 0 }

// member is a column of a mixture, with its share.
type member struct {
	*column
	share float64
}

// mixture is a set of columns with the shares that fit best.
type mixture struct {
	members []member
	log     float64 // logarithm of the likelihood
	bound   float64 // its greatest value with these columns
}

func (x *mixture) score() float64 {
	s := x.log
	for i := range x.members {
		s -= x.members[i].price
	}
	return s
}

func (x *mixture) has(c *column) bool {
	return slices.ContainsFunc(x.members, func(m member) bool { return m.column == c })
}

// without is the mixture less a column, whose share goes to the others.
func (x *mixture) without(c *column) *mixture {
	y := &mixture{}
	for _, m := range x.members {
		if m.column != c {
			y.members = append(y.members, m)
		}
	}
	y.normalise()
	return y
}

// normalise makes the shares add up to 1. Chance keeps a little of them, so that no digest is impossible.
func (x *mixture) normalise() {
	sum := 0.0
	for i := range x.members {
		if m := &x.members[i]; m.unknown == ^uint64(0) {
			m.share = max(m.share, leastChance)
		}
		sum += x.members[i].share
	}
	for i := range x.members {
		if sum > 0 {
			x.members[i].share /= sum
		} else {
			x.members[i].share = 1 / float64(len(x.members))
		}
	}
}

// fitter fits mixtures to the digests of packets with the same number of hops.
type fitter struct {
	n       int
	power   [16]float64 // of 2⁻ᵇ
	columns []*column   // chance is the first
	density []float64   // of each packet under the mixture
	inverse []float64
	grown   []float64 // by member
	kept    []float64
}

// weigh computes the likelihood of each packet under a mixture, and the logarithm of their product.
func (f *fitter) weigh(x *mixture) float64 {
	clear(f.density)
	for i := range x.members {
		c, s := x.members[i].column, x.members[i].share
		if c.parts == nil {
			for _, p := range c.packets {
				f.density[p] += s
			}
			continue
		}
		for j, p := range c.packets {
			f.density[p] += s * f.power[c.parts[j]&15]
		}
	}
	sum, product := 0.0, 1.0
	for i, d := range f.density {
		f.inverse[i] = 1 / d
		if product *= d; i&7 == 7 { // eight of them are above 10⁻³⁰⁰
			sum += math.Log(product)
			product = 1
		}
	}
	return sum + math.Log(product)
}

// slope is how much faster than it costs the likelihood grows with the share of a column: n for one that is worth its
// share.
func (f *fitter) slope(c *column) (sum float64) {
	if c.parts == nil {
		for _, p := range c.packets {
			sum += f.inverse[p]
		}
		return sum
	}
	for j, p := range c.packets {
		sum += f.power[c.parts[j]&15] * f.inverse[p]
	}
	return sum
}

// climb finds the shares that fit best, by expectation and maximisation with steps that are stretched as long as that
// helps. It ends when the possible gain is less than gain, or after some rounds. It also ends when the likelihood is
// sure to stay below worth or reaches enough.
func (f *fitter) climb(x *mixture, gain, worth, enough float64, rounds int) {
	x.log = f.weigh(x)
	stretch := 1.0
	for range rounds {
		f.grown, f.kept = f.grown[:0], f.kept[:0]
		most := 0.0
		for i := range x.members {
			g := f.slope(x.members[i].column) / float64(f.n)
			f.grown, f.kept = append(f.grown, g), append(f.kept, x.members[i].share)
			most = max(most, g)
		}
		x.bound = x.log + float64(f.n)*math.Log(max(most, 1))
		if x.bound-x.log < gain || x.bound < worth || x.log >= enough {
			return
		}
		for i := range x.members {
			x.members[i].share *= math.Pow(f.grown[i], stretch)
		}
		x.normalise()
		if log := f.weigh(x); log >= x.log || stretch == 1 {
			x.log = log
			stretch = min(stretch*1.3, 8)
			continue
		}
		for i := range x.members { // too far
			x.members[i].share = f.kept[i] * f.grown[i]
		}
		stretch = 1
		x.log = f.weigh(x)
	}
}

const (
	leastChance = 1e-9 // share of packets whose digest comes from nowhere

	slack     = .05 // what may be left to gain when a fit ends, in natural logarithms
	maxRounds = 40  // columns are added so often,
	perRound  = 8   // so many at a time
	maxActive = 160 // columns of a mixture before it is pruned
)

// fit finds the mixture of all columns but some that makes the digests most likely, beginning with a mixture. It ends
// early when it can no longer reach a likelihood that is worth the work.
func (f *fitter) fit(x *mixture, leave *column, worth float64) {
	if !x.has(f.columns[0]) {
		x.members = append(x.members, member{f.columns[0], .01})
	}
	x.normalise()
	type gain struct {
		c     *column
		slope float64
	}
	for range maxRounds {
		f.climb(x, slack, worth, math.Inf(1), 60)
		x.members = slices.DeleteFunc(x.members, func(m member) bool {
			return m.share < 1e-3/float64(f.n) && m.column != f.columns[0]
		})
		f.weigh(x)
		var best []gain
		most := float64(f.n)
		for _, c := range f.columns {
			if c == leave {
				continue
			}
			s := f.slope(c)
			most = max(most, s)
			if s > float64(f.n)+slack && !x.has(c) {
				best = append(best, gain{c, s})
			}
		}
		x.bound = x.log + float64(f.n)*math.Log(most/float64(f.n))
		if len(best) == 0 || most < float64(f.n)+2*slack || x.bound < worth || len(x.members) > maxActive {
			return
		}
		slices.SortStableFunc(best, func(a, b gain) int { return cmp.Compare(b.slope, a.slope) })
		for _, b := range best[:min(len(best), perRound)] {
			x.members = append(x.members, member{b.c, .02})
		}
		x.normalise()
	}
}

// prune takes columns out of a mixture as long as that makes it more likely, the price of columns considered.
func (f *fitter) prune(x *mixture) {
	none, any := math.Inf(-1), math.Inf(1)
	f.climb(x, slack, none, any, 200)
	needed := map[*column]bool{f.columns[0]: true}
	for {
		var least *member
		for i := range x.members {
			if m := &x.members[i]; !needed[m.column] && (least == nil || m.share/(m.price+1) < least.share/(least.price+1)) {
				least = m
			}
		}
		if least == nil {
			f.climb(x, slack, none, any, 200)
			return
		}
		floor := x.log - least.price
		y := x.without(least.column)
		if f.climb(y, slack, floor, floor, 200); y.log < floor {
			needed[least.column] = true
			continue
		}
		f.climb(y, slack, none, any, 50)
		*x = *y
		needed = map[*column]bool{f.columns[0]: true}
	}
}

// listed lists the members of a set of packets.
func listed(set []uint64) []uint16 {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	list := make([]uint16, 0, n)
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			list = append(list, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return list
}
