package web

import (
	"math"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// exporterCell is one exporter in one window.
type exporterCell struct {
	seen                  bool
	reports, malformed    uint32
	lost                  int32
	duplicated, reordered uint32
	late, down            uint32
	restarts              uint32
}

type exporterSeries struct {
	inference.ExporterKey
	last   uint64 // number of the last window that named it
	active uint64 // number of the last window with a report
	at     int64  // end of that window, ms
	cells  []exporterCell
	ask.ExporterTotals
}

func (e *exporterSeries) lastSeen() uint64 { return e.last }

func (h *history) addExporter(n uint64, s *inference.ExporterStats) {
	e, ok := h.exporters.open(s.ExporterKey, n, 1, func() *exporterSeries {
		return &exporterSeries{ExporterKey: s.ExporterKey, cells: make([]exporterCell, h.cap)}
	})
	if !ok {
		return
	}
	e.last = max(e.last, n)
	c := &e.cells[h.slot(n)]
	e.sum(c, -1) // the same window again replaces itself
	*c = exporterCell{
		seen: true, reports: count32(s.Reports), malformed: count32(s.Malformed), lost: int32(min(max(s.Lost, math.MinInt32), math.MaxInt32)),
		duplicated: count32(s.Duplicated), reordered: count32(s.Reordered), restarts: count32(s.Restarts),
		late: count32(s.Late), down: count32(s.Down),
	}
	if n == e.last {
		e.Provisional = int64(count32(s.Provisional))
	}
	e.sum(c, 1)
	if c.reports > 0 && n >= e.active {
		e.active, e.at = n, h.ms(n)
	}
}

// count32 is n, or the largest number of 32 bits where n is larger.
func count32(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

func (e *exporterSeries) sum(c *exporterCell, sign int64) {
	e.Reports += sign * int64(c.reports)
	e.Lost += sign * int64(c.lost)
	e.Duplicated += sign * int64(c.duplicated)
	e.Reordered += sign * int64(c.reordered)
	e.Late += sign * int64(c.late)
	e.Down += sign * int64(c.down)
	e.Restarts += sign * int64(c.restarts)
	e.Malformed += sign * int64(c.malformed)
}

// idle reports whether an exporter has not reported for some windows. Some report only when something happens.
func (h *history) idle(e *exporterSeries) bool { return h.newest-e.active >= idleWindows }
