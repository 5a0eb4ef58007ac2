// Package fleet measures what the parts of a fleet cost on one machine, against a real broker.
//
// Raw sends reports through Kafka in two ways that take turns: as a bare loop of the Arrow library does it (its builders, zstd,
// produce, fetch, its readers), and as collectors and consumers do it. The bare loop is the baseline: the rest is the cost of
// hopscope.
package fleet
