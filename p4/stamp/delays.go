package stamp

import (
	"math/bits"
	"time"
)

// Parts of an octave, and octaves: durations up to 137 seconds, and one bucket for all above.
const (
	delayParts   = 16
	delayOctaves = 34
)

// Delays counts durations in buckets whose ends are at most a part in 16 above their beginnings.
type Delays struct {
	Count uint64
	Max   time.Duration
	sum   time.Duration
	list  [delayOctaves * delayParts]uint32
}

// Add counts d, of which what is negative is 0.
func (d *Delays) Add(x time.Duration) {
	v := uint64(max(x, 0))
	d.Count++
	d.sum += time.Duration(v)
	d.Max = max(d.Max, time.Duration(v))
	octave := max(bits.Len64(v)-5, 0)
	d.list[min(octave*delayParts+int(v>>octave), len(d.list)-1)]++
}

// Quantile is the end of the bucket that holds the fraction q, and at most Max; 0 without any.
func (d *Delays) Quantile(q float64) time.Duration {
	seen := uint64(0)
	for k, n := range d.list {
		if seen += uint64(n); n > 0 && float64(seen) >= q*float64(d.Count) {
			if k == len(d.list)-1 {
				return d.Max
			}
			octave := max(k/delayParts-1, 0)
			return min(time.Duration(uint64(k-octave*delayParts+1)<<octave-1), d.Max)
		}
	}
	return 0
}

// Mean is 0 without any.
func (d *Delays) Mean() time.Duration {
	if d.Count == 0 {
		return 0
	}
	return d.sum / time.Duration(d.Count)
}
