// Package kafka connects members of a fleet to Kafka. A [Client] is the connection to the brokers, a [Log] the log of
// a topic, a [Group] membership in a consumer group. The function [Lead] elects the one member in charge.
//
// # Connections
//
// [Config] holds the addresses and the security of the brokers. [Error] states what an error means and needs. Writers
// to Kafka and readers from it share both. Certificates, keys and passwords are read for every new connection, so that
// a renewed one is used without a restart; open connections stay. In the middle of a renewal a file may be unreadable,
// or certificate and key may not match. The former ones then stay in use, and [Client.Problem] reports that.
//
// # Logs and groups
//
// A log is read partition by partition from an offset on. A group shares the partitions out over consumers. It uses
// calls of the protocol rather than kafka-go's ConsumerGroup, which stops its heartbeats while a generation ends. A
// member that has to write what it merged before it can let go would thereby lose its place.
//
// # Being in charge
//
// Lead elects one of several members. It keeps the plan in force where the next one finds it: in a compacted topic of
// one partition. The owner of the partition in a group is in charge. The group decides, and no clock does. Before
// anything leaves a member, the member writes the plan and its epoch to the log ([Term.Put]), or asks ([Term.Holds]).
// Both set the group's offset, which the group accepts from the owner of the partition alone. A member that stood
// still, and does not know yet that it is deposed, is therefore refused. Requests from before its standstill may still
// leave it later. Their epoch is below those of its successor, which began above all epochs in the log, and devices
// refuse it.
package kafka
