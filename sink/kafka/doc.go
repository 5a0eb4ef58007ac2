// Package kafka publishes what a collector saw to a fleet: windows, cut into slices, to the topic windows, where consumers
// merge them with those of other collectors, and reports that need to be in one place to the topic reports.
//
// The Writer stands behind a queue and a spool like every store. It keeps nothing: a payload has records with their names
// (collector, boot, number), drawn when they were made. So the merging consumer knows as a repeat what is sent again after an
// answer that got lost. It is a member of the fleet, too: it holds the collector's settings against those of the fleet, and
// its clock against the brokers', before anything is sent, and publishes its status in the roster.
//
//	config.go   settings
//	payload.go  what stands in the spool
//	writer.go   from payloads to partitions
//	member.go   roster, parameters, clock
//	topics.go   what the topics have to be like
//	divert*.go  single reports
package kafka
