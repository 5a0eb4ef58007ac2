// Package pathtrace finds the paths of flows from PINT digests: static per-flow aggregation (R. Ben Basat et al., "PINT:
// Probabilistic In-band Network Telemetry", SIGCOMM 2020, section 4.2), with all that is known about the network as a prior.
//
// A [Model] holds what is known: the coding scheme, the nodes V, and, each of them optional, links, that paths are shortest
// paths, that switches spread flows evenly over next hops, and sets of nodes where flows enter or leave. A [Tracer] holds
// the flows of one goroutine. [Tracer.Add] takes digests in one by one and says what each did; [Tracer.Path] tells the path,
// or the hops known so far; [Tracer.Candidates] what else a hop can be, with probabilities.
//
// # Inference
//
// Switches and this package compute the same hashes, so that every digest is an equation: the XOR of the values of those
// hops that wrote into it. Digests are free of noise; a path that does not solve all equations is excluded.
//
// Each hop of an undecided flow has a set of candidates. What follows is done for every digest, and whatever it shrinks
// is followed up:
//   - one unknown writer: candidates are kept whose hash is what is left of the digest;
//   - several: candidates are kept that some candidates of the others complete to the digest (generalised arc consistency
//     over sets of XORs of up to 13 bits). The paper's decoder waits until one is unknown;
//   - links: candidates are kept that neighbour one of the hop before, and of the hop behind. Hops with few candidates are
//     compared by distance before;
//   - a path visits a node once, unless Config.Loops says otherwise.
//
// When there may be evidence enough, a depth-first search goes through the paths that are left, from known hops on along
// links. It ends with the complete list, or when it found several, which then stand as witnesses that more digests are needed,
// so that no search is made while two of them live. A list only shrinks with further digests.
//
// # Posterior
//
// The prior is uniform over the paths of the model with the number of hops that the digest came with, or, with [ECMP],
// uniform over pairs of ends and even at every switch. Beside them stands, with probability Config.Unmodelled, a path that the
// model does not know, whose digests are random: it loses Width bits (10 at most) with every digest that has a writer.
// A path is known when its posterior is at least Config.Confidence. Where a network has loops, the number of its paths is not
// known; walks that do not turn back are counted instead, which are more, so that the confidence is less than it could be.
// Known paths of the model are never wrong where all are alike likely, for the right one is never excluded: what may be wrong
// is a path that is none of the model's, or follows it but for hops that no digest of the flow told of. Status.Seen tells which
// hops digests told of, and of which the model alone speaks.
//
// [Tracer.Candidates] gives the exact posterior of every hop as long as 2²⁰ steps of search suffice, and says if they did not.
//
// # Changes, several paths, wrong digests
//
// A digest that the path of a flow does not explain is a change of the path, or a second path in use, or wrong. Digests from
// then on are taken as those of a new path, and, if they contradict each other, only those are that the known path does not
// explain. A new path needs two unexplained digests at least. If explained ones helped to find it, it needs as many unexplained
// ones (14 for a confidence of 1 - 10⁻⁶) as make it improbable that packets of two paths looked like one by chance. Up to four
// paths of a flow are known at a time, the one seen last in front.
//
// If digests contradict each other while no path is known, the older ones are left aside. From then on the odds of a path that
// the model does not know are even or worse, and a path has to stand a test of further digests, one of which in eight hops'
// worth may be wrong. A full window of contradictions is searched for two paths that explain all of it. If that fails thrice,
// the flow is [Untraceable] and its digests are left alone for a while that grows from time to time. So forged digests cost
// bounded work and memory. Before the first contradiction packets are taken to be of one path: where every packet of a flow
// takes one of two paths from the start, the first digests may fit a wrong path, which then lasts until the two are known, or
// rarely, if they cross and what is left of them makes a path, too, for longer.
//
// # Cost
//
// A digest of a known path costs the hashes of its writers: 45 to 60 ns for 5 to 59 hops and one instance. While a path is not
// known, Config.Work bounds the average of searches; the rest is some microseconds with 754 nodes. A known path of 59 hops takes
// 272 bytes and a Flow of 40; an undecided flow a bitset of V for each hop, and 48 bytes for each digest of the window.
package pathtrace
