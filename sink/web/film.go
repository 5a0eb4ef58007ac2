package web

import (
	"cmp"
	"math"
	"net/http"

	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// Bounds of a film.
const (
	filmWindows = 60
	maxFilm     = 10_000  // windows
	filmValues  = 4 << 20 // windows times directions: some 20 MB as JSON
)

// serveFilm answers the values of a metric of all links in the latest windows.
func (s *Server) serveFilm(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	m, err := metricParam(q, "metric", queueP99)
	limit, lerr := ask.IntParam(q, "limit", filmWindows, 1, maxFilm)
	since, serr := ask.IntParam(q, "since", -1, -1, math.MaxInt64)
	if refuse(w, cmp.Or(err, lerr, serr)) {
		return
	}
	a := s.network()
	f := ask.NewFilm(metricNames[m], m.unit(), a.Document())
	s.history.film(a, m, since, int(limit), f)
	s.answerPacked(w, r, f)
}

// film adds the latest windows to a film, at most limit. Of several hops on one direction the greatest value counts.
func (h *history) film(a *atlas.Placing, m metric, since int64, limit int, f *ask.Film) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	f.Windows, f.Values = []int64{}, [][]ask.Value{}
	from, most := h.after(since), uint64(min(limit, max(filmValues/max(len(f.Directions), 1), 1)))
	if kept := h.newest + 1 - from; h.newest > 0 && kept > most {
		f.Omitted = int(kept - most)
		from = h.newest + 1 - most
	}
	for n := from; h.newest > 0 && n <= h.newest; n++ {
		values := make([]ask.Value, len(f.Directions))
		for i := range values {
			values[i] = ask.Absent
		}
		f.Windows, f.Values = append(f.Windows, h.ms(n)), append(f.Values, values)
	}
	for _, s := range h.sortedHops() {
		d := a.Direction(s.HopKey)
		if d < 0 {
			f.Unplaced++
			continue
		}
		for k := range f.Windows {
			if v := h.value(s, from+uint64(k), m); v == v && !(float32(f.Values[k][d]) >= v) {
				f.Values[k][d] = ask.Value(v)
			}
		}
	}
}
