// Package detect finds changes in the values of a hop, window by window: a latency or a queue that rose or fell, at once or over
// hours, in its median or in its tail; values that stand still; and a hop that falls silent. It learns what is usual from the
// hop itself, and knows nothing of any other.
//
// Of each statistic (the median, the 99th percentile, the floor of the values, and the 99th percentile beside the 90th), a bank of
// exponential means is kept with time constants from 1 to 729 windows. A contrast is the difference of a fast mean and a slow one: a
// step shows in the fast contrasts at once, a ramp of three hours only in the slowest. Each contrast, and each of its signs, has a limit of its
// own: where the tail of what it strayed so far is exceeded in the share of the windows that is asked for.
//
// Three things keep quiet hops quiet. What comes back every hour or every day is excused, by a profile of the last two visits. A
// window of few values counts for less, since its quantiles stray more. And after an hour within a finding the new level is the usual one.
//
// What a finding shows is not learnt while it is active: means are those of before it, and one that comes back again and again is one finding.
//
// Values are compared by their logarithms, so that a hop of 10 µs and one of 10 ms are judged alike. Everything is plain
// arithmetic: no clock, no randomness, about two kilobytes a hop, and the same windows give the same findings.
package detect
