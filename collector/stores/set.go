// Package stores holds the outputs of series and alerts: the sections of stores in settings, and stores behind their queues. It
// makes alerts of findings, and keeps them over a restart.
package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/spool"
)

// Queue is a store behind its queue. It implements [sink.WindowWriter].
type Queue struct {
	*sink.Queue
	Store
	Encoder sink.WindowEncoder // nil for a store of points
	account sink.Account
	spool   *spool.Spool // nil without one
	log     *slog.Logger

	logged      string    // the last trouble that was logged
	loggedTime  time.Time // and when
	loggedDrops uint64

	loggedAside     uint64
	loggedAsideTime time.Time

	loggedRefused uint64
	refusing      bool
	refusingTime  time.Time // when that was logged
	loggedUnkept  uint64

	loggedSpool     uint64
	loggedSpoolTime time.Time
}

// Set is stores that are opened and closed together.
type Set struct {
	queues  []*Queue
	reports []sink.ReportWriter
	log     *slog.Logger
}

// SetOptions holds the options that the stores of a set share.
type SetOptions struct {
	Full    sink.Policy // of a queue that finds no room
	Ledger  *ledger.Ledger
	Write   metrics.Durations // of writes
	Reports []sink.ReportWriter
	Log     *slog.Logger
}

// NewSet puts queues and spools before stores. Nothing is written yet. An error closes them all.
func NewSet(list []Store, opt SetOptions) (*Set, error) {
	set := &Set{reports: opt.Reports, log: opt.Log}
	for i, s := range list {
		q := &Queue{Store: s, account: opt.Ledger.Account(s.Name), log: opt.Log}
		o := sink.QueueOptions{Policy: opt.Full, Account: q.account, Target: s.Target, Observe: opt.Write.Observer(s.Name)}
		if s.Spool != nil {
			var err error
			if q.spool, err = spool.Open(*s.Spool); err != nil {
				return nil, errors.Join(named(s.Name, err), closeWriters(list[i:]), set.Close(ended()))
			}
			o.Spool, o.Refused = q.spool, sink.OpenRefused(s.refusedDir(), s.RefusedBytes)
		}
		q.Queue = sink.NewQueue(s.Writer, s.Queue, o)
		set.queues = append(set.queues, q)
	}
	return set, nil
}

// named puts the name of a store before an error that does not begin with it.
func named(name string, err error) error {
	if strings.HasPrefix(err.Error(), name+":") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// All are the stores of the set, in their order.
func (s *Set) All() []*Queue {
	if s == nil {
		return nil
	}
	return s.queues
}

// Receivers are those that get alerts and no windows.
func (s *Set) Receivers() (list []*Queue) {
	for _, q := range s.All() {
		if q.Alerts {
			list = append(list, q)
		}
	}
	return list
}

// Start lets the stores write.
func (s *Set) Start() {
	for _, r := range s.reports {
		r.Start()
	}
	for _, q := range s.queues {
		q.logSpool()
		if q.spool != nil { // before the queue starts to drain it
			if st := q.spool.Stats(); st.Reports > 0 {
				s.log.Info("an earlier run left windows in the spool", "sink", q.Name(), "reports", st.Reports)
			}
		}
		q.Start()
	}
}

// Discard closes stores to which nothing was written.
func (s *Set) Discard() {
	if s != nil {
		_ = s.Close(ended())
	}
}

// Close drains all stores and streams of reports at the same time, until ctx ends. What is lost by that is an error.
func (s *Set) Close(ctx context.Context) (err error) {
	before := make([]uint64, len(s.queues))
	for i, q := range s.queues {
		before[i] = q.Stats().PointsDropped
	}
	var closing []func() error
	for _, q := range s.queues {
		closing = append(closing, func() error { return q.Close(ctx) })
	}
	for _, r := range s.reports {
		closing = append(closing, func() error { return r.Close(ctx) })
	}
	err = together(closing)
	for i, q := range s.queues {
		q.logSpool()
		st := q.Stats()
		if lost := st.PointsDropped - before[i]; lost > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d points were lost, because the store did not take them before the end: %s", q.Name(), lost, cmp.Or(st.LastError, "there was no time left")))
		}
		if st.Spool != nil && st.Spool.Reports > 0 {
			why := "there was no time left"
			if st.Failing {
				why = st.LastError
			}
			s.log.Warn("left in the spool for the next run", "sink", q.Name(), "reports", st.Spool.Reports, "error", why)
		}
	}
	return err
}

// Flush waits until all stores have everything.
func (s *Set) Flush(ctx context.Context) error {
	var flushing []func() error
	for _, q := range s.queues {
		flushing = append(flushing, func() error {
			if err := q.Flush(ctx); err != nil {
				return named(q.Name(), err)
			}
			return nil
		})
	}
	return together(flushing)
}

// together calls functions at the same time, and joins their errors.
func together(list []func() error) (err error) {
	errs := make(chan error, len(list))
	for _, f := range list {
		go func() { errs <- f() }()
	}
	for range list {
		err = errors.Join(err, <-errs)
	}
	return err
}

// Name implements [sink.WindowWriter].
func (q *Queue) Name() string { return q.Store.Name }

// WriteWindow puts the points of the window into the queue.
func (q *Queue) WriteWindow(ctx context.Context, w *sink.Window) error {
	err := q.Put(ctx, w.Batch())
	q.logTrouble()
	return err
}

// Filled returns how far the spool has been filled. The store has one.
func (q *Queue) Filled() uint64 { return q.spool.End() }

// Alert hands alerts to the receivers of the set.
func (s *Set) Alert(ctx context.Context, alerts []notify.Alert) {
	for _, q := range s.Receivers() {
		if b := BatchFor(alerts, q.Stats().Failing); len(b.Points) > 0 {
			if err := q.Put(ctx, b); err != nil {
				s.log.Error("alerts not accepted", "sink", q.Name(), "error", err.Error())
			}
		}
		q.logTrouble()
	}
}

// BatchFor is the batch for a receiver. One that is away gets no signs of life meanwhile: they would be old when it is back.
func BatchFor(alerts []notify.Alert, away bool) *sink.Batch {
	if !away {
		return notify.Batch(alerts)
	}
	var news []notify.Alert
	for _, a := range alerts {
		if a.Status != notify.Open && a.Status != notify.Heartbeat {
			news = append(news, a)
		}
	}
	return notify.Batch(news)
}

// WritePartial puts a store's records of a window. Each report of the window is in one of them.
func (q *Queue) WritePartial(ctx context.Context, w *sink.Window) (err error) {
	records, rest := q.Encoder.EncodeWindow(w), w.Reports
	for i := range records {
		records[i].Reports = min(records[i].Reports, rest)
		if rest -= records[i].Reports; i == len(records)-1 {
			records[i].Reports += rest
		}
	}
	if len(records) == 0 {
		q.account.Move(sink.InMemory, sink.DroppedEncoding, rest, 0)
	}
	for _, e := range records {
		if perr := q.PutEncoded(ctx, e); err == nil {
			err = perr
		}
	}
	q.logTrouble()
	return err
}

// logTrouble logs the problem of the sink, once, and again every ten minutes as long as it lasts.
func (q *Queue) logTrouble() {
	st := q.Stats()
	trouble := q.Problem()
	switch {
	case trouble == "" && q.logged != "" && !st.Failing:
		q.log.Info("writing again", "sink", q.Name())
		q.logged = ""
	case st.Failing && (q.logged == "" || time.Since(q.loggedTime) > 10*time.Minute):
		q.logged, q.loggedTime = st.LastError, time.Now()
		level := q.log.Warn
		if st.Config {
			level = q.log.Error
		}
		level("cannot write, trying again", "sink", q.Name(), "target", q.Target, "error", st.LastError)
	}
	if st.PointsDropped > q.loggedDrops {
		q.log.Error("points lost", "sink", q.Name(), "count", st.PointsDropped-q.loggedDrops, "error", st.LastError)
		q.loggedDrops = st.PointsDropped
	}
	q.logSpool()
	q.logAside(&st.Aside)
	q.logRefused(&st)
	if sp := st.Spool; sp != nil {
		// A record that the disk refused waits in memory; evicted and damaged ones are gone.
		trouble := sp.RefusedRecords + sp.EvictedReports + sp.DamagedReports
		if trouble > q.loggedSpool && (q.loggedSpool == 0 || time.Since(q.loggedSpoolTime) > time.Minute) {
			q.log.Error("trouble with the spool: free some disk, or raise spool.max_bytes", "sink", q.Name(), "bytes", sp.Bytes,
				"refused_by_disk", sp.RefusedRecords, "reports_evicted", sp.EvictedReports, "reports_damaged", sp.DamagedReports, "error", sp.LastError)
			q.loggedSpool, q.loggedSpoolTime = trouble, time.Now()
		}
	}
}

// logSpool logs what the spool found in its directory and what the disk did to it.
func (q *Queue) logSpool() {
	if q.spool == nil {
		return
	}
	for _, e := range q.spool.Events() {
		level := q.log.Warn
		if e.Records > 0 {
			level = q.log.Error
		}
		level("spool: "+e.Message, "sink", q.Name(), "kind", e.Kind, "segment", e.Segment, "offset", e.Offset, "bytes", e.Bytes,
			"records_gone", e.Records, "reports_gone", e.Lost.Reports, "points_gone", e.Lost.Points)
	}
}

// logAside logs that something was set aside, and again every ten minutes as long as more is.
func (q *Queue) logAside(a *sink.Aside) {
	if a.Total > q.loggedAside && (q.loggedAside == 0 || time.Since(q.loggedAsideTime) > 10*time.Minute) {
		q.loggedAside, q.loggedAsideTime = a.Total, time.Now()
		q.log.Warn("points for which the store fails are set aside; others are written", "sink", q.Name(), "target", q.Target, "points", a.Points, "error", a.Error)
	}
}

// logRefused logs points that the store refused: the first, and then every minute as long as there are more.
func (q *Queue) logRefused(st *sink.QueueStats) {
	if n := st.PointsRejected - q.loggedRefused; n > 0 && (!q.refusing || time.Since(q.refusingTime) > time.Minute) {
		q.refusing, q.refusingTime, q.loggedRefused = true, time.Now(), st.PointsRejected
		q.log.Error("the store refuses points", "sink", q.Name(), "target", q.Target, "points", n, "reason", st.LastRefusal.Reason, "kept_in", q.refusedDir())
	}
	if q.refusing && !st.Rejecting {
		q.refusing = false
		q.log.Info("the store refuses no more points", "sink", q.Name())
	}
	if r := st.Refused; r != nil && r.EvictedPoints+r.LostPoints > q.loggedUnkept {
		q.log.Error("refused points are not kept", "sink", q.Name(), "evicted", r.EvictedPoints, "not_written", r.LostPoints, "error", r.LastError)
		q.loggedUnkept = r.EvictedPoints + r.LostPoints
	}
}

// Problem returns why the sink is not ready, or "". A store that is away is no problem as long as its spool has room.
func (q *Queue) Problem() string {
	st := q.Stats()
	switch {
	case st.Failing && st.Config:
		return st.LastError
	case st.Failing && st.Spool == nil:
		return "not writing, and there is no spool: " + st.LastError
	case st.Aside.Pieces > 0:
		return fmt.Sprintf("%d points are set aside since %s, which the store fails for while it takes others; they are tried again: %s",
			st.Aside.Points, st.Aside.Since.UTC().Format(time.TimeOnly), st.Aside.Error)
	case st.Rejecting:
		return q.refusal(&st)
	case st.Evicting:
		return fmt.Sprintf("the spool is full, and its oldest %s are lost (%d %s so far): raise spool.max_bytes, or mend the store: %s",
			q.holds(), q.evicted(st.Spool), q.counts(), cmp.Or(st.LastError, "it is too slow"))
	case st.Dropping:
		return fmt.Sprintf("the queue is full, and the oldest %s are lost (%d points so far): enable the spool, raise queue.max_bytes, or mend the store: %s",
			q.holds(), st.PointsDropped, cmp.Or(st.LastError, "it is too slow"))
	}
	return ""
}

// holds returns what the store receives.
func (q *Queue) holds() string {
	if q.Alerts {
		return "alerts"
	}
	return "windows"
}

// counts and evicted are the unit of the queue, and how many of it the spool lost. A receiver of alerts gets no
// reports.
func (q *Queue) counts() string {
	if q.Alerts {
		return "points"
	}
	return "reports"
}

func (q *Queue) evicted(st *spool.Stats) uint64 {
	if q.Alerts {
		return st.EvictedPoints
	}
	return st.EvictedReports
}

// refusal returns a sentence about the refused points of the store, with the reason and their place.
func (q *Queue) refusal(st *sink.QueueStats) string {
	last := &st.LastRefusal
	where := "without a spool they are lost"
	if dir := q.refusedDir(); dir != "" {
		where = "they are kept: hopscope spool list " + dir
	}
	return fmt.Sprintf("the store refused %d of %d points at %s (%d so far): %s; %s", last.Points, last.Of,
		last.Time.UTC().Format(time.TimeOnly), st.PointsRejected, last.Reason, where)
}
