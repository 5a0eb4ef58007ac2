package web

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// search is what a reader looks for: words, each of which is a part of what is found, or an address or a prefix.
type search struct {
	text  string   // in lower case
	words []string // of it
	nets  []netip.Prefix
	flow  decode.FlowKey
	hop   inference.HopKey

	isFlow, isHop bool
}

// maxSearch bounds the text of a search, in bytes. No name is longer.
const maxSearch = 200

func newSearch(text string) search {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > maxSearch {
		text = strings.ToValidUTF8(text[:maxSearch], "")
	}
	s := search{text: text, words: strings.Fields(text)}
	s.nets = make([]netip.Prefix, len(s.words))
	for i, w := range s.words {
		if p, err := netip.ParsePrefix(w); err == nil {
			s.nets[i] = p.Masked()
		}
	}
	flow, err := decode.ParseFlow(text)
	s.flow, s.isFlow = flow, err == nil
	hop, err := inference.ParseHop(text)
	s.hop, s.isHop = hop, err == nil
	return s
}

// Ranks of what is found, the best first. notFound is behind all.
const (
	isWord      = iota // one of its words is the text
	beginsWord         // one of its words begins with the text
	containsAll        // it has all words
	notFound
)

// rank returns how well a search finds what is written as in texts, and has the given addresses.
func (s *search) rank(texts []string, addresses ...netip.Addr) int {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for i, w := range s.words {
		if !strings.Contains(all, w) && !holdsAny(s.nets[i], addresses) {
			return notFound
		}
	}
	best := containsAll
	for t := range strings.FieldsFuncSeq(all, func(r rune) bool { return strings.ContainsRune(" \n()<>,", r) }) {
		if t == s.text {
			return isWord
		}
		if strings.HasPrefix(t, s.text) {
			best = beginsWord
		}
	}
	return best
}

// everything reports whether a search is empty, and so finds all.
func (s *search) everything() bool { return s.text == "" }

func (s *search) findsHop(k inference.HopKey, n *names.Names) bool {
	return s.everything() || s.rank(textsOfHop(k, n)) < notFound
}

func (s *search) findsExporter(k inference.ExporterKey, n *names.Names) bool {
	return s.everything() || s.rank(textsOfExporter(k, n), k.Addr.Netip()) < notFound
}

func (s *search) findsProbe(k *inference.ProbeKey, n *names.Names) bool {
	return s.everything() || s.rank(textsOfProbe(k, n), k.From.Netip(), k.To.Netip()) < notFound
}

// holdsAny reports whether a prefix contains one of some addresses. The zero prefix contains none.
func holdsAny(p netip.Prefix, addresses []netip.Addr) bool {
	for _, a := range addresses {
		if p.Contains(a.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}

// textsOfHop returns how a hop is written, with the words that it may be searched by.
func textsOfHop(k inference.HopKey, n *names.Names) []string {
	texts := []string{k.String(), "node " + k.NodeName(), n.HopNode(k)}
	if node, ok := n.Find(k.Node); ok && node.Name != "" {
		texts = append(texts, node.Name+":"+k.EgressName(), node.Site)
	}
	if k.EgressIf != 0 {
		texts = append(texts, "interface "+k.EgressName(), "port "+n.HopEgress(k))
	}
	return texts
}

// textsOfFlow returns a flow and the names of its hosts.
func textsOfFlow(k *decode.FlowKey, n *names.Names) []string {
	return []string{k.String(), n.Host(k.SrcAddr()), n.Host(k.DstAddr())}
}

func textsOfExporter(k inference.ExporterKey, n *names.Names) []string {
	texts := []string{k.Addr.String(), n.Host(k.Addr.Netip())}
	if !k.Nameless {
		texts = append(texts, "node "+inference.HopKey{Node: k.Node}.NodeName(), n.Node(k.Node))
	}
	return texts
}

func textsOfProbe(k *inference.ProbeKey, n *names.Names) []string {
	return []string{k.From.String() + " > " + k.To.String(), n.Host(k.From.Netip()), n.Host(k.To.Netip())}
}

// findsFlow reports whether a search finds a flow: by its text, by the names and addresses of its hosts, in any form of
// a flow, or by a hop or a named node of its path.
func (s *search) findsFlow(f *flowSeries, n *names.Names) bool {
	return s.everything() || s.rankFlow(&f.key, n) < notFound || slices.ContainsFunc(f.current(), func(p position) bool {
		node, _ := n.Find(p.hop.Node)
		return s.isHop && s.passes(p) || !p.hop.Other && strings.ToLower(node.Name) == s.text
	})
}

func (s *search) rankFlow(k *decode.FlowKey, n *names.Names) int {
	if s.isFlow && *k == s.flow {
		return isWord
	}
	return s.rank(textsOfFlow(k, n), k.SrcAddr(), k.DstAddr())
}

// passes reports whether p is the hop that is searched for, or where that names no interface, whether it is of the same node.
func (s *search) passes(p position) bool {
	return p.hop.Other == s.hop.Other && p.hop.Node == s.hop.Node && (s.hop.EgressIf == 0 || p.hop.EgressIf == s.hop.EgressIf)
}
