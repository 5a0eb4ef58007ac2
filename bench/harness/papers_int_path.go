package harness

import "math"

var inf = math.Inf(1)

// at is a place in a file.
func at(file, table, row, column string) At {
	return At{File: file, Table: table, Row: row, Column: column}
}

// over is one place divided by another.
func over(a, b At) At { a.Over = &b; return a }

// less is one place less another.
func less(a, b At) At { a.Less = &b; return a }

var intPath = Paper{
	Name:  "INT-path",
	Title: "T. Pan and others, INT-path: Towards Optimal Path Planning for In-band Network-Wide Telemetry, INFOCOM 2019.",
	Of:    map[string]int{"Figure": 16, "Proposition": 1},
	Items: []PaperItem{
		{Place: "Figure 1", What: "the header of a probe: 512 bits of labels of 4 bits, 22 bytes a switch", Test: "decode/srint TestAppendSRList"},
		{Place: "Figure 2", What: "the depth-first plan", Test: "planner/cover/solve TestPaperExample", Note: "Its line 19 names the node instead of its neighbour; the text is followed"},
		{Place: "Figure 3", What: "its example: two paths", Test: "planner/cover/solve TestPaperExample"},
		{Place: "Figure 4", What: "the example of the Euler plan (section III-C): two paths between 1, 3, 5 and 6", Test: "planner/cover/solve TestPaperExtraction"},
		{Place: "Figure 5", What: "the Euler plan: k paths for 2k odd vertices, the fewest", Test: "planner/cover/solve TestUndirectedCover"},
		{Place: "Proposition 1", What: "a circuit that is left touches a path", Test: "planner/cover/solve TestUndirectedCover"},
		{Place: "Section III-D", What: "an upper bound of the steps, O(k(3E + V - 7.5k))", State: Drawing, Why: "times are figures 12 and 13"},
		{Place: "Section III-E", What: "the balanced plan takes the longest of all shortest paths", Test: "planner/cover/solve TestUndirectedCover", Note: "What it brings is figure 10"},
		{Place: "Section IV-A", What: "the prototype: 18 switches, 12 hosts, lines of code", State: Drawing, Why: "a set-up"},
		{Place: "Abstract", What: "pattern recognition in bitmap images; no recogniser is given", Test: "bench/findings TestPictures", Note: "Ours names 15 of 44 emulated faults, causes 38 (bench/findings/doc.go)"},
		{Place: "Figure 6", What: "a snapshot of queues as bitmap images", Test: "sink/web TestFilm", Note: "`hopscope export images` writes them (docs/map.md)"},
		{Place: "Figure 7", What: "paths on random graphs", Values: []PaperValue{
			{"DFS grows linearly: 100 switches over 20", "roughly linear", 4, 6, over(at("int-path", "figure 11", "100", "DFS paths"), at("int-path", "figure 11", "20", "DFS paths"))},
			{"Euler grows linearly: 100 switches over 20", "roughly linear", 4, 6, over(at("int-path", "figure 11", "100", "Euler paths"), at("int-path", "figure 11", "20", "Euler paths"))},
			{"Euler over DFS, 100 switches", "fewer", 0, 0.99, over(at("int-path", "figure 11", "100", "Euler paths"), at("int-path", "figure 11", "100", "DFS paths"))},
		}},
		{Place: "Figure 8", What: "paths with 20 odd vertices", Values: []PaperValue{
			{"Euler, 25 switches", "constant: half of the odd vertices", 10, 10, at("int-path", "figure 8", "20 | 25", "Euler")},
			{"Euler, 100 switches", "constant: half of the odd vertices", 10, 10, at("int-path", "figure 8", "20 | 100", "Euler")},
			{"DFS over Euler, 100 switches", "more", 1.01, inf, over(at("int-path", "figure 8", "20 | 100", "DFS"), at("int-path", "figure 8", "20 | 100", "Euler"))},
		}},
		{Place: "Figure 9", What: "39 vertices and ever more links", Values: []PaperValue{
			{"Euler rises: 600 links over 200", "grows at first", 1.01, inf, over(at("int-path", "figure 9", "600", "Euler"), at("int-path", "figure 9", "200", "Euler"))},
			{"DFS rises: 600 links over 200", "grows at first", 1.01, inf, over(at("int-path", "figure 9", "600", "DFS"), at("int-path", "figure 9", "200", "DFS"))},
			{"Euler, complete graph of 741 links", "no odd vertices: 1", 1, 1, at("int-path", "figure 9", "741", "Euler")},
			{"Euler over DFS, 400 links", "fewer", 0, 0.99, over(at("int-path", "figure 9", "400", "Euler"), at("int-path", "figure 9", "400", "DFS"))},
		}, Note: "Below 200 links ours falls, since the first links are a random tree, which has many odd vertices"},
		{Place: "Figure 10", What: "variance of the lengths, balanced over not balanced", Values: []PaperValue{
			{"20 switches", "lower", 0, 0.999, over(at("int-path", "figure 10", "20", "paper, balanced"), at("int-path", "figure 10", "20", "paper"))},
			{"100 switches", "lower", 0, 0.999, over(at("int-path", "figure 10", "100", "paper, balanced"), at("int-path", "figure 10", "100", "paper"))},
		}},
		{Place: "Figure 11", What: "thousand packets a second at the controller, 100 switches", Values: []PaperValue{
			{"DFS", "5", 4.5, 5.5, at("int-path", "figure 11", "100", "DFS kpps")},
			{"Euler", "2.5", 2.25, 2.75, at("int-path", "figure 11", "100", "Euler kpps")},
		}, Note: "At the switches both are the same"},
		{Place: "Figure 12", What: "time by network size, Euler over DFS", Values: []PaperValue{
			{"50 switches", "larger", 1.01, inf, at("int-path", "figure 12", "50", "Euler / DFS")},
			{"800 switches", "larger", 1.01, inf, at("int-path", "figure 12", "800", "Euler / DFS")},
		}},
		{Place: "Figure 13", What: "time by odd vertices, 500 switches", Values: []PaperValue{
			{"Euler, 400 odd vertices over 100", "roughly linear", 3, 5.5, at("int-path", "figure 13", "400", "of 100 odd vertices")},
			{"DFS, 400 odd vertices over 100", "hardly depends on them", 0.6, 1.6, at("int-path", "figure 13", "400", "DFS, of 100")},
		}},
		{Place: "Figure 14", What: "latency by the rate of probes, over the latency without them", Values: []PaperValue{
			{"500 probes a second a path", "in the comfort zone: about 1", 0.9, 1.2, over(at("int-path", "figure 14", "500 | DFS", "mean us"), at("int-path", "figure 14", "0 | DFS", "mean us"))},
			{"1000 probes a second a path", "a sudden change", 1.5, inf, over(at("int-path", "figure 14", "1000 | DFS", "mean us"), at("int-path", "figure 14", "0 | DFS", "mean us"))},
		}, Note: "Of ordinary packets, emulated; the text has latency along the probing path"},
		{Place: "Figure 15", What: "fat-tree and leaf-spine: one path with an even number of units", Test: "planner/cover/solve TestFabrics"},
		{Place: "Figure 16", What: "paths in fabrics", Values: []PaperValue{
			{"leaf-spine, 7 units, Euler", "odd: as many as units", 7, 7, at("int-path", "figure 16", "7", "Euler (column 6)")},
			{"leaf-spine, 8 units, Euler", "even: 1", 1, 1, at("int-path", "figure 16", "8", "Euler (column 6)")},
			{"fat-tree, 8 units, Euler", "even: 1", 1, 1, at("int-path", "figure 16", "8", "Euler")},
			{"leaf-spine, 7 units, DFS over Euler", "more, predictable", 1.01, inf, over(at("int-path", "figure 16", "7", "leaf-spine: DFS"), at("int-path", "figure 16", "7", "Euler (column 6)"))},
		}},
		{Place: "Figure 16, odd", What: "fat-tree with an odd number of units", Values: []PaperValue{
			{"7 units: Euler", "as many as units", 7, 7, at("cover-more", "fat-tree of units", "7", "Euler")},
			{"8 units: Euler", "even: 1", 1, 1, at("cover-more", "fat-tree of units", "8", "Euler")},
		}, Note: "Odd degrees are in the middle layer alone, as the text states: n units of 2 + 2 switches, and n cores with links to all of the middle. The fat-tree of k ports has them at the edge, and takes k²/4 paths with k/2 odd"},
	},
}

// intProbe is described in FANT's text (section 2), and its figures are those of its publication.
var intProbe = Paper{
	Name:  "INT-Probe",
	Title: "T. Pan and others, INT-Probe: Lightweight In-band Network-Wide Telemetry with Stationary Probes, ICDCS 2021, and Y. Zhang and others, INT-Balance, ICC 2023, both from descriptions.",
	Items: []PaperItem{
		{Place: "Fat-tree, 1125 switches", What: "depots at a fifth of the edge switches: links passed twice", Values: []PaperValue{
			{"", "376", 376, 376, at("int-probe", "INT-Probe", "fat-tree:30", "twice")}}},
		{Place: "Fat-tree, 1125 switches", What: "the same: walks", Values: []PaperValue{
			{"", "45", 45, 45, at("cover-more", "hosts at the depots", "fat-tree:30", "walks")},
			{"links passed twice then", "376", 376, 376, at("cover-more", "hosts at the depots", "fat-tree:30", "twice")}},
			Note: "Every host at a depot is an end. Walks between the switches themselves are 38: optimal choices of the links passed twice differ in it, and ours prefers few"},
		{Place: "Leaf-spine, 1167 switches", What: "the same", Values: []PaperValue{
			{"links passed twice", "624", 624, 624, at("int-probe", "INT-Probe", "leaf-spine:389,778", "twice")},
			{"walks", "77", 77, 77, at("int-probe", "INT-Probe", "leaf-spine:389,778", "walks")}}},
		{Place: "INT-Balance", What: "variance of the lengths, over that of INT-path's plan", Values: []PaperValue{
			{"fat-tree of 1125 switches", "more balanced", 0, 0.999, at("int-balance", "pass every link once", "fat-tree:30 | INT-Balance", "of paper's")},
			{"leaf-spine of 100 switches", "more balanced", 0, 0.999, at("int-balance", "pass every link once", "leaf-spine:33,67 | INT-Balance", "of paper's")}}},
	},
}
