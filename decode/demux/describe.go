package demux

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Description is a profile for people and for programs that list profiles. An empty list is nil.
type Description struct {
	Name        string           `json:"name"`
	About       string           `json:"about"`
	ReportPorts []uint16         `json:"report_ports,omitempty"`
	Reports     []string         `json:"report_versions,omitempty"`
	INT         []string         `json:"int_versions,omitempty"`
	Marks       []string         `json:"marks,omitempty"`   // of packets with INT, and of the other formats
	Formats     []string         `json:"formats,omitempty"` // other formats than reports and INT
	Deviations  []string         `json:"deviations,omitempty"`
	Wrong       []string         `json:"wrong_fields,omitempty"`
	Lies        []string         `json:"known_bad,omitempty"` // read as they are, and left out of statistics
	Units       UnitsDescription `json:"units"`
	DropReasons map[uint8]string `json:"drop_reasons,omitempty"`
}

// UnitsDescription is the meaning of one unit on the wire, by kind of value.
type UnitsDescription struct {
	LatencyNS    uint64 `json:"latency_ns"`
	TimeNS       uint64 `json:"time_ns"`
	HeaderTimeNS uint64 `json:"header_time_ns"`
	QueueBytes   uint64 `json:"queue_bytes"`
	TxFullScale  uint64 `json:"tx_full_scale"` // the utilisation of a full link
	LatencyCalc  bool   `json:"latency_from_times"`
}

// Describe describes p.
func (p *Profile) Describe() Description {
	d := Description{
		Name: p.Name, About: p.About, ReportPorts: p.ReportPorts, Reports: p.Report.Versions.Names(), INT: p.INT.Versions.Names(),
		Marks: p.INT.Marks.Names(), Deviations: append(p.Report.Deviations(), p.INT.Deviations()...), Wrong: p.Wrong.Names(),
		Units: UnitsDescription{p.Units.LatencyNS, p.Units.TimeNS, p.Units.HeaderTimeNS, p.Units.QueueBytes, p.Units.TxFullScale, p.Units.LatencyCalc},
	}
	for _, l := range p.Lies {
		d.Lies = append(d.Lies, strings.Join(l.Fields.Names(), ", ")+" of "+l.Of.String()+": "+l.Why)
	}
	for _, f := range p.Formats {
		w := f.Where()
		d.Formats = append(d.Formats, f.String())
		d.Marks = append(d.Marks, w.Names()...)
	}
	if p.Units.DropReasons != nil {
		d.DropReasons = *p.Units.DropReasons
	}
	return d
}

// Ports returns the report ports as text, "none" without.
func (d *Description) Ports() string {
	if len(d.ReportPorts) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(d.ReportPorts), "[]")
}

// Markers returns the marks as text, "none" without.
func (d *Description) Markers() string {
	if len(d.Marks) == 0 {
		return "none"
	}
	return strings.Join(d.Marks, "; ")
}

// String returns the unit of times, and then the values with another one: "ns, latency us".
func (u *UnitsDescription) String() string {
	s := unit(u.TimeNS)
	if u.LatencyNS != u.TimeNS {
		s += ", latency " + unit(u.LatencyNS)
	}
	if u.HeaderTimeNS != u.TimeNS {
		s += ", header time " + unit(u.HeaderTimeNS)
	}
	if u.QueueBytes != 1 {
		s += fmt.Sprintf(", queue %d bytes", u.QueueBytes)
	}
	return s
}

func unit(ns uint64) string {
	switch time.Duration(ns) {
	case time.Nanosecond:
		return "ns"
	case time.Microsecond:
		return "us"
	case time.Millisecond:
		return "ms"
	case time.Second:
		return "s"
	}
	return fmt.Sprintf("%d ns", ns)
}

// Describe describes all built-in profiles, in the order of the documentation.
func Describe() []Description {
	list := make([]Description, len(builtin))
	for i := range builtin {
		list[i] = builtin[i].Describe()
	}
	return list
}

// WriteTable writes what each built-in profile reads as a table of Markdown. Description has the rest.
func WriteTable(w io.Writer) error {
	if _, err := fmt.Fprint(w, "| profile | reads |\n| --- | --- |\n"); err != nil {
		return err
	}
	for _, d := range Describe() {
		if _, err := fmt.Fprintf(w, "| `%s` | %s |\n", d.Name, d.About); err != nil {
			return err
		}
	}
	return nil
}

// WriteLies writes the lies of the built-in profiles as a Markdown table. Profiles with the same lie share a row.
func WriteLies(w io.Writer) error {
	if _, err := fmt.Fprint(w, "| profile | fields | of | what they hold |\n| --- | --- | --- | --- |\n"); err != nil {
		return err
	}
	profiles := map[string][]string{} // by the rest of their row
	var rows []string
	for i := range builtin {
		for _, l := range builtin[i].Lies {
			row := fmt.Sprintf("`%s` | %s | %s", strings.Join(l.Fields.Names(), "`, `"), l.Of, l.Why)
			if profiles[row] == nil {
				rows = append(rows, row)
			}
			profiles[row] = append(profiles[row], builtin[i].Name)
		}
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "| `%s` | %s |\n", strings.Join(profiles[row], "`, `"), row); err != nil {
			return err
		}
	}
	return nil
}

// WriteDeviations writes the deviations that settings can name as a table of Markdown.
func WriteDeviations(w io.Writer) error {
	if _, err := fmt.Fprint(w, "| name | what it means |\n| --- | --- |\n"); err != nil {
		return err
	}
	for _, d := range deviations {
		if _, err := fmt.Fprintf(w, "| `%s` | %s |\n", d.name, d.about); err != nil {
			return err
		}
	}
	return nil
}

// Write writes all of d, a line for each statement.
func (d *Description) Write(w io.Writer) error {
	var s strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&s, "%-16s %s\n", key, value)
		}
	}
	lines := func(key string, values []string) {
		for _, v := range values {
			line(key, v)
			key = ""
		}
	}
	line("name", d.Name)
	line("reads", d.About)
	line("report ports", d.Ports())
	line("report versions", strings.Join(d.Reports, ", "))
	line("INT versions", strings.Join(d.INT, ", "))
	lines("other formats", d.Formats)
	line("marks", d.Markers())
	lines("deviations", d.Deviations)
	line("wrong fields", strings.Join(d.Wrong, ", "))
	lines("known bad", d.Lies)
	line("times", unit(d.Units.TimeNS))
	line("hop latency", unit(d.Units.LatencyNS))
	line("header time", unit(d.Units.HeaderTimeNS))
	line("queue", fmt.Sprintf("1 is %d B", d.Units.QueueBytes))
	line("utilisation", fmt.Sprintf("%d is a full link", d.Units.TxFullScale))
	if d.Units.LatencyCalc {
		line("", "hop latency is the difference of the times where none is reported")
	}
	reasons := make([]string, 0, len(d.DropReasons))
	for n := range 256 {
		if name, ok := d.DropReasons[uint8(n)]; ok {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, name))
		}
	}
	lines("drop reasons", reasons)
	_, err := io.WriteString(w, s.String())
	return err
}
