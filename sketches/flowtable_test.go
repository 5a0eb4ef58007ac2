package sketches

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

func hash(k uint64) uint64 { k *= 0x9e3779b97f4a7c15; k ^= k >> 32; return k * 0xd6e8feb86659fd93 }

// The twin is a map that follows evictions.
func TestFlowTableMatchesMap(t *testing.T) {
	testkit.Long(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		type twin struct {
			slot uint32
			n    int
		}
		want := map[uint64]*twin{}
		lost := ExactCounts[Eviction]{}
		var now int64
		tab, err := NewFlowTable(FlowTableConfig{MemoryBytes: 6000, IdleTimeout: 500}, func(slot uint32, e *FlowEntry[uint64, int], why Eviction) {
			w := want[e.Key]
			if w == nil || w.slot != slot || w.n != e.Value {
				t.Fatalf("seed %d: evicted slot %d %+v, want %+v", seed, slot, *e, w)
			}
			if why == EvictedIdle && e.Seen >= now-500 {
				t.Fatalf("seed %d: evicted as idle at %d: %+v", seed, now, *e)
			}
			lost.Add(why, 1)
			delete(want, e.Key)
		})
		if err != nil {
			t.Fatal(err)
		}
		if tab.Bytes() > 6000 {
			t.Fatalf("%d bytes", tab.Bytes())
		}
		var slots [64]uint32
		for range 20000 {
			now += int64(r.IntN(20) * r.IntN(20))
			switch r.IntN(4) {
			case 0:
				tab.Sweep(now, r.IntN(20))
			case 1:
				if tab.Len() > 0 {
					for slot, e := range tab.All() {
						if r.IntN(10) == 0 {
							_ = e
							tab.Delete(slot)
							break
						}
					}
				}
			default:
				n := 1 + r.IntN(len(slots))
				keys, hashes := make([]uint64, n), make([]uint64, n)
				for i := range keys {
					keys[i] = uint64(r.IntN(1 + r.IntN(400)))
					hashes[i] = hash(keys[i]) & (0x7<<61 | 0xffff) // collide
				}
				tab.FindAll(hashes, pointers(keys), now, slots[:n], func(i int, slot uint32) { want[keys[i]] = &twin{slot: slot} })
				for i, slot := range slots[:n] {
					if w := want[keys[i]]; w == nil || slot == NoSlot || tab.At(slot).Key != keys[i] || w.slot != slot {
						t.Fatalf("seed %d: key %d at slot %d, want %+v", seed, keys[i], slot, w)
					}
					want[keys[i]].n++
					tab.At(slot).Value++
				}
			}
			if tab.Len() != len(want) {
				t.Fatalf("seed %d: %d entries, want %d", seed, tab.Len(), len(want))
			}
		}
		s := tab.Stats()
		if s.Idle != lost[EvictedIdle] || s.Pressure != lost[EvictedPressure] || s.Refused != 0 || lost[EvictedIdle] == 0 || lost[EvictedPressure] == 0 {
			t.Errorf("seed %d: %+v, want %v", seed, s, lost)
		}
		for k, w := range want {
			if slot := tab.Get(hash(k)&(0x7<<61|0xffff), &k); slot != w.slot {
				t.Errorf("seed %d: key %d at slot %d, want %d", seed, k, slot, w.slot)
			}
		}
	}
}

func newTable[V any](t testing.TB, memory int, evict func(uint32, *FlowEntry[uint64, V], Eviction)) *FlowTable[uint64, V] {
	tab, err := NewFlowTable(FlowTableConfig{MemoryBytes: memory, IdleTimeout: 100}, evict)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// For any budget and entry size: what is allocated stays within the budget, and one entry more would not.
func TestMemoryBudget(t *testing.T) {
	for budget := 64; budget < 1<<20; budget += 1 + budget/7 {
		for _, size := range []int{8, 24, 64, 1200} {
			n := capacity(budget, size)
			if n < 0 || n > 0 && n*size+8*SlotCells(n) > budget {
				t.Fatalf("capacity(%d, %d) = %d takes %d bytes", budget, size, n, n*size+8*SlotCells(n))
			}
			if more := n + 1; more*size+8*SlotCells(more) <= budget-64 {
				t.Fatalf("capacity(%d, %d) = %d, but %d fit", budget, size, n, more)
			}
		}
	}
	if _, err := NewFlowTable[uint64, [4096]byte](FlowTableConfig{MemoryBytes: 4096, IdleTimeout: 1}, nil); err == nil {
		t.Error("a table without room for one entry is accepted")
	}
	tab := newTable[[100]byte](t, 1<<20, nil)
	before := testing.AllocsPerRun(1, func() {})
	n := testing.AllocsPerRun(20_000, func() { // fills, and then evicts
		k := tab.Stats().Inserted
		tab.Find(hash(k), &k, int64(k))
	})
	if n != before || tab.Stats().Pressure == 0 {
		t.Errorf("%v allocations a new key, %+v", n, tab.Stats())
	}
}

// Keys of one batch do not evict each other, whatever their times; what finds no place is refused and counted.
func TestBatchKeepsItsEntries(t *testing.T) {
	tab := newTable[int](t, 4000, nil)
	n := tab.Cap()
	keys, hashes, slots := make([]uint64, 2*n), make([]uint64, 2*n), make([]uint32, 2*n)
	for round := range 5 {
		for i := range keys {
			keys[i] = uint64(round*n/2 + i)
			hashes[i] = hash(keys[i])
		}
		half := n / 2
		tab.FindAll(hashes[:half], pointers(keys[:half]), int64(-round), slots[:half], nil) // time runs backwards
		seen := map[uint32]bool{}
		for i, s := range slots[:half] {
			if s == NoSlot || seen[s] || tab.At(s).Key != keys[i] {
				t.Fatalf("round %d: key %d at slot %d", round, keys[i], s)
			}
			seen[s] = true
		}
	}
	refused := tab.Stats().Refused
	created := 0
	tab.FindAll(hashes, pointers(keys), 1, slots, func(i int, slot uint32) { created++ })
	none := 0
	for i, s := range slots {
		if s == NoSlot {
			none++
		} else if tab.At(s).Key != keys[i] {
			t.Fatalf("key %d at slot %d, where %d is", keys[i], s, tab.At(s).Key)
		}
	}
	if got := tab.Stats().Refused - refused; refused != 0 || none != n || got != uint64(none) || tab.Len() != n {
		t.Errorf("%d keys in a table of %d: %d without a slot, %d refused, %d before", 2*n, n, none, got, refused)
	}
	if created > n {
		t.Errorf("%d created", created)
	}
}

// The same key twice in a batch, new and known, has the same slot.
func TestBatchWithRepeatedKeys(t *testing.T) {
	tab := newTable[int](t, 4000, nil)
	keys := []uint64{1, 2, 1, 1, 3, 2}
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = hash(k)
	}
	slots := make([]uint32, len(keys))
	for range 2 {
		created := 0
		tab.FindAll(hashes, pointers(keys), 1, slots, func(i int, slot uint32) { created++ })
		if slots[0] != slots[2] || slots[0] != slots[3] || slots[1] != slots[5] || slots[0] == slots[1] {
			t.Errorf("slots of %v are %v", keys, slots)
		}
		if tab.Len() != 3 || created != 0 && created != 3 {
			t.Errorf("%d entries, %d created, want 3", tab.Len(), created)
		}
	}
}

// A flood of keys that come once evicts its own and leaves those in use.
func TestPressureSparesWhatIsInUse(t *testing.T) {
	tab := newTable[int](t, 64<<10, nil)
	used := tab.Cap() / 4
	now, next := int64(0), uint64(1<<32)
	for range 40 * tab.Cap() {
		now++
		if now%2 == 0 {
			k := uint64(now/2) % uint64(used)
			tab.Find(hash(k), &k, now)
		} else {
			next++
			tab.Find(hash(next), &next, now)
		}
	}
	kept := 0
	for k := range uint64(used) {
		if s := tab.Get(hash(k), &k); s != NoSlot && tab.At(s).Seen > now-int64(3*used) {
			kept++
		}
	}
	// Each of them is seen every 2·used steps. The hand passes an entry every Cap/8 new keys, that is Cap/4 = used steps,
	// and takes the oldest of eight.
	if kept < used*98/100 {
		t.Errorf("%d of %d flows in use are in the table", kept, used)
	}
}

func TestSweep(t *testing.T) {
	var gone []uint64
	tab := newTable(t, 64<<10, func(slot uint32, e *FlowEntry[uint64, int], why Eviction) {
		if why != EvictedIdle {
			t.Errorf("evicted by %v", why)
		}
		gone = append(gone, e.Key)
	})
	for k := range uint64(100) {
		tab.Find(hash(k), &k, int64(k))
	}
	for range 10 { // ten slots a call: one round
		tab.Sweep(150, 10)
	}
	if len(gone) != 50 || gone[0] != 0 || gone[49] != 49 || tab.Len() != 50 {
		t.Errorf("swept %v", gone)
	}
	if n := tab.Sweep(1000, 1000); n != 50 || tab.Len() != 0 || tab.Stats().Idle != 100 {
		t.Errorf("swept %d, %+v", n, tab.Stats())
	}
	for range tab.All() {
		t.Error("an empty table has entries")
	}
	k := uint64(7)
	if s, inserted := tab.Find(hash(k), &k, 0); !inserted || *tab.At(s) != (FlowEntry[uint64, int]{Key: 7, tag: tab.At(s).tag, link: tab.At(s).link}) {
		t.Errorf("a slot that was used before holds %+v", *tab.At(s))
	}
}

// Keys that share a hash fill their part of the index and no more: further ones are refused, and all others go on.
func TestOneHash(t *testing.T) {
	tb, err := NewFlowTable[uint64, int](FlowTableConfig{MemoryBytes: 1 << 20, IdleTimeout: 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for k := range uint64(5000) {
		if slot, _ := tb.Find(1<<63, &k, 1); slot != NoSlot {
			kept++
		}
	}
	if kept != SlotReach || tb.Len() != kept || tb.Stats().Refused != 5000-uint64(kept) {
		t.Errorf("%d keys kept, %d entries, %+v", kept, tb.Len(), tb.Stats())
	}
	for k := range uint64(1000) {
		k += 1 << 32
		if slot, inserted := tb.Find(k*0x9e3779b97f4a7c15>>1, &k, 2); slot == NoSlot || !inserted {
			t.Fatalf("key %d found no place", k)
		}
	}
}

// pointers returns the addresses of the elements of list.
func pointers[T any](list []T) []*T {
	p := make([]*T, len(list))
	for i := range list {
		p[i] = &list[i]
	}
	return p
}

func TestPlainBytes(t *testing.T) {
	type blank struct {
		a [3]uint16
		_ uint16
	}
	type padded struct {
		a uint64
		b uint8
	}
	for _, x := range []struct {
		of   reflect.Type
		want uintptr
	}{
		{reflect.TypeFor[uint64](), 8},
		{reflect.TypeOf(blank{a: [3]uint16{1}}), 8},
		{reflect.TypeFor[[5]blank](), 40},
		{reflect.TypeOf(padded{a: 1, b: 2}), 0},
		{reflect.TypeFor[[5]float64](), 0}, // 0 is equal to -0
		{reflect.TypeFor[string](), 0},
		{reflect.TypeFor[[5]*int](), 0},
	} {
		if got := plainBytes(x.of); got != x.want {
			t.Errorf("%v: %d, want %d", x.of, got, x.want)
		}
	}
}

// Keys of five words are found by all their bytes.
func TestFlowTableFive(t *testing.T) {
	table, err := NewFlowTable[[5]uint64, int](FlowTableConfig{MemoryBytes: 1 << 16}, nil)
	if err != nil || !table.five {
		t.Fatal(err, table)
	}
	const hash = 1 << 40 // of all
	var slots []uint32
	for i := range 41 {
		var key [5]uint64
		if i > 0 {
			key[(i-1)/8] = 1 << (8 * ((i - 1) % 8))
		}
		slot, isNew := table.Find(hash, &key, 1)
		if !isNew || slices.Contains(slots, slot) {
			t.Fatalf("key %d is that of slot %d", i, slot)
		}
		slots = append(slots, slot)
		if again := table.Get(hash, &key); again != slot {
			t.Errorf("key %d: slot %d, want %d", i, again, slot)
		}
	}
}
