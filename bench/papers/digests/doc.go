// Package digests makes the figures of PINT (R. Ben Basat et al., SIGCOMM 2020) again: the published algorithms,
// re-implemented, and those of hopscope decode the same digests in the same run. The figures loops, spray, cost and
// errors are ours.
//
// Figures 1, 2, 7, 8 and 11hpcc are of flows with windows in a simulated network: completion and goodput by the bytes
// of telemetry in packets, and congestion control by HPCC's law (package congestion).
//
// A figure depends on [Options] alone: each repetition draws its random numbers from the seed, the stream's name and
// its own number. The networks of the figures are in networks/, with their source and licence.
package digests
