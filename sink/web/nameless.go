package web

import (
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// nameless is the hops without a node id of one window, the newest that had some.
type nameless struct {
	window uint64
	list   []inference.NamelessStats
}

// maxNameless bounds the rows of an answer.
const maxNameless = 64

// namelessRow is the hops whose records hold no node id, at one position in the reports of one exporter, in one window.
type namelessRow struct {
	Exporter   string `json:"exporter"` // empty for packets of the network
	Position   string `json:"position"` // in the report, from 1, or "other" for all that had no place
	Count      uint64 `json:"count"`
	LatencyP50 value  `json:"latency_p50"`
	LatencyP99 value  `json:"latency_p99"`
	QueueP50   value  `json:"queue_p50"`
	QueueP99   value  `json:"queue_p99"`
}

// addNameless keeps the hops without a node id of window n.
func (h *history) addNameless(n uint64, w *inference.Window) {
	if len(w.Nameless) > 0 && n >= h.nameless.window {
		h.nameless = nameless{n, append(h.nameless.list[:0], w.Nameless[:min(len(w.Nameless), maxNameless)]...)}
	}
}

// listNameless lists them while their window is recent.
func (h *history) listNameless() (rows []namelessRow) {
	if h.nameless.window == 0 || h.nameless.window < h.recent() {
		return nil
	}
	of := func(s *inference.Summary, v uint64) value {
		if s.Count == 0 {
			return value(absent)
		}
		return value(v)
	}
	for i := range h.nameless.list {
		s := &h.nameless.list[i]
		r := namelessRow{Position: strconv.Itoa(int(s.Position)), Count: s.Count, LatencyP50: of(&s.Latency, s.Latency.P50),
			LatencyP99: of(&s.Latency, s.Latency.P99), QueueP50: of(&s.Queue, s.Queue.P50), QueueP99: of(&s.Queue, s.Queue.P99)}
		if s.Exporter != (decode.Addr{}) {
			r.Exporter = s.Exporter.String()
		}
		if s.Position == 0 {
			r.Position = "other"
		}
		rows = append(rows, r)
	}
	return rows
}
