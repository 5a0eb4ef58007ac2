// Package delivery decides over which paths measurement points send to which servers (RFT: Sun et al., "RFT: Toward
// Highly Reliable Flow Data Transmission in Network Measurement"): every point with its whole rate, in time, within what
// links, switches and servers have free, and reliably; to the fewest servers. Where that cannot be, links of points are
// added: as few as can be, and then again the fewest servers.
//
// The paper leaves points open or contradicts itself. Here the capacity of links, switches and servers is shared by all
// points; a point is served with its whole rate or not at all; only switches forward, if not allowed otherwise; a path is
// usable if it works with a probability of at least one less the tolerated loss. planner.DeliveryRules has other readings.
// The paper's Chernoff bound is never met by a plan that reserves just the rate; it needs DeliveryRules.Reserve, and is
// of use mostly for comparison.
//
// The exact method is a branch and bound over a linear programme, in three steps. First, the most points that can be
// served without new links: every other point needs one. Second, with that number of links, the fewest servers, where a
// link may at first lead to all servers at once. Third, for every choice of linked points and servers that comes up,
// where the links lead: to one server, or to a switch from where the rate can be divided. Links to switches are looked at
// only where links to servers do not reach the bound.
//
// The heuristic of the paper, greedy and exhaustive choice of links, particle swarms, and swarms with genetic operators
// are here for comparison.
//
// Everything is a pure function of the problem and a seed; time comes in as a function that says stop. Plans are
// validated by planner.CheckDelivery, which shares no code with this package.
package delivery
