package web

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// A film has the values that the map has of each direction, window by window, and says what it leaves out.
func TestFilm(t *testing.T) {
	m := fabric(4)
	deps := sceneDeps(sceneTime)
	deps.Map = func() *atlas.Map { return m }
	srv := serve(t, DefaultConfig(), deps)
	var states []stateAnswer
	for k := range 5 {
		write(srv, mapWindow(m, uint64(k), sceneTime.Add(time.Duration(k)*10*time.Second), nil, []int{k}))
		states = append(states, stateOfMap(t, srv, "?metric=queue_p99"))
	}
	var doc atlas.Document
	get(t, srv, "/api/map", &doc)
	var f ask.Film
	get(t, srv, "/api/film?limit=3", &f)
	if err := f.Check(); err != nil || len(f.Windows) != 3 || f.Omitted != 2 || f.Metric != "queue_p99" || f.Unit != "B" || f.Source != "topology" || len(f.Nodes) != 20 {
		t.Fatalf("%v, windows %v, %d omitted, %s in %s, map of %s with %d nodes", err, f.Windows, f.Omitted, f.Metric, f.Unit, f.Source, len(f.Nodes))
	}
	present := 0
	for k, values := range f.Values {
		s := states[2+k]
		if f.Windows[k] != s.EndMS {
			t.Errorf("window %d ends at %d, want %d", k, f.Windows[k], s.EndMS)
		}
		for d, v := range values {
			if want := s.Values[d]; v == v != (want == want) || v == v && float64(v) != want {
				t.Errorf("window %d, direction %d: %v, want %v", k, d, v, want)
			}
			if v == v {
				present++
			}
		}
	}
	if present < 50 {
		t.Errorf("%d values", present)
	}
	for d, pair := range f.Directions {
		l := doc.Links[d/2]
		from, to := l.A, l.B
		if d%2 == 1 {
			from, to = to, from
		}
		if f.Nodes[pair[0]].ID != from || f.Nodes[pair[1]].ID != to {
			t.Errorf("direction %d leads from %v to %v, want %d to %d", d, f.Nodes[pair[0]], f.Nodes[pair[1]], from, to)
		}
	}

	// No window, and no map.
	empty := serve(t, DefaultConfig(), sceneDeps(sceneTime))
	f = ask.Film{Values: [][]ask.Value{{1}}}
	get(t, empty, "/api/film", &f)
	if len(f.Windows) != 0 || len(f.Values) != 0 || len(f.Directions) != 0 || f.Source != "" {
		t.Errorf("without a window: %+v", f)
	}
}
