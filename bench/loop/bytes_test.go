package loop

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// small is a network of few probes, so that all choices of them can be tried.
func small(t *testing.T, r *rand.Rand) *fabric {
	f := &fabric{name: "small", switches: 1}
	links := 12 + r.IntN(20)
	for range 2 {
		for order := r.Perm(links); len(order) > 0; {
			n := min(2+r.IntN(8), len(order))
			var trace []int32
			for _, l := range order[:n] {
				trace = append(trace, int32(l))
			}
			if r.IntN(3) == 0 { // some links are passed twice
				trace = append(trace, trace[0], int32(r.IntN(links)))
			}
			f.traces, order = append(f.traces, trace), order[n:]
		}
	}
	f.index(links)
	var err error
	if f.in, err = suspicion.NewIncidence(links, f.traces); err != nil {
		t.Fatal(err)
	}
	return f
}

// leastOf is the least cost of all choices of probes, with the cost of changes.
func leastOf(f *fabric, suspects, before []int32) float64 {
	least := math.Inf(1)
	for set := range uint64(1) << len(f.traces) {
		cost, left := 0.0, map[int32]bool{}
		for _, l := range suspects {
			left[l] = true
		}
		for p, trace := range f.traces {
			on := set>>p&1 != 0
			if on {
				cost += float64(len(trace))
				for _, l := range trace {
					delete(left, l)
				}
			}
			if on != slices.Contains(before, int32(p)) {
				cost += changeCost
			}
		}
		if len(left) == 0 {
			least = min(least, cost)
		}
	}
	return least
}

// In every cycle the choice has the least cost of all choices, changes included.
func TestBytesAreTheLeast(t *testing.T) {
	cycles, kept := 0, 0
	for seed := range uint64(12) {
		f := small(t, rand.New(rand.NewPCG(seed, 1)))
		if len(f.traces) > 13 {
			continue
		}
		row, err := f.row(t.Context(), 15, 12, seed, func(suspects, before []int32, c *solve.Choice) {
			cycles++
			cost := 0.0
			for _, p := range c.Probes {
				cost += float64(len(f.traces[p]))
			}
			now := slices.Clone(c.Probes)
			slices.Sort(now)
			changes := 0
			for p := range f.traces {
				if slices.Contains(now, int32(p)) != slices.Contains(before, int32(p)) {
					changes++
				}
			}
			if slices.Equal(now, before) {
				kept++
			}
			cost += changeCost * float64(changes)
			if want := leastOf(f, suspects, before); cost != want || !c.Optimal || c.LowerBound != want {
				t.Errorf("seed %d: %v after %v for %v costs %v, bound %v; the least is %v", seed, now, before, suspects, cost, c.LowerBound, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if row.Proven != 12 || row.Above != 0 || row.Least.Hops > row.Ours.Hops+1e-9 || row.Least.Hops > row.Greedy.Hops+1e-9 {
			t.Errorf("seed %d: %+v", seed, row)
		}
		if want := row.Ours.Hops*float64(bytesDetailed-bytesBasic)/bytesDetailed + row.None; math.Abs(row.Ours.Bytes-want) > 1e-9 {
			t.Errorf("seed %d: %v of the bytes, want %v", seed, row.Ours.Bytes, want)
		}
	}
	if cycles < 60 || kept == 0 {
		t.Errorf("%d cycles, of which %d changed nothing: too few to judge", cycles, kept)
	}
}

// Both plans cover a real fabric from hosts of their own, the number of suspects stays, and a seed always has the
// same row.
func TestBytesRow(t *testing.T) {
	var rows [2][]byte
	for k := range rows {
		f, err := newFabric("fat-tree", 6, 5)
		if err != nil {
			t.Fatal(err)
		}
		for l := range int32(f.links) {
			if n := len(f.published.Through(l)); n < 2 {
				t.Errorf("%d probes pass link %d", n, l)
			}
		}
		row, err := f.row(t.Context(), 10, 20, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.Switches != 45 || row.Links != 108+54 || row.Suspects != 16 || row.Proven != 20 || !(row.Renewed > 0 && row.Renewed < 16) {
			t.Errorf("%+v", row)
		}
		if rows[k], err = json.Marshal(row); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := (&bytesTable{Cycles: 20, Rows: []bytesRow{*row}}).Print(&out); err != nil || !strings.Contains(out.String(), "10 % (16)") {
			t.Errorf("%v: %s", err, out.String())
		}
	}
	if !bytes.Equal(rows[0], rows[1]) {
		t.Errorf("%s\nthen %s", rows[0], rows[1])
	}
}
