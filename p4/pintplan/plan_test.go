package pintplan

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
)

const problem = `{"bits":24,"hash":"crc","seed":77,"queries":[
	{"name":"path","value":"node","aggregation":"static","hops":20,"nodes":100,"widths":["2x4",8],"tau":0.4,"xor":[0.05,0.2]},
	{"name":"the hop's latency","value":"latency","aggregation":"dynamic","hops":20,"samples":10,"max_value":1000000,"widths":[6]},
	{"name":"utilization","value":"utilization","aggregation":"per-packet","min_value":64,"max_value":262144,"frequency":"1/7","widths":[8]},
	{"name":"loops","value":"node","aggregation":"loop","matches":3,"frequency":0.2,"widths":[9]}]}`

func made(t testing.TB, text string) (*querymix.Plan, *pint.Plan) {
	t.Helper()
	p, err := querymix.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	found, err := solve.Plan(p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := New(found)
	if err != nil {
		t.Fatal(err)
	}
	return found, plan
}

// A plan that was written and read is the plan that was made.
func TestReadIsNew(t *testing.T) {
	found, plan := made(t, problem)
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, plan) {
		t.Errorf("read %+v, want %+v", read, plan)
	}
	if read.Epoch == 0 || read.Bits != 24 || read.Seed != 77 || read.Hash != pint.HashCRC || len(read.Queries) != 4 {
		t.Errorf("read %+v", read)
	}
}

// Packets carry sets as often as the planner wanted.
func TestShares(t *testing.T) {
	const packets = 1 << 20
	for _, text := range []string{problem, strings.Replace(problem, `"crc"`, `"mix"`, 1)} {
		found, plan := made(t, text)
		count := make([]int, len(plan.Sets))
		first := rand.Uint32()
		for n := range uint32(packets) {
			count[plan.Set(first+n)]++
		}
		for i, s := range found.Sets {
			// Seven standard deviations: a false alarm in 4e11.
			if off := math.Abs(float64(count[i]) - packets*s.Share); off > 7*math.Sqrt(packets*s.Share*(1-s.Share))+1 {
				t.Errorf("hash %s, ids from %d: set %d on %d of %d packets, want a share of %v", found.Hash, first, i, count[i], packets, s.Share)
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	found, _ := made(t, problem)
	for _, tt := range []struct {
		name   string
		change func(*querymix.Plan)
		want   string
	}{
		{"hash", func(p *querymix.Plan) { p.Hash = "md5" }, `hash "md5"`},
		{"no queries", func(p *querymix.Plan) { p.Queries = nil }, "0 queries"},
		{"name twice", func(p *querymix.Plan) { p.Queries[1].Name = "path" }, `"path" is there twice`},
		{"aggregation", func(p *querymix.Plan) { p.Queries[0].Aggregation = "sum" }, `"path": aggregation "sum"`},
		{"value", func(p *querymix.Plan) { p.Queries[0].Value = "port" }, `"port"`},
		{"width", func(p *querymix.Plan) { p.Queries[0].Bits = 40 }, "bits 40"},
		{"no bits", func(p *querymix.Plan) { p.Queries[1].Bits = -1 }, "bits -1"},
		{"huge instances", func(p *querymix.Plan) { p.Queries[0].Instances = 1 << 40 }, "instances"},
		{"tau", func(p *querymix.Plan) { p.Queries[0].Tau = 1.5 }, "tau 1.5"},
		{"code", func(p *querymix.Plan) { p.Queries[2].Bits = 1 }, `"utilization"`},
		{"matches", func(p *querymix.Plan) { p.Queries[3].Matches = 99 }, "T 99"},
		{"gap between hashes", func(p *querymix.Plan) { p.Sets[1].First++ }, "want them to begin at"},
		{"hashes end early", func(p *querymix.Plan) { p.Sets[len(p.Sets)-1].Last-- }, "end at 0xffffffff"},
		{"no sets", func(p *querymix.Plan) { p.Sets = nil }, "end at 0x0"},
		{"unknown query", func(p *querymix.Plan) { p.Sets[0].Slots[0].Query = "x" }, `query "x" is not there`},
		{"slot too high", func(p *querymix.Plan) { p.Sets[0].Slots[0].Shift = 23 }, "the digest has 24"},
		{"slot below 0", func(p *querymix.Plan) { p.Sets[0].Slots[0].Shift = -1 }, "the digest has 24"},
		{"slot of other width", func(p *querymix.Plan) { p.Sets[0].Slots[0].Bits++ }, "it has"},
		{"overlap", func(p *querymix.Plan) { p.Sets[0].Slots[1].Shift = p.Sets[0].Slots[0].Shift }, "overlaps"},
		{"digest", func(p *querymix.Plan) { p.Bits = 65 }, "65 bits"},
	} {
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		var p querymix.Plan
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		tt.change(&p)
		if text, err = json.Marshal(p); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(strings.NewReader(string(text))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for text, want := range map[string]string{"": "the file is empty", "[]": "a list cannot be an object", `{"bits":24,"shares":1}`: `unknown key "shares"`, strings.Repeat(" ", maxFile+1): "more than"} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read of %d bytes: %v, want %q", len(text), err, want)
		}
	}
	if _, err := ReadFile(t.TempDir() + "/none.json"); err == nil {
		t.Error("a file that is not there was read")
	}
}

// FuzzRead reads plans from strangers; what is valid can be written by switches.
func FuzzRead(f *testing.F) {
	found, _ := made(f, problem)
	text, err := json.Marshal(found)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"bits":1,"hash":"mix","queries":[{"name":"a","value":"utilization","aggregation":"per-packet","bits":1,"instances":1,"max_value":1}],"sets":[{"last":4294967295,"slots":[{"query":"a","bits":1}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Read(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		d := uint64(0)
		for hop := range 3 {
			d = p.Write(d, 7, hop+1, pint.Values{Node: 9, Latency: 1e5, Queue: 1, Utilization: 70000}, 5)
		}
		if p.Bits < 64 && d>>p.Bits != 0 {
			t.Fatalf("%s: digest %x of %d bits", b, d, p.Bits)
		}
	})
}
