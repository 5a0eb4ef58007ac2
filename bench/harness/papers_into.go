package harness

var into = Paper{
	Name:  "INTO",
	Title: "J. A. Marques and others, An optimization-based approach for efficient network monitoring using in-band network telemetry, Journal of Internet Services and Applications 10:12, 2019. CH and BH are its heuristics, FA its full assignment.",
	Of:    map[string]int{"Figure": 15, "Table": 1, "Algorithm": 2, "Theorem": 2, "Lemma": 4},
	Items: []PaperItem{
		{Place: "Figure 1", What: "an example: four flows, five devices, fourteen interfaces", Test: "planner/orchestrate/solve TestPaperExample", Note: "The way of its second flow follows from those of the others, and from figure 4"},
		{Place: "Figure 2", What: "the example, concentrated: three flows of four, the fewest", Test: "planner/orchestrate/solve TestPaperExample"},
		{Place: "Figure 4", What: "the example, balanced: 16 items at most, the least", Test: "planner/orchestrate/solve TestPaperExample"},
		{Place: "Table 1", What: "symbols", State: Drawing, Why: "a list"},
		{Place: "Section 3", What: "the models, equations 1 to 11", Test: "bench/papers TestOrchestrate", Note: "Rows are summed over the flows that pass the interface"},
		{Place: "Section 3", What: "plans carried out by emulated switches, 260 networks", Values: []PaperValue{
			{"CH, networks whose packets all have the reports of the plan", "260", 260, 260, at("into-carried", "carried out", "CH (published)", "as planned")},
			{"BH, the same", "260", 260, 260, at("into-carried", "carried out", "BH (published)", "as planned")},
			{"CH, freshness by the reports over the planned one", "1", 0.999, 1.001, over(at("into-carried", "carried out", "CH (published)", "hops, mean"), at("into-carried", "carried out", "CH (published)", "planned"))},
			{"BH, percent of networks below 0.1 hop by the reports (figure 14)", "zero in most networks", 50, 100, at("into-carried", "carried out", "BH (published)", "below 0.1")}},
			Note: "One packet of each flow in use, and of every eighth other flow. The published column has what the plan asks for, except for figure 14"},
		{Place: "Lemma 1", What: "a verifier of Concentrate", Test: "planner/orchestrate TestCheck"},
		{Place: "Lemma 2", What: "bin packing as Concentrate", Test: "planner/orchestrate/solve TestPlanPacking"},
		{Place: "Lemma 3", What: "a verifier of Balance", Test: "planner/orchestrate TestCheck"},
		{Place: "Lemma 4", What: "scheduling as Balance", Test: "planner/orchestrate/solve TestPlanPacking"},
		{Place: "Theorem 1", What: "Concentrate is NP-complete", Test: "planner/orchestrate/solve TestPlanPacking", Note: "By known optima of bin packing"},
		{Place: "Theorem 2", What: "Balance is NP-complete", Test: "planner/orchestrate/solve TestPlanPacking", Note: "By known optima of scheduling"},
		{Place: "Figure 3", What: "the network of lemma 2", State: Drawing, Why: "a line of switches with all flows over it"},
		{Place: "Figure 5", What: "the network of lemma 4", State: Drawing, Why: "a line of switches with all flows over it"},
		{Place: "Algorithm 1", What: "Concentrate, CH", Test: "planner/orchestrate/solve TestPaperTwins"},
		{Place: "Algorithm 2", What: "Balance, BH", Test: "planner/orchestrate/solve TestPaperTwins"},
		{Place: "Figure 6", What: "times of the mathematical programmes; GLPK has 248 and 223 of 260 feasible in 10 minutes, and 28 and 174 proven", Values: []PaperValue{
			{"Concentrate (CMP), 380 flows over 90", "grows quickly", 2, inf, over(at("into-milp", "Plans of", "orchestrate | concentrate, 380 flows", "seconds"), at("into-milp", "Plans of", "orchestrate | concentrate, 90 flows", "seconds"))},
			{"CMP over Balance (BMP), 380 flows", "harder", 1.01, inf, over(at("into-milp", "Plans of", "orchestrate | concentrate, 380 flows", "seconds"), at("into-milp", "Plans of", "orchestrate | balance, 380 flows", "seconds"))},
			{"CMP with 1560 flows, ended after 54 s: flows over the fewest known", "feasible, not optimal", 1.01, inf, over(at("into-milp", "Plans of", "orchestrate | concentrate, 1560 flows", "theirs"), at("into-milp", "Plans of", "orchestrate | concentrate, 1560 flows", "ours"))}},
			Note: "HiGHS, a thread, over random networks of 10 to 40 nodes. Our search proves 232 of 260 networks of Concentrate and all of Balance (docs/plan-orchestrate.md)"},
		{Place: "Figure 7", What: "times of the heuristics, worst of 260 networks in ms", Values: []PaperValue{
			{"CH", "under one second", 0, 1000, at("into-full", "section 5:", "CH", "worst ms")},
			{"BH", "under one second", 0, 1000, at("into-full", "section 5:", "BH", "worst ms")}}},
		{Place: "Section 5.1", What: "CH above its bound", Values: []PaperValue{
			{"mean, flows", "9.82", 8, 12, at("into-full", "section 5:", "CH", "mean gap")},
			{"deviation", "7.93", 6, 10, at("into-full", "section 5:", "CH", "sd")},
			{"most", "49", 35, 65, at("into-full", "section 5:", "CH", "most")}},
			Why: "ours is the optimum of equation 12 where proven (in some 247 of 260 networks). The linear relaxation of the equation, from which a solver starts, leaves no more (3.5 in 257 networks). Figure 11 shows that the heuristic is the same"},
		{Place: "Section 5.1", What: "CH, least gap", Values: []PaperValue{{"", "0", 0, 0, at("into-full", "section 5:", "CH", "least")}}},
		{Place: "Section 5.1", What: "BH above its bound", Values: []PaperValue{
			{"mean, items", "0.09", 0.03, 0.15, at("into-full", "section 5:", "BH", "mean gap")},
			{"deviation", "0.63", 0.4, 0.9, at("into-full", "section 5:", "BH", "sd")},
			{"most", "5", 3, 8, at("into-full", "section 5:", "BH", "most")},
			{"networks at the bound or optimal", "all of 260 but 5", 250, 258, at("into-full", "section 5:", "BH", "none")}}},
		{Place: "Section 5.1", What: "plans of the solver at its time limit, over CH's", Values: []PaperValue{
			{"1560 flows", "12.62 flows above the bound, and CH 9.82: more", 1.001, inf, over(at("into-milp", "Plans of", "orchestrate | concentrate, 1560 flows", "theirs"), at("into-milp", "Plans of", "orchestrate | concentrate, 1560 flows", "published"))}},
			Note: "The text has GLPK, 10 minutes for each of 260 networks: deviation 11.68, at most 50; BMP 0.84 items above, deviation 2.37, at most 14. Its optimum of BMP is the bound in 171 of 174 networks; here BH alone is there in 254 of 260"},
		{Place: "Figure 8", What: "share of networks covered, in percent, by mean capacity", Values: []PaperValue{
			{"CH, 5 items, all interfaces", "about 25, for CH and the slightly better BH", 15, 40, at("into", "little capacity", "5 | CH (published)", "all covered")},
			{"BH, 5 items, all interfaces", "about 25, as above", 15, 40, at("into", "little capacity", "5 | BH (published)", "all covered")},
			{"CH, 5 items, 90 % of the interfaces", "about 80", 75, 92, at("into", "little capacity", "5 | CH (published)", "at least 90 %")},
			{"BH, 5 items, 90 % of the interfaces", "about 80", 75, 92, at("into", "little capacity", "5 | BH (published)", "at least 90 %")},
			{"FA, 35 items, all interfaces", "100", 99, 100, at("into-full", "full assignment", "35", "all covered")},
			{"FA, 30 items, all interfaces", "not all", 0, 99.5, at("into-full", "full assignment", "30", "all covered")}}},
		{Place: "Figure 8", What: "CH and BH with 20 items, all interfaces, in percent", Values: []PaperValue{
			{"CH", "100", 99, 100, at("into", "little capacity", "20 | CH (published)", "all covered")},
			{"BH", "100", 99, 100, at("into", "little capacity", "20 | BH (published)", "all covered")}},
			Why: "with our draws (deviation 5), 2 % of the networks provably have no plan that covers all. All are covered at 35"},
		{Place: "Figure 9", What: "mean load of a flow in use, items, at a mean capacity of 35", Values: []PaperValue{
			{"BH", "about 7", 6.5, 7.5, at("into-full", "section 5:", "BH", "mean load")},
			{"CH over BH", "higher", 1.5, inf, over(at("into-full", "section 5:", "CH", "mean load"), at("into-full", "section 5:", "BH", "mean load"))},
			{"FA over BH", "higher", 1.5, inf, over(at("into-full", "full assignment", "35", "mean load"), at("into-full", "section 5:", "BH", "mean load"))}}},
		{Place: "Figure 10", What: "mean load by capacity", Values: []PaperValue{
			{"BH, 50 over 20 items", "not influenced: 1", 0.99, 1.01, over(at("into", "little capacity", "50 | BH (published)", "mean load"), at("into", "little capacity", "20 | BH (published)", "mean load"))},
			{"CH, 50 over 35 items", "small increases", 1.001, 1.2, over(at("into", "little capacity", "50 | CH (published)", "mean load"), at("into", "little capacity", "35 | CH (published)", "mean load"))},
			{"FA, 50 over 20 items", "increases significantly", 1.5, inf, over(at("into-full", "full assignment", "50", "mean load"), at("into-full", "full assignment", "20", "mean load"))}}},
		{Place: "Figure 11", What: "flows in use in the largest network, 880 interfaces", Values: []PaperValue{
			{"CH", "225", 215, 235, at("into-full", "section 5:", "CH", "flows of the largest")},
			{"BH", "880", 880, 880, at("into-full", "section 5:", "BH", "flows of the largest")},
			{"FA", "38 612", 38612, 38612, at("into-full", "full assignment", "35", "flows of the largest")},
			{"interfaces a flow, CH", "about 4", 3.5, 4.5, at("into-full", "section 5:", "CH", "interfaces a flow")},
			{"interfaces a flow, BH", "1", 0.99, 1.02, at("into-full", "section 5:", "BH", "interfaces a flow")}}},
		{Place: "Figure 12", What: "correlation at a mean capacity of 35: what 85 of 100 networks reach", Values: []PaperValue{
			{"CH", "0.50", 0.45, 0.6, at("into-full", "section 5:", "CH", "correlation p15")},
			{"BH", "0.25 in most", 0.2, 0.35, at("into-full", "section 5:", "BH", "correlation p15")}}},
		{Place: "Figure 13", What: "correlation by capacity: what 85 of 100 networks reach", Values: []PaperValue{
			{"FA, 50 items", "0.90", 0.87, 0.93, at("into-full", "full assignment", "50", "p15")},
			{"BH, 35 over 20 items, mean", "curves superimpose: 1", 0.99, 1.01, over(at("into", "little capacity", "35 | BH (published)", "correlation, mean"), at("into", "little capacity", "20 | BH (published)", "correlation, mean"))},
			{"FA, 35 over 50 items", "lower", 0, 0.95, over(at("into-full", "full assignment", "35", "p15"), at("into-full", "full assignment", "50", "p15"))}}},
		{Place: "Figure 14", What: "freshness, hops", Values: []PaperValue{
			{"BH, percent of networks below 0.1", "zero in most networks", 50, 100, at("into", "INTO Balance", "BH (published)", "below 0.1")},
			{"FA, mean", "about 2", 1.5, 2.5, at("into-full", "full assignment", "35", "hops, mean")},
			{"CH over FA, mean", "worst", 1.01, inf, over(at("into-full", "section 5:", "CH", "hops, mean"), at("into-full", "full assignment", "35", "hops, mean"))}}},
		{Place: "Figure 15", What: "freshness by diameter, hops: largest mean of a network", Values: []PaperValue{
			{"CH", "up to 10", 8, 12, at("into-full", "section 5:", "CH", "hops, largest mean")},
			{"BH", "hardly any", 0, 0.5, at("into-full", "section 5:", "BH", "hops, largest mean")}}},
	},
}
