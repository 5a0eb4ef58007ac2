package rate

import (
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/ingest"
)

// cutEvery is the time after which the pipeline's statistics are cut.
const cutEvery = 2 * time.Second

// newDecoder makes a receiver that decodes.
func newDecoder(receiverOptions) (func(*ingest.Batch), error) {
	router, err := newRouter()
	if err != nil {
		return nil, err
	}
	var reports decode.LazyBatch
	return func(b *ingest.Batch) {
		reports.Reset()
		for i := range b.Frames {
			f := &b.Frames[i]
			router.Lazy(&reports, decode.AddrFrom(f.Src.Addr()), f.Data, max(f.Length, len(f.Data)), f.Time)
		}
		for _, r := range reports.List {
			if r.Shape == nil {
				mustDecode(r.Report())
			}
		}
	}, nil
}

// newPipeline makes a receiver that does everything which a worker and a shard of the collector do, in the receiving goroutine.
func newPipeline(o receiverOptions) (func(*ingest.Batch), error) {
	router, err := newRouter()
	if err != nil {
		return nil, err
	}
	tracking := sequence.DefaultConfig()
	tracker := sequence.New(tracking, 1)
	cfg := shard.DefaultConfig()
	cfg.MemoryBytes = o.FlowBytes
	if err := errors.Join(tracking.Validate(), cfg.Validate()); err != nil {
		return nil, err
	}
	state := shard.New(cfg, 1)
	var (
		reports   decode.LazyBatch
		end       int64
		exporters []inference.ExporterStats
	)
	return func(b *ingest.Batch) {
		reports.Reset()
		for i := range b.Frames {
			f := &b.Frames[i]
			router.Lazy(&reports, decode.AddrFrom(f.Src.Addr()), f.Data, max(f.Length, len(f.Data)), f.Time)
		}
		for _, r := range reports.List {
			if r.Shape == nil {
				mustDecode(r.Report())
			}
			tracker.ObserveLazy(r)
		}
		state.UpdateLazy(reports.List)
		if now := b.Frames[len(b.Frames)-1].Time; now > end {
			state.Recycle(state.Cut(now))
			exporters = tracker.Cut(exporters[:0], now)
			end = now + int64(cutEvery)
		}
	}, nil
}

// newRouter makes a decoder of all formats.
func newRouter() (*demux.Router, error) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		return nil, errors.New("no profile \"auto\"")
	}
	return demux.NewRouter(profile, nil), nil
}

// mustDecode ends a benchmark whose own reports cannot be read to their end.
func mustDecode(r *decode.Report) {
	if r.Err.Reason != 0 {
		panic(fmt.Sprintf("bench/rate: a report of our own does not decode: %v", r.Error()))
	}
}
