package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
)

func topCommand() *cobra.Command {
	var a asker
	var limit int
	var sort string
	var interfaces, probes bool
	var from, to string
	c := &cobra.Command{
		Use:   "top",
		Short: "Ask a running collector for its worst hops, interfaces or paths of probes",
		Long: `Print the hops that were worst lately, in the order of the third column: the largest
value of --sort in the last windows. The columns behind it are of each hop's last
window. Times and queues have three digits; json and the series have all. Of a hop
that is learning it is not known yet what is usual, and findings about it are marked.

With --interfaces, print the interfaces whose counters come instead: those first that
lose the greatest share of their packets, then those with the greatest use in one
direction. Counts are of the last windows; "-" is what did not come.

With --probes, print what became of the probes between agents: those paths first that
lose or damage the greatest share of them, then those with the greatest delay.

With --from, print the hops of a range of the history on disk, and what it lacks
(docs/operating.md). A time is written as 2026-11-22T22:00:00Z, or as its distance
from now: 168h is a week ago.`,
		Example: `  hopscope top
  hopscope top --from 168h --to 144h
  hopscope top --sort queue_p99 --limit 5
  hopscope top --interfaces
  hopscope top --probes`,
		Args: exactArgs(0),
	}
	a.Flags(c)
	c.Flags().IntVar(&limit, "limit", 20, "rows to print, 1 to 200")
	c.Flags().StringVar(&sort, "sort", "latency_p99", strings.Join(web.MetricNames(), ", ")+" or node")
	c.Flags().StringVar(&from, "from", "", "begin of a range of the history: a time, or its distance from now such as 168h")
	c.Flags().StringVar(&to, "to", "", "end of that range, in the same form (default: now)")
	c.Flags().BoolVar(&interfaces, "interfaces", false, "print interfaces, not hops")
	c.Flags().BoolVar(&probes, "probes", false, "print paths of probes between agents, not hops")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if names := append(web.MetricNames(), "node"); !slices.Contains(names, sort) {
			return usagef("--sort %q is none of %s", sort, strings.Join(names, ", "))
		}
		if limit < 1 || limit > 200 {
			return usagef("--limit %d is outside 1..200", limit)
		}
		w := c.OutOrStdout()
		span := url.Values{}
		if c.Flags().Changed("from") || c.Flags().Changed("to") {
			if interfaces || probes {
				return usagef("--from and --to are for hops: the history has no interfaces and no paths of probes")
			}
			if from == "" {
				return usagef("--to is the end of a range, which needs --from")
			}
			var err error
			if span, err = spanOf(from, to, time.Now()); err != nil {
				return err
			}
		}
		if (interfaces || probes) && c.Flags().Changed("sort") {
			return usagef("--sort is for hops: interfaces and paths of probes have one order")
		}
		if interfaces && probes {
			return usagef("--interfaces and --probes are two tables: ask for one")
		}
		if probes {
			var got ask.Probed
			if err := a.Get(c.Context(), fmt.Sprintf("/api/probed?limit=%d", limit), &got, w); err != nil || a.Format == "json" {
				return err
			}
			return got.Write(w)
		}
		if interfaces {
			var got ask.Interfaces
			if err := a.Get(c.Context(), fmt.Sprintf("/api/interfaces?limit=%d", limit), &got, w); err != nil || a.Format == "json" {
				return err
			}
			return got.Write(w, ask.Get(a.Into).Names(c.Context()))
		}
		var got ask.Hops
		query := span
		query.Set("limit", fmt.Sprint(limit))
		query.Set("sort", sort)
		if err := a.Get(c.Context(), "/api/hops?"+query.Encode(), &got, w); err != nil || a.Format == "json" {
			return err
		}
		defer ask.Get(a.Into).WriteDialects(c.Context(), w)
		return got.Write(w, sort, ask.Get(a.Into).Names(c.Context()))
	}
	return c
}

// spanOf returns the parameters of the API for a range of the history. An empty end is now.
func spanOf(from, to string, now time.Time) (url.Values, error) {
	ms := func(flag, text string) (int64, error) {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return now.Add(-d).UnixMilli(), nil
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.UnixMilli() < 0 {
			return 0, usagef("--%s %q is no time such as 2026-11-22T22:00:00Z, and no distance from now such as 168h", flag, text)
		}
		return t.UnixMilli(), nil
	}
	begin, err := ms("from", from)
	if err != nil {
		return nil, err
	}
	end := now.UnixMilli()
	if to != "" {
		if end, err = ms("to", to); err != nil {
			return nil, err
		}
	}
	if begin >= end {
		return nil, usagef("--from is not before --to")
	}
	return url.Values{"from": {fmt.Sprint(begin)}, "to": {fmt.Sprint(end)}}, nil
}

func flowCommand() *cobra.Command {
	var a asker
	var filter string
	c := &cobra.Command{
		Use:   "flow [KEY]",
		Short: "Ask a running collector about one flow, or for the busiest ones",
		Example: `  hopscope flow
  hopscope flow --filter leaf-3
  hopscope flow --filter "node 7 interface 3"
  hopscope flow "10.0.0.1:80 > 10.0.0.2:5001 tcp"`,
		Args: maxArgs(1),
	}
	a.Flags(c)
	c.Flags().StringVar(&filter, "filter", "", "only flows over a node or hop, or of a host, address or prefix: leaf-3, 7:3, 10.1.0.0/16")
	c.RunE = func(c *cobra.Command, args []string) error {
		w := c.OutOrStdout()
		if len(args) == 0 {
			return askFlows(c.Context(), &a, filter, w)
		}
		if c.Flags().Changed("filter") {
			return usagef("KEY is one flow, and excludes --filter")
		}
		return askFlow(c.Context(), &a, args[0], w)
	}
	return c
}

func findCommand() *cobra.Command {
	var a asker
	var limit int
	c := &cobra.Command{
		Use:   "find TEXT",
		Short: "Search nodes, interfaces, hosts, exporters, flows, probes and findings by name, number, address or prefix",
		Example: `  hopscope find leaf-3
  hopscope find 10.1.0.0/16 --limit 50`,
		Args: exactArgs(1),
	}
	a.Flags(c)
	c.Flags().IntVar(&limit, "limit", 5, "hits of a kind to print, 1 to 50")
	c.RunE = func(c *cobra.Command, args []string) error {
		if limit < 1 || limit > 50 {
			return usagef("--limit %d is outside 1..50", limit)
		}
		var got ask.FoundList
		query := url.Values{"q": args, "limit": {fmt.Sprint(limit)}}
		if err := a.Get(c.Context(), "/api/find?"+query.Encode(), &got, c.OutOrStdout()); err != nil || a.Format == "json" {
			return err
		}
		return got.Write(c.OutOrStdout(), a.URL)
	}
	return c
}

// given returns the flags of c with which a further command asks the same page, behind a space each.
func given(c *cobra.Command, a *asker) (flags string) {
	if c.Flags().Changed("url") {
		flags += " --url " + ask.Address(a.URL)
	}
	if a.TokenFile != "" {
		flags += fmt.Sprintf(" --token-file %q", a.TokenFile)
	}
	return flags
}

// askFlows prints the busiest flows that a filter finds.
func askFlows(ctx context.Context, a *asker, filter string, w io.Writer) error {
	var got struct{ Flows []ask.Flow }
	path := "/api/flows"
	if filter != "" {
		path += "?" + url.Values{"q": {filter}}.Encode()
	}
	if err := a.Get(ctx, path, &got, w); err != nil || a.Format == "json" {
		return err
	}
	if filter != "" && len(got.Flows) == 0 {
		_, err := fmt.Fprintf(w, "No flow of the kept windows fits %q.\n", filter)
		return err
	}
	return ask.WriteFlows(w, got.Flows, ask.Get(a.Into).Names(ctx))
}

// askFlow prints one flow.
func askFlow(ctx context.Context, a *asker, key string, w io.Writer) error {
	k, err := decode.ParseFlow(key)
	if err != nil {
		return usagef("%w; flows of a node or host: --filter", err)
	}
	var got struct{ Flow ask.Flow }
	if err := a.Get(ctx, "/api/flow?"+url.Values{"key": {k.String()}}.Encode(), &got, w); err != nil || a.Format == "json" {
		return err
	}
	return got.Flow.Write(w, k, ask.Get(a.Into).Names(ctx))
}
