package demux

import (
	"maps"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// The built-in profiles are compositions of the options below, one name for each thing that public programs do alike.

// The UDP ports of reports. The specification names none. The first one is that of most programs.
var (
	usualPort = []uint16{32766}
	port1234  = []uint16{1234}
	geantPort = []uint16{8090}
)

const (
	intPort  = 17768 // 0x4568, as public code has it: the specification assigns none
	hostPort = 33122 // Intel host INT
)

// The marks of packets with INT, and its place in TCP.
var (
	exampleDSCP   = wholeDSCP(0x17) // the specifications' example
	geantDSCP     = wholeDSCP(0x20)
	lowestBit     = intmd.Marks{DSCP: 0x01, DSCPMask: 0x01}
	byPort        = intmd.Marks{Ports: []uint16{intPort}}
	byTail        = intmd.Marks{TailPort: hostPort}
	inTunnels     = intmd.Marks{Tunnels: true}
	behindOptions = intmd.Marks{BehindOptions: true}
)

func wholeDSCP(v uint8) intmd.Marks { return intmd.Marks{DSCP: v, DSCPMask: 0x3f} }

// marked returns INT of one dialect with all of these marks.
func marked(o intmd.Options, marks ...intmd.Marks) intmd.Options {
	for _, m := range marks {
		o.Marks = o.Marks.With(m)
	}
	return o
}

// The deviations of reports. ONOS and programs derived from it have the flags in other bits, and a constant sequence
// number.
var (
	anyReport = telemetry.Options{Versions: telemetry.AllVersions, PINTDomain: telemetry.PINTDomain}
	report05  = telemetry.Options{Versions: telemetry.V05}
	report10  = telemetry.Options{Versions: telemetry.V10}
	onos10    = telemetry.Options{Versions: telemetry.V10, FlagsFirst: true, NoSequence: true}
	unflagged = telemetry.Options{Versions: telemetry.AllVersions, PINTDomain: telemetry.PINTDomain, Unflagged: true}
	toEnd20   = telemetry.Options{Versions: telemetry.V20, ZeroToEnd: true}
)

// The units of times. Utilisations are hundredths of a percent, and queues bytes, if a program defines them at all.
var (
	nanoseconds   = decode.DefaultUnits
	microseconds  = nanoseconds.With(decode.Units{LatencyNS: 1000, TimeNS: 1000, HeaderTimeNS: 1000}) // the BMv2 software switch
	fractionMicro = nanoseconds.With(decode.Units{TimeNS: 1000, HeaderTimeNS: 1000})                  // Linux, whose transit delays would be ns
	latencyMicro  = nanoseconds.With(decode.Units{LatencyNS: 1000})
	headerTime1s  = nanoseconds.With(decode.Units{HeaderTimeNS: 1e9})
	hostUnits     = headerTime1s.With(decode.Units{DropReasons: &hostReasons})
	fabricUnits   = nanoseconds.With(decode.Units{DropReasons: &fabricReasons}) // of the hardware; the software switch has microseconds
)

// PublicReasons returns the drop reasons of the public code of switches in P4, p4lang/switch and the programs that
// followed it, as far as no two of them differ. The specifications of reports leave numbers to the device.
func PublicReasons() decode.DropReasons { return maps.Clone(switchReasons) }

var switchReasons = decode.DropReasons{
	0: "unknown", 10: "outer source MAC zero", 11: "outer source MAC multicast", 12: "outer destination MAC zero", 13: "outer Ethernet header",
	14: "source MAC zero", 15: "source MAC multicast", 16: "destination MAC zero",
	25: "IP version", 26: "TTL expired", 27: "source IP multicast", 28: "source IP loopback", 29: "no route",
	55: "no such port or VLAN", 70: "longer than the MTU", 71: "traffic manager", 80: "denied by access list", 81: "denied by routed access list",
	82: "reverse path check", 83: "source guard", 89: "no bridging entry",
}

// hostReasons are those that a host adds, whose policy drops packets.
var hostReasons = decode.DropReasons{180: "policy", 181: "policy", 182: "policy", 183: "policy", 184: "policy"}

// fabricReasons are those of fabric-tna, which begins with the numbers of Barefoot's switch.
var fabricReasons = decode.DropReasons{
	0: "unknown", 25: "IP version", 26: "TTL expired", 29: "no route", 30: "IP header length", 31: "IP checksum",
	55: "no such port or VLAN", 71: "traffic manager", 80: "denied by access list", 89: "no bridging entry",
	128: "no next hop", 129: "no MPLS label", 130: "no egress entry", 131: "MPLS TTL expired",
	132: "no downlink session", 133: "downlink session drops", 134: "no uplink session", 135: "uplink session drops", 136: "session drops what it would buffer",
	137: "no downlink termination", 138: "downlink termination drops", 139: "no uplink termination", 140: "uplink termination drops",
	150: "uplink recirculation denied", 160: "quality of service meter",
	170: "dropped by route", 171: "dropped by route",
}

func formats(list ...packet.Format) []packet.Format { return list }

// hostTail is INT as Intel's hosts send it.
var hostTail = marked(intmd.Options{Versions: intmd.V05, HostINT: true}, lowestBit, byTail)

// braine is a postcard that begins as o does.
func braine(o telemetry.Options) telemetry.Options {
	o.Postcard = true
	return o
}

// hostINT is reports as Intel's hosts send them.
func hostINT(noSinkID bool) telemetry.Options {
	return telemetry.Options{Versions: telemetry.V05, HostINT: true, NoSinkID: noSinkID}
}

// builtin are the profiles in the order of the documentation.
var builtin = []Profile{
	{
		Name: "auto", About: "the specifications, strictly: reports 0.5, 1.0, 2.0; INT 0.5, 1.0, 2.x, in VXLAN-GPE and Geneve too; INT-Probe; IOAM in IPv6; IFA; PINT digests in reports; sFlow 5; IPFIX and NetFlow 9",
		ReportPorts: usualPort, Report: anyReport,
		INT:     marked(intmd.Options{Versions: intmd.AllVersions}, exampleDSCP, byPort, inTunnels),
		Formats: formats(srint.Probe{}, ioam.IPv6{}, ioam.IFA{Proven: true}),
		SFlow:   true,
		IPFIX:   true,
		Units:   nanoseconds, PublicReasons: true,
	},
	{
		Name: "auto-unflagged", About: "auto, but INT is looked for in the packets of all reports, whatever their flag F says",
		ReportPorts: usualPort, Report: unflagged,
		INT:   marked(intmd.Options{Versions: intmd.AllVersions}, exampleDSCP, byPort, inTunnels),
		Units: nanoseconds, PublicReasons: true,
	},
	{
		Name: "prometheus-exporter", About: "report 0.5 with INT 0.5 behind TCP options",
		ReportPorts: port1234, Report: report05,
		INT:   marked(intmd.Options{Versions: intmd.V05}, lowestBit, behindOptions),
		Units: nanoseconds,
	},
	{
		Name: "fabric-tna", About: "report 0.5, nothing inside",
		ReportPorts: usualPort, Report: report05,
		Units: fabricUnits,
		Lies:  fabricLies,
	},
	{
		Name: "geant", About: "report 1.0; INT 1.0 with 64-bit times, 16-bit level 2 ports and a sequence number in the header",
		ReportPorts: geantPort, Report: report10,
		INT:   marked(intmd.Options{Versions: intmd.V10, WideTimes: true}, geantDSCP),
		Units: latencyMicro,
		Lies:  geantLies,
	},
	{
		Name: "onos", About: "report 1.0 with its flags in other bits; the INT 1.0 layout under version 0",
		ReportPorts: usualPort, Report: onos10,
		INT:   marked(intmd.Options{Versions: intmd.V10, Version0: true}, exampleDSCP),
		Units: microseconds,
		Lies:  []Lie{noUtilization},
	},
	{
		Name: "host-int", About: "Intel host INT: report 0.5 with its own types 3 and 4",
		ReportPorts: usualPort, Report: hostINT(false),
		INT:   hostTail,
		Units: hostUnits,
		Lies:  hostLies,
	},
	{
		Name: "host-int-no-sink-id", About: "host-int without the 4 bytes of the sink node's id",
		ReportPorts: usualPort, Report: hostINT(true),
		INT:   hostTail,
		Units: hostUnits,
		Lies:  hostLies,
	},
	{
		Name: "p4-int-laofan", About: "report 2.0 whose length 0 means to the end; INT 2.1",
		ReportPorts: port1234, Report: toEnd20,
		INT:   marked(intmd.Options{Versions: intmd.V21}, exampleDSCP),
		Units: microseconds,
		Lies:  []Lie{noUtilization},
	},
	{
		Name: "p4-int-elavinal", About: "INT 2.x with the bitmap numbered from the other end",
		INT:   marked(intmd.Options{Versions: intmd.V21, LeastFirst: true}, exampleDSCP),
		Units: microseconds,
	},
	{
		Name: "p4-int-mandaryoshi", About: "INT 2.x with a stack of INT-MD under a shim of type 3",
		ReportPorts: usualPort, Report: anyReport,
		INT:   marked(intmd.Options{Versions: intmd.V21, StackInMX: true}, exampleDSCP),
		Units: nanoseconds,
	},
	{
		Name: "fant", About: "report 2.0; INT 2.1 with the widths of FANT in domain 0xfa17: 84 bytes of metrics a hop for bitmap 0xffff",
		ReportPorts: usualPort, Report: telemetry.Options{Versions: telemetry.V20},
		INT:   marked(intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}, exampleDSCP, byPort),
		Units: nanoseconds,
	},
	{
		Name: "postcard-braine", About: "a postcard of 40 bytes behind the first word of report 1.0",
		ReportPorts: usualPort, Report: braine(onos10),
		Units: microseconds,
		Lies:  []Lie{noUtilization},
	},
	{Name: "int-path", About: "source-routed probes of INT-path, in captures and behind their socket", Formats: formats(srint.Path{}), Units: microseconds},
	{Name: "int-probe", About: "source-routed probes of INT-Probe", Formats: formats(srint.Probe{}), Units: microseconds},
	{
		Name: "ioam-ipv6", About: "IOAM in hop-by-hop and destination options of IPv6 (Linux): traces, direct export, edge to edge, proof of transit",
		Formats: formats(ioam.IPv6{}), Units: fractionMicro,
	},
	{Name: "ifa", About: "IFA 2.0 stacks in packets of the network, as Broadcom's chips write them", Formats: formats(ioam.IFA{}), Units: nanoseconds},
	{
		Name: "pint-mininet", About: "PINT digests in the destination MAC address (Mininet-PINT)",
		Formats: formats(pint.Frames{Coding: decode.CodingMininet}), Units: microseconds,
	},
	{
		Name: "pint-tofino", About: "PINT digests of 32 bits between Ethernet and IPv4 (Tofino-PINT)",
		Formats: formats(pint.Frames{Coding: decode.CodingTofino}), Units: nanoseconds,
	},
	{
		Name: "pint-hpcc", About: "PINT digests of 8 bits behind a sequence header (HPCC-PINT, a simulator): utilisation",
		Formats: formats(pint.Frames{Coding: decode.CodingHPCC, Bytes: 1}), Units: nanoseconds,
	},
	{Name: "sflow", About: "sFlow 5 on any port: drops with reasons, transit delays, queue depths, use of interfaces, sampled flows", SFlow: true, Units: nanoseconds},
	{Name: "ipfix", About: "IPFIX and NetFlow 9 on any port: drops of Broadcom's and Juniper's chips, delays on the way (RFC 9951), sampled packets and flows", IPFIX: true, Units: nanoseconds},
}
