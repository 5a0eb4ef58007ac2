package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// splitter improves a choice of flows for Concentrate where demands may be split. It closes a few flows that meet and
// lets the transport move items to the others. It opens new flows while items are left.
type splitter struct {
	*transport
	rnd     *opt.SplitMix
	used    []int32
	pos     []int32 // flow: where it is in used, or none
	visited []int32
	look    int32
	noise   float64
	before  []int32 // flows used before the step, and those that stand for left-out items
	was     []int64 // x of those, in the order of before
	wasLeft []int64
}

// always marks a flow that stands for what is left out: it is open, and is not counted.
const always = -2

func newSplitter(p *problem, rnd *opt.SplitMix) *splitter {
	s := &splitter{transport: newTransport(p, false), rnd: rnd, pos: slices.Repeat([]int32{none}, p.flows), visited: make([]int32, p.flows)}
	for f := p.real; f < p.flows; f++ {
		s.pos[f] = always
		s.Open(int32(f), p.room[f])
	}
	return s
}

func (s *splitter) use(f int32) {
	s.pos[f] = int32(len(s.used))
	s.used = append(s.used, f)
	s.Open(f, s.p.room[f])
}

func (s *splitter) drop(f int32) {
	last := s.used[len(s.used)-1]
	s.used[s.pos[f]], s.pos[last] = last, s.pos[f]
	s.pos[f] = none
	s.used = s.used[:len(s.used)-1]
	s.Close(f)
}

// complete opens flows until everything is sent or limit are used, and reports whether it is.
func (s *splitter) complete(limit int) bool {
	for i := range int32(s.p.ifaces) {
		for !s.Send(i) {
			if len(s.used) >= limit {
				return false
			}
			f := s.next()
			if f == none {
				return false
			}
			s.use(f)
		}
	}
	for k := len(s.used) - 1; k >= 0; k-- {
		if f := s.used[k]; s.Load[f] == 0 {
			s.drop(f)
		}
	}
	return true
}

// next returns the closed flow that can take most of what is left, among those that pass the cut of the last search.
// Any solution uses another one of these.
func (s *splitter) next() int32 {
	s.look++
	best, most := int32(none), 0.0
	for _, i := range s.Reached() {
		flows := s.p.through(i)
		at, n := 0, len(flows)
		if n > mostLooked {
			at, n = s.rnd.Below(n), mostLooked
		}
		for k := range n {
			f := flows[(at+k)%len(flows)]
			if s.pos[f] != none || s.visited[f] == s.look {
				continue
			}
			s.visited[f] = s.look
			var sum int64
			for _, j := range s.p.path(f) {
				sum += min(s.Left[j], s.p.demand[j])
			}
			s.Effort += int64(len(s.p.path(f)))
			v := float64(min(sum, s.p.room[f]))*(1+s.noise*s.rnd.Float()) + s.rnd.Float()
			if s.p.room[f] > 0 && v > most {
				best, most = f, v
			}
		}
	}
	return best
}

// try makes one step, and reports whether fewer flows do.
func (s *splitter) try() bool {
	s.before = append(s.before[:0], s.used...)
	for f := s.p.real; f < s.p.flows; f++ {
		s.before = append(s.before, int32(f))
	}
	s.was = s.was[:0]
	for _, f := range s.before {
		s.was = append(s.was, s.Sent[s.p.pathAt[f]:s.p.pathAt[f+1]]...)
	}
	s.noise = noises[s.rnd.Below(len(noises))]
	s.wasLeft = append(s.wasLeft[:0], s.Left...)
	n := len(s.used)
	if n == 0 {
		return false
	}
	f := s.used[s.rnd.Below(n)]
	for range s.rnd.Below(4) {
		if g := s.used[s.rnd.Below(n)]; s.Load[g] < s.Load[f] {
			f = g
		}
	}
	for range 1 + s.rnd.Below(4) {
		path := s.p.path(f)
		s.drop(f)
		near := s.Over[path[s.rnd.Below(len(path))]]
		if len(near) == 0 || len(s.used) == 0 {
			break
		}
		e := near[s.rnd.Below(len(near))]
		if f = s.Column(s.p.pathItem[e], e); s.pos[f] == always {
			break
		}
	}
	s.Effort += int64(len(s.was) + s.p.ifaces)
	if s.complete(n) && len(s.used) <= n {
		return len(s.used) < n
	}
	s.back()
	return false
}

// back returns to the state before the step.
func (s *splitter) back() {
	for len(s.used) > 0 {
		s.drop(s.used[len(s.used)-1])
	}
	at := int32(0)
	for _, f := range s.before {
		if s.pos[f] == always {
			s.Close(f)
			s.Open(f, s.p.room[f])
		} else {
			s.use(f)
		}
		lo, hi := s.p.pathAt[f], s.p.pathAt[f+1]
		copy(s.Sent[lo:hi], s.was[at:at+hi-lo])
		at += hi - lo
		for _, n := range s.Sent[lo:hi] {
			s.Load[f] += n
		}
	}
	copy(s.Left, s.wasLeft)
}

// replace takes other flows, which are enough.
func (s *splitter) replace(flows []int32) {
	for len(s.used) > 0 {
		s.drop(s.used[len(s.used)-1])
	}
	for _, f := range flows {
		s.use(f)
	}
	s.complete(len(flows))
}

// offerTransport adds to the linear programme of a bounder how a transport uses its flows.
func (b *bounder) offerTransport(t *transport, used []int32) {
	x := 0.0
	if !b.began {
		x = 1
	}
	for _, f := range used {
		var items []int32
		var part []float64
		for e := t.p.pathAt[f]; e < t.p.pathAt[f+1]; e++ {
			if t.Sent[e] > 0 {
				i := t.p.pathItem[e]
				share := float64(t.Sent[e]) / float64(t.p.demand[i])
				items, part = append(items, i), append(part, share)
				if !b.began {
					b.lp.Prices[i] += share / float64(t.Load[f]) * float64(t.Sent[e])
				}
			}
		}
		b.add(f, items, part, x)
	}
	b.began = true
	b.lp.Restart()
}
