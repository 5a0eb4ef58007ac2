// Package kafka is the end of a fleet at Kafka: the connection to the brokers ([Client]), the log of a topic ([Log]), membership in a
// consumer group ([Group]), and the election of one member that is in charge ([Lead]).
//
// # Connections
//
// [Config] says where the brokers are and with which security, and [Error] what an error means and needs. Writers to Kafka and
// readers from it share both. Certificates, keys and passwords are read anew for every connection, so that a renewed one is used
// without a restart; connections that are open stay so. Where a file cannot be read, or certificate and key do not belong together,
// as in the middle of a renewal, what was read before goes on to be used. [Client.Problem] says so.
//
// # Logs and groups
//
// A log is read partition by partition from an offset on. A group shares the partitions out over consumers. It is kept by calls of the
// protocol rather than by kafka-go's ConsumerGroup, which stops its heartbeats while a generation ends: a member that has to write
// what it merged before it can let go would lose its place over that.
//
// # Being in charge
//
// Lead elects one of several members, and keeps the plan in force where the next one finds it: in a compacted topic of one partition.
// The owner of the partition in a group is in charge. The group decides, and no clock does. Before anything leaves a member it writes
// the plan and its epoch to the log ([Term.Put]), or asks ([Term.Holds]). Both set the group's offset, which the group takes from the
// owner of the partition alone. A member that stood still, and does not know yet that it was given up, is refused. What it had asked
// for before it stood still may leave it later; it has an epoch below those of its successor, which began above all that stand in the
// log, and devices refuse it.
package kafka
