package postman

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// straight covers the net with as few trails as euler does, but trails that go far. At every node it joins the two
// edges whose other ends have the fewest neighbours in common. On a grid these are the rows and columns. Trails that go
// far meet many others, so that lengths can be made equal between distant parts of the net. Closed trails are then
// spliced into the shortest trail that they reach.
//
// It takes O(V + E), with nodes of more than wide edges joined as they come.
func (n *Net) straight() [][]int32 {
	s := &strands{Net: n, next: slices.Repeat([]int32{-1}, len(n.From)), strand: slices.Repeat([]int32{-1}, len(n.From))}
	s.join()
	s.cut()
	return s.assemble()
}

// wide is the number of edges beyond which those of a node are joined as they come.
const wide = 16

// strands are what the halves of a net are joined to: trails first, and circuits.
type strands struct {
	*Net
	next   []int32 // by half that is walked into a node: the half that is walked on; -1 at an end
	strand []int32 // by half: where it belongs, if it is walked that way; -1 else
	parts  [][]int32
	trails int
	root   []int32         // of a strand: the trail that it becomes part of, or -1
	size   []int           // of a trail with its guests
	todo   [][]int32       // of a trail: strands to look for circuits at
	queue  opt.Heap[int32] // trails, the shortest first
}

// join decides the successor of every half. In an undirected net both ways of every pair are noted.
func (s *strands) join() {
	type joint struct{ a, b, common int32 } // leaving halves: arrive by a^1, go on by b
	var joints []joint
	mark := make([]int32, s.Nodes)
	taken := make([]bool, len(s.From)) // by leaving half: its turn at the node is decided
	stamp := int32(0)
	for v := range int32(s.Nodes) {
		out := s.Out(v)
		if len(out) > wide {
			s.joinAsTheyCome(out)
			continue
		}
		joints = joints[:0]
		for k, a := range out {
			if s.Directed && a&1 == 0 {
				continue // a must be an edge that comes in
			}
			far := s.Head(a)
			if stamp++; len(s.Out(far)) <= wide {
				for _, h := range s.Out(far) {
					mark[s.Head(h)] = stamp
				}
			}
			others := out
			if !s.Directed {
				others = out[k+1:]
			}
			for _, b := range others {
				if !s.Walkable(b) {
					continue
				}
				common := int32(0)
				if to := s.Head(b); len(s.Out(to)) <= wide {
					for _, h := range s.Out(to) {
						if w := s.Head(h); w != v && mark[w] == stamp {
							common++
						}
					}
				}
				joints = append(joints, joint{a, b, common})
			}
		}
		slices.SortStableFunc(joints, func(x, y joint) int { return cmp.Compare(x.common, y.common) })
		for _, j := range joints {
			if taken[j.a] || taken[j.b] {
				continue
			}
			taken[j.a], taken[j.b] = true, true
			s.link(j.a, j.b)
		}
	}
}

func (s *strands) link(a, b int32) {
	s.next[a^1] = b
	if !s.Directed {
		s.next[b^1] = a
	}
}

func (s *strands) joinAsTheyCome(out []int32) {
	if !s.Directed {
		for k := 0; k+1 < len(out); k += 2 {
			s.link(out[k], out[k+1])
		}
		return
	}
	k := 0
	for _, a := range out {
		if a&1 == 0 {
			continue
		}
		for k < len(out) && out[k]&1 == 1 {
			k++
		}
		if k == len(out) {
			return
		}
		s.link(a, out[k])
		k++
	}
}

// cut follows what was joined: first from the ends, then round.
func (s *strands) cut() {
	walk := func(h int32) {
		var part []int32
		for g := h; g >= 0 && s.strand[g] < 0 && s.strand[g^1] < 0; g = s.next[g] {
			s.strand[g] = int32(len(s.parts))
			part = append(part, g)
		}
		if part != nil {
			s.parts = append(s.parts, part)
		}
	}
	starts := make([]bool, len(s.From))
	for h := range starts {
		starts[h] = s.Walkable(int32(h))
	}
	for _, g := range s.next {
		if g >= 0 {
			starts[g] = false
		}
	}
	for h, start := range starts {
		if start {
			walk(int32(h))
		}
	}
	s.trails = len(s.parts)
	for h := range int32(len(s.From)) {
		if s.Walkable(h) {
			walk(h)
		}
	}
}

// assemble splices circuits into trails: again and again the trail that is shortest takes one that it touches. Parts
// that hold no trail begin with their first circuit.
func (s *strands) assemble() [][]int32 {
	count := len(s.parts)
	s.root, s.size, s.todo = slices.Repeat([]int32{-1}, count), make([]int, count), make([][]int32, count)
	looked := make([]int, count) // by strand: how many of its halves were looked at
	guest := make([][]int32, len(s.From))
	s.queue.Less = func(a, b *int32) bool {
		return cmp.Or(cmp.Compare(s.size[*a], s.size[*b]), cmp.Compare(*a, *b)) < 0
	}
	enter := func(k int32) {
		s.root[k], s.size[k], s.todo[k] = k, len(s.parts[k]), append(s.todo[k], k)
		s.queue.Push(k)
	}
	for k := range s.trails {
		enter(int32(k))
	}
	var roots []int32
	claim := func() {
		for len(s.queue.Items) > 0 {
			r := s.queue.Pop()
			if s.spliceOne(r, looked, guest) {
				s.queue.Push(r)
			}
		}
	}
	claim()
	for k := s.trails; k < count; k++ {
		if s.root[k] < 0 {
			enter(int32(k))
			claim()
		}
	}
	for k, r := range s.root {
		if int(r) == k {
			roots = append(roots, r)
		}
	}
	trails := make([][]int32, 0, len(roots))
	for _, r := range roots {
		trails = append(trails, s.write(make([]int32, 0, s.size[r]), r, guest))
	}
	return trails
}

// spliceOne splices one circuit into trail r, or reports that it touches none that is free.
func (s *strands) spliceOne(r int32, looked []int, guest [][]int32) bool {
	for len(s.todo[r]) > 0 {
		k := s.todo[r][len(s.todo[r])-1]
		part := s.parts[k]
		for ; looked[k] <= len(part); looked[k]++ {
			// Guests go before a half; at the end of a trail before none, which is noted at the turned last half.
			h, v := part[max(0, looked[k]-1)]^1, int32(0)
			if looked[k] < len(part) {
				h = part[looked[k]]
			}
			v = s.From[h]
			for _, g := range s.Out(v) {
				c := s.strand[g]
				if c < 0 || s.root[c] >= 0 {
					continue
				}
				s.root[c] = r
				s.size[r] += len(s.parts[c])
				guest[h] = append(guest[h], g)
				s.todo[r] = append(s.todo[r], c)
				return true
			}
		}
		s.todo[r] = s.todo[r][:len(s.todo[r])-1]
	}
	return false
}

// write appends strand k with all its guests, without recursion.
func (s *strands) write(dst []int32, k int32, guest [][]int32) []int32 {
	type frame struct {
		at, end int32 // next half, and the one with which it ends
		last    bool  // the next half is the last one
		guest   int
	}
	part := s.parts[k]
	stack := []frame{{at: part[0], end: part[len(part)-1]}}
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		h := f.at
		if f.last {
			h = f.end ^ 1
		}
		if list := guest[h]; f.guest < len(list) {
			g := list[f.guest]
			f.guest++
			stack = append(stack, frame{at: g, end: s.before(g)})
			continue
		}
		if f.last {
			stack = stack[:len(stack)-1]
			continue
		}
		dst = append(dst, h)
		f.guest = 0
		if f.last = h == f.end; !f.last {
			f.at = s.next[h]
		}
	}
	return dst
}

// before is the half that is walked before half g of a circuit.
func (s *strands) before(g int32) int32 {
	part := s.parts[s.strand[g]]
	k := slices.Index(part, g)
	return part[(k+len(part)-1)%len(part)]
}
