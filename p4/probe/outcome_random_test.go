package probe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

// meshKey is a path of a mesh in reports.
type meshKey struct {
	from, to    string
	path, epoch uint32
}

// mesh is three agents with probes between all of them, in virtual time. Probes come twice at times. Plans come to
// some agents at first, and reports take their time. Either probes overtake each other, or clocks are set.
type mesh struct {
	t        *testing.T
	rng      *rand.Rand
	interval time.Duration
	steps    bool // clocks are set; a probe that is overtaken soon after that counts as lost
	now      time.Duration
	agents   []*meshAgent
	plan     *Plan
	flying   []meshFlight
	reports  []meshReport
	sum      map[meshKey]*decode.ProbeCounts
	log      []string
}

type meshAgent struct {
	pairAgent
	table *Timetable
	clock time.Duration // ahead of that of the mesh
}

type meshFlight struct {
	at time.Duration
	to int
	a  Arrival
}

type meshReport struct {
	at time.Duration
	k  meshKey
	c  decode.ProbeCounts
}

func newMesh(t *testing.T, seed uint64) *mesh {
	x := &mesh{t: t, rng: rand.New(rand.NewPCG(seed, 99)), sum: map[meshKey]*decode.ProbeCounts{}}
	x.interval = [...]time.Duration{20, 100, 300, 700, 1000, 1500, 3000, 10000}[x.rng.IntN(8)] * time.Millisecond
	x.steps = x.rng.IntN(2) == 0
	for k, name := range [...]string{"a", "b", "c"} {
		a := &meshAgent{pairAgent: pairAgent{name: name, address: [4]byte{10, 0, 0, byte(k + 1)}, track: NewTrack(100)}}
		a.turn = time.Duration(x.rng.IntN(50)) * 20 * time.Millisecond
		x.agents = append(x.agents, a)
	}
	x.nextPlan(7)
	for _, a := range x.agents {
		x.adopt(a)
	}
	return x
}

// nextPlan makes a plan, which leaves out a probe at times.
func (x *mesh) nextPlan(epoch uint32) {
	p := &Plan{Epoch: epoch, Dialect: INT21, Basic: 0xf000, Detailed: 0xff80}
	without := x.rng.IntN(36)
	for k := range 18 {
		from, to := x.agents[k/6], x.agents[k/2%3]
		if k != without {
			p.Probes = append(p.Probes, Probe{ID: "p" + strconv.Itoa(k), Route: []int{1 + k%2, 2 + k}, Interval: x.interval, Phase: time.Duration(k) * 20 * time.Millisecond % x.interval,
				Agent: from.name, Collector: to.name, To: netip.AddrFrom4(to.address)})
		}
	}
	x.plan = p
}

func (x *mesh) adopt(a *meshAgent) {
	ends := testEnds
	ends.From, ends.To = netip.AddrFrom4(a.address), netip.AddrFrom4(a.address)
	w, numbers, err := NewWork(x.plan, a.name, &ends, a.numbers)
	if err != nil {
		x.t.Fatal(err)
	}
	a.work, a.numbers, a.table = w, numbers, NewTimetable(w.Slots, x.wall(a))
	a.track.Tick(int64(x.now))
	e := NewExpectations(x.plan, a.name, a.address, w)
	e.Latest += 5
	a.track.Expect(e)
	x.log = append(x.log, fmt.Sprintf("%v: %s adopts %d", x.now, a.name, x.plan.Epoch))
}

func (x *mesh) wall(a *meshAgent) int64 { return int64(1e18) + int64(x.now+a.clock) }

// change lets something happen, once in a while.
func (x *mesh) change() {
	switch x.rng.IntN(1500) {
	case 0:
		x.nextPlan(x.plan.Epoch + 1)
		fallthrough
	case 1, 2:
		for _, a := range x.agents {
			if x.rng.IntN(2) == 0 && a.track.Plan.Epoch != x.plan.Epoch {
				x.adopt(a)
			}
		}
	case 3:
		if !x.steps {
			return
		}
		a := x.agents[x.rng.IntN(len(x.agents))]
		a.clock += time.Duration(x.rng.IntN(20001)-10000) * time.Millisecond
		a.table.Restart(x.wall(a))
		a.track.Suspended()
		x.log = append(x.log, fmt.Sprintf("%v: the clock of %s is %v ahead", x.now, a.name, a.clock))
	}
}

// step lets 20 ms pass.
func (x *mesh) step() {
	x.now += 20 * time.Millisecond
	x.change()
	for _, a := range x.agents {
		a.track.Tick(int64(x.now))
		x.send(a)
	}
	x.flying = slices.DeleteFunc(x.flying, func(f meshFlight) bool {
		if f.at <= x.now {
			x.agents[f.to].track.See(&f.a)
		}
		return f.at <= x.now
	})
	for _, a := range x.agents {
		if x.now%Grace == a.turn {
			x.report(a)
		}
	}
	x.reports = slices.DeleteFunc(x.reports, func(r meshReport) bool {
		if r.at <= x.now {
			s := x.sum[r.k]
			if s == nil {
				s = &decode.ProbeCounts{}
				x.sum[r.k] = s
			}
			s.Sent, s.Received, s.Missed, s.Late, s.Forward = s.Sent+r.c.Sent, s.Received+r.c.Received, s.Missed+r.c.Missed, s.Late+r.c.Late, s.Forward+r.c.Forward
		}
		return r.at <= x.now
	})
}

func (x *mesh) send(a *meshAgent) {
	for wall := x.wall(a); ; {
		if due, ok := a.table.Next(); !ok || due > wall {
			return
		}
		k, _, over := a.table.Pop(wall)
		a.work.Skipped[k].Add(uint32(over))
		seq := a.work.Next[k].Add(1) - 1
		p := &a.work.Plan.Probes[a.work.Templates[k].Probe]
		f := Arrival{Source: a.address, Number: a.work.Templates[k].Number, Epoch: a.work.Plan.Epoch, Seq: seq, Sent: wall, Hops: len(p.Route), Ports: portsOf(p.Route, func(port *int) int { return *port })}
		to := slices.IndexFunc(x.agents, func(b *meshAgent) bool { return b.name == p.Collector })
		for range 1 + x.rng.IntN(20)/19 {
			late := x.rng.IntN(20) / 19 * x.rng.IntN(400)
			if x.steps {
				late = 0
			}
			x.flying = append(x.flying, meshFlight{x.now + time.Duration(2+late)*time.Millisecond, to, f})
		}
	}
}

func (x *mesh) report(a *meshAgent) {
	a.track.Turn()
	late := time.Duration(x.rng.IntN(4)/3*x.rng.IntN(300)) * time.Millisecond
	ends := Ends{From: netip.AddrFrom4(a.address), To: netip.AddrFrom4(a.address), Mark: 27}
	a.track.Outcomes(&ends, func(_ TrackKey, b []byte, c *decode.ProbeCounts) {
		k := meshKey{netip.AddrFrom4([4]byte(b[12:16])).String(), netip.AddrFrom4([4]byte(b[16:20])).String(), c.Path, c.Epoch}
		x.reports = append(x.reports, meshReport{x.now + late, k, *c})
	})
}

// judge returns the paths of which a collector takes something for lost, see package events, and begins another window.
func (x *mesh) judge() (text string) {
	for k, c := range x.sum {
		s := *c
		if k.from == "0.0.0.0" {
			continue
		}
		if o := x.sum[meshKey{"0.0.0.0", k.to, k.path, k.epoch}]; o != nil {
			s.Missed += o.Missed
		}
		lost := int64(s.Missed) - int64(s.Late)
		behind := min(lost-int64(s.Forward), int64(s.Missed))
		if n := behind - max(0, int64(s.Sent)-int64(s.Received)-int64(max(s.Forward, 0))); n > 0 {
			lost -= n
		}
		if lost > 0 {
			text += fmt.Sprintf("%v lost %d: %+v; ", k, lost, s)
		}
	}
	clear(x.sum)
	return text
}

// TestOutcomesRandom: no path is accused in a network that loses nothing.
func TestOutcomesRandom(t *testing.T) {
	for k := range testkit.Rounds(24, 600) {
		seed := testkit.Seed(t) + uint64(k)
		x := newMesh(t, seed)
		window := [...]time.Duration{1000, 1060, 2000, 5000, 10000}[x.rng.IntN(5)] * time.Millisecond
		for end := window; x.now < 3*time.Minute+2*window; end += window {
			for x.now < end {
				x.step()
			}
			if text := x.judge(); text != "" {
				t.Fatalf("seed %d, interval %v, windows of %v, %v: %s\n%s", seed, x.interval, window, x.now, text, strings.Join(x.log, "\n"))
			}
		}
	}
}
