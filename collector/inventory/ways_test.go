package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

var called = names.New([]names.Node{{ID: 11, Name: "leaf-1"}, {ID: 12, Name: "fw-1"}, {ID: 13, Name: "fw-2"}, {ID: 14, Name: "twin"}, {ID: 15, Name: "twin"}}, nil, nil)

const good = `rules:
  - name: web
    dst: 10.0.1.0/24
    protocol: tcp
    dst_port: 443
    via: [leaf-1, [fw-1, 13]]
    avoid: [9]
  - {name: backup, src: 10.0.9.7, src_port: 1-99, protocol: udp, paths: [[leaf-1, 12], [11, fw-2]]}
`

func TestReadWays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ways.yaml")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := ReadWaysFile(file, called)
	if err != nil || p.Len() != 2 {
		t.Fatalf("%v, %d rules", err, p.Len())
	}
	for _, tt := range []struct {
		flow  string
		nodes []uint32
		want  string
	}{
		{"10.0.0.1:9 > 10.0.1.2:443 tcp", []uint32{11, 13}, ""},
		{"10.0.0.1:9 > 10.0.1.2:443 tcp", []uint32{11, 9, 13}, "rule web: node 9 is passed"},
		{"10.0.0.1:9 > 10.0.1.2:443 tcp", []uint32{11}, "rule web: node 12 is not passed"},
		{"10.0.9.7:9 > 10.0.7.2:443 udp", []uint32{11, 13}, ""},
		{"10.0.9.7:9 > 10.0.7.2:443 udp", []uint32{11, 14}, "rule backup: the way leaves those that are allowed behind node 11"},
		{"10.0.9.7:100 > 10.0.7.2:443 udp", []uint32{1}, ""},
	} {
		k, err := decode.ParseFlow(tt.flow)
		if err != nil {
			t.Fatal(err)
		}
		var path []inference.HopKey
		for _, n := range tt.nodes {
			path = append(path, inference.HopKey{Node: n})
		}
		if key, strays := p.Judge(&k, path); strays != (tt.want != "") || strays && key.String() != tt.want {
			t.Errorf("%s over %v: %v, want %q", tt.flow, tt.nodes, key, tt.want)
		}
	}
	if p, err := ReadWaysFile("", nil); p != nil || err != nil {
		t.Errorf("no file: %v, %v", p, err)
	}
}

func TestReadWaysErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "there are no rules",
		"rules: []":                         "there are no rules",
		"rules: 3":                          "policy x",
		"rulez: []":                         `unknown field "rulez"`,
		"rules: [{name: a, vai: 3}]":        `unknown field "vai"`,
		"rules: [{name: a, via: [nobody]}]": `no node is called "nobody"`,
		"rules: [{name: a, via: [twin]}]":   `several nodes are called "twin"`,
		"rules: [{name: a, via: [{b: c}]}]": "an entry is a node, or a list",
		"rules: [{name: a, via: [1], src: 10.0.0.1/8}]":                    "10.0.0.0/8 is meant",
		"rules: [{name: a, via: [1], dst: here}]":                          `"here" is no prefix`,
		"rules: [{name: a, via: [1], protocol: tpc}]":                      `"tpc" is none of tcp, udp`,
		"rules: [{name: a, via: [1], dst_port: 80}]":                       "ports are those of tcp or udp",
		"rules: [{name: a, via: [1], dst_port: 90-80, protocol: 6}]":       `"90-80" is no port`,
		"rules: [{name: a, via: [1], dst_port: 70000, protocol: 6}]":       `"70000" is no port`,
		"rules: [{name: a}]":                                               "it has none of via, avoid and paths",
		"rules: [{name: a, via: [1]}, {name: a, via: [1]}]":                "there is another rule of this name",
		"rules: [{name: a, via: [5000000000]}]":                            "no node is called",
		"rules: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000):  "policy x",
		"a: &a [1]\nrules: *a":                                             "policy x",
		"rules: [{name: a, avoid: [1], paths: [[]]}]":                      "names no node",
		"rules:\n- name: a\n  via: !x\n1":                                  "tags, directives, merges and complex keys",
		"rules: [{name: a, avoid: [1]}]" + strings.Repeat(" ", maxBytes+1): "more than 4194304 bytes",
	} {
		if _, err := readWays("x", []byte(text), called); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
	if _, err := ReadWaysFile(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.HasPrefix(err.Error(), "policy: ") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// FuzzReadWays reads anything. Any accepted file judges any flow.
func FuzzReadWays(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("rules: [{name: a, via: [1]}]"))
	f.Add([]byte(`{"rules":[{"name":"a","paths":[["1","2"]]}]}`))
	k, err := decode.ParseFlow("10.0.0.1:9 > 10.0.1.2:443 tcp")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := readWays("x", b, called); err == nil {
			p.Judge(&k, []inference.HopKey{{Node: 11}, {Node: 12}})
			p.Judge(&k, nil)
		}
	})
}
