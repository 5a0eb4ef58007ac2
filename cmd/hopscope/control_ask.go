package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
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
	body, err := loop.AskAdmin(ctx, a.url, method, path)
	switch refused := (*loop.RefusedError)(nil); {
	case errors.Is(err, loop.ErrURL):
		return usagef("--url %w", err)
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", a.url, printable(refused.Text, false))
	case errors.Is(err, loop.ErrNoAnswer):
		return fmt.Errorf("no control answers at %s (another one: --url): %w", a.url, errors.Unwrap(err))
	case err != nil:
		return fmt.Errorf("read answer of %s: %w", a.url, err)
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
of a fleet that stands by names the one in charge, and ends with 1 if none is known.`,
		Args: exactArgs(0),
	}
	a.flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var s loop.Status
		if err := a.ask(c.Context(), http.MethodGet, "/status", &s, c.OutOrStdout()); err != nil {
			return err
		}
		if a.format != "json" {
			if err := cli.WriteControl(c.OutOrStdout(), &s); err != nil {
				return err
			}
		}
		if p := cli.ControlProblem(&s); p != "" {
			return errors.New(p)
		}
		return nil
	}
	return c
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
		return cli.WriteControlLog(c.OutOrStdout(), list)
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
	{"dry-run", "Make plans and keep them in the journal, and install none", false},
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
		var reply loop.Reply
		if err := a.ask(c.Context(), http.MethodPost, path, &reply, c.OutOrStdout()); err != nil {
			return err
		}
		if !reply.Obeyed {
			return fmt.Errorf("not done: %s", printable(reply.Error, false))
		}
		if a.format == "json" {
			return nil
		}
		return cli.WriteControl(c.OutOrStdout(), &reply.Status)
	}
	return c
}
