package web

import (
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// nameless is the hops without a node id of one window, the newest that had some.
type nameless struct {
	window uint64
	list   []inference.NamelessStats
}

// maxNameless bounds the rows of an answer.
const maxNameless = 64

// addNameless keeps the hops without a node id of window n.
func (h *history) addNameless(n uint64, w *inference.Window) {
	if len(w.Nameless) > 0 && n >= h.nameless.window {
		h.nameless = nameless{n, append(h.nameless.list[:0], w.Nameless[:min(len(w.Nameless), maxNameless)]...)}
	}
}

// listNameless lists them while their window is recent.
func (h *history) listNameless() (rows []ask.NamelessRow) {
	if h.nameless.window == 0 || h.nameless.window < h.recent() {
		return nil
	}
	of := func(s *inference.Summary, v uint64) ask.Value {
		if s.Count == 0 {
			return ask.Absent
		}
		return ask.Value(v)
	}
	for i := range h.nameless.list {
		s := &h.nameless.list[i]
		r := ask.NamelessRow{Position: strconv.Itoa(int(s.Position)), Count: s.Count, LatencyP50: of(&s.Latency, s.Latency.P50),
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
