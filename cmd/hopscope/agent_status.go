package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/planner/show"
)

// agentAnswer is what /status says.
type agentAnswer struct {
	Version    string           `json:"version"`
	Name       string           `json:"name"`
	Interface  string           `json:"interface"`
	Address    string           `json:"address"`
	Plan       agentPlanAnswer  `json:"plan"`
	Controller *controllerState `json:"controller,omitempty"`
	Sent       uint64           `json:"sent"`
	Skipped    uint64           `json:"skipped"`
	SendErrors uint64           `json:"send_errors"`
	LateP99    float64          `json:"late_p99_seconds"`
	Received   uint64           `json:"received"`
	Lost       int64            `json:"lost"`
	Twice      uint64           `json:"twice"`
	Malformed  uint64           `json:"malformed"`
	TransitP50 float64          `json:"transit_p50_seconds"`
	TransitP99 float64          `json:"transit_p99_seconds"`
	Datagrams  uint64           `json:"report_datagrams"`
}

type agentPlanAnswer struct {
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

type controllerState struct {
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Problem   string    `json:"problem,omitempty"`
}

// agentAnswerOf asks the agent of this process.
func agentAnswerOf(a *agent.Agent) agentAnswer {
	s, n := a.Status(), a.Stats()
	out := agentAnswer{
		Version: version(), Name: s.Name, Interface: s.Interface, Address: s.Address.String(),
		Plan: agentPlanAnswer{Epoch: s.Epoch, From: s.From, Since: s.Since, Probes: s.Load.Sends, Detailed: s.Load.Detailed, SendBPS: s.Load.SendBPS,
			SendLimit: s.SendBPS, ReceiveBPS: s.Load.ReceiveBPS, TakeLimit: s.TakeBPS, Refused: s.Refused},
		Sent: n.Sent, Skipped: n.Skipped, SendErrors: n.SendErrors, LateP99: n.Late.Quantile(0.99).Seconds(), Received: n.Received, Lost: n.Lost, Twice: n.Twice,
		TransitP50: n.Transit.Quantile(0.5).Seconds(), TransitP99: n.Transit.Quantile(0.99).Seconds(), Datagrams: n.Datagrams,
	}
	n.Reasons(func(_ string, count uint64) { out.Malformed += count })
	if c := s.Controller; c.Address != "" {
		out.Controller = &controllerState{c.Address, c.Connected, c.Since, c.Problem}
	}
	return out
}

// problem is what is wrong with the agent, in a sentence, or "".
func (x *agentAnswer) problem() string {
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

// agentInOneLine is the state of an agent for who has one line to read.
func agentInOneLine(a *agent.Agent) string {
	x := agentAnswerOf(a)
	text := fmt.Sprintf("plan %d, %d probes, %d sent, %d received", x.Plan.Epoch, x.Plan.Probes, x.Sent, x.Received)
	if p := x.problem(); p != "" {
		text += "; " + p
	}
	return text
}

// agentPage answers questions about an agent.
type agentPage struct {
	server   *http.Server
	listener net.Listener
}

func (p *agentPage) url() string {
	if p.listener == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

func (p *agentPage) Close() {
	if p.server != nil {
		p.server.Close()
	}
}

// serveAgent answers at an address; none serves nothing.
func serveAgent(address string, a *agent.Agent) (*agentPage, error) {
	if address == "" {
		return &agentPage{}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("status: %w (another address: status.listen)", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(agentMetricsOf{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		x := agentAnswerOf(a)
		if x.Plan.Epoch == 0 {
			http.Error(w, x.problem(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(agentAnswerOf(a)) // who hung up is not told
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go s.Serve(l)
	return &agentPage{s, l}, nil
}

func agentStatusCommand() *cobra.Command {
	o := asker{who: "agent"}
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask a running agent which plan is in force, and what it sends and receives",
		Long: `Ask a running agent for its plan, its controller and its counts. Exit status 1 if no
plan is in force, if the controller is gone, or if the last plan was refused; the
agent goes on with the plan that it has.`,
		Args: exactArgs(0),
	}
	c.Flags().StringVar(&o.url, "url", "http://127.0.0.1:9464", "status.listen of the running agent")
	c.Flags().StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var x agentAnswer
		if err := o.get(c.Context(), "/status", &x, c.OutOrStdout()); err != nil {
			return err
		}
		if o.format == "json" {
			return nil
		}
		if err := writeAgentStatus(c.OutOrStdout(), &x); err != nil {
			return err
		}
		if p := x.problem(); p != "" {
			return errors.New(p)
		}
		return nil
	}
	return c
}

// writeAgentStatus writes an answer for people.
func writeAgentStatus(w io.Writer, x *agentAnswer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "agent\t%s, %s on %s\n", plain(x.Name, false), x.Address, plain(x.Interface, false))
	if p := &x.Plan; p.Epoch > 0 {
		fmt.Fprintf(t, "plan\tepoch %d from %s, since %s\n", p.Epoch, plain(p.From, false), p.Since.UTC().Format(time.RFC3339))
		fmt.Fprintf(t, "\t%d probes, %d in detail; sends %s of %s, receives %s of %s\n", p.Probes, p.Detailed, show.BitRate(p.SendBPS), show.BitRate(p.SendLimit), show.BitRate(p.ReceiveBPS), show.BitRate(p.TakeLimit))
	}
	if c := x.Controller; c != nil && c.Connected {
		fmt.Fprintf(t, "controller\t%s, since %s\n", plain(c.Address, false), c.Since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(t, "sent\t%s, %s skipped, %s errors; 99 %% less than %s late\n", count(x.Sent), count(x.Skipped), count(x.SendErrors), seconds(x.LateP99))
	fmt.Fprintf(t, "received\t%s, %d lost, %s twice, %s malformed\n", count(x.Received), x.Lost, count(x.Twice), count(x.Malformed))
	if x.Received > 0 {
		fmt.Fprintf(t, "transit\thalf less than %s, 99 %% less than %s\n", seconds(x.TransitP50), seconds(x.TransitP99))
	}
	return t.Flush()
}
