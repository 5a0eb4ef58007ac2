package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// controlAddress is where a control of probes is asked by default.
const controlAddress = "127.0.0.1:9465"

// controlConnections are those that are open to the page at a time, beside a reserve for health checks and metrics.
const controlConnections = 64

// controlPage answers "hopscope control" as long as the program runs. The answers are those of the loop while there is
// one. In a fleet there is one while this control is in charge.
type controlPage struct {
	server   *http.Server
	listener net.Listener
	unix     string

	journal *loop.Journal
	metrics http.Handler
	standby http.Handler
	loop    atomic.Pointer[loop.Loop]    // nil for none
	handler atomic.Pointer[http.Handler] // of the loop, or standby
	terms   atomic.Uint64                // loops there were

	closed, agentsClosed atomic.Uint64 // connections that were closed for others
}

// serveControl serves answers at an address; an empty one serves nothing. While there is no loop, by returns the
// reason.
func serveControl(address string, j *loop.Journal, by func(context.Context) loop.Standby) (*controlPage, error) {
	p := &controlPage{journal: j}
	registry := prometheus.NewRegistry()
	registry.MustRegister(controlMetricsOf{p}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	p.standby = loop.AdminStandby(by, j, p.metrics)
	p.handler.Store(&p.standby)
	if address == "" {
		return p, nil
	}
	listener, err := loop.ListenAdmin(address)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	h := web.Screened(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.handler.Load()).ServeHTTP(w, r) }))
	h = peer.LimitHTTP(h, peer.Probe, func(w http.ResponseWriter) { http.Error(w, "too many connections", http.StatusServiceUnavailable) })
	p.server = &http.Server{Handler: h, ConnContext: peer.WithConn, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, MaxHeaderBytes: 16 << 10}
	p.listener = listener
	go p.server.Serve(peer.Limit(listener, peer.Limits{Max: controlConnections, Reserve: 16, Evicted: func() { p.closed.Add(1) }}))
	if strings.HasPrefix(address, "unix:") {
		p.unix = address
	}
	return p, nil
}

// steered has the page answer for a loop, until end is called.
func (p *controlPage) steered(l *loop.Loop) (end func()) {
	h := loop.Admin(l, p.journal, p.metrics)
	p.terms.Add(1)
	p.loop.Store(l)
	p.handler.Store(&h)
	return func() {
		p.handler.Store(&p.standby)
		p.loop.Store(nil)
	}
}

// notYet is the answer of a control before it has a loop.
func notYet(context.Context) loop.Standby {
	return loop.Standby{Why: "this control is not running yet"}
}

// at is where the page is asked, or "".
func (p *controlPage) at() string {
	switch {
	case p.listener == nil:
		return ""
	case p.unix != "":
		return p.unix
	}
	return "http://" + p.listener.Addr().String()
}

// flag is the flag that "hopscope control status" needs.
func (p *controlPage) flag() string {
	if at := p.at(); at != "" && at != "http://"+controlAddress {
		return " --url " + at
	}
	return ""
}

func (p *controlPage) Close() {
	if p.server != nil {
		p.server.Close()
	}
}

// loopView is a control of probes as the page shows it; nil where it does not answer.
func loopView(l *loop.Loop, links *steer.Links) *atlas.LoopView {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var v *atlas.LoopView // the loop's, until it has answered
	err := l.Ask(ctx, func(c *control.Controller, _ *loop.State) { v = viewOf(c, links) })
	if err != nil {
		return nil
	}
	return v
}

// linkEnd is the end that a direction leaves, by its name.
func linkEnd(links *steer.Links, name string) (atlas.LinkEnd, bool) {
	node, port, ok := links.End(name)
	return atlas.LinkEnd{Node: node, Port: port}, ok
}

// viewOf is the page's view of a controller.
func viewOf(c *control.Controller, links *steer.Links) *atlas.LoopView {
	s := c.Status()
	v := &atlas.LoopView{Epoch: s.Epoch, Phase: string(s.Phase), Paused: s.Paused, DryRun: s.DryRun, AwaitingApproval: s.Pending != nil}
	for _, x := range s.Suspects {
		if end, ok := linkEnd(links, x.Link); ok {
			v.Suspects = append(v.Suspects, atlas.LoopSuspect{LinkEnd: end, Weight: x.Weight, Why: x.Why, Since: x.Since})
		}
	}
	p := c.Target()
	if p == nil {
		return v
	}
	for k := range p.Probes {
		x := atlas.LoopProbe{ID: p.Probes[k].ID, Detailed: p.IsDetailed(p.Probes[k].ID)}
		for _, name := range p.Probes[k].Links {
			if end, ok := linkEnd(links, name); ok {
				x.Links = append(x.Links, end)
			}
		}
		v.Probes = append(v.Probes, x)
	}
	return v
}
