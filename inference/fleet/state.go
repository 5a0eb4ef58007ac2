package fleet

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// States hold the results of the records that were read, but not the values of open windows: these are read again, from
// Floor on. A state is its version<1b>, and then uvarints, varints for times and offsets, and texts with their lengths.
const (
	gateState      = 3 // 2 has no gaps of runs, and 1 no statements for runs; they are written where there are none
	mergerState    = 1
	assemblerState = 2 // 1 did not have the times at which slices were published

	maxOpenState = 1 << 14 // windows that are open in a state
)

// errOther is the error of a state of other windows or another slice than those that are configured.
var errOther = errors.New("is of other windows or of another slice")

// codeLabel codes the label of a window, which comes behind another one.
func codeLabel(c *state.Coder, field string, window, after int64, end *int64) {
	state.Int(c, field, end)
	c.Check(field, *end > after && *end%window == 0 && *end <= math.MaxInt64/2)
}

func codeOffset(c *state.Coder, field string, all ...*int64) {
	for _, at := range all {
		state.Int(c, field, at)
		c.Check(field, *at >= 0)
	}
}

func codeInts(c *state.Coder, field string, most int, list *[]int64) {
	state.List(c, field, most, 1, list, func(v *int64, c *state.Coder) { state.Int(c, field, v) })
}

func codeNames(c *state.Coder, field string, most int, list *[]string) {
	state.List(c, field, most, 1, list, func(s *string, c *state.Coder) { c.Text(field, MaxName, s) })
}

// codeSortedNames is codeNames of names that ascend.
func codeSortedNames(c *state.Coder, field string, most int, list *[]string) {
	codeNames(c, field, most, list)
	for i := 1; i < len(*list); i++ {
		c.Check(field, (*list)[i-1] < (*list)[i])
	}
}

// AppendState appends the state of the gate to b.
func (g *Gate) AppendState(b []byte) []byte { return state.Append(b, g.code) }

// ReadState makes g the gate whose state AppendState wrote. Reading of the log goes on at [Gate.Floor]. Of the records
// before the place where the state was written, those of open windows are returned as taken once more. The others are
// passed over. The error is a [*state.Error], and then nothing is changed.
func (g *Gate) ReadState(b []byte) error {
	n := g.fresh()
	if err := state.Read("state of a slice", b, n.code); err != nil {
		return err
	}
	*g = *n
	return nil
}

// fresh is a gate that has read nothing, with the configuration and the roster of g.
func (g *Gate) fresh() *Gate {
	return &Gate{cfg: g.cfg, roster: g.roster, names: map[string]*collector{}, values: values{held: map[int64][]byte{}}}
}

func (g *Gate) code(c *state.Coder) {
	newest := uint8(gateState)
	switch {
	case c.Reading() || g.lacks():
	case g.states():
		newest = 2
	default:
		newest = 1
	}
	version := c.Version(1, newest)
	window, slice, reports := g.cfg.Window, g.cfg.Slice, g.cfg.Reports
	state.Int(c, "window", &window)
	state.UintTo(c, "slice", MaxSlices, &slice)
	c.Flag("topic", &reports)
	if window != g.cfg.Window || slice != g.cfg.Slice || reports != g.cfg.Reports {
		c.Fail("window", errOther)
	}
	window = g.cfg.Window
	codeLabel(c, "closed window", window, -1, &g.closed)
	codeOffset(c, "offset", &g.next)
	if c.Reading() {
		g.resume = g.next
	}
	state.Map(c, "collectors", MaxMembers, 6, g.names, strings.Compare, func(name *string, v **collector, c *state.Coder) {
		c.Text("collector", MaxName, name)
		if c.Check("collector", *name != ""); *v == nil {
			*v = &collector{name: *name}
		}
		(*v).code(c, version)
	})
	after := g.closed
	state.Pointers(c, "open windows", maxOpenState, 3, &g.open, func(w *openWindow, c *state.Coder) {
		codeLabel(c, "open window", window, after, &w.end)
		after = w.end
		w.code(c, g, version)
	})
	after = 0
	state.Pointers(c, "past windows", maxPast+1, 9, &g.past, func(p *pastWindow, c *state.Coder) {
		codeLabel(c, "past window", window, after, &p.end)
		c.Check("past window", p.end <= g.closed)
		after = p.end
		p.code(c)
	})
}

// states reports whether a window that is open has statements for runs.
func (g *Gate) states() bool {
	return slices.ContainsFunc(g.open, func(w *openWindow) bool {
		return slices.ContainsFunc(w.entries, func(e entry) bool { return e.statedRun != (runKey{}) })
	})
}

// lacks reports whether a run has gaps.
func (g *Gate) lacks() bool {
	for _, k := range g.names {
		if slices.ContainsFunc(k.runs, func(r *run) bool { return len(r.gaps) > 0 }) {
			return true
		}
	}
	return false
}

func (k *collector) code(c *state.Coder, version uint8) {
	state.Int(c, "collector", &k.heard, &k.missedAt)
	state.UintTo(c, "missed windows", math.MaxInt32, &k.missed)
	c.Flag("collector", &k.dead)
	state.Pointers(c, "runs", maxRuns, 2, &k.runs, func(r *run, c *state.Coder) { r.code(c, version) })
}

func (r *run) code(c *state.Coder, version uint8) {
	state.Uint(c, "run", &r.boot)
	last := uint64(0)
	state.List(c, "numbers", ringLen, 3, &r.ring, func(n *numbered, c *state.Coder) {
		state.Uint(c, "number", &n.seq)
		c.Check("number", n.seq > last)
		state.Uint(c, "sum", &n.sum)
		state.Int(c, "window", &n.end)
		last = n.seq
		if c.Reading() {
			r.last, r.end = n.seq, n.end
		}
	})
	if version < 3 {
		return
	}
	last = 0
	state.List(c, "gaps", maxGaps, 3, &r.gaps, func(g *gap, c *state.Coder) {
		state.Uint(c, "gap", &g.first, &g.last)
		c.Check("gap", g.first <= g.last && (g.first > last || last == 0 && g.last > 0) && len(r.ring) == ringLen && g.last < r.ring[0].seq)
		state.Int(c, "window", &g.end)
		last = g.last
	})
}

func (w *openWindow) code(c *state.Coder, g *Gate, version uint8) {
	codeInts(c, "refused records", maxRefused, &w.refused)
	state.List(c, "records", math.MaxInt32, 11, &w.entries, func(e *entry, c *state.Coder) {
		e.code(c, version)
		c.Check("record", e.offset < g.next)
	})
	if !c.Reading() {
		return
	}
	entries := w.entries
	w.entries, w.runs = nil, map[runKey]*delivery{}
	for _, e := range entries {
		if k := g.names[e.from]; k != nil {
			e.from = k.name // one text for all
		}
		w.add(e)
	}
	g.heads += len(entries)
}

func (e *entry) code(c *state.Coder, version uint8) {
	codeOffset(c, "record", &e.offset)
	c.Text("record", MaxName, &e.from)
	state.Uint(c, "record", &e.boot, &e.seq, &e.sum)
	state.Uint(c, "kind", &e.kind)
	state.UintTo(c, "part", maxParts, &e.part, &e.parts)
	state.Uint(c, "reports", &e.reports)
	codeOffset(c, "size", &e.size)
	state.List(c, "raw", MaxSlices, 1, &e.raw, func(n *uint64, c *state.Coder) { state.Uint(c, "raw", n) })
	if version >= 2 {
		c.Text("record", MaxName, &e.statedRun.from)
		state.Uint(c, "record", &e.statedRun.boot)
		c.Check("record", (e.statedRun.from == "") == (e.statedRun.boot == 0))
	}
	c.Check("record", e.kind == Part && e.parts > e.part || e.kind == Mark || e.kind == Reports)
}

func (p *pastWindow) code(c *state.Coder) {
	codeOffset(c, "first record", &p.first)
	codeOffset(c, "close", &p.closed)
	state.Uint(c, "revision", &p.revision)
	c.Flag("pending", &p.pending)
	codeInts(c, "refused records", maxRefused, &p.refused)
	state.List(c, "records without a run", maxPseudo, 3, &p.pseudo, func(s *pseudo, c *state.Coder) {
		c.Text("record", MaxName, &s.from)
		state.Uint(c, "number", &s.seq, &s.sum)
	})
	codeSortedNames(c, "missing", MaxMembers, &p.missing)
	codeSortedNames(c, "dead", MaxMembers, &p.dead)
}

// AppendState appends the state of the merger to b.
func (m *Merger) AppendState(b []byte) []byte {
	return state.Append(b, func(c *state.Coder) {
		c.Version(mergerState, mergerState)
		c.Part("gate", m.Gate.code)
		if m.cross != nil {
			rest := m.cross.AppendState(nil)
			c.Rest(&rest)
		}
	})
}

// ReadState makes m the merger whose state AppendState wrote, see [Gate.ReadState]. From then on it writes what the
// writer of the state would have written. It refuses a wrong state, and then is unchanged. The exception is an error in
// the part about exporters and flows across collectors.
func (m *Merger) ReadState(b []byte) error {
	g := m.fresh()
	var rest []byte
	err := state.Read("state of a slice", b, func(c *state.Coder) {
		c.Version(mergerState, mergerState)
		c.Part("gate", g.code)
		c.Rest(&rest)
	})
	if err == nil && m.cross != nil {
		err = m.cross.ReadState(rest)
	}
	if err != nil {
		return err
	}
	*m.Gate = *g
	return nil
}

// AppendState appends the state of the assembler to b.
func (a *Assembler) AppendState(b []byte) []byte { return state.Append(b, a.code) }

// ReadState makes a the assembler whose state AppendState wrote. Reading of the log goes on at [Assembler.Floor]. The
// error is a [*state.Error], and then nothing is changed.
func (a *Assembler) ReadState(b []byte) error {
	n := &Assembler{
		cfg: a.cfg, codec: a.codec, spare: a.spare, sentTo: make([]int64, a.cfg.Slices), appended: make([]int64, a.cfg.Slices),
		heard: map[inference.ExporterKey]heardBy{},
	}
	if err := state.Read("state of series", b, n.code); err != nil {
		return err
	}
	*a = *n
	return nil
}

func (a *Assembler) code(c *state.Coder) {
	c.Version(assemblerState, assemblerState)
	window, count := a.cfg.Window, a.cfg.Slices
	state.Int(c, "window", &window)
	if state.UintTo(c, "slices", MaxSlices, &count); window != a.cfg.Window || count != a.cfg.Slices {
		c.Fail("window", errOther)
	}
	window = a.cfg.Window
	codeLabel(c, "window", window, -1, &a.last)
	codeOffset(c, "offset", &a.next)
	if c.Reading() {
		a.resume = a.next
	}
	for i := range a.sentTo {
		state.Int(c, "slices", &a.sentTo[i])
		codeOffset(c, "slices", &a.appended[i])
	}
	after := a.last
	state.Pointers(c, "open windows", maxOpenState, 3, &a.open, func(w *slicedWindow, c *state.Coder) {
		codeLabel(c, "open window", window, after, &w.end)
		after = w.end
		codeOffset(c, "open window", &w.began)
		if c.Reading() {
			w.records = map[sliceKey]*sliced{}
		}
		state.Map(c, "records", math.MaxInt32, 6, w.records, sliceKey.compare, func(k *sliceKey, v **sliced, c *state.Coder) {
			if *v == nil {
				*v = &sliced{}
			}
			s := *v
			k.code(c, &s.parts, a.cfg.Slices)
			codeOffset(c, "record", &s.offset, &s.size)
			if c.Reading() {
				w.bytes += s.size
			}
		})
	})
	after = 0
	state.Pointers(c, "past windows", maxPast+1, 4, &a.past, func(p *slicedPast, c *state.Coder) {
		codeLabel(c, "past window", window, after, &p.end)
		c.Check("past window", p.end <= a.last)
		after = p.end
		codeOffset(c, "first record", &p.first)
		c.Flag("pending", &p.pending)
		if c.Reading() {
			p.known = map[sliceKey]uint32{}
		}
		state.Map(c, "records", math.MaxInt32, 4, p.known, sliceKey.compare, func(k *sliceKey, parts *uint32, c *state.Coder) {
			k.code(c, parts, a.cfg.Slices)
		})
	})
	a.codeHeard(c)
}

// codeHeard codes which collector heard which exporter; names come once, in the order of the exporters.
func (a *Assembler) codeHeard(c *state.Coder) {
	var names []string
	index := map[string]uint32{}
	for _, k := range slices.SortedFunc(maps.Keys(a.heard), inference.ExporterKey.Compare) {
		from := a.heard[k].from
		if _, known := index[from]; !known {
			index[from] = uint32(len(names))
			names = append(names, from)
		}
	}
	codeNames(c, "collectors", 1<<20, &names)
	state.Map(c, "exporters", 1<<24, 20, a.heard, inference.ExporterKey.Compare, func(k *inference.ExporterKey, by *heardBy, c *state.Coder) {
		c.Addr("exporter", &k.Addr)
		k.CodeNode(c)
		state.Uint(c, "exporter", &k.HWID)
		i := index[by.from]
		state.Uint(c, "collector", &i)
		if int(i) >= len(names) {
			c.Fail("collector", state.ErrRange)
			return
		}
		by.from = names[i]
		state.Int(c, "window", &by.end)
	})
}

func (k sliceKey) compare(o sliceKey) int {
	return cmp.Or(cmp.Compare(k.slice, o.slice), cmp.Compare(k.revision, o.revision), cmp.Compare(k.part, o.part))
}

func sortedKeys[V any](m map[sliceKey]V) []sliceKey {
	return slices.SortedFunc(maps.Keys(m), sliceKey.compare)
}

// code codes the key of a record of so many slices, and how many parts there are of it.
func (k *sliceKey) code(c *state.Coder, parts *uint32, slices int) {
	state.UintTo(c, "slice", uint64(slices-1), &k.slice)
	state.Uint(c, "revision", &k.revision)
	state.UintTo(c, "part", maxParts, &k.part, parts)
	c.Check("parts", *parts > k.part)
}
