package steer

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// Systems describes the systems of a control by its status.
func Systems(s *loop.Status) []loop.System {
	if s.Standby != nil {
		why := "this control stands by: " + names.Printable(s.Standby.Why)
		return []loop.System{{System: "probes", State: loop.SystemOff, Why: why}, {System: "fant", State: loop.SystemOff, Why: why}, {System: "into", State: loop.SystemOff, Why: why}, {System: "rft", State: loop.SystemOff, Why: why}}
	}
	list := []loop.System{probesOf(s), fantOf(s), intoOf(s), rftOf(s)}
	for i := range list {
		list[i].Why = names.Printable(list[i].Why)
	}
	return list
}

// probesOf describes the plan of probes.
func probesOf(s *loop.Status) loop.System {
	x := loop.System{System: "probes"}
	if x.State, x.Why = s.StateOfProbes(); x.State == loop.SystemOff {
		return x
	}
	x.Decided = append(x.Decided, fmt.Sprintf("%d probes that cross %d directions of links, %.0f hops in a round", s.Probes, s.Covered, s.Stats.Hops))
	if s.Behind > 0 {
		x.Decided = append(x.Decided, fmt.Sprintf("%d probes still to change", s.Behind))
	}
	x.Installed = append(x.Installed, fmt.Sprintf("epoch %d at %d of %d agents", s.InForce, s.Have, s.Agents))
	if r := s.Rounds; r != nil && r.Surveys > 0 {
		x.Brought = append(x.Brought, fmt.Sprintf("%s rounds of probes, %s of them lost; %d probes followed at %d agents", inference.Count(r.Sent), inference.Count(r.Lost), r.Probes, r.Agents))
		if r.Refuses != "" {
			x.Brought = append(x.Brought, names.Printable(r.Refuses))
		}
	} else {
		x.Brought = append(x.Brought, "agents have not been asked for their rounds yet")
	}
	return x
}

// fantOf describes the detail on suspicious links.
func fantOf(s *loop.Status) loop.System {
	x := loop.System{System: "fant"}
	if x.State, x.Why = s.StateOfProbes(); x.State == loop.SystemOff {
		return x
	}
	detail := 0
	for _, l := range s.Suspects {
		if y := s.Links[l.Link]; y != nil && y.Detailed {
			detail++
		}
	}
	x.Decided = append(x.Decided, fmt.Sprintf("%d suspicious links; %d of %d probes in detail", len(s.Suspects), s.Detailed, s.Probes))
	for _, l := range s.Suspects[:min(len(s.Suspects), 3)] {
		x.Decided = append(x.Decided, names.Printable(l.Link+": "+l.Why))
	}
	if n := len(s.Stats.LeftOut); n > 0 {
		x.Decided = append(x.Decided, fmt.Sprintf("%d suspicious links left out by the budget", n))
	}
	if n := len(s.Stats.NoProbe); n > 0 {
		x.Decided = append(x.Decided, fmt.Sprintf("%d suspicious links on no probe", n))
	}
	x.Installed = append(x.Installed, fmt.Sprintf("epoch %d at %d of %d agents; %s changes of plan since the start", s.InForce, s.Have, s.Agents, inference.Count(s.Counts.Plans)))
	x.Brought = append(x.Brought, fmt.Sprintf("detail on %d of %d suspicious links", detail, len(s.Suspects)),
		fmt.Sprintf("%.0f B of metrics in a round, %.3g %% of those with all probes in detail", s.Stats.Bytes, 100*s.Stats.ByteRatio))
	return x
}

// intoOf describes the assignment of flows to interfaces.
func intoOf(s *loop.Status) loop.System {
	x := loop.System{System: "into", State: loop.SystemOff}
	o := s.Orchestration
	if o == nil {
		return x
	}
	x.State, x.Why = s.StateOfEntries(o.InForce, o.Assigned > 0, o.Why)
	if o.Assigned == 0 {
		return x
	}
	x.Decided = append(x.Decided, fmt.Sprintf("%d of %d interfaces on %d of %d flows; objective %g, and no plan is below %g", o.Assigned, o.Interfaces, o.FlowsUsed, o.Flows, o.Objective, o.LowerBound),
		fmt.Sprintf("at most %d items of 4 bytes on a packet; items are carried over %.2g hops on average, at most %d", o.LoadMax, o.Freshness, o.FreshnessMax))
	if o.Unserved > 0 {
		x.Decided = append(x.Decided, fmt.Sprintf("%d interfaces that fit on no flow", o.Unserved))
	}
	switches, ready := 0, 0
	for _, d := range s.Devices {
		if d.Device.Kind == control.Switch {
			if switches++; d.State == "ready" {
				ready++
			}
		}
	}
	x.Installed = append(x.Installed, fmt.Sprintf("%d entries; %d of %d switches hold what they should, read back", o.Entries, ready, switches),
		fmt.Sprintf("%s plans since the start, %d interfaces changed last", inference.Count(o.Plans), o.Changed))
	x.Brought = append(x.Brought, fmt.Sprintf("%d of %d assigned interfaces are reported", o.Reported, o.Assigned))
	if len(o.Silent) > 0 {
		x.Brought = append(x.Brought, "not reported: "+names.Printable(strings.Join(o.Silent, ", ")))
	}
	return x
}

// rftOf describes the delivery of reports.
func rftOf(s *loop.Status) loop.System {
	x := loop.System{System: "rft", State: loop.SystemOff}
	d := s.Delivery
	if d == nil {
		return x
	}
	made := len(d.Paths) > 0 || d.Plans > 0
	x.State, x.Why = s.StateOfEntries(d.InForce, made, d.Why)
	if !made {
		return x
	}
	points, received, sent := map[string]bool{}, 0., uint64(0)
	var short []string
	for _, y := range d.Paths {
		points[y.Point] = true
		if sent += y.Sent; y.Refused > 0 && len(short) < 3 {
			short = append(short, fmt.Sprintf("path %s sent %s reports, and %s beyond its rate were refused", names.Printable(y.Path), inference.Count(y.Sent), inference.Count(y.Refused)))
		}
	}
	x.Decided = append(x.Decided, fmt.Sprintf("%d of %d points over %d paths to %g of %d servers, and no plan is below %g", len(points), len(d.Points), len(d.Paths), d.Objective, len(d.Servers), d.LowerBound))
	held := 0
	for _, y := range d.Points {
		if y.Held != "" {
			held++
		}
	}
	if held > 0 {
		x.Decided = append(x.Decided, fmt.Sprintf("%d points keep their rate, since the measured one is not known or has no place", held))
	}
	x.Installed = append(x.Installed, fmt.Sprintf("%d entries; %d steps to go; %s plans since the start, %d points changed last", d.Entries, d.Left, inference.Count(d.Plans), d.Changed))
	for _, y := range d.Servers {
		if received += y.Received; !y.Up {
			x.Installed = append(x.Installed, names.Printable(fmt.Sprintf("server %s is down: %s", y.Server, y.Why)))
		}
	}
	x.Brought = append([]string{fmt.Sprintf("servers receive %.3g Mbit/s of reports; switches sent %s reports over these paths, and refused %s reports", 1000*received, inference.Count(sent), inference.Count(d.Refused))}, short...)
	return x
}

// DeviceNames names the first of some devices, and says how many there are beyond.
func DeviceNames(list []control.DeviceStatus, which func(*control.DeviceStatus) bool) (out []string) {
	const most = 20
	n := 0
	for i := range list {
		if !which(&list[i]) {
			continue
		}
		if n++; n <= most {
			out = append(out, names.Printable(list[i].Device.String()))
		}
	}
	if n > most {
		out = append(out, fmt.Sprintf("%d more", n-most))
	}
	return out
}
