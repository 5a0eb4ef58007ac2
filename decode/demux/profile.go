package demux

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Profile is the dialect of one kind of exporter: which packets carry telemetry, in which layout, and the units of
// its numbers. None of this is on the wire. It is composed of options of the formats; the zero value of each turns it
// off.
type Profile struct {
	Name  string
	About string // its exporters and formats, for display

	// ReportPorts are the UDP destination ports of telemetry reports. Packets to them are reports and nothing else.
	ReportPorts []uint16
	Report      telemetry.Options

	// INT in packets of the network and in those inside of reports, with the marks by which it is found.
	INT intmd.Options

	// Formats are the other formats that packets of the network can have. The first one that finds something counts.
	Formats []packet.Format

	// OuterFlow: statistics are of the packet that carries the telemetry, also where that carries another one.
	OuterFlow bool
	// SFlow: sFlow 5 is read, on any port.
	SFlow bool
	// IPFIX: IPFIX and NetFlow 9 are read, on any port.
	IPFIX bool

	// Wrong are fields that this data plane fills wrongly. They are left out of every hop.
	Wrong decode.HopField
	// Lies are fields that are read as on the wire, and left out of statistics.
	Lies  []Lie
	Units decode.Units
	// PublicReasons: drop reasons that have no name in Units have those of the function of this name.
	PublicReasons bool
}

// Profiles returns the names of the built-in profiles.
func Profiles() []string {
	names := make([]string, len(builtin))
	for i := range builtin {
		names[i] = builtin[i].Name
	}
	return names
}

// Lookup returns a copy of a built-in profile, for the caller to change and to hand to [New].
func Lookup(name string) (Profile, bool) {
	for _, p := range builtin {
		if p.Name == name {
			p.ReportPorts = slices.Clone(p.ReportPorts)
			p.INT.Ports = slices.Clone(p.INT.Ports)
			p.Formats = slices.Clone(p.Formats)
			return p, true
		}
	}
	return Profile{}, false
}

// At returns the profile with an additional port of reports. A profile of INT-path probes without reports gets it as
// the only port of these. It returns false if p has the port already, or uses no ports.
func (p Profile) At(port uint16) (Profile, bool) {
	switch {
	case p.Report.Versions != 0 && !slices.Contains(p.ReportPorts, port):
		p.ReportPorts = append(slices.Clip(p.ReportPorts), port)
		return p, true
	case p.Report.Versions == 0 && len(p.Formats) == 1:
		if f, ok := p.Formats[0].(srint.Path); ok && !slices.Contains(f.Where().Ports, port) {
			f.Port = port
			p.Formats = []packet.Format{f}
			return p, true
		}
	}
	return p, false
}

// InGRE returns the profile with another protocol number of INT in GRE. It returns false if p reads no INT 2.x.
func (p Profile) InGRE(protocol uint16) (Profile, bool) {
	p.INT.GREProtocol = protocol
	return p, p.INT.Versions&intmd.V21 != 0
}
