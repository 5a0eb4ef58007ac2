package web

import "github.com/hopscope/hopscope/sink"

type exporterKey struct{ address, node, hwID string }

// exporterCell is one exporter in one window.
type exporterCell struct {
	seen                  bool
	reports, malformed    uint32
	lost                  int32
	duplicated, reordered uint32
	restarts              uint32
}

// exporterTotals are sums since the exporter was first seen. Lost can go down when late reports fill a gap.
type exporterTotals struct {
	Reports    int64 `json:"reports"`
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Reordered  int64 `json:"reordered"`
	Restarts   int64 `json:"restarts"`
	Malformed  int64 `json:"malformed"`
}

type exporterSeries struct {
	exporterKey
	last   uint64 // number of the last window with a point
	active uint64 // number of the last window with a report
	at     int64  // end of that window, ms
	cells  []exporterCell
	exporterTotals
}

func (e *exporterSeries) lastSeen() uint64 { return e.last }

func (h *history) addExporter(n uint64, p *sink.Point) {
	k := exporterKey{tag(p, "address"), tag(p, "node"), tag(p, "hw_id")}
	if !validName(k.address) || len(k.node) > maxName || len(k.hwID) > maxName {
		h.invalid++
		return
	}
	e, ok := h.exporters.get(k)
	if !ok {
		if e, ok = h.exporters.put(k, n, func() *exporterSeries {
			return &exporterSeries{exporterKey: k, cells: make([]exporterCell, h.cap)}
		}); !ok {
			return
		}
	}
	e.last = max(e.last, n)
	c := &e.cells[h.slot(n)]
	e.sum(c, -1) // the same point again replaces itself
	*c = exporterCell{seen: true}
	for i := range p.Fields {
		v, ok := number(&p.Fields[i])
		if !ok {
			continue
		}
		unsigned := uint32(min(max(v, 0), 1<<32-1))
		switch p.Fields[i].Key {
		case "reports":
			c.reports = unsigned
		case "lost":
			c.lost = int32(min(max(v, -1<<31), 1<<31-1))
		case "duplicated":
			c.duplicated = unsigned
		case "reordered":
			c.reordered = unsigned
		case "restarts":
			c.restarts = unsigned
		case "malformed":
			c.malformed = unsigned
		}
	}
	e.sum(c, 1)
	if c.reports > 0 && n >= e.active {
		e.active, e.at = n, h.ms(n)
	}
}

func (e *exporterSeries) sum(c *exporterCell, sign int64) {
	e.Reports += sign * int64(c.reports)
	e.Lost += sign * int64(c.lost)
	e.Duplicated += sign * int64(c.duplicated)
	e.Reordered += sign * int64(c.reordered)
	e.Restarts += sign * int64(c.restarts)
	e.Malformed += sign * int64(c.malformed)
}

// idle tells whether an exporter has not reported for some windows. Some report only when something happens.
func (h *history) idle(e *exporterSeries) bool { return h.newest-e.active >= idleWindows }
