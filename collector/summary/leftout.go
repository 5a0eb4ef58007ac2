package summary

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/window"
)

// Limits lists every limit of windows and detectors, whether it left something out or not.
func (t *LeftOut) Limits() []inference.Limit {
	return []inference.Limit{
		{Setting: "flows.max_hops", N: t.Hops, What: "records of hops are counted as other, without series or findings of their own"},
		{Setting: "flows.daily_flows", N: t.flows, What: "rows of flows are stored as other, because the day has no place for their series"},
		{Setting: "flows.max_hops and exporters.tracking.max_exporters", N: t.rows, What: "rows of exporters, interfaces and findings are stored as other, because the day has no place for their series"},
		{Setting: "flows.max_path_changes", N: t.changes, What: "changes of paths and faults of digests are counted and not listed one by one"},
		{Setting: "flows.max_drops", N: t.drops, What: "reports of drops are counted and not listed by node and reason"},
		{Setting: "events.max_hops", N: t.historiesOfHops, What: "times a hop, link or interface was not judged in a window, because there is no place for its history"},
		{Setting: "events.max_probes", N: t.historiesOfPaths, What: "times a path of probes was not judged in a window, because there is no place for its history"},
		{Setting: "events.max_flows", N: t.findingsOfFlows, What: "changes and faults of flows have no findings of their own"},
		{Setting: "events.max_drops", N: t.findingsOfDrops, What: "times drops of a node for a reason were not followed in a window"},
	}
}

// LeftOutEver returns what an admission and detectors ever left out, also in earlier runs if their states were kept.
func LeftOutEver(a *window.Admission, d *events.Detector) (t LeftOut) {
	_, t.flows, t.rows = a.Folded()
	s := d.Stats()
	unjudged, unlisted := d.Refused()
	t.historiesOfHops, t.findingsOfDrops, t.findingsOfFlows = s.HopsRefused+unjudged, s.DropsRefused, s.FaultsRefused+unlisted
	t.historiesOfPaths = s.PathsRefused
	return t
}

// Window sets what the lists of a window have no place for.
func (t *LeftOut) Window(w *inference.Window) {
	t.Hops, t.changes, t.drops = w.OtherHops, w.OtherPaths+w.OtherFlows, w.OtherDrops
}
