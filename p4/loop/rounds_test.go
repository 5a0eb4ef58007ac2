package loop

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
)

// twoHosts are two agents of tests, each of which sends a probe to the other, as they count rounds themselves.
type twoHosts struct {
	t      *testing.T
	now    int64
	rounds *Rounds
	hosts  [2]*countingHost
	sent   [2]uint64 // given out, by probe
	lost   [2]uint64
	in     [2]float64 // the last time in switches that was
}

// countingHost sends and takes probes by the parts that an agent has for that.
type countingHost struct {
	life       uint64
	epoch, seq uint32
	failed     uint32 // rounds that its port did not take
	refuses    bool   // so it does
	track      *probe.Track
	spoiled    uint64
	gone       bool   // answers nothing
	down       bool   // sends and takes nothing
	clock      int64  // before that of the test
	transit    uint64 // of its probes, 0 where no switch reports one
}

const roundsInterval = 100 * time.Millisecond

var roundsNames = [2]string{"a", "b"}

func newTwoHosts(t *testing.T) *twoHosts {
	x := &twoHosts{t: t}
	route := func(ports ...int) string {
		b, err := srint.AppendProbe(nil, ports)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(b)
	}
	list := []planner.Probe{{ID: "p0", Agent: "a", Collector: "b", Route: route(1, 2)}, {ID: "p1", Agent: "b", Collector: "a", Route: route(1, 3)}}
	x.rounds = NewRounds(list, &Probing{Interval: roundsInterval})
	for k := range x.hosts {
		x.hosts[k] = &countingHost{life: 1, epoch: 1, track: probe.NewTrack(10)}
	}
	if len(x.rounds.probes) != 2 || len(x.rounds.probes[0].route) == 0 {
		t.Fatalf("probes %+v", x.rounds.probes)
	}
	return x
}

func (x *twoHosts) source(k int) [4]byte { return [4]byte{10, 0, 0, byte(k)} }

// reported returns the answer of a host.
func (x *twoHosts) reported(k int) Answer {
	h := x.hosts[k]
	p := &x.rounds.probes[k]
	r := &probe.Rounds{Epoch: h.epoch, Address: netip.AddrFrom4(x.source(k)), Spoiled: h.spoiled, Received: h.track.Received()}
	if h.epoch > 0 {
		r.Sent = []probe.SentRounds{{ID: p.id, Number: 7, Route: p.route, Interval: roundsInterval, Next: h.seq, Failed: h.failed}}
	}
	y, err := probe.RoundsOf(r.Proto(roundsNames[k], 1))
	return Answer{agent: roundsNames[k], Life: h.life, Asked: x.now, Answered: x.now, Rounds: y, Wrong: err}
}

// survey lets both answer, and collects what is given out.
func (x *twoHosts) survey() (refused []error) {
	var list []Answer
	for k, h := range x.hosts {
		if !h.gone {
			list = append(list, x.reported(k))
		}
	}
	refused = x.rounds.Survey(list)
	x.receive()
	return refused
}

func (x *twoHosts) receive() {
	list, ok := x.rounds.Drain()
	if !ok {
		x.t.Fatal("a survey gives nothing")
	}
	for _, r := range list {
		x.sent[r.Probe] += r.Sent
		x.lost[r.Probe] += r.Lost
		x.in[r.Probe] = r.Transit
	}
}

// send lets host k send n rounds, of which those are lost that drop says.
func (x *twoHosts) send(k, n int, drop func(i int) bool) {
	for i := range n {
		x.now += int64(roundsInterval)
		h, to := x.hosts[k], x.hosts[1-k]
		if h.down || h.epoch == 0 {
			continue
		}
		if h.refuses {
			h.failed++
			continue
		}
		seq := h.seq
		h.seq++
		if to.down || drop != nil && drop(i) {
			continue
		}
		to.track.Add(&probe.Arrival{Source: x.source(k), Number: 7, Epoch: h.epoch, Seq: seq, Sent: x.now + h.clock, Transit: h.transit})
	}
}

// cycles are n surveys, with ten rounds of each probe before.
func (x *twoHosts) cycles(n int, drop func(i int) bool) {
	for range n {
		x.send(0, 10, drop)
		x.send(1, 10, nil)
		if err := x.survey(); err != nil {
			x.t.Fatal(err)
		}
	}
}

// want holds what was given out since the last call against what it is to be.
func (x *twoHosts) want(what string, least uint64, lost uint64) {
	x.t.Helper()
	if x.lost != [2]uint64{lost, 0} || x.sent[0] < least || x.sent[1] < least {
		x.t.Errorf("%s: of %v rounds %v are lost, want %d of %d or more", what, x.sent, x.lost, lost, least)
	}
	x.sent, x.lost = [2]uint64{}, [2]uint64{}
}

// TestUnsent: rounds that an agent's own port did not take are counted as such, and a message names the agent
// meanwhile. None of them is lost, whatever part of them was sent. Impossible counts are refused.
func TestUnsent(t *testing.T) {
	x := newTwoHosts(t)
	x.cycles(4, nil)
	x.want("all is well", 20, 0)
	a := x.hosts[0]
	a.refuses = true
	x.cycles(20, nil)
	if s := x.rounds.Status(); x.lost != [2]uint64{} || s.Unsent != 200 || s.Unable != 1 || !strings.Contains(s.Refuses, "agent a did not take 10 rounds of 1 probes") {
		t.Errorf("a port that takes nothing: %v lost, %+v", x.lost, s)
	}
	a.refuses = false
	x.cycles(1, nil)
	x.sent = [2]uint64{}
	x.cycles(3, func(i int) bool { a.refuses = i%2 == 0; return false }) // from the next round on
	a.refuses = false
	x.cycles(4, nil)
	s := x.rounds.Status()
	if s.Unable != 0 || s.Refuses != "" || s.Unsent <= 200 || s.Unsent >= 230 {
		t.Errorf("a port that takes all again: %+v", s)
	}
	x.want("half of them", 40, 0)
	x.cycles(3, third)
	x.cycles(3, nil)
	if x.lost[0] != 9 || x.rounds.Status().Unsent != s.Unsent {
		t.Errorf("%d of 9 are lost, %+v", x.lost[0], x.rounds.Status())
	}
	for _, forged := range []uint32{a.failed - 1, a.failed + 1<<20} {
		a.failed = forged
		x.now += int64(time.Second)
		if err := x.survey(); len(err) != 1 || !strings.Contains(err[0].Error(), "were not sent after") {
			t.Errorf("%d rounds not sent: %v", forged, err)
		}
		if n := x.rounds.Status().Unsent; n != s.Unsent {
			t.Errorf("%d are counted", n)
		}
		x.survey()
	}
}

func third(i int) bool { return i%3 == 1 }

// TestRounds: losses are reported, once and by their probe, and nothing else ever is. Probes under way are no losses.
// Nor does a loss follow when an agent or the controller restarts, a plan changes, or a clock is set. The same holds
// when an agent does not answer, frames are not read, or numbers wrap around.
func TestRounds(t *testing.T) {
	every := func(n int) func(int) bool { return func(i int) bool { return i%n == 0 } }
	all := func(int) bool { return true }
	x := newTwoHosts(t)
	x.cycles(20, nil)
	x.want("quiet", 170, 0)
	x.cycles(10, every(5))
	x.cycles(4, nil)
	x.want("two of ten", 130, 20)
	x.send(0, 3, all) // at the end of a survey, and on their way
	x.survey()
	x.want("on its way", 0, 0)
	x.cycles(4, nil)
	x.want("three", 30, 3)
	x.cycles(10, all)
	x.cycles(4, nil)
	x.want("one direction is down", 130, 100)

	x.cycles(2, nil)
	x.hosts[0].life, x.hosts[0].seq, x.hosts[0].track = 2, 0, probe.NewTrack(10) // it starts again, with its plan of before
	x.cycles(10, nil)
	x.want("an agent restarts", 60, 0)
	x.hosts[0].life, x.hosts[0].seq, x.hosts[0].track = 3, 0, probe.NewTrack(10)
	x.hosts[0].clock -= int64(time.Hour) // and its clock was set back, so that the receiver takes what comes for old rounds
	x.cycles(40, nil)
	x.want("an agent restarts with another clock", 0, 0)

	x.hosts[1].gone = true // the answers of one side get lost for a while, and plans change meanwhile
	x.cycles(3, nil)
	x.hosts[1].gone = false
	x.cycles(3, nil)
	x.want("an agent does not answer", 0, 0)
	for e := range uint32(20) { // change-overs, in the middle of a survey and with rounds of the plan before behind
		x.send(0, 5, nil)
		for _, h := range x.hosts {
			h.epoch, h.seq = 2+e, 0
		}
		x.send(0, 5, nil)
		x.send(1, 5, nil)
		x.survey()
		x.hosts[1].track.Add(&probe.Arrival{Source: x.source(0), Number: 7, Epoch: 1 + e, Seq: 5, Sent: x.now})
		x.cycles(int(e%4), nil)
	}
	x.want("change-overs", 0, 0)
	x.cycles(4, nil)
	x.want("a plan stays", 20, 0)

	for range 5 { // frames that were not read
		x.send(0, 10, every(2))
		x.hosts[1].spoiled += 5
		x.survey()
	}
	x.cycles(3, nil)
	if x.lost != [2]uint64{} {
		t.Errorf("frames that were dropped by the receiver are lost: %v", x.lost)
	}
	x.sent = [2]uint64{}
	for k, h := range x.hosts { // numbers wrap around
		h.life, h.epoch, h.seq = 9+uint64(k), 100, 1<<32-35
	}
	x.cycles(10, every(5))
	x.cycles(4, nil)
	x.want("numbers wrap around", 110, 20-2) // but for those before it was asked the first time

	next := newTwoHosts(t) // the controller starts anew, or another network comes, in the middle of a loss
	x.rounds.Adopt(next.rounds)
	x.cycles(1, every(2))
	x.cycles(5, nil)
	x.want("another network with the same probes", 30, 5)
	y := newTwoHosts(t)
	y.hosts = x.hosts
	y.now = x.now
	y.cycles(5, nil)
	y.want("another controller", 30, 0)
	x = newTwoHosts(t) // of which nothing ever came
	x.cycles(20, all)
	x.want("never", 150, 160)
	for _, h := range x.hosts { // another plan, whose rounds are lost from the first one on
		h.epoch, h.seq = 2, 0
	}
	x.cycles(8, all)
	x.cycles(3, nil)
	x.want("never, from the first round of a plan on", 80, 80)
}

// TestTransits: times in switches come through the message of agents, each round once and by its probe. Where an agent has none, as one of
// the version before, rounds are followed all the same, and the time is not known.
func TestTransits(t *testing.T) {
	x := newTwoHosts(t)
	x.cycles(5, nil)
	if x.in != [2]float64{} {
		t.Errorf("agents that report no times: %v", x.in)
	}
	x.want("without times", 20, 0)
	x.hosts[0].transit = 1000
	x.cycles(3, nil)
	if x.in != [2]float64{1000, 0} {
		t.Errorf("one that does: %v", x.in)
	}
	x.hosts[0].transit = 3000
	x.send(0, 5, nil)
	x.hosts[0].transit = 0 // a round without a time is none of the mean
	x.send(0, 5, nil)
	x.hosts[0].transit = 6000
	x.send(0, 1, nil)
	x.hosts[0].transit = probe.MostTransit
	x.survey()
	if x.in[0] != 3500 {
		t.Errorf("the mean of five of 3000 and one of 6000 is %v", x.in[0])
	}
	x.cycles(3, nil)
	if x.in[0] != float64(probe.MostTransit) {
		t.Errorf("the longest: %v", x.in[0])
	}
	x.hosts[0].epoch, x.hosts[0].seq, x.hosts[0].transit = 2, 0, 500
	x.cycles(1, nil)
	x.cycles(1, nil)
	if x.in[0] != 500 {
		t.Errorf("after another plan: %v", x.in[0])
	}
}

// TestRoundsLate: rounds that come late, but before the next survey, are not lost, whatever their order.
func TestRoundsLate(t *testing.T) {
	x := newTwoHosts(t)
	x.cycles(3, nil)
	for range 50 {
		var late []probe.Arrival
		for range 10 {
			x.now += int64(roundsInterval)
			late = append(late, probe.Arrival{Source: x.source(0), Number: 7, Epoch: 1, Seq: x.hosts[0].seq, Sent: x.now})
			x.hosts[0].seq++
		}
		rand.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		for k := range late {
			if k == 5 {
				x.survey()
			}
			x.hosts[1].track.Add(&late[k])
			x.hosts[1].track.Add(&late[k])
		}
	}
	x.send(1, 10, nil)
	x.cycles(3, nil)
	if x.lost != [2]uint64{} || x.sent[0] < 450 {
		t.Errorf("of %v rounds %v are lost", x.sent, x.lost)
	}
}

// TestRoundsRefused: impossible counts are refused whole and counted. They are not used, nor compared with later ones.
func TestRoundsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		edit func(r *probe.Rounds)
		want string
	}{
		{"too many sent", func(r *probe.Rounds) { r.Sent[0].Next += 1000 }, "at most 56 later"},
		{"fewer sent", func(r *probe.Rounds) { r.Sent[0].Next -= 20 }, "comes after round"},
		{"fewer came", func(r *probe.Rounds) { r.Received[0].Received, r.Received[0].Next, r.Received[0].Window = 1, 1, 1 }, "and before"},
		{"more than passed", func(r *probe.Rounds) { r.Received[0].Received += 1000 }, "rounds came from"},
		{"none came", func(r *probe.Rounds) { r.Received[0].Received = 0 }, "are not the last of 0 rounds"},
		{"twice", func(r *probe.Rounds) { r.Sent = append(r.Sent, r.Sent[0]) }, "is there twice"},
		{"came twice", func(r *probe.Rounds) { r.Received = append(r.Received, r.Received[0]) }, "is there twice"},
		{"no epoch", func(r *probe.Rounds) { r.Epoch = 0 }, "without an epoch"},
		{"interval", func(r *probe.Rounds) { r.Sent[0].Interval = 1 }, "interval of 1 ns"},
		{"address of another", func(r *probe.Rounds) { r.Address = netip.MustParseAddr("10.0.0.1") }, "that of another agent"},
		{"transits of nothing", func(r *probe.Rounds) { r.Received[0].Transit += 1000 }, "0 more rounds were in switches for 1000 ns"},
		{"transits shrink", func(r *probe.Rounds) { r.Received[0].Transit--; r.Received[0].Transits++ }, "of 10 that came"},
		{"transits of more than came", func(r *probe.Rounds) { r.Received[0].Transits += 11 }, "of 10 that came"},
		{"transits of ages", func(r *probe.Rounds) { r.Received[0].Transits += 10; r.Received[0].Transit += 1 << 62 }, "of 10 that came"},
		{"no route", func(r *probe.Rounds) { r.Sent[0].Route = nil }, "route of 0 ports"},
	} {
		x := newTwoHosts(t)
		x.cycles(10, nil)
		x.send(0, 10, nil)
		x.send(1, 10, nil)
		a, b := x.reported(0), x.reported(1)
		c.edit(a.Rounds)
		a.Rounds, a.Wrong = probe.RoundsOf(a.Rounds.Proto("a", 1))
		errs := x.rounds.Survey([]Answer{b, a})
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || x.rounds.Status().Refused != 1 || x.rounds.Status().Why != errs[0].Error() {
			t.Errorf("%s: refused %v, want %q; %+v", c.what, errs, c.want, x.rounds.Status())
		}
		x.receive()
		x.cycles(10, nil)
		x.want(c.what, 140, 0)
	}
	// What fits into its bounds, and not to what others count, is not refused and not used either.
	x := newTwoHosts(t)
	x.cycles(5, nil)
	x.hosts[1].track.Add(&probe.Arrival{Source: x.source(0), Number: 7, Epoch: 1, Seq: 5000, Sent: x.now}) // forged on the way
	x.cycles(5, nil)
	x.hosts[1].track.Add(&probe.Arrival{Source: x.source(0), Number: 7, Epoch: 90, Seq: 0, Sent: x.now})
	x.cycles(5, nil)
	if x.lost != [2]uint64{} {
		t.Errorf("forged probes bring losses: %v", x.lost)
	}
	x = newTwoHosts(t)
	x.cycles(5, nil)
	x.hosts[1].track.Add(&probe.Arrival{Source: x.source(0), Number: 7, Epoch: 1, Seq: 5000, Sent: x.now + int64(time.Hour)}) // so that what is real seems old
	x.cycles(5, nil)
	if x.lost != [2]uint64{} {
		t.Errorf("forged probes of a later time bring losses: %v", x.lost)
	}
}

// TestRoundsAtRandom goes through lives of agents at random: whatever happens beside, never more is lost than was.
func TestRoundsAtRandom(t *testing.T) {
	var lost, dropped uint64
	for seed := range uint64(testkit.Rounds(400, 2000)) {
		r := rand.New(rand.NewPCG(seed, 14))
		x := newTwoHosts(t)
		var gone [2]uint64
		drops := func(k int) func(int) bool {
			share := []float64{0, 0, .1, 1}[r.IntN(4)]
			return func(int) bool {
				if r.Float64() < share {
					gone[k]++
					return true
				}
				return false
			}
		}
		for range 60 {
			k := r.IntN(2)
			h := x.hosts[k]
			switch r.IntN(60) {
			case 0: // its program ends, or starts again, with its plan or without
				if h.down, h.gone = !h.down, !h.down; h.down {
					break
				}
				h.life, h.seq, h.track, h.spoiled = h.life+1, 0, probe.NewTrack(10), 0
				if r.IntN(2) == 0 {
					h.epoch = 0
				}
			case 1: // its connection alone
				h.life++
			case 2: // a plan for one, and later for the other
				h.epoch, h.seq = max(x.hosts[0].epoch, x.hosts[1].epoch)+1, 0
			case 3:
				h.clock += int64(r.IntN(7200)-3600) * 1e9
			case 4:
				h.gone = h.down || !h.gone
			case 5:
				x.rounds.Adopt(newTwoHosts(t).rounds)
			}
			for i := range x.hosts {
				x.send(i, r.IntN(10), drops(i))
				if r.IntN(20) == 0 {
					x.send(i, 200, drops(i))
				}
			}
			x.survey()
		}
		for k := range 2 {
			if x.lost[k] > gone[k] {
				t.Fatalf("seed %d: of probe %d are %d lost, and %d were", seed, k, x.lost[k], gone[k])
			}
			lost, dropped = lost+x.lost[k], dropped+gone[k]
		}
	}
	if 4*lost < dropped {
		t.Errorf("of %d rounds that got lost no more than %d are reported", dropped, lost)
	}
	t.Logf("%d of %d", lost, dropped)
}
