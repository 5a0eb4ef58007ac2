package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/sink"
)

// settingsLists explains the lists of a page of settings.
const settingsLists = "Parentheses have the default\nof a key in `code`, and its range or choices; a key without a default is empty. `make docs` writes this page."

// writeSettingsPage writes docs/configuration.md.
func writeSettingsPage(w io.Writer) error {
	fmt.Fprint(w, `# Settings

One YAML file for `+"`hopscope collect --config FILE`"+`. Unknown keys are refused. `+"`hopscope config print`"+` writes a complete file, and
`+"`hopscope config check FILE`"+` names all its problems at once. `+settingsLists+`

Durations are written as `+"`10s`"+` or `+"`1m30s`"+`. Secrets are in files named by keys with the suffix `+"`_file`"+`; white space around a secret is ignored.

`)
	cfg := defaultConfig()
	return settings.Reference(w, &cfg)
}

// writeMetricsPage writes docs/metrics.md.
func writeMetricsPage(w io.Writer) error {
	fmt.Fprint(w, `# Metrics

Metrics of the collector itself at `+"`/metrics`"+` on the page's port, beside the usual `+"`go_`"+` and `+"`process_`"+` metrics.
Measurements of the network are [series](series.md). Names in `+"`_total`"+` are counters, others gauges unless they say so; braces have the labels. `+"`make docs`"+` writes this page.

`)
	cfg := defaultConfig()
	ofCollector := slices.Concat(collector.Metrics(&cfg), fleetMetrics, historyMetrics)
	if err := writeMetrics(w, ofCollector); err != nil {
		return err
	}
	fmt.Fprint(w, `
## The consumers of a fleet

Metrics of [hopscope consume](fleet.md). A fleet has a partition for each slice, and one more. After a take-over the windows since the last checkpoint count here, too.
`)
	list := slices.Concat(fleet.Metrics, collector.AlertMetrics, collector.RemovedMetrics)
	for _, m := range consumeMetrics {
		list = append(list, m.Metric)
	}
	var same []string
	list = slices.DeleteFunc(list, func(m collector.Metric) bool {
		known := slices.ContainsFunc(ofCollector, func(c collector.Metric) bool { return c.Name == m.Name && c.Help == m.Help })
		if known {
			same = append(same, "`"+m.Name+"`")
		}
		return known
	})
	fmt.Fprintf(w, "Those of a collector are also %s.\n\n", strings.Join(same, ", "))
	if err := writeMetrics(w, list); err != nil {
		return err
	}
	fmt.Fprint(w, `
## The console of a fleet

Metrics of [hopscope console](fleet.md#the-page).

`)
	if err := writeMetrics(w, console.Metrics); err != nil {
		return err
	}
	fmt.Fprint(w, `
## The page

Use of the page of a collector, a consumer or a console ([access](access.md)).

`)
	var ofPage, ofAgents []metricLine
	for _, m := range pageMetrics {
		ofPage = append(ofPage, metricLine{m.Name, m.Kind.String(), m.Labels, m.Help})
	}
	writeMetricLines(w, ofPage)
	fmt.Fprint(w, `
## The agents

Metrics of [hopscope agent](agent.md) at `+"`/metrics` of `status.listen`"+`.

`)
	for _, m := range agent.Metrics() {
		ofAgents = append(ofAgents, metricLine{m.Name, m.Kind, m.Labels, m.Help})
	}
	writeMetricLines(w, ofAgents)
	fmt.Fprint(w, `
## The control of probes

Metrics of [hopscope control](loop.md) at `+"`/metrics` of `admin.listen`"+`.

`)
	return writeMetrics(w, allControlMetrics())
}

// writeControlSettingsPage writes docs/control-settings.md.
func writeControlSettingsPage(w io.Writer) error {
	fmt.Fprint(w, `# Settings of a control of probes

One YAML file for `+"`hopscope control --config FILE`"+` ([the loop](loop.md)). Unknown keys are refused. `+"`hopscope control config`"+` writes a
complete file, and `+"`hopscope control --config FILE --check`"+` names all its problems at once. `+settingsLists+`

`)
	cfg, ofCollector, ofAgent := defaultControlConfig(), defaultConfig(), defaultAgentConfig()
	return settings.Reference(w, &cfg, settings.Page{Name: "configuration.md", Of: &ofCollector}, settings.Page{Name: "agent-settings.md", Of: &ofAgent})
}

// writeControlSettings writes deploy/control.yaml: the defaults, to be edited.
func writeControlSettings(w io.Writer) error {
	fmt.Fprint(w, "# Settings of hopscope control: every key with its meaning, range and default.\n# Written by \"hopscope control config\"; what is left out keeps its default.\n\n")
	cfg := defaultControlConfig()
	return settings.Print(w, &cfg)
}

// writeAgentSettingsPage writes docs/agent-settings.md.
func writeAgentSettingsPage(w io.Writer) error {
	fmt.Fprint(w, `# Settings of an agent

One YAML file for `+"`hopscope agent --config FILE`"+` ([probe agents](agent.md)). Flags override the file; unknown keys are refused.
`+"`hopscope agent config`"+` writes a complete file, and `+"`hopscope agent --config FILE --check`"+` names all its problems at once. `+settingsLists+`

`)
	cfg, ofCollector := defaultAgentConfig(), defaultConfig()
	return settings.Reference(w, &cfg, settings.Page{Name: "configuration.md", Of: &ofCollector})
}

// writeAgentSettings writes deploy/agent.yaml: the defaults, to be edited.
func writeAgentSettings(w io.Writer) error {
	fmt.Fprint(w, "# Settings of hopscope agent: every key with its meaning, range and default.\n# Written by \"hopscope agent config\"; what is left out keeps its default.\n\n")
	cfg := defaultAgentConfig()
	return settings.Print(w, &cfg)
}

// writeMetrics writes a list of metrics. Metrics with one meaning share a line.
func writeMetrics(w io.Writer, list []collector.Metric) error {
	lines := make([]metricLine, len(list))
	for i, m := range list {
		lines[i] = metricLine{m.Name, m.Kind.String(), m.Labels, m.Help}
	}
	writeMetricLines(w, lines)
	return nil
}

type metricLine struct {
	name, kind string
	labels     []string
	help       string
}

func writeMetricLines(w io.Writer, list []metricLine) {
	names := map[string][]string{}
	rest := func(m metricLine) (text string) {
		if len(m.labels) > 0 {
			text = " `{" + strings.Join(m.labels, ",") + "}`"
		}
		if m.kind != "gauge" && (m.kind != "counter" || !strings.HasSuffix(m.name, "_total")) {
			text += " `" + m.kind + "`"
		}
		return text + ": " + m.help
	}
	for _, m := range list {
		names[rest(m)] = append(names[rest(m)], "`"+m.name+"`")
	}
	for _, m := range list {
		text := rest(m)
		if len(names[text]) > 0 {
			fmt.Fprintf(w, "- %s%s\n", strings.Join(names[text], ", "), text)
			names[text] = nil
		}
	}
}

// writeSeriesPage writes docs/series.md.
func writeSeriesPage(w io.Writer) error {
	fmt.Fprint(w, `# Stored series

A series is one measurement in InfluxDB, the Parquet files and the JSON lines. Measurement, tags and time, the end of the window, identify a point.

After the clock was [set back](operating.md#when-the-clock-is-set), points are written again with more data and the field `+"`revision`"+`. InfluxDB keeps the last one. In files the row with
the highest revision counts; a row without one is the oldest. In DuckDB:

    SELECT DISTINCT ON (time, instance, node, egress_if) * FROM 'hop/*.parquet'
    ORDER BY time, instance, node, egress_if, revision DESC NULLS LAST

Every series has the tag `+"`instance`"+`, so that [several collectors](operating.md#several-collectors-and-one-store) can share a store. The tags of a day (UTC) are bounded by
`+"`flows.max_hops`"+`, `+"`flows.daily_flows`"+` and `+"`exporters.tracking.max_exporters`"+`, 256 places in `+"`hop_position`"+`, and 16384 paths in `+"`probe`"+`, counted anew by each run.
Points beyond are merged into one with `+"`other`"+` in these tags, and counted by `+"`hopscope_series_folded_total`"+`. A field without a value is absent, never zero. `+"`make docs`"+` writes this page.
`)
	tags, fields := map[string]int{}, map[string]int{} // rows of all series
	for i := range sink.AllSeries {
		for _, t := range sink.AllSeries[i].Tags {
			tags[tagRow(&t)]++
		}
		for _, f := range sink.AllSeries[i].Fields {
			fields[fieldRow(&f)]++
		}
	}
	keepCommon(tags)
	keepCommon(fields)
	fmt.Fprint(w, "\n## Common tags and fields\n\nTags:\n\n")
	writeCommon(w, tags, func(s *sink.Series) (rows []string) {
		for _, t := range s.Tags {
			rows = append(rows, tagRow(&t))
		}
		return rows
	})
	fmt.Fprint(w, "\nFields:\n\n")
	writeCommon(w, fields, func(s *sink.Series) (rows []string) {
		for _, f := range s.Fields {
			rows = append(rows, fieldRow(&f))
		}
		return rows
	})
	for i := range sink.AllSeries {
		s := &sink.AllSeries[i]
		var common, ownTags, ownFields []string
		for _, t := range s.Tags {
			if row := tagRow(&t); tags[row] > 1 {
				common = append(common, "`"+t.Key+"`")
			} else {
				ownTags = append(ownTags, row)
			}
		}
		common = []string{strings.Join(common, ", ")}
		for _, f := range s.Fields {
			if row := fieldRow(&f); fields[row] > 1 {
				common = append(common, "`"+f.Key+"`")
			} else {
				ownFields = append(ownFields, row)
			}
		}
		fmt.Fprintf(w, "\n## `%s`\n\n%s\n\n[Common](#common-tags-and-fields): %s.\n", s.Measurement, s.Doc, strings.TrimSuffix(common[0]+"; "+strings.Join(common[1:], ", "), "; "))
		if len(ownTags) > 0 {
			fmt.Fprint(w, "\nTags:\n\n"+strings.Join(ownTags, ""))
		}
		if len(ownFields) > 0 {
			fmt.Fprint(w, "\nFields:\n\n"+strings.Join(ownFields, ""))
		}
	}
	return nil
}

// keepCommon removes the rows of one series alone, and those whose key has several meanings that series share.
func keepCommon(times map[string]int) {
	keys := map[string]int{}
	for row, n := range times {
		if n > 1 {
			keys[strings.Split(row, "`")[1]]++
		}
	}
	for row, n := range times {
		if n == 1 || keys[strings.Split(row, "`")[1]] > 1 {
			delete(times, row)
		}
	}
}

// writeCommon writes the rows that several series have, in the order of the first series with them.
func writeCommon(w io.Writer, times map[string]int, rows func(*sink.Series) []string) {
	written := map[string]bool{}
	for i := range sink.AllSeries {
		for _, row := range rows(&sink.AllSeries[i]) {
			if times[row] > 1 && !written[row] {
				written[row] = true
				fmt.Fprint(w, row)
			}
		}
	}
}

func tagRow(t *sink.TagSpec) string { return fmt.Sprintf("- `%s`: %s\n", t.Key, t.Doc) }

func fieldRow(f *sink.FieldSpec) string {
	return fmt.Sprintf("- `%s` (%s): %s\n", f.Key, strings.TrimSpace(fmt.Sprint(f.Kind)+" "+f.Unit), f.Doc)
}

// writeExampleSettings writes deploy/hopscope.yaml: the defaults, to be edited.
func writeExampleSettings(w io.Writer) error {
	fmt.Fprint(w, "# Settings of hopscope collect: every key with its meaning, range and default.\n# Written by \"hopscope config print\"; what is left out keeps its default.\n\n")
	cfg := defaultConfig()
	return settings.Print(w, &cfg)
}
