// Package steer is where what was seen meets the plans of probes: it turns the findings and windows of a collector, and the rounds
// of probes that agents count, into the suspicious links that planner/control plans for.
//
// [Suspects] is the one way from evidence to suspects, of hopscope control, of the demonstration and of what is measured. [Links]
// numbers the directions of links, feed adds up what probes told of them.
package steer
