package picture

import "github.com/hopscope/hopscope/sink/web/atlas"

// tiers are those of a fabric as [Spot] counts them.
var tiers = map[string]int{"edge": 1, "aggregation": 2, "core": 3}

// New returns a film without windows of the links of a map. Its directions have the numbers that the map gives them.
func New(metric, unit string, m *atlas.Document) *Film {
	index := make(map[uint32]int, len(m.Nodes))
	spots := make([]Spot, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		index[n.ID] = i
		spots[i] = Spot{tiers[n.Tier], n.Pod, n.Plane}
	}
	directions := make([][2]int, 0, 2*len(m.Links))
	for i := range m.Links {
		a, b := index[m.Links[i].A], index[m.Links[i].B]
		directions = append(directions, [2]int{a, b}, [2]int{b, a})
	}
	f := &Film{Metric: metric, Unit: unit, Source: m.Source, Nodes: make([]Node, len(spots)), Directions: directions}
	row := make([]int, len(spots))
	for at, i := range Order(spots, directions) {
		row[i] = at
		f.Nodes[at] = Node{m.Nodes[i].ID, m.Nodes[i].Name}
	}
	for i := range directions {
		directions[i] = [2]int{row[directions[i][0]], row[directions[i][1]]}
	}
	return f
}
