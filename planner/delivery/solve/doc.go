// Package solve decides over which paths measurement points send to which servers (RFT: Sun et al., "RFT: Toward Highly
// Reliable Flow Data Transmission in Network Measurement"). Every point is served with its whole rate, in time, within
// what links, switches and servers have free, and reliably, by as few servers as possible. Where this cannot be done,
// links of points are added: as few as possible, and among such plans again one with the fewest servers.
//
// The paper leaves some points open and contradicts itself in others. Here all points share the capacity of links,
// switches and servers; a point is served with its whole rate or not at all; only switches forward, unless the problem
// allows more; and a path is usable if it works with a probability of at least one less the tolerated loss.
// [delivery.Rules] offers other readings. A plan that reserves no more than the rate never meets the Chernoff bound of
// the paper; that bound needs Rules.Reserve and is of use mostly for comparison.
//
// The exact method is a branch and bound over a linear programme, in three steps. First it finds the most points that
// can be served without new links, since every other point needs a link. Second it finds, with that number of links, the
// fewest servers; in this step a link may lead to all servers at once. Third, for every choice of linked points and
// servers that comes up, it decides where the links lead: to one server, or to a switch behind which the rate can be
// divided. Links to switches are tried only where links to servers do not reach the bound.
//
// The heuristic of the paper, the greedy and the exhaustive choice of links, particle swarms, and swarms with genetic
// operators are here for comparison.
//
// Every function is pure: the result follows from the problem, the options and the seed, and time comes in as a function
// that says when to stop. [delivery.Check] validates the plans and shares no code with this package.
package solve
