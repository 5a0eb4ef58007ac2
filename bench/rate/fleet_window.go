package rate

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// windowConfig holds the parameters of each collector's windows.
type windowConfig struct {
	Collectors int
	Flows      int
	Reports    int // of a window
	slices     int
	length     time.Duration
	Rounds     int // of which the median is printed
}

// DefaultWindowConfig is windows of 10 s at 200,000 reports a second, about 640 hops.
func DefaultWindowConfig() windowConfig {
	return windowConfig{Collectors: 16, Flows: 10_000, Reports: 2_000_000, slices: 16, length: 10 * time.Second, Rounds: 15}
}

// WindowResult is the cost of a window, as wall time of one goroutine.
type WindowResult struct {
	Hops, Flows      int
	Bytes            int           // of a collector's records of a window, with their heads
	Rate             float64       // bytes a second of a collector
	Encode           time.Duration // split, encode and compress all records of a window
	Collectors       int
	Merge            time.Duration // decompress, decode and merge the records of all collectors, all slices
	Assemble         time.Duration // and put the slices together
	MergedInMemory   time.Duration // the partials of all collectors, merged without records
	MergedHops       int
	MergedWindowSize int // bytes of the records of the merged slices
}

// Window measures the cost of windows.
func Window(cfg windowConfig) (r WindowResult, err error) {
	base := DefaultPipelineConfig(cfg.Flows)
	base.Reports = cfg.Reports
	base.shard.TopFlows = shard.DefaultConfig().TopFlows
	const seed = 1
	slicer := window.NewSlicer(seed, cfg.slices)
	length := int64(cfg.length)
	end := fleet.Label(1, length)

	var partials []*window.Partial
	logs := make([][]fleet.Record, cfg.slices)
	r.Collectors = cfg.Collectors
	for i := range cfg.Collectors {
		c := base
		c.Seed = uint64(i + 1)
		p, err := pipelineWindow(c)
		if err != nil {
			return r, err
		}
		p.Start, p.End = end-length, end
		partials = append(partials, p)
		pub := fleet.NewPublisher(fleet.PublisherConfig{From: fmt.Sprintf("collector-%d", i), Boot: uint64(i + 1), Slicer: slicer, Window: length})
		out, err := pub.Window(nil, p, end, nil, 0)
		if err != nil {
			return r, err
		}
		if i == 0 {
			r.Bytes = bytesOf(out)
			r.Rate = float64(r.Bytes) / cfg.length.Seconds()
			w := p.Window(base.shard.Limits())
			r.Hops, r.Flows = len(w.Hops), w.FlowCount
			r.Encode = timed(cfg.Rounds, func() {
				out, err = pub.Window(out[:0], p, end, nil, 0)
			})
			if err != nil {
				return r, err
			}
			if out, err = pub.Window(nil, p, end, nil, 0); err != nil {
				return r, err
			}
		}
		for _, o := range out {
			logs[o.Partition] = append(logs[o.Partition], fleet.Record{Head: o.Head, Value: o.Value})
		}
	}

	var merged window.Partial
	r.MergedInMemory = timed(cfg.Rounds, func() {
		merged.Reset()
		for _, p := range partials {
			merged.Merge(p)
		}
	})
	var took []time.Duration
	var whole []time.Duration
	for range cfg.Rounds {
		merge, assemble, window, err := round(&cfg, logs, base.shard.Limits(), end)
		if err != nil {
			return r, err
		}
		took, whole = append(took, merge), append(whole, assemble)
		r.MergedHops, r.MergedWindowSize = window.hops, window.bytes
	}
	slices.Sort(took)
	slices.Sort(whole)
	r.Merge, r.Assemble = took[len(took)/2], whole[len(whole)/2]
	return r, nil
}

type mergedWindow struct{ hops, bytes int }

// round runs mergers on the records of all collectors, and an assembler on the mergers' records.
func round(cfg *windowConfig, logs [][]fleet.Record, limits window.Limits, end int64) (merge, assemble time.Duration, w mergedWindow, err error) {
	codec := fleet.NewCodec(0, window.Limits{})
	a, err := fleet.NewAssembler(fleet.Options{Slices: cfg.slices, Window: int64(cfg.length), Limits: wide(limits)})
	if err != nil {
		return 0, 0, w, err
	}
	var series []fleet.Out
	for slice, log := range logs {
		m, err := fleet.NewMerger(fleet.Options{Name: "consumer", Slice: slice, Window: int64(cfg.length), Limits: wide(limits)})
		if err != nil {
			return 0, 0, w, err
		}
		start := time.Now()
		var out *fleet.Merged
		at := int64(0)
		for i := range log {
			log[i].Offset = at
			at++
			if _, err := m.Add(&log[i]); err != nil {
				return 0, 0, w, err
			}
		}
		h, due := m.Due(end + 1)
		if !due {
			return 0, 0, w, fmt.Errorf("slice %d is not complete", slice)
		}
		e, err := m.Add(&fleet.Record{Offset: at, Head: h})
		if err != nil {
			return 0, 0, w, err
		}
		out = e.Closed
		merge += time.Since(start)
		if out == nil {
			return 0, 0, w, fmt.Errorf("slice %d did not close", slice)
		}
		if series, err = fleet.EncodeSlice(series, codec, "consumer", slice, out, 900_000); err != nil {
			return 0, 0, w, err
		}
	}
	w.bytes = bytesOf(series)
	start := time.Now()
	for i, o := range series {
		e, err := a.Add(&fleet.Record{Offset: int64(i), Head: o.Head, Value: o.Value})
		if err != nil {
			return 0, 0, w, err
		}
		for _, whole := range e.Whole {
			win := whole.Partial.Window(limits)
			w.hops = len(win.Hops)
		}
	}
	if w.hops == 0 {
		return 0, 0, w, fmt.Errorf("no window was whole")
	}
	return merge, time.Since(start), w, nil
}

func wide(l window.Limits) window.Limits {
	l.Hops, l.Exporters, l.Flows = 1<<16, 1<<16, 1<<16
	return l
}

// bytesOf is the bytes of records with their heads.
func bytesOf(out []fleet.Out) (n int) {
	for i := range out {
		n += len(out[i].Value) + len(out[i].Head.Append(nil))
	}
	return n
}

func timed(rounds int, f func()) time.Duration {
	var all []time.Duration
	for range max(rounds, 1) {
		start := time.Now()
		f()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Print writes the result as a table.
func (r *WindowResult) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `| what | measured |
| --- | --- |
| a collector's records of one window, %d hops, %d flows | %.0f kB |
| the same a second | %.1f kB/s |
| split, encode and compress them | %.1f ms |
| merge the records of %d collectors, all slices | %.1f ms |
| the same partials in memory, without records | %.1f ms |
| put the slices together | %.1f ms |
| records of the merged slices, %d hops | %.0f kB |
`, r.Hops, r.Flows, float64(r.Bytes)/1e3, r.Rate/1e3, ms(r.Encode), r.Collectors, ms(r.Merge), ms(r.MergedInMemory), ms(r.Assemble),
		r.MergedHops, float64(r.MergedWindowSize)/1e3)
	return err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
