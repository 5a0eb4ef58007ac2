package exporters

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Dialect is a profile that the settings derive from another one. A setting that is left out is as there.
type Dialect struct {
	Name        string   `yaml:"name" doc:"Name of the dialect, of small letters, digits and dashes."`
	Base        string   `yaml:"base" doc:"Profile that it changes, built in (\"hopscope config profiles\") or earlier in this list."`
	ReportPorts []uint16 `yaml:"report_ports" doc:"UDP destination ports of telemetry reports in captures." range:"1..65535"`
	Reports     []string `yaml:"report_versions" doc:"Versions of telemetry reports." oneof:"0.5|1.0|2.0"`
	INT         []string `yaml:"int_versions" doc:"Versions of INT." oneof:"0.5|1.0|2.x"`

	With    []string `yaml:"with" doc:"Its deviations from the specifications (docs/formats.md lists them)."`
	Without []string `yaml:"without" doc:"Deviations of its base that it has not."`

	DSCP        uint8           `yaml:"dscp" doc:"DSCP of packets with INT, in the bits of dscp_mask." range:"0..63"`
	DSCPMask    uint8           `yaml:"dscp_mask" doc:"DSCP bits that mark packets with INT. 0 is the base's mark." range:"0..63"`
	Ports       []uint16        `yaml:"int_ports" doc:"UDP destination ports of packets with INT." range:"1..65535"`
	ProbeMarker uint64          `yaml:"probe_marker" doc:"Mark of 64 bits between transport header and INT. 0 is the base's."`
	GREProtocol uint16          `yaml:"gre_protocol" doc:"Protocol number of INT in GRE. 0 is that of the base."`
	IFA         []uint8         `yaml:"ifa_protocols" doc:"IP protocol numbers of IFA. Empty is the base's." range:"1..255"`
	Domains     []DialectDomain `yaml:"domains" doc:"Domain specific ids of INT 2.x, beside the base's."`

	Units       DialectUnits    `yaml:"units" doc:"Size of a unit on the wire. 0 is the base's."`
	Wrong       []string        `yaml:"wrong_fields" doc:"Wrong fields of its hops, left out of statistics, by their names in \"hopscope decode\"."`
	DropReasons []DialectReason `yaml:"drop_reasons" doc:"What its drop reasons mean, beside those of the base."`
}

// DialectDomain is a domain of INT 2.x.
type DialectDomain struct {
	ID          uint16  `yaml:"id" doc:"Domain specific id." range:"1..65535"`
	Layout      string  `yaml:"layout" doc:"Meaning of the instruction bitmap: int (or empty), or fant." oneof:"|int|fant"`
	SourceWords []uint8 `yaml:"source_words" doc:"Words that only the source adds for each bit of the DS instruction, most significant first." range:"0..31"`
}

// DialectUnits are the units of a dialect.
type DialectUnits struct {
	LatencyNS    uint64 `yaml:"latency_ns" doc:"Nanoseconds in one unit of hop latency." range:"0..1000000000"`
	TimeNS       uint64 `yaml:"time_ns" doc:"Nanoseconds in one unit of timestamps." range:"0..1000000000"`
	HeaderTimeNS uint64 `yaml:"header_time_ns" doc:"Nanoseconds in one unit of the report header's time." range:"0..1000000000"`
	QueueBytes   uint64 `yaml:"queue_bytes" doc:"Bytes in one unit of queue occupancy, such as a cell." range:"0..65536"`
	TxFullScale  uint64 `yaml:"tx_full_scale" doc:"Utilisation that means a full link." range:"0..4294967295"`
}

// DialectReason names a drop reason.
type DialectReason struct {
	Reason uint8  `yaml:"reason" doc:"Number of the device."`
	Name   string `yaml:"name" doc:"What it means."`
}

// maxDialects bounds the list: each is tried on unreadable reports.
const maxDialects = 32

// profile returns the profile of that name: a built-in one, or one of the list.
func (e *Config) profile(name string) (demux.Profile, error) {
	for i := range e.Dialects {
		if e.Dialects[i].Name != name {
			continue
		}
		d := &e.Dialects[i]
		earlier := Config{Dialects: e.Dialects[:i]}
		base, err := earlier.profile(d.Base)
		if err != nil {
			return base, err
		}
		return d.over(base), nil
	}
	if p, ok := demux.Lookup(name); ok {
		return p, nil
	}
	return demux.Profile{}, fmt.Errorf("%q is none of %s", name, strings.Join(e.ProfileNames(), ", "))
}

// Lookup returns the profile of that name: a built-in one, or one of the settings' dialects.
func (e *Config) Lookup(name string) (demux.Profile, error) { return e.profile(name) }

// ProfileNames returns the names that [Config.Lookup] finds.
func (e *Config) ProfileNames() []string {
	names := demux.Profiles()
	for i := range e.Dialects {
		names = append(names, e.Dialects[i].Name)
	}
	return names
}

// Describe describes all profiles, those of the settings behind the built-in ones.
func (e *Config) Describe() (list []demux.Description) {
	list = demux.Describe()
	for i := range e.Dialects {
		if p, err := e.profile(e.Dialects[i].Name); err == nil {
			list = append(list, p.Describe())
		}
	}
	return list
}

// over makes the profile of its base. The dialect is valid.
func (d *Dialect) over(p demux.Profile) demux.Profile {
	p.Name, p.About = d.Name, "as "+p.Name+", with what the settings say"
	if len(d.ReportPorts) > 0 {
		p.ReportPorts = slices.Clone(d.ReportPorts)
	}
	if len(d.Reports) > 0 {
		p.Report.Versions = 0
		for _, v := range d.Reports {
			p.Report.Versions |= map[string]telemetry.Versions{"0.5": telemetry.V05, "1.0": telemetry.V10, "2.0": telemetry.V20}[v]
		}
	}
	if len(d.INT) > 0 {
		p.INT.Versions = 0
		for _, v := range d.INT {
			p.INT.Versions |= map[string]intmd.Versions{"0.5": intmd.V05, "1.0": intmd.V10, "2.x": intmd.V21}[v]
		}
	}
	for _, name := range d.With {
		p.Deviate(name, true)
	}
	for _, name := range d.Without {
		p.Deviate(name, false)
	}
	marks := intmd.Marks{DSCP: d.DSCP, DSCPMask: d.DSCPMask, ProbeMarker: d.ProbeMarker, GREProtocol: d.GREProtocol}
	if len(d.Ports) > 0 {
		p.INT.Ports, marks.Ports = nil, slices.Clone(d.Ports)
	}
	p.INT.Marks = p.INT.Marks.With(marks)
	if len(d.IFA) > 0 {
		p.Formats = append(slices.DeleteFunc(slices.Clone(p.Formats), isIFA), ioam.IFA{Protocols: slices.Clone(d.IFA)})
	}
	p.INT.Domains = slices.Clone(p.INT.Domains)
	for i := range d.Domains {
		x := &d.Domains[i]
		domain := intmd.Domain{ID: x.ID}
		if x.Layout == "fant" {
			domain.Layout = packet.INT2FANT
		}
		copy(domain.SourceWords[:], x.SourceWords)
		p.INT.Domains = append(slices.DeleteFunc(p.INT.Domains, func(o intmd.Domain) bool { return o.ID == x.ID }), domain)
	}
	u := &d.Units
	p.Units = p.Units.With(decode.Units{LatencyNS: u.LatencyNS, TimeNS: u.TimeNS, HeaderTimeNS: u.HeaderTimeNS, QueueBytes: u.QueueBytes, TxFullScale: u.TxFullScale})
	if len(d.DropReasons) > 0 {
		reasons := decode.DropReasons{}
		if p.Units.DropReasons != nil {
			reasons = maps.Clone(*p.Units.DropReasons)
		}
		for _, r := range d.DropReasons {
			reasons[r.Reason] = r.Name
		}
		p.Units.DropReasons = &reasons
	}
	if fields, _ := decode.ParseHopFields(d.Wrong); fields != 0 {
		p.Lies = append(slices.Clip(p.Lies), demux.Lie{Fields: fields, Of: demux.EveryHop, Why: "the settings say so"})
	}
	return p
}

func isIFA(f packet.Format) bool { _, is := f.(ioam.IFA); return is }

// Validate checks one dialect. Its base is checked by the list.
func (d *Dialect) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf(key+": "+format, args...))
	}
	if d.Name == "" || len(d.Name) > 64 || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		bad("name", "%q is no name of 1 to 64 small letters, digits and dashes", d.Name)
	}
	names, _ := demux.DeviationNames()
	for i, name := range d.With {
		if !slices.Contains(names, name) {
			bad(fmt.Sprintf("with[%d]", i), "%q is none of %s", name, strings.Join(names, ", "))
		}
	}
	for i, name := range d.Without {
		if !slices.Contains(names, name) {
			bad(fmt.Sprintf("without[%d]", i), "%q is none of %s", name, strings.Join(names, ", "))
		} else if slices.Contains(d.With, name) {
			bad(fmt.Sprintf("without[%d]", i), "%q is in the list with, too", name)
		}
	}
	if d.DSCP&^d.DSCPMask != 0 {
		bad("dscp", "%d has bits outside of dscp_mask %d, so that no packet can have it", d.DSCP, d.DSCPMask)
	}
	if _, err := decode.ParseHopFields(d.Wrong); err != nil {
		bad("wrong_fields", "%v", err)
	}
	for i := range d.Domains {
		if n := len(d.Domains[i].SourceWords); n > 16 {
			bad(fmt.Sprintf("domains[%d].source_words", i), "has %d entries, and the DS instruction 16 bits", n)
		}
	}
	return errors.Join(errs...)
}

// validDialects checks what the dialects make of their bases, and that names are found.
func (e *Config) validDialects() (errs []error) {
	if len(e.Dialects) > maxDialects {
		errs = append(errs, fmt.Errorf("dialects: has %d entries, more than %d", len(e.Dialects), maxDialects))
	}
	for i := range e.Dialects {
		d := &e.Dialects[i]
		at := fmt.Sprintf("dialects[%d]", i)
		earlier := Config{Dialects: e.Dialects[:i]}
		if slices.Contains(earlier.ProfileNames(), d.Name) {
			errs = append(errs, fmt.Errorf("%s.name: there is a profile %q already", at, d.Name))
			continue
		}
		base, err := earlier.profile(d.Base)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.base: %w", at, err))
			continue
		}
		p := d.over(base)
		if what := contradiction(&p); what != "" {
			errs = append(errs, fmt.Errorf("%s: %s", at, what))
		}
	}
	return errs
}

// contradiction returns the combination that cannot be in one profile, or "".
func contradiction(p *demux.Profile) string {
	r, n := &p.Report, &p.INT
	switch {
	case n.Version0 && n.Versions&intmd.V05 != 0:
		return "int-version-0 and INT 0.5 exclude each other: both have version 0"
	case (n.Version0 || n.WideTimes) && n.Versions&intmd.V10 == 0:
		return "int-version-0 and int-wide-times are of INT 1.0, which int_versions does not name"
	case n.LeastFirst && n.Versions&intmd.V21 == 0:
		return "int-least-first is of INT 2.x, which int_versions does not name"
	case (r.FlagsFirst || r.Postcard) && r.Versions&telemetry.V10 == 0:
		return "report-flags-first and report-postcard are of report 1.0, which report_versions does not name"
	case r.ZeroToEnd && r.Versions&telemetry.V20 == 0:
		return "report-zero-to-end is of report 2.0, which report_versions does not name"
	case n.Versions != 0 && n.DSCPMask == 0 && len(n.Ports) == 0 && n.TailPort == 0 && n.ProbeMarker == 0 && n.GREProtocol == 0 && !n.Tunnels:
		return "nothing marks packets with INT: give dscp and dscp_mask, int_ports, probe_marker or gre_protocol"
	case r.Versions == 0 && n.Versions == 0 && len(p.Formats) == 0:
		return "it reads nothing"
	}
	return ""
}
