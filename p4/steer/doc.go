// Package steer turns measurements into targets for the plans of probes. From the findings and windows of a collector,
// and the rounds of probes that agents count, it makes the suspicious links that planner/control plans for.
//
// Evidence becomes suspects only in [Suspects], for hopscope control, the demonstration and the measurements. The type
// [Links] numbers the directions of links; feed sums up the reports of probes on them.
//
// Planner inputs come from [Measured]. It reads what a running collector measured: the windows of the last minutes, and
// the busiest flows, as its page keeps them. The type [Tracer] measures what path tracing needs on a topology.
package steer
