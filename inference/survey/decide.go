package survey

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// The evidence that an error of the map needs before it is named. The package comment derives the rate of false alarms.
const (
	minFlows   = 3 // flows that it explains, from as many source addresses,
	minIngress = 2 // that enter the network at so many nodes; not for errors of the hosts of a prefix
)

// Error is an error of the map that many flows witness.
type Error struct {
	inference.MapError
	Prefix  netip.Prefix       // of the senders, for LowTTL
	or      inference.MapError // another error that explains the same flows as well, if hasOr
	hasOr   bool
	places  int // pairs of neighbours between which a Foreign node writes digests
	Flows   int
	hosts   int
	digests uint64
}

// String is the error in one sentence, with its evidence.
func (e *Error) String() string {
	what := e.MapError.String()
	switch {
	case e.Kind == inference.LowTTL:
		what = fmt.Sprintf("hosts of %s start with TTL %d", e.Prefix, e.Node)
	case e.Kind == inference.Foreign && e.places > 1:
		what = fmt.Sprintf("node %d speaks %s and in %s and is not in the topology", e.Node, place(e.MapError), count(e.places-1, "other place"))
	case e.hasOr:
		what += ", or " + e.or.String()
	}
	return fmt.Sprintf("%s: %s from %s (%s) say so", what, count(e.Flows, "flow"), count(e.hosts, "address"), count(int(e.digests), "digest"))
}

func place(e inference.MapError) string {
	switch {
	case e.A == inference.NoNode:
		return fmt.Sprintf("next to %d", e.B)
	case e.B == inference.NoNode:
		return fmt.Sprintf("next to %d", e.A)
	}
	return fmt.Sprintf("between %d and %d", e.A, e.B)
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what[len(what)-1] == 's':
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Decide names the errors of the map that the deviations of a window show, each flow once, in a fixed order. It returns
// the flows that they explain. The argument least is the number of flows, from as many addresses, that an error needs;
// minFlows at least.
func Decide(flows []inference.Deviation, least int) (errors []Error, explained map[decode.FlowKey]bool) {
	return DecideBeside(flows, nil, least)
}

// DecideBeside is Decide with flows that the map explains. An error of a group is compared with those of its members
// that refute it.
func DecideBeside(flows []inference.Deviation, fine []Fine, least int) (errors []Error, explained map[decode.FlowKey]bool) {
	if len(flows) == 0 {
		return nil, nil
	}
	d := decision{flows: flows, fine: fine, left: make([]bool, len(flows)), least: max(least, minFlows)}
	for i := range d.left {
		d.left[i] = true
	}
	d.prefixes()
	d.unknownNodes()
	d.unnamed()
	d.misplaced()
	slices.SortFunc(d.errors, func(a, b Error) int {
		return cmp.Or(a.Compare(b.MapError), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	explained = map[decode.FlowKey]bool{}
	for i := range flows {
		if !d.left[i] {
			explained[flows[i].Flow] = true
		}
	}
	return d.errors, explained
}

// Fine is a flow whose digests agree with the map.
type Fine struct {
	Src  netip.Addr
	Path []uint32 // nodes on its way
}

const (
	// luckyShare is the share of a group's members that may agree with the map although the error holds for the group.
	// Their digests are too few yet, or fit by chance. If as many agree with a probability below refuted, the error
	// does not hold for the group.
	luckyShare = .1
	refuted    = .01
)

// holds reports whether the evidence of some members of a group holds for all of it, where others refute it.
func holds(support, refute int) bool {
	chance, n := 0.0, support+refute
	term := math.Pow(1-luckyShare, float64(n)) // of k of n
	for k := 0; k < refute; k++ {
		chance += term
		term *= float64(n-k) / float64(k+1) * luckyShare / (1 - luckyShare)
	}
	return 1-chance >= refuted
}

// refuters counts the flows that are fine although they are members of a group.
func (d *decision) refuters(member func(f *Fine) bool) (n int) {
	for i := range d.fine {
		if member(&d.fine[i]) {
			n++
		}
	}
	return n
}

// by reports whether a flow that is fine passes one of some nodes.
func by(nodes ...uint32) func(f *Fine) bool {
	return func(f *Fine) bool {
		return slices.ContainsFunc(nodes, func(n uint32) bool { return slices.Contains(f.Path, n) })
	}
}

// decision holds the flows that are left to be explained while errors are named.
type decision struct {
	flows  []inference.Deviation
	fine   []Fine
	left   []bool // flows that no error explains yet
	errors []Error
	least  int
}

// witnesses is the flows that show one error.
type witnesses struct {
	key  inference.MapError
	list []int // indices of flows
}

// gather lists the errors of some kinds that the flows left show, with those flows, in a fixed order. The key that
// merge makes of an error is the error by which flows are gathered.
func (d *decision) gather(merge func(inference.MapError) (key inference.MapError, ok bool)) []witnesses {
	index, all := map[inference.MapError]int{}, []witnesses(nil)
	for i := range d.flows {
		if !d.left[i] {
			continue
		}
		for _, e := range d.flows[i].Errors {
			key, ok := merge(e)
			if !ok {
				continue
			}
			at, known := index[key]
			if !known {
				at = len(all)
				index[key] = at
				all = append(all, witnesses{key: key})
			}
			if n := len(all[at].list); n == 0 || all[at].list[n-1] != i {
				all[at].list = append(all[at].list, i)
			}
		}
	}
	slices.SortFunc(all, func(a, b witnesses) int { return a.key.Compare(b.key) })
	return all
}

// kinds makes a merge of errors of one kind as they are.
func kinds(k inference.MapErrorKind) func(inference.MapError) (inference.MapError, bool) {
	return func(e inference.MapError) (inference.MapError, bool) { return e, e.Kind == k }
}

// weigh counts what flows witness, and reports whether that is enough. One address and one ingress are enough for
// nothing.
func (d *decision) weigh(list []int, ingress int) (e Error, enough bool) {
	hosts, doors := map[decode.Addr]bool{}, map[uint32]bool{}
	for _, i := range list {
		f := &d.flows[i]
		hosts[f.Flow.Src] = true
		doors[f.Ingress] = true
		e.digests += f.Digests
	}
	e.Flows, e.hosts = len(list), len(hosts)
	return e, e.hosts >= d.least && len(doors) >= ingress
}

// settle names an error, and marks flows as explained by it.
func (d *decision) settle(e Error, list []int) {
	d.errors = append(d.errors, e)
	for _, i := range list {
		d.left[i] = false
	}
}

func has(f *inference.Deviation, e inference.MapError) bool {
	_, ok := slices.BinarySearchFunc(f.Errors, e, inference.MapError.Compare)
	return ok
}

// prefixes names prefixes whose hosts begin with another TTL: /16, or /24 if only one of those is seen; for IPv6 /48.
func (d *decision) prefixes() {
	for _, w := range d.gather(kinds(inference.LowTTL)) {
		groups := map[netip.Prefix][]int{}
		for _, i := range w.list {
			p := Senders(d.flows[i].Flow.SrcAddr())
			groups[p] = append(groups[p], i)
		}
		order := make([]netip.Prefix, 0, len(groups))
		for p := range groups {
			order = append(order, p)
		}
		slices.SortFunc(order, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
		for _, p := range order {
			if d.prefix(w.key, d.narrow(p, groups[p]), groups[p]) || !p.Addr().Is4() {
				continue
			}
			parts, of := []netip.Prefix(nil), map[netip.Prefix][]int{}
			for _, i := range groups[p] {
				small, _ := d.flows[i].Flow.SrcAddr().Prefix(24)
				if of[small] == nil {
					parts = append(parts, small)
				}
				of[small] = append(of[small], i)
			}
			slices.SortFunc(parts, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
			for _, small := range parts {
				d.prefix(w.key, small, of[small])
			}
		}
	}
}

// prefix names a prefix whose hosts begin with another TTL, if that holds of its flows.
func (d *decision) prefix(key inference.MapError, p netip.Prefix, list []int) bool {
	e, enough := d.weigh(list, 1)
	refute := d.refuters(func(f *Fine) bool { return p.Contains(f.Src) })
	for i := range d.flows {
		if f := &d.flows[i]; len(f.Errors) > 0 && p.Contains(f.Flow.SrcAddr()) && !has(f, key) {
			refute++
		}
	}
	if !enough || !holds(len(list), refute) {
		return false
	}
	e.MapError, e.Prefix = key, p
	d.settle(e, list)
	return true
}

// Senders returns the prefix whose senders are taken together: the /16 of an address, and for IPv6 the /48.
func Senders(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 16
	}
	p, _ := a.Prefix(bits)
	return p
}

// narrow returns the /24 of IPv4 senders that are all of one.
func (d *decision) narrow(p netip.Prefix, list []int) netip.Prefix {
	a := d.flows[list[0]].Flow.SrcAddr()
	if !a.Is4() {
		return p
	}
	small, _ := a.Prefix(24)
	for _, i := range list {
		if !small.Contains(d.flows[i].Flow.SrcAddr()) {
			return p
		}
	}
	return small
}

// unknownNodes names nodes that are not on the map, or what the map calls them, if that can only be one.
func (d *decision) unknownNodes() {
	byNode := d.gather(func(e inference.MapError) (inference.MapError, bool) {
		return inference.MapError{Kind: e.Kind, Node: e.Node}, e.Kind == inference.Foreign
	})
	for _, w := range byNode {
		e, enough := d.weigh(w.list, minIngress)
		if !enough {
			continue
		}
		e.MapError, e.places = d.place(w)
		if place, ok := d.placeOf(w); ok && holds(len(w.list), d.refuters(by(place))) {
			e.MapError = inference.MapError{Kind: inference.Renamed, A: place, Node: w.key.Node}
		}
		d.settle(e, w.list)
	}
}

// place returns the neighbours between which most flows hear a stranger, and between how many it is heard.
func (d *decision) place(w witnesses) (best inference.MapError, places int) {
	counts := map[inference.MapError]int{}
	for _, i := range w.list {
		for _, e := range d.flows[i].Errors {
			if e.Kind == inference.Foreign && e.Node == w.key.Node {
				counts[e]++
			}
		}
	}
	for e, n := range counts {
		if m := counts[best]; n > m || n == m && e.Compare(best) < 0 {
			best = e
		}
	}
	return best, len(counts)
}

// placeOf returns the one node of the map that all flows would have in a stranger's place.
func (d *decision) placeOf(w witnesses) (place uint32, ok bool) {
	for _, e := range d.flows[w.list[0]].Errors {
		if e.Kind != inference.Renamed || e.Node != w.key.Node {
			continue
		}
		if slices.ContainsFunc(w.list, func(i int) bool { return !has(&d.flows[i], e) }) {
			continue
		}
		if ok {
			return 0, false
		}
		place, ok = e.A, true
	}
	return place, ok
}

// unnamed names places with a node whose id is not found, unless some flows found it.
func (d *decision) unnamed() {
	named := map[[2]uint32]bool{}
	for i := range d.flows {
		for _, e := range d.flows[i].Errors {
			if e.Kind == inference.Foreign {
				named[[2]uint32{e.A, e.B}] = true
			}
		}
	}
	for _, w := range d.gather(kinds(inference.Unnamed)) {
		if e, enough := d.weigh(w.list, minIngress); enough {
			if e.MapError = w.key; !named[[2]uint32{w.key.A, w.key.B}] {
				d.settle(e, w.list)
			}
		}
	}
}

// misplaced names nodes of the map that are not where it has them, and links that it does not have, whichever explains
// most. Two nodes are swapped if that explains links from both of them; a link is missing if nothing else explains its
// flows.
func (d *decision) misplaced() {
	for {
		best, list := Error{}, []int(nil)
		consider := func(e Error, enough bool, l []int) {
			if enough && len(l) > len(list) {
				best, list = e, l
			}
		}
		for _, w := range d.gather(kinds(inference.Swapped)) {
			e, enough := d.weigh(w.list, minIngress)
			e.MapError = w.key
			consider(e, enough && d.bothSides(w) && holds(len(w.list), d.refuters(by(w.key.A, w.key.B))), w.list)
		}
		for _, w := range d.gather(kinds(inference.Unlinked)) {
			l := slices.DeleteFunc(slices.Clone(w.list), func(i int) bool { return !d.onlyLink(i) })
			if len(l) == 0 {
				continue
			}
			e, enough := d.weigh(l, minIngress)
			e.MapError = w.key
			e.or, e.hasOr = d.alternative(l)
			consider(e, enough, l)
		}
		for _, w := range d.gather(kinds(inference.Renamed)) {
			e, enough := d.weigh(w.list, minIngress)
			e.MapError = w.key
			consider(e, enough && d.severalLinks(w) && holds(len(w.list), d.refuters(by(w.key.A))), w.list)
		}
		if list == nil {
			return
		}
		d.settle(best, list)
	}
}

// links lists the links that flows use and the map does not have.
func (d *decision) links(list []int) (all []inference.MapError) {
	for _, i := range list {
		for _, e := range d.flows[i].Errors {
			if e.Kind == inference.Unlinked {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, inference.MapError.Compare)
	return slices.Compact(all)
}

// bothSides reports whether two nodes are each seen at a link that the map does not have.
func (d *decision) bothSides(w witnesses) bool {
	a, b := false, false
	for _, e := range d.links(w.list) {
		a = a || e.A == w.key.A || e.B == w.key.A
		b = b || e.A == w.key.B || e.B == w.key.B
	}
	return a && b
}

// severalLinks reports whether a node that stands in another's place is seen at several links that the map does not have.
func (d *decision) severalLinks(w witnesses) bool {
	n := 0
	for _, e := range d.links(w.list) {
		if e.A == w.key.Node || e.B == w.key.Node {
			n++
		}
	}
	return n > 1
}

// onlyLink reports whether a flow uses one link that the map does not have.
func (d *decision) onlyLink(i int) bool {
	n := 0
	for _, e := range d.flows[i].Errors {
		if e.Kind == inference.Unlinked {
			n++
		}
	}
	return n == 1
}

// alternative returns a pair of swapped nodes, or a node in another's place, that explains all flows as well as a link
// does.
func (d *decision) alternative(list []int) (e inference.MapError, ok bool) {
	for _, e := range d.flows[list[0]].Errors {
		if e.Kind != inference.Swapped && e.Kind != inference.Renamed {
			continue
		}
		if !slices.ContainsFunc(list, func(i int) bool { return !has(&d.flows[i], e) }) {
			return e, true
		}
	}
	return inference.MapError{}, false
}
