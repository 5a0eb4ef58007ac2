package papers

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// deliveryPlan makes a plan within the limit, checks it, and returns its time.
func deliveryPlan(ctx context.Context, p *delivery.Problem, o Options, how solve.Options) (*delivery.Plan, time.Duration, error) {
	start := time.Now()
	how.Seed, how.Partial = o.Seed, true
	how.Stop = func() bool { return ctx.Err() != nil || time.Since(start) > o.limit() }
	plan, err := solve.Plan(p, how)
	took := time.Since(start)
	if err == nil {
		err = delivery.Check(p, plan)
	}
	if err == nil {
		err = ctx.Err()
	}
	return plan, took, err
}

// drawnDelivery draws attributes as in the paper over a random network.
func drawnDelivery(nodes, links int, seed uint64) (*delivery.Problem, error) {
	g, err := topo.Random(nodes, links, seed)
	if err != nil {
		return nil, err
	}
	return delivery.Generate(g, seed), nil
}

// deliverySizes shows the time for a link from 10^3 links to 10^5. It includes the size at which the paper gives up
// brute force (100 nodes, 300 links) and the 10,000 nodes of its §III-C. The two largest need time: without a second
// for a plan they are left out.
func deliverySizes(ctx context.Context, t io.Writer, o Options) error {
	return deliverySized(ctx, t, o, shown(o, 2, [][2]int{{100, 300}, {500, 1000}, {5000, 10000}, {10000, 20000}, {50000, 100000}}...))
}

// deliveryDense plans for the network of theorem 6.
func deliveryDense(ctx context.Context, t io.Writer, o Options) error {
	return deliverySized(ctx, t, o, [][2]int{{10000, 500000}})
}

func deliverySized(ctx context.Context, t io.Writer, o Options, sizes [][2]int) error {
	fmt.Fprintln(t, "nodes\tlinks\tmethod\tpoints served\tlinks added\tat least\tservers\tat least\tseconds\tµs a link\t")
	for _, size := range sizes {
		if size[0] > 5000 && o.limit() < time.Second {
			continue
		}
		p, err := drawnDelivery(size[0], size[1], o.Seed)
		if err != nil {
			return err
		}
		for _, method := range []solve.Method{solve.Exact, solve.Paper} {
			if method == solve.Paper && size[0] > 500 {
				continue // it makes the whole assignment anew for every candidate of a link
			}
			plan, took, err := deliveryPlan(ctx, p, o, solve.Options{Method: method})
			if err != nil {
				return err
			}
			s := &plan.Stats
			fmt.Fprintf(t, "%d\t%d\t%s\t%d of %d\t%d\t%d\t%d\t%g\t%.2f\t%.0f\t\n", size[0], size[1], method, s.Served, s.Points, s.Links, s.LinkBound,
				s.Servers, s.LowerBound, took.Seconds(), took.Seconds()*1e6/float64(size[1]))
		}
	}
	return nil
}

// deliveryRuns is how many instances of a network deliveryPairs draws.
const deliveryRuns = 10

// deliveryPairs is experiments 1 to 3 (figure 2). The x axis is the share of the pairs of origin and destination that
// must be reliable, here of a point with every server. The others tolerate any loss; their deadlines and rates stay.
func deliveryPairs(ctx context.Context, t io.Writer, o Options) error {
	if o.Topologies == "" {
		fmt.Fprintln(t, "left out: no directory with topologies is given")
		return nil
	}
	fmt.Fprintln(t, "network\treliable\tpairs with a path\tpoints served without links\tserved\tlinks\tservers\tproven\tserved by the paper's\tits links\tours ms\tpaper's, repaired ms\t")
	for _, name := range []string{"PionierL1", "PionierL3", "Intranetwork"} {
		g, err := load.Topology(filepath.Join(o.Topologies, "graphs", name+".graph"))
		if err != nil {
			return err
		}
		for _, share := range []float64{0.2, 0.4, 0.6, 0.8, 1} {
			var ours, paper deliverySums
			var took, paperTook time.Duration
			pairs := 0.0
			for k := range uint64(deliveryRuns) {
				p := delivery.Generate(g, o.Seed+k)
				delivery.RelaxLoss(p, share)
				plan, d, err := deliveryPlan(ctx, p, o, solve.Options{})
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				ours.add(plan)
				took += d
				pairs += plan.Stats.PairAcceptance / deliveryRuns
				if plan, d, err = deliveryPlan(ctx, p, o, solve.Options{Method: solve.Paper}); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				paper.add(plan)
				paperTook += d
			}
			fmt.Fprintf(t, "%s\t%.0f %%\t%.0f %%\t%d of %d\t%d\t%d\t%d\t%d of %d\t%d\t%d\t%.2f\t%.2f\t\n", name, 100*share, 100*pairs, ours.first, ours.points,
				ours.served, ours.links, ours.servers, ours.proven, deliveryRuns, paper.served, paper.links, ms(took)/deliveryRuns, ms(paperTook)/deliveryRuns)
		}
	}
	return nil
}

// deliverySums adds up the plans of several networks.
type deliverySums struct {
	points, served, first, links, servers, paths, proven, changed, must, stuck int
}

func (d *deliverySums) add(plan *delivery.Plan) {
	s := &plan.Stats
	d.points, d.served, d.first = d.points+s.Points, d.served+s.Served, d.first+s.ServedAtFirst
	d.links, d.servers, d.paths = d.links+s.Links, d.servers+s.Servers, d.paths+len(plan.Assignment)
	if c := plan.Churn; c != nil {
		d.changed, d.must = d.changed+c.Changed, d.must+c.Forced
	}
	if s.Optimal {
		d.proven++
	}
	if plan.Deadlock != "" {
		d.stuck++
	}
}

// deliveryNodes and deliveryLinks are the size of the random networks of deliveryLimits.
const (
	deliveryNodes = 60
	deliveryLinks = 90
)

// deliveryNetworks returns how many random networks the tables of limits and of replaced plans have.
func (o Options) deliveryNetworks() uint64 {
	if o.quick {
		return 4
	}
	return 20
}

// deliveryLimits sets a limit for every path, as a meter at its point enforces it.
func deliveryLimits(ctx context.Context, t io.Writer, o Options) error {
	fmt.Fprintln(t, "limit of a path\tserved without links\tserved\tlinks\tservers\tpaths\tproven\t")
	for _, limit := range shown(o, 3, 0.0, 40, 20, 10, 5) {
		var sum deliverySums
		for seed := range o.deliveryNetworks() {
			p, err := drawnDelivery(deliveryNodes, deliveryLinks, o.Seed+seed)
			if err != nil {
				return err
			}
			p.PathLimit = limit
			plan, _, err := deliveryPlan(ctx, p, o, solve.Options{})
			if err != nil {
				return err
			}
			sum.add(plan)
		}
		name := "none"
		if limit > 0 {
			name = fmt.Sprintf("%g Gbit/s", limit)
		}
		fmt.Fprintf(t, "%s\t%d of %d\t%d\t%d\t%d\t%d\t%d of %d\t\n", name, sum.first, sum.points, sum.served, sum.links, sum.servers, sum.paths, sum.proven, o.deliveryNetworks())
	}
	return nil
}

// deliveryChurn changes the loads of one link of three, and replaces plans with more and more changes allowed.
func deliveryChurn(ctx context.Context, t io.Writer, o Options) error {
	type pair struct {
		p   *delivery.Problem
		old *delivery.Plan
	}
	var pairs []pair
	for seed := range o.deliveryNetworks() {
		p, err := drawnDelivery(100, 150, o.Seed+seed)
		if err == nil {
			err = p.NamePorts()
		}
		if err != nil {
			return err
		}
		old, _, err := deliveryPlan(ctx, p, o, solve.Options{})
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(o.Seed+seed, 17))
		for i := range p.Links {
			if rng.IntN(3) == 0 {
				p.Links[i].Load = 10 + 80*rng.Float64()
			}
		}
		pairs = append(pairs, pair{p, old})
	}
	fmt.Fprintln(t, "may change\tchange\tmust\tserved\tlinks\tservers\twithout an order of steps\t")
	limits := []int{0, 1, 2, 3, 4, 6, 8, -1}
	if o.quick {
		limits = []int{0, 2, -1}
	}
	for _, churn := range limits {
		var sum deliverySums
		for _, x := range pairs {
			plan, _, err := deliveryPlan(ctx, x.p, o, solve.Options{Previous: x.old, Churn: churn})
			if err == nil {
				err = delivery.CheckTransition(x.p, x.old, plan)
			}
			if err != nil {
				return err
			}
			sum.add(plan)
		}
		name := strconv.Itoa(churn)
		if churn < 0 {
			name = "any number"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d of %d\t%d\t%d\t%d\t\n", name, sum.changed, sum.must, sum.served, sum.points, sum.links, sum.servers, sum.stuck)
	}
	return nil
}
