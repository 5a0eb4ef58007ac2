package ask

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/docs"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
)

// Explanation is a finding with what helps to judge it.
type Explanation struct {
	Finding    Finding        `json:"finding"`
	Runbook    string         `json:"runbook"`            // path of the section of docs/findings.md, on the page
	About      []docs.Passage `json:"about"`              // that section
	Thresholds []Threshold    `json:"thresholds"`         // settings that the section names
	Cause      *Finding       `json:"cause,omitempty"`    // that explains the finding
	Evidence   []Finding      `json:"evidence,omitempty"` // that the finding explains
	Unjudged   []string       `json:"unjudged"`           // what could not be judged, one sentence each
	Next       []Look         `json:"next"`               // what to look at next
}

// Threshold is a setting with the value in force.
type Threshold struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"` // "" where the settings are those of other programs
	Doc   string `json:"doc,omitempty"`
}

// Look is a place to look at: a command, and the address on the page where there is one.
type Look struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	Page    string `json:"page,omitempty"` // such as "#hop=7/3"
}

// Setting returns the value of a key of the settings, and its meaning.
type Setting func(key string) (value, doc string, ok bool)

// Explain explains the finding of a list that an id names: its id, or the name of its alert. It returns nil where no
// finding has the id. A nil setting knows no values.
func Explain(list []inference.Finding, id string, n *names.Names, setting Setting, coverage string) *Explanation {
	i := slices.IndexFunc(list, func(f inference.Finding) bool { return f.IDText() == id || notify.Key(&f) == id })
	if i < 0 {
		return nil
	}
	f := &list[i]
	x := &Explanation{Finding: NewFinding(f, n), Runbook: notify.Runbook("", f.Kind), About: docs.Kind(f.Kind.String()), Thresholds: thresholds(f.Kind, setting)}
	for k := range list {
		o := &list[k]
		switch {
		case k == i:
		case f.Cause != 0 && o.ID == f.Cause:
			cause := NewFinding(o, n)
			x.Cause = &cause
		case o.Cause == f.ID:
			x.Evidence = append(x.Evidence, NewFinding(o, n))
		}
	}
	x.Unjudged = unjudged(f, coverage)
	x.Next = x.next()
	return x
}

var (
	settingName = regexp.MustCompile("`([a-z0-9_]+(?:\\.[a-z0-9_]+)+)`")
	kindName    = regexp.MustCompile("`([a-z]+(?:-[a-z]+)*)`")
)

// thresholds returns the settings that the section of a kind names, and those of a kind that it refers to.
func thresholds(k inference.Kind, setting Setting) []Threshold {
	list := []Threshold{}
	seen := map[string]bool{}
	var add func(kind string)
	add = func(kind string) {
		if seen[kind] {
			return
		}
		seen[kind] = true
		for _, p := range docs.Kind(kind) {
			if p.Title != "Thresholds" {
				continue
			}
			for _, m := range settingName.FindAllStringSubmatch(p.Text, -1) {
				if seen[m[1]] {
					continue
				}
				seen[m[1]] = true
				t := Threshold{Key: m[1]}
				if setting != nil {
					var ok bool
					if t.Value, t.Doc, ok = setting(t.Key); !ok {
						continue // a group of settings
					}
				}
				list = append(list, t)
			}
			for _, m := range kindName.FindAllStringSubmatch(p.Text, -1) {
				add(m[1])
			}
		}
	}
	add(k.String())
	return list
}

// unjudged returns what limits the finding, one sentence each.
func unjudged(f *inference.Finding, coverage string) []string {
	list := []string{}
	if f.Learning {
		list = append(list, "The usual values of this place are still being learnt.")
	}
	if coverage != "" {
		list = append(list, coverage)
	}
	return list
}

// next returns where the evidence of a finding can be followed.
func (x *Explanation) next() []Look {
	f := &x.Finding
	list := []Look{}
	if x.Cause != nil {
		list = append(list, Look{Text: "Cause: " + x.Cause.Headline, Command: "hopscope findings --explain " + x.Cause.ID, Page: "#finding=" + x.Cause.ID})
	}
	if f.Node != "" && f.Exporter == "" {
		over := "node " + f.Node
		if f.EgressIf != "" && f.EgressIf != "0" {
			over += " interface " + f.EgressIf
		}
		list = append(list, Look{Text: "Values of the hop", Command: "hopscope top", Page: "#hop=" + f.Node + "/" + f.EgressIf},
			Look{Text: "The busiest flows over it", Command: fmt.Sprintf("hopscope flow --filter %q", over), Page: "#flows=" + url.PathEscape(over)})
	}
	if f.Flow != "" {
		list = append(list, Look{Text: "The flow with its path", Command: fmt.Sprintf("hopscope flow %q", f.Flow), Page: "#flows"})
	}
	switch {
	case strings.HasPrefix(f.Kind, "probe-"):
		list = append(list, Look{Text: "All paths of probes", Command: "hopscope top --probes", Page: "#probed"})
	case strings.HasPrefix(f.Kind, "interface-"):
		list = append(list, Look{Text: "Counters of all interfaces", Command: "hopscope top --interfaces", Page: "#interfaces"})
	case f.Exporter != "":
		list = append(list, Look{Text: "Reports by exporter", Page: "#exporters"})
	}
	return append(list, Look{Text: "The place on the map", Page: "#map"})
}

// Write writes the explanation for people. Its commands ask the page at address with the given flags, and its addresses
// are on that page.
func (x *Explanation) Write(w io.Writer, address, flags string) error {
	f := &x.Finding
	show := names.Printable
	fmt.Fprintf(w, "%s\n\n%s, %s, since %s", show(cmp.Or(f.Headline, f.Text)), show(f.Severity), show(f.Kind), time.UnixMilli(f.StartMS).Format(time.DateTime))
	switch {
	case f.EndMS != 0:
		fmt.Fprintf(w, ", ended %s", time.UnixMilli(f.EndMS).Format(time.DateTime))
	case f.Resting:
		fmt.Fprint(w, ", at rest")
	}
	fmt.Fprintf(w, "\n%s\nid %s\n", show(f.Text), show(f.ID))
	if len(x.Evidence) > 0 {
		fmt.Fprintf(w, "\nSymptoms: %d\n", len(x.Evidence))
		for i := range x.Evidence {
			e := &x.Evidence[i]
			fmt.Fprintf(w, "  %s, %s: %s\n", show(e.Severity), show(e.Kind), show(cmp.Or(e.Headline, e.Text)))
		}
	}
	for _, p := range x.About {
		fmt.Fprintf(w, "\n%s\n", show(strings.TrimPrefix(p.Title+": ", ": ")+plain(p.Text)))
	}
	if len(x.Thresholds) > 0 {
		fmt.Fprint(w, "\nSettings in force\n")
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, s := range x.Thresholds {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", show(s.Key), show(cmp.Or(s.Value, "as the consumers have it")), show(s.Doc))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(x.Unjudged) > 0 {
		fmt.Fprint(w, "\nWhat was not judged\n")
		for _, s := range x.Unjudged {
			fmt.Fprintf(w, "  %s\n", show(s))
		}
	}
	fmt.Fprint(w, "\nWhere to look next\n")
	for _, l := range x.Next {
		if l.Command != "" {
			fmt.Fprintf(w, "  %s: %s%s\n", show(l.Text), show(l.Command), flags)
		}
	}
	runbook := x.Runbook
	if strings.HasPrefix(runbook, "/") {
		runbook = Address(address) + runbook
	}
	_, err := fmt.Fprintf(w, "  The page of this kind: %s\n", show(runbook))
	return err
}

var reference = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain takes links and marks of code from Markdown.
func plain(text string) string {
	return strings.ReplaceAll(reference.ReplaceAllString(text, "$1"), "`", "")
}
