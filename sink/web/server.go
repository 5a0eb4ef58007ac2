package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// Deps holds the sources of the values that the page shows and does not compute itself. All functions are called from
// several goroutines.
type Deps struct {
	Status func() Status         // required
	Ledger func() []sink.Balance // required
	Unread func() []Unread       // exporters whose datagrams no profile reads; nil where there are none
	Paths  func(n int) Paths     // what digests say of paths, with n flows; nil where digests are not read

	PathsOf func(keys []decode.FlowKey) []PathFlow // of some flows, those that have digests; nil where digests are not read

	Names func() *names.Names // what nodes are called, at this moment; nil has no names

	// Setting returns the value of a key of the settings in force, and its meaning. If it is nil, explanations of
	// findings have the keys alone.
	Setting ask.Setting

	// Map returns the network that the map draws. Another network is another pointer, and the network of a pointer
	// does not change. If it is nil or returns nil, the map draws the links that flows show.
	Map func() *atlas.Map
	// Loop returns the state of the control of probes. If it is nil or returns nil, the map has no layers for it.
	Loop func() *atlas.LoopView

	Past ask.Past // the history on disk

	Metrics, Health, Ready http.Handler // at /metrics, /healthz, /readyz; nil answers 404

	Rules   string                            // file of acknowledgements and mutes; "" where this program sends no alerts
	Command ask.Command                       // commands the control of probes; nil where none can be reached
	Control ask.AskControl                    // asks that control for its state; nil likewise
	Digests func() *ask.Digests               // query plans and what came of them; nil where digests are not read
	Warn    func(message string, args ...any) // writes a line of the log; nil writes none
}

// Status is the collector's account of itself.
type Status struct {
	Version          string
	Start            time.Time
	Window           time.Duration // length of a window
	ReportsPerSecond float64
	Sources          []Source
	Coverage         *inference.Coverage // how much of the last window was judged; nil where the detectors are elsewhere
	Problems         []string            // why reports cannot be received or stored, one sentence each
	LeftOut          []string            // by limits of the settings, one sentence each
	Settings         []Setting           // what is configured, in words, for the page's foot and its empty state
	Fleet            *Fleet              // of the page of a fleet; nil for one collector
}

// Source is a place from which reports come.
type Source struct {
	Kind    string `json:"kind"`              // "udp", "pcap"
	Address string `json:"address"`           // "0.0.0.0:32766", a file's name
	Detail  string `json:"detail,omitempty"`  // "telemetry report 0.5, 1.0, 2.0"
	Problem string `json:"problem,omitempty"` // what is wrong with it and what to do, in a sentence
	Frames  uint64 `json:"frames"`            // received
}

// Setting is a setting in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Stats counts what the server did.
type Stats struct {
	Windows         uint64 // taken
	Late            uint64 // windows and path changes that are older than what is kept
	seriesRefused   uint64 // rows of new hops, flows and exporters for which there was no room
	seriesEvicted   uint64
	findingsEvicted uint64

	access.Stats          // of the gate
	streams        int    // event streams that are open
	StreamsRefused uint64 // because too many were open
	StreamsDropped uint64 // because the client was too slow
	connsClosed    uint64 // idle ones, and ones that sent half a request, to make room for new ones
	ServerErrors   uint64 // messages of the HTTP server: failed handshakes and the like
}

// Server serves the page and is the sink that feeds it. New starts nothing; Serve runs until its context ends.
type Server struct {
	cfg         Config
	deps        Deps
	gate        *access.Gate
	desk        ask.Desk
	assets      assets
	tls         *tls.Config
	history     *history
	probes      probeMemory
	findings    findings
	ring        *ring
	paths       pathCache
	atlases     atlas.Cache
	handler     http.Handler
	listener    net.Listener
	stopping    chan struct{} // closed when Serve ends
	dirty       chan struct{} // a window was written
	streamSlots chan struct{}
	started     atomic.Bool

	counters struct {
		streamsRefused, streamsDropped, serverErrors, connectionsClosed, busy atomic.Uint64
	}
}

// New checks the configuration and reads the token and the certificate.
func New(cfg Config, deps Deps) (*Server, error) {
	if cfg.Listen == "" {
		return nil, errors.New("web: listen is empty")
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if cfg.HistoryWindows < 1 || cfg.MaxHops < 1 || cfg.MaxFlows < 1 || cfg.MaxExporters < 1 || cfg.MaxFindings < 1 ||
		cfg.MaxConnections < 1 || cfg.MaxStreams < 1 {
		return nil, errors.New("web: a bound is zero; begin with DefaultConfig")
	}
	if deps.Status == nil || deps.Ledger == nil {
		return nil, errors.New("web: Deps without Status or Ledger")
	}
	s := &Server{
		cfg: cfg, deps: deps, history: newHistory(&cfg), probes: probeMemory{most: cfg.MaxFlows}, ring: newRing(),
		findings: findings{max: cfg.MaxFindings, all: map[uint64]inference.Finding{}},
		stopping: make(chan struct{}), dirty: make(chan struct{}, 1), streamSlots: make(chan struct{}, cfg.MaxStreams),
	}
	token := ""
	var err error
	if cfg.TokenFile != "" {
		if token, err = peer.Token(cfg.TokenFile); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
	}
	if cfg.TLSCertFile != "" {
		cert, err := tls.LoadX509KeyPair(cfg.TLSCertFile, cfg.TLSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("web: read certificate: %w", err)
		}
		s.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	if s.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if s.gate, err = access.Open(access.Options{
		Config: cfg.Access, Token: token, TLS: s.tls != nil, Base: cfg.BasePath, Hosts: cfg.AllowedHosts, Public: public, Post: posts, LoginPage: s.serveLoginPage, Warn: deps.Warn,
	}); err != nil {
		return nil, fmt.Errorf("web: access: %w", err)
	}
	s.desk = ask.Desk{Gate: s.gate, Rules: deps.Rules, Open: s.openFindings, Command: deps.Command, Control: deps.Control, Digests: deps.Digests}
	s.handler = s.gate.Guard(s.routes())
	return s, nil
}

// Name is the sink's name.
func (s *Server) Name() string { return "web" }

// WriteWindow keeps of w what the page shows, and sends its findings to every open page. It holds on to nothing that belongs to w,
// never fails and never waits for a client. Windows come from one goroutine, in the order of their ends.
func (s *Server) WriteWindow(_ context.Context, w *sink.Window) error {
	s.history.add(w.Window)
	s.probes.keep(w.Window, nil)
	return s.sendEvent(w)
}

// sendEvent sends open pages the event of a window that was taken.
func (s *Server) sendEvent(w *sink.Window) error {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
	for _, f := range w.Findings {
		f = s.findings.keep(f)
		s.ring.publishFinding(s.marshal(ask.NewFinding(&f, s.names())))
	}
	return nil
}

// ReplaceWindow is WriteWindow for a window that is always whole, such as one of a fleet. It replaces the window with
// the same end. missing lists the collectors that did not contribute to it.
func (s *Server) ReplaceWindow(_ context.Context, w *sink.Window, missing []string) error {
	s.history.replace(w.Window, missing)
	s.history.add(w.Window)
	s.probes.keep(w.Window, missing)
	return s.sendEvent(w)
}

// Learning marks the hops of a shown window that are younger than their statistics need. It is for windows that come
// before this is known.
func (s *Server) Learning(end int64, learns func(inference.HopKey) bool) {
	s.history.learning(end, learns)
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// Handler is everything the server answers, without a socket.
func (s *Server) Handler() http.Handler { return s.handler }

// Listen binds the address, so that a port in use is reported before anything runs. Serve does it otherwise.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	s.listener = l
	return nil
}

// URL is the address of the page. It is known after Listen.
func (s *Server) URL() string {
	scheme, addr := "http", s.cfg.Listen
	if s.tls != nil {
		scheme = "https"
	}
	if s.listener != nil {
		addr = s.listener.Addr().String()
	}
	return scheme + "://" + addr + s.cfg.BasePath + "/"
}

// Serve answers requests until ctx ends. It then ends event streams and waits for the open requests, at most the
// configured time. It returns nil after an orderly end. It can be called once.
func (s *Server) Serve(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return errors.New("web: Serve was called twice")
	}
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	var l net.Listener = peer.Limit(s.listener, peer.Limits{Max: s.cfg.MaxConnections, Reserve: reserve, Evicted: func() { s.counters.connectionsClosed.Add(1) }})
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	srv := &http.Server{
		Handler:           s.limit(s.handler),
		ConnContext:       peer.WithConn,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // event streams set their own
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(countWriter{&s.counters.serverErrors}, "", 0),
	}
	var wg sync.WaitGroup
	wg.Go(s.publishUpdates)
	gate, closeGate := context.WithCancel(context.Background()) // which ends after the requests
	gated := make(chan struct{})
	go func() { defer close(gated); s.gate.Run(gate) }()
	failed := make(chan error, 1)
	wg.Go(func() { failed <- srv.Serve(l) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	close(s.stopping)
	end, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	if e := srv.Shutdown(end); e != nil {
		_ = srv.Close() // the requests still under way have had their time
	}
	wg.Wait()
	closeGate()
	<-gated
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

// How often the page receives events of news that come all the time.
const (
	settle      = 150 * time.Millisecond // a window may come in several parts
	ledgerEvery = time.Second
)

// publishUpdates publishes windows and the ledger until the server stops.
func (s *Server) publishUpdates() {
	tick := time.NewTicker(ledgerEvery)
	defer tick.Stop()
	var last, lastLoop []byte // the ledger without the time
	for {
		select {
		case <-s.stopping:
			return
		case <-tick.C:
			e := s.ledger()
			timeless := e
			timeless.NowMS = 0
			if b := s.marshal(timeless); string(b) != string(last) {
				last = b
				s.ring.publishState("ledger", s.marshal(e))
			}
			if e := s.loopEvent(); e != nil {
				if b := s.marshal(e); string(b) != string(lastLoop) {
					lastLoop = b
					s.ring.publishState("loop", b)
				}
			}
		case <-s.dirty:
			select {
			case <-s.stopping:
				return
			case <-time.After(settle):
			}
			select { // what came meanwhile is in this event too
			case <-s.dirty:
			default:
			}
			s.ring.publishState("window", s.marshal(s.windowEvent()))
		}
	}
}

// marshal is json.Marshal for values that cannot fail: structs of strings and finite numbers. If it fails all the
// same, the event is empty, and the error is counted.
func (s *Server) marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		s.counters.serverErrors.Add(1)
		return nil
	}
	return names.EscapeJSON(data)
}

// LeftOut returns a sentence for each limit of the page's own settings that left something out since the start. It may
// be called at any time.
func (s *Server) LeftOut() []string { return inference.LeftOut(s.Limits()) }

// Limits lists every limit of the page's own settings. It may be called at any time.
func (s *Server) Limits() []inference.Limit {
	h := s.history
	h.mu.RLock()
	hops, interfaces, probed, flows, exporters := h.hops.refused, h.interfaces.refused, h.probed.refused, h.flows.refused, h.exporters.refused
	h.mu.RUnlock()
	s.findings.mu.RLock()
	open := s.findings.openEvicted
	s.findings.mu.RUnlock()
	return []inference.Limit{
		{Setting: "web.max_hops", N: hops, What: "rows of hops are not on the page, because it has no place for more hops"},
		{Setting: "web.max_hops", N: interfaces, What: "rows of interfaces are not on the page, because it has no place for more interfaces"},
		{Setting: "web.max_hops", N: probed, What: "rows of paths of probes are not on the page, because it has no place for more paths"},
		{Setting: "web.max_flows", N: flows, What: "rows of flows are not on the page, because it has no place for more flows"},
		{Setting: "web.max_exporters", N: exporters, What: "rows of exporters are not on the page, because it has no place for more exporters"},
		{Setting: "web.max_findings", N: open, What: "findings left the page while they were open, because it has no place for more"},
		{Setting: "web.access.max_sessions", N: s.gate.Stats().Evicted, What: "sessions of the page ended early, because it has no place for more"},
		{Setting: "web.max_streams", N: s.counters.streamsRefused.Load(), What: "pages were not kept up to date, because too many are open"},
		{Setting: "web.max_connections", N: s.counters.connectionsClosed.Load(), What: "connections to the page that asked nothing were closed to make room for others"},
		{Setting: "web.max_connections", N: s.counters.busy.Load(), What: "requests to the page were sent back, because all connections were being answered"},
	}
}

// Stats is a snapshot of the counters.
func (s *Server) Stats() Stats {
	h := s.history
	h.mu.RLock()
	st := Stats{
		Windows: h.kept, Late: h.late,
		seriesRefused: h.hops.refused + h.flows.refused + h.exporters.refused,
		seriesEvicted: h.hops.evicted + h.flows.evicted + h.exporters.evicted,
	}
	h.mu.RUnlock()
	s.findings.mu.RLock()
	st.findingsEvicted = s.findings.evicted
	s.findings.mu.RUnlock()
	st.Stats = s.gate.Stats()
	st.streams, st.StreamsRefused, st.StreamsDropped = len(s.streamSlots), s.counters.streamsRefused.Load(), s.counters.streamsDropped.Load()
	st.connsClosed = s.counters.connectionsClosed.Load()
	st.ServerErrors = s.counters.serverErrors.Load()
	return st
}

// countWriter counts messages and forgets them.
type countWriter struct{ n *atomic.Uint64 }

func (c countWriter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}
