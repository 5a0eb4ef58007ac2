package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Fleet is the part of a fleet's page beyond that of a collector.
type Fleet struct {
	Name          string
	Slices        int
	Problem       string   // why the fleet cannot be read, in a sentence; empty when it can
	MissingTopics []string // that the broker does not have
	Behind        uint64   // records that are there and were not read yet
	Ahead         uint64   // reports that were stored before their collectors counted them
	Members       []member
}

// States of members.
const (
	alive   = "alive"
	missing = "missing" // windows are without it, or it has not said anything for a while
	dead    = "dead"    // it is not waited for any more
	left    = "left"    // it ended in order
)

// member is a collector or a consumer. Fields that its role does not have are zero. Texts come from the network.
type member struct {
	Role             string   `json:"role"` // "collector" or "consumer"
	Name             string   `json:"name"`
	State            string   `json:"state"`
	Version          string   `json:"version"`
	Page             string   `json:"page,omitempty"` // its own
	Problems         []string `json:"problems,omitempty"`
	StartMS          int64    `json:"start_ms"`
	UpdatedMS        int64    `json:"updated_ms"` // when it reported so
	WindowMS         int64    `json:"window_ms"`  // end of the last window that it sent or stored
	ReportsPerSecond float64  `json:"reports_per_second"`

	Received   uint64 `json:"received"` // reports; of a consumer: merged, each once
	Stored     uint64 `json:"stored"`   // of a collector: confirmed by Kafka
	InFlight   uint64 `json:"in_flight"`
	Dropped    uint64 `json:"dropped"`
	SpoolBytes uint64 `json:"spool_bytes"`

	Partitions int    `json:"partitions"`
	Lag        uint64 `json:"lag"` // records
	Late       uint64 `json:"late"`
	Duplicates uint64 `json:"duplicates"`
	Conflicts  uint64 `json:"conflicts"`
	Rebalances uint64 `json:"rebalances"`
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
		if f.Members[i].Role == "collector" {
			s.Collectors++
		} else {
			s.Consumers++
		}
		s.States[f.Members[i].State]++
	}
	return s
}

var stateRank = map[string]int{dead: 0, missing: 1, alive: 2, left: 3}

// serveFleet lists the members of a fleet: collectors before consumers, those with trouble first.
func (s *Server) serveFleet(w http.ResponseWriter, r *http.Request) {
	offset, limit, err := pageParams(r.URL.Query())
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	f := s.deps.Status().Fleet
	if f == nil {
		problem(w, http.StatusNotFound, "this is the page of one collector; hopscope console serves that of a fleet")
		return
	}
	list := slices.Clone(f.Members)
	slices.SortStableFunc(list, func(a, b member) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(stateRank[a.State], stateRank[b.State]), strings.Compare(a.Name, b.Name))
	})
	list = list[min(offset, len(list)):min(offset+limit, len(list))]
	for i := range list {
		m := &list[i]
		m.Name, m.Version, m.Page, m.ReportsPerSecond = readable(m.Name), readable(m.Version), pageURL(m.Page), finite(m.ReportsPerSecond)
		m.Problems = slices.Clone(m.Problems)
		for k := range m.Problems {
			m.Problems[k] = readable(m.Problems[k])
		}
	}
	s.answer(w, struct {
		*fleetSummary
		Total   int             `json:"total"`
		Members []member        `json:"members"`
		Windows []missingWindow `json:"windows"` // kept ones that are without a collector
	}{f.summary(), len(f.Members), append([]member{}, list...), s.history.missingWindows()})
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
