// Package survey finds and names errors of the inventory with which PINT digests are read, across flows. There are five
// kinds: a node missing on the map, a node with another id, two nodes in each other's place, and a missing link. The
// fifth is senders that begin with another TTL, so that hop numbers are shifted.
//
// It has two halves. A [Watch] belongs to the tracer of flows. It keeps the last digests of flows in trouble and
// computes an explanation of each: the cheapest path through the map. A missing node, a missing link and a shift of hop
// numbers have a price in bits, and a wrong digest has a higher one. The result is an [inference.Deviation], which
// lists all errors of the map that would explain the flow. The function [Decide] takes the deviations of a window, of
// all shards and processes. It names those errors that several flows need.
//
// # When a flow is a witness
//
// Switches and this package compute the same hashes. Digests of b bits of one writer, or of several of which all others
// are certain, are equations for one node. A wrong node solves n of them with a probability of 2⁻ᵇⁿ. A flow with more
// than one unexplained equation in a hundred is no witness. It takes several paths, changes its path, or its digests
// are forged. Beyond that it takes
//   - for an id: all equations of the hop, of 32 bits at least. An id of the whole range fits them by chance with a
//     probability of at most 2⁻¹². No other id fits as well,
//   - for an unknown node without an id: equations of 40 bits. No node of the map explains two fifths of them. The
//     nodes that could be there explain at most half; they explain more if the flow takes several of these in turn,
//   - for a missing link: equations of 32 bits of each of its nodes and of 80 of both,
//   - for shifted hop numbers: packets of 24 bits into which a first hop must have written, and none has.
//
// Let a flow have k hops and one path in a network of V nodes. If the map is right, it shows a missing link by chance
// with a probability of k·V·2⁻³² at most. That is 10⁻⁵ for Kentucky Datalink. Of 1,000 flows three do so together with
// a probability of 2·10⁻⁷, whatever the link, and they would have to show the same one.
//
// # When an error is named
//
// Three flows from three source addresses have to be witnesses of the same error. They have to enter the network at two
// nodes, except for an error of senders. So neither a flow whose digests are forged nor all forged flows of one host
// name an error. A host has at most eight of the flows that are watched at a time.
//
// # Cost
//
// Nothing is done for flows without trouble. A flow that is watched takes 4 KiB for 256 digests, and a Watch holds 256
// of them. The work of a window is bounded by a number of steps, and flows that it does not reach come first in the
// next one.
package survey
