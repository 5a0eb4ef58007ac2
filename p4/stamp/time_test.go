package stamp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// String is for the errors of tests.
func (d Delays) String() string { return fmt.Sprint(d.Count, " up to ", d.Max) }

// A time that is written is the one that is read, in both formats, and over the turn of NTP's era.
func TestTimestamp(t *testing.T) {
	era := time.Date(2036, 2, 7, 6, 28, 16, 0, time.UTC).UnixNano()
	list := []int64{0, 1, 999_999_999, 1_700_000_000_123_456_789, era - 1, era, era + 1}
	r := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		list = append(list, r.Int64N(4_000_000_000_000_000_000))
	}
	for _, ns := range list {
		for _, ptp := range []bool{false, true} {
			if back, ok := newTimestamp(ns, ptp).nanos(ptp); !ok || back != ns {
				t.Fatalf("%d is read as %d (PTP: %v)", ns, back, ptp)
			}
		}
	}
	if got := newTimestamp(-1, false); got != Timestamp(ntpEpoch-1)<<32|0xfffffffc {
		t.Errorf("a nanosecond before 1970 is %x", uint64(got))
	}
	if newTimestamp(0, false) != 0x83aa7e80<<32 || newTimestamp(5_000_000_007, true) != 5<<32|7 || newTimestamp(era+500_000_000, false) != 1<<31 {
		t.Error("times are not those of the formats")
	}
	if _, ok := Timestamp(1_000_000_000).nanos(true); ok {
		t.Error("a second has a thousand million nanoseconds")
	}
}

// An estimate is never below the bound that it was made of, and above it by less than a part in 64.
func TestErrorEstimate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	list := []time.Duration{-1, 0, 1, 59, 60, 61, time.Second, 68 * 365 * 24 * time.Hour, math.MaxInt64}
	for range 10_000 {
		list = append(list, time.Duration(r.Uint64()>>(2+r.IntN(61))))
	}
	for _, d := range list {
		e := NewErrorEstimate(true, true, d)
		got, ok := e.bound()
		if !ok || got < d || float64(got) > float64(max(d, 1))*(1+1.0/64)+1 && d < 1<<60 || !e.synced() || !e.PTP() {
			t.Fatalf("%v is %v by %x", d, got, uint16(e))
		}
	}
	if d, ok := ErrorEstimate(0x2000 | 1).bound(); d != time.Second || !ok {
		t.Errorf("2^0 seconds are %v", d)
	}
	if d, ok := ErrorEstimate(0x2100).bound(); d != 0 || ok {
		t.Errorf("a multiplier of 0 says %v", d)
	}
	if e := NewErrorEstimate(false, false, time.Millisecond); e.synced() || e.PTP() {
		t.Errorf("%x", uint16(e))
	}
}

// Quantiles are at least the exact ones, and above them by at most a part in 16.
func TestDelays(t *testing.T) {
	var d Delays
	if d.Quantile(0.5) != 0 || d.mean() != 0 {
		t.Error("nothing has quantiles")
	}
	d.Add(-5)
	for k := range 10_000 {
		d.Add(time.Duration(k+1) * time.Microsecond)
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		exact := time.Duration(q * 1e7)
		if got := d.Quantile(q); got < exact || float64(got) > float64(exact)*(1+1.0/16)+1 {
			t.Errorf("quantile %g is %v, and not %v", q, got, exact)
		}
	}
	if d.Quantile(1) != 10*time.Millisecond || d.Max != 10*time.Millisecond || d.mean() < 4999*time.Microsecond || d.mean() > 5001*time.Microsecond {
		t.Errorf("%v, %v, %v", d.Quantile(1), d.Max, d.mean())
	}
	d.Add(time.Hour)
	if d.Quantile(1) != time.Hour {
		t.Errorf("an hour is %v", d.Quantile(1))
	}
}
