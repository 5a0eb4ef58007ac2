package console

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

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/sink"
)

// How often a console looks, and how long it waits after an error.
const (
	rosterEvery  = time.Second
	leastWait    = 200 * time.Millisecond
	rebuildEvery = 2 * time.Second // older windows are made again at most so often
	rebuildTries = 3
	farAhead     = time.Hour        // of this machine's clock: no window of a fleet is
	refusedFor   = 10 * time.Minute // a refused record is on the page so long
)

// limits bound what a console reads of a record. A fleet has less.
var limits = window.Limits{
	Hops: 1 << 20, Exporters: 1 << 20, Flows: 1 << 18, Paths: 1 << 18, Drops: 1 << 18, Faults: 1 << 18, Deviations: 1 << 18, Losses: 1 << 18,
	Numbers: 1 << 18, Arrivals: 1 << 18, // slices have none
}

const (
	maxValue  = 16 << 20 // bytes of a value when it is not compressed
	maxWindow = 32 << 20 // bytes of the values of a window
)

// Table is the roster of a fleet: its last value of each key.
type Table interface {
	Refresh(ctx context.Context) (changed []string, err error)
	Get(key string) (value []byte, ok bool)
}

// Page shows windows and findings.
type Page interface {
	ReplaceWindow(ctx context.Context, w *sink.Window, missing []string) error
	WriteWindow(ctx context.Context, w *sink.Window) error
	Learning(end int64, learns func(inference.HopKey) bool)
}

// Skipped is an error after which a reader of a log continues. The offsets from from to to are not read. If to is
// lower, the log ends before from.
type Skipped interface {
	error
	Skipped() (from, to int64)
}

// Options are the dependencies of a console.
type Options struct {
	Log     *slog.Logger
	Roster  Table
	Series  ingest.Log
	Topic   string                             // of the series
	Missing func(ctx context.Context) []string // the topics that the broker does not have
	Explain func(err error) error              // adds the remedy to an error of reading the series
	Windows int                                // that the page keeps
	Flows   int                                // of a window, on the page
}

// Console reads the roster and the series of a fleet, and feeds a page with them. What it reads was written by others: it
// is checked record by record, and each record can be refused.
type Console struct {
	opt   Options
	log   *slog.Logger
	page  Page
	start time.Time

	mu       sync.Mutex
	roster   roster.Roster
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
	counts counts
	beats  atomic.Uint64 // of the loop that reads the roster
}

// problem is an error that lasts.
type problem struct {
	text   string
	logged time.Time
}

type counts struct{ records, refused, windows, revisions, findings, gaps uint64 }

// New makes a console, which reads nothing yet.
func New(opt Options) *Console {
	return &Console{opt: opt, log: opt.Log, start: time.Now(), problems: map[string]problem{}}
}

// Beats counts the rounds of the loop that reads the roster. One takes no longer than MostWait and the wait for a broker.
func (c *Console) Beats() uint64 { return c.beats.Load() }

// MostWait is the longest pause between two rounds.
const MostWait = 5 * time.Second

// backoff is how a reader of a fleet waits after errors.
var backoff = retry.Backoff{Min: leastWait, Max: MostWait}

// Run reads until ctx ends, and feeds the page. No error ends it: what cannot be read now is tried again.
func (c *Console) Run(ctx context.Context, page Page) {
	c.mu.Lock()
	c.page = page
	c.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { c.followRoster(ctx) })
	wg.Go(func() { c.followSeries(ctx) })
	wg.Wait()
}

// note keeps how an attempt went, and logs an error when it is new, or has lasted for a minute.
func (c *Console) note(ctx context.Context, what string, err error) {
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
		p := problem{err.Error(), old.logged}
		if log = !had || now.Sub(old.logged) > time.Minute; log {
			p.logged = now
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
func (c *Console) followRoster(ctx context.Context) {
	for wait := backoff; ; {
		changed, err := c.opt.Roster.Refresh(ctx)
		c.note(ctx, "roster", err)
		for _, key := range changed {
			value, _ := c.opt.Roster.Get(key)
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
			missing := c.opt.Missing(ctx)
			c.mu.Lock()
			c.missing = missing
			c.mu.Unlock()
			pause = wait.Next()
		} else {
			wait.Reset()
			c.mu.Lock()
			c.listed, c.missing = true, nil
			c.mu.Unlock()
		}
		if !retry.Sleep(ctx, pause) {
			return
		}
	}
}

// params are those of the fleet as the roster has them now, nil before it has.
func (c *Console) params() *roster.Params {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roster.Params()
}

// followSeries waits for a fleet, and shows its windows until it becomes another one.
func (c *Console) followSeries(ctx context.Context) {
	for wait := backoff; ctx.Err() == nil; {
		p := c.params()
		if p == nil {
			c.mu.Lock()
			c.caughtUp = c.listed // there is nothing to catch up with
			c.mu.Unlock()
			retry.Sleep(ctx, leastWait)
			continue
		}
		f, err := c.begin(ctx, p)
		c.note(ctx, "series", c.explain(err))
		if err != nil {
			wait.Sleep(ctx)
			continue
		}
		wait.Reset()
		f.run(ctx)
	}
}

// feed reads the series of one fleet, from a point in time on.
type feed struct {
	*Console
	params    *roster.Params
	lists     window.Limits // of windows
	reader    ingest.LogReader
	assembler *fleet.Assembler
	codec     *fleet.Codec
	newest    *fleet.Document // of the newest window that has one; nil before the first
	whole     int64           // windows that end before may be without slices that were written before the reader began
	rebuilt   time.Time
	tries     map[int64]int // by label of a window that could not be made again
}

// begin goes back in the log as far as the page does.
func (c *Console) begin(ctx context.Context, p *roster.Params) (*feed, error) {
	f := &feed{
		Console: c, params: p, codec: fleet.NewCodec(maxValue, limits), tries: map[int64]int{},
		lists: window.Limits{Flows: c.opt.Flows, Paths: 4096, Drops: 4096, Faults: 4096},
	}
	window := int64(p.Window)
	back := min(int64(c.opt.Windows)+3, math.MaxInt64/2/window) * window
	from := time.Now().UnixNano() - back
	f.whole = from + 2*window
	var err error
	f.assembler, err = fleet.NewAssembler(fleet.Options{
		Slices: p.Slices, Window: window, Corrections: min(back, int64(2*time.Hour), window<<15), MaxBytes: maxWindow, MaxValue: maxValue, Limits: limits,
	})
	if err != nil {
		return nil, err
	}
	offset, err := c.opt.Series.OffsetAt(ctx, c.opt.Topic, 0, from)
	if err != nil {
		return nil, err
	}
	f.reader = c.opt.Series.Reader(c.opt.Topic, 0, offset)
	return f, nil
}

func (c *Console) explain(err error) error {
	if err == nil {
		return nil
	}
	return c.opt.Explain(err)
}

// run shows the messages it reads, until ctx ends, the fleet has other parameters, or the topic was created anew.
func (f *feed) run(ctx context.Context) {
	for wait := backoff; ctx.Err() == nil && f.same(); {
		messages, err := f.reader.Next(ctx)
		var skipped Skipped
		switch {
		case errors.As(err, &skipped):
			f.Console.log.Warn("a part of the series is missing", "error", err.Error())
			f.mu.Lock()
			f.counts.gaps++
			f.mu.Unlock()
			if from, to := skipped.Skipped(); to < from {
				return // what comes now has the offsets of what came before
			}
			continue
		case err != nil:
			f.note(ctx, "series", f.explain(err))
			wait.Sleep(ctx)
			continue
		}
		wait.Reset()
		f.note(ctx, "series", nil)
		for i := range messages {
			f.apply(ctx, &messages[i])
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

// same reports whether the fleet is the one that the feed began with.
func (f *feed) same() bool {
	p := f.Console.params()
	return p != nil && p.Slices == f.params.Slices && p.Window == f.params.Window && p.Name == f.params.Name
}

// record makes a message one of the fleet's records, if it is one.
func record(m *ingest.Message) (fleet.Record, error) {
	h, err := fleet.ReadHead(m.Head)
	return fleet.Record{Offset: m.Offset, Head: h, Value: m.Value}, err
}

// apply shows the content of a message. Unreadable messages are counted, and logged once a minute.
func (f *feed) apply(ctx context.Context, m *ingest.Message) {
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
		f.Console.refuse("series", fmt.Errorf("offset %d: %w", m.Offset, err))
	}
}

// refuse logs a record of a topic that was refused, at most one a minute.
func (c *Console) refuse(topic string, err error) {
	what := "records of the " + topic
	c.mu.Lock()
	p := c.problems[what]
	log := time.Since(p.logged) > time.Minute
	if log {
		c.problems[what] = problem{fmt.Sprintf("some %s are refused, such as this one: %v", what, err), time.Now()}
	}
	c.mu.Unlock()
	if log {
		c.log.Warn("a record of the "+topic+" is refused", "error", err.Error())
	}
}

// forget drops what has not been a problem for some time. What cannot be read is one until it can be.
func (c *Console) forget() {
	for _, topic := range []string{"roster", "series"} {
		if p, ok := c.problems["records of the "+topic]; ok && time.Since(p.logged) > refusedFor {
			delete(c.problems, "records of the "+topic)
		}
	}
}

// show hands a window to the page, in place of what the page has of it.
func (f *feed) show(ctx context.Context, a *fleet.Assembled) {
	defer f.assembler.Release(a)
	for _, b := range a.Bad {
		f.Console.refuse("series", b)
	}
	if len(a.Absent) > 0 && a.End < f.whole {
		return // the reader began in the midst of it
	}
	w := a.Partial.Window(f.lists)
	w.Start, w.End = a.Start, a.End
	for i := range w.Hops { // as in the window before; the window's own document follows
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

// found hands the findings of a window to the page.
func (f *feed) found(ctx context.Context, r *fleet.Record) error {
	d, list, err := readFindings(f.codec, r)
	if d == nil {
		return err
	}
	if end := d.End.UnixNano(); f.newest == nil || end > f.newest.End.UnixNano() {
		f.newest = d
		f.page.Learning(end, d.Learns)
	}
	_ = f.page.WriteWindow(ctx, sink.NewWindow(f.params.Name, &inference.Window{Start: r.Head.Start, End: r.Head.End}, list)) // as above
	f.mu.Lock()
	f.counts.findings += uint64(len(list))
	f.mu.Unlock()
	return err
}

// correct rebuilds the windows of which a slice was published once more, one at a time, and not too often.
func (f *feed) correct(ctx context.Context) {
	if time.Since(f.rebuilt) < rebuildEvery {
		return
	}
	for _, end := range f.assembler.Pending() {
		if f.tries[end] >= rebuildTries || end < f.last.end-int64(f.opt.Windows)*int64(f.params.Window) {
			continue
		}
		f.rebuilt = time.Now()
		a, err := f.rebuild(ctx, end)
		if err != nil {
			f.tries[end]++
			f.Console.log.Warn("a corrected window cannot be shown", "window_end", time.Unix(0, end).UTC().Format(time.RFC3339), "error", err.Error())
			return
		}
		delete(f.tries, end)
		if a != nil {
			f.show(ctx, a)
		}
		return
	}
	if len(f.tries) > f.opt.Windows {
		clear(f.tries)
	}
}

func (f *feed) rebuild(ctx context.Context, end int64) (*fleet.Assembled, error) {
	rebuilt := f.assembler.Rebuild(end)
	if rebuilt == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := f.opt.Series.Reader(f.opt.Topic, 0, rebuilt.From())
	for r.Offset() < rebuilt.To() {
		messages, err := r.Next(ctx)
		if err != nil {
			return nil, err
		}
		for i := range messages {
			if rec, err := record(&messages[i]); err == nil {
				rebuilt.Add(&rec)
			}
		}
	}
	return rebuilt.Whole()
}
