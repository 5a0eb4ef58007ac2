package probe

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// timeBuckets of Times, in microseconds: bucket k holds times below 2^k µs, and the last one all others.
const timeBuckets = 24

// Times counts durations by their size. It has one writer.
type Times struct {
	count [timeBuckets]atomic.Uint64
	sum   atomic.Int64
}

// Add counts d, of which what is negative is 0.
func (t *Times) Add(d time.Duration) {
	d = max(d, 0)
	t.count[min(bits.Len64(uint64(d/time.Microsecond)), timeBuckets-1)].Add(1)
	t.sum.Add(int64(d))
}

// TimesNow holds the counts up to now.
type TimesNow struct {
	Count [timeBuckets]uint64
	Sum   time.Duration
}

// Now returns the counts up to now.
func (t *Times) Now() (n TimesNow) {
	for k := range t.count {
		n.Count[k] = t.count[k].Load()
	}
	n.Sum = time.Duration(t.sum.Load())
	return n
}

// Quantile is the upper bound of the bucket that holds the fraction q; 0 without any.
func (n *TimesNow) Quantile(q float64) time.Duration {
	total, seen := uint64(0), uint64(0)
	for _, c := range n.Count {
		total += c
	}
	for k, c := range n.Count {
		if seen += c; total > 0 && float64(seen) >= q*float64(total) {
			return time.Microsecond << k
		}
	}
	return 0
}
