package windows

import (
	"math"
	"time"
)

// reading is one look at both clocks, in ns. The monotonic clock is never set, runs forward at the pace of time, and
// stands still while the machine sleeps. The wall clock is set by operators and NTP, and may have any value.
type reading struct{ mono, wall int64 }

// wallClock decides when the windows of a live collector end, and under which label each is kept. The label is the
// multiple of the window's length, in wall time, at which the window ended. wallClock reads no clock itself.
//
// A window ends at the first multiple at least half a length, in monotonic time, after its beginning. Whatever happens
// to the wall clock, a window therefore lasts at least half a length and less than one and a half. A late call of look
// adds to that. If it was late by less than a length and the clock was not set, the next window is shorter by as much.
// That window has its own label, and its reports are those with its times of receipt. A wall clock that runs a little
// fast or slow moves the ends with it. A clock that is set forward skips labels. A clock that is set back comes to
// labels again:
//
//   - again: windows under the labels above floor, of which the caller keeps what was counted, so that it can add to it;
//   - held: what is below would take the place of something that is not known any more, so the latest label is kept until
//     the wall clock has passed it.
type wallClock struct {
	length int64
	reach  int64 // how far back from the latest label labels may come again

	first   reading
	last    reading // the latest
	opened  int64   // when the open window began, monotonic
	lead    int64   // how long it would have lasted by then, had it begun with its label before
	planned int64   // when the open window was to end by the look before, monotonic
	latest  int64   // label
	floor   int64   // labels up to this one are not used again
	fresh   bool    // no window has ended yet
	held    bool    // the latest label is kept until the wall clock has passed it
}

// windowKind is the relation of a label to earlier windows under it.
type windowKind uint8

const (
	freshWindow    windowKind = iota // the label is later than all before
	repeatedWindow                   // the label may have been used
	heldWindow                       // the latest label, while the wall clock is far behind it
)

// windowCut is the end of a window.
type windowCut struct {
	label    int64
	kind     windowKind
	duration time.Duration // monotonic
	at       reading
}

// newWallClock begins with the first window. Labels up to now may have been used by an earlier run of the collector.
func newWallClock(length, reach time.Duration, now reading) *wallClock {
	began := MultipleBefore(now.wall, int64(length))
	k := &wallClock{
		length: int64(length), reach: int64(reach), first: now, last: now, opened: now.mono,
		latest: began, floor: began, fresh: true,
	}
	k.planned, _ = k.end()
	return k
}

// whole makes the first window end at the first multiple of the length, as that of a run which began with the one before.
// What an earlier run counted until then is kept under the same label.
func (k *wallClock) whole() {
	k.lead = k.first.wall - k.floor
	k.planned, _ = k.end()
}

// look evaluates a reading of the clocks. It returns how far the wall clock was set since the last one, 0 if it was
// not, and whether the open window ends now.
func (k *wallClock) look(now reading) (step time.Duration, cut windowCut, due bool) {
	step = k.read(now)
	at, label := k.end()
	if now.mono < at {
		k.planned = at
		return step, windowCut{}, false
	}
	late := now.mono - max(at, k.planned)
	cut = k.cut(label)
	if step == 0 && late > 0 && late < k.length {
		k.lead = late
	}
	k.planned, _ = k.end()
	return step, cut, true
}

// finish ends the open window early, when the collector stops. Its counts get a label of their own, so that the next
// run can use the label that the window would have had.
func (k *wallClock) finish(now reading) (step time.Duration, cut windowCut) {
	step = k.read(now)
	label := now.wall
	if label <= k.latest {
		if label = MultipleBefore(label, k.length); label < now.wall {
			label += k.length
		}
	}
	return step, k.cut(label)
}

// sleep is how long nothing is to be done, unless the wall clock is set meanwhile.
func (k *wallClock) sleep() time.Duration {
	at, _ := k.end()
	return time.Duration(max(at-k.last.mono, 0))
}

// forget raises the floor: counts under the labels up to this one are not kept any more.
func (k *wallClock) forget(label int64) { k.floor = max(k.floor, label) }

// steady is the time that the wall clock would show had it not been set since the start.
func (k *wallClock) steady() int64 { return k.first.wall + k.last.mono - k.first.mono }

// read stores a reading and returns how far the wall clock was set. NTP lets a clock run faster or slower to correct
// it, by 0.05 %, or as much as 8 % with chrony. The two clocks are not read in one instant: that is no step.
func (k *wallClock) read(now reading) (step time.Duration) {
	passed := now.mono - k.last.mono
	d := now.wall - k.last.wall - passed
	k.last = now
	if limit := int64(100*time.Millisecond) + passed/10; d > limit || d < -limit {
		return time.Duration(d)
	}
	return 0
}

// end is when the open window ends, in monotonic time, and the multiple that the wall clock shows then.
func (k *wallClock) end() (at, label int64) {
	earliest := k.opened - k.lead + k.length/2
	wall := k.last.wall + earliest - k.last.mono
	label = MultipleBefore(wall, k.length)
	if label < wall {
		label += k.length
	}
	return k.last.mono + label - k.last.wall, label
}

// open is when the open window is to end, in wall time, and the label that it gets then.
func (k *wallClock) open() (edge, label int64) {
	_, edge = k.end()
	label, _ = k.keep(edge)
	return edge, label
}

// keep returns the label of a window that ends at a multiple, and its kind.
func (k *wallClock) keep(end int64) (label int64, kind windowKind) {
	switch {
	case end > k.latest:
		return end, freshWindow
	case end > k.floor && !k.held:
		return end, repeatedWindow
	case k.fresh: // the latest label may be that of an earlier run
		return k.latest + k.length, heldWindow
	}
	return k.latest, heldWindow
}

func (k *wallClock) cut(label int64) windowCut {
	c := windowCut{duration: time.Duration(k.last.mono - k.opened), at: k.last}
	c.label, c.kind = k.keep(label)
	k.latest, k.held, k.fresh = max(k.latest, c.label), c.kind == heldWindow, false
	k.opened, k.lead = k.last.mono, 0
	if k.latest > math.MinInt64+k.reach {
		k.forget(k.latest - k.reach - 1)
	}
	return c
}

// MultipleBefore is the last multiple of length that is not after t.
func MultipleBefore(t, length int64) int64 {
	into := t % length
	if into < 0 {
		into += length
	}
	return t - into
}
