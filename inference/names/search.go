package names

import (
	"net/netip"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Search is a text that a reader looks for among things with names, numbers and addresses. A thing is found if it has
// each word of the text. A word may be a prefix, such as 10.1.0.0/16, that contains an address of the thing. The zero
// value finds all.
type Search struct {
	text  string // in lower case
	words []string
	nets  []netip.Prefix // of the words; zero where a word is none
	flow  decode.FlowKey
	hop   inference.HopKey

	isFlow, isHop bool
}

// maxSearch bounds the text of a search, in bytes. No name is longer.
const maxSearch = 200

// NewSearch reads the text of a search. All texts are good; of long ones the beginning counts.
func NewSearch(text string) Search {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > maxSearch {
		text = strings.ToValidUTF8(text[:maxSearch], "")
	}
	s := Search{text: text, words: strings.Fields(text)}
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

// Rank is how well a search finds a thing, the best first.
type Rank uint8

// The ranks.
const (
	IsWord      Rank = iota // one of its words is the text
	BeginsWord              // one of its words begins with the text
	ContainsAll             // it has all words
	NotFound
)

// Found reports whether the thing is found at all.
func (r Rank) Found() bool { return r < NotFound }

// Texts ranks what is written as in texts, and has the given addresses.
func (s *Search) Texts(texts []string, addresses ...netip.Addr) Rank {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for i, w := range s.words {
		if !strings.Contains(all, w) && !holdsAny(s.nets[i], addresses) {
			return NotFound
		}
	}
	best := ContainsAll
	for t := range strings.FieldsFuncSeq(all, func(r rune) bool { return strings.ContainsRune(" \n()<>,", r) }) {
		if t == s.text {
			return IsWord
		}
		if strings.HasPrefix(t, s.text) {
			best = BeginsWord
		}
	}
	return best
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

// Hop ranks a hop, or a node, whose interface is 0.
func (s *Search) Hop(k inference.HopKey, n *Names) Rank {
	if s.text == "" {
		return ContainsAll
	}
	texts := []string{k.String(), "node " + k.NodeName(), n.HopNode(k)}
	if node, ok := n.Find(k.Node); ok && node.Name != "" {
		texts = append(texts, node.Name+":"+k.EgressName(), node.Site)
	}
	if k.EgressIf != 0 {
		texts = append(texts, "interface "+k.EgressName(), "port "+n.HopEgress(k))
	}
	return s.Texts(texts)
}

// Flow ranks a flow by its text, in any form of a flow, and by the names and addresses of its hosts.
func (s *Search) Flow(k *decode.FlowKey, n *Names) Rank {
	switch {
	case s.text == "":
		return ContainsAll
	case s.isFlow && *k == s.flow:
		return IsWord
	}
	return s.Texts([]string{k.String(), n.Host(k.SrcAddr()), n.Host(k.DstAddr())}, k.SrcAddr(), k.DstAddr())
}

// Passes reports whether a hop of a flow's path is the one that is searched for, or of the node that is. What contains
// the text is not enough: every flow passes a node with a 1 in its number.
func (s *Search) Passes(k inference.HopKey, n *Names) bool {
	if s.isHop && k.Other == s.hop.Other && k.Node == s.hop.Node && (s.hop.EgressIf == 0 || k.EgressIf == s.hop.EgressIf) {
		return true
	}
	node, named := n.Find(k.Node)
	return named && !k.Other && node.Name != "" && strings.ToLower(node.Name) == s.text
}

// Exporter ranks an exporter by its address, with its name, and by its node.
func (s *Search) Exporter(k inference.ExporterKey, n *Names) Rank {
	if s.text == "" {
		return ContainsAll
	}
	texts := []string{k.Addr.String(), n.Host(k.Addr.Netip())}
	if !k.Nameless {
		texts = append(texts, "node "+inference.HopKey{Node: k.Node}.NodeName(), n.Node(k.Node))
	}
	return s.Texts(texts, k.Addr.Netip())
}

// Probe ranks a path of probes by the addresses of its ends, with their names.
func (s *Search) Probe(k *inference.ProbeKey, n *Names) Rank {
	if s.text == "" {
		return ContainsAll
	}
	return s.Texts([]string{k.From.String() + " > " + k.To.String(), n.Host(k.From.Netip()), n.Host(k.To.Netip())}, k.From.Netip(), k.To.Netip())
}
