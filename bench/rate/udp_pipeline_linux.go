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
	decodeBatch, _, err := decoding()
	return decodeBatch, err
}

// decoding decodes batches into a batch of reports that the caller empties. Reports that cannot be read to their end are
// a defect of the benchmark, and end it.
func decoding() (func(*ingest.Batch), *decode.Batch, error) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		return nil, nil, errors.New("no profile \"auto\"")
	}
	d := demux.NewRouter(profile, nil)
	out := new(decode.Batch)
	return func(b *ingest.Batch) {
		out.Reset()
		for i := range b.Frames {
			f := &b.Frames[i]
			d.Datagram(out, decode.AddrFrom(f.Src.Addr()), f.Data, f.Time)
		}
		for _, r := range out.Reports {
			if r.Err.Reason != 0 {
				panic(fmt.Sprintf("bench/rate: a report of our own does not decode: %v", r.Error()))
			}
		}
	}, out, nil
}

// newPipeline makes a receiver that does everything which a shard of the collector does, in the receiving goroutine.
func newPipeline(o receiverOptions) (func(*ingest.Batch), error) {
	decodeBatch, out, err := decoding()
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
		end       int64
		exporters []inference.ExporterStats
	)
	return func(b *ingest.Batch) {
		decodeBatch(b)
		for _, r := range out.Reports {
			tracker.Observe(r)
		}
		state.Update(out.Reports)
		if now := b.Frames[len(b.Frames)-1].Time; now > end {
			state.Recycle(state.Cut(now))
			exporters = tracker.Cut(exporters[:0], now)
			end = now + int64(cutEvery)
		}
	}, nil
}
