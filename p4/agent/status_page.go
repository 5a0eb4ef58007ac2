package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
)

// StatusAnswer is the answer of /status.
type StatusAnswer struct {
	Version    string            `json:"version"`
	Name       string            `json:"name"`
	Interface  string            `json:"interface"`
	NodeID     uint32            `json:"node_id"` // by which its reports know it
	Address    string            `json:"address"`
	Plan       planAnswer        `json:"plan"`
	Controller *controllerAnswer `json:"controller,omitempty"`
	Sent       uint64            `json:"sent"`
	Skipped    uint64            `json:"skipped"`
	SendErrors uint64            `json:"send_errors"`
	LateP99    float64           `json:"late_p99_seconds"`
	Received   uint64            `json:"received"`
	Lost       int64             `json:"lost"`
	Twice      uint64            `json:"twice"`
	Malformed  uint64            `json:"malformed"`
	Corrupt    uint64            `json:"corrupt"`
	Refused    uint64            `json:"refused"` // without a digest, or with a wrong one
	Odd        uint64            `json:"implausible"`
	Unplanned  uint64            `json:"unplanned"`
	SharedID   uint64            `json:"shared_node_id"`
	Dropped    uint64            `json:"kernel_dropped"`     // frames for which the receive buffer had no room
	Unfollowed uint64            `json:"unfollowed"`         // probes whose rounds had no room
	Unreported uint64            `json:"report_errors"`      // datagrams that could not be sent
	Closed     uint64            `json:"connections_closed"` // to the status, to make room for others
	Busy       uint64            `json:"requests_refused"`   // to the status, because all connections were being answered
	Awaited    int               `json:"awaited"`
	Silent     int               `json:"silent"`
	Missing    string            `json:"missing,omitempty"` // which probes do not come
	LineDown   bool              `json:"line_down"`
	Unsent     string            `json:"not_sending,omitempty"`   // why the port does not take probes
	Deaf       string            `json:"not_reporting,omitempty"` // why reports cannot be sent to a collector
	TransitP50 float64           `json:"transit_p50_seconds"`
	TransitP99 float64           `json:"transit_p99_seconds"`
	Datagrams  uint64            `json:"report_datagrams"`
	STAMP      []sessionAnswer   `json:"stamp,omitempty"`
	Reflector  *reflectorAnswer  `json:"reflector,omitempty"`
}

// sessionAnswer is the status of a session of STAMP. Delays are those of the last whole minute; the one-way delays are absent where a clock follows none.
type sessionAnswer struct {
	Name      string       `json:"name"`
	Reflector string       `json:"reflector"`
	Silent    bool         `json:"silent"`
	Why       string       `json:"problem,omitempty"`
	Sent      uint64       `json:"sent"`
	Failed    uint64       `json:"send_errors"`
	Dropped   uint64       `json:"kernel_dropped"`
	Received  uint64       `json:"received"`
	Lost      uint64       `json:"lost"`
	LostOut   uint64       `json:"lost_out"`  // of these, requests
	LostHome  uint64       `json:"lost_home"` // of these, answers
	Late      uint64       `json:"late"`
	Twice     uint64       `json:"twice"`
	Reordered uint64       `json:"reordered"`
	Corrupt   uint64       `json:"corrupt"`
	Remarked  uint64       `json:"remarked"`
	Restarts  uint64       `json:"reflector_restarts"`
	Trip      delayAnswer  `json:"round_trip"`
	Out       *delayAnswer `json:"out,omitempty"`
	Home      *delayAnswer `json:"home,omitempty"`
	Clocks    float64      `json:"clock_error_seconds,omitempty"`    // by which one-way delays may be off
	Unlikely  uint64       `json:"impossible_delays,omitempty"`      // one-way delays below 0
	Way       *wayAnswer   `json:"way,omitempty"`                    // of a session with a port
	Variation float64      `json:"round_trip_variation_p99_seconds"` // between requests that follow each other
}

// wayAnswer is the way of a session by the routers on it.
type wayAnswer struct {
	stamp.Way
	Epoch uint32 `json:"epoch"` // number of the way, from 1; 0 while it is not known
}

// delayAnswer are quantiles in seconds.
type delayAnswer struct {
	P50 float64 `json:"p50_seconds"`
	P90 float64 `json:"p90_seconds"`
	P99 float64 `json:"p99_seconds"`
	Max float64 `json:"max_seconds"`
}

func delaysOf(d *stamp.Delays) delayAnswer {
	return delayAnswer{d.Quantile(0.5).Seconds(), d.Quantile(0.9).Seconds(), d.Quantile(0.99).Seconds(), d.Max.Seconds()}
}

// reflectorAnswer is the status of the reflector, over all of its addresses.
type reflectorAnswer struct {
	Listen   []string          `json:"listen"`
	Answered uint64            `json:"answered"`
	Unsent   uint64            `json:"send_errors"`
	Dropped  uint64            `json:"kernel_dropped"`
	Refused  map[string]uint64 `json:"refused,omitempty"`
	Sessions int               `json:"sessions"`
	Traces   map[string]uint64 `json:"traces,omitempty"` // of IOAM in requests, by outcome
}

// addSTAMP fills in what there is of STAMP.
func (x *StatusAnswer) addSTAMP(a *Agent) {
	list, r := a.STAMP()
	for k := range list {
		s := &list[k]
		y := sessionAnswer{
			Name: s.Name, Reflector: s.Reflector, Silent: s.Silent, Why: s.Why, Sent: s.Sent, Failed: s.Failed, Dropped: s.Dropped, Received: s.Received, Lost: s.Lost, LostOut: s.Forward,
			LostHome: s.Back, Late: s.Late, Twice: s.Twice, Reordered: s.Reordered, Corrupt: s.Corrupt, Remarked: s.Remarked, Restarts: s.Restarts,
			Trip: delaysOf(&s.Trip), Clocks: s.ClockError.Seconds(), Unlikely: s.Unlikely, Variation: s.TripVariation.Quantile(0.99).Seconds(),
		}
		if s.Out.Count > 0 {
			out, home := delaysOf(&s.Out), delaysOf(&s.Home)
			y.Out, y.Home = &out, &home
		}
		if to, err := netip.ParseAddrPort(s.Reflector); err == nil && s.Port > 0 {
			y.Way = &wayAnswer{stamp.Way{From: s.From, To: to.Addr().Unmap(), Port: s.Port, Hops: s.Way.Hops}, s.Way.Epoch}
		}
		x.STAMP = append(x.STAMP, y)
	}
	if len(r.Listen) == 0 {
		return
	}
	x.Reflector = &reflectorAnswer{Listen: r.Listen, Answered: r.Answered, Unsent: r.Unsent, Dropped: r.Dropped, Sessions: r.Sessions, Refused: map[string]uint64{}}
	for why, n := range r.Refused {
		if n > 0 {
			x.Reflector.Refused[stamp.Reason(why).String()] = n
		}
	}
	for outcome, n := range r.Traces {
		if n > 0 {
			if x.Reflector.Traces == nil {
				x.Reflector.Traces = map[string]uint64{}
			}
			x.Reflector.Traces[stamp.Outcome(outcome).String()] = n
		}
	}
}

// WayCount counts the outcomes of the requests of a session with a known way.
type WayCount struct {
	stamp.Way
	Epoch      uint32 // of the way
	Sent, Lost uint64
	Out, Home  uint64 // of the lost ones: requests, and answers, as far as the numbers of the reflector say so
	Silent     bool   // no answers come
}

// Ways are the sessions with a port whose ways are known.
func (x *StatusAnswer) Ways() (list []WayCount) {
	for k := range x.STAMP {
		if s := &x.STAMP[k]; s.Way != nil && s.Way.Epoch > 0 {
			list = append(list, WayCount{s.Way.Way, s.Way.Epoch, s.Sent, s.Lost, s.LostOut, s.LostHome, s.Silent})
		}
	}
	return list
}

// silence names a session of STAMP without answers, or is "".
func (x *StatusAnswer) silence() string {
	silent, first := 0, -1
	for k := range x.STAMP {
		if x.STAMP[k].Silent {
			if silent++; first < 0 {
				first = k
			}
		}
	}
	if silent == 0 {
		return ""
	}
	s := &x.STAMP[first]
	text := fmt.Sprintf("%d of %d sessions of STAMP have no answers, such as %s", silent, len(x.STAMP), s.Name)
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// planAnswer is the status of the plan in force.
type planAnswer struct {
	Epoch        uint32    `json:"epoch"` // 0: none
	From         string    `json:"from,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Probes       int       `json:"probes"`
	Detailed     int       `json:"detailed"`
	SendBPS      float64   `json:"send_bps"`
	SendLimit    float64   `json:"send_limit_bps"`
	ReceiveBPS   float64   `json:"receive_bps"`
	ReceiveLimit float64   `json:"receive_limit_bps"`
	Refused      string    `json:"refused,omitempty"`
}

// controllerAnswer is the status of the connection to the sender of plans.
type controllerAnswer struct {
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Problem   string    `json:"problem,omitempty"`
}

// statusOf is the status of an agent of this process.
func statusOf(a *Agent, version string) StatusAnswer {
	s, n := a.Status(), a.Stats()
	out := StatusAnswer{
		Version: version, Name: s.Name, Interface: s.Interface, NodeID: a.cfg.reportedNode(),
		Plan: planAnswer{Epoch: s.Epoch, From: s.From, Since: s.Since, Probes: s.Load.Sends, Detailed: s.Load.Detailed, SendBPS: s.Load.SendBPS,
			SendLimit: s.sendBPS, ReceiveBPS: s.Load.ReceiveBPS, ReceiveLimit: s.receiveBPS, Refused: s.Refused},
		Sent: n.Sent, Skipped: n.Skipped, SendErrors: n.SendErrors, LateP99: n.Late.Quantile(0.99).Seconds(), Received: n.Received, Lost: n.Lost, Twice: n.Twice,
		TransitP50: n.Transit.Quantile(0.5).Seconds(), TransitP99: n.Transit.Quantile(0.99).Seconds(), Datagrams: n.Datagrams,
	}
	out.Corrupt, out.Refused = n.Malformed[probe.Corrupt], n.Malformed[probe.Unsigned]+n.Malformed[probe.BadDigest]
	out.Odd, out.Unplanned, out.SharedID = n.Odd, n.Unplanned, n.SharedID
	out.Dropped, out.Unfollowed, out.Unreported = n.KernelDropped, n.Unfollowed, n.ReportErrors
	out.Awaited, out.Silent, out.Missing, out.LineDown = s.Loss.Awaited, s.Loss.Silent, s.Loss.Text(), s.Down
	out.Deaf = s.Unreported
	out.Unsent, out.Closed, out.Busy = s.Unsent, n.StatusClosed, n.StatusBusy
	if s.Address.IsValid() {
		out.Address = s.Address.String()
	}
	out.addSTAMP(a)
	n.reasons(func(_ string, count uint64) { out.Malformed += count })
	if c := s.controller; c.Address != "" {
		out.Controller = &controllerAnswer{c.Address, c.Connected, c.Since, c.problem}
	}
	return out
}

func (x *StatusAnswer) lineProblem() string {
	return "the line of interface " + x.Interface + " is down: no probe is sent and none can come"
}

// refusal is the reason why the last plan was refused, or "".
func (x *StatusAnswer) refusal() string {
	if x.Plan.Refused == "" {
		return ""
	}
	return "the last plan was refused: " + x.Plan.Refused
}

// Problem returns what is wrong with the agent, in a sentence, or "".
func (x *StatusAnswer) Problem() string {
	gone := ""
	if c := x.Controller; c != nil && !c.Connected {
		gone = "no controller"
		if c.Problem != "" {
			gone += ": " + c.Problem
		}
	}
	switch {
	case x.Interface == "": // of STAMP alone
		return cmp.Or(x.silence(), x.Deaf)
	case x.Plan.Epoch == 0 && gone != "":
		return "no plan, and " + gone
	case x.Plan.Epoch == 0:
		return "no plan yet"
	case gone != "":
		return gone + "; the plan stays in force"
	case x.Plan.Refused != "":
		return x.refusal()
	case x.LineDown:
		return x.lineProblem()
	case x.Unsent != "":
		return x.Unsent
	case x.Missing != "":
		return x.Missing
	case x.SharedID > 0:
		return "a switch on the way has the agent's own node id; set another node_id"
	}
	return cmp.Or(x.silence(), x.Deaf)
}

// StatusLine is the status of an agent in one line.
func StatusLine(a *Agent) string {
	x := statusOf(a, "")
	text := fmt.Sprintf("plan %d, %d probes, %d sent, %d received", x.Plan.Epoch, x.Plan.Probes, x.Sent, x.Received)
	if x.Interface == "" {
		text = fmt.Sprintf("%d sessions of STAMP", len(x.STAMP))
	}
	if p := x.Problem(); p != "" {
		text += "; " + p
	}
	return text
}

// statusPage is the HTTP server of the status.
type statusPage struct {
	server   *http.Server
	listener net.Listener
}

// URL returns the address of the page, or "".
func (p *statusPage) URL() string {
	if p.listener == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

// Close ends the page.
func (p *statusPage) Close() {
	if p.server != nil {
		p.server.Close()
	}
}

// statusConnections are those that are open to the page at a time, beside a reserve for health checks and metrics.
const statusConnections, statusReserve = 64, 16

// ServeStatus serves status and metrics at an address; with none it serves nothing. Border stands before all answers.
func ServeStatus(address string, a *Agent, version string, border func(http.Handler) http.Handler) (*statusPage, error) {
	if address == "" {
		return &statusPage{}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("status: %w (another address: status.listen)", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsOf{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		x := statusOf(a, version)
		switch {
		case x.Plan.Epoch == 0 && x.Interface != "":
			http.Error(w, x.Problem(), http.StatusServiceUnavailable)
			return
		case x.LineDown:
			http.Error(w, x.lineProblem(), http.StatusServiceUnavailable)
			return
		case x.Unsent != "":
			http.Error(w, x.Unsent, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
		if why := x.refusal(); why != "" {
			fmt.Fprintln(w, why)
		}
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(statusOf(a, version)) // a client that hung up needs no answer
	})
	h := peer.LimitHTTP(border(mux), peer.Probe, func(w http.ResponseWriter) {
		a.count.statusBusy.Add(1)
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
	})
	s := &http.Server{Handler: h, ConnContext: peer.WithConn, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	limited := peer.Limit(l, peer.Limits{Max: statusConnections, Reserve: statusReserve, Evicted: func() { a.count.statusClosed.Add(1) }})
	go s.Serve(limited)
	return &statusPage{s, limited}, nil
}
