package guess

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// Finding is what is known of one sender whose frames its profile did not read.
type Finding struct {
	Src       decode.Addr
	State     State
	Profile   string   // that was in use
	Profiles  []string // that explain them
	Ports     []uint16 // of reports, where the profile names others
	Content   string   // what they carry: "INT"
	Unread    uint64   // frames that were not read
	AtLeast   bool     // there may have been more
	Stored    uint64   // of those, reports that are in statistics all the same
	Samples   int      // that were tried
	Explained int      // of those
	Short     bool     // that is too little to adopt a dialect
	Since     int64    // when one was adopted
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
		if s.state == Gathering {
			continue
		}
		f := Finding{
			Src: src, State: s.state, Profile: s.current.Name, Content: s.content, Unread: s.unread, AtLeast: s.part,
			Stored: s.unread - min(s.dropped, s.unread), Samples: s.among, Explained: s.explained, Short: s.short,
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
	return list
}

// String says it in one sentence.
func (f *Finding) String() string {
	var b strings.Builder
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
	case Tied:
		fmt.Fprintf(&b, " %s %s that profile %s cannot read; %s explain %s alike: choose one in exporters.profiles", verb, f.Content, f.Profile,
			and(f.Profiles), all)
		return b.String()
	}
	fmt.Fprintf(&b, " %s %s that profile %s cannot read; %s explains %s", verb, f.Content, f.Profile, f.Profiles[0], all)
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

// contentOf says what a report holds, for people.
func contentOf(r *decode.Report) string {
	switch r.Format {
	case decode.PINT:
		return "PINT digests"
	case decode.INTPath:
		return "INT-path"
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
