package fleet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// process counts reports as one process does it, with one shard.
type process struct {
	shard   *shard.State
	tracker *sequence.Tracker
}

func newProcess(cfg shard.Config, seed uint64) *process {
	exporters := sequence.DefaultConfig()
	exporters.MaxExporters = 64
	return &process{shard.New(cfg, seed), sequence.New(exporters, seed)}
}

func (p *process) see(r decode.Report) {
	p.tracker.Observe(&r)
	p.shard.Update([]*decode.Report{&r})
}

func (p *process) cut(end int64) *window.Partial {
	out := &window.Partial{}
	out.Span(end-tick, end)
	c := p.shard.Cut(end)
	c.AddTo(out)
	p.shard.Recycle(c)
	out.AddExporters(p.tracker.Cut(nil, end))
	p.tracker.Numbers(out)
	return out
}

// TestStreams distributes random streams of reports over collectors, so that each exporter and each flow reaches one of
// them. Their windows pass through records, slices and the assembler. The result equals that of one process for the
// whole stream, bit for bit.
func TestStreams(t *testing.T) {
	exporters, changes := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 31))
		cfg := shard.DefaultConfig()
		cfg.MemoryBytes, cfg.IdleTimeout = 2<<20, time.Hour
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		slicer := window.NewSlicer(rng.Uint64(), 1+rng.IntN(4))
		collectors := 1 + rng.IntN(4)
		all := newProcess(cfg, rng.Uint64())
		var each []*process
		var pubs []*Publisher
		for i := range collectors {
			each = append(each, newProcess(cfg, rng.Uint64()))
			if seed%2 == 1 { // no exporter is shared, so that this changes nothing
				each[i].tracker.ReportNumbers(16)
			}
			pubs = append(pubs, NewPublisher(PublisherConfig{From: string(rune('a' + i)), Boot: rng.Uint64() | 1, Slicer: slicer, Window: tick, MaxSize: 1000 + rng.IntN(5000)}))
		}
		var mergers []*Merger
		for i := range slicer.Slices() {
			mergers = append(mergers, newMerger(t, func(c *Options) {
				if c.Slice = i; seed%2 == 1 {
					limits := cross.DefaultLimits()
					c.Cross = &limits
				}
			}))
		}
		a := newAssembler(t, func(c *Options) { c.Slices = slicer.Slices() })
		codec := NewCodec(0, wide)
		offsets, reported := make([]int64, slicer.Slices()), int64(0)
		flows := 1 + rng.IntN(60)
		sequences := make([]uint32, 8)
		paths := map[int][]decode.Hop{}
		for w := int64(100); w < 103; w++ {
			at := (w - 1) * tick
			for n := 100 + rng.IntN(200); n > 0; n-- {
				at += rng.Int64N(tick / 400)
				id := int(float64(flows) * math.Pow(rng.Float64(), 3))
				exporter := id % len(sequences) // of a flow, always the same one
				sequences[exporter] += 1 + rng.Uint32N(20)/19
				r := decode.Report{
					Time: at, Format: decode.TelemetryReport, Kind: decode.KindStack, INT: decode.V21, Flow: flowKey(uint32(id)),
					Has: decode.HasFlow | decode.HasNodeID | decode.HasSeq | decode.HasExporter, NodeID: uint32(exporter), Seq: sequences[exporter], SeqBits: 32, Exporter: flowKey(uint32(exporter)).Src,
					Units: &decode.Units{LatencyNS: 10, TimeNS: 1, QueueBytes: 80, TxFullScale: 100, LatencyCalc: true},
				}
				if paths[id] == nil || rng.IntN(50) == 0 {
					paths[id] = nil
					for i := range 1 + rng.IntN(5) {
						paths[id] = append(paths[id], decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency | decode.HopQueueOccupancy | decode.HopTxUtilization, NodeID: uint32(10*i + rng.IntN(3)), EgressIf: uint16(1 + rng.IntN(3))})
					}
				}
				r.Hops = append(r.Hops, paths[id]...)
				for i := range r.Hops {
					h := &r.Hops[i]
					h.Latency, h.QueueOccupancy, h.TxUtilization = rng.Uint32()>>rng.IntN(30), rng.Uint32N(5000), 1+rng.Uint32N(100)
				}
				if rng.IntN(30) == 0 {
					r.Kind, r.Flags, r.DropReason, r.Has = decode.KindDrop, decode.Dropped, uint8(rng.IntN(3)), r.Has|decode.HasDropReason
					r.Hops = r.Hops[:1]
				}
				all.see(r)
				each[exporter%collectors].see(r)
			}
			end := w * tick
			want := all.cut(end)
			order := rng.Perm(collectors)
			for _, i := range order {
				out, err := pubs[i].Window(nil, each[i].cut(end), end, nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range out {
					if e, err := mergers[o.Partition].Add(&Record{Offset: offsets[o.Partition], Head: o.Head, Value: o.Value}); err != nil || e.Kind != Nothing {
						t.Fatal(e, err)
					}
					offsets[o.Partition]++
				}
			}
			var whole *Assembled
			for i, m := range mergers {
				h, ok := m.Due(end)
				if !ok {
					t.Fatalf("seed %d: window %d of slice %d does not close", seed, w, i)
				}
				e, err := m.Add(&Record{Offset: offsets[i], Head: h, Value: nil})
				offsets[i]++
				if err != nil || e.Closed == nil {
					t.Fatal(e, err)
				}
				out, err := EncodeSlice(nil, codec, "me", i, e.Closed, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				e, err = a.Add(&Record{Offset: reported, Head: out[0].Head, Value: out[0].Value})
				reported++
				if err != nil {
					t.Fatal(err)
				}
				if len(e.Whole) == 1 {
					whole = e.Whole[0]
				}
			}
			if whole == nil || !bytes.Equal(encoded(t, whole.Partial), encoded(t, want)) {
				t.Fatalf("seed %d, window %d: what %d collectors saw is not what one process saw", seed, w, collectors)
			}
			limits := window.Limits{Flows: 5, Paths: 7, Drops: 2, Faults: 3}
			if got, want := whole.Partial.Window(limits), want.Window(limits); !reflect.DeepEqual(got, want) || got.Reports == 0 || len(got.Hops) == 0 {
				t.Fatalf("seed %d, window %d:\n%+v\nwant\n%+v", seed, w, got, want)
			} else {
				exporters += len(got.Exporters)
				changes += len(got.Paths)
			}
		}
	}
	if exporters < 500 || changes < 500 {
		t.Errorf("only %d exporters and %d path changes in all windows", exporters, changes)
	}
}
