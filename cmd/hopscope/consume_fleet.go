package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	consumers "github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/ways"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/shard"
	logs "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/sink"
	kafkasink "github.com/hopscope/hopscope/sink/kafka"
	"github.com/hopscope/hopscope/sink/web"
)

// consumer is one as the settings ask for it, with its page and its place in the roster.
type consumer struct {
	*consumers.Consumer
	cfg    *config
	log    logger
	id     string
	boot   uint64
	start  time.Time
	params fleet.Params
	client *conn.Client
	kafka  *logs.Log
	group  *logs.Group
	roster *conn.Table
	stores []collector.Store
	page   *web.Server // nil without one
	tells  atomic.Uint64
	naming inventory.Keeper

	mu       sync.Mutex
	expected []fleet.Expected
	redraws  map[string]uint64 // by collector, to be told
	trouble  string            // with the roster
	clock    time.Duration     // by which this machine is ahead of the brokers
}

// How often a consumer tells how it is, and for how long it waits for a fleet at its start.
const (
	tellEvery   = 2 * time.Second
	awaitFleet  = 30 * time.Second
	checkTopics = 10 * time.Second
)

// openConsumer opens what the settings name, and holds them against what the members of the fleet have in common.
func openConsumer(ctx context.Context, cfg *config, opt consumers.Options) (_ *consumer, err error) {
	seed, err := cfg.Seed()
	if err != nil {
		return nil, err
	}
	if cfg.SeedFile == "" {
		return nil, usagef("seed_file: is empty; all members of a fleet have the same one")
	}
	c := &consumer{cfg: cfg, log: opt.Log, id: cfg.InstanceName(), boot: rand.Uint64(), start: time.Now(), redraws: map[string]uint64{}}
	if err := fleet.CheckName(c.id); err != nil {
		return nil, usagef("instance: %q %w", c.id, err)
	}
	if err := collector.OpenNames(&c.naming, &cfg.Config, &cfg.Analysis, &collector.Options{LoadNetwork: loadNetwork}); err != nil {
		return nil, wrongInput(err)
	}
	opt.Names = c.naming.Names
	allowed, err := ways.ReadFile(cfg.Policy, c.naming.Names())
	if err != nil {
		return nil, wrongInput(err)
	}
	if c.client, err = kafkaOf(cfg).Dial("hopscope-consume"); err != nil {
		return nil, wrongInput(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeStores(c.stores))
			c.client.Close()
		}
	}()
	c.roster = c.client.NewTable(c.client.Topic(conn.Roster), rosterBounds)
	if err := c.join(ctx, seed); err != nil {
		return nil, err
	}

	all, streams, err := collector.OpenStores(cfg, collector.Replay)
	if err != nil {
		return nil, err
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range streams { // of reports, which a consumer does not have one by one
		_ = s.Close(ended) // nothing was written
	}
	for _, s := range all {
		if _, publishes := s.Writer.(sink.WindowEncoder); publishes { // for collectors that have the same settings
			_ = s.Writer.Close()
			continue
		}
		c.stores = append(c.stores, s)
	}
	if !slices.ContainsFunc(c.stores, func(s collector.Store) bool { return !s.Alerts }) {
		opt.Log.Warn("no store is enabled: windows are merged and published for pages alone", "stores", oneOf(collector.StoreNames(cfg)))
	}

	logCfg := logs.DefaultLogConfig()
	logCfg.HeaderKey = fleet.HeaderKey
	c.kafka = logs.NewLog(c.client.Client, logCfg)
	opt.Topics = consumers.Topics{Windows: c.client.Topic(conn.Windows), Reports: c.client.Topic(conn.Reports), Series: c.client.Topic(conn.Series), State: c.client.Topic(conn.State)}
	c.group = logs.NewGroup(c.client.Client, c.kafka, logs.GroupConfig{
		Name: c.client.Topic(cfg.Consume.Group), Topics: map[string]int{opt.Topics.Windows: c.params.Slices, opt.Topics.Reports: c.params.Slices, opt.Topics.Series: 1},
		Session: cfg.Consume.Session, Rebalance: cfg.Consume.Drain * 4 / 3,
	}, opt.Log)
	opt.ID, opt.Params, opt.Kafka, opt.Group, opt.Stores = c.id, c.params, c.kafka, c.group, c.stores
	opt.Limits = cfg.Flows.Limits()
	opt.Admission = inference.AdmissionLimits{Hops: cfg.Flows.MaxHops, Flows: cfg.Flows.DailyFlows, Exporters: max(cfg.Exporters.Tracking.MaxExporters, 1<<16)}
	opt.Events, opt.Alerts = cfg.Events, cfg.Alerts
	opt.Cross = func() fleet.Crosser { return fleet.NewCross(crossLimits(cfg)) }
	opt.Rows = kafkasink.HopRows
	opt.Slicer = inference.NewSlicer(seed, c.params.Slices)
	opt.Shard = func() (*shard.State, error) {
		return collector.NewShard(&cfg.Analysis, collector.Options{Seed: seed, LoadNetwork: loadNetwork, LoadPlan: pintplan.ReadFile, Sites: cfg.Exporters.Sites, Ways: allowed, Log: opt.Log}, c.params.Slices)
	}
	opt.Expected, opt.Redraw = c.expect, c.redraw
	if c.Consumer, err = consumers.New(cfg.Consume, opt); err != nil {
		return nil, err
	}
	check, cancelCheck := context.WithTimeout(ctx, checkTopics)
	defer cancelCheck()
	if err := c.Check(check); err != nil {
		return nil, wrongInput(err)
	}
	network, err := pageMap(cfg)
	if err == nil {
		err = c.addPage(cfg.Web, network)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// crossLimits are those of what follows exporters and flows of a slice, with the settings that collectors have for theirs.
func crossLimits(cfg *config) fleet.CrossLimits {
	l := fleet.DefaultCrossLimits()
	l.Window, l.MaxGap = cfg.Exporters.Tracking.Window, cfg.Exporters.Tracking.MaxGap
	l.Horizon = max(l.Horizon, 4*cfg.Window)
	l.Idle = max(l.Idle, 2*l.Horizon)
	return l
}

// join waits for the fleet, and compares.
func (c *consumer) join(ctx context.Context, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, awaitFleet)
	defer cancel()
	told := false
	for {
		p, err := c.readRoster(ctx)
		switch {
		case err == nil && p != nil:
			mine := fleet.NewParams(p.Name, p.Slices, c.cfg.Window, seed)
			if differs := p.Differences(&mine); len(differs) > 0 {
				return usagef("this consumer does not fit into the fleet %s: %s", p.Name, strings.Join(differs, "; "))
			}
			c.params = *p
			// Its own clock ends windows, so it has to be that of the others.
			return c.tell(ctx, false)
		case err == nil:
			err = fmt.Errorf("%s does not say what the members of the fleet have in common; say it with: hopscope kafka topics create", c.roster.Topic())
		}
		if e, ok := errors.AsType[*conn.Error](err); ok && e.NeedsPerson() {
			return err
		}
		if !told {
			c.log.Warn("waiting for the fleet", "error", err.Error())
			told = true
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

// readRoster reads who there is, and gives what they have in common, nil if nobody has said so.
func (c *consumer) readRoster(ctx context.Context) (*fleet.Params, error) {
	if _, err := c.roster.Refresh(ctx); err != nil {
		return nil, err
	}
	var r fleet.Roster
	for key, value := range c.roster.All() {
		if err := r.Add(key, value); err != nil {
			c.log.Debug("a record of the roster is passed over", "error", err.Error())
		}
	}
	expected := r.Expected()
	c.mu.Lock()
	c.expected = expected
	c.mu.Unlock()
	return r.Params(), nil
}

func (c *consumer) expect() []fleet.Expected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected
}

// redraw remembers what a collector is to be told.
func (c *consumer) redraw(name string, boot uint64) {
	c.mu.Lock()
	c.redraws[name] = boot
	c.mu.Unlock()
}

// ClockError says that this machine's clock and Kafka's differ by more than a window.
type consumerClockError struct{ off, window time.Duration }

func (e *consumerClockError) Error() string {
	direction := "ahead of"
	if e.off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("the clock of this machine is %v %s Kafka's, which is more than a window of %v: it would end windows at the wrong time; set the clock (NTP)",
		e.off.Abs().Round(time.Millisecond), direction, e.window)
}

// tell writes to the roster how the consumer is, and holds the clock against that of the brokers.
func (c *consumer) tell(ctx context.Context, left bool) error {
	m := fleet.Member{
		Role: fleet.Consumer, Name: c.id, Boot: c.boot, Version: version(), Start: c.start.UnixNano(), Updated: time.Now().UnixNano(), Left: left,
	}
	for _, s := range c.stores {
		if !s.Alerts { // no report comes to those
			m.Stores = append(m.Stores, s.Name)
		}
	}
	if c.page != nil {
		m.Pages = []string{c.page.URL()}
	}
	if c.Consumer != nil {
		m.Window, m.Parts = c.newest(), c.Accounts()
		m.Rebalances = c.group.Stats().Rebalances
		for _, a := range m.Parts {
			if a.Held {
				m.Lag += a.Lag
			}
		}
		for _, p := range c.problems() {
			if len(m.Faults) < 16 {
				m.Faults = append(m.Faults, oneLine(p))
			}
		}
	}
	before := time.Now()
	appended, err := c.roster.Put(ctx, fleet.MemberKey(fleet.Consumer, c.id), m.Append(nil))
	after := time.Now()
	if err != nil {
		return err
	}
	if appended.IsZero() {
		return nil
	}
	// It was written between the two, so the clock is off by this at least.
	off := time.Duration(0)
	switch {
	case before.After(appended):
		off = before.Sub(appended)
	case after.Before(appended):
		off = after.Sub(appended)
	}
	c.mu.Lock()
	c.clock = off
	c.mu.Unlock()
	if off.Abs() > c.params.Window {
		return &consumerClockError{off, c.params.Window}
	}
	return nil
}

// newest is the label of the last window of which this consumer told anything.
func (c *consumer) newest() (label int64) {
	for _, p := range c.Partitions() {
		label = max(label, p.Label)
	}
	return max(label, 0)
}

// oneLine makes a text of what may have several lines and be long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}

// follow keeps the roster until ctx ends. An error that does not pass, such as a clock that is wrong, is given back.
func (c *consumer) follow(ctx context.Context) error {
	failed := 0
	for sleep(ctx, min(tellEvery, max(c.params.Window, 200*time.Millisecond))) {
		c.tells.Add(1)
		p, err := c.readRoster(ctx)
		if err == nil && p != nil {
			if differs := p.Differences(&c.params); len(differs) > 0 {
				return fmt.Errorf("the fleet has changed: %s; start this consumer again with its settings", strings.Join(differs, "; "))
			}
		}
		if err == nil {
			err = c.tellRedraws(ctx)
		}
		if err == nil {
			err = c.tell(ctx, false)
		}
		c.mu.Lock()
		before := c.trouble
		c.trouble = ""
		if err != nil && ctx.Err() == nil {
			c.trouble = err.Error()
		}
		trouble := c.trouble
		c.mu.Unlock()
		if trouble != "" && before == "" {
			c.log.Warn("the roster of the fleet is out of reach", "error", trouble)
		}
		if errors.As(err, new(*consumerClockError)) {
			if failed++; failed >= 3 { // once may be a moment in which the machine stood still
				return err
			}
		} else {
			failed = 0
		}
	}
	return nil
}

func (c *consumer) tellRedraws(ctx context.Context) error {
	c.mu.Lock()
	todo := c.redraws
	c.redraws = map[string]uint64{}
	c.mu.Unlock()
	for name, boot := range todo {
		value, err := json.Marshal(fleet.Redraw{Boot: boot})
		if err == nil && fleet.CheckName(name) == nil {
			_, err = c.roster.Put(ctx, fleet.RedrawKey(name), value)
		}
		if err != nil {
			c.redraw(name, boot)
			return err
		}
	}
	return nil
}

// heart counts what goes on.
func (c *consumer) heart() uint64 { return c.tells.Load() }

// registry gives the metrics of the consumer, of its membership and of its log.
func (c *consumer) registry() *prometheus.Registry {
	r := c.Registry()
	gauge := func(m collector.Metric, value func() float64) {
		if m.Kind == collector.Counter {
			r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, value))
			return
		}
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, value))
	}
	for _, m := range consumeMetrics {
		gauge(m.Metric, func() float64 { return m.value(c) })
	}
	return r
}

// consumeMetric is one that is made of what the engine of consumers does not know.
type consumeMetric struct {
	collector.Metric
	value func(c *consumer) float64
}

var consumeMetrics = []consumeMetric{
	{collector.Metric{Name: "hopscope_consume_rebalances_total", Help: "Times that partitions were shared out anew.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Rebalances) }},
	{collector.Metric{Name: "hopscope_consume_lost_total", Help: "Times that all partitions were lost, because nothing was heard of this consumer for longer than a session.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Lost) }},
	{collector.Metric{Name: "hopscope_consume_refused_commits_total", Help: "Offsets that the group refused, since another consumer has the partition.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Refused) }},
	{collector.Metric{Name: "hopscope_consume_rebalance_seconds", Help: "How long the last rebalance took, from letting go to having partitions again."},
		func(c *consumer) float64 { return c.group.Stats().TookOver.Seconds() }},
	{collector.Metric{Name: "hopscope_consume_kafka_errors_total", Help: "Calls of Kafka that failed and were made again.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Errors + c.kafka.Stats().Errors) }},
	{collector.Metric{Name: "hopscope_consume_corrupt_total", Help: "Stretches of a log that cannot be read, passed over.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.kafka.Stats().Corrupt) }},
	{collector.Metric{Name: "hopscope_consume_clock_seconds", Help: "By how much the clock of this machine is ahead of that of the brokers, at least."},
		func(c *consumer) float64 { c.mu.Lock(); defer c.mu.Unlock(); return c.clock.Seconds() }},
}

// url is where the page is, or "".
func (c *consumer) url() string {
	if c.page == nil {
		return ""
	}
	return c.page.URL()
}

// run consumes until ctx ends.
func (c *consumer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	services, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, 3)
	if c.page != nil {
		wg.Go(func() {
			if err := c.page.Serve(services); err != nil {
				failed <- err
				cancel(err)
			}
		})
	}
	wg.Go(func() { c.naming.Watch(services, c.log) })
	wg.Go(func() {
		if err := c.follow(services); err != nil {
			failed <- err
			cancel(err)
		}
	})
	kafka := c.client.Config()
	c.log.Info("consuming what a fleet publishes", "fleet", c.params.Name, "kafka", kafka.Target(), "group", c.client.Topic(c.cfg.Consume.Group), "slices", c.params.Slices, "window", c.params.Window.String(), "stores", len(c.stores), "url", c.url())
	c.supervised(ctx)
	err := c.Consumer.Run(ctx)
	c.log.Info("stopping")
	stop()
	wg.Wait()
	last, cancelLast := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancelLast()
	if terr := c.tell(last, true); terr != nil && !errors.As(terr, new(*consumerClockError)) {
		c.log.Warn("the roster of the fleet does not say that this consumer has ended", "error", terr.Error())
	}
	c.client.Close()
	close(failed)
	for late := range failed {
		err = errors.Join(err, late)
	}
	return err
}
