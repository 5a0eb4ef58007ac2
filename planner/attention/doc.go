// Package attention describes which probes measure in detail. It holds the problem, the plan that answers it, and the
// check of a plan against its problem.
//
// Most probes of a network carry a few basic metrics. When links become suspicious, some probes switch to detailed
// metrics. They are chosen such that every suspicious link lies on one of them and their cost is minimal. A [Problem]
// lists the probes with their costs and links, and the suspicious links. A [Plan] lists the probes that are to measure
// in detail, and the changes that this needs. [Check] reads only these two. The algorithms are in
// planner/attention/solve; a test on imports keeps the check independent of them.
package attention
