package detect

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/state"
)

// pattern reports whether a hop is passed in a window. Minutes count since a Monday at midnight, and r is of the day.
type pattern func(r *rand.Rand, w int, length time.Duration) bool

func office(from, to, jitter float64, days int) func(*rand.Rand) pattern {
	return func(r *rand.Rand) pattern {
		starts, ends := map[int]float64{}, map[int]float64{}
		return func(_ *rand.Rand, w int, length time.Duration) bool {
			hours := float64(w) * length.Hours()
			day := int(hours / 24)
			if _, known := starts[day]; !known {
				starts[day], ends[day] = from+jitter*(2*r.Float64()-1), to+jitter*(2*r.Float64()-1)
			}
			h := hours - 24*float64(day)
			return day%7 < days && h >= starts[day] && h < ends[day] && r.Float64() < .999
		}
	}
}

func steady(p pattern) func(*rand.Rand) pattern { return func(*rand.Rand) pattern { return p } }

// TestUse simulates four weeks of hops that are not passed always, and then lets them die at a time at which they are
// passed. The former rule, without a week and long pauses, is compared with the profile. Each kind has 20 hops:
//
//	| packets come | window | false findings a day and hop, second half | first half | windows until its death is reported |
//	| --- | --- | --- | --- | --- |
//	| in half, in two of three, in 99.8 % of all windows | 10 s | 0 | 0 | up to 28, 17, 4 |
//	| for 40 s, and not for 40 s | 1 s, 10 s | 0 | 0 | 21 |
//	| but for ten minutes of every hour | 30 s | 0 | 0.143 | 31 |
//	| for ten minutes every 90 minutes: found by the length of the pause alone | 30 s | 0 | 0 | 241 |
//	| every day from 7 to 20 | 30 s | 0 | 0.143 | 4 |
//	| on weekdays from 8 to 18, or 9 to 17 half an hour sooner or later | 30 s | 0 | 0.286 | 4 |
//	| on weekdays from 1 to 4, half an hour sooner or later | 30 s | 0.004 | 0.286 | 4, 19 of 20 |
func TestUse(t *testing.T) {
	for _, x := range []struct {
		name   string
		length time.Duration
		days   int
		make   func(*rand.Rand) pattern
		dieAt  float64 // hour of the Tuesday after
		most   float64 // false findings a day and hop in the last half
		within int     // windows until the death is found, 0 for any
	}{
		{"half of all windows", 10 * time.Second, 6, steady(func(r *rand.Rand, _ int, _ time.Duration) bool { return r.Float64() < .5 }), 10, .01, 40},
		{"two of three windows", 10 * time.Second, 6, steady(func(r *rand.Rand, _ int, _ time.Duration) bool { return r.Float64() < .67 }), 10, .01, 25},
		{"40 s on, 40 s off", time.Second, 1, steady(func(_ *rand.Rand, w int, _ time.Duration) bool { return w%80 < 40 }), 10, .01, 100},
		{"40 s on, 40 s off, more or less", 10 * time.Second, 6, steady(func(r *rand.Rand, w int, _ time.Duration) bool { return w%8 < 3 || w%8 < 5 && r.IntN(2) == 0 }), 10, .01, 40},
		{"nearly always", 10 * time.Second, 6, steady(func(r *rand.Rand, _ int, _ time.Duration) bool { return r.Float64() < .998 }), 10, .01, 5},
		{"ten minutes of every hour not", 30 * time.Second, 28, steady(func(_ *rand.Rand, w int, l time.Duration) bool { return w*int(l/time.Second)/60%60 >= 10 }), 10.3, .01, 40},
		{"a job every 90 minutes", 30 * time.Second, 28, steady(func(_ *rand.Rand, w int, l time.Duration) bool { return w*int(l/time.Second)/60%90 < 10 }), 10.6, .01, 400},
		{"every day from 7 to 20", 30 * time.Second, 28, office(7, 20, .2, 7), 10, .01, 6},
		{"weekdays from 8 to 18", 30 * time.Second, 28, office(8, 18, .2, 5), 10.5, .01, 6},
		{"weekdays from 9 to 17, half an hour sooner or later", 30 * time.Second, 28, office(9, 17, .5, 5), 11, .01, 6},
		{"a job from 1 to 4 on weekdays, half an hour sooner or later", 30 * time.Second, 28, office(1, 4, .5, 5), 2.6, .01, 8},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			const seeds = 20
			var before, after, early, found, worst, foundBefore int
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, 7))
				passes := x.make(r)
				cfg := Latency(x.length)
				var u Use
				var h Hop
				half := x.days * int(24*time.Hour/x.length) / 2
				w, dead := 0, false
				add := func() (reported, formerly bool) {
					end := int64(4*24*time.Hour) + int64(w+1)*int64(x.length) // 1970 began on a Thursday
					win := Window{}
					if !dead && passes(r, w, x.length) {
						win = Window{Count: 100, P50: 1e4, P90: 1e4, P99: 1e4}
					}
					w++
					e := h.Add(&cfg, cfg.At(end), win)
					f, _ := h.Open()
					return u.Add(&cfg, end, win.Count) == Begun, e == Begun && f.Cause == Silent
				}
				for w < 2*half {
					reported, formerly := add()
					switch {
					case w <= half && reported:
						early++
					case reported:
						after++
					}
					if w > half && formerly {
						before++
					}
				}
				week := int(7 * 24 * time.Hour / x.length)
				at := (w+week-1)/week*week + int((24+x.dieAt)*float64(time.Hour)/float64(x.length))
				for w < at {
					add()
				}
				dead = true
				delay := -1
				for k := range max(1, 3*x.within) {
					reported, formerly := add()
					if reported && delay < 0 {
						delay = k + 1
					}
					if formerly && k < x.within {
						foundBefore++
					}
				}
				if delay > 0 && (delay <= x.within || x.within == 0) {
					found++
				}
				worst = max(worst, delay)
			}
			days := float64(seeds*x.days) / 2
			line := fmt.Sprintf("%s: false findings a day %.3f, before %.3f (in the first half %.3f); dead hops told %d of %d within %d windows (slowest %d), before %d",
				x.name, float64(after)/days, float64(before)/days, float64(early)/days, found, seeds, x.within, worst, foundBefore)
			t.Log(line)
			if float64(after)/days > x.most || found < seeds*9/10 {
				t.Error(line)
			}
		})
	}
}

// The state of a hop is written and read back, and impossible bytes are refused.
func TestUseState(t *testing.T) {
	cfg := Latency(time.Minute)
	var u Use
	r := rand.New(rand.NewPCG(1, 1))
	for w := range 3000 {
		count := uint64(0)
		if w%1440 > 400 && r.IntN(100) > 0 {
			count = 100
		}
		u.Add(&cfg, int64(w+1)*int64(time.Minute), count)
	}
	b := state.Append(nil, u.Code)
	var read Use
	if err := state.Read("use", b, read.Code); err != nil || !bytes.Equal(state.Append(nil, read.Code), b) || u.week == nil {
		t.Fatal(err)
	}
	for n := range b {
		if err := state.Read("use", b[:n], new(Use).Code); !errors.Is(err, state.ErrShort) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}
