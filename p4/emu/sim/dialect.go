package sim

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
// is independent of the dialect.
const (
	MD21        Dialect = iota // INT-MD 2.1 in the packet; the sink node sends telemetry report 2.0
	MD10                       // INT-MD 1.0 in the packet; the sink node sends telemetry report 1.0
	FANT                       // INT-MD 2.1 with the widths and the domain of FANT; the sink node sends telemetry report 2.0
	MX21                       // INT-MX 2.1: instructions in the packet, a report 2.0 from every node
	XD20                       // INT-XD: nothing in the packet, a report 2.0 (postcard) from every node
	Local05                    // nothing in the packet, a report 0.5 with local header from every node
	Off                        // forwards only
	NumDialects                // that there are
)

var dialectNames = [NumDialects]string{"int-md-2.1", "int-md-1.0", "fant", "int-mx-2.1", "int-xd-2.0", "local-0.5", "off"}

func (d Dialect) String() string {
	if d < NumDialects {
		return dialectNames[d]
	}
	return fmt.Sprintf("dialect(%d)", uint8(d))
}

// MarshalText returns the name.
func (d Dialect) MarshalText() ([]byte, error) {
	if d >= NumDialects {
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

// Embeds reports whether the dialect puts a header into packets.
func (d Dialect) Embeds() bool { return d <= MX21 }

// Stacks reports whether switches of the dialect put their metadata into packets.
func (d Dialect) Stacks() bool { return d <= FANT }

// Header is the INT header of the dialect with a bitmap.
func (d Dialect) Header(bitmap uint16) intmd.Header {
	h := intmd.Header{Version: d.INTVersion(), Instructions: bitmap}
	if d == FANT {
		h.DomainID, h.Layout = intmd.FANT.ID, intmd.FANT.Layout
	}
	return h
}

// INTVersion is the version of INT that the dialect puts into packets.
func (d Dialect) INTVersion() decode.Version {
	if d == MD10 {
		return decode.V10
	}
	return decode.V21
}
