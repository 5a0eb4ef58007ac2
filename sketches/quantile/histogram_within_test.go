package quantile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// AddWithin counts what Add counts, in as many octaves as it may take.
func TestAddWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for room := range 12 {
		var h, all Histogram
		left, refused := room, uint64(0)
		octaves := map[uint16]bool{}
		for range 5000 {
			c := uint16(r.UintN(DenseCodes + 3)) // above the largest code, too
			o := min(c, DenseCodes-1) / OctaveCodes
			want := octaves[o] || len(octaves) < room
			if want {
				octaves[o] = true
				all.Add(c)
			} else {
				refused++
			}
			if got := h.AddWithin(c, &left); got != want {
				t.Fatalf("room for %d octaves: code %d is counted: %t, want %t", room, c, got, want)
			}
		}
		if left != room-len(octaves) || h.Count() != all.Count() || h.Count()+refused != 5000 {
			t.Errorf("room for %d octaves: %d left, %d counted, want %d", room, left, h.Count(), all.Count())
		}
		if !slices.Equal(h.Append(nil), all.Append(nil)) || h.Min() != all.Min() || h.Max() != all.Max() {
			t.Errorf("room for %d octaves: values from %d to %d, want %d to %d", room, h.Min(), h.Max(), all.Min(), all.Max())
		}
		for q := range 101 {
			if a, b := h.Quantile(float64(q)/100), all.Quantile(float64(q)/100); a != b {
				t.Errorf("room for %d octaves: quantile %d %% is %d, want %d", room, q, a, b)
			}
		}
	}
}
