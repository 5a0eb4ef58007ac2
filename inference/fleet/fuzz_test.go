package fleet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// FuzzLog reads logs of anything: heads of which some are right, with values of which some are. Nothing fails but with
// a typed error, and memory stays within bounds. A reader that goes on from a state in the middle ends in the same
// state.
func FuzzLog(f *testing.F) {
	h := part("a", 1, 1, 100)
	h.Slice = 0
	c := Head{Kind: Close, End: 100 * tick, Missing: []string{"b"}, Dead: []string{"b"}}
	codec := NewCodec(0, wide)
	value, err := codec.Encode(nil, &window.Partial{Reports: 1})
	if err != nil {
		f.Fatal(err)
	}
	h.Sum = Sum(value)
	add := func(b []byte, h Head, value []byte) []byte {
		head := h.Append(nil)
		b = append(binary.AppendUvarint(b, uint64(len(head))), head...)
		return append(binary.AppendUvarint(b, uint64(len(value))), value...)
	}
	log := add(add(nil, h, value), c, nil)
	h.Seq++
	log = add(log, h, value)
	h.From, h.Boot = PseudoName(3), 0
	log = add(log, h, value)
	s := sliceRecord(f, 0, 0, 100, map[uint32]string{1: "a"}, "b")
	log = add(add(log, s.Head, s.Value), Head{Kind: 77}, nil)
	f.Add(log)
	f.Add(add(nil, h, []byte("poison")))
	f.Add(add(nil, Head{Kind: Close, End: 100 * tick, Missing: []string{""}}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var records []Record
		receive := func() []byte {
			n, used := binary.Uvarint(b)
			if used <= 0 || n > uint64(len(b)-used) {
				b = nil
				return nil
			}
			out := b[used : used+int(n)]
			b = b[used+int(n):]
			return out
		}
		for len(b) > 0 && len(records) < 50 {
			head, value := receive(), receive()
			h, err := ReadHead(head)
			if err != nil {
				var at *state.Error
				if !errors.As(err, &at) {
					t.Fatal(err)
				}
				continue
			}
			h.End -= h.End % tick // or next to nothing were right
			if h.Kind == Part || h.Kind == Slice {
				h.Sum = Sum(value)
			}
			records = append(records, Record{Offset: int64(len(records)), Head: h, Value: value})
		}
		gates := func() (*Gate, *Merger, *Assembler) {
			g, err := NewGate(Options{Window: tick, Reports: true, MaxOpen: 3, maxMembers: 3})
			if err != nil {
				t.Fatal(err)
			}
			return g, newMerger(t, func(c *Options) { c.MaxOpen, c.maxMembers, c.MaxValue = 3, 3, 1<<16 }),
				newAssembler(t, func(c *Options) { c.MaxOpen, c.MaxExporters, c.MaxValue = 3, 3, 1<<16 })
		}
		g, m, a := gates()
		read := func(g *Gate, m *Merger, a *Assembler, r *Record) {
			var at *recordError
			v, err := g.Add(&r.Head, r.Offset, len(r.Value), 0)
			if err != nil && (!errors.As(err, &at) || v.Kind != Refused) {
				t.Fatal(v, err)
			}
			e, err := m.Add(r)
			if err != nil && (!errors.As(err, &at) || e.Kind != Refused) {
				t.Fatal(e, err)
			}
			if e.Kind == Closed && e.Closed == nil {
				t.Fatal("closed without a window")
			}
			w, err := a.Add(r)
			if err != nil && (!errors.As(err, &at) || w.Kind != Refused) {
				t.Fatal(w, err)
			}
			g.Due(r.Head.End + 100*tick)
			m.Due(r.Head.End)
			for _, end := range m.Pending() {
				b := m.Rebuild(end)
				for i := range records {
					if err := b.Add(&records[i]); err != nil && !errors.As(err, &at) {
						t.Fatal(err)
					}
				}
				if _, err := b.Merged(); err != nil && !errors.Is(err, ErrGone) {
					t.Fatal(err)
				}
			}
			if g.Open() > 3 || m.Open() > 3 || a.Open() > 4 || len(m.names) > 3 || len(a.heard) > 3 {
				t.Fatal("out of bounds")
			}
		}
		cut := len(records) / 2
		for i := range records[:cut] {
			read(g, m, a, &records[i])
		}
		g2, m2, a2 := gates()
		for to, from := range map[interface{ ReadState([]byte) error }][]byte{g2: g.AppendState(nil), m2: m.AppendState(nil), a2: a.AppendState(nil)} {
			if err := to.ReadState(from); err != nil {
				t.Fatal(err)
			}
		}
		for i := range records {
			if i >= cut {
				read(g, m, a, &records[i])
			}
			read(g2, m2, a2, &records[i])
		}
		if !bytes.Equal(g.AppendState(nil), g2.AppendState(nil)) || !bytes.Equal(m.AppendState(nil), m2.AppendState(nil)) || !bytes.Equal(a.AppendState(nil), a2.AppendState(nil)) {
			t.Fatal("whoever went on from the middle knows something else")
		}
	})
}

// FuzzState reads anything as a state. An accepted state is written again so that it reads as the same.
func FuzzState(f *testing.F) {
	w := simulate(f, 3, 4, false)
	log := series(f, w, rand.New(rand.NewPCG(1, 1)))
	a := w.assembler()
	for i := range log[:len(log)/2] {
		if _, err := a.Add(&log[i]); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(w.owners[0][0].AppendState(nil))
	f.Add(w.owners[0][0].Gate.AppendState(nil))
	f.Add(a.AppendState(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		type keeper interface {
			AppendState([]byte) []byte
			ReadState([]byte) error
		}
		for i, two := range [][2]keeper{{w.merger(0).Gate, w.merger(0).Gate}, {w.merger(0), w.merger(0)}, {w.assembler(), w.assembler()}} {
			if err := two[0].ReadState(b); err != nil {
				var at *state.Error
				if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(b) {
					t.Fatal(err)
				}
				continue
			}
			first := two[0].AppendState(nil)
			if err := two[1].ReadState(first); err != nil || !bytes.Equal(two[1].AppendState(nil), first) {
				t.Fatalf("%d: what was read is not read again: %v", i, err)
			}
			switch k := two[0].(type) {
			case *Merger:
				h := part("a", 1, 1000, k.closed/tick+1)
				k.Add(&Record{Offset: k.next, Head: h, Value: nil})
				k.Due(k.closed + 100*tick)
				k.Add(&Record{Offset: k.next, Head: Head{Kind: Close, End: k.closed + k.cfg.Window}, Value: nil})
			case *Assembler:
				k.Floor()
			}
		}
	})
}

// FuzzValue decodes anything as a value.
func FuzzValue(f *testing.F) {
	codec := NewCodec(1<<16, wide)
	for _, p := range []*window.Partial{{}, busy(100, 1)} {
		value, err := codec.Encode(nil, p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	text, err := (&Document{Version: 1}).AppendJSON(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(codec.Compress(nil, text))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p window.Partial
		var value *valueError
		var part *window.PartialError
		if err := codec.Decode(&p, b); err != nil && !errors.As(err, &value) && !errors.As(err, &part) {
			t.Fatal(err)
		}
		d, err := DecodeWhole(codec, b)
		if err != nil {
			if !errors.As(err, &value) {
				t.Fatal(err)
			}
			return
		}
		for i := range d.Findings {
			_, _ = d.Findings[i].Finding()
		}
		second, err := d.AppendJSON(nil)
		if err != nil {
			return // a year that no text has
		}
		if _, err := readDocument(second); err != nil {
			t.Fatal(err)
		}
	})
}
