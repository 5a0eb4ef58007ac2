// Package world judges the findings of hopscope in an independent emulated network. It has a small packet simulator,
// writers of reports, and scenarios with their truth. It shares no code with the emulated network of p4/emu.
//
// # Model
//
// Sampled packets walk through ports. The other traffic of a port is a load. Between two sampled packets a port's
// work follows Lindley's recursion with random arrivals and sizes, so that the queue is that of the load. Gaps that
// are much longer than a queue remembers begin with a draw from the stationary law. Loads follow from the flows that
// are routed over a port, and from a load of its own. Reports are made by an encoder that was written from
// descriptions of the formats (encode.go), not from decoders here.
//
// # Truth
//
// A [Scenario] is a text of a few lines: the network, its reports, the events, and the elements that may be named.
// Names of nodes, numbers of nodes and interfaces, flows and loads differ by seed. The judge runs the program's own
// decoders, shards and detectors in virtual time. It reads the list of open causes in the order of the page.
//
// A cause is false if its element is healthy. Healthy elements may not be named, and no event of the simulator
// touches them in a kind that fits (loads that changed, flows that moved). Causes that are marked as learning do not
// count, for or against.
package world
