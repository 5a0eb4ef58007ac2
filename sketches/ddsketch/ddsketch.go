// Package ddsketch estimates quantiles with a bounded relative error: DDSketch, from Masson, Rim and Lee, "DDSketch: A
// Fast and Fully-Mergeable Quantile Sketch with Relative-Error Guarantees", VLDB 2019, as DataDog/sketches-go has it,
// with cubic interpolation and a bounded number of bins.
//
// A quantile is within the accuracy α of a value whose rank is exactly right. Merging adds nothing to the error, however
// often and in whatever order, so this is the sketch for series that shards, processes and sites merge. What
// [Sketch.FromHistogram] adds has the error of the histogram besides: (1+α)(1+1/64) - 1 together, 2.6 % for α = 1 %.
//
// A sketch takes 8 bytes for each bin, and has at most as many as its Config says: 16 KB by default.
//
// Negative values are refused. If values spread over more bins than there may be, the lowest bins are collapsed into one.
// Quantiles that fall into it come out too high; those above it keep their accuracy. With α = 1 %, 2048 bins span a factor
// of 6·10¹⁷. No more than 2⁵³ values are counted, apart from merging.
package ddsketch

import (
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"github.com/hopscope/hopscope/sketches/logcode"
)

// Config is what sketches that are to be merged have in common.
type Config struct {
	Accuracy float64 `yaml:"relative_accuracy" doc:"Largest relative error of a quantile." range:"0.001..0.2"`
	MaxBins  int     `yaml:"max_bins" doc:"Most bins of a sketch, 8 bytes each. If values need more, the lowest ones are put together." range:"64..65536"`
}

// DefaultConfig gives 1 % and 2048 bins.
func DefaultConfig() Config { return Config{Accuracy: 0.01, MaxBins: 2048} }

// Validate reports all values that no sketch can be made with.
func (c *Config) Validate() error {
	var errs []error
	if !(c.Accuracy >= 0.001 && c.Accuracy <= 0.2) {
		errs = append(errs, fmt.Errorf("relative_accuracy: %g is outside 0.001..0.2", c.Accuracy))
	}
	if c.MaxBins < 64 || c.MaxBins > 65536 {
		errs = append(errs, fmt.Errorf("max_bins: %d is outside 64..65536", c.MaxBins))
	}
	return errors.Join(errs...)
}

// What a sketch refuses.
var (
	ErrValue    = errors.New("ddsketch: value is negative, infinite or not a number")
	ErrAccuracy = errors.New("ddsketch: sketches of different accuracy do not merge")
)

// Sketch is a quantile sketch. Make one with [New]. It is not safe for concurrent use.
type Sketch struct {
	cfg      Config
	m        *mapping.CubicallyInterpolatedMapping
	bins     *store.CollapsingLowestDenseStore
	zero     uint64 // how many values are too small for a bin: below 10⁻³⁰⁰, so nearly all of them are 0
	count    uint64
	min, max float64
}

// maxCount is how many values a sketch takes. Bins count in floating point, which is exact up to here.
const maxCount = 1 << 53

// New returns an empty sketch.
func New(cfg Config) (*Sketch, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ddsketch: %w", err)
	}
	m, err := mapping.NewCubicallyInterpolatedMapping(cfg.Accuracy)
	if err != nil {
		return nil, err
	}
	return &Sketch{cfg: cfg, m: m, bins: store.NewCollapsingLowestDenseStore(cfg.MaxBins)}, nil
}

// Add counts v, or returns [ErrValue].
func (s *Sketch) Add(v float64) error { return s.AddN(v, 1) }

// AddN counts v n times.
func (s *Sketch) AddN(v float64, n uint64) error {
	if !(v >= 0 && v <= s.m.MaxIndexableValue()) {
		return ErrValue
	}
	if n = min(n, maxCount-min(s.count, maxCount)); n == 0 {
		return nil
	}
	if s.count == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
	s.count += n
	if v < s.m.MinIndexableValue() {
		s.zero += n
		return nil
	}
	s.bins.AddWithCount(s.m.Index(v), float64(n))
	return nil
}

// FromHistogram adds what h counted.
func (s *Sketch) FromHistogram(h *logcode.Histogram) {
	for c, n := range h.All() {
		_ = s.AddN(float64(logcode.DecodeDense(c)), uint64(n)) // never negative
	}
}

// ToHistogram adds the content of s to h, with values rounded to integers. The errors of both add up.
func (s *Sketch) ToHistogram(h *logcode.Histogram) {
	h.AddN(0, s.zero)
	s.bins.ForEach(func(i int, n float64) bool {
		v := math.Round(min(max(s.m.Value(i), s.min), s.max))
		code := uint16(logcode.DenseCodes - 1)
		if v < 1<<64 {
			code = logcode.EncodeDense(uint64(v))
		}
		h.AddN(code, uint64(n))
		return false
	})
}

// Merge adds what o counted, or returns [ErrAccuracy]. o stays as it is; it may be s.
func (s *Sketch) Merge(o *Sketch) error {
	if s.cfg.Accuracy != o.cfg.Accuracy {
		return ErrAccuracy
	}
	if o.count == 0 {
		return nil
	}
	if s.count == 0 {
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	if s == o {
		o = &Sketch{zero: o.zero, count: o.count, bins: o.bins.Copy().(*store.CollapsingLowestDenseStore)}
	}
	s.zero += o.zero
	s.count += o.count
	s.bins.MergeWith(o.bins)
	return nil
}

// Reset empties s and keeps its memory.
func (s *Sketch) Reset() {
	s.bins.Clear()
	s.zero, s.count, s.min, s.max = 0, 0, 0, 0
}

// Count is the number of values.
func (s *Sketch) Count() uint64 { return s.count }

// Min is the smallest value; 0 if there is none.
func (s *Sketch) Min() float64 { return s.min }

// Max is the largest value; 0 if there is none.
func (s *Sketch) Max() float64 { return s.max }

// Quantile gives, within the accuracy, the smallest value that at least the share q of all values does not exceed. It
// is exact for 0 and 1, and 0 if there is no value.
func (s *Sketch) Quantile(q float64) float64 {
	switch {
	case !(q > 0):
		return s.min
	case q >= 1:
		return s.max
	}
	rank := max(math.Ceil(q*float64(s.count))-1, 0) // how many values come before
	if s.count == 0 || rank < float64(s.zero) {
		return s.min
	}
	return min(max(s.m.Value(s.bins.KeyAtRank(rank-float64(s.zero))), s.min), s.max)
}

// Quantiles appends the quantiles qs to dst.
func (s *Sketch) Quantiles(dst []float64, qs ...float64) []float64 {
	for _, q := range qs {
		dst = append(dst, s.Quantile(q))
	}
	return dst
}
