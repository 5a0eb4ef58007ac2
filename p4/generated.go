package p4

// Names of the tables of hopscope.p4 for both ends of a route of INT-path. A generator writes a route into an empty probe that
// comes by a port, by its action id. A collector sends a probe that is at the end of its route to the host of its destination.
const (
	GeneratorsName = "ingress.generators"
	CollectorsName = "ingress.collectors"
)
