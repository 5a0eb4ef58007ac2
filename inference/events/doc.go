// Package events finds faults in a stream of windows. They are path changes, dropped packets, impossible digests,
// exporters that lose reports or fall silent, and hops with unusual latency, queue or utilisation.
//
// A finding is published when it starts, when its severity rises, and when it ends. It ends when its cause does:
//
//	kind              starts                                              ends
//	path-change       a flow's path differs from the one before; flows    path stable for PathStable windows, and
//	                  that left a link, or came to one, share it          packets pass the link again
//	drops             a drop report of this node and reason               none for EndAfter windows
//	strange-digests   DigestsStrange digests of a flow in a window that   none for EndAfter windows
//	                  no path can have written
//	inventory-error   InventoryFlows flows say the same of what is wrong   none say so for EndAfter windows
//	                  with the topology that digests are read by
//	off-policy        flows break a rule of the policy in the same way    none do for EndAfter windows
//	                  for PolicyWindows windows in a row
//	routing-loop      a switch saw a packet of the flow come again        none for EndAfter windows
//	exporter-loss     the lower bound of the ratio of an exporter's     its upper bound is well below that, or
//	                  lost reports is above LossRatio                   no report came for 30 windows
//	exporter-silence  a pause that its own history makes less likely    a report comes, or the exporter is
//	                  than one in a million                             forgotten
//	interface-errors,    the lower bound of the ratio that an interface    its upper bound is well below that, or
//	interface-discards   counts is above ErrorRatio or DiscardRatio        no packet passed in 30 samples
//	probe-loss,       the lower bound of the ratio of a path's probes     its upper bound is well below that, or
//	probe-corruption  that are lost, or damaged, is above ProbeLoss or    none was sent or came in 30 windows
//	                  ProbeCorrupt
//	probe-delay       a statistic of a path's delay leaves what package   it is back for EndAfter windows, its level has
//	                  detect finds usual for it                           lasted for LearnAfter windows, or the path is
//	                                                                      of another epoch
//	high-latency,     a statistic of a hop leaves what package detect     it is back for EndAfter windows, or its level
//	high-queue, ...   finds usual for it                                  has lasted for LearnAfter windows
//	hop-silence       a pause that the hop's own history, and its use     it reports for EndAfter windows, or is silent
//	                  at that time of the week, make less likely than     for LearnAfter windows
//	                  one in a million
//
// # Hops
//
// A hop is compared with itself, by package detect. The statistics are the median and the 99th percentile of its
// latency and of its queue, and its highest utilisation. FalseADay is the one setting of limits. It is divided by the
// windows of a day and by the watched statistics, rounded up to a power of two: latency, queue and utilisation of each
// hop, and one for each flow, link and path of probes. Package detect has the factor by which limits grow for a share
// of the windows. Latencies and utilisation may rise, fall and stand still; queues may rise and stand still, but not at
// zero.
//
// A hop is learning for 360 windows, and for 2160 if it had a finding and recovered by itself in that time. Findings
// that begin then are marked as Learning. The first findings of bursts and hourly jobs are such ones.
//
// # Flows
//
// The latency of a flow, the sum over the hops on its path, is judged in the same way. A flow that is a small part of a
// hop's packets leaves no trace in the hop's statistics. The flow needs a place, which it keeps by staying among the
// busiest flows of the windows. It also needs BusyReports values of each hop that reports latencies. Windows with fewer
// values are left out, and so are those with a path that is unknown, not the only one, or changed. On another path a
// flow is learnt anew. A finding lists the hops from which at least a quarter of the change comes. Package cause uses
// them to group it with the findings of those hops.
//
// # Links
//
// Times on links are watched where stacks hold when packets left one switch and came to the next, in both directions.
// Their sum is independent of the clocks of the two switches. A rise of it is found. It is one more of the statistics
// that FalseADay is divided among. A clock that is set, or changes its rate, widens the uncertainty of a window. The
// sum changes only if three windows agree.
//
// # Exporters
//
// The losses of an exporter are weighed against the hypothesis that each of its reports is lost with a probability of
// at most LossRatio. The number of last windows that count is the one with the strongest evidence against it. Whatever
// the traffic, the mean time until a false finding is at least a million windows at a true ratio of LossRatio. It is
// longer below it. Losses are assumed to be independent: a single burst counts as much as the same number of reports
// lost one by one. Numbers that may yet come are no loss. A number that was counted as lost and arrives late is taken
// back. A finding gives the ratio and its lower bound. It ends when the loss is shown to be below a third of that
// bound. Bursts need more windows for that, 60 at most.
//
// Silence is judged by the lengths of earlier pauses of the exporter (see pauses.go). In each of its windows with
// reports, the chance of a pause as long must be below one in a million. The history has at least SilenceHistory of
// these windows. A pause with a finding does not enter it, unless such a pause comes back within 36 hours. So the
// second outage is found as the first one was, and an exporter that is silent every night has two findings. Reports
// about events alone (drops and queues) promise nothing. Histories outlive the tracker's memory of an exporter. But an
// exporter whose pauses are longer than the tracker remembers is never found silent.
//
// In a window of several collectors, an exporter whose collector was not heard (Window.Unheard) is not judged. Its
// pause does not go on, and its apparent losses are not weighed. Such a window shows only that the exporter reports.
//
// # False alarms
//
// The rate of findings of hops without a fault is measured by bench/findings, beside other detectors, and held by the
// tests of package detect.
//
// TestLossFalseAlarms, TestLossFound and TestSilence measure the same for exporters, in 1000 hours of windows of ten
// seconds each. At a ratio of 1e-5 or none, exporters of 0.1 to 100,000 reports a window start no finding. At the ratio
// of LossRatio they start at most one. Losses of ten times LossRatio and more are found, each time. Regular exporters
// and those that report at random are never found silent while they go on. An exporter that reported in every window
// and stops after ten hours is found after 3 windows. One that reported at random is found after about 20 times its
// mean distance.
//
// # Bounds
//
// The configuration limits how many hops, flows and drop reasons are followed at the same time. The tracker of
// exporters limits these. Subjects beyond the limits are counted in [Stats]. Path changes are the exception: those of
// flows for which there is no place become one finding without a flow.
//
// The detectors are deterministic: the same windows give the same findings with the same numbers.
//
// # State
//
// [Detector.AppendState] writes all that a detector remembers to bytes, and [Detector.ReadState] reads it back, so that
// another process can go on where one stopped. The bytes begin with a version and are opaque: they change whenever the
// detectors do. Earlier versions from oldestVersion on are read, so that programs of two can take turns; others are refused.
package events
