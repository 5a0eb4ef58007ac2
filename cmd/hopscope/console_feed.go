package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/ingest"
	logs "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

type logger = *slog.Logger

// How often a console looks, and how long it waits after an error.
const (
	rosterEvery  = time.Second
	leastWait    = 200 * time.Millisecond
	mostWait     = 5 * time.Second
	rebuildEvery = 2 * time.Second // older windows are made again at most so often
	rebuildTries = 3
	farAhead     = time.Hour        // of this machine's clock: no window of a fleet is
	refusedFor   = 10 * time.Minute // a refused record is told on the page so long
)

// Bounds of what a console reads of others. A fleet has less.
var (
	consoleLimits = inference.Limits{
		Hops: 1 << 20, Exporters: 1 << 20, Flows: 1 << 18, Paths: 1 << 18, Drops: 1 << 18, Faults: 1 << 18, Deviations: 1 << 18, Losses: 1 << 18,
		Numbers: 1 << 18, Arrivals: 1 << 18, // slices have none
	}
	rosterBounds = conn.TableBounds{Keys: 3 * fleet.MaxMembers, Value: fleet.MaxMember, Bytes: 256 << 20}
)

const (
	consoleValue  = 16 << 20 // bytes of a value when it is not compressed
	consoleWindow = 32 << 20 // bytes of the values of a window
)

// console reads the roster and the series of a fleet, and feeds the page with them. What it reads was written by others, and
// is refused record by record.
type console struct {
	client  *conn.Client
	log     logger
	page    *web.Server
	topic   string
	windows int // that the page keeps
	flows   int
	start   time.Time
	naming  inventory.Keeper

	mu       sync.Mutex
	roster   fleet.Roster
	listed   bool // the roster was read to its end
	caughtUp bool // the series were, once
	behind   uint64
	problems map[string]problem // by what was tried
	missing  []string           // topics
	last     struct {           // of the newest window
		end           int64
		reports       uint64
		missing, dead []string
		absent        int
	}
	counts consoleCounts
	beats  atomic.Uint64 // of the loop that reads the roster
}

// problem is an error that lasts.
type problem struct {
	text string
	told time.Time // when it was logged
}

type consoleCounts struct{ records, refused, windows, revisions, findings, gaps uint64 }

func newConsole(client *conn.Client, cfg *web.Config, log logger) *console {
	return &console{
		client: client, log: log, topic: client.Topic(conn.Series), windows: cfg.HistoryWindows, flows: cfg.MaxFlows, start: time.Now(),
		problems: map[string]problem{},
	}
}

// follow reads until ctx ends. No error ends it: what cannot be read now is tried again.
func (c *console) follow(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { c.followRoster(ctx) })
	wg.Go(func() { c.followSeries(ctx) })
	wg.Wait()
}

// sleep waits, and is false when ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// tell notes how an attempt went, and logs an error when it is new, or has lasted for a minute.
func (c *console) tell(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	old, had := c.problems[what]
	now := time.Now()
	log := false
	if err == nil {
		delete(c.problems, what)
	} else {
		p := problem{err.Error(), old.told}
		if log = !had || now.Sub(old.told) > time.Minute; log {
			p.told = now
		}
		c.problems[what] = p
	}
	c.mu.Unlock()
	switch {
	case log:
		c.log.Warn("cannot read "+what, "error", err.Error())
	case err == nil && had:
		c.log.Info("can read " + what + " again")
	}
}

// followRoster keeps the roster as it is in Kafka.
func (c *console) followRoster(ctx context.Context) {
	table := c.client.NewTable(c.client.Topic(conn.Roster), rosterBounds)
	for wait := leastWait; ; {
		changed, err := table.Refresh(ctx)
		c.tell(ctx, "roster", err)
		for _, key := range changed {
			value, _ := table.Get(key)
			c.mu.Lock()
			rerr := c.roster.Add(key, value)
			if rerr != nil {
				c.counts.refused++
			}
			c.mu.Unlock()
			if rerr != nil {
				c.refuse("roster", rerr)
			}
		}
		c.beats.Add(1)
		pause := rosterEvery
		if err != nil {
			c.lookForTopics(ctx)
			pause, wait = wait, min(2*wait, mostWait)
		} else {
			wait = leastWait
			c.mu.Lock()
			c.listed, c.missing = true, nil
			c.mu.Unlock()
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// lookForTopics finds out which topics the page needs and Kafka does not have.
func (c *console) lookForTopics(ctx context.Context) {
	needed := []string{c.client.Topic(conn.Roster), c.topic}
	m, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: needed})
	var missing []string
	if err == nil {
		there := map[string]bool{}
		for _, t := range m.Topics {
			there[t.Name] = t.Error == nil && len(t.Partitions) > 0
		}
		missing = slices.DeleteFunc(needed, func(name string) bool { return there[name] })
	}
	c.mu.Lock()
	c.missing = missing
	c.mu.Unlock()
}

// params are those of the fleet as the roster has them now, nil before it has.
func (c *console) params() *fleet.Params {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roster.Params()
}

// followSeries waits for a fleet, and shows its windows until it becomes another one.
func (c *console) followSeries(ctx context.Context) {
	for wait := leastWait; ctx.Err() == nil; {
		p := c.params()
		if p == nil {
			c.mu.Lock()
			c.caughtUp = c.listed // there is nothing to catch up with
			c.mu.Unlock()
			sleep(ctx, leastWait)
			continue
		}
		f, err := c.begin(ctx, p)
		c.tell(ctx, "series", c.client.Explain(err, conn.Read(c.topic)))
		if err != nil {
			sleep(ctx, wait)
			wait = min(2*wait, mostWait)
			continue
		}
		wait = leastWait
		f.run(ctx)
	}
}

// feed reads the series of one fleet, from a point in time on.
type feed struct {
	*console
	params    *fleet.Params
	lists     inference.Limits // of windows
	log       *logs.Log
	reader    ingest.LogReader
	assembler *fleet.Assembler
	codec     *fleet.Codec
	newest    *fleet.Document // of the newest window that has one; nil before the first
	whole     int64           // windows that end before may be without slices that were written before the reader began
	rebuilt   time.Time
	tries     map[int64]int // by label of a window that could not be made again
}

// begin goes back in the log as far as the page does.
func (c *console) begin(ctx context.Context, p *fleet.Params) (*feed, error) {
	f := &feed{
		console: c, params: p, log: logs.NewLog(c.client.Client, c.logConfig()), codec: fleet.NewCodec(consoleValue, consoleLimits), tries: map[int64]int{},
		lists: inference.Limits{Flows: c.flows, Paths: 4096, Drops: 4096, Faults: 4096},
	}
	window := int64(p.Window)
	back := min(int64(c.windows)+3, math.MaxInt64/2/window) * window
	from := time.Now().UnixNano() - back
	f.whole = from + 2*window
	var err error
	f.assembler, err = fleet.NewAssembler(fleet.AssemblerConfig{
		Slices: p.Slices, Window: window, Corrections: min(back, int64(2*time.Hour), window<<15), MaxBytes: consoleWindow, MaxValue: consoleValue, Limits: consoleLimits,
	})
	if err != nil {
		return nil, err
	}
	offset, err := f.log.OffsetAt(ctx, c.topic, 0, from)
	if err != nil {
		return nil, err
	}
	f.reader = f.log.Reader(c.topic, 0, offset)
	return f, nil
}

func (c *console) logConfig() logs.LogConfig {
	cfg := logs.DefaultLogConfig()
	cfg.HeaderKey, cfg.Timeout = fleet.HeaderKey, c.client.Config().Timeout
	return cfg
}

// run shows what is read, until ctx ends, the fleet has other parameters, or the topic was made anew.
func (f *feed) run(ctx context.Context) {
	for wait := leastWait; ctx.Err() == nil && f.same(); {
		messages, err := f.reader.Next(ctx)
		var gap *logs.GapError
		var corrupt *logs.CorruptError
		switch {
		case errors.As(err, &gap) || errors.As(err, &corrupt):
			f.console.log.Warn("a part of the series is not there", "error", err.Error())
			f.mu.Lock()
			f.counts.gaps++
			f.mu.Unlock()
			if gap != nil && gap.To < gap.From {
				return // what comes now has the offsets of what came before
			}
			continue
		case err != nil:
			f.tell(ctx, "series", f.client.Explain(err, conn.Read(f.topic)))
			sleep(ctx, wait)
			wait = min(2*wait, mostWait)
			continue
		}
		wait = leastWait
		f.tell(ctx, "series", nil)
		for i := range messages {
			f.take(ctx, &messages[i])
		}
		f.mu.Lock()
		f.behind = uint64(max(0, f.reader.High()-f.reader.Offset()))
		if f.behind == 0 {
			f.caughtUp = true
		}
		done := f.behind == 0
		f.mu.Unlock()
		if done {
			f.correct(ctx)
		}
	}
}

// same tells whether the fleet is the one that the feed began with.
func (f *feed) same() bool {
	p := f.console.params()
	return p != nil && p.Slices == f.params.Slices && p.Window == f.params.Window && p.Name == f.params.Name
}

// record makes a message one of the fleet's records, if it is one.
func record(m *ingest.Message) (fleet.Record, error) {
	h, err := fleet.ReadHead(m.Head)
	return fleet.Record{Offset: m.Offset, Head: h, Value: m.Value}, err
}

// take shows what a message says. What cannot be read is counted, and told once a minute.
func (f *feed) take(ctx context.Context, m *ingest.Message) {
	r, err := record(m)
	if ahead := time.Duration(r.Head.End - time.Now().UnixNano()); err == nil && ahead > farAhead+f.params.Window {
		// Behind such a window no other one would be shown.
		err = fmt.Errorf("the window to %s lies %s ahead", time.Unix(0, r.Head.End).UTC().Format(time.RFC3339), ahead.Round(time.Second))
	}
	if err == nil {
		var e fleet.Event
		e, err = f.assembler.Add(&r)
		for _, a := range e.Whole {
			f.show(ctx, a)
		}
		if err == nil && r.Head.Kind == fleet.Whole {
			err = f.found(ctx, &r)
		}
	}
	f.mu.Lock()
	f.counts.records++
	if err != nil {
		f.counts.refused++
	}
	f.mu.Unlock()
	if err != nil {
		f.console.refuse("series", fmt.Errorf("offset %d: %w", m.Offset, err))
	}
}

// refuse logs a record of a topic that was refused, at most one a minute.
func (c *console) refuse(topic string, err error) {
	what := "records of the " + topic
	c.mu.Lock()
	p := c.problems[what]
	log := time.Since(p.told) > time.Minute
	if log {
		c.problems[what] = problem{fmt.Sprintf("some %s are refused, such as this one: %v", what, err), time.Now()}
	}
	c.mu.Unlock()
	if log {
		c.log.Warn("a record of the "+topic+" is refused", "error", err.Error())
	}
}

// forget drops what has not been a problem for some time. What cannot be read is one until it can be.
func (c *console) forget() {
	for _, topic := range []string{"roster", "series"} {
		if p, ok := c.problems["records of the "+topic]; ok && time.Since(p.told) > refusedFor {
			delete(c.problems, "records of the "+topic)
		}
	}
}

// show hands a window to the page, in place of what the page has of it.
func (f *feed) show(ctx context.Context, a *fleet.Assembled) {
	defer f.assembler.Release(a)
	for _, b := range a.Bad {
		f.console.refuse("series", b)
	}
	if len(a.Absent) > 0 && a.End < f.whole {
		return // the reader began in the midst of it
	}
	w := a.Partial.Window(f.lists)
	w.Start, w.End = a.Start, a.End
	for i := range w.Hops { // as the window before said; its own document comes behind it
		w.Hops[i].Learning = f.newest.Learns(w.Hops[i].HopKey)
	}
	gone := append(slices.Clone(a.Missing), a.Dead...)
	slices.Sort(gone)
	gone = slices.Compact(gone)
	for _, i := range a.Absent {
		gone = append(gone, fmt.Sprintf("(slice %d)", i))
	}
	// The page refuses no window.
	_ = f.page.ReplaceWindow(ctx, sink.NewWindow(f.params.Name, &w, nil), gone)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.windows++
	if a.Revision > 0 {
		f.counts.revisions++
	}
	if a.End >= f.last.end {
		f.last.end, f.last.reports, f.last.missing, f.last.dead, f.last.absent = a.End, w.Reports, a.Missing, a.Dead, len(a.Absent)
	}
}

// found tells the page of the findings of a window.
func (f *feed) found(ctx context.Context, r *fleet.Record) error {
	if r.Head.Revision > 0 {
		return nil // findings are told once
	}
	if fleet.Sum(r.Value) != r.Head.Sum {
		return fleet.ErrSum
	}
	d, err := fleet.DecodeWhole(f.codec, r.Value)
	if err != nil {
		return err
	}
	if end := d.End.UnixNano(); f.newest == nil || end > f.newest.End.UnixNano() {
		f.newest = d
		f.page.Learning(end, d.Learns)
	}
	var list []inference.Finding
	for i := range d.Findings {
		found, ferr := d.Findings[i].Finding()
		if ferr != nil { // of a kind that this version does not know, perhaps
			err = errors.Join(err, ferr)
			continue
		}
		list = append(list, found)
	}
	_ = f.page.WriteWindow(ctx, sink.NewWindow(f.params.Name, &inference.Window{Start: r.Head.Start, End: r.Head.End}, list)) // as above
	f.mu.Lock()
	f.counts.findings += uint64(len(list))
	f.mu.Unlock()
	return err
}

// correct makes the windows again of which a slice was told once more, one at a time, and not too often.
func (f *feed) correct(ctx context.Context) {
	if time.Since(f.rebuilt) < rebuildEvery {
		return
	}
	for _, end := range f.assembler.Pending() {
		if f.tries[end] >= rebuildTries || end < f.last.end-int64(f.windows)*int64(f.params.Window) {
			continue
		}
		f.rebuilt = time.Now()
		a, err := f.rebuild(ctx, end)
		if err != nil {
			f.tries[end]++
			f.console.log.Warn("a window was corrected, and cannot be shown so", "window_end", time.Unix(0, end).UTC().Format(time.RFC3339), "error", err.Error())
			return
		}
		delete(f.tries, end)
		if a != nil {
			f.show(ctx, a)
		}
		return
	}
	if len(f.tries) > f.windows {
		clear(f.tries)
	}
}

func (f *feed) rebuild(ctx context.Context, end int64) (*fleet.Assembled, error) {
	again := f.assembler.Rebuild(end)
	if again == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := f.log.Reader(f.topic, 0, again.From())
	for r.Offset() < again.To() {
		messages, err := r.Next(ctx)
		if err != nil {
			return nil, err
		}
		for i := range messages {
			if rec, err := record(&messages[i]); err == nil {
				again.Add(&rec)
			}
		}
	}
	return again.Whole()
}
