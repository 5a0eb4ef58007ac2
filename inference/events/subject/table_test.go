package subject

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestFollow compares a table with a plain map from what is followed to the window in which it was seen last.
func TestFollow(t *testing.T) {
	const most, patience = 20, 3
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		j := &Journal{}
		l := NewTable(j, cmp.Compare[uint32], func(c *Coder, k *uint32) { Number(c, k) }, (*Coder).Tally)
		twin := map[uint32]uint64{}
		for range 200 {
			j.Begin(0)
			for range rng.IntN(15) {
				key := rng.Uint32N(40)
				_, known := twin[key]
				s := l.Observe(key, most)
				if (s != nil) != (known || len(twin) < most) {
					t.Fatalf("seed %d: %d is followed: %v, beside %d others", seed, key, s != nil, len(twin))
				}
				if s == nil {
					continue
				}
				if known != (s.Count > 0) {
					t.Fatalf("seed %d: %d is remembered with %+v, known %v", seed, key, *s, known)
				}
				s.Count++
				twin[key] = j.Windows
			}
			var got, want []uint32
			l.ForEachAbsent(func(key uint32, _ *Tally, windows int) bool {
				if got = append(got, key); j.Windows-twin[key] != uint64(windows) {
					t.Fatalf("seed %d: %d is absent for %d windows, was seen in %d of %d", seed, key, windows, twin[key], j.Windows)
				}
				return windows >= patience
			})
			for key, last := range twin {
				if last < j.Windows {
					want = append(want, key)
				}
				if j.Windows-last >= patience {
					delete(twin, key)
				}
			}
			if slices.Sort(want); !slices.Equal(got, want) || len(l.List) != len(twin) || len(l.Index) != len(twin) {
				t.Fatalf("seed %d: absent are %v, want %v; %d and %d followed, want %d", seed, got, want, len(l.List), len(l.Index), len(twin))
			}
		}
	}
}

// TestReport takes one finding from its start to its end.
func TestReport(t *testing.T) {
	j := &Journal{}
	var open *inference.Finding
	step := func(f func()) []inference.Finding {
		j.Begin(j.Now + 10)
		f()
		j.Finish()
		return j.Published
	}
	emit := func(s inference.Severity, value float64) func() {
		return func() {
			j.Publish(&open, inference.Finding{Kind: inference.PacketDrops, Severity: s, Value: value, Node: 7})
		}
	}
	want := inference.Finding{ID: 1, Kind: inference.PacketDrops, Severity: inference.Warning, Start: 10, Updated: 10, Value: 3, Node: 7, Element: inference.ElementOfNode(7)}
	if got := step(emit(inference.Warning, 3)); !reflect.DeepEqual(got, []inference.Finding{want}) || !reflect.DeepEqual(*open, want) {
		t.Errorf("start: %+v, open %+v", got, open)
	}
	want.Updated, want.Value = 20, 2
	if got := step(emit(inference.Info, 2)); len(got) != 0 || !reflect.DeepEqual(*open, want) {
		t.Errorf("update: %+v, open %+v, want %+v", got, open, want)
	}
	want.Updated, want.Value, want.Severity = 30, 9, inference.Critical
	if got := step(emit(inference.Critical, 9)); !reflect.DeepEqual(got, []inference.Finding{want}) || !reflect.DeepEqual(*open, want) || len(j.Open) != 1 {
		t.Errorf("rise: %+v, open %+v, want %+v", got, open, want)
	}
	want.Updated, want.End, want.Text = 40, 40, "over"
	if got := step(func() { j.End(&open, "over"); j.End(&open, "over") }); !reflect.DeepEqual(got, []inference.Finding{want}) || open != nil || len(j.Open) != 0 {
		t.Errorf("end: %+v, open %+v, want %+v", got, open, want)
	}
	if step(emit(inference.Info, 1)); open.ID != 2 {
		t.Errorf("the second finding has the id %d", open.ID)
	}
}
