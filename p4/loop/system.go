package loop

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/control"
)

// System is a planning system that a control carries out: what it decided, what devices hold of it, and what it brought,
// in sentences without a full stop.
type System struct {
	System string // probes, fant, into or rft
	State  string // in-force, changing, waiting, planned, failed or off
	Why    string // of the state

	Decided, Installed, Brought []string
}

// The states of a system.
const (
	SystemInForce  = "in-force"
	SystemChanging = "changing"
	SystemWaiting  = "waiting"
	SystemPlanned  = "planned"
	SystemFailed   = "failed"
	SystemOff      = "off"
)

// StateOfProbes is the state of the plan of probes, and why.
func (s *Status) StateOfProbes() (state, why string) {
	switch {
	case s.Phase == control.NoNetwork:
		return SystemOff, "the plan of the control has no probes"
	case s.Phase == control.Deposed:
		return SystemFailed, "another controller is in charge: " + s.Why
	case s.Pending != nil:
		return SystemWaiting, fmt.Sprintf("the plan of epoch %d waits for approval", s.Pending.Epoch)
	case s.DryRun:
		return SystemPlanned, "dry run: plans are made and not installed"
	case s.Why != "":
		return SystemFailed, s.Why
	case s.Epoch == 0 || s.Epoch != s.InForce:
		return SystemChanging, string(s.Phase)
	}
	return SystemInForce, ""
}

// StateOfEntries is the state of a system whose plans are entries of switches, and why. A plan may have been made, and
// be in force; failure is why the last one was not made.
func (s *Status) StateOfEntries(inForce, made bool, failure string) (state, why string) {
	switch {
	case inForce:
		return SystemInForce, failure
	case !made && failure != "":
		return SystemFailed, failure
	case !made:
		return SystemChanging, "no plan is made yet"
	case s.Pending != nil:
		return SystemWaiting, "the plan waits for approval"
	case s.DryRun:
		return SystemPlanned, "dry run: plans are made and not installed"
	}
	for _, d := range s.Devices {
		if failure == "" && d.Device.Kind == control.Switch && d.State == "failed" {
			failure = d.Why
		}
	}
	return SystemChanging, failure
}
