package names

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Headline returns a finding in one line that is read at a glance, such as "Queue at leaf-5, port 3: 53.8 kB, usually
// empty". It has the place by its name alone, and Value beside Baseline with three digits and a unit. Of a cause these
// are the figures of its leading symptom, at the place of that.
func (n *Names) Headline(f *inference.Finding) string {
	m := n.measureOf(f)
	element := f.Element
	if element.Kind == inference.NoElement {
		element = subjectOf(f)
	}
	seen := element
	if f.SeenAt.Kind != inference.NoElement {
		seen = f.SeenAt
	}
	of, ofFault := ": ", " "     // what stands before the value
	if f.Resting || f.End != 0 { // the value is that of before
		of, ofFault = ": was ", " "+was(m.what)
	}
	if m.value == "" {
		of, ofFault = "", ""
	}
	var b strings.Builder
	if seen == element {
		b.WriteString(capital(m.what) + n.at(seen) + of + m.value)
	} else {
		b.WriteString("Fault" + n.at(element) + ": " + m.what + ofFault + m.value + n.at(seen))
	}
	if m.beside != "" {
		b.WriteString(", " + m.beside)
	}
	return b.String()
}

// was returns the verb of a former value of what is named by a noun, which is in the plural in "lost packets" and "drops".
func was(what string) string {
	for i, word := range strings.Fields(what) {
		if i < 2 && strings.HasSuffix(word, "s") {
			return "were "
		}
	}
	return "was "
}

// measure is what a headline states, apart from the place.
type measure struct {
	what   string // a noun, which the place follows
	value  string // "" where there is none
	beside string // the usual value, the limit or the reason; "" where there is none
}

// measureOf returns what a finding states.
func (n *Names) measureOf(f *inference.Finding) (m measure) {
	switch f.Kind {
	case inference.HighLatency, inference.LowLatency:
		m = usual(f, statisticOf(f, "latency"), duration)
		if f.Statistic == "time on the link" {
			m.what, m.value = "time", suffix(m.value, " there and back")
		}
	case inference.ProbeDelay:
		m = usual(f, statisticOf(f, "probe delay"), duration)
	case inference.HighQueue:
		m = usual(f, statisticOf(f, "queue"), size)
		if m.beside == "usually 0 B" {
			m.beside = "usually empty"
		}
	case inference.HighUtilization, inference.LowUtilization:
		m = usual(f, "link use", share)
	case inference.StuckValues:
		m = stuck(f)
	case inference.HopSilence:
		m.what = "no packets"
	case inference.ExporterSilence:
		m = silence(f)
	case inference.ExporterLoss:
		m = limited(f, "lost reports")
	case inference.PacketLoss:
		m = limited(f, "lost packets")
		if f.SeenAt.Kind != inference.LinkElement && (f.SeenAt.Kind != inference.NoElement || f.Element.Kind != inference.LinkElement) {
			m.what = "packets without a last report" // lost, or not recognised
		}
	case inference.BlackHole:
		m = limited(f, "vanished packets")
	case inference.ProbeLoss:
		m = limited(f, "lost probes")
	case inference.ProbeCorruption:
		m = limited(f, "damaged probes")
	case inference.InterfaceErrors, inference.InterfaceDiscards:
		m = counted(f)
	case inference.PacketDrops:
		m = n.drops(f)
	case inference.StrangeDigests:
		m = measure{what: "digests that fit no path", value: count(f.Value, "a window")}
	case inference.RoutingLoop:
		m = measure{what: "looping packets", value: count(f.Value, "a window")}
	case inference.InventoryError:
		m = measure{what: "wrong topology", value: plural(f.Value, "flow")}
	case inference.OffPolicy:
		m = measure{what: "way off policy", value: plural(f.Value, "flow")}
	case inference.PathChanged:
		m.what = "change of path"
		switch f.Element.Kind {
		case inference.NoElement: // the value is of changes or of flows
		case inference.FlowElement:
			if f.Value > 1 {
				m.value = count(f.Value, "times")
			}
		default:
			m.value = plural(f.Value, "flow")
		}
	default:
		m.what = cmp.Or(f.Kind.String(), "finding")
	}
	return m
}

// usual is a value beside the usual one.
func usual(f *inference.Finding, what string, write func(float64) string) measure {
	m := measure{what: what, value: write(f.Value)}
	if b := write(f.Baseline); b != "" {
		m.beside = "usually " + b
	}
	return m
}

// limited is a share beside the limit of the settings.
func limited(f *inference.Finding, what string) measure {
	m := measure{what: what, value: share(f.Value)}
	if b := share(f.Baseline); b != "" && f.Baseline > 0 {
		m.beside = "limit " + b
	}
	return m
}

// statisticOf puts the statistic before the quantity, unless it is the median.
func statisticOf(f *inference.Finding, quantity string) string {
	switch name, _, _ := strings.Cut(f.Statistic, " "); name {
	case "p99", "lowest":
		return name + " " + quantity
	}
	return quantity
}

func stuck(f *inference.Finding) measure {
	write := duration
	switch f.Statistic {
	case "queue":
		write = size
	case "utilisation":
		write = share
	}
	return measure{what: "unchanging " + strings.TrimSpace(f.Statistic), value: write(f.Value)}
}

func silence(f *inference.Finding) measure {
	m := measure{what: "no reports", value: plural(f.Value, "window")}
	if f.Element.Kind == inference.CollectorElement {
		m.what = "no reports of several exporters"
	} else if f.Baseline > 0 {
		m.beside = "longest pause before " + plural(f.Baseline, "window")
	}
	return m
}

// counted is what the counters of an interface count. A share of 1 also stands for packets that are not counted.
func counted(f *inference.Finding) measure {
	what, way, _ := strings.Cut(f.Statistic, " ")
	m := limited(f, way+"bound "+what)
	if f.Value >= 1 {
		m.value, m.beside = "", ""
	}
	return m
}

func (n *Names) drops(f *inference.Finding) measure {
	if f.Statistic == inference.MissingProbes || f.Statistic == inference.UnsentProbes {
		return measure{what: f.Statistic, value: count(f.Value, "a window")}
	}
	return measure{what: "drops", value: count(f.Value, "a window"), beside: n.ReasonWords(f.Node, f.Reason)}
}

// ReasonWords returns the reason for which a node drops packets in words, "no route", and "reason 25" where it has none.
func (n *Names) ReasonWords(node uint32, r uint8) string {
	if x, ok := n.Find(node); ok && x.DropReasons[r] != "" {
		return x.DropReasons[r]
	}
	if n != nil && n.reasons[r] != "" {
		return n.reasons[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// subjectOf returns the place of a finding without an element.
func subjectOf(f *inference.Finding) inference.Element {
	switch {
	case f.Flow != decode.FlowKey{} && f.Kind != inference.PacketDrops:
		return inference.ElementOfFlow(f.Flow)
	case f.HasNode():
		return inference.ElementOfHop(inference.HopKey{Node: f.Node, EgressIf: f.EgressIf})
	}
	return inference.Element{}
}

// at returns a place behind its preposition, " at leaf-5, port 3", and "" for no place.
func (n *Names) at(e inference.Element) string {
	switch e.Kind {
	case inference.NodeElement, inference.InterfaceElement:
		return " at " + n.hop(e.Hop())
	case inference.LinkElement:
		return " on link " + n.hop(e.Hop()) + " – " + n.hop(inference.HopKey{Node: e.Peer, EgressIf: e.PeerIf})
	case inference.RouteElement:
		if p := e.Prefix(); p.IsValid() {
			return " on the route to " + p.String()
		}
		return " on the route from " + n.hop(inference.HopKey{Node: e.Node}) + " to " + n.hop(inference.HopKey{Node: e.Peer})
	case inference.ExporterElement:
		at := " of exporter " + e.Addr.String()
		if d, ok := n.Find(e.Node); ok && d.Name != "" && !e.Nameless {
			at += ", " + d.Name
		} else if !e.Nameless {
			at += ", " + n.hop(inference.HopKey{Node: e.Node})
		}
		return at
	case inference.FlowElement:
		return " of flow " + e.Flow.String()
	}
	return "" // the collector is where it is read
}

// hop returns a node with its interface by their names: "leaf-5, Ethernet3", "leaf-5, port 3", "node 5".
func (n *Names) hop(k inference.HopKey) string {
	d, _ := n.Find(k.Node)
	at := d.Name
	if at == "" {
		at = "node " + n.number(k.Node)
	}
	if k.EgressIf == 0 {
		return at
	}
	if i, _ := n.FindInterface(k.Node, k.EgressIf); i.Name != "" {
		return at + ", " + i.Name
	}
	return at + ", port " + strconv.FormatUint(uint64(k.EgressIf), 10)
}

// capital begins a word with a capital letter, unless it is a symbol such as p99.
func capital(s string) string {
	if strings.HasPrefix(s, "p99") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func suffix(s, behind string) string {
	if s == "" {
		return ""
	}
	return s + behind
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// duration writes ns: "1.23 ms".
func duration(ns float64) string { return scaled(ns, "ns", "µs", "ms", "s") }

// size writes bytes: "53.8 kB".
func size(b float64) string { return scaled(b, "B", "kB", "MB", "GB", "TB") }

// scaled writes a value with three digits in the greatest unit, of steps of 1000, that keeps it at 1 or more.
func scaled(v float64, units ...string) string {
	if !finite(v) {
		return ""
	}
	v = inference.Round(v)
	i := 0
	for math.Abs(v) >= 1000 && i < len(units)-1 {
		v, i = inference.Round(v/1000), i+1
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + " " + units[i]
}

func share(v float64) string {
	if !finite(v) {
		return ""
	}
	return inference.Percent(v, 3)
}

func plural(v float64, what string) string {
	if v == 1 {
		return "1 " + what
	}
	return count(v, what+"s")
}

// count writes a number with what is counted, and "" for none.
func count(v float64, what string) string {
	if !finite(v) || v <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", strconv.FormatFloat(inference.Round(v), 'f', -1, 64), what)
}
