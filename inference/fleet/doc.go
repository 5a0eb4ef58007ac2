// Package fleet merges the partial windows of the collectors of a fleet. It is pure: records of topics go in, in the
// order of their offsets. Merged windows come out, alike for every reader of the same log.
//
// The entities of a network (hops, exporters, drop reasons, flows) are divided into a fixed number of slices by a hash
// under the fleet's seed. A slice is one partition of the topics windows and reports, with the same number in both:
//
//	windows   one partition a slice: for each window, what each collector saw of the slice, and the record that closes it
//	reports   one partition a slice: reports of flows that need to be in one place, marks of the ends of windows, closes
//	series    one partition: merged slices, and what needs all of them
//	state     compacted, one partition a slice and one more for series: where a reader of the log can go on
//	roster    compacted, one partition: what all members have in common, and the members
//
// Every record has a header "hopscope" that holds a [Head]. The records of the roster are those of package roster.
package fleet
