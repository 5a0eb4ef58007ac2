// Package steer turns what was seen into targets for the plans of probes: from the findings and windows of a collector, and the
// rounds of probes that agents count, it makes the suspicious links that planner/control plans for.
//
// [Suspects] is the one way from evidence to suspects, of hopscope control, of the demonstration and of what is measured.
// [Links] numbers the directions of links, feed adds up what probes reported of them.
package steer
