package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// Generators describes what Parse accepts, for help texts.
const Generators = "fat-tree:K, leaf-spine:SPINES,LEAVES, grid:ROWS,COLUMNS, torus:ROWS,COLUMNS, random:NODES,LINKS,SEED"

// numbers is how many follow the name of a generator.
var numbers = map[string]int{"fat-tree": 1, "leaf-spine": 2, "grid": 2, "torus": 2, "random": 3}

// IsGenerator reports whether spec names one of the generators, rather than a file.
func IsGenerator(spec string) bool {
	kind, _, ok := strings.Cut(spec, ":")
	return ok && numbers[kind] > 0
}

// Parse generates a graph from its description, such as "fat-tree:4", "leaf-spine:2,8" or "random:100,250,1".
func Parse(spec string) (*Graph, error) {
	kind, args, ok := strings.Cut(spec, ":")
	if !ok || !IsGenerator(spec) {
		return nil, fmt.Errorf("topology %q: not one of %s", spec, Generators)
	}
	parts := strings.Split(args, ",")
	if want := numbers[kind]; len(parts) != want {
		return nil, fmt.Errorf("topology %q: %d numbers after the colon, want %d (%s)", spec, len(parts), want, Generators)
	}
	var v [3]uint64
	for i, p := range parts {
		size := 31 // node and link counts are ints everywhere
		if kind == "random" && i == 2 {
			size = 64
		}
		n, err := strconv.ParseUint(strings.TrimSpace(p), 10, size)
		if err != nil {
			return nil, fmt.Errorf("topology %q: %q is no number from 0 to 2^%d-1", spec, p, size)
		}
		v[i] = n
	}
	switch kind {
	case "fat-tree":
		return FatTree(int(v[0]))
	case "leaf-spine":
		return LeafSpine(int(v[0]), int(v[1]))
	case "grid":
		return Grid(int(v[0]), int(v[1]))
	case "torus":
		return Torus(int(v[0]), int(v[1]))
	default:
		return Random(int(v[0]), int(v[1]), v[2])
	}
}
