package shard

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

var wide = window.Limits{Hops: 1e6, Flows: 1e6, Paths: 1e6, Drops: 1e6, Faults: 1e6, Exporters: 1e6}

func encode(t *testing.T, p *window.Partial) []byte {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// split distributes reports over shards. Those of a flow always go to the same one, by a draw and not by any hash, and
// those without a flow to any.
type split struct {
	rng    *rand.Rand
	shards []*State
	owner  map[decode.FlowKey]int
}

func newSplit(cfg Config, n int, rng *rand.Rand) *split {
	s := &split{rng: rng, owner: map[decode.FlowKey]int{}}
	for range n {
		s.shards = append(s.shards, New(cfg, rng.Uint64())) // seeds differ, too
	}
	return s
}

// update hands reports on in pieces of random lengths.
func (s *split) update(reports []*decode.Report) {
	for len(reports) > 0 {
		n := min(1+s.rng.IntN(300), len(reports))
		parts := make([][]*decode.Report, len(s.shards))
		for _, r := range reports[:n] {
			i, ok := s.owner[r.Flow]
			if !ok || r.Has&decode.HasFlow == 0 {
				i = s.rng.IntN(len(s.shards))
				s.owner[r.Flow] = i
			}
			parts[i] = append(parts[i], r)
		}
		for i, p := range parts {
			s.shards[i].Update(p)
		}
		reports = reports[n:]
	}
}

// cut merges what the shards saw in a random tree, some of it by its bytes. The shards have their memory back, and
// wrote into it, before the merging begins.
func (s *split) cut(t *testing.T, end int64) *window.Partial {
	t.Helper()
	var tree []*window.Partial
	for _, st := range s.shards {
		c, p := st.Cut(end), &window.Partial{}
		c.AddTo(p)
		st.Recycle(c)
		tree = append(tree, p)
	}
	for {
		s.rng.Shuffle(len(tree), func(i, j int) { tree[i], tree[j] = tree[j], tree[i] })
		n := len(tree) - 1
		if s.rng.IntN(3) == 0 {
			var p window.Partial
			if err := p.ReadBinary(encode(t, tree[n]), wide); err != nil {
				t.Fatal(err)
			}
			tree[n] = &p
		}
		if n == 0 {
			return tree[0]
		}
		tree[0].Merge(tree[n])
		tree = tree[:n]
	}
}

// different names the fields of two windows that are not the same.
func different(a, b inference.Window) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, fmt.Sprintf("%s %+v, want %+v", x.Type().Field(i).Name, x.Field(i), y.Field(i)))
		}
	}
	return names
}

// sameWindows cuts one shard and several, and wants the same bytes and windows.
func sameWindows(t *testing.T, what string, limits window.Limits, end int64, one *split, more ...*split) {
	t.Helper()
	p := one.cut(t, end)
	want, bytesWant := p.Window(limits), encode(t, p)
	for _, s := range more {
		q := s.cut(t, end)
		if d := different(q.Window(limits), want); d != nil {
			t.Fatalf("%s: the window of %d shards is not that of one: %s", what, len(s.shards), d)
		}
		if !bytes.Equal(encode(t, q), bytesWant) && len(p.Window(wide).Flows) < limits.Flows {
			t.Fatalf("%s: the partial of %d shards has other bytes", what, len(s.shards))
		}
	}
}

// TestSplits shares random traffic out over 1 to 8 shards, below the limits of all tables.
func TestSplits(t *testing.T) {
	testkit.Long(t)
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 21))
		cfg := testConfig()
		cfg.IdleTimeout = 3 * time.Second
		cfg.MaxPathLength = []int{32, 10, 5}[seed%3]
		g := &traffic{rng: rng, paths: map[int][]decode.Hop{}, flows: 1 + rng.IntN(4*cfg.TopFlows), long: seed%2 == 1, now: 1}
		one := newSplit(cfg, 1, rng)
		more := []*split{newSplit(cfg, 1+rng.IntN(8), rng), newSplit(cfg, 8, rng)}
		for window := range 5 {
			g.base = uint32(window * g.flows / 2) // half of them are new, and the others hold places
			var reports []*decode.Report
			pauses := 0
			for range 3000 {
				r := g.next()
				if rng.IntN(20) == 0 {
					r.Flags |= decode.Loop
				}
				if rng.IntN(10) == 0 {
					r.Kind, r.INT, r.Hops = decode.KindPostcard, 0, r.Hops[:min(len(r.Hops), 1)]
				}
				if rng.IntN(700) == 0 && pauses < 2 { // some flows are idle then, some nearly so
					pauses++
					g.now += int64(time.Second)
				}
				reports = append(reports, r)
			}
			for _, s := range append(more, one) {
				s.update(reports)
			}
			sameWindows(t, fmt.Sprintf("seed %d, window %d, %d flows", seed, window, g.flows), cfg.Limits(), g.now, one, more...)
		}
	}
}

// TestSplitsOverflow shares out traffic of which path changes, drops and faults are more than are listed: what is listed
// is the same nevertheless.
func TestSplitsOverflow(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 22))
		cfg := testConfig()
		cfg.MaxPathChanges, cfg.MaxDrops = 1+rng.IntN(10), 1+rng.IntN(6)
		if seed == 0 {
			cfg.MaxPathChanges = 0
		}
		one := newSplit(cfg, 1, rng)
		more := []*split{newSplit(cfg, 2+rng.IntN(3), rng), newSplit(cfg, 8, rng)}
		now := int64(1)
		for window := range 4 {
			var reports []*decode.Report
			for range 2000 {
				now += int64(rng.IntN(2)) // many at the same time
				n := rng.Uint32N(60)
				r := stack(n, now, hop(n%5, 1, 100), hop(10+rng.Uint32N(3), 1, 200))
				if rng.IntN(3) == 0 {
					r.Flags |= decode.Loop
				}
				if rng.IntN(3) == 0 {
					r.Kind, r.DropReason, r.NodeID = decode.KindDrop, uint8(rng.IntN(4)), rng.Uint32N(5)
					r.Has |= decode.HasNodeID
				}
				reports = append(reports, r)
			}
			for _, s := range append(more, one) {
				s.update(reports)
			}
			what := fmt.Sprintf("seed %d, window %d", seed, window)
			p := one.cut(t, now)
			want := p.Window(cfg.Limits())
			if want.OtherDrops == 0 || want.OtherPaths == 0 || want.OtherFlows == 0 {
				t.Fatalf("%s: nothing overflows: %+v", what, want)
			}
			for _, s := range more {
				if d := different(s.cut(t, now).Window(cfg.Limits()), want); d != nil {
					t.Fatalf("%s: the window of %d shards is not that of one: %s", what, len(s.shards), d)
				}
			}
		}
	}
}

// TestFlowBound has more flows than there are places for candidates. A flow with more reports than the bound is listed,
// with all of them, and its distributions lack no more than the bound.
func TestFlowBound(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 23))
		cfg := testConfig()
		cfg.TopFlows = 10
		s := newSplit(cfg, 1+rng.IntN(4), rng)
		for window := range 3 {
			count := map[decode.FlowKey]uint64{}
			var reports []*decode.Report
			for range 20_000 {
				n := uint32(1000 * rng.Float64() * rng.Float64())
				reports = append(reports, stack(n, int64(window+1), hop(1, 1, 100), hop(2, 1, 200)))
				count[flowKey(n)]++
			}
			s.update(reports)
			w := s.cut(t, int64(window+1)).Window(cfg.Limits())
			if len(w.Flows) != cfg.TopFlows || w.FlowBound == 0 {
				t.Fatalf("seed %d: %d flows, bound %d", seed, len(w.Flows), w.FlowBound)
			}
			for _, f := range w.Flows {
				if f.Packets != count[f.Key] {
					t.Fatalf("seed %d: flow of %d reports, want %d", seed, f.Packets, count[f.Key])
				}
				for _, h := range f.Hops {
					for _, d := range []inference.Summary{h.Latency, h.Queue} {
						if d.Count > f.Packets || d.Count+w.FlowBound < f.Packets {
							t.Fatalf("seed %d: %d values of %d reports, bound %d", seed, d.Count, f.Packets, w.FlowBound)
						}
					}
				}
				delete(count, f.Key)
			}
			for k, n := range count {
				if n > w.FlowBound {
					t.Fatalf("seed %d: %v with %d reports is not listed, bound %d", seed, k, n, w.FlowBound)
				}
			}
		}
	}
}

// TestCutIsCopied holds that a partial stays what it was when the cut that was added to it is used again.
func TestCutIsCopied(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 24))
	g := &traffic{rng: rng, paths: map[int][]decode.Hop{}, flows: 200, now: 1}
	s := New(testConfig(), 1)
	var kept []*window.Partial
	var want [][]byte
	for range 6 {
		for range 3000 {
			s.Update([]*decode.Report{g.next()})
		}
		c, p := s.Cut(g.now), &window.Partial{}
		c.AddTo(p)
		kept, want = append(kept, p), append(want, encode(t, p))
		s.Recycle(c)
	}
	for i, p := range kept {
		if !bytes.Equal(encode(t, p), want[i]) {
			t.Errorf("partial %d changed with the memory of its cut", i)
		}
	}
}

// TestSplitCaptures shares the reports of every capture in the tree out over shards, in windows of 100 reports.
func TestSplitCaptures(t *testing.T) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("no profile called auto")
	}
	captures, total := 0, 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (strings.HasPrefix(e.Name(), ".c") || e.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(path, ".pcap") {
			return nil
		}
		src := pcapfile.NewSource(pcapfile.DefaultConfig(), path)
		captures++
		rng := rand.New(rand.NewPCG(uint64(captures), 25))
		cfg := testConfig()
		one, more := newSplit(cfg, 1, rng), newSplit(cfg, 2+rng.IntN(7), rng)
		dec := demux.New(profile)
		end := int64(0)
		// Whatever a damaged capture still holds is compared.
		src.Run(context.Background(), func(_ int, b *ingest.Batch) {
			var batch decode.Batch
			for i := range b.Frames {
				f := &b.Frames[i]
				dec.Frame(&batch, f.Link, f.Data, f.Length, f.Time)
				end = f.Time
			}
			var good []*decode.Report
			for _, r := range batch.Reports {
				if r.Err.Reason == 0 {
					good = append(good, r)
				}
			}
			total += len(good)
			one.update(good)
			more.update(good)
			sameWindows(t, path, cfg.Limits(), end, one, more)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d captures, %d reports", captures, total); captures < 15 || total < 50 {
		t.Errorf("%d captures of %d reports, want more", captures, total)
	}
}

// TestSplitDigests shares out flows whose paths and values are inferred from PINT digests, and which change their paths.
func TestSplitDigests(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 26))
		first, plan, nodes, links := newDigestState(t)
		one := &split{rng: rng, owner: map[decode.FlowKey]int{}, shards: []*State{first}}
		more := &split{rng: rng, owner: map[decode.FlowKey]int{}}
		for range 2 + rng.IntN(5) {
			s, _, _, _ := newDigestState(t)
			more.shards = append(more.shards, s)
		}
		paths := make([][]uint32, 30)
		listed := 0
		for window := range 4 {
			var reports []*decode.Report
			for i := range 4000 {
				n := rng.IntN(len(paths))
				if paths[n] == nil || i == 2000 {
					paths[n] = plain.RandomWalk(rng, nodes, links, 2+rng.IntN(5))
				}
				r := plain.RandomDigest(rng, plan, n, paths[n], int64(window*4000+i+1)*1e6)
				if rng.IntN(100) == 0 {
					r.Digest.Value ^= 1 << rng.IntN(8) // damaged
				}
				reports = append(reports, r)
			}
			one.update(reports)
			more.update(reports)
			p, q := one.cut(t, int64(window+1)*4e9), more.cut(t, int64(window+1)*4e9)
			want := p.Window(wide)
			if d := different(q.Window(wide), want); d != nil || !bytes.Equal(encode(t, p), encode(t, q)) {
				t.Fatalf("seed %d, window %d: the window of %d shards is not that of one: %s", seed, window, len(more.shards), d)
			}
			for _, f := range want.Flows {
				listed += len(f.Hops)
			}
		}
		if t.Logf("seed %d: %d hops of flows", seed, listed); listed < 200 {
			t.Errorf("seed %d: %d hops of flows with a path, want more", seed, listed)
		}
	}
}
