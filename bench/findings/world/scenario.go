package world

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference"
)

// Scenario is one world with its truth. Times are windows, counted from the end of the quiet ones.
type Scenario struct {
	Name, Kind, about string
	tune              bool // of the half that may be tuned on
	benign            bool // nothing of the network may be called critical
	Real              bool // a real loss beside a benign change

	Window               float64 // s
	quiet, Length, after int     // windows before, of and behind what happens
	known                int     // first window from which it can be known
	Severity             string  // of the truth; "any"

	shape   shape
	report  reporting
	traffic traffic
	named   []namedFlow
	faults  []fault
	truth   []truth
	touched []truth
}

// reporting is how switches report.
type reporting struct {
	format         string
	sources, drops bool
}

// traffic is the sampled traffic.
type traffic struct {
	flows   int
	packets float64 // that are sampled in a window, of all flows
	tcp     float64 // share of flows
	high    float64 // share of flows of the class that is served first
}

// namedFlow is a flow that a scenario speaks of, by the ports towards its hosts.
type namedFlow struct {
	name     string
	from, to int
}

// truth is an element as the scenario names it.
type truth struct {
	kind       string
	node, peer int
	port       int
	flow       string
}

// fault is something that happens. node and port are -1 where it is at none, or at all.
type fault struct {
	verb        string
	from, until float64 // s
	node, peer  int
	port, other int
	both        bool // of a link, not of one direction
	flow        string
	opt         map[string]float64
}

// Limits of a scenario, which bound time and memory.
const (
	maxLines   = 200
	maxWindows = 2000
	maxFlows   = 2000
	maxPackets = 20000
)

//go:embed scenarios/*.txt
var texts embed.FS

// All reads the scenarios of the tree, a benign one with a real loss as two, by name.
func All() ([]Scenario, error) {
	names, err := fs.Glob(texts, "scenarios/*.txt")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, file := range names {
		text, err := texts.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list, err := Parse(strings.TrimSuffix(path.Base(file), ".txt"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// parser reads one scenario.
type parser struct {
	s   Scenario
	net *network
	has map[string]bool
}

// Parse reads a scenario. These are two if a line "real" begins the events beside a benign change. Errors name the
// line.
func Parse(name, text string) ([]Scenario, error) {
	p := &parser{has: map[string]bool{}}
	p.s = Scenario{
		Name: name, Window: 10, quiet: 380, Length: 30, after: 12, Severity: "any",
		shape:   shape{kind: "leaf-spine", leaves: 4, spines: 2, hosts: 2, lag: 1, rate: 1e9, load: .4, buffer: 200e3, burst: 1, sway: .05},
		report:  reporting{format: "int21", sources: true, drops: true},
		traffic: traffic{flows: 60, packets: 500, tcp: .5},
	}
	lines := strings.Split(text, "\n")
	if len(lines) > maxLines {
		return nil, fmt.Errorf("%d lines: write at most %d", len(lines), maxLines)
	}
	var list []Scenario
	for i, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "real" && len(words) == 1 {
			if err := p.finish(); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			if !p.s.benign {
				return nil, fmt.Errorf("line %d: real: only a benign change has a real loss beside it: take the line out, or write benign above it", i+1)
			}
			list = append(list, p.s)
			p.s.faults = slices.Clone(p.s.faults)
			p.s.Name, p.s.Kind, p.s.benign, p.s.Real, p.has["benign"] = name+"+real", "loss beside a benign change", false, true, false
			continue
		}
		if err := p.line(words); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", i+1, words[0], err)
		}
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(lines), err)
	}
	return append(list, p.s), nil
}

func (p *parser) finish() error {
	switch {
	case !p.has["kind"]:
		return fmt.Errorf("there is no kind: write kind and a word for the row of the table")
	case !p.has["half"]:
		return fmt.Errorf("there is no half: write half tune or half report")
	case len(p.s.faults) == 0:
		return fmt.Errorf("nothing happens: write a line such as at 0 for 30 loss leaf1>spine1 rate=1%%")
	case p.s.benign && len(p.s.truth) > 0:
		return fmt.Errorf("a benign change has a truth: take one of both out")
	case !p.s.benign && len(p.s.truth) == 0:
		return fmt.Errorf("no truth: write truth and an element, or benign")
	case p.s.known >= p.s.Length:
		return fmt.Errorf("known %d is not within the %d windows of what happens", p.s.known, p.s.Length)
	}
	return nil
}

func (p *parser) line(words []string) error {
	s := &p.s
	key, args := words[0], words[1:]
	p.has[key] = true
	if key != "network" && p.net == nil {
		switch key {
		case "flow", "at", "truth", "touched":
			p.net = s.shape.build()
		}
	}
	switch key {
	case "kind":
		s.Kind = strings.Join(args, " ")
		return some(s.Kind)
	case "about":
		s.about = strings.Join(args, " ")
		return some(s.about)
	case "benign":
		s.benign = true
		return count(args, 0)
	case "half":
		if len(args) != 1 || args[0] != "tune" && args[0] != "report" {
			return fmt.Errorf("write half tune or half report")
		}
		s.tune = args[0] == "tune"
	case "severity":
		if len(args) != 1 {
			return fmt.Errorf("write one of info, warning, critical, any")
		}
		if _, err := inference.ParseSeverity(args[0]); err != nil && args[0] != "any" {
			return fmt.Errorf("write one of info, warning, critical, any")
		}
		s.Severity = args[0]
	case "network":
		if p.net != nil {
			return fmt.Errorf("comes behind lines that name its nodes: write it first")
		}
		return p.network(args)
	case "reports":
		return p.reports(args)
	case "traffic":
		return options(args, map[string]limit{
			"flows": {1, maxFlows, func(v float64) { s.traffic.flows = int(v) }}, "packets": {1, maxPackets, func(v float64) { s.traffic.packets = v }},
			"tcp": {0, 1, func(v float64) { s.traffic.tcp = v }}, "high": {0, 1, func(v float64) { s.traffic.high = v }},
		})
	case "window":
		return single(args, 1, 60, func(v float64) { s.Window = v })
	case "quiet":
		return single(args, 1, maxWindows, func(v float64) { s.quiet = int(v) })
	case "length":
		return single(args, 1, maxWindows, func(v float64) { s.Length = int(v) })
	case "after":
		return single(args, 0, maxWindows, func(v float64) { s.after = int(v) })
	case "known":
		return single(args, 0, maxWindows, func(v float64) { s.known = int(v) })
	case "flow":
		return p.flow(args)
	case "at":
		return p.at(args)
	case "truth", "touched":
		t, err := p.element(args)
		if err != nil {
			return err
		}
		if key == "truth" {
			s.truth = append(s.truth, t)
		} else {
			s.touched = append(s.touched, t)
		}
	default:
		return fmt.Errorf("is no line of a scenario: there are about, after, at, benign, flow, half, kind, known, length, network, quiet, real, reports, severity, touched, traffic, truth and window")
	}
	return nil
}

func some(text string) error {
	if text == "" {
		return fmt.Errorf("says nothing: write some words behind it")
	}
	return nil
}

func count(args []string, n int) error {
	if len(args) != n {
		return fmt.Errorf("has %d words behind it: write %d", len(args), n)
	}
	return nil
}

// limit is the range of an option, and where it goes.
type limit struct {
	least, most float64
	set         func(float64)
}

// options reads name=value.
func options(args []string, known map[string]limit) error {
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		l, there := known[name]
		if !ok || !there {
			var names []string
			for k := range known {
				names = append(names, k+"=")
			}
			slices.Sort(names)
			if len(names) == 0 {
				return fmt.Errorf("%q is too much: nothing stands there", a)
			}
			return fmt.Errorf("%q is no option: there are %s", a, strings.Join(names, ", "))
		}
		if err := single([]string{value}, l.least, l.most, l.set); err != nil {
			return fmt.Errorf("%s=%w", name, err)
		}
	}
	return nil
}

func single(args []string, least, most float64, set func(float64)) error {
	if err := count(args, 1); err != nil {
		return err
	}
	v, err := number(args[0])
	if err != nil {
		return err
	}
	if !(v >= least && v <= most) {
		return fmt.Errorf("%s is outside %g to %g", args[0], least, most)
	}
	set(v)
	return nil
}

var units = []struct {
	name string
	is   float64
}{{"us", 1e-6}, {"ms", 1e-3}, {"ppm", 1e-6}, {"s", 1}, {"%", .01}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}}

// number reads 20us, 5ms, 3s, 10%, 200K, 1G, 20ppm or a plain number.
func number(text string) (float64, error) {
	scale, digits := 1.0, text
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			scale, digits = u.is, rest
			break
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number: write such as 0.5, 10%%, 20us, 5ms, 3s, 200K or 1G", text)
	}
	return v * scale, nil
}

func (p *parser) network(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("write leaf-spine, ring or clos behind it")
	}
	h := &p.s.shape
	if h.kind = args[0]; !slices.Contains([]string{"leaf-spine", "ring", "clos"}, h.kind) {
		return fmt.Errorf("%q is no network: write leaf-spine, ring or clos", h.kind)
	}
	same := 0.0
	err := options(args[1:], map[string]limit{
		"leaves": {2, maxNodes / 4, func(v float64) { h.leaves = int(v) }}, "nodes": {3, maxNodes / 4, func(v float64) { h.leaves = int(v) }},
		"pods":   {2, maxNodes / 8, func(v float64) { h.leaves = int(v) }},
		"spines": {1, maxNodes / 4, func(v float64) { h.spines = int(v) }}, "cores": {2, maxNodes / 4, func(v float64) { h.spines = int(v) }},
		"hosts": {1, maxHosts, func(v float64) { h.hosts = int(v) }}, "lag": {1, maxLag, func(v float64) { h.lag = int(v) }},
		"rate": {1e6, 1e12, func(v float64) { h.rate = v }}, "load": {.01, .95, func(v float64) { h.load = v }},
		"buffer": {2e3, 1e9, func(v float64) { h.buffer = v }}, "sway": {0, .5, func(v float64) { h.sway = v }},
		"burst": {1, 50, func(v float64) { h.burst = v }}, "same-hash": {0, 1, func(v float64) { same = v }},
	})
	h.same = same == 1
	return err
}

func (p *parser) reports(args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"int21", "int10", "xd20", "local05"}, args[0]) {
		return fmt.Errorf("write int21, int10, xd20 or local05 behind it, and then sources=0 or drops=0 where there are none")
	}
	r := &p.s.report
	r.format = args[0]
	return options(args[1:], map[string]limit{
		"sources": {0, 1, func(v float64) { r.sources = v != 0 }}, "drops": {0, 1, func(v float64) { r.drops = v != 0 }},
	})
}

func (p *parser) flow(args []string) error {
	if err := count(args, 3); err != nil {
		return fmt.Errorf("%w: its name, and two hosts such as leaf1.1 leaf2.1", err)
	}
	from, err := p.host(args[1])
	if err != nil {
		return err
	}
	to, err := p.host(args[2])
	if err != nil {
		return err
	}
	if p.net.ports[from].node == p.net.ports[to].node {
		return fmt.Errorf("%s and %s are at one node: name hosts of two", args[1], args[2])
	}
	if len(p.s.named) >= maxFlows {
		return fmt.Errorf("there are %d flows with names already", maxFlows)
	}
	p.s.named = append(p.s.named, namedFlow{args[0], from, to})
	return nil
}

func (p *parser) host(text string) (int, error) {
	i, err := p.net.port(text)
	if err == nil && p.net.ports[i].peer >= 0 {
		err = fmt.Errorf("%q is no host: write leaf1.1", text)
	}
	return i, err
}

func (p *parser) hasFlow(name string) error {
	if !slices.ContainsFunc(p.s.named, func(f namedFlow) bool { return f.name == name }) {
		return fmt.Errorf("there is no flow %q: write a line such as flow %s leaf1.1 leaf2.1 above", name, name)
	}
	return nil
}

// verb is a kind of event, with its places and its options. at is p(ort), l(ink), n(ode), a(ll), h(ost), f(low): one
// of them is enough.
type verb struct {
	at   string
	also string // a second word: l, h or f; "" for none
	opt  map[string]limit
}

func opts(list ...any) map[string]limit {
	m := map[string]limit{"every": {least: .01, most: 1e5}, "lasts": {least: .001, most: 1e5}}
	for i := 0; i < len(list); i += 3 {
		m[list[i].(string)] = limit{least: list[i+1].(float64), most: list[i+2].(float64)}
	}
	return m
}

var verbs = map[string]verb{
	"loss":      {at: "pl", opt: opts("rate", 0., 1., "above", 0., 1.)},
	"down":      {at: "ln", opt: opts("converge", 0., 1e4)},
	"load":      {at: "p", opt: opts("add", -.95, 5., "high", 0., 1.)},
	"cut":       {at: "p", opt: opts("to", .001, 1.)},
	"slow":      {at: "n", opt: opts("by", 0., 1.)},
	"delay":     {at: "p", opt: opts("by", 0., 1.)},
	"incast":    {at: "p", opt: opts("bytes", 0., 1e9)},
	"pfc":       {at: "p", opt: opts("to", .001, 1., "back", 0., 5.)},
	"swallow":   {at: "n", also: "f", opt: opts("rate", 0., 1.)},
	"deny":      {at: "n", opt: opts("share", 0., 1.)},
	"loop":      {at: "l", also: "h", opt: opts("share", 0., 1., "rounds", 1., 100.)},
	"mute":      {at: "na", opt: opts()},
	"lose":      {at: "na", opt: opts("rate", 0., 1.)},
	"duplicate": {at: "na", opt: opts("rate", 0., 1.)},
	"reorder":   {at: "na", opt: opts("rate", 0., 1., "by", 0., 60.)},
	"restart":   {at: "na", opt: opts()},
	"sample":    {at: "na", opt: opts("in", 1., 1e6, "flows", 0., 1.)},
	"police":    {at: "na", opt: opts("rate", .001, 1e9, "numbered", 0., 1.)},
	"batch":     {at: "na", opt: opts("by", 0., 60.)},
	"nat":       {at: "na", opt: opts()},
	"ids":       {at: "na", opt: opts()},
	"stuck":     {at: "n", opt: opts()},
	"lie":       {at: "n", opt: opts("times", 0., 1e6)},
	"miscable":  {at: "l", also: "l", opt: opts()},
	"polarise":  {at: "n", opt: opts()},
	"drain":     {at: "ln", opt: opts()},
	"renew":     {at: "a", opt: opts("share", 0., 1.)},
	"pause":     {at: "na", opt: opts("share", 0., 1.)},
	"thin":      {at: "na", opt: opts("in", 1., 1e6)},
	"clock":     {at: "n", opt: opts("step", -1e6, 1e6, "drift", -.01, .01)},
}

func (p *parser) at(args []string) error {
	if len(args) < 5 || args[1] != "for" {
		return fmt.Errorf("write such as at 0 for 30 loss leaf1>spine1 rate=1%%")
	}
	f := fault{verb: args[3], node: -1, peer: -1, port: -1, other: -1, opt: map[string]float64{}}
	var from, length float64
	if err := single(args[:1], -maxWindows, maxWindows, func(v float64) { from = v }); err != nil {
		return err
	}
	if err := single(args[2:3], 0, maxWindows, func(v float64) { length = v }); err != nil {
		return err
	}
	f.from, f.until = from*p.s.Window, (from+length)*p.s.Window
	v, ok := verbs[f.verb]
	if !ok {
		var names []string
		for k := range verbs {
			names = append(names, k)
		}
		slices.Sort(names)
		return fmt.Errorf("%q cannot happen: there are %s", f.verb, strings.Join(names, ", "))
	}
	if err := p.place(&f, v.at, args[4]); err != nil {
		return err
	}
	rest := args[5:]
	if v.also != "" {
		if len(rest) == 0 {
			return fmt.Errorf("%s needs another word behind %s: a link, a host or the name of a flow", f.verb, args[4])
		}
		var err error
		switch v.also {
		case "l":
			f.other, err = p.net.line(rest[0])
		case "h":
			f.other, err = p.host(rest[0])
		case "f":
			f.flow, err = rest[0], p.hasFlow(rest[0])
		}
		if err != nil {
			return err
		}
		rest = rest[1:]
	}
	known := map[string]limit{}
	for name, l := range v.opt {
		known[name] = limit{l.least, l.most, func(v float64) { f.opt[name] = v }}
	}
	if err := options(rest, known); err != nil {
		return err
	}
	_, every := f.opt["every"]
	_, lasts := f.opt["lasts"]
	if every && !lasts {
		if f.verb != "incast" {
			return fmt.Errorf("every= needs lasts=: write how long it lasts each time")
		}
		f.opt["lasts"] = f.opt["every"]
	}
	if every, ok := f.opt["every"]; ok && routed(f.verb) && (f.until-f.from)/every > maxWindows {
		return fmt.Errorf("every=%g is more than %d times: write a longer one", every, maxWindows)
	}
	p.s.faults = append(p.s.faults, f)
	return nil
}

// place reads where something happens, as one of the places that are allowed.
func (p *parser) place(f *fault, at, text string) (err error) {
	has := func(c string) bool { return strings.Contains(at, c) }
	switch {
	case text == "all" && has("a"):
	case strings.Contains(text, "=") && has("l"):
		f.port, err = p.net.line(text)
		f.both = true
	case strings.ContainsAny(text, ">.") && has("p"):
		f.port, err = p.net.port(text)
	case has("n") && !strings.ContainsAny(text, ">=."):
		f.node, err = p.net.node(text)
	default:
		var list []string
		for _, x := range []struct{ c, what string }{{"a", "all"}, {"l", "a link such as leaf1=spine1"}, {"p", "a port such as leaf1>spine1 or leaf1.1"}, {"n", "a node"}} {
			if has(x.c) {
				list = append(list, x.what)
			}
		}
		return fmt.Errorf("%s does not happen at %q: write %s", f.verb, text, strings.Join(list, ", or "))
	}
	return err
}

// element reads the element that a truth names.
func (p *parser) element(args []string) (t truth, err error) {
	t = truth{node: -1, peer: -1, port: -1}
	if len(args) == 0 {
		return t, fmt.Errorf("write node, link, port, host, exporter, flow, route or collector behind it")
	}
	t.kind = args[0]
	n := 2
	switch t.kind {
	case "collector":
		n = 1
	case "route":
		n = 3
	}
	if err := count(args, n); err != nil {
		return t, err
	}
	switch t.kind {
	case "collector":
	case "node", "exporter":
		t.node, err = p.net.node(args[1])
	case "link":
		t.port, err = p.net.line(args[1])
	case "port":
		t.port, err = p.net.port(args[1])
	case "host":
		t.port, err = p.host(args[1])
	case "flow":
		t.flow, err = args[1], p.hasFlow(args[1])
	case "route":
		if t.node, err = p.net.node(args[1]); err == nil {
			t.peer, err = p.net.node(args[2])
		}
	default:
		err = fmt.Errorf("%q is no element: write node, link, port, host, exporter, flow, route or collector", t.kind)
	}
	return t, err
}
