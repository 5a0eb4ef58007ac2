package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// controlAsker talks to a control of probes.
type controlAsker struct{ url, format string }

func (a *controlAsker) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.url, "url", "http://"+controlAddress, "admin.listen of the running control, as http://HOST:PORT or unix:PATH")
	c.Flags().StringVar(&a.format, "format", "table", "table or json")
}

// ask sends a request and reads the answer into v, or copies it to out where JSON was asked for.
func (a *controlAsker) ask(ctx context.Context, method, path string, v any, out io.Writer) error {
	if err := checkFormat(a.format); err != nil {
		return err
	}
	client, base := http.DefaultClient, strings.TrimSuffix(a.url, "/")
	if file, ok := strings.CutPrefix(a.url, "unix:"); ok && file != "" {
		base = "http://localhost"
		client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", file)
		}}}
	} else if u, err := url.Parse(a.url); err != nil || u.Host == "" || u.Scheme != "http" {
		return usagef("--url %q is neither http://HOST:PORT nor unix:PATH", a.url)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return err
	}
	if method == http.MethodPost {
		who := "somebody"
		if u, err := user.Current(); err == nil && u.Username != "" {
			who = u.Username
		}
		req.Header.Set("Hopscope-Control", who)
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no control answers at %s (another one: --url): %w", a.url, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", a.url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", a.url, plain(strings.TrimSpace(string(body)), false))
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s does not answer as a control does: %w", a.url, err)
	}
	if a.format == "json" {
		_, err = fmt.Fprintf(out, "%s\n", bytes.TrimSpace(body))
	}
	return err
}

func controlStatusCommand() *cobra.Command {
	var a controlAsker
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask a running control which plan is in force, what is suspicious, and how devices are",
		Long: `Ask a running control for its plan, the suspicious links and their probes, and its
agents and switches. Exit status 1 if there is something that an operator should look
at: no plan in force, a plan refused or waiting for approval, devices that failed or
are gone, a journal that cannot be written, or another controller in charge. A control
of a fleet that stands by says who is in charge, and ends with 1 if that is not known.`,
		Args: exactArgs(0),
	}
	a.flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var s loop.Status
		if err := a.ask(c.Context(), http.MethodGet, "/status", &s, c.OutOrStdout()); err != nil {
			return err
		}
		if a.format != "json" {
			if err := writeControlStatus(c.OutOrStdout(), &s); err != nil {
				return err
			}
		}
		if p := controlProblem(&s); p != "" {
			return errors.New(p)
		}
		return nil
	}
	return c
}

// controlProblem is what an operator should look at, in a sentence, or "".
func controlProblem(s *loop.Status) string {
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
	case s.Phase == control.Stood:
		return "another controller is in charge: " + s.Why
	case s.Loop.Journal != "":
		return "the journal cannot be written, and nothing is pushed: " + s.Loop.Journal
	case s.Loop.Fence != "":
		return "the fleet does not confirm that this control is in charge, and nothing is pushed: " + s.Loop.Fence
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
	}
	return ""
}

// mostDevices is how many devices that do not follow are listed.
const mostDevices = 20

// writeControlStatus writes an answer for people.
func writeControlStatus(w io.Writer, s *loop.Status) error {
	if s.Standby != nil {
		if s.Standby.Term == 0 { // it is the error
			return nil
		}
		_, err := fmt.Fprintln(w, plain(s.Standby.Why, false))
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
	fmt.Fprintf(t, "network\t%s; a cycle of %v%s\n", plain(s.Network, false), s.Cycle, mode)
	fmt.Fprintf(t, "plan\tepoch %d, %s; in force %d, before it %d\n", s.Epoch, s.Phase, s.InForce, s.Before)
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
			refused = fmt.Sprintf("; %d answers refused: %s", r.Refused, plain(r.Why, false))
		}
		fmt.Fprintf(t, "rounds\t%d lost of %d; followed of %d probes by what %d agents tell%s\n", r.Lost, r.Sent, r.Probes, r.Agents, refused)
	}
	fmt.Fprintf(t, "agents\t%s\n", states(count, "agent "))
	if list := states(count, "switch "); list != "" {
		fmt.Fprintf(t, "switches\t%s\n", list)
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
			fmt.Fprintf(t, "%s\t%.3g\t%s\t%s\n", plain(x.Link, false), x.Weight, detail, plain(x.Why, false))
		}
	}
	left := 0
	for _, d := range s.Devices {
		if d.State == "ready" || d.State == "behind" {
			continue
		}
		if left++; left <= mostDevices {
			fmt.Fprintf(t, "%s\t%s\t\t%s\n", plain(d.Device.String(), false), d.State, plain(d.Why, false))
		}
	}
	if left > mostDevices {
		fmt.Fprintf(t, "and %d more\t\t\t\n", left-mostDevices)
	}
	return t.Flush()
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

func controlLogCommand() *cobra.Command {
	var a controlAsker
	var n int
	c := &cobra.Command{
		Use:   "log",
		Short: "Print what a running control pushed where, and what came back",
		Args:  exactArgs(0),
	}
	a.flags(c)
	c.Flags().IntVar(&n, "lines", 100, "of the last records")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if n < 1 {
			return usagef("--lines %d is not positive", n)
		}
		var list []control.Record
		if err := a.ask(c.Context(), http.MethodGet, fmt.Sprintf("/log?n=%d", n), &list, c.OutOrStdout()); err != nil || a.format == "json" {
			return err
		}
		t := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
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
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s%s\n", time.Unix(0, r.Time).UTC().Format("2006-01-02 15:04:05.000"), r.What, epoch, plain(r.Device, false), plain(what, false), plain(r.Why, false))
		}
		return t.Flush()
	}
	return c
}

// controlVerb is a command that a control obeys.
type controlVerb struct {
	name, short string
	epoch       bool
}

var controlVerbs = []controlVerb{
	{"pause", "Begin no other plan; what is in force is kept up", false},
	{"resume", "End a pause; after another controller was in charge, read everything back and take over", false},
	{"approve", "Begin the plan that waits for approval", true},
	{"reject", "Forget the plan that waits for approval", false},
	{"rollback", "Bring back the plan before, under a new epoch, and pause", false},
	{"dry-run", "Make plans and keep them in the journal, and give them to nobody", false},
	{"wet-run", "End a dry run", false},
}

func (v controlVerb) command() *cobra.Command {
	var a controlAsker
	var epoch uint32
	c := &cobra.Command{Use: v.name, Short: v.short, Args: exactArgs(0)}
	a.flags(c)
	if v.epoch {
		c.Flags().Uint32Var(&epoch, "epoch", 0, "of the plan, so that no other one is meant; 0 for whichever waits")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := "/" + v.name
		if epoch > 0 {
			path += fmt.Sprintf("?epoch=%d", epoch)
		}
		var said loop.Said
		if err := a.ask(c.Context(), http.MethodPost, path, &said, c.OutOrStdout()); err != nil {
			return err
		}
		if !said.Obeyed {
			return fmt.Errorf("not done: %s", plain(said.Error, false))
		}
		if a.format == "json" {
			return nil
		}
		return writeControlStatus(c.OutOrStdout(), &said.Status)
	}
	return c
}
