// Package steer turns what was seen into targets for the plans of probes: from the findings and windows of a collector, and the
// rounds of probes that agents count, it makes the suspicious links that planner/control plans for.
//
// [Suspects] is the one way from evidence to suspects, of hopscope control, of the demonstration and of what is measured.
// [Links] numbers the directions of links, feed adds up what probes reported of them.
//
// [Measured] makes inputs of planners from what a running collector measured: the windows of the last minutes, and the busiest flows, as its
// page keeps them. [Tracer] measures what path tracing needs on a topology.
package steer
