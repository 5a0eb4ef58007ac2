package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// pathKey is a path in reports, by the address of its sender and its number.
type pathKey struct {
	from string
	path uint32
}

// outcomes adds up what a track reports of paths.
type outcomes map[pathKey]*decode.ProbeCounts

func (o outcomes) take(t *Track, from [4]byte) {
	ends := Ends{From: netip.AddrFrom4(from), To: netip.AddrFrom4(from), Mark: 27}
	t.Outcomes(&ends, func(_ TrackKey, packet []byte, c *decode.ProbeCounts) {
		k := pathKey{fmt.Sprint(netip.AddrFrom4([4]byte(packet[12:16]))), c.Path}
		s := o[k]
		if s == nil {
			s = &decode.ProbeCounts{}
			o[k] = s
		}
		s.Epoch = c.Epoch
		s.Sent, s.Received, s.Missed, s.Late = s.Sent+c.Sent, s.Received+c.Received, s.Missed+c.Missed, s.Late+c.Late
		s.Twice, s.Corrupt, s.Reordered, s.Forward = s.Twice+c.Twice, s.Corrupt+c.Corrupt, s.Reordered+c.Reordered, s.Forward+c.Forward
		s.Delays = append(s.Delays, c.Delays...)
	})
}

// pair is two agents with a plan each and a network between them, in virtual time. Each sends a probe to itself and one
// to the other, every 100 ms.
type pair struct {
	t      *testing.T
	now    time.Duration
	agents [2]*pairAgent
	lose   func(id string, seq uint32) bool
	late   func(id string, seq uint32) time.Duration
	ahead  time.Duration // of the clock of senders
	sum    outcomes
	flying []flight
}

type pairAgent struct {
	name    string
	address [4]byte
	track   *Track
	work    *Work
	numbers map[string]uint32
	off     bool          // it sends nothing
	asleep  bool          // its machine stands still, and so does its clock
	slept   time.Duration // how long it did
	turn    time.Duration // after each full second
}

type flight struct {
	at time.Duration
	to int
	a  Arrival
}

func pairPlan(epoch uint32) *Plan {
	p := &Plan{Epoch: epoch, Dialect: INT21, Basic: 0xf000, Detailed: 0xff80}
	for k, x := range [...]struct{ id, from, to string }{{"p1", "a", "a"}, {"p2", "a", "b"}, {"p3", "b", "a"}, {"p4", "b", "b"}, {"p5", "a", "b"}} {
		p.Probes = append(p.Probes, Probe{ID: x.id, Route: []int{1, 2 + k}, Interval: sceneInterval, Phase: time.Duration(k) * 20 * time.Millisecond, Agent: x.from, Collector: x.to})
	}
	p.Probes[1].To, p.Probes[2].To, p.Probes[4].To = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	return p
}

func newPair(t *testing.T) *pair {
	x := &pair{t: t, sum: outcomes{}, lose: func(string, uint32) bool { return false }, late: func(string, uint32) time.Duration { return 0 }}
	for k, name := range [...]string{"a", "b"} {
		x.agents[k] = &pairAgent{name: name, address: [4]byte{10, 0, 0, byte(k + 1)}, track: NewTrack(100)}
	}
	return x
}

func (x *pair) adopt(k int, p *Plan) {
	a := x.agents[k]
	ends := testEnds
	ends.From, ends.To = netip.AddrFrom4(a.address), netip.AddrFrom4(a.address)
	w, numbers, err := NewWork(p, a.name, &ends, a.numbers)
	if err != nil {
		x.t.Fatal(err)
	}
	a.work, a.numbers = w, numbers
	a.track.Tick(int64(x.now - a.slept))
	a.track.Expect(NewExpectations(p, a.name, a.address, w))
}

// run lets time pass in steps of 20 ms.
func (x *pair) run(d time.Duration) {
	for end := x.now + d; x.now < end; {
		x.now += 20 * time.Millisecond
		for _, a := range x.agents {
			if a.asleep {
				a.slept += 20 * time.Millisecond
				continue
			}
			a.track.Tick(int64(x.now - a.slept))
			if a.work == nil || a.off {
				continue
			}
			for i := range a.work.Templates {
				p := &a.work.Plan.Probes[a.work.Templates[i].Probe]
				if x.now%sceneInterval != p.Phase {
					continue
				}
				seq := a.work.Next[i].Add(1) - 1
				if !x.lose(p.ID, seq) {
					to := slices.IndexFunc(x.agents[:], func(b *pairAgent) bool { return b.name == p.Collector })
					f := Arrival{Source: a.address, Number: a.work.Templates[i].Number, Epoch: a.work.Plan.Epoch, Seq: seq, Sent: int64(x.now + x.ahead), Hops: len(p.Route),
						Ports: portsOf(p.Route, func(port *int) int { return *port })}
					x.flying = append(x.flying, flight{x.now + 2*time.Millisecond + x.late(p.ID, seq), to, f})
				}
			}
		}
		x.flying = slices.DeleteFunc(x.flying, func(f flight) bool {
			if f.at > x.now {
				return false
			}
			f.a.Delay = int64(f.at+x.ahead) - f.a.Sent
			if to := x.agents[f.to]; !to.asleep {
				to.track.See(&f.a)
			}
			return true
		})
		for _, a := range x.agents {
			if x.now%Grace == a.turn && !a.asleep {
				a.track.Turn()
				x.sum.take(a.track, a.address)
			}
		}
	}
}

// judged is what a collector may take for lost of a path, see package events.
func (x *pair) judged(from string, path uint32) int64 {
	c := x.sum[pathKey{from, path}]
	if c == nil {
		return 0
	}
	lost := int64(c.Missed) - int64(c.Late)
	if unsure := lost - int64(c.Forward); unsure > 0 {
		lost = int64(c.Forward) + min(unsure, max(0, int64(c.Sent)-int64(c.Received)-int64(max(c.Forward, 0))))
	}
	return lost
}

// accuseNone holds that no path lost anything.
func (x *pair) accuseNone(when string) {
	x.t.Helper()
	for k, c := range x.sum {
		if n := x.judged(k.from, k.path); n > 0 {
			x.t.Errorf("%s, %v: path %d from %s lost %d: %+v", when, x.now, k.path, k.from, n, c)
		}
	}
}

// TestOutcomes: each agent reports what it knows of the paths of a plan, so that what is lost of each is known, and no
// path is accused of what another one lost.
func TestOutcomes(t *testing.T) {
	x := newPair(t)
	x.adopt(0, pairPlan(7))
	x.adopt(1, pairPlan(7))
	x.run(20 * time.Second)
	for k, c := range x.sum {
		if c.Missed+c.Late+c.Twice+c.Corrupt+c.Reordered != 0 || c.Forward != 0 || c.Epoch != 7 || c.Received < 170 || c.Sent < 130 {
			t.Errorf("without a fault, %v: %+v", k, c)
		}
	}
	if len(x.sum) != 5 || len(x.sum[pathKey{"10.0.0.1", 1}].Delays) == 0 || len(x.sum[pathKey{"10.0.0.1", 2}].Delays) != 0 {
		t.Errorf("%d paths, delays %+v and %+v", len(x.sum), x.sum[pathKey{"10.0.0.1", 1}], x.sum[pathKey{"10.0.0.1", 2}])
	}

	// One path to another agent and one to the own one lose all, and another one a third.
	x.sum = outcomes{}
	x.lose = func(id string, seq uint32) bool { return id == "p2" || id == "p4" || id == "p5" && seq%3 == 0 }
	x.run(20 * time.Second)
	x.lose = func(string, uint32) bool { return false }
	for _, v := range []struct {
		from      string
		path      uint32
		low, high int64
	}{{"10.0.0.1", 1, 0, 0}, {"10.0.0.1", 2, 150, 200}, {"10.0.0.2", 3, 0, 0}, {"10.0.0.2", 4, 160, 200}, {"10.0.0.1", 5, 55, 68}} {
		if n := x.judged(v.from, v.path); n < v.low || n > v.high {
			t.Errorf("path %d from %s lost %d, want %d to %d: %+v", v.path, v.from, n, v.low, v.high, x.sum[pathKey{v.from, v.path}])
		}
	}

	// Later all that was lost is known exactly, by the numbers of rounds.
	x.run(10 * time.Second)
	for path, from := range map[uint32]string{2: "10.0.0.1", 4: "10.0.0.2"} {
		if c := x.sum[pathKey{from, path}]; c.Missed-c.Late != 200 || c.Forward != 200 {
			t.Errorf("path %d: %+v", path, c)
		}
	}
}

// TestOutcomesStay: rounds that were reported as lost stay lost when their sender has the next plan before their receiver, whether later
// rounds came or not.
func TestOutcomesStay(t *testing.T) {
	for name, lost := range map[string]func(seq uint32) bool{
		"half of them": func(seq uint32) bool { return seq%2 == 0 },
		"all of them":  func(uint32) bool { return true },
	} {
		x := newPair(t)
		x.adopt(0, pairPlan(7))
		x.adopt(1, pairPlan(7))
		x.run(20 * time.Second)
		x.lose = func(id string, seq uint32) bool { return id == "p2" && lost(seq) }
		x.run(20 * time.Second)
		reported := x.judged("10.0.0.1", 2)
		if reported < 80 {
			t.Errorf("%s: %d lost: %+v", name, reported, x.sum[pathKey{"10.0.0.1", 2}])
		}
		x.lose = func(string, uint32) bool { return false }
		x.agents[1].track.Plan.Latest = 8
		x.adopt(0, pairPlan(8))
		x.run(20 * time.Second)
		if n := x.judged("10.0.0.1", 2); n < reported {
			t.Errorf("%s: %d lost, and %d of them when the sender had another plan: %+v", name, reported, n, x.sum[pathKey{"10.0.0.1", 2}])
		}
	}
}

// TestOutcomesLate: rounds that come late are taken off again, in the order in which they come. A round that comes again
// is a duplicate.
func TestOutcomesLate(t *testing.T) {
	x := newPair(t)
	x.adopt(0, pairPlan(7))
	x.adopt(1, pairPlan(7))
	x.run(10 * time.Second)
	x.late = func(_ string, seq uint32) time.Duration {
		if seq%10 == 3 {
			return 1500 * time.Millisecond
		}
		return 0
	}
	x.run(20 * time.Second)
	x.late = func(string, uint32) time.Duration { return 0 }
	for _, a := range x.agents { // the last rounds of all come again
		for k, s := range a.track.last {
			a.track.See(&Arrival{Source: k.Source, Number: k.Number, Epoch: s.epoch, Seq: s.seq, Sent: s.sent, Hops: 2})
		}
	}
	x.run(10 * time.Second)
	for k, c := range x.sum {
		if c.Missed != c.Late || c.Forward != 0 || c.Reordered < 15 || c.Twice != 1 {
			t.Errorf("%v: %+v", k, c)
		}
	}
}

// TestOutcomesAccuse: a path loses nothing because an agent begins, pauses, ends, or has a plan before or after the
// other, at any time of its round, whatever part of the reports is in one window.
func TestOutcomesAccuse(t *testing.T) {
	for name, change := range map[string]func(x *pair){
		"the receiver has a plan first": func(x *pair) { x.adopt(1, pairPlan(8)) },
		"the sender has a plan first":   func(x *pair) { x.adopt(0, pairPlan(8)) },
		"both have another plan":        func(x *pair) { x.adopt(0, pairPlan(8)); x.adopt(1, pairPlan(8)) },
		"a probe is taken back": func(x *pair) {
			p := pairPlan(8)
			p.Probes = append(p.Probes[:1:1], p.Probes[2:]...)
			x.adopt(0, p)
		},
		"the sender ends": func(x *pair) { x.agents[0].off, x.agents[0].track.Plan = true, nil },
		"the sender begins anew": func(x *pair) {
			x.agents[0].track, x.agents[0].numbers = NewTrack(100), nil
			x.adopt(0, pairPlan(7))
		},
		"the receiver begins anew": func(x *pair) {
			x.agents[1].track, x.agents[1].numbers = NewTrack(100), nil
			x.adopt(1, pairPlan(7))
		},
	} {
		for phase := time.Duration(0); phase < time.Second; phase += 340 * time.Millisecond {
			for _, length := range []time.Duration{time.Second, 1060 * time.Millisecond, 10 * time.Second} {
				x := newPair(t)
				x.agents[0].turn, x.agents[1].turn = phase, (phase+length/2)%time.Second/(20*time.Millisecond)*(20*time.Millisecond)
				x.adopt(0, pairPlan(7))
				x.adopt(1, pairPlan(7))
				x.run(20*time.Second + phase)
				windows := func(d time.Duration, when string) {
					for end := x.now + d; x.now < end; {
						x.sum = outcomes{}
						x.run(length)
						x.accuseNone(fmt.Sprintf("%s, phase %v, windows of %v, %s", name, phase, length, when))
					}
				}
				change(x)
				windows(20*time.Second, "after it")
				x.agents[0].off = false
				x.adopt(0, pairPlan(9))
				windows(20*time.Second, "after it ended")
				x.adopt(1, pairPlan(9))
				windows(20*time.Second, "at last")
				for k := range 12 { // the program of the sender ends for a while
					x.run(time.Duration(k) * 180 * time.Millisecond)
					x.sum = outcomes{}
					x.run(time.Duration(11-k) * 100 * time.Millisecond)
					x.agents[0].off, x.agents[0].track.Plan = true, nil
					x.run(8*time.Second + phase)
					x.accuseNone(fmt.Sprintf("%s, phase %v, an end", name, phase))
					x.agents[0].off, x.agents[0].track = false, NewTrack(100)
					x.adopt(0, pairPlan(9))
					windows(4*time.Second, "soon after a start")
					x.sum = outcomes{}
					x.run(9 * time.Second)
					x.accuseNone(fmt.Sprintf("%s, phase %v, a start", name, phase))
				}
				for range 3 { // the sender pauses
					x.sum = outcomes{}
					x.agents[0].off = true
					x.run(5*time.Second + phase)
					x.agents[0].off = false
					x.agents[0].work.Skipped[1].Add(50)
					x.agents[0].work.Skipped[2].Add(50)
					x.run(5 * time.Second)
					x.accuseNone(fmt.Sprintf("%s, phase %v, a pause", name, phase))
					windows(20*time.Second, "after a pause")
				}
			}
		}
	}
}

// TestOutcomesSuspended: no path is accused because the machine of its sender was suspended, whose clock that is never set stands still
// meanwhile.
func TestOutcomesSuspended(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 2 * time.Second, 10 * time.Second} {
		for phase := time.Duration(0); phase < length; phase += 180 * time.Millisecond {
			x := newPair(t)
			x.agents[0].turn, x.agents[1].turn = 300*time.Millisecond, 700*time.Millisecond
			x.adopt(0, pairPlan(7))
			x.adopt(1, pairPlan(7))
			x.run(20 * time.Second)
			until := x.now + 6*time.Second + phase
			a := x.agents[0]
			for a.asleep = true; x.now < until+20*time.Second; {
				x.sum = outcomes{}
				end := x.now + length
				if a.asleep && end > until {
					x.run(until - x.now)
					a.asleep = false
					a.track.Suspended()
				}
				x.run(end - x.now)
				for k, c := range x.sum { // probes to it came while it stood still
					if n := x.judged(k.from, k.path); n > 0 && k.from == "10.0.0.1" && k.path != 1 {
						t.Errorf("windows of %v, %v after the end: path %d lost %d: %+v", length, x.now-until, k.path, n, c)
					}
				}
			}
		}
	}
}

// TestOutcomesPause: rounds that were missed are not reported if it shows in time that they were not sent.
func TestOutcomesPause(t *testing.T) {
	x := newPair(t)
	x.adopt(0, pairPlan(7))
	x.adopt(1, pairPlan(7))
	x.run(10 * time.Second)
	x.sum = outcomes{}
	x.agents[0].off = true
	x.run(3 * time.Second)
	x.agents[0].off = false
	x.run(10 * time.Second)
	if c := x.sum[pathKey{"10.0.0.1", 2}]; c == nil || c.Received < 80 || c.Missed+c.Late != 0 {
		t.Errorf("%+v", c)
	}
}

// TestOutcomesUnheard: a receiver reports a probe of which nothing ever came without the address of its sender, and the
// same number. Two that cannot be distinguished are not reported.
func TestOutcomesUnheard(t *testing.T) {
	x := newPair(t)
	x.lose = func(id string, _ uint32) bool { return id == "p2" }
	x.adopt(0, pairPlan(7))
	x.adopt(1, pairPlan(7))
	x.run(20 * time.Second)
	sent, missed := x.sum[pathKey{"10.0.0.1", 2}], x.sum[pathKey{"0.0.0.0", 2}]
	if sent == nil || missed == nil || sent.Sent < 130 || sent.Received != 0 || missed.Missed < 150 || missed.Forward != 0 || len(x.sum) != 6 {
		t.Errorf("%+v, %+v of %d", sent, missed, len(x.sum))
	}

	x = newPair(t)
	p := pairPlan(7)
	p.Probes[4].Route, p.Probes[4].Phase = p.Probes[1].Route, p.Probes[1].Phase
	x.lose = func(id string, _ uint32) bool { return id == "p2" }
	x.adopt(0, p)
	x.adopt(1, p)
	x.run(20 * time.Second)
	for k, c := range x.sum {
		if (k.path == 2 || k.path == 5) && (c.Received > 0 || c.Missed > 0) {
			t.Errorf("%v: %+v", k, c)
		}
	}
}

// TestOutcomesRivals: a probe that may be either of two is not reported while one of them does not come, and both are once both
// come: then each is nearer to its own place.
func TestOutcomesRivals(t *testing.T) {
	x := newPair(t)
	x.ahead = 6 * time.Millisecond
	p := pairPlan(7)
	p.Probes[4].Route, p.Probes[4].Phase = p.Probes[1].Route, p.Probes[1].Phase+20*time.Millisecond
	silent := true
	x.lose = func(id string, _ uint32) bool { return id == "p5" && silent }
	x.adopt(0, p)
	x.adopt(1, p)
	x.run(20 * time.Second)
	unsure := x.agents[1].track.Turn().Unsure
	for k, c := range x.sum {
		if (k.path == 2 || k.path == 5) && c.Received > 0 || unsure != 2 {
			t.Errorf("while one does not come, with %d unsure, %v: %+v", unsure, k, c)
		}
	}
	silent, x.sum = false, outcomes{}
	x.run(20 * time.Second)
	for _, path := range []uint32{2, 5} {
		if c := x.sum[pathKey{"10.0.0.1", path}]; c == nil || c.Received < 150 || x.judged("10.0.0.1", path) != 0 {
			t.Errorf("path %d, when both come: %+v", path, c)
		}
	}
	if n := x.agents[1].track.Turn().Unsure; n != 0 {
		t.Errorf("%d are unsure", n)
	}
}

// TestPathNumbers: numbers of paths are those of ids, and distinct between two agents.
func TestPathNumbers(t *testing.T) {
	p := &Plan{}
	for _, x := range [...]struct{ id, from, to string }{
		{"p17", "a", "b"}, {"q17", "a", "c"}, {"17", "b", "a"}, {"x3", "a", "b"}, {"y3", "a", "b"}, {"name", "a", "b"}, {"p70000", "a", "b"}, {"p65535", "a", "b"}, {"p0", "a", "b"},
	} {
		p.Probes = append(p.Probes, Probe{ID: x.id, Agent: x.from, Collector: x.to})
	}
	n := pathNumbers(p)
	if n[0] != 17 || n[1] != 17 || n[2] != 17 || n[7] != 65535 || n[8] != 0 {
		t.Errorf("%d", n)
	}
	seen := map[uint32]bool{}
	for _, k := range n[3:7] {
		if k < pathHashed || seen[k] {
			t.Errorf("%d", n)
		}
		seen[k] = true
	}
}
