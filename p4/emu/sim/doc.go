// Package sim holds the parts of a discrete-event simulation of a network that know no telemetry. They are
// events in the order of their times ([Events]), the queue of an interface with its line ([Queue]), and routes over
// live links ([Routes]). There are also the channel between a controller and devices ([Channel]), and choices by weight
// and by hash ([Alias], [Mix]), changes of IP headers ([Frame]), and the check of a configuration ([CheckRanges]).
//
// Times are virtual nanoseconds, and nothing here reads a clock. A queue serves packets in the order of its calls, in
// O(1) a packet.
package sim
