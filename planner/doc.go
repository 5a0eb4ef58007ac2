// Package planner holds the common parts of all families of plans. These are the [Probe], the [Stats] of a plan, strict
// reading of JSON, the comparison of lists of probes, and the errors of a check.
//
// A family is a folder. Package planner/F holds the problem, the plan, their JSON, and a function Check, which reports
// where a plan does not answer its problem. Package planner/F/solve below it holds the algorithms. The families are
// cover (INT-path, INT-Probe), orchestrate (INTO), attention (FANT), querymix (the query engine of PINT), delivery
// (RFT) and schedule (when probes are sent). A check is independent of the algorithm that it checks, because planner/F
// does not import planner/F/solve. A test on imports enforces this and all other borders.
//
// Algorithms are pure functions: a topology or an instance, options and a seed go in, and a plan with its statistics
// comes out. The same seed gives the same plan.
package planner
