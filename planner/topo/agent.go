package topo

import (
	"fmt"
	"math"
	"slices"
)

// Any is the limit of an agent that may send or receive any number of probes.
const Any = math.MaxInt32

// Agent is a program that sends and receives probes. It runs on a host behind a port of a switch, or on a node that is
// itself a host. A switch may have several.
type Agent struct {
	Name    string
	Node    int
	Port    int // of the node; 0 on a host, and for WithAgents to choose one
	Send    int // most probes that it sends, or Any
	Receive int // most probes that it receives, or Any
}

// Agents returns the agents, in the order in which they were named. The slice belongs to the graph.
func (g *Graph) Agents() []Agent { return g.agents }

// AgentError is a problem of one of the agents given to WithAgents.
type AgentError struct {
	Index int
	Err   error
}

func (e *AgentError) Error() string { return e.Err.Error() }
func (e *AgentError) Unwrap() error { return e.Err }

// WithAgents returns the graph with these agents in place of those it has. An agent of a switch that names no port is behind the
// first interface that leads out of the graph and is no other agent's. Without one it is behind the lowest port that nothing uses.
// Every error is an [AgentError].
func (g *Graph) WithAgents(agents []Agent) (*Graph, error) {
	out := *g
	out.agents = slices.Clone(agents)
	names, ports := map[string]bool{}, map[[2]int]string{}
	for k := range out.agents {
		a := &out.agents[k]
		if err := g.checkAgent(a, names[a.Name], ports[[2]int{a.Node, a.Port}]); err != nil {
			return nil, &AgentError{k, err}
		}
		names[a.Name] = true
		if a.Port > 0 {
			ports[[2]int{a.Node, a.Port}] = a.Name
		}
	}
	for k := range out.agents {
		if a := &out.agents[k]; a.Port == 0 && !g.Host(a.Node) {
			a.Port = g.freePort(a.Node, func(port int) bool { return ports[[2]int{a.Node, port}] != "" })
			ports[[2]int{a.Node, a.Port}] = a.Name
		}
	}
	return &out, nil
}

func (g *Graph) checkAgent(a *Agent, taken bool, other string) error {
	switch {
	case a.Name == "":
		return fmt.Errorf("an agent without a name")
	case taken:
		return fmt.Errorf("agent %q is there twice", a.Name)
	case a.Node < 0 || a.Node >= g.NumNodes():
		return fmt.Errorf("agent %q: there is no node %d", a.Name, a.Node)
	case a.Port < 0 || a.Port > math.MaxInt32:
		return fmt.Errorf("agent %q: port %d is outside 1..%d", a.Name, a.Port, math.MaxInt32)
	case a.Send < 0 || a.Receive < 0:
		return fmt.Errorf("agent %q: sends %d and receives %d probes; a limit must not be negative", a.Name, a.Send, a.Receive)
	case a.Port == 0:
		return nil
	case g.Host(a.Node):
		return fmt.Errorf("agent %q: %q is a host, whose agents are behind no port", a.Name, g.NodeName(a.Node))
	case other != "":
		return fmt.Errorf("agent %q: port %d of %q is that of agent %q", a.Name, a.Port, g.NodeName(a.Node), other)
	}
	if i := g.ByPort(a.Node, a.Port); i >= 0 && g.Link(i) >= 0 {
		return fmt.Errorf("agent %q: port %d of %q is of link %s", a.Name, a.Port, g.NodeName(a.Node), g.LinkName(g.Link(i)))
	}
	return nil
}

// freePort is the first port of node n that leads out of the graph and is not taken, or else the lowest that nothing uses.
func (g *Graph) freePort(n int, taken func(port int) bool) int {
	lo, hi := g.Interfaces(n)
	for i := lo; i < hi; i++ {
		if g.Link(i) < 0 && !taken(g.Port(i)) {
			return g.Port(i)
		}
	}
	port := 1
	for taken(port) || g.ByPort(n, port) >= 0 {
		port++
	}
	return port
}
