// Package kafka reads topics of Kafka: as a member of a consumer group ([Group]), which shares the partitions out over
// consumers, and partition by partition from an offset on ([Log], reader).
//
// The group is kept by calls of the protocol rather than by kafka-go's ConsumerGroup, which stops its heartbeats while a
// generation ends: a member that has to write what it merged before it can let go would lose its place over that.
package kafka
