package pint

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Nearest as the rnd of Encode turns randomised rounding off: the result is the nearer level.
const Nearest = 1 << 31

// CodeKind is the spacing of a code's levels.
type CodeKind uint8

// The kinds of codes.
const (
	// Multiplicative levels differ by the factor (1+ε)², as in the paper. A value is at most the factor 1+ε away from
	// the nearer of its two.
	Multiplicative CodeKind = iota
	// LogLinear levels have distances that are powers of two, the largest with which neighbours still differ by no
	// more than (1+ε)². They need up to 1.44 times as many codes as Multiplicative. A switch neither multiplies nor
	// divides: it looks up the prefix of the value, shifts the random number and compares.
	LogLinear
	// Additive levels are Δ apart.
	Additive
)

var codeKinds = [...]string{Multiplicative: "multiplicative", LogLinear: "log-linear", Additive: "additive"}

func (k CodeKind) String() string {
	if int(k) < len(codeKinds) {
		return codeKinds[k]
	}
	return fmt.Sprintf("code kind %d", uint8(k))
}

// MarshalText is for plans in files.
func (k CodeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (k *CodeKind) UnmarshalText(text []byte) error {
	i := slices.Index(codeKinds[:], string(text))
	if i < 0 {
		return fmt.Errorf("pint: code %q: want one of %q", text, codeKinds)
	}
	*k = CodeKind(i)
	return nil
}

// CodeConfig describes a code. Encoders and decoders that have the same CodeConfig understand each other: levels are
// made with integer arithmetic and are the same on every machine.
type CodeConfig struct {
	Kind CodeKind `json:"kind" yaml:"kind"`
	Bits int      `json:"bits" yaml:"bits"` // 1 to 16

	// Unit is the smallest level above 0; 0 means 1. It is Δ of an additive code, and a power of two if LogLinear.
	Unit uint64 `json:"unit,omitempty" yaml:"unit,omitempty"`

	// Epsilon is ε of a multiplicative or log-linear code.
	Epsilon float64 `json:"epsilon,omitempty" yaml:"epsilon,omitempty"`

	// Max replaces Epsilon, or Unit if Additive: the code is the finest one whose last level is Max or more.
	Max uint64 `json:"max,omitempty" yaml:"max,omitempty"`
}

// maxCodeBits bounds the tables.
const maxCodeBits = 16

// Levels is a [Code] whose codes stand for integers, its levels, in ascending order; code 0 stands for 0: PINT section
// 4.3, "approximating the values". It is immutable and safe for concurrent use.
//
// A value v between neighbouring levels lo and hi is rounded up if v - lo > ⌊(hi - lo)·rnd / 2³²⌋. The probability of
// that is p = (v - lo)/(hi - lo), rounded up to a multiple of 2⁻³². The expected level is therefore v. This is exact
// if hi - lo is a power of two up to 2³². Otherwise the expected level is above v by less than (hi - lo)·2⁻³². The
// error of one value is smaller than hi - lo and has the standard deviation √((v - lo)(hi - v)) ≤ (hi - lo)/2. For
// neighbours (1+ε)² apart that is less than (2ε+ε²)·v, and at most ε·v.
//
// Section 4.3 of the paper (example 3) rounds so that the expected code is the logarithm of the value. The mean of
// the values that codes stand for is then above the value. Here the mean of the value is kept, not that of its
// logarithm. If codes of several switches meet in one digest (max along the path), all should round by the same hash
// of the packet id. Rounding is monotone in the value, so that the largest code is that of the largest value, and
// unbiased, too. With independent random numbers the maximum would be too large: it is that of the switch with the
// luckiest draw.
//
// In P4, the look-up of the code below v is a table with a range or, if LogLinear, a prefix of v as key. Its entry
// holds the code, lo, and the width of the random number: see [Levels.Level].
type Levels struct {
	config CodeConfig
	ratio  uint64   // of neighbours, 32.32 fixed point; Multiplicative
	levels []uint64 // by code
	values []float64

	// Values in cells of a floating-point number with few mantissa bits: first[cell] is the code below the smallest of
	// them.
	mantissa uint
	first    []uint16
}

// NewCode makes a code ready.
func NewCode(c CodeConfig) (*Levels, error) {
	l := &Levels{config: c}
	if err := l.check(); err != nil {
		return nil, err
	}
	l.config.Unit = max(l.config.Unit, 1)
	switch c.Kind {
	case Multiplicative:
		l.multiplicative()
	case LogLinear:
		l.logLinear()
	case Additive:
		l.additive()
	}
	if last := l.levels[len(l.levels)-1]; last < c.Max {
		return nil, fmt.Errorf("pint: %s code of %d bits from %d: the last level is %d, want %d", c.Kind, c.Bits, l.config.Unit, last, c.Max)
	}
	l.index()
	return l, nil
}

func (l *Levels) check() error {
	c := &l.config
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("pint: "+format, args...)) }
	if int(c.Kind) >= len(codeKinds) {
		bad("%v: unknown", c.Kind)
	}
	if c.Bits < 1 || c.Bits > maxCodeBits {
		bad("code of %d bits: want 1 to %d", c.Bits, maxCodeBits)
	}
	switch {
	case c.Kind == Additive:
		if c.Epsilon != 0 {
			bad("additive code with epsilon %v: its error is the unit", c.Epsilon)
		}
		if c.Max != 0 && c.Unit != 0 {
			bad("additive code with unit %d and maximum %d: one gives the other", c.Unit, c.Max)
		}
	case c.Max != 0 && c.Epsilon != 0:
		bad("%v code with epsilon %v and maximum %d: one gives the other", c.Kind, c.Epsilon, c.Max)
	case c.Max == 0 && !(c.Epsilon >= 1e-6 && c.Epsilon <= 1000):
		bad("%v code with epsilon %v: want 1e-6 to 1000, or a maximum", c.Kind, c.Epsilon)
	}
	if c.Kind == LogLinear && c.Unit&(c.Unit-1) != 0 {
		bad("log-linear code with unit %d: want a power of two", c.Unit)
	}
	return errors.Join(problems...)
}

// multiplicative makes levels u, ⌊ru⌋, ⌊r⌊ru⌋⌋ …, or one more than the one before where that is more.
func (l *Levels) multiplicative() {
	c := &l.config
	if c.Max == 0 {
		l.ratio = uint64(float64((1+c.Epsilon)*(1+c.Epsilon)) * (1 << 32))
		l.levels = l.powers(l.ratio)
		return
	}
	lo, hi := uint64(1<<32), uint64(math.MaxUint64) // the smallest ratio that reaches the maximum is in (lo, hi]
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if p := l.powers(mid); p[len(p)-1] >= c.Max {
			hi = mid
		} else {
			lo = mid
		}
	}
	l.ratio = hi
	l.levels = l.powers(hi)
}

func (l *Levels) powers(ratio uint64) []uint64 {
	levels := append(make([]uint64, 0, 1<<l.config.Bits), 0, l.config.Unit)
	for len(levels) < cap(levels) {
		last := levels[len(levels)-1]
		if last == math.MaxUint64 {
			break
		}
		high, low := bits.Mul64(last, ratio)
		if high>>32 != 0 {
			high, low = math.MaxUint32, math.MaxUint64
		}
		levels = append(levels, max(high<<32|low>>32, last+1))
	}
	return levels
}

// logLinear makes 2ᵐ levels of every octave above the first ones.
func (l *Levels) logLinear() {
	c := &l.config
	if c.Max == 0 {
		m := 0
		for m < c.Bits && math.Ldexp(1, -m) > c.Epsilon*(2+c.Epsilon) {
			m++
		}
		l.levels = l.octaves(m)
		return
	}
	for m := c.Bits; m >= 0; m-- {
		if l.levels = l.octaves(m); l.levels[len(l.levels)-1] >= c.Max {
			return
		}
	}
}

func (l *Levels) octaves(m int) []uint64 {
	levels := make([]uint64, 0, 1<<l.config.Bits)
	for i := range uint64(cap(levels)) {
		e := uint64(0)
		if i>>m > 1 {
			e = i>>m - 1
		}
		v := i - e<<m
		if e >= 64 || bits.Len64(v)+int(e)+bits.Len64(l.config.Unit)-1 > 64 {
			break
		}
		levels = append(levels, v<<e*l.config.Unit)
	}
	return levels
}

func (l *Levels) additive() {
	c := &l.config
	last := uint64(1)<<c.Bits - 1
	if c.Max != 0 {
		c.Unit = max((c.Max-1)/last+1, 1)
	}
	for i := range last + 1 {
		high, v := bits.Mul64(i, c.Unit)
		if high != 0 {
			break
		}
		l.levels = append(l.levels, v)
	}
}

// index makes the tables for look-ups.
func (l *Levels) index() {
	perOctave := 1
	for i, v := range l.levels {
		l.values = append(l.values, float64(v))
		for i >= perOctave && l.levels[i-perOctave] > v/2 {
			perOctave++
		}
	}
	l.mantissa = min(max(uint(bits.Len(uint(perOctave))), 2), 10)
	cells := (65 - l.mantissa) << l.mantissa
	l.first = make([]uint16, cells+1)
	code := 0
	for i := range cells {
		v := uint64(i)
		if e := i >> l.mantissa; e > 1 {
			v = uint64(i-(e-1)<<l.mantissa) << (e - 1)
		}
		for code+1 < len(l.levels) && l.levels[code+1] <= v {
			code++
		}
		l.first[i] = uint16(code)
	}
	l.first[cells] = uint16(len(l.levels) - 1)
}

// below returns the code of the largest level that is not above v.
func (l *Levels) below(v uint64) uint32 {
	e := uint(bits.Len64(v|1<<l.mantissa)) - (l.mantissa + 1)
	cell := e<<l.mantissa + uint(v>>(e&63))
	c, end := uint32(l.first[cell]), uint32(l.first[cell+1])
	for c < end {
		if mid := (c + end + 1) / 2; l.levels[mid] <= v {
			c = mid
		} else {
			end = mid - 1
		}
	}
	return c
}

// Encode returns the code of v. Values above the last level have the last code.
func (l *Levels) Encode(v uint64, rnd uint32) uint32 {
	c := l.below(v)
	if int(c)+1 >= len(l.levels) {
		return c
	}
	lo := l.levels[c]
	point, _ := bits.Mul64(l.levels[c+1]-lo, uint64(rnd)<<32)
	if v-lo > point {
		c++
	}
	return c
}

// Add is approximate counting (Morris, "Counting large numbers of events in small registers", CACM 1978), here for
// sums along a path. It returns the code of the level of code plus v. The expected sum is the true one, whatever the
// number of additions, up to the last level. Every addition adds a variance of at most a quarter of the squared
// distance of the levels there. After n additions to a multiplicative code the standard deviation is at most ε·√n of
// the sum.
//
// Adding 1 again and again is Morris's counter; with log-linear levels it is the floating-point counter of Csűrös
// (COCOON 2010).
func (l *Levels) Add(code uint32, v uint64, rnd uint32) uint32 {
	sum, carry := bits.Add64(l.Level(code), v, 0)
	if carry != 0 {
		sum = math.MaxUint64
	}
	return l.Encode(sum, rnd)
}

// Decode returns the level of a code.
func (l *Levels) Decode(code uint32) float64 {
	return l.values[min(int(code), len(l.values)-1)]
}

// Level is Decode as an integer: the entry of a switch's table for the code.
func (l *Levels) Level(code uint32) uint64 {
	return l.levels[min(int(code), len(l.levels)-1)]
}

// Codes is the number of codes in use, at most 2^Bits: where levels would not fit 64 bits there are fewer.
func (l *Levels) Codes() int { return len(l.levels) }

// Bits is the width of codes.
func (l *Levels) Bits() int { return l.config.Bits }

// Config returns the configuration of the code, with its unit.
func (l *Levels) Config() CodeConfig { return l.config }

// Max is the largest value that is coded without bias.
func (l *Levels) Max() uint64 { return l.levels[len(l.levels)-1] }

// Bounds returns the values, ends excluded, that can have been rounded to a code.
func (l *Levels) Bounds(code uint32) (lo, hi float64) {
	c := min(int(code), len(l.levels)-1)
	lo, hi = -1, math.Inf(1)
	if c > 0 {
		lo = l.values[c-1]
	}
	if c+1 < len(l.values) {
		hi = l.values[c+1]
	}
	return lo, hi
}

// Error returns a bound on the error of one digest of v and its standard deviation, both in the unit of v. Above
// [Levels.Max] the error is a bias, and has no deviation.
func (l *Levels) Error(v uint64) (largest, deviation float64) {
	c := l.below(v)
	if int(c)+1 >= len(l.levels) {
		return float64(v - l.levels[c]), 0
	}
	down, up := float64(v-l.levels[c]), float64(l.levels[c+1]-v)
	if down == 0 {
		return 0, 0
	}
	return max(down, up), math.Sqrt(down * up)
}

// RelativeError bounds the error of one digest as a share of the value, for all values from the unit to the maximum.
// It is (1+ε)² - 1 for a multiplicative code, if Epsilon returned ε, and less than 1 for an additive one.
func (l *Levels) RelativeError() float64 {
	worst := 0.0
	for i := 2; i < len(l.levels); i++ {
		lo, hi := l.levels[i-1], l.levels[i]
		if hi-lo > 1 { // otherwise no value is between them
			worst = max(worst, float64(hi-lo-1)/float64(lo+1))
		}
	}
	return worst
}
