package steer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// deliverer plans over which paths points send their reports to which servers, from the rates that the servers measure,
// and changes switches step by step.
type deliverer struct {
	cfg      p4.DeliveryConfig
	links    *Links
	problem  *delivery.Problem // nil without an instance
	tables   *p4.Delivery
	switches map[string]bool // that carry out plans

	plan   *delivery.Plan // that is carried out; nil for none
	have   *p4.Delivered  // of the present step
	steps  []*p4.Delivered
	unkept bool                  // the file does not have the plan, which may wait for approval
	missed map[string]int        // by server: intervals in a row without an answer of its page
	lost   time.Time             // when a server with reports did not answer last, or the start
	silent map[string]int64      // since when servers have no report of a point, all of them being known
	counts map[string]*p4.Counts // by switch
	logged string

	mu       sync.Mutex
	networks []*control.Network // with the entries of the present step
	entries  map[string][]control.Entry
	status   p4.DeliveryStatus
}

// missedPages is the number of intervals without an answer after which a server is down.
const missedPages = 2

// mostNetworks is the number of networks with the same entries of one kind that are remembered.
const mostNetworks = 16

// askTime bounds the time that a page of a server has.
const askTime = 2 * time.Second

// describe returns what was decided, and whether it is in force.
func (o *deliverer) describe(held *loop.Held) *p4.DeliveryStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.status
	s.Reached = held.Has(o.networks, o.entries)
	s.InForce = s.Reached && s.Left == 0 && s.Entries > 0
	s.Servers, s.Points, s.Paths = slices.Clone(s.Servers), slices.Clone(s.Points), slices.Clone(s.Paths)
	return &s
}

// fail notes why there is no plan, and logs a new reason once.
func (o *deliverer) fail(err error, log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status.Failed++
	if o.status.Why = err.Error(); o.logged != o.status.Why {
		o.logged = o.status.Why
		log.Error("no new plan of delivery; the one before stays", "error", o.logged)
	}
}

// measure asks the pages of all servers at once for the rates of points, and whether they are up. Rates do not fall while a server does
// not answer to which reports go, nor until the windows of the others have begun after that.
func (o *deliverer) measure(ctx context.Context, open func(url string) *Page) (*delivery.Measured, error) {
	m := &delivery.Measured{Margin: o.cfg.Margin, Down: map[string]bool{}, Rates: map[string]float64{}}
	on := o.plan.Selected()
	received, why := map[string]float64{}, map[string]string{}
	lost, pages, span := false, 0, time.Duration(0)
	answers := make([]answer, len(o.cfg.Servers))
	var all sync.WaitGroup
	for i, s := range o.cfg.Servers {
		if s.Page != "" {
			page := open(s.Page)
			all.Go(func() { answers[i] = o.measureServer(ctx, page) })
		}
	}
	all.Wait()
	for i, s := range o.cfg.Servers {
		if s.Page == "" {
			continue
		}
		pages++
		err := answers[i].err
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			o.missed[s.Name], received[s.Name], span = 0, answers[i].received, max(span, answers[i].span)
			for p, rate := range answers[i].rates {
				m.Rates[p] += rate
			}
			continue
		}
		o.missed[s.Name]++
		why[s.Name], m.Down[s.Name], lost = err.Error(), o.missed[s.Name] >= missedPages, lost || on[s.Name]
	}
	o.mu.Lock()
	o.status.Measure(&o.cfg, o.plan, received, why, m.Rates, !lost)
	o.mu.Unlock()
	switch {
	case len(why) == pages && pages > 0:
		return nil, fmt.Errorf("no page of a server answers: %s", slices.Sorted(maps.Values(why))[0])
	case lost:
		o.lost, m.Rates = time.Now(), map[string]float64{}
		m.HoldUnknown(o.plan, "a server of its reports does not answer")
	case time.Since(o.lost) < span:
		m.HoldUnknown(o.plan, "windows of servers are older than the last loss of one, or than the control")
	default:
		m.Release(o.silent, o.plan, time.Now().UnixNano(), int64(o.cfg.Quiet), o.cfg.Sending(o.plan, o.counts))
		m.HoldUnknown(o.plan, "")
		return m, nil
	}
	clear(o.silent)
	return m, nil
}

// answer is what the page of a server states.
type answer struct {
	rates    map[string]float64 // by point, of reports that arrived, and that are missing
	received float64            // of reports that arrived
	span     time.Duration      // of its windows
	err      error
}

// measureServer asks a server. One that is off has seen no report.
func (o *deliverer) measureServer(ctx context.Context, page *Page) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	m, err := OpenMeasured(ctx, page.URL, page.Get)
	if errors.Is(err, errNoWindow) {
		return a
	}
	if err != nil {
		return answer{err: err}
	}
	a.rates, a.span = map[string]float64{}, m.span
	gbps := float64(o.cfg.ReportBytes) * 8 / 1e9 / m.span.Seconds()
	a.err = List(ctx, m, "/api/exporters", "exporters", func(e struct {
		Node    string
		Reports float64 `json:"recent_reports"`
		Lost    float64 `json:"recent_lost"`
	}) {
		id, err := strconv.ParseUint(e.Node, 10, 32)
		if n, ok := o.links.nodes[uint32(id)]; ok && err == nil {
			a.rates[o.links.graph.NodeName(n)] += (max(e.Reports, 0) + max(e.Lost, 0)) * gbps
			a.received += max(e.Reports, 0) * gbps
		}
	})
	return a
}

// next returns a plan for what was measured, nil if the present one stays.
func (o *deliverer) next(ctx context.Context, open func(url string) *Page, suspects []control.Suspect) (*delivery.Plan, error) {
	m, err := o.measure(ctx, open)
	if err != nil {
		return nil, err
	}
	avoid := map[delivery.End]bool{}
	for _, s := range suspects {
		if i, ok := o.links.Lookup(s.Link); ok && o.cfg.Avoid > 0 && s.Weight >= o.cfg.Avoid {
			for _, i := range []int{i, o.links.graph.Peer(i)} {
				if i >= 0 {
					avoid[delivery.End{Node: o.links.graph.NodeName(o.links.graph.Node(i)), Port: o.links.graph.Port(i)}] = true
				}
			}
		}
	}
	if len(avoid) > 0 {
		m.Avoid = func(a, b delivery.End) bool { return avoid[a] || avoid[b] }
	}
	plan, err := solve.Measured(o.problem, m, o.plan, func() func() bool {
		began := time.Now()
		return func() bool { return ctx.Err() != nil || time.Since(began) > searchTime }
	})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.status
	s.Why, o.logged = "", ""
	s.LowerBound = plan.Stats.LowerBound
	s.Hold(m.Held)
	if o.plan != nil && o.plan.SameWays(plan) {
		o.plan.Unserved = plan.Unserved
		o.status.Describe(&o.cfg, o.plan)
		return nil, nil
	}
	return plan, nil
}

// countTime bounds the time that switches have to answer with their counters.
const countTime = 5 * time.Second

// readCounters reads what switches have sent and refused, at all of them at once. What cannot be read stays.
func (o *deliverer) readCounters(ctx context.Context, switches *Switches) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	var all sync.WaitGroup
	for sw := range o.switches {
		var c p4rt.Counting
		if x := switches.served[sw]; x != nil {
			c, _ = x.to.(p4rt.Counting)
		}
		if c == nil {
			continue
		}
		if o.counts[sw] == nil {
			o.counts[sw] = &p4.Counts{}
		}
		n := o.counts[sw]
		all.Go(func() {
			for name, into := range map[string]*map[int64]int64{p4.SentName: &n.Sent, p4.RefusedName: &n.Refused, p4.WithheldName: &n.Withheld} {
				cells, err := c.Counters(ctx, name)
				if err != nil {
					continue
				}
				*into = make(map[int64]int64, len(cells))
				for _, x := range cells {
					(*into)[x.Index] = x.Packets
				}
			}
		})
	}
	all.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.plan != nil {
		o.status.Count(o.plan, o.counts)
	}
}
