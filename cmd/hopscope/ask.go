package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

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
lose or damage the greatest share of them, then those with the greatest delay.`,
		Example: `  hopscope top
  hopscope top --sort queue_p99 --limit 5
  hopscope top --interfaces
  hopscope top --probes`,
		Args: exactArgs(0),
	}
	a.Flags(c)
	c.Flags().IntVar(&limit, "limit", 20, "rows to print, 1 to 200")
	c.Flags().StringVar(&sort, "sort", "latency_p99", strings.Join(web.MetricNames(), ", ")+" or node")
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
		query := url.Values{"limit": {fmt.Sprint(limit)}, "sort": {sort}}
		if err := a.Get(c.Context(), "/api/hops?"+query.Encode(), &got, w); err != nil || a.Format == "json" {
			return err
		}
		defer ask.Get(a.Into).WriteDialects(c.Context(), w)
		return got.Write(w, sort, ask.Get(a.Into).Names(c.Context()))
	}
	return c
}

func flowCommand() *cobra.Command {
	var a asker
	c := &cobra.Command{
		Use:   "flow [KEY]",
		Short: "Ask a running collector about one flow, or for the busiest ones",
		Example: `  hopscope flow
  hopscope flow "10.0.0.1:80 > 10.0.0.2:5001 tcp"`,
		Args: maxArgs(1),
	}
	a.Flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		w := c.OutOrStdout()
		if len(args) == 0 {
			return askFlows(c.Context(), &a, w)
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

// askFlows prints the busiest flows.
func askFlows(ctx context.Context, a *asker, w io.Writer) error {
	var got struct{ Flows []ask.Flow }
	if err := a.Get(ctx, "/api/flows", &got, w); err != nil || a.Format == "json" {
		return err
	}
	return ask.WriteFlows(w, got.Flows, ask.Get(a.Into).Names(ctx))
}

// askFlow prints one flow.
func askFlow(ctx context.Context, a *asker, key string, w io.Writer) error {
	k, err := decode.ParseFlow(key)
	if err != nil {
		return usagef("%w", err)
	}
	var got struct{ Flow ask.Flow }
	if err := a.Get(ctx, "/api/flow?"+url.Values{"key": {k.String()}}.Encode(), &got, w); err != nil || a.Format == "json" {
		return err
	}
	return got.Flow.Write(w, k, ask.Get(a.Into).Names(ctx))
}
