package fleet

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// Topics are the names of the topics of a fleet. Reports may be empty where no report is sent one by one.
type Topics struct{ Windows, Reports, Series, State string }

// Options holds what a consumer needs beside its settings.
type Options struct {
	ID      string       // of this process, in logs and in what it writes
	Log     *slog.Logger // nil logs nothing
	Version string       // of the program; stores keep it
	Now     func() time.Time
	// Hurry, when it ends, ends the draining of a consumer that is stopping; nil never does.
	Hurry context.Context

	Params roster.Params
	Topics Topics
	Kafka  ingest.Log
	Group  ingest.Group

	Stores    []stores.Store // their spools are not used: Kafka has everything until they have it
	Limits    window.Limits  // of a window that is published
	Admission window.AdmissionLimits
	Events    events.Config

	// Slicer is that of the fleet, and Shard makes what counts the reports of one partition of reports. Both are needed where
	// Topics.Reports is not empty.
	Slicer window.Slicer
	Shard  func() (*shard.State, error)

	// Cross bounds what corrects exporters and flows that reach several collectors, for a slice; nil corrects nothing.
	Cross *cross.Limits
	// Expected returns the collectors in the roster. Several goroutines call it. With nil, only collectors that send
	// are expected.
	Expected func() []fleet.Expected
	// Rows makes rows of a merged slice that any reader understands, for topic series; nil makes nothing.
	Rows func(p *window.Partial, start, end int64, revision uint64) ([]byte, error)
	// Redraw notifies a collector that its run exists twice. It returns at once. nil notifies none.
	Redraw func(collector string, boot uint64)

	// Names returns the names of nodes; nil has none. Several goroutines call it.
	Names func() *names.Names
	// Alerts is the settings of alerts, for those of Stores that receive alerts.
	Alerts notify.Config
	// From, if it is not zero, has all windows that end after it written again.
	From time.Time
}

// Consumer is a member of the group that merges what the collectors of a fleet sent. It is used once.
type Consumer struct {
	cfg    Config
	opt    Options
	log    *slog.Logger
	boot   uint64
	limits window.Limits // of records that are read
	series *stores.Set
	// receivers of alerts get what follows from the findings of the whole fleet; alerting is nil without any.
	receivers *stores.Set
	alerting  *stores.Alerting
	rules     *stores.RulesFile // from which the detectors learn what operators accepted as normal
	ledger    *ledger.Ledger
	start     time.Time

	mu          sync.Mutex
	tenure      *tenure
	workers     []*worker // of the present generation
	status      map[partition]*shared[partitionStatus]
	began       map[partition]bool // those that were written again from Options.From
	generation  int
	last        windowStatus
	left        summary.LeftOut // by limits, in this run
	limited     []sink.Limited
	full        uint64            // reports that found no room in their window, in this run
	windowsFull uint64            // reports of windows that found no room among others, in this run
	loggedLeft  map[string]bool   // of these, what was logged
	redrawn     map[string]uint64 // the last boot of which a collector was notified

	published, slices, wholes, beats atomic.Uint64
	writeSeconds                     metrics.Durations
}

type partition struct {
	topic string
	n     int
}

// partitionStatus is the state of the work on a partition.
type partitionStatus struct {
	Topic     string // without the prefix
	Partition int
	held      bool // by this consumer, now
	Updated   time.Time

	Offset, lag int64 // of the next record, and how many there are from there on
	Label       int64 // of the last window that was published
	Open        int   // windows that have begun and did not end

	records, Bytes uint64 // read
	Closed         uint64 // windows that were published for the first time
	Late           uint64 // records that came behind the end of their window
	Missing        uint64 // collectors that a published window was without, added up over windows
	duplicates     uint64
	Conflicts      uint64
	Unknown        uint64 // records of a later version
	gateUnknown    uint64 // and of kinds that are not known
	refused        uint64 // records without a head that can be read
	gateRefused    uint64 // and others that are not right
	forced         uint64 // windows that were published although slices of them were not
	Gone           uint64 // records that were to be read and are gone
	readErrors     uint64
	Reread         uint64 // records that were read once more because there was no room to keep them
	heldBytes      int64  // of records of open windows
	restarts       uint64 // times that work began anew from a checkpoint

	// Reports over all of the life of a partition of windows. All were taken. Of these, some were handed to the
	// stores, confirmed by all stores as of the last checkpoint, or dropped before that, by stage.
	Taken, Delivered, confirmed uint64
	Dropped                     map[string]uint64
	Unread                      map[string]uint64 // beside these, in records that are not there, by collector
	recovered                   uint64            // as in books
	found                       int64             // when it was found that retention had removed records, ns since 1970
	Down                        uint64            // and, taken by no collector that lived to report them
	Generation                  int

	checkpoints uint64
	committed   int64 // offset of the last one
	stateBytes  int
	lastError   string
}

type windowStatus struct {
	label    int64
	reports  uint64
	missing  []string
	dead     []string
	revision uint64
}

// shared is a value that several goroutines change and read.
type shared[T any] struct {
	mu sync.Mutex
	v  T
}

func (s *shared[T]) change(f func(*T)) {
	s.mu.Lock()
	f(&s.v)
	s.mu.Unlock()
}

func (s *shared[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v
}

// limiter lets one through every ten seconds.
type limiter struct {
	mu   sync.Mutex
	last time.Time
}

func (l *limiter) allow(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := now.Sub(l.last); d >= 0 && d < 10*time.Second {
		return false
	}
	l.last = now
	return true
}

// New prepares a consumer, which takes over the stores. Nothing runs yet. An error closes them.
func New(cfg Config, opt Options) (*Consumer, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it never fails
	c := &Consumer{
		cfg: cfg, opt: opt, log: opt.Log, boot: binary.LittleEndian.Uint64(seed[:]), start: opt.Now(),
		// Of a record: no collector has more, and a value of more bytes is refused before.
		limits: window.Limits{
			Hops: 1 << 17, Exporters: 1 << 17, Flows: 1 << 17, Paths: 1 << 20, Drops: 1 << 20, Faults: 1 << 20, Numbers: 1 << 18, Arrivals: 1 << 20, Deviations: 1 << 18,
			Losses: 1 << 18,
		},
		writeSeconds: metrics.NewDurations(mWrite), status: map[partition]*shared[partitionStatus]{}, began: map[partition]bool{}, redrawn: map[string]uint64{}, loggedLeft: map[string]bool{},
	}
	var names []string
	for _, s := range opt.Stores {
		if !s.Alerts {
			names = append(names, s.Name)
		}
	}
	c.ledger = ledger.New(names...)
	if err := c.openStores(); err != nil {
		return nil, err
	}
	return c, nil
}

// retentionError is returned when a topic removes records that are still needed.
type retentionError struct {
	Topic      string
	Have, Need time.Duration
}

func (e *retentionError) Error() string {
	return fmt.Sprintf("topic %s keeps its records for %v, and corrections and checkpoints need %v: raise its retention.ms, or lower consume.corrections or consume.checkpoint", e.Topic, e.Have, e.Need)
}

// Check returns the errors of the topics that a consumer would otherwise notice too late. A failed check is no error,
// and is logged.
func (c *Consumer) Check(ctx context.Context) error {
	need := c.cfg.Needs(c.opt.Params.Window)
	var errs []error
	for _, topic := range []string{c.opt.Topics.Windows, c.opt.Topics.Series, c.opt.Topics.Reports} {
		if topic == "" {
			continue
		}
		have, err := c.opt.Kafka.Retention(ctx, topic)
		switch {
		case err != nil:
			c.log.Warn("the retention of a topic is not known", "topic", topic, "needed", need.String(), "error", err.Error())
		case have != 0 && have < need:
			errs = append(errs, &retentionError{topic, have, need})
		}
	}
	return errors.Join(errs...)
}

// Run consumes until ctx ends, then drains.
func (c *Consumer) Run(ctx context.Context) error {
	c.series.Start()
	c.receivers.Start()
	err := c.opt.Group.Run(ctx, c)
	drain, cancel := context.WithTimeout(context.Background(), c.cfg.Drain)
	defer cancel()
	if c.opt.Hurry != nil {
		defer context.AfterFunc(c.opt.Hurry, cancel)()
	}
	if cerr := c.series.Close(drain); cerr != nil {
		c.log.Warn("a store did not confirm everything before the end; the next consumer of the partitions writes it again", "error", cerr.Error())
	}
	if cerr := c.receivers.Close(drain); cerr != nil {
		c.log.Warn("a receiver of alerts did not confirm everything before the end", "error", cerr.Error())
	}
	return err
}

// Assigned implements [ingest.Member].
func (c *Consumer) Assigned(g *ingest.Generation) {
	t := &tenure{Generation: g}
	t.ctx, t.cancel = context.WithCancel(g.Lost)
	t.read, t.stop = context.WithCancel(t.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation, c.tenure, c.workers = g.ID, t, nil
	for _, topic := range slices.Sorted(maps.Keys(g.Partitions)) {
		kind := c.kind(topic)
		if kind == "" {
			continue
		}
		for _, n := range g.Partitions[topic] {
			key := partition{topic, n}
			st := c.status[key]
			if st == nil {
				st = &shared[partitionStatus]{v: partitionStatus{Topic: kind, Partition: n}}
				c.status[key] = st
			}
			st.change(func(s *partitionStatus) { s.held = true })
			w := &worker{
				tenure: t, c: c, topic: topic, kind: kind, partition: n, store: c.statePartition(kind, n), status: st, done: make(chan struct{}),
			}
			w.keep = &checkpoints{
				log: c.opt.Kafka, topic: c.opt.Topics.State, partition: w.store, name: c.opt.ID, boot: c.boot, codec: fleet.NewCodec(checkpointBytes, window.Limits{}),
			}
			c.workers = append(c.workers, w)
			go w.run()
		}
	}
}

// Revoke implements [ingest.Member].
func (c *Consumer) Revoke(ctx context.Context, g *ingest.Generation) {
	c.mu.Lock()
	t, workers := c.tenure, c.workers
	c.tenure, c.workers, c.generation = nil, nil, 0
	c.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, c.cfg.Drain)
	defer cancel()
	if c.opt.Hurry != nil {
		defer context.AfterFunc(c.opt.Hurry, cancel)()
	}
	t.limit = limit
	t.stop()
	for _, w := range workers {
		select {
		case <-w.done:
		case <-limit.Done():
		}
	}
	t.cancel() // what is not done by now is abandoned
	for _, w := range workers {
		<-w.done
	}
}

// kind is the name of a topic without the prefix, "" for one of another fleet.
func (c *Consumer) kind(topic string) string {
	switch topic {
	case c.opt.Topics.Windows:
		return fleet.Windows
	case c.opt.Topics.Series:
		return fleet.Series
	case c.opt.Topics.Reports:
		return fleet.RawReports
	}
	return ""
}

// statePartition is the partition of topic state that keeps the checkpoints of a partition.
func (c *Consumer) statePartition(kind string, n int) int {
	switch kind {
	case fleet.RawReports:
		return c.opt.Params.Slices + n
	case fleet.Series:
		return 2 * c.opt.Params.Slices
	}
	return n
}

func (c *Consumer) newTask(w *worker) (task, error) {
	switch w.kind {
	case fleet.Windows:
		return c.newSlice(w)
	case fleet.Series:
		return c.newOwner(w)
	case fleet.RawReports:
		return c.newRaw(w)
	}
	return nil, fmt.Errorf("topic %s has no tasks", w.topic)
}

// gate returns the rules by which windows of a partition close.
func (c *Consumer) gate(w *worker, reports bool) fleet.Options {
	return fleet.Options{
		Name: c.opt.ID, Slice: w.partition, Reports: reports, Window: int64(c.opt.Params.Window), Patience: c.cfg.Patience,
		Corrections: int64(c.cfg.Corrections), MaxOpen: c.cfg.MaxOpen, MaxAhead: maxAhead, MaxRecords: c.cfg.MaxRecords,
		MaxBytes: c.cfg.WindowBytes, MaxHeld: c.cfg.HeldBytes, Fetch: w.fetch, Limits: c.limits, Cross: c.opt.Cross,
	}
}

func (c *Consumer) expected() []fleet.Expected {
	if c.opt.Expected == nil {
		return nil
	}
	return c.opt.Expected()
}

// from reports whether a partition is to be read from Options.From on. It is when this consumer owns it for the first
// time.
func (c *Consumer) from(topic string, n int) bool {
	if c.opt.From.IsZero() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.began[partition{topic, n}]
}

func (c *Consumer) fromDone(topic string, n int) {
	c.mu.Lock()
	c.began[partition{topic, n}] = true
	c.mu.Unlock()
}

// offsetFrom returns the offset from which all records of the windows that end after Options.From are read. Collectors
// send the records of a window when it ends, and not long before.
func (c *Consumer) offsetFrom(ctx context.Context, topic string, n int) (int64, error) {
	before := time.Duration(2+c.cfg.Patience) * c.opt.Params.Window
	return c.opt.Kafka.OffsetAt(ctx, topic, n, c.opt.From.Add(-before).UnixNano())
}

// put hands points to all stores.
func (c *Consumer) put(ctx context.Context, b *sink.Batch) error {
	for _, q := range c.series.All() {
		if err := q.Put(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", q.Name(), err)
		}
	}
	return nil
}

// settled calls f once the outcome in all stores of everything put before is known.
func (c *Consumer) settled(f func(ok bool)) error {
	var mu sync.Mutex
	left, all := len(c.series.All()), true
	if left == 0 {
		f(true)
		return nil
	}
	for _, q := range c.series.All() {
		err := q.Settled(func(ok bool) {
			mu.Lock()
			all = all && ok
			left--
			last, result := left == 0, all
			mu.Unlock()
			if last {
				f(result)
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name(), err)
		}
	}
	return nil
}

// publish appends records to a partition.
func (c *Consumer) publish(ctx context.Context, topic string, n int, records []fleet.Out) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := c.opt.Kafka.Append(ctx, topic, n, messagesOf(records, c.opt.Now())...); err != nil {
		return err
	}
	c.published.Add(uint64(len(records)))
	return nil
}

// merged counts reports of a merged window: they are on their way to the stores.
func (c *Consumer) merged(reports uint64) {
	c.ledger.Receive(ledger.Window, reports)
	c.ledger.Close(reports)
}

// redraw notifies a collector once that a run of it exists twice.
func (c *Consumer) redraw(name string, boot uint64) {
	c.mu.Lock()
	notified := c.redrawn[name] == boot
	if len(c.redrawn) < fleet.MaxMembers {
		c.redrawn[name] = boot
	}
	c.mu.Unlock()
	if notified {
		return
	}
	c.log.Error("two runs of a collector have the same number, as when it was restored from a snapshot: records of the second one are refused, and it is asked to draw another number", "collector", name, "boot", boot)
	if c.opt.Redraw != nil {
		c.opt.Redraw(name, boot)
	}
}

// window notes the last window of the whole fleet.
func (c *Consumer) window(w *inference.Window, a *fleet.Assembled) {
	c.mu.Lock()
	before := c.last
	c.wholes.Add(1)
	c.last = windowStatus{a.End, w.Reports, a.Missing, a.Dead, a.Revision}
	c.mu.Unlock()
	if !slices.Equal(before.missing, a.Missing) {
		if len(a.Missing) > 0 {
			c.log.Warn("collectors are missing", "window", windowName(a.End), "missing", strings.Join(a.Missing, ", "))
		} else {
			c.log.Info("no collector is missing any more", "window", windowName(a.End))
		}
	}
}

// seen is the window as the detectors see it.
func (c *Consumer) seen(w *inference.Window, a *fleet.Assembled) *inference.Window {
	seen := *w
	seen.Unheard = a.Unheard
	return &seen
}

// names returns the present names of nodes.
func (c *Consumer) names() *names.Names {
	if c.opt.Names == nil {
		return nil
	}
	return c.opt.Names()
}

// Generation returns the generation of the group in which the consumer has partitions, 0 outside of one.
func (c *Consumer) Generation() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// Partitions returns the progress by partition: of those that the consumer owns, and of those that it owned.
func (c *Consumer) Partitions() []partitionStatus {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.status))
	c.mu.Unlock()
	out := make([]partitionStatus, 0, len(all))
	for _, s := range all {
		out = append(out, s.get())
	}
	slices.SortFunc(out, func(a, b partitionStatus) int {
		if d := strings.Compare(a.Topic, b.Topic); d != 0 {
			return d
		}
		return a.Partition - b.Partition
	})
	return out
}

// Accounts are the part that this consumer has in the ledger of the fleet.
func (c *Consumer) Accounts() (out []roster.Account) {
	names := []string{""}
	if len(c.series.All()) > 0 {
		names = names[:0]
		for _, q := range c.series.All() {
			names = append(names, q.Name())
		}
	}
	for _, s := range c.Partitions() {
		a := roster.Account{
			Topic: s.Topic, Partition: uint32(s.Partition), Generation: int64(s.Generation), Offset: s.Offset, Held: s.held, Window: max(0, s.Label),
			Open: uint32(s.Open), Lag: uint64(s.lag), Taken: s.Taken, Dropped: s.Dropped, Unread: s.Unread, Removed: s.found, Down: s.Down, Late: s.Late, Duplicates: s.duplicates, Conflicts: s.Conflicts,
		}
		if s.Topic == fleet.RawReports {
			a.Passed, a.Recovered = s.Delivered, s.recovered
		}
		if s.Topic == fleet.Windows {
			a.Stored = map[string]uint64{}
			for _, n := range names {
				a.Stored[n] = s.confirmed
				if n == "" {
					a.Stored[n] = s.Delivered
				}
			}
		}
		out = append(out, a)
	}
	return out
}

// runSummary is the result of a run.
type runSummary struct {
	Windows  uint64         `json:"windows"` // that this consumer put together as the owner of series
	Slices   uint64         `json:"slices"`  // and those of slices
	Reports  uint64         `json:"reports"` // in these
	Late     uint64         `json:"late_records"`
	Doubles  uint64         `json:"duplicate_records"`
	Conflict uint64         `json:"conflicting_records"`
	Refused  uint64         `json:"refused_records"`
	Unknown  uint64         `json:"unknown_records"`
	Ledger   []sink.Balance `json:"ledger"`
}

// Summary may be called at any time.
func (c *Consumer) Summary() runSummary {
	s := runSummary{Windows: c.wholes.Load(), Slices: c.slices.Load(), Ledger: c.Balances()}
	for _, b := range s.Ledger {
		s.Reports = b.Received
	}
	for _, p := range c.Partitions() {
		s.Late += p.Late
		s.Doubles += p.duplicates
		s.Conflict += p.Conflicts
		s.Refused += p.refused + p.gateRefused
		s.Unknown += p.Unknown + p.gateUnknown
	}
	return s
}

// Last returns the last window that this consumer put together: its label, 0 if there is none, its reports, and the missing
// collectors.
func (c *Consumer) Last() (label int64, reports uint64, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.label, c.last.reports, c.last.missing
}

// Beats counts the steps of all workers. It grows as long as one of them makes progress.
func (c *Consumer) Beats() uint64 { return c.beats.Load() }

// Balances returns the place of the reports that this process merged, by store: merged = written + in flight +
// dropped.
func (c *Consumer) Balances() []sink.Balance { return c.ledger.Snapshot() }

// NotReady returns in sentences why the consumer is not ready: it has no partitions yet, or is behind.
func (c *Consumer) NotReady() (problems []string) {
	if c.Generation() == 0 {
		return []string{"no member of the group of consumers yet: the brokers are out of reach, or partitions are being shared out"}
	}
	now := c.opt.Now()
	late := c.cfg.MaxLag + time.Duration(c.cfg.Patience+2)*c.opt.Params.Window
	for _, s := range c.Partitions() {
		switch {
		case !s.held:
		case s.Updated.IsZero():
			problems = append(problems, fmt.Sprintf("%s/%d: its state is being read", s.Topic, s.Partition))
		case s.lag > 0 && s.Label > 0 && now.Sub(time.Unix(0, s.Label)) > late:
			problems = append(problems, fmt.Sprintf("%s/%d: %d records behind; its last window ended %v ago", s.Topic, s.Partition, s.lag, now.Sub(time.Unix(0, s.Label)).Round(time.Second)))
		}
	}
	for _, q := range c.series.All() {
		if st := q.Stats(); st.Failing {
			problems = append(problems, fmt.Sprintf("%s does not write to %s: %s", q.Name(), q.Target, st.LastError))
		}
	}
	return append(problems, c.receiverProblems()...)
}
