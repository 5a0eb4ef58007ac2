package probe

import (
	"math/bits"
	"time"
)

// Track follows the rounds of probes that come back, to count those that are lost, late or come twice. It has room for a
// number of probes; what comes of others is reported, and not followed.
//
// With a plan ([Track.expect]) each expected probe has a place of its own. Scheduled rounds that do not come are lost,
// whether anything of the probe ever came or not. Probes outside the plan have a small table, in which the idle make
// room.
type Track struct {
	most int
	last map[TrackKey]*trackState

	// Count is the number of the totals of rounds that collectors get, at random in each program. It grows where they begin anew.
	Count  uint32
	turns  uint32 // that were reported
	paused bool   // before the latest one
	places uint32 // that probes got

	now  int64 // of the last call, ns by a clock that is never set
	ran  int64 // time in which this process ran, ns: while it stands still nothing is missed
	Plan *Expectations
	gaps int64 // rounds lost between those that came, of probes that no plan has
	kept int64 // rounds lost of beginnings that are over

	excused    int64 // rounds in whose place a corrupt frame came that does not say whose it is
	unreported int64 // of these, those that no report was left out for
	young, old int64 // such frames, since the last generation began and in the one before
	turned     int64 // when that was
	raw        int64 // rounds lost at the last tick, with those that are excused
}

// TrackKey names a probe by the address of its sender and its number there.
type TrackKey struct {
	Source [4]byte
	Number uint32
}

// NewTrack makes a track that follows at most that many probes.
func NewTrack(most int) *Track { return &Track{most: most, last: map[TrackKey]*trackState{}} }

// Add follows a probe that arrived; ok is false where there is no room for it.
func (t *Track) Add(a *Arrival) (ok bool) { return !t.See(a).Unknown }

// trackState is the state of one probe. Window is a bit for each of the last 64 rounds up to Seq: the lowest is that of
// Seq.
type trackState struct {
	epoch, seq uint32
	window     uint64
	sent       int64 // time of Seq

	first, received uint32 // the round that it began with, and how many came from it on
	begun           uint32 // times that it did
	odds            uint32 // arrivals that did not follow from those before
	place           uint32 // number of its place, each another one
	transit         uint64 // of those of received that have one
	transits        uint32 // how many they are
	corrupt         uint32 // of received, those whose frame was changed on its way
	marred          uint64 // the bits of these in window

	twice, reordered uint32 // arrivals of rounds that came before, and of rounds behind later ones

	turned, crossed uint32 // the latest round at the last turn, and how many up to it came since, behind later ones
	settled         uint32 // received at the last turn

	tried      int64     // when its place in the plan was looked for last
	heard, ran int64     // when the latest came, by both clocks of the track
	due        *expected // nil for a probe that no plan has
	odd        *odd      // the last arrival, where it does not follow from those before
}

// odd is an arrival that does not follow from those before. Two of them that follow each other are another beginning: one frame alone
// changes nothing.
type odd struct {
	epoch, seq uint32
	sent       int64
	heard      int64
}

// begin is the first arrival of a probe, or one with which it begins anew.
func (x *trackState) begin(a *Arrival) {
	*x = trackState{epoch: a.Epoch, seq: a.Seq, window: 1, sent: a.Sent, first: a.Seq, turned: a.Seq - 1, begun: x.begun + 1, odds: x.odds, place: x.place, heard: x.heard, ran: x.ran, due: x.due, tried: x.tried}
	x.arrived(a)
}

// arrived counts a round that came for the first time.
func (x *trackState) arrived(a *Arrival) {
	x.received++
	if a.Transit > 0 {
		x.transit += a.Transit
		x.transits++
	}
}

// seen holds the effect of an arrival on the rounds of its probe.
type seen struct {
	lost      int64 // rounds that were passed over; -1 for one that was counted as lost and is late
	Twice     bool
	Unknown   bool // there is no room to follow it
	Unplanned bool // the plan does not have it
	Odd       bool // by the plan it cannot follow those before, and changes nothing
}

// See follows a probe that came.
func (t *Track) See(a *Arrival) (s seen) {
	s = t.see(a)
	if a.Delay > 0 && t.Plan != nil && a.Epoch == t.Plan.Epoch && !s.Twice && !s.Odd {
		if e := t.Plan.own[TrackKey{a.Source, a.Number}]; e != nil {
			e.outcome.addDelay(a.Delay)
		}
	}
	return s
}

func (t *Track) see(a *Arrival) (s seen) {
	k := TrackKey{a.Source, a.Number}
	x, ok := t.last[k]
	if !ok {
		return t.welcome(k, a)
	}
	t.reassign(k, x, a)
	switch t.fits(x, a) {
	case before:
		return s
	case impossible:
		if !x.continues(t, a) {
			return seen{Odd: true}
		}
		t.over(x)
		t.recall(x)
		x.begin(&Arrival{Epoch: x.odd.epoch, Seq: x.odd.seq, Sent: x.odd.sent})
		s.lost = t.count(x, a).lost
		x.unbind(a)
	case another:
		passed := t.over(x)
		if e := x.due; e != nil && e.own {
			e.gaps += int64(a.Seq)
		} else if e != nil {
			e.gaps += max(0, min(int64(a.Seq), (t.now-x.heard)/e.interval)-passed)
		}
		x.begin(a)
		x.unbind(a)
	default:
		s = t.count(x, a)
	}
	s.Unplanned = t.Plan != nil && x.due == nil
	if !s.Twice && s.lost >= 0 {
		t.noteArrival(x)
	}
	return s
}

// unbind notes at a beginning that a probe is not sure any more to be the expected one: an agent that starts again may give its
// number to another probe.
func (x *trackState) unbind(a *Arrival) {
	if e := x.due; e != nil && !e.own && !e.like(a) {
		e.bound = false
	}
}

// noteArrival notes when the latest round of a probe came.
func (t *Track) noteArrival(x *trackState) {
	x.heard, x.ran, x.odd = t.now, t.ran, nil
	if x.due != nil {
		x.due.counted = 0
	}
}

// fit is how an arrival follows from those before.
type fit uint8

const (
	follows    fit = iota
	another        // beginning: a new plan, or a sender that was started again
	before         // of an earlier beginning
	impossible     // none of these can be
)

// fits returns how an arrival of a probe follows from those before. Growing values have the bounds of the plan in
// force. Without a plan, times and epochs are unknown.
func (t *Track) fits(x *trackState, a *Arrival) fit {
	const most = 1 << 16 // a gap above is another beginning, such as that of a sender that was started again
	d, newer, p := int64(int32(a.Seq-x.seq)), later(a.Epoch, x.epoch), t.Plan
	switch {
	case p != nil && x.due != nil && x.due.own:
		return p.fits(x, a)
	case newer && (p == nil || !later(a.Epoch, p.Latest) && a.Sent <= t.clock(x)):
		return another
	case newer:
		return impossible
	case a.Epoch != x.epoch && (p == nil || a.Sent <= x.sent && !t.dry(x)):
		return before
	case a.Epoch != x.epoch:
		return impossible
	case d <= 0 && d > -64 && x.marred&(1<<-d) != 0: // that frame had no valid time
		return follows
	case p == nil && (d > most || d < -most || d <= 0 && a.Sent > x.sent): // sent later, and yet an earlier round
		return another
	case p != nil && (d > x.most(t.now-x.heard) || d <= 0 && (a.Sent > x.sent || t.dry(x))):
		return impossible
	}
	return follows
}

// fits is the fit of an arrival of the agent's own probe, whose possible values it knows.
func (p *Expectations) fits(x *trackState, a *Arrival) fit {
	switch {
	case later(p.Epoch, a.Epoch):
		return before
	case !p.sentSoFar(x.due, a):
		return impossible
	case x.epoch != a.Epoch:
		return another
	}
	return follows
}

// clock is the latest time of sending of a probe that can be now, by that of the last one. A clock that was set needs a second frame.
func (t *Track) clock(x *trackState) int64 { return x.sent + t.now - x.heard + int64(Grace) }

// dry reports whether nothing that follows has come of a probe for two rounds.
func (t *Track) dry(x *trackState) bool { return x.due != nil && t.scheduled(x.due) >= 2 }

// recall takes back losses that were counted because of a frame with a false later round, once the rounds behind it
// arrive.
func (t *Track) recall(x *trackState) {
	if d := int64(x.seq - x.odd.seq); x.epoch == x.odd.epoch && d >= 0 && d < 64 {
		t.gap(x, int64(bits.OnesCount64(x.window&(2<<d-1)))-d-1)
	}
}

// continues reports whether an arrival follows the last one that did not follow from those before, and keeps it for the next one if not.
// Of a probe that the agent sends none is believed.
func (x *trackState) continues(t *Track, a *Arrival) bool {
	if o := x.odd; o != nil && o.epoch == a.Epoch && later(a.Seq, o.seq) && int64(a.Seq-o.seq) <= x.most(t.now-o.heard) {
		return x.due == nil || !x.due.own
	}
	x.odd, x.odds = &odd{a.Epoch, a.Seq, a.Sent, t.now}, x.odds+1
	return false
}

// most is the maximum number of rounds of a probe in a time. It is those of the schedule and some more, for a sender
// whose clock was set. Probes outside the plan have no known schedule.
func (x *trackState) most(d int64) int64 {
	const slack, unplanned = 16, 64
	if x.due == nil {
		return unplanned
	}
	return slack + (d+d/8)/x.due.interval
}

// count counts a round of the beginning of x.
func (t *Track) count(x *trackState, a *Arrival) (s seen) {
	switch d := int64(int32(a.Seq - x.seq)); {
	case d > 0:
		s.lost = d - 1
		t.gap(x, d-1)
		sent := a.Sent
		if t.Plan != nil {
			sent = min(sent, t.clock(x))
		}
		x.seq, x.sent = a.Seq, sent
		x.arrived(a)
		x.shift(d)
	case d <= -64: // too old to be known
	case x.marred&(1<<-d) != 0: // the corrupt frame was of another round, then
		x.marred &^= 1 << -d
		x.corrupt--
		t.young++
	case x.window&(1<<-d) != 0:
		s.Twice = true
		x.twice++
	case later(a.Seq, x.first) || x.due != nil && x.due.own: // one of another agent from before the first was never taken for lost
		x.window |= 1 << -d
		x.arrived(a)
		x.reordered++
		x.cross(a)
		s.lost = -1
		t.gap(x, -1)
	}
	return s
}

// cross counts a round behind later ones, if the last turn took it for missing.
func (x *trackState) cross(a *Arrival) {
	if !later(a.Seq, x.turned) {
		x.crossed++
	}
}

// shift makes room for d rounds, of which the last one came.
func (x *trackState) shift(d int64) {
	if d >= 64 {
		x.window, x.marred = 1, 0
		return
	}
	x.window, x.marred = x.window<<d|1, x.marred<<d
}

// gap counts rounds that were passed over, as far as they are not counted.
func (t *Track) gap(x *trackState, n int64) {
	e := x.due
	if e == nil {
		t.gaps += n
		return
	}
	if n > 0 {
		n -= min(n, e.counted)
	}
	e.gaps += n
}

// Spoiled counts a corrupt frame as the round that it names, if that one is missing, and else as an unnamed one. The
// round did not get lost. It reports whether the first holds.
func (t *Track) Spoiled(a *Arrival) bool {
	x := t.last[TrackKey{a.Source, a.Number}]
	if x != nil && x.epoch == a.Epoch && x.due != nil {
		switch d := int64(int32(a.Seq - x.seq)); {
		case d == 1:
			x.seq = a.Seq
			x.shift(1)
			x.damaged(0)
			t.noteArrival(x)
			return true
		case d < 0 && d > -64 && x.window&(1<<-d) == 0 && later(a.Seq, x.first):
			x.damaged(-d)
			x.cross(a)
			t.gap(x, -1)
			return true
		}
	}
	t.young++
	return false
}

// damaged counts the round that is n rounds before the latest one as one that came corrupt.
func (x *trackState) damaged(n int64) {
	x.window, x.marred = x.window|1<<n, x.marred|1<<n
	x.received, x.corrupt = x.received+1, x.corrupt+1
}

// later reports whether round or epoch a is behind b.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// Bounds of what no plan names.
const (
	mostUnplanned = 256
	idleUnplanned = int64(time.Minute)
)

// welcome assigns a place to a probe that has none.
func (t *Track) welcome(k TrackKey, a *Arrival) (s seen) {
	if t.Plan == nil {
		if s.Unknown = len(t.last) >= t.most; !s.Unknown {
			t.place(k, a, nil)
		}
		return s
	}
	e := t.Plan.own[k]
	switch {
	case e != nil && later(t.Plan.Epoch, a.Epoch): // of an earlier plan
		return s
	case e != nil && !t.Plan.sentSoFar(e, a):
		return seen{Odd: true}
	case e == nil:
		e = t.assign(k, a)
	}
	if e == nil {
		s.Unplanned = true
		if s.Unknown = t.Plan.unplanned >= min(mostUnplanned, t.most); !s.Unknown {
			t.Plan.unplanned++
			t.place(k, a, nil)
		}
		return s
	}
	if e.own {
		if e.state != nil {
			delete(t.last, e.key)
		} else {
			e.gaps += int64(a.Seq)
		}
		e.key, e.counted = k, 0
	}
	e.state = t.place(k, a, e)
	return s
}

// place follows a probe from its first arrival on.
func (t *Track) place(k TrackKey, a *Arrival, e *expected) *trackState {
	t.places++
	x := &trackState{due: e, heard: t.now, ran: t.ran, place: t.places}
	x.begin(a)
	t.last[k] = x
	return x
}
