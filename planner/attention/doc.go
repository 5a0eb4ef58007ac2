// Package attention describes which probes measure in detail: the problem, the plan that answers it, and the check that
// a plan keeps what the problem asks.
//
// Most probes of a network carry a few basic metrics. When links become suspicious, some probes switch to detailed
// metrics, such that every suspicious link lies on one of them and their cost is as low as possible. A [Problem] lists
// the probes with their costs and links, and the suspicious links. A [Plan] lists the probes that are to measure in
// detail, and those that have to change for it. [Check] reads the two and nothing else. The algorithms are in
// planner/attention/solve, and a test on imports keeps the check from seeing them.
package attention
