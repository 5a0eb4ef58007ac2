package papers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"time"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// These are of the emulated switches that carry out plans of delivery. Rates are those of the plan times deliveredScale, so that
// single reports show them.
const (
	deliveredScale = 1e-5
	deliveredBytes = 290 // of a report with its headers
	deliveredTime  = 5_000_000
	deliveredRaise = 2_000_000 // us, in which paths use up what they may be ahead of their rate
	deliveredFrom  = 500       // port of a point by which packets come in
)

// delivered sums up what arrives at servers over the paths of plans.
type delivered struct {
	networks, paths, judged, reports, elsewhere, refused int
	least, most                                          float64 // rate that arrives over a judged path, of the planned one
}

// judgedReports is the number of planned reports from which the rate of a path is judged: of few, one is much.
const judgedReports = 100

// deliveredTable installs plans of delivery in emulated switches that run rft, lets every point send reports at the rate of the
// plan, and at twice the rate, and compares what arrives at the servers over each path with the plan.
func deliveredTable(ctx context.Context, t io.Writer, o Options) error {
	if o.Topologies == "" {
		fmt.Fprintln(t, "left out: no directory with topologies is given")
		return nil
	}
	networks, err := rftProblems(o.Topologies, o.Seed)
	if err != nil {
		return err
	}
	sums := [2]delivered{{least: math.Inf(1)}, {least: math.Inf(1)}}
	for _, x := range networks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := deliverOver(x.problem, o, &sums); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	fmt.Fprintln(t, "offered\tnetworks\tpaths\tjudged\treports\telsewhere\trefused\tleast of the rate\tmost of the rate\t")
	for k, name := range []string{"the rate of the plan", "twice the rate"} {
		x := &sums[k]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t\n", name, x.networks, x.paths, x.judged, x.reports, x.elsewhere, x.refused, x.least, x.most)
	}
	return nil
}

// deliverOver plans for one network and carries the plan out.
func deliverOver(p *delivery.Problem, o Options, sums *[2]delivered) error {
	if err := p.NamePorts(); err != nil {
		return err
	}
	began := time.Now()
	plan, err := solve.Plan(p, solve.Options{Method: solve.Exact, Seed: o.Seed, NoLinks: true, Partial: true, Stop: func() bool { return time.Since(began) > o.limit() }})
	if err != nil {
		return err
	}
	if err := delivery.Check(p, plan); err != nil {
		return err
	}
	d := p4.Delivery{First: 1, Most: 600, Sources: map[string]netip.Addr{}}
	b, serves := topo.NewBuilder("delivered"), map[string]bool{}
	node, exits := map[string]int{}, map[[2]int]string{} // servers, by node and port
	for _, x := range p.Nodes {
		switch x.Kind {
		case delivery.ServerNode:
			k := len(d.Servers) + 1
			d.Servers = append(d.Servers, p4.DeliveryServer{Name: x.ID, At: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(k >> 8), byte(k)}), 32766)})
			continue
		case delivery.PointNode:
			k := len(d.Sources) + 1
			d.Sources[x.ID] = netip.AddrFrom4([4]byte{10, 255, byte(k >> 8), byte(k)})
		}
		node[x.ID], serves[x.ID] = len(node), true
		b.AddNode(x.ID, topo.NoTier)
	}
	for _, l := range p.Links {
		x, okX := node[l.A]
		y, okY := node[l.B]
		switch {
		case okX && okY:
			b.AddLink(topo.LinkEnd{Node: x, Port: l.PortA}, topo.LinkEnd{Node: y, Port: l.PortB})
		case okX:
			exits[[2]int{x, l.PortA}] = l.B
		case okY:
			exits[[2]int{y, l.PortB}] = l.A
		}
	}
	g, err := b.Build()
	if err != nil {
		return err
	}
	scaled := *plan
	scaled.Assignment = append([]delivery.Assignment{}, plan.Assignment...)
	for i := range scaled.Assignment {
		scaled.Assignment[i].Rate *= deliveredScale
	}
	entries, err := d.Entries(&scaled, serves)
	if err != nil {
		return err
	}
	f, err := program.NewFabric(g, "rft")
	if err != nil {
		return err
	}
	for name, n := range node {
		s := f.Switch(n)
		s.Mirror(1, 510)
		list := append(append(entries.Rules[name], entries.Shares[name]...),
			p4.Entry{Table: "egress.device", Action: "set_device", Params: p4.Uints(uint64(n+1), 0)},
			p4.Entry{Table: "ingress.drops", Match: []p4.Match{p4.Number(29)}, Action: "report_drop", Params: p4.Uints(1, 1)})
		for _, e := range list {
			if err := s.Put(e); err != nil {
				return fmt.Errorf("%s: %v: %w", name, e.String(), err)
			}
		}
	}
	c := delivering{fabric: f, node: node, exits: exits, plan: &scaled, now: 1_000_000}
	f.Clock = func() uint64 { return c.now }
	for k, times := range []float64{1, 2} {
		if times > 1 {
			if _, err := c.run(times, deliveredRaise); err != nil {
				return err
			}
		}
		if err := c.measure(&sums[k], times); err != nil {
			return err
		}
	}
	return nil
}

// delivering is a network whose switches carry out a plan of delivery.
type delivering struct {
	fabric *program.Fabric
	node   map[string]int
	exits  map[[2]int]string
	plan   *delivery.Plan
	now    uint64 // us
}

// run lets points send reports at a multiple of their rate for so many microseconds. The result is the number of reports by
// path; under an empty name are those that arrive elsewhere.
func (c *delivering) run(times float64, span uint64) (arrived map[string]int, err error) {
	arrived = map[string]int{}
	payload := make([]byte, 172)
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 9, Proto: headers.ProtoUDP, Src: [4]byte{1, 1, 1, 1}, Dst: [4]byte{2, 2, 2, 2}}, 8+len(payload))
	b = append(headers.AppendUDP(b, 1, 2, len(payload)), payload...)
	path := map[[2]int]*delivery.Assignment{} // by node of the point, and tag
	for i := range c.plan.Assignment {
		a := &c.plan.Assignment[i]
		path[[2]int{c.node[a.Point], a.Tag}] = a
	}
	began := c.now
	type source struct {
		node     int
		gap, due float64 // us
	}
	var sources []source
	for point, rate := range c.plan.Reserved() {
		gap := deliveredGap(rate * times)
		sources = append(sources, source{c.node[point], gap, gap})
	}
	for len(sources) > 0 {
		x := slices.MinFunc(sources, func(a, b source) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.node, b.node)) })
		if x.due > float64(span) {
			break
		}
		sources[slices.Index(sources, x)].due += x.gap
		c.now = began + uint64(x.due)
		left, err := c.fabric.Send(x.node, program.Frame{Port: deliveredFrom, Bytes: b})
		if err != nil {
			return nil, err
		}
		for _, y := range left {
			a, id := path[[2]int{x.node, int(y.Bytes[34])<<8 + int(y.Bytes[35]) - p4.TagPort}], ""
			if a != nil && c.exits[[2]int{y.Node, int(y.Port)}] == a.Server && len(y.Bytes) == deliveredBytes {
				id = a.ID
			}
			arrived[id]++
		}
	}
	c.now = began + span
	return arrived, nil
}

// deliveredGap is the time from a report to the next at a rate in Gbit/s, which is 1000 bits in a microsecond.
func deliveredGap(rate float64) float64 { return deliveredBytes * 8 / (rate * 1e3) }

// measure compares what arrives with the plan.
func (c *delivering) measure(sum *delivered, times float64) error {
	arrived, err := c.run(times, deliveredTime)
	if err != nil {
		return err
	}
	all, offered := 0, 0
	for _, rate := range c.plan.Reserved() {
		offered += int(deliveredTime / deliveredGap(rate*times))
	}
	for i := range c.plan.Assignment {
		a := &c.plan.Assignment[i]
		want := deliveredTime / deliveredGap(a.Rate)
		n := float64(arrived[a.ID])
		if all += arrived[a.ID]; want >= judgedReports {
			sum.judged++
			sum.least, sum.most = min(sum.least, n/want), max(sum.most, n/want)
		}
	}
	sum.networks++
	sum.paths += len(c.plan.Assignment)
	sum.reports += all
	sum.elsewhere += arrived[""]
	sum.refused += offered - all - arrived[""]
	return nil
}
