package pipeline

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// everySecond takes every second report and keeps nothing.
type everySecond struct{ sink.Diverter }

func (everySecond) Takes(r *decode.Report) bool  { return r.Seq%2 == 0 }
func (everySecond) Divert(int, []*decode.Report) {}
func (everySecond) EndWindow(int64)              {}
func (everySecond) OpenWindow(int64)             {}
func (everySecond) MarkWindow(int64)             {}
func (everySecond) Tick(int64)                   {}
func (everySecond) Open(int, func(sink.Encoded)) {}

// TestBorder ends windows while workers deliver, with copies, damaged reports and full shard queues. What the
// exporters of a window count is in that window, diverted, or dropped before its border. No report is between a
// tracker and its shard. After a kill between two windows, the exporters' numbers therefore show every lost report.
func TestBorder(t *testing.T) {
	for _, divert := range []bool{false, true} {
		const workersN, most = 3, 20
		p, l := newTest(t, Config{Sources: workers(workersN), Window: time.Second, QueueBatches: 1}, exporters.DefaultConfig(), 2)
		if divert {
			p.diversion = &diversion{Diverter: everySecond{}}
		}
		p.Start()
		var wg sync.WaitGroup
		var enough atomic.Bool
		for n, w := range p.workers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), 33))
				all := datagrams(t, 300)
				for !enough.Load() {
					var frames []ingest.Frame
					for range 1 + rng.IntN(200) {
						data := all[rng.IntN(len(all))]
						switch rng.IntN(10) {
						case 0:
							data = data[:len(data)-1-rng.IntN(len(data)/2)]
						case 1:
							data = slices.Clone(data)
							data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
						}
						for range 1 + rng.IntN(2) {
							frames = append(frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 1e18})
						}
					}
					p.Handle(w, frames)
				}
			})
		}
		dropped := func() map[string]int64 { return l.AtBorder()[0].Dropped }
		before := dropped()
		windows, inWindows, lost := 0, uint64(0), int64(0)
		for ; windows <= most; windows++ {
			if windows == most {
				enough.Store(true)
				wg.Wait()
			}
			end := int64(1e18) + int64(windows+1)*1e9
			partial, diverted := p.Cut(End{Start: end - 1e9, Label: end, Wall: end, Steady: end, Next: end + 1e9}, end)
			now := dropped()
			reports := uint64(0)
			for _, e := range partial.Exporters() {
				reports += e.Reports
			}
			gone := int64(0)
			for _, s := range []ledger.Stage{ledger.DroppedDuplicate, ledger.DroppedCut, ledger.DroppedShardQueue} {
				gone += now[s.String()] - before[s.String()]
			}
			if got := int64(partial.Reports+diverted) + gone; got != int64(reports) {
				t.Errorf("window %d, diverted %v: exporters count %d reports; %d in the window, %d diverted, %d dropped", windows, divert, reports, partial.Reports, diverted, gone)
			}
			if windows < most { // so that workers get their turn
				time.Sleep(5 * time.Millisecond)
			}
			inWindows, lost, before = inWindows+partial.Reports+diverted, lost+gone, now
		}
		p.Close()
		if inWindows == 0 || lost == 0 {
			t.Errorf("%d reports in windows, %d dropped: nothing is shown", inWindows, lost)
		}
	}
}
