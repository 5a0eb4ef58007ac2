// Package planner holds what plans of all families have in common: the [Probe], the [Stats] that say how good a plan is,
// strict reading of JSON, the comparison of two lists of probes, and the collected errors of a check.
//
// A family is a folder. Package planner/F holds the problem, the plan, their JSON and a function Check, which says in
// what a plan does not do what the problem asks. Package planner/F/solve below it holds the algorithms. The families are
// cover (INT-path, INT-Probe), orchestrate (INTO), attention (FANT), querymix (the query engine of PINT), delivery (RFT)
// and schedule (when probes are sent). A check never sees the algorithm that it checks, because planner/F does not import planner/F/solve; a test on
// imports holds this and all the other borders.
//
// Algorithms are pure functions: a topology or an instance, options and a seed go in, and a plan with its statistics
// comes out. The same seed gives the same plan.
package planner
