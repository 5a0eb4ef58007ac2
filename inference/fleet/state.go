package fleet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// States hold what follows from the records that were read, but not the values of windows that are open: these are read
// again, from Floor on. A state is its version<1b>, and then uvarints, varints for times and offsets, and texts with their
// lengths. What is not as it was written is refused, and then nothing is changed.
const (
	gateState      = 1
	mergerState    = 1
	assemblerState = 2 // 1 did not have the times at which slices told something
)

// StateError says at which byte of a state something is wrong, and what.
type StateError struct {
	Offset int
	Field  string
	Err    error // ErrShort, ErrVersion, ErrRange or ErrOther
}

func (e *StateError) Error() string {
	return fmt.Sprintf("state of a slice: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

// Unwrap gives the reason.
func (e *StateError) Unwrap() error { return e.Err }

// ErrOther is what is wrong with a state of other windows or another slice than those that are configured.
var ErrOther = errors.New("is of other windows or of another slice")

type stateWriter struct{ b []byte }

func (w *stateWriter) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *stateWriter) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }
func (w *stateWriter) name(s string) { w.b = appendName(w.b, s) }
func (w *stateWriter) len(n int)     { w.uint(uint64(n)) }
func (w *stateWriter) flag(v bool) {
	if v {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

func (w *stateWriter) ints(list []int64) {
	w.len(len(list))
	for _, v := range list {
		w.int(v)
	}
}

func (w *stateWriter) names(list []string) {
	w.len(len(list))
	for _, s := range list {
		w.name(s)
	}
}

type stateReader struct{ headReader }

func newStateReader(b []byte, version byte) *stateReader {
	r := &stateReader{headReader{b: b, at: 1}}
	switch {
	case len(b) == 0:
		r.at = 0
		r.fail("version", ErrShort)
	case b[0] != version:
		r.at = 0
		r.fail("version", ErrVersion)
	}
	return r
}

// error gives what is wrong.
func (r *stateReader) error() error {
	if e, ok := errors.AsType[*HeadError](r.err); ok {
		return &StateError{e.Offset, e.Field, e.Err}
	}
	return r.err
}

func (r *stateReader) check(field string, ok bool) {
	if !ok {
		r.fail(field, ErrRange)
	}
}

// len reads a number of items of at least size bytes each.
func (r *stateReader) len(field string, most, size int) int {
	n := r.uint(field, uint64(most))
	if r.err == nil && n > uint64(len(r.b)-r.at)/uint64(size) {
		r.fail(field, ErrShort)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *stateReader) flag(field string) bool { return r.uint(field, 1) == 1 }

func (r *stateReader) varint(field string) int64 {
	if r.err != nil {
		return 0
	}
	return r.int(field)
}

func (r *stateReader) text(field string) string {
	if r.err != nil {
		return ""
	}
	return r.name(field)
}

func (r *stateReader) ints(field string, most int) (out []int64) {
	for n := r.len(field, most, 1); n > 0 && r.err == nil; n-- {
		out = append(out, r.varint(field))
	}
	return out
}

func (r *stateReader) list(field string, most int) (out []string) {
	for n := r.len(field, most, 1); n > 0 && r.err == nil; n-- {
		s := r.text(field)
		r.check(field, r.err != nil || len(out) == 0 || out[len(out)-1] < s)
		out = append(out, s)
	}
	return out
}

// label reads the label of a window, which comes behind another one.
func (r *stateReader) label(field string, window, after int64) int64 {
	end := r.varint(field)
	r.check(field, end > after && end%window == 0 && end <= math.MaxInt64/2)
	return end
}

func (r *stateReader) offset(field string) int64 {
	at := r.varint(field)
	r.check(field, at >= 0)
	return at
}

const maxOpenState = 1 << 14 // windows that are open in a state

// AppendState appends what the gate knows to b.
func (g *Gate) AppendState(b []byte) []byte {
	w := stateWriter{append(b, gateState)}
	w.int(g.cfg.Window)
	w.len(g.cfg.Slice)
	w.flag(g.cfg.Reports)
	w.int(g.closed)
	w.int(g.next)
	w.len(len(g.names))
	for _, name := range slices.Sorted(maps.Keys(g.names)) {
		c := g.names[name]
		w.name(name)
		w.int(c.heard)
		w.int(c.told)
		w.len(c.missed)
		w.flag(c.dead)
		w.len(len(c.runs))
		for _, r := range c.runs {
			w.uint(r.boot)
			w.len(len(r.ring))
			for _, n := range r.ring {
				w.uint(n.seq)
				w.uint(n.sum)
				w.int(n.end)
			}
		}
	}
	w.len(len(g.open))
	for _, o := range g.open {
		w.int(o.end)
		w.ints(o.refused)
		w.len(len(o.entries))
		for i := range o.entries {
			e := &o.entries[i]
			w.int(e.offset)
			w.name(e.from)
			w.uint(e.boot)
			w.uint(e.seq)
			w.uint(e.sum)
			w.uint(uint64(e.kind))
			w.uint(uint64(e.part))
			w.uint(uint64(e.parts))
			w.uint(e.reports)
			w.int(e.size)
			w.len(len(e.raw))
			for _, n := range e.raw {
				w.uint(n)
			}
		}
	}
	w.len(len(g.past))
	for _, p := range g.past {
		w.int(p.end)
		w.int(p.first)
		w.int(p.closed)
		w.uint(p.revision)
		w.flag(p.pending)
		w.ints(p.refused)
		w.len(len(p.pseudo))
		for _, s := range p.pseudo {
			w.name(s.from)
			w.uint(s.seq)
			w.uint(s.sum)
		}
		w.names(p.missing)
		w.names(p.dead)
	}
	return w.b
}

// ReadState makes g the gate whose state AppendState wrote. Reading of the log goes on at [Gate.Floor]: of the records
// before the place where the state was written, those of open windows are given out as taken once more, and the others are
// passed over. The error is a [*StateError], and then nothing is changed.
func (g *Gate) ReadState(b []byte) error {
	r := newStateReader(b, gateState)
	n := g.readState(r)
	if r.err == nil && r.at != len(b) {
		r.fail("end", ErrRange)
	}
	if r.err != nil {
		return r.error()
	}
	n.roster = g.roster
	*g = *n
	return nil
}

func (g *Gate) readState(r *stateReader) *Gate {
	cfg := g.cfg
	window, slice, reports := r.varint("window"), r.uint("slice", MaxSlices), r.flag("topic")
	if r.err == nil && (window != cfg.Window || int(slice) != cfg.Slice || reports != cfg.Reports) {
		r.fail("window", ErrOther)
	}
	n := &Gate{cfg: cfg, names: map[string]*collector{}}
	if r.err != nil {
		return n
	}
	n.closed = r.varint("closed window")
	r.check("closed window", n.closed >= 0 && n.closed%window == 0 && n.closed <= math.MaxInt64/2)
	n.next = r.offset("offset")
	n.resume = n.next
	before := ""
	for k := r.len("collectors", MaxMembers, 6); k > 0 && r.err == nil; k-- {
		c := &collector{name: r.text("collector")}
		r.check("collector", c.name > before)
		before = c.name
		c.heard, c.told = r.varint("collector"), r.varint("collector")
		c.missed, c.dead = int(r.uint("missed windows", math.MaxInt32)), r.flag("collector")
		for k := r.len("runs", maxRuns, 2); k > 0 && r.err == nil; k-- {
			x := &run{boot: r.uint("run", math.MaxUint64)}
			for k := r.len("numbers", ringLen, 3); k > 0 && r.err == nil; k-- {
				m := numbered{r.uint("number", math.MaxUint64), r.uint("sum", math.MaxUint64), r.varint("window")}
				r.check("number", m.seq > x.last)
				x.last, x.end = m.seq, m.end
				x.ring = append(x.ring, m)
			}
			c.runs = append(c.runs, x)
		}
		n.names[c.name] = c
	}
	after := n.closed
	for k := r.len("open windows", maxOpenState, 3); k > 0 && r.err == nil; k-- {
		w := &openWindow{end: r.label("open window", window, after), runs: map[runKey]*delivery{}}
		after = w.end
		w.refused = r.ints("refused records", maxRefused)
		for k := r.len("records", math.MaxInt32, 11); k > 0 && r.err == nil; k-- {
			e := entry{offset: r.offset("record"), runKey: runKey{r.text("record"), r.uint("record", math.MaxUint64)}}
			e.seq, e.sum = r.uint("number", math.MaxUint64), r.uint("sum", math.MaxUint64)
			e.kind = Kind(r.uint("kind", math.MaxUint8))
			e.part, e.parts = uint32(r.uint("part", MaxParts)), uint32(r.uint("parts", MaxParts))
			e.reports, e.size = r.uint("reports", math.MaxUint64), r.varint("size")
			for k := r.len("raw", MaxSlices, 1); k > 0 && r.err == nil; k-- {
				e.raw = append(e.raw, r.uint("raw", math.MaxUint64))
			}
			r.check("record", e.size >= 0 && e.offset < n.next && (e.kind == Part && e.parts > e.part || e.kind == Mark || e.kind == Reports))
			if c := n.names[e.from]; c != nil {
				e.from = c.name
			}
			if r.err == nil {
				w.add(e)
				n.heads++
			}
		}
		n.open = append(n.open, w)
	}
	after = 0
	for k := r.len("past windows", maxPast+1, 9); k > 0 && r.err == nil; k-- {
		p := &pastWindow{end: r.label("past window", window, after)}
		after = p.end
		r.check("past window", p.end <= n.closed)
		p.first, p.closed = r.offset("first record"), r.offset("close")
		p.revision, p.pending = r.uint("revision", math.MaxUint64), r.flag("pending")
		p.refused = r.ints("refused records", maxRefused)
		for k := r.len("records without a run", maxRefused, 3); k > 0 && r.err == nil; k-- {
			p.pseudo = append(p.pseudo, pseudo{r.text("record"), r.uint("number", math.MaxUint64), r.uint("sum", math.MaxUint64)})
		}
		p.missing, p.dead = r.list("missing", MaxMembers), r.list("dead", MaxMembers)
		n.past = append(n.past, p)
	}
	return n
}

// AppendState appends what the merger knows to b.
func (m *Merger) AppendState(b []byte) []byte {
	w := stateWriter{append(b, mergerState)}
	gate := m.gate.AppendState(nil)
	w.len(len(gate))
	w.b = append(w.b, gate...)
	if m.cfg.Cross != nil {
		w.b = m.cfg.Cross.AppendState(w.b)
	}
	return w.b
}

// ReadState makes m the merger whose state AppendState wrote, see [Gate.ReadState]. What it writes from then on is what the
// one that wrote the state would have written. It refuses what is not right, and then is as it was, unless it is what is
// remembered of exporters and flows across collectors that is not right.
func (m *Merger) ReadState(b []byte) error {
	r := newStateReader(b, mergerState)
	n := r.len("gate", math.MaxInt, 1)
	if r.err != nil {
		return r.error()
	}
	g := *m.gate
	if err := g.ReadState(b[r.at : r.at+n]); err != nil {
		return err
	}
	rest := b[r.at+n:]
	if m.cfg.Cross != nil {
		if err := m.cfg.Cross.ReadState(rest); err != nil {
			return err
		}
	}
	*m.gate = g
	m.values.clear()
	return nil
}

// AppendState appends what the assembler knows to b.
func (a *Assembler) AppendState(b []byte) []byte {
	w := stateWriter{append(b, assemblerState)}
	w.int(a.cfg.Window)
	w.len(a.cfg.Slices)
	w.int(a.last)
	w.int(a.next)
	for i, end := range a.told {
		w.int(end)
		w.int(a.spoke[i])
	}
	w.len(len(a.open))
	for _, o := range a.open {
		w.int(o.end)
		w.int(o.began)
		w.len(len(o.records))
		for _, k := range sortedKeys(o.records) {
			s := o.records[k]
			w.sliceKey(k)
			w.uint(uint64(s.parts))
			w.int(s.offset)
			w.int(s.size)
		}
	}
	w.len(len(a.past))
	for _, p := range a.past {
		w.int(p.end)
		w.int(p.first)
		w.flag(p.pending)
		w.len(len(p.known))
		for _, k := range sortedKeys(p.known) {
			w.sliceKey(k)
			w.uint(uint64(p.known[k]))
		}
	}
	names := map[string]uint64{}
	var list []string
	keys := slices.SortedFunc(maps.Keys(a.heard), inference.ExporterKey.Compare)
	for _, k := range keys {
		if from := a.heard[k].from; names[from] == 0 {
			list = append(list, from)
			names[from] = uint64(len(list))
		}
	}
	w.names(list)
	w.len(len(keys))
	for _, k := range keys {
		w.b = append(w.b, k.Addr[:]...)
		w.uint(uint64(k.Node))
		w.uint(uint64(k.HWID))
		w.uint(names[a.heard[k].from] - 1)
		w.int(a.heard[k].end)
	}
	return w.b
}

func (w *stateWriter) sliceKey(k sliceKey) {
	w.uint(uint64(k.slice))
	w.uint(k.revision)
	w.uint(uint64(k.part))
}

func (k sliceKey) compare(o sliceKey) int {
	return cmp.Or(cmp.Compare(k.slice, o.slice), cmp.Compare(k.revision, o.revision), cmp.Compare(k.part, o.part))
}

func sortedKeys[V any](m map[sliceKey]V) []sliceKey {
	return slices.SortedFunc(maps.Keys(m), sliceKey.compare)
}

func (r *stateReader) sliceKey(slices int) sliceKey {
	k := sliceKey{slice: uint32(r.uint("slice", uint64(slices-1))), revision: r.uint("revision", math.MaxUint64)}
	k.part = uint32(r.uint("part", MaxParts))
	return k
}

// ReadState makes a the assembler whose state AppendState wrote. Reading of the log goes on at [Assembler.Floor]. The error
// is a [*StateError], and then nothing is changed.
func (a *Assembler) ReadState(b []byte) error {
	r := newStateReader(b, assemblerState)
	n := a.readState(r)
	if r.err == nil && r.at != len(b) {
		r.fail("end", ErrRange)
	}
	if r.err != nil {
		return r.error()
	}
	n.cfg, n.codec, n.spare = a.cfg, a.codec, a.spare
	*a = *n
	return nil
}

func (a *Assembler) readState(r *stateReader) *Assembler {
	n := &Assembler{heard: map[inference.ExporterKey]heardBy{}}
	window, count := r.varint("window"), int(r.uint("slices", MaxSlices))
	if r.err == nil && (window != a.cfg.Window || count != a.cfg.Slices) {
		r.fail("window", ErrOther)
	}
	if r.err != nil {
		return n
	}
	n.last = r.varint("window")
	r.check("window", n.last >= 0 && n.last%window == 0 && n.last <= math.MaxInt64/2)
	n.next = r.offset("offset")
	n.resume = n.next
	for range count {
		n.told = append(n.told, r.varint("slices"))
		n.spoke = append(n.spoke, r.offset("slices"))
	}
	after := n.last
	for k := r.len("open windows", maxOpenState, 3); k > 0 && r.err == nil; k-- {
		w := &slicedWindow{end: r.label("open window", window, after), began: r.offset("open window"), records: map[sliceKey]*sliced{}}
		after = w.end
		for k := r.len("records", math.MaxInt32, 6); k > 0 && r.err == nil; k-- {
			key := r.sliceKey(count)
			s := &sliced{parts: uint32(r.uint("parts", MaxParts)), offset: r.offset("record"), size: r.varint("size")}
			r.check("record", s.parts > key.part && s.size >= 0 && w.records[key] == nil)
			w.records[key] = s
			w.bytes += s.size
		}
		n.open = append(n.open, w)
	}
	after = 0
	for k := r.len("past windows", maxPast+1, 4); k > 0 && r.err == nil; k-- {
		p := &slicedPast{end: r.label("past window", window, after), first: r.offset("first record"), pending: r.flag("pending"), known: map[sliceKey]uint32{}}
		after = p.end
		r.check("past window", p.end <= n.last)
		for k := r.len("records", math.MaxInt32, 4); k > 0 && r.err == nil; k-- {
			key := r.sliceKey(count)
			parts := uint32(r.uint("parts", MaxParts))
			r.check("parts", parts > key.part && p.known[key] == 0)
			p.known[key] = parts
		}
		n.past = append(n.past, p)
	}
	var names []string
	for k := r.len("collectors", 1<<20, 1); k > 0 && r.err == nil; k-- {
		names = append(names, r.text("collector"))
	}
	for k := r.len("exporters", 1<<24, 16+4); k > 0 && r.err == nil; k-- {
		var key inference.ExporterKey
		if len(r.b)-r.at < len(decode.Addr{}) {
			r.fail("exporter", ErrShort)
			break
		}
		r.at += copy(key.Addr[:], r.b[r.at:])
		key.Node, key.HWID = uint32(r.uint("exporter", math.MaxUint32)), uint8(r.uint("exporter", math.MaxUint8))
		i, end := r.uint("collector", math.MaxUint32), r.varint("window")
		if r.check("collector", i < uint64(len(names))); r.err == nil {
			n.heard[key] = heardBy{names[i], end}
		}
	}
	return n
}
