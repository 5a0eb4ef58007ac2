package stamp

import (
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// Way is the way of one 5-tuple.
type Way struct {
	From netip.Addr   `json:"from"`
	To   netip.Addr   `json:"to"`
	Port uint16       `json:"port"` // source port
	Hops []netip.Addr `json:"hops"` // routers in their order; the zero address is one that did not answer
}

// AnswersBy is the address by which a router answers. It is that of the interface by which the packet came, or one that
// is the same for all of its interfaces.
type AnswersBy bool

// The addresses.
const (
	ByInterface AnswersBy = false // such an address stands for the one link that packets come by
	ByRouter    AnswersBy = true  // a link is the addresses of two routers, one after the other
)

// Link is one direction of a link: to a router's address, or that of a host, from the one before; with [ByInterface] From is zero.
type Link struct{ From, To netip.Addr }

// Links numbers the links that ways have, and lists those of each way, each once. Unknown are links next to a router that did not answer, each counted in every way.
func Links(ways []Way, answers AnswersBy) (links []Link, of [][]int32, unknown int) {
	index := map[Link]int32{}
	for i := range ways {
		w := &ways[i]
		var list []int32
		last := w.From
		for k := range len(w.Hops) + 1 {
			next := w.To
			if k < len(w.Hops) {
				next = w.Hops[k]
			}
			l := Link{last, next}
			last = next
			if !l.To.IsValid() || answers == ByRouter && !l.From.IsValid() {
				unknown++
				continue
			}
			if answers == ByInterface {
				l.From = netip.Addr{}
			}
			n, known := index[l]
			if !known {
				n = int32(len(links))
				index[l] = n
				links = append(links, l)
			}
			if !slices.Contains(list, n) { // a loop
				list = append(list, n)
			}
		}
		of = append(of, list)
	}
	return links, of, unknown
}

// Choice is a choice among ways.
type Choice struct {
	Chosen  []int32 // by place among the ways, in their order
	Bound   int     // no choice that does as much has fewer ways
	Links   int     // that the chosen ways have: all that any way has
	Unknown int     // links next to routers that did not answer
}

// Smallest reports whether no choice has fewer ways.
func (p *Choice) Smallest() bool { return len(p.Chosen) == p.Bound }

// Choose takes few of the ways such that each link of any way is on a chosen one. With separate, of any two links that
// a way distinguishes, one is on a chosen way without the other. A loss then shows on which of them it is. The search
// starts from the seed and ends after that many rounds.
func Choose(ways []Way, answers AnswersBy, separate bool, rounds int, seed uint64) Choice {
	links, of, unknown := Links(ways, answers)
	p := Choice{Links: len(links), Unknown: unknown}
	p.Chosen, p.Bound = opt.Cover(of, opt.CoverConfig{Elements: len(links), Separate: separate, Rounds: rounds, Seed: seed})
	return p
}
