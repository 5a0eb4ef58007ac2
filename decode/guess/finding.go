package guess

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// Finding is the result for one sender whose frames its profile did not read.
type Finding struct {
	Src       decode.Addr
	State     State
	Profile   string        // that was in use
	Profiles  []string      // that explain them
	Port      uint16        // UDP port that they go to, if none of Profiles names it; else 0
	GRE       uint16        // protocol number of GRE under which they carry INT, if Profile names another one or none; else 0
	Content   string        // their content: "INT"
	Unread    uint64        // frames that were not read
	AtLeast   bool          // there may have been more
	Stored    uint64        // of those, reports that are in statistics all the same
	Samples   int           // that were tried
	Explained int           // of those
	Most      string        // profile that explains so many of them, where none explains all
	Short     bool          // that is too little to adopt a dialect
	Nameless  bool          // their hops name no node, so that none is adopted
	Since     int64         // when one was adopted
	Format    decode.Format // that foreign datagrams are of
	Only      demux.Kind    // what alone Port takes, where that is why they are not read
	Sample    []byte        // the beginning of an unread frame, or of a datagram from a socket
}

// Findings returns the findings about senders, in the order of addresses. Senders under observation are left out.
func (w *Watch) Findings() (list []Finding) {
	all := sorted(w.senders)
	for _, src := range sorted(w.adopted) {
		if w.senders[src] == nil {
			all = append(all, src)
		}
	}
	slices.SortFunc(all, decode.Addr.Compare)
	for _, src := range all {
		s := w.adopted[src]
		if s == nil {
			s = w.senders[src]
		}
		if s.state == Gathering || s.state == Plain && w.adopted[src] == nil {
			continue
		}
		if s.own != nil && w.adopted[src] != nil {
			list = append(list, s.findings()...)
			continue
		}
		f := s.finding()
		if s.state == Unknown && s.failed < s.among {
			if f.Unread, f.Stored = s.dropped, 0; s.dropped == 0 {
				f.Unread = s.unread * uint64(s.failed) / uint64(s.among)
				f.Stored = f.Unread
			}
		}
		list = append(list, f)
	}
	for k, c := range w.foreign {
		f := Finding{Src: k.src, State: Foreign, Profile: k.profile, Unread: c.n, Format: k.format, Sample: c.sample, Port: k.port.Number, Only: k.port.Only}
		at, _ := slices.BinarySearchFunc(list, f, func(a, b Finding) int {
			return cmp.Or(a.Src.Compare(b.Src), cmp.Compare(a.Format, b.Format), cmp.Compare(a.Port, b.Port))
		})
		list = slices.Insert(list, at, f)
	}
	return list
}

// finding is the finding about s.
func (s *sender) finding() Finding {
	f := Finding{
		Src: s.src, State: s.state, Profile: s.current.Name, Content: s.content, Unread: s.unread, AtLeast: s.part,
		Stored: s.unread - min(s.dropped, s.unread), Samples: s.among, Explained: s.explained, Short: s.short, Nameless: s.nameless, Port: s.port, GRE: s.gre, Sample: s.shown, Most: s.most,
	}
	if s.state != Unknown {
		for i := range s.best {
			f.Profiles = append(f.Profiles, s.best[i].Profile.Name)
		}
	}
	return f
}

// findings are the adopted dialect of s, and the INT in GRE that this dialect ignores.
func (s *sender) findings() []Finding {
	f := s.as
	f.State, f.Profiles, f.Stored, f.Since, f.Profile = Adopted, []string{s.own.Name}, s.stored, s.since, autoName
	f.Unread, f.AtLeast = s.unread, s.part
	if s.hidden == nil {
		return []Finding{f}
	}
	f.Unread -= min(s.hidden.Unread, f.Unread)
	return []Finding{f, *s.hidden}
}

// families holds the usual names of formats, and of their readers.
var families = map[decode.Format][2]string{
	decode.SFlow:           {"sFlow", "profile auto or sflow reads it: choose one in exporters.profiles"},
	decode.IPFIX:           {"IPFIX", readsIPFIX},
	decode.NetFlow9:        {"NetFlow 9", readsIPFIX},
	decode.SFlow4:          {"sFlow 4 or 2", "only version 5 is read: set it at the agent (\"sflow version 5\" or the like)"},
	decode.NetFlow5:        {"NetFlow 5", "it names no hop, and is not read"},
	decode.TelemetryReport: {"telemetry reports", "profile auto reads them"},
}

// family returns the usual name of a format and of its reader. The format 0 is unknown.
func family(f decode.Format) [2]string {
	if names, ok := families[f]; ok {
		return names
	}
	if f == 0 {
		return [2]string{"of no format that is known by its first bytes"}
	}
	return [2]string{f.String(), "profile auto reads it"}
}

const readsIPFIX = "profile auto or ipfix reads it, as long as ipfix.enabled is true: choose one in exporters.profiles"

// String returns it in one sentence.
func (f *Finding) String() string {
	var b strings.Builder
	if f.State == Foreign {
		what, family := "datagrams of %s are", family(f.Format)
		if f.Unread == 1 {
			what = "datagram of %s is"
		}
		if f.Only != demux.Anything {
			return fmt.Sprintf("%d "+what+" %s, and UDP port %d takes %s alone: give it type auto in the setting ports", f.Unread, f.Src, family[0], f.Port, f.Only)
		}
		return fmt.Sprintf("%d "+what+" %s: %s", f.Unread, f.Src, family[0], family[1])
	}
	if f.AtLeast {
		b.WriteString("at least ")
	}
	fmt.Fprintf(&b, "%d report", f.Unread)
	verb := "carries"
	if f.Unread != 1 {
		b.WriteString("s")
		verb = "carry"
	}
	fmt.Fprintf(&b, " of %s", f.Src)
	all := "all of it"
	if f.Explained < f.Samples {
		all = fmt.Sprintf("%d of %d samples", f.Explained, f.Samples)
	}
	switch f.State {
	case Unknown:
		them := "them"
		if f.Unread == 1 {
			them = "it"
		}
		fmt.Fprintf(&b, " cannot be read by profile %s, and no other profile explains %s", f.Profile, them)
		if f.Most != "" {
			fmt.Fprintf(&b, " all; %s explains %d of %d samples", f.Most, f.Explained, f.Samples)
		}
		return b.String()
	}
	fmt.Fprintf(&b, " %s %s", verb, f.Content)
	if f.GRE != 0 {
		fmt.Fprintf(&b, " in GRE protocol %#04x, where profile %s looks for none; %s explains %s: set gre_protocol: %#04x in a dialect that has it as its base",
			f.GRE, f.Profile, f.Profiles[0], all, f.GRE)
		if f.Port != 0 {
			fmt.Fprintf(&b, " and report_ports: [%d]", f.Port)
		}
		if f.State == Mixed {
			fmt.Fprintf(&b, "; profile %s reads others", f.Profile)
		}
		return b.String()
	}
	if f.Port != 0 {
		fmt.Fprintf(&b, " to UDP port %d, where profile %s looks for none", f.Port, f.Profile)
	} else {
		fmt.Fprintf(&b, " that profile %s cannot read", f.Profile)
	}
	if f.State == Tied {
		fmt.Fprintf(&b, "; %s explain %s alike: choose one in exporters.profiles", and(f.Profiles), all)
		if f.Port != 0 {
			fmt.Fprintf(&b, ", as base of a dialect with report_ports: [%d]", f.Port)
			if slices.Contains(f.Profiles, autoName) {
				b.WriteString("; auto is for exporters that follow the specifications")
			}
		}
		return b.String()
	}
	fmt.Fprintf(&b, "; %s explains %s", f.Profiles[0], all)
	switch f.State {
	case Adopted:
		b.WriteString(" and was adopted")
		if f.Stored > 0 {
			fmt.Fprintf(&b, "; %d were stored without it before", f.Stored)
		}
	case Mixed:
		fmt.Fprintf(&b, ", but profile %s reads other reports of this address: it is kept", f.Profile)
	case Suggested:
		switch {
		case f.Nameless:
			b.WriteString(", but their hops name no node: it is not adopted")
		case f.Short && f.Unread >= enough:
			b.WriteString(", but all came within a second: it is not adopted")
		case f.Short:
			b.WriteString(", but there is too little to adopt it")
		}
		if f.Port != 0 && f.Content != PathContent {
			fmt.Fprintf(&b, "; to choose it, make it the base of a dialect with report_ports: [%d]", f.Port)
		}
	}
	return b.String()
}

// and joins names: "a, b and c".
func and(names []string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// PathContent is the content of a [Finding] about probes whose port is no setting.
const PathContent = "INT-path"

// contentOf returns the content of a report, for display.
func contentOf(r *decode.Report) string {
	switch r.Format {
	case decode.PINT:
		return "PINT digests"
	case decode.INTPath:
		return PathContent
	case decode.INTProbe:
		return "INT-Probe"
	case decode.IOAM:
		return "IOAM"
	case decode.TelemetryReport:
		if r.Kind == decode.KindDigest {
			return "PINT digests"
		}
		if r.INT == 0 {
			return "postcards"
		}
	}
	return "INT"
}
