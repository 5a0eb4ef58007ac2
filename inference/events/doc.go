// Package events finds what somebody should know of in a stream of windows: paths that change, packets that are dropped,
// digests that cannot be right, exporters that lose reports or fall silent, and hops whose latency or queue is far above
// its own history.
//
// A finding is told when it starts, when its severity rises, and when it ends. It ends when its cause does:
//
//	kind              starts                                              ends
//	path-change       a flow's path differs from the one before           path stable for PathStable windows
//	drops             a drop report of this node and reason               none for EndAfter windows
//	strange-digests   DigestsStrange digests of a flow in a window that   none for EndAfter windows
//	                  no path can have written
//	routing-loop      a switch saw a packet of the flow come again        none for EndAfter windows
//	exporter-loss     the lower bound of the ratio of an exporter's     its upper bound is well below that, or
//	                  lost reports is above LossRatio                   no report came for 30 windows
//	exporter-silence  a pause that its own history makes less likely    a report comes, or the exporter is
//	                  than one in a million                             forgotten
//	high-latency,     p99 of a hop above its limit in StartAfter windows  p99 in the lower half of the way to the
//	high-queue        in a row                                            limit for EndAfter windows in a row
//
// # Baseline
//
// A hop is compared with itself. Its limit comes from the p99 of its last History windows, of which the detector takes
// the median m and the spread s. The spread is the larger of two estimates of the standard deviation of a normal
// distribution: 1.4826 times the median absolute deviation, and (q90 - m)/1.2816. The second is needed because the median
// absolute deviation is 0 as soon as half of the windows are equal, as they are for queues that are empty most of the
// time. The limit is m + Threshold s. It is never closer to m than a Floor in the value's own unit, and never closer than
// the share RelativeFloor of m, so that a history in which nothing varies does not raise the alarm when a value is
// rounded differently.
//
// Queues are compared as they are, because their tails are about exponential. Latencies have heavier tails and are
// compared on a logarithmic scale, as log(ns + floor).
//
// Windows above the limit stay out of the history, because a fault must not become the baseline that it is compared with.
// That holds for LearnAfter windows in a row. A state that lasts longer is the new normal: it is learnt, and its finding
// ends.
//
// # Exporters
//
// What an exporter lost is weighed against the hypothesis that each of its reports is lost with a probability of at most
// LossRatio, over as many of the last windows as speak most against it. Whatever the traffic is like, the mean time until
// a false finding is at least a million windows at a true ratio of LossRatio, and longer below it; it takes losses that
// are independent of each other, so a single burst counts as much as the same number of reports lost one by one. Numbers
// that may yet come are no loss, and what was told as lost and comes is taken back. A finding gives the ratio and its
// lower bound. It ends when the loss is shown to be below a third of that bound, for which bursts need more windows, 60 at
// most.
//
// Silence is judged by the lengths of the pauses that the exporter made before (see pauses.go): the chance that it makes
// one as long must be below one in a million for each of its windows with reports. The history has at least SilenceHistory
// of these. A pause that was told does not enter it, unless such a pause comes back within 36 hours, so that the second
// outage is told as the first one was, and who is silent every night is told twice. Reports about events alone (drops and
// queues) promise nothing. Histories survive that the tracker forgets an exporter, but an exporter whose pauses are longer
// than the tracker remembers is never told as silent.
//
// In a window that several collectors made, an exporter whose collector was not heard (Window.Unheard) is not judged: its
// pause does not go on, and what it seems to have lost is not weighed. Only that it speaks is taken from such a window.
//
// # False alarms
//
// TestFalseAlarms measures how often noise is taken for a fault. The windows are independent, come from one distribution,
// and have 100 records each; their values are constant, uniform, normal, exponential, log-normal (σ = 1), Pareto (α = 2),
// bimodal, or mostly zero. On all of these the default configuration starts at most one false finding in 100 000 windows
// of a hop, except for queues with a Pareto tail, where it is one in 25 000.
//
// A step to twenty times the scale of the same noise is found within a few windows, unless the noise is log-normal or
// Pareto, or the queue is nearly always empty.
//
// A rare event that the history does not show cannot be told from a fault. If it lifts the p99 in a share p of all
// windows, it starts a finding in about p^StartAfter of them.
//
// TestLossFalseAlarms, TestLossFound and TestSilence measure the same for exporters. In 1000 hours of windows of ten
// seconds each, exporters of 0.1 to 100,000 reports a window start no finding at a ratio of 1e-5 or none, and at most one
// at that of LossRatio. Losses of ten times LossRatio and more are found, each time. Regular exporters and those that
// report at random are never told as silent while they go on. An exporter that stops after ten hours is found after 3
// windows if it spoke in every window, and after about 20 times its mean distance if it speaks at random.
//
// # Bounds
//
// The configuration limits how many hops, flows and drop reasons are followed at the same time, and the tracker of
// exporters how many of those there are. What does not fit is counted in [Stats]. Path changes are the exception: those
// of flows for which there is no place become one finding without a flow.
//
// The detectors are deterministic: the same windows give the same findings with the same numbers.
//
// # State
//
// [Detector.AppendState] writes all that a detector remembers to bytes, and [Detector.ReadState] reads it back, so that
// another process can go on where one stopped. The bytes begin with a version and are opaque: they change whenever the
// detectors do, and a version that is not the present one is refused.
package events
