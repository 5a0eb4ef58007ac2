package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/refused"
)

func spoolCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spool",
		Short: "Look at the points that a store refused, and send them again",
		Long: `A store can refuse points for good: their field has another type there, or they are
older than what it keeps. The collector puts them aside, in the directory "refused" of
the store's spool, with what the store said. Once the cause is mended, "hopscope spool
resend" sends them again; it may run beside the collector.`,
		Example: `  hopscope spool list --config hopscope.yaml
  hopscope spool show --config hopscope.yaml 00000001789012345678-000000.refused
  hopscope spool resend --config hopscope.yaml`,
		Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(spoolListCommand(), spoolShowCommand(), spoolResendCommand())
	return c
}

// spoolPlace says where refused points are.
type spoolPlace struct {
	config, dir, format string
}

func (p *spoolPlace) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.config, "config", "", "settings file: the spools of all its stores")
	c.Flags().StringVar(&p.dir, "dir", "", "directory of one spool, instead of --config")
	c.Flags().StringVar(&p.format, "format", "table", "table or json")
}

// folders gives the directories with refused points.
func (p *spoolPlace) folders() (dirs []string, err error) {
	if err := checkFormat(p.format); err != nil {
		return nil, err
	}
	switch {
	case p.config != "" && p.dir != "":
		return nil, usagef("--config and --dir both say where the spool is; choose one")
	case p.dir != "":
		dir, err := refusedIn(p.dir)
		return []string{dir}, err
	case p.config == "":
		return nil, usagef("say where the spool is: --config FILE, or its directory")
	}
	cfg, err := loadConfig(p.config)
	if err != nil {
		return nil, err
	}
	spools := collector.Spools(&cfg)
	for _, name := range slices.Sorted(maps.Keys(spools)) {
		dirs = append(dirs, collector.RefusedDir(spools[name]))
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: no store with a spool is enabled", p.config)
	}
	return dirs, nil
}

// refusedIn finds the refused points of the spool in dir, which may be named itself.
func refusedIn(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", wrongInput(err)
	}
	if !info.IsDir() {
		return "", usagef("%s is no directory", dir)
	}
	if inner := collector.RefusedDir(dir); filepath.Base(filepath.Clean(dir)) != filepath.Base(inner) {
		return inner, nil
	}
	return dir, nil
}

// refusedEntry is one entry as it is listed and shown.
type refusedEntry struct {
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Problem string            `json:"problem,omitempty"` // why it cannot be read
	Time    time.Time         `json:"time,omitzero"`
	Sink    string            `json:"sink,omitempty"`
	Target  string            `json:"target,omitempty"`
	Points  uint64            `json:"points"`
	Series  map[string]uint64 `json:"series,omitempty"`
	Reasons []string          `json:"reasons,omitempty"`
	Groups  []refusedGroup    `json:"groups,omitempty"` // of show
}

type refusedGroup struct {
	Points  uint64 `json:"points"`
	Reason  string `json:"reason"`
	Payload string `json:"payload"` // as text
}

func readEntry(dir, name string, groups bool) refusedEntry {
	out := refusedEntry{Name: name, Dir: dir}
	e, err := refused.Read(dir, name)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Time, out.Sink, out.Target, out.Points = e.Time.UTC(), e.Sink, e.Target, e.Points()
	out.Series = map[string]uint64{}
	for i := range e.Groups {
		g := &e.Groups[i]
		for _, s := range g.Series {
			out.Series[s.Name] += s.Points
		}
		if !slices.Contains(out.Reasons, g.Reason) {
			out.Reasons = append(out.Reasons, g.Reason)
		}
		if groups {
			out.Groups = append(out.Groups, refusedGroup{g.Points, g.Reason, payloadText(g.Payload)})
		}
	}
	return out
}

// payloadText gives points as text: lines as they are, and what writers without a form of their own have as lines.
func payloadText(payload []byte) string {
	var b sink.Batch
	if sink.DecodeBatch(payload, &b) != nil {
		return strings.ToValidUTF8(string(payload), "\ufffd")
	}
	var out strings.Builder
	for i := range b.Points {
		p := &b.Points[i]
		out.WriteString(p.Measurement)
		for _, t := range p.Tags {
			fmt.Fprintf(&out, ",%s=%s", t.Key, t.Value)
		}
		for j := range p.Fields {
			f := &p.Fields[j]
			switch f.Kind {
			case sink.Int:
				fmt.Fprintf(&out, " %s=%di", f.Key, f.Int)
			case sink.Float:
				fmt.Fprintf(&out, " %s=%v", f.Key, f.Float)
			default:
				fmt.Fprintf(&out, " %s=%q", f.Key, f.Str)
			}
		}
		fmt.Fprintf(&out, " %d\n", p.Time)
	}
	return out.String()
}

// plain keeps what a store or a damaged file says from steering the terminal. Line breaks stay where they are wanted.
func plain(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) || lines && r == '\n' {
			return r
		}
		return '\ufffd'
	}, s)
}

func seriesText(series map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(series)) {
		parts = append(parts, fmt.Sprintf("%s %d", plain(name, false), series[name]))
	}
	return strings.Join(parts, ", ")
}

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func spoolListCommand() *cobra.Command {
	var at spoolPlace
	c := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List what stores refused: when, how much, and why",
		Example: `  hopscope spool list --config hopscope.yaml
  hopscope spool list /var/lib/hopscope/spool/influx --format json`,
		Args: maxArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if at.dir != "" {
					return usagef("%s and --dir both name a directory; choose one", args[0])
				}
				at.dir = args[0]
			}
			dirs, err := at.folders()
			if err != nil {
				return err
			}
			entries := []refusedEntry{}
			for _, dir := range dirs {
				names, err := refused.List(dir)
				if err != nil {
					return err
				}
				for _, name := range names {
					entries = append(entries, readEntry(dir, name, false))
				}
			}
			if at.format == "json" {
				return writeIndented(c.OutOrStdout(), entries)
			}
			return listEntries(c.OutOrStdout(), entries)
		},
	}
	at.flags(c)
	return c
}

func listEntries(out io.Writer, entries []refusedEntry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "no points are refused")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "entry\ttime\tsink\tpoints\tseries\treason")
	for i := range entries {
		e := &entries[i]
		if e.Problem != "" {
			fmt.Fprintf(t, "%s\t\t\t\t\t%s\n", e.Name, plain(e.Problem, false))
			continue
		}
		reason := plain(strings.Join(e.Reasons[:min(1, len(e.Reasons))], ""), false)
		if n := len(e.Reasons); n > 1 {
			reason += fmt.Sprintf(" (and %d more reasons)", n-1)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", e.Name, e.Time.Format(time.DateTime), plain(e.Sink, false), e.Points, seriesText(e.Series), reason)
	}
	return t.Flush()
}

func spoolShowCommand() *cobra.Command {
	var at spoolPlace
	c := &cobra.Command{
		Use:     "show ENTRY...",
		Short:   "Show refused points, with what the store said about them",
		Example: `  hopscope spool show --config hopscope.yaml 00000001789012345678-000000.refused`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s wants the names of entries; hopscope spool list has them", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dirs, err := at.folders()
			if err != nil {
				return err
			}
			found, err := findEntries(dirs, args)
			if err != nil {
				return err
			}
			var entries []refusedEntry
			for _, dir := range dirs {
				for _, name := range found[dir] {
					e := readEntry(dir, name, true)
					if e.Problem != "" {
						return errors.New(e.Problem)
					}
					entries = append(entries, e)
				}
			}
			if at.format == "json" {
				return writeIndented(c.OutOrStdout(), entries)
			}
			for i := range entries {
				e := &entries[i]
				fmt.Fprintf(c.OutOrStdout(), "%s: %d points (%s), refused by %s, %s, at %s\n", e.Name, e.Points, seriesText(e.Series),
					plain(e.Sink, false), plain(e.Target, false), e.Time.Format(time.RFC3339))
				for _, g := range e.Groups {
					fmt.Fprintf(c.OutOrStdout(), "\n%d points: %s\n%s", g.Points, plain(g.Reason, false), plain(g.Payload, true))
				}
			}
			return nil
		},
	}
	at.flags(c)
	return c
}

// findEntries gives the entries with these names by directory, or all of them.
func findEntries(dirs, names []string) (map[string][]string, error) {
	found := map[string][]string{}
	missing := slices.Clone(names)
	for _, dir := range dirs {
		list, err := refused.List(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			if len(names) == 0 || slices.Contains(names, name) {
				found[dir] = append(found[dir], name)
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no entry %q in %s; hopscope spool list has the names", missing[0], strings.Join(dirs, ", "))
	}
	return found, nil
}

func spoolResendCommand() *cobra.Command {
	var o struct{ config, format string }
	c := &cobra.Command{
		Use:   "resend [ENTRY...]",
		Short: "Send refused points to their store again",
		Long: `Send refused points, or only the named entries, to the store that refused them, as
the settings reach it. What it stores now is removed; what it refuses again stays, with
what it says now. A running collector is not disturbed, except that Parquet files and
files of JSON lines belong to one process: stop the collector for those.

A run that is killed in between leaves entries that are stored already; sending them
again changes nothing in InfluxDB, and repeats rows elsewhere. The ledger of the
collector counts refused points as refused, whatever becomes of them later.`,
		Example: `  hopscope spool resend --config hopscope.yaml`,
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file: the stores and their spools")
	c.Flags().StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.config == "" {
			return usagef("say which settings name the store: --config FILE")
		}
		if err := checkFormat(o.format); err != nil {
			return err
		}
		cfg, err := loadConfig(o.config)
		if err != nil {
			return err
		}
		if err := settings.Check(&cfg); err != nil {
			return usageError{Err: err}
		}
		spools := collector.Spools(&cfg)
		var dirs []string
		names := slices.Sorted(maps.Keys(spools))
		for _, name := range names {
			dirs = append(dirs, collector.RefusedDir(spools[name]))
		}
		if len(dirs) == 0 {
			return fmt.Errorf("%s: no store with a spool is enabled", o.config)
		}
		found, err := findEntries(dirs, args)
		if err != nil {
			return err
		}
		results := []resent{}
		for i, dir := range dirs {
			if len(found[dir]) == 0 {
				continue
			}
			r, rerr := resendAll(c.Context(), &cfg, names[i], dir, found[dir])
			results = append(results, r)
			err = errors.Join(err, rerr)
		}
		if o.format == "json" {
			return errors.Join(writeIndented(c.OutOrStdout(), results), err)
		}
		if len(results) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "no points are refused")
		}
		for _, r := range results {
			fmt.Fprintf(c.OutOrStdout(), "%s: %d points stored, %d refused again, %d not tried\n", r.Sink, r.Stored, r.Refused, r.Left)
		}
		return err
	}
	return c
}

// resent says what became of the refused points of one store.
type resent struct {
	Sink    string `json:"sink"`
	Stored  uint64 `json:"stored"`
	Refused uint64 `json:"refused"` // again
	Left    uint64 `json:"left"`    // not tried, because something else failed
}

func resendAll(ctx context.Context, cfg *config, name, dir string, entries []string) (r resent, err error) {
	r.Sink = name
	lock, err := refused.Lock(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	store, err := collector.OpenStore(cfg, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Writer.Close()) }()
	w := sink.AsEncoder(store.Writer)
	var errs []error
	for i, entry := range entries {
		e, err := refused.Read(dir, entry)
		if errors.Is(err, os.ErrNotExist) { // evicted in the meantime
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := resendEntry(ctx, w, dir, e, &r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", name, entry, err))
			for _, rest := range entries[i+1:] {
				if e, err := refused.Read(dir, rest); err == nil {
					r.Left += e.Points()
				}
			}
			break
		}
	}
	if r.Refused > 0 {
		errs = append(errs, fmt.Errorf("%s: %d points are still refused; hopscope spool list says why", name, r.Refused))
	}
	return r, errors.Join(errs...)
}

// resendEntry sends one entry and keeps what is refused again. An entry stays as it is until its points are stored.
func resendEntry(ctx context.Context, w sink.Encoder, dir string, e *refused.Entry, r *resent) error {
	rest := *e
	rest.Groups, rest.Time = nil, time.Now()
	points, again := e.Points(), uint64(0)
	for i := range e.Groups {
		g := &e.Groups[i]
		err := writeWhole(ctx, w, g.Payload)
		pe, permanent := errors.AsType[*sink.PermanentError](err)
		if err != nil && !permanent {
			r.Left += points
			return err // of what is stored already nothing is forgotten: it is sent again, which changes nothing
		}
		if !permanent {
			continue
		}
		if len(pe.Refused) == 0 {
			g.Reason = err.Error()
			rest.Groups = append(rest.Groups, *g)
			again += g.Points
		}
		for _, n := range pe.Refused {
			group := refused.Group{Points: n.Points, Reason: n.Reason, Payload: n.Payload}
			for _, s := range n.Series {
				group.Series = append(group.Series, refused.Series{Name: s.Series, Points: s.Points})
			}
			rest.Groups = append(rest.Groups, group)
			again += n.Points
		}
	}
	if s, ok := w.(sink.Stager); ok {
		if err := s.Flush(ctx); err != nil {
			r.Left += points
			return err
		}
	}
	r.Refused += again
	r.Stored += points - min(again, points)
	if len(rest.Groups) > 0 {
		return refused.Replace(dir, &rest)
	}
	return refused.Remove(dir, e.Name())
}

// writeWhole writes a payload that may need several tries without anything being wrong.
func writeWhole(ctx context.Context, w sink.Encoder, payload []byte) error {
	for {
		err := w.WriteEncoded(ctx, payload)
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Progress || ctx.Err() != nil {
			return err
		}
	}
}
