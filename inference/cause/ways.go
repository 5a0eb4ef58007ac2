package cause

import (
	"math"

	"github.com/hopscope/hopscope/inference"
)

// Way is the way in which an element explains a finding that is at another one.
type Way uint8

// The ways. An interface, a node, a link or a queue is that of the element that explains.
const (
	Itself            Way = iota // the finding is at the element
	LinkOfHop                    // a link, of findings at the interface before it
	NodeBehind                   // a node, of findings at an interface towards it
	NodeOfHop                    // a node, of findings at one of its interfaces
	HopOfNode                    // an interface, of findings at its node
	QueueOfNode                  // an interface at which traffic queues, of findings at its node
	LinkOfNode                   // a link, of findings at a node at its end
	EndOfLink                    // a node, of findings at one of its links
	HopOfLink                    // an interface, of findings at the link behind it
	AddressOfExporter            // an address, of findings at one of the parts that report from it
	NodeOfExporter               // a node, of findings at its exporter
	SameFlow                     // the flow of another finding or cause
	MovedHere                    // a change of paths, of findings at a place that flows moved to, or left
	HopOnWay                     // an interface on the way of a flow
	LinkOnWay                    // a link on the way of a flow
	NodeOnWay                    // a node on the way of a flow
	QueueOnWay                   // a queue that the packets of a flow come to
	QueueAhead                   // a queue that packets come to behind the place
	QueueOfOthers                // a queue that packets come to behind another interface of the node
	QueueNext                    // a queue at a neighbour
	QueueSecond                  // a queue two links ahead
	QueueThird                   // a queue three links ahead
	QueueFourth                  // a queue four links ahead
	Follows                      // a cause elsewhere that has such consequences
	Unheard                      // an exporter that is silent or loses reports, of packets that are missing
	Behind                       // a place from which the packets come
	WroteDigests                 // a node that may have written forged digests
	SameMoment                   // a change of paths in the moment in which an exporter fell silent
	NumWays           = iota
)

var wayNames = [NumWays]string{
	"itself", "link behind the interface", "node behind the interface", "node of the interface", "interface of the node", "interface of the node, with a queue",
	"link of the node", "node at the end of the link", "interface of the link", "address of the exporter", "node of the exporter", "same flow",
	"change of paths, where flows moved", "interface on the way of a flow", "link on the way of a flow", "node on the way of a flow",
	"queue on the way of a flow", "queue that packets come to", "queue that packets of the node come to", "queue at a neighbour", "queue two links ahead",
	"queue three links ahead", "queue four links ahead", "cause elsewhere", "exporter of missing reports", "place that packets come from", "node that writes forged digests",
	"change of paths in the same moment",
}

func (w Way) String() string { return wayNames[min(w, NumWays-1)] }

// Sort is the sort of a finding by which ways are counted: its sign, or one of two others.
type Sort uint8

// The sorts, those of signs in their order.
const (
	slow Sort = iota
	queues
	carriesMore
	drops
	vanish
	otherWays
	fewer
	silent
	unreported
	reportsLost
	unexplained
	loops
	other    // no sign
	forged   // a latency of a node while digests are forged
	NumSorts = iota
)

func (s Sort) String() string {
	switch s {
	case other:
		return "other"
	case forged:
		return "slow by forged digests"
	}
	return signNames[s]
}

// sortOf returns the sort of a finding. Drops of an interface that hardly a packet passes show its full queue.
func sortOf(f *inference.Finding) Sort {
	if f.Kind == inference.PacketDrops && f.Element.Kind == inference.InterfaceElement {
		return queues
	}
	sign := signOf(f.Kind)
	for i := range Sort(NumSigns) {
		if sign == 1<<i {
			return i
		}
	}
	return other
}

// Offer is an element that is thought of as the cause of a finding, and why.
type Offer struct {
	Element inference.Element
	Way     Way
	Sort    Sort // of the finding
}

func (s *Scene) offer(f *inference.Finding, e inference.Element, w Way, of Sort) {
	if s.offered != nil {
		s.offered(f, Offer{e, w, of})
	}
}

// counted is how often elements were thought of, and how often they were the ones that something had happened to.
type counted struct {
	way       Way
	Sort      Sort
	right, Of int
}

// lateness is how many of the findings that one fault brought began later than a number of windows after the one before.
type lateness struct {
	after     uint64
	Right, Of int
}

// Counted returns how often elements that could explain a finding of a sort in a way were right in the table, and of
// how many. Both are 0 if it has no such line.
func Counted(w Way, of Sort) (right, all int) {
	for _, c := range ways {
		if c.way == w && c.Sort == of {
			return c.right, c.Of
		}
	}
	return 0, 0
}

// Lengths are the windows between two beginnings from which on one fault brings findings less often.
func Lengths() (out []uint64) {
	for i := range later {
		out = append(out, later[i].after)
	}
	return out
}

// nats are those of a misfit of 1: of an interface, whose price is 2, one in 1,100 is the cause of something. Half of it
// makes every interface a cause in one of 33 cases, twice of it in one of 1.2 million.
const nats = 3.5

// misfit is the negative logarithm of a share, with one case added to both sides (Laplace's rule of succession). Of
// what never was it is that of a half.
func misfit(right, of int) float64 { return -math.Log((float64(right)+1)/(float64(of)+2)) / nats }

var misfits = func() (out [NumWays][NumSorts]float64) {
	for w := range out {
		for s := range out[w] {
			out[w][s] = misfit(0, 0)
		}
	}
	for _, c := range ways {
		out[c.way][c.Sort] = misfit(c.right, c.Of)
	}
	return out
}()

// misfit is that of an element which explains a finding of a sort in this way.
func (w Way) misfit(s Sort) float64 { return misfits[w][s] }

// unlikely is the misfit from which on an element explains only what begins soon after the rest: one in ten.
const unlikely = .66
