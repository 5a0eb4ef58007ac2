package congestion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

// hpccOf is the setting of figure 7, with senders of a kind.
func hpccOf(sender Sender, share float64, overhead int) Setting {
	return HPCC("Hadoop", 0.5, sender, share, overhead, 1000, 1)
}

func renoOf() Setting { return TCP(0.7, 48, 1000, 1) }

// everyLaw is one setting of each kind.
func everyLaw() map[string]Setting {
	return map[string]Setting{
		"Reno": renoOf(), "INT": hpccOf(INT, 1, INTBytes), "p = 1": hpccOf(PINT, 1, 1),
		"p = 1/16": hpccOf(PINT, 1./16, 1), "p = 1/256": hpccOf(PINT, 1./256, 1),
	}
}

func newTestSimulation(t *testing.T, c Setting) *simulation {
	t.Helper()
	s, err := newSimulation(c)
	if err != nil {
		t.Fatal(err)
	}
	s.recording = true
	return s
}

// run runs until a time, or until nothing happens any more.
func (s *simulation) run(until int64) {
	for s.now < until && s.step(nil) {
	}
}

// Events come by time, and those of the same time as they were made, near and far.
func TestWheel(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	var w wheel
	w.begin(100e9)
	var now int64
	var waiting []int64
	for range 20_000 {
		for range 1 + r.IntN(3) {
			at := now + r.Int64N(1<<r.IntN(30))
			w.push(at, uint32(at&eventNumber))
			waiting = append(waiting, at)
		}
		for range 1 + r.IntN(2) {
			at, what, ok := w.pop()
			k := slices.Index(waiting, slices.Min(waiting))
			if !ok || at != waiting[k] || what != uint32(at&eventNumber) || at < now {
				t.Fatalf("%d, %d, %v: want %d, at %d", at, what, ok, waiting[k], now)
			}
			waiting[k] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			now = at
			if len(waiting) == 0 {
				break
			}
		}
	}
	for k := range uint32(100) {
		w.push(now+1<<40, k)
	}
	for k := range uint32(100 + len(waiting)) {
		if at, what, _ := w.pop(); at == now+1<<40 && what != k-uint32(len(waiting)) {
			t.Fatalf("the event %d of the same time is the one of place %d", what, k-uint32(len(waiting)))
		}
	}
	if _, _, ok := w.pop(); ok {
		t.Error("an event of an empty wheel")
	}
}

// Two packets of a flow between pods, by hand: the second, which is shorter, waits for the first on the last line.
func TestTwoPackets(t *testing.T) {
	c := hpccOf(INT, 1, 0)
	s := newTestSimulation(t, c)
	f := s.start(0, 47, 1500, true)
	if f.links != 5 {
		t.Fatalf("%d switches on the path, want 5", f.links)
	}
	s.run(math.MaxInt64)
	const (
		line                = microsecond
		first, second       = 1048, 548 // bytes
		fast, slow          = 20, 80    // ps a byte of 400 and 100 Gb/s
		sentFirst           = slow * first
		sentSecond          = sentFirst + slow*second
		atLast              = sentFirst + line + 4*(fast*first+line)
		lastFree            = atLast + slow*first
		arrivesAtLast       = sentSecond + line + 4*(fast*second+line)
		arrived             = lastFree + slow*second + line
		back                = slow*60 + line + 4*(fast*60+line) + slow*60 + line
		duration      int64 = arrived + back
		alone         int64 = arrivesAtLast + slow*second + line + back
	)
	if arrivesAtLast >= lastFree {
		t.Fatal("the second packet does not wait")
	}
	if got := s.done[0]; got.Duration != duration || got.Alone != alone || got.Size != 1500 {
		t.Errorf("%+v, want a duration of %d, alone %d", got, duration, alone)
	}
	if s.sent != 4 || s.delivered != 4 {
		t.Errorf("%d sent, %d delivered", s.sent, s.delivered)
	}
}

// All packets arrive or are dropped, every flow ends, and it takes no less time than alone.
func TestPacketsAreConserved(t *testing.T) {
	for name, c := range everyLaw() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.seed = testkit.Seed(t)
			s := newTestSimulation(t, c)
			r := rand.New(rand.NewPCG(c.seed, 0))
			const flows = 120
			for range flows {
				to := int32(r.IntN(3)) // three hosts receive everything
				from := (to + 1 + int32(r.IntN(len(s.hosts)-1))) % int32(len(s.hosts))
				s.start(from, to, 1+r.Int64N(300_000), true)
			}
			s.run(math.MaxInt64)
			if s.sent != s.delivered+s.dropped || s.pending != 0 || len(s.done) != flows {
				t.Errorf("%d sent, %d delivered, %d dropped; %d flows have ended, %d have not", s.sent, s.delivered, s.dropped, len(s.done), s.pending)
			}
			if (s.dropped > 0) != (c.sender == Reno) {
				t.Errorf("%d dropped", s.dropped)
			}
			for _, d := range s.done {
				if d.Slowdown() < 1 {
					t.Errorf("%+v: slowdown %v", d, d.Slowdown())
				}
			}
			for i := range s.ports {
				if o := &s.ports[i]; o.bytes != 0 || o.packets != 0 || o.first >= 0 {
					t.Errorf("port %d has %d bytes", i, o.bytes)
				}
			}
		})
	}
}

// A flow alone takes η of the line, whatever share of its packets has the digest, and no queue stays.
func TestFlowFillsTheLine(t *testing.T) {
	for name, c := range everyLaw() {
		if c.sender == Reno {
			continue
		}
		s := newTestSimulation(t, c)
		f := s.start(0, 47, 60_000_000, true)
		s.run(millisecond)
		before, from := f.unacked, s.now
		s.run(3 * millisecond)
		rate := float64(f.unacked-before) * float64(c.payload+c.header+c.overhead) * 8 / float64(s.now-from) * 1000
		if math.Abs(rate-95) > 1.5 {
			t.Errorf("%s: %.1f Gb/s", name, rate)
		}
		if s.mostQueue() > 5000 {
			t.Errorf("%s: a queue of %d bytes", name, s.mostQueue())
		}
	}
}

// A flow that begins with a tenth of the window beside another comes to half of the line, and both together have η.
func TestFlowsConverge(t *testing.T) {
	for name, c := range everyLaw() {
		if c.sender == Reno || c.share < 1./16 {
			continue
		}
		c.increase = 800 // ten times as fast
		s := newTestSimulation(t, c)
		f := s.start(0, 47, 1<<40, true)
		s.run(millisecond)
		g := s.start(20, 47, 1<<40, true)
		g.law.(*hpcc).current /= 10
		g.law.(*hpcc).set(s, g, g.law.(*hpcc).current)
		s.run(11 * millisecond)
		a, b, from := f.unacked, g.unacked, s.now
		until, off := int64(12*millisecond), 0.15
		if c.sender == PINT { // each flow rounds for itself, and the shares go to and fro by a sixth
			until, off = 31*millisecond, 0.3
		}
		s.run(until)
		x, y := float64(f.unacked-a), float64(g.unacked-b)
		rate := (x + y) * float64(c.payload+c.header+c.overhead) * 8 / float64(s.now-from) * 1000
		if math.Abs(x/y-1) > off || math.Abs(rate-95) > 2.5 {
			t.Errorf("%s: %.0f and %.0f packets, %.1f Gb/s", name, x, y, rate)
		}
	}
}

// The queue before a host is at most what its senders may have on the way, and goes away.
func TestQueueIsBounded(t *testing.T) {
	for name, c := range everyLaw() {
		if c.sender == Reno {
			continue
		}
		s := newTestSimulation(t, c)
		const senders = 8
		for h := range int32(senders) {
			s.start(16+h, 0, 1<<40, true)
		}
		s.run(500 * microsecond)
		bound := senders * (s.fullWindow() + float64(c.payload)) * float64(c.payload+c.header+c.overhead) / float64(c.payload)
		if most := s.mostQueue(); float64(most) > bound || float64(most) < bound/4 {
			t.Errorf("%s: a queue of %d bytes, bound %.0f", name, most, bound)
		}
		s.run(4 * millisecond)
		for i := range s.ports {
			s.ports[i].most = 0
		}
		s.run(5 * millisecond)
		if most := s.mostQueue(); most > 60_000 {
			t.Errorf("%s: still a queue of %d bytes", name, most)
		}
	}
}

// Packets of one size that come by a Poisson process wait as M/D/1 has it: ρ/(2(1-ρ)) of a packet's time in the mean.
func TestQueueAgainstMD1(t *testing.T) {
	s := newTestSimulation(t, renoOf())
	s.limit = 0
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const packets, size, load = 400_000, 1500, 0.7
	path, links := s.route(0, 1, 0)
	work := float64(size * s.ports[path[0]].perByte)
	at := 0.0
	for i := range int32(packets) {
		at += r.ExpFloat64() * work / load
		s.packets = append(s.packets, simPacket{path: path, links: links, size: size, began: int64(at), next: -1})
		s.events.push(int64(at), eventArrival|uint32(i))
	}
	sum, n := 0.0, 0
	for {
		now, what, ok := s.events.pop()
		if !ok {
			break
		}
		s.now = now
		if p := &s.packets[what&eventNumber]; what&^eventNumber == eventArrival && p.hop == p.links {
			sum += float64(now-p.began-s.delay)/work - 1
			n++
			continue
		}
		s.handle(what, nil)
	}
	want := load / (2 * (1 - load))
	// The mean of so many waits, which hang together over some 1/(1-ρ)² packets, is off by 1 % or so.
	if got := sum / packets; n != packets || math.Abs(got/want-1) > 0.05 {
		t.Errorf("%d packets wait for %.3f packets' times, want %.3f", n, got, want)
	}
}

// Digests are off by their code's bound at most, and not in the mean.
func TestUtilizationDigest(t *testing.T) {
	s := newTestSimulation(t, hpccOf(PINT, 1, 1))
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const bound = 1.025*1.025 - 1 + 1./64 // and levels are whole numbers, the least of them 128
	for range 50 {
		u := uint64(pint.UtilizationUnit / 512 * math.Exp(8*r.Float64()))
		sum := 0.0
		const draws = 4000
		for range draws {
			got := s.code.Decode(s.code.Encode(u, r.Uint32()))
			if math.Abs(got/float64(u)-1) > bound {
				t.Fatalf("%d is %v", u, got)
			}
			sum += got
		}
		// A digest's deviation is ε of the value at most: the mean's is ε/√draws, and seven of them never happen.
		if off := sum/draws/float64(u) - 1; math.Abs(off) > 7*0.033/math.Sqrt(draws) {
			t.Errorf("%d is off by %v in the mean", u, off)
		}
	}
}

// A seed gives one result, and another one another.
func TestSimulationIsDeterministic(t *testing.T) {
	for name, c := range everyLaw() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.workload, c.measured = "Hadoop", 100
			c.pods, c.half, c.servers = 2, 2, 1
			var lists [3][]Completion
			for k, seed := range []uint64{5, 5, 6} {
				c.seed = seed
				s, err := simulate(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				lists[k] = s.done
				for _, d := range s.done {
					if d.Slowdown() < 1 {
						t.Errorf("%+v: slowdown %v", d, d.Slowdown())
					}
				}
				if n := len(s.done); n < 50 || n > 150 {
					t.Errorf("%d flows are measured, want about 100", n)
				}
			}
			if !slices.Equal(lists[0], lists[1]) || slices.Equal(lists[0], lists[2]) {
				t.Error("results do not follow the seed")
			}
		})
	}
}

// Flows of a seed are the same, whatever their senders are.
func TestFlowsArePaired(t *testing.T) {
	seed := testkit.Seed(t)
	var lists [2][]Completion
	for k, c := range []Setting{HPCC("Hadoop", 0.5, INT, 1, INTBytes, 30, seed), HPCC("Hadoop", 0.5, PINT, 1./16, 1, 30, seed)} {
		c.pods, c.servers = 2, 1
		r, err := Simulate(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		lists[k] = r.Done
	}
	x, y := lists[0], lists[1]
	if len(x) != len(y) || len(x) == 0 {
		t.Fatalf("%d and %d flows", len(x), len(y))
	}
	for i := range x {
		if x[i].ID != y[i].ID || x[i].Size != y[i].Size || x[i].Alone != y[i].Alone {
			t.Errorf("%+v and %+v", x[i], y[i])
		}
	}
}

// Sizes have the mean of their curve. That of web search is published as 1.6 MB.
func TestFlowSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for name, want := range map[string]float64{"web search": 1.65e6, "Hadoop": 1.25e5} {
		c := flowSizes[name]
		if got := c.mean(); math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s: mean %v, want about %v", name, got, want)
		}
		sum := 0.0
		const draws = 1_000_000
		for range draws {
			sum += float64(c.draw(r))
		}
		if math.Abs(sum/draws/c.mean()-1) > 0.03 {
			t.Errorf("%s: mean of draws %v, of the curve %v", name, sum/draws, c.mean())
		}
		if c.at(100) != c[len(c)-1].bytes || c.at(50) <= c.at(40) {
			t.Errorf("%s: quantiles", name)
		}
	}
}
