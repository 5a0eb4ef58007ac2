package pint

import (
	"fmt"
	"math"
	"time"
)

// Line computes the utilisation of a link as a switch does: HPCC's (Li et al., SIGCOMM 2019) in the form that PINT
// gives it in its appendix, averaged in the switch instead of at the sender,
//
//	U ← (1 - τ/T)·U + τ/T·(qlen/(B·T) + txRate/B)
//
// with the time τ since the last packet, at most T, the base round-trip time T, and the queue qlen in bytes. B is the
// rate of the link, and txRate the last packet's bytes over τ. There is no multiplication and no division. The three
// products come from the tables of [Log2] and [Exp2], and every machine computes the same bits.
//
// The reading taken: U loses τ/T·U and gains the rest. The published simulation computes (1 - τ/T)·U as a product.
// Its small error would be made with every packet, and add up to T/τ times itself. The error of the loss τ/T·U is
// smaller by this factor. With e the error of a product, below, U is off by at most 2e of the largest U so far.
// Rounding adds 1.5·T/τ units of 2⁻²⁴.
//
// A Line is immutable, one for all ports of the same rate; each port has a [Meter].
type Line struct {
	base     int64 // T in ns
	logBase  int32 // log₂ T
	logBytes int32 // log₂ of the units of U in a byte a T: 2²⁴/(B·T)
}

// ProductError bounds the relative error of a Line's products: two logarithms from the table, two rounded constants
// and a power.
const ProductError = 2*LogError + ExpError + 2*math.Ln2/logOne

// meterUnit is one of U.
const meterUnit = 1 << 24

// Meter is the state of a port, three registers. The zero value has seen no packet.
type Meter struct {
	u     uint32 // in 2⁻²⁴, up to 256
	bytes uint32 // of the last packet
	last  int64
}

// NewLine makes the constants for links of bytesPerSecond, averaged over the base round-trip time.
func NewLine(bytesPerSecond float64, base time.Duration) (*Line, error) {
	if !(bytesPerSecond >= 1 && bytesPerSecond <= 1e15) {
		return nil, fmt.Errorf("pint: line of %v bytes a second: want 1 to 10¹⁵", bytesPerSecond)
	}
	if base < 1 || base > time.Hour {
		return nil, fmt.Errorf("pint: base round-trip time %v: want 1 ns to 1 h", base)
	}
	t := float64(base)
	constant := func(x float64) int32 { return int32(math.Round(math.Log2(x) * logOne)) }
	return &Line{base: int64(base), logBase: constant(t), logBytes: constant(meterUnit * 1e9 / bytesPerSecond / t)}, nil
}

// Step updates the meter when a packet of so many bytes leaves the port at now, in ns, with queue bytes in the queue.
// It returns the utilisation in parts of [UtilizationUnit]. Time that runs backwards counts as none.
func (l *Line) Step(m *Meter, now int64, packet, queue uint32) uint64 {
	first := *m == Meter{}
	tau := min(max(now-m.last, 0), l.base)
	idle := now - m.last
	sent := m.bytes
	m.last, m.bytes = now, packet
	if first {
		return 0
	}
	var logTau int32
	if tau > 0 {
		logTau = Log2(uint64(tau))
	}
	u := uint64(m.u)
	switch {
	case tau == l.base:
		u = 0
	case u != 0 && tau != 0:
		u -= min(u, Exp2(Log2(u)+logTau-l.logBase))
	}
	if queue != 0 && tau != 0 { // qlen/(B·T)·τ/T
		u = saturate(u, Exp2(Log2(uint64(queue))+l.logBytes+logTau-l.logBase))
	}
	if sent != 0 { // sent/(B·T), or after more than T, sent/(B·τ)
		y := Log2(uint64(sent)) + l.logBytes
		if idle > l.base {
			y += l.logBase - Log2(uint64(idle))
		}
		u = saturate(u, Exp2(y))
	}
	m.u = uint32(u)
	return m.Utilization()
}

// Utilization is that of the last step, in parts of [UtilizationUnit].
func (m *Meter) Utilization() uint64 {
	const shift = 24 - 16
	return uint64(m.u) >> shift
}

// saturate adds within the register.
func saturate(u, more uint64) uint64 { return min(u+min(more, math.MaxUint32), math.MaxUint32) }
