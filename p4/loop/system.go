package loop

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
	return SystemChanging, failure
}
