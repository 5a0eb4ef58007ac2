// Package digests makes the figures of PINT (R. Ben Basat et al., SIGCOMM 2020) again: the published algorithms,
// re-implemented, and those of hopscope decode the same digests in the same run. The figures loops, spray, cost and
// errors are ours.
//
// A figure depends on [Options] alone: each repetition draws its random numbers from the seed, the stream's name and
// its own number. The networks of the figures are in networks/, with their source and licence.
package digests
