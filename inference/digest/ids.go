package digest

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
)

const (
	idRound = 64 // digests of a flow whose ids are counted together, each in one of as many places
	fewIDs  = 16 // places that are few: so many at most are taken by 64 ids at random less than once in 10^23 rounds
)

// idCount counts the packet ids of a flow by the places that a hash gives them. Ids choose the hops that write. A
// tunnel with constant outer headers has few ids that come again and again. Then hops that write for none of them are
// not measured.
type idCount struct {
	places  uint64
	written uint64 // hops that wrote, of a flow with few ids
	n       uint8
	few     bool // the round before had few ids
}

// FewIDs are flows whose packets have few ids.
type FewIDs struct {
	Digests uint64         `json:"digests"` // of rounds of 64 with few ids, in the run
	Flows   int            `json:"flows"`   // at present
	Flow    decode.FlowKey `json:"-"`       // one of them, and of its last 64 digests:
	Hops    uint8          `json:"-"`       // how many switches they passed, 0 while that is not known,
	Silent  uint64         `json:"-"`       // and which of these wrote into none, bit i-1 for hop i
}

func (f *FewIDs) add(o *FewIDs) {
	f.Digests += o.Digests
	f.Flows += o.Flows
	if o.Hops > 0 || f.Flow == (decode.FlowKey{}) {
		f.Flow, f.Hops, f.Silent = o.Flow, o.Hops, o.Silent
	}
}

// String is the sentence for an operator, or nothing where no flow has few ids.
func (f *FewIDs) String() string {
	if f.Flows == 0 {
		return ""
	}
	flows, such := "packets of a flow have", ""
	if f.Flows > 1 {
		flows, such = fmt.Sprintf("packets of %d flows have", f.Flows), "such as "
	}
	if f.Flow != (decode.FlowKey{}) {
		such = " (" + such + f.Flow.String() + ")"
	} else {
		such = ""
	}
	what := "hops that write for none of them are not measured"
	if n := bits.OnesCount64(f.Silent); n > 0 {
		var hops []string
		for h := range int(f.Hops) {
			if f.Silent>>h&1 != 0 {
				hops = append(hops, fmt.Sprint(h+1))
			}
		}
		what = fmt.Sprintf("%d of %d hops (%s) wrote into none of the last %d", n, f.Hops, strings.Join(hops, ", "), idRound)
	}
	return fmt.Sprintf("PINT: %s few packet ids%s, %d at most in %d digests, so that %s: let the first switch take ids from bytes that change (docs/pint.md)", flows, such, fewIDs, idRound, what)
}

// noteID counts the id of a packet of a flow.
func (d *Reader) noteID(x *flow, slot uint32, r *decode.Report, writers func(id uint32, hops int) uint64) {
	g, c := &r.Digest, &x.ids
	h := g.ID ^ uint32(g.Hops)*0x9e3779b1 // the same packet has another number of hops elsewhere
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	c.places |= 1 << (h >> 26)
	if c.few && g.Hops <= pint.MaxHops {
		c.written |= writers(g.ID, int(g.Hops))
	}
	if c.n++; c.n < idRound {
		return
	}
	before, few := c.few, bits.OnesCount64(c.places) <= fewIDs
	if few {
		d.few.Digests += idRound
		if !before {
			d.few.Flows++
		}
		if before || d.example == 0 {
			d.example, d.few.Flow, d.few.Hops = d.slots[slot], r.Flow, 0
			if before {
				d.few.Hops = min(g.Hops, pint.MaxHops)
				d.few.Silent = ^c.written & (1<<d.few.Hops - 1)
			}
		}
	} else if before {
		d.manyIDs(x, d.slots[slot])
	}
	*c = idCount{few: few}
}

// manyIDs takes a flow out of those with few ids.
func (d *Reader) manyIDs(x *flow, i uint32) {
	if !x.ids.few {
		return
	}
	x.ids.few = false
	d.few.Flows--
	if d.example == i {
		d.example, d.few = 0, FewIDs{Digests: d.few.Digests, Flows: d.few.Flows}
	}
}

// writers are the hops that write into some part of a digest that changes from packet to packet or names nodes.
func (p *followed) writers(id uint32, hops int) (all uint64) {
	for _, at := range p.Sets[p.Set(id)].Slots {
		s := p.Queries[at.Query].Scheme
		if s == nil {
			continue
		}
		for n := range s.Instances() {
			k := s.Packet(id, n)
			all |= s.Writers(&k, hops)
		}
	}
	return all
}
