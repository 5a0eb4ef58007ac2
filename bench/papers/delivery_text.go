package papers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// textSolutions are RFT and those that it is compared with. Experiment 6 has the others miss most deadlines, so that they
// plan without. Experiment 7 has them miss losses too, and the numbers of networks agree if they keep them: both are
// here. The text gives MTP as many networks as the integer programme, and no other placement.
var textSolutions = []struct {
	name string
	solve.Printed
}{
	{"RFT", solve.Printed{Links: true}},
	{"integer programme, MTP", solve.Printed{Late: true}},
	{"Marple: one server", solve.Printed{Nearest: true, Late: true}},
	{"integer programme, losses ignored", solve.Printed{Late: true, Lossy: true}},
	{"Marple: one server, losses ignored", solve.Printed{Nearest: true, Late: true, Lossy: true}},
	{"integer programme, with deadlines", solve.Printed{}},
}

// textDraws is how often attributes are drawn for deliveryText.
const textDraws = 8

// deliveryText is section V with experiments 4 to 7, under the constraints as printed.
func deliveryText(ctx context.Context, t io.Writer, o Options) error {
	if o.Topologies == "" {
		fmt.Fprintln(t, "left out: no directory with topologies is given")
		return nil
	}
	fmt.Fprintln(t, "solution\tnetworks whole\tleast\tmost\tpoints served\tin time\treliable\tservers\tlinks\tmean ms\tworst ms\tat\t")
	for _, s := range textSolutions {
		var sum solve.PrintedResult
		var took, worst time.Duration
		var where string
		var whole []int
		for draw := range uint64(textDraws) {
			whole = append(whole, 0)
			networks, err := rftProblems(o.Topologies, o.Seed+draw)
			if err != nil {
				return err
			}
			for _, x := range networks {
				start := time.Now()
				r := s.Plan(x.problem)
				d := time.Since(start)
				if took += d; d > worst {
					worst, where = d, x.name
				}
				if r.Served == r.Points {
					whole[draw]++
				}
				sum.Points, sum.Served, sum.InTime, sum.Reliable = sum.Points+r.Points, sum.Served+r.Served, sum.InTime+r.InTime, sum.Reliable+r.Reliable
				sum.Links, sum.Servers = sum.Links+r.Links, sum.Servers+r.Servers
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		mean, share := 0., func(k int) float64 { return 100 * float64(k) / float64(sum.Points) }
		for _, k := range whole {
			mean += float64(k) / textDraws
		}
		fmt.Fprintf(t, "%s\t%.1f\t%d\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f\t%.1f\t%.3f\t%.2f\t%s\t\n", s.name, mean, slices.Min(whole), slices.Max(whole), share(sum.Served), share(sum.InTime),
			share(sum.Reliable), float64(sum.Servers)/textDraws, float64(sum.Links)/textDraws, ms(took)/textDraws/float64(len(rftNames())), ms(worst), where)
	}
	return nil
}
