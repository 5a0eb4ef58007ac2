package pathtrace

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
)

// A flow whose paths were known to another tracer needs no digest to be shown, and a digest to be verified.
func TestKnown(t *testing.T) {
	l := newLab(t, 3, 8, 1, Distance)
	path := shortestPath(l.r, l.m, -1, -1, 6)
	for range 300 {
		l.send(path)
	}
	if !l.flow.Known() {
		t.Fatal("the path did not become known")
	}
	saved := l.tracer.AppendKnown(nil, &l.flow)
	k, err := ReadKnown(saved)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := l.tracer.Path(&l.flow, 0, nil)
	l.tracer, l.flow = New(l.m), Flow{}
	l.tracer.Resume(&l.flow, k)
	got, ok := l.tracer.Path(&l.flow, 0, nil)
	if !ok || !slices.Equal(got.Nodes, want.Nodes) || got.Confidence != want.Confidence || got.Digests != want.Digests || got.Seen != want.Seen {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if again := l.tracer.AppendKnown(nil, &l.flow); !bytes.Equal(again, saved) {
		t.Error("what was read is written as something else")
	}
	if e := l.send(path); e != Verified {
		t.Errorf("the next digest: %v", e)
	}
	l.tracer.Release(&l.flow)

	for n := range saved {
		var e *KnownError
		if _, err := ReadKnown(saved[:n]); !errors.As(err, &e) || e.Offset > n {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for what, b := range map[string][]byte{
		"a byte more":             append(bytes.Clone(saved), 0),
		"five paths":              append([]byte{maxPaths + 1}, saved[1:]...),
		"a path without hops":     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a path of too many":      {1, pint.MaxHops + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a hop beyond the path":   {1, 1, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0},
		"a number in a long form": {0, 0x80, 0, 0, 0, 0, 0, 0},
	} {
		if _, err := ReadKnown(b); err == nil {
			t.Errorf("%s is read", what)
		}
	}
}
