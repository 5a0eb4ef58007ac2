package papers

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/planner/attention/solve"
)

// attentionVerify checks whether links that need attention get it, beside the use case of the paper
// ([loop.UseCase]). It follows a network over measurement cycles. A link's delay is 10 µs with a deviation of 3
// %. In every cycle one link in 500 gets a queue that makes it 50 to 100 % longer for 10 cycles. Basic metrics carry
// the delay. A link is suspicious in the next cycle by the rules of appendix B. In our reading of its formulas the
// delay must differ from its mean by more than 20 %. Delays of suspicious cycles are left out of the mean, in which
// the last 5 weigh most, and the rule for differences is not needed. It counts the cycles of such queues after the
// first, in which attention could have shifted to them. It also counts the links with attention but no queue, and the
// bytes.
func attentionVerify(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "topology\tcycles\tcycles of queues\tin detail\tlate cycles, mean\tfalsely suspicious\tMB/s\tINT-Probe MB/s\tworst ms\t")
	for _, size := range shown(o, 1, 10, 18, 30) {
		c, err := newCycles("fat-tree", size, 2, true, o.Seed)
		if err != nil {
			return err
		}
		const last, lasts, count = 5, 10, 200
		rng := rand.New(rand.NewPCG(o.Seed, 1))
		type link struct {
			usual   float64 // mean of the last values that were not suspicious
			left    int     // cycles of the queue
			longer  float64
			suspect bool
		}
		links := make([]link, c.links)
		for l := range links {
			links[l].usual = 10
		}
		queued, seen, falsely, looked, late, events := 0, 0, 0, 0, 0, 0
		bytes, worst := 0.0, time.Duration(0)
		for cycle := range count {
			var some []int32
			for l := range links {
				if links[l].suspect {
					some = append(some, int32(l))
				}
			}
			start := time.Now()
			choice, err := c.index.Switch(some, nil, solve.Options{Stop: stopAfter(ctx, o.limit())})
			worst = max(worst, time.Since(start))
			if err != nil {
				return err
			}
			cost, err := c.check(some, choice)
			if err != nil {
				return err
			}
			bytes += c.megabytes(cost)
			detailed := make([]bool, c.links)
			for _, p := range choice.Probes {
				for _, l := range c.traces[p] {
					detailed[l] = true
				}
			}
			for l := range links {
				x := &links[l]
				switch {
				case x.left > 0:
					if x.left--; x.left > 0 {
						queued++
						if detailed[l] {
							seen++
						} else {
							late++
						}
					}
				case rng.IntN(500) == 0 && cycle > last:
					x.left, x.longer = lasts, 0.5+rng.Float64()/2
					events++
				}
				if x.suspect {
					looked++
					if x.left == 0 {
						falsely++
					}
				}
				v := 10 * (1 + 0.03*rng.NormFloat64())
				if x.left > 0 {
					v *= 1 + x.longer
				}
				if x.suspect = math.Abs(v-x.usual) > 0.2*x.usual; !x.suspect {
					x.usual += (v - x.usual) / last
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.2f %%\t%.3f\t%.1f %%\t%.2f\t%.2f\t%.2f\t\n", c.name, count, queued, 100*float64(seen)/float64(queued),
			float64(late)/float64(events), 100*float64(falsely)/float64(max(1, looked)), bytes/count, c.megabytes(c.hops()), ms(worst))
	}
	return nil
}
