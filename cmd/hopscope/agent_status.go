package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/spf13/cobra"
)

func agentStatusCommand() *cobra.Command {
	o := asker{Program: "agent"}
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask a running agent which plan is in force, and what it sends and receives",
		Long: `Ask a running agent for its plan, its controller and its counts. Exit status 1 if no
plan is in force, if the controller is gone, if the last plan was refused, if the
agent's line is down, if its port does not take probes, or if probes or the answers of
a session of STAMP do not come; the agent goes on with the plan that it has.`,
		Args: exactArgs(0),
	}
	c.Flags().StringVar(&o.URL, "url", "http://127.0.0.1:9464", "status.listen of the running agent")
	c.Flags().StringVar(&o.Format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var x agent.StatusAnswer
		if err := o.Get(c.Context(), "/status", &x, c.OutOrStdout()); err != nil {
			return err
		}
		if o.Format == "json" {
			return nil
		}
		if err := writeAgentStatus(c.OutOrStdout(), &x); err != nil {
			return err
		}
		if p := x.Problem(); p != "" {
			return errors.New(p)
		}
		return nil
	}
	return c
}

// writeAgentStatus writes an answer as text.
func writeAgentStatus(w io.Writer, x *agent.StatusAnswer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if x.Interface == "" {
		fmt.Fprintf(t, "agent\t%s, node %d, of STAMP alone\n", printable(x.Name, false), x.NodeID)
	} else {
		fmt.Fprintf(t, "agent\t%s, node %d, %s on %s\n", printable(x.Name, false), x.NodeID, x.Address, printable(x.Interface, false))
	}
	if p := &x.Plan; p.Epoch > 0 {
		fmt.Fprintf(t, "plan\tepoch %d from %s, since %s\n", p.Epoch, printable(p.From, false), p.Since.UTC().Format(time.RFC3339))
		fmt.Fprintf(t, "\t%d probes, %d in detail; sends %s of %s, receives %s of %s\n", p.Probes, p.Detailed, show.BitRate(p.SendBPS), show.BitRate(p.SendLimit), show.BitRate(p.ReceiveBPS), show.BitRate(p.ReceiveLimit))
	}
	if c := x.Controller; c != nil && c.Connected {
		fmt.Fprintf(t, "controller\t%s, since %s\n", printable(c.Address, false), c.Since.UTC().Format(time.RFC3339))
	}
	if x.Interface != "" {
		fmt.Fprintf(t, "sent\t%s, %s skipped, %s errors; 99 %% less than %s late\n", inference.Count(x.Sent), inference.Count(x.Skipped), inference.Count(x.SendErrors), secondsText(x.LateP99))
		fmt.Fprintf(t, "received\t%s, %d lost, %s twice, %s malformed\n", inference.Count(x.Received), x.Lost, inference.Count(x.Twice), inference.Count(x.Malformed))
	}
	if x.Corrupt+x.Refused+x.Odd+x.Unplanned > 0 {
		fmt.Fprintf(t, "not taken\t%s corrupt, %s by their digest, %s implausible; %s taken that the plan does not have\n", inference.Count(x.Corrupt), inference.Count(x.Refused),
			inference.Count(x.Odd), inference.Count(x.Unplanned))
	}
	if x.Dropped+x.Unfollowed+x.Unreported > 0 {
		fmt.Fprintf(t, "left out\t%s frames by the kernel (receive_buffer_bytes), %s probes not followed (max_probes), %s datagrams not sent to collectors\n",
			inference.Count(x.Dropped), inference.Count(x.Unfollowed), inference.Count(x.Unreported))
	}
	if x.Closed+x.Busy > 0 {
		fmt.Fprintf(t, "status\t%s silent connections closed, %s requests sent back\n", inference.Count(x.Closed), inference.Count(x.Busy))
	}
	if x.Awaited > 0 {
		fmt.Fprintf(t, "awaited\t%d probes, %d silent\n", x.Awaited, x.Silent)
	}
	if x.Received > 0 {
		fmt.Fprintf(t, "transit\thalf less than %s, 99 %% less than %s\n", secondsText(x.TransitP50), secondsText(x.TransitP99))
	}
	if r := x.Reflector; r != nil {
		refused := uint64(0)
		for _, n := range r.Refused {
			refused += n
		}
		fmt.Fprintf(t, "reflector\t%s: %s answered, %s refused; %d sessions\n", printable(strings.Join(r.Listen, ", "), false), inference.Count(r.Answered), inference.Count(refused), r.Sessions)
		if n := r.Traces; n != nil {
			fmt.Fprintf(t, "traces\t%s whole, %s without room for all routers, %s that no router filled in, %s malformed\n", inference.Count(n["whole"]), inference.Count(n["overflow"]),
				inference.Count(n["empty"]), inference.Count(n["malformed"]))
		}
	}
	if err := t.Flush(); err != nil || len(x.STAMP) == 0 {
		return err
	}
	return writeSessions(w, x)
}

// writeSessions writes a line for each session of STAMP.
func writeSessions(w io.Writer, x *agent.StatusAnswer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "\nsession\tsent\treceived\tlost\tout\thome\tlate\ttwice\treordered\tcorrupt\tround trip p50\tp99\tout p50\thome p50")
	for k := range x.STAMP {
		s := &x.STAMP[k]
		out, home := "-", "-"
		if s.Out != nil {
			out, home = shortText(s.Out.P50), shortText(s.Home.P50)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", printable(s.Name, false), s.Sent, s.Received, s.Lost, s.LostOut, s.LostHome, s.Late, s.Twice,
			s.Reordered, s.Corrupt, shortText(s.Trip.P50), shortText(s.Trip.P99), out, home)
	}
	return t.Flush()
}

// shortText is a delay with three digits or so.
func shortText(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Microsecond:
		return d.String()
	case d < 10*time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
