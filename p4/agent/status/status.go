// Package status says how an agent is: as JSON, in a line, and as metrics, at addresses of its own.
package status

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/p4/agent"
)

// Answer is what /status says.
type Answer struct {
	Version    string      `json:"version"`
	Name       string      `json:"name"`
	Interface  string      `json:"interface"`
	Address    string      `json:"address"`
	Plan       plan        `json:"plan"`
	Controller *controller `json:"controller,omitempty"`
	Sent       uint64      `json:"sent"`
	Skipped    uint64      `json:"skipped"`
	SendErrors uint64      `json:"send_errors"`
	LateP99    float64     `json:"late_p99_seconds"`
	Received   uint64      `json:"received"`
	Lost       int64       `json:"lost"`
	Twice      uint64      `json:"twice"`
	Malformed  uint64      `json:"malformed"`
	TransitP50 float64     `json:"transit_p50_seconds"`
	TransitP99 float64     `json:"transit_p99_seconds"`
	Datagrams  uint64      `json:"report_datagrams"`
}

// plan is the plan in force.
type plan struct {
	Epoch      uint32    `json:"epoch"` // 0: none
	From       string    `json:"from,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Probes     int       `json:"probes"`
	Detailed   int       `json:"detailed"`
	SendBPS    float64   `json:"send_bps"`
	SendLimit  float64   `json:"send_limit_bps"`
	ReceiveBPS float64   `json:"receive_bps"`
	TakeLimit  float64   `json:"receive_limit_bps"`
	Refused    string    `json:"refused,omitempty"`
}

// controller is whoever sends plans.
type controller struct {
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Problem   string    `json:"problem,omitempty"`
}

// of asks an agent of this process.
func of(a *agent.Agent, version string) Answer {
	s, n := a.Status(), a.Stats()
	out := Answer{
		Version: version, Name: s.Name, Interface: s.Interface, Address: s.Address.String(),
		Plan: plan{Epoch: s.Epoch, From: s.From, Since: s.Since, Probes: s.Load.Sends, Detailed: s.Load.Detailed, SendBPS: s.Load.SendBPS,
			SendLimit: s.SendBPS, ReceiveBPS: s.Load.ReceiveBPS, TakeLimit: s.TakeBPS, Refused: s.Refused},
		Sent: n.Sent, Skipped: n.Skipped, SendErrors: n.SendErrors, LateP99: n.Late.Quantile(0.99).Seconds(), Received: n.Received, Lost: n.Lost, Twice: n.Twice,
		TransitP50: n.Transit.Quantile(0.5).Seconds(), TransitP99: n.Transit.Quantile(0.99).Seconds(), Datagrams: n.Datagrams,
	}
	n.Reasons(func(_ string, count uint64) { out.Malformed += count })
	if c := s.Controller; c.Address != "" {
		out.Controller = &controller{c.Address, c.Connected, c.Since, c.Problem}
	}
	return out
}

// Problem is what is wrong with the agent, in a sentence, or "".
func (x *Answer) Problem() string {
	gone := ""
	if c := x.Controller; c != nil && !c.Connected {
		gone = "no controller"
		if c.Problem != "" {
			gone += ": " + c.Problem
		}
	}
	switch {
	case x.Plan.Epoch == 0 && gone != "":
		return "no plan, and " + gone
	case x.Plan.Epoch == 0:
		return "no plan yet"
	case gone != "":
		return gone + "; the plan stays in force"
	case x.Plan.Refused != "":
		return "the last plan was refused: " + x.Plan.Refused
	}
	return ""
}

// Line is the state of an agent for who has one line to read.
func Line(a *agent.Agent) string {
	x := of(a, "")
	text := fmt.Sprintf("plan %d, %d probes, %d sent, %d received", x.Plan.Epoch, x.Plan.Probes, x.Sent, x.Received)
	if p := x.Problem(); p != "" {
		text += "; " + p
	}
	return text
}

// page answers questions about an agent.
type page struct {
	server   *http.Server
	listener net.Listener
}

// URL is where the page is, or "".
func (p *page) URL() string {
	if p.listener == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

// Close ends the page.
func (p *page) Close() {
	if p.server != nil {
		p.server.Close()
	}
}

// Serve answers at an address; none serves nothing.
func Serve(address string, a *agent.Agent, version string) (*page, error) {
	if address == "" {
		return &page{}, nil
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
		x := of(a, version)
		if x.Plan.Epoch == 0 {
			http.Error(w, x.Problem(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(of(a, version)) // who hung up is not told
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go s.Serve(l)
	return &page{s, l}, nil
}
