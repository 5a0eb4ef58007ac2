package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/parquet"
	"github.com/hopscope/hopscope/sink/web"
)

// Options are what a collector is not told by its settings.
type Options struct {
	Version string
	Log     *slog.Logger
	Seed    uint64 // of all randomness: flow hashes, sketches
	Flows   int    // flows in the summary; 0 means 20
	// Network and Plans go before the settings of PINT.
	Network *Network
	Plans   []*pint.Plan
	// Directory that relative paths of spools and files are below; "" is the working directory.
	Directory string
}

// Collector runs sources through the pipeline into the sinks. It is used once.
type Collector struct {
	cfg          Config
	opt          Options
	log          *slog.Logger
	ledger       *Ledger
	pipeline     *pipeline
	detector     *events.Detector
	replay       bool
	writeSeconds *prometheus.HistogramVec
	sinks        []*store
	raw          *parquet.Raw // nil without a raw stream
	web          *web.Server
	udp          *udp.Source
	start        time.Time

	stateMu   sync.Mutex // what only window ends write, and anybody may read
	totals    *shard.Totals
	exporters exporterTotals
	findings  map[uint64]inference.Finding
	lastRate  float64
	flowCount int

	kernelSeen uint64
	ready      atomic.Bool
	reload     chan Config
}

// New checks the settings, opens the sockets of a live collector and prepares the sinks. Nothing runs yet.
func New(cfg Config, opt Options) (*Collector, error) { return build(cfg, opt, true) }

func build(cfg Config, opt Options, live bool) (_ *Collector, err error) {
	c := &Collector{
		cfg: cfg, opt: opt, log: opt.Log, exporters: exporterTotals{}, findings: map[uint64]inference.Finding{},
		replay: !live, detector: events.New(cfg.Events), totals: shard.NewTotals(cfg.Flows.MaxHops), reload: make(chan Config, 1),
	}
	router, err := newRouter(&cfg.Exporters)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.closeAll()
		}
	}()
	if err := c.openStores(); err != nil {
		return nil, err
	}
	workers := 1
	if live {
		if c.udp, err = udp.New(cfg.UDP); err != nil {
			return nil, err
		}
		workers = c.udp.Workers()
	}
	if c.pipeline, err = newPipeline(&cfg, &opt, workers, router, c.ledger, !live); err != nil {
		return nil, err
	}
	c.pipeline.raw = c.raw
	if live && cfg.Web.Listen != "" {
		if c.web, err = c.newWeb(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close gives back what New opened, for a collector that is not run after all.
func (c *Collector) Close() error { c.closeAll(); return nil }

func (c *Collector) closeAll() {
	if c.udp != nil {
		c.udp.Close()
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range c.sinks {
		s.queue.Close(ended)
	}
	if c.raw != nil {
		c.raw.Close(ended)
	}
}

// newRouter gives a function that makes routers, one a worker: the choice of dialects by source address.
func newRouter(e *Exporters) (func() *demux.Router, error) {
	fallback, ok := demux.Lookup(e.Profile)
	if !ok {
		return nil, fmt.Errorf("exporters.profile: no dialect %q", e.Profile)
	}
	var routes []demux.Route
	for i, p := range e.Profiles {
		prefix, err := netip.ParsePrefix(p.Prefix)
		if err != nil {
			return nil, fmt.Errorf("exporters.profiles[%d].prefix: %w", i, err)
		}
		profile, ok := demux.Lookup(p.Profile)
		if !ok {
			return nil, fmt.Errorf("exporters.profiles[%d].profile: no dialect %q", i, p.Profile)
		}
		routes = append(routes, demux.Route{Prefix: prefix, Profile: profile})
	}
	return func() *demux.Router { return demux.NewRouter(fallback, routes) }, nil
}

// Addrs are the addresses that report datagrams are received on.
func (c *Collector) Addrs() []netip.AddrPort { return c.udp.Addrs() }

// URL is where the page is, or "".
func (c *Collector) URL() string {
	if c.web == nil {
		return ""
	}
	return c.web.URL()
}

// Reload applies those of the settings that can change while the collector runs: dialects of exporters and the
// thresholds of findings. It says which changed settings it left alone.
func (c *Collector) Reload(cfg Config) (ignored []string, err error) {
	router, err := newRouter(&cfg.Exporters)
	if err != nil {
		return nil, err
	}
	for _, w := range c.pipeline.workers {
		w.decoder.Store(router())
	}
	select {
	case <-c.reload: // a reload that nobody took yet is outdated
	default:
	}
	c.reload <- cfg
	return unreloadable(&c.cfg, &cfg), nil
}

// Run collects until ctx ends, then drains: sources, shards, the last window, sinks, in this order and within the
// configured time.
func (c *Collector) Run(ctx context.Context) error {
	c.start = time.Now()
	c.startStores()
	c.pipeline.run()

	webCtx, stopWeb := context.WithCancel(context.Background())
	defer stopWeb()
	failed := make(chan error, 2)
	var background sync.WaitGroup
	if c.web != nil {
		background.Go(func() {
			if err := c.web.Serve(webCtx); err != nil {
				failed <- fmt.Errorf("page: %w", err)
			}
		})
	}
	for _, n := range c.udp.Notices() {
		c.log.Warn(n)
	}
	for _, a := range c.udp.Addrs() {
		c.log.Info("receiving reports", "address", a.String(), "workers", c.udp.Workers())
	}
	if c.web != nil {
		c.log.Info("serving the page", "url", c.web.URL())
	}

	sourceCtx, stopSource := context.WithCancel(ctx)
	defer stopSource()
	sourceDone := make(chan struct{})
	background.Go(func() {
		defer close(sourceDone)
		if err := c.udp.Run(sourceCtx, c.pipeline.handle); err != nil {
			failed <- fmt.Errorf("udp: %w", err)
		}
	})
	c.ready.Store(true)

	err := c.windows(ctx, failed)
	c.ready.Store(false)
	c.log.Info("stopping")
	stopSource()
	<-sourceDone
	c.countKernelDrops()
	c.endWindow(time.Now().UnixNano())
	c.finish()
	drain, cancel := context.WithTimeout(context.Background(), c.cfg.DrainTimeout)
	defer cancel()
	err = errors.Join(err, c.closeStores(drain), c.udp.Close())
	stopWeb()
	background.Wait()
	return err
}

// windows ends a window at every multiple of its length until ctx ends or a part fails.
func (c *Collector) windows(ctx context.Context, failed <-chan error) error {
	length := c.cfg.Window
	c.pipeline.start = c.start.UnixNano()
	next := c.start.Truncate(length).Add(length)
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	kernel := time.NewTicker(time.Second)
	defer kernel.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case cfg := <-c.reload:
			c.detector.Configure(cfg.Events)
		case <-kernel.C:
			c.countKernelDrops()
		case now := <-timer.C:
			c.countKernelDrops()
			c.endWindow(next.UnixNano())
			// After a suspended machine or a stopped process the missed windows are skipped, not made up.
			if next = next.Add(length); now.After(next) {
				next = now.Truncate(length).Add(length)
			}
			timer.Reset(time.Until(next))
		}
	}
}

// countKernelDrops puts what the kernel dropped since the last call into the ledger.
func (c *Collector) countKernelDrops() {
	if n := c.udp.Stats().KernelDropped; n > c.kernelSeen {
		c.ledger.Receive(DroppedKernel, n-c.kernelSeen)
		c.log.Warn("the kernel dropped report datagrams: the socket buffer was full", "count", n-c.kernelSeen)
		c.kernelSeen = n
	}
}

// endWindow ends the open window and sends what it saw to the detectors, the page and the stores.
func (c *Collector) endWindow(end int64) {
	p := c.pipeline
	w := p.cut(end)
	findings := c.detector.Step(&w)

	c.stateMu.Lock()
	c.totals.Add(p.cuts)
	c.exporters.add(w.Exporters)
	for i := range findings {
		c.findings[findings[i].ID] = findings[i]
	}
	c.boundFindings()
	c.flowCount = w.FlowCount
	if d := w.End - w.Start; d > 0 {
		c.lastRate = float64(w.Reports) / time.Duration(d).Seconds()
	}
	c.stateMu.Unlock()
	p.recycleCuts()

	c.logFindings(findings)
	batch := sink.NewWindow(&w, findings).Batch()
	if c.web != nil {
		c.web.Write(context.Background(), batch)
		c.web.Findings(findings)
	}
	c.ledger.Close(w.Reports)
	c.putStores(batch)
}

// maxFindings is how many findings the summary of a run keeps.
const maxFindings = 1000

// boundFindings forgets the oldest ended findings of a long run.
func (c *Collector) boundFindings() {
	for len(c.findings) > maxFindings {
		oldest, at := int64(0), uint64(0)
		for id, f := range c.findings {
			if f.End != 0 && (oldest == 0 || f.End < oldest) {
				oldest, at = f.End, id
			}
		}
		if oldest == 0 {
			return // all of them last; the detector bounds their number
		}
		delete(c.findings, at)
	}
}

// logFindings tells findings to the log, a few of each window: a storm is told as one.
func (c *Collector) logFindings(findings []inference.Finding) {
	const most = 10
	for i := range findings {
		if i == most {
			c.log.Warn("more findings", "count", len(findings)-most)
			return
		}
		f := &findings[i]
		level, state := slog.LevelWarn, "finding"
		if f.End != 0 {
			level, state = slog.LevelInfo, "finding ended"
		} else if f.Severity == inference.Info {
			level = slog.LevelInfo
		}
		c.log.Log(context.Background(), level, state, "kind", f.Kind.String(), "severity", f.Severity.String(), "text", f.Text)
	}
}

// finish closes the shards. Their tables stay readable.
func (c *Collector) finish() { c.pipeline.close() }
