// Package events finds what somebody should know of in a stream of windows: paths that change, packets that are dropped,
// exporters that lose reports or fall silent, and hops whose latency or queue is far above their own history.
//
// A finding is told when it starts, when its severity rises and when it ends, and it ends when its cause does:
//
//	kind              starts                                              ends
//	path-change       a flow's path differs from the one before           path stable for PathStable windows
//	drops             a drop report of this node and reason               none for EndAfter windows
//	strange-digests   DigestsStrange digests of a flow in a window that   none for EndAfter windows
//	                  no path can have written
//	routing-loop      a switch saw a packet of the flow come again        none for EndAfter windows
//	exporter-loss     net loss above LossRatio, after one window of       none above it for EndAfter windows
//	                  grace in which late reports can fill the gap
//	exporter-silence  silent for SilenceAfter windows and for twice as    a report comes, or the exporter is
//	                  long as it usually pauses                           forgotten
//	high-latency,     p99 of a hop above its limit in StartAfter windows  p99 in the lower half of the way to the
//	high-queue        in a row                                            limit for EndAfter windows in a row
//
// # Baseline
//
// The limit of a hop comes from the p99 of its past History windows: median m, and spread s, the larger of
// 1.4826 MAD and (q90 - m)/1.2816. Both estimate the standard deviation of a normal distribution; the second is there
// because MAD is 0 as soon as half of the windows are equal, as with queues that are empty most of the time. The limit
// is m + Threshold s, and at least a Floor, and a share RelativeFloor of m, above m, so that a constant history does
// not alarm at the noise of rounding.
//
// Queues are compared as they are, their tails are about exponential; latencies on a logarithmic scale, log(ns + floor),
// because their tails are heavier than that.
//
// Windows above the limit stay out of the history, so that a fault does not become its own baseline, but only
// LearnAfter of them in a row: then what lasts is the new normal, is learnt, and its finding ends.
//
// # False alarms
//
// On stationary independent windows with 100 records each, whose values are constant, uniform, normal, exponential,
// log-normal (σ = 1), Pareto (α = 2; for queues one in 25 000), bimodal or zero-inflated, the default configuration
// starts at most one false finding in 100 000 windows of a hop; TestFalseAlarms measures it. A step to twenty times the
// scale of the same noise is found within a few windows, log-normal and Pareto excepted. What the history of a hop does not show cannot be told from a fault: an event that
// lifts p99 in a share p of all windows, and so rarely that the history has none, starts a finding in p^StartAfter of
// them.
//
// # Bounds
//
// Hops, flows, drop reasons and exporters that are followed are limited by the configuration. What does not fit is
// counted in [Stats], except for path changes: those of further flows become one finding without a flow.
//
// The detectors are deterministic: the same windows give the same findings with the same numbers.
package events
