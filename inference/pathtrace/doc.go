// Package pathtrace finds the paths of flows from PINT digests. It does the static per-flow aggregation of R. Ben Basat et
// al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, section 4.2, with everything that is known about the
// network as a prior.
//
// A [Model] holds what is known: the coding scheme, the nodes V, and, each of them optional, the links, that paths are
// shortest paths, that switches spread flows evenly over their next hops, and sets of nodes where flows enter or leave. A
// [Tracer] holds the flows of one goroutine. [Tracer.Add] takes digests in one by one and says what each of them did.
// [Tracer.Path] tells the path, or the hops that are known so far. [Tracer.Candidates] tells what every hop can still be,
// with probabilities.
//
// # Inference
//
// Switches and this package compute the same hashes, so every digest is an equation: it is the XOR of the values of those
// hops that wrote into it. Digests are free of noise, so a path that does not solve all equations is excluded.
//
// Each hop of an undecided flow has a set of candidates. Every digest removes candidates by the rules below, and a hop that
// has lost some can make other hops lose some in turn:
//   - One writer is unknown: those of its candidates stay whose hash is what the known writers leave of the digest.
//   - Several are unknown: those candidates stay that some candidates of the other writers complete to the digest
//     (generalised arc consistency over sets of XORs of up to 13 bits). The paper's decoder waits until a single writer is
//     unknown.
//   - Links are known: those candidates stay that have a neighbour among the candidates of the hop before and another one
//     among those of the hop behind. Hops with few candidates are compared by their distance first.
//   - A path visits a node once, unless Config.Loops says otherwise.
//
// As soon as there may be evidence enough, a depth-first search goes through the paths that are left, from known hops on
// along links. It ends with the complete list of them, or it stops when it has found several. These are kept as witnesses
// that more digests are needed: as long as two of them explain all digests, no other search is made. Further digests only
// make a complete list shorter.
//
// # Posterior
//
// At first, all paths of the model are equally likely that have the number of hops which the digest came with. With [ECMP],
// all pairs of ends are equally likely instead, and each switch divides the probability evenly among its next hops. Besides,
// with the probability Config.Unmodelled, the path is one that the model does not know. The digests of such a path are
// random, so that every digest with a writer takes Width bits (10 at most) from its probability.
//
// A path is known when its posterior is at least Config.Confidence. Where a network has loops, the number of its paths is not
// known. Walks that do not turn back are counted in their place; there are more of these, so that the confidence that is told
// is less than it could be. Where all paths of the model are equally likely and a flow takes one of them, its known path is
// never wrong, because the right one is never excluded. A known path can be wrong if the flow takes a path that the model does
// not have. It may then be right in all hops but those that no digest of the flow told of: Status.Seen says which hops digests
// told of, and what is known of the others follows from the model alone.
//
// [Tracer.Candidates] gives the exact posterior of every hop as long as 2²⁰ steps of search suffice, and says if they did not.
//
// # Changes, several paths, wrong digests
//
// A digest that the known path of a flow does not explain can have three reasons: the path has changed, a second path is in
// use, or the digest is wrong. All digests from then on are taken as those of a new path. If they contradict each other, only
// those count that the known path does not explain. A new path needs at least two unexplained digests. If explained ones
// helped to find it, it needs so many unexplained ones (14 for a confidence of 1 - 10⁻⁶) that packets of two paths can hardly
// have looked like packets of one by chance. Up to four paths of a flow are known at a time, the one that was seen last in
// front.
//
// If digests contradict each other while no path is known, the older ones are left aside, and the tracer becomes more careful
// with the flow. After n contradictions it takes the odds that the model does not know the path to be (n+1)² to 1. And a path
// that explains all digests is not known at once, but has to stand the test of further digests. Wrong digests do not make it
// fail the test as long as they are at most an eighth as frequent as digests that tell of any one hop.
//
// A full window of contradictions is searched for two paths that explain all of it between them. If that fails three times,
// the flow is [Untraceable]: its digests are ignored for a while, which grows from one time to the next. So forged digests
// cost a bounded amount of work and memory.
//
// Before the first contradiction, all packets are taken to follow one path. If the packets of a flow are spread over two paths
// from the start, the first digests may happen to fit a wrong path. It then stays the known one until the two real paths are
// found. Rarely it stays longer: where the two cross, a wrong path can follow one of them as far as the crossing and the other
// one from there on, and what is left of the two makes a second wrong path, so that both together explain all digests.
//
// # Cost
//
// A digest of a known path costs the hashes of its writers: 45 to 60 ns for 5 to 59 hops and one instance. While a path is not
// known, Config.Work bounds the average cost of searches; everything else takes some microseconds a digest with 754 nodes. A
// known path of 59 hops takes 272 bytes besides the 40 of its Flow. An undecided flow takes a bitset of V for each hop, and 48
// bytes for each digest of the window.
package pathtrace
