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
package solve
