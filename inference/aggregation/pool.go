package aggregation

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/sketches/quantile"
)

// Code maps codes to values; [github.com/hopscope/hopscope/decode/pint.Levels] is one.
type Code interface {
	Decode(code uint32) float64
	Bits() int
}

// inline is how many hops of a flow are found without a search. Those beyond are found by going from block to block.
const inline = 6

// Flow holds the places of the sketches of one flow in a [Pool]. The zero value is a flow without digests. When a flow
// ends, its sketches are given back with [Pool.Free].
type Flow struct {
	blocks [inline]uint32
	more   uint32 // block of the first hop beyond these, 0 if there is none
}

// block is one hop of one flow. Its panes are in the pool's memory, at the place that follows from the block's number.
type block struct {
	pane int64  // the one in use; its sketch is that number modulo Config.Panes
	next uint32 // the next block, of a flow's hops beyond the inline ones or of those that are free
	hop  uint8
}

// Pool holds the sketches of many flows. It takes (Bytes·Panes + 16)·Hops bytes once, in [NewPool], and no more later.
type Pool struct {
	config  Config
	layout  layout
	code    Code
	data    []byte
	blocks  []block // 0 belongs to no flow
	touched uint32  // the rest was never used
	freed   uint32
	stats   Stats
	rand    quantile.Rand

	entries []entry // of the last Hop
	spread  spread
}

// Stats counts what became of digests.
type Stats struct {
	Digests uint64 // in sketches
	Refused uint64 // hop number or code out of range
	Full    uint64 // lost because no block was free
	Hops    int    // blocks in use
}

// NewPool makes a pool for codes of one kind.
func NewPool(c Config, code Code, seed uint64) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if code == nil {
		return nil, errors.New("latency: no code for the values")
	}
	if b := code.Bits(); b < 1 || b > 16 {
		return nil, fmt.Errorf("latency: codes of %d bits: want 1 to 16", b)
	}
	p := &Pool{
		config: c, layout: newLayout(&c, code.Bits()), code: code,
		data:    make([]byte, (c.Hops+1)*c.Panes*c.Bytes),
		blocks:  make([]block, c.Hops+1),
		touched: 1,
		rand:    quantile.Rand(seed),
	}
	p.entries = make([]entry, 0, p.layout.room*c.Panes)
	return p, nil
}

// Config returns what the pool was made of.
func (p *Pool) Config() Config { return p.config }

// Complete is the share of a hop's digests above which [Hop.Frequent] of a pool of kind [Frequent] misses no value.
func (p *Pool) Complete() float64 { return 1 / float64(p.layout.room) }

// Stats returns the counters.
func (p *Pool) Stats() Stats { return p.stats }

// SizeBytes is the memory that the pool holds for sketches.
func (p *Pool) SizeBytes() int { return cap(p.data) + 16*cap(p.blocks) }

// Add puts the code of one digest into the sketch of a flow's hop; hops are counted from 1. The time now, in nanoseconds,
// matters only with Config.PaneTime. A digest that comes late is counted as if it had come in time. Add reports whether
// there was a place for the digest.
func (p *Pool) Add(f *Flow, hop int, code uint32, now int64) bool {
	if hop < 1 || hop > MaxHops || code>>p.code.Bits() != 0 {
		p.stats.Refused++
		return false
	}
	i := p.find(f, hop)
	if i == 0 {
		if i = p.allocate(f, hop); i == 0 {
			p.stats.Full++
			return false
		}
		p.blocks[i].pane = p.paneAt(now)
	}
	p.stats.Digests++
	if p.config.Panes > 1 {
		p.turn(i, now)
	}
	p.layout.add(p.sketch(i, p.blocks[i].pane), uint16(code), &p.rand)
	return true
}

// Free releases all sketches of a flow and empties f.
func (p *Pool) Free(f *Flow) {
	for _, i := range f.blocks {
		if i != 0 {
			p.give(i)
		}
	}
	for i := f.more; i != 0; {
		next := p.blocks[i].next
		p.give(i)
		i = next
	}
	*f = Flow{}
}

// find returns the number of the block of a flow's hop, 0 if there is none.
func (p *Pool) find(f *Flow, hop int) uint32 {
	if hop <= inline {
		return f.blocks[hop-1]
	}
	for i := f.more; i != 0; i = p.blocks[i].next {
		if int(p.blocks[i].hop) == hop {
			return i
		}
	}
	return 0
}

// allocate finds an empty block for a flow's hop and returns its number, 0 if none is empty.
func (p *Pool) allocate(f *Flow, hop int) uint32 {
	i := p.freed
	switch {
	case i != 0:
		p.freed = p.blocks[i].next
		for pane := range p.config.Panes {
			clear(p.sketch(i, int64(pane)))
		}
	case int(p.touched) < len(p.blocks):
		i = p.touched
		p.touched++
	default:
		return 0
	}
	p.stats.Hops++
	p.blocks[i] = block{hop: uint8(hop)}
	if hop <= inline {
		f.blocks[hop-1] = i
	} else {
		p.blocks[i].next = f.more
		f.more = i
	}
	return i
}

func (p *Pool) give(i uint32) {
	p.blocks[i] = block{next: p.freed}
	p.freed = i
	p.stats.Hops--
}

// sketch is the memory of a pane of a block.
func (p *Pool) sketch(i uint32, pane int64) []byte {
	n, k := int64(p.config.Panes), int64(0)
	if n > 1 {
		if k = pane % n; k < 0 {
			k += n
		}
	}
	at := (int(i)*int(n) + int(k)) * p.layout.size
	return p.data[at : at+p.layout.size : at+p.layout.size]
}

// paneAt is the number of the pane that a time belongs to.
func (p *Pool) paneAt(now int64) int64 {
	if p.config.PaneTime == 0 {
		return 0
	}
	return now / int64(p.config.PaneTime)
}

// turn goes on to the next pane when it is time to.
func (p *Pool) turn(i uint32, now int64) {
	b := &p.blocks[i]
	to := b.pane
	if p.config.PaneTime != 0 {
		to = max(to, p.paneAt(now))
	} else if le.Uint32(p.sketch(i, to)) >= p.config.PaneDigests {
		to++
	}
	for pane := max(b.pane, to-int64(p.config.Panes)) + 1; pane <= to; pane++ {
		clear(p.sketch(i, pane))
	}
	b.pane = to
}
