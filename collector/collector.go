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

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/collector/windows"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
)

// Collector runs sources through the pipeline into the sinks. It is used once.
type Collector struct {
	cfg  Config
	opt  Options
	log  *slog.Logger
	live bool // windows end by the clock

	instance string
	boot     string // differs from one run to the next
	began    atomic.Pointer[moment]
	ready    atomic.Bool

	ledger       *ledger.Ledger
	stores       *stores.Set
	sites        *exporters.Sites // nil without any
	pipeline     *pipeline.Pipeline
	ipfix        *ipfix.Store          // of exporters of IPFIX; nil where it is not read
	plans        []*pint.Plan          // of queries, whose digests are read
	ports        map[uint16]demux.Kind // that frames of captures go to
	templates    *templates            // nil where they are not kept
	detectors    *windows.Detectors
	tally        *summary.Tally
	alerts       *stores.AlertKeeper // nil without receivers
	state        *windows.State      // nil without a state file
	windows      *windows.Ends
	rivals       *stores.Rivals
	names        inventory.Keeper      // of nodes, interfaces and hosts; of what is computed, the utilisation of interfaces alone depends on them, by their speeds
	nameRows     inventory.RowSchedule // of the goroutine that ends windows
	loggedLimits map[string]bool       // limits that left something out, and were logged
	fewIDs       bool                  // packets of flows have few ids, which was logged

	writeSeconds metrics.Durations
}

// mWriteSeconds is the metric that counts as writes happen.
var mWriteSeconds = Metric{Name: "hopscope_sink_write_duration_seconds", Help: "Time of one write to the sink.", Labels: []string{"sink", "ok"}, Kind: Histogram}

// moment is when something was, by both clocks.
type moment struct {
	wall time.Time
	mono time.Duration
}

// New prepares a collector that takes over what opt names: sources, stores, writers. Nothing runs yet. A caller that does not run it
// calls Close; an error closes everything.
func New(cfg Config, analysis Analysis, opt Options) (_ *Collector, err error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = timeNow()
	}
	places := window.AdmissionLimits{Hops: analysis.Flows.MaxHops, Flows: analysis.Flows.DailyFlows, Exporters: cfg.Exporters.Tracking.MaxExporters}
	c := &Collector{
		cfg: cfg, opt: opt, log: opt.Log, live: !opt.Policy.CaptureTime, instance: cfg.InstanceName(), boot: rand.Text()[:16],
		tally:     summary.NewTally(places.Hops, places.Exporters),
		detectors: windows.NewDetectors(analysis.Events, !opt.Policy.CaptureTime, opt.Detectors...), writeSeconds: metrics.NewDurations(mWriteSeconds),
	}
	c.began.Store(&moment{})
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err = c.openStores(); err != nil {
		return nil, err
	}
	if err = OpenNames(&c.names, &cfg, &analysis, &opt); err != nil {
		return nil, err
	}
	if opt.Ways, err = inventory.ReadWaysFile(analysis.Policy, c.Names()); err != nil {
		return nil, err
	}
	if err = c.openPipeline(&analysis, &opt); err != nil {
		return nil, err
	}
	fleet, err := c.openFleet()
	if err != nil {
		return nil, err
	}
	if len(c.stores.Receivers()) > 0 {
		if c.alerts, err = stores.OpenAlerts(cfg.Alerts, c.instance, c.log); err != nil {
			return nil, err
		}
	}
	var rules *stores.RulesFile
	if c.alerts != nil {
		rules = c.alerts.Rules()
	} else if c.live {
		rules = stores.OpenRules(cfg.Alerts.File, c.log)
	}
	if c.live {
		path := windows.StatePath(cfg.StateFile, c.opt.Stores)
		if c.templates, err = openTemplates(templatesPath(&cfg.IPFIX, path), c.ipfix, c.wall(), c.log); err != nil {
			return nil, err
		}
		if c.state, err = windows.OpenState(path, c.stores, c.ledger, c.pipeline, c.detectors, c.log); err != nil {
			return nil, err
		}
	}
	c.windows = windows.New(windows.Config{
		Instance: c.instance, Boot: c.boot, Version: opt.Version, Length: cfg.Window, Limits: analysis.Flows.Limits(), Admission: places, Fleet: fleet,
		Pipeline: c.pipeline, Ledger: c.ledger, Tally: c.tally, Detectors: c.detectors, Stores: c.stores, Alerts: c.alerts, Rules: rules, State: c.state,
		Names: c.Names, NameRows: func(end int64) []names.Row { return c.nameRows.Rows(c.Names(), end) }, Now: opt.Now, Log: c.log,
		Corrections: windows.Corrections{
			Reach: cfg.Corrections, Bytes: cfg.CorrectionsBytes, Shards: cfg.shards(), Exporters: places.Exporters, Flows: analysis.Flows,
		},
	})
	c.windows.Writers = slices.Clone(opt.Writers)
	for _, s := range c.stores.All() {
		if !s.Alerts {
			c.windows.Writers = append(c.windows.Writers, s)
		}
	}
	return c, nil
}

// timeNow is the clock of [Options]: the wall clock and, in the same instant, the monotonic one.
func timeNow() func() (time.Time, time.Duration) {
	base := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now, now.Sub(base)
	}
}

// openStores puts queues before the stores. What is found in a capture has been, so its receivers of alerts are closed.
func (c *Collector) openStores() (err error) {
	var list []Store
	var series, receivers []string
	for _, s := range c.opt.Stores {
		switch {
		case s.Alerts && !c.live:
			_ = s.Writer.Close() // nothing was written
			continue
		case s.Alerts:
			receivers = append(receivers, s.Name)
		default:
			series = append(series, s.Name)
		}
		list = append(list, s)
	}
	c.opt.Stores = list
	c.ledger = ledger.New(series...)
	c.ledger.Aside(receivers...)
	c.stores, err = stores.NewSet(list, stores.SetOptions{
		Full: c.opt.Policy.full(), Ledger: c.ledger, Write: c.writeSeconds, Reports: c.opt.Reports, Log: c.log,
	})
	if err == nil {
		c.rivals = c.stores.Rivals(c.instance, c.boot, c.cfg.Window)
	}
	return err
}

// openPipeline makes the pipeline, with what reads reports.
func (c *Collector) openPipeline(analysis *Analysis, opt *Options) (err error) {
	e, shards := &c.cfg.Exporters, c.cfg.shards()
	router, err := e.Routers()
	if err != nil {
		return err
	}
	if opt.Profile != nil {
		router = func() *demux.Router { return demux.NewRouter(*opt.Profile, nil) }
	}
	c.ipfix = c.cfg.IPFIX.Store()
	c.ports = opt.Ports
	router = c.sharing(router)
	if c.sites, err = exporters.NewSites(e); err != nil {
		return err
	}
	// A replay has looked at its capture before, so that one profile reads it from its beginning to its end.
	dialects, err := pipeline.NewDialects(e, c.live, router(), opt.Adopted, opt.Looked, c.log)
	if err != nil {
		return err
	}
	flows := analysis.Flows
	flows.MemoryBytes /= int64(shards)
	digests := opt.digestInputs()
	states, err := analysis.PINT.Shards(shards, shards, flows, opt.Seed, c.sites, opt.Ways, digests)
	if err != nil {
		return err
	}
	c.plans = digests.Follows
	rules := e.Metrics.Decoding(opt.Seed)
	rules.Speed = c.speed
	c.pipeline = pipeline.New(pipeline.Config{
		Window: c.cfg.Window, Seed: opt.Seed, Tracking: e.Tracking, QueueBatches: c.cfg.ShardQueueBatches, Block: opt.Policy.Block, Sources: opt.Sources,
		Shards: states, Router: router, Metrics: rules, Sites: c.sites, Dialects: dialects, Reports: opt.Reports, Ledger: c.ledger, Log: c.log,
	})
	return nil
}

// sharing makes the decoders of all workers share their exporters of IPFIX and the kinds of ports.
func (c *Collector) sharing(router func() *demux.Router) func() *demux.Router {
	return func() *demux.Router { return router().ShareIPFIX(c.ipfix).Ports(c.ports) }
}

// speed returns the speed of an interface in bit/s by the inventory, or by another source; 0 if it is not known.
func (c *Collector) speed(exporter decode.Addr, node, index uint32) float64 {
	id, ok := c.sites.NodeOf(&exporter, node)
	if !ok {
		return 0
	}
	x, _ := c.Names().FindInterface(id, index)
	return x.Speed
}

// learn adds the names that devices report of themselves.
func (c *Collector) learn() {
	c.names.Learn(c.pipeline.Learned())
	if c.ipfix == nil {
		return
	}
	var nodes []names.Node
	for _, x := range c.ipfix.Learned() {
		n := names.Node{ID: x.Node}
		if x.Why != "" {
			n.DropReasons = map[uint8]string{x.Reason: x.Why}
		} else {
			n.Name, n.Interfaces = x.Addr.String(), []names.Interface{{ID: x.Index, Name: x.Name}}
		}
		nodes = append(nodes, n)
	}
	c.names.Learn(nodes)
}

// A collector of a fleet hands its windows, and some of its reports, to consumers that merge them with those of all
// collectors. Its store is a [sink.WindowEncoder], and perhaps a [sink.Diverter]. Diverted reports are in no window of
// the collector. Such a store is therefore the only one: the consumers of the fleet write the series. The page shows
// what is not diverted.

// openFleet looks for a store that publishes to a fleet, connects it with the workers, and reports whether windows go to it.
func (c *Collector) openFleet() (publishes bool, err error) {
	all := c.stores.All()
	for i, s := range all {
		d, diverts := s.Writer.(sink.Diverter)
		e, encodes := s.Writer.(sink.WindowEncoder)
		if !diverts && !encodes {
			continue
		}
		if len(all) > 1 {
			other := all[(i+1)%len(all)]
			return false, stores.ErrBeside(s.Name(), other.Name(), other.Alerts)
		}
		if s.Encoder, publishes = e, encodes; encodes {
			c.pipeline.PublishAcross()
		}
		if diverts {
			// What finds no room, or comes when the queue is closed, is counted there.
			c.pipeline.Divert(d, func(ctx context.Context, e sink.Encoded) { _ = s.PutEncoded(ctx, e) })
		}
	}
	return publishes, nil
}

// Close releases what New opened, for a collector that is not run.
func (c *Collector) Close() error {
	c.stores.Discard() // nothing was written, so there is nothing that could not be
	c.state.Discard()
	return CloseSources(c.opt.Sources)
}

// AddWriter adds a writer that needs the collector to be made. It is called before Run.
func (c *Collector) AddWriter(w sink.WindowWriter) {
	c.windows.Writers = slices.Insert(c.windows.Writers, len(c.opt.Writers), w)
	c.opt.Writers = append(c.opt.Writers, w)
}

// Addrs are the addresses that frames are received on.
func (c *Collector) Addrs() []netip.AddrPort { return c.pipeline.Addrs() }

// Names returns what nodes, interfaces and hosts are called at this moment. It may be called at any time.
func (c *Collector) Names() *names.Names { return c.names.Names() }

// Draw adds the names of the network that a page draws, where the inventory has none.
func (c *Collector) Draw(nodes []names.Node) { c.names.Draw(nodes) }

// Reload applies those settings that can change while the collector runs; [Reloadable] lists them.
func (c *Collector) Reload(cfg Config, analysis Analysis) error {
	router, err := cfg.Exporters.Routers()
	if err != nil {
		return err
	}
	candidates, err := cfg.Exporters.Candidates()
	if err != nil {
		return err
	}
	if c.opt.Profile == nil { // it goes before what the settings say
		c.pipeline.Reload(c.sharing(router), candidates)
	}
	c.names.Reload(cfg.Inventory, c.log) // the drop reasons stay those of the dialects at the start
	c.detectors.Reload(analysis.Events)
	return nil
}

// Reloadable lists the keys of the settings that a running collector can change. They concern the dialects of
// exporters, the names of nodes and the thresholds of findings.
var Reloadable = []string{"exporters.profile", "exporters.profiles", "exporters.dialects", "inventory", "events"}

// Run collects until ctx ends or all sources have ended. It then drains sources, shards, the last window and sinks, in
// this order and within the configured time.
func (c *Collector) Run(ctx context.Context) error {
	wall, mono := c.opt.Now()
	c.began.Store(&moment{wall, mono})
	capture, handle := c.windows.Capture(c.stepDialects), c.pipeline.Handle
	if c.live {
		c.windows.Start(wall, mono)
	} else {
		handle = capture.Handle
	}
	c.stores.Start()
	c.pipeline.Start()

	failed := make(chan error, len(c.opt.Sources)+len(c.windows.Writers))
	servicesCtx, stopServices := context.WithCancel(context.Background())
	defer stopServices()
	var services sync.WaitGroup
	for _, w := range c.windows.Writers {
		if s, ok := w.(service); ok {
			services.Go(func() {
				if err := s.Serve(servicesCtx); err != nil {
					failed <- fmt.Errorf("%s: %w", w.Name(), err)
				}
			})
		}
	}
	c.introduce()

	sourceCtx, stopSources := context.WithCancel(ctx)
	defer stopSources()
	ended := c.pipeline.RunSources(sourceCtx, handle, !c.live, failed)
	var ticks sync.WaitGroup
	ticks.Go(func() { c.pipeline.ServeDiversion(c.opt.Now) })
	c.ready.Store(true)
	if c.live {
		services.Go(func() { c.rivals.Watch(sourceCtx, c.times) })
		services.Go(func() { c.templates.watch(sourceCtx) })
		services.Go(func() { c.pipeline.Dialects.Run(sourceCtx, c.wall, c.tally.Known) })
		services.Go(func() { c.names.Watch(sourceCtx, c.log) })
	}
	if c.opt.Hurry != nil {
		defer context.AfterFunc(c.opt.Hurry, c.pipeline.StopDiversion)()
	}

	err := c.wait(ctx, ended, failed)
	c.ready.Store(false)
	stopSources()
	<-ended
	c.pipeline.LookAtSources()
	c.learn()
	c.templates.keep(true)
	c.pipeline.Dialects.Finish()
	if c.live {
		c.windows.Finish()
	} else {
		capture.Finish()
	}
	c.pipeline.Close()
	c.pipeline.StopDiversion()
	ticks.Wait()
	drain, cancel := context.WithTimeout(context.Background(), c.cfg.DrainTimeout)
	defer cancel()
	if c.opt.Hurry != nil {
		defer context.AfterFunc(c.opt.Hurry, cancel)()
	}
	if c.alerts != nil {
		c.alerts.Keep(0, true)
	}
	err = errors.Join(err, c.stores.Close(drain), CloseSources(c.opt.Sources))
	c.state.End()
	stopServices()
	services.Wait()
	close(failed) // no goroutine writes to it any more
	for late := range failed {
		err = errors.Join(err, late)
	}
	return err
}

// wait does the periodic work beside the sources until the run is to end. It looks at the sources and, in a live run,
// ends windows that are due.
func (c *Collector) wait(ctx context.Context, ended <-chan struct{}, failed <-chan error) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	timer := time.NewTimer(0) // fires at once, then after each time that windows.Look returns
	defer timer.Stop()
	if c.live {
		defer c.log.Info("stopping")
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case err := <-failed:
			return err
		case <-second.C:
		case <-timer.C:
		case <-c.pipeline.Early():
		}
		c.pipeline.LookAtSources()
		c.learn()
		c.templates.keep(false)
		c.logLeftOut()
		if c.live {
			timer.Reset(c.windows.Look())
		}
	}
}

// wall is the time by the clock.
func (c *Collector) wall() int64 {
	wall, _ := c.opt.Now()
	return wall.UnixNano()
}

// times are the time, and when the run began, by the clock as it is set now.
func (c *Collector) times() (now, began int64) {
	wall, mono := c.opt.Now()
	now = wall.UnixNano()
	return now, now - int64(mono-c.began.Load().mono)
}

// stepDialects tries dialects.
func (c *Collector) stepDialects(now int64) { c.pipeline.Dialects.Step(now, c.tally.Known) }

// introduce logs where frames come from, where series go, and the address of the page.
func (c *Collector) introduce() {
	c.pipeline.Introduce()
	for _, s := range c.stores.All() {
		what := "writing series"
		if s.Alerts {
			what = "sending alerts"
		}
		c.log.Info(what, "sink", s.Name(), "target", s.Target)
	}
	for _, w := range c.windows.Writers {
		if page, ok := w.(interface{ URL() string }); ok {
			c.log.Info("serving the page", "url", page.URL())
		}
	}
}

// service is a writer that has to run beside the collector, such as the server of a page. It is called once and ends
// soon after ctx, which ends when everything was written.
type service interface {
	Serve(ctx context.Context) error
}
