package load

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

// loader collects the nodes and links of a file together with their lines, so that every error has a place. It passes
// them to a Builder once all are known: names are settled only then.
type loader struct {
	file     string
	name     string // of the graph, if the file has one
	nodes    []nodeSpec
	byID     map[string]int // index into nodes
	links    []linkSpec
	external []endSpec
	agents   []agentSpec
	lab      bool             // a file of containerlab
	open     map[[2]int][]int // one-way links that wait for the other direction
}

type nodeSpec struct {
	id, label string
	tier      topo.Tier
	place     topo.Place
	placed    bool
	host      bool
	line      int
}

type agentSpec struct {
	topo.Agent
	line int
}

type linkSpec struct {
	a, b   endSpec
	oneWay bool // b.attr is not known yet
	line   int
}

type endSpec struct {
	node, port int // index into nodes; 0: any port
	attr       topo.Attr
	line       int
}

func newLoader(file string) *loader {
	return &loader{file: file, byID: map[string]int{}, open: map[[2]int][]int{}}
}

// errorf is a problem at a line of the file.
func (l *loader) errorf(line int, format string, args ...any) error {
	return &Error{File: l.file, Line: line, Err: fmt.Errorf(format, args...)}
}

// node adds a node. The label is the name that people use; without one the id is the name.
func (l *loader) node(line int, id, label string, tier topo.Tier) (int, error) {
	if id == "" {
		return 0, l.errorf(line, "node without a name")
	}
	if n, taken := l.byID[id]; taken {
		return 0, l.errorf(line, "node %q exists since line %d", id, l.nodes[n].line)
	}
	if len(l.nodes) == topo.MaxNodes {
		return 0, l.errorf(line, "more than %d nodes", topo.MaxNodes)
	}
	l.byID[id] = len(l.nodes)
	l.nodes = append(l.nodes, nodeSpec{id: id, label: label, tier: tier, line: line})
	return len(l.nodes) - 1, nil
}

// lookup finds the node that a link names.
func (l *loader) lookup(line int, id string) (int, error) {
	if n, ok := l.byID[id]; ok {
		return n, nil
	}
	return 0, l.errorf(line, "link names a node %q that does not exist", id)
}

func (l *loader) link(line int, a, b endSpec) error {
	if len(l.links) == topo.MaxLinks {
		return l.errorf(line, "more than %d links", topo.MaxLinks)
	}
	a.line, b.line = line, line
	l.links = append(l.links, linkSpec{a: a, b: b, line: line})
	return nil
}

// arc adds one direction of a link. It joins the oldest direction the other way round that has no counterpart yet.
func (l *loader) arc(line, from, to int, attr topo.Attr) error {
	back := [2]int{to, from}
	if wait := l.open[back]; len(wait) > 0 {
		k := &l.links[wait[0]]
		k.b.attr, k.b.line, k.oneWay = attr, line, false
		if l.open[back] = wait[1:]; len(wait) == 1 {
			delete(l.open, back)
		}
		return nil
	}
	if err := l.link(line, endSpec{node: from, attr: attr}, endSpec{node: to, attr: attr}); err != nil {
		return err
	}
	l.links[len(l.links)-1].oneWay = true
	there := [2]int{from, to}
	l.open[there] = append(l.open[there], len(l.links)-1)
	return nil
}

// alone returns the first direction that has no counterpart.
func (l *loader) alone() (k *linkSpec, ok bool) {
	for i := range l.links {
		if l.links[i].oneWay {
			return &l.links[i], true
		}
	}
	return nil, false
}

// build checks what needs the whole file, and makes the graph.
func (l *loader) build() (*topo.Graph, error) {
	if len(l.nodes) == 0 {
		return nil, &Error{File: l.file, Err: errors.New("no nodes")}
	}
	name := l.name
	if name == "" {
		name = l.file
	}
	b := topo.NewBuilder(name)
	for i, name := range l.names() {
		n := b.AddNode(name, l.nodes[i].tier)
		if l.nodes[i].placed {
			b.SetPlace(n, l.nodes[i].place)
		}
		if l.nodes[i].host {
			b.SetHost(n)
		}
	}
	if err := l.checkPorts(); err != nil {
		return nil, err
	}
	end := func(e endSpec) topo.LinkEnd { return topo.LinkEnd{Node: e.node, Port: e.port, Attr: e.attr} }
	for _, k := range l.links {
		b.AddLink(end(k.a), end(k.b))
	}
	for _, e := range l.external {
		b.AddInterface(end(e))
	}
	g, err := b.Build()
	if err != nil || len(l.agents) == 0 {
		return g, err
	}
	return l.addAgents(g)
}

// addAgents adds the agents of the file to the graph.
func (l *loader) addAgents(g *topo.Graph) (*topo.Graph, error) {
	agents := make([]topo.Agent, len(l.agents))
	for k, a := range l.agents {
		agents[k] = a.Agent
	}
	g, err := g.WithAgents(agents)
	if e, ok := errors.AsType[*topo.AgentError](err); ok {
		return nil, l.errorf(l.agents[e.Index].line, "%w", e.Err)
	}
	return g, err
}

// place keeps where a node is, of which both numbers are needed.
func (l *loader) place(line, n int, longitude, latitude string) error {
	if longitude == "" || latitude == "" {
		return nil
	}
	var p topo.Place
	var err error
	if p.Longitude, err = parseDegrees("longitude", longitude, 180); err == nil {
		p.Latitude, err = parseDegrees("latitude", latitude, 90)
	}
	if err != nil {
		return l.errorf(line, "%w", err)
	}
	l.nodes[n].place, l.nodes[n].placed = p, true
	return nil
}

// setPlace keeps a longitude or a latitude by its usual names in GML and GraphML files. Those of the Topology Zoo, with
// capitals, must be degrees. Of the others, which many programs write with other meanings or as None, only degrees are kept.
func setPlace(place *[2]string, key, value string) (known bool) {
	axis, most := 0, 180.0
	switch key {
	case "Longitude", "longitude", "lon", "lng":
	case "Latitude", "latitude", "lat":
		axis, most = 1, 90
	default:
		return false
	}
	if _, err := parseDegrees("", value, most); err == nil || key == "Longitude" || key == "Latitude" {
		place[axis] = value
	}
	return true
}

func parseDegrees(what, s string, most float64) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(math.Abs(v) <= most) {
		return 0, fmt.Errorf("%s %q is no number from -%g to %g", what, s, most, most)
	}
	return v, nil
}

// names settles the names of nodes. A name is the label if it is unique, else label and id, as in "New York (17)". If
// even that is taken it is the id.
func (l *loader) names() []string {
	count := map[string]int{}
	for _, n := range l.nodes {
		count[n.label]++
	}
	taken := make(map[string]bool, len(l.nodes))
	names := make([]string, len(l.nodes))
	for i, n := range l.nodes {
		name := n.label
		switch {
		case name == "":
			name = n.id
		case count[name] > 1:
			name = n.label + " (" + n.id + ")"
		}
		names[i], taken[name] = name, true
	}
	if len(taken) < len(names) { // ids are unique, so they settle what labels cannot
		for i, n := range l.nodes {
			names[i] = n.id
		}
	}
	return names
}

// checkPorts returns the line that uses a port a second time.
func (l *loader) checkPorts() error {
	type slot struct{ node, port int }
	used := map[slot]int{}
	check := func(e endSpec) error {
		if e.port == 0 {
			return nil
		}
		if e.port < 0 || e.port > math.MaxInt32 {
			return l.errorf(e.line, "port %d of %q is outside 1..%d", e.port, l.nodes[e.node].id, math.MaxInt32)
		}
		s := slot{e.node, e.port}
		if line, taken := used[s]; taken {
			return l.errorf(e.line, "port %d of %q is in use since line %d", e.port, l.nodes[e.node].id, line)
		}
		used[s] = e.line
		return nil
	}
	for _, k := range l.links {
		for _, e := range [...]endSpec{k.a, k.b} {
			if err := check(e); err != nil {
				return err
			}
		}
	}
	for _, e := range l.external {
		if err := check(e); err != nil {
			return err
		}
	}
	return nil
}

// parseWeight reads a weight or a cost: a whole number from 1, though files may write it as 3.0.
func parseWeight(what, s string) (uint32, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 1) || v > math.MaxUint32 || v != math.Trunc(v) {
		return 0, fmt.Errorf("%s %q is no whole number from 1 to %d", what, s, uint32(math.MaxUint32))
	}
	return uint32(v), nil
}

// parseBandwidth reads a rate in units of that many bit/s.
func parseBandwidth(s string, unit float64) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0) || v*unit > 1e18 {
		return 0, fmt.Errorf("bandwidth %q is no number from 0 to %g", s, 1e18/unit)
	}
	return v * unit, nil
}

// parseDelay reads a delay in units of that many nanoseconds.
func parseDelay(s string, unit time.Duration) (time.Duration, error) {
	v, err := strconv.ParseFloat(s, 64)
	if most := float64(time.Hour / unit); err != nil || !(v >= 0) || v > most {
		return 0, fmt.Errorf("delay %q is no number from 0 to %g", s, most)
	}
	return time.Duration(v * float64(unit)), nil
}

// parseDuration reads a delay with its unit, as the YAML of hopscope and edge lists have it.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		err = fmt.Errorf("delay %q is no number with a unit, such as 10us", s)
	case d < 0 || d > time.Hour:
		err = fmt.Errorf("delay %s is outside 0s..1h", s)
	}
	return d, err
}

// setWord reads an attribute of a link as the YAML of hopscope and edge lists name it.
func setWord(a *topo.Attr, key, value string) (known bool, err error) {
	switch key {
	case "weight":
		a.Weight, err = parseWeight(key, value)
	case "cost":
		a.Cost, err = parseWeight(key, value)
	case "bandwidth_gbps":
		a.Bandwidth, err = parseBandwidth(value, 1e9)
	case "delay":
		a.Delay, err = parseDuration(value)
	default:
		return false, nil
	}
	return true, err
}

// speed is the rate of a link in the readable form of the Topology Zoo: a number and the first letter of its unit.
type speed struct{ value, unit string }

// set takes the rate from a speed that is a plain number, unless the bandwidth is known. Others ("<2.5") have no rate.
func (s speed) set(a *topo.Attr) {
	unit, ok := map[string]float64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[strings.ToUpper(s.unit)]
	if v, err := parseBandwidth(s.value, unit); ok && err == nil && a.Bandwidth == 0 {
		a.Bandwidth = v
	}
}

// setAttr reads an attribute of a link by its usual name in GML and GraphML files. Others are ignored: such files
// carry whatever their authors found worth keeping.
func setAttr(a *topo.Attr, key, value string) (err error) {
	switch key {
	case "weight":
		a.Weight, err = parseWeight(key, value)
	case "cost":
		a.Cost, err = parseWeight(key, value)
	case "LinkSpeedRaw", "bandwidth": // bit/s
		a.Bandwidth, err = parseBandwidth(value, 1)
	case "delay": // microseconds
		a.Delay, err = parseDelay(value, time.Microsecond)
	}
	return err
}
