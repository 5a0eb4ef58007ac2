package detect

import "math"

// scale measures how far a contrast strays to one side when nothing is wrong.
type scale struct {
	square float32 // mean of squares
	tail   float32 // quantile that one window in a hundred exceeds
	excess float32 // mean of the excess of values above it
	seen   uint16  // windows that the mean of squares is of, up to more than matters
	beyond float32 // number of separate excesses that this is of, up to more than matters
}

const (
	enough     = 8192 // windows that more than fill any mean of squares
	beyondMost = 64   // windows that an excess is of at most

	tailShare  = .01         // of the windows beyond a tail quantile
	leastTail  = 2.33 * 2.33 // of the mean of squares, as a square: that of a normal law
	usualPart  = .16         // of the excess to the tail quantile, before any was seen: between those of the two laws below
	slowUp     = .5          // part of the steps of a tail quantile of a slow mean
	priorOf    = 8           // windows that this counts for
	shapeOf    = 4.9         // see limit
	excessMost = 3           // mean excesses that one counts for at most
	shapeMost  = 2.5
)

// learn takes the square of a contrast into what is usual. A side on which a hop was never seen to stray does not take
// the first value for what is usual there.
func (sc *scale) learn(square float32, b *contrast, judged, slowly bool) {
	rate := b.rate
	if sc.seen < enough {
		sc.seen++
		if r := 1 / float32(sc.seen); r > rate {
			rate = r
		}
	}
	most, gain := 9*sc.square, float32(1)
	if slowly {
		most, gain = b.cut*sc.square, b.gain
	}
	if sc.seen <= 30 {
		if least := b.floor * b.floor / 36; most < least {
			most = least
		}
	}
	if square > most && (judged || sc.seen > 30) {
		square = most
	}
	sc.square += rate * (gain*square - sc.square)
}

// stray takes a contrast into the tail; 0 is one to the other side.
func (sc *scale) stray(c float32, b *contrast, slowly bool) {
	least := max(leastTail*sc.square, 1e-6)
	if sc.tail == 0 { // of the first window that is judged
		sc.tail = sqrt(least)
		return
	}
	step := b.down
	if slowly {
		step = b.downSlowly
	}
	if c > sc.tail {
		if step = b.up; slowly {
			step = b.upSlowly
		}
		d := c - sc.tail
		if b.fast > 1 { // a slow mean that creeps away exceeds the tail by more and more
			d = min(d, excessMost*sc.part()*sc.tail)
		}
		sc.beyond = min(sc.beyond+b.weight, beyondMost)
		sc.excess += (d - sc.excess) * b.weight / sc.beyond
	}
	if tail := sc.tail * sc.tail; tail > least {
		step *= 1 - logRatio(tail, least)*(1./(2*8640))
	}
	sc.tail *= step
}

// limit returns the square of the limit of a contrast, for a false finding in the share of the windows in cfg. A
// Weibull tail through the tail quantile exceeds the limit in that share. Its shape follows from the mean excess. Let L
// = ln(1/share) / ln(1/tailShare). The limit of a normal law is L^.64 times the quantile, and that of an exponential
// law is L^1.1 times the quantile. Their mean excesses are .145 and .256 times the quantile. So the power is shapeOf
// times that part, a little more than 4.4, since both are estimates. The excesses of a slow mean are few and overlap,
// so that their mean is too low. So its part is that of a normal law at least.
//
// Load near one comes about once a day to ports at .5 to .7 whose load varies, and exceeds this tail. Means that cut
// single windows at three root mean squares leave 27 of 52 such findings. Then tails × 2 of 100 values are found in
// 0.85, 0.56 and 0.29 of the episodes, so the means take windows whole.
func (sc *scale) limit(cfg *Config, b *contrast, factor float32) float32 {
	l := sc.least() * float32(math.Exp(float64(min(shapeOf*max(sc.part(), b.part), shapeMost)*cfg.reach)))
	l *= l * factor
	if least := b.floor * b.floor; l < least {
		return least
	}
	return l
}

// part is the mean excess as a part of the tail quantile.
func (sc *scale) part() float32 {
	return (priorOf*usualPart + sc.beyond*sc.excess/sc.least()) / (priorOf + sc.beyond)
}

// least is the tail quantile, that of a normal law at least.
func (sc *scale) least() float32 { return max(sc.tail, 2.33*sqrt(sc.square), 1e-3) }

// near reports whether a contrast may be beyond half of its limit.
func (sc *scale) near(c float32) bool { return c > .6*sc.least() }

// contrastsOf is by how many independent ones the contrasts of a hop count, to both sides and of all statistics.
const contrastsOf = 8

// prepare computes how far the limits lie above tails.
func (c *Config) prepare() {
	if c.reachFor == c.Share {
		return
	}
	c.reachFor = c.Share
	share := min(max(c.Share, 1e-12), .05) / contrastsOf
	c.reach = float32(math.Log(math.Log(share) / math.Log(tailShare)))
}

// grave is the square of the difference of logarithms from which on a finding is grave.
func (c *Config) grave() float32 {
	g := logarithm(max(c.Grave, 1))
	return g * g
}
