package demux

import "slices"

// deviation is one thing that a dialect can do otherwise than the specifications, by the name that settings have for it.
type deviation struct {
	name, about string
	flag        func(p *Profile) *bool
}

// deviations are all of them.
var deviations = []deviation{
	{"report-flags-first", "report 1.0: D, Q, F before the reserved bits", func(p *Profile) *bool { return &p.Report.FlagsFirst }},
	{"report-postcard", "report 1.0: 40 bytes of header whatever its length says", func(p *Profile) *bool { return &p.Report.Postcard }},
	{"report-host-int", "report 0.5: next protocols 3 and 4", func(p *Profile) *bool { return &p.Report.HostINT }},
	{"report-no-sink-id", "report 0.5: no sink node id before the packet", func(p *Profile) *bool { return &p.Report.NoSinkID }},
	{"report-zero-to-end", "report 2.0: a length of 0 means to the end", func(p *Profile) *bool { return &p.Report.ZeroToEnd }},
	{"report-short-to-end", "report 2.0: a length of 255 means to the end, however short", func(p *Profile) *bool { return &p.Report.ShortToEnd }},
	{"report-no-sequence", "the sequence number is constant", func(p *Profile) *bool { return &p.Report.NoSequence }},
	{"report-unflagged", "INT is looked for in the packets of all reports, whatever their flag F says", func(p *Profile) *bool { return &p.Report.Unflagged }},
	{"int-wide-times", "INT 1.0: 64-bit times, level 2 ports of 16 bits", func(p *Profile) *bool { return &p.INT.WideTimes }},
	{"int-version-0", "INT 1.0: the layout under version 0", func(p *Profile) *bool { return &p.INT.Version0 }},
	{"int-host-int", "INT 0.5: shim type 3, a sequence number behind the stack", func(p *Profile) *bool { return &p.INT.HostINT }},
	{"int-least-first", "INT 2.x: the bitmap numbered from the other end", func(p *Profile) *bool { return &p.INT.LeastFirst }},
	{"int-swap-npt2", "INT 2.x: the original protocol in the third byte of the shim", func(p *Profile) *bool { return &p.INT.SwapNPT2 }},
	{"int-stack-in-mx", "INT 2.x: a stack of INT-MD under a shim of type 3, in domain 0", func(p *Profile) *bool { return &p.INT.StackInMX }},
	{"int-behind-options", "INT in TCP stands behind the options", func(p *Profile) *bool { return &p.INT.BehindOptions }},
	{"int-tunnels", "INT in VXLAN-GPE and Geneve", func(p *Profile) *bool { return &p.INT.Tunnels }},
	{"outer-flow", "flows are of the packet that carries the telemetry, not of the innermost one in it", func(p *Profile) *bool { return &p.OuterFlow }},
}

// DeviationNames returns the names of all deviations, and their meanings.
func DeviationNames() (names, about []string) {
	for i := range deviations {
		names, about = append(names, deviations[i].name), append(about, deviations[i].about)
	}
	return names, about
}

// Deviate turns a deviation of p on or off. It is not ok for an unknown name.
func (p *Profile) Deviate(name string, on bool) (ok bool) {
	i := slices.IndexFunc(deviations, func(d deviation) bool { return d.name == name })
	if i < 0 {
		return false
	}
	*deviations[i].flag(p) = on
	return true
}
