package ask

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// System is a planning system of the published work: what it decided, what devices hold of it, and what it brought, in
// sentences without a full stop.
type System struct {
	System    string   `json:"system"`              // probes, into, pint, fant or rft
	Title     string   `json:"title"`               // for people
	State     string   `json:"state"`               // in-force, changing, waiting, planned, failed, unknown or off
	Why       string   `json:"why,omitempty"`       // of the state
	Decided   []string `json:"decided"`             // plans
	Installed []string `json:"installed"`           // at agents and switches
	Brought   []string `json:"brought"`             // by reports
	SwitchOn  string   `json:"switch_on,omitempty"` // how to switch it on; absent where it is on
	Docs      string   `json:"docs"`                // a page of the documentation, as a path below /docs/
}

// SystemList holds all systems.
type SystemList struct {
	Systems []System `json:"systems"`
}

// The states of a system.
const (
	SystemInForce  = "in-force" // all devices that are up have the plan
	SystemChanging = "changing" // devices get it
	SystemWaiting  = "waiting"  // for approval
	SystemPlanned  = "planned"  // and not carried out
	SystemFailed   = "failed"
	SystemUnknown  = "unknown" // the control does not answer
	SystemOff      = "off"
)

// systems are those that there are, as they are without any settings.
var systems = []System{
	{System: "probes", Title: "INT-path and INT-Probe: probe plans", Docs: "loop", SwitchOn: "plan with hopscope plan cover, run hopscope control with plan.probes, and set web.control to its admin.listen"},
	{System: "into", Title: "INTO: telemetry of interfaces on flows", Docs: "plan-orchestrate#carried-out", SwitchOn: "set orchestrate.file and orchestrate.every of hopscope control, whose switches run the program hopscope, into or rft, and web.control of the page"},
	{System: "pint", Title: "PINT: query plans", Docs: "pint#plans", SwitchOn: "plan with hopscope plan queries, and set pint.plans of the collector"},
	{System: "fant", Title: "FANT: detail for suspicious links", Docs: "loop#suspicion", SwitchOn: "run hopscope control with collector.url, from whose findings it knows suspicious links, and set web.control of the page"},
	{System: "rft", Title: "RFT: delivery of reports", Docs: "plan-delivery#carried-out", SwitchOn: "plan with hopscope plan delivery, set delivery.file of hopscope control, whose switches run the program rft, and web.control of the page"},
}

// Digests are the query plans of a collector, and what became of digests since its start.
type Digests struct {
	Plans []QueryPlan

	Received, Unread, Rejected, Duplicate, Unexplained uint64
	Decoded                                            uint64 // flows whose path became known
	Undecided                                          int    // flows without a path yet
}

// QueryPlan is the plan of an epoch.
type QueryPlan struct {
	Epoch   int
	Bits    int
	Queries []string
}

// system describes them.
func (d *Digests) system() (s System) {
	s.System = "pint"
	if d == nil || len(d.Plans) == 0 && d.Received == 0 {
		s.State = SystemOff
		return s
	}
	for _, p := range d.Plans {
		s.Decided = append(s.Decided, fmt.Sprintf("epoch %d: %s in a digest of %d bits", p.Epoch, strings.Join(p.Queries, ", "), p.Bits))
	}
	if len(d.Plans) == 0 {
		s.Decided = append(s.Decided, "no plan: digests of one of the published programs are read")
	}
	used := d.Received - min(d.Unread+d.Rejected, d.Received)
	switch {
	case d.Received == 0:
		s.State, s.Why = SystemPlanned, "no digest has come"
		s.Installed = append(s.Installed, "no switch is known to follow it")
	case used == 0:
		s.State, s.Why = SystemFailed, "no digest that came is of the plan"
		s.Installed = append(s.Installed, "no switch is known to follow it")
	default:
		s.State = SystemInForce
		s.Installed = append(s.Installed, fmt.Sprintf("switches follow it: %s of %s digests are of it", inference.Percent(float64(used)/float64(d.Received), 1), inference.Count(d.Received)))
	}
	s.Brought = append(s.Brought, fmt.Sprintf("paths of %s flows known from digests, %d undecided", inference.Count(d.Decoded), d.Undecided))
	if bad := d.Unread + d.Rejected + d.Duplicate + d.Unexplained; bad > 0 {
		s.Brought = append(s.Brought, fmt.Sprintf("digests: %s unread, %s rejected, %s duplicate, %s on no path", inference.Count(d.Unread), inference.Count(d.Rejected), inference.Count(d.Duplicate), inference.Count(d.Unexplained)))
	}
	return s
}

// ServeSystems answers what the systems decided, what is installed, and what it brought. It is of the present, also on a page
// that shows the past.
func (d *Desk) ServeSystems(w http.ResponseWriter, r *http.Request) {
	var digests *Digests
	if d.Digests != nil {
		digests = d.Digests()
	}
	known := []System{digests.system()}
	absent, why := SystemOff, ""
	if d.Control != nil && d.Command != nil {
		s := d.controlState(r.Context())
		known = append(known, s.Systems...)
		if why = s.NoAnswer; why != "" {
			absent = SystemUnknown
		}
	}
	list := SystemList{}
	for _, x := range systems {
		x.State, x.Why = absent, why
		if i := slices.IndexFunc(known, func(k System) bool { return k.System == x.System }); i >= 0 {
			k := &known[i]
			x.State, x.Why, x.Decided, x.Installed, x.Brought = k.State, k.Why, k.Decided, k.Installed, k.Brought
		}
		if x.State != SystemOff && x.State != SystemPlanned {
			x.SwitchOn = ""
		}
		for _, list := range []*[]string{&x.Decided, &x.Installed, &x.Brought} {
			if *list == nil {
				*list = []string{}
			}
		}
		list.Systems = append(list.Systems, x)
	}
	answer(w, list)
}

// controlState returns the state of the control, at most [freshState] old.
func (d *Desk) controlState(ctx context.Context) ControlState {
	c := &d.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= freshState {
		s, err := d.Control(context.WithoutCancel(ctx)) // which bounds its time, and is for the next client too
		if err != nil {
			s = ControlState{NoAnswer: err.Error()}
		}
		s.describe()
		c.state, c.at = s, time.Now()
	}
	return c.state
}
