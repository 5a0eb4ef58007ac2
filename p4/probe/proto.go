package probe

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/planner"
)

// PlanOf decodes a plan from a controller. Values that do not fit into a Plan are an error; wrong values that fit are
// left to [Plan.Check].
func PlanOf(m *agentpb.Plan) (*Plan, error) {
	var bad planner.Errors
	bitmap := func(which string, v uint32) uint16 {
		if v > math.MaxUint16 {
			bad.Add("the %s bitmap %#x has more than 16 bits", which, v)
		}
		return uint16(v)
	}
	p := &Plan{Epoch: m.GetEpoch(), Dialect: Dialect(m.GetDialect()), Basic: bitmap("basic", m.GetBasic()), Detailed: bitmap("detailed", m.GetDetailed())}
	for _, x := range m.GetProbes() {
		q := Probe{ID: x.GetId(), Interval: nanoseconds(x.GetIntervalNs()), Phase: nanoseconds(x.GetPhaseNs()), Detailed: x.GetDetailed(),
			Agent: x.GetAgent(), Collector: x.GetCollector()}
		for _, port := range x.GetRoute() {
			q.Route = append(q.Route, int(port))
		}
		if d := x.GetDestination(); len(d) > 0 {
			to, ok := netip.AddrFromSlice(d)
			if !ok {
				bad.Add("probe %.40q: a destination of %d bytes is no address", q.ID, len(d))
			}
			q.To = to
		}
		p.Probes = append(p.Probes, q)
	}
	if err := bad.Join(); err != nil {
		return nil, err
	}
	return p, nil
}

// nanoseconds are those of a message; -1, which no plan may have, where they are out of range.
func nanoseconds(n uint64) time.Duration {
	if n > math.MaxInt64 {
		return -1
	}
	return time.Duration(n)
}

// Proto is the plan as a controller sends it. The plan must be one that Check lets pass.
func (p *Plan) Proto() (*agentpb.Plan, error) {
	m := &agentpb.Plan{Epoch: p.Epoch, Dialect: string(p.Dialect), Basic: uint32(p.Basic), Detailed: uint32(p.Detailed)}
	for k := range p.Probes {
		x := &p.Probes[k]
		q := &agentpb.Probe{Id: x.ID, IntervalNs: uint64(x.Interval), PhaseNs: uint64(x.Phase), Detailed: x.Detailed, Agent: x.Agent, Collector: x.Collector}
		for _, port := range x.Route {
			if port < 0 || port > math.MaxUint8 {
				return nil, fmt.Errorf("probe %q leaves by port %d", x.ID, port)
			}
			q.Route = append(q.Route, byte(port))
		}
		if x.To.IsValid() {
			q.Destination = x.To.AsSlice()
		}
		m.Probes = append(m.Probes, q)
	}
	return m, nil
}
