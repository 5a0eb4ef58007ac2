package pint

import (
	"math"
	"math/bits"
)

// Switches add and look up tables, but neither multiply nor divide values. Products and quotients are sums and
// differences of logarithms (PINT, appendix "computing HPCC's utilization").
const (
	logCells    = 10 // bits of a number behind its leading one that the tables of logarithms distinguish
	logFraction = 16 // fractional bits of logarithms
	logOne      = 1 << logFraction
	expBits     = 24 // bits of the table of powers behind the leading one

	// LogError and ExpError bound |2^Log2(x) - x|/x and |Exp2(y) - 2^y|/2^y, the latter but for the rounding of the
	// result to an integer. Half of a cell is 2⁻¹¹ of a number or 2⁻¹¹·ln 2 of a power; the rest is the rounding of
	// the entries.
	LogError = 4.95e-4
	ExpError = 3.39e-4
)

// logTable has the logarithms of the geometric middles of 1024 cells of [1, 2), in 2⁻¹⁶. Its counterpart expTable has
// 2^y for the middles of 1024 cells of [0, 1), in 2⁻²⁴. As tables of a switch they are 2 and 3 KiB, besides 64
// prefixes that find the leading one.
var logTable, expTable = func() (l [1 << logCells]uint16, e [1 << logCells]uint32) {
	const n = 1 << logCells
	for i := range l {
		lo, hi := 1+float64(i)/n, 1+float64(i+1)/n
		l[i] = uint16(math.Round(math.Log2(lo*hi) / 2 * logOne))
		e[i] = uint32(math.Round(math.Exp2((float64(i)+0.5)/n) * (1 << expBits)))
	}
	return l, e
}()

// Log2 returns the logarithm of x in 2⁻¹⁶, from a table; 0 for 0.
func Log2(x uint64) int32 {
	if x == 0 {
		return 0
	}
	n := bits.LeadingZeros64(x)
	cell := x << n << 1 >> (64 - logCells)
	return int32(63-n)<<logFraction + int32(logTable[cell])
}

// Exp2 returns 2 to the power of y/2¹⁶, from a table, rounded to an integer; 2⁶⁴-1 if it is more.
func Exp2(y int32) uint64 {
	power := int(y>>logFraction) - expBits
	mantissa := uint64(expTable[y&(logOne-1)>>(logFraction-logCells)])
	switch {
	case power >= 64-expBits:
		return math.MaxUint64
	case power >= 0:
		return mantissa << power
	case power < -expBits-2:
		return 0
	}
	return (mantissa + 1<<(-power-1)) >> -power
}

// LogEntry and ExpEntry return the entries of the tables for the programs of switches. For LogEntry, cell is the 10
// bits behind the leading one of a number. For ExpEntry it is the upper 10 bits of the fraction of a logarithm.
func LogEntry(cell int) uint16 { return logTable[cell&(1<<logCells-1)] }

// ExpEntry is explained at LogEntry.
func ExpEntry(cell int) uint32 { return expTable[cell&(1<<logCells-1)] }
