package window

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Numbers holds the sequence numbers of an exporter that one collector received in a window. Programs that merge the
// partials of several collectors need it, since a number that is missing at one may have reached another. It is there
// only on request (sequence.Tracker.ReportNumbers).
//
// A collector lists a sequence once, and once more for every time that the exporter began anew within the window.
type Numbers struct {
	inference.ExporterKey
	To    uint64 // where the datagrams were sent to
	Width uint8  // bits of a number, 1 to 32
	// Part counts from 0 the parts of the sequence in this window: each further part begins anew.
	Part uint32
	Anew bool // the collector took the exporter for one that counts anew, before the first of these numbers
	// Unknown is set if the numbers that came cannot be listed, such as more than half of all that there are. Runs is
	// then empty, and First is the newest number.
	Unknown bool
	First   uint32
	Runs    []Run // ascending, with a number that did not come between two of them; offsets from First, modulo 2^Width
}

// Run is a range of consecutive numbers that came: all of them, or Count of them where there were too many runs to list
// each.
type Run struct {
	First, Last uint64 // with both ends
	Count       uint64
}

// Two may be the same, as two path changes may.
var numbersKind = kindOf[unkeyed, Numbers]{
	one: "numbers", many: "numbers", least: len(decode.Addr{}) + 17,
	in:      func(p *Partial) *table[unkeyed, Numbers] { return &p.numbers },
	limit:   func(l *Limits) int { return l.Numbers },
	slice:   func(s *Slicer, n *Numbers) int { return s.Exporter(n.ExporterKey) },
	compare: (*Numbers).Compare,
	late:    func(n *Numbers) bool { return n.OfNode0() },
	own:     func(m *memory, n *Numbers) { n.Runs = share(&m.runs, n.Runs) },
	code: func(c *coder, m *memory, n *Numbers) {
		c.exporter("numbers", &n.ExporterKey)
		c.flags("numbers flags", &n.Anew, &n.Unknown)
		at := c.at
		c.byte("numbers width", &n.Width)
		c.check("numbers width", at, n.Width > 0 && n.Width <= 32)
		c.fixed64("numbers destination", &n.To)
		c.id("numbers part", &n.Part)
		at = c.at
		c.fixed32("numbers first", &n.First)
		c.check("numbers first", at, uint64(n.First)>>n.Width == 0)
		if n.Unknown {
			return
		}
		at = c.at
		runs := c.count("runs", math.MaxInt, 2, len(n.Runs))
		c.check("runs", at, runs > 0)
		c.next, c.most = 0, 1<<n.Width-1
		codeList(c, runs, &m.runs, &n.Runs, codeRun)
	},
}

// codeRun codes a run behind the last one. The first one begins at 0.
func codeRun(c *coder, r *Run) {
	at := c.at
	skip, length, missing := r.First-c.next, (r.Last-r.First)<<1, r.Last-r.First+1-r.Count
	if missing > 0 {
		length |= 1
	}
	c.uint("run", &skip)
	c.uint("run length", &length)
	some := length&1 != 0
	if length >>= 1; some {
		c.uint("run missing", &missing)
	} else {
		missing = 0
	}
	c.check("run", at, (c.next > 0 || skip == 0) && c.next <= c.most && skip <= c.most-c.next && length <= c.most-c.next-skip &&
		(!some || missing > 0 && missing <= length-min(length, 1))) // the ends of a run did come
	r.First = c.next + skip
	r.Last, r.Count = r.First+length, length+1-missing
	c.next = r.Last + 2 // a number in between did not come
}

// AddNumbers lists the numbers of an exporter that a collector received. It keeps nothing of n.
func (p *Partial) AddNumbers(n *Numbers) { numbersKind.add(p, n) }

// Numbers returns all that AddNumbers listed, also of partials that were merged. Each entry is what one collector
// received, and some numbers may be in several. The list belongs to p.
func (p *Partial) Numbers() []Numbers { return p.numbers.items }

// Compare orders by exporter, width, destination and part; the other fields only make the order a total one.
func (n *Numbers) Compare(o *Numbers) int {
	if c := cmp.Or(n.ExporterKey.Compare(o.ExporterKey), cmp.Compare(n.Width, o.Width), cmp.Compare(n.To, o.To), cmp.Compare(n.Part, o.Part),
		cmp.Compare(n.First, o.First), compareBools(n.Anew, o.Anew), compareBools(n.Unknown, o.Unknown)); c != 0 {
		return c
	}
	return slices.CompareFunc(n.Runs, o.Runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Count, b.Count))
	})
}
