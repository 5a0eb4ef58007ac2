package shard

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// other is the reference of all hops that have no place in the table.
const other = 0

// hopTable numbers the hops. References stay good as long as the generation does.
type hopTable struct {
	keys  []inference.HopKey // by reference; the first is Other
	seen  []int64            // by reference: end of the last window with records
	cells []hopCell          // open addressing, linear probing, at most half full
	hash  decode.HashKey
	gen   uint32
}

type hopCell struct {
	key uint64 // node<<32 | egress interface
	ref uint16 // 0 is an empty cell
}

func newHopTable(n int, hash decode.HashKey) hopTable {
	return hopTable{
		keys:  append(make([]inference.HopKey, 0, n+1), inference.HopKey{Other: true}),
		seen:  make([]int64, 1, n+1),
		cells: make([]hopCell, 1<<bits.Len(uint(2*n))),
		hash:  hash,
	}
}

// find returns the reference of a hop, a new one if it is not known, or other if there is no place.
func (t *hopTable) find(k inference.HopKey) uint16 {
	key := uint64(k.Node)<<32 | uint64(k.EgressIf)
	c := t.cell(key)
	if c == nil {
		return other
	}
	if c.ref == 0 {
		if len(t.keys) == cap(t.keys) {
			return other
		}
		*c = hopCell{key, uint16(len(t.keys))}
		t.keys = append(t.keys, k)
		t.seen = append(t.seen, 0)
	}
	return c.ref
}

// reach is the most cells that a look-up reads. The longest run of a table of 65 535 places with random hashes is some 80
// cells long.
const reach = 512

// cell returns the cell of a hop, the empty one for a hop that is not known, or nil if there is none near enough.
func (t *hopTable) cell(key uint64) *hopCell {
	mask := len(t.cells) - 1
	i := int(t.hash.Word(key))
	for range reach {
		i &= mask
		if c := &t.cells[i]; c.ref == 0 || c.key == key {
			return c
		}
		i++
	}
	return nil
}

// forget drops the hops without records since before, and starts a generation if there were any.
func (t *hopTable) forget(before int64) {
	n := 1
	for i := 1; i < len(t.keys); i++ {
		if t.seen[i] >= before {
			t.keys[n], t.seen[n] = t.keys[i], t.seen[i]
			n++
		}
	}
	if n == len(t.keys) {
		return
	}
	t.keys, t.seen = t.keys[:n], t.seen[:n]
	clear(t.cells)
	for i := 1; i < n; i++ {
		key := uint64(t.keys[i].Node)<<32 | uint64(t.keys[i].EgressIf)
		if c := t.cell(key); c != nil {
			*c = hopCell{key, uint16(i)}
		}
	}
	t.gen++
}
