package probe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// scene is a host with the parts of an agent that count rounds, in virtual time. It sends the probe "own" to itself and
// awaits the probe "other" of another agent, each every 100 ms.
type scene struct {
	t     *testing.T
	track *Track
	work  *Work
	now   time.Duration
	next  uint32 // round of the other agent
	loss  Loss
	other struct {
		epoch, number uint32
		source        [4]byte
	}
}

const sceneInterval = 100 * time.Millisecond

var sceneSource = [4]byte{10, 0, 0, 1}

func newScene(t *testing.T) *scene {
	x := &scene{t: t, track: NewTrack(4096)}
	x.other.epoch, x.other.number, x.other.source = 7, 0, [4]byte{10, 0, 0, 9}
	x.adopt(7)
	return x
}

// adopt puts a plan of an epoch in force.
func (x *scene) adopt(epoch uint32) {
	p := &Plan{Epoch: epoch, Dialect: INT21, Basic: 0xf000, Detailed: 0xff80, Probes: []Probe{
		{ID: "own", Route: []int{1, 2}, Interval: sceneInterval, Agent: "a", Collector: "a"},
		{ID: "other", Route: []int{1, 2, 3}, Interval: sceneInterval, Phase: 50 * time.Millisecond, Agent: "b", Collector: "a"},
		{ID: "elsewhere", Route: []int{1}, Interval: sceneInterval, Agent: "a", Collector: "b"},
	}}
	ends := testEnds
	ends.From = netip.AddrFrom4(sceneSource)
	w, _, err := NewWork(p, "a", &ends, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	x.work = w
	x.track.Expect(NewExpectations(p, "a", sceneSource, w))
}

// run lets rounds pass, of which those come of which ok says so.
func (x *scene) run(rounds int, own, other func(k int) bool) {
	for k := range rounds {
		x.now += sceneInterval
		x.track.Tick(int64(x.now))
		seq := x.work.Next[0].Load()
		x.work.Next[0].Store(seq + 1)
		if own(k) {
			x.track.See(&Arrival{Source: sceneSource, Number: 0, Epoch: x.track.Plan.Epoch, Seq: seq, Sent: int64(x.now), Hops: 2})
		}
		if other(k) {
			x.track.See(x.foreign(0))
		}
		x.next++
		if x.now%Grace == 0 {
			x.loss = x.track.Turn()
		}
	}
}

// foreign is the round of the other agent that is so many after its present one.
func (x *scene) foreign(ahead uint32) *Arrival {
	return &Arrival{Source: x.other.source, Number: x.other.number, Epoch: x.other.epoch, Seq: x.next + ahead, Sent: int64(x.now) + int64(50*time.Millisecond), Hops: 3}
}

func all(int) bool     { return true }
func none(int) bool    { return false }
func third(k int) bool { return k%3 != 1 }

// lost holds what is counted as lost, up to so many rounds that may be under way.
func (x *scene) lost(what string, low, high int64) {
	x.t.Helper()
	if n := x.loss.Lost; n < low || n > high {
		x.t.Errorf("%s: %d lost, want %d to %d", what, n, low, high)
	}
}

// TestAbsence: scheduled rounds that do not come are lost, also where nothing ever came, and stay so over a reload. A
// dead probe is called silent within two rounds and the longest travel time.
func TestAbsence(t *testing.T) {
	x := newScene(t)
	x.run(1500, none, none)
	x.lost("nothing ever came", 2*(1500-20), 2*1500)
	if x.loss.Silent != 2 || x.loss.Awaited != 2 || x.loss.Text() == "" {
		t.Errorf("%+v", x.loss)
	}
	before := x.loss.Lost
	x.adopt(8)
	x.run(10, none, none)
	if x.loss.Silent != 2 || x.loss.Lost < before {
		t.Errorf("a reload makes dead probes %+v, before %d were lost", x.loss, before)
	}

	x = newScene(t)
	x.run(100, all, all)
	x.lost("all came", 0, 0)
	if x.loss.Silent != 0 {
		t.Errorf("%+v", x.loss)
	}
	x.run(30, third, third)
	x.run(10, all, all)
	x.lost("a third of 30", 20, 20)
	x.run(20, none, all)
	if x.loss.Silent != 1 || x.loss.First != "own" {
		t.Errorf("two seconds after the end of a probe: %+v", x.loss)
	}
	x.run(20, all, none)
	if x.loss.Silent != 1 || x.loss.First != "other" {
		t.Errorf("%+v", x.loss)
	}
	x.run(20, all, all)
	x.lost("twenty of each besides", 60, 60)
	if x.loss.Silent != 0 {
		t.Errorf("%+v", x.loss)
	}

	// The sender was gone: the rounds of its schedule are lost, and it begins anew with a later plan.
	x.run(50, all, none)
	x.other.epoch, x.next = 8, 0
	x.track.Plan.Latest = 8
	x.run(20, all, all)
	x.lost("a sender was gone for 50 rounds", 60+38, 60+51)

	// This process stood still: what was not awaited is not lost.
	x = newScene(t)
	x.run(50, all, all)
	x.now += time.Hour
	x.run(50, all, all)
	x.lost("a process that stood still", 0, 0)
}

// TestOwnLine: rounds that the card did not take are lost nowhere, reported as not sent, and no silence of the probe. Rounds that a late sender
// left out are no silence, either.
func TestOwnLine(t *testing.T) {
	x := newScene(t)
	x.run(50, all, all)
	for range 70 {
		x.now += sceneInterval
		x.track.Tick(int64(x.now))
		x.work.Failed[0].Add(1)
		x.track.See(x.foreign(0))
		x.next++
		if x.now%Grace == 0 {
			x.loss = x.track.Turn()
		}
	}
	x.lost("the card took nothing", 0, 0)
	if x.loss.Silent != 0 {
		t.Errorf("%+v", x.loss)
	}
	unsent := 0
	for range 2 {
		x.track.ReportUnsent(&Ends{From: netip.AddrFrom4(sceneSource)}, func(k TrackKey, _ []byte) {
			if k != (TrackKey{sceneSource, 0}) {
				t.Errorf("not sent: %v", k)
			}
			unsent++
		})
	}
	if unsent != MostReports { // of the 70 of a turn
		t.Errorf("%d are reported as not sent", unsent)
	}
	x.adopt(8)
	if x.run(10, none, all); x.loss.Silent != 0 {
		t.Errorf("a second after the line is there again and a plan came: %+v", x.loss)
	}
	x.run(30, none, all)
	x.lost("the line is there again, and the network is dead", 20, 40)
	if x.loss.Silent != 1 || x.loss.First != "own" {
		t.Errorf("%+v", x.loss)
	}
	x.run(50, all, all)
	x.lost("and all come", 40, 40)

	// The card takes one round of two, and the sender leaves the other one out.
	x = newScene(t)
	x.run(50, all, all)
	for k := range 70 {
		x.now += sceneInterval
		x.track.Tick(int64(x.now))
		[]*atomic.Uint32{&x.work.Failed[0], &x.work.Skipped[0]}[k%2].Add(1)
		x.track.See(x.foreign(0))
		x.next++
		if x.now%Grace == 0 {
			x.loss = x.track.Turn()
		}
	}
	x.lost("the sender was late", 0, 0)
	if x.loss.Silent != 0 {
		t.Errorf("%+v", x.loss)
	}
}

// TestOneFrame: whatever one frame says of round, epoch and time, it is not 59,999 lost rounds, and what is lost after it is counted.
func TestOneFrame(t *testing.T) {
	type change func(a *Arrival)
	changes := map[string]change{"60,000 rounds later": func(a *Arrival) { a.Seq += 60_000 }, "sent in a year": func(a *Arrival) { a.Sent += int64(365 * 24 * time.Hour) }}
	for bit := range 32 {
		changes[fmt.Sprintf("bit %d of the epoch", bit)] = func(a *Arrival) { a.Epoch ^= 1 << bit }
		changes[fmt.Sprintf("bit %d of the round", bit)] = func(a *Arrival) { a.Seq ^= 1 << bit }
		changes[fmt.Sprintf("bits %d of all", bit)] = func(a *Arrival) {
			a.Epoch, a.Seq, a.Sent = a.Epoch^1<<bit, a.Seq^1<<bit, a.Sent^1<<(bit+20)
		}
	}
	for name, change := range changes {
		for _, own := range []bool{true, false} {
			for _, latest := range []uint32{7, 1 << 31} {
				x := newScene(t)
				x.track.Plan.Latest = latest
				x.run(100, all, all)
				a := x.foreign(0)
				if own {
					a = &Arrival{Source: sceneSource, Epoch: 7, Seq: x.work.Next[0].Load() - 1, Sent: int64(x.now), Hops: 2}
				}
				change(a)
				x.track.See(a)
				x.run(20, all, all)
				// Bits of a round may make it one that can be, up to 16 rounds ahead; then so many are late, and none is lost.
				x.lost(name, 0, 0)
				x.run(30, third, third)
				x.run(10, all, all)
				x.lost(name+", and a third of 30 twice", 20, 20)
			}
		}
	}
	// Two frames in a row that agree with each other are another beginning, and no loss either; the honest ones are one in turn.
	x := newScene(t)
	x.run(100, all, all)
	x.track.See(x.foreign(60_000))
	x.track.See(x.foreign(60_001))
	x.run(20, all, all)
	x.run(30, all, third)
	x.run(10, all, all)
	x.lost("two forged frames, and a third of 30", 10, 11)
}

// TestPlaces: places belong to what the plan names, in whatever order probes come; unplanned probes have few places, and they are
// given up.
func TestPlaces(t *testing.T) {
	x := newScene(t)
	r := rand.New(rand.NewPCG(1, 2))
	unknown := 0
	for range 4200 {
		if s := x.track.See(&Arrival{Source: [4]byte{192, 0, 2, byte(r.Uint32())}, Number: r.Uint32(), Epoch: 7, Seq: r.Uint32(), Sent: int64(r.Uint64() >> 1), Hops: r.IntN(5)}); s.Unknown {
			unknown++
		}
	}
	if len(x.track.last) > mostUnplanned+2 || unknown != 4200-mostUnplanned-1 { // and one in the place of the probe of which nothing came yet
		t.Errorf("%d are followed, for %d there was no room", len(x.track.last), unknown)
	}
	x.run(30, all, all)
	base := x.loss.Lost
	x.run(236, func(k int) bool { return k%2 == 0 }, func(k int) bool { return k%2 == 0 })
	x.run(10, all, all)
	if n := x.loss.Lost - base; n < 230 || n > 240 {
		t.Errorf("of half of 472 rounds %d are lost", n)
	}
	x.run(int(time.Minute/sceneInterval)+20, all, all)
	if n := len(x.track.last); n != 2 || x.track.Plan.unplanned != 0 {
		t.Errorf("after a minute %d are followed, and %d of no plan", n, x.track.Plan.unplanned)
	}
}

// TestOutage gives the same counts as a list of what was sent and what came, for random outages of both probes.
func TestOutage(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 26))
		x := newScene(t)
		x.run(10, all, all)
		lost := int64(0)
		dropped := func() func(int) bool {
			share := r.IntN(4)
			return func(int) bool {
				if r.IntN(4) < share {
					lost++
					return false
				}
				return true
			}
		}
		for range 5 {
			x.run(1+r.IntN(100), dropped(), dropped())
		}
		x.run(40-int(x.now%Grace/sceneInterval), all, all)
		x.lost(fmt.Sprint("seed ", seed), lost, lost)
	}
}

// flipped sends 4,000 rounds of the probe of a scene, of which 1 % come with one bit changed.
func flipped(t *testing.T, keys *Keys, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	x := newScene(t)
	ps := parserOf(keys)
	ends := testEnds
	ends.From, ends.Checksum = netip.AddrFrom4(sceneSource), true
	if keys != nil {
		ends.Digests = parserOf(keys).Keys
	}
	tm, err := NewTemplate(x.work.Plan, &x.work.Plan.Probes[0], 0, &ends)
	if err != nil {
		t.Fatal(err)
	}
	changed, counted := 0, 0
	for range 4000 {
		x.now += sceneInterval
		x.track.Tick(int64(x.now))
		frame := walk(t, tm.AppendFrame(nil, int64(x.now)), INT21, 2)
		x.work.Next[0].Store(tm.Seq)
		if r.IntN(100) == 0 {
			changed++
			bit := 8*12 + r.IntN(8*(len(frame)-12))
			frame[bit/8] ^= 0x80 >> (bit % 8)
		}
		var a Arrival
		switch why := ps.Parse(&a, frame); why {
		case OK:
			if a.Hops != 2 || a.Source != sceneSource {
				t.Fatalf("seed %d: another path: %+v", seed, a)
			}
			x.track.See(&a)
		case Corrupt:
			counted++
			a.Damaged(frame)
			x.track.Spoiled(&a)
		default:
			t.Fatalf("seed %d: %v", seed, why)
		}
		x.track.See(x.foreign(0))
		x.next++
		if x.now%Grace == 0 {
			if x.loss = x.track.Turn(); x.loss.Lost != 0 {
				t.Fatalf("seed %d, after %v: %d lost, %d were changed", seed, x.now, x.loss.Lost, changed)
			}
		}
	}
	if changed == 0 || counted != changed {
		t.Errorf("seed %d: %d corrupt, %d were changed", seed, counted, changed)
	}
}
