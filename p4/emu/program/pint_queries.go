package program

import (
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/p4"
)

// writing is the write of a switch into a digest.
type writing struct {
	s       *Switch
	p       digest
	node    uint32
	latency uint64 // ns
	load    uint64 // in 2^-16
	wide    bool
	rewrite uint8

	key   []p4.Value // epoch and set
	id    uint32
	hop   uint32
	limit uint32 // of the hop in the Baseline layer
}

// keyed is 32 bits that depend on a packet, by the constant k of a function, and on x.
func keyed(k, id, x uint32) uint32 {
	word := func(v uint32) uint32 { return crcOf(be.AppendUint32(nil, v)) }
	key := word(k + id)
	return word(key + word(key+word(x)))
}

// run reports whether the switch wrote: it holds the plan, and the hop is not too far.
func (w *writing) run() bool {
	epoch := num(uint64(w.p[0]))
	w.hop, w.id = uint32(w.p[1]), be.Uint32(w.p[4:])
	action, plan := w.s.find("egress.plan", epoch)
	known := action == "set_plan"
	if known {
		w.wide = plan[1].Uint64() == 1
	}
	action, most := w.s.find("egress.pint_replace", num(uint64(w.hop)))
	if !known || action != "at_most" {
		return false
	}
	w.limit = uint32(most[0].Uint64())
	_, set := w.s.find("egress.pint_set", epoch, num(uint64(keyed(uint32(plan[0].Uint64()), w.id, 0))))
	w.key = []p4.Value{epoch, set[0]}
	d := be.Uint64(w.p[8:])
	d = w.path(d, "egress.path0")
	d = w.path(d, "egress.path1")
	d = w.sample(d)
	d = w.largest(d)
	d = w.loop(d)
	be.PutUint64(w.p[8:], d)
	return true
}

// slot is the place of a query in the digest: its lowest bit, its mask, and the rest of its entry.
func (w *writing) slot(query string) (shift, mask uint64, rest []uint32, ok bool) {
	action, p := w.s.find(query+".slot", w.key...)
	if action != "use" {
		return 0, 0, nil, false
	}
	for _, v := range p[2:] {
		rest = append(rest, uint32(v.Uint64()))
	}
	return p[0].Uint64(), p[1].Uint64(), rest, true
}

// path is one instance of a coding scheme: Baseline or XOR.
func (w *writing) path(d uint64, query string) uint64 {
	shift, mask, k, ok := w.slot(query) // cut, and the constants of hops, values and layer
	if !ok {
		return d
	}
	most, folds := w.limit, false
	if action, p := w.s.find(query+".layer", w.key[0], num(uint64(keyed(k[3], w.id, 0)))); action == "xor" {
		most, folds = uint32(p[0].Uint64()), true
	}
	if keyed(k[1], w.id, w.hop) > most {
		return d
	}
	if !folds {
		d &^= mask << shift
	}
	return d ^ uint64(keyed(k[2], w.id, w.node)>>k[0])<<shift
}

// sample lets Baseline pick one hop's latency.
func (w *writing) sample(d uint64) uint64 {
	shift, mask, k, ok := w.slot("egress.latency")
	if !ok || keyed(k[0], w.id, w.hop) > w.limit {
		return d
	}
	v := w.encode("egress.latency.encode", w.latency, keyed(k[1], w.id, w.hop))
	return d&^(mask<<shift) | v&mask<<shift
}

// largest keeps the largest load along the path.
func (w *writing) largest(d uint64) uint64 {
	shift, mask, k, ok := w.slot("egress.utilization")
	if !ok {
		return d
	}
	if v := w.encode("egress.utilization.encode", w.load, keyed(k[0], w.id, 0)) & mask; v > d>>shift&mask {
		d = d&^(mask<<shift) | v<<shift
	}
	return d
}

// encode rounds a value to one of its two neighbours.
func (w *writing) encode(name string, v uint64, rnd uint32) uint64 {
	action, p := w.s.find(name+".code", w.key[0], num(v))
	if action != "level" {
		return p[0].Uint64()
	}
	point := uint64(0)
	if rnd != 0 {
		point = w.s.exp2(name+".exp_gap.exp", int32(uint32(p[2].Uint64()))+w.s.log2(name+".log_rnd.log", uint64(rnd))-32<<16)
	}
	code := p[0].Uint64()
	if v-p[1].Uint64() > point {
		code++
	}
	return code
}

// loop is Algorithm 2 of PINT.
func (w *writing) loop(d uint64) uint64 {
	shift, mask, k, ok := w.slot("egress.loop") // width, matches, and the constants of values and hops
	if !ok {
		return d
	}
	width, own := k[0], uint64(keyed(k[2], w.id, w.node)>>(32-k[0]))
	part := d >> shift & mask
	count := part >> width
	stored := part - count<<width
	if w.hop > 1 && stored == own {
		if count >= uint64(k[1]) {
			w.rewrite = uint8(k[1]) + 1
		} else {
			count++
		}
	}
	if keyed(k[3], w.id, w.hop) <= w.limit {
		stored, count = own, 0
	}
	return d&^(mask<<shift) | (count<<width|stored)<<shift
}

// cell looks a logarithm or a power up.
func (s *Switch) cell(name string, i uint64) uint64 {
	if action, p := s.find(name, num(i)); action == "entry" {
		return p[0].Uint64()
	}
	return 0
}

// log2 is the logarithm of x in 2^-16; 0 for 0.
func (s *Switch) log2(name string, x uint64) int32 {
	if x == 0 {
		return 0
	}
	n := bits.LeadingZeros64(x)
	return int32((63-n)<<16) + int32(s.cell(name, x<<n<<1>>54))
}

// exp2 is 2 to the power of y / 2^16, rounded to an integer; all ones if it is more.
func (s *Switch) exp2(name string, y int32) uint64 {
	mantissa := s.cell(name, uint64(uint32(y)>>6&1023))
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

// line is how full the line behind a port is, in 2^-16, by HPCC's average over a base round-trip time. A probe leaves no trace.
func (c *digests) line(s *Switch, port uint16, now uint64, bytes, packets uint32, probe bool) uint64 {
	action, p := s.find("egress.line.lines", num(uint64(port)))
	if action != "line" {
		return 0
	}
	l := c.lines[port]
	if l == nil {
		l = &lineState{}
		c.lines[port] = l
	}
	next := *l
	load := uint64(0)
	if l.u != 0 || l.sent != 0 || l.last != 0 {
		load = next.step(s, p, now, packets) >> 8
	}
	if next.sent, next.last = bytes, now; !probe {
		*l = next
	}
	return load
}

// step returns the new average, in 2^-24.
func (l *lineState) step(s *Switch, p []p4.Value, now uint64, packets uint32) uint64 {
	signed := func(i int) int32 { return int32(uint32(p[i].Uint64())) }
	base, logBase, logBytes, logCell, shift := p[0].Uint64(), signed(1), signed(2), signed(3), p[4].Uint64()
	const most = math.MaxUint32
	idle := now - l.last
	yIdle := s.log2("egress.line.log_idle.log", idle)
	tau, yTau := idle, yIdle
	if idle >= base {
		tau, yTau = base, logCell
	}
	sum := uint64(l.u)
	if tau == base {
		sum = 0
	} else if sum != 0 && tau != 0 {
		part := s.exp2("egress.line.exp_decay.exp", s.log2("egress.line.log_average.log", sum)+yTau-logBase)
		sum -= min(part, sum)
	}
	if queue := uint64(packets) << shift; queue != 0 && tau != 0 {
		part := s.exp2("egress.line.exp_queue.exp", s.log2("egress.line.log_queue.log", queue)+logBytes+yTau-logBase)
		sum = min(sum+min(part, most), most)
	}
	if l.sent != 0 {
		y := s.log2("egress.line.log_sent.log", uint64(l.sent)) + logBytes
		if idle > base {
			y += logBase - yIdle
		}
		sum = min(sum+min(s.exp2("egress.line.exp_sent.exp", y), most), most)
	}
	l.u = uint32(sum)
	return sum
}
