package p4

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var program = []Table{
	{Name: "exact", Key: []Field{{"a", 8, Exact}, {"b", 16, Exact}}, Actions: []Action{{"do", []Param{{"x", 9}}}, {"drop", nil}}, Size: 3},
	{Name: "route", Key: []Field{{"dst", 32, Longest}}, Actions: []Action{{"forward", []Param{{"port", 9}}}}, Size: 100},
	{Name: "watch", Key: []Field{{"src", 12, Ternary}, {"port", 16, Range}}, Actions: []Action{{"yes", nil}, {"no", nil}}, Size: 50},
	{Name: "code", Key: []Field{{"epoch", 8, Exact}, {"v", 16, Range}}, Actions: []Action{{"level", []Param{{"code", 16}}}}, Size: 30},
	{Name: "port", Key: []Field{{"port", 9, Exact}}, Actions: []Action{{"to", []Param{{"x", 9}}}, {"drop", nil}}, Size: 9},
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		v    Value
		n    uint64
		bits int
	}{{Uint(0), 0, 0}, {Uint(1), 1, 1}, {Uint(256), 256, 9}, {Bytes([]byte{0, 0, 1, 2}), 258, 9}, {Bytes(nil), 0, 0}, {Uint(1<<64 - 1), 1<<64 - 1, 64}} {
		if tt.v.Uint64() != tt.n || tt.v.Width() != tt.bits || !tt.v.canonical() {
			t.Errorf("%v: %d of %d bits, want %d of %d", tt.v, tt.v.Uint64(), tt.v.Width(), tt.n, tt.bits)
		}
	}
	if got := Uint(0x010203).Append([]byte{9}, 4); !slices.Equal(got, []byte{9, 0, 1, 2, 3}) {
		t.Errorf("%x", got)
	}
	if got := Uint(0x010203).Append(nil, 2); !slices.Equal(got, []byte{2, 3}) {
		t.Errorf("%x", got)
	}
}

func TestPutReadDelete(t *testing.T) {
	s := NewStore(program)
	entry := func(a, b, x uint64) Entry {
		return Entry{Table: "exact", Match: []Match{Number(a), Number(b)}, Action: "do", Params: []Value{Uint(x)}}
	}
	for i := range uint64(3) {
		if err := s.Insert(entry(i, 300, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Insert(entry(9, 9, 9)); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "table exact: 3 entries") {
		t.Errorf("a fourth entry: %v", err)
	}
	if err := s.Insert(entry(1, 300, 9)); !errors.Is(err, ErrExists) {
		t.Errorf("the same entry again: %v", err)
	}
	if err := s.Modify(entry(1, 301, 9)); !errors.Is(err, ErrNotFound) {
		t.Errorf("another entry: %v", err)
	}
	if err := s.Modify(entry(1, 300, 500)); err != nil || s.Find("exact", Uint(1), Uint(300)).Params[0] != Uint(500) {
		t.Errorf("modified: %v", err)
	}
	gone := entry(0, 300, 77)
	if err := s.Delete(&gone); err != nil {
		t.Error(err)
	}
	if err := s.Delete(&gone); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if e := s.Find("exact", Uint(0), Uint(300)); e != nil {
		t.Errorf("found %v", e)
	}
	if was, err := s.Put(Entry{Table: "exact", Action: "drop"}); was || err != nil {
		t.Error(was, err)
	}
	if e := s.Find("exact", Uint(0), Uint(300)); e == nil || !e.Default() {
		t.Errorf("found %v", e)
	}
	if got := s.Read("exact"); len(got) != 3 || s.Len("exact") != 2 || !got[2].Default() || got[0].String() != "exact 0x01 0x012c => do(0x01f4)" {
		t.Errorf("read %v", got)
	}
}

func TestRefused(t *testing.T) {
	s := NewStore(program)
	for _, tt := range []struct {
		e    Entry
		want string
	}{
		{Entry{Table: "x"}, "table x: the program has none"},
		{Entry{Table: "exact", Match: []Match{Number(1)}, Action: "drop"}, "a key of 1 fields, want 2"},
		{Entry{Table: "exact", Match: []Match{Number(256), Number(1)}, Action: "drop"}, "field a: 0x0100 is no number of 8 bits"},
		{Entry{Table: "exact", Match: []Match{{Value: "\x00\x01"}, Number(1)}, Action: "drop"}, "field a: 0x0001 is no number"},
		{Entry{Table: "exact", Match: []Match{{}, Number(1)}, Action: "drop"}, "field a: 0x is no number"},
		{Entry{Table: "exact", Match: []Match{Masked(1, 1), Number(1)}, Action: "drop"}, "field a: it is matched in another way"},
		{Entry{Table: "exact", Match: []Match{Number(1), Number(1)}, Action: "fly"}, `no action "fly"`},
		{Entry{Table: "exact", Match: []Match{Number(1), Number(1)}, Action: "do"}, "with 0 parameters, want 1"},
		{Entry{Table: "exact", Match: []Match{Number(1), Number(1)}, Action: "do", Params: []Value{Uint(512)}}, "parameter x: 0x0200 is no number of 9 bits"},
		{Entry{Table: "exact", Match: []Match{Number(1), Number(1)}, Priority: 1, Action: "drop"}, "priority 1"},
		{Entry{Table: "watch", Match: []Match{Masked(1, 1), Between(1, 2)}, Action: "yes"}, "priority 0"},
		{Entry{Table: "watch", Match: []Match{Masked(1, 1), Between(3, 2)}, Priority: 1, Action: "yes"}, "no number is from 0x03 to 0x02"},
		{Entry{Table: "watch", Match: []Match{{Value: Uint(3), To: Uint(1)}, Between(1, 2)}, Priority: 1, Action: "yes"}, "bits that are not compared"},
		{Entry{Table: "route", Match: []Match{{Value: Uint(1), Prefix: 31}}, Action: "forward", Params: []Value{Uint(1)}}, "bits that are not compared"},
		{Entry{Table: "route", Match: []Match{{Value: Uint(1), Prefix: 33}}, Action: "forward", Params: []Value{Uint(1)}}, "matched in another way"},
	} {
		if _, err := s.Put(tt.e); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", &tt.e, err, tt.want)
		}
	}
	if got := s.Read(""); got != nil {
		t.Errorf("kept %v", got)
	}
}

// Ranges behind exact fields are found by halves while none overlaps, and else in turn: always as an obvious twin says,
// while entries come, change and go.
func TestFindRange(t *testing.T) {
	halves, turns := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := NewStore(program)
		c := s.Rows("code")
		span := 1 + r.IntN(40)
		var list []Entry // by priority
		for step := range 200 {
			switch k := r.IntN(10); {
			case k < 5:
				first := uint64(r.IntN(1000))
				e := Entry{
					Table: "code", Match: []Match{Number(uint64(r.IntN(3))), Between(first, first+uint64(r.IntN(span)))}, Priority: int32(1 + r.IntN(3)),
					Action: "level", Params: []Value{Uint(uint64(step))},
				}
				if was, err := s.Put(e); err == nil {
					if was {
						list[slices.IndexFunc(list, func(o Entry) bool { return o.Key() == e.Key() })] = e
					} else {
						list = append(list, e)
						slices.SortStableFunc(list, func(a, b Entry) int { return int(b.Priority - a.Priority) })
					}
				}
			case k < 8 && len(list) > 0:
				at := r.IntN(len(list))
				if err := s.Delete(&list[at]); err != nil {
					t.Fatal(err)
				}
				list = slices.Delete(list, at, at+1)
			}
			if c.overlap == 0 && len(list) > 1 {
				halves++
			} else {
				turns++
			}
			for range 20 {
				epoch, v := uint64(r.IntN(3)), uint64(r.IntN(1100))
				want := slices.IndexFunc(list, func(e Entry) bool {
					return e.Match[0].Value.Uint64() == epoch && e.Match[1].Value.Uint64() <= v && v <= e.Match[1].To.Uint64()
				})
				got := c.Find([]byte{byte(epoch), byte(v >> 8), byte(v)})
				if (got.Action == "") != (want < 0) || want >= 0 && got.Arg(0) != list[want].Params[0].Uint64() {
					t.Fatalf("seed %d, step %d: %d of %d: %v, want entry %d", seed, step, v, epoch, &got.Entry, want)
				}
			}
		}
	}
	if halves < 1000 || turns < 1000 {
		t.Errorf("%d look-ups by halves, %d in turn", halves, turns)
	}
}

// A table of one number is found by it, whether it holds an entry, an action for the rest, or nothing; packets take no memory.
func TestFindNumber(t *testing.T) {
	s := NewStore(program)
	ports, e := s.Rows("port"), Entry{Table: "port", Match: []Match{Number(300)}, Action: "to", Params: []Value{Uint(7)}}
	want := func(port uint64, action string, arg uint64) {
		t.Helper()
		if r := ports.At(port); r.Action != action || r.Arg(0) != arg || r != ports.Find([]byte{byte(port >> 8), byte(port)}) {
			t.Errorf("port %d: %v", port, &r.Entry)
		}
	}
	want(300, "", 0)
	if err := s.Insert(e); err != nil {
		t.Fatal(err)
	}
	want(300, "to", 7)
	want(301, "", 0)
	want(5000, "", 0)
	if _, err := s.Put(Entry{Table: "port", Action: "drop"}); err != nil {
		t.Fatal(err)
	}
	want(301, "drop", 0)
	want(5000, "drop", 0)
	if err := s.Delete(&e); err != nil {
		t.Fatal(err)
	}
	want(300, "drop", 0)
	if err := s.Insert(Entry{Table: "route", Match: []Match{{Value: Uint(0x0a000000), Prefix: 8}}, Action: "forward", Params: []Value{Uint(1)}}); err != nil {
		t.Fatal(err)
	}
	routes, key := s.Rows("route"), []byte{10, 1, 2, 3}
	if n := testing.AllocsPerRun(100, func() {
		if ports.At(300) == nil || routes.Find(key).Arg(0) != 1 {
			t.Error("no row")
		}
	}); n != 0 {
		t.Errorf("%v allocations a look-up, want 0", n)
	}
	if s.Rows("x") != nil {
		t.Error("a table that the program lacks")
	}
}

// The longest prefix and the highest priority win, as an obvious twin over numbers says.
func TestFind(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := NewStore(program)
		var routes, watches []Entry
		for range 40 {
			length := r.IntN(33)
			dst := uint64(r.Uint32()) & 0xf00000ff << (32 - length) & 0xffffffff
			if length == 0 {
				dst = 0
			}
			e := Entry{Table: "route", Match: []Match{{Value: Uint(dst), Prefix: length}}, Action: "forward", Params: []Value{Uint(uint64(len(routes)))}}
			if s.Insert(e) == nil {
				routes = append(routes, e)
			}
			a, b := uint64(r.IntN(1000)), uint64(r.IntN(1000))
			e = Entry{Table: "watch", Match: []Match{Masked(r.Uint64(), uint64(r.IntN(1<<12)&r.IntN(1<<12))), Between(min(a, b), max(a, b))}, Priority: int32(1 + r.IntN(5)), Action: "yes"}
			if s.Insert(e) == nil {
				watches = append(watches, e)
			}
		}
		for range 300 {
			dst := uint64(r.Uint32()) & 0xf00000ff
			if k := r.IntN(len(routes)); r.IntN(2) == 0 {
				dst = routes[k].Match[0].Value.Uint64()
			}
			best := -1
			for i, e := range routes {
				m := e.Match[0]
				if (dst^m.Value.Uint64())>>(32-m.Prefix) == 0 && (best < 0 || m.Prefix > routes[best].Match[0].Prefix) {
					best = i
				}
			}
			got := s.Find("route", Uint(dst))
			if (got == nil) != (best < 0) || got != nil && got.Params[0] != routes[best].Params[0] {
				t.Fatalf("seed %d: route of %#x: %v, want entry %d", seed, dst, got, best)
			}
			src, port := uint64(r.IntN(1<<12)), uint64(r.IntN(1000))
			best = -1
			for i, e := range watches {
				if (src^e.Match[0].Value.Uint64())&e.Match[0].To.Uint64() == 0 && port >= e.Match[1].Value.Uint64() && port <= e.Match[1].To.Uint64() &&
					(best < 0 || e.Priority > watches[best].Priority) {
					best = i
				}
			}
			got = s.Find("watch", Uint(src), Uint(port))
			if (got == nil) != (best < 0) || got != nil && got.Key() != watches[best].Key() {
				t.Fatalf("seed %d: %#x, port %d: %v, want entry %d", seed, src, port, got, best)
			}
		}
	}
}
