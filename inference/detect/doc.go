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
// Few values are judged with care:
//
//   - One value makes a window. At least half of the hops with one report a window that get 400 times as slow are found
//     within ten windows.
//   - Of fewer than 100 values, a 99th percentile is critical if the mean of three windows reaches the limit.
//   - A change of the maximum has to repeat: of fewer than 100 values twice within five windows, of fewer than 20 three
//     times in a row.
//   - The minimum is compared from 100 values on, and the ratio of the 99th percentile to the 90th from 400 on. Only
//     their rise counts. The finding has the word "lowest", or the p99 that is usual beside this p90.
//   - Rarely used hops have six times the transmission time added to both sides, learnt from nearly empty queues.
//
// Values are compared by their logarithms, so that a hop of 10 µs and one of 10 ms are judged alike. Everything is plain
// arithmetic: no clock, no randomness, about two kilobytes a hop, and the same windows give the same findings.
package detect
