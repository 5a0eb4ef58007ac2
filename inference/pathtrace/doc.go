// Package pathtrace finds the paths of flows from PINT digests. It does the static per-flow aggregation of R. Ben Basat
// et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, section 4.2, with everything that is known
// about the network as a prior.
//
// A [prior.Model] holds the prior knowledge: the coding scheme and the nodes V. Some parts are optional. They are the
// links, that paths are shortest, that switches spread flows evenly over next hops, and sets of nodes where flows enter
// or leave. A [Tracer] holds the flows of one goroutine. Its method [Tracer.Add] takes digests in one by one and
// returns the effect of each. The method [Tracer.Path] returns the path, or the hops that are known so far. The method
// [Tracer.Candidates] returns the possible nodes of every hop, with probabilities.
//
// # Inference
//
// Switches and this package compute the same hashes, so every digest is an equation. It is the XOR of the values of
// those hops that wrote into it. Digests are free of noise, so a path that does not solve all equations is excluded.
//
// Each hop of an undecided flow has a set of candidates. Every digest removes candidates by the rules below, and a hop
// that has lost some can make other hops lose some in turn:
//   - One writer is unknown: those of its candidates stay whose hash is the rest of the digest after the known writers.
//   - Several are unknown: those candidates stay that some candidates of the other writers complete to the digest. This
//     is generalised arc consistency over sets of XORs of up to 13 bits. The paper's decoder waits until a single
//     writer is unknown.
//   - Links are known: those candidates stay that have neighbours among the candidates of the hop before and of the hop
//     behind. Hops with few candidates are compared by their distance first.
//   - A path visits a node once, unless prior.Config.Loops is set.
//
// As soon as there may be evidence enough, a depth-first search goes through the paths that are left, from known hops on
// along links. It ends with the complete list of them, or it stops when it has found several. These are kept as witnesses
// that more digests are needed: as long as two of them explain all digests, no other search is made. Further digests only
// make a complete list shorter.
//
// # Posterior
//
// At first, all paths of the model are equally likely that have the number of hops which the digest came with. With
// [prior.ECMP], all pairs of ends are equally likely instead, and each switch divides the probability evenly among its
// next hops. Besides, with the probability prior.Config.Unmodelled, the path is one that the model does not know. The
// digests of such a path are random, so that every digest with a writer takes Width bits (10 at most) from its
// probability.
//
// A path is known when its posterior is at least prior.Config.Confidence. Where a network has loops, the number of its
// paths is not known. Walks that do not turn back are counted in their place. There are more of these, so the stated
// confidence is less than it could be. If all paths of the model are equally likely and a flow takes one of them, its
// known path is never wrong. The right one is never excluded. A known path can be wrong if the flow takes a path that
// the model does not have. It may then be right in all hops but those that no digest of the flow covered. Status.Seen
// lists the covered hops, and the others follow from the model alone.
//
// [Tracer.Candidates] returns the exact posterior of every hop as long as 2²⁰ steps of search suffice, and reports if
// they did not.
//
// # Where the map is wrong
//
// The model itself may be wrong. A node may have another id, a link may be missing, or a flow may take a detour. Hop
// numbers may be shifted because the sender starts with a lower TTL. So a path is published with marks first. A hop
// keeps its mark (Status.Marked) until digests that it wrote into, and that agree, hold enough evidence. A wrong node
// passes each of them with a probability of 2^-Width only. A hop that no digest has covered is always marked. For a hop
// by itself, the required number assumes that three flows in ten met an error at that very hop. It covers all nodes
// that the map could have there. With 8 bits, links, and a confidence of 1 - 10⁻⁶ it is three digests, and four where
// any node can be anywhere. Fewer are enough for hops that are all but certain together, since an error is assumed to
// be equally probable at any hop. The probabilities that a hop without a mark has another node by chance may sum up to
// what the confidence leaves. A path of twelve hops then has two of them with two digests, and three digests or more of
// the others.
//
// Other flows help in two ways. First, the share of flows that meet an error starts at three in ten and is learnt from
// then on. Flows whose own digests confirmed all of their hops count once for each source. Flows with a digest that
// contradicts the map count sixteen times, because errors come in bunches. After some thousand flows without a
// contradiction one digest of 8 bits is enough for some hops, and later for all. Second, errors of the map stay where
// they are. So each place, that is a hop between its two neighbours, counts the flows that confirmed it since the last
// contradiction. An error is assumed to concern at least one in eight flows of its place. So many confirmations reduce
// its probability, to a 32nd at most since an error may have come up since then. They do so if flows of four sources
// also confirmed all nodes that the map has between these neighbours. The table of places has a fixed size, 2^16
// entries at most.
//
// Digests are kept until the path is certain, at most prior.Config.Window of them and within a quarter of the memory.
// Without them, marks stay. Each digest that contradicts the published path halves its confidence, and sixteen that
// agree restore it. The hops that may be to blame are marked anew. Then the digests are weighed again for a path that
// need not be the map's. From hop to hop it follows a link, but may jump to any node (1 in 128). Its node may have an
// id that is not known (1 in 256). Sums over all such paths, forward and backward, give the probabilities of each hop.
// Digests of several writers count once all but one of these are settled. The result is published as [Revised], or as
// [Decoded] if nothing was published yet. [Tracer.Deviation] names the hops that differ from the map. A hop whose node
// is not known has a mark forever. A wrong prior loses its weight in the same way. The paths that routing would choose
// give way to all walks over links, and these to any nodes. Networks of more than 8192 nodes are not searched for
// deviations.
//
// Status.Confidence takes all that into account. While hops are marked, it follows from the share of flows that met an
// error so far, which is taken to be 0.3 at first.
//
// # Changes, several paths, wrong digests
//
// A digest that the known path of a flow does not explain can have three reasons. The path has changed, a second path
// is in use, or the digest is wrong. All digests from then on are taken as those of a new path. If they contradict each
// other, only those count that the known path does not explain. A new path needs at least two unexplained digests. If
// explained ones helped to find it, it needs more unexplained ones (14 for a confidence of 1 - 10⁻⁶). By then packets
// of two paths can hardly have looked like packets of one by chance. Up to four paths of a flow are known at a time,
// the last one seen in front.
//
// If digests contradict each other while no path is known, the older ones are left aside, and the tracer becomes more
// careful with the flow. After n contradictions it sets the odds that the model lacks the path to (n+1)² to 1. And a
// path that explains all digests is not known at once, but has to stand the test of further digests. Wrong digests do
// not make it fail the test if they are at most an eighth as frequent as digests of any one hop.
//
// A full window of contradictions is searched for two paths that explain all of it between them. If that fails three
// times, the flow is [Untraceable]: its digests are ignored for a while, which grows from one time to the next. So
// forged digests cost a bounded amount of work and memory.
//
// Before the first contradiction, all packets are taken to follow one path. If the packets of a flow are spread over
// two paths from the start, the first digests may happen to fit a wrong path. It then stays the known one until the two
// real paths are found. Rarely it stays longer. Where the two cross, a wrong path can follow one of them up to the
// crossing and the other one from there on. The remaining parts make a second wrong path, and both together explain all
// digests.
//
// # Cost
//
// A digest of a known path costs the hashes of its writers: 45 to 60 ns for 5 to 59 hops and one instance. While a path
// is not known, prior.Config.Work bounds the average cost of searches. Everything else takes some microseconds a digest
// with 754 nodes. A known path of 59 hops takes 304 bytes besides the 44 of its Flow. An undecided flow takes a bitset
// of V for each hop, and 48 bytes for each digest of the window. A flow whose path is not certain yet takes 16 bytes
// for each of these. The search for deviations may cost sixteen times prior.Config.Work on average.
package pathtrace
