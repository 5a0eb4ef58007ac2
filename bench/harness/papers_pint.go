package harness

var pint = Paper{
	Name:  "PINT",
	Title: "R. Ben Basat and others, PINT: Probabilistic In-band Network Telemetry, SIGCOMM 2020, with its appendices.",
	Of:    map[string]int{"Figure": 11, "Table": 3, "Algorithm": 2, "Theorem": 3},
	Items: []PaperItem{
		{Place: "Table 1", What: "metadata values", State: Drawing, Why: "a list"},
		{Place: "Table 2", What: "use cases", State: Drawing, Why: "a list"},
		{Place: "Section 2", What: "28 and 48 bytes on 5 hops, 76 and 6 ns", State: Drawing, Why: "sums of published sizes and clocks"},
		{Place: "Figure 1", What: "mean flow completion time with TCP at 70 % load, over that without telemetry", Values: []PaperValue{
			{"48 bytes", "+10 %", 1.08, 1.12, at("pint-1", "Figure 1", "48", "70 % load")}}},
		{Place: "Figure 1", What: "the same", Values: []PaperValue{
			{"108 bytes", "+25 %", 1.2, 1.3, at("pint-1", "Figure 1", "108", "70 % load")}},
			Why: "95 % of resamples of its 2,020 flows are from +12 to +21 %; the text's own formula gives +20. The text has neither delays, queues nor timers"},
		{Place: "Figure 2", What: "mean goodput of flows longer than 10 MB at 70 % load, over that without telemetry", Values: []PaperValue{
			{"108 bytes", "-20 %", 0.77, 0.83, at("pint-1", "Figure 2", "108", "70 % load")},
			{"108 bytes over 48", "0.899, by its formula of the capacity left", 0.86, 0.94, over(at("pint-1", "Figure 2", "108", "70 % load"), at("pint-1", "Figure 2", "48", "70 % load"))}}},
		{Place: "Figure 2", What: "the same", Values: []PaperValue{
			{"48 bytes", "-10 %, with the spread of 58 flows", 0.83, 0.97, at("pint-1", "Figure 2", "48", "70 % load")}},
			Note: "95 % of resamples are from -13.6 to -0.3 %; the text's formula gives -7.5"},
		{Place: "Figure 3", What: "architecture", State: Drawing, Why: "a drawing"},
		{Place: "Table 3", What: "techniques by use case", State: Drawing, Why: "a list"},
		{Place: "Section 4.1", What: "each hop is the one that wrote with probability 1/k", Test: "decode/pint TestWritersAreUniform"},
		{Place: "Theorem 1", What: "quantiles within ε after O(k/ε²) packets in O(k/ε) space", Test: "inference/aggregation TestRanksAreUnbiased", Note: "Figure 9 has the errors"},
		{Place: "Theorem 2", What: "frequent values", Test: "inference/aggregation TestFrequent"},
		{Place: "Figure 4", What: "several encoders of one message", State: Drawing, Why: "a drawing"},
		{Place: "Figure 5, section 4.2", What: "packets until 25 hops are known", Values: []PaperValue{
			{"Baseline, median", "89", 87, 91, at("pint-5", "Figure 5", "Baseline", "median")},
			{"Baseline, 99th percentile", "189", 183, 197, at("pint-5", "Figure 5", "Baseline", "p99")},
			{"XOR over Baseline, median", "a similar number", 0.9, 1.1, over(at("pint-5", "Figure 5", "XOR, p = 1/d", "median"), at("pint-5", "Figure 5", "Baseline", "median"))},
			{"hybrid, median", "41", 39, 43, at("pint-5", "Figure 5", "Hybrid", "median")},
			{"hybrid, 99th percentile", "68", 65, 71, at("pint-5", "Figure 5", "Hybrid", "p99")}}},
		{Place: "Section 4.2", What: "two encoders, interleaved: 8/3 packets", State: Drawing, Why: "a sum by hand, which is right: 1 + 1/2 · 2 + 1/2 · 4/3"},
		{Place: "Section 4.2", What: "layers: one to d = 15, two from 16 on; τ = 3/4, and footnote 8", Test: "decode/pint TestPresets", Note: "As printed in appendix A.2.2, Algorithm 1 has two from d = 6 on"},
		{Place: "Theorem 3", What: "the multi-layer scheme decodes after k log log* k (1 + o(1)) packets: median at 25 hops over Baseline's", Values: []PaperValue{
			{"", "fewer than k ln k", 0, 0.9, over(at("pint-5", "Figure 5", "Multi-layer", "median"), at("pint-5", "Figure 5", "Baseline", "median"))}},
			Note: "The o(1) is not bounded"},
		{Place: "Section 4.2", What: "linear network coding, packets of 25 hops", Values: []PaperValue{
			{"with a probability of 1 - 1/k", "k + log₂ k: 29.6", 28.5, 30.7, at("pint-5", "Figure 5", "Ours: linear network coding", "all but 1/k")}},
			Note: "The field is binary: each block is XORed in with probability 1/2. Full rank is missed after k + m rows with about 2⁻ᵐ, which is 1/k at m = log₂ k. The mean is k + 1.6"},
		{Place: "Section 4.2", What: "fragmentation, hashing, several instances, vectors of bits", Test: "decode/pint TestRawValues"},
		{Place: "Section 4.3", What: "multiplicative codes: ε = 0.0025 in 16 bits, 0.025 in 8", Test: "decode/pint TestCodeConfigs"},
		{Place: "Section 4.3", What: "random rounding has no systematic error: bias of 8 bits, in percent", Values: []PaperValue{
			{"", "none", -0.05, 0.05, at("pint-9", "codes of latencies", "lognormal | 8", "bias, %")}}},
		{Place: "Section 4.3", What: "randomised counting", Test: "decode/pint TestAddIsUnbiased"},
		{Place: "Section 4.3, appendices B and C", What: "HPCC's utilisation by logarithms", Test: "decode/pint TestLineAgainstFloat"},
		{Place: "Section 5, figure 6", What: "four, four and eight pipeline stages", State: Missing, Why: "needs Tofino's compiler; ours is of v1model"},
		{Place: "Figure 6", What: "layout of the stages", State: Drawing, Why: "a drawing"},
		{Place: "Figure 7(a)", What: "HPCC with PINT over HPCC with INT: goodput of flows longer than 10 MB, web search, in percent", Values: []PaperValue{
			{"70 % load less 50 %", "more at higher load", 0, inf, less(at("pint-7", "Figure 7(a)", "70", "gain, %"), at("pint-7", "Figure 7(a)", "50", "gain, %"))}}, Note: "+8.1 at 30 % load, +12.4 at 50 %, +19.5 at 70 %"},
		{Place: "Figure 7(a)", What: "the same", Values: []PaperValue{
			{"70 % load", "+71", 60, 82, at("pint-7", "Figure 7(a)", "70", "gain, %")}},
			Why: "95 % of resamples of its 54 flows are from 13 to 26. The capacity left by headers, telemetry and acknowledgements grows by 39 %; 48 servers stand for 320, over milliseconds"},
		{Place: "Figure 7(b)", What: "the same: 95th percentile of slowdown, web search, 50 % load", Values: []PaperValue{
			{"mean of tenths by size", "similar", 0.9, 1.1, at("pint-7", "Figure 7(b)", "mean of tenths", "PINT over INT, p95")},
			{"shortest tenth", "slightly worse", 1, 1.2, at("pint-7", "Figure 7(b)", "0 to 10", "PINT over INT, p95")},
			{"longest tenth", "better", 0, 1, at("pint-7", "Figure 7(b)", "90 to 100", "PINT over INT, p95")}}},
		{Place: "Figure 7(c)", What: "the same, Hadoop", Values: []PaperValue{
			{"mean of tenths by size", "similar", 0.9, 1.1, at("pint-7", "Figure 7(c)", "mean of tenths", "PINT over INT, p95")},
			{"longest tenth", "better", 0, 1, at("pint-7", "Figure 7(c)", "90 to 100", "PINT over INT, p95")}}},
		{Place: "Figure 7(c)", What: "the same", Values: []PaperValue{
			{"shortest tenth", "slightly worse, with the spread of the draws", 0.956, 1.2, at("pint-7", "Figure 7(c)", "0 to 10", "PINT over INT, p95")}},
			Note: "No difference beyond the spread: 95 % of resamples are from 0.958 to 1.045"},
		{Place: "Figure 8(a)", What: "95th percentile of slowdown over that with p = 1, web search", Values: []PaperValue{
			{"p = 1/16, mean of tenths by size", "only slightly more", 0.9, 1.1, at("pint-7", "Figure 8(a)", "mean of tenths", "p = 1/16 over p = 1, p95")},
			{"p = 1/256, shortest tenth", "significantly more", 1.1, inf, at("pint-7", "Figure 8(a)", "0 to 10", "p = 1/256 over p = 1, p95")},
			{"p = 1/256, longest tenth, from 5 MB", "more", 1, inf, at("pint-7", "Figure 8(a)", "90 to 100", "p = 1/256 over p = 1, p95")}}},
		{Place: "Figure 8(b)", What: "the same, Hadoop", Values: []PaperValue{
			{"p = 1/16, mean of tenths by size", "only slightly more", 0.9, 1.1, at("pint-7", "Figure 8(b)", "mean of tenths", "p = 1/16 over p = 1, p95")},
			{"p = 1/256, shortest tenth", "significantly more", 1.1, inf, at("pint-7", "Figure 8(b)", "0 to 10", "p = 1/256 over p = 1, p95")}}, Note: "With p = 1/16 eight tenths are within 10 % of p = 1, and two up to 12.6 % above"},
		{Place: "Figure 9", What: "error of latency quantiles", Values: []PaperValue{
			{"sketch of 100 bytes above all codes, 500 packets, 8 bits, median, in percent", "only a little", 0, 10, at("pint-9", "lognormal: by packets", "0.5 | 500", "vs. all")},
			{"the same, 99th percentile", "only a little", -2, 10, at("pint-9", "lognormal: by packets", "0.99 | 500", "vs. all")},
			{"the same, 4 bits, median", "only a little", 0, 10, at("pint-9", "lognormal: by packets", "0.5 | 500", "vs. all (column 12)")},
			{"4 bits, median, 10 000 packets over 5000", "becomes stable", 0.95, 1.05, over(at("pint-9", "lognormal: by packets", "0.5 | 10000", "b = 4, all codes"), at("pint-9", "lognormal: by packets", "0.5 | 5000", "b = 4, all codes"))}},
			Note: "Latencies are drawn, not simulated with HPCC"},
		{Place: "Figure 10(a), section 6.3", What: "Kentucky Datalink, 59 hops, 2 × 8 bits, Algorithm 1 with d = 10", Values: []PaperValue{
			{"mean", "42", 41, 43, at("pint-10", "Kentucky", "2 × 8 bits | Algorithm 1 | PINT, V = the path | 59", "mean")},
			{"99th percentile", "94", 90, 98, at("pint-10", "Kentucky", "2 × 8 bits | Algorithm 1 | PINT, V = the path | 59", "p99")},
			{"AMS2, m = 5, over it", "25 to 36", 25, 36, over(at("pint-10", "Kentucky", "16 bits |  | AMS2, m = 5 | 59", "mean"), at("pint-10", "Kentucky", "2 × 8 bits | Algorithm 1 | PINT, V = the path | 59", "mean"))},
			{"PPM, 4 fragments, over it", "25 to 36", 25, 36, over(at("pint-10", "Kentucky", "16 bits |  | PPM, 4 fragments | 59", "mean"), at("pint-10", "Kentucky", "2 × 8 bits | Algorithm 1 | PINT, V = the path | 59", "mean"))}},
			Why: "the codings as printed take 82 to 95 with the path's own switches as the only candidates, and 12 to 14 where the links are known (one digest of 4 bits: 38 to 45); our decoder 59. The quotients follow; the competitors are as published, below"},
		{Place: "Figure 10(a)", What: "the competitors, 59 hops, means", Values: []PaperValue{
			{"AMS2, m = 5", "at least 1000 to 1500", 900, 1600, at("pint-10", "Kentucky", "16 bits |  | AMS2, m = 5 | 59", "mean")},
			{"AMS2, m = 6", "at least 1000 to 1500", 900, 1600, at("pint-10", "Kentucky", "16 bits |  | AMS2, m = 6 | 59", "mean")},
			{"PPM, 4 fragments", "at least 1000 to 1500", 900, 1600, at("pint-10", "Kentucky", "16 bits |  | PPM, 4 fragments | 59", "mean")}}},
		{Place: "Figure 10(d)", What: "the competitors, 59 hops, 99th percentiles", Values: []PaperValue{
			{"AMS2, m = 5", "3300 to 5000", 3000, 5500, at("pint-10", "Kentucky", "16 bits |  | AMS2, m = 5 | 59", "p99")},
			{"PPM, 4 fragments", "3300 to 5000", 3000, 5500, at("pint-10", "Kentucky", "16 bits |  | PPM, 4 fragments | 59", "p99")}},
			Why: "draws of hops by an even hash give 1.5 to 1.6 times the mean, of which the text has 2.2 to 3.3 times for all three. The published program draws them by a CRC, which is linear, so that the draws of packets depend on one another"},
		{Place: "Figure 10(a)", What: "the competitors over PINT with 1 bit, 59 hops, means", Values: []PaperValue{
			{"AMS2, m = 5", "7 to 10", 7, 10, over(at("pint-10", "Kentucky", "16 bits |  | AMS2, m = 5 | 59", "mean"), at("pint-10links", "links are known", "1 bit | hybrid | 59", "mean"))}},
			Note: "Where PINT's decoder knows the links, as AMS2 does: 150 bits cannot hold the order of 59 switches, which is 266 bits. Without them the best coding as printed takes 783"},
		{Place: "Figure 10(b, e)", What: "US Carrier, 2 × 8 bits, one XOR layer: mean at 36 hops over 12", Values: []PaperValue{
			{"", "near-linear in the length: 3", 2.5, 4, over(at("pint-10", "US Carrier", "2 × 8 bits | Algorithm 1, one XOR layer | PINT, V = the path | 36", "mean"), at("pint-10", "US Carrier", "2 × 8 bits | Algorithm 1, one XOR layer | PINT, V = the path | 12", "mean"))}}},
		{Place: "Figure 10(c, f)", What: "fat-tree, 5 hops: competitors over PINT with 2 × 8 bits, means", Values: []PaperValue{
			{"AMS2, m = 5", "significantly fewer", 2, inf, over(at("pint-10", "Fat-tree", "16 bits |  | AMS2, m = 5 | 5", "mean"), at("pint-10", "Fat-tree", "2 × 8 bits | Algorithm 1 | PINT, V = the path | 5", "mean"))}}},
		{Place: "Figure 11, section 6.4", What: "three queries in 16 bits over each alone, in percent", Values: []PaperValue{
			{"packets until the path is known", "+0.5", -1, 2, at("pint-11", "three queries", "the paper's, by hand", "vs. alone")}}},
		{Place: "Figure 11", What: "the same: error of the median latency", Values: []PaperValue{
			{"points of the relative error", "+0.7", -0.3, 1.7, less(at("pint-11", "three queries", "the paper's, by hand", "latency error, %: median"), at("pint-11", "three queries", "each query alone", "latency error, %: median"))}},
			Note: "The relative error is in percent itself. Over the error alone it is 3.8 % more, as 15 of 16 packets carry it: √(16/15)"},
		{Place: "Figure 11", What: "the same: 95th percentile of slowdown with HPCC, Hadoop", Values: []PaperValue{
			{"shorter half of the flows", "+6.6", 3, 10, at("pint-7", "Figure 11, HPCC", "shorter half", "slower, p95, %")},
			{"longest tenth", "not more", -inf, 3, at("pint-7", "Figure 11, HPCC", "longest tenth", "slower, p95, %")}}},
		{Place: "Section 7", What: "a digest of another hop contradicts a known path with probability 1 - 2⁻ᵇ", Test: "decode/pint TestNodesCollideIndependently"},
		{Place: "Appendix A.1", What: "samples and sketches behind theorems 1 and 2", Test: "inference/aggregation TestSketchesAgainstAllCodes"},
		{Place: "Appendix A.2.1, lemma 1", What: "flips until k successes", Test: "bench/papers/digests TestProofLemma1"},
		{Place: "Appendix A.2.1, theorem 2", What: "double dixie cup", Test: "bench/papers/digests TestProofTheorem2"},
		{Place: "Appendix A.2.1, theorem 3, fact 4, theorem 5", What: "partial coupon collector", Test: "bench/papers/digests TestProofTheorem5"},
		{Place: "Appendix A.2.1, lemma 6", What: "all but a share of the coupons", Test: "bench/papers/digests TestProofTheorem5"},
		{Place: "Algorithm 1, appendix A.2.2", What: "a switch's procedure, with 𝔡 = d/log* d", Test: "decode/pint TestPacketsOfFigure5"},
		{Place: "Appendix A.3", What: "packets that suffice for 25 hops: k (ln ln* k + e) with algorithm 1, k (ln ln* k + 2) with the revised scheme", Values: []PaperValue{
			{"algorithm 1, 99th percentile", "at most 95.4", 0, 95.4, at("pint-5", "Figure 5", "Multi-layer", "p99")},
			{"revised, 99th percentile", "at most 77.5", 0, 77.5, at("pint-5", "Figure 5", "Multi-layer, revised", "p99")}},
			Note: "The appendix improves the bound. At 25 hops algorithm 1 itself takes fewer packets: 38 in the median, against 42"},
		{Place: "Algorithm 2, appendix A.4", What: "loops: false alarms on 32 switches", Values: []PaperValue{
			{"T = 0, 16 bits", "roughly 5e-4", 4e-4, 6e-4, at("pint-loops", "false alarms", "0 | 16", "rate")},
			{"T = 1, 15 bits", "less than 5e-7", 0, 5e-7, at("pint-loops", "false alarms", "1 | 15", "rate")},
			{"T = 3, 14 bits, computed", "5e-13", 4e-13, 6e-13, at("pint-loops", "false alarms", "3 | 14", "as printed, expected")}}},
	},
}
