package cover

import (
	"math"
	"slices"
)

// Attention describes a loop that steers detail. In each round a random share of the links is suspicious. A probe that
// passes a suspicious link carries detailed metrics, all others basic ones. A plan is rated by the bytes of metrics
// that result.
type Attention struct {
	Share           float64 // from 0 to 1
	Basic, Detailed int     // bytes that a switch adds
}

// AttentionCost is the cost of a loop with a plan.
type AttentionCost struct {
	Share    float64 `json:"share"`              // of links, or directions, that are suspicious
	Basic    int     `json:"basic_bytes_hop"`    // bytes that a switch adds
	Detailed int     `json:"detailed_bytes_hop"` // likewise, to a probe that looks closer
	MaxHops  int     `json:"max_hops"`           // links of the longest probe that the plan was made for
	Bytes    float64 `json:"bytes"`              // of metrics in a round of all probes, expected
	Bound    float64 `json:"lower_bound"`        // of that, for any plan in which each link counts on one probe
}

// stamps is how many switches add to a probe. Hosts do not.
func (p *Problem) stamps(w Walk) int {
	n := len(w) + 1
	if p.Hosts != nil {
		for _, v := range [...]int{p.Graph.Node(int(w[0])), p.Graph.Neighbor(int(w[len(w)-1]))} {
			if p.Hosts[v] {
				n--
			}
		}
	}
	return n
}

// attentionBytes is the metrics of a round, expected, where what several probes pass counts for the first of them. A loop that chooses between
// them takes no more.
func (p *Problem) attentionBytes(walks []Walk) float64 {
	a, covered := p.Attention, make([]bool, 2*p.Graph.NumLinks())
	sum := 0.0
	for _, w := range walks {
		own := 0
		for _, i := range w {
			if item := p.item(int(i)); !covered[item] {
				covered[item] = true
				own++
			}
		}
		sum += float64(p.stamps(w)) * (float64(a.Basic) + a.suspected(own)*float64(a.Detailed-a.Basic))
	}
	return sum
}

// suspected is the probability that any of n links is suspicious.
func (a *Attention) suspected(n int) float64 { return -math.Expm1(float64(n) * math.Log1p(-a.Share)) }

// AttentionBound is a lower bound of the bytes of any plan in which each link counts on one probe. The argument
// traversals is a lower bound of the links that all probes pass. The argument reach holds, for every link or direction
// to be covered, the fewest links of a probe that passes it.
//
// A probe of n such links that are at most D away has at least max(n, D) links. Of its bytes in detail each of the n bears at least the least
// of max(n, D) (1 - (1-S)^n) / n over n.
func (p *Problem) AttentionBound(traversals int, reach []int) float64 {
	if len(reach) == 0 {
		return 0
	}
	a, most := p.Attention, p.MaxHops
	if most == 0 {
		most = len(reach)
	}
	ends, stamps := 1, 0 // stamps of a probe beyond its links
	if p.Hosts != nil && slices.Contains(p.Hosts, true) {
		ends = -1
		stamps = traversals - traversals/slices.Min(reach)
	} else {
		stamps = traversals + (traversals+most-1)/most
	}
	bears := map[int]float64{}
	detailed := 0.0
	for _, d := range reach {
		share, known := bears[d]
		if !known {
			share = math.Inf(1)
			for n := 1; n <= max(most, d); n++ {
				share = min(share, float64(max(n, d)+ends)*a.suspected(n)/float64(n))
			}
			bears[d] = share
		}
		detailed += share
	}
	return float64(stamps)*float64(a.Basic) + detailed*float64(a.Detailed-a.Basic)
}
