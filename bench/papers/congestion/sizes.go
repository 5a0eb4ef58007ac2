package congestion

import (
	"fmt"
	"math/rand/v2"
)

// sizeCurve is a distribution of flow sizes: a line between points of its cumulative distribution.
type sizeCurve []sizePoint

type sizePoint struct {
	bytes   float64
	percent float64
}

// flowSizes are those of the paper: of web search at Microsoft (M. Alizadeh and others, Data Center TCP, SIGCOMM 2010)
// and of Hadoop at Facebook (A. Roy and others, Inside the Social Network's (Datacenter) Network, SIGCOMM 2015). Both
// papers print curves. These are the points by which simulations of HPCC and PINT have them; figure 7 has their
// deciles as the marks of its axes.
var flowSizes = map[string]sizeCurve{
	"web search": {
		{0, 0}, {10e3, 15}, {20e3, 20}, {30e3, 30}, {50e3, 40}, {80e3, 53}, {200e3, 60}, {1e6, 70}, {2e6, 80}, {5e6, 90}, {10e6, 97}, {30e6, 100},
	},
	"Hadoop": {
		{0, 0}, {100, 1}, {200, 2}, {300, 5}, {350, 15}, {400, 20}, {500, 30}, {600, 40}, {700, 50}, {1e3, 60}, {2e3, 67}, {7e3, 70},
		{30e3, 72}, {50e3, 82}, {80e3, 87}, {120e3, 90}, {300e3, 95}, {1e6, 97.5}, {2e6, 99}, {10e6, 100},
	},
}

func flowSizesOf(workload string) (sizeCurve, error) {
	c, ok := flowSizes[workload]
	if !ok {
		return nil, fmt.Errorf("no workload %q", workload)
	}
	return c, nil
}

// mean is in bytes.
func (c sizeCurve) mean() (sum float64) {
	for k := 1; k < len(c); k++ {
		sum += (c[k].bytes + c[k-1].bytes) / 2 * (c[k].percent - c[k-1].percent) / 100
	}
	return sum
}

// draw returns the size of a flow, at least a byte.
func (c sizeCurve) draw(r *rand.Rand) int64 { return max(int64(c.at(100*r.Float64())), 1) }

// at is the size that so many percent of the flows do not exceed.
func (c sizeCurve) at(percent float64) float64 {
	k := 1
	for k < len(c)-1 && c[k].percent < percent {
		k++
	}
	a, b := c[k-1], c[k]
	return a.bytes + (b.bytes-a.bytes)*(percent-a.percent)/(b.percent-a.percent)
}
