// Package solve decides over which paths measurement points send to which servers (RFT: Sun et al., "RFT: Toward Highly
// Reliable Flow Data Transmission in Network Measurement"). Every point is served with its whole rate, in time, within
// the free capacities, and reliably, by as few servers as possible. Where this is impossible, links of points are
// added. Their number is minimal, and among such plans the number of servers.
//
// A point is served with its whole rate (constraints 2 and 3 of the paper) or not at all. All points share the capacity of
// links, switches and servers. Only switches forward, unless the problem allows more. A path is usable if it works with
// a probability of at least one less the tolerated loss. Constraint 7 is of all paths of a point together (--loss-test exact).
// [delivery.Rules] offers other readings. A plan that reserves no more than the rate never meets the Chernoff bound of
// the paper. That bound needs Rules.Reserve and serves mostly for comparison.
//
// The exact method lists the usable paths of every point by latency, without dominated ones. It is a branch and bound over
// a linear programme, in three steps. First it finds the most points that
// can be served without new links, since every other point needs a link. Second it finds the fewest servers with that
// number of links; in this step a link may lead to all servers at once. Third it decides, for each candidate choice of
// linked points and servers, where the links lead. A link leads to one server, or to a switch behind which the rate can
// be divided. Links to switches are tried only where links to servers do not reach the bound.
//
// The heuristic of the paper, the greedy and the exhaustive choice of links, particle swarms, and swarms with genetic
// operators are here for comparison.
//
// Every function is pure. Problem, options and seed determine the result, and a function in the options decides when to
// stop. The check, [delivery.Check], validates the plans and shares no code with this package.
//
// # Readings of the paper
//
//   - Capacity is shared: at every link, switch and server the sum over all points is at most what is free. The
//     paper's constraints, per point and path, allow overload.
//   - [Printed] counts what those constraints allow, as the text counts networks.
//   - --method paper is the paper's assignment with two errors repaired (a full server ended the loop; a server
//     counted before it had a rate), and its heuristic for links.
package solve
