// Package attention decides which probes measure in detail (FANT: "FANT: Flexible Attention-Shifting Network Telemetry",
// Applied Sciences 15(2), 2025): every suspicious link must be on one of them, and they should be cheap. That is a
// weighted set cover with links as rows and probes as columns.
//
// Where probes come from two plans that each pass every link, nearly all rows have two columns, one of each plan, so that
// what is left after the usual reductions is nearly a vertex cover of a bipartite graph: exactly solved by one largest
// flow. Rows of more columns, from links that a plan passes twice, are covered for nothing by some of the cheapest cuts
// where that can be, and searched by branch and bound where not. The result is a cheapest choice, proven.
//
// The cost of a probe counts every hop of its trace, as published, whether or not it passes a suspicious link. A change
// between basic and detailed measurement may cost something too, which the paper leaves to future work; it only moves the
// costs of the columns.
//
// The greedy choices and FANT-H, the search of the paper, are here for comparison. The paper says that acceleration
// factors α and β enlarge the estimate and the next limit of that search; here they do so as 1 + α and 1 + β.
//
// Categorize is the paper's first algorithm: it divides metrics into basic and detailed ones.
//
// Everything is a pure function; time comes in as a function that says stop. Plans are validated by
// planner.CheckAttention, which shares no code with this package.
package attention
