package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/docs"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// routes maps every path. Answers are JSON; times are milliseconds since 1970, latencies nanoseconds, queues bytes, utilisation a
// ratio; a value that was not reported is null.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.api(mux)
	mux.HandleFunc("/login", s.gate.ServeLogin)
	mux.HandleFunc("/oidc/", s.gate.ServeOIDC)
	mux.Handle("/docs/", http.StripPrefix("/docs", docs.Handler()))
	if s.deps.Metrics != nil {
		mux.Handle("/metrics", s.deps.Metrics)
	}
	for path, h := range map[string]http.Handler{"/healthz": s.deps.Health, "/readyz": s.deps.Ready} {
		if h != nil {
			mux.Handle(path, Screened(h))
		}
	}
	mux.Handle("/", s.assets)
	return mux
}

// answer sends v as JSON.
func (s *Server) answer(w http.ResponseWriter, v any) {
	s.encode(w, v, func(data []byte) { send(w, http.StatusOK, data) })
}

// answerPacked sends v as JSON, packed where that is worth it.
func (s *Server) answerPacked(w http.ResponseWriter, r *http.Request, v any) {
	s.encode(w, v, func(data []byte) { s.sendPacked(w, r, data, "no-store") })
}

func (s *Server) encode(w http.ResponseWriter, v any, send func(data []byte)) {
	data, err := json.Marshal(v)
	if err != nil {
		s.counters.serverErrors.Add(1)
		problem(w, http.StatusInternalServerError, "the answer could not be written")
		return
	}
	send(data)
}

// sendPacked sends JSON, packed if it is large and goes to another machine that accepts it. keep is the Cache-Control
// of the answer.
func (s *Server) sendPacked(w http.ResponseWriter, r *http.Request, data []byte, keep string) {
	data = names.EscapeJSON(data)
	if packed, ok := pack(r, data); ok {
		data = packed
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Vary", "Accept-Encoding")
	}
	access.WriteJSON(w, http.StatusOK, data, keep)
}

func send(w http.ResponseWriter, status int, data []byte) {
	access.WriteJSON(w, status, names.EscapeJSON(data), "no-store")
}

// problem is the answer to what cannot be answered.
func problem(w http.ResponseWriter, status int, text string) { access.Problem(w, status, text) }

// refuse answers a question that is wrong, and reports whether it is.
func refuse(w http.ResponseWriter, err error) bool {
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
	}
	return err != nil
}

// shorten cuts a text that no key is as long as, so that no message repeats all of it.
func shorten(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func metricParam(q url.Values, name string, def metric) (metric, error) {
	t := q.Get(name)
	if t == "" {
		return def, nil
	}
	m, ok := metricByName(t)
	if !ok {
		return 0, fmt.Errorf("%s: %.40q is not one of %v", name, t, metricNames)
	}
	return m, nil
}

func (s *Server) countFindings() ask.FindingCount {
	open, _ := s.findings.list()
	c := ask.FindingCount{Open: len(open)}
	if len(open) > 0 {
		c.Worst = open[0].Severity.String()
	}
	return c
}

// servePast answers a request with a range of time out of the history on disk, and reports whether it had one.
func (s *Server) servePast(w http.ResponseWriter, r *http.Request, answer func(context.Context, ask.Span) (any, error)) bool {
	return s.deps.Past.Serve(r, func(v any) { s.answerPacked(w, r, v) }, func(status int, text string) { problem(w, status, text) }, answer)
}

// statusAnswer is the state of a collector or a console.
type statusAnswer struct {
	Version          string           `json:"version"`
	NowMS            int64            `json:"now_ms"`
	StartMS          int64            `json:"start_ms"`
	WindowMS         int64            `json:"window_ms"` // length of a window
	ReportsPerSecond float64          `json:"reports_per_second"`
	Sources          []Source         `json:"sources"`
	Settings         []Setting        `json:"settings"`
	Windows          uint64           `json:"windows"`         // kept
	HistoryWindows   int              `json:"history_windows"` // that are kept at most
	Kept             map[string]int   `json:"kept"`            // by table
	Refused          uint64           `json:"refused"`         // rows that found no place in a table
	Findings         ask.FindingCount `json:"findings"`
	Judged           *ask.Judged      `json:"judged,omitempty"` // absent where the detectors are elsewhere
	Fleet            *fleetSummary    `json:"fleet,omitempty"`  // absent at one collector
	History          ask.History      `json:"history"`          // on disk
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	st := s.deps.Status()
	h := s.history
	h.mu.RLock()
	windows := h.newest + 1 - h.oldest()
	kept := map[string]int{"hops": len(h.hops.all), "flows": len(h.flows.all), "exporters": len(h.exporters.all), "interfaces": len(h.interfaces.all), "probed": len(h.probed.all)}
	refused := h.hops.refused + h.flows.refused + h.exporters.refused + h.interfaces.refused + h.probed.refused
	h.mu.RUnlock()
	if st.Sources == nil {
		st.Sources = []Source{}
	}
	if st.Settings == nil {
		st.Settings = []Setting{}
	}
	s.answer(w, statusAnswer{
		st.Version, time.Now().UnixMilli(), st.Start.UnixMilli(), st.Window.Milliseconds(), atlas.Finite(st.ReportsPerSecond),
		st.Sources, st.Settings, windows, s.cfg.HistoryWindows, kept, refused, s.countFindings(), ask.NewJudged(st.Coverage), st.Fleet.summary(), s.deps.Past.State(),
	})
}

// findingList holds findings as they are at present.
type findingList struct {
	Ended []ask.Finding `json:"ended"`           // the latest first
	Open  []ask.Finding `json:"open"`            // those at rest last, symptoms behind an open cause, then the most severe first
	Range *ask.Range    `json:"range,omitempty"` // of an answer out of the history
}

func (s *Server) serveFindings(w http.ResponseWriter, r *http.Request) {
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		open, ended, about, err := s.deps.Past.Findings(ctx, t, s.findings.isOpen)
		return findingList{ask.NewFindings(ended, s.names()), ask.NewFindings(open, s.names()), about}, err
	}) {
		return
	}
	open, ended := s.findings.list()
	s.answer(w, findingList{ask.NewFindings(ended, s.names()), ask.NewFindings(open, s.names()), nil})
}

// ledgerEvent holds the values that change every second.
type ledgerEvent struct {
	NowMS            int64          `json:"now_ms"`
	ReportsPerSecond float64        `json:"reports_per_second"`
	Balances         []sink.Balance `json:"balances"`
	Problems         []string       `json:"problems,omitempty"` // of sources and stores
	LeftOut          []string       `json:"left_out,omitempty"` // by limits of the settings, those of the page behind the others
	Range            *ask.Range     `json:"range,omitempty"`    // of an answer out of the history
}

func (s *Server) ledger() ledgerEvent {
	st := s.deps.Status()
	e := ledgerEvent{time.Now().UnixMilli(), atlas.Finite(st.ReportsPerSecond), s.deps.Ledger(), st.Problems, append(slices.Clip(st.LeftOut), s.LeftOut()...), nil}
	if e.Balances == nil {
		e.Balances = []sink.Balance{}
	}
	return e
}

func (s *Server) serveLedger(w http.ResponseWriter, r *http.Request) {
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		list, about, err := s.deps.Past.Ledger(ctx, t)
		return ledgerEvent{NowMS: time.Now().UnixMilli(), Balances: list, Range: about}, err
	}) {
		return
	}
	s.answer(w, s.ledger())
}

// windowEvent announces new data to request.
type windowEvent struct {
	EndMS   int64  `json:"end_ms"`
	Reports uint64 `json:"reports"`
	Hops    int    `json:"hops"`
}

func (s *Server) windowEvent() windowEvent {
	h := s.history
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.newest == 0 {
		return windowEvent{}
	}
	return windowEvent{h.ms(h.newest), h.window(h.newest).reports, len(h.hops.all)}
}

func (s *Server) serveExporters(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p, err := ask.ReadPage(q, ask.ExporterColumns)
	if refuse(w, err) {
		return
	}
	filter, called := names.NewSearch(q.Get("q")), s.names()
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Exporters(ctx, t, filter, called, p)
	}) {
		return
	}
	s.answer(w, s.history.listExporters(filter, called, s.findings.silentExporters(), p))
}
