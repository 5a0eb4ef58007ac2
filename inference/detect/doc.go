// Package detect finds changes in the values of a hop, window by window. It finds a latency or a queue that rose or
// fell, at once or over hours, in its median or its tail. It finds values that stand still, and a hop that falls
// silent. It learns the usual values from the hop itself and uses no other hop.
//
// Four statistics are watched: the median, the 99th percentile, the floor of the values, and the 99th percentile beside
// the 90th. For each, a bank of exponential means has time constants from 1 to 729 windows. A contrast is the
// difference of a fast mean and a slow one. A step shows in the fast contrasts at once, a ramp of three hours only in
// the slowest. Each sign of each contrast has a limit of its own. The tail of its past deviations exceeds the limit in
// the requested share of the windows.
//
// Three things keep quiet hops quiet. Deviations that recur every hour or every day are excused, by a profile of the
// last two visits. A window of few values counts for less, since its quantiles stray more. And after an hour within a
// finding the new level is the usual one.
//
// Values are not learnt while a finding about them is active: the means stay those of before it. A finding that recurs
// again and again is one finding.
//
// Values are compared by their logarithms, so that a hop of 10 µs and one of 10 ms are judged alike. Everything is plain
// arithmetic: no clock, no randomness, about two kilobytes a hop, and the same windows give the same findings.
package detect
