package stamp

import (
	"math"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Delays counts durations in buckets whose ends are at most a part in 16 above their beginnings.
type Delays struct {
	Count uint64
	Max   time.Duration
	sum   time.Duration
	list  [decode.DelayCodes]uint32
}

// Add counts d, of which what is negative is 0.
func (d *Delays) Add(x time.Duration) {
	v := uint64(max(x, 0))
	d.Count++
	d.sum += time.Duration(v)
	d.Max = max(d.Max, time.Duration(v))
	d.list[decode.DelayCode(v)]++
}

// Quantile is the end of the bucket that holds the fraction q, and at most Max; 0 without any.
func (d *Delays) Quantile(q float64) time.Duration {
	seen := uint64(0)
	for k, n := range d.list {
		if seen += uint64(n); n > 0 && float64(seen) >= q*float64(d.Count) {
			if k == len(d.list)-1 {
				return d.Max
			}
			return min(time.Duration(decode.LongestDelay(uint16(k))), d.Max)
		}
	}
	return 0
}

// mean is 0 without any.
func (d *Delays) mean() time.Duration {
	if d.Count == 0 {
		return 0
	}
	return d.sum / time.Duration(d.Count)
}

// codes appends the codes of the durations with their counts, in ascending order. A count that is too great for one entry is cut.
func (d *Delays) codes(dst []decode.DelayCount) []decode.DelayCount {
	for code, n := range d.list {
		if n > 0 {
			dst = append(dst, decode.DelayCount{Code: uint16(code), Count: uint16(min(n, math.MaxUint16))})
		}
	}
	return dst
}
