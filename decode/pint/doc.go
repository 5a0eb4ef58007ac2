// Package pint is the coding scheme of PINT, probabilistic in-band network telemetry (R. Ben Basat et al., "PINT:
// Probabilistic In-band Network Telemetry", SIGCOMM 2020), for switches and decoders alike.
//
// A packet carries a digest of a few bits. Every switch on its path hashes the packet id and its own hop number to
// decide whether it writes, so that a decoder knows who wrote without any marking: see [Scheme.Writers].
package pint
