package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// ControlProblem returns the problem in the status of a control, as a sentence for operators, or "".
func ControlProblem(s *loop.Status) string {
	bad, first := 0, ""
	for _, d := range s.Devices {
		if d.State == "down" || d.State == "silent" || d.State == "failed" {
			if bad++; first == "" {
				first = fmt.Sprintf("%s is %s", d.Device, d.State)
			}
		}
	}
	switch {
	case s.Standby != nil && s.Standby.Term == 0:
		return s.Standby.Why
	case s.Standby != nil && s.Standby.Refused != "":
		return "the settings were not reloaded, and those before would be steered by: " + s.Standby.Refused
	case s.Standby != nil:
		return ""
	case s.Phase == control.Deposed:
		return "another controller is in charge: " + s.Why
	case s.Loop.Journal != "":
		return "the journal cannot be written, and nothing is pushed: " + s.Loop.Journal
	case s.Loop.Fence != "":
		return "the fleet does not confirm that this control is in charge, and nothing is pushed: " + s.Loop.Fence
	case slices.ContainsFunc(s.Devices, func(d control.DeviceStatus) bool { return strings.HasSuffix(d.Why, "loading it waits for approval") }):
		return "the loading of a program into a switch waits for approval"
	case s.Pending != nil:
		return fmt.Sprintf("the plan of epoch %d waits for approval", s.Pending.Epoch)
	case s.Loop.NetworkRefused != "":
		return "the settings were not reloaded, and what was in force stays: " + s.Loop.NetworkRefused
	case s.Why != "":
		return s.Why
	case bad > 0:
		return fmt.Sprintf("%d of %d devices do not follow: %s", bad, len(s.Devices), first)
	case s.InForce == 0 && !s.DryRun:
		return "no plan is in force yet"
	case s.Orchestration != nil && s.Orchestration.Why != "" && s.Orchestration.Assigned == 0:
		return "no assignment of flows to interfaces: " + s.Orchestration.Why
	case s.Orchestration != nil && s.Orchestration.Why != "":
		return "no new assignment of flows to interfaces, and the one before stays: " + s.Orchestration.Why
	case s.Delivery != nil && s.Delivery.Why != "":
		return "no new plan of delivery, and the one before stays: " + s.Delivery.Why
	case s.Rounds != nil && s.Rounds.Refuses != "":
		return s.Rounds.Refuses
	}
	return ""
}

// mostDevices is how many devices that are not ready are listed.
const mostDevices = 20

// WriteControl writes the status of a control as tables.
func WriteControl(w io.Writer, s *loop.Status) error {
	if s.Standby != nil {
		if s.Standby.Term == 0 { // it is the error
			return nil
		}
		_, err := fmt.Fprintln(w, names.Printable(s.Standby.Why))
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	mode := ""
	if s.Paused {
		mode += ", paused"
	}
	if s.DryRun {
		mode += ", dry run"
	}
	if s.Behind > 0 {
		mode += fmt.Sprintf(", %d probes still to change", s.Behind)
	}
	fmt.Fprintf(t, "network\t%s; a cycle of %v%s\n", names.Printable(s.Network), s.Cycle, mode)
	have := ""
	if s.InForce > 0 && s.Have < s.Agents {
		have = fmt.Sprintf(" at %d of %d agents", s.Have, s.Agents)
	}
	fmt.Fprintf(t, "plan\tepoch %d, %s; in force %d%s, before it %d\n", s.Epoch, s.Phase, s.InForce, have, s.Before)
	fmt.Fprintf(t, "probes\t%d, %d of them in detail; %.3g %% of the bytes of all in detail\n", s.Probes, s.Detailed, 100*s.Stats.ByteRatio)
	if s.Loop.Acked != 0 {
		fmt.Fprintf(t, "change-over\tat all devices after %v\n", time.Duration(s.Loop.Acked-s.Loop.Began).Round(time.Microsecond))
	}
	count := map[string]int{}
	for _, d := range s.Devices {
		count[d.Device.Kind.String()+" "+d.State]++
	}
	if r := s.Rounds; r != nil && r.Surveys > 0 {
		refused := ""
		if r.Refused > 0 {
			refused = fmt.Sprintf("; %d answers refused: %s", r.Refused, names.Printable(r.Why))
		}
		if r.Unsent > 0 {
			refused = fmt.Sprintf("; %d not sent by their agents", r.Unsent) + refused
		}
		fmt.Fprintf(t, "rounds\t%d lost of %d; followed of %d probes by the answers of %d agents%s\n", r.Lost, r.Sent, r.Probes, r.Agents, refused)
	}
	fmt.Fprintf(t, "agents\t%s\n", states(count, "agent "))
	if list := states(count, "switch "); list != "" {
		fmt.Fprintf(t, "switches\t%s\n", list)
	}
	if o := s.Orchestration; o != nil {
		state := "not in force yet"
		if o.InForce {
			state = "in force"
		}
		fmt.Fprintf(t, "telemetry\t%d of %d interfaces on %d of %d flows, %s; %d entries, %d interfaces changed last\n", o.Assigned, o.Interfaces, o.FlowsUsed, o.Flows, state, o.Entries, o.Changed)
		fmt.Fprintf(t, "\tat most %d items on a packet; freshness %.3g hops, at most %d; %d of %d interfaces are reported%s\n", o.LoadMax, o.Freshness, o.FreshnessMax, o.Reported, o.Assigned, silent(o))
	}
	if d := s.Delivery; d != nil {
		writeDelivery(t, d)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(s.Suspects) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(t, "suspicious\tweight\tdetail\twhy")
		for _, x := range s.Suspects {
			detail := "no probe"
			if l := s.Links[x.Link]; l != nil && l.Detailed {
				detail = "yes"
			} else if l != nil && l.Covered {
				detail = "left out"
			}
			fmt.Fprintf(t, "%s\t%.3g\t%s\t%s\n", names.Printable(x.Link), x.Weight, detail, names.Printable(x.Why))
		}
	}
	left := 0
	for _, d := range s.Devices {
		if d.State == "ready" || d.State == "behind" {
			continue
		}
		if left++; left <= mostDevices {
			fmt.Fprintf(t, "%s\t%s\t\t%s\n", names.Printable(d.Device.String()), d.State, names.Printable(d.Why))
		}
	}
	if left > mostDevices {
		fmt.Fprintf(t, "and %d more\t\t\t\n", left-mostDevices)
	}
	return t.Flush()
}

// writeDelivery writes the delivery of reports.
func writeDelivery(w io.Writer, d *p4.DeliveryStatus) {
	state := "not in force yet"
	switch {
	case d.InForce:
		state = "in force"
	case d.Left > 0:
		state = fmt.Sprintf("%d steps to go", d.Left)
	}
	fmt.Fprintf(w, "reports\t%d points over %d paths to %g of %d servers, %s; %d entries, %d points changed last, %d reports refused\n", len(d.Points), len(d.Paths), d.Objective, len(d.Servers), state, d.Entries, d.Changed, d.Refused)
	for _, x := range d.Servers {
		word := "off"
		if x.On {
			word = "on"
		}
		if !x.Up {
			word += ", down: " + x.Why
		}
		fmt.Fprintf(w, "\tserver %s: %.3g of %.3g Mbit/s; %s\n", names.Printable(x.Server), 1000*x.Received, 1000*x.Rate, names.Printable(word))
	}
	for _, x := range d.Points {
		if x.Constraint != "" {
			fmt.Fprintf(w, "\tpoint %s is not served: %s\n", names.Printable(x.Point), names.Printable(x.Constraint))
		}
		if x.Held != "" {
			fmt.Fprintf(w, "\tpoint %s keeps its rate: %s\n", names.Printable(x.Point), names.Printable(x.Held))
		}
	}
	for _, x := range d.Paths {
		fmt.Fprintf(w, "\tpath %s: %.3g Mbit/s; %d reports sent, %d refused\n", names.Printable(strings.Join(x.Nodes, " ")), 1000*x.Rate, x.Sent, x.Refused)
	}
}

// silent names interfaces without a report.
func silent(o *loop.Orchestration) string {
	if len(o.Silent) == 0 {
		return ""
	}
	return ", and not " + names.Printable(strings.Join(o.Silent, ", "))
}

// because is a reason in brackets, or nothing.
func because(why string) string {
	if why == "" {
		return ""
	}
	return " (not done: " + why + ")"
}

// states lists how many devices of a kind are in which state.
func states(count map[string]int, kind string) string {
	var list []string
	for _, state := range []string{"ready", "behind", "unknown", "silent", "failed", "down"} {
		if n := count[kind+state]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(list, ", ")
}

// WriteControlLog writes records of a journal as a table.
func WriteControlLog(w io.Writer, list []control.Record) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i := range list {
		r := &list[i]
		epoch, what := "", ""
		if r.Epoch > 0 {
			epoch = fmt.Sprint(r.Epoch)
		}
		if r.Count > 0 {
			what = fmt.Sprintf("%d ", r.Count)
		}
		for _, x := range []struct {
			word string
			ids  []string
		}{{"+", r.On}, {"-", r.Off}, {"left out ", r.Left}} {
			for _, id := range x.ids {
				what += x.word + id + " "
			}
		}
		if r.Unchecked {
			what = "(unchecked) " + what
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s%s\n", time.Unix(0, r.Time).UTC().Format("2006-01-02 15:04:05.000"), r.What, epoch, names.Printable(r.Device), names.Printable(what), names.Printable(r.Why))
		for _, e := range r.Entries {
			fmt.Fprintf(t, "\t\t\t%s\t%s\n", e.Op, names.Printable(e.Key+" = "+e.Value+because(e.Why)))
		}
	}
	return t.Flush()
}
