package fleet

import (
	"errors"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
)

// leave counts what the owner of series left out of a window, from its totals before and after the window.
func (c *Consumer) leave(before, behind *summary.LeftOut) {
	c.mu.Lock()
	c.left.AddSince(behind, before)
	c.mu.Unlock()
	c.logLeftOut()
}

// logLeftOut logs each limit once, when it has begun to leave something out.
func (c *Consumer) logLeftOut() {
	for _, l := range c.limitsHit() {
		key := l.Setting + " " + l.What
		c.mu.Lock()
		logged := c.loggedLeft[key]
		c.loggedLeft[key] = logged || l.N > 0
		c.mu.Unlock()
		if l.N > 0 && !logged {
			c.log.Warn("left out by a limit", "what", inference.LeftOut([]inference.Limit{l})[0])
		}
	}
}

// countFull counts the reports of a record that found no room, and those that gave way to it.
func (c *Consumer) countFull(r *fleet.Record, kind fleet.EventKind, err error, evicted map[int64]uint64) {
	refused := kind == fleet.Refused && r.Head.Reports <= maxReports && (r.Head.Kind == fleet.Part || r.Head.Kind == fleet.Reports)
	if !refused && len(evicted) == 0 {
		return
	}
	full, windowsFull := uint64(0), uint64(0)
	switch {
	case !refused:
	case errors.Is(err, fleet.ErrFull):
		full = r.Head.Reports
	case errors.Is(err, fleet.ErrFuture):
		windowsFull = r.Head.Reports
	}
	for _, n := range evicted {
		windowsFull += n
	}
	c.leaveOut(full, windowsFull)
}

// leaveOut counts reports that found no room in their window, and reports of windows that found none among others.
func (c *Consumer) leaveOut(full, windowsFull uint64) {
	c.mu.Lock()
	first := full > 0 && c.full == 0 || windowsFull > 0 && c.windowsFull == 0
	c.full, c.windowsFull = c.full+full, c.windowsFull+windowsFull
	c.mu.Unlock()
	if first {
		c.logLeftOut()
	}
}

// limitsHit lists every limit that can leave something out of what this consumer merges, whether it did or not.
func (c *Consumer) limitsHit() []inference.Limit {
	c.mu.Lock()
	list := append(c.left.Limits(),
		inference.Limit{Setting: "consume.window_bytes", N: c.full, What: "reports of records found no room in their window"},
		inference.Limit{Setting: "consume.max_records and consume.max_open", N: c.windowsFull, What: "reports of windows were left out, because too many records or windows were open"})
	c.mu.Unlock()
	list = append(append(list, c.series.Limits(nil)...), c.receivers.Limits(nil)...)
	return append(list, inference.Limit{Setting: "alerts.max_open", N: c.alerting.Refused(), What: "findings sent no alert, because too many alerts are open"})
}

// AddLimited adds a writer with limits of its own, the page, so that they are in the metrics. It is called before Run.
func (c *Consumer) AddLimited(l sink.Limited) { c.limited = append(c.limited, l) }

// LeftOut returns a sentence for each limit that left something out in this run, with the setting to raise. The
// consumer stays ready all the same.
func (c *Consumer) LeftOut() []string { return inference.LeftOut(c.limitsHit()) }
