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

// Bytes of metrics that a hop adds, with 4 more for the checksum complement. They are the widths of FANT's Table 2
// under its bitmaps 0xFFFF and 0xF161.
const (
	fantDetailed = 84 + 4
	fantBasic    = 28 + 4
)

// fantLinks is the most links of a probe that can carry the detailed metrics of all its switches. The shim counts 255
// words, which are 11 stamps. A probe between switches has one link less, and one between hosts that are nodes has
// one more.
func fantLinks(hosts bool) (int, error) {
	links, _, err := probe.StackLimits(&intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}, 0xffff, 1500)
	if hosts {
		links += 2
	}
	return links, err
}

// attentionBytes counts bytes of metrics in a second of one measurement cycle: figure 7 (fat-trees), figure 8
// (spine-leaf) and figure 9 (suspicious links). Hosts are nodes, as in section 6.3, which has probe generators and
// collectors at hosts. Bytes are counted by the links of a probe, as the paper does, and ours once more by stamps,
// which hosts do not add. Published for 1125 switches and 3 %: 4.7 MB/s, with greedy 3.2 MB/s and with FANT 2.0 MB/s
// (42.6 %). Without suspicious links, FANT needs 1.2 MB/s.
//
// No plan is below the last column ([cycles.least]).
func attentionBytes(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tswitches\tsuspicious\tINT-Probe MB/s\tgreedy\tFANT-H, 0 0.15\tours\tours / INT-Probe\tno link\tours, stamps\tpublished\tno plan below\t")
	type network struct {
		fabric string
		size   int
	}
	for _, x := range shown(o, 2, []network{
		{"fat-tree", 10}, {"fat-tree", 14}, {"fat-tree", 18}, {"fat-tree", 22}, {"fat-tree", 26}, {"fat-tree", 30},
		{"leaf-spine", 25}, {"leaf-spine", 75}, {"leaf-spine", 125},
	}...) {
		c, err := newCycles(x.fabric, x.size, 2, true, o.Seed)
		if err != nil {
			return err
		}
		percents := []int{3}
		if x.size == 30 {
			percents = []int{1, 3, 5, 10, 20, 30}
		}
		for _, percent := range percents {
			var mean [3]float64 // MB/s
			stamps, least := 0.0, 0.0
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
					if m == len(mean)-1 { // a probe between hosts has a stamp less than it has links
						less := len(c.traces)*fantBasic + len(choice.Probes)*(fantDetailed-fantBasic)
						stamps += (c.megabytes(cost) - float64(less)/1e6) / times
					}
				}
				least = c.least(len(some))
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			published := ""
			if x.fabric == "fat-tree" && x.size == 30 && percent == 3 {
				published = "4.7, 3.2, 2.0 (42.6 %)"
			}
			whole := c.megabytes(c.hops())
			fmt.Fprintf(t, "%s\t%d\t%d %%\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f %%\t%.2f\t%.2f\t%s\t%.2f\t\n", c.name, c.switches, percent,
				whole, mean[0], mean[1], mean[2], 100*mean[2]/whole, c.megabytes(0), stamps, published, least)
		}
	}
	return nil
}

// megabytes are those of a cycle with a number of detailed hops, the others being basic.
func (c *cycles) megabytes(detailed float64) float64 {
	return (detailed*fantDetailed + (c.hops()-detailed)*fantBasic) / 1e6
}

// least is a lower bound of the megabytes of a cycle for any plan, with hosts as nodes. The link of a host that is no
// depot is a dead end and is passed twice, every other link once. The first and the last link of each probe are of
// depots. At least one hop for each suspicious link is in detail.
func (c *cycles) least(suspicious int) float64 {
	inner := 0
	for _, depots := range c.depots {
		inner += 2*(c.hosts-depots) + c.links - c.hosts
	}
	probes := (inner + c.maxHops - 3) / (c.maxHops - 2)
	return float64((inner+2*probes)*fantBasic+suspicious*(fantDetailed-fantBasic)) / 1e6
}

func stopAfter(ctx context.Context, limit time.Duration) func() bool {
	end := time.Now().Add(limit)
	return func() bool { return ctx.Err() != nil || time.Now().After(end) }
}

// attentionFactors measures FANT-H under the factors that the paper names, and others: figure 10 is the time, figure
// 11 the bandwidth. Published for 10 % suspicious links, in a scripting language: 85.7 s without factors. The first
// pair took 0.22 ms, with 3.4 MB/s, 20.1 % above the least. The second took 0.69 ms, with 3.0 MB/s, 6.4 % above.
func attentionFactors(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tswitches\tα\tβ\tcycles\tended\tp50 ms\tworst ms\tabove least\tMB/s\tleast\tpublished\t")
	type network struct {
		size  int
		hosts bool
	}
	networks, draws := []network{{30, false}, {10, true}, {18, true}, {30, true}}, 3
	if o.quick {
		networks, draws = networks[1:2], 1
	}
	for _, x := range networks {
		c, err := newCycles("fat-tree", x.size, 2, x.hosts, o.Seed)
		if err != nil {
			return err
		}
		for _, f := range []struct {
			alpha, beta float64
			published   string
		}{{0, 0, "85.7 s"}, {0.9, 0, "0.22 ms, 20.1 %, 3.4 MB/s"}, {0, 0.15, "0.69 ms, 6.4 %, 3.0 MB/s"}, {0.5, 0.5, ""}, {1, 1, ""}, {0.1, 0, "the least"}, {0, 0.07, "the least"}} {
			limit := min(o.limit(), 2*time.Second)
			var took []time.Duration
			cost, least, ended := 0.0, 0.0, 0
			for range draws {
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
			fmt.Fprintf(t, "%s\t%d\t%g\t%g\t%d\t%d\t%.2f\t%.2f\t%.1f %%\t%.2f\t%.2f\t%s\t\n", c.name, c.switches, f.alpha, f.beta, len(took), ended,
				ms(took[len(took)/2]), ms(took[len(took)-1]), 100*(cost/least-1), c.megabytes(cost/float64(draws)), c.megabytes(least/float64(draws)), f.published)
		}
	}
	return nil
}
