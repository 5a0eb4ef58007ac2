package probe

import (
	"fmt"
	"time"
)

// Timetable holds which probe is due next. Times are nanoseconds since 1970. It is for one goroutine and reads no
// clock.
type Timetable struct{ heap []start }

// start is when a probe starts next.
type start struct {
	due             int64
	interval, phase int64
	probe           int32 // index in the list of slots
}

// Slot is the interval and the phase of a probe.
type Slot struct{ Interval, Phase time.Duration }

// Check returns what is wrong with s, as the end of a sentence about its probe.
func (s Slot) Check() error {
	if s.Interval < minInterval || s.Interval > maxInterval {
		return fmt.Errorf("has an interval of %v, outside %v..%v", s.Interval, minInterval, maxInterval)
	}
	if s.Phase < 0 || s.Phase >= s.Interval {
		return fmt.Errorf("has a phase of %v: it is from 0 and below the interval %v", s.Phase, s.Interval)
	}
	return nil
}

// NewTimetable begins at a time: the first start of a slot is the first one at that time or later.
func NewTimetable(slots []Slot, now int64) *Timetable {
	t := &Timetable{heap: make([]start, len(slots))}
	for k, s := range slots {
		t.heap[k] = start{interval: int64(s.Interval), phase: int64(s.Phase), probe: int32(k)}
	}
	t.Restart(now)
	return t
}

// Restart begins anew at another time, as when the clock was set.
func (t *Timetable) Restart(now int64) {
	for k := range t.heap {
		t.heap[k].due = t.heap[k].at(now)
	}
	for k := len(t.heap)/2 - 1; k >= 0; k-- {
		t.sink(k)
	}
}

// at is the first start at now or later.
func (s *start) at(now int64) int64 {
	since := (now - s.phase) % s.interval
	switch {
	case since == 0:
		return now
	case since < 0:
		return now - since
	}
	return now - since + s.interval
}

// Next returns when the next probe is due; ok is false without probes.
func (t *Timetable) Next() (due int64, ok bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].due, true
}

// Pop returns the probe that was due first, and skips its further starts that are over by now. So no probe is sent
// twice in an interval: late starts close together would measure the sender. Due must not be after now.
func (t *Timetable) Pop(now int64) (probe int, due int64, skipped uint64) {
	s := &t.heap[0]
	probe, due = int(s.probe), s.due
	s.due += s.interval
	if s.due <= now {
		n := (now-s.due)/s.interval + 1
		skipped, s.due = uint64(n), s.due+n*s.interval
	}
	t.sink(0)
	return probe, due, skipped
}

// before orders starts; of two at the same time the first one of the plan goes first.
func (s *start) before(o *start) bool {
	return s.due < o.due || s.due == o.due && s.probe < o.probe
}

// sink moves entry k to its place.
func (t *Timetable) sink(k int) {
	h := t.heap
	x := h[k]
	for {
		c := 2*k + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&x) {
			break
		}
		h[k] = h[c]
		k = c
	}
	h[k] = x
}
