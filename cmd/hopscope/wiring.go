package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/history"
	"github.com/hopscope/hopscope/sink/kafka"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// running is a collector of the settings, with its page.
type running struct {
	*collector.Collector
	cfg  *config
	page *web.Server // nil without one

	history      *history.Store // nil without one
	noHistory    string         // why there is none, and what to set
	historyFails bool           // it could not be opened

	fleet   *kafka.Writer          // nil where the collector is no member of one
	replays bool                   // its windows are those of a capture
	served  atomic.Pointer[string] // where the page is, for later requests
	inForce atomic.Pointer[config] // the settings with what was reloaded
	loop    atomic.Pointer[func() *atlas.LoopView]
}

// openLive opens what the settings name: sources, stores and the page. The page draws network, or where that is nil what the
// settings name.
func openLive(cfg *config, opt collector.Options, network *atlas.Map) (*running, error) {
	cfg.listen()
	sources, err := collector.OpenSources(cfg)
	if err != nil {
		return nil, err
	}
	opt.Sources = append(opt.Sources, sources...)
	r, err := open(cfg, opt)
	if err != nil {
		return r, err
	}
	r.keepHistory(opt.Log)
	if cfg.Web.Listen == "" {
		return r, nil
	}
	if network == nil {
		network, err = pageMap(cfg)
	}
	if err == nil {
		r.Draw(namesOf(network))
		err = r.addPage(cfg.Web, network, opt.Log)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open makes a collector with the stores that the settings name and the sources that opt has.
func open(cfg *config, opt collector.Options) (_ *running, err error) {
	opt.LoadNetwork, opt.LoadPlan, opt.Version = loadNetwork, pintplan.ReadFile, version()
	if opt.Stores, opt.Reports, err = collector.OpenStores(cfg, opt.Policy); err != nil {
		return nil, errors.Join(err, collector.CloseSources(opt.Sources))
	}
	c, err := collector.New(cfg.Config, cfg.Analysis, opt)
	if err != nil {
		return nil, err
	}
	r := &running{Collector: c, cfg: cfg}
	r.inForce.Store(cfg)
	if err := r.join(&opt); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// url returns the address of the page, or "".
func (r *running) url() string {
	if r.page == nil {
		return ""
	}
	return r.page.URL()
}

// addPage binds the address of the page and makes it a writer of the collector. It draws network, which may be nil.
func (r *running) addPage(cfg web.Config, network *atlas.Map, log *slog.Logger) error {
	registry := r.Registry()
	if r.history != nil {
		registry.MustRegister(historyCollector{r.history})
	}
	if r.fleet != nil {
		registry.MustRegister(fleetCollector{r.fleet})
	}
	page, err := openPage(cfg, web.Deps{
		Status: r.status, Ledger: r.Balances, Names: r.Names, Loop: r.loopView, Unread: r.unread, Paths: pagePaths(r.Inferred), PathsOf: pagePathsOf(r.InferredOf), Digests: pageDigests(r.Digests),
		Setting: r.setting, Rules: r.cfg.Alerts.File, Warn: warner(log), Past: ask.Past{Store: r.history, None: r.noHistory},
	}, network, registry, r.NotReady, r.notes)
	if err != nil {
		return err
	}
	r.page = page
	url := page.URL()
	r.served.Store(&url)
	r.AddWriter(page)
	return nil
}

// setting returns the value of a key of the settings in force, and its meaning.
func (r *running) setting(key string) (value, doc string, ok bool) {
	return settings.Value(r.inForce.Load(), key)
}

// notes are what is worth knowing of a collector that is ready: its problems, and how much of the last window was judged.
func (r *running) notes() []string {
	s := r.Status()
	if text := s.Coverage.Text(); text != "" {
		return append(r.historyProblems(s.Problems), text)
	}
	return r.historyProblems(s.Problems)
}

// openPage binds the address of a page that draws network, which may be nil. The function unready returns what keeps
// the program from being ready. The function notes, which may be nil, returns other remarks, beside what limits of the
// page left out.
func openPage(cfg web.Config, deps web.Deps, network *atlas.Map, registry *prometheus.Registry, unready, notes func() []string) (page *web.Server, err error) {
	deps.Map = func() *atlas.Map { return network }
	deps.Command, deps.Control = commandOf(cfg.Control), stateOf(cfg.Control)
	deps.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	deps.Health = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	deps.Ready = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if problems := unready(); len(problems) > 0 {
			http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
			return
		}
		lines := []string{"ready"}
		if notes != nil {
			lines = append(lines, notes()...)
		}
		fmt.Fprintln(w, strings.Join(append(lines, page.LeftOut()...), "\n"))
	})
	page, err = web.New(cfg, deps)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(pageCollector{page})
	return page, page.Listen()
}

// steeredBy lets the page show a control of probes.
func (r *running) steeredBy(view func() *atlas.LoopView) { r.loop.Store(&view) }

// loopView is the control of probes, nil where there is none.
func (r *running) loopView() *atlas.LoopView {
	if view := r.loop.Load(); view != nil {
		return (*view)()
	}
	return nil
}

// status is the collector's status on the page.
func (r *running) status() web.Status {
	c := r.Status()
	s := web.Status{Version: version(), Start: c.Start, Window: c.Window, ReportsPerSecond: c.ReportsPerSecond, Problems: r.historyProblems(r.NotReady()), LeftOut: c.LeftOut}
	if c.Coverage.Seen+c.Coverage.Paths > 0 {
		s.Coverage = &c.Coverage
	}
	for _, in := range c.Inputs {
		s.Sources = append(s.Sources, web.Source{Kind: in.Source, Address: in.Name, Problem: in.Problem, Frames: in.Frames})
	}
	add := func(name, value string) { s.Settings = append(s.Settings, web.Setting{Name: name, Value: value}) }
	for _, p := range c.Problems {
		add("problem", p)
	}
	add("instance", c.Instance)
	add("window", c.Window.String())
	add("dialect", c.Dialects.Profile)
	for _, p := range c.Dialects.Profiles {
		add("dialect of "+p.Prefix, p.Profile)
	}
	for i, d := range c.Recognised {
		if i == summary.MostDialects {
			add("reports of others", fmt.Sprintf("%d more exporters that cannot be read", len(c.Recognised)-i))
			break
		}
		add("reports of "+d.Address, d.Text)
	}
	for i, x := range c.IPFIX {
		if i == summary.MostDialects {
			add("IPFIX of others", fmt.Sprintf("%d more exporters", len(c.IPFIX)-i))
			break
		}
		add("IPFIX of "+x.Source, x.Text)
	}
	for i, m := range c.Unread {
		if i == summary.MostDialects {
			add("metrics not read", fmt.Sprintf("%d more names", len(c.Unread)-i))
			break
		}
		what := "metric not read"
		if m.Why != "" {
			what = "metric not counted"
		}
		add(what, m.Text())
	}
	if !slices.ContainsFunc(c.Stores, func(s collector.StoreStatus) bool { return !s.Alerts }) {
		add("stores", "none: nothing outlives this page; enable "+oneOf(collector.StoreNames(r.cfg))+" in the settings")
	}
	if c.Diverted > 0 {
		add("diverted", fmt.Sprintf("%d reports went to the fleet's consumers one by one, and are not on this page", c.Diverted))
	}
	for _, st := range c.Stores {
		if st.Alerts {
			add("alerts to "+st.Name, st.Target)
			continue
		}
		add("store "+st.Name, st.Target)
	}
	return s
}

// unread are the exporters that the page lists as not understood, and behind them the metrics of which nothing is counted.
func (r *running) unread() (out []web.Unread) {
	status := r.Status()
	for _, d := range status.Recognised {
		if d.Unread == 0 || d.State == guess.Adopted.String() {
			continue
		}
		sample, err := hex.DecodeString(d.Sample)
		if err != nil {
			sample = nil
		}
		out = append(out, web.Unread{Address: d.Address, Count: d.Unread, AtLeast: d.AtLeast, Text: d.Text, Sample: sample})
	}
	for _, m := range status.Unread {
		name := "metric " + m.Name
		if m.Name == "" {
			name = "further metrics"
		}
		out = append(out, web.Unread{Address: name, Count: m.Points, Text: m.Text()})
	}
	return out
}

// oneOf returns, for example, "influx, parquet or jsonl".
func oneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// loadNetwork reads the network that PINT packets pass: a file or a generator. Node names that are all numbers are node
// ids; otherwise nodes count from 0 in the order of the file.
func loadNetwork(topology string) (*collector.Network, error) {
	g, err := load.Topology(topology)
	if err != nil {
		return nil, err
	}
	ids, numbers := g.IDs()
	n := networkOf(g, ids)
	for i := 0; i < len(ids) && !numbers; i++ {
		n.Labels = append(n.Labels, g.NodeName(i))
	}
	return n, nil
}

// networkOf returns the network of a graph, whose nodes have these ids.
func networkOf(g *topo.Graph, ids []uint32) *collector.Network {
	return &collector.Network{Nodes: ids, Links: g.NodePairs(), Weights: g.PairWeights()}
}

// pulse counts the windows that end: it is a writer of the collector that writes nothing.
type pulse struct{ beats atomic.Uint64 }

func (*pulse) Name() string { return "pulse" }

func (p *pulse) WriteWindow(context.Context, *sink.Window) error {
	p.beats.Add(1)
	return nil
}

// supervised is supervise for a collector that is about to run.
func (r *running) supervised(ctx context.Context, log *slog.Logger) *cli.Manager {
	p := &pulse{}
	r.AddWriter(p)
	return cli.Supervise(ctx, log, r.cfg.Window, p.beats.Load, r.inOneLine)
}

// inOneLine is the state of a collector in one line.
func (r *running) inOneLine() string {
	s := r.Status()
	text := fmt.Sprintf("%.0f reports/s", s.ReportsPerSecond)
	problems := append(r.NotReady(), s.Problems...)
	switch len(problems) {
	case 0:
		return text
	case 1:
		return text + "; " + problems[0]
	}
	return fmt.Sprintf("%s; %d problems, the first: %s", text, len(problems), problems[0])
}
