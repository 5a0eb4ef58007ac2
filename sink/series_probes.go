package sink

import "github.com/hopscope/hopscope/inference"

var probes = series("probe", "Path of probes between two agents (`hopscope agent`) in one window. A probe counts as lost in the window of its timeout. "+
	"`lost` and its two directions are negative if a window corrects losses of an earlier one. "+
	"Delays are round-trip times without the time in the reflector. Of a path of a plan between two agents, `sent` is from its sender and the others from its receiver, two seconds later (docs/agent.md).",
	[]tag[inference.ProbeStats]{
		{"epoch", "epoch of the plan or survey of the path; 0 without one", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), decimal(s.Epoch)) }},
		{"from", "source address of probes; 0.0.0.0 for a sender of a plan's probes of which nothing came yet", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), s.From.String()) }},
		{"path", "number of the path between the two addresses; of a STAMP session its SSID, and with several DSCP values (`dscps`) 65536 times (DSCP + 1) more; of a planned probe the number at the end of its id, or a hash from 2147483648 on", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), decimal(s.Path)) }},
		{"to", "destination address of probes", func(s *inference.ProbeStats) string { return unlessFolded(s.Other(), s.To.String()) }},
	},
	[]field[inference.ProbeStats]{
		integer("sent", "", "probes sent", func(s *inference.ProbeStats) uint64 { return s.Sent }),
		integer("received", "", "probes received, late ones included, duplicates not", func(s *inference.ProbeStats) uint64 { return s.Received }),
		integer("lost", "", "probes lost, less earlier ones that arrived late; of a planned probe all that were due and did not come", (*inference.ProbeStats).Lost),
		integer("lost_forward", "", "of these, probes lost on the way out, by the reflector's numbers; of a planned probe those that both agents account for", func(s *inference.ProbeStats) int64 { return s.Forward }),
		integer("lost_back", "", "of these, answers lost, likewise", func(s *inference.ProbeStats) int64 { return s.Back }),
		integer("late", "", "probes received after their timeout", func(s *inference.ProbeStats) uint64 { return s.Late }),
		integer("duplicated", "", "probes received again", func(s *inference.ProbeStats) uint64 { return s.Twice }),
		integer("corrupt", "", "probes refused, or with changed contents", func(s *inference.ProbeStats) uint64 { return s.Corrupt }),
		integer("reordered", "", "probes received after later ones", func(s *inference.ProbeStats) uint64 { return s.Reordered }),
		probeDelay("delay_p50", "median", func(d *inference.Summary) uint64 { return d.P50 }),
		probeDelay("delay_p90", "90th percentile", func(d *inference.Summary) uint64 { return d.P90 }),
		probeDelay("delay_p99", "99th percentile", func(d *inference.Summary) uint64 { return d.P99 }),
		probeDelay("delay_max", "maximum", func(d *inference.Summary) uint64 { return d.Max }),
	}).revised()

// probeDelay is a figure of delays, absent if none is known.
func probeDelay(key, doc string, value func(*inference.Summary) uint64) field[inference.ProbeStats] {
	return field[inference.ProbeStats]{FieldSpec{key, Int, "ns", "delay, " + doc}, func(s *inference.ProbeStats) (Field, bool) {
		return Field{Int: int64(value(&s.Delay))}, s.Delay.Count > 0
	}}
}
