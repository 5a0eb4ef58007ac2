package detect

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrState says that bytes are no state of a hop.
var ErrState = errors.New("no state of a hop")

// AppendState appends all that is remembered of the hop, a kilobyte for two statistics. The bytes are for ReadState of the
// same version of this package; who keeps them keeps the version.
func (h *Hop) AppendState(b []byte) []byte {
	c := &coder{b: b}
	c.hop(h)
	return c.b
}

// ReadState replaces what is remembered with what AppendState wrote. The hop is as it was if b is nothing of the kind.
func (h *Hop) ReadState(b []byte) error {
	c := &coder{b: b, reading: true}
	var fresh Hop
	c.hop(&fresh)
	if c.bad || c.at != len(b) {
		return ErrState
	}
	*h = fresh
	return nil
}

// coder writes a hop or reads one, so that what is saved is listed once for both.
type coder struct {
	b       []byte
	at      int
	reading bool
	bad     bool
}

func (c *coder) hop(h *Hop) {
	n := uint8(len(h.stats))
	c.byte(&n, statistics)
	if c.reading && n > 0 {
		h.stats = make([]series, n)
	}
	for k := range h.seasons {
		c.bin(&h.seasons[k].bin, int8(seasonBins[k]))
		c.uint(&h.seasons[k].count)
		c.check(h.seasons[k].bin > 0 || h.seasons[k].count == 0)
	}
	c.floats(-most, most, &h.spread, &h.logCount)
	c.floats(0, 1, &h.inverse, &h.emptyShare, &h.repeatShare)
	c.floats(0, 12, &h.longest)
	c.byte(&h.doubt, doubtMost)
	c.byte(&h.dumb, dumbFor)
	c.float64(&h.floor)
	c.uint(&h.windows)
	c.check(h.windows > 0 || n == 0)
	c.uint(&h.emptyRun)
	c.uint(&h.repeatRun)
	c.flag(&h.gone)
	for i := range h.last {
		c.float64(&h.last[i])
	}
	o := &h.open
	c.byte((*uint8)(&o.Cause), uint8(Stuck))
	c.byte((*uint8)(&o.Statistic), uint8(P99))
	c.check(o.Statistic == 0 || uint8(o.Statistic) < n)
	c.check(o.Cause == None || o.Cause == Silent || n > 0)
	c.float64(&o.Factor)
	c.floats(-most, most, &o.base)
	c.float64(&o.floor)
	c.byte(&o.contrast, contrasts-1)
	c.uint(&h.age)
	c.uint(&h.calm)
	c.uint(&h.back)
	c.floats(0, most, &h.passed, &h.strength)
	c.flag(&h.noisy)
	c.flag(&h.bursts)
	c.pending(h)
	for i := range h.stats {
		c.series(&h.stats[i], o.Cause == Rise || o.Cause == Fall)
	}
}

// pending codes the windows that are not learnt yet.
func (c *coder) pending(h *Hop) {
	n := uint8(len(h.held))
	c.byte(&n, heldMost)
	if c.reading && n > 0 {
		c.check(len(h.stats) == statistics && h.open.Cause == None && h.doubt > 0)
		h.held = make([]Window, n)
	}
	for i := range h.held {
		w := &h.held[i]
		count := uint8(w.Count)
		c.byte(&count, loneCount-1)
		c.check(count > 0)
		w.Count = uint64(count)
		c.float64(&w.P50)
		c.float64(&w.P90)
		c.float64(&w.P99)
	}
}

// most is more than any logarithm or any number of findings.
const most = 1e6

func (c *coder) series(s *series, moved bool) {
	c.floats(-most, most, &s.now)
	for k := range s.mean {
		c.floats(-most, most, &s.mean[k])
	}
	for j := range s.scale {
		for sign := range s.scale[j] {
			sc := &s.scale[j][sign]
			c.floats(0, most, &sc.square, &sc.tail)
			c.short(&sc.seen)
		}
	}
	for sign := range s.raised {
		c.floats(0, 40, &s.raised[sign][0], &s.raised[sign][1]) // e^40 is more than any contrast
	}
	if moved { // otherwise nobody asks for them
		for k := range s.onset {
			c.floats(-most, most, &s.onset[k])
		}
		c.floats(-most, most, &s.away)
	}
	for k := range seasons {
		c.floats(-most, most, &s.again[k], &s.sum[k])
		last, before := s.season.visits(k)
		for _, bins := range [][]int8{last, before} {
			for i := range bins {
				c.bin8(&bins[i])
			}
		}
	}
}

func (c *coder) check(ok bool) { c.bad = c.bad || c.reading && !ok }

func (c *coder) next(n int) []byte {
	if c.bad = c.bad || n > len(c.b)-c.at; c.bad {
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

func (c *coder) byte(p *uint8, most uint8) {
	if !c.reading {
		c.b = append(c.b, *p)
	} else if b := c.next(1); b != nil {
		*p = b[0]
		c.check(*p <= most)
		if c.bad {
			*p = 0
		}
	}
}

func (c *coder) bin8(p *int8) {
	u := uint8(*p)
	c.byte(&u, math.MaxUint8)
	*p = int8(u)
}

func (c *coder) bin(p *int8, most int8) {
	c.bin8(p)
	c.check(*p >= 0 && *p <= most)
	if c.bad {
		*p = 0
	}
}

func (c *coder) flag(p *bool) {
	var u uint8
	if *p {
		u = 1
	}
	c.byte(&u, 1)
	*p = u == 1
}

func (c *coder) short(p *uint16) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint16(c.b, *p)
	} else if b := c.next(2); b != nil {
		*p = binary.LittleEndian.Uint16(b)
		c.check(*p <= enough)
	}
}

func (c *coder) uint(p *uint32) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint32(c.b, *p)
	} else if b := c.next(4); b != nil {
		*p = binary.LittleEndian.Uint32(b)
	}
}

func (c *coder) floats(least, most float32, all ...*float32) {
	for _, p := range all {
		bits := math.Float32bits(*p)
		c.uint(&bits)
		*p = math.Float32frombits(bits)
		c.check(*p >= least && *p <= most)
	}
}

func (c *coder) float64(p *float64) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(*p))
	} else if b := c.next(8); b != nil {
		*p = math.Float64frombits(binary.LittleEndian.Uint64(b))
		c.check(*p >= 0 && *p <= 1e300)
	}
}
