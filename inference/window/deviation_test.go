package window

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// goldenDeviations compares a partial with deviations with the bytes that were written when there first were some.
func goldenDeviations(t *testing.T, p *Partial) {
	t.Helper()
	const file = "testdata/partial-v3-deviations.bin"
	want := encode(t, p)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.deviations.items) < 2 || !bytes.Equal(got, want) {
		t.Errorf("%d deviations, %d bytes, want those of %s (%d bytes)", len(p.deviations.items), len(want), file, len(got))
	}
	if q := read(t, got); !reflect.DeepEqual(q.Window(wide), p.Window(wide)) {
		t.Errorf("%s reads as %+v", file, q.Window(wide))
	}
}

// The lists of a flow have limits when they are read, and no bytes that are not as they are written.
func TestDeviations(t *testing.T) {
	one := inference.MapError{Kind: inference.Foreign, Node: 914, A: 17, B: 22}
	long := make([]inference.MapError, MaxMapErrors+1)
	for i := range long {
		long[i] = inference.MapError{Kind: inference.Unlinked, A: uint32(i), B: 99}
	}
	for name, tt := range map[string]struct {
		errors []inference.MapError
		ok     bool
	}{
		"one":           {[]inference.MapError{one}, true},
		"none":          {nil, true},
		"as many as go": {long[1:], true},
		"too many":      {long, false},
		"twice":         {[]inference.MapError{one, one}, false},
		"out of order":  {[]inference.MapError{{Kind: inference.LowTTL, Node: 254}, one}, false},
		"no such kind":  {[]inference.MapError{{Kind: inference.NumMapErrors}}, false},
	} {
		var p, q Partial
		p.AddDeviation(&inference.Deviation{Flow: flowKey(1), Ingress: inference.NoNode, Digests: 7, Last: -3, Errors: tt.errors})
		b := encode(t, &p)
		err := q.ReadBinary(b, wide)
		if ok := err == nil; ok != tt.ok {
			t.Errorf("%s: %v", name, err)
		} else if ok && !bytes.Equal(encode(t, &q), b) {
			t.Errorf("%s: read as %+v", name, q.deviations.items)
		}
		if tt.ok && !errors.Is(q.ReadBinary(b, Limits{}), ErrLimit) {
			t.Errorf("%s: the limit is not held", name)
		}
	}
}

// A flow that several partials list is listed once, with the last content, and items beyond the limits are counted.
func TestDeviationsOfOneFlow(t *testing.T) {
	var p Partial
	for i := range 6 {
		p.AddDeviation(&inference.Deviation{Flow: flowKey(uint32(i % 3)), Last: int64(i), Errors: []inference.MapError{{Kind: inference.Unlinked, A: uint32(i)}}})
	}
	w := p.Window(Limits{Deviations: 2})
	if len(w.Deviations) != 2 || w.OtherDeviations != 1 || w.Deviations[0].Errors[0].A != 3 || w.Deviations[1].Last != 4 {
		t.Errorf("%+v and %d others", w.Deviations, w.OtherDeviations)
	}
	var q Partial
	q.MergeWithin(&p, Limits{Deviations: 4})
	if len(q.deviations.items) != 4 {
		t.Errorf("%d deviations within a limit of 4", len(q.deviations.items))
	}
}

func TestMapErrorText(t *testing.T) {
	for want, e := range map[string]inference.MapError{
		"node 914 speaks between 17 and 22 and is not in the topology": {Kind: inference.Foreign, Node: 914, A: 17, B: 22},
		"an unknown node speaks next to 17":                            {Kind: inference.Unnamed, A: 17, B: inference.NoNode},
		"node 18 calls itself 914":                                     {Kind: inference.Renamed, A: 18, Node: 914},
		"nodes 17 and 18 look swapped":                                 {Kind: inference.Swapped, A: 17, B: 18},
		"link 4–9 is used and not in the topology":                     {Kind: inference.Unlinked, A: 4, B: 9},
		"senders start with TTL 254":                                   {Kind: inference.LowTTL, Node: 254},
	} {
		if got := e.String(); got != want {
			t.Errorf("%+v is %q, want %q", e, got, want)
		}
	}
}
