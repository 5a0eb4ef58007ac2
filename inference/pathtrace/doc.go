// Package pathtrace finds the paths of flows from PINT digests: static per-flow aggregation (R. Ben Basat et al., "PINT:
// Probabilistic In-band Network Telemetry", SIGCOMM 2020).
package pathtrace
