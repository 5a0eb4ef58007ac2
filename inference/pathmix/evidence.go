package pathmix

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// Digest is the digest of one packet.
type Digest struct {
	Value uint64
	ID    uint32 // that the switches hashed
	Hops  uint8  // switches that the packet passed
}

// part is the evidence of one instance of a digest.
type part struct {
	packet  pint.Packet
	writers uint64
	want    uint32
	number  int32 // packet
}

// evidence holds the evidence of the digests of packets with the same number of hops.
type evidence struct {
	k      int
	n      int       // packets whose digests carry information
	mute   int       // packets that no switch wrote into: any path explains them
	wrong  int       // packets whose digest no path of this length can have written
	words  int       // of a set of packets as a bitset
	parts  []uint8   // instances of each packet that some hop wrote into
	single [][]part  // by hop: parts that it alone wrote
	multi  []part    // parts that several hops wrote
	wrote  [][]int32 // by hop: indices into multi
	count  [][]uint8 // by hop: of each packet, how many parts the hop wrote into

	cells []map[uint16]*cell // by hop and node, made when they are first asked for
}

// cell is the evidence for one node at one hop.
type cell struct {
	agree  []uint64 // packets with no part that the hop alone wrote and this node cannot have written
	values []uint32 // what the node adds to each part of wrote
}

// read makes the evidence of digests of k hops. Repeated digests count once.
func (m *Model) read(digests []Digest, k int) *evidence {
	s := m.config.Scheme
	var list []Digest
	for i := len(digests) - 1; i >= 0 && len(list) < m.config.Digests; i-- {
		if int(digests[i].Hops) == k {
			list = append(list, digests[i])
		}
	}
	slices.SortFunc(list, func(a, b Digest) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Value, b.Value)) })
	list = slices.Compact(list)
	e := &evidence{k: k, single: make([][]part, k), wrote: make([][]int32, k), count: make([][]uint8, k), cells: make([]map[uint16]*cell, k)}
	for h := range k {
		e.cells[h] = map[uint16]*cell{}
		e.count[h] = make([]uint8, len(list))
	}
	width := s.Width() * s.Instances()
	for _, d := range list {
		if width < 64 && d.Value>>width != 0 || !s.Known(d.ID, k) {
			e.wrong++
			continue
		}
		written, impossible := 0, false
		var parts [8]part
		for inst := range s.Instances() {
			p := s.Packet(d.ID, inst)
			x := part{packet: p, writers: s.Writers(&p, k), want: s.Part(d.Value, inst), number: int32(e.n)}
			if x.writers == 0 {
				impossible = impossible || x.want != 0
				continue
			}
			parts[written] = x
			written++
		}
		switch {
		case impossible:
			e.wrong++
			continue
		case written == 0:
			e.mute++
			continue
		}
		e.parts = append(e.parts, uint8(written))
		for _, x := range parts[:written] {
			if x.writers&(x.writers-1) == 0 {
				h := bits.TrailingZeros64(x.writers)
				e.single[h] = append(e.single[h], x)
			} else {
				for w := x.writers; w != 0; w &= w - 1 {
					h := bits.TrailingZeros64(w)
					e.wrote[h] = append(e.wrote[h], int32(len(e.multi)))
				}
				e.multi = append(e.multi, x)
			}
			for w := x.writers; w != 0; w &= w - 1 {
				e.count[bits.TrailingZeros64(w)][e.n]++
			}
		}
		e.n++
	}
	e.words = (e.n + 63) / 64
	return e
}

// all is the set of all packets.
func (e *evidence) all() []uint64 {
	set := make([]uint64, e.words)
	for i := range e.n {
		set[i>>6] |= 1 << (i & 63)
	}
	return set
}

// support weighs, for all nodes, the parts that a hop alone wrote and that the node explains. Without weights it counts
// them.
func (m *Model) support(e *evidence, h int, weight []float64) []float64 {
	counts, values := make([]float64, len(m.nodes)), make([]uint32, (len(m.nodes)+7)&^7)
	for i := range e.single[h] {
		x := &e.single[h][i]
		m.config.Scheme.Values(values[:len(m.nodes)], &x.packet, x.packet.Role(x.writers, h+1), m.nodes)
		one := 1.0
		if weight != nil {
			one = weight[x.number]
		}
		for u, v := range values[:len(m.nodes)] {
			if v == x.want {
				counts[u] += one
			}
		}
	}
	return counts
}

// at returns the evidence for a node at a hop.
func (m *Model) at(e *evidence, h int, u uint16) *cell {
	if c := e.cells[h][u]; c != nil {
		return c
	}
	s, id := m.config.Scheme, m.nodes[u]
	c := &cell{agree: e.all(), values: make([]uint32, len(e.wrote[h]))}
	for i := range e.single[h] {
		x := &e.single[h][i]
		if s.Value(&x.packet, x.packet.Role(x.writers, h+1), id) != x.want {
			c.agree[x.number>>6] &^= 1 << (x.number & 63)
		}
	}
	for i, j := range e.wrote[h] {
		x := &e.multi[j]
		c.values[i] = s.Value(&x.packet, x.packet.Role(x.writers, h+1), id)
	}
	e.cells[h][u] = c
	return c
}
