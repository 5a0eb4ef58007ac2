//go:build torture

package torture

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// sums are the store's sums for an instance.
type sums struct{ hops, reports, lost, down, duplicated int64 }

func (f *fleetUnderTest) sums(instance string) (s sums) {
	f.t.Helper()
	for _, row := range f.server.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: -2h, stop: 2h) |> filter(fn: (r) => r.instance == %q)`, instance)) {
		n, ok := row["_value"].(int64)
		if !ok {
			continue
		}
		switch row["_measurement"].(string) + "." + row["_field"].(string) {
		case "hop.count":
			s.hops += n
		case "exporter.reports":
			s.reports += n
		case "exporter.lost":
			s.lost += n
		case "exporter.down":
			s.down += n
		case "exporter.duplicated":
			s.duplicated += n
		}
	}
	return s
}

// shardQueue is the stage of the ledger in which a collector drops reports that it has no time for.
const shardQueue = "shard-queue"

// dropped is the number of reports that the collectors dropped because the queue of a shard was full. Exporters have sent
// them, and no hop has them.
func (f *fleetUnderTest) dropped() (n int64) {
	for _, p := range f.collectors {
		n += (&run{p: p}).droppedByShards()
	}
	return n
}

func (r *run) droppedByShards() int64 {
	n, _ := r.metric("hopscope_ledger_dropped_total", fmt.Sprintf("stage=%q", shardQueue))
	return int64(n)
}

// accounted waits until what the fleet has and what it counts as lost is what was sent, and fills in the row.
func (f *fleetUnderTest) accounted(r *result) sums {
	f.t.Helper()
	f.pending.Wait()
	var s sums
	var dropped int64
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(500 * time.Millisecond) {
		s, dropped = f.sums("fleet"), f.dropped()
		if s.hops+hops*(s.lost+s.down+dropped) == hops*f.sent && s.hops == hops*(s.reports-dropped) || time.Now().After(end) {
			break
		}
	}
	r.Sent, r.Stored = f.sent, s.hops/hops
	r.Lost["on the way"], r.Lost["down"], r.Lost[shardQueue] = s.lost, s.down, dropped
	if s.hops != hops*(s.reports-dropped) {
		f.t.Errorf("the store has %d reports of exporters, of which %d had no room in the queue of a shard, and %d hops, which is not %d each", s.reports, dropped, s.hops, hops)
	}
	r.settle()
	r.Remark = fmt.Sprintf("settled %.1f s after the last report", time.Since(f.last).Seconds())
	if r.Unaccounted+r.Doubled != 0 {
		f.t.Log(f.tails())
	}
	return s
}

// forge writes a record with the name and the number of a collector's record and other contents. A collector that was
// restored from a snapshot does so.
func (f *fleetUnderTest) forge() (forged int) {
	f.t.Helper()
	topic := f.broker.Prefix + "windows"
	for p := range 4 {
		_, end := f.broker.Offsets(topic, p)
		all := f.broker.Read(topic, p, max(0, end-40))
		for i := len(all) - 1; i > 0; i-- {
			h, err := fleet.ReadHead(all[i].Header(fleet.HeaderKey))
			if err != nil || h.Kind != fleet.Part || h.From != "collector-1" {
				continue
			}
			other := slices.IndexFunc(all, func(m servertest.Message) bool { return len(m.Value) > 0 && string(m.Value) != string(all[i].Value) })
			if other < 0 {
				continue
			}
			h.Sum = fleet.Sum(all[other].Value)
			f.put(topic, p, h.Append(nil), all[other].Value)
			forged++
			break
		}
	}
	return forged
}

func moreFleetRows() []row {
	two := fleetOptions{collectors: 2, consumers: 2}
	all := two
	all.kafka = "  reports: all\n"
	return []row{
		fleetRow("fleet: an exporter speaks to two collectors", two, func(f *fleetUnderTest, _, _ []*run) {
			f.send(4, func(_, n int) []int { return []int{n % 2} })
		}),
		fleetRow("fleet: datagrams reach two collectors", two, func(f *fleetUnderTest, _, _ []*run) {
			f.send(3, func(int, int) []int { return []int{0, 1} })
		}),
		fleetRow("fleet: a collector that was restored from a snapshot", two, func(f *fleetUnderTest, _, _ []*run) {
			if f.forge() == 0 {
				f.t.Error("nothing was forged")
			}
			f.send(4, f.sticky)
		}),
		fleetRow("fleet: all reports one by one", all, func(f *fleetUnderTest, _, _ []*run) {
			f.send(3, f.sticky)
			f.oneByOne()
		}),
		fleetRow("fleet: postcards", fleetOptions{collectors: 2, consumers: 2, postcards: true}, func(f *fleetUnderTest, _, _ []*run) {
			f.send(3, f.sticky)
			f.oneByOne()
		}),
		fleetRow("fleet: all reports one by one, kill -9 of a consumer", all, func(f *fleetUnderTest, _, consumers []*run) {
			f.meanwhile(func() {
				time.Sleep(moment(0, 1500*time.Millisecond))
				consumers[0].kill()
			})
			f.send(9, f.sticky)
			f.pending.Wait()
			consumers[0] = f.consumers[0].start()
			f.send(3, f.sticky)
		}),
		{name: "fleet: kill -9 of a collector", run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			collectors, _ := f.start()
			f.send(3, f.sticky)
			for range short(2, 10) {
				f.meanwhile(func() {
					time.Sleep(moment(0, time.Second))
					collectors[0].kill()
					collectors[0] = f.collectors[0].start()
				})
				f.send(3, f.sticky)
				f.pending.Wait()
			}
			f.send(4, f.sticky)
			f.accounted(r)
		}},
		{name: "fleet: a collector dies for ever", run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			collectors, _ := f.start()
			f.send(3, f.sticky)
			f.meanwhile(func() {
				time.Sleep(moment(0, time.Second))
				collectors[1].kill()
			})
			f.send(2, f.sticky)
			f.pending.Wait()
			f.send(8, func(int, int) []int { return []int{0} }) // its exporters send to the other one now
			f.accounted(r)
		}},
		{name: "fleet: collectors are taken for dead, and were only stalled", run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			collectors, _ := f.start()
			f.send(3, f.sticky)
			for _, c := range collectors {
				c.pause()
			}
			f.send(8, f.sticky) // longer than any consumer waits for them
			for _, c := range collectors {
				c.resume()
			}
			f.send(4, f.sticky)
			f.accounted(r)
		}},
		{name: "fleet: the disk of a collector is full while the broker is away", run: func(t *testing.T, r *result) {
			o := two
			o.broker, o.disk = servertest.StartBroker(t, servertest.BrokerOptions{}), &disk{}
			f := newFleet(t, o)
			o.disk.dir = f.collectors[0].spoolDir()
			f.start()
			f.send(2, f.sticky)
			f.broker.Stop()
			o.disk.full.Store(true)
			f.send(4, f.sticky)
			o.disk.full.Store(false)
			f.send(1, f.sticky)
			f.broker.Restart()
			f.send(4, f.sticky)
			f.settled(r, nil)
			r.Remark += fmt.Sprintf(", %d calls of the disk failed", o.disk.refused.Load())
			if o.disk.refused.Load() == 0 {
				t.Error("the disk was not asked for anything, so nothing was tested")
			}
		}},
		{name: "fleet: the broker is away for more windows than are open", first: true, run: func(t *testing.T, r *result) {
			o := two
			// Nothing is sent until the broker has started, which a busy machine may take for silence.
			o.settings += "events:\n  silence_after: 1000\n  silence_severe: 1000\n"
			o.broker = servertest.StartBroker(t, servertest.BrokerOptions{})
			f := newFleet(t, o)
			f.start()
			f.send(2, f.sticky)
			f.broker.Stop()
			f.send(short(40, 120), f.sticky)
			f.broker.Restart()
			f.send(4, f.sticky)
			f.settled(r, nil)
		}},
		{name: "fleet: 50,000 reports a second", alone: true, run: fleetLatency},
	}
}

// fleetLatency measures how long after a window's end its points are in the store.
func fleetLatency(t *testing.T, r *result) {
	f := newFleet(t, fleetOptions{collectors: 2, consumers: 1, unsupervised: true})
	f.start()
	cfg := traffic.DefaultConfig()
	cfg.Hops = hops
	windows := short(10, 60)
	for i, p := range f.collectors {
		f.meanwhile(func() {
			cfg := cfg
			cfg.Seed = uint64(i + 1)
			gen, err := traffic.New(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := traffic.Send(t.Context(), traffic.SendConfig{To: p.udp, Rate: 25_000, Duration: time.Duration(windows) * fleetWindow}, gen)
			if err != nil {
				t.Error(err)
			}
			// The last ones come slowly, so that numbers which are missing before them are reported.
			last, err := traffic.Send(t.Context(), traffic.SendConfig{To: p.udp, Rate: 500, Count: 500}, gen)
			if err != nil {
				t.Error(err)
			}
			f.mu.Lock()
			f.sent += int64(res.Sent + last.Sent)
			f.mu.Unlock()
		})
	}
	var delays []time.Duration
	seen := time.Now().Truncate(fleetWindow)
	for end := time.Now().Add(time.Duration(windows) * fleetWindow); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		rows := f.server.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: %s, stop: 1h) |> filter(fn: (r) => r.instance == "fleet" and r._measurement == "flow" and r._field == "packets") |> group() |> max(column: "_time")`,
			seen.Add(time.Millisecond).UTC().Format(time.RFC3339Nano)))
		now := time.Now()
		for _, row := range rows {
			if at, ok := row["_time"].(time.Time); ok && at.After(seen) {
				delays, seen = append(delays, now.Sub(at)), at
			}
		}
	}
	f.pending.Wait()
	f.last = time.Now()
	f.accounted(r)
	if len(delays) == 0 {
		t.Fatal("no window came to the store")
	}
	slices.Sort(delays)
	r.Remark = fmt.Sprintf("points %.2f s after the end of their window in the median, %.2f s at most, of %d windows", delays[len(delays)/2].Seconds(), delays[len(delays)-1].Seconds(), len(delays))
}
