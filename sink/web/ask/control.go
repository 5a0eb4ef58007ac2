package ask

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink/web/access"
)

// Command hands a command to a control of probes, in the name of an author. An error is why it was not obeyed.
type Command func(ctx context.Context, verb string, epoch uint32, author string) error

// AskControl asks a control of probes for its state. An error is why it did not answer.
type AskControl func(ctx context.Context) (ControlState, error)

// ControlState is the state of the control of probes, with the commands that make sense in it.
type ControlState struct {
	Phase    string           `json:"phase"`                   // starting, making, moving, breaking, steady, stood-down, no-network or standby
	Why      string           `json:"why,omitempty"`           // of the phase, or why the last plan was refused
	Epoch    uint32           `json:"epoch"`                   // of the target plan; 0 for none
	InForce  uint32           `json:"in_force"`                // epoch of the plan that agents have confirmed; 0 for none
	Back     uint32           `json:"back"`                    // epoch that a rollback restores; 0 for none
	Paused   bool             `json:"paused"`                  // no other plan is begun
	DryRun   bool             `json:"dry_run"`                 // plans are made and not installed
	Waiting  uint32           `json:"waiting,omitempty"`       // epoch that waits for approval; absent for none
	WaitsWhy string           `json:"waiting_why,omitempty"`   // why that plan was made
	Loads    []string         `json:"loads,omitempty"`         // switches whose program waits for approval to be loaded
	Failed   []string         `json:"failed,omitempty"`        // devices that a resume tries again
	StandsBy string           `json:"stands_by,omitempty"`     // why it steers nothing; absent if it does
	NoAnswer string           `json:"not_answering,omitempty"` // why nothing is known; all else is then empty
	Commands []ControlCommand `json:"commands"`                // every command, in the order in which they are shown

	Systems []System `json:"-"` // that it carries out
}

// ControlCommand is a command of the control of probes.
type ControlCommand struct {
	Command string `json:"command"`           // pause, resume, approve, reject, rollback, dry-run or wet-run
	Barred  string `json:"barred,omitempty"`  // why it is impossible in this state; absent if it is possible
	Confirm string `json:"confirm,omitempty"` // what it does irrevocably; absent if nothing
}

// commands are those that a control obeys.
var commands = []string{"pause", "resume", "approve", "reject", "rollback", "dry-run", "wet-run"}

// changeOver are the phases in which a change-over is under way.
var changeOver = []string{"making", "moving", "breaking"}

// The reasons for which a command makes no sense, as the control itself gives them where it would refuse it.
const (
	nothingWaits = "no plan waits for approval"
	otherControl = "another controller is in charge: resume takes over"
	dryRun       = "this is a dry run, which wet-run ends"
)

// barred returns why a command makes no sense now, or "".
func (s *ControlState) barred(command string) string {
	deposed := s.Phase == "stood-down"
	switch {
	case s.NoAnswer != "":
		return "the control does not answer"
	case s.StandsBy != "":
		return s.StandsBy
	}
	switch command {
	case "pause":
		if s.Paused {
			return "it is paused"
		}
	case "resume":
		if !s.Paused && !deposed && len(s.Failed) == 0 {
			return "it is not paused"
		}
	case "approve":
		switch {
		case s.Waiting == 0 && len(s.Loads) == 0:
			return nothingWaits
		case deposed:
			return otherControl
		case s.DryRun:
			return dryRun
		case s.Waiting > 0 && slices.Contains(changeOver, s.Phase):
			return "a change-over is under way"
		}
	case "reject":
		if s.Waiting == 0 {
			return nothingWaits
		}
	case "rollback":
		switch {
		case deposed:
			return otherControl
		case s.DryRun:
			return dryRun
		case s.Back == 0:
			return "there is no plan before this one"
		}
	case "dry-run":
		if s.DryRun {
			return "it is a dry run"
		}
	case "wet-run":
		if !s.DryRun {
			return "it is no dry run"
		}
	}
	return ""
}

// confirm returns what a command does that no other one takes back, or "".
func (s *ControlState) confirm(command string) string {
	switch {
	case command == "resume" && s.Phase == "stood-down":
		return "This control takes over from the one that is in charge."
	case command == "approve" && s.Waiting > 0:
		return fmt.Sprintf("The plan of epoch %d is installed.", s.Waiting)
	case command == "approve":
		return "Programs are loaded, which empties the tables of " + strings.Join(s.Loads, ", ") + "."
	case command == "reject":
		return fmt.Sprintf("The plan of epoch %d is forgotten.", s.Waiting)
	case command == "rollback":
		return fmt.Sprintf("The plan of epoch %d is installed again under a new epoch, and control pauses.", s.Back)
	case command == "wet-run":
		return "Plans are installed from now on."
	}
	return ""
}

// describe fills in the commands.
func (s *ControlState) describe() {
	s.Commands = nil
	for _, c := range commands {
		x := ControlCommand{Command: c, Barred: s.barred(c)}
		if x.Barred == "" {
			x.Confirm = s.confirm(c)
		}
		s.Commands = append(s.Commands, x)
	}
}

// freshState is how long an answer of the control serves all pages that are open.
const freshState = time.Second

// controlCache holds the last state of the control, so that any number of pages costs it one request at a time.
type controlCache struct {
	mu    sync.Mutex
	state ControlState
	at    time.Time // zero for none
}

// forget has the next page ask anew.
func (c *controlCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

// ServeControl answers the state of the control of probes.
func (d *Desk) ServeControl(w http.ResponseWriter, r *http.Request) {
	if d.Control == nil || d.Command == nil {
		access.Problem(w, http.StatusNotFound, noControl)
		return
	}
	answer(w, d.controlState(r.Context()))
}
