package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web/ask"
)

func findingsCommand() *cobra.Command {
	var a asker
	var ended, all bool
	var file, failOn, explain string
	c := &cobra.Command{
		Use:   "findings",
		Short: "Ask a running collector or console what is wrong, acknowledge and mute it",
		Long: `Print the findings that are open: the most severe first, and of those the latest
first. What a cause explains is below it, three findings of it at most unless --all
asks for all. With --ended those that have ended follow, the latest first.

With --file, the alerts.file of the collector's settings, the table says what is
acknowledged or muted. The commands below change that file, which the collector
reads again; the page changes it only with roles (docs/access.md), and logs that.
docs/findings.md explains every kind.

With --explain, print one finding with its symptoms, the section of docs/findings.md
about its kind, the settings in force that it names, what was not judged, and where
to look next. ID is that of the finding, or the name of its alert: kind and place,
as they are in the table.

With --fail-on, the exit status is 1 while a finding of that severity or a higher one
is open, so that a check of a monitoring system can run it. Evidence counts with its
cause; what rests does not count, and with --file neither what is acknowledged or
muted.`,
		Example: `  hopscope findings
  hopscope findings --file /var/lib/hopscope/alerts.yaml
  hopscope findings --ended --format json
  hopscope findings --explain "high-queue interface 7:3"
  hopscope findings --fail-on critical`,
		Args: exactArgs(0),
	}
	a.Flags(c)
	c.Flags().BoolVar(&ended, "ended", false, "print those that have ended, too (json always has both)")
	c.Flags().BoolVar(&all, "all", false, "print all that a cause explains, and those that have ended")
	c.Flags().StringVar(&file, "file", "", "file of acknowledgements and mutes, to show what is in it")
	c.Flags().StringVar(&failOn, "fail-on", "", "exit with 1 while a finding is open that is as severe: info, warning or critical")
	c.Flags().StringVar(&explain, "explain", "", "explain the finding with this ID, or the name of its alert")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("explain") {
			for _, other := range []string{"ended", "all", "file", "fail-on"} {
				if c.Flags().Changed(other) {
					return usagef("--explain is about one finding, and excludes --%s", other)
				}
			}
			if err := ask.CheckID(explain); err != nil {
				return usagef("--explain: %w", err)
			}
			var x ask.Explanation
			err := a.Get(c.Context(), "/api/explain?"+url.Values{"id": {explain}}.Encode(), &x, c.OutOrStdout())
			if err != nil || a.Format == "json" {
				return err
			}
			return x.Write(c.OutOrStdout(), a.URL, given(c, &a))
		}
		var least inference.Severity
		failing := c.Flags().Changed("fail-on") // also with an empty severity, which is none
		if failing {
			var err error
			if least, err = inference.ParseSeverity(failOn); err != nil {
				return usageError{Err: fmt.Errorf("--fail-on: %w", err)}
			}
		}
		rules := &notify.Rules{}
		if file != "" {
			var err error
			if rules, err = notify.ReadRules(file); err != nil {
				return wrongInput(err)
			}
		}
		var got struct{ Open, Ended []ask.Finding }
		w := c.OutOrStdout()
		var answer bytes.Buffer // in JSON
		if err := a.Get(c.Context(), "/api/findings", &got, &answer); err != nil {
			return err
		}
		if a.Format == "json" {
			if _, err := w.Write(answer.Bytes()); err != nil || !failing {
				return err
			}
			if err := json.Unmarshal(answer.Bytes(), &got); err != nil {
				return fmt.Errorf("%s does not answer as a collector does: %w", a.URL, err)
			}
		}
		if failing && got.Open == nil {
			return fmt.Errorf("%s does not answer as a collector does: no list of open findings", a.URL)
		}
		if a.Format == "json" {
			return failOnFindings(got.Open, least, rules)
		}
		if !ended && !all {
			got.Ended = nil
		}
		if len(got.Open) == 0 {
			coverage, problems := judgedOf(c.Context(), &a)
			fmt.Fprintf(w, "Nothing is wrong that hopscope knows of%s.\n", coverage)
			for _, p := range problems {
				fmt.Fprintf(w, "Problem: %s\n", printable(p, false))
			}
		}
		if len(got.Open)+len(got.Ended) == 0 {
			return nil
		}
		if err := ask.WriteFindings(w, got.Open, got.Ended, rules, file != "", all); err != nil || !failing {
			return err
		}
		return failOnFindings(got.Open, least, rules)
	}
	c.AddCommand(ackCommand(), acceptCommand(), muteCommand(), unmuteCommand(), testAlertCommand())
	return c
}

// judgedOf returns how much of the last window was judged, behind a colon, and the problems of the program itself, such as a
// store that is away or a fleet without a consumer. The first is empty where it is not known, such as at a console.
func judgedOf(ctx context.Context, a *asker) (coverage string, problems []string) {
	var status struct {
		Judged   struct{ Text string }
		Settings []struct{ Name, Value string }
		Kept     struct{ Exporters, Hops, Probed int }
	}
	if err := a.Into(ctx, "/api/status", &status); err != nil {
		return ": how much was judged is not known (" + err.Error() + ")", nil
	}
	for _, s := range status.Settings {
		if s.Name == "problem" {
			problems = append(problems, s.Value)
		}
	}
	switch {
	case status.Judged.Text != "":
		coverage = ": " + status.Judged.Text
	case status.Kept.Exporters+status.Kept.Hops+status.Kept.Probed == 0:
		coverage = ": no report came in the kept windows"
	}
	return coverage, problems
}

// failOnFindings returns an error if one of the open findings counts for a check (see [ask.Unattended]).
func failOnFindings(open []ask.Finding, least inference.Severity, rules *notify.Rules) error {
	n := ask.Unattended(open, least, rules, time.Now())
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d open finding%s of severity %v or higher", n, plural(n), least)
}

// rulesFlags are those of the commands that change the file of rules.
type rulesFlags struct {
	file, by, note string
	isNew          bool // the file was not there before
}

func (r *rulesFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.file, "file", "alerts.yaml", "file of acknowledgements and mutes: alerts.file of the collector's settings")
	f.StringVar(&r.by, "by", cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")), "name of the author")
	f.Lookup("by").DefValue = "$USER"
	f.StringVar(&r.note, "note", "", "what others should know of it")
}

// change changes the file, and leaves out what has ended long ago.
func (r *rulesFlags) change(change func(*notify.Rules) error) error {
	_, err := os.Stat(r.file)
	r.isNew = errors.Is(err, fs.ErrNotExist)
	return wrongInput(notify.Change(r.file, func(rules *notify.Rules) error {
		now := time.Now()
		rules.Drop(now, now.AddDate(-1, 0, 0))
		return change(rules)
	}))
}

// confirm prints what was done, with the file. A new file has no effect where the collector reads another one.
func (r *rulesFlags) confirm(w io.Writer, done string) error {
	_, err := fmt.Fprintf(w, "%s (%s)\n", done, r.file)
	if err == nil && r.isNew {
		_, err = fmt.Fprintf(w, "%s is a new file: it counts if it is alerts.file of the collector's settings, else name that one with --file\n", r.file)
	}
	return err
}

// askedFlags adds the flags of the page that has the ids of findings.
func askedFlags(c *cobra.Command, a *asker) {
	c.Flags().StringVar(&a.URL, "url", "http://127.0.0.1:8080", "page of the running collector, which is asked what is open")
	c.Flags().StringVar(&a.TokenFile, "token-file", "", "file with the page's token, where it wants one")
}

// wrongFinding makes a wrong request of an argument that names no finding.
func wrongFinding(err error) error {
	if errors.As(err, new(*ask.RequestError)) {
		return usageError{Err: err}
	}
	return err
}

func ackCommand() *cobra.Command {
	var a asker
	var r rulesFlags
	c := &cobra.Command{
		Use:   "ack ID",
		Short: "Acknowledge a finding: its alert is not repeated any more",
		Long: `Acknowledge a finding that is open: its alert is not repeated
any more. ID is that of the finding, or the name of its alert, such as "high-latency
node 7". Evidence is acknowledged with its cause. What ends and comes back later is
sent again.`,
		Example: `  hopscope findings ack 00000000000000a7 --note "line card is being replaced"
  hopscope findings ack "high-latency node 7" --file /var/lib/hopscope/alerts.yaml`,
		Args: exactArgs(1),
	}
	askedFlags(c, &a)
	r.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		alert, err := ask.Get(a.Into).Alert(c.Context(), args[0])
		if unchecked, ok := errors.AsType[*ask.UncheckedError](err); ok {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", printable(alert, false), printable(unchecked.Error(), false))
		} else if err != nil {
			return wrongFinding(err)
		}
		ack := notify.Acknowledgement{Alert: alert, By: r.by, Note: r.note, At: time.Now().UTC().Truncate(time.Second).Add(time.Second)}
		if err := r.change(func(rules *notify.Rules) error {
			rules.Acknowledged = slices.DeleteFunc(rules.Acknowledged, func(x notify.Acknowledgement) bool { return x.Alert == alert })
			rules.Acknowledged = append(rules.Acknowledged, ack)
			return nil
		}); err != nil {
			return err
		}
		return r.confirm(c.OutOrStdout(), "acknowledged: "+printable(alert, false))
	}
	return c
}

func acceptCommand() *cobra.Command {
	var a asker
	var r rulesFlags
	c := &cobra.Command{
		Use:   "accept ID",
		Short: "Accept what a finding found as normal: its level is the usual one from now on",
		Long: `Accept what an open finding found as normal. The finding ends with the next window,
its level is the usual one from then on, and so is everything between that level and
the one before. ID is that of the finding, or the name of its alert, such as
"high-latency interface 7:3". A cause is accepted with all findings that it explains.

Only findings about a level can be accepted: latency, queue, utilisation, values that
stand still, and silence of a hop. Others can be acknowledged or muted.`,
		Example: `  hopscope findings accept 00000000000000a7 --note "the new backup runs here"
  hopscope findings accept "high-latency interface 7:3" --file /var/lib/hopscope/alerts.yaml`,
		Args: exactArgs(1),
	}
	askedFlags(c, &a)
	r.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		alerts, err := ask.Get(a.Into).Levels(c.Context(), args[0])
		if err != nil {
			return wrongFinding(err)
		}
		at := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		if err := r.change(func(rules *notify.Rules) error {
			rules.Accepted = slices.DeleteFunc(rules.Accepted, func(x notify.Acknowledgement) bool { return slices.Contains(alerts, x.Alert) })
			for _, alert := range alerts {
				rules.Accepted = append(rules.Accepted, notify.Acknowledgement{Alert: alert, By: r.by, Note: r.note, At: at})
			}
			return nil
		}); err != nil {
			return err
		}
		w := c.OutOrStdout()
		for _, alert := range alerts[:len(alerts)-1] {
			if _, err := fmt.Fprintf(w, "accepted as normal: %s (%s)\n", printable(alert, false), r.file); err != nil {
				return err
			}
		}
		return r.confirm(w, "accepted as normal: "+printable(alerts[len(alerts)-1], false))
	}
	return c
}

// muteFlags select what is muted.
type muteFlags struct{ element, kind string }

func (m *muteFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&m.element, "element", "", `what is meant: "node 7", "interface 7:3", "link 7-9", "exporter 10.0.0.1", "route 10.1.0.0/16"`)
	c.Flags().StringVar(&m.kind, "kind", "", "kind of findings, such as high-latency")
}

// normal returns both in normal form, or an error where they name nothing.
func (m *muteFlags) normal() (element, kind string, err error) {
	e, err := inference.ParseElement(m.element)
	if err != nil {
		return "", "", usagef("--element: %w", err)
	}
	if m.kind != "" {
		if _, err := inference.ParseKind(m.kind); err != nil {
			return "", "", usagef("--kind: %w", err)
		}
	}
	if e.Kind == inference.NoElement && m.kind == "" {
		return "", "", usagef("--element or --kind is needed, or both")
	}
	return e.String(), m.kind, nil
}

func muteCommand() *cobra.Command {
	var m muteFlags
	var r rulesFlags
	var length time.Duration
	var until string
	c := &cobra.Command{
		Use:   "mute",
		Short: "Send no alerts of an element, of a kind, or of a kind at an element",
		Long: `Send no alerts of an element and its parts (a node has its interfaces and links), of
a kind of findings, or of that kind at that element, for some time or until unmute.
What is still open when the mute ends is sent then. Findings are stored and shown
all the same. Work that is done every night belongs into alerts.maintenance.`,
		Example: `  hopscope findings mute --element "node 7" --for 2h --note "new software"
  hopscope findings mute --kind drops --until 2026-12-01T06:00:00Z`,
		Args: exactArgs(0),
	}
	m.flags(c)
	r.flags(c)
	c.Flags().DurationVar(&length, "for", 0, "for how long from now on (0: until unmute)")
	c.Flags().StringVar(&until, "until", "", "until when, such as 2026-12-01T06:00:00Z")
	c.RunE = func(c *cobra.Command, _ []string) error {
		element, kind, err := m.normal()
		if err != nil {
			return err
		}
		now := time.Now().UTC().Truncate(time.Second)
		switch {
		case length < 0 || length > 0 && length < time.Second:
			return usagef("--for %v is less than a second", length)
		case length > 0 && until != "":
			return usagef("--for and --until exclude each other")
		case length > 0:
			until = now.Add(length).Format(time.RFC3339)
		case until != "":
			end, err := time.Parse(time.RFC3339, until)
			if err != nil {
				return usagef("--until %q is no time such as 2026-12-01T06:00:00Z", until)
			}
			if !end.After(now) {
				return usagef("--until %s has passed", until)
			}
		}
		rule := notify.Mute{Element: element, Kind: kind, From: now.Format(time.RFC3339), Until: until, By: r.by, Note: r.note}
		if err := r.change(func(rules *notify.Rules) error {
			rules.Mutes = append(slices.DeleteFunc(rules.Mutes, rule.Same), rule)
			return nil
		}); err != nil {
			return err
		}
		return r.confirm(c.OutOrStdout(), fmt.Sprintf("muted until %s: %s", cmp.Or(until, "unmute"), strings.TrimSpace(kind+" "+element)))
	}
	return c
}

func unmuteCommand() *cobra.Command {
	var m muteFlags
	var file string
	c := &cobra.Command{
		Use:   "unmute",
		Short: "Take back a mute",
		Long:  "Take back the mute of the same element and kind. What is open is sent.",
		Example: `  hopscope findings unmute --element "node 7"
  hopscope findings unmute --kind drops`,
		Args: exactArgs(0),
	}
	m.flags(c)
	c.Flags().StringVar(&file, "file", "alerts.yaml", "file of acknowledgements and mutes: alerts.file of the collector's settings")
	c.RunE = func(c *cobra.Command, _ []string) error {
		element, kind, err := m.normal()
		if err != nil {
			return err
		}
		r := rulesFlags{file: file}
		if err := r.change(func(rules *notify.Rules) error {
			rule, n := notify.Mute{Element: element, Kind: kind}, len(rules.Mutes)
			if rules.Mutes = slices.DeleteFunc(rules.Mutes, rule.Same); len(rules.Mutes) == n {
				return fmt.Errorf("%s mutes nothing of that element and kind", file)
			}
			return nil
		}); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "not muted any more: %s (%s)\n", strings.TrimSpace(kind+" "+element), file)
		return err
	}
	return c
}

func testAlertCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "test",
		Short: "Send a test alert to every receiver of the settings",
		Long: `Send one alert with status "test" to every receiver that the settings enable
(webhook, alertmanager, syslog), at once and past all queues, and say what each
answered. A collector that runs does not notice. The command fails if one of them
did not take it.`,
		Example: "  hopscope findings test --config /etc/hopscope/hopscope.yaml",
		Args:    exactArgs(0),
	}
	c.Flags().StringVar(&file, "config", "", "settings file (default: all defaults, see \"hopscope config print\")")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(file)
		if err != nil {
			return err
		}
		err = collector.SendTest(c.Context(), c.OutOrStdout(), &cfg, cfg.InstanceName(), time.Now().UTC())
		if errors.Is(err, collector.ErrNoReceiver) {
			return usagef("%w: enable %s in the settings", err, oneOf(collector.ReceiverNames(&cfg)))
		}
		return err
	}
	return c
}
