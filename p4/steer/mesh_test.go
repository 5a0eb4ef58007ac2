package steer

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
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
)

// mesh is three agents with probes between all of them, and a collector of two shards, in virtual time. What agents report passes
// datagrams, decoder, shards and detectors.
type mesh struct {
	t        *testing.T
	rng      *rand.Rand
	trouble  meshTrouble
	interval time.Duration
	now      time.Duration
	clock    time.Duration // of the collector, ahead
	agents   []*meshAgent
	plan     *probe.Plan
	flying   []meshFlight
	reports  []meshReport
	keep     int                 // number of a probe in all plans after the first
	lose     func(path int) bool // whether the next round of a probe is lost

	reader   *demux.Decoder
	shards   [2]*shard.State
	detector *events.Detector
	begun    time.Duration // of the window
	log      []string
}

// meshTrouble is what happens to the agents of a mesh, and to their reports.
type meshTrouble struct {
	restarts, plans, clocks, stops, suspends bool
	outages                                  bool // no report of an agent comes for a while
	collector                                bool // its clock is set
	overtakes                                bool
	reports                                  float64 // share of datagrams that are lost
	twice                                    float64 // share that come twice
}

type meshAgent struct {
	name    string
	address [4]byte
	track   *probe.Track
	work    *probe.Work
	table   *probe.Timetable
	numbers map[string]uint32
	groups  *probe.Groups
	turn    time.Duration // after each full second
	clock   time.Duration // ahead of that of the mesh
	slept   time.Duration // for how long its machine was suspended

	down      time.Duration // until when the program is not there
	stopped   time.Duration // until when it is stopped
	suspended time.Duration // until when its machine is
	mute      time.Duration // until when none of its reports comes
	buffer    []probe.Arrival
}

type meshFlight struct {
	at time.Duration
	to int
	a  probe.Arrival
}

type meshReport struct {
	at   time.Duration
	from int
	data []byte
}

// Intervals of probes of a mesh.
var (
	meshShort = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond, time.Second, 1500 * time.Millisecond}
	meshAll   = append(slices.Clip(meshShort), 3*time.Second, 6*time.Second, 20*time.Second)
)

func newMesh(t *testing.T, seed uint64, trouble meshTrouble, intervals []time.Duration) *mesh {
	x := &mesh{t: t, keep: -1, rng: rand.New(rand.NewPCG(seed, 98)), trouble: trouble, lose: func(int) bool { return false }, detector: events.New(events.DefaultConfig())}
	x.interval = intervals[x.rng.IntN(len(intervals))]
	auto, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("there is no profile auto")
	}
	x.reader = demux.New(auto)
	cfg := shard.DefaultConfig()
	cfg.MemoryBytes = 16 << 20
	for k := range x.shards {
		x.shards[k] = shard.New(cfg, 1)
	}
	for k, name := range [...]string{"a", "b", "c"} {
		a := &meshAgent{name: name, address: [4]byte{10, 0, 0, byte(k + 1)}}
		a.turn = time.Duration(x.rng.IntN(50)) * 20 * time.Millisecond
		a.groups = probe.NewGroups(probe.AgentNode(name), 1400, func(b []byte) { x.report(k, b) })
		x.agents = append(x.agents, a)
	}
	x.nextPlan(7)
	for _, a := range x.agents {
		x.start(a)
	}
	return x
}

// report lets a datagram come to the collector, or not.
func (x *mesh) report(from int, b []byte) {
	for range 1 + int(x.rng.Float64()+x.trouble.twice) {
		if x.rng.Float64() >= x.trouble.reports && x.agents[from].mute <= x.now {
			late := time.Duration(x.rng.IntN(4)/3*x.rng.IntN(300)) * time.Millisecond
			x.reports = append(x.reports, meshReport{x.now + late, from, slices.Clone(b)})
		}
	}
}

// nextPlan makes a plan, which leaves out a probe at times.
func (x *mesh) nextPlan(epoch uint32) {
	p := &probe.Plan{Epoch: epoch, Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80}
	without := x.rng.IntN(36)
	for k := range 18 {
		from, to := x.agents[k/6], x.agents[k/2%3]
		if k != without || k == x.keep {
			p.Probes = append(p.Probes, probe.Probe{ID: "p" + strconv.Itoa(k), Route: []int{1 + k%2, 2 + k}, Interval: x.interval, Phase: time.Duration(k) * 20 * time.Millisecond % x.interval,
				Agent: from.name, Collector: to.name, To: netip.AddrFrom4(to.address)})
		}
	}
	x.plan = p
}

func (x *mesh) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf("%v: ", x.now)+fmt.Sprintf(format, args...))
}

func (x *mesh) wall(a *meshAgent) int64 { return int64(1e18) + int64(x.now+a.clock) }

// start starts the program of an agent.
func (x *mesh) start(a *meshAgent) {
	a.track, a.numbers, a.buffer = probe.NewTrack(100), nil, nil
	a.track.Count = x.rng.Uint32()
	x.adopt(a)
}

func (a *meshAgent) ends() probe.Ends {
	at := netip.AddrFrom4(a.address)
	return probe.Ends{From: at, To: at, Mark: 27}
}

func (x *mesh) adopt(a *meshAgent) {
	ends := a.ends()
	w, numbers, err := probe.NewWork(x.plan, a.name, &ends, a.numbers)
	if err != nil {
		x.t.Fatal(err)
	}
	a.work, a.numbers, a.table = w, numbers, probe.NewTimetable(w.Slots, x.wall(a))
	a.track.Tick(int64(x.now - a.slept))
	e := probe.NewExpectations(x.plan, a.name, a.address, w)
	e.Latest += 5
	a.track.Expect(e)
	x.note("%s has plan %d", a.name, x.plan.Epoch)
}

// change lets something happen, once in a while.
func (x *mesh) change() {
	a, long := x.agents[x.rng.IntN(len(x.agents))], time.Duration(x.rng.IntN(8000))*time.Millisecond
	switch n := x.rng.IntN(3000); {
	case n < 6 && x.trouble.plans:
		if n < 2 {
			x.nextPlan(x.plan.Epoch + 1)
		}
		for _, a := range x.agents {
			if x.rng.IntN(2) == 0 && a.up(x.now) && a.work.Plan.Epoch != x.plan.Epoch {
				x.adopt(a)
			}
		}
	case n < 10:
	case n < 18 && x.trouble.restarts:
		for range 1 + n%3 { // several at a time
			a := x.agents[x.rng.IntN(len(x.agents))]
			if a.up(x.now) {
				a.down = x.now + time.Duration(x.rng.IntN(12000))*time.Millisecond
				x.note("%s ends, until %v", a.name, a.down)
			}
		}
	case n < 20:
	case n < 22 && x.trouble.clocks && a.up(x.now):
		a.clock += time.Duration(x.rng.IntN(20001)-10000) * time.Millisecond
		a.table.Restart(x.wall(a))
		a.track.Suspended()
		x.note("the clock of %s is %v ahead", a.name, a.clock)
	case n < 24:
	case n < 27 && x.trouble.stops && a.up(x.now):
		a.stopped = x.now + long
		x.note("%s is stopped until %v", a.name, a.stopped)
	case n < 30:
	case n < 33 && x.trouble.suspends && a.up(x.now):
		a.suspended = x.now + long
		x.note("%s is suspended until %v", a.name, a.suspended)
	case n < 36:
	case n < 39 && x.trouble.outages:
		a.mute = x.now + 2*long
		x.note("no report of %s comes until %v", a.name, a.mute)
	case n < 42:
	case n < 44 && x.trouble.collector:
		x.clock += time.Duration(x.rng.IntN(20001)-10000) * time.Millisecond
		x.note("the clock of the collector is %v ahead", x.clock)
	}
}

func (a *meshAgent) up(now time.Duration) bool {
	return a.down <= now && a.stopped <= now && a.suspended <= now
}

const meshStep = 20 * time.Millisecond

// step lets 20 ms pass.
func (x *mesh) step() {
	x.now += meshStep
	x.change()
	for _, a := range x.agents {
		switch {
		case a.down > x.now:
			continue
		case a.down > 0:
			a.down, a.stopped, a.suspended = 0, 0, 0
			x.start(a)
		case a.suspended > x.now:
			a.slept += meshStep
			continue
		case a.suspended > 0:
			a.suspended = 0
			a.table.Restart(x.wall(a))
			a.track.Suspended()
		case a.stopped > x.now:
			continue
		case a.stopped > 0:
			a.stopped = 0
			a.track.Tick(int64(x.now - a.slept))
			for k := range a.buffer {
				a.track.See(&a.buffer[k])
			}
			a.buffer = nil
		}
		a.track.Tick(int64(x.now - a.slept))
		x.send(a)
	}
	x.flying = slices.DeleteFunc(x.flying, func(f meshFlight) bool {
		if a := x.agents[f.to]; f.at <= x.now {
			if a.up(x.now) {
				a.track.See(&f.a)
			} else if a.down <= x.now && a.suspended <= x.now {
				a.buffer = append(a.buffer, f.a)
			}
		}
		return f.at <= x.now
	})
	for _, a := range x.agents {
		if x.now%probe.Grace == a.turn && a.up(x.now) {
			a.track.Turn()
			ends := a.ends()
			a.track.Outcomes(&ends, func(_ probe.TrackKey, b []byte, c *decode.ProbeCounts) { a.groups.Counts(b, c) })
			a.groups.Flush()
		}
	}
	x.reports = slices.DeleteFunc(x.reports, func(r meshReport) bool {
		if r.at <= x.now {
			x.collect(&r)
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
		ports := uint32(1)
		for _, port := range p.Route {
			ports = ports*16777619 ^ uint32(port)
		}
		f := probe.Arrival{Source: a.address, Number: a.work.Templates[k].Number, Epoch: a.work.Plan.Epoch, Seq: seq, Sent: wall, Hops: len(p.Route), Ports: ports}
		to := slices.IndexFunc(x.agents, func(b *meshAgent) bool { return b.name == p.Collector })
		if n, _ := strconv.Atoi(p.ID[1:]); x.lose(n) {
			continue
		}
		for range 1 + x.rng.IntN(20)/19 {
			late := 0
			if x.trouble.overtakes {
				late = x.rng.IntN(20) / 19 * x.rng.IntN(400)
			}
			x.flying = append(x.flying, meshFlight{x.now + time.Duration(2+late)*time.Millisecond, to, f})
		}
	}
}

// collect passes a datagram to the shards.
func (x *mesh) collect(r *meshReport) {
	var b decode.Batch
	x.reader.Datagram(&b, decode.AddrFrom4([]byte{10, 9, 9, byte(r.from)}), r.data, int64(1e18)+int64(x.now+x.clock))
	for i, report := range b.Reports {
		if err := report.Error(); err != nil || report.Kind != decode.KindProbes {
			x.t.Fatalf("%+v: %v", report, err)
		}
		at := (uint32(report.Flow.Src.Node())*7 + uint32(report.Flow.SrcPort) + report.Flow.Dst.Node()) % 2
		x.shards[at].Update(b.Reports[i : i+1])
	}
}

// judge ends a window. It returns the paths that lose anything in it, and the findings about paths.
func (x *mesh) judge() (lost map[uint32]int64, found map[uint32]bool) {
	var p window.Partial
	for _, s := range x.shards {
		c := s.Cut(int64(1e18) + int64(x.now+x.clock))
		c.AddTo(&p)
		s.Recycle(c)
	}
	p.Start, p.End = int64(1e18)+int64(x.begun), int64(1e18)+int64(x.now)
	x.begun = x.now
	w := p.Window(window.NoLimits())
	lost, found = map[uint32]int64{}, map[uint32]bool{}
	for _, f := range x.detector.Step(&w) {
		if f.Kind == inference.ProbeLoss && f.End == 0 && f.Evidence == 0 {
			name := strings.Fields(f.Text)
			if n, err := strconv.Atoi(name[1]); err == nil {
				found[uint32(n)] = true
			}
		}
	}
	for i := range w.Probes {
		s := w.Probes[i]
		if s.Unheard() {
			continue
		}
		for k := range w.Probes {
			if o := &w.Probes[k]; o.Unheard() && o.To == s.To && o.Path == s.Path && o.Epoch == s.Epoch {
				s.Missed += o.Missed
			}
		}
		if n, _ := s.Settled(); n != 0 {
			lost[s.Path] += n
		}
	}
	return lost, found
}

// meshTroubles are what the meshes of tests go through.
var meshTroubles = []struct {
	name string
	meshTrouble
}{
	{"restarts", meshTrouble{restarts: true, overtakes: true}},
	{"restarts and plans", meshTrouble{restarts: true, plans: true, overtakes: true}},
	{"lost reports and plans", meshTrouble{plans: true, overtakes: true, reports: .1, twice: .05}},
	{"lost reports, restarts and plans", meshTrouble{restarts: true, plans: true, reports: .1, twice: .05}},
	{"clocks and suspended machines", meshTrouble{plans: true, clocks: true, suspends: true}},
	{"stopped programs", meshTrouble{restarts: true, stops: true, overtakes: true}},
	{"outages and restarts", meshTrouble{restarts: true, outages: true, overtakes: true}},
	{"clock of the collector", meshTrouble{restarts: true, plans: true, collector: true, overtakes: true, reports: .05}},
	{"everything", meshTrouble{restarts: true, plans: true, clocks: true, stops: true, suspends: true, outages: true, collector: true, reports: .1, twice: .05}},
}

// meshCalm is a mesh in which nothing happens.
var meshCalm = struct {
	name string
	meshTrouble
}{"calm", meshTrouble{overtakes: true, reports: .02}}

// TestMeshHealthy: no path of a network that loses nothing is accused, whatever happens to the agents and to their reports, and
// however long windows are.
func TestMeshHealthy(t *testing.T) {
	t.Parallel()
	for _, x := range meshTroubles {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			accused := map[time.Duration]int{}
			rounds := testkit.Rounds(12, 300)
			for k := range rounds {
				seed := testkit.Seed(t) + uint64(k)
				for _, length := range []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second} {
					m := newMesh(t, seed, x.meshTrouble, meshAll)
					for bad := false; m.now < 4*time.Minute && !bad; {
						for end := m.now + length; m.now < end; {
							m.step()
						}
						lost, found := m.judge()
						for path, n := range lost {
							if n > 0 && !(m.trouble.suspends && ownPath(path)) { // what comes to a suspended machine is lost
								bad = true
								t.Errorf("seed %d, interval %v, windows of %v, %v: path %d lost %d\n%s", seed, m.interval, length, m.now, path, n, strings.Join(m.log, "\n"))
							}
						}
						if bad || len(found) > 0 && !m.trouble.suspends {
							bad = true
							accused[length]++
						}
					}
				}
			}
			for length, n := range accused {
				t.Errorf("windows of %v: a healthy path is accused in %d of %d", length, n, rounds)
			}
		})
	}
}

// TestMeshLosses: a path that loses probes is found, and no other one, whatever happens to the agents and to their reports. Of
// those that lose a fifth half are found beside restarts every eight seconds.
func TestMeshLosses(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{1, .2} {
		for _, x := range append(meshTroubles, meshCalm) {
			t.Run(fmt.Sprintf("%v of %s", share, x.name), func(t *testing.T) {
				t.Parallel()
				var after []time.Duration // the losses began, until the first were settled
				rounds := testkit.Rounds(8, 60)
				for k := range rounds {
					seed := testkit.Seed(t) + uint64(k)
					lossy, late, accused := lossyMesh(t, seed, share, x.meshTrouble)
					if accused[lossy] {
						after = append(after, late)
					}
					delete(accused, lossy)
					for path := range accused {
						if !(x.suspends && ownPath(path)) {
							t.Errorf("seed %d: path %d loses %v of its probes, and path %d is accused", seed, lossy, share, path)
						}
					}
				}
				missed, most := rounds-len(after), 1+rounds/20
				if x.outages && x.suspends || share < 1 && (x.restarts || x.suspends) {
					most = 1 + rounds/2
				}
				if missed > most {
					t.Errorf("%d of %d are not found", missed, rounds)
				} else if slices.Sort(after); len(after) > 0 {
					t.Logf("%d of %d found; losses settled after %v (half), %v (nine tenths)", len(after), rounds, after[len(after)/2], after[len(after)*9/10])
				}
			})
		}
	}
}

// lossyMesh runs a mesh of which a path loses a share of its probes from the first minute on. It returns how late the first losses
// were settled, and the paths with a finding.
func lossyMesh(t *testing.T, seed uint64, share float64, trouble meshTrouble) (lossy uint32, late time.Duration, accused map[uint32]bool) {
	const length, from = 5 * time.Second, time.Minute
	m := newMesh(t, seed, trouble, meshShort)
	n, _ := strconv.Atoi(m.plan.Probes[m.rng.IntN(len(m.plan.Probes))].ID[1:])
	lossy, accused = uint32(n), map[uint32]bool{}
	m.keep = n
	m.lose = func(path int) bool { return uint32(path) == lossy && m.now > from && m.rng.Float64() < share }
	for m.now < 4*time.Minute {
		for end := m.now + length; m.now < end; {
			m.step()
		}
		lost, found := m.judge()
		for path := range found {
			accused[path] = true
		}
		if late == 0 && lost[lossy] > 0 {
			late = m.now - from
		}
	}
	return lossy, late, accused
}

// ownPath reports whether the probes of a path return to their agent.
func ownPath(path uint32) bool { return path/6 == path/2%3 }
