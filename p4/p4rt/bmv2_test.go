//go:build bmv2

package p4rt

import (
	"errors"
	"flag"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/p4"
)

var address = flag.String("p4runtime", "127.0.0.1:9559", "where simple_switch_grpc --no-p4 --device-id 3 listens")

// What a real server does with what the tests beside ask of an emulated one. docs/p4.md says how it is run.
func TestBMv2(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for i, name := range p4.Programs {
		cfg := (&bench{address: *address}).config(t, name)
		cfg.Election.Low += uint64(i)
		c := ready(t, dial(t, cfg))
		if err := c.Verify(within(t)); err != nil {
			t.Error(err)
		}
		if err := c.Commit(within(t)); err != nil {
			t.Fatal(err)
		}
		var want []p4.Entry
		keys := map[string]bool{}
		for _, tt := range c.info.Tables() {
			for range min(50, tt.Size) {
				e := drawEntry(r, &tt)
				e.Owner = "us"
				if len(tt.Key) == 0 {
					e.Match = nil
				}
				if tt.Name == CloneTable { // ports that BMv2 has, and whole packets
					e.Match[0], e.Params[0], e.Params[1] = p4.Number(uint64(100+r.IntN(100))), p4.Uint(uint64(1+r.IntN(510))), p4.Uint(0)
				}
				if !keys[e.Key()] {
					keys[e.Key()] = true
					want = append(want, e)
				}
			}
		}
		if errs, err := c.Write(within(t), inserts(want...)); errs != nil || err != nil {
			for k, e := range errs {
				if e != nil && !errors.Is(e, ErrSkipped) {
					t.Logf("%s: %v: %v", name, &want[k], e)
				}
			}
			t.Fatalf("%s: %v", name, err)
		}
		got, err := c.Read(within(t))
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]p4.Entry{}
		for _, e := range got {
			have[e.Key()] = e
		}
		for _, e := range want {
			if !reflect.DeepEqual(have[e.Key()], e) {
				t.Errorf("%s: read %+v\nwant %+v", name, have[e.Key()], e)
			}
		}
		some := want[:len(want)/2]
		if got, err := Reconcile(within(t), c, some, OwnedBy("us")); err != nil || got.Adopted != len(some) || got.Removed != len(want)-len(some) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got, err := Reconcile(within(t), c, want, OwnedBy("us")); err != nil || got.Inserted+got.Repaired != len(want)-len(some) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got, err := Reconcile(within(t), c, nil, OwnedBy("us")); err != nil || got.Removed != len(want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		refusals(t, c)
		controllers(t, c, cfg)
		file, err := p4.Recorded(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			x, err := recorded(name, g.Commands)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Reconcile(within(t), c, x.entries, OwnedBy("us")); err != nil {
				t.Errorf("%s, %s: %+v, %v", name, g.Name, got, err)
			}
			if got, err := Reconcile(within(t), c, x.entries, OwnedBy("us")); err != nil || got.Inserted+got.Repaired+got.Removed != 0 {
				t.Errorf("%s, %s: again %+v, %v", name, g.Name, got, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// refusals are what the switch does not take.
func refusals(t *testing.T, c *Client) {
	t.Helper()
	x := slices.IndexFunc(c.info.tables, func(t *tableInfo) bool { return len(t.Key) == 1 && t.Key[0].Kind == p4.Exact && t.Size == 512 })
	if x < 0 {
		t.Fatal("no such table")
	}
	tt := c.info.tables[x]
	entry := func(n uint64) p4.Entry {
		e := drawEntry(rand.New(rand.NewPCG(n, 1)), &tt.Table)
		e.Match = []p4.Match{p4.Number(n)}
		return e
	}
	for _, u := range []struct {
		Update
		want error
	}{{Update{Modify, entry(1)}, p4.ErrNotFound}, {Update{Delete, entry(1)}, p4.ErrNotFound}, {Update{Insert, entry(1)}, nil}, {Update{Insert, entry(1)}, p4.ErrExists}} {
		errs, err := c.Write(within(t), []Update{u.Update})
		if err != nil || u.want == nil && errs != nil || u.want != nil && (len(errs) != 1 || !errors.Is(errs[0], u.want)) {
			t.Errorf("%v %v: %v, %v, want %v", u.Op, &u.Entry, errs, err, u.want)
		}
	}
	if len(tt.Key) == 1 && tt.Key[0].Bits == 9 { // as many entries as there are numbers: a full table needs another one
		var all []Update
		for n := range uint64(512) {
			if n != 1 {
				all = append(all, Update{Insert, entry(n)})
			}
		}
		if errs, err := c.Write(within(t), all); errs != nil || err != nil {
			t.Error(errs, err)
		}
	}
	many := slices.IndexFunc(c.info.tables, func(t *tableInfo) bool { return len(t.Key) == 1 && t.Key[0].Kind == p4.Longest })
	route, errs, err := c.info.tables[many], []error(nil), error(nil)
	var list []Update
	for n := range uint64(route.Size + 1) {
		e := drawEntry(rand.New(rand.NewPCG(1, 1)), &route.Table)
		e.Match = []p4.Match{{Value: p4.Uint(n), Prefix: route.Key[0].Bits}}
		list = append(list, Update{Insert, e})
	}
	if errs, err = c.Write(within(t), list); err != nil || len(errs) != len(list) {
		t.Fatalf("%d errors, %v", len(errs), err)
	}
	full := 0
	for _, e := range errs {
		if e != nil {
			full++
			if t.Logf("a full table: %v", e); !errors.Is(e, p4.ErrFull) {
				t.Error("it is not known that the table is full")
			}
		}
	}
	if full != 1 {
		t.Errorf("%d of %d entries were refused by a table of %d", full, len(list), route.Size)
	}
	if _, err := Reconcile(within(t), c, nil, OwnedBy("us")); err != nil {
		t.Error(err)
	}
	for name := range c.info.counters {
		cells, err := c.Counters(within(t), name)
		t.Logf("counter %s: %d cells, %v", name, len(cells), err)
	}
}

// controllers are two of them.
func controllers(t *testing.T, c *Client, cfg Config) {
	t.Helper()
	cfg.Election.High = 1
	high := ready(t, dial(t, cfg))
	until(t, "told", func() bool { return !c.State().Primary })
	if _, err := c.Write(within(t), []Update{{Insert, p4.Entry{Table: CloneTable, Match: []p4.Match{p4.Number(100)}, Action: "clone",
		Params: []p4.Value{p4.Uint(1), p4.Uint(0)}}}}); !errors.Is(err, ErrNotPrimary) {
		t.Error(err)
	}
	same := dial(t, cfg)
	until(t, "refused", func() bool { return errors.Is(same.State().Problem, ErrElection) })
	t.Logf("the same id: %v", same.State().Problem)
	if err := errors.Join(same.Close(), high.Close()); err != nil {
		t.Error(err)
	}
	ready(t, c)
}
