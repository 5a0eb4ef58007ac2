// Package names maps the numbers of nodes, interfaces and hosts in reports to the names that operators use. Names are
// for display only. They are inserted where a text is shown, with the number beside them, "leaf-3 (17)". Numbers are
// stored, compared and computed, so that a node which gets another name stays the same node.
//
// Names come from a file of the operator, perhaps made of the devices' own names. [Clean] makes them fit to be shown.
package names

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopscope/hopscope/inference"
)

// MaxName bounds a name, in characters.
const MaxName = 64

// Node holds the names of a node and its interfaces.
type Node struct {
	ID         uint32      `json:"id"`
	Name       string      `json:"name,omitempty"`
	Site       string      `json:"site,omitempty"`
	Interfaces []Interface `json:"interfaces,omitempty"`
	// DropReasons holds the node's own names of drop reasons. They go before those that all nodes share.
	DropReasons map[uint8]string `json:"drop_reasons,omitempty"`
}

// Interface holds the name and the speed of an interface of a node.
type Interface struct {
	ID    uint32  `json:"id"`
	Name  string  `json:"name,omitempty"`
	Speed float64 `json:"speed,omitempty"` // bits a second; 0 where unknown
}

// Host names the hosts of a prefix, which may be a single one.
type Host struct {
	Prefix netip.Prefix `json:"prefix"`
	Name   string       `json:"name"`
	Site   string       `json:"site,omitempty"`
}

// Document is names as JSON has them, in the form of an inventory.
type Document struct {
	Nodes       []Node           `json:"nodes"`
	Hosts       []Host           `json:"hosts"`
	DropReasons map[uint8]string `json:"drop_reasons"`
	Sites       []Site           `json:"sites,omitempty"` // whose nodes have numbers of their own
}

// Names returns the names of a document of any origin.
func (d *Document) Names() *Names { return New(d.Nodes, d.Hosts, d.DropReasons).WithSites(d.Sites) }

// Document returns all names. It shares memory with n.
func (n *Names) Document() Document {
	d := Document{Nodes: []Node{}, Hosts: []Host{}, DropReasons: map[uint8]string{}}
	if n != nil {
		d.Nodes, d.Hosts, d.DropReasons = append(d.Nodes, n.nodes...), append(d.Hosts, n.hosts...), n.reasons
		d.Sites = n.sites
	}
	return d
}

// WithReasons returns n with names for those drop reasons that n has none for.
func (n *Names) WithReasons(more map[uint8]string) *Names {
	if len(more) == 0 {
		return n
	}
	d := n.Document()
	reasons := maps.Clone(more)
	maps.Copy(reasons, d.DropReasons)
	return New(d.Nodes, d.Hosts, reasons).WithSites(d.Sites)
}

// WithNodes returns n with the devices' own entries, where n has none: names of nodes and interfaces, and speeds.
func (n *Names) WithNodes(more []Node) *Names {
	if len(more) == 0 {
		return n
	}
	d := n.Document()
	at := make(map[uint32]int, len(d.Nodes)+len(more))
	for i := range d.Nodes {
		at[d.Nodes[i].ID] = i
	}
	ports, own := map[[2]uint32]int{}, map[uint32]bool{}
	for _, m := range more {
		i, ok := at[m.ID]
		if !ok {
			i = len(d.Nodes)
			at[m.ID] = i
			d.Nodes = append(d.Nodes, Node{ID: m.ID})
		}
		to := &d.Nodes[i]
		to.Name, to.Site = cmp.Or(to.Name, m.Name), cmp.Or(to.Site, m.Site)
		if !own[m.ID] { // what it has is n's
			own[m.ID], to.Interfaces, to.DropReasons = true, slices.Clone(to.Interfaces), maps.Clone(to.DropReasons)
			for k, f := range to.Interfaces {
				ports[[2]uint32{m.ID, f.ID}] = k
			}
		}
		for r, why := range m.DropReasons {
			if to.DropReasons == nil {
				to.DropReasons = map[uint8]string{}
			}
			to.DropReasons[r] = cmp.Or(to.DropReasons[r], why)
		}
		for _, f := range m.Interfaces {
			key := [2]uint32{m.ID, f.ID}
			k, ok := ports[key]
			if !ok {
				k, ports[key] = len(to.Interfaces), len(to.Interfaces)
				to.Interfaces = append(to.Interfaces, Interface{ID: f.ID})
			}
			had := &to.Interfaces[k]
			had.Name, had.Speed = cmp.Or(had.Name, f.Name), cmp.Or(had.Speed, f.Speed)
		}
	}
	return New(d.Nodes, d.Hosts, d.DropReasons).WithSites(d.Sites)
}

// Names holds all names at one time. It never changes; nil has none and returns numbers.
type Names struct {
	nodes   []Node // by ID, the interfaces of each by ID
	hosts   []Host // longest prefix first
	reasons map[uint8]string
	sites   Sites
}

// New makes names of the listed entries. Texts are cleaned. Of entries for the same thing the first one counts: the
// reader of a file reports what is wrong with it.
func New(nodes []Node, hosts []Host, reasons map[uint8]string) *Names {
	n := &Names{reasons: make(map[uint8]string, len(reasons))}
	for _, d := range nodes {
		d.Name, d.Site = Clean(d.Name), Clean(d.Site)
		d.Interfaces = slices.Clone(d.Interfaces)
		for i := range d.Interfaces {
			d.Interfaces[i].Name = Clean(d.Interfaces[i].Name)
		}
		d.DropReasons = maps.Clone(d.DropReasons)
		for r, why := range d.DropReasons {
			d.DropReasons[r] = Clean(why)
		}
		slices.SortStableFunc(d.Interfaces, func(a, b Interface) int { return cmp.Compare(a.ID, b.ID) })
		d.Interfaces = slices.CompactFunc(d.Interfaces, func(a, b Interface) bool { return a.ID == b.ID })
		n.nodes = append(n.nodes, d)
	}
	slices.SortStableFunc(n.nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	n.nodes = slices.CompactFunc(n.nodes, func(a, b Node) bool { return a.ID == b.ID })
	for _, h := range hosts {
		n.hosts = append(n.hosts, Host{h.Prefix.Masked(), Clean(h.Name), Clean(h.Site)})
	}
	slices.SortStableFunc(n.hosts, func(a, b Host) int { return cmp.Compare(b.Prefix.Bits(), a.Prefix.Bits()) })
	for r, name := range reasons {
		n.reasons[r] = Clean(name)
	}
	return n
}

// Clean makes a name fit to be shown. The result is valid UTF-8 of at most [MaxName] characters. It has no control
// characters, no invisible ones that change the direction of text, and no white space around it.
func Clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '\u2028' || r == '\u2029' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if r := []rune(name); len(r) > MaxName {
		name = string(r[:MaxName-1]) + "…"
	}
	return strings.TrimSpace(name)
}

// Len is the number of nodes, interfaces and hosts that have an entry.
func (n *Names) Len() (count int) {
	if n == nil {
		return 0
	}
	for i := range n.nodes {
		count += 1 + len(n.nodes[i].Interfaces)
	}
	return count + len(n.hosts)
}

// Find returns what is known of a node.
func (n *Names) Find(id uint32) (Node, bool) {
	if n == nil {
		return Node{}, false
	}
	i, ok := slices.BinarySearchFunc(n.nodes, id, func(d Node, id uint32) int { return cmp.Compare(d.ID, id) })
	if !ok {
		return Node{}, false
	}
	return n.nodes[i], true
}

// FindInterface returns what is known of an interface.
func (n *Names) FindInterface(node, id uint32) (Interface, bool) {
	d, _ := n.Find(node)
	i, ok := slices.BinarySearchFunc(d.Interfaces, id, func(f Interface, id uint32) int { return cmp.Compare(f.ID, id) })
	if !ok {
		return Interface{}, false
	}
	return d.Interfaces[i], true
}

// Node returns "leaf-3 (17)", or "17" where the node has no name, and "leaf-3 (berlin/17)" in a site.
func (n *Names) Node(id uint32) string {
	d, _ := n.Find(id)
	return beside(d.Name, n.number(id))
}

// Interface returns "Ethernet3 (3)", or "3".
func (n *Names) Interface(node, id uint32) string {
	f, _ := n.FindInterface(node, id)
	return beside(f.Name, strconv.FormatUint(uint64(id), 10))
}

// HopNode and HopEgress are the two parts of a hop, as [inference.HopKey.NodeName] and [inference.HopKey.EgressName]
// give them without names.
func (n *Names) HopNode(k inference.HopKey) string {
	if k.Other {
		return k.NodeName()
	}
	return n.Node(k.Node)
}

// HopEgress returns the egress interface of a hop.
func (n *Names) HopEgress(k inference.HopKey) string {
	if k.Other || k.EgressIf == 0 {
		return k.EgressName()
	}
	return n.Interface(k.Node, k.EgressIf)
}

// Path returns the nodes of a path, first hop first: "leaf-1 (1) > spine-2 (7)".
func (n *Names) Path(hops []inference.HopKey) string {
	list := make([]string, len(hops))
	for i, h := range hops {
		list[i] = n.HopNode(h)
	}
	return inference.JoinNodes(list)
}

// Reason returns "no route (25)", or "25" where the reason has no name.
func (n *Names) Reason(r uint8) string {
	name := ""
	if n != nil {
		name = n.reasons[r]
	}
	return beside(name, strconv.Itoa(int(r)))
}

// Host returns the name of the longest prefix that holds an address, or "".
func (n *Names) Host(a netip.Addr) string {
	if n == nil {
		return ""
	}
	a = a.Unmap()
	for _, h := range n.hosts {
		if h.Prefix.Contains(a) {
			return h.Name
		}
	}
	return ""
}

// reasonOf is Reason for a drop of a node, whose own name for it goes before.
func (n *Names) reasonOf(node uint64, r uint8) string {
	if node <= math.MaxUint32 {
		if x, ok := n.Find(uint32(node)); ok && x.DropReasons[r] != "" {
			return beside(x.DropReasons[r], strconv.Itoa(int(r)))
		}
	}
	return n.Reason(r)
}

func beside(name, number string) string {
	if name == "" {
		return number
	}
	return name + " (" + number + ")"
}

// form is a way in which sentences of findings refer to something with a name.
type form struct {
	pattern string // with a group for each number
	render  func(n *Names, v []string) string
}

// forms are those of [inference.HopKey.Place], of elements, of errors of the map, and of drop reasons.
var forms = []form{
	{`node (\d+)(?: interface (\d+))?`, func(n *Names, v []string) string {
		if v[1] == "" {
			return "node " + n.nodeText(v[0])
		}
		return "node " + n.nodeText(v[0]) + " interface " + n.interfaceText(v[0], v[1])
	}},
	{`interface (\d+:\d+)`, func(n *Names, v []string) string { return "interface " + n.hopText(v[0]) }},
	{`link (\d+(?::\d+)?)–(\d+(?::\d+)?)`, func(n *Names, v []string) string { return "link " + n.hopText(v[0]) + "–" + n.hopText(v[1]) }},
	{`link (\d+) to (\d+)`, func(n *Names, v []string) string { return "link " + n.nodeText(v[0]) + " to " + n.nodeText(v[1]) }},
	{`route (\d+) to (\d+)`, func(n *Names, v []string) string { return "route " + n.nodeText(v[0]) + " to " + n.nodeText(v[1]) }},
	{`nodes (\d+) and (\d+)`, func(n *Names, v []string) string { return "nodes " + n.nodeText(v[0]) + " and " + n.nodeText(v[1]) }},
	{`between (\d+) and (\d+)`, func(n *Names, v []string) string { return "between " + n.nodeText(v[0]) + " and " + n.nodeText(v[1]) }},
	{`left (\d+(?::\d+)?(?:-\d+(?::\d+)?)*(?:-\(\d+ more\))?) for (\d+(?::\d+)?(?:-\d+(?::\d+)?)*)`, func(n *Names, v []string) string {
		return "left " + n.pathText(v[0]) + " for " + n.pathText(v[1])
	}},
	{`by (` + hopPath + `) and (` + hopPath + `)`, func(n *Names, v []string) string { return "by " + n.pathText(v[0]) + " and " + n.pathText(v[1]) }},
	{`(went|goes|way|on) (` + hopPath + `)`, func(n *Names, v []string) string { return v[0] + " " + n.pathText(v[1]) }},
	{`node id (\d+)`, func(n *Names, v []string) string { return "node id " + n.nodeText(v[0]) }},
	{`port (\d+) of node (\d+)`, func(n *Names, v []string) string {
		return "port " + n.interfaceText(v[1], v[0]) + " of node " + n.nodeText(v[1])
	}},
	{`next to (\d+)`, func(n *Names, v []string) string { return "next to " + n.nodeText(v[0]) }},
	{dropReason, nil}, // the nodes of these two are named before them
	{ownInterface, nil},
}

const (
	dropReason   = `for reason (\d+)`
	ownInterface = `interface (\d+)`

	// hopPath is what [inference.HopPath] writes of two hops and more.
	hopPath = `\d+(?::\d+)?(?:-\d+(?::\d+)?)+`
)

// reasonText names the reason of a drop of a node, by their numbers.
func (n *Names) reasonText(node, number string) string {
	r, err := strconv.ParseUint(number, 10, 8)
	if err != nil {
		return "for reason " + number
	}
	id, err := strconv.ParseUint(node, 10, 32)
	if err != nil {
		id = math.MaxUint64
	}
	return "for reason " + n.reasonOf(id, uint8(r))
}

// anyForm finds all forms in one pass, so that no name is taken for a number.
var anyForm = func() *regexp.Regexp {
	var all []string
	for _, f := range forms {
		all = append(all, "("+f.pattern+")")
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`)
}()

func (n *Names) nodeText(number string) string {
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return number
	}
	return n.Node(uint32(id))
}

func (n *Names) interfaceText(node, number string) string {
	of, err := strconv.ParseUint(node, 10, 32)
	id, err2 := strconv.ParseUint(number, 10, 32)
	if err != nil || err2 != nil {
		return number
	}
	return n.Interface(uint32(of), uint32(id))
}

// hopText names what [inference.HopKey.String] writes.
func (n *Names) hopText(hop string) string {
	node, egress, both := strings.Cut(hop, ":")
	if !both {
		return n.nodeText(node)
	}
	return n.nodeText(node) + ":" + n.interfaceText(node, egress)
}

// pathText names what [inference.HopPath] writes. A path without a name stays as it is.
func (n *Names) pathText(path string) string {
	hops, named := strings.Split(path, "-"), false
	for i, h := range hops {
		hops[i] = n.hopText(h)
		named = named || hops[i] != h
	}
	if !named {
		return path
	}
	return inference.JoinNodes(hops)
}

// empty reports whether nothing has a name: no node, interface or host, no drop reason and no site.
func (n *Names) empty() bool {
	return n == nil || len(n.nodes) == 0 && n.Len() == 0 && len(n.reasons) == 0 && len(n.sites) == 0
}

// Text puts names into a sentence that has numbers: "node 17 interface 3" becomes "node leaf-3 (17) interface Ethernet3
// (3)".
func (n *Names) Text(s string) string {
	if n.empty() {
		return s
	}
	var b strings.Builder
	done, node := 0, ""
	for _, m := range anyForm.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[done:m[0]])
		done = m[1]
		group := 1
		for _, f := range forms {
			parts := strings.Count(f.pattern, "(") - strings.Count(f.pattern, "(?:") - strings.Count(f.pattern, `\(`)
			if m[2*group] < 0 {
				group += 1 + parts
				continue
			}
			v := make([]string, parts)
			for i := range v {
				if at := 2 * (group + 1 + i); m[at] >= 0 {
					v[i] = s[m[at]:m[at+1]]
				}
			}
			switch {
			case f.pattern == dropReason:
				b.WriteString(n.reasonText(node, v[0]))
			case f.pattern == ownInterface:
				b.WriteString("interface " + n.interfaceText(node, v[0]))
			default:
				b.WriteString(f.render(n, v))
			}
			switch {
			case strings.HasPrefix(f.pattern, "node "):
				node = v[0]
			case strings.HasPrefix(f.pattern, `interface (\d+:`):
				node, _, _ = strings.Cut(v[0], ":")
			}
			break
		}
	}
	return b.String() + s[done:]
}

// Row is a name as series keep it: of a node, or of one of its interfaces.
type Row struct {
	Node, EgressIf uint32 // the interface is 0 for the node as such
	Name, Site     string // of the node
	Interface      string
	Speed          float64 // bits a second, 0 where unknown
}

// Rows lists all nodes, each followed by its interfaces.
func (n *Names) Rows() []Row {
	if n == nil {
		return nil
	}
	var rows []Row
	for _, d := range n.nodes {
		rows = append(rows, Row{Node: d.ID, Name: d.Name, Site: d.Site})
		for _, f := range d.Interfaces {
			if f.ID != 0 {
				rows = append(rows, Row{Node: d.ID, EgressIf: f.ID, Name: d.Name, Site: d.Site, Interface: f.Name, Speed: f.Speed})
			}
		}
	}
	return rows
}

// Equal reports whether two have the same entries.
func (n *Names) Equal(o *Names) bool {
	if n == nil || o == nil {
		return n.empty() && o.empty()
	}
	return fmt.Sprint(*n) == fmt.Sprint(*o)
}
