package emu

import "github.com/hopscope/hopscope/p4/emu/sim"

// Dialect is the way in which a switch takes part in telemetry.
type Dialect = sim.Dialect

// These are the dialects ([sim.Dialect]).
const (
	md21        = sim.MD21
	md10        = sim.MD10
	FANT        = sim.FANT
	mx21        = sim.MX21
	XD20        = sim.XD20
	local05     = sim.Local05
	Off         = sim.Off
	numDialects = sim.NumDialects
)

// marker is the mark of packets with INT 2.1. INT 1.0 supports DSCP only.
type marker uint8

// The markers.
const (
	MarkDSCP marker = iota // DSCP 0x17 over UDP and TCP; the original value goes into the shim
	MarkPort               // UDP destination port 17768; TCP gets a UDP header in front (NPT 2)
)

const (
	markDSCP = 0x17
	markPort = 17768
)

// Bits of the instruction bitmap (INT v2.1 §4.7; RepMdBits of telemetry report 2.0 have the same places).
const (
	insNodeID     = 0x8000
	insLevel1     = 0x4000
	insLatency    = 0x2000
	insQueue      = 0x1000
	insIngress    = 0x0800
	insEgress     = 0x0400
	insLevel2     = 0x0200
	insTx         = 0x0100
	insBuffer     = 0x0080
	insReserved   = 0x007e
	insComplement = 0x0001
)
