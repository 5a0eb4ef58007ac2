package collector

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/alerts"
	"github.com/hopscope/hopscope/collector/digests"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/ways"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/policy"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// Options are what a collector is not told by its settings.
type Options struct {
	Log  *slog.Logger // nil says nothing
	Seed uint64       // of all randomness: flow hashes, sketches
	// Hurry, when it ends, ends the draining of a collector that is stopping; nil never does.
	Hurry   context.Context
	Policy  Policy
	Version string // of the program; stores keep it
	// Now reads the wall clock, and in the same instant a clock that nobody sets. Several goroutines call it. nil reads
	// those of the machine.
	Now func() (wall time.Time, mono time.Duration)

	Sources   []Source
	Stores    []Store
	Writers   []sink.WindowWriter
	Reports   []sink.ReportWriter
	Detectors []Detector // beside those that [Analysis] configures

	// Profile goes before the dialects of the settings, for all frames.
	Profile *demux.Profile
	// Adopted are dialects that single senders are known to have, and Recognised what is known of these.
	Adopted    *demux.Adopted
	Recognised []guess.Finding
	// Looked has the dialects of senders in captures that are going to be read beside the sockets, nil without any. The collector
	// goes on from there, and gives a dialect up as one that it adopted itself.
	Looked *guess.Watch
	// Network and Plans go before the settings of PINT. LoadNetwork and LoadPlan read what those settings name.
	Network     *Network
	Plans       []*pint.Plan
	LoadNetwork func(topology string) (*Network, error)
	LoadPlan    func(file string) (*pint.Plan, error)
	// Sites are those of the settings, for [NewShard]; a collector has them in its own.
	Sites []Site
	// Ways are those that flows may take, for [NewShard]; a collector reads what its settings name.
	Ways *policy.Policy
}

func (o *Options) digestInputs() *digests.Inputs {
	return &digests.Inputs{Network: o.Network, Plans: o.Plans, LoadNetwork: o.LoadNetwork, LoadPlan: o.LoadPlan, Log: o.Log}
}

// Collector runs sources through the pipeline into the sinks. It is used once.
type Collector struct {
	cfg       Config
	opt       Options
	log       *slog.Logger
	ledger    *Ledger
	pipeline  *pipeline
	detector  *events.Detector
	detectors []Detector
	admission *inference.Admission // used where windows end
	sources   []*source
	stores    *stores.Set
	writers   []sink.WindowWriter
	keeper    *stateKeeper   // of the state file; nil without one
	alerts    *alerts.Keeper // nil without receivers

	remembered []inference.Finding // open since an earlier run, to be told with the first window
	instance   string
	boot       string    // differs from one run to the next
	start      time.Time // by the wall clock as it was then
	began      int64     // the same by the monotonic clock

	clock       *wallClock // nil for windows that end by the time stamps of frames
	corrections *corrections
	detected    int64 // time of the last window for the detectors

	writeSeconds metrics.Durations

	stateMu    sync.Mutex // guards what window ends write and anybody may read
	totals     *inference.Totals
	exporters  exporterTotals
	learning   int // hops
	findings   findings
	folded     struct{ hops, flows, rest uint64 } // by admission
	lastRate   float64
	diverted   uint64                      // reports
	labels     struct{ first, last int64 } // of the windows that were handed over, or the first one is to have
	clockState clockState
	rivals     *stores.Rivals

	ready  atomic.Bool
	reload atomic.Pointer[events.Config]
	naming naming
}

// New prepares a collector that takes over what opt names: sources, stores, writers. Nothing runs yet. Who does not run
// it after all calls Close; an error closes everything.
func New(cfg Config, analysis Analysis, opt Options) (_ *Collector, err error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = timeNow()
	}
	c := &Collector{
		instance: cfg.InstanceName(), boot: rand.Text()[:16],
		cfg: cfg, opt: opt, log: opt.Log, exporters: newExporterTotals(cfg.Exporters.Tracking.MaxExporters), findings: findings{},
		detector: events.New(analysis.Events), totals: inference.NewTotals(analysis.Flows.MaxHops),
		admission: inference.NewAdmission(inference.AdmissionLimits{
			Hops: analysis.Flows.MaxHops, Flows: analysis.Flows.DailyFlows, Exporters: cfg.Exporters.Tracking.MaxExporters,
		}),
	}
	c.detectors = append([]Detector{c.detector}, opt.Detectors...)
	if opt.Policy.CaptureTime { // what is found in a capture has been
		c.withoutReceivers()
	}
	var names, receivers []string
	for _, s := range c.opt.Stores {
		if s.Alerts {
			receivers = append(receivers, s.Name)
		} else {
			names = append(names, s.Name)
		}
	}
	c.ledger = NewLedger(names...)
	c.ledger.Aside(receivers...)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	var block []bool
	for _, s := range opt.Sources {
		waits, ok := s.Source.(ingest.Waiter)
		c.sources = append(c.sources, &source{Source: s, first: len(block)})
		for range s.Workers() {
			block = append(block, opt.Policy.Block || ok && waits.Waits())
		}
	}
	c.writeSeconds = metrics.NewDurations(mWriteSeconds)
	if c.stores, err = stores.NewSet(c.opt.Stores, stores.SetOptions{
		Full: opt.Policy.full(), Ledger: c.ledger, Write: c.writeSeconds, Reports: opt.Reports, Log: c.log,
	}); err != nil {
		return nil, err
	}
	c.rivals = c.stores.Rivals(c.instance, c.boot, cfg.Window)
	router, err := cfg.Exporters.Routers()
	if err != nil {
		return nil, err
	}
	if opt.Profile != nil {
		router = func() *demux.Router { return demux.NewRouter(*opt.Profile, nil) }
	}
	c.corrections = newCorrections(&cfg, &analysis.Flows)
	if err = c.naming.open(&cfg, &analysis, &opt); err != nil {
		return nil, err
	}
	if opt.Ways, err = ways.ReadFile(analysis.Policy, c.Names()); err != nil {
		return nil, err
	}
	if c.pipeline, err = newPipeline(&cfg, &analysis, &opt, block, router, c.ledger); err != nil {
		return nil, err
	}
	if err = c.openFleet(); err != nil {
		return nil, err
	}
	if len(c.stores.Receivers()) > 0 {
		if c.alerts, err = alerts.Open(cfg.Alerts, c.instance, c.log); err != nil {
			return nil, err
		}
	}
	if c.keeper, err = c.openState(); err != nil {
		return nil, err
	}
	c.writers = append(c.writers, opt.Writers...)
	for _, s := range c.stores.All() {
		if !s.Alerts {
			c.writers = append(c.writers, s)
		}
	}
	return c, nil
}

// withoutReceivers closes the receivers of alerts.
func (c *Collector) withoutReceivers() {
	var series []Store
	for _, s := range c.opt.Stores {
		if s.Alerts {
			_ = s.Writer.Close() // nothing was written
		} else {
			series = append(series, s)
		}
	}
	c.opt.Stores = series
}

// Close gives back what New took over, for a collector that is not run.
func (c *Collector) Close() error {
	c.stores.Discard()
	if c.keeper != nil {
		close(c.keeper.write)
	}
	return CloseSources(c.opt.Sources)
}

// AddWriter adds a writer that needs the collector to be made. It is called before Run.
func (c *Collector) AddWriter(w sink.WindowWriter) {
	c.writers = slices.Insert(c.writers, len(c.opt.Writers), w)
	c.opt.Writers = append(c.opt.Writers, w)
}

// Addrs are the addresses that frames are received on.
func (c *Collector) Addrs() (addrs []netip.AddrPort) {
	for _, s := range c.sources {
		if l, ok := s.Source.Source.(ingest.Listener); ok {
			addrs = append(addrs, l.Addrs()...)
		}
	}
	return addrs
}

// Reload applies those settings that can change while the collector runs; [Reloadable] lists them.
func (c *Collector) Reload(cfg Config, analysis Analysis) error {
	router, err := cfg.Exporters.Routers()
	if err != nil {
		return err
	}
	if c.opt.Profile == nil { // it goes before what the settings say
		for _, w := range c.pipeline.workers {
			w.decoder.Store(router())
		}
		if x := c.pipeline.dialects; x != nil {
			candidates, err := cfg.Exporters.Candidates()
			if err != nil {
				return err
			}
			x.reload(router(), candidates)
		}
	}
	c.naming.reload(&cfg, c.log)
	c.reload.Store(&analysis.Events) // one that nobody took yet is outdated
	return nil
}

// Reloadable are the keys of the settings that a running collector can change: the dialects of exporters, the names of nodes
// and the thresholds of findings.
var Reloadable = []string{"exporters.profile", "exporters.profiles", "exporters.dialects", "inventory", "events"}

// Run collects until ctx ends or all sources have ended, then drains: sources, shards, the last window, sinks, in this
// order and within the configured time.
func (c *Collector) Run(ctx context.Context) error {
	now := c.read()
	c.stateMu.Lock()
	c.start, c.began = time.Unix(0, now.wall), now.mono
	c.stateMu.Unlock()
	if !c.opt.Policy.CaptureTime {
		c.clock = newWallClock(c.cfg.Window, c.cfg.Corrections, now)
		if c.publishes() {
			c.clock.whole()
		}
		c.pipeline.start = now.wall
		_, c.pipeline.receipt.edge = c.clock.end()
		c.stateMu.Lock()
		c.labels.first = c.pipeline.receipt.edge
		c.stateMu.Unlock()
	}
	c.stores.Start()
	c.pipeline.run()

	failed := make(chan error, len(c.sources)+len(c.writers))
	servicesCtx, stopServices := context.WithCancel(context.Background())
	defer stopServices()
	var services sync.WaitGroup
	for _, w := range c.writers {
		if s, ok := w.(service); ok {
			services.Go(func() {
				if err := s.Serve(servicesCtx); err != nil {
					failed <- fmt.Errorf("%s: %w", w.Name(), err)
				}
			})
		}
	}
	c.introduce()

	capture := &captureClock{c: c, length: int64(c.cfg.Window)}
	handle := c.pipeline.handle
	if c.opt.Policy.CaptureTime {
		handle = capture.handle
	}
	sourceCtx, stopSources := context.WithCancel(ctx)
	defer stopSources()
	ended := c.runSources(sourceCtx, handle, failed)
	var ticks sync.WaitGroup
	if d := c.pipeline.diversion; d != nil {
		ticks.Go(c.serveDiversion)
		if c.opt.Hurry != nil {
			defer context.AfterFunc(c.opt.Hurry, d.stop)()
		}
	}
	c.ready.Store(true)
	if !c.opt.Policy.CaptureTime {
		services.Go(func() {
			c.rivals.Watch(sourceCtx, func() (now, began int64) { r := c.read(); return r.wall, r.wall - (r.mono - c.began) })
		})
		services.Go(func() { c.recognise(sourceCtx) })
		services.Go(func() { c.naming.watch(sourceCtx, c.log) })
	}

	var err error
	if c.opt.Policy.CaptureTime {
		err = c.wait(ctx, ended, failed, nil, nil, nil)
	} else {
		err = c.wall(ctx, ended, failed)
	}
	c.ready.Store(false)
	stopSources()
	<-ended
	c.lookAtSources()
	c.finishDialects()
	if c.opt.Policy.CaptureTime {
		c.pipeline.exporters.settle()
		capture.finish()
	} else {
		c.finishWall()
	}
	c.pipeline.close()
	if d := c.pipeline.diversion; d != nil {
		d.stop()
		ticks.Wait()
	}
	drain, cancel := context.WithTimeout(context.Background(), c.cfg.DrainTimeout)
	defer cancel()
	if c.opt.Hurry != nil {
		defer context.AfterFunc(c.opt.Hurry, cancel)()
	}
	if c.alerts != nil {
		c.alerts.Keep(0, true)
	}
	err = errors.Join(err, c.stores.Close(drain), CloseSources(c.opt.Sources))
	c.endState()
	stopServices()
	services.Wait()
	close(failed) // nobody writes to it any more
	for late := range failed {
		err = errors.Join(err, late)
	}
	return err
}

// service is a writer that has to run beside the collector, such as the server of a page. It is called once and ends
// soon after ctx does, which is when everything was written.
type service interface {
	Serve(ctx context.Context) error
}

// endWindow ends the open window, which took some time, 0 for what its labels say, and hands what it saw to the detectors and to all writers.
// Before they get it, change may make it a window of more than that; it must not keep the partial window.
func (c *Collector) endWindow(end windowEnd, took time.Duration, change func(*sink.Window, *inference.Partial)) {
	if cfg := c.reload.Swap(nil); cfg != nil {
		c.detector.Configure(*cfg)
	}
	label := c.fleetLabel(end.label)
	partial, diverted := c.pipeline.cut(end, label)
	c.admission.Fold(partial, partial.End)
	w := partial.Window(c.pipeline.limits)
	found := c.again(c.detect(&w))
	c.detector.Learning(&w)
	c.admission.Mark(&w, found)
	refused := c.pipeline.exporters.refused()

	c.stateMu.Lock()
	c.totals.Add(partial)
	c.exporters.add(w.Exporters, refused)
	c.folded.hops, c.folded.flows, c.folded.rest = c.admission.Folded()
	c.findings.keep(found)
	c.learning = c.detector.Stats().Learning
	if took == 0 {
		took = time.Duration(w.End - w.Start)
	}
	if took > 0 {
		c.lastRate = float64(w.Reports+diverted) / took.Seconds()
	}
	c.diverted += diverted
	c.stateMu.Unlock()

	alerts.Log(c.log, found, c.Names())
	closed := sink.NewWindow(c.instance, &w, found)
	closed.Label = label
	closed.Names = c.naming.tell(w.End)
	c.windowEnds(&w, diverted, refused) // before others are added to it
	alone := w
	if change != nil {
		change(closed, partial)
	}
	c.ledger.Close(w.Reports)
	for _, out := range c.writers {
		err := error(nil)
		if s, ok := out.(*stores.Queue); ok && s.Encoder != nil {
			// What was counted under the label before was handed over before.
			err = s.WritePartial(context.Background(), &sink.Window{Window: &alone, Findings: found, Instance: c.instance,
				Run: closed.Run, Label: label, Partial: partial})
		} else {
			err = out.WriteWindow(context.Background(), closed)
		}
		if err != nil {
			c.log.Error("window not taken", "sink", out.Name(), "error", err.Error())
		}
	}
	if c.alerts != nil {
		c.stores.Alert(context.Background(), c.alerts.Step(w.End, found, c.Names()))
		c.alerts.Keep(time.Duration(c.read().mono), false)
	}
	c.stateMu.Lock()
	if c.labels.first == 0 || label < c.labels.first {
		c.labels.first = label
	}
	c.labels.last = label
	c.stateMu.Unlock()
}

// detectionTime is the end of a window for the detectors. They see what was counted in the order in which it was, also
// when the clock was set back: until it has passed the latest window, each one ends a millisecond after the one before,
// so that findings neither begin before their cause nor end before they began, and no event takes the place of another.
func (c *Collector) detectionTime(label int64) int64 {
	const apart = int64(time.Millisecond) // more than what keeps the events of one window apart
	if c.clock != nil && c.detected != 0 && label < c.detected+apart {
		label = c.detected + apart
	}
	c.detected = label
	return label
}

// detect gives what all detectors find in w. Each counts its findings on its own, so those of detectors beside the first
// carry the detector's number in their upper bits.
func (c *Collector) detect(w *inference.Window) (found []inference.Finding) {
	const perDetector = 56 // bits
	seen := *w
	seen.End = c.detectionTime(w.End)
	for i, d := range c.detectors {
		from := len(found)
		found = append(found, d.Step(&seen)...)
		for k := range found[from:] {
			found[from+k].ID |= uint64(i) << perDetector
		}
	}
	return found
}
