package load

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

// Every format gives what it knows of links, and leaves unknown what it does not.
func TestReadAttributes(t *testing.T) {
	all := topo.Attr{Weight: 3, Cost: 7, Bandwidth: 10e9, Delay: 20 * time.Microsecond}
	for _, c := range []struct {
		name, file, text string
		want             topo.Attr
	}{
		{"gml", "x.gml", "graph [\nnode [ id 1 ]\nnode [ id 2 ]\nedge [ source 1 target 2 weight 3 cost 7 delay 20 LinkSpeedRaw 10000000000.0 ]\n]", all},
		{"gml, speed to read", "x.gml", "graph [\nnode [ id 1 ]\nnode [ id 2 ]\nedge [ source 1 target 2 LinkSpeed \"2.5\" LinkSpeedUnits \"G\" ]\n]", topo.Attr{Weight: 1, Bandwidth: 2.5e9}},
		{"gml, vague speed", "x.gml", "graph [\nnode [ id 1 ]\nnode [ id 2 ]\nedge [ source 1 target 2 LinkSpeed \"<2.5\" LinkSpeedUnits \"G\" ]\n]", topo.DefaultAttr},
		{"gml, raw speed first", "x.gml", "graph [\nnode [ id 1 ]\nnode [ id 2 ]\nedge [ source 1 target 2 LinkSpeed \"1\" LinkSpeedUnits \"G\" LinkSpeedRaw 2.0 ]\n]", topo.Attr{Weight: 1, Bandwidth: 2}},
		{"graphml", "x.graphml", "<graphml><graph><node id='1'/><node id='2'/><edge source='1' target='2'><data key='weight'>3</data><data key='cost'>7</data><data key='delay'>20</data><data key='bandwidth'>1e10</data></edge></graph></graphml>", all},
		{"graphml, speed to read", "x.graphml", "<graphml><graph><node id='1'/><node id='2'/><edge source='1' target='2'><data key='LinkSpeedUnits'>M</data><data key='LinkSpeed'>34</data></edge></graph></graphml>", topo.Attr{Weight: 1, Bandwidth: 34e6}},
		{"repetita", "x.graph", "NODES 2\nlabel x y\na 0 0\nb 0 0\n\nEDGES 2\nlabel\ne 0 1 3 10000000 20\nf 1 0 3 10000000 20\n", topo.Attr{Weight: 3, Bandwidth: 10e9, Delay: 20 * time.Microsecond}},
		{"edge list", "x.edges", "1 2 3 cost=7 delay=20us bandwidth_gbps=10\n", all},
		{"edge list, no weight", "x.edges", "1 2 cost=7\n", topo.Attr{Weight: 1, Cost: 7}},
		{"edge list, bare", "x.edges", "1 2\n", topo.DefaultAttr},
		{"yaml", "x.yaml", "nodes: [1, 2]\nlinks:\n  - {a: 1, b: 2, weight: 3, cost: 7, delay: 20us, bandwidth_gbps: 10}\n", all},
	} {
		g, err := Read(c.file, strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		x, y := g.Ends(0)
		if g.Attr(x) != c.want || g.Attr(y) != c.want {
			t.Errorf("%s: %+v and %+v, want %+v", c.name, g.Attr(x), g.Attr(y), c.want)
		}
	}
}

func TestReadPlaces(t *testing.T) {
	for _, file := range []string{"x.gml", "x.graphml", "x.graph", "x.yaml"} {
		text := map[string]string{
			"x.gml":     "graph [\nnode [ id 1 Longitude -74.0 Latitude 40.7 ]\nnode [ id 2 Longitude 3 ]\nedge [ source 1 target 2 ]\n]",
			"x.graphml": "<graphml><graph><node id='1'><data key='Latitude'>40.7</data><data key='Longitude'>-74.0</data></node><node id='2'/><edge source='1' target='2'/></graph></graphml>",
			"x.graph":   "NODES 2\nlabel x y\n1 -74.0 40.7\n2 0 0\n\nEDGES 2\nlabel\ne 0 1 1 1 1\nf 1 0 1 1 1\n",
			"x.yaml":    "nodes: [{name: 1, longitude: -74.0, latitude: 40.7}, 2]\nlinks: [[1, 2]]\n",
		}[file]
		g, err := Read(file, strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p, ok := g.Place(0)
		if _, also := g.Place(1); !ok || also || p != (topo.Place{Longitude: -74, Latitude: 40.7}) {
			t.Errorf("%s: %v, known %v, and another one known %v", file, p, ok, also)
		}
	}
	g := read(t, "Abilene.gml").WithPlaceDelays()
	a, _ := g.Lookup("New York")
	b, _ := g.Lookup("Chicago")
	if d := g.Attr(g.Between(a, b)).Delay; d < 5700*time.Microsecond || d > 5750*time.Microsecond { // 1145 km
		t.Errorf("New York to Chicago in %v", d)
	}
	if d := g.Attr(g.Between(b, a)).Delay; d != g.Attr(g.Between(a, b)).Delay {
		t.Errorf("the way back takes %v", d)
	}
}

func TestReadAgents(t *testing.T) {
	const lab = "nodes: [{name: a, host_ports: [5]}, b, {name: h, host: true}]\nlinks: [[a, b], [a, h]]\n"
	g, err := Read("x.yaml", strings.NewReader(lab+"agents:\n  - {name: x, node: a, port: 1, send: 2}\n  - {name: y, node: a}\n  - {name: z, node: b, receive: 0}\n  - {name: w, node: h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []topo.Agent{{Name: "x", Node: 0, Port: 1, Send: 2, Receive: topo.Any}, {Name: "y", Node: 0, Port: 5, Send: topo.Any, Receive: topo.Any},
		{Name: "z", Node: 1, Port: 2, Send: topo.Any, Receive: 0}, {Name: "w", Node: 2, Send: topo.Any, Receive: topo.Any}}
	for k, a := range g.Agents() {
		if a != want[k] {
			t.Errorf("agent %+v, want %+v", a, want[k])
		}
	}
	if !g.Host(2) || g.Host(0) || len(g.Agents()) != 4 {
		t.Errorf("%d agents, hosts %v and %v", len(g.Agents()), g.Host(0), g.Host(2))
	}
	if x, _ := g.Ends(0); g.Port(x) != 2 {
		t.Errorf("the first link leaves by port %d, want 2: 1 is an agent's", g.Port(x))
	}
	other, err := Agents("agents.yaml", strings.NewReader("agents:\n  - {name: x, node: b, port: 7}\n"), g)
	if err != nil || len(other.Agents()) != 1 || other.Agents()[0].Port != 7 || len(g.Agents()) != 4 {
		t.Errorf("Agents = %v, %v", other, err)
	}
	for text, want := range map[string]string{
		"":                              "agents x.yaml: no agents",
		"agents:\n  - {name: x}\n":      "agents x.yaml:2: an agent needs both name and node",
		"agents:\n  - {node: x}\n":      "agents x.yaml:2: an agent needs both",
		"agents:\n- {name: x, node: c}": `agents x.yaml:2: agent "x" names a node "c"`,
		"agents:\n- {name: x, node: a, capacity: 1}":                            `agents x.yaml:2: an agent has no key "capacity"`,
		"agents:\n- {name: x, node: a, send: -1}":                               `agents x.yaml:2: "-1" is no number from 0`,
		"agents:\n- {name: x, node: a, port: 2}":                                `agents x.yaml:2: agent "x": port 2 of "a" is of link a:2--b:1`,
		"agents:\n- {name: x, node: h, port: 2}":                                `agents x.yaml:2: agent "x": "h" is a host`,
		"agents:\n- {name: x, node: a}\n- {name: x, node: b}":                   `agents x.yaml:3: agent "x" is there twice`,
		"agents:\n- {name: x, node: a, port: 9}\n- {name: y, node: a, port: 9}": `agents x.yaml:3: agent "y": port 9 of "a" is that of agent "x"`,
		"nodes: [a]\nagents: []":                                                `agents x.yaml:1: the file has no key "nodes"`,
	} {
		_, err := Agents("x.yaml", strings.NewReader(text), g)
		if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Error(), want) {
			t.Errorf("Agents(%q) = %v, want %s", text, err, want)
		}
	}
}

func TestReadAttributeErrors(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"x.edges", "a b delay=5\n", "x.edges:1: "},
		{"x.edges", "a b\na b delay=2h\n", "x.edges:2: delay 2h is outside 0s..1h"},
		{"x.edges", "a b\na b delay=5\n", `x.edges:2: delay "5" is no number with a unit`},
		{"x.edges", "a b cost=0\n", `x.edges:1: cost "0" is no whole number`},
		{"x.edges", "a b dealy=1us\n", `x.edges:1: "dealy=1us" is none of weight=`},
		{"x.edges", "a b 1 2\n", "x.edges:1: 4 words"},
		{"x.edges", "a b bandwidth_gbps=NaN\n", `x.edges:1: bandwidth "NaN"`},
		{"x.gml", "graph [\nnode [ id 1\nLongitude 200.0\nLatitude 3 ]\n]", `x.gml:4: longitude "200.0" is no number from -180 to 180`},
		{"x.gml", "graph [\nnode [ id 1 ]\nedge [ source 1 target 1\ncost -3 ]\n]", `x.gml:4: cost "-3"`},
		{"x.graphml", "<graphml><graph>\n<node id='1'><data key='Longitude'>1</data><data key='Latitude'>x</data></node></graph></graphml>", `x.graphml:2: latitude "x"`},
		{"x.graph", "NODES 1\nlabel x y\na one 2\n", `x.graph:3: node a: coordinate "one"`},
		{"x.yaml", "nodes: [a, a b]\nlinks:\n - {a: a, b: a, cost: 1.5}", `x.yaml:3: cost "1.5"`},
		{"x.yaml", "nodes:\n - {name: a, longitude: 3}", `x.yaml:2: node "a" has a longitude or a latitude, but not both`},
		{"x.yaml", "nodes:\n - {name: a, host: yes please}", "x.yaml:2: want true or false"},
		{"x.yaml", "nodes:\n - {name: a, host: true, host_ports: [1]}", `x.yaml:2: node "a" is a host and has host_ports`},
		{"x.yaml", "nodes:\n - name: a\n   name: b", "x.yaml:3: "},
		{"x.yaml", "nodes: [a]\nagent: []", `x.yaml:2: the topology has no key "agent"`},
		{"x.yaml", "nodes: [a]\nagents:\n - {name: x, node: a, prot: 1}", `x.yaml:3: an agent has no key "prot"`},
	} {
		_, err := Read(c.file, strings.NewReader(c.text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s %q: %v, want %s", c.file, c.text, err, c.want)
		}
	}
}
