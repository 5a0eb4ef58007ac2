package pathtrace

import (
	"testing"

	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

func TestKnownOfBefore(t *testing.T) {
	l := newLab(t, 3, 8, 1, prior.Distance)
	for _, n := range []int{6, 4} {
		path := shortestPath(l.r, l.m, -1, -1, n)
		for range 300 {
			l.send(path)
		}
	}
	testkit.SameState(t, "known", appendKnown(l.tracer, &l.flow), func(b []byte) ([]byte, error) {
		k, err := readKnown(b)
		if err != nil {
			return nil, err
		}
		other, flow := New(l.m), Flow{}
		other.Resume(&flow, k)
		return appendKnown(other, &flow), nil
	})
}
