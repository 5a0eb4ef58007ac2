package pathtrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/inference/state"
)

func appendKnown(t *Tracer, f *Flow) []byte { return state.Append(nil, t.Saved(f).Code) }

func readKnown(b []byte) (*Known, error) {
	k := &Known{}
	return k, state.Read("known paths", b, k.Code)
}

// A flow whose paths were known to another tracer needs no digest to be shown, and a digest to be verified.
func TestKnown(t *testing.T) {
	l := newLab(t, 3, 8, 1, prior.Distance)
	path := shortestPath(l.r, l.m, -1, -1, 6)
	for range 300 {
		l.send(path)
	}
	if !l.flow.Known() {
		t.Fatal("the path did not become known")
	}
	saved := appendKnown(l.tracer, &l.flow)
	k, err := readKnown(saved)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := l.tracer.Path(&l.flow, 0, nil)
	l.tracer, l.flow = New(l.m), Flow{}
	l.tracer.Resume(&l.flow, k)
	got, ok := l.tracer.Path(&l.flow, 0, nil)
	if !ok || !slices.Equal(got.Nodes, want.Nodes) || got.Confidence != want.Confidence || got.Digests != want.Digests || got.Seen != want.Seen || got.Marked != want.Marked || got.Marked != 0 {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if second := appendKnown(l.tracer, &l.flow); !bytes.Equal(second, saved) {
		t.Error("what was read is written as something else")
	}
	if e := l.send(path); e != Verified {
		t.Errorf("the next digest: %v", e)
	}
	l.tracer.Release(&l.flow)

	for n := range saved {
		var e *state.Error
		if _, err := readKnown(saved[:n]); !errors.As(err, &e) || e.Offset > n {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for what, b := range map[string][]byte{
		"a byte more":             append(bytes.Clone(saved), 0),
		"five paths":              append([]byte{knownVersion, maxPaths + 1}, saved[2:]...),
		"a path without hops":     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a path of too many":      {1, pint.MaxHops + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a hop beyond the path":   {1, 1, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0},
		"a number in a long form": {0, 0x80, 0, 0, 0, 0, 0, 0},
		"a deviation of no kind":  {knownVersion, 1, 1, 0, 0, 1, 0x80, 0x1c, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0},
	} {
		if _, err := readKnown(b); err == nil {
			t.Errorf("%s is read", what)
		}
	}
}

// Paths that were written before hops had marks are read, and are marked until digests confirm them anew.
func TestKnownBeforeMarks(t *testing.T) {
	l := newLab(t, 4, 8, 2, prior.Distance)
	path := shortestPath(l.r, l.m, -1, -1, 3)
	old := []byte{1, 3, 0x80, 0x28, 7, 7}
	for _, id := range path {
		old = binary.AppendUvarint(old, uint64(id))
	}
	k, err := readKnown(append(old, 7, 0, 0, 0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	l.tracer.Resume(&l.flow, k)
	got, ok := l.tracer.Path(&l.flow, 0, nil)
	if !ok || !slices.Equal(got.Nodes, path) || got.Marked != 7 || got.Seen != 7 || got.Digests != 7 {
		t.Fatalf("%+v, want %d with three marks", got, path)
	}
	l.until(Confirmed, 100, always(path))
}
