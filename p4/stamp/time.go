package stamp

import (
	"math"
	"math/bits"
	"time"
)

// Timestamp is a time as it is in a packet: 64 bits of NTP, or of PTP version 2 cut to 32 bits of seconds. The error
// estimate beside it has the format.
type Timestamp uint64

const (
	ntpEpoch = 2208988800 // seconds from 1900 to 1970
	second   = int64(time.Second)
)

// newTimestamp writes a time, in nanoseconds since 1970. Seconds go round: those of NTP in 2036, of PTP in 2106.
func newTimestamp(ns int64, ptp bool) Timestamp {
	s, frac := floorDiv(ns)
	if ptp {
		return Timestamp(uint64(uint32(s))<<32 | uint64(frac))
	}
	return Timestamp(uint64(uint32(s+ntpEpoch))<<32 | (uint64(frac)<<32+uint64(second)/2)/uint64(second))
}

// nanos is the time in nanoseconds since 1970, where ok. Times of NTP are from 1968 to 2104. A written time reads back
// without difference; NTP itself has steps of a quarter of a nanosecond.
func (t Timestamp) nanos(ptp bool) (ns int64, ok bool) {
	s, frac := int64(t>>32), uint64(uint32(t))
	if ptp {
		return s*second + int64(frac), frac < uint64(second)
	}
	if s < 1<<31 {
		s += 1 << 32 // the era that begins in 2036
	}
	return (s-ntpEpoch)*second + int64((frac*uint64(second)+1<<31)>>32), true
}

func floorDiv(ns int64) (s int64, frac uint32) {
	s, f := ns/second, ns%second
	if f < 0 {
		s, f = s-1, f+second
	}
	return s, uint32(f)
}

// ErrorEstimate is the field of RFC 4656, section 4.1.2, as RFC 8186 has it. It holds whether the clock is
// synchronised, the format of the time stamps beside it, and the error bound of the clock.
type ErrorEstimate uint16

const (
	synced ErrorEstimate = 1 << 15
	isPTP  ErrorEstimate = 1 << 14
)

// NewErrorEstimate writes the bound of a clock's error, rounded up by less than a part in 128.
func NewErrorEstimate(follows, ptp bool, bound time.Duration) ErrorEstimate {
	e := ErrorEstimate(0)
	if follows {
		e |= synced
	}
	if ptp {
		e |= isPTP
	}
	s, ns := uint64(max(bound, 0))/uint64(second), uint64(max(bound, 0))%uint64(second)
	units := s<<32 + (ns<<32+uint64(second)-1)/uint64(second) // of 2^-32 seconds; a Duration has less than 2^34 seconds
	if s >= 1<<31 {
		return e | 0x3fff // 68 years and more are all the same
	}
	scale := max(bits.Len64(units)-8, 0)
	if units > 0xff<<scale {
		scale++
	}
	return e | ErrorEstimate(scale)<<8 | ErrorEstimate(max((units+1<<scale-1)>>scale, 1))
}

// synced reports whether the clock follows one outside, by its own account.
func (e ErrorEstimate) synced() bool { return e&synced != 0 }

// PTP reports whether the time stamps beside it are of PTP, and not of NTP.
func (e ErrorEstimate) PTP() bool { return e&isPTP != 0 }

// bound is the error bound of the clock. A multiplier of 0 is invalid and has no meaning: ok is false.
func (e ErrorEstimate) bound() (d time.Duration, ok bool) {
	m := float64(e & 0xff)
	s := math.Ldexp(m, int(e>>8&0x3f)-32)
	if s >= float64(math.MaxInt64/second) {
		return math.MaxInt64, m > 0
	}
	return time.Duration(math.Ceil(s * float64(second))), m > 0
}
