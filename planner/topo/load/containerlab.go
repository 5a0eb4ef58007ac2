package load

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/hopscope/hopscope/planner/topo"
)

// maxLabNodes is the most keys of a mapping in a file of containerlab, whose nodes are one mapping.
const maxLabNodes = 1024

// labFile distinguishes a file of containerlab from the format of hopscope: the key topology, which that does not have.
var labFile = regexp.MustCompile(`(?m)^topology[ \t]*:`)

// labOutside are ends of links that are no nodes of the lab: what leads to them leads out of the graph.
var labOutside = []string{"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}

// labPort is the interface names whose number is a port: eth3, and ethernet-1/3 of SR Linux as its containers call it.
var labPort = regexp.MustCompile(`^(?:eth|e1-)([1-9][0-9]{0,8})$`)

// labReader reads a topology of containerlab (containerlab.dev/manual/topo-def-file). It reads name, topology.nodes,
// and topology.links in the brief form (endpoints: ["a:eth1", "b:eth1"]) and the extended one (type, endpoints or
// endpoint). The labels graph-geoCoordinateLng and graph-geoCoordinateLat of a node are its place. All else is for
// running a lab, and ignored.
type labReader struct {
	yamlReader
	used  map[string]int // lines of interfaces, by "node:interface"
	ports map[endSpec]bool
}

func readLab(l *loader, body ast.Node) error {
	y := labReader{yamlReader{l}, map[string]int{}, map[endSpec]bool{}}
	var links ast.Node // nodes may follow
	err := y.mapping(body, "the file", func(key string, v ast.Node) (_ bool, err error) {
		switch key {
		case "name":
			l.name, err = y.text(v)
		case "topology":
			err = y.mapping(v, "topology", func(key string, v ast.Node) (_ bool, err error) {
				switch key {
				case "nodes":
					err = y.mapping(v, "nodes", y.node)
				case "links":
					links = v
				}
				return true, err
			})
		}
		return true, err
	})
	if err != nil || links == nil {
		return err
	}
	return y.sequence(links, "links", y.link)
}

func (y labReader) node(name string, v ast.Node) (bool, error) {
	n, err := y.l.node(yamlLine(v), name, "", topo.NoTier)
	if err != nil || v.Type() == ast.NullType {
		return true, err
	}
	var place [2]string // longitude, latitude
	err = y.mapping(v, "a node", func(key string, v ast.Node) (bool, error) {
		if key != "labels" || v.Type() == ast.NullType {
			return true, nil
		}
		return true, y.mapping(v, "labels", func(key string, v ast.Node) (_ bool, err error) {
			switch key {
			case "graph-geoCoordinateLng":
				place[0], err = y.text(v)
			case "graph-geoCoordinateLat":
				place[1], err = y.text(v)
			}
			return true, err
		})
	})
	if err != nil {
		return true, err
	}
	return true, y.l.place(yamlLine(v), n, place[0], place[1])
}

func (y labReader) link(n ast.Node) error {
	kind := "veth"
	var ends []endSpec
	add := func(v ast.Node) error {
		e, err := y.end(v)
		ends = append(ends, e)
		return err
	}
	err := y.mapping(n, "a link", func(key string, v ast.Node) (_ bool, err error) {
		switch key {
		case "type":
			kind, err = y.text(v)
		case "endpoints":
			err = y.sequence(v, "endpoints", add)
		case "endpoint":
			err = add(v)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	line := yamlLine(n)
	switch outside := slices.Contains(labOutside, kind); {
	case !outside && kind != "veth" && kind != "veth-stitch":
		return y.l.errorf(line, "link of type %q; what is read is veth, veth-stitch, %s", kind, strings.Join(labOutside, ", "))
	case outside && len(ends) == 1:
		ends = append(ends, endSpec{node: -1})
	case len(ends) != 2:
		return y.l.errorf(line, "a link of %d endpoints, want 2", len(ends))
	}
	a, b := ends[0], ends[1]
	switch {
	case a.node >= 0 && b.node >= 0:
		a.attr, b.attr = topo.DefaultAttr, topo.DefaultAttr
		return y.l.link(line, a, b)
	case a.node < 0:
		a = b
	}
	if a.node >= 0 {
		a.line = line
		y.l.external = append(y.l.external, a)
	}
	return nil
}

// end reads an endpoint, as "node:interface" or as a mapping. Its node is -1 outside the lab.
func (y labReader) end(v ast.Node) (endSpec, error) {
	var name, face string
	var err error
	if _, ok := v.(ast.MapNode); ok {
		err = y.mapping(v, "an endpoint", func(key string, v ast.Node) (_ bool, err error) {
			switch key {
			case "node":
				name, err = y.text(v)
			case "interface":
				face, err = y.text(v)
			}
			return true, err
		})
	} else if name, err = y.text(v); err == nil {
		name, face, _ = strings.Cut(name, ":")
	}
	switch {
	case err != nil:
		return endSpec{}, err
	case name == "" || face == "":
		return endSpec{}, y.errorf(v, "an endpoint without a node or an interface; write it as \"node:interface\"")
	}
	n, ok := y.l.byID[name]
	if !ok {
		if slices.Contains(labOutside, name) {
			return endSpec{node: -1}, nil
		}
		return endSpec{}, y.errorf(v, "link names a node %q that is not among topology.nodes", name)
	}
	key := name + ":" + face
	if line, taken := y.used[key]; taken {
		return endSpec{}, y.errorf(v, "interface %s is in use since line %d", key, line)
	}
	y.used[key] = yamlLine(v)
	e := endSpec{node: n}
	if m := labPort.FindStringSubmatch(face); m != nil {
		e.port, _ = strconv.Atoi(m[1]) // nine digits at most
		if y.ports[e] {
			e.port = 0 // a bridge may have both eth1 and e1-1
		}
		y.ports[e] = true
	}
	return e, nil
}
