package world

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/cause"
)

// Outcome is the result of one scenario with one seed.
type Outcome struct {
	Scenario string `json:"scenario"`
	Kind     string `json:"kind"`
	Seed     uint64 `json:"seed"`
	Benign   bool   `json:"benign,omitempty"`
	Real     bool   `json:"real,omitempty"`

	Named    bool   `json:"named"` // an element that may be named led the list, from then on in half of the windows with a list or more, and each of several is in it
	Delay    int    `json:"delay"` // windows from when it can be known until it leads; -1 if it never does
	Listed   bool   `json:"told"`  // an element that may be named is in the list at all
	Severity string `json:"severity,omitempty"`
	Want     string `json:"want,omitempty"`

	Critical int         `json:"critical"`           // statements about healthy elements, over the whole run; benign: about any element of the network
	False    []Statement `json:"false,omitempty"`    // about healthy elements, from the beginning of what happens on
	InQuiet  []Statement `json:"in_quiet,omitempty"` // before
	Right    []Statement `json:"right,omitempty"`
	Beside   []Statement `json:"beside,omitempty"` // about elements that are touched
	Hours    float64     `json:"element_hours"`
	Reports  int         `json:"reports"`
	Refused  int         `json:"refused"`
}

// Statement is a finding without a cause, as it was published last.
type Statement struct {
	Window   int    `json:"window"` // of its start, from when it happens
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Element  string `json:"element"`
	Text     string `json:"text"`
}

// alternatives reports whether the elements that may be named cannot be distinguished. Where as many things happen as
// are named, each has to be in the list.
func (s *Scenario) alternatives() bool { return len(s.truth) > max(len(s.faults), 1) }

// severityRight reports whether the severity is that of the truth.
func (o *Outcome) severityRight() bool { return o.Listed && (o.Want == "any" || o.Want == o.Severity) }

// judge judges the findings of one world.
type judge struct {
	x           *world
	all         map[uint64]*inference.Finding // as published last
	order       []uint64
	worst       map[uint64]inference.Severity
	leads       []bool // by window of what happens: an element that may be named leads
	listed      []bool // the list is not empty
	truthListed []bool // by truth
	highest     inference.Severity
}

// Offered runs one scenario and calls each for every element that is considered for a finding. It passes the
// finding's id, the window from which it counts, the offer, and whether the element may be named.
func Offered(ctx context.Context, s *Scenario, seed uint64, each func(id, window uint64, o cause.Offer, right bool)) error {
	_, err := run(ctx, s, seed, each)
	return err
}

// Run lets one scenario happen.
func Run(ctx context.Context, s *Scenario, seed uint64) (*Outcome, error) {
	return run(ctx, s, seed, nil)
}

func run(ctx context.Context, s *Scenario, seed uint64, each func(id, window uint64, o cause.Offer, right bool)) (*Outcome, error) {
	x := newWorld(s, seed)
	p, err := newPipeline()
	if err != nil {
		return nil, err
	}
	j := &judge{x: x, all: map[uint64]*inference.Finding{}, worst: map[uint64]inference.Severity{}, truthListed: make([]bool, len(s.truth))}
	at := func(t float64) int64 { return start + int64(t*1e9) }
	w := -s.quiet
	if each != nil {
		p.detector.Offered(func(f *inference.Finding, o cause.Offer) {
			if w >= 0 && f.Start >= at(0) {
				each(f.ID, uint64(w), o, j.happened(o.Element))
			}
		})
	}
	for ; w < s.Length+s.after; w++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from, to := float64(w)*s.Window, float64(w+1)*s.Window
		x.run(to, func(d *datagram) { p.datagram(d, at(d.at)) })
		j.window(w, p.cut(at(from), at(to)))
	}
	o := j.outcome(seed)
	o.Reports, o.Refused = p.reports, p.refused
	return o, nil
}

func (j *judge) window(w int, news []inference.Finding) {
	for i := range news {
		f := new(inference.Finding)
		*f = news[i] // the detector uses its list again
		if _, known := j.all[f.ID]; !known {
			j.order = append(j.order, f.ID)
		}
		j.all[f.ID] = f
		j.worst[f.ID] = max(j.worst[f.ID], f.Severity)
	}
	if w < 0 || w >= j.x.s.Length+j.x.s.after {
		return
	}
	var list []*inference.Finding
	for _, id := range j.order {
		if f := j.all[id]; f.End == 0 && f.Cause == 0 && !f.Learning {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *inference.Finding) int { // as the page has it
		rests := func(f *inference.Finding) int {
			if f.Resting {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rests(a), rests(b)), cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Start, a.Start), cmp.Compare(b.ID, a.ID))
	})
	j.leads = append(j.leads, len(list) > 0 && j.acceptable(list[0]))
	j.listed = append(j.listed, len(list) > 0)
	for _, f := range list {
		for i := range j.x.s.truth {
			if j.names(f, &j.x.s.truth[i]) {
				j.truthListed[i] = true
				j.highest = max(j.highest, j.worst[f.ID])
			}
		}
	}
}

func (j *judge) outcome(seed uint64) *Outcome {
	s := j.x.s
	o := &Outcome{Scenario: s.Name, Kind: s.Kind, Seed: seed, Benign: s.benign, Real: s.Real, Delay: -1, Listed: slices.Contains(j.truthListed, true), Want: s.Severity}
	if o.Listed {
		o.Severity = j.highest.String()
	}
	for w, leads := range j.leads[:s.Length] {
		if !leads {
			continue
		}
		o.Delay = max(w-s.known, 0)
		led, listed := 0, 0
		for k := w; k < s.Length; k++ {
			if j.leads[k] {
				led++
			}
			if j.listed[k] {
				listed++
			}
		}
		o.Named = 2*led >= listed && (s.alternatives() || !slices.Contains(j.truthListed, false))
		break
	}
	for _, id := range j.order {
		f := j.all[id]
		if f.Cause != 0 || f.Learning {
			continue
		}
		// A finding starts at the end of its window.
		w := int(math.Round(float64(f.Start-start)/1e9/s.Window)) - 1
		statement := Statement{w, f.Kind.String(), j.worst[id].String(), f.Element.String(), f.Text}
		critical := j.worst[id] == inference.Critical
		switch {
		case w < 0:
			o.InQuiet = append(o.InQuiet, statement)
		case j.acceptable(f):
			o.Right = append(o.Right, statement)
			critical = false
		case s.benign && f.Element.Kind == inference.ExporterElement:
			critical = false
		case j.bundle(f) || !critical && j.conditional(f) || j.around(f):
			o.Beside = append(o.Beside, statement)
			critical = false
		case j.touched(f) && !(s.benign && critical):
			o.Beside = append(o.Beside, statement)
			critical = false
		default:
			o.False = append(o.False, statement)
		}
		if critical {
			o.Critical++
		}
	}
	elements := 0
	for i := range j.x.net.nodes {
		elements += 2 + len(j.x.net.nodes[i].hosts) // the node, its exporter, its ports towards hosts
	}
	elements += (len(j.x.net.ports) - elements + 2*len(j.x.net.nodes)) / 2 // links
	o.Hours = float64(elements) * float64(s.quiet-360+s.Length+s.after) * s.Window / 3600
	if s.quiet < 360 {
		o.Hours = float64(elements) * float64(s.Length+s.after) * s.Window / 3600
	}
	return o
}

// acceptable reports whether a finding names an element that may be named. Of a link either of its interfaces, too,
// and of an interface the link behind it.
func (j *judge) acceptable(f *inference.Finding) bool {
	for i := range j.x.s.truth {
		if j.names(f, &j.x.s.truth[i]) {
			return true
		}
	}
	return false
}

// happened reports whether an event happened to exactly this element. An event at an interface does not count for its
// link, nor one at a link for its interfaces.
func (j *judge) happened(e inference.Element) bool {
	f := &inference.Finding{Element: e}
	return slices.ContainsFunc(j.x.s.truth, func(t truth) bool {
		switch t.kind {
		case "link":
			return e.Kind == inference.LinkElement && (j.names(f, &t) || j.bundle(f))
		case "port", "host":
			return e.Kind == inference.InterfaceElement && j.names(f, &t)
		}
		return j.names(f, &t)
	})
}

func (j *judge) names(f *inference.Finding, t *truth) bool {
	n, e := j.x.net, f.Element
	switch t.kind {
	case "node":
		return e.Kind == inference.NodeElement && e.Node == n.nodes[t.node].id
	case "exporter":
		return e.Kind == inference.ExporterElement && e.Addr == decode.AddrFrom(n.nodes[t.node].addr)
	case "link", "port":
		p := &n.ports[t.port]
		own := e.Kind == inference.InterfaceElement && e.Node == n.nodes[p.node].id && e.EgressIf == p.number
		if p.peer < 0 {
			return own
		}
		q := &n.ports[p.back]
		if !own && t.kind == "link" {
			own = e.Kind == inference.InterfaceElement && e.Node == n.nodes[q.node].id && e.EgressIf == q.number
		}
		return own || e.Kind == inference.LinkElement && j.isLink(e, t.port)
	case "host":
		p := &n.ports[t.port]
		if e.Kind == inference.InterfaceElement {
			return e.Node == n.nodes[p.node].id && e.EgressIf == p.number
		}
		return e.Kind == inference.RouteElement && e.Prefix().IsValid() && e.Prefix().Contains(p.host) && e.Prefix().IsSingleIP()
	case "flow":
		for _, g := range j.x.flows {
			if g.name == t.flow && e.Kind == inference.FlowElement && e.Flow == g.key() {
				return true
			}
		}
	case "route":
		a, b := &n.nodes[t.node], &n.nodes[t.peer]
		if e.Kind != inference.RouteElement {
			return false
		}
		if p := e.Prefix(); p.IsValid() {
			return p.Contains(n.ports[b.hosts[0]].host) && !p.Contains(n.ports[a.hosts[0]].host)
		}
		return e.Node == a.id && e.Peer == b.id
	case "collector":
		return e.Kind.String() == "collector"
	}
	return false
}

// isLink reports whether an element is the link that a port leads over. Where nodes have several, its interfaces have
// to agree as far as they are named, and one of them has to be named.
func (j *judge) isLink(e inference.Element, port int) bool {
	n := j.x.net
	p := &n.ports[port]
	q := &n.ports[p.back]
	a, b := inference.HopKey{Node: n.nodes[p.node].id, EgressIf: p.number}, inference.HopKey{Node: n.nodes[q.node].id, EgressIf: q.number}
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	if e.Node != a.Node || e.Peer != b.Node || e.EgressIf != 0 && e.EgressIf != a.EgressIf || e.PeerIf != 0 && e.PeerIf != b.EgressIf {
		return false
	}
	return e.EgressIf != 0 || e.PeerIf != 0 || j.x.s.shape.lag == 1
}

// bundle reports whether a finding names all lines between two nodes where one of them may be named: neither right
// nor false.
func (j *judge) bundle(f *inference.Finding) bool {
	n, e := j.x.net, f.Element
	return e.Kind == inference.LinkElement && e.EgressIf == 0 && e.PeerIf == 0 && slices.ContainsFunc(j.x.s.truth, func(t truth) bool {
		if t.port < 0 || n.ports[t.port].peer < 0 {
			return false
		}
		a, b := n.nodes[n.ports[t.port].node].id, n.nodes[n.ports[t.port].peer].id
		return e.Node == min(a, b) && e.Peer == max(a, b)
	})
}

// conditional reports whether a loss is found at a node whose reports, or whose packets' names, changed. Such a
// finding includes the change.
func (j *judge) conditional(f *inference.Finding) bool {
	if f.Kind != inference.PacketLoss || f.Element.Kind == inference.LinkElement || f.Element.Kind == inference.FlowElement {
		return false
	}
	for i := range j.x.net.nodes {
		if j.x.net.nodes[i].id == f.Element.Node && j.x.reporting[i] {
			return true
		}
	}
	return false
}

// around reports whether a finding names the node of a port towards a host that may be named: not right, and not healthy.
func (j *judge) around(f *inference.Finding) bool {
	n := j.x.net
	return f.Element.Kind == inference.NodeElement && slices.ContainsFunc(j.x.s.truth, func(t truth) bool {
		return t.port >= 0 && n.ports[t.port].peer < 0 && n.nodes[n.ports[t.port].node].id == f.Element.Node
	})
}

// touched reports whether an event of a fitting kind touches the element of a finding.
func (j *judge) touched(f *inference.Finding) bool {
	for i := range j.x.s.touched {
		if j.names(f, &j.x.s.touched[i]) {
			return true
		}
	}
	x, n, e := j.x, j.x.net, f.Element
	node := slices.IndexFunc(n.nodes, func(v node) bool { return v.id == e.Node })
	switch f.Kind {
	case inference.PacketLoss, inference.BlackHole, inference.InventoryError, inference.StrangeDigests, inference.OffPolicy:
		return false
	case inference.PacketDrops:
		return node >= 0 && x.dropped[node]
	case inference.RoutingLoop:
		return node >= 0 && x.troubled[node] || e.Kind == inference.FlowElement && x.moved[e.Flow]
	case inference.ExporterLoss, inference.ExporterSilence:
		for i := range n.nodes {
			if decode.AddrFrom(n.nodes[i].addr) == e.Addr {
				return x.exporters[i]
			}
		}
		return false
	}
	weak := f.Kind != inference.HighLatency && f.Kind != inference.HighQueue && f.Kind != inference.HighUtilization
	is := func(p int) bool { return x.changed[p] || weak && x.passed[p] }
	switch e.Kind {
	case inference.FlowElement:
		return x.moved[e.Flow]
	case inference.InterfaceElement:
		for i := range n.ports {
			if n.ports[i].node == node && n.ports[i].number == e.EgressIf {
				return is(i)
			}
		}
	case inference.LinkElement:
		for i := range n.ports {
			if n.ports[i].peer >= 0 && j.isLink(e, i) && (is(i) || is(n.ports[i].back)) {
				return true
			}
		}
	case inference.NodeElement:
		if node < 0 {
			return false
		}
		if x.troubled[node] {
			return true
		}
		hit := 0
		for _, p := range n.nodes[node].ports {
			if is(p) {
				hit++
			}
		}
		return f.Kind == inference.PathChanged && hit > 0 || 2*hit > len(n.nodes[node].ports)
	case inference.RouteElement:
		for k := range x.moved {
			if p := e.Prefix(); p.IsValid() && p.Contains(unmapped(k.Dst)) || !e.Prefix().IsValid() {
				return true
			}
		}
	}
	return false
}

func unmapped(a decode.Addr) netip.Addr { return a.Netip() }

func (s Statement) String() string {
	return fmt.Sprintf("%+d %s %s at %s: %s", s.Window, s.Severity, s.Kind, s.Element, s.Text)
}
