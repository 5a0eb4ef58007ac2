package rate

import (
	"fmt"
	"io"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// PipelineConfig holds the parameters of the measurement.
type PipelineConfig struct {
	Flows   int    // distinct ones, chosen at random for every report
	ports   int    // of the switches of the fat-tree, even
	Batch   int    // datagrams that are decoded together
	Warmup  int    // reports before the measurement
	Reports int    // measured
	Window  int    // reports of a window
	Seed    uint64 // of the traffic
	shard   shard.Config
}

// DefaultPipelineConfig measures n flows over 8-port switches (640 hops), in the memory that such flows need. Each
// flow had 400 reports before: its sketches are cells by then, and begin to sample. With more than half a million
// flows these are 100 reports, so that the sketches are cells and count every value.
func DefaultPipelineConfig(n int) PipelineConfig {
	each := 400
	if n > 500_000 {
		each = 100
	}
	cfg := PipelineConfig{Flows: n, ports: 8, Batch: 128, Warmup: max(each*n, 1_000_000), Reports: 4_000_000, Window: 1_000_000, Seed: 1, shard: shard.DefaultConfig()}
	cfg.shard.IdleTimeout = 24 * time.Hour
	cfg.shard.MemoryBytes = max(cfg.shard.MemoryBytes, 2<<30*int64(n)/1_000_000)
	return cfg
}

// PipelineResult holds the measured values, as wall time of the one goroutine.
type PipelineResult struct {
	Reports                          int
	Decode, Exporters, Shard, Window time.Duration // by stage; Window: cut, merge, detectors
	LongestWindow                    time.Duration // the longest of these interruptions
	LongestStop                      time.Duration // of these, the longest time for which the shard counts nothing
	Median                           float64       // of the batches, in ns a report, with the share of the windows
	Flows, Findings                  int
	MemoryBytes                      int64 // in use for the flows and their sketches
	Warmup                           int   // reports before
	Sketches                         shard.SketchStates
}

// Total is the time of all stages.
func (r *PipelineResult) Total() time.Duration { return r.Decode + r.Exporters + r.Shard + r.Window }

// Rate is reports a second.
func (r *PipelineResult) Rate() float64 { return float64(r.Reports) / r.Total().Seconds() }

// MedianRate is reports a second by the median of the batches. On a machine with other work, the scheduler takes the
// core away in the middle of some batches. The median is then closer to the rate of an idle machine.
func (r *PipelineResult) MedianRate() float64 { return 1e9 / r.Median }

// Print writes the result as one line.
func (r *PipelineResult) Print(w io.Writer) error {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(r.Reports) }
	sketches := float64(max(r.Sketches.Listed+r.Sketches.Counted+r.Sketches.Sampled, 1))
	share := func(n int) float64 { return 100 * float64(n) / sketches }
	_, err := fmt.Fprintf(w, "%8d flows  %5.2f M reports/s (median of batches %.2f)  %4.0f ns: decode %.0f, exporters %.0f, flows and hops %.0f, windows %.1f (longest %v, the shard's part %v)  %.0f B a flow; of the sketches %.0f %% list their values, %.0f %% count them, %.0f %% sample\n",
		r.Flows, r.Rate()/1e6, r.MedianRate()/1e6, each(r.Total()), each(r.Decode), each(r.Exporters), each(r.Shard), each(r.Window), r.LongestWindow.Round(time.Microsecond), r.LongestStop.Round(time.Microsecond),
		float64(r.MemoryBytes)/float64(r.Flows), share(r.Sketches.Listed), share(r.Sketches.Counted), share(r.Sketches.Sampled))
	return err
}

// Pipeline measures on the calling goroutine. It fails if a report is not read as it was written.
func Pipeline(cfg PipelineConfig) (PipelineResult, error) {
	p, err := newPipelineRun(cfg)
	if err != nil {
		return PipelineResult{}, err
	}
	for done, next := 0, cfg.Window; done < cfg.Warmup+cfg.Reports; {
		n := min(cfg.Batch, cfg.Warmup+cfg.Reports-done)
		if done < cfg.Warmup {
			n = min(n, cfg.Warmup-done)
		}
		if err := p.batch(n, int64(done)); err != nil {
			return PipelineResult{}, err
		}
		if done += n; done >= next {
			p.window(int64(done))
			next += cfg.Window
		}
		if done == cfg.Warmup {
			p.res = PipelineResult{}
			p.batches.Reset()
		}
	}
	st := p.state.Stats()
	p.res.Median = float64(p.batches.Quantile(0.5))/16 + float64(p.res.Window)/float64(cfg.Reports)
	p.res.Reports, p.res.Flows = cfg.Reports, st.Flows
	p.res.MemoryBytes = st.UsedBytes
	p.res.Warmup, p.res.Sketches = cfg.Warmup, p.state.SketchStates()
	return p.res, p.res.check(&cfg)
}

// check fails if the flows are not in the measured state. All must be there, and with warm sketches if they had the
// reports for it.
func (r *PipelineResult) check(cfg *PipelineConfig) error {
	if want := cfg.Flows * pathHops; r.Sketches.Listed+r.Sketches.Counted+r.Sketches.Sampled < want*99/100 {
		return fmt.Errorf("%d flows have %+v sketches, want %d", r.Flows, r.Sketches, want)
	}
	if cfg.Warmup >= 100*cfg.Flows && r.Sketches.Listed > cfg.Flows*pathHops/100 {
		return fmt.Errorf("%d sketches list their values after %d reports: they are not warm", r.Sketches.Listed, cfg.Warmup)
	}
	return nil
}

type pipelineRun struct {
	gen       *generator
	dec       *demux.Router
	tracker   *sequence.Tracker
	state     *shard.State
	detector  *events.Detector
	ring      []byte
	reports   decode.LazyBatch
	partial   window.Partial
	exporters []inference.ExporterStats
	limits    window.Limits
	src       decode.Addr
	batches   quantile.Histogram // 1/16 ns a report
	res       PipelineResult
}

func newPipelineRun(cfg PipelineConfig) (*pipelineRun, error) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		return nil, fmt.Errorf("no profile called auto")
	}
	return &pipelineRun{
		gen: newGenerator(cfg.Flows, cfg.ports, cfg.Seed), dec: demux.NewRouter(profile, nil), ring: make([]byte, cfg.Batch*size),
		tracker: sequence.New(sequence.DefaultConfig(), 1), state: shard.New(cfg.shard, 1), detector: events.New(events.DefaultConfig()),
		limits: cfg.shard.Limits(), src: decode.AddrFrom4([]byte{127, 0, 0, 1}),
	}, nil
}

func (p *pipelineRun) batch(n int, now int64) error {
	for i := range n {
		p.gen.write(p.ring[i*size : (i+1)*size])
	}
	t0 := time.Now()
	p.reports.Reset()
	for i := range n {
		p.dec.Lazy(&p.reports, p.src, p.ring[i*size:(i+1)*size], size, now+int64(i))
	}
	t1 := time.Now()
	for _, r := range p.reports.List {
		p.tracker.ObserveLazy(r)
	}
	t2 := time.Now()
	p.state.UpdateLazy(p.reports.List)
	t3 := time.Now()
	p.res.Decode += t1.Sub(t0)
	p.res.Exporters += t2.Sub(t1)
	p.res.Shard += t3.Sub(t2)
	p.batches.AddValue(uint64(t3.Sub(t0)) * 16 / uint64(n))
	if len(p.reports.List) != n {
		return fmt.Errorf("%d reports of %d datagrams", len(p.reports.List), n)
	}
	if r := p.reports.List[0].Report(); r.Err.Reason != 0 || len(r.Hops) != pathHops {
		return fmt.Errorf("report of %d hops, want %d: %v", len(r.Hops), pathHops, r.Error())
	}
	return nil
}

func (p *pipelineRun) window(end int64) {
	t0 := time.Now()
	c := p.state.Cut(end)
	stop := time.Since(t0)
	p.partial.Reset()
	p.partial.Span(end, end)
	c.AddTo(&p.partial)
	c.Clear()
	p.state.Recycle(c)
	p.exporters = p.tracker.Cut(p.exporters[:0], end)
	p.partial.AddExporters(p.exporters)
	w := p.partial.Window(p.limits)
	p.res.Findings += len(p.detector.Step(&w))
	d := time.Since(t0)
	p.res.Window += d
	p.res.LongestWindow = max(p.res.LongestWindow, d)
	p.res.LongestStop = max(p.res.LongestStop, stop)
}
