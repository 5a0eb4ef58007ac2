package world

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
)

// network is nodes, ports and hosts. Ports are directed: each is where packets leave a node.
type network struct {
	nodes  []node
	ports  []port
	byName map[string]int // nodes
}

type node struct {
	name  string
	edge  bool // has hosts
	id    uint32
	addr  netip.Addr
	salt  uint64
	ports []int // fabric ports
	hosts []int // ports towards hosts
	base  float64
	clock struct{ offset, drift float64 } // s, and s per s
}

type port struct {
	node, peer int // peer is -1 towards a host
	back       int // of a fabric port: the port of the peer that leads here
	number     uint32
	rate       float64 // bit/s
	length     float64 // of the line, s
	host       netip.Addr
	own        float64 // load that is not of flows
	flows      float64 // load of the flows that are routed here
	sway       [3]float64
	swayed     float64
	queue      queue
	high       queue // of the class that is served first
}

func (n *network) add(name string, edge bool) int {
	n.nodes = append(n.nodes, node{name: name, edge: edge})
	n.byName[name] = len(n.nodes) - 1
	return len(n.nodes) - 1
}

func (n *network) join(a, b int) {
	x, y := len(n.ports), len(n.ports)+1
	n.ports = append(n.ports, port{node: a, peer: b, back: y}, port{node: b, peer: a, back: x})
	n.nodes[a].ports, n.nodes[b].ports = append(n.nodes[a].ports, x), append(n.nodes[b].ports, y)
}

// Limits of networks in scenarios.
const (
	maxNodes = 64
	maxHosts = 32
	maxLag   = 8
)

// shape is the kind of network.
type shape struct {
	kind                       string
	leaves, spines, hosts, lag int
	rate, load, buffer         float64
	sway, burst                float64
	same                       bool // hashes of all nodes are the same
}

// build makes the network with the names of a scenario. Numbers come with a seed.
func (s *shape) build() *network {
	n := &network{byName: map[string]int{}}
	switch s.kind {
	case "leaf-spine":
		for i := range s.leaves {
			n.add("leaf"+strconv.Itoa(i+1), true)
		}
		for i := range s.spines {
			k := n.add("spine"+strconv.Itoa(i+1), false)
			for leaf := range s.leaves {
				for range s.lag {
					n.join(leaf, k)
				}
			}
		}
	case "ring":
		for i := range s.leaves {
			n.add("ring"+strconv.Itoa(i+1), true)
		}
		for i := range s.leaves {
			for range s.lag {
				n.join(i, (i+1)%s.leaves)
			}
		}
	case "clos": // pods of two edges and two aggregations each, below two cores a plane
		for pod := range s.leaves {
			for i := range 2 {
				n.add("edge"+strconv.Itoa(2*pod+i+1), true)
			}
		}
		for pod := range s.leaves {
			for i := range 2 {
				a := n.add("agg"+strconv.Itoa(2*pod+i+1), false)
				n.join(2*pod, a)
				n.join(2*pod+1, a)
			}
		}
		for c := range s.spines {
			k := n.add("core"+strconv.Itoa(c+1), false)
			for pod := range s.leaves {
				n.join(n.byName["agg"+strconv.Itoa(2*pod+c%2+1)], k)
			}
		}
	}
	for i := range n.nodes {
		if !n.nodes[i].edge {
			continue
		}
		for range s.hosts {
			n.nodes[i].hosts = append(n.nodes[i].hosts, len(n.ports))
			n.ports = append(n.ports, port{node: i, peer: -1, back: -1})
		}
	}
	return n
}

// number draws the values that depend on the seed.
func (n *network) number(s *shape, r *rand.Rand) {
	ids := r.Perm(200)
	for i := range n.nodes {
		x := &n.nodes[i]
		x.id = 1 + uint32(ids[i])
		x.addr = netip.AddrFrom4([4]byte{10, 255, 0, byte(x.id)})
		x.salt = r.Uint64()
		if s.same {
			x.salt = 1
		}
		x.base = 600e-9 + 400e-9*r.Float64()
		x.clock.offset, x.clock.drift = r.Float64()*1e-3, (r.Float64()-.5)*20e-6
		for k, p := range x.ports {
			n.ports[p].number = uint32(1 + k)
		}
		for k, p := range x.hosts {
			n.ports[p].number = uint32(49 + k)
			n.ports[p].host = netip.AddrFrom4([4]byte{10, byte(x.id), 0, byte(1 + k)})
		}
	}
	for i := range n.ports {
		p := &n.ports[i]
		p.rate, p.length = s.rate, 1e-6+4e-6*r.Float64()
		p.own = s.load / 2 * (.8 + .4*r.Float64())
	}
}

// node finds a node by its name.
func (n *network) node(name string) (int, error) {
	if i, ok := n.byName[name]; ok {
		return i, nil
	}
	var names []string
	for i := range n.nodes {
		names = append(names, n.nodes[i].name)
	}
	return 0, fmt.Errorf("there is no node %q: name one of %s", name, strings.Join(names, ", "))
}

// port finds leaf1>spine1, leaf1>spine1/2 of a bundle, or leaf1.2 towards a host.
func (n *network) port(text string) (int, error) {
	if from, to, ok := strings.Cut(text, ">"); ok {
		a, err := n.node(from)
		if err != nil {
			return 0, err
		}
		to, member, many := strings.Cut(to, "/")
		b, err := n.node(to)
		if err != nil {
			return 0, err
		}
		k := 1
		if many {
			if k, err = strconv.Atoi(member); err != nil || k < 1 {
				return 0, fmt.Errorf("%q is no member of a bundle: write /1, /2 and so on", member)
			}
		}
		for _, p := range n.nodes[a].ports {
			if n.ports[p].peer == b {
				if k--; k == 0 {
					return p, nil
				}
			}
		}
		return 0, fmt.Errorf("%s has no such line to %s: name neighbours, and members that the network has (lag=)", from, to)
	}
	name, host, ok := strings.Cut(text, ".")
	if !ok {
		return 0, fmt.Errorf("%q is no port: write leaf1>spine1, leaf1>spine1/2 of a bundle, or leaf1.2 towards its second host", text)
	}
	a, err := n.node(name)
	if err != nil {
		return 0, err
	}
	if k, err := strconv.Atoi(host); err == nil && k >= 1 && k <= len(n.nodes[a].hosts) {
		return n.nodes[a].hosts[k-1], nil
	}
	return 0, fmt.Errorf("%s has no host %q: it has 1 to %d", name, host, len(n.nodes[a].hosts))
}

// line finds leaf1=spine1 or a member of it, by the port of its first end.
func (n *network) line(text string) (int, error) {
	if !strings.Contains(text, "=") {
		return 0, fmt.Errorf("%q is no link: write leaf1=spine1, or leaf1=spine1/2 of a bundle", text)
	}
	return n.port(strings.Replace(text, "=", ">", 1))
}

// routes returns the ports that lead from each node towards an edge on paths of the least cost, without elements that
// are down.
func (n *network) routes(to int, down func(port int) bool, cost func(port int) float64) [][]int {
	const far = 1e9
	dist, done := make([]float64, len(n.nodes)), make([]bool, len(n.nodes))
	for i := range dist {
		dist[i] = far
	}
	dist[to] = 0
	for range n.nodes {
		at := -1
		for i := range n.nodes {
			if !done[i] && dist[i] < far && (at < 0 || dist[i] < dist[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		done[at] = true
		for _, p := range n.nodes[at].ports {
			if back := n.ports[p].back; !down(p) && !down(back) {
				dist[n.ports[p].peer] = min(dist[n.ports[p].peer], dist[at]+cost(back))
			}
		}
	}
	next := make([][]int, len(n.nodes))
	for i := range n.nodes {
		for _, p := range n.nodes[i].ports {
			if peer := n.ports[p].peer; i != to && dist[peer] < far && !down(p) && !down(n.ports[p].back) && dist[i] == dist[peer]+cost(p) {
				next[i] = append(next[i], p)
			}
		}
	}
	return next
}

// mix is a hash.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
