// Package solve decides which probes measure in detail (FANT: "FANT: Flexible Attention-Shifting Network Telemetry",
// Applied Sciences 15(2), 2025). Every suspicious link must be on one of these probes, and they should be cheap. This is
// a weighted set cover in which links are the rows and probes are the columns.
//
// Where the probes come from two plans that each cover every link, nearly every row has two columns, one of each plan.
// After the usual reductions nearly a vertex cover of a bipartite graph remains, which one maximum flow solves exactly.
// Rows with more columns come from links that a plan passes twice. Often some cheapest cut covers them at no further
// cost; otherwise branch and bound searches for the optimum. With three plans or more, many rows have more than two
// columns. Prices of all rows then give the bound, and a local search the first cover. The result is proven to be a
// cheapest choice.
//
// As published, the cost of a probe counts every hop of its trace, also hops on links that are not suspicious. A change
// between basic and detailed measurement may have a cost too, which the paper leaves to future work. It is added to the
// costs of the columns. A limit of changes becomes a cost, too: the price at which plans within and beyond the limit cost
// the same.
//
// At any time limit the plan costs no more than either greedy choice.
//
// The greedy choices and FANT-H, the search of the paper, are here for comparison. In the paper both acceleration factors
// enlarge the estimate (section 5.3), by formulas that its text lost. Here 1 + α enlarges it, and 1 + β the next limit.
//
// [Categorize] is the first algorithm of the paper, which divides metrics into basic and detailed ones.
//
// Every function is pure; a function in the options decides when to stop. [attention.Check] validates the plans and
// shares no code with this package.
//
// # Readings of the paper
//
//   - FANT: Applied Sciences 15(2), 892, 2025. The cost of a probe is the hops of its whole way, counted as often as
//     passed.
//   - Its worked example names {2, 3, 6} at a cost of 6; {2, 5, 6} costs 5. Our exact method and its own search find
//     that.
//   - The acceleration factors (section 5.3) make the estimate (1 + α) times, and the next limit (1 + β) times as
//     large. Their formulas are lost.
//   - Dancing links are for exact cover. Here a choice removes the probe and the links that it covers, and other
//     probes stay.
//   - Algorithm 1 makes every metric basic from which another can be inferred; metrics without relations never show.
//     Ours makes basic the required metrics, those that make every other one show, and their dependencies, of the
//     fewest bytes; published has the paper's, if it differs.
//   - What shows is not chained; dependencies are. Metrics of a cycle of dependencies are basic together or not at
//     all.
//   - Bytes are those of metrics (table 2): 84 + 4 a hop in detail and 28 + 4 else (4 for the checksum complement),
//     one cycle a second, hosts as nodes. A hop is a link.
//   - The shim limits probes to 255 words, which are 11 stamps of detailed metrics: 10 links between switches, 12
//     between hosts.
//   - Section 6.4.1 moves 5 MB/s of host 6 at switch 15; its picture is lost. The counters are read at the ports from
//     15 to 7 and from 7 to 1.
package solve
