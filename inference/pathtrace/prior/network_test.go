package prior

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

// Neighbours are those of a matrix.
func TestNeighbours(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		n := 1 + r.IntN(12)
		var links [][2]int32
		var linked [12][12]bool
		for range r.IntN(30) {
			a, b := r.Int32N(int32(n)), r.Int32N(int32(n))
			links = append(links, [2]int32{a, b})
			linked[a][b], linked[b][a] = a != b, a != b
		}
		first, peers := Neighbours[uint16](n, links)
		for u := range n {
			var want []uint16
			for w := range n {
				if linked[u][w] {
					want = append(want, uint16(w))
				}
			}
			if got := peers[first[u]:first[u+1]]; !slices.Equal(got, want) {
				t.Fatalf("seed %d: links %v: node %d has the neighbours %v, want %v", seed, links, u, got, want)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	scheme, err := pint.New(pint.Published(8))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n    Network
		want string
	}{
		{Network{Scheme: scheme, Nodes: []uint32{7, 9}, Links: [][2]int32{{0, 1}}, Ends: [][]int32{{1}}}, ""},
		{Network{Nodes: []uint32{7}}, "no coding scheme"},
		{Network{Scheme: scheme}, "0 nodes"},
		{Network{Scheme: scheme, Nodes: []uint32{7, 7}}, "node 7: listed twice"},
		{Network{Scheme: scheme, Nodes: []uint32{7, 9}, Links: [][2]int32{{0, 2}}}, "link 0 from node index 0 to 2"},
		{Network{Scheme: scheme, Nodes: []uint32{7, 9}, Ends: [][]int32{{0}, {-1}}}, "ends 1: node index -1"},
		{Network{Scheme: scheme, Nodes: []uint32{7, 9}, Ends: make([][]int32, 1<<16)}, "65536 sets of ends"},
	} {
		err := errors.Join(c.n.Problems("room")...)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "room: "+c.want) {
			t.Errorf("%v: %v, want %q", c.n.Nodes, err, c.want)
		}
	}
}
