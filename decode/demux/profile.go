package demux

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Profile says how one kind of exporter speaks: which packets carry telemetry, in which dialect, and what its numbers
// mean. None of this is on the wire.
type Profile struct {
	Name string

	// ReportPorts are the UDP destination ports of telemetry reports. Packets to them are reports and nothing else.
	ReportPorts []uint16
	Report      telemetry.Options

	// INT in packets of the network and in those inside of reports.
	INT intmd.Options
	// DSCP marks packets with INT: those whose DSCP equals it in the bits of DSCPMask. A mask of 0 turns it off.
	DSCP, DSCPMask uint8
	// INTPorts mark them by UDP destination port.
	INTPorts []uint16
	// TailPort is a UDP destination port of an extra UDP header in front of INT 0.5, whose tail holds the original
	// protocol (Intel host INT). 0 turns it off.
	TailPort uint16
	// ProbeMarker is the 64-bit mark between the transport header and the shim. 0 turns it off.
	ProbeMarker uint64
	// BehindOptions: INT in TCP stands behind the TCP options instead of directly behind the first 20 bytes.
	BehindOptions bool
	// GREProtocol is the protocol number of INT in GRE, which nobody has assigned. 0 turns it off.
	GREProtocol uint16
	// Tunnels: look for INT in VXLAN-GPE (UDP 4790, next protocol 0x82 or 0x80) and Geneve (UDP 6081, class 0x0103).
	Tunnels bool

	// INTPath reads INT-path probes, UDP destination port 2222. INTProbe reads INT-Probe, EtherTypes 0x0700 and 0x0701.
	INTPath, INTProbe bool
	// LenientPath accepts INT-path probes with bytes behind the last whole label, as their own receiver does.
	LenientPath bool

	// PINT reads the digests in packets of the network that one of the published programs wrote: CodingMininet,
	// CodingTofino or CodingHPCC. 0, CodingPlan, turns it off: digests of plans come in reports.
	PINT decode.Coding
	// PINTBytes is the size of an HPCC digest, 1 or 2.
	PINTBytes int

	Units decode.Units
}

// Numbers that the format pages give names.
const (
	defaultReportPort = 32766
	portINT           = 17768 // 0x4568, as public code has it: the specification assigns none
	portHostINT       = 33122
	dscpINT           = 0x17 // the specifications' example
)

// micro are the units of programs on the BMv2 software switch: every time is in microseconds.
var micro = decode.Units{LatencyNS: 1000, TimeNS: 1000, QueueBytes: 1, TxFullScale: 10000, LatencyCalc: true, HeaderTimeNS: 1000}

func units(change func(*decode.Units)) decode.Units {
	u := decode.DefaultUnits
	change(&u)
	return u
}

// builtin are the profiles in the order of the documentation.
var builtin = []Profile{
	{
		Name:        "auto",
		ReportPorts: []uint16{defaultReportPort},
		Report:      telemetry.Options{Versions: telemetry.AllVersions, PINTDomain: telemetry.PINTDomain},
		INT:         intmd.Options{Versions: intmd.AllVersions},
		DSCP:        dscpINT, DSCPMask: 0x3f, INTPorts: []uint16{portINT}, Tunnels: true,
		INTProbe: true,
		Units:    decode.DefaultUnits,
	},
	{
		Name:        "prometheus-exporter",
		ReportPorts: []uint16{1234},
		Report:      telemetry.Options{Versions: telemetry.V05},
		INT:         intmd.Options{Versions: intmd.V05},
		DSCP:        0x01, DSCPMask: 0x01, BehindOptions: true,
		Units: decode.DefaultUnits,
	},
	{
		Name:        "fabric-tna",
		ReportPorts: []uint16{defaultReportPort},
		Report:      telemetry.Options{Versions: telemetry.V05},
		Units:       decode.DefaultUnits, // of the hardware; the software switch has microseconds
	},
	{
		Name:        "geant",
		ReportPorts: []uint16{8090},
		Report:      telemetry.Options{Versions: telemetry.V10},
		INT:         intmd.Options{Versions: intmd.V10, WideTimes: true},
		DSCP:        0x20, DSCPMask: 0x3f,
		Units: units(func(u *decode.Units) { u.LatencyNS = 1000 }),
	},
	{
		Name:        "onos",
		ReportPorts: []uint16{defaultReportPort},
		Report:      telemetry.Options{Versions: telemetry.V10, FlagsFirst: true, NoSequence: true},
		INT:         intmd.Options{Versions: intmd.V10, Version0: true},
		DSCP:        dscpINT, DSCPMask: 0x3f,
		Units: micro,
	},
	hostINT("host-int", false),
	hostINT("host-int-no-sink-id", true),
	{
		Name:        "p4-int-laofan",
		ReportPorts: []uint16{1234},
		Report:      telemetry.Options{Versions: telemetry.V20, ZeroToEnd: true},
		INT:         intmd.Options{Versions: intmd.V21},
		DSCP:        dscpINT, DSCPMask: 0x3f,
		Units: micro,
	},
	{
		Name: "p4-int-elavinal",
		INT:  intmd.Options{Versions: intmd.V21, LeastFirst: true},
		DSCP: dscpINT, DSCPMask: 0x3f,
		Units: micro,
	},
	{
		Name:        "postcard-braine",
		ReportPorts: []uint16{defaultReportPort},
		Report:      telemetry.Options{Versions: telemetry.V10, FlagsFirst: true, Postcard: true, NoSequence: true},
		Units:       micro,
	},
	{Name: "int-path", INTPath: true, Units: micro},
	{Name: "int-probe", INTProbe: true, Units: micro},
	{Name: "pint-mininet", PINT: decode.CodingMininet, Units: micro},
	{Name: "pint-tofino", PINT: decode.CodingTofino, Units: decode.DefaultUnits},
	{Name: "pint-hpcc", PINT: decode.CodingHPCC, PINTBytes: 1, Units: decode.DefaultUnits},
}

func hostINT(name string, noSinkID bool) Profile {
	return Profile{
		Name:        name,
		ReportPorts: []uint16{defaultReportPort},
		Report:      telemetry.Options{Versions: telemetry.V05, HostINT: true, NoSinkID: noSinkID},
		INT:         intmd.Options{Versions: intmd.V05, HostINT: true},
		DSCP:        0x01, DSCPMask: 0x01, TailPort: portHostINT,
		Units: units(func(u *decode.Units) { u.HeaderTimeNS = 1e9 }),
	}
}

// Profiles gives the names of the built-in profiles.
func Profiles() []string {
	names := make([]string, len(builtin))
	for i := range builtin {
		names[i] = builtin[i].Name
	}
	return names
}

// Lookup gives a copy of a built-in profile, for the caller to change and to hand to [New].
func Lookup(name string) (Profile, bool) {
	for _, p := range builtin {
		if p.Name == name {
			p.ReportPorts = slices.Clone(p.ReportPorts)
			p.INTPorts = slices.Clone(p.INTPorts)
			return p, true
		}
	}
	return Profile{}, false
}
