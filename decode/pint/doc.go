// Package pint is the coding scheme of PINT, probabilistic in-band network telemetry (R. Ben Basat et al., "PINT:
// Probabilistic In-band Network Telemetry", SIGCOMM 2020), for switches and decoders alike.
//
// A packet carries a digest of a few bits. Every switch on its path hashes the packet id and its own hop number to
// decide whether it writes. A decoder therefore computes the writers without any marking: see [Scheme.Writers]. What
// a switch writes is a hash of its node id and the packet id, cut to b bits. Inference over many packets is no part
// of this package: inference/pathtrace narrows paths, inference/aggregation takes the numbers.
//
// # Coding schemes
//
// A hash of the packet id alone puts a packet into a layer. In the Baseline layer hop i replaces the digest with
// probability 1/i, so that each hop of the path is equally often the last writer. In an XOR layer every hop XORs its
// value in with the same probability p. [Config] has up to eight layers. The paper's are:
//
//	Baseline           reservoir sampling, packets as in the coupon collector's problem: k·H(k)
//	XOR                p = 1/d for a typical path length d
//	Hybrid             Baseline three times in four, else p = ln ln d/ln d, or 1/ln d for d ≤ 15
//	MultiLayer         Algorithm 1: τ from ln ln* 𝔡, layers of p = 1/𝔡 and e/𝔡, where 𝔡 = d/ln* d
//	MultiLayerRevised  the same with τ′
//	Published          one half and 1/10, as in the programs that were published
//	Linear             every hop with probability 1/2, for comparison; [Eliminator] solves it
//
// The functions of these names document the reading of formulas where the paper contradicts itself. A test repeats
// figure 5.
//
// A digest can hold several instances, which are independent repetitions with hashes of their own. Two instances of 8
// bits cover two hops where one of 16 would cover one. Instead of hashes it can carry the raw value in F = ⌈q/b⌉
// fragments, of which the packet id chooses one. Several Eliminators, one for each fragment, restore the values.
//
// A [Plan] defines which packets carry which queries (section 3.4). It has the sets of queries, their places in the
// digest, and the share of packets of each set. A further hash of the packet id chooses the set. Besides paths it
// holds changing values, of which Baseline picks one a packet, the largest value along the path, and [Loops],
// Algorithm 2. Numbers are rounded to a few bits by a [Code].
//
// # Hashes
//
// Switches and decoders share two families. [HashMix] is made of multiplications, for hosts and NICs. [HashCRC] is
// what P4 targets compute: CRC-32 of a word, and additions, which take its linearity away. Independent functions of
// the packet id choose layer, fragment and set. So do g, the function of the hop, and h, that of the value. The tests
// check by chi-square whether writers are uniform, whether hops write independently, and whether pairs of nodes
// collide independently over packets with consecutive ids. They also check whether layers, values, neighbouring
// packets, instances and sets are independent of each other. A first CRC family with one addition failed, and so did
// a mix of two multiplications.
//
// # Writers
//
// The set of writers takes k hashes. With AVX2, eight are made at once. The paper's other way is [Config].Vectors. A
// few pseudo-random vectors hold a bit for each of 64 hops, and a hop's bits in all of them are its hash. The hashes
// of all hops are compared with their thresholds bit by bit. That takes log₂k + 2 vectors on average for any
// probabilities, also for Baseline's 1/i of each hop. For p = 2⁻ᵐ it is the AND of m vectors, as in the paper. A
// switch makes the same vectors and reads its own bit of them, two on average.
//
// # Dialects
//
// Three programs were published with the paper, and no two agree. [Mininet] and [Tofino] are schemes, [HPCC] is a
// code. They do what those programs do, also where it is unintended, as the files explain. FORMAT.md draws their
// packets. [Scheme.Check] rejects digests that no path can have, with a [Reason].
//
// # Cost
//
// Nanoseconds of CPU time on one core of an EPYC with AVX2 and GFNI, at the end of a path of k hops, hybrid scheme.
// In brackets: without assembly (tag purego). The row Digest is all that a decoder of a known path does for two
// instances. No function allocates.
//
//	                                     k = 5       25         59
//	Packet and Writers, HashMix             24 (32)    28 (70)     33 (141)
//	the same with vectors                   31 (31)    36 (36)     39 (39)
//	Packet and Writers, HashCRC             33 (50)    47 (136)    67 (276)
//	the same with vectors                   55 (58)    55 (71)    60 (104)
//	Digest, two instances, HashMix          71 (81)               120 (335)
//	Digest, two instances, HashCRC         106 (125)              221 (636)
//	Values of 754 nodes, HashMix           100 (1180)
//	Values of 754 nodes, HashCRC           790 (4600)
//	Match of 754 candidates, HashMix       180 (1740)
//	Match of 754 candidates, HashCRC       850 (5140)
//
// BenchmarkWriters, BenchmarkVerify, BenchmarkValues and BenchmarkMatch measure the same by the clock.
package pint
