package sink

import "github.com/hopscope/hopscope/inference"

var probes = series("probe", "One point per window and path of probes between two agents (`hopscope agent`) in which the agent reported it. A probe that does not come is lost in the window in "+
	"which the agent knows it, up to its timeout after the one in which it was sent. `lost` and its two directions are less than 0 where a window takes back losses of an earlier one.",
	[]tag[inference.ProbeStats]{
		{"epoch", "of the plan or of the survey that the path is from; 0 where there is none", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), decimal(s.Epoch)) }},
		{"from", `address that probes come from; "other" for all paths that found no place`, func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), s.From.String()) }},
		{"path", "number of the path among those from the one address to the other: of a session of STAMP its SSID", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), decimal(s.Path)) }},
		{"to", "address that probes go to", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), s.To.String()) }},
	},
	[]field[inference.ProbeStats]{
		integer("sent", "", "probes sent", func(s *inference.ProbeStats) uint64 { return s.Sent }),
		integer("received", "", "probes that came, each counted once, with those that were late", func(s *inference.ProbeStats) uint64 { return s.Received }),
		integer("lost", "", "probes that did not come in time, less those of earlier ones that came late", (*inference.ProbeStats).Lost),
		integer("lost_forward", "", "of these the ones that were lost on the way out, as far as the numbers of the reflector say so", func(s *inference.ProbeStats) int64 { return s.Forward }),
		integer("lost_back", "", "of these the answers that were lost, likewise", func(s *inference.ProbeStats) int64 { return s.Back }),
		integer("late", "", "probes that came when their time had passed", func(s *inference.ProbeStats) uint64 { return s.Late }),
		integer("duplicated", "", "probes that came again", func(s *inference.ProbeStats) uint64 { return s.Twice }),
		integer("corrupt", "", "probes that came and were refused, or whose contents were changed", func(s *inference.ProbeStats) uint64 { return s.Corrupt }),
		integer("reordered", "", "probes that came behind later ones", func(s *inference.ProbeStats) uint64 { return s.Reordered }),
		probeDelay("delay_p50", "median", func(d *inference.Summary) uint64 { return d.P50 }),
		probeDelay("delay_p90", "90th percentile", func(d *inference.Summary) uint64 { return d.P90 }),
		probeDelay("delay_p99", "99th percentile", func(d *inference.Summary) uint64 { return d.P99 }),
		probeDelay("delay_max", "largest", func(d *inference.Summary) uint64 { return d.Max }),
	}).revised()

// probeDelay is a figure of delays, absent if none is known.
func probeDelay(key, doc string, value func(*inference.Summary) uint64) field[inference.ProbeStats] {
	return field[inference.ProbeStats]{FieldSpec{key, Int, "ns", "time of a probe there and back without that in the reflector, " + doc}, func(s *inference.ProbeStats) (Field, bool) {
		return Field{Int: int64(value(&s.Delay))}, s.Delay.Count > 0
	}}
}
