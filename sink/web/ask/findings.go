package ask

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// mostEvidence is how many lines there are below a cause where not all are asked for.
const mostEvidence = 3

// WriteFindings writes a table in which evidence is below its cause.
func WriteFindings(w io.Writer, open, ended []Finding, rules *notify.Rules, known, all bool) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	head, now := "severity\tkind\twhere\tsince\tended\theadline\t", time.Now()
	if known {
		head += "alert\t"
	}
	fmt.Fprintln(t, head+"what")
	line := func(f *Finding, indent string) {
		end := "-"
		switch {
		case f.EndMS != 0:
			end = time.UnixMilli(f.EndMS).Format(time.DateTime)
		case f.Resting:
			end = "rests"
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\t%s\t", indent, names.Printable(f.Severity), names.Printable(f.Kind), names.Printable(f.place()),
			time.UnixMilli(f.StartMS).Format(time.DateTime), end, names.Printable(cmp.Or(f.Headline, "-")))
		if known {
			fmt.Fprintf(t, "%s\t", f.state(rules, now))
		}
		fmt.Fprintln(t, names.Printable(f.Text))
	}
	for _, list := range [][]Finding{open, ended} {
		leads, evidence := leads(list), map[int][]int{}
		for i, lead := range leads {
			if lead != i {
				evidence[lead] = append(evidence[lead], i)
			}
		}
		for i := range list {
			if leads[i] != i {
				continue
			}
			line(&list[i], "")
			below := evidence[i]
			for n, k := range below {
				if n == mostEvidence && !all {
					fmt.Fprintf(t, "  … %d more (--all)\n", len(below)-n)
					break
				}
				line(&list[k], "  ")
			}
		}
	}
	return t.Flush()
}

// leads returns for each finding the index of the one that it is listed with. That is itself, or the end of its chain
// of causes in the list. Findings that explain each other in a circle each lead themselves. What the circle explains
// is listed with the first of the circle on the chain.
func leads(list []Finding) []int {
	const unknown, onChain = -1, -2
	at, out := make(map[string]int, len(list)), make([]int, len(list))
	for i := range list {
		at[list[i].ID], out[i] = i, unknown
	}
	for i := range list {
		var chain []int
		k := i
		for out[k] == unknown {
			out[k], chain = onChain, append(chain, k)
			if cause, listed := at[list[k].Cause]; listed && list[k].Cause != "" {
				k = cause
			}
		}
		lead := out[k]
		if lead == onChain {
			first := slices.Index(chain, k)
			for _, c := range chain[first:] {
				out[c] = c
			}
			chain, lead = chain[:first], k
		}
		for _, c := range chain {
			out[c] = lead
		}
	}
	return out
}

// SortOpen sorts open findings as they are read: resting ones last, then by severity, causes first, and the newest first.
// While a cause is open, symptoms follow the findings at a place, whatever their severity: an operator acts on a place.
func SortOpen(open []inference.Finding) {
	cause := slices.ContainsFunc(open, func(f inference.Finding) bool {
		return f.Evidence > 0 && !f.Resting && f.Severity > inference.Info
	})
	last := func(f *inference.Finding) int {
		switch {
		case f.Resting:
			return 2
		case cause && symptom(f):
			return 1
		}
		return 0
	}
	slices.SortFunc(open, func(a, b inference.Finding) int {
		return cmp.Or(cmp.Compare(last(&a), last(&b)), cmp.Compare(b.Severity, a.Severity), cmp.Compare(min(b.Evidence, 1), min(a.Evidence, 1)),
			cmp.Compare(b.Start, a.Start), cmp.Compare(b.ID, a.ID))
	})
}

// symptom reports whether a finding is of what probes or packets of a flow met on their whole way, so that it names no
// place.
func symptom(f *inference.Finding) bool {
	switch f.Kind {
	case inference.ProbeLoss, inference.ProbeCorruption, inference.ProbeDelay:
		return f.Evidence == 0
	case inference.HighLatency, inference.LowLatency:
		return f.Evidence == 0 && f.Element.Kind == inference.FlowElement
	case inference.PacketDrops:
		return f.Evidence == 0 && f.Statistic == inference.MissingProbes
	}
	return false
}

// Finding is an [inference.Finding] in the form of the API: names instead of codes, milliseconds instead of
// nanoseconds, and empty for an absent value.
type Finding struct {
	ID        string  `json:"id"` // 16 hexadecimal digits, as everywhere
	Kind      string  `json:"kind"`
	Severity  string  `json:"severity"`
	StartMS   int64   `json:"start_ms"`
	UpdatedMS int64   `json:"updated_ms"`
	EndMS     int64   `json:"end_ms"` // 0 as long as the cause lasts
	Node      string  `json:"node,omitempty"`
	EgressIf  string  `json:"egress_if,omitempty"`
	Flow      string  `json:"flow,omitempty"`
	Path      string  `json:"path,omitempty"` // the flow's way, such as "13:1-6:2-14"
	Exporter  string  `json:"exporter,omitempty"`
	HWID      string  `json:"hw_id,omitempty"`
	Value     float64 `json:"value"`
	Baseline  float64 `json:"baseline"`
	Text      string  `json:"text"`
	Headline  string  `json:"headline"` // place and figures in one short line

	Element   *inference.Element `json:"element,omitempty"`  // absent where nothing can be named
	Cause     string             `json:"cause,omitempty"`    // id of the finding that explains this one
	Evidence  int                `json:"evidence,omitempty"` // findings that this one explains
	Learning  bool               `json:"learning,omitempty"`
	Resting   bool               `json:"resting,omitempty"` // as usual at present
	Statistic string             `json:"statistic,omitempty"`
}

// NewFinding returns a finding in the form of the API, with the names of nodes in its text.
func NewFinding(f *inference.Finding, n *names.Names) Finding {
	out := Finding{
		ID: f.IDText(), Kind: f.Kind.String(), Severity: f.Severity.String(),
		StartMS: f.Start / 1e6, UpdatedMS: max(f.Updated, f.Start) / 1e6, EndMS: f.End / 1e6,
		Flow: f.FlowText(), Path: f.PathText(), Value: atlas.Finite(f.Value), Baseline: atlas.Finite(f.Baseline), Text: n.Text(f.Text), Headline: n.Headline(f),
		Cause: f.CauseText(), Evidence: f.Evidence, Learning: f.Learning, Resting: f.Resting, Statistic: f.Statistic,
	}
	if f.Element.Kind != inference.NoElement {
		out.Element = &f.Element
	}
	if f.Exporter != (decode.Addr{}) {
		out.Exporter, out.HWID = f.Exporter.String(), strconv.Itoa(int(f.HWID))
	}
	place := inference.HopKey{Node: f.Node, EgressIf: f.EgressIf}
	if f.HasNode() {
		out.Node = place.NodeName()
	}
	switch {
	case f.Evidence > 0 && f.Element.Kind != inference.InterfaceElement: // a cause at a node or a link has no one interface
	case f.Kind == inference.HighLatency, f.Kind == inference.HighQueue, f.Kind == inference.LowLatency, f.Kind == inference.HighUtilization,
		f.Kind == inference.LowUtilization, f.Kind == inference.StuckValues, f.Kind == inference.HopSilence,
		f.Kind == inference.PathChanged && out.Flow == "": // many flows left the same hop
		out.EgressIf = place.EgressName()
	}
	return out
}

// NewFindings returns findings in the form of the API.
func NewFindings(list []inference.Finding, n *names.Names) []Finding {
	out := make([]Finding, len(list))
	for i := range list {
		out[i] = NewFinding(&list[i], n)
	}
	return out
}

// place returns the subject of a finding in few words.
func (f *Finding) place() string {
	switch {
	case f.Element != nil && f.Element.Kind != inference.NoElement:
		return f.Element.String()
	case f.Exporter != "":
		return "exporter " + f.Exporter
	case f.EgressIf != "":
		return "hop " + f.Node + ":" + f.EgressIf
	case f.Flow != "":
		return "flow " + f.Flow
	case f.Node != "":
		return "node " + f.Node
	}
	return "-"
}

// Finding returns the finding as the rules of alerts take it.
func (f *Finding) Finding() (out inference.Finding, err error) {
	if out.Kind, err = inference.ParseKind(f.Kind); err != nil {
		return out, err
	}
	if f.Element != nil {
		out.Element = *f.Element
	}
	if k, err := decode.ParseFlow(f.Flow); err == nil {
		out.Flow = k
	}
	if h, err := inference.ParseHop(f.Node); err == nil {
		out.Node = h.Node
	}
	return out, nil
}

// OpenFindings returns the open findings of an answer, as far as they can be read.
func OpenFindings(list []Finding) (out []inference.Finding) {
	for i := range list {
		x := &list[i]
		f, err := x.Finding()
		if err != nil || x.EndMS != 0 {
			continue
		}
		if f.Severity, err = inference.ParseSeverity(x.Severity); err != nil {
			continue
		}
		if f.ID, err = inference.ParseID(x.ID); err != nil {
			continue
		}
		if x.Cause != "" {
			if f.Cause, err = inference.ParseID(x.Cause); err != nil {
				continue
			}
		}
		if f.Path, err = inference.ParsePath(x.Path); err != nil {
			continue
		}
		f.Text, f.Start, f.Value, f.Evidence, f.Learning, f.Resting = x.Text, x.StartMS*1e6, x.Value, x.Evidence, x.Learning, x.Resting
		out = append(out, f)
	}
	return out
}

// unattended is the state of a finding that no rule concerns.
const unattended = "-"

// Unattended returns how many open findings need attention. They are at least as severe as least, and not evidence of
// another finding in the list. They do not rest, and the rules neither acknowledge nor mute them.
func Unattended(open []Finding, least inference.Severity, rules *notify.Rules, now time.Time) int {
	n, leads := 0, leads(open)
	for i := range open {
		f := &open[i]
		severity, err := inference.ParseSeverity(f.Severity)
		if err != nil {
			severity = inference.Critical // of a later version: a check that fails is better than one that is silent
		}
		if severity >= least && leads[i] == i && !f.Resting && f.state(rules, now) == unattended {
			n++
		}
	}
	return n
}

// state returns what operators did about a finding.
func (f *Finding) state(rules *notify.Rules, now time.Time) string {
	x, err := f.Finding()
	if err != nil {
		return unattended
	}
	acknowledged, muted := rules.Match(&x, time.UnixMilli(f.StartMS), now)
	switch {
	case muted != nil && muted.Until != "":
		return "muted until " + names.Printable(muted.Until)
	case muted != nil:
		return "muted"
	case acknowledged != nil && acknowledged.By != "":
		return "acknowledged by " + names.Printable(acknowledged.By)
	case acknowledged != nil:
		return "acknowledged"
	}
	return unattended
}
