package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// asker talks to the page's API of a running collector.
type asker struct {
	url, tokenFile, format string

	who  string // that is asked, where it is no collector
	flag string // that has the address, where it is not --url
}

func (a *asker) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.url, "url", "http://127.0.0.1:8080", "page of the running collector")
	f.StringVar(&a.tokenFile, "token-file", "", "file with the page's token, where it wants one")
	f.StringVar(&a.format, "format", "table", "table or json")
}

// maxToken bounds the file of a token.
const maxToken = 64 << 10

// maxAnswer bounds what a collector may answer.
const maxAnswer = 64 << 20

// get asks for path and reads the answer into v, or copies it to out where JSON was asked for.
func (a *asker) get(ctx context.Context, path string, v any, out io.Writer) error {
	if err := checkFormat(a.format); err != nil {
		return err
	}
	base, err := url.Parse(a.url)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return usagef("--%s %q is not http://HOST:PORT or https://HOST:PORT", cmp.Or(a.flag, "url"), a.url)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(a.url, "/")+path, nil)
	if err != nil {
		return err
	}
	if a.tokenFile != "" {
		token, err := readFile(a.tokenFile, maxToken)
		if err != nil {
			return wrongInput(fmt.Errorf("read token: %w", err))
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no %s answers at %s (another one: --%s): %w", cmp.Or(a.who, "collector"), a.url, cmp.Or(a.flag, "url"), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", a.url, err)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s wants a token: --token-file", a.url)
	case res.StatusCode != http.StatusOK:
		var problem struct{ Error string }
		if json.Unmarshal(body, &problem) != nil || problem.Error == "" {
			problem.Error = res.Status
		}
		return fmt.Errorf("%s: %s", a.url, problem.Error)
	}
	if a.format == "json" {
		_, err := fmt.Fprintf(out, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s does not answer as a collector does: %w", a.url, err)
	}
	return nil
}

func topCommand() *cobra.Command {
	var a asker
	var limit int
	var sort string
	var interfaces bool
	c := &cobra.Command{
		Use:   "top",
		Short: "Ask a running collector for its worst hops or interfaces",
		Long: `Print the hops that were worst lately, in the order of the third column: the largest
value of --sort in the last windows. The columns behind it are of each hop's last
window. Times and queues have three digits; json and the series have all. Of a hop
that is learning it is not known yet what is usual, and findings about it are marked.

With --interfaces, print the interfaces whose counters come instead: those first that
lose the greatest share of their packets, then those with the greatest use in one
direction. Counts are of the last windows; "-" is what did not come.`,
		Example: `  hopscope top
  hopscope top --sort queue_p99 --limit 5
  hopscope top --interfaces`,
		Args: exactArgs(0),
	}
	a.flags(c)
	c.Flags().IntVar(&limit, "limit", 20, "rows to print, 1 to 200")
	c.Flags().StringVar(&sort, "sort", "latency_p99", strings.Join(web.MetricNames(), ", ")+" or node")
	c.Flags().BoolVar(&interfaces, "interfaces", false, "print interfaces, not hops")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if names := append(web.MetricNames(), "node"); !slices.Contains(names, sort) {
			return usagef("--sort %q is none of %s", sort, strings.Join(names, ", "))
		}
		if limit < 1 || limit > 200 {
			return usagef("--limit %d is outside 1..200", limit)
		}
		w := c.OutOrStdout()
		if interfaces {
			if c.Flags().Changed("sort") {
				return usagef("--sort is for hops: interfaces have one order")
			}
			var got ask.Interfaces
			if err := a.get(c.Context(), fmt.Sprintf("/api/interfaces?limit=%d", limit), &got, w); err != nil || a.format == "json" {
				return err
			}
			return got.Write(w, a.names(c.Context()))
		}
		var got ask.Hops
		query := url.Values{"limit": {fmt.Sprint(limit)}, "sort": {sort}}
		if err := a.get(c.Context(), "/api/hops?"+query.Encode(), &got, w); err != nil || a.format == "json" {
			return err
		}
		defer a.dialects(c.Context(), w)
		return got.Write(w, sort, a.names(c.Context()))
	}
	return c
}

// dialects prints which exporters the collector cannot read as its settings say. A collector that does not answer has said
// why before.
func (a *asker) dialects(ctx context.Context, w io.Writer) {
	var status struct {
		Settings []struct{ Name, Value string }
	}
	if a.get(ctx, "/api/status", &status, w) != nil {
		return
	}
	for _, s := range status.Settings {
		if strings.HasPrefix(s.Name, "reports of ") {
			fmt.Fprintln(w, s.Value)
		}
	}
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
	a.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		w := c.OutOrStdout()
		if len(args) == 0 {
			return a.flows(c.Context(), w)
		}
		return a.flow(c.Context(), args[0], w)
	}
	return c
}

func (a *asker) flows(ctx context.Context, w io.Writer) error {
	var got struct{ Flows []ask.Flow }
	if err := a.get(ctx, "/api/flows", &got, w); err != nil || a.format == "json" {
		return err
	}
	return ask.WriteFlows(w, got.Flows, a.names(ctx))
}

func (a *asker) flow(ctx context.Context, key string, w io.Writer) error {
	k, err := decode.ParseFlow(key)
	if err != nil {
		return usagef("%w", err)
	}
	var got struct{ Flow ask.Flow }
	if err := a.get(ctx, "/api/flow?"+url.Values{"key": {k.String()}}.Encode(), &got, w); err != nil || a.format == "json" {
		return err
	}
	return got.Flow.Write(w, k, a.names(ctx))
}

// names asks for the names of nodes. A program that does not answer that, such as an older one, has no names.
func (a *asker) names(ctx context.Context) *names.Names {
	var d names.Document
	if err := a.get(ctx, "/api/names", &d, io.Discard); err != nil {
		return nil
	}
	return d.Names()
}
