package inference

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

func way(nodes ...uint32) (path []HopKey) {
	for i, n := range nodes {
		path = append(path, HopKey{Node: n, EgressIf: uint32(i + 1)})
	}
	return path
}

func flow(t testing.TB, text string) *decode.FlowKey {
	k, err := decode.ParseFlow(text)
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

func TestJudge(t *testing.T) {
	p, err := NewPolicy([]PolicyRule{
		{Name: "web", Dst: netip.MustParsePrefix("10.0.1.0/24"), Protocol: 6, DstPorts: Ports{443, 444}, Via: [][]uint32{{1}, {7, 8}}, Avoid: []uint32{9}},
		{Name: "backup", Src: netip.MustParsePrefix("10.0.9.0/24"), Paths: [][]uint32{{1, 2, 3}, {1, 4, 3}}},
		{Name: "six", Dst: netip.MustParsePrefix("2001:db8::/32"), Avoid: []uint32{2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const web, backup = "10.0.0.1:5000 > 10.0.1.2:443 tcp", "10.0.9.1:1 > 10.0.2.2:2 udp"
	for _, tt := range []struct {
		flow string
		path []HopKey
		want string // "" if it conforms
	}{
		{web, way(1, 7, 3), ""},
		{web, way(1, 5, 8), ""},
		{web, way(1, 3), "rule web: node 7 is not passed"},
		{web, way(7, 1), "rule web: node 7 is not passed"}, // not in this order
		{web, way(3, 7), "rule web: node 1 is not passed"},
		{web, way(1, 9, 7), "rule web: node 9 is passed"},
		{web, nil, ""},
		{"10.0.0.1:5000 > 10.0.1.2:445 tcp", way(9), ""}, // another port
		{"10.0.0.1:5000 > 10.0.1.2:443 udp", way(9), ""}, // another protocol
		{backup, way(1, 2, 3), ""},
		{backup, way(1, 4, 3), ""},
		{backup, way(1, 5, 3), "rule backup: the way leaves those that are allowed behind node 1"},
		{backup, way(1, 2), "rule backup: the way leaves those that are allowed behind node 2"},
		{backup, way(1, 2, 3, 4), "rule backup: the way leaves those that are allowed behind node 3"},
		{backup, way(6, 2, 3), "rule backup: the way leaves those that are allowed behind node 6"},
		{"10.0.9.1:1 > 10.0.1.2:443 tcp", way(1, 2, 3), "rule web: node 7 is not passed"}, // the first rule counts
		{"[2001:db8::1]:1 > [2001:db8::2]:2 udp", way(2), "rule six: node 2 is passed"},
		{"10.0.0.1:1 > 10.0.2.2:2 udp", way(9), ""}, // no rule
	} {
		key, strays := p.Judge(flow(t, tt.flow), tt.path)
		if strays != (tt.want != "") || strays && key.String() != tt.want {
			t.Errorf("%s on %v: %v, %q, want %q", tt.flow, tt.path, strays, key, tt.want)
		}
	}
	k, path := flow(t, backup), way(1, 5, 3)
	if n := testing.AllocsPerRun(100, func() { p.Judge(k, path) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Random rules and paths are judged as by their definition: by trying all choices of places for the nodes to be passed.
func TestJudgeTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	list := func(most int) (l []uint32) {
		for range 1 + rng.IntN(most) {
			l = append(l, rng.Uint32N(6))
		}
		return l
	}
	k, outcome := flow(t, "10.0.0.1:1 > 10.0.0.2:2 udp"), map[bool]int{}
	for range 20_000 {
		r := PolicyRule{Name: "r"}
		for range rng.IntN(3) {
			r.Via = append(r.Via, list(2))
		}
		if rng.IntN(2) == 0 {
			r.Avoid = list(2)
		}
		for range rng.IntN(3) {
			r.Paths = append(r.Paths, list(4))
		}
		p, err := NewPolicy([]PolicyRule{r})
		if err != nil {
			continue
		}
		nodes := list(4)
		want := len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, func(p []uint32) bool { return slices.Equal(p, nodes) }) || !passes(r.Via, nodes)
		for _, n := range nodes {
			want = want || slices.Contains(r.Avoid, n)
		}
		if key, strays := p.Judge(k, way(nodes...)); strays != want {
			t.Fatalf("%+v on %v: %v (%v), want %v", r, nodes, strays, key, want)
		}
		outcome[want]++
	}
	if outcome[true] < 1000 || outcome[false] < 1000 {
		t.Errorf("outcomes %v prove little", outcome)
	}
}

// passes tries every place for the first of the nodes to be passed.
func passes(via [][]uint32, nodes []uint32) bool {
	if len(via) == 0 {
		return true
	}
	for i, n := range nodes {
		if slices.Contains(via[0], n) && passes(via[1:], nodes[i:]) {
			return true
		}
	}
	return false
}

func TestNewPolicy(t *testing.T) {
	some := [][]uint32{{1}}
	for want, rules := range map[string][]PolicyRule{
		"rule 1 (): a name has 1 to 64 bytes":                           {{Via: some}},
		"rule 2 (a): there is another rule of this name":                {{Name: "a", Via: some}, {Name: "a", Via: some}},
		"rule 1 (a): it has none of via, avoid and paths":               {{Name: "a"}},
		"rule 1 (a): ports end before they begin":                       {{Name: "a", Via: some, DstPorts: Ports{2, 1}}},
		"rule 1 (a): a list of 65 nodes is longer than 64":              {{Name: "a", Avoid: make([]uint32, 65)}},
		"rule 1 (a): more than 64 entries in a list":                    {{Name: "a", Paths: slices.Repeat(some, 65)}},
		"rule 1 (a): an entry of via or paths names no node":            {{Name: "a", Paths: [][]uint32{{}}}},
		"rule 1 (a): node 1 is to be passed and to be avoided":          {{Name: "a", Via: some, Avoid: []uint32{1}}},
		"1025 rules are more than 1024":                                 make([]PolicyRule, 1025),
		"rule 1 (" + strings.Repeat("x", 65) + "): a name has 1 to 64 ": {{Name: strings.Repeat("x", 65), Via: some}},
	} {
		if _, err := NewPolicy(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var none *Policy
	if key, strays := none.Judge(flow(t, "10.0.0.1:1 > 10.0.0.2:2 udp"), way(1)); strays || none.Len() != 0 {
		t.Errorf("no policy forbids: %v", key)
	}
}
