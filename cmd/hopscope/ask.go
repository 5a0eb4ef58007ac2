package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web"
)

// asker talks to the page's API of a running collector.
type asker struct {
	url, tokenFile, format string
}

func (a *asker) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.url, "url", "http://127.0.0.1:8080", "page of the running collector")
	f.StringVar(&a.tokenFile, "token-file", "", "file with the page's token, where it wants one")
	f.StringVar(&a.format, "format", "table", "table or json")
}

// hopName is a hop in an answer, which has to be one.
type hopName struct{ inference.HopKey }

// UnmarshalText reads the hop.
func (h *hopName) UnmarshalText(text []byte) (err error) {
	h.HopKey, err = inference.ParseHop(string(text))
	return err
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
		return usagef("--url %q is not http://HOST:PORT or https://HOST:PORT", a.url)
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
		return fmt.Errorf("no collector answers at %s (another one: --url): %w", a.url, err)
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
	c := &cobra.Command{
		Use:   "top",
		Short: "Ask a running collector for its worst hops",
		Args:  exactArgs(0),
	}
	a.flags(c)
	c.Flags().IntVar(&limit, "limit", 20, "hops to print, 1 to 200")
	c.Flags().StringVar(&sort, "sort", "latency_p99", strings.Join(web.MetricNames(), ", ")+" or node")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if names := append(web.MetricNames(), "node"); !slices.Contains(names, sort) {
			return usagef("--sort %q is none of %s", sort, strings.Join(names, ", "))
		}
		if limit < 1 || limit > 200 {
			return usagef("--limit %d is outside 1..200", limit)
		}
		var got struct {
			Total         int
			RecentWindows int `json:"recent_windows"`
			Hops          []struct {
				Node     hopName
				EgressIf string `json:"egress_if"`
				LastMS   int64  `json:"last_ms"`
				Count    *float64
				Latency  struct{ P50, P90, P99, Max *float64 } `json:"latency_ns"`
				Queue    struct{ P50, P99, Max *float64 }      `json:"queue_bytes"`
				Worst    *float64
			}
		}
		w := c.OutOrStdout()
		query := url.Values{"limit": {fmt.Sprint(limit)}, "sort": {sort}}
		if err := a.get(c.Context(), "/api/hops?"+query.Encode(), &got, w); err != nil || a.format == "json" {
			return err
		}
		if len(got.Hops) == 0 {
			_, err := fmt.Fprintln(w, "No hop was reported yet.")
			return err
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "node\tegress\treports\tp50\tp90\tp99\tmax\tqueue p50\tqueue p99\tlast seen")
		for _, h := range got.Hops {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Node, h.EgressIf, plainCell(h.Count), nsCell(h.Latency.P50), nsCell(h.Latency.P90),
				nsCell(h.Latency.P99), nsCell(h.Latency.Max), plainCell(h.Queue.P50), plainCell(h.Queue.P99), time.UnixMilli(h.LastMS).Format("15:04:05"))
		}
		return t.Flush()
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

type flowAnswer struct {
	Key     string
	Packets float64
	Changes uint64
	Path    []struct {
		Node       hopName
		EgressIf   string   `json:"egress_if"`
		LatencyP50 *float64 `json:"latency_p50_ns"`
		LatencyP99 *float64 `json:"latency_p99_ns"`
		QueueP99   *float64 `json:"queue_p99_bytes"`
	}
}

func (f *flowAnswer) nodes() string {
	var path []inference.HopKey
	for _, h := range f.Path {
		path = append(path, h.Node.HopKey)
	}
	return inference.NodePath(path)
}

func (a *asker) flows(ctx context.Context, w io.Writer) error {
	var got struct{ Flows []flowAnswer }
	if err := a.get(ctx, "/api/flows", &got, w); err != nil || a.format == "json" {
		return err
	}
	if len(got.Flows) == 0 {
		_, err := fmt.Fprintln(w, "No flow was reported yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "packets\tflow\tpath\tchanges")
	for _, f := range got.Flows {
		fmt.Fprintf(t, "%.0f\t%s\t%s\t%d\n", f.Packets, f.Key, f.nodes(), f.Changes)
	}
	return t.Flush()
}

func (a *asker) flow(ctx context.Context, key string, w io.Writer) error {
	k, err := decode.ParseFlow(key)
	if err != nil {
		return usagef("%w", err)
	}
	var got struct{ Flow flowAnswer }
	if err := a.get(ctx, "/api/flow?"+url.Values{"key": {k.String()}}.Encode(), &got, w); err != nil || a.format == "json" {
		return err
	}
	f := &got.Flow
	fmt.Fprintf(w, "%s\n%.0f packets lately, path %s, changed %d times\n\n", f.Key, f.Packets, f.nodes(), f.Changes)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "hop\tnode\tegress\tp50\tp99\tqueue p99")
	for i, h := range f.Path {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", i, h.Node, h.EgressIf, nsCell(h.LatencyP50), nsCell(h.LatencyP99), plainCell(h.QueueP99))
	}
	return t.Flush()
}

func findingsCommand() *cobra.Command {
	var a asker
	var ended bool
	c := &cobra.Command{
		Use:   "findings",
		Short: "Ask a running collector or console what is wrong",
		Long: `Print the findings that are open: the most severe first, and of those the latest
first. With --ended those that have ended follow, the latest first.`,
		Example: `  hopscope findings
  hopscope findings --ended --format json`,
		Args: exactArgs(0),
	}
	a.flags(c)
	c.Flags().BoolVar(&ended, "ended", false, "print those that have ended, too (json always has both)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var got struct{ Open, Ended []findingAnswer }
		w := c.OutOrStdout()
		if err := a.get(c.Context(), "/api/findings", &got, w); err != nil || a.format == "json" {
			return err
		}
		if !ended {
			got.Ended = nil
		}
		if len(got.Open) == 0 {
			fmt.Fprintln(w, "Nothing is wrong that hopscope knows of.")
		}
		if len(got.Open)+len(got.Ended) == 0 {
			return nil
		}
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(t, "severity\tkind\twhere\tsince\tended\twhat")
		for _, f := range append(got.Open, got.Ended...) {
			end := "-"
			if f.EndMS != 0 {
				end = time.UnixMilli(f.EndMS).Format(time.DateTime)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", plain(f.Severity, false), plain(f.Kind, false), plain(f.place(), false),
				time.UnixMilli(f.StartMS).Format(time.DateTime), end, plain(f.Text, false))
		}
		return t.Flush()
	}
	return c
}

type findingAnswer struct {
	Kind, Severity, Node, Flow, Exporter, Text string

	EgressIf string `json:"egress_if"`
	StartMS  int64  `json:"start_ms"`
	EndMS    int64  `json:"end_ms"`
}

// place says in few words what a finding is about.
func (f *findingAnswer) place() string {
	switch {
	case f.Exporter != "":
		return "exporter " + f.Exporter
	case f.EgressIf != "":
		return "hop " + f.Node + ":" + f.EgressIf
	case f.Flow != "":
		return "flow " + f.Flow
	case f.Node != "":
		return "node " + f.Node
	}
	return "-"
}

func plainCell(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *v)
}

func nsCell(v *float64) string {
	if v == nil {
		return "-"
	}
	return time.Duration(*v).String()
}
