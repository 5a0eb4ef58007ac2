package windows

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// clockRun drives a wallClock through any sequence of readings and checks what has to hold whatever the wall clock does.
type clockRun struct {
	t      *testing.T
	k      *wallClock
	now    reading
	began  int64 // of the open window, monotonic
	cuts   []windowCut
	steps  []time.Duration
	late   time.Duration // longest between two looks
	parts  map[int64]int64
	latest int64
}

const startWall = int64(1_800_000_003_217_000_000) // in the middle of a window

func newClockRun(t *testing.T, length, reach time.Duration) *clockRun {
	now := reading{mono: 77, wall: startWall}
	return &clockRun{t: t, k: newWallClock(length, reach, now), now: now, began: now.mono, parts: map[int64]int64{}}
}

// pass lets time pass, the way a machine does: the caller looks when the clock asked it to, and every second. The wall clock runs at
// rate.
func (r *clockRun) pass(d time.Duration, rate float64) {
	r.t.Helper()
	for end := r.now.mono + int64(d); r.now.mono < end; {
		n := min(end-r.now.mono, int64(time.Second), max(int64(r.k.sleep()), 1000)) // a timer is late by a little
		r.now.mono += n
		r.now.wall += int64(float64(n) * rate)
		r.look()
	}
}

func (r *clockRun) look() {
	r.t.Helper()
	step, cut, due := r.k.look(r.now)
	if step != 0 {
		r.steps = append(r.steps, step)
	}
	if !due {
		return
	}
	r.check(cut)
}

func (r *clockRun) check(cut windowCut) {
	r.t.Helper()
	length := r.k.length
	if took := r.now.mono - r.began; int64(cut.duration) != took || took < length/2 || took > length+length/2+int64(r.late)+1000 {
		r.t.Fatalf("a window of %v took %v, as it says %v", time.Duration(length), time.Duration(took), cut.duration)
	}
	if cut.label%length != 0 {
		r.t.Fatalf("label %d is no multiple of %d", cut.label, length)
	}
	before, latest := r.parts[cut.label], r.latest
	r.latest = max(latest, cut.label)
	switch cut.kind {
	case freshWindow:
		if before != 0 || cut.label <= latest {
			r.t.Fatalf("label %d is called fresh after %d, with %d under it", cut.label, latest, before)
		}
	case repeatedWindow:
		// What was counted under such a label is kept, if anything was.
		if cut.label > latest || latest-cut.label > r.k.reach || cut.label <= MultipleBefore(startWall, length) {
			r.t.Fatalf("label %d comes again, the latest is %d", cut.label, latest)
		}
	case heldWindow:
		if latest != 0 && cut.label != latest || cut.label <= MultipleBefore(startWall, length) {
			r.t.Fatalf("label %d is held, the latest is %d", cut.label, latest)
		}
	}
	r.parts[cut.label] += int64(cut.duration)
	r.cuts = append(r.cuts, cut)
	r.began = r.now.mono
}

// set sets the wall clock.
func (r *clockRun) set(d time.Duration) { r.now.wall += int64(d); r.look() }

// counted is the sum over all labels, which has to be all the time that passed.
func (r *clockRun) counted() (sum int64) {
	for _, n := range r.parts {
		sum += n
	}
	return sum
}

func (r *clockRun) kinds() (n [3]int) {
	for _, c := range r.cuts {
		n[c.kind]++
	}
	return n
}

const ten = 10 * time.Second

// Without a step every window has the length and its own label, and ends at a multiple of the length.
func TestWallClockUndisturbed(t *testing.T) {
	r := newClockRun(t, ten, 10*time.Minute)
	r.pass(time.Hour, 1)
	if n := r.kinds(); n[freshWindow] != len(r.cuts) || len(r.cuts) != 360 || len(r.steps) != 0 {
		t.Errorf("%v windows, %d steps", n, len(r.steps))
	}
	for i, c := range r.cuts {
		if c.at.wall-c.label > int64(time.Millisecond) || i > 0 && c.label-r.cuts[i-1].label != int64(ten) {
			t.Fatalf("window %d is %d, cut at %d", i, c.label, c.at.wall)
		}
	}
}

// The clock is set by any amount, at any moment of a window.
func TestWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{
		-time.Millisecond, -time.Second, -4 * time.Second, -6 * time.Second, -ten, -40 * time.Second, -9 * time.Minute, -20 * time.Minute, -time.Hour,
		time.Millisecond, time.Second, 4 * time.Second, 6 * time.Second, ten, 40 * time.Second, 9 * time.Minute, 20 * time.Minute, time.Hour, 24 * 365 * time.Hour,
	} {
		for phase := range 8 {
			t.Run(fmt.Sprint(step, " at ", phase), func(t *testing.T) {
				r := newClockRun(t, ten, 10*time.Minute)
				r.pass(15*time.Minute+time.Duration(phase)*1300*time.Millisecond, 1)
				before := len(r.cuts)
				r.set(step)
				r.pass(2*time.Hour, 1)
				reported := step >= time.Second || step <= -time.Second
				if reported && (len(r.steps) != 1 || r.steps[0] != step) || !reported && len(r.steps) != 0 {
					t.Errorf("steps reported: %v", r.steps)
				}
				n := r.kinds()
				switch {
				case step < -11*time.Minute:
					// Windows are held until the clock has passed the latest.
					want := int(-step / ten)
					if n[heldWindow] < want-2 || n[heldWindow] > want+1 || n[repeatedWindow] != 0 {
						t.Errorf("%v windows of each kind", n)
					}
				case step < -ten:
					want := int(-step / ten)
					if n[repeatedWindow] < want-1 || n[repeatedWindow] > want+1 || n[heldWindow] != 0 {
						t.Errorf("%v windows of each kind", n)
					}
				case step >= 0:
					if n[freshWindow] != len(r.cuts) {
						t.Errorf("%v windows of each kind", n)
					}
				}
				if got, want := r.counted(), r.began-77; got != want || len(r.cuts)-before < 719 {
					t.Errorf("%d ns counted under labels of %d, %d windows in two hours", got, want, len(r.cuts)-before)
				}
				// Whatever happened, windows end at multiples of the wall clock again.
				if c := r.cuts[len(r.cuts)-1]; c.at.wall-c.label > int64(time.Millisecond) || c.kind != freshWindow {
					t.Errorf("the last window is %+v", c)
				}
			})
		}
	}
}

// A leap second is a second that comes twice. Windows of a second and less come again, longer ones become longer.
func TestWallClockLeapSecond(t *testing.T) {
	for _, length := range []time.Duration{100 * time.Millisecond, time.Second, ten} {
		r := newClockRun(t, length, 10*time.Minute)
		r.pass(time.Minute, 1)
		r.now.wall -= int64(time.Second)
		r.look()
		r.pass(time.Minute, 1)
		if n := r.kinds(); n[heldWindow] != 0 || length > time.Second != (n[repeatedWindow] == 0) || len(r.steps) != 1 {
			t.Errorf("%v: %v windows of each kind, steps %v", length, n, r.steps)
		}
	}
}

// The machine sleeps: the monotonic clock stands still, the wall clock does not.
func TestWallClockSuspend(t *testing.T) {
	r := newClockRun(t, ten, 10*time.Minute)
	for range 20 {
		r.pass(37*time.Second, 1)
		r.set(8 * time.Hour)
	}
	if n := r.kinds(); n[freshWindow] != len(r.cuts) || len(r.steps) != 20 {
		t.Errorf("%v windows of each kind, %d steps", n, len(r.steps))
	}
}

// A process that is stopped for a while ends the open window under its own label, and makes up none.
func TestWallClockStopped(t *testing.T) {
	r := newClockRun(t, ten, 10*time.Minute)
	r.pass(time.Minute, 1)
	before := len(r.cuts)
	last := r.cuts[before-1].label
	r.late = 5 * time.Minute
	r.now.mono += int64(5 * time.Minute)
	r.now.wall += int64(5 * time.Minute)
	r.look()
	if len(r.cuts) != before+1 || r.cuts[before].label != last+int64(ten) || len(r.steps) != 0 {
		t.Fatalf("windows %+v, steps %v", r.cuts[before:], r.steps)
	}
	r.late = 0
	r.pass(time.Minute, 1)
	if c := r.cuts[before+1]; c.label < last+int64(5*time.Minute) || c.kind != freshWindow {
		t.Errorf("after the stop comes %+v", c)
	}
}

// A look that is late by less than a window, because of load, takes no label from the next window.
func TestWallClockLate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	k := newWallClock(ten, 10*time.Minute, reading{mono: 77, wall: startWall})
	now, want := reading{mono: 77, wall: startWall}, int64(0)
	for i := range 10_000 {
		n := int64(k.sleep()) + r.Int64N(int64(ten)*95/100)
		now.mono += n
		now.wall += n
		began := k.opened
		step, cut, due := k.look(now)
		if step != 0 || !due || cut.kind != freshWindow || int64(cut.duration) != now.mono-began || i > 0 && cut.label != want {
			t.Fatalf("window %d: %+v, want the label %d", i, cut, want)
		}
		want = cut.label + int64(ten)
	}
}

// A clock that NTP makes run faster or slower is followed: windows end at its multiples, and no step is logged.
func TestWallClockSlewed(t *testing.T) {
	for _, rate := range []float64{1 + 500e-6, 1 - 500e-6, 1.08, 0.92} {
		r := newClockRun(t, ten, 10*time.Minute)
		r.pass(5*time.Hour, rate)
		if n := r.kinds(); n[freshWindow] != len(r.cuts) || len(r.steps) != 0 {
			t.Errorf("rate %g: %v windows of each kind, %d steps", rate, n, len(r.steps))
		}
		for i, c := range r.cuts {
			if off := c.at.wall - c.label; off < 0 || off > int64(time.Second) || i > 0 && c.label-r.cuts[i-1].label != int64(ten) {
				t.Fatalf("rate %g: window %d ends %v after its label %d", rate, i, time.Duration(off), c.label)
			}
		}
	}
}

// A clock that is set again and again, by anything.
func TestWallClockRandomWalk(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 1))
		length := []time.Duration{100 * time.Millisecond, time.Second, ten, 7 * time.Minute}[rng.IntN(4)]
		reach := []time.Duration{0, length, 10 * time.Minute, time.Hour}[rng.IntN(4)]
		r := newClockRun(t, length, reach)
		for range 150 {
			// A look can be late, by load or by a debugger; less than a window, so that it ends only one.
			r.pass(time.Duration(rng.Int64N(int64(3*length))), 1+rng.NormFloat64()/1000)
			r.set(time.Duration(rng.NormFloat64() * float64(length) * []float64{0.01, 0.3, 1, 5, 1000}[rng.IntN(5)]))
		}
		if got, want := r.counted(), r.began-77; got != want {
			t.Fatalf("seed %d: %d ns counted under labels of %d", seed, got, want)
		}
		step, cut := r.k.finish(r.now)
		if step != 0 || cut.kind == freshWindow && r.parts[cut.label] != 0 || cut.kind != freshWindow && cut.label%int64(length) != 0 {
			t.Fatalf("seed %d: the last window is %+v", seed, cut)
		}
	}
}

// What the caller forgets does not come again, and neither do labels of an earlier run.
func TestWallClockForgets(t *testing.T) {
	r := newClockRun(t, ten, 10*time.Minute)
	r.set(-40 * time.Second) // in the first window
	r.pass(time.Minute, 1)
	if n := r.kinds(); n[heldWindow] < 3 || n[repeatedWindow] != 0 {
		t.Errorf("before anything was kept: %v windows of each kind", n)
	}
	r.pass(10*time.Minute, 1)
	before := r.kinds()
	r.k.forget(r.k.latest - int64(ten))
	r.set(-time.Minute)
	r.pass(40*time.Second, 1)
	if n := r.kinds(); n[heldWindow] < before[heldWindow]+3 || n[repeatedWindow] != before[repeatedWindow] {
		t.Errorf("after forgetting: %v windows of each kind, before %v", n, before)
	}
}

// The first window of a run in a fleet ends at the first label, whenever the run begins, and all others as usual. All
// time is counted under labels.
func TestWallClockWhole(t *testing.T) {
	for phase := range 40 {
		r := newClockRun(t, ten, 10*time.Minute)
		start := startWall + int64(phase)*int64(250*time.Millisecond)
		r.now.wall = start
		r.k = newWallClock(ten, 10*time.Minute, r.now)
		r.k.whole()
		var labels []int64
		for end := r.now.mono + int64(time.Minute); r.now.mono < end; {
			n := max(int64(r.k.sleep()), 1000)
			r.now.mono += n
			r.now.wall += n
			if _, cut, due := r.k.look(r.now); due {
				labels = append(labels, cut.label)
				if cut.kind != freshWindow || int64(cut.duration) > int64(ten)+2000 {
					t.Errorf("phase %d: %+v", phase, cut)
				}
			}
		}
		for i, l := range labels {
			if want := MultipleBefore(start, int64(ten)) + int64(i+1)*int64(ten); l != want {
				t.Fatalf("phase %d: label %d is %d, want %d", phase, i, l, want)
			}
		}
		if len(labels) < 6 {
			t.Errorf("phase %d: %d windows", phase, len(labels))
		}
	}
}

// A clock that is set in that first window changes nothing of what holds for others.
func TestWallClockWholeSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -ten, -3 * time.Second, 3 * time.Second, ten, time.Hour} {
		r := newClockRun(t, ten, 10*time.Minute)
		r.k.whole()
		r.now.mono += int64(time.Second)
		r.now.wall += int64(time.Second) + int64(step)
		ended := 0
		for end := r.now.mono + int64(2*time.Minute); r.now.mono < end; {
			if _, cut, due := r.k.look(r.now); due {
				ended++
				if cut.label%int64(ten) != 0 || int64(cut.duration) > int64(ten)*3/2+2000 {
					t.Errorf("step %v: %+v", step, cut)
				}
			}
			n := min(max(int64(r.k.sleep()), 1000), int64(time.Second))
			r.now.mono += n
			r.now.wall += n
		}
		if ended < 11 || ended > 14 {
			t.Errorf("step %v: %d windows in two minutes", step, ended)
		}
	}
}
