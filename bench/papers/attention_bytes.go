package papers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// Bytes of metrics that a hop adds, with 4 more for the checksum complement: the widths of FANT's Table 2 under its
// bitmaps 0xFFFF and 0xF161.
const (
	fantDetailed = 84 + 4
	fantBasic    = 28 + 4
)

// fantLinks is the most links of a probe that can carry the detailed metrics of all its nodes: the shim counts 255 words.
func fantLinks() (int, error) {
	links, _, err := probe.StackLimits(&intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}, 0xffff, 1500)
	return links, err
}

// attentionBytes counts bytes of metrics in a second of one measurement cycle. Hosts are nodes, as in section 6.3, which has probe
// generators and collectors at hosts.
// Published for 1125 switches and 3 %: 4.7 MB/s, with greedy 3.2 MB/s and with FANT 2.0 MB/s (42.6 %).
func attentionBytes(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tswitches\tsuspicious\tINT-Probe MB/s\tgreedy\tFANT-H, 0 0.15\tours\tours / INT-Probe\tno link\tpublished\t")
	for _, size := range shown(o, 2, 10, 14, 18, 22, 26, 30) {
		c, err := newCycles("fat-tree", size, 2, true, o.Seed)
		if err != nil {
			return err
		}
		percents := []int{3}
		if size == 30 {
			percents = []int{1, 3, 5, 10, 20, 30}
		}
		for _, percent := range percents {
			var mean [3]float64 // MB/s
			const times = 5
			for range times {
				some := c.draw(percent)
				for m, so := range []solve.Options{{Method: solve.Greedy}, {Method: solve.FANTH, Beta: 0.15}, {}} {
					so.Stop = stopAfter(ctx, min(o.limit(), time.Second))
					choice, err := c.index.Switch(some, nil, so)
					if err != nil {
						return err
					}
					cost, err := c.check(some, choice)
					if err != nil {
						return err
					}
					mean[m] += c.megabytes(cost) / times
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			published := ""
			if size == 30 && percent == 3 {
				published = "4.7, 3.2, 2.0 (42.6 %)"
			}
			whole := c.megabytes(c.hops())
			fmt.Fprintf(t, "%s\t%d\t%d %%\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f %%\t%.2f\t%s\t\n", c.name, c.switches, percent,
				whole, mean[0], mean[1], mean[2], 100*mean[2]/whole, c.megabytes(0), published)
		}
	}
	return nil
}

// megabytes are those of a cycle in which so many hops are measured in detail, and all others not.
func (c *cycles) megabytes(detailed float64) float64 {
	return (detailed*fantDetailed + (c.hops()-detailed)*fantBasic) / 1e6
}

func stopAfter(ctx context.Context, limit time.Duration) func() bool {
	end := time.Now().Add(limit)
	return func() bool { return ctx.Err() != nil || time.Now().After(end) }
}

// attentionFactors measures FANT-H under the factors that the paper names, and others. Published for 10 % suspicious
// links, in a scripting language: 85.7 s without factors, 0.22 ms and 20.1 % above the least with the first pair,
// 0.69 ms and 6.4 % above with the second.
func attentionFactors(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tswitches\tα\tβ\tcycles\tended\tp50 ms\tworst ms\tabove least\tpublished\t")
	for _, x := range []struct {
		size  int
		hosts bool
	}{{30, false}, {10, true}, {18, true}, {30, true}} {
		c, err := newCycles("fat-tree", x.size, 2, x.hosts, o.Seed)
		if err != nil {
			return err
		}
		for _, f := range []struct {
			alpha, beta float64
			published   string
		}{{0, 0, "85.7 s"}, {0.9, 0, "0.22 ms, 20.1 %"}, {0, 0.15, "0.69 ms, 6.4 %"}, {0.5, 0.5, ""}, {1, 1, ""}} {
			limit := min(o.limit(), 2*time.Second)
			var took []time.Duration
			cost, least, ended := 0.0, 0.0, 0
			for range 3 {
				some := c.draw(10)
				best, err := c.index.Switch(some, nil, solve.Options{})
				if err != nil {
					return err
				}
				start := time.Now()
				choice, err := c.index.Switch(some, nil, solve.Options{Method: solve.FANTH, Alpha: f.alpha, Beta: f.beta, Stop: stopAfter(ctx, limit)})
				took = append(took, time.Since(start))
				if err != nil {
					return err
				}
				got, err := c.check(some, choice)
				if err != nil {
					return err
				}
				if took[len(took)-1] < limit {
					ended++
				}
				cost, least = cost+got, least+best.LowerBound
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			slices.Sort(took)
			fmt.Fprintf(t, "%s\t%d\t%g\t%g\t%d\t%d\t%.2f\t%.2f\t%.1f %%\t%s\t\n", c.name, c.switches, f.alpha, f.beta, len(took), ended,
				ms(took[len(took)/2]), ms(took[len(took)-1]), 100*(cost/least-1), f.published)
		}
	}
	return nil
}
