package fleet

import (
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

func testShard() (*shard.State, error) {
	cfg := shard.DefaultConfig()
	cfg.MemoryBytes = 8 << 20
	return shard.New(cfg, testSeed), nil
}

// Reports that came one by one, from two collectors, count as in one process, also when the consumer is killed in between.
func TestRawReports(t *testing.T) {
	w := newWorld(t, 2)
	w.briefly()
	w.topics.Reports = w.b.Prefix + "reports"
	w.b.CreateTopic(w.topics.Reports, testSlices)
	raw := func(_ *Config, o *Options) {
		o.Topics = w.topics
		o.Shard, o.Slicer = testShard, window.NewSlicer(testSeed, testSlices)
	}
	slicer := window.NewSlicer(testSeed, testSlices)
	single, _ := testShard()
	codec := fleet.NewCodec(0, window.Limits{})
	// The two collectors see the same flows by turns.
	send := func(n int) {
		var all []*decode.Report
		byCollector := [2][testSlices][]*decode.Report{}
		for i := range 400 {
			r := &decode.Report{
				Format: decode.TelemetryReport, Kind: decode.KindStack, Units: &decode.DefaultUnits, Has: decode.HasFlow | decode.HasPorts, Time: w.label(n) - int64(testWindow) + int64(i)*1e6,
				Flow: decode.FlowKey{SrcPort: uint16(i % 37), DstPort: 443, Proto: 17, IPVersion: 4},
			}
			for k := range 3 {
				r.Hops = append(r.Hops, decode.Hop{NodeID: uint32(100 + k + i%37), Has: decode.HopNodeID | decode.HopLatency, Latency: uint32(1000 + 10*i + k)})
			}
			all = append(all, r)
			s := slicer.Flow(&r.Flow)
			byCollector[i/5%2][s] = append(byCollector[i/5%2][s], r)
		}
		for i, name := range w.names {
			counts := make([]uint64, testSlices)
			for s, reports := range byCollector[i] {
				var e arrow.Encoder
				e.Reset()
				for _, r := range reports {
					e.Append(r)
				}
				stream := e.AppendStream(nil)
				counts[s] = uint64(len(reports))
				w.sendTo(w.topics.Reports, w.pubs[name].Reports(s, w.label(n), counts[s], codec.Compress(nil, stream)))
				w.sendTo(w.topics.Reports, w.pubs[name].Mark(s, w.label(n), counts[s]))
			}
			p := w.part(i, n)
			end := w.label(n)
			if w.seen[end] == nil {
				w.seen[end] = &window.Partial{}
				w.labels = append(w.labels, end)
				slices.Sort(w.labels)
			}
			w.seen[end].Merge(p)
			out, err := w.pubs[name].Window(nil, p, end, counts, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.send(out)
		}
		single.Update(all)
		cut := single.Cut(w.label(n))
		cut.AddTo(w.seen[w.label(n)])
		single.Recycle(cut)
		w.at(n)
	}
	a := w.consume("a", raw)
	send(0)
	send(1)
	w.equal()
	a.kill()
	w.consume("b", raw)
	send(2)
	w.equal()
}

// Records that are small, and hold a great many reports that are all alike, take no more memory than the bound of a window allows.
func TestRawBomb(t *testing.T) {
	cfg := defaultConfig()
	cfg.WindowBytes = 1 << 20
	c := &Consumer{cfg: cfg, log: slog.New(slog.DiscardHandler), loggedLeft: map[string]bool{}, series: &stores.Set{}, receivers: &stores.Set{}, opt: Options{
		Now: time.Now, Shard: testShard, Slicer: window.NewSlicer(testSeed, testSlices), Params: roster.Params{Slices: testSlices, Window: testWindow},
	}}
	w := &worker{c: c, status: &shared[partitionStatus]{}}
	task, err := c.newRaw(w)
	if err != nil {
		t.Fatal(err)
	}
	task.after = math.MaxInt64 // there is no receiver
	var e arrow.Encoder
	e.Reset()
	r := decode.Report{Format: decode.TelemetryReport, Kind: decode.KindStack, Units: &decode.DefaultUnits, Time: 1, Hops: []decode.Hop{{NodeID: 1, Has: decode.HopNodeID}}}
	const alike = 20_000
	for range alike {
		e.Append(&r)
	}
	value := task.codec.Compress(nil, e.AppendStream(nil))
	end := int64(testWindow)
	const records = 10
	if records*int64(len(value)) >= cfg.WindowBytes {
		t.Fatalf("a record of %d bytes is no bomb", len(value))
	}
	for at := range int64(records + 1) {
		r := fleet.Record{Offset: at, Head: fleet.Head{Kind: fleet.Close, From: "consumer", End: end}}
		if at < records {
			r.Value = value
			r.Head = fleet.Head{Kind: fleet.Reports, From: "evil", Boot: 1, Seq: uint64(at + 1), End: end, Reports: alike, Sum: fleet.Sum(value)}
		}
		if err := task.add(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(task.batch.Reports); n != 2*alike || task.bad != records-2 || task.gate.Held() != 0 {
		t.Errorf("%d reports in memory, %d records refused, %d bytes kept; want %d, %d and none", n, task.bad, task.gate.Held(), 2*alike, records-2)
	}
	if c.full != (records-2)*alike {
		t.Errorf("%d reports are left out by window_bytes", c.full)
	}
	if b := &task.books; b.Taken != records*alike || b.Delivered != 2*alike || b.Dropped[roster.DroppedBroken] != (records-2)*alike || len(b.Waiting) != 0 {
		t.Errorf("the books: %+v", b)
	}
}

func (w *world) sendTo(topic string, r fleet.Out) {
	w.t.Helper()
	if _, err := w.log.Append(w.t.Context(), topic, r.Partition, messagesOf([]fleet.Out{r}, w.now())...); err != nil {
		w.t.Fatal(err)
	}
}

// TestStatement combines the statements of all partitions. They have every report of an exporter once, and exactly the
// numbers that came. It does not matter which partition a report went to, or how few a partition has.
func TestStatement(t *testing.T) {
	const partitions, exporters = 4, 5
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var parts [partitions][]*decode.Report
		want := map[inference.ExporterKey]map[uint32]bool{}
		for n := range uint32(1 + rng.IntN(300)) {
			e := uint32(rng.IntN(exporters))
			key := inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, byte(e)}), Node: e, HWID: 1}
			if want[key] == nil {
				want[key] = map[uint32]bool{}
			}
			seq := uint32(1<<22-100+3*n) & (1<<22 - 1) // they go round, and others are lost
			want[key][seq] = true
			p := rng.IntN(partitions)
			parts[p] = append(parts[p], &decode.Report{
				Time: 1e18 + int64(n)*1e6, Version: decode.V20, Exporter: key.Addr, NodeID: e, HWID: 1, Seq: seq, SeqBits: 22, FirstOfGroup: true,
				Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq,
			})
		}
		reports, got := map[inference.ExporterKey]uint64{}, map[inference.ExporterKey]map[uint32]bool{}
		for _, list := range parts {
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for _, s := range stateFor(nil, fleet.Source{From: "a", Boot: 1}, list, 2e18) {
				for _, e := range s.Seen.Exporters() {
					reports[e.ExporterKey] += e.Reports
					if !e.Sequenced || e.Lost != 0 || e.Provisional != 0 || e.Down != 0 || e.Restarts != 0 || e.Duplicated != 0 {
						t.Fatalf("seed %d: %+v", seed, e)
					}
				}
				for _, n := range s.Seen.Numbers() {
					if got[n.ExporterKey] == nil {
						got[n.ExporterKey] = map[uint32]bool{}
					}
					for _, r := range n.Runs {
						if r.Count != r.Last-r.First+1 {
							t.Fatalf("seed %d: %+v", seed, r)
						}
						for at := r.First; at <= r.Last; at++ {
							got[n.ExporterKey][(n.First+uint32(at))&(1<<22-1)] = true
						}
					}
				}
			}
		}
		for key, numbers := range want {
			if reports[key] != uint64(len(numbers)) || !maps.Equal(got[key], numbers) {
				t.Fatalf("seed %d: %v has %d reports and %d numbers, want %d", seed, key, reports[key], len(got[key]), len(numbers))
			}
		}
		if len(reports) != len(want) {
			t.Fatalf("seed %d: %d exporters, want %d", seed, len(reports), len(want))
		}
	}
}

// TestStatementRuns: the runs of a statement are bounded, whatever distinguishes its sequences: hardware ids of a node, destinations, widths.
// How many numbers came is known all the same.
func TestStatementRuns(t *testing.T) {
	const each = 300
	var list []*decode.Report
	for hw := range 128 {
		for to := range uint64(2) {
			for n := range uint32(each) {
				list = append(list, &decode.Report{
					Time: 1e18 + int64(n), Version: decode.V20, Exporter: decode.AddrFrom4([]byte{192, 0, 2, 1}), NodeID: 7, HWID: uint8(hw), To: 1 + to, Seq: 3 * n, SeqBits: 22, FirstOfGroup: true,
					Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq,
				})
			}
		}
	}
	if n := sequences(list); n != 256 {
		t.Errorf("%d sequences, want 256", n)
	}
	runs, arrived := 0, uint64(0)
	for _, s := range stateFor(nil, fleet.Source{From: "a", Boot: 1}, list, 2e18) {
		for _, n := range s.Seen.Numbers() {
			runs += len(n.Runs)
			for _, r := range n.Runs {
				arrived += r.Count
			}
		}
	}
	if runs == 0 || runs > statedRuns || arrived != uint64(len(list)) {
		t.Errorf("%d runs of %d numbers; want at most %d, of %d", runs, arrived, statedRuns, len(list))
	}
}
