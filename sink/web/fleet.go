package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// Fleet is the part of a fleet's page beyond that of a collector.
type Fleet struct {
	Name          string
	Slices        int
	Problem       string   // why the fleet cannot be read, in a sentence; empty when it can
	MissingTopics []string // that the broker does not have
	Behind        uint64   // records that are there and were not read yet
	Ahead         uint64   // reports that were stored before their collectors counted them
	Members       []roster.Row
}

// fleetSummary is the part of a fleet that the page needs all the time.
type fleetSummary struct {
	Name          string         `json:"name"`
	Slices        int            `json:"slices"`
	Problem       string         `json:"problem,omitempty"`
	MissingTopics []string       `json:"missing_topics,omitempty"`
	Behind        uint64         `json:"behind"`
	Ahead         uint64         `json:"ahead"`
	Collectors    int            `json:"collectors"`
	Consumers     int            `json:"consumers"`
	States        map[string]int `json:"states"`
}

func (f *Fleet) summary() *fleetSummary {
	if f == nil {
		return nil
	}
	s := &fleetSummary{Name: readable(f.Name), Slices: f.Slices, Problem: readable(f.Problem), MissingTopics: f.MissingTopics, Behind: f.Behind, Ahead: f.Ahead, States: map[string]int{}}
	for i := range f.Members {
		if f.Members[i].Role == roster.Collector {
			s.Collectors++
		} else {
			s.Consumers++
		}
		s.States[f.Members[i].State]++
	}
	return s
}

var stateRank = map[string]int{roster.Dead: 0, roster.Missing: 1, roster.Alive: 2, roster.Left: 3}

// fleetAnswer is a fleet with some of its members.
type fleetAnswer struct {
	*fleetSummary
	Total   int             `json:"total"`
	Members []roster.Row    `json:"members"`
	Windows []missingWindow `json:"windows"` // kept ones that are without a collector
}

// serveFleet lists the members of a fleet: collectors before consumers, those with trouble first.
func (s *Server) serveFleet(w http.ResponseWriter, r *http.Request) {
	p, err := ask.ReadPage[roster.Row](r.URL.Query(), nil)
	if refuse(w, err) {
		return
	}
	f := s.deps.Status().Fleet
	if f == nil {
		problem(w, http.StatusNotFound, "this is the page of one collector; hopscope console serves that of a fleet")
		return
	}
	list := slices.Clone(f.Members)
	slices.SortStableFunc(list, func(a, b roster.Row) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(stateRank[a.State], stateRank[b.State]), strings.Compare(a.Name, b.Name))
	})
	list = ask.Cut(list, p)
	for i := range list {
		m := &list[i]
		m.Name, m.Version, m.Page, m.ReportsPerSecond = readable(m.Name), readable(m.Version), pageURL(m.Page), atlas.Finite(m.ReportsPerSecond)
		m.Problems = slices.Clone(m.Problems)
		for k := range m.Problems {
			m.Problems[k] = readable(m.Problems[k])
		}
	}
	s.answer(w, fleetAnswer{f.summary(), len(f.Members), append([]roster.Row{}, list...), s.history.missingWindows()})
}

// pageURL is the address of a member's page, if it is one that a link may lead to.
func pageURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxText || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || readable(s) != s {
		return ""
	}
	return u.String()
}

// missingWindow is a window that is without what some collectors saw.
type missingWindow struct {
	EndMS   int64    `json:"end_ms"`
	Missing []string `json:"missing"`
}

// maxMissing bounds the names that are kept of a window's missing collectors.
const maxMissing = 32

// missingWindows lists the kept windows that are without a collector, the newest first.
func (h *history) missingWindows() []missingWindow {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := []missingWindow{}
	for n := h.newest; n >= h.oldest() && n > 0; n-- {
		if m := h.window(n).missing; len(m) > 0 {
			list = append(list, missingWindow{h.ms(n), m})
		}
	}
	return list
}
