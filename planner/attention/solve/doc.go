// Package solve decides which probes measure in detail (FANT: "FANT: Flexible Attention-Shifting Network Telemetry",
// Applied Sciences 15(2), 2025). Every suspicious link must be on one of these probes, and they should be cheap. This is
// a weighted set cover in which links are the rows and probes are the columns.
//
// Where the probes come from two plans that each pass every link, nearly every row has two columns, one of each plan.
// After the usual reductions what remains is nearly a vertex cover of a bipartite graph, which one maximum flow solves
// exactly. Rows with more columns come from links that a plan passes twice. Often some cheapest cut covers them at no
// further cost; where none does, branch and bound searches for the best. Where many rows have more than two columns, as
// with three plans or more, prices of all rows give the bound and a local search the cover to begin with. The result is
// proven to be a cheapest choice.
//
// As published, the cost of a probe counts every hop of its trace, whether or not the hop is on a suspicious link. A
// change between basic and detailed measurement may have a cost too, which the paper leaves to future work; it only adds
// to the costs of the columns.
//
// The greedy choices and FANT-H, the search of the paper, are here for comparison. The paper says that acceleration
// factors α and β enlarge the estimate and the next limit of that search; here they do so as 1 + α and 1 + β.
//
// [Categorize] is the first algorithm of the paper, which divides metrics into basic and detailed ones.
//
// Every function is pure, and time comes in as a function that says when to stop. [attention.Check] validates the plans
// and shares no code with this package.
package solve
