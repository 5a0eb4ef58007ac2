package load

import (
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/hopscope/hopscope/planner/topo"
)

// Agents reads a file of agents for a graph of any format, and returns the graph with these in place of its own. The
// file is YAML, also packed with gzip, and like the part "agents" of the YAML that [Read] describes:
//
//	agents:
//	  - name: a1
//	    node: leaf-1
//	    port: 1          # a port that leads to no node; the first that is free where left out, and none on a host
//	    send: 10         # most probes that it sends; any number where left out
//	    receive: 10      # most probes that it receives
//
// Every error is an [Error].
func Agents(name string, r io.Reader, g *topo.Graph) (*topo.Graph, error) {
	l := newLoader(name)
	for n := range g.NumNodes() {
		l.byID[g.NodeName(n)] = n
	}
	out, err := l.readAgents(r, g)
	if err != nil {
		return nil, l.inFile("agents", err)
	}
	return out, nil
}

func (l *loader) readAgents(r io.Reader, g *topo.Graph) (*topo.Graph, error) {
	in, _, err := open(l.file, r)
	if err != nil {
		return nil, err
	}
	body, err := parseYAML(l, in)
	if err != nil {
		return nil, err
	}
	y := yamlReader{l}
	if body != nil {
		err = y.mapping(body, "the file", func(key string, v ast.Node) (bool, error) {
			if key != "agents" {
				return false, nil
			}
			return true, y.sequence(v, "agents", y.agent)
		})
	}
	if err != nil {
		return nil, err
	}
	if len(l.agents) == 0 {
		return nil, l.errorf(0, "no agents")
	}
	return l.addAgents(g)
}

// agent reads one agent.
func (y yamlReader) agent(n ast.Node) error {
	a := agentSpec{Agent: topo.Agent{Send: topo.Any, Receive: topo.Any}, line: yamlLine(n)}
	node := ""
	err := y.mapping(n, "an agent", func(key string, v ast.Node) (bool, error) {
		var err error
		switch key {
		case "name":
			a.Name, err = y.text(v)
		case "node":
			node, err = y.text(v)
		case "port":
			a.Port, err = y.port(v)
		case "send":
			a.Send, err = y.count(v)
		case "receive":
			a.Receive, err = y.count(v)
		default:
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	if a.Name == "" || node == "" {
		return y.l.errorf(a.line, "an agent needs both name and node")
	}
	i, ok := y.l.byID[node]
	if !ok {
		return y.l.errorf(a.line, "agent %q names a node %q that does not exist", a.Name, node)
	}
	a.Node = i
	y.l.agents = append(y.l.agents, a)
	return nil
}

// reservePorts keeps the ports of agents from links that name none.
func (l *loader) reservePorts() {
	for _, a := range l.agents {
		listed := func(e endSpec) bool { return e.node == a.Node && e.port == a.Port }
		if a.Port > 0 && !l.nodes[a.Node].host && !slices.ContainsFunc(l.external, listed) {
			l.external = append(l.external, endSpec{node: a.Node, port: a.Port, line: a.line})
		}
	}
}

func (y yamlReader) count(n ast.Node) (int, error) {
	s, err := y.text(n)
	if err != nil {
		return 0, err
	}
	c, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, y.errorf(n, "%q is no number from 0 to %d", s, math.MaxInt32)
	}
	return int(c), nil
}
