package inventory

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

const asYAML = `# an inventory
nodes:
  - id: 17
    name: leaf-3
    site: berlin
    interfaces:
      - {id: 3, name: Ethernet3, speed: 10G}
      - {id: 4, speed: 400000000000}
  - {id: 0x12, name: 42}
  - id: 19
    name: leaf-3      # of another site
    site: bonn
hosts:
  - {prefix: 10.0.1.0/24, name: web servers, site: berlin}
  - {prefix: "2001:db8::7", name: db-7}
drop_reasons:
  25: no route
`

const asJSON = `{"nodes": [{"id": 17, "name": "leaf-3", "site": "berlin", "interfaces": [
  {"id": 3, "name": "Ethernet3", "speed": "10G"}, {"id": 4, "speed": "400G"}]},
  {"id": 18, "name": "42"}, {"id": 19, "name": "leaf-3", "site": "bonn"}],
 "hosts": [{"prefix": "10.0.1.0/24", "name": "web servers", "site": "berlin"}, {"prefix": "2001:db8::7", "name": "db-7"}],
 "drop_reasons": {"25": "no route"}}`

func TestRead(t *testing.T) {
	var read []*names.Names
	for _, text := range []string{asYAML, asJSON} {
		n, err := Read("a", strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, n)
		if got := n.Text(inference.HopKey{Node: 17, EgressIf: 3}.Place()); got != "node leaf-3 (17) interface Ethernet3 (3)" {
			t.Errorf("%q", got)
		}
		if got := n.Node(18) + n.Reason(25) + n.Host(netip.MustParseAddr("10.0.1.9")) + n.Host(netip.MustParseAddr("2001:db8::7")); got != "42 (18)no route (25)web serversdb-7" {
			t.Errorf("%q", got)
		}
		if f, ok := n.FindInterface(17, 4); !ok || f.Speed != 400e9 {
			t.Errorf("%+v", f)
		}
	}
	if !read[0].Equal(read[1]) {
		t.Errorf("YAML and JSON differ:\n%v\n%v", read[0], read[1])
	}
}

// TestReadAddresses names devices that are known by their address alone.
func TestReadAddresses(t *testing.T) {
	n, err := Read("f", strings.NewReader("nodes:\n  - {id: 172.16.0.3, name: leaf-3}\n  - id: 2001:db8::3\n    name: leaf-6\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"172.16.0.3": "leaf-3", "2001:db8::3": "leaf-6"} {
		if node, ok := n.Find(decode.AddrFrom(netip.MustParseAddr(address)).Node()); !ok || node.Name != want {
			t.Errorf("the node of %s is %q, %v, want %q", address, node.Name, ok, want)
		}
	}
	_, err = Read("f", strings.NewReader("nodes:\n  - {id: 2886729731, name: a}\n  - {id: 172.16.0.3, name: b}\n"), nil)
	if want := "inventory f:3: node 2886729731 is listed in line 2, too"; err == nil || err.Error() != want {
		t.Errorf("a number and its address: %v, want %s", err, want)
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // of the whole error
	}{
		{"nodes:\n  - {id: 1, name: a}\n  - {id: 2}\n  - {id: 1, name: b}\n", "inventory f:4: node 1 is listed in line 2, too"},
		{"nodes:\n  - {id: 1, name: a}\n  - {id: 2, name: a}\n", "inventory f:3: node 2 is called \"a\", as the node in line 2"},
		{"nodes:\n  - id: 1\n    interfaces:\n      - {id: 1, name: x}\n      - {id: 1, name: y}\n", "inventory f:5: node 1 has interface 1 in line 4, too"},
		{"nodes:\n  - id: 1\n    interfaces:\n      - {id: 1, name: x}\n      - {id: 2, name: x}\n", "inventory f:5: interface 2 of node 1 is called \"x\", as the one in line 4"},
		{"nodes:\n  - {name: a}\n  - {id: -1}\n", "inventory f:2: a node has no id\ninventory f:3: \"-1\" is no number from 0 to 4294967295 and no address"},
		{"nodes:\n  - {id: 1, nmae: a}\n", "inventory f:2: a node has no key \"nmae\""},
		{"nodes:\n  - id: 1\n    interfaces: [{id: 1, speed: fast}]\n", "inventory f:3: speed \"fast\" is no number of bits a second such as 10G or 400000000000"},
		{"hosts:\n  - {prefix: 10.0.0.1/33, name: a}\n", "inventory f:2: \"10.0.0.1/33\" is no prefix such as 10.0.1.0/24, and no address\ninventory f:2: hosts need a prefix such as 10.0.1.0/24 or 10.0.1.7"},
		{"hosts:\n  - {prefix: 10.0.0.0/24, name: a}\n  - {prefix: 10.0.0.9/24, name: b}\n", "inventory f:3: hosts 10.0.0.0/24 are listed in line 2, too"},
		{"drop_reasons:\n  256: a\n", "inventory f:2: drop reason \"256\" is outside 0..255"},
		{"nodes: 7\n", "inventory f:1: nodes: want a list, not Integer"},
		{"- 1\n", "inventory f:1: the inventory: want a mapping, not Sequence"},
		{"a: 1\n---\nb: 2\n", "inventory f:1: the inventory has no key \"a\"\ninventory f:3: a second document"},
	} {
		_, err := Read("f", strings.NewReader(c.text), nil)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.text, err, c.want)
		}
	}
	if _, err := Read("f", strings.NewReader("nodes: [\n"), nil); err == nil || !strings.HasPrefix(err.Error(), "inventory f:") {
		t.Errorf("%v", err)
	}
	if _, err := Read("f", strings.NewReader(strings.Repeat(" ", maxBytes+1)), nil); err == nil {
		t.Error("a file beyond the limit is read")
	}
	many := "nodes:\n" + strings.Repeat("  - {name: x}\n", 1000)
	if _, err := Read("f", strings.NewReader(many), nil); err == nil || strings.Count(err.Error(), "\n") != maxProblems {
		t.Errorf("a file with 1000 problems reports %d", strings.Count(err.Error(), "\n")+1)
	}
	for _, empty := range []string{"", "# nothing\n", "nodes:\n"} {
		if n, err := Read("f", strings.NewReader(empty), nil); err != nil || n.Len() != 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// FuzzRead checks that every inventory that is read can be shown.
func FuzzRead(f *testing.F) {
	f.Add(asYAML)
	f.Add(asJSON)
	f.Add("nodes:\n  - {id: 1, name: \"\\u202e\\x1b\"}\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Read("f", strings.NewReader(text), nil)
		if err != nil {
			return
		}
		for _, r := range n.Rows() {
			for _, s := range []string{r.Name, r.Site, r.Interface} {
				if s != names.Clean(s) || slices.Contains([]byte(s), '\x1b') {
					t.Fatalf("%q is shown as it is", s)
				}
			}
		}
	})
}
