package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	consumers "github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/sink"
	kafkasink "github.com/hopscope/hopscope/sink/kafka"
	"github.com/hopscope/hopscope/sink/web"
)

// consumer is a consumer of the settings, with its page and its place in the roster.
type consumer struct {
	*consumers.Consumer
	cfg    *config
	log    *slog.Logger
	id     string
	member *consumers.Membership
	params roster.Params
	client *brokers.Client
	kafka  *brokers.Log
	group  *brokers.Group
	stores []collector.Store
	page   *web.Server // nil without one
	naming inventory.Keeper
}

// checkTopics bounds how long the topics of a fleet are checked at the start.
const checkTopics = 10 * time.Second

// rosterBounds bound the roster. A fleet has less.
var rosterBounds = brokers.TableBounds{Keys: 3 * fleet.MaxMembers, Value: roster.MaxMember, Bytes: 256 << 20}

// openConsumer opens what the settings name, and compares them with those that the members of the fleet have in common.
func openConsumer(ctx context.Context, cfg *config, opt consumers.Options) (_ *consumer, err error) {
	seed, err := cfg.Seed()
	if err != nil {
		return nil, err
	}
	if cfg.SeedFile == "" {
		return nil, usagef("seed_file: is empty; all members of a fleet have the same one")
	}
	c := &consumer{cfg: cfg, log: opt.Log, id: cfg.InstanceName()}
	if err := roster.CheckName(c.id); err != nil {
		return nil, usagef("instance: %q %w", c.id, err)
	}
	if err := collector.OpenNames(&c.naming, &cfg.Config, &cfg.Analysis, &collector.Options{LoadNetwork: loadNetwork}); err != nil {
		return nil, wrongInput(err)
	}
	opt.Names = c.naming.Names
	allowed, err := inventory.ReadWaysFile(cfg.Policy, c.naming.Names())
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
	c.member = consumers.NewMembership(consumers.MembershipOptions{
		ID: c.id, Version: version(), Log: c.log, Roster: c.client.NewTable(c.client.Topic(brokers.Roster), rosterBounds), Status: c.memberStatus, Now: wallClock,
		Lasting: func(err error) bool { e, ok := errors.AsType[*brokers.Error](err); return ok && e.NeedsPerson() },
	})
	c.params, err = c.member.Join(ctx, func(p *roster.Params) roster.Params { return roster.NewParams(p.Name, p.Slices, cfg.Window, seed) })
	if err != nil {
		return nil, wrongFleet(err)
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

	logCfg := brokers.DefaultLogConfig()
	logCfg.HeaderKey = fleet.HeaderKey
	c.kafka = brokers.NewLog(c.client.Client, logCfg)
	opt.Topics = consumers.Topics{Windows: c.client.Topic(brokers.Windows), Reports: c.client.Topic(brokers.Reports), Series: c.client.Topic(brokers.Series), State: c.client.Topic(brokers.State)}
	c.group = brokers.NewGroup(c.client.Client, c.kafka, brokers.GroupConfig{
		Name: c.client.Topic(cfg.Consume.Group), Topics: map[string]int{opt.Topics.Windows: c.params.Slices, opt.Topics.Reports: c.params.Slices, opt.Topics.Series: 1},
		Session: cfg.Consume.Session, Rebalance: cfg.Consume.Drain * 4 / 3,
	}, opt.Log)
	opt.Now = wallClock
	opt.ID, opt.Params, opt.Kafka, opt.Group, opt.Stores = c.id, c.params, c.kafka, c.group, c.stores
	opt.Limits = cfg.Flows.Limits()
	opt.Admission = window.AdmissionLimits{Hops: cfg.Flows.MaxHops, Flows: cfg.Flows.DailyFlows, Exporters: max(cfg.Exporters.Tracking.MaxExporters, 1<<16)}
	opt.Events, opt.Alerts = cfg.Events, cfg.Alerts
	opt.Cross = crossLimits(cfg)
	opt.Rows = kafkasink.HopRows
	opt.Slicer = window.NewSlicer(seed, c.params.Slices)
	opt.Shard = func() (*shard.State, error) {
		return collector.NewShard(&cfg.Analysis, collector.Options{Seed: seed, LoadNetwork: loadNetwork, LoadPlan: pintplan.ReadFile, Sites: cfg.Exporters.Sites, Ways: allowed, Log: opt.Log}, c.params.Slices)
	}
	opt.Expected, opt.Redraw = c.member.Expected, c.member.Redraw
	if c.Consumer, err = consumers.New(cfg.Consume, opt); err != nil {
		return nil, err
	}
	check, cancelCheck := context.WithTimeout(ctx, checkTopics)
	defer cancelCheck()
	if err := c.Check(check); err != nil {
		return nil, wrongInput(err)
	}
	network, err := pageMap(cfg)
	if err == nil && cfg.Web.Listen != "" {
		c.page, err = openPage(cfg.Web, web.Deps{Status: c.status, Ledger: c.Balances, Names: c.naming.Names, Warn: warner(c.log)}, network, c.registry(), c.NotReady, c.LeftOut)
	}
	if err != nil {
		return nil, err
	}
	if c.page != nil {
		c.AddLimited(c.page)
	}
	return c, nil
}

// crossLimits are those of what follows exporters and flows of a slice, with the settings that collectors have for theirs.
func crossLimits(cfg *config) *cross.Limits {
	l := cross.DefaultLimits()
	l.Window, l.MaxGap = cfg.Exporters.Tracking.Window, cfg.Exporters.Tracking.MaxGap
	l.Horizon = max(l.Horizon, 4*cfg.Window)
	l.Idle = max(l.Idle, 2*l.Horizon)
	return &l
}

// memberStatus is the consumer's status in the roster.
func (c *consumer) memberStatus(m *roster.Member) {
	for _, s := range c.stores {
		if !s.Alerts { // no report comes to those
			m.Stores = append(m.Stores, s.Name)
		}
	}
	if c.page != nil {
		m.Pages = []string{c.page.URL()}
	}
	m.Window, m.Parts = c.newest(), c.Accounts()
	m.Rebalances = c.group.Stats().Rebalances
	for _, a := range m.Parts {
		if a.Held {
			m.Lag += a.Lag
		}
	}
	for _, p := range append(c.problems(), c.LeftOut()...) {
		if len(m.Faults) < mostProblems {
			m.Faults = append(m.Faults, consumers.OneLine(p))
		}
	}
}

// newest is the label of the last window of which this consumer published anything.
func (c *consumer) newest() (label int64) {
	for _, p := range c.Partitions() {
		label = max(label, p.Label)
	}
	return max(label, 0)
}

// registry returns the metrics of the consumer, of its membership and of its log.
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

// consumeMetric is a metric from outside the engine of consumers.
type consumeMetric struct {
	collector.Metric
	value func(c *consumer) float64
}

var consumeMetrics = []consumeMetric{
	{collector.Metric{Name: "hopscope_consume_rebalances_total", Help: "Rebalances of partitions.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Rebalances) }},
	{collector.Metric{Name: "hopscope_consume_lost_total", Help: "Losses of all partitions, after a silence longer than a session.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Lost) }},
	{collector.Metric{Name: "hopscope_consume_refused_commits_total", Help: "Offsets that the group refused, since another consumer has the partition.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Refused) }},
	{collector.Metric{Name: "hopscope_consume_rebalance_seconds", Help: "Time of the last rebalance."},
		func(c *consumer) float64 { return c.group.Stats().TookOver.Seconds() }},
	{collector.Metric{Name: "hopscope_consume_kafka_errors_total", Help: "Calls of Kafka that were tried again.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.group.Stats().Errors + c.kafka.Stats().Errors) }},
	{collector.Metric{Name: "hopscope_consume_corrupt_total", Help: "Stretches of a log that cannot be read, passed over.", Kind: collector.Counter},
		func(c *consumer) float64 { return float64(c.kafka.Stats().Corrupt) }},
	{collector.Metric{Name: "hopscope_consume_clock_seconds", Help: "Least offset of the clock to the brokers'."},
		func(c *consumer) float64 { return c.member.Clock().Seconds() }},
}

// url returns the address of the page, or "".
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
		if err := c.member.Follow(services); err != nil {
			failed <- err
			cancel(err)
		}
	})
	kafka := c.client.Config()
	c.log.Info("consuming what a fleet publishes", "fleet", c.params.Name, "kafka", kafka.Target(), "group", c.client.Topic(c.cfg.Consume.Group), "slices", c.params.Slices, "window", c.params.Window.String(), "stores", len(c.stores), "url", c.url())
	defer c.supervised(ctx).Close()
	err := c.Consumer.Run(ctx)
	c.log.Info("stopping")
	stop()
	wg.Wait()
	last, cancelLast := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancelLast()
	if terr := c.member.Leave(last); terr != nil {
		c.log.Warn("the end of this consumer is not in the roster of the fleet", "error", terr.Error())
	}
	c.client.Close()
	close(failed)
	for late := range failed {
		err = errors.Join(err, late)
	}
	return err
}
