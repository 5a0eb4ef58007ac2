package pint

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestLog2(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	worst := 0.0
	check := func(x uint64) {
		got := math.Exp2(float64(Log2(x)) / logOne)
		off := math.Abs(got/float64(x) - 1)
		worst = max(worst, off)
		if off > LogError {
			t.Fatalf("seed %d: Log2(%d) = %d: off by %v, bound %v", seed, x, Log2(x), off, LogError)
		}
	}
	for x := range uint64(1 << 13) { // every cell, as long as numbers are shorter than it
		if x > 0 {
			check(x)
		}
	}
	for n := range 64 { // the ends of every cell of every octave
		for cell := range uint64(1 << logCells) {
			if n > logCells {
				lo := 1<<n + cell<<(n-logCells)
				check(lo)
				check(lo + 1<<(n-logCells) - 1)
			}
			check(1<<n + rng.Uint64()&(1<<n-1))
		}
	}
	if worst < LogError*.98 {
		t.Errorf("worst error %v: the bound %v could be lower", worst, LogError)
	}
	if Log2(0) != 0 {
		t.Errorf("Log2(0) = %d", Log2(0))
	}
}

func TestExp2(t *testing.T) {
	worst := 0.0
	for y := int32(-40 << logFraction); y < 66<<logFraction; y += 7 {
		got, want := float64(Exp2(y)), math.Exp2(float64(y)/logOne)
		if want >= 1<<64 {
			if Exp2(y) != math.MaxUint64 {
				t.Fatalf("Exp2(%d) = %v, want the largest", y, got)
			}
			continue
		}
		if want > 1e9 {
			worst = max(worst, math.Abs(got-want)/want)
		}
		if math.Abs(got-want) > want*ExpError+.5 {
			t.Fatalf("Exp2(%d) = %v, want %v", y, got, want)
		}
	}
	if worst < ExpError*.98 {
		t.Errorf("worst error %v: the bound %v could be lower", worst, ExpError)
	}
	for _, y := range []int32{math.MinInt32, math.MaxInt32} {
		if got := Exp2(y); got != 0 && got != math.MaxUint64 {
			t.Errorf("Exp2(%d) = %d", y, got)
		}
	}
}

// The entries that switches were loaded with must not change.
func TestTablesAreFixed(t *testing.T) {
	var b []byte
	for i := range 1 << logCells {
		b = binary.BigEndian.AppendUint16(b, LogEntry(i))
		b = binary.BigEndian.AppendUint32(b, ExpEntry(i))
	}
	if got := crc32.ChecksumIEEE(b); got != 0xb9e368d5 {
		t.Errorf("checksum of the tables is %#x", got)
	}
}

// exactMeter computes in floating point what a Line computes from tables.
type exactMeter struct {
	u           float64
	last, bytes float64
	begun       bool
}

func (m *exactMeter) step(bytesPerSecond, base, now, packet, queue float64) {
	if m.begun {
		idle := now - m.last
		tau := min(idle, base)
		rate := m.bytes / bytesPerSecond * 1e9 // ns that the last packet takes
		m.u -= tau / base * m.u
		m.u += tau / base * queue / bytesPerSecond * 1e9 / base
		m.u += rate / max(base, 0)
		if idle > base {
			m.u += rate/idle - rate/base
		}
	}
	m.begun, m.last, m.bytes = true, now, packet
}

// The utilisation is right within the bound that Line states, for links from 10 Mbit/s to 400 Gbit/s.
func TestLineAgainstFloat(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var worst float64
	for run := range 200 {
		rate := math.Exp2(rng.Float64()*15.3) * 1.25e6
		base := time.Duration(math.Exp2(rng.Float64()*10) * 1e4)
		l, err := NewLine(rate, base)
		if err != nil {
			t.Fatal(err)
		}
		var m Meter
		var e exactMeter
		now := rng.Int64N(1 << 60)
		start := now
		load := rng.Float64() * 1.2
		largest, least := 0.0, math.Inf(1)
		for step := range 3000 {
			packet := 64 + rng.Uint32N(1437)
			queue := uint32(0)
			if rng.IntN(3) > 0 {
				queue = rng.Uint32N(uint32(min(rate*base.Seconds()*3, 1e9)) + 1)
			}
			u := l.Step(&m, now, packet, queue)
			e.step(rate, float64(base), float64(now-start), float64(packet), float64(queue))
			largest = max(largest, e.u)
			if e.u >= 255 {
				break // the register's end
			}
			got := float64(m.u) / meterUnit
			off := math.Abs(got - e.u)
			if off > 2.01*ProductError*largest+1.5/least/meterUnit {
				t.Fatalf("seed %d: run %d: rate %v, base %v, step %d: utilisation %v, want %v; up to %v", seed, run, rate, base, step, got, e.u, largest)
			}
			if u != uint64(m.u)>>8 || u != m.Utilization() {
				t.Fatalf("utilisation %d of %d", u, m.u)
			}
			if largest > .01 && least > 1e-3 {
				worst = max(worst, off/largest)
			}
			gap := max(int64(float64(packet)/rate*1e9/max(load, .01)*rng.ExpFloat64()*.9), int64(float64(base)*2e-4)+1)
			least = min(least, float64(gap)/float64(base))
			now += gap
		}
	}
	t.Logf("largest error %.3f %% of the largest utilisation, bound %.3f %%", 100*worst, 200*ProductError)
	if worst == 0 || worst > 2.01*ProductError+1.5e3/meterUnit {
		t.Errorf("seed %d: largest error is %v", seed, worst)
	}
}

// A link that is always busy is just full, and one that is idle for long is what its last packet made it.
func TestLineSettles(t *testing.T) {
	l, err := NewLine(12.5e9, 13*time.Microsecond) // 100 Gbit/s
	if err != nil {
		t.Fatal(err)
	}
	var m Meter
	now := int64(1e15)
	for range 3000 {
		l.Step(&m, now, 1000, 0)
		now += 80
	}
	if u := float64(m.Utilization()) / UtilizationUnit; math.Abs(u-1) > 2*ProductError {
		t.Errorf("busy link: utilisation %v", u)
	}
	now += 1e9
	if u := l.Step(&m, now, 1000, 0); u != 0 {
		t.Errorf("after a second: utilisation %d, want 0", u)
	}
	before := m
	if l.Step(&m, now-5e8, 0, math.MaxUint32); m.u < before.u {
		t.Errorf("time ran backwards: %d after %d", m.u, before.u)
	}
	for range 1_000_000 {
		l.Step(&m, now, math.MaxUint32, math.MaxUint32)
	}
	if m.u != math.MaxUint32 {
		t.Errorf("utilisation %d, want the largest", m.u)
	}
}

func TestNewLineErrors(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := NewLine(rate, time.Millisecond); err == nil {
			t.Errorf("rate %v: taken", rate)
		}
	}
	for _, base := range []time.Duration{0, -1, 2 * time.Hour} {
		if _, err := NewLine(1e9, base); err == nil {
			t.Errorf("base %v: taken", base)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	l, err := NewLine(12.5e9, 13*time.Microsecond)
	if err != nil {
		b.Fatal(err)
	}
	var m Meter
	now := int64(0)
	for b.Loop() {
		now += 80 + now&0x3f
		l.Step(&m, now, 1000, uint32(now)&0xffff)
	}
}
