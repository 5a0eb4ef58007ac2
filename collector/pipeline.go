package collector

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink/parquet"
)

// work is what crosses a shard's queue: a batch of reports, or the request to end a window.
type work struct {
	batch decode.Batch
	cut   chan<- *shard.Cut
	end   int64
	visit func(*shard.State) // run by the shard's owner
}

// pipeline takes frames to the ends of windows.
type pipeline struct {
	seed    uint64
	block   bool // wait for a full shard queue instead of dropping
	ledger  *Ledger
	workers []*worker
	shards  []*shardQueue
	freeMu  sync.Mutex
	free    []*work // last in, first out: what was used last is still in the cache

	trackerMu sync.Mutex
	tracker   *sequence.Tracker

	raw *parquet.Raw // nil without a raw stream

	start     int64 // of the open window; 0 before the first
	cuts      []*shard.Cut
	exporters []inference.ExporterStats
	topFlows  int
	wait      sync.WaitGroup
}

// worker is the private state of one goroutine of a source.
type worker struct {
	decoder atomic.Pointer[demux.Router]
	in      decode.Batch
	out     []*work // one for each shard, nil while it has nothing
	counts  decodeCounts
}

type shardQueue struct {
	queue chan *work
	state *shard.State
	depth atomic.Int64 // reports in the queue
	stats atomic.Pointer[shard.Stats]
}

func newPipeline(cfg *Config, opt *Options, workers int, router func() *demux.Router, ledger *Ledger, block bool) (*pipeline, error) {
	seed := opt.Seed
	p := &pipeline{
		seed: seed, block: block, ledger: ledger, topFlows: cfg.Flows.TopFlows,
		tracker: sequence.New(cfg.Exporters.Tracking, seed),
	}
	shards := cfg.shards()
	queue := cfg.ShardQueueBatches
	if block {
		// Waiting batches bridge bursts of live traffic. A capture has none, and a long queue only leaves the cache.
		queue = min(queue, 2)
	}
	for range workers {
		w := &worker{out: make([]*work, shards)}
		w.decoder.Store(router())
		p.workers = append(p.workers, w)
	}
	state := cfg.Flows
	state.MemoryBytes /= int64(shards)
	digests, err := cfg.PINT.digests(opt, shards)
	if err != nil {
		return nil, err
	}
	for range shards {
		s := &shardQueue{queue: make(chan *work, queue), state: shard.New(state, seed)}
		if err := s.state.ReadDigests(digests, seed); err != nil {
			return nil, fmt.Errorf("pint: %w", err)
		}
		p.shards = append(p.shards, s)
	}
	return p, nil
}

// run starts the shards; close ends them.
func (p *pipeline) run() {
	for _, s := range p.shards {
		p.wait.Go(func() { s.run(p) })
	}
}

// close waits until every shard has taken what is in its queue. Nobody may call handle or cut any more.
func (p *pipeline) close() {
	for _, s := range p.shards {
		close(s.queue)
	}
	p.wait.Wait()
}

func (s *shardQueue) run(p *pipeline) {
	for w := range s.queue {
		switch {
		case w.cut != nil:
			w.cut <- s.state.Cut(w.end)
			stats := s.state.Stats()
			s.stats.Store(&stats)
		case w.visit != nil:
			w.visit(s.state)
		default:
			n := uint64(len(w.batch.Reports))
			s.state.Update(w.batch.Reports)
			p.ledger.Move(ShardQueue, Window, n)
			s.depth.Add(-int64(n))
			w.batch.Reset()
			p.recycle(w)
		}
	}
}

func (p *pipeline) take() *work {
	p.freeMu.Lock()
	defer p.freeMu.Unlock()
	n := len(p.free)
	if n == 0 {
		return new(work)
	}
	w := p.free[n-1]
	p.free = p.free[:n-1]
	return w
}

func (p *pipeline) recycle(w *work) {
	p.freeMu.Lock()
	p.free = append(p.free, w)
	p.freeMu.Unlock()
}

// handle decodes one batch of a source and hands its reports on. It is called by one goroutine per worker.
func (p *pipeline) handle(worker int, b *ingest.Batch) {
	w := p.workers[worker]
	p.decode(w, b.Frames)
	p.deliver(w)
}

// decode reads frames into w.in and counts them.
func (p *pipeline) decode(w *worker, frames []ingest.Frame) {
	dec := w.decoder.Load()
	foreign := uint64(0)
	for i := range frames {
		f := &frames[i]
		n := 0
		if f.Link == ingest.LinkUDP {
			n = dec.Datagram(&w.in, decode.AddrFrom(f.Src.Addr()), f.Data, f.Time)
		} else {
			n = dec.Frame(&w.in, f.Link, f.Data, f.Length, f.Time)
		}
		if n == 0 {
			foreign++
		}
	}
	reports := uint64(len(w.in.Reports))
	p.ledger.Receive(Ring, reports+foreign)
	p.ledger.Move(Ring, DroppedForeign, foreign)
	w.counts.foreign.Add(foreign)
}

// deliver tracks the reports of w.in and scatters them to their shards.
func (p *pipeline) deliver(w *worker) {
	reports := w.in.Reports
	if len(reports) == 0 {
		return
	}
	p.trackerMu.Lock()
	for _, r := range reports {
		p.tracker.Observe(r)
	}
	p.trackerMu.Unlock()
	if p.raw != nil {
		p.raw.AppendReports(reports)
	}

	malformed, shards := uint64(0), uint64(len(p.shards))
	w.in.Scatter(func(r *decode.Report) *decode.Batch {
		w.counts.add(r)
		if r.Err.Reason != 0 {
			malformed++
			return nil
		}
		i := uint64(0)
		if shards > 1 {
			i = (r.Flow.Hash(p.seed) >> 32) * shards >> 32
		}
		if w.out[i] == nil {
			w.out[i] = p.take()
		}
		return &w.out[i].batch
	})
	p.ledger.Move(Ring, DroppedMalformed, malformed)
	for i, out := range w.out {
		if out != nil {
			w.out[i] = nil
			p.enqueue(p.shards[i], out)
		}
	}
}

func (p *pipeline) enqueue(s *shardQueue, w *work) {
	n := uint64(len(w.batch.Reports))
	p.ledger.Move(Ring, ShardQueue, n)
	s.depth.Add(int64(n))
	if p.block {
		s.queue <- w
		return
	}
	select {
	case s.queue <- w:
	default:
		s.depth.Add(-int64(n))
		p.ledger.Move(ShardQueue, DroppedShardQueue, n)
		w.batch.Reset()
		p.recycle(w)
	}
}

// cut ends the open window at end in every shard and merges what they saw. One goroutine calls it.
func (p *pipeline) cut(end int64) inference.Window {
	got := make(chan *shard.Cut, len(p.shards))
	for _, s := range p.shards {
		s.queue <- &work{cut: got, end: end}
	}
	p.cuts = p.cuts[:0]
	for range p.shards {
		p.cuts = append(p.cuts, <-got)
	}
	w := shard.Merge(p.cuts, p.topFlows)
	w.Start, w.End = p.start, end
	p.start = end
	p.trackerMu.Lock()
	p.exporters = p.tracker.Cut(p.exporters[:0], end)
	p.trackerMu.Unlock()
	w.Exporters = p.exporters
	return w
}

// recycleCuts gives the memory of the last cut back to the shards. The merged window stays valid.
func (p *pipeline) recycleCuts() {
	for i, s := range p.shards {
		c := p.cuts[i]
		s.queue <- &work{visit: func(st *shard.State) { st.Recycle(c) }}
	}
	p.cuts = p.cuts[:0]
}
