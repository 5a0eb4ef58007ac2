package collector

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/collector/windows"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// sockets is a source whose frames have the time of receipt, in as many queues as it has workers. A worker comes to its
// queue whenever it likes, takes as much as it likes, and answers when it is asked.
type sockets struct {
	arrive [][]time.Duration // by worker, since the start, in order
	frames [][]byte
	delay  func(worker int) time.Duration // of a worker, before it looks
	mute   bool                           // it never answers
	clock  func() (time.Time, time.Duration)
	batch  int

	mu      sync.Mutex
	prompts []chan int64
	times   []int64 // of all frames
}

func (s *sockets) Workers() int        { return len(s.arrive) }
func (s *sockets) Stats() ingest.Stats { return ingest.Stats{} }

func (s *sockets) Prompt(before int64) {
	for _, p := range s.prompts {
		select {
		case p <- before:
		default:
		}
	}
}

func (s *sockets) Run(ctx context.Context, handle func(int, *ingest.Batch)) error {
	var all sync.WaitGroup
	for w := range s.arrive {
		all.Go(func() { s.work(ctx, w, handle) })
	}
	all.Wait()
	return nil
}

func (s *sockets) work(ctx context.Context, w int, handle func(int, *ingest.Batch)) {
	start := time.Now()
	var queue []ingest.Frame // what the kernel has
	rest, n := s.arrive[w], w
	wall, asked := time.Duration(0), int64(0)
	arrived := func() {
		for len(rest) > 0 && time.Since(start) >= rest[0] {
			now, _ := s.clock() // as long as the clock is not set in between, this is what the kernel would have stamped
			at := now.Add(-(time.Since(start) - rest[0])).UnixNano()
			data := s.frames[n%len(s.frames)]
			n += len(s.arrive) // no worker has what another one had
			queue = append(queue, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: at})
			s.mu.Lock()
			s.times = append(s.times, at)
			s.mu.Unlock()
			rest = rest[1:]
		}
	}
	for ctx.Err() == nil && (len(rest) > 0 || len(queue) > 0) {
		if arrived(); len(queue) == 0 && asked == 0 {
			wall = 0
			if len(rest) > 0 {
				wall = rest[0] - time.Since(start)
			}
			select {
			case <-time.After(wall):
			case asked = <-s.prompts[w]:
			case <-ctx.Done():
			}
		}
		time.Sleep(s.delay(w))
		arrived()
		receive := min(len(queue), s.batch)
		if receive > 0 {
			handle(w, &ingest.Batch{Frames: queue[:receive]})
			queue = queue[receive:]
		}
		if asked == 0 {
			select {
			case asked = <-s.prompts[w]:
			default:
			}
		}
		if arrived(); asked != 0 && (len(queue) == 0 || queue[0].Time >= asked) {
			if !s.mute {
				handle(w, &ingest.Batch{Until: asked})
			}
			asked = 0
		}
	}
}

// around returns times of arrival: most of them close to the borders of windows.
func around(r *rand.Rand, begin time.Duration, length time.Duration, windows, n int) (times []time.Duration) {
	for range n {
		t := time.Duration(r.Int64N(int64(length) * int64(windows)))
		if r.IntN(4) > 0 {
			t = t.Round(length) + time.Duration(r.NormFloat64()*float64(2*time.Millisecond)) - begin
		}
		times = append(times, max(t, 0))
	}
	slices.Sort(times)
	return times
}

func newSockets(t *testing.T, clock func() (time.Time, time.Duration), delay func(int) time.Duration, arrive ...[]time.Duration) *sockets {
	most := 0
	for _, times := range arrive {
		most = max(most, len(times)*len(arrive))
	}
	s := &sockets{arrive: arrive, frames: datagrams(t, max(most, 1)), delay: delay, clock: clock, batch: 64}
	for range arrive {
		s.prompts = append(s.prompts, make(chan int64, 1))
	}
	return s
}

// byLabel counts times by the end of their window.
func byLabel(times []int64, length time.Duration) map[int64]uint64 {
	n := map[int64]uint64{}
	for _, at := range times {
		n[windows.MultipleBefore(at, int64(length))+int64(length)]++
	}
	return n
}

// Whatever workers do within their time, a window holds exactly what was received in it. This applies to counted and
// to diverted reports.
func TestWindowsByReceipt(t *testing.T) {
	const length = time.Second
	for seed := range uint64(testkit.Rounds(8, 40)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			time.Sleep(time.Duration(r.Int64N(int64(length)))) // the run begins anywhere in a window
			_, into := 0, time.Duration(time.Now().UnixNano()%int64(length))
			clock := timeNow()
			var mu sync.Mutex
			slow := make([]time.Duration, 4)
			for i := range slow {
				slow[i] = time.Duration(r.Int64N(int64(15 * time.Millisecond)))
			}
			delay := func(w int) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				if slow[w] == 0 || r.IntN(3) == 0 {
					return 0
				}
				return time.Duration(r.Int64N(int64(slow[w])))
			}
			var sources []Source
			var all []*sockets
			frames := datagrams(t, 2*4*700)
			for i := range 2 {
				s := newSockets(t, clock, delay, around(r, into, length, 12, 700), around(r, into, length, 12, 500), around(r, into, length, 12, 20), nil)
				s.frames = frames[i*len(frames)/2:] // no source has what the other one had
				s.batch = 1 + r.IntN(300)
				all = append(all, s)
				sources = append(sources, Source{Name: "sockets", Source: s})
			}
			p := &publisher{takes: half, exact: true}
			c := newEngine(t, func(p *program) { p.Window = length }, Options{Seed: seed, Sources: sources, Stores: publish(diverting{p}, "")})
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			times := slices.Concat(all[0].times, all[1].times)
			p.check(t, &c.Balances()[0], uint64(len(times)))
			got := map[int64]uint64{}
			for _, w := range p.windows {
				if n := w.reports + p.diverted[w.label]; n > 0 {
					got[w.label] = n
				}
			}
			if want := byLabel(times, length); !maps.Equal(got, want) {
				t.Errorf("seed %d: reports by window %v, want %v", seed, got, want)
			}
			if n := c.pipeline.Misplaced(); n != 0 {
				t.Errorf("seed %d: %d reports are misplaced", seed, n)
			}
		})
	}
}

// A worker that does not come is not waited for longer than half a window. What it brings then counts where it comes, and is
// reported.
func TestLateWorker(t *testing.T) {
	for _, mute := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const length = time.Second
			begin := time.Now()
			var late []time.Duration
			for i := range 10 { // in each window one just before the end, which comes 700 ms behind
				late = append(late, time.Duration(i+1)*length-10*time.Millisecond)
			}
			s := newSockets(t, timeNow(), func(w int) time.Duration { return time.Duration(w) * 700 * time.Millisecond }, []time.Duration{0, 10500 * time.Millisecond}, late)
			s.mute = mute
			keep := &keeper{}
			c := newEngine(t, func(p *program) { p.Window = length }, Options{Sources: []Source{{Name: "sockets", Source: s}}, Writers: []sink.WindowWriter{keep}})
			var ends []time.Duration
			c.AddWriter(writer(func(w *sink.Window) {
				if w.End%int64(length) == 0 {
					ends = append(ends, time.Duration(time.Now().UnixNano()-w.End))
				}
			}))
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			for i, d := range ends {
				if d > length/2+10*time.Millisecond {
					t.Errorf("window %d ended %v late", i, d)
				}
			}
			b := c.Balances()[0]
			if n := c.pipeline.Misplaced(); n != 10 || b.Stored != 12 || b.Unsettled != 0 {
				t.Errorf("mute %t: %d misplaced, want 10; %s", mute, n, LedgerLine(&b))
			}
			if len(ends) < 9 || time.Since(begin) > time.Minute {
				t.Errorf("%d windows in %v", len(ends), time.Since(begin))
			}
		})
	}
}

type writer func(*sink.Window)

func (writer) Name() string { return "writer" }

func (f writer) WriteWindow(_ context.Context, w *sink.Window) error { f(w); return nil }

// When the clock is set, times of frames say nothing for a while. All is counted once, nothing waits for ever, and when the
// clock runs on windows are what they say again.
func TestWindowsByReceiptClockSet(t *testing.T) {
	t.Parallel()
	const length = time.Second
	for _, step := range []time.Duration{-time.Hour, -3 * time.Second, -600 * time.Millisecond, -20 * time.Millisecond, 20 * time.Millisecond,
		600 * time.Millisecond, 3 * time.Second, time.Hour} {
		for phase := range testkit.Rounds(8, 20) {
			t.Run(fmt.Sprint(step, " at ", phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(phase), 2))
					clock := newSetClock()
					delay := func(w int) time.Duration { return time.Duration(w) * 3 * time.Millisecond }
					s := newSockets(t, clock.now, delay, around(r, 0, length, 20, 900), around(r, 0, length, 20, 900))
					keep := &keeper{}
					c := newEngine(t, func(p *program) { p.Window = length; p.Corrections = 10 * time.Second },
						Options{Now: clock.now, Sources: []Source{{Name: "sockets", Source: s}}, Writers: []sink.WindowWriter{keep}})
					go func() {
						time.Sleep(8*length + time.Duration(phase)*649*time.Millisecond%length) // anywhere in a window
						clock.set(step)
					}()
					if err := run(t, c); err != nil {
						t.Fatal(err)
					}
					b := c.Balances()[0]
					if b.Received != uint64(len(s.times)) || b.Stored != b.Received || b.Unsettled != 0 || b.InFlight["ring"] != 0 {
						t.Errorf("%d sent; %s", len(s.times), LedgerLine(&b))
					}
					got, counted := map[int64]uint64{}, uint64(0)
					for _, w := range keep.windows {
						got[w.End] += w.Reports
						counted += w.Reports
					}
					want := byLabel(s.times, length)
					// Before the step, and when the windows have come behind all that were there then.
					for label, n := range want {
						first := label <= time.Unix(0, s.times[0]).Add(6*length).UnixNano()
						if first && step > -3*time.Second && got[label] != n {
							t.Errorf("window %d has %d reports, want %d", label, got[label], n)
						}
					}
					if step > 0 {
						at := slices.Max(s.times)
						for label, n := range want {
							if label > at-6*int64(length) && label < at-int64(length) && got[label] != n {
								t.Errorf("long after the step, window %d has %d reports, want %d", label, got[label], n)
							}
						}
					}
					if counted != uint64(len(s.times)) {
						t.Errorf("%d counted of %d", counted, len(s.times))
					}
				})
			})
		}
	}
}

// Sockets of this machine are loaded around the ends of windows. Each report is in the window of its time, except
// those that the machine was too slow for, and these are counted.
func TestWindowsByReceiptOfSockets(t *testing.T) {
	const length = 500 * time.Millisecond
	cfg := testConfig()
	cfg.Window = length
	seen, keep := &stamps{}, &keeper{}
	sources, err := OpenSources(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(cfg.Config, cfg.Analysis, Options{Sources: sources, Reports: []sink.ReportWriter{seen}, Writers: []sink.WindowWriter{keep}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	frames := datagrams(t, 100)
	var senders sync.WaitGroup
	for _, a := range c.Addrs() {
		for range 2 {
			conn, err := net.Dial("udp", a.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			senders.Go(func() {
				for i, end := 0, time.Now().Add(6*length); time.Now().Before(end); i++ {
					_, _ = conn.Write(frames[i%len(frames)])
					time.Sleep(50 * time.Microsecond)
				}
			})
		}
	}
	senders.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b := c.Balances()[0]
	sent := uint64(len(seen.times))
	if b.Stored != sent || sent == 0 {
		t.Errorf("%d seen; %s", sent, LedgerLine(&b))
	}
	want, wrong, since := byLabel(seen.times, length), uint64(0), int64(0)
	for _, w := range keep.windows {
		n := uint64(0)
		for label, k := range want {
			if label > since && label <= windows.MultipleBefore(w.End-1, int64(length))+int64(length) {
				n += k
			}
		}
		since = windows.MultipleBefore(w.End-1, int64(length)) + int64(length)
		wrong += max(n, w.Reports) - min(n, w.Reports)
	}
	if reported := c.pipeline.Misplaced(); wrong > 2*reported {
		t.Errorf("%d of %d reports are in a wrong window or missing in theirs, and %d were reported", wrong, sent, reported)
	}
	t.Logf("%d reports, %d windows, %d misplaced", sent, len(keep.windows), c.pipeline.Misplaced())
}

// stamps is a stream of reports that keeps their times.
type stamps struct {
	mu    sync.Mutex
	times []int64
}

func (s *stamps) Start()                      {}
func (s *stamps) Close(context.Context) error { return nil }
func (s *stamps) Counts() (taken, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.times)), 0
}

func (s *stamps) AppendReports(reports []*decode.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range reports {
		s.times = append(s.times, r.Time)
	}
}

// A run is stopped around the end of a window. Reports from before the end count in that window, whether it has ended
// by then or not.
func TestStopAroundTheEnd(t *testing.T) {
	const length = time.Second
	for _, off := range []time.Duration{-time.Millisecond, -1, 0, 1, 500 * time.Microsecond, 2 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newSockets(t, timeNow(), func(int) time.Duration { return 0 },
				[]time.Duration{0, length / 2, 2*length - 3*time.Millisecond, 2*length + off}, []time.Duration{2*length - 2*time.Millisecond})
			p := &publisher{takes: half, exact: true}
			c := newEngine(t, func(p *program) { p.Window = length }, Options{Sources: []Source{{Name: "sockets", Source: s}}, Stores: publish(diverting{p}, "")})
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			got := map[int64]uint64{}
			for _, w := range p.windows {
				if n := w.reports + p.diverted[w.label]; n > 0 {
					got[w.label] = n
				}
			}
			if want := byLabel(s.times, length); !maps.Equal(got, want) {
				t.Errorf("stopped %v behind the end: reports by window %v, want %v", off, got, want)
			}
		})
	}
}
