// Package srint reads and writes source-routed probes, which carry their route and collect one label per switch:
//
//   - INT-path ("SR-INT"): IPv4 and UDP to port 2222, a route of 4-bit entries in 64 bytes, labels of 22 bytes.
//   - INT-Probe: directly over Ethernet, a route of 8-bit entries, labels of 32 bytes.
//
// FORMAT.md draws both. No specification exists; the P4 programs and scripts of INT-path (T. Pan et al., "INT-path:
// Towards Optimal Path Planning for In-band Network-Wide Telemetry", INFOCOM 2019) and of INT-Probe are the
// definition. Where the paper and its program differ, the program counts. A route entry is the port less 1, and a
// 4-byte action id follows the labels.
//
// The decoders fill a [decode.Report] and allocate nothing. The encoders write what the sending host writes, byte for
// byte. They also apply, in place, the changes of a switch: [PopPort] and [PushLabel] for INT-path, [PopProbePort]
// and [PushProbeLabel] for INT-Probe. Known bugs of the reference sender are not reproduced; they are errors here.
package srint

// Numbers that recognise the formats. Both are private uses of numbers with other users.
const (
	PathPort      = 2222   // UDP destination of INT-path
	TypeRoute     = 0x0700 // EtherType of INT-Probe with a route
	TypeINT       = 0x0701 // EtherType of INT-Probe after the last entry is used up
	typeIPv4      = 0x0800
	MaxPathHops   = 128 // entries in a route of INT-path
	MaxPathPort   = 16
	MaxProbeHops  = 16 // entries in a route of INT-Probe
	MaxProbePort  = 255
	udpHeader     = 8
	srListLen     = 64
	labelLen      = 22
	actionIDLen   = 4
	pathFixed     = udpHeader + srListLen + actionIDLen // 76
	probeLabelLen = 32
)
