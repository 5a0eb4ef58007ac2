package detect

import (
	"math"
	"time"

	"github.com/hopscope/hopscope/inference/state"
)

// Use is the record of the times at which packets pass a hop. It holds how often they came and how long the pauses
// were. Once there was a longer pause, it also holds at which times of the week packets come. A silence is a finding if
// it is longer than any pause of the last weeks. It is also one if packets come at that time of the week in nearly
// every window. The zero value has seen nothing. It takes 112 bytes, and 336 more once a pause was 12 windows long.
type Use struct {
	windows  uint32  // with packets
	logCount float32 // mean of the logarithm of their number
	empty    float32 // share of windows without packets, but for the present run of them

	run      uint32  // windows without packets until now
	lapse    uint32  // of them, those at times at which packets are expected
	evidence float32 // logarithm of how unlikely these are, negated
	age      uint32  // of the finding that is open
	calm     uint32  // windows with packets in a row since it began
	open     bool
	usual    bool // the silence was reported, and lasted until it became the usual state

	pauses [2]pauses // of the present fortnight, and of the one before
	period uint32    // of the present fortnight

	week       []uint8 // by half hour: the share of windows with packets in 63rds, and below it how many visits that is the mean of, up to 3
	bin        uint16  // of the half hour under way plus one
	used, seen uint32  // windows of it with packets, and all
}

// pauses are the longest ones that ended by themselves: those without a finding, and those that a finding reported. Of
// each the whole, and the part at times at which packets were expected.
type pauses struct{ quiet, quietLapse, reported, reportedLapse uint32 }

func (p *pauses) join(o pauses) {
	p.quiet, p.quietLapse = max(p.quiet, o.quiet), max(p.quietLapse, o.quietLapse)
	p.reported, p.reportedLapse = max(p.reported, o.reported), max(p.reportedLapse, o.reportedLapse)
}

const (
	dayHalves  = 48
	weekHalves = 7 * dayHalves
	fullShare  = 63
	mostVisits = 3
	longPause  = 12 // windows, from which on the week is remembered
	// expectedShare is the least share of windows with packets, in a half hour and both beside it, at which packets are
	// expected.
	expectedShare = .9
	leastEmpty    = .005
)

// Add counts a window with its end, in ns since 1970, and its number of packets. It returns the effect on the finding
// of silence.
func (u *Use) Add(cfg *Config, end int64, count uint64) Event {
	u.turn(end - int64(cfg.Window))
	u.seen++
	if count == 0 {
		return u.pause(cfg)
	}
	u.used++
	return u.pass(cfg, count)
}

// pass takes a window with packets.
func (u *Use) pass(cfg *Config, count uint64) (e Event) {
	u.windows++
	rate := max(.001, 1/float32(u.windows+1))
	if u.run > 0 {
		u.empty = 1 - (1-u.empty)*float32(math.Pow(float64(1-rate), float64(u.run)))
		now := pauses{quiet: u.run, quietLapse: u.lapse}
		if u.open || u.usual { // a silence does not suppress the finding of the next one; the third one is how the hop is used
			before := u.longest()
			now = pauses{min(u.run, before.reported), min(u.lapse, before.reportedLapse), u.run, u.lapse}
		}
		u.pauses[0].join(now)
		if u.run >= longPause && u.week == nil {
			u.week = make([]uint8, weekHalves)
		}
	}
	if u.open {
		if u.calm++; u.calm >= uint32(cfg.EndAfter) {
			u.open, e = false, Ended
		}
	}
	u.empty -= u.empty * rate
	u.logCount += max(.01, 1/float32(u.windows)) * (float32(math.Log(float64(count))) - u.logCount)
	u.run, u.lapse, u.evidence, u.usual = 0, 0, 0, false
	return e
}

// longest returns the longest pauses of the last two to four weeks.
func (u *Use) longest() pauses {
	all := u.pauses[0]
	all.join(u.pauses[1])
	return all
}

// pause takes a window without packets.
func (u *Use) pause(cfg *Config) Event {
	if u.windows == 0 {
		return nothing
	}
	u.run++
	if share, ok := u.expected(); ok {
		u.lapse++
		u.evidence -= float32(math.Log(max(1-share, leastEmpty)))
	}
	if u.open {
		u.calm = 0
		if u.age++; u.age < uint32(cfg.Adopt) {
			return nothing
		}
		u.open, u.usual = false, true
		return Ended
	}
	if !u.Known(cfg) || u.usual || !u.unlikely() {
		return nothing
	}
	u.open, u.age, u.calm = true, 0, 0
	return Begun
}

// Accept makes the silence that is open the usual state, and ends its finding.
func (u *Use) Accept() { u.open, u.usual = false, true }

// unlikely reports whether the present pause is longer than chance and all pauses before it allow, by itself or at this
// time of the week.
func (u *Use) unlikely() bool {
	before := u.longest()
	ever := float64(u.run)*math.Log(max(float64(u.empty), leastEmpty)) < silentLimit && 2*u.run > 3*before.quiet
	return ever || u.evidence > -silentLimit && 2*u.lapse > 3*before.quietLapse
}

// Open reports whether a finding has the hop as silent.
func (u *Use) Open() bool { return u.open }

// Known reports whether a pause of the hop can become a finding. A hop of few packets has to be known for longer.
func (u *Use) Known(cfg *Config) bool {
	return u.windows >= learnBursts || u.windows >= cfg.warmup() && float64(u.logCount) >= math.Log(fewValues)
}

// Share returns the share of windows with packets by which a pause is expected to be over. It is that of this time of
// the week, or of all times.
func (u *Use) Share() float64 {
	if share, ok := u.expected(); ok {
		return share
	}
	return 1 - float64(u.empty)
}

// Use returns what is known of the pauses of a hop by its values.
func (h *Hop) Use() Use {
	u := Use{windows: h.windows, logCount: h.logCount, empty: h.emptyShare, run: h.emptyRun, open: h.open.Cause == Silent, usual: h.silenceUsual}
	u.open = u.open && !u.usual
	u.pauses[0].quiet = uint32(h.longest)
	if u.open {
		u.age = h.age
	}
	return u
}

// Learning reports whether the hop is too young for its pauses to be known, as [Hop.Learning] does.
func (u *Use) Learning() bool {
	return u.windows < learnSteady || u.windows < learnBursts && u.longest().reported > 0
}

// turn begins the half hour and the fortnight of a window that begins at a time.
func (u *Use) turn(begin int64) {
	half := begin / int64(halfHour)
	if begin < 0 {
		half = 0
	}
	if period := uint32(begin / int64(14*24*time.Hour)); period != u.period {
		u.pauses[0], u.pauses[1] = pauses{}, u.pauses[0]
		u.period = period
	}
	bin := uint16(half%weekHalves) + 1
	if bin == u.bin {
		return
	}
	if u.week != nil && u.seen > 0 && u.bin > 0 && (!u.open || u.week[u.bin-1]&3 < 2) { // a fault is not learnt where it is known to be one
		b := &u.week[u.bin-1]
		visits := min(int(*b&3)+1, mostVisits)
		share := float64(*b >> 2)
		share += (fullShare*float64(u.used)/float64(u.seen) - share) / float64(visits)
		*b = uint8(math.RoundToEven(share))<<2 | uint8(visits)
	}
	u.bin, u.used, u.seen = bin, 0, 0
}

// expected returns the least share of windows with packets around this time of the week, if packets are expected in
// nearly every one. They are if it was so in two visits, or on both days before and whenever this time of the week was
// seen.
func (u *Use) expected() (share float64, ok bool) {
	if u.week == nil || u.bin == 0 {
		return 0, false
	}
	at := int(u.bin) - 1
	share, visits := u.around(at)
	if visits >= 2 {
		return share, share >= expectedShare
	}
	if visits > 0 && share < expectedShare {
		return 0, false
	}
	for _, back := range [2]int{dayHalves, 2 * dayHalves} {
		s, visits := u.around(at + weekHalves - back)
		if visits == 0 || s < expectedShare {
			return 0, false
		}
		share = min(share, s)
		if share == 0 {
			share = s
		}
	}
	return share, true
}

// around returns the least share in a half hour and those beside it that were seen, since jobs do not begin on the
// minute.
func (u *Use) around(at int) (share float64, visits int) {
	visits = int(u.week[at%weekHalves] & 3)
	share = fullShare
	for d := weekHalves - 1; d <= weekHalves+1; d++ {
		if b := u.week[(at+d)%weekHalves]; b&3 > 0 {
			share = min(share, float64(b>>2))
		}
	}
	return share / fullShare, visits
}

// Code codes all that is remembered, as a part of a larger state. One that is read into is a new one.
func (u *Use) Code(c *state.Coder) {
	state.Fixed(c, "windows", &u.windows, &u.run, &u.lapse, &u.age, &u.calm)
	c.Float32("number", 0, most, &u.logCount)
	c.Float32("share", 0, 1, &u.empty)
	c.Float32("evidence", 0, mostValue32, &u.evidence)
	c.Flag("silence", &u.open, &u.usual)
	c.Check("silence", !(u.open && u.usual))
	for i := range u.pauses {
		p := &u.pauses[i]
		state.Fixed(c, "pauses", &p.quiet, &p.quietLapse, &p.reported, &p.reportedLapse)
	}
	state.Fixed(c, "half hour", &u.period, &u.used, &u.seen)
	c.Check("half hour", u.used <= u.seen)
	state.FixedTo(c, "half hour", weekHalves, &u.bin)
	long := u.week != nil
	c.Flag("week", &long)
	if c.Reading() && long {
		u.week = make([]uint8, weekHalves)
	}
	c.Bytes("week", u.week)
}

const mostValue32 = 1e30
