// Package kafka publishes the windows of a collector to a fleet. Windows are cut into slices and go to topic windows,
// where consumers merge them with those of other collectors. Reports whose statistics need those of other collectors
// go to topic reports.
//
// The [Writer] is behind a queue and a spool like every store, and keeps nothing itself. A payload holds records
// with their names (collector, boot, number), drawn when they were made. By these the merging consumer recognizes a
// repeat, which is sent when an answer was lost. The Writer is also a member of the fleet. Before it sends anything,
// it compares the collector's settings with those of the fleet, and its clock with the brokers'. It publishes its
// status in the roster.
//
//	config.go   settings
//	payload.go  content of the spool
//	writer.go   from payloads to partitions
//	member.go   roster, parameters, clock
//	topics.go   what the topics have to be like
//	divert*.go  single reports
package kafka
