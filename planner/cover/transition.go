package cover

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// Elements are the probes of a plan as a transition sees them. A probe covers the links that it passes, in a directed plan
// the directions. Probes of the second cover cover them apart, since both covers are wanted.
//
// A probe that the network of p does not let pass covers nothing: it does not come back. Without p all are taken to pass. With agents
// a probe takes some of what its agents can send and receive. Of probes with the same id the first counts, and one without an id does
// not: it could not be switched off.
func Elements(p *Problem, plan *Plan) []planner.Element {
	list := make([]planner.Element, 0, len(plan.Probes)+len(plan.Second))
	seen := map[string]bool{"": true}
	for n, probes := range [...][]planner.Probe{plan.Probes, plan.Second} {
		prefix := [...]string{"", "second cover of "}[n]
		for k := range probes {
			if id := probes[k].ID; !seen[id] {
				seen[id] = true
				list = append(list, element(p, &probes[k], prefix, plan.Directed))
			}
		}
	}
	return list
}

func element(p *Problem, probe *planner.Probe, prefix string, directed bool) planner.Element {
	e := planner.Element{ID: probe.ID, Form: fmt.Sprint(prefix, strings.Join(probe.Nodes, "\x00"), probe.Ports, probe.Agent, "\x00", probe.Collector, "\x00", probe.AgentHost, "\x00", probe.CollectorHost)}
	if probe.AgentHost != "" || probe.CollectorHost != "" {
		e.Uses = map[string]float64{"what is sent by " + probe.AgentHost: 1, "what is received by " + probe.CollectorHost: 1}
	}
	if p != nil && !passes(p, probe) {
		return e
	}
	for k, l := range probe.Links {
		if directed && k < len(probe.Nodes) {
			l += " from " + probe.Nodes[k]
		}
		e.Covers = append(e.Covers, prefix+l)
	}
	return e
}

// passes reports whether the network still lets a probe go its way.
func passes(p *Problem, probe *planner.Probe) bool {
	w, err := planner.Walk(p.Graph, probe)
	if err != nil {
		return false
	}
	for k, i := range w {
		if !p.Usable(int(i)) || k > 0 && p.host(p.Graph.Node(int(i))) {
			return false
		}
	}
	return true
}

// Capacities returns what the agents of a problem can send and receive, by the names of resources in [Elements].
func Capacities(p *Problem) map[string]float64 {
	of := map[string]float64{}
	for _, a := range p.Agents {
		of["what is sent by "+a.Name], of["what is received by "+a.Name] = float64(a.Send), float64(a.Receive)
	}
	return of
}

// Replace fills in the transition from an older plan to this one.
func (plan *Plan) Replace(p *Problem, old *Plan) error {
	return plan.Replacement.Replace(Elements(p, old), Elements(p, plan), Capacities(p))
}

// CheckTransition returns in what the transition of a plan does not lead from an older one to it, step by step.
func CheckTransition(p *Problem, old, plan *Plan) error {
	return plan.CheckReplacement(Elements(p, old), Elements(p, plan), Capacities(p))
}

// checkOwn returns where the transition of a plan does not fit its own probes. The check against the older plan is
// [CheckTransition], which has that plan.
func (plan *Plan) checkOwn() error {
	t := plan.Transition
	if t == nil {
		return nil
	}
	probes := map[string]bool{}
	for _, list := range [...][]planner.Probe{plan.Probes, plan.Second} {
		for k := range list {
			probes[list[k].ID] = true
		}
	}
	step := map[string]planner.Op{} // that is missing, by id
	listed, all := map[string]bool{}, 0
	for _, l := range [...]struct {
		ids []string
		op  planner.Op
	}{{t.Add, planner.OpAdd}, {t.Remove, planner.OpRemove}, {t.Change, planner.OpChange}, {t.Keep, ""}} {
		for _, id := range l.ids {
			if listed[id] || probes[id] != (l.op != planner.OpRemove) {
				return fmt.Errorf("the transition lists %q twice, or where no probe of the plan belongs", id)
			}
			if listed[id] = true; l.op != "" && plan.Deadlock == "" {
				step[id] = l.op
			}
		}
		if l.op != planner.OpRemove {
			all += len(l.ids)
		}
	}
	if all != len(probes) {
		return fmt.Errorf("the transition leads to %d probes, the plan has %d", all, len(probes))
	}
	for _, s := range t.Steps {
		if op, ok := step[s.ID]; !ok || op != s.Op {
			return fmt.Errorf("the transition has a step to %s %q, which its lists do not have", s.Op, s.ID)
		}
		delete(step, s.ID)
	}
	if len(step) > 0 {
		return fmt.Errorf("the transition has no steps for %d of the probes that it lists", len(step))
	}
	return nil
}
