// Package detect finds changes in what a hop shows window by window: a latency or a queue that rose or fell, at once or
// over hours, in its median or in its tail; values that stand still; and a hop that falls silent. It learns what is usual
// from the hop itself, and knows nothing of any other.
//
// Of two statistics, the median and the 99th percentile, a bank of exponential means is kept with time constants from 1 to
// 729 windows. A contrast is the difference of a fast mean and a slow one: a step shows in the fast contrasts at once, a
// ramp of three hours only in the slowest. Each contrast, and each of its signs, has a limit of its own that follows from
// how far it strays when nothing is wrong: the larger of a multiple of its root mean square and a multiple of its tail.
//
// Four things keep quiet hops quiet. What comes back every hour or every day is excused, by a profile of the last two
// visits. A window of few values counts for less, since its quantiles stray more. A finding that passes by itself raises
// the limits of its contrasts, for a day. And after an hour within a finding the new level is the usual one.
//
// When the values are back at the level of before a finding, the means are what they were before it: otherwise the slow ones
// would remember a short, strong fault for an hour.
//
// Values are compared by their logarithms, so that a hop of 10 µs and one of 10 ms are judged alike. Everything is plain
// arithmetic: no clock, no randomness, about a kilobyte a hop, and the same windows give the same findings.
package detect
