package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// routeEntry reads entry k of a route as the switches of that format do.
func routeEntry(t *testing.T, format, route string, k int) int {
	t.Helper()
	b, err := hex.DecodeString(route)
	if err != nil {
		t.Fatal(err)
	}
	if format == "int-path" {
		return int(b[63-k/2]>>(k%2*4)&15) + 1
	}
	return int(b[4+2*k+1])
}

// walkRoute sends a probe from its agent, and follows ports until it is out of the network or at a host. It gives the nodes
// on the way, and the port that it left the last switch by if no node is behind it.
func walkRoute(t *testing.T, g *topo.Graph, hosts map[int]bool, format string, q *planner.Probe) (nodes []string, port int) {
	t.Helper()
	v, _ := g.Lookup(q.Agent)
	nodes = []string{q.Agent}
	if hosts[v] { // it sends by the interface that the plan names
		v = g.Neighbor(g.ByPort(v, q.Ports[0]))
		nodes = append(nodes, g.NodeName(v))
	}
	for k := 0; !hosts[v] || k == 0; k++ {
		if k > len(q.Nodes) {
			t.Fatalf("probe %s: the route does not end", q.ID)
		}
		port := routeEntry(t, format, q.Route, k)
		i := g.ByPort(v, port)
		if i < 0 || g.Neighbor(i) < 0 {
			return nodes, port
		}
		v = g.Neighbor(i)
		nodes = append(nodes, g.NodeName(v))
	}
	return nodes, 0
}

// Routes lead from the agent over the links of the plan to the collector. Agents are on ports, hosts are nodes, both,
// or neither.
func TestRoutesLeadToCollectors(t *testing.T) {
	dir := t.TempDir()
	probes, ends := 0, map[string]int{}
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 90))
		kind := []string{"plain", "hosts", "agents", "both"}[seed%4]
		var b strings.Builder
		switches := 2 + r.IntN(8)
		b.WriteString("nodes:\n")
		for v := range switches {
			fmt.Fprintf(&b, "  - {name: s%d, tier: edge}\n", v)
		}
		var agents strings.Builder
		links := "links:\n"
		for v := 1; v < switches; v++ {
			links += fmt.Sprintf("  - [s%d, s%d]\n", v, r.IntN(v))
		}
		for range r.IntN(6) {
			links += fmt.Sprintf("  - [s%d, s%d]\n", r.IntN(switches), r.IntN(switches))
		}
		for v := range switches {
			if kind == "hosts" || kind == "both" {
				fmt.Fprintf(&b, "  - {name: h%d, host: true}\n", v)
				for range 1 + r.IntN(2) {
					links += fmt.Sprintf("  - [h%d, s%d]\n", v, r.IntN(switches))
				}
				if kind == "both" && r.IntN(2) == 0 {
					fmt.Fprintf(&agents, "  - {name: on-h%d, node: h%d}\n", v, v)
				}
			}
			for k := range r.IntN(3) {
				if kind == "agents" || kind == "both" {
					fmt.Fprintf(&agents, "  - {name: a%d-%d, node: s%d}\n", v, k, v)
				}
			}
		}
		text := b.String() + links
		if agents.Len() > 0 {
			text += "agents:\n" + agents.String()
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", seed))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := load.Topology(file)
		if err != nil {
			t.Fatal(err)
		}
		hosts := map[int]bool{}
		for v := range g.NumNodes() {
			hosts[v] = g.Host(v)
		}
		for _, format := range []string{"int-path", "int-probe"} {
			args := []string{"--topology", file, "--sr=" + format, "--partial"}
			if seed%8 > 3 {
				args = append(args, "--directed")
			}
			plan := coverJSON(t, args...)
			for k := range plan.Probes {
				q := &plan.Probes[k]
				if q.Route == "" {
					continue
				}
				nodes, port := walkRoute(t, g, hosts, format, q)
				if !slices.Equal(nodes, q.Nodes) || port != q.CollectorPort {
					t.Fatalf("%s, %s: the route of probe %+v leads over %q and out by port %d", file, format, q, nodes, port)
				}
				if agents := g.Agents(); len(agents) > 0 {
					i := slices.IndexFunc(agents, func(a topo.Agent) bool { return a.Name == q.CollectorHost })
					if i < 0 || g.NodeName(agents[i].Node) != q.Collector || agents[i].Port != port {
						t.Fatalf("%s: probe %+v does not come to its agent", file, q)
					}
				}
				probes++
				ends[kind]++
			}
		}
	}
	if probes < 300 || len(ends) != 4 {
		t.Errorf("%d routes of kinds %v, too few to say anything", probes, ends)
	}
}

// The hosts of a fat-tree as nodes of an edge list, which cannot say what is a host: it has to be set.
func TestRoutesOfHostsAsNodes(t *testing.T) {
	g, err := topo.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		fmt.Fprintf(&b, "%s %s\n", g.NodeName(g.Node(x)), g.NodeName(g.Node(y)))
	}
	var names []string
	for v := range g.NumNodes() {
		if g.Tier(v) != topo.Edge {
			continue
		}
		for k := range 2 {
			names = append(names, fmt.Sprintf("host-%s-%d", g.NodeName(v), k))
			fmt.Fprintf(&b, "%s %s\n", names[len(names)-1], g.NodeName(v))
		}
	}
	file := filepath.Join(t.TempDir(), "fat-tree.edges")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	list := strings.Join(names, ",")
	if _, err := runPlan(t, "cover", "--topology", file, "--depots", list, "--sr"); err == nil || !strings.Contains(err.Error(), "--hosts") {
		t.Errorf("%v, want an error that asks for the hosts", err)
	}
	if g, err = load.Topology(file); err != nil {
		t.Fatal(err)
	}
	hosts := map[int]bool{}
	for _, name := range names {
		v, _ := g.Lookup(name)
		hosts[v] = true
	}
	for _, format := range []string{"int-path", "int-probe"} {
		for _, some := range []string{list, strings.Join(names[:5], ",")} {
			plan := coverJSON(t, "--topology", file, "--depots", some, "--hosts", list, "--sr="+format, "--partial")
			if s := plan.Stats; (some == list) != !plan.Partial || s.LeftOut != s.LeftOutBound {
				t.Errorf("%s with %d depots: %+v", format, strings.Count(some, ",")+1, s)
			}
			for k := range plan.Probes {
				q := &plan.Probes[k]
				if nodes, port := walkRoute(t, g, hosts, format, q); !slices.Equal(nodes, q.Nodes) || port != 0 {
					t.Fatalf("%s: the route of probe %+v leads over %q and out by port %d", format, q, nodes, port)
				}
				for _, name := range q.Nodes[1 : len(q.Nodes)-1] {
					if strings.HasPrefix(name, "host") {
						t.Fatalf("probe %+v passes a host", q)
					}
				}
			}
		}
	}
}

// Ports that probes name are read back, and a wrong one does not hold.
func TestPlanCoverPorts(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "plan.json")
	out, err := runPlan(t, "cover", "--topology", "../../docs/examples/lab.yaml", "--agents", "../../docs/examples/agents.yaml", "--sr", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"agent_port":1`, `"agent_port":2`, `agent "agent-1" is at port 1 of "leaf-1", not at port 2`},
		{`"agent_host":"agent-1"`, `"agent_host":"agent-9"`, `no agent "agent-9"`},
		{`"collector_port":`, `"colector_port":`, "unknown key"},
	} {
		if err := os.WriteFile(saved, []byte(strings.Replace(out, c.old, c.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := runPlan(t, "cover", "--topology", "../../docs/examples/lab.yaml", "--agents", "../../docs/examples/agents.yaml", "--sr", "--check", saved)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s in place of %s: %v, want %q", c.new, c.old, err, c.want)
		}
	}
	plan := coverJSON(t, "--topology", "leaf-spine:2,3", "--sr")
	if q := plan.Probes[0]; q.AgentPort == 0 || q.CollectorPort == 0 {
		t.Errorf("probe %+v names no ports of agent and collector", q)
	}
}
