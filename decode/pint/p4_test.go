package pint

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// tablePlan has a query of every aggregation, in sets that place them differently.
func tablePlan(t testing.TB, h Hash) *Plan {
	t.Helper()
	path, err := New(Config{Hash: h, Seed: 77, Bits: 4, Instances: 2, Tau: 0.4, P: []float64{0.05, 0.2}})
	if err != nil {
		t.Fatal(err)
	}
	hop, err := New(Config{Hash: h, Seed: 78, Bits: 6, Instances: 1, Tau: 1})
	if err != nil {
		t.Fatal(err)
	}
	latency, err := NewCode(CodeConfig{Bits: 6, Max: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	utilization, err := NewCode(CodeConfig{Bits: 8, Unit: 64, Max: 262144})
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{
		Hash: h, Seed: 5, Bits: 24,
		Queries: []Query{
			{Name: "path", Value: NodeValue, Aggregation: Static, Bits: 8, Scheme: path},
			{Name: "the hop's latency", Value: LatencyValue, Aggregation: Dynamic, Bits: 6, Scheme: hop, Code: latency},
			{Name: "utilization", Value: UtilizationValue, Aggregation: PerPacket, Bits: 8, Code: utilization},
			{Name: "loops", Value: NodeValue, Aggregation: Loop, Bits: 9, Loops: &Loops{Hash: h, Seed: 79, Bits: 7, T: 3}},
		},
		Sets: []Set{
			{Share: 1 - 1./7 - 0.2, Slots: []Slot{{Query: 0}, {Query: 1, Shift: 8}}},
			{Share: 1. / 7, Slots: []Slot{{Query: 2}, {Query: 0, Shift: 8}, {Query: 1, Shift: 18}}},
			{Share: 0.2, Slots: []Slot{{Query: 1, Shift: 1}, {Query: 3, Shift: 15}, {Query: 0, Shift: 7}}},
		},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// program is a P4 program that knows nothing but table entries and the constants in the comments before them.
type program struct {
	tables   map[string][]entry
	comments map[string]string // by table name or query: what is said of it
}

type entry struct {
	action   string
	from, to uint64
	params   []uint64
}

var (
	entryLine = regexp.MustCompile(`^table_add (\w+) (\w+) (\w+)(?:->(\w+))? => (.*)$`)
	constants = regexp.MustCompile(`k = (0x[0-9a-f]{8})`)
)

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// loadTables reads entries. Ranges of a table do not overlap.
func loadTables(t *testing.T, text string) *program {
	t.Helper()
	p := &program{tables: map[string][]entry{}, comments: map[string]string{}}
	query := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		m := entryLine.FindStringSubmatch(line)
		if m == nil {
			if line != "" && !strings.HasPrefix(line, "#") {
				t.Fatalf("neither entry nor comment: %q", line)
			}
			if name, _, ok := strings.Cut(line, ": "); ok && strings.Contains(line, "Where it is") {
				query = strings.TrimPrefix(name, "# ")
			}
			p.comments[query] += line + "\n"
			continue
		}
		e := entry{action: m[2], from: number(t, m[3])}
		params := strings.Fields(m[5])
		if e.to = e.from; m[4] != "" {
			e.to = number(t, m[4])
			params = params[:len(params)-1] // the priority
		}
		for _, s := range params {
			e.params = append(e.params, number(t, s))
		}
		for _, o := range p.tables[m[1]] {
			if o.from <= e.to && e.from <= o.to {
				t.Fatalf("%s: %q overlaps another entry", m[1], line)
			}
		}
		p.tables[m[1]] = append(p.tables[m[1]], e)
	}
	return p
}

// apply returns the entry for a key.
func (p *program) apply(table string, key uint64) (entry, bool) {
	for _, e := range p.tables[table] {
		if e.from <= key && key <= e.to {
			return e, true
		}
	}
	return entry{}, false
}

func crcOf(x uint32) uint32 {
	return crc32.ChecksumIEEE([]byte{byte(x >> 24), byte(x >> 16), byte(x >> 8), byte(x)})
}

func hash(k, id, x uint32) uint32 {
	key := crcOf(k + id)
	return crcOf(key + crcOf(key+crcOf(x)))
}

func global(k, id uint32) uint32 { return hash(k, id, 0) }

// TestTablesAreThePlan runs switches by the entries alone and by the plan.
func TestTablesAreThePlan(t *testing.T) {
	for _, fragments := range []int{0, 1, 5} {
		t.Run(fmt.Sprint(fragments), func(t *testing.T) { tablesAreThePlan(t, fragments) })
	}
}

// tablesAreThePlan writes a plan whose path has ids in so many fragments, or hashes of ids.
func tablesAreThePlan(t *testing.T, fragments int) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	plan := tablePlan(t, HashCRC)
	if fragments > 0 {
		c := plan.Queries[0].Scheme.Config()
		c.ValueBits = 4*fragments - 1
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		plan.Queries[0].Scheme = s
	}
	var text bytes.Buffer
	if err := WriteTables(&text, plan); err != nil {
		t.Fatal(err)
	}
	p := loadTables(t, text.String())
	k := func(query string) (list []uint32) {
		for _, m := range constants.FindAllStringSubmatch(p.comments[query], -1) {
			list = append(list, uint32(number(t, m[1])))
		}
		return list
	}
	names := identifiers(plan.Queries)
	sets, roles := map[uint64]int{}, map[string]int{}
	// code is the code of a value, rounded by rnd.
	code := func(name string, v uint64, rnd uint32) uint64 {
		e, ok := p.apply("pint_"+name+"_code", v)
		if !ok {
			t.Fatalf("%s: no code for %d", name, v)
		}
		if e.action == "level" && v-e.params[1] > e.params[2]*uint64(rnd)>>32 {
			return e.params[0] + 1
		}
		return e.params[0]
	}
	for range 4000 {
		id, hop := rng.Uint32(), 1+rng.IntN(30)
		v := Values{Node: rng.Uint32(), Latency: rng.Uint64N(1_200_000), Utilization: rng.Uint64N(300_000)}
		digest, rnd := rng.Uint64()&(1<<24-1), rng.Uint32()
		set, ok := p.apply("pint_set", uint64(global(k("")[0], id)))
		if !ok || int(set.params[0]) != plan.Set(id) {
			t.Fatalf("seed %d: packet %d has set %v, want %d", seed, id, set, plan.Set(id))
		}
		sets[set.params[0]]++
		got := plan.Write(digest, id, hop, v, rnd)
		limit, _ := p.apply("pint_replace", uint64(hop))
		want := digest
		for i, q := range plan.Queries {
			slot, ok := p.apply("pint_"+names[i]+"_slot", set.params[0])
			if !ok {
				continue
			}
			shift := slot.params[0]
			room := (uint64(1)<<q.Bits - 1) << shift
			part := digest & room >> shift
			switch q.Aggregation {
			case Static:
				width := q.Scheme.Width()
				for n := range q.Scheme.Instances() {
					c := k(q.Name)[3*n:]
					g, h := uint64(hash(c[0], id, uint32(hop))), uint64(hash(c[1], id, v.Node))>>(32-width)
					layer, ok := p.apply("pint_path_layer", uint64(global(c[2], id)))
					if fragments > 0 {
						h = uint64(v.Node & (1<<(4*fragments-1) - 1))
					}
					if fragments > 1 {
						part, ok := p.apply("pint_path_fragment", uint64(global(k(q.Name)[3*q.Scheme.Instances()+n], id)))
						if !ok || part.action != "shift" {
							t.Fatalf("seed %d: packet %d has no fragment", seed, id)
						}
						h >>= part.params[0]
					}
					h &= 1<<width - 1
					at := width * n
					switch {
					case !ok:
						t.Fatalf("seed %d: packet %d has no layer", seed, id)
					case layer.action == "baseline" && g <= limit.params[0]:
						part = part&^((1<<width-1)<<at) | h<<at
						roles["replaced"]++
					case layer.action == "xor" && g <= layer.params[0]:
						part ^= h << at
						roles["folded"]++
					}
				}
			case Dynamic:
				if uint64(hash(k(q.Name)[0], id, uint32(hop))) <= limit.params[0] {
					// Rounding is by a random number of the switch; the plan derives one for every query.
					part = (got & room) >> shift
					if lo := code(names[i], v.Latency, 1<<32-1); part != lo && part != lo+1 {
						t.Fatalf("seed %d: packet %d: latency %d has code %d, want %d or one more", seed, id, v.Latency, part, lo)
					}
					roles["sampled"]++
				}
			case PerPacket:
				part = max(part, code(names[i], v.Utilization, global(k(q.Name)[0], id)))
			case Loop:
				c := k(q.Name)
				width := q.Loops.Bits
				h := uint64(hash(c[0], id, v.Node)) >> (32 - width)
				stored, count := part&(1<<width-1), part>>width
				if hop > 1 && stored == h && count < uint64(q.Loops.T) {
					count++
				}
				if uint64(hash(c[1], id, uint32(hop))) <= limit.params[0] {
					stored, count = h, 0
				}
				part = count<<width | stored
			}
			want = want&^room | part<<shift
		}
		if got != want {
			t.Fatalf("seed %d: packet %d, hop %d, %+v: the plan makes %06x of %06x, the tables %06x", seed, id, hop, v, got, digest, want)
		}
	}
	if len(sets) != len(plan.Sets) || len(roles) != 3 {
		t.Errorf("seed %d: sets %v of %d, roles %v: not all were there", seed, sets, len(plan.Sets), roles)
	}
}

func TestTablesWantCRC(t *testing.T) {
	if err := WriteTables(new(bytes.Buffer), tablePlan(t, HashMix)); err != ErrHash {
		t.Errorf("WriteTables of a plan with hash mix: %v, want %v", err, ErrHash)
	}
}

func TestIdentifiers(t *testing.T) {
	got := identifiers([]Query{{Name: "hop latency"}, {Name: "hop-latency"}, {Name: "ü"}, {Name: "a1"}})
	if want := "[hop_latency hop_latency_1 _ a1]"; fmt.Sprint(got) != want {
		t.Errorf("identifiers = %v, want %s", got, want)
	}
}
