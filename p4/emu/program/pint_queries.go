package program

import (
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/p4"
)

// writing is the write of a switch into a digest.
type writing struct {
	c       *digests
	p       digest
	node    uint32
	latency uint64 // ns
	load    uint64 // in 2^-16
	wide    bool
	rewrite uint8

	set   byte
	id    uint32
	hop   uint32
	limit uint32 // of the hop in the Baseline layer
}

// keyed is 32 bits that depend on a packet, by the constant k of a function, and on x.
func keyed(k, id, x uint32) uint32 {
	key := crcWord(k + id)
	return crcWord(key + crcWord(key+crcWord(x)))
}

// within finds the row for the packet's epoch and a number of 32 bits.
func (w *writing) within(t *p4.Rows, v uint32) *p4.Row {
	return t.Find([]byte{w.p[0], byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// run reports whether the switch wrote: it holds the plan, and the hop is not too far.
func (w *writing) run() bool {
	w.hop, w.id = uint32(w.p[1]), be.Uint32(w.p[4:])
	plan := w.c.plan.At(uint64(w.p[0]))
	known := plan.Action == "set_plan"
	if known {
		w.wide = plan.Arg(1) == 1
	}
	most := w.c.replace.At(uint64(w.hop))
	if !known || most.Action != "at_most" {
		return false
	}
	w.limit = uint32(most.Arg(0))
	w.set = byte(w.within(w.c.set, keyed(uint32(plan.Arg(0)), w.id, 0)).Arg(0))
	d := be.Uint64(w.p[8:])
	d = w.path(d, &w.c.path[0])
	d = w.path(d, &w.c.path[1])
	d = w.sample(d)
	d = w.largest(d)
	d = w.loop(d)
	be.PutUint64(w.p[8:], d)
	return true
}

// slot is the place of a query in the digest: its lowest bit, its mask, and the row with the rest of its entry; nil if
// it has none.
func (w *writing) slot(t *p4.Rows) (shift, mask uint64, r *p4.Row) {
	if r = t.Find([]byte{w.p[0], w.set}); r.Action != "use" {
		return 0, 0, nil
	}
	return r.Arg(0), r.Arg(1), r
}

// path is one instance of a coding scheme: Baseline or XOR.
func (w *writing) path(d uint64, t *pathTables) uint64 {
	shift, mask, r := w.slot(t.slot) // cut, and the constants of hops, values and layer
	if r == nil {
		return d
	}
	most, folds := w.limit, false
	if l := w.within(t.layer, keyed(uint32(r.Arg(5)), w.id, 0)); l.Action == "xor" {
		most, folds = uint32(l.Arg(0)), true
	}
	if keyed(uint32(r.Arg(3)), w.id, w.hop) > most {
		return d
	}
	if !folds {
		d &^= mask << shift
	}
	return d ^ uint64(keyed(uint32(r.Arg(4)), w.id, w.node)>>r.Arg(2))<<shift
}

// sample lets Baseline pick one hop's latency.
func (w *writing) sample(d uint64) uint64 {
	shift, mask, r := w.slot(w.c.latency.slot)
	if r == nil || keyed(uint32(r.Arg(2)), w.id, w.hop) > w.limit {
		return d
	}
	v := w.encode(&w.c.latency, w.latency, keyed(uint32(r.Arg(3)), w.id, w.hop))
	return d&^(mask<<shift) | v&mask<<shift
}

// largest keeps the largest load along the path.
func (w *writing) largest(d uint64) uint64 {
	shift, mask, r := w.slot(w.c.utilization.slot)
	if r == nil {
		return d
	}
	if v := w.encode(&w.c.utilization, w.load, keyed(uint32(r.Arg(2)), w.id, 0)) & mask; v > d>>shift&mask {
		d = d&^(mask<<shift) | v<<shift
	}
	return d
}

// encode rounds a value to one of its two neighbours.
func (w *writing) encode(t *codeTables, v uint64, rnd uint32) uint64 {
	var key [9]byte
	key[0] = w.p[0]
	be.PutUint64(key[1:], v)
	r := t.code.Find(key[:])
	if r.Action != "level" {
		return r.Arg(0)
	}
	point := uint64(0)
	if rnd != 0 {
		point = exp2(t.expGap, int32(uint32(r.Arg(2)))+log2(t.logRnd, uint64(rnd))-32<<16)
	}
	code := r.Arg(0)
	if v-r.Arg(1) > point {
		code++
	}
	return code
}

// loop is Algorithm 2 of PINT.
func (w *writing) loop(d uint64) uint64 {
	shift, mask, r := w.slot(w.c.loop) // width, matches, and the constants of values and hops
	if r == nil {
		return d
	}
	width := r.Arg(2)
	own := uint64(keyed(uint32(r.Arg(4)), w.id, w.node) >> (32 - width))
	part := d >> shift & mask
	count := part >> width
	stored := part - count<<width
	if w.hop > 1 && stored == own {
		if count >= r.Arg(3) {
			w.rewrite = uint8(r.Arg(3)) + 1
		} else {
			count++
		}
	}
	if keyed(uint32(r.Arg(5)), w.id, w.hop) <= w.limit {
		stored, count = own, 0
	}
	return d&^(mask<<shift) | (count<<width|stored)<<shift
}

// cell looks a logarithm or a power up.
func cell(t *p4.Rows, i uint64) uint64 {
	if r := t.At(i); r.Action == "entry" {
		return r.Arg(0)
	}
	return 0
}

// log2 is the logarithm of x in 2^-16; 0 for 0.
func log2(t *p4.Rows, x uint64) int32 {
	if x == 0 {
		return 0
	}
	n := bits.LeadingZeros64(x)
	return int32((63-n)<<16) + int32(cell(t, x<<n<<1>>54))
}

// exp2 is 2 to the power of y / 2^16, rounded to an integer; all ones if it is more.
func exp2(t *p4.Rows, y int32) uint64 {
	mantissa := cell(t, uint64(uint32(y)>>6&1023))
	switch power := y>>16 - 24; {
	case power >= 40:
		return math.MaxUint64
	case power >= 0:
		return mantissa << power
	case power < -26:
		return 0
	default:
		return (mantissa + 1<<(-power-1)) >> -power
	}
}

// load is how full the line behind a port is, in 2^-16, by HPCC's average over a base round-trip time. A probe leaves no trace.
func (c *digests) load(port uint16, now uint64, bytes, packets uint32, probe bool) uint64 {
	r := c.line.lines.At(uint64(port))
	if r.Action != "line" {
		return 0
	}
	l := c.states[port]
	if l == nil {
		l = &lineState{}
		c.states[port] = l
	}
	next := *l
	load := uint64(0)
	if l.u != 0 || l.sent != 0 || l.last != 0 {
		load = next.step(&c.line, r, now, packets) >> 8
	}
	if next.sent, next.last = bytes, now; !probe {
		*l = next
	}
	return load
}

// step returns the new average, in 2^-24.
func (l *lineState) step(t *lineTables, r *p4.Row, now uint64, packets uint32) uint64 {
	signed := func(i int) int32 { return int32(uint32(r.Arg(i))) }
	base, logBase, logBytes, logCell, shift := r.Arg(0), signed(1), signed(2), signed(3), r.Arg(4)
	const most = math.MaxUint32
	idle := now - l.last
	yIdle := log2(t.logIdle, idle)
	tau, yTau := idle, yIdle
	if idle >= base {
		tau, yTau = base, logCell
	}
	sum := uint64(l.u)
	if tau == base {
		sum = 0
	} else if sum != 0 && tau != 0 {
		part := exp2(t.expDecay, log2(t.logAverage, sum)+yTau-logBase)
		sum -= min(part, sum)
	}
	if queue := uint64(packets) << shift; queue != 0 && tau != 0 {
		part := exp2(t.expQueue, log2(t.logQueue, queue)+logBytes+yTau-logBase)
		sum = min(sum+min(part, most), most)
	}
	if l.sent != 0 {
		y := log2(t.logSent, uint64(l.sent)) + logBytes
		if idle > base {
			y += logBase - yIdle
		}
		sum = min(sum+min(exp2(t.expSent, y), most), most)
	}
	l.u = uint32(sum)
	return sum
}
