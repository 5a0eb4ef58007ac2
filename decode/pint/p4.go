package pint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// ErrHash is a plan whose hashes P4 programs do not compute.
var ErrHash = errors.New("tables are for hash crc: switches do not multiply")

// WriteTables writes a plan as table entries of a P4 program, in the language of BMv2's command line. Ranges include
// both ends. The comments at the top define their use in the program.
func WriteTables(w io.Writer, p *Plan) error {
	if p.Hash != HashCRC {
		return ErrHash
	}
	t := tables{Writer: bufio.NewWriter(w), p: p, names: identifiers(p.Queries)}
	t.head()
	t.sets()
	hops := false
	for i := range p.Queries {
		t.query(i)
		hops = hops || p.Queries[i].Aggregation != PerPacket
	}
	if hops {
		t.line("\n# Hop i replaces a digest of the Baseline layer if g is up to limit: probability 1/i.")
		for i := 1; i <= MaxHops; i++ {
			t.line("table_add pint_replace limit %d => %#x", i, uint64(1<<32)/uint64(i)-1)
		}
	}
	return t.Flush()
}

type tables struct {
	*bufio.Writer
	p     *Plan
	names []string // of queries, for tables
}

func (t *tables) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// identifiers makes names of queries fit for names of tables, all different.
func identifiers(queries []Query) []string {
	used := map[string]bool{}
	list := make([]string, len(queries))
	for i, q := range queries {
		name := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, q.Name)
		if used[name] {
			name = fmt.Sprintf("%s_%d", name, i)
		}
		used[name] = true
		list[i] = name
	}
	return list
}

func (t *tables) head() {
	t.line("# Execution plan of epoch %d: %d queries share a digest of %d bits.", t.p.Epoch, len(t.p.Queries), t.p.Bits)
	t.line(`#
# All arithmetic is on 32 bits; crc is CRC-32 (Ethernet) over a word in network order. A hash has a constant k and
#   key    = crc(k + packet id)
#   hash x = crc(key + crc(key + crc(x)))
# and global is hash 0, of the packet id alone.
# Values are written into b bits as the highest b of their hash. Bit 0 of a digest is its lowest.`)
}

// constant is the number that a P4 program adds to the packet id for a function, k in the comments.
func (t *tables) constant(seed, function uint32) uint32 { return uint32(t.p.Hash.salt(seed, function)) }

func (t *tables) sets() {
	t.line("\n# The set of queries of a packet: global with k = 0x%08x.", t.constant(t.p.Seed, ofSet))
	next := uint64(0)
	sum := 0.0
	for i, s := range t.p.Sets {
		sum += s.Share
		end := uint64(sum*(1<<32) + .5) // as Plan.Set chooses
		if i == len(t.p.Sets)-1 {
			end = 1 << 32
		}
		t.line("table_add pint_set carry 0x%08x->0x%08x => %d 1", next, end-1, i)
		next = end
	}
}

func (t *tables) query(i int) {
	q, name := &t.p.Queries[i], t.names[i]
	t.line("\n# %s: %s of %s, %d bits. Where it is, by set: shift.", strings.Map(printable, q.Name), q.Aggregation, q.Value, q.Bits)
	for n, s := range t.p.Sets {
		for _, slot := range s.Slots {
			if slot.Query == i {
				t.line("table_add pint_%s_slot use %d => %d", name, n, slot.Shift)
			}
		}
	}
	switch q.Aggregation {
	case Static, Dynamic:
		t.scheme(q, name)
	case PerPacket:
		switch q.Function {
		case Max:
			t.line("# The larger code of that in the digest and the own one stays. rnd is global with k = 0x%08x.", t.constant(t.p.Seed, ofRounding+uint32(i)))
		case Min:
			t.line("# The smaller code of that in the digest and the own one stays; the first switch writes its own. rnd is global with k = 0x%08x.", t.constant(t.p.Seed, ofRounding+uint32(i)))
		case Sum:
			t.line("# The code of what the digest stands for and the own value; the first switch writes its own. rnd is drawn by each switch.")
		}
	case Loop:
		l := q.Loops
		t.line("# Algorithm 2: h(node) with k = 0x%08x, g(hop) with k = 0x%08x; %d bits of hash, the counter above, T = %d.",
			t.constant(l.Seed, ofValues), t.constant(l.Seed, ofHops), l.Bits, l.T)
	}
	if l, ok := q.Code.(*Levels); ok {
		t.line("# Codes of values v: one more if v - lo is above gap · rnd / 2^32, rounded down; the last is never more.")
		for c := range l.Codes() {
			lo := l.Level(uint32(c))
			if c+1 == l.Codes() {
				t.line("table_add pint_%s_code last %#x->%#x => %d 1", name, lo, uint64(math.MaxUint64), c)
				break
			}
			hi := l.Level(uint32(c + 1))
			t.line("table_add pint_%s_code level %#x->%#x => %d %#x %#x 1", name, lo, hi-1, c, lo, hi-lo)
		}
	}
}

// printable keeps a name on its line.
func printable(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func (t *tables) scheme(q *Query, name string) {
	c := q.Scheme.Config()
	for n := range c.Instances {
		k := &q.Scheme.salts[n]
		t.line("# Instance %d, bits %d to %d: g(hop) with k = 0x%08x, h(value) with k = 0x%08x, layer: global with k = 0x%08x.",
			n, n*c.Bits, (n+1)*c.Bits-1, k.hops, k.values, k.layer)
	}
	t.fragments(q, name)
	if q.Aggregation == Dynamic {
		t.line("# All packets are of the Baseline layer; the code of the value is written.")
		return
	}
	t.line("# Layers: replace as pint_replace says, or XOR if g is up to limit.")
	first := uint64(0)
	for l := range q.Scheme.layers {
		end := q.Scheme.layers[l].upTo
		switch {
		case end <= first: // no packet is of this layer
		case l == 0:
			t.line("table_add pint_%s_layer baseline 0x%08x->0x%08x => 1", name, first, end-1)
		default:
			t.line("table_add pint_%s_layer xor 0x%08x->0x%08x => %#x 1", name, first, end-1, fixed(c.P[l-1])-1)
		}
		first = max(first, end)
	}
}

// fragments writes the shift of a value by the hash that chooses its fragment, if digests carry fragments of values.
func (t *tables) fragments(q *Query, name string) {
	c := q.Scheme.Config()
	if c.ValueBits == 0 {
		return
	}
	t.line("# In place of h(value) a digest carries b bits of the value itself, whose lowest %d bits travel.", c.ValueBits)
	if q.Scheme.parts == 1 {
		return
	}
	for n := range c.Instances {
		t.line("# Instance %d: the fragment of the value by global with k = 0x%08x; the value is shifted right.", n, q.Scheme.salts[n].fragment)
	}
	parts := uint64(q.Scheme.parts)
	first := func(f uint64) uint64 { return (f<<32 + parts - 1) / parts }
	for f := range parts {
		t.line("table_add pint_%s_fragment shift 0x%08x->0x%08x => %d 1", name, first(f), first(f+1)-1, f*uint64(c.Bits))
	}
}
