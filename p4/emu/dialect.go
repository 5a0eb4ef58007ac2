package emu

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

// Dialect is the way in which a switch takes part in telemetry.
type Dialect uint8

// These are the dialects. A packet is marked by the switch that its host is attached to. Later switches add to it if
// they use the same dialect, and otherwise forward it untouched. The last switch always removes the telemetry. PINT
// (Config.Plan) is independent of the dialect.
const (
	md21    Dialect = iota // INT-MD 2.1 in the packet; the sink node sends telemetry report 2.0
	md10                   // INT-MD 1.0 in the packet; the sink node sends telemetry report 1.0
	FANT                   // INT-MD 2.1 with the widths and the domain of FANT; the sink node sends telemetry report 2.0
	mx21                   // INT-MX 2.1: instructions in the packet, a report 2.0 from every node
	XD20                   // INT-XD: nothing in the packet, a report 2.0 (postcard) from every node
	local05                // nothing in the packet, a report 0.5 with local header from every node
	Off                    // forwards only
	numDialects
)

var dialectNames = [numDialects]string{"int-md-2.1", "int-md-1.0", "fant", "int-mx-2.1", "int-xd-2.0", "local-0.5", "off"}

func (d Dialect) String() string {
	if d < numDialects {
		return dialectNames[d]
	}
	return fmt.Sprintf("dialect(%d)", uint8(d))
}

// MarshalText returns the name.
func (d Dialect) MarshalText() ([]byte, error) {
	if d >= numDialects {
		return nil, fmt.Errorf("no such dialect: %d", d)
	}
	return []byte(dialectNames[d]), nil
}

// UnmarshalText reads the name.
func (d *Dialect) UnmarshalText(b []byte) error {
	i := slices.Index(dialectNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("%q is no dialect; want one of %v", b, dialectNames)
	}
	*d = Dialect(i)
	return nil
}

// embeds reports whether the dialect puts a header into packets.
func (d Dialect) embeds() bool { return d <= mx21 }

// stacks reports whether switches of the dialect put their metadata into packets.
func (d Dialect) stacks() bool { return d <= FANT }

// header is the INT header of the dialect with a bitmap.
func (d Dialect) header(bitmap uint16) intmd.Header {
	h := intmd.Header{Version: d.intVersion(), Instructions: bitmap}
	if d == FANT {
		h.DomainID, h.Layout = intmd.FANT.ID, intmd.FANT.Layout
	}
	return h
}

// intVersion is the version of INT that the dialect puts into packets.
func (d Dialect) intVersion() decode.Version {
	if d == md10 {
		return decode.V10
	}
	return decode.V21
}

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
