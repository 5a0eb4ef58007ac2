package web

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// found is one thing that a search finds, and its place among those of its kind.
type found struct {
	ask.Found
	rank  names.Rank
	order int
}

// foundKind is all that a search finds of one kind.
type foundKind struct {
	kind string
	hits []found
}

// serveFind answers what q= finds of everything that the page shows, and of what has a name, at most limit= of a kind.
func (s *Server) serveFind(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := ask.IntParam(q, "limit", 5, 1, 50)
	if refuse(w, err) {
		return
	}
	text := strings.TrimSpace(q.Get("q"))
	groups := []ask.FoundGroup{}
	if text != "" {
		groups = s.find(names.NewSearch(text), text, int(limit))
	}
	s.answer(w, ask.FoundList{Query: shorten(text), Groups: groups})
}

func (s *Server) find(what names.Search, text string, limit int) []ask.FoundGroup {
	n := s.names()
	keys := s.history.findable()
	kinds := keys.find(&what, n)
	open, ended := s.findings.list()
	kinds = append(kinds, foundKind{"finding", foundFindings(&what, n, open, ended)})
	filter := url.PathEscape(text)
	tables := map[string]string{"interface": "hops", "node": "hops", "exporter": "exporters", "host": "flows", "flow": "flows", "probe": "probed"}
	groups := []ask.FoundGroup{}
	for _, k := range kinds {
		if len(k.hits) == 0 {
			continue
		}
		slices.SortStableFunc(k.hits, func(a, b found) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.order, b.order), strings.Compare(a.Name, b.Name))
		})
		g := ask.FoundGroup{Kind: k.kind, Total: len(k.hits)}
		for i := range min(limit, g.Total) {
			g.Hits = append(g.Hits, k.hits[i].Found)
		}
		if table := tables[k.kind]; table != "" && g.Total > limit {
			g.More = "#" + table + "=" + filter
		}
		groups = append(groups, g)
	}
	return groups
}

// findable holds the keys of what the page shows.
type findable struct {
	hops      map[inference.HopKey]bool // false where an interface is counted and reports nothing
	exporters []inference.ExporterKey
	probes    []inference.ProbeKey
	flows     []decode.FlowKey
}

// findable copies the keys, so that no search holds up the windows that come.
func (h *history) findable() findable {
	h.mu.RLock()
	defer h.mu.RUnlock()
	f := findable{hops: make(map[inference.HopKey]bool, len(h.hops.all)), flows: make([]decode.FlowKey, 0, len(h.flows.all))}
	for k := range h.interfaces.all {
		f.hops[k] = false
	}
	for k := range h.hops.all {
		f.hops[k] = true
	}
	for k := range h.exporters.all {
		f.exporters = append(f.exporters, k)
	}
	for k, p := range h.probed.all {
		if p.last >= h.oldest() {
			f.probes = append(f.probes, k)
		}
	}
	for k, x := range h.flows.all {
		if x.last >= h.oldest() {
			f.flows = append(f.flows, k)
		}
	}
	return f
}

// find searches nodes, interfaces, hosts, exporters, paths of probes and flows.
func (f *findable) find(what *names.Search, n *names.Names) []foundKind {
	var exporters, probes, flows []found
	for _, k := range f.exporters {
		if rank := what.Exporter(k, n); rank.Found() {
			hit := found{Found: ask.Found{Name: withName(n.Host(k.Addr.Netip()), k.Addr.String()), Address: "#exporters=" + k.Addr.String()}, rank: rank}
			if !k.Nameless {
				hit.Detail = "node " + n.Node(k.Node)
			}
			exporters = append(exporters, hit)
		}
	}
	for _, k := range f.probes {
		if rank := what.Probe(&k, n); rank.Found() {
			name := k.From.String() + " > " + k.To.String()
			probes = append(probes, found{Found: ask.Found{Name: name + ", path " + decode.PathText(k.Path), Address: "#probed=" + url.PathEscape(name)}, rank: rank})
		}
	}
	hosts := map[netip.Addr]int{} // flows
	for _, k := range f.flows {
		hosts[k.SrcAddr()]++
		hosts[k.DstAddr()]++
		if rank := what.Flow(&k, n); rank.Found() {
			name := k.String()
			flows = append(flows, found{Found: ask.Found{Name: name, Address: "#flow=" + url.PathEscape(name)}, rank: rank})
		}
	}
	nodes, interfaces := f.findHops(what, n)
	return []foundKind{
		{"node", nodes}, {"interface", interfaces}, {"host", foundHosts(what, n, hosts)},
		{"exporter", exporters}, {"probe", probes}, {"flow", flows},
	}
}

// findHops searches the nodes and interfaces that report, that are counted, or that have a name.
func (f *findable) findHops(what *names.Search, n *names.Names) (nodes, interfaces []found) {
	for _, r := range n.Rows() {
		k := inference.HopKey{Node: r.Node, EgressIf: r.EgressIf}
		if _, there := f.hops[k]; !there {
			f.hops[k] = false
		}
	}
	ports := map[uint32]int{} // interfaces with reports, by node with reports
	for k, reports := range f.hops {
		if k.Other || !reports {
			continue
		}
		numbered := 0
		if k.EgressIf != 0 { // without a number it is no port
			numbered = 1
		}
		ports[k.Node] += numbered
	}
	seen := map[uint32]bool{}
	for k, reports := range f.hops {
		if k.Other {
			continue
		}
		if !seen[k.Node] {
			seen[k.Node] = true
			if hit, ok := foundNode(what, n, k.Node, ports); ok {
				nodes = append(nodes, hit)
			}
		}
		if k.EgressIf == 0 {
			continue
		}
		if rank := what.Hop(k, n); rank.Found() {
			hit := found{Found: ask.Found{Name: n.HopNode(k) + " port " + n.HopEgress(k), Address: "#hop=" + k.NodeName() + "/" + k.EgressName()}, rank: rank, order: int(k.EgressIf)}
			if !reports {
				hit.Detail, hit.Address = "no reports", "#interfaces="+url.PathEscape(k.String())
			}
			interfaces = append(interfaces, hit)
		}
	}
	return nodes, interfaces
}

func foundNode(what *names.Search, n *names.Names, id uint32, ports map[uint32]int) (found, bool) {
	k := inference.HopKey{Node: id}
	rank := what.Hop(k, n)
	hit := found{Found: ask.Found{Name: n.Node(id), Address: "#hop=" + k.NodeName() + "/"}, rank: rank}
	switch count, reports := ports[id]; {
	case !reports:
		hit.Detail, hit.Address = "no reports", "#map=node/"+k.NodeName()
	case count > 0:
		hit.Detail = quantity(count, "port")
	}
	return hit, rank.Found()
}

func foundHosts(what *names.Search, n *names.Names, hosts map[netip.Addr]int) (hits []found) {
	for a, flows := range hosts {
		if !a.IsValid() {
			continue
		}
		name := n.Host(a)
		if rank := what.Texts([]string{a.String(), name}, a); rank.Found() {
			hits = append(hits, found{Found: ask.Found{Name: withName(name, a.String()), Detail: quantity(flows, "flow"), Address: "#flows=" + a.String()}, rank: rank, order: -flows})
		}
	}
	return hits
}

// foundFindings searches findings by their headline, identifier, kind and place.
func foundFindings(what *names.Search, n *names.Names, open, ended []inference.Finding) (hits []found) {
	for i, list := range [][]inference.Finding{open, ended} {
		for k := range list {
			f := &list[k]
			line := n.Headline(f)
			var addresses []netip.Addr
			if f.Flow != (decode.FlowKey{}) {
				addresses = []netip.Addr{f.Flow.SrcAddr(), f.Flow.DstAddr()}
			}
			if rank := what.Texts([]string{line, f.IDText(), f.Kind.String(), f.Element.String()}, addresses...); rank.Found() {
				hits = append(hits, found{Found: ask.Found{Name: line, Detail: [...]string{f.Severity.String(), "ended"}[i], Address: "#finding=" + f.IDText()}, rank: rank, order: len(hits)})
			}
		}
	}
	return hits
}

// withName puts an address behind the name that it has, if any.
func withName(name, address string) string {
	if name == "" {
		return address
	}
	return name + " (" + address + ")"
}

func quantity(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
