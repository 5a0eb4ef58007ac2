package shard

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

func TestPathsOfBefore(t *testing.T) {
	w, s := newPathWorld(1), New(testConfig(), 1)
	for range 10 {
		s.Update(w.window())
		windowBytes(t, s, w.now)
	}
	second := func(b []byte) ([]byte, error) {
		other := New(testConfig(), 2)
		err := other.ReadPaths(b)
		return other.AppendPaths(nil, 1000), err
	}
	testkit.SameState(t, "paths-views", s.AppendPaths(nil, 1000), second)
	// Two former states are read as they are. In one a part of a path was another path, and in the other a part stayed
	// one for ever.
	for _, name := range []string{"paths", "paths-longest"} {
		before := testkit.StateFile(t, name, func() []byte { return nil })
		if got, err := second(before); err != nil || !bytes.Equal(got, before) {
			t.Errorf("%s: the state that was written before is read as another one: %v", name, err)
		}
	}

	rng := rand.New(rand.NewPCG(5, 6))
	d, p, nodes, links := newDigestState(t)
	for f := range 10 {
		path := plain.RandomWalk(rng, nodes, links, 3+f%7)
		for n := range 400 {
			d.Update([]*decode.Report{plain.RandomDigest(rng, p, f, path, int64(1e18)+int64(n)*1000)})
		}
	}
	testkit.SameState(t, "digests", d.AppendPaths(nil, 10), func(b []byte) ([]byte, error) {
		other, _, _, _ := newDigestState(t)
		err := other.ReadPaths(b)
		return other.AppendPaths(nil, 10), err
	})
}
