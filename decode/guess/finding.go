package guess

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// Finding is what is known of one sender whose frames its profile did not read.
type Finding struct {
	Src       decode.Addr
	State     State
	Profile   string        // that was in use
	Profiles  []string      // that explain them
	Port      uint16        // UDP port that they go to, if none of Profiles names it; else 0
	Content   string        // what they carry: "INT"
	Unread    uint64        // frames that were not read
	AtLeast   bool          // there may have been more
	Stored    uint64        // of those, reports that are in statistics all the same
	Samples   int           // that were tried
	Explained int           // of those
	Short     bool          // that is too little to adopt a dialect
	Since     int64         // when one was adopted
	Format    decode.Format // that foreign datagrams are of
	Sample    []byte        // the beginning of a frame that was not read, or of a datagram where sockets give them
}

// Findings gives what is known, in the order of addresses. Who is only being looked at is left out.
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
		f := Finding{
			Src: src, State: s.state, Profile: s.current.Name, Content: s.content, Unread: s.unread, AtLeast: s.part,
			Stored: s.unread - min(s.dropped, s.unread), Samples: s.among, Explained: s.explained, Short: s.short, Port: s.port, Sample: s.shown,
		}
		if s.own != nil && w.adopted[src] != nil {
			f.State, f.Profiles, f.Stored, f.Since, f.Profile = Adopted, []string{s.own.Name}, s.stored, s.since, autoName
			list = append(list, f)
			continue
		}
		if s.state != Unknown {
			for i := range s.best {
				f.Profiles = append(f.Profiles, s.best[i].Profile.Name)
			}
		}
		list = append(list, f)
	}
	for k, c := range w.foreign {
		f := Finding{Src: k.src, State: Foreign, Profile: k.profile, Unread: c.n, Format: k.format, Sample: c.sample}
		at, _ := slices.BinarySearchFunc(list, f, func(a, b Finding) int {
			return cmp.Or(a.Src.Compare(b.Src), cmp.Compare(a.Format, b.Format))
		})
		list = slices.Insert(list, at, f)
	}
	return list
}

// families are what people call formats, and what reads them.
var families = map[decode.Format][2]string{
	decode.SFlow:    {"sFlow", "profile auto or sflow reads it: choose one in exporters.profiles"},
	decode.IPFIX:    {"IPFIX", "it is not read"},
	decode.NetFlow9: {"NetFlow 9", "it is not read"},
	decode.NetFlow5: {"NetFlow 5", "it tells of no hop, and is not read"},
}

// String says it in one sentence.
func (f *Finding) String() string {
	var b strings.Builder
	if f.State == Foreign {
		what, family := "datagrams of %s are", families[f.Format]
		if f.Unread == 1 {
			what = "datagram of %s is"
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
		fmt.Fprintf(&b, " cannot be read by profile %s, and no other profile explains them", f.Profile)
		return b.String()
	}
	fmt.Fprintf(&b, " %s %s", verb, f.Content)
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
		case f.Short && f.Unread >= enough:
			b.WriteString(", but all came within a second: it is not adopted")
		case f.Short:
			b.WriteString(", but there is too little to adopt it")
		}
		if f.Port != 0 && f.Content != pathContent {
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

// pathContent is what probes carry whose port is no setting.
const pathContent = "INT-path"

// contentOf says what a report holds, for people.
func contentOf(r *decode.Report) string {
	switch r.Format {
	case decode.PINT:
		return "PINT digests"
	case decode.INTPath:
		return pathContent
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
