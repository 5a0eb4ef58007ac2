package collector

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/sink/web"
)

// newWeb makes the page and binds its address.
func (c *Collector) newWeb() (*web.Server, error) {
	s, err := web.New(c.cfg.Web, web.Deps{
		Status:  c.status,
		Ledger:  c.ledger.Snapshot,
		Metrics: promhttp.HandlerFor(c.registry(), promhttp.HandlerOpts{}),
		Health:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }),
		Ready:   http.HandlerFunc(c.serveReady),
	})
	if err != nil {
		return nil, err
	}
	return s, s.Listen()
}

// serveReady says whether reports are received and can be stored.
func (c *Collector) serveReady(w http.ResponseWriter, _ *http.Request) {
	var problems []string
	if !c.ready.Load() {
		problems = append(problems, "not receiving")
	}
	for _, s := range c.sinks {
		if p := s.problem(); p != "" {
			problems = append(problems, s.name+": "+p)
		}
	}
	if len(problems) > 0 {
		http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// status is what the page says about the collector.
func (c *Collector) status() web.Status {
	c.stateMu.Lock()
	rate, start := c.lastRate, c.start
	c.stateMu.Unlock()
	s := web.Status{Version: c.opt.Version, Start: start, Window: c.cfg.Window, ReportsPerSecond: rate, Sources: c.sources()}
	add := func(name, value string) { s.Settings = append(s.Settings, web.Setting{Name: name, Value: value}) }
	add("window", c.cfg.Window.String())
	add("dialect", c.cfg.Exporters.Profile)
	for _, p := range c.cfg.Exporters.Profiles {
		add("dialect of "+p.Prefix, p.Profile)
	}
	if len(c.sinks) == 0 {
		add("stores", "none: nothing outlives this page; enable influx or parquet in the settings")
	}
	for _, st := range c.sinks {
		add("store "+st.name, st.target)
	}
	return s
}

// sources describes where reports come from, one entry an address.
func (c *Collector) sources() []web.Source {
	var out []web.Source
	for _, k := range c.udp.Sockets() {
		i := slices.IndexFunc(out, func(s web.Source) bool { return s.Address == k.Addr.String() })
		if i < 0 {
			i = len(out)
			out = append(out, web.Source{Kind: "udp", Address: k.Addr.String()})
		}
		out[i].Frames += k.Frames
	}
	for i, n := range c.udp.Notices() {
		out[min(i, len(out)-1)].Problem = n
	}
	return out
}
