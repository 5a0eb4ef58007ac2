package harness

var rft = Paper{
	Name:  "RFT",
	Title: "X. Sun and others, RFT: Toward Highly Reliable Flow Data Transmission in Network Measurement.",
	Of:    map[string]int{"Figure": 3, "Table": 1, "Algorithm": 3, "Theorem": 6},
	Items: []PaperItem{
		{Place: "Table 1", What: "notation (table I)", State: Drawing, Why: "a list"},
		{Place: "Section II", What: "the model", Test: "bench/papers TestDelivery", Note: "All points share capacities, where the text's constraints are of a point and a path"},
		{Place: "Theorem 1", What: "the problem is NP-hard", State: Drawing, Why: "a proof"},
		{Place: "Section II-C", What: "100 nodes and 300 links", Values: []PaperValue{
			{"seconds of our search, which proves its plan", "3 to 4 days for a feasible plan by an integer programme", 0, 4 * 86400, at("rft", "sizes, random networks", "100 | 300 | exact", "seconds")}},
			Note: "Times of the integer programme are in experiment 5"},
		{Place: "Algorithm 1", What: "assignment of paths", Values: []PaperValue{
			{"points served without new links, over what is proven to be the most", "close to the optimum", 0.95, 1, over(at("rft", "over 67 networks", "paper's, no links", "points served"), at("rft", "over 67 networks", "ours, no links", "points served"))}},
			Note: "With two mistakes repaired (docs/plan-delivery.md)"},
		{Place: "Theorem 2", What: "steps of algorithm 1", State: Drawing, Why: "a count of steps"},
		{Place: "Theorem 3", What: "steps of brute force; 2 to 3 hours for 100 nodes and 300 links", Values: []PaperValue{
			{"mean time over the heuristic's, 67 networks", "several orders of magnitude (experiment 2)", 100, inf, over(at("rft", "over 67 networks", "brute force", "mean ms"), at("rft", "over 67 networks", "paper's heuristic", "mean ms"))}},
			Note: "Brute force is ended after 2 s a network, so that the quotient is a lower bound"},
		{Place: "Theorem 4", What: "particle swarm against brute force: mean time", Values: []PaperValue{
			{"", "around 160 times faster", 40, inf, over(at("rft", "over 67 networks", "brute force", "mean ms"), at("rft", "over 67 networks", "pso", "mean ms"))}},
			Note: "Brute force is ended after 2 s a network, so that the quotient is a lower bound"},
		{Place: "Theorem 5", What: "the swarm with genetic steps: as many steps", Values: []PaperValue{
			{"mean time over the plain swarm's", "the same complexity", 0.5, 2, over(at("rft", "over 67 networks", "pso-ga", "mean ms"), at("rft", "over 67 networks", "pso", "mean ms"))}}},
		{Place: "Algorithm 2", What: "particle swarm, and its improvement: near-optimal by the fitness, which is the number of added paths", Test: "planner/delivery/solve TestSwarmFitness",
			Note: "Links with the most paths do not serve the most points: 84.5 %, where experiment 2 has the swarms find no feasible solution"},
		{Place: "Algorithm 3", What: "heuristic for links: links added over ours, which are the fewest", Values: []PaperValue{
			{"", "close to the optimum", 0.97, 1.1, over(at("rft", "over 67 networks", "paper's heuristic", "links"), at("rft", "over 67 networks", "ours", "links"))}}},
		{Place: "Theorem 6", What: "10 000 nodes and 500 000 links", Values: []PaperValue{
			{"seconds of a plan", "5 to 10", 0, 10, at("rft-text", "size of theorem 6", "10000", "seconds")}},
			Note: "Of the whole plan. All points are served without new links"},
		{Place: "Section IV", What: "plans carried out by emulated switches, 67 networks", Values: []PaperValue{
			{"rate that arrives over a path, of the planned one: least", "1", 0.97, 1, at("rft-carried", "carried out", "the rate of the plan", "least of the rate")},
			{"most", "1", 1, 1.03, at("rft-carried", "carried out", "the rate of the plan", "most of the rate")},
			{"most, at twice the rate", "1", 0.97, 1.03, at("rft-carried", "carried out", "twice the rate", "most of the rate")},
			{"reports elsewhere than planned, at twice the rate", "0", 0, 0, at("rft-carried", "carried out", "twice the rate", "elsewhere")}},
			Note: "Paths with 100 planned reports or more. The published column has what the plan asks for: the text has no such figure"},
		{Place: "Section IV", What: "a Tofino switch with 64 ports of 100 Gbit/s", State: Missing, Why: "plans are carried out in the emulated network alone"},
		{Place: "Figure 1", What: "nodes and links of 67 networks", State: Drawing, Why: "the text has no list; ours are of the Topology Zoo"},
		{Place: "Figure 2(a), experiment 1", What: "acceptance, quotients of the points served", Values: []PaperValue{
			{"the heuristic over brute force", "best in each sample", 1.0001, inf, over(at("rft", "over 67 networks", "paper's heuristic", "points served"), at("rft", "over 67 networks", "brute force", "points served"))},
			{"the heuristic over the swarm", "best in each sample", 1.0001, inf, over(at("rft", "over 67 networks", "paper's heuristic", "points served"), at("rft", "over 67 networks", "pso", "points served"))}},
			Note: "With all pairs reliable"},
		{Place: "Figure 2(b), experiment 2", What: "time of the heuristic at 20 %, ms", Values: []PaperValue{
			{"38 nodes, 45 links (called PionierL1, PionierL3 in the data)", "5", 0, 5, at("rft", "more pairs", "PionierL3 | 20 %", "paper's, repaired ms")},
			{"Intranetwork", "20", 0, 20, at("rft", "more pairs", "Intranetwork | 20 %", "paper's, repaired ms")}},
			Note: "Python there, compiled here"},
		{Place: "Figure 2(c), experiment 3", What: "links of the heuristic over the fewest, Intranetwork", Values: []PaperValue{
			{"20 %", "close to the optimum", 1, 1.1, over(at("rft", "more pairs", "Intranetwork | 20 %", "its links"), at("rft", "more pairs", "Intranetwork | 20 %", "links"))},
			{"100 %", "close to the optimum", 1, 1.1, over(at("rft", "more pairs", "Intranetwork | 100 %", "its links"), at("rft", "more pairs", "Intranetwork | 100 %", "links"))}}},
		{Place: "Figure 3(a), experiment 4", What: "servers, RFT's over the fewest", Values: []PaperValue{
			{"", "close to the optimum", 1, 1.25, over(at("rft", "over 67 networks", "paper's heuristic", "servers"), at("rft", "over 67 networks", "ours", "servers"))}}},
		{Place: "Figure 3(a)", What: "servers of Marple and MTP", State: Drawing, Why: "in the picture alone; the text has that RFT's are close to the fewest"},
		{Place: "Figure 3(b), experiment 5", What: "time of RFT, ms", Values: []PaperValue{
			{"mean of 67 networks", "320", 0, 320, at("rft", "over 67 networks", "paper's heuristic", "mean ms")},
			{"worst", "3541 (Pern)", 0, 3541, at("rft", "over 67 networks", "paper's heuristic", "worst ms")}},
			Note: "Python there, compiled here"},
		{Place: "Figure 3(b)", What: "times of MTP 3200 ms and the integer programme 3090 ms, Marple 7 ms: mean time over RFT's", Values: []PaperValue{
			{"exact search", "9.7: slower", 1.01, inf, over(at("rft", "over 67 networks", "ours", "mean ms"), at("rft", "over 67 networks", "paper's heuristic", "mean ms"))}},
			Note: "The text also has RFT as the fastest of all. Marple has no search in it. Ours of all paths to its one server is the slowest (bench/results/rft-text.json)"},
		{Place: "Section V", What: "networks in which all is accepted, of 67", Values: []PaperValue{
			{"our exact plan", "67", 67, 67, at("rft", "over 67 networks", "ours", "networks whole")}}},
		{Place: "Section V", What: "the same, of RFT's own heuristic", Values: []PaperValue{
			{"constraints as printed, eight draws", "67", 67, 67, at("rft-text", "as the text prints them", "RFT", "networks whole")}},
			Note: "Equations 4 and 5 are of a point and a path each, which allows overload. With capacities that all points share: 66"},
		{Place: "Section V", What: "without new links: 90 % of the networks for MTP and the integer programme, 49 % for Marple", Values: []PaperValue{
			{"MTP and the integer programme", "60 of 67", 56, 64, at("rft-text", "as the text prints them", "integer programme, MTP", "networks whole")},
			{"Marple, with one server a point", "33", 28, 38, at("rft-text", "as the text prints them", "Marple: one server", "networks whole")}},
			Note: "Constraints as printed, without deadlines, which the others miss, and every node forwards: 56 to 66 and 25 to 39 in eight draws. With deadlines 13, and with shared capacities provably 6"},
		{Place: "Figure 3(c), experiment 6", What: "deadlines kept, percent of the points", Values: []PaperValue{
			{"RFT", "all", 100, 100, at("rft-text", "as the text prints them", "RFT", "in time")},
			{"MTP and the integer programme", "most are missed", 0, 50, at("rft-text", "as the text prints them", "integer programme, MTP", "in time")},
			{"Marple", "most are missed", 0, 50, at("rft-text", "as the text prints them", "Marple: one server", "in time")}}},
		{Place: "Figure 3(d), experiment 7", What: "RFT keeps all limits of loss", Test: "planner/delivery TestCheckLoss", Note: "Each plan of the bench passes. Of the others 69 to 92 % of the points are reliable by their paths where losses are ignored (bench/results/rft-text.json), and none by equation 8, which no plan meets that reserves only the rate"},
	},
}
