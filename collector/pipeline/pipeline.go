// Package pipeline turns frames of sources into the counts of windows. Workers decode frames, track the sequence
// numbers of exporters, and hand the reports to the shards that own their flows.
package pipeline

import (
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/decode/otlp"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// work is an item of a shard's queue: a batch of reports, or a function for the shard's owner.
type work struct {
	batch decode.LazyBatch
	hops  int                // of the reports
	visit func(*shard.State) // nil for a batch
}

// full reports whether a batch has as much as one may carry.
func (w *work) full() bool { return len(w.batch.List) >= BatchReports || w.hops >= BatchHops }

// Pipeline takes frames to the ends of windows.
//
// A batch of a source takes a fixed number of locks, and a report takes none. The locks are those of the ledger and of
// the list of free batches. There is also one for each shard's queue and each group of exporters of its reports. The
// lock of the border between windows is taken shared.
type Pipeline struct {
	key     decode.HashKey // of flows
	ledger  *ledger.Ledger
	log     *slog.Logger
	workers []*Worker
	shards  []*shardQueue
	freeMu  sync.Mutex
	free    []*work // last in, first out: what was used last is still in the CPU cache

	Exporters *sequences
	Remarks   guess.Remarks
	routers   routers
	Dialects  *dialects // nil where no dialects are recognised
	sources   []*source
	diversion *diversion // nil without one
	put       func(sink.Encoded)
	metrics   otlp.Config
	// border is held by workers while a batch goes to its exporters and its shards, and by the goroutine that ends a
	// window. The shards and the exporters of a window therefore count the same reports. After a crash, the sequence
	// numbers of exporters show what the open window cost.
	border  sync.RWMutex
	receipt byReceipt
	reports []sink.ReportWriter

	partial window.Partial   // of the last window
	decided decode.LazyBatch // memory of decideWaiting
	wait    sync.WaitGroup

	closeMu sync.RWMutex // held by senders to the queues beside sources and windows
	running bool
}

// Worker is the private state of one goroutine of a source.
type Worker struct {
	decoder atomic.Pointer[demux.Router]
	metrics atomic.Pointer[metrics] // nil until a request comes
	id      int
	block   bool // wait for a full shard queue instead of dropping
	receipt receiptWorker
	in      decode.LazyBatch
	out     []*work          // one for each shard, nil while it has nothing
	groups  []uint8          // of the reports' exporters
	reports []*decode.Report // memory of reportsOf
	counts  decodeCounts
	doubts  doubts
	sites   *exporters.Placer // nil without any

	diverted       []*decode.Report // of the batch at hand
	divertedNumber uint64           // since the last window; guarded by border

	dst     netip.Addr // of the last datagram
	dstPort uint16
	to      uint64 // as a report names both
}

type shardQueue struct {
	queue chan *work
	state *shard.State
	depth atomic.Int64 // reports in the queue
	stats atomic.Pointer[shard.Stats]
	waits atomic.Int64 // how long workers may still wait for room in this window, in ns
}

// queuePatience is how long the workers of live sources wait in a window for room in the queue of a shard, which stands
// still while its window is cut. The receive buffers of their sockets fill meanwhile. A shard that is too slow for its
// reports delays those of the others by no more.
const queuePatience = 50 * time.Millisecond

// Config holds the parts and settings of a pipeline.
type Config struct {
	Window       time.Duration
	Seed         uint64 // of the hash of flows
	Tracking     sequence.Config
	QueueBatches int // that may wait for a shard
	// Block makes all workers wait for full queues; otherwise only those of a source that can wait do.
	Block    bool
	Sources  []Source
	Shards   []*shard.State
	Router   func() *demux.Router // makes a decoder
	Metrics  otlp.Config          // how metrics are read
	Sites    *exporters.Sites     // nil without any
	Dialects *dialects            // nil where no dialects are recognised
	Reports  []sink.ReportWriter
	Ledger   *ledger.Ledger
	Log      *slog.Logger
}

// New makes a pipeline. Nothing runs yet.
func New(cfg Config) *Pipeline {
	p := &Pipeline{
		key: decode.NewHashKey(cfg.Seed), ledger: cfg.Ledger, log: cfg.Log, reports: cfg.Reports, receipt: newByReceipt(cfg.Window), Dialects: cfg.Dialects,
		metrics: cfg.Metrics,
	}
	p.metrics.Since = time.Now().UnixNano()
	p.Remarks.First = func(m *guess.Remark) {
		if m.What == decode.RemarkAlike { // which count: a few may be alike by chance
			p.log.Info("reports may be copies", "text", m.String())
			return
		}
		p.log.Warn("reports are not all in statistics", "remark", m.Name(), "text", m.String())
	}
	queue := cfg.QueueBatches
	if cfg.Block {
		// Waiting batches bridge bursts of live traffic. A capture has no bursts, and the batches of a long queue only fall
		// out of the CPU cache before their shard comes to them.
		queue = min(queue, 2)
	}
	p.addSources(cfg.Sources, cfg.Block, len(cfg.Shards), cfg.Sites, cfg.Router)
	p.Exporters = newSequences(cfg.Tracking, cfg.Seed, len(p.workers))
	for _, s := range cfg.Shards {
		q := &shardQueue{queue: make(chan *work, queue), state: s}
		q.waits.Store(int64(queuePatience))
		p.shards = append(p.shards, q)
	}
	return p
}

// Reload changes the decoders of all workers, and the dialects that could be adopted.
func (p *Pipeline) Reload(router func() *demux.Router, candidates []demux.Profile) {
	for _, w := range p.workers {
		w.decoder.Store(router())
	}
	if p.Dialects != nil {
		p.Dialects.reload(router(), candidates)
	}
}

// Start starts the shards; Close ends them.
func (p *Pipeline) Start() {
	p.closeMu.Lock()
	defer p.closeMu.Unlock()
	p.running = true
	for _, s := range p.shards {
		p.wait.Go(func() { s.run(p) })
	}
}

// Close waits until every shard has taken what is in its queue. Handle and Cut may not be called any more.
func (p *Pipeline) Close() {
	p.closeMu.Lock()
	p.running = false
	for _, s := range p.shards {
		close(s.queue)
	}
	p.closeMu.Unlock()
	p.wait.Wait()
}

func (s *shardQueue) run(p *Pipeline) {
	for w := range s.queue {
		if w.visit != nil {
			w.visit(s.state)
			continue
		}
		n := uint64(len(w.batch.List))
		s.state.UpdateLazy(w.batch.List)
		p.ledger.Move(ledger.ShardQueue, ledger.Window, n)
		s.depth.Add(-int64(n))
		w.batch.Reset()
		p.recycle(w)
	}
}

// Visit lets the owner of each shard call f, and waits for all of them. Before the shards run and when they
// have ended, it calls f itself.
func (p *Pipeline) Visit(f func(*shard.State)) {
	p.closeMu.RLock()
	if !p.running {
		defer p.closeMu.RUnlock()
		p.wait.Wait()
		for _, s := range p.shards {
			f(s.state)
		}
		return
	}
	var visited sync.WaitGroup
	visited.Add(len(p.shards))
	for _, s := range p.shards {
		s.queue <- &work{visit: func(st *shard.State) { f(st); visited.Done() }}
	}
	p.closeMu.RUnlock()
	visited.Wait()
}

func (p *Pipeline) nextWork() *work {
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

func (p *Pipeline) recycle(w *work) {
	w.hops = 0
	p.freeMu.Lock()
	p.free = append(p.free, w)
	p.freeMu.Unlock()
}

// Handle decodes frames of a source and hands their reports on. It is called by one goroutine per worker.
func (p *Pipeline) Handle(w *Worker, frames []ingest.Frame) {
	if p.Dialects != nil && p.Dialects.waiting.Load() {
		p.rereadSamples(w)
	}
	for len(frames) > 0 {
		if f := &frames[0]; f.Link == ingest.LinkOTLP {
			p.readMetrics(w, f)
			frames = frames[1:]
			continue
		}
		frames = frames[p.decode(w, frames):]
		p.place(w)
		p.border.RLock()
		if r := &w.receipt; r.on && (r.newest >= p.receipt.edge || r.oldest < p.receipt.since) {
			p.sortOut(w)
		}
		p.deliver(w, &w.in)
		p.border.RUnlock()
	}
}

// place keeps the nodes of sites apart in the batch that w has decoded.
func (p *Pipeline) place(w *Worker) {
	if w.sites == nil {
		return
	}
	for _, r := range w.in.List {
		r.Generalize()
	}
	if r := w.sites.Place(w.reportsOf(w.in.List)); r != nil {
		p.log.Warn("report refused: a node's number has no room beside its site; more of these are only counted",
			"exporter", r.Exporter.String(), "most", 1<<names.NodeBits-1)
	}
}

// reportsOf decodes lazy reports but copies, in memory that w keeps.
func (w *Worker) reportsOf(list []*decode.Lazy) []*decode.Report {
	w.reports = w.reports[:0]
	for _, r := range list {
		if !r.Waits && !r.Copy {
			w.reports = append(w.reports, r.Report())
		}
	}
	return w.reports
}

// The most that a batch carries to a shard. A datagram can hold hundreds of reports or hops, so a bound in datagrams
// would not bound the memory.
const (
	BatchReports = 256
	BatchHops    = 4096
	// waitingReports is BatchReports for sources that wait. Their batches need not bridge bursts, and small ones stay
	// in the CPU cache until their shard handles them.
	waitingReports = 64
)

// batchReports is the number of reports in a batch of w, but for those of its last datagram.
func (w *Worker) batchReports() int {
	if w.block {
		return waitingReports
	}
	return BatchReports
}

// decode reads frames into w.in, until that is full, and counts them. It returns the number of frames that it read.
func (p *Pipeline) decode(w *Worker, frames []ingest.Frame) (read int) {
	dec := w.decoder.Load()
	if p.Dialects != nil {
		p.Dialects.begin(w, dec)
	}
	foreign, cut := uint64(0), uint64(0)
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	for most := w.batchReports(); read < len(frames) && len(w.in.List) < most; {
		f := &frames[read]
		read++
		oldest, newest = min(oldest, f.Time), max(newest, f.Time)
		n, at := 0, guess.Port{Number: f.DstPort, Only: kinds[f.Only]}
		if f.Link == ingest.LinkUDP {
			dec.From(f.Src.Port())
			dec.Only(at.Only)
			n = dec.Lazy(&w.in, decode.AddrFrom(f.Src.Addr()), f.Data, max(f.Length, len(f.Data)), f.Time)
			if f.Dst != w.dst || f.DstPort != w.dstPort || w.to == 0 {
				w.dst, w.dstPort = f.Dst, f.DstPort
				dst := decode.Addr{}
				if f.Dst.IsValid() {
					dst = decode.AddrFrom(f.Dst)
				}
				w.to = decode.Destination(&dst, f.DstPort)
			}
			for _, r := range w.in.List[len(w.in.List)-n:] {
				r.SetTo(w.to)
			}
		} else {
			n = dec.LazyFrame(&w.in, f.Link, f.Data, f.Length, f.Time)
			at.Number, at.Only = dec.LastPort()
		}
		switch {
		case n > 0:
			if x := w.in.List[len(w.in.List)-1]; x.Shape == nil && f.Length > len(f.Data) {
				x.Cut = x.Report().CutShort()
			}
		case dec.Blind(f.Data, f.Length):
			cut++
		default:
			foreign++
		}
		if p.Dialects != nil {
			w.doubts.look(read-1, f, at, &w.in, n)
		}
	}
	if p.Dialects != nil {
		p.Dialects.end(w, dec, frames)
	}
	w.receipt.oldest, w.receipt.newest = oldest, newest
	p.ledger.Receive(ledger.Ring, uint64(len(w.in.List)))
	p.ledger.Receive(ledger.DroppedForeign, foreign)
	p.ledger.Receive(ledger.DroppedCut, cut+w.in.Cut)
	w.in.Cut = 0
	w.counts.foreign.Add(foreign)
	return read
}

// deliver follows the sequence numbers of the reports in a batch of w and scatters them to their shards.
func (p *Pipeline) deliver(w *Worker, in *decode.LazyBatch) {
	if len(in.List) == 0 {
		return
	}
	w.groups = p.Exporters.observe(in, w.groups)
	p.scatter(w, in)
}

// scatter hands the reports in a batch of w to the raw stream and to their shards.
func (p *Pipeline) scatter(w *Worker, in *decode.LazyBatch) {
	if len(p.reports) > 0 {
		list := w.reportsOf(in.List)
		for _, r := range p.reports {
			r.AppendReports(list)
		}
	}

	malformed, copies, cut, shards := uint64(0), uint64(0), uint64(0), uint64(len(p.shards))
	in.Scatter(func(x *decode.Lazy) *decode.LazyBatch {
		if x.Waits {
			return nil
		}
		i, hops := uint64(0), 0 // of reports that name no flow
		if s := x.Shape; s != nil {
			w.counts.add(&s.Common)
			x.Hash = p.key.Flow(&x.Flow)
			i, hops = (x.Hash>>32)*shards>>32, s.Hops
		} else {
			r := x.Report()
			w.counts.add(r)
			if r.Err.Reason != 0 {
				malformed++
				return nil
			}
			if (x.Cut || r.CutOff()) && !x.Copy {
				cut++
				return nil
			}
			if !x.Copy {
				p.Remarks.See(r)
				p.routers.see(r)
			}
			if r.Has&decode.HasFlow != 0 {
				r.FlowHash = p.key.Flow(&r.Flow)
				i = (r.FlowHash >> 32) * shards >> 32
			}
			hops = len(r.Hops)
		}
		if x.Copy {
			copies++
			p.Remarks.Add(x.Exporter, decode.RemarkCopy, 1)
			return nil
		}
		if x.Alike {
			p.Remarks.Add(x.Exporter, decode.RemarkAlike, 1)
		}
		if p.diversion != nil {
			if r := x.Report(); p.diversion.Takes(r) {
				w.diverted = append(w.diverted, r) // it stays where it was until the batch is filled again
				return nil
			}
		}
		out := w.out[i]
		if out != nil && out.full() {
			p.enqueue(p.shards[i], out, w.block)
			out = nil
		}
		if out == nil {
			out = p.nextWork()
			w.out[i] = out
		}
		out.hops += hops
		return &out.batch
	})
	p.ledger.Move(ledger.Ring, ledger.DroppedMalformed, malformed)
	p.ledger.Move(ledger.Ring, ledger.DroppedDuplicate, copies)
	p.ledger.Move(ledger.Ring, ledger.DroppedCut, cut)
	p.divert(w)
	for i, out := range w.out {
		if out == nil {
			continue
		}
		// Without room in the queue a batch grows with the next reports of w, until Cut at the latest.
		if s := p.shards[i]; w.block || out.full() || len(s.queue) < cap(s.queue) {
			w.out[i] = nil
			p.enqueue(s, out, w.block)
		}
	}
}

// flush waits until the queues of shards have taken the batches that found no room. No worker may deliver meanwhile.
func (p *Pipeline) flush() {
	for _, w := range p.workers {
		for i, out := range w.out {
			if out != nil {
				w.out[i] = nil
				p.enqueue(p.shards[i], out, true)
			}
		}
	}
}

func (p *Pipeline) enqueue(s *shardQueue, w *work, block bool) {
	n := uint64(len(w.batch.List))
	p.ledger.Move(ledger.Ring, ledger.ShardQueue, n)
	s.depth.Add(int64(n))
	if block {
		s.queue <- w
		return
	}
	select {
	case s.queue <- w:
	default:
		if s.wait(w) {
			return
		}
		s.depth.Add(-int64(n))
		p.ledger.Move(ledger.ShardQueue, ledger.DroppedShardQueue, n)
		w.batch.Reset()
		p.recycle(w)
	}
}

// wait waits for room in the queue for as long as workers may in this window, and reports whether it took the batch.
func (s *shardQueue) wait(w *work) bool {
	most := s.waits.Load()
	if most <= 0 {
		return false
	}
	began := time.Now()
	defer func() { s.waits.Add(-int64(time.Since(began))) }()
	end := time.NewTimer(time.Duration(most))
	defer end.Stop()
	select {
	case s.queue <- w:
		return true
	case <-end.C:
		return false
	}
}

// decideWaiting hands on the reports that wait to be proven copies: with the window they count. No worker may deliver meanwhile.
func (p *Pipeline) decideWaiting() {
	if len(p.workers) == 0 {
		return
	}
	p.Exporters.decide(&p.decided)
	if len(p.decided.List) > 0 {
		p.scatter(p.workers[0], &p.decided)
		p.decided.Reset()
	}
}

// handed is the part of a window that a shard hands over.
type handed struct {
	shard *shardQueue
	cut   *shard.Cut
}

// End holds the times of a window's end, in ns since 1970.
type End struct {
	Start  int64 // when it began
	Label  int64 // under which it is kept
	Wall   int64 // when that was by the clock that reports are stamped with
	Steady int64 // and by one that is never set
	Next   int64 // end of the next window for reports that were received here
	// NextLabel is the label of the next window. It is another one than Next while the clock is further back than labels come again.
	NextLabel int64
}

// Cut ends the open window in every shard and merges their parts into p.partial, which is valid until the next call.
// It returns the number of diverted reports, whose window ends under a label of the fleet. One goroutine calls it.
func (p *Pipeline) Cut(end End, label int64) (_ *window.Partial, diverted uint64) {
	got := make(chan handed, len(p.shards))
	p.border.Lock()
	p.decideWaiting()
	p.flush()
	for _, s := range p.shards {
		s.waits.Store(int64(queuePatience))
		s.queue <- &work{visit: func(st *shard.State) {
			got <- handed{s, st.Cut(end.Steady)}
			stats := st.Stats()
			s.stats.Store(&stats)
		}}
	}
	p.partial.Reset()
	numbers := p.Exporters.cut(end.Wall, &p.partial)
	diverted = p.endDiversion(label)
	p.ledger.Border()
	p.openNext(&end)
	p.border.Unlock()
	p.partial.Span(end.Start, end.Label)
	for range p.shards {
		h := <-got
		h.cut.AddTo(&p.partial)
		h.cut.Clear() // here, where no shard waits
		h.shard.queue <- &work{visit: func(st *shard.State) { st.Recycle(h.cut) }}
	}
	p.partial.AddExporters(numbers)
	return &p.partial, diverted
}

// ShardStats adds up the statistics of the shards at the end of the last window, and returns the reports that wait for each.
func (p *Pipeline) ShardStats() (sum shard.Stats, waiting []int64) {
	for _, s := range p.shards {
		waiting = append(waiting, s.depth.Load())
		if st := s.stats.Load(); st != nil {
			sum.Flows += st.Flows
			sum.MemoryBytes += st.MemoryBytes
			sum.EvictedIdle += st.EvictedIdle
			sum.EvictedPressure += st.EvictedPressure
			sum.Refused += st.Refused
			sum.LongPaths += st.LongPaths
			sum.Unsketched += st.Unsketched
			sum.Digests.Add(st.Digests)
		}
	}
	return sum, waiting
}
