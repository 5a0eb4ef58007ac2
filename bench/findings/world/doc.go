// Package world judges the findings of hopscope in an independent emulated network: a small packet simulator, writers of
// reports, and scenarios whose truth is written down. It shares no code with the emulated network of p4/emu.
//
// # Model
//
// Sampled packets walk through ports. The other traffic of a port is a load: between two sampled packets a port's work follows
// Lindley's recursion with random arrivals and sizes, so that a load of 0.47 queues as 0.47 does. Gaps that are much longer than a queue
// remembers begin with a draw from the stationary law. Loads follow from the flows that are routed over a port, and what is its own.
// Reports are made by an encoder that was written from descriptions of the formats (encode.go), not from decoders here.
//
// # Truth
//
// A [Scenario] is a text of a few lines: the network, how it reports, what happens, and what may be named. Names of nodes, numbers of
// nodes and interfaces, flows and loads differ by seed. The judge runs the program's own decoders, shards and detectors in virtual time,
// and looks at the list of open causes as the page orders it.
//
// A cause is false if its element is healthy: neither one that may be named, nor one that is touched by what happens, as the simulator knows
// it (loads that changed, flows that moved), in a kind that fits. Causes that are marked as learning are not counted, for or against.
package world
