package querymix_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
)

const queriesText = `{"bits":16,"queries":[
	{"name":"path","value":"node","aggregation":"static","hops":5,"nodes":80,"widths":[8,{"bits":4,"packets":20},"2x8"]},
	{"name":"latency","value":"latency","aggregation":"dynamic","hops":5,"samples":100,"max_value":1000000,"max_error":0.1,"widths":["8",4],"flow":"pair","space_bytes":100},
	{"name":"utilization","value":"utilization","aggregation":"per-packet","max_value":65536,"frequency":"1/16","widths":[8]}]}`

func TestRead(t *testing.T) {
	got, err := querymix.Read(strings.NewReader(queriesText))
	if err != nil {
		t.Fatal(err)
	}
	want := &querymix.Problem{Bits: 16, Queries: []querymix.Query{
		{Name: "path", Value: "node", Aggregation: querymix.Static, Hops: 5, Nodes: 80, Widths: []querymix.Width{{Bits: 8, Instances: 1}, {Bits: 4, Instances: 1, Packets: 20}, {Bits: 8, Instances: 2}}},
		{Name: "latency", Value: "latency", Aggregation: querymix.Dynamic, Hops: 5, Samples: 100, MaxValue: 1e6, MaxError: 0.1, Flow: "pair", SpaceBytes: 100, Widths: []querymix.Width{{Bits: 8, Instances: 1}, {Bits: 4, Instances: 1}}},
		{Name: "utilization", Value: "utilization", Aggregation: querymix.PerPacket, MaxValue: 65536, Frequency: 0.0625, Widths: []querymix.Width{{Bits: 8, Instances: 1}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %+v, want %+v", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	path := `{"name":"p","value":"node","aggregation":"static","hops":5,"nodes":9,"widths":[8]}`
	with := func(more string) string {
		return `{"bits":16,"queries":[` + strings.Replace(path, `"hops"`, more+`,"hops"`, 1) + `]}`
	}
	latency := func(more string) string {
		return `{"bits":16,"queries":[{"name":"l","value":"latency","aggregation":"dynamic",` + more + `}]}`
	}
	const good = `"hops":5,"max_value":1000,"widths":[8]`
	for _, tt := range []struct{ in, want string }{
		{"", "the file is empty"},
		{"null", "the instance is empty"},
		{"[]", "a list cannot be an object"},
		{`{"bits":16}{}`, "more than one JSON value"},
		{`{"bits":16,"budget":3}`, `byte 11: unknown key "budget"`},
		{`{"bits":16,"queries":[]}`, "queries: there are none"},
		{`{"bits":0,"queries":[` + path + `]}`, "a budget of 0 bits"},
		{`{"bits":65,"queries":[` + path + `]}`, "a budget of 65 bits"},
		{`{"bits":16,"hash":"md5","queries":[` + path + `]}`, `hash "md5"`},
		{`{"bits":16,"epoch":256,"queries":[` + path + `]}`, "256"},
		{`{"bits":16,"queries":[` + path + "," + path + `]}`, `query "p" is there twice`},
		{`{"bits":16,"queries":[` + strings.Repeat(path+",", querymix.MaxQueries) + path + `]}`, "there are 65, more than 64"},
		{`{"bits":16,"queries":[{"widths":[8]}]}`, "query 0 has no name"},
		{`{"bits":16,"queries":[{"name":"p","value":"node","aggregation":"sum","widths":[8]}]}`, `query "p": aggregation "sum": want one of static`},
		{`{"bits":16,"queries":[{"name":"p","value":"port","aggregation":"static","widths":[8]}]}`, `query "p": value "port"`},
		{`{"bits":16,"queries":[{"name":"p","value":"latency","aggregation":"static","widths":[8]}]}`, `query "p": aggregation static does not go with value latency`},
		{with(`"flow":"vlan"`), `query "p": flow "vlan"`},
		{with(`"frequency":-1`), `query "p": frequency -1 is outside`},
		{with(`"frequency":1.5`), `query "p": frequency 1.5 is outside`},
		{with(`"frequency":1e-9`), `query "p": frequency 1e-09 is outside`},
		{with(`"frequency":"often"`), `"often" is no share of packets`},
		{with(`"frequency":"1/0"`), `"1/0" is no share of packets`},
		{with(`"frequency":"NaN"`), `query "p": frequency NaN is outside`},
		{with(`"frequency":NaN`), "invalid character 'N'"},
		{with(`"within":0.5`), `query "p": within 0.5 is outside`},
		{with(`"within":-3`), `query "p": within -3 is outside`},
		{with(`"samples":3`), `query "p": samples is not for aggregation static`},
		{with(`"max_value":3`), `query "p": max_value is not for aggregation static`},
		{with(`"tau":1.5,"xor":[0.1]`), `query "p": tau 1.5 is outside`},
		{with(`"tau":0.5`), `query "p": tau 0.5: below 1 there must be an XOR layer`},
		{with(`"tau":1,"xor":[0.5]`), `query "p": tau 1 leaves nothing`},
		{with(`"xor":[0.5,2]`), `query "p": xor [0.5 2]: a probability`},
		{with(`"matches":1`), `query "p": matches is not for aggregation static`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", "[]", 1), `query "p": there are no widths`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", "[8,8]", 1), `query "p": width 8 is there twice`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", "[0]", 1), `query "p": width 0: want 1 to 32 bits`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", "[33]", 1), `query "p": width 33: want 1 to 32 bits`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `["4x32"]`, 1), `query "p": width 4x32: want`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `["9x2"]`, 1), `query "p": width 9x2: want`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `["wide"]`, 1), `width "wide" is neither`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":4,"fragments":9}]`, 1), `query "p": width 4 with ids in 9 fragments: want fragments of at most 32 bits in all`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":4,"fragments":4611686018427387905}]`, 1), `want fragments of at most 32 bits in all`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":4,"fragments":-1}]`, 1), `want fragments of at most 32 bits in all`},
		{strings.Replace(with(`"id_bits":8`), "[8]", `[{"bits":3,"fragments":2}]`, 1), `query "p": width 3 with ids in 2 fragments: ids have 8 bits`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":3,"fragments":1}]`, 1), `query "p": width 3 with whole ids: so many bits distinguish fewer than 9 nodes`},
		{with(`"id_bits":33`), `query "p": id_bits 33 is outside 1..32`},
		{with(`"id_bits":3`), `query "p": id_bits 3: so many bits distinguish 8 nodes, and there are 9`},
		{latency(good + `,"samples":5,"id_bits":8`), `query "l": id_bits is not for aggregation dynamic`},
		{strings.Replace(latency(good+`,"samples":5`), "[8]", `[{"bits":8,"fragments":1}]`, 1), `query "l": width 8 with whole ids: fragments are for aggregation static`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[true]`, 1), `width true is no number`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":8,"bytes":1}]`, 1), `queries[0].widths[0]: unknown key "bytes"`},
		{strings.Replace(with(`"flow":"pair"`), "[8]", `[{"bits":8,"packets":-2}]`, 1), `query "p": width 8: -2 packets are outside`},
		{strings.Replace(with(`"flow":"pair"`), `,"nodes":9`, "", 1), `query "p": width 8: hops and nodes are missing`},
		{strings.Replace(with(`"flow":"pair"`), `"hops":5,`, "", 1), `query "p": hops are missing`},
		{strings.Replace(with(`"flow":"pair"`), `"hops":5,`, `"hops":65,`, 1), `query "p": hops 65 is outside 1..64`},
		{latency(good), `query "l": width 8: hops and samples (or rank_error) are missing`},
		{latency(good + `,"samples":5,"rank_error":0.1`), `query "l": samples and rank_error`},
		{latency(good + `,"samples":-5`), `query "l": samples -5 is outside`},
		{latency(good + `,"samples":5,"min_value":2000`), `query "l": max_value 1000 is below min_value 2000`},
		{latency(`"hops":5,"samples":5,"widths":[8]`), `query "l": max_value is missing`},
		{latency(`"hops":5,"samples":5,"max_value":1000,"widths":[8,4]`), `query "l": max_error is missing`},
		{latency(`"hops":5,"samples":5,"max_value":1000,"widths":[17]`), `query "l": width 17: codes of values have 16 bits`},
		{`{"bits":16,"queries":[{"name":"u","value":"utilization","aggregation":"per-packet","max_value":9,"widths":["2x4"]}]}`, `query "u": width 2x4: instances are for`},
		{`{"bits":16,"queries":[{"name":"o","value":"node","aggregation":"loop","matches":3,"widths":[2]}]}`, `query "o": width 2: the counter of 3 matches takes 2 bits`},
	} {
		if _, err := querymix.Read(strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Read(%s): %v, want %q", tt.in, err, tt.want)
		}
	}
}

// TestCheckFinds changes good plans in one thing.
func TestCheckFinds(t *testing.T) {
	p, err := querymix.Read(strings.NewReader(queriesText))
	if err != nil {
		t.Fatal(err)
	}
	good, err := solve.Plan(p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*querymix.Plan)
		want   string
	}{
		{"as it was written", func(*querymix.Plan) {}, ""},
		{"bits", func(q *querymix.Plan) { q.Bits = 32 }, "bits, epoch, hash or seed"},
		{"hash", func(q *querymix.Plan) { q.Hash = "crc" }, "bits, epoch, hash or seed"},
		{"partial", func(q *querymix.Plan) { q.Partial = true }, "partial true"},
		{"held", func(q *querymix.Plan) { q.Held = 0.9 }, "holds 0.9"},
		{"left out", func(q *querymix.Plan) { q.LeftOut, q.Partial = []querymix.LeftOut{{Name: "path"}}, true }, `"path" is left out, but planned`},
		{"dropped", func(q *querymix.Plan) { q.Queries = q.Queries[:2] }, "2 queries are planned and 0 left out, of 3"},
		{"twice", func(q *querymix.Plan) { q.Queries = append(q.Queries, q.Queries[0]) }, `"path" is planned twice`},
		{"share", func(q *querymix.Plan) { q.Sets[0].Share -= 0.01 }, "the shares sum to"},
		{"negative share", func(q *querymix.Plan) { q.Sets[0].Share *= -1 }, "has a share of -"},
		{"no share", func(q *querymix.Plan) { q.Sets[0].Share = 0 }, "set 0 has a share of 0\n"},
		{"a share below", func(q *querymix.Plan) { q.Sets[0].Share = -1 }, "set 0 has a share of -1\n"},
		{"a share above", func(q *querymix.Plan) { q.Sets[0].Share = 1.5 }, "set 0 has a share of 1.5\n"},
		{"NaN", func(q *querymix.Plan) { q.Sets[0].Share = math.NaN() }, "has a share of NaN"},
		{"hashes", func(q *querymix.Plan) { q.Sets[0].Last-- }, "those before end at"},
		{"other hashes", func(q *querymix.Plan) { q.Sets[0].Last -= 1 << 20; q.Sets[1].First -= 1 << 20 }, "of the hashes"},
		{"empty", func(q *querymix.Plan) { q.Sets = nil }, "the shares sum to 0"},
		{"overlap", func(q *querymix.Plan) { q.Sets[0].Slots[1].Shift-- }, "overlaps another"},
		{"outside", func(q *querymix.Plan) { q.Sets[0].Slots[1].Shift = 15 }, "does not fit"},
		{"same query twice", func(q *querymix.Plan) { q.Sets[0].Slots[1].Query = q.Sets[0].Slots[0].Query }, "is there twice"},
		{"unknown query", func(q *querymix.Plan) { q.Sets[0].Slots[1].Query = "x" }, `query "x"`},
		{"query's share", func(q *querymix.Plan) { q.Queries[1].Share = 1 }, `query "latency": it is on a share`},
		{"packets", func(q *querymix.Plan) { q.Queries[1].Packets = 3 }, `query "latency": it is on a share`},
		{"measured packets", func(q *querymix.Plan) { q.Queries[0].Widths[1].Packets = 1 }, `query "path": width 4 is not what was asked`},
		{"carrying", func(q *querymix.Plan) { q.Queries[0].Carrying = 1 }, `query "path": width 8 takes`},
		{"unknown width", func(q *querymix.Plan) { q.Queries[0].Bits = 7 }, `query "path": width 7 is none of its widths`},
		{"fewer widths", func(q *querymix.Plan) { q.Queries[0].Widths = q.Queries[0].Widths[:1] }, `query "path": the plan knows 1 widths of 3`},
		{"goal", func(q *querymix.Plan) { q.Queries[0].Goal *= 2 }, `query "path": demand, goal`},
		{"demand", func(q *querymix.Plan) { q.Queries[0].Demand = querymix.WantFrequency }, `query "path": demand, goal`},
		{"asks something else", func(q *querymix.Plan) { q.Queries[1].MaxValue++ }, `query "latency": the plan asks something else`},
		{"price", func(q *querymix.Plan) { q.Queries[0].GoalPrice = -1 }, `query "path": its prices`},
		{"no prices", func(q *querymix.Plan) { q.Queries[0].GoalPrice = 0 }, "the prices prove 0"},
		{"objective", func(q *querymix.Plan) { q.Stats.Objective /= 2 }, "the plan says"},
		{"bound", func(q *querymix.Plan) { q.Stats.LowerBound = q.Stats.Objective * 2 }, "lower bound"},
		{"left out more", func(q *querymix.Plan) { q.Stats.LeftOut, q.Stats.Optimal = 1, false }, "queries of weight 0 are left out, the plan says 1"},
		{"limited by nobody", func(q *querymix.Plan) { q.Queries[0].LimitedBy = []string{"x"} }, `is limited by "x"`},
		{"limited by itself", func(q *querymix.Plan) { q.Queries[0].LimitedBy = []string{"path"} }, `is limited by "path"`},
		{"too large a share", func(q *querymix.Plan) { q.Sets[0].Share = 1.5 }, "set 0 has a share of 1.5"},
		{"one other width", func(q *querymix.Plan) { q.Queries[0].Widths[1].Bits++ }, "is not what was asked"},
		{"width of fragments", func(q *querymix.Plan) { q.Queries[0].Widths[1].Fragments++ }, "is not what was asked"},
		{"fragments", func(q *querymix.Plan) { q.Queries[0].Fragments = 1 }, `query "path": width 8 with whole ids is none of its widths`},
		{"width of other instances", func(q *querymix.Plan) { q.Queries[0].Widths[1].Instances++ }, "is not what was asked"},
		{"worst", func(q *querymix.Plan) { q.Stats.Worst = "latency" }, `"latency" is not the worst`},
	} {
		plan := new(querymix.Plan)
		if err := json.Unmarshal(text, plan); err != nil {
			t.Fatal(err)
		}
		tt.change(plan)
		err := querymix.Check(p, plan)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error()+"\n", tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	// A plan that is worse than need be is not optimal.
	worse := new(querymix.Plan)
	if err := json.Unmarshal(text, worse); err != nil {
		t.Fatal(err)
	}
	worse.Arrange([][]int{{0, 1}, {0, 2}, {1, 2}}, []float64{0.7, 0.1, 0.2})
	if err := querymix.Check(p, worse); err == nil || !strings.Contains(err.Error(), "called optimal") {
		t.Errorf("a worse plan: %v", err)
	}
	worse.Stats.Optimal = false
	if err := querymix.Check(p, worse); err != nil {
		t.Errorf("a worse plan that says so: %v", err)
	}
	worse.Arrange([][]int{{0, 1}, {0, 2}, {1, 2}}, []float64{0.97, 0.01, 0.02})
	if err := querymix.Check(p, worse); err == nil || !strings.Contains(err.Error(), `query "utilization": it is on a share of 0.03 of all packets, less than`) {
		t.Errorf("a query below its frequency: %v", err)
	}
}

// TestCheckCoding: a plan has the coding that a query asks for.
func TestCheckCoding(t *testing.T) {
	for _, coding := range []string{`"tau":0.7,"xor":[0.2]`, `"tau":1`} {
		for _, spoil := range []func(q *querymix.PlannedQuery){
			func(*querymix.PlannedQuery) {},
			func(q *querymix.PlannedQuery) { q.Tau /= 2 },
			func(q *querymix.PlannedQuery) { q.XOR = append(q.XOR, 0.1) },
		} {
			p, err := querymix.Read(strings.NewReader(strings.Replace(queriesText, `"nodes":80,`, `"nodes":80,`+coding+`,`, 1)))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := solve.Plan(p, solve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			q := &plan.Queries[0]
			tau, layers := q.Tau, len(q.XOR)
			spoil(q)
			want := q.Tau != tau || len(q.XOR) != layers
			if err := querymix.Check(p, plan); want != (err != nil && strings.Contains(err.Error(), `query "path": the plan asks something else`)) {
				t.Errorf("%s, planned with %v and %v: %v", coding, q.Tau, q.XOR, err)
			}
		}
	}
}

// FuzzPlan reads a problem; what is valid has a plan that holds, or an error, and the same with partial plans.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(queriesText))
	f.Add([]byte(`{"bits":9,"queries":[{"name":"a","value":"node","aggregation":"loop","matches":1,"frequency":0.9,"widths":[9,{"bits":3,"packets":1e7}]},{"name":"b","value":"node","aggregation":"static","tau":1,"within":1e7,"widths":[{"bits":1,"packets":1}]}]}`))
	f.Add([]byte(`{"bits":8,"epoch":7,"hash":"crc","seed":4294967295,"queries":[{"name":"a","value":"queue","aggregation":"dynamic","hops":64,"rank_error":0.5,"max_value":18446744073709551615,"widths":[1]},{"name":"b","value":"latency","aggregation":"per-packet","samples":1e6,"frequency":1,"max_value":1,"widths":[8]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := querymix.Read(bytes.NewReader(b))
		if err != nil || len(p.Queries) > 6 {
			return
		}
		for i := range p.Queries { // models of paths take long
			for k := range p.Queries[i].Widths {
				if w := &p.Queries[i].Widths[k]; p.Queries[i].Aggregation == querymix.Static && w.Packets == 0 {
					w.Packets = float64(100 / w.Total())
					if w.Packets < 1 {
						w.Packets = 1
					}
				}
			}
		}
		for _, partial := range []bool{false, true} {
			plan, err := solve.Plan(p, solve.Options{Partial: partial, Stop: calls(3000)})
			if err != nil {
				continue
			}
			if err := querymix.Check(p, plan); err != nil {
				t.Fatalf("partial %v: %s: %v", partial, b, err)
			}
		}
	})
}

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}
