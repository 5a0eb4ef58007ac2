package inference

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// ElementKind is the kind of an [Element]. The zero value is none.
type ElementKind uint8

// The kinds of elements. Names are kept by stores, so they do not change; new kinds come last.
const (
	NoElement        ElementKind = iota
	NodeElement                  // a switch or router
	InterfaceElement             // an interface by which packets leave a node
	LinkElement                  // what connects two nodes, in both directions
	ExporterElement              // an address that reports come from, or one of its sequence number spaces
	FlowElement                  // one flow
	RouteElement                 // packets to a prefix, or all those between two nodes
	CollectorElement             // the collector with what reports come to it by: socket, interface, firewall, network
)

var elementNames = [...]string{"none", "node", "interface", "link", "exporter", "flow", "route", "collector"}

// ElementKinds returns all kinds of elements, none first.
func ElementKinds() []ElementKind {
	return []ElementKind{NoElement, NodeElement, InterfaceElement, LinkElement, ExporterElement, FlowElement, RouteElement, CollectorElement}
}

// String returns the name, such as "link".
func (k ElementKind) String() string {
	if int(k) < len(elementNames) {
		return elementNames[k]
	}
	return "element(" + strconv.Itoa(int(k)) + ")"
}

// ParseElementKind reads what [ElementKind.String] writes.
func ParseElementKind(s string) (ElementKind, error) {
	return parseName(s, "kind of element", ElementKinds())
}

// Element is the subject of a finding: a part of the network or of its exporters. Equal elements have the same meaning,
// as long as they are made by the functions here. The zero value is no element.
type Element struct {
	Kind     ElementKind
	Node     uint32         // the node; of a link the lesser of both; of an exporter and of a route that of the first hop
	EgressIf uint32         // the interface; of a link that of Node, 0 where the two nodes have one link or it is unknown which
	Peer     uint32         // of a link the other node; of a route that of the last hop
	PeerIf   uint32         // of a link the interface of Peer, as EgressIf is that of Node
	Addr     decode.Addr    // of an exporter; of a route the first address of its prefix
	Bits     uint8          // of a route: the length of its prefix, counted in 128 bits
	HWID     uint8          // of an exporter
	Nameless bool           // of an exporter: no node is meant
	Flow     decode.FlowKey // the flow
}

// ElementOfNode is a whole node.
func ElementOfNode(node uint32) Element { return Element{Kind: NodeElement, Node: node} }

// ElementOfHop returns the interface by which packets leave a node, or the node if it did not name the interface.
func ElementOfHop(h HopKey) Element {
	switch {
	case h.Other:
		return Element{}
	case h.EgressIf == 0:
		return ElementOfNode(h.Node)
	}
	return Element{Kind: InterfaceElement, Node: h.Node, EgressIf: h.EgressIf}
}

// ElementOfLink is the link between two nodes, whichever is named first.
func ElementOfLink(a, b uint32) Element {
	return Element{Kind: LinkElement, Node: min(a, b), Peer: max(a, b)}
}

// ElementOfLinkAt is one of several links between two nodes, by the interfaces of both; 0 where one is not known.
func ElementOfLinkAt(a, b HopKey) Element {
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	return Element{Kind: LinkElement, Node: a.Node, EgressIf: a.EgressIf, Peer: b.Node, PeerIf: b.EgressIf}
}

// ElementOfAddress is an exporter with all of its sequence number spaces. It is also the one whose reports name neither
// a node nor a subsystem.
func ElementOfAddress(a decode.Addr) Element {
	return Element{Kind: ExporterElement, Addr: a, Nameless: true}
}

// ElementOfExporter is one sequence number space of an exporter.
func ElementOfExporter(k ExporterKey) Element {
	return Element{Kind: ExporterElement, Addr: k.Addr, Node: k.Node, HWID: k.HWID, Nameless: k.Nameless}
}

// ElementOfFlow is one flow.
func ElementOfFlow(k decode.FlowKey) Element { return Element{Kind: FlowElement, Flow: k} }

// ElementOfPrefix returns the element of all traffic to a prefix. An invalid prefix has no element.
func ElementOfPrefix(p netip.Prefix) Element {
	if !p.IsValid() {
		return Element{}
	}
	p = p.Masked()
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	return Element{Kind: RouteElement, Addr: decode.AddrFrom(p.Addr()), Bits: uint8(bits)}
}

// ElementOfRoute returns the element of all traffic that enters the network at one node and leaves it at another.
func ElementOfRoute(first, last uint32) Element {
	return Element{Kind: RouteElement, Node: first, Peer: last}
}

// ElementOfCollector is the collector, with what reports come to it by.
func ElementOfCollector() Element { return Element{Kind: CollectorElement} }

// Prefix is that of a route; it is not valid for other elements, nor for a route between two nodes.
func (e Element) Prefix() netip.Prefix {
	if e.Kind != RouteElement || e.Addr == (decode.Addr{}) && e.Bits == 0 {
		return netip.Prefix{}
	}
	a, bits := e.Addr.Netip(), int(e.Bits)
	if a.Is4() && bits >= 96 {
		return netip.PrefixFrom(a, bits-96)
	}
	return netip.PrefixFrom(netip.AddrFrom16(e.Addr), bits)
}

// Hop is the hop of a node, an interface or a link, for asking about it.
func (e Element) Hop() HopKey { return HopKey{Node: e.Node, EgressIf: e.EgressIf} }

// String returns the element as a part of a sentence: "node 7", "interface 7:3", "link 7–9" (or "link 7:3–9:1" if the
// nodes have several), "exporter 10.0.0.1", "exporter 10.0.0.1 hardware 2", "exporter 10.0.0.1 node 7 hardware 0",
// "flow 10.0.0.1:80 > 10.0.0.2:5001 tcp", "route 10.1.0.0/16", "route 7 to 9", "collector". It returns "" for none.
func (e Element) String() string {
	switch e.Kind {
	case NodeElement:
		return fmt.Sprintf("node %d", e.Node)
	case InterfaceElement:
		return "interface " + strconv.FormatUint(uint64(e.Node), 10) + ":" + strconv.FormatUint(uint64(e.EgressIf), 10)
	case LinkElement:
		return fmt.Sprintf("link %s–%s", e.Hop(), HopKey{Node: e.Peer, EgressIf: e.PeerIf})
	case ExporterElement:
		return ExporterKey{Addr: e.Addr, Node: e.Node, HWID: e.HWID, Nameless: e.Nameless}.String()
	case FlowElement:
		return "flow " + e.Flow.String()
	case RouteElement:
		if p := e.Prefix(); p.IsValid() {
			return "route " + p.String()
		}
		return fmt.Sprintf("route %d to %d", e.Node, e.Peer)
	case CollectorElement:
		return "collector"
	}
	return ""
}

// ParseElement reads what [Element.String] writes. A link may be written with a hyphen, and its nodes in any order.
func ParseElement(s string) (Element, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return Element{}, nil
	}
	kind, rest, _ := strings.Cut(text, " ")
	if e, ok := parseElement(kind, strings.TrimSpace(rest)); ok {
		return e, nil
	}
	return Element{}, fmt.Errorf("%q is no element such as node 7, interface 7:3, link 7–9, exporter 10.0.0.1, route 10.1.0.0/16, route 7 to 9 or flow 10.0.0.1:80 > 10.0.0.2:5001 tcp", s)
}

func parseElement(kind, rest string) (e Element, ok bool) {
	switch kind {
	case "node":
		n, err := strconv.ParseUint(rest, 10, 32)
		return ElementOfNode(uint32(n)), err == nil
	case "interface":
		node, egress, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(node, 10, 32)
		i, err2 := strconv.ParseUint(egress, 10, 32)
		return Element{Kind: InterfaceElement, Node: uint32(n), EgressIf: uint32(i)}, err == nil && err2 == nil
	case "link":
		near, far, both := strings.Cut(strings.Replace(rest, "–", "-", 1), "-")
		a, err := ParseHop(near)
		b, err2 := ParseHop(far)
		return ElementOfLinkAt(a, b), both && err == nil && err2 == nil && !a.Other && !b.Other
	case "exporter":
		return parseExporter(strings.Fields(rest))
	case "flow":
		f, err := decode.ParseFlow(rest)
		return ElementOfFlow(f), err == nil
	case "route":
		if p, err := netip.ParsePrefix(rest); err == nil {
			return ElementOfPrefix(p), true
		}
		from, to, _ := strings.Cut(rest, " to ")
		a, err := strconv.ParseUint(from, 10, 32)
		b, err2 := strconv.ParseUint(to, 10, 32)
		return ElementOfRoute(uint32(a), uint32(b)), err == nil && err2 == nil
	case "collector":
		return ElementOfCollector(), rest == ""
	}
	return Element{}, false
}

func parseExporter(words []string) (e Element, ok bool) {
	named := len(words) == 5 && words[1] == "node"
	if n := len(words); n != 1 && (n != 3 && !named || words[n-2] != "hardware") {
		return e, false
	}
	a, err := netip.ParseAddr(words[0])
	if err != nil || a.Zone() != "" {
		return e, false
	}
	e = ElementOfAddress(decode.AddrFrom(a))
	var node, hardware uint64
	if named {
		node, err = strconv.ParseUint(words[2], 10, 32)
		e.Node, e.Nameless = uint32(node), false
	}
	if len(words) > 1 && err == nil {
		hardware, err = strconv.ParseUint(words[len(words)-1], 10, 8)
		e.HWID = uint8(hardware)
	}
	return e, err == nil
}

// Compare orders elements by kind and then by what they name.
func (e Element) Compare(o Element) int {
	if c := cmp.Or(cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Node, o.Node), cmp.Compare(e.EgressIf, o.EgressIf), cmp.Compare(e.Peer, o.Peer), cmp.Compare(e.PeerIf, o.PeerIf)); c != 0 {
		return c
	}
	return cmp.Or(e.Addr.Compare(o.Addr), cmp.Compare(e.HWID, o.HWID), compareBools(o.Nameless, e.Nameless), cmp.Compare(e.Bits, o.Bits), e.Flow.Compare(&o.Flow))
}
