// Package member is a consumer's place in the roster of its fleet: it waits for the fleet, compares what all members have in
// common, writes how the consumer is every two seconds, and holds the clock of this machine against that of the brokers.
//
// A [Member] knows the roster by an interface, and reads nothing of what the fleet merges.
package member
