package ask

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/notify"
)

// TestNoFindingVanishes lets findings name any of them as their cause: none, each other in circles, themselves, ones that are not listed. Each
// is printed once, and for each one at least is counted that it is listed with.
func TestNoFindingVanishes(t *testing.T) {
	const names = "0123456789"
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list := make([]Finding, 1+rng.IntN(len(names)))
		for i := range list {
			list[i] = Finding{ID: names[i : i+1], Kind: "drops", Severity: "critical", Text: fmt.Sprintf("finding-%d.", i)}
			if k := rng.IntN(len(names) + 1); k < len(names) {
				list[i].Cause = names[k : k+1]
			}
		}
		leads := leads(list)
		alone := 0
		for i, lead := range leads {
			if leads[lead] != lead {
				t.Fatalf("seed %d: finding %d is listed with %d, which is listed with %d: %+v", seed, i, lead, leads[lead], list)
			}
			if lead == i {
				alone++
			}
		}
		if got := Unattended(list, inference.Critical, new(notify.Rules), time.Now()); got != alone {
			t.Fatalf("seed %d: %d findings are counted, and %d are no evidence: %+v", seed, got, alone, list)
		}
		var out bytes.Buffer
		if err := WriteFindings(&out, list, nil, nil, false, true); err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if n := strings.Count(out.String(), list[i].Text); n != 1 {
				t.Fatalf("seed %d: %s is printed %d times:\n%s", seed, list[i].Text, n, &out)
			}
		}
	}
}

// TestLeads: a chain of causes is listed with its end. Each of a circle stands for itself.
func TestLeads(t *testing.T) {
	list := []Finding{{ID: "a", Cause: "b"}, {ID: "b", Cause: "c"}, {ID: "c", Cause: "gone"}, {ID: "d", Cause: "e"}, {ID: "e", Cause: "d"}, {ID: "f", Cause: "e"}, {ID: "g", Cause: "g"}}
	want := []int{2, 2, 2, 3, 4, 4, 6}
	for i, got := range leads(list) {
		if got != want[i] {
			t.Errorf("%s is listed with %s, want %s", list[i].ID, list[got].ID, list[want[i]].ID)
		}
	}
}
