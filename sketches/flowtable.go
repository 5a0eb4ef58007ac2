package sketches

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// FlowTableConfig bounds a [FlowTable].
type FlowTableConfig struct {
	MemoryBytes int           // of one table, index included; as many entries as fit are kept
	IdleTimeout time.Duration // an entry that was not seen for this long is evicted
}

// Eviction is the reason for which an entry left a [FlowTable].
type Eviction uint8

// The reasons of an eviction.
const (
	EvictedIdle     Eviction = iota // not seen for the idle timeout
	EvictedPressure                 // the table was full
	EvictedDeleted                  // the owner asked
)

func (r Eviction) String() string {
	return [...]string{"idle", "pressure", "deleted"}[min(r, EvictedDeleted)]
}

// FlowTableStats are running totals, but for Entries and Capacity, which are those of now.
type FlowTableStats struct {
	Entries, Capacity int
	Inserted          uint64
	Idle, Pressure    uint64 // evictions by reason
	Refused           uint64 // keys that found no place: a single batch used all entries, or many keys shared a hash
}

// FlowEntry is one slot of a [FlowTable].
type FlowEntry[K comparable, V any] struct {
	Key   K
	Seen  int64 // time of the last look-up that found it
	tag   uint32
	link  uint32 // of a live entry: the batch that used it last; of a free one: the next free slot
	Value V
}

// free is the Seen of a slot without entry. No clock shows it.
const free = math.MinInt64

// FlowTable is a hash table in a fixed amount of memory, made for one entry a flow, with one owner. The hash of a key is
// the caller's: 64 well-mixed bits, the same for equal keys. The table uses the upper 32; use the lower ones to choose
// between tables. It is not safe for concurrent use.
//
// Entries lie in one flat slice and never move, so a slot number stays good until the entry is evicted. If neither key
// nor value holds a pointer, the garbage collector never looks inside. Beside them lies an index of 8-byte cells
// ([SlotIndex]): a look-up reads one cache line of it and then the entry.
//
// The table never takes more memory than it was made with. Its method [FlowTable.Sweep] evicts entries that were not seen
// for the idle time, a few slots a call. If a new key comes and there is no room, the least recently seen of a few
// entries is evicted for it. This is called pressure. Either way the owner is called before the entry is gone. The
// evicted entry need not be the least recently seen of the whole table. An exact order of use costs two more cache
// misses a packet. Redis compares a few entries for the same reason. A flood of flows of one packet evicts mostly
// itself, because entries in use were seen later.
//
// With a million flows a look-up takes two cache misses, and a loop of look-ups waits for each of them. [FlowTable.FindAll]
// takes a batch. It makes all reads of the index first, then all reads of entries, so that the misses overlap.
type FlowTable[K comparable, V any] struct {
	entries []FlowEntry[K, V]
	index   SlotIndex
	evict   func(slot uint32, e *FlowEntry[K, V], why Eviction)
	five    bool // keys are five words
	idle    int64
	batch   uint32
	used    uint32 // slots that were ever in use: the rest is memory that was never touched
	freed   uint32 // first of the list of free slots below used
	live    int
	sweep   uint32 // next slot to look at for idle eviction
	hand    uint32 // next slot to look at for pressure eviction
	touched uint32 // sum of the values read ahead, so that the compiler keeps these reads
	stats   FlowTableStats
}

// NewFlowTable makes an empty table. evict, unless nil, is called before an entry leaves; it must not change the table. All
// memory is requested at once, but the system allocates it page by page, as entries come.
func NewFlowTable[K comparable, V any](cfg FlowTableConfig, evict func(slot uint32, e *FlowEntry[K, V], why Eviction)) (*FlowTable[K, V], error) {
	n := capacity(cfg.MemoryBytes, int(unsafe.Sizeof(FlowEntry[K, V]{})))
	if n < 1 {
		return nil, fmt.Errorf("flow table: %d bytes hold no entry of %d bytes", cfg.MemoryBytes, unsafe.Sizeof(FlowEntry[K, V]{}))
	}
	if evict == nil {
		evict = func(uint32, *FlowEntry[K, V], Eviction) {}
	}
	return &FlowTable[K, V]{
		entries: MakeHuge[FlowEntry[K, V]](n),
		index:   NewSlotIndex(n),
		evict:   evict,
		five:    plainBytes(reflect.TypeFor[K]()) == 5*8,
		idle:    int64(cfg.IdleTimeout),
		freed:   NoSlot,
	}, nil
}

// capacity is the largest number of entries whose memory, with the index, stays within bytes.
func capacity(bytes, entry int) int {
	n := (bytes - 64) / (entry + 12)
	for n > 0 && n*entry+8*SlotCells(n) > bytes {
		n--
	}
	return min(n, math.MaxInt32)
}

// Bytes is the memory of entries and index.
func (t *FlowTable[K, V]) Bytes() int {
	return len(t.entries)*int(unsafe.Sizeof(FlowEntry[K, V]{})) + 8*SlotCells(len(t.entries))
}

// Len is the number of entries, Cap the number that there is room for.
func (t *FlowTable[K, V]) Len() int { return t.live }

// Cap is the number of entries that there is room for.
func (t *FlowTable[K, V]) Cap() int { return len(t.entries) }

// Used is the number of slots that were ever in use. Every entry is in one of them.
func (t *FlowTable[K, V]) Used() int { return int(t.used) }

// FlowTableStats returns what was counted.
func (t *FlowTable[K, V]) Stats() FlowTableStats {
	s := t.stats
	s.Entries, s.Capacity = t.live, len(t.entries)
	return s
}

// At returns the entry of a slot that the table handed out. Its Key must not change.
func (t *FlowTable[K, V]) At(slot uint32) *FlowEntry[K, V] { return &t.entries[slot] }

// Get finds key without marking it as seen; NoSlot if it is not there.
func (t *FlowTable[K, V]) Get(hash uint64, key *K) uint32 {
	tag := SlotTag(hash)
	pos, slot := t.index.Find(tag, -1)
	for slot != NoSlot && !t.same(&t.entries[slot].Key, key) {
		pos, slot = t.index.Find(tag, pos)
	}
	return slot
}

// same reports whether two keys are equal. Keys of five words, such as those of flows, are compared in a fifth of the
// instructions that a call for any type takes.
func (t *FlowTable[K, V]) same(a, b *K) bool {
	if !t.five {
		return *a == *b
	}
	x, y := (*[5]uint64)(unsafe.Pointer(a)), (*[5]uint64)(unsafe.Pointer(b))
	return (x[0]^y[0])|(x[1]^y[1])|(x[2]^y[2])|(x[3]^y[3])|(x[4]^y[4]) == 0
}

// plainBytes returns the size of a type whose values are equal if and only if their bytes are, and 0 of another type.
// Blank fields count as bytes: they are 0, since nothing but unsafe code writes them.
func plainBytes(t reflect.Type) uintptr {
	var fields func(t reflect.Type) uintptr
	fields = func(t reflect.Type) (n uintptr) {
		switch k := t.Kind(); {
		case k >= reflect.Bool && k <= reflect.Uintptr:
			return t.Size()
		case k == reflect.Array:
			return uintptr(t.Len()) * fields(t.Elem())
		case k == reflect.Struct:
			for i := range t.NumField() {
				n += fields(t.Field(i).Type)
			}
		}
		return n
	}
	if n := fields(t); n == t.Size() { // without padding
		return n
	}
	return 0
}

// Find finds key or makes an entry for it, with a zero value. It marks the entry as seen at time now. It returns NoSlot
// only if an adversary makes many keys collide.
func (t *FlowTable[K, V]) Find(hash uint64, key *K, now int64) (slot uint32, inserted bool) {
	t.batch++
	return t.find(hash, key, now)
}

func (t *FlowTable[K, V]) find(hash uint64, key *K, now int64) (slot uint32, inserted bool) {
	if slot = t.Get(hash, key); slot != NoSlot {
		t.use(slot, now)
		return slot, false
	}
	slot = t.insert(hash, key, now)
	return slot, slot != NoSlot
}

func (t *FlowTable[K, V]) use(slot uint32, now int64) {
	e := &t.entries[slot]
	e.Seen = max(e.Seen, now)
	e.link = t.batch
}

// FindAll is Find for a batch: slots[i] becomes the slot of *keys[i]. No entry of the batch is evicted for another one,
// so all slots are good when FindAll returns. A key that finds no place for that reason, or because many keys share its
// hash, gets NoSlot and is counted as refused. The function created, unless nil, is called for each new entry.
func (t *FlowTable[K, V]) FindAll(hashes []uint64, keys []*K, now int64, slots []uint32, created func(i int, slot uint32)) {
	t.batch++
	n := len(hashes)
	keys, slots = keys[:n], slots[:n]
	for i, h := range hashes {
		if slots[i] = t.index.First(SlotTag(h)); slots[i] == NoSlot {
			_, slots[i] = t.index.Find(SlotTag(h), -1)
		}
	}
	var sum uint32
	for _, s := range slots {
		if s != NoSlot {
			sum += t.entries[s].tag
		}
	}
	t.touched = sum
	// Mark what is there before anything is evicted for what is not.
	missing := 0
	for i, s := range slots {
		if s == NoSlot || !t.same(&t.entries[s].Key, keys[i]) {
			if s = t.Get(hashes[i], keys[i]); s == NoSlot {
				slots[i] = NoSlot
				missing++
				continue
			}
			slots[i] = s
		}
		t.use(s, now)
	}
	if missing == 0 {
		return
	}
	for i, s := range slots {
		if s != NoSlot {
			continue
		}
		var isNew bool
		if slots[i], isNew = t.find(hashes[i], keys[i], now); isNew && created != nil {
			created(i, slots[i])
		}
	}
}

// insert makes an entry for a key that has none.
func (t *FlowTable[K, V]) insert(hash uint64, key *K, now int64) uint32 {
	slot := t.freed
	switch {
	case slot != NoSlot:
		t.freed = t.entries[slot].link
	case int(t.used) < len(t.entries):
		slot = t.used
		t.used++
	default:
		if slot = t.victim(); slot == NoSlot {
			t.stats.Refused++
			return NoSlot
		}
		t.stats.Pressure++
		t.remove(slot, EvictedPressure)
		t.freed = t.entries[slot].link
	}
	e := &t.entries[slot]
	tag := SlotTag(hash)
	if !t.index.Insert(tag, slot) {
		e.Seen, e.link = free, t.freed
		t.freed = slot
		t.stats.Refused++
		return NoSlot
	}
	*e = FlowEntry[K, V]{Key: *key, Seen: now, tag: tag, link: t.batch}
	t.live++
	t.stats.Inserted++
	return slot
}

// sample is how many entries are compared under pressure. Their cache misses overlap, so eight cost little more than one.
const sample = 8

// victim returns the least recently seen of the next few entries that the current batch does not use. All slots are
// live when it is called.
func (t *FlowTable[K, V]) victim() uint32 {
	best, oldest := NoSlot, int64(math.MaxInt64)
	seen := 0
	for range t.entries {
		slot := t.hand
		if t.hand++; int(t.hand) == len(t.entries) {
			t.hand = 0
		}
		e := &t.entries[slot]
		if e.link == t.batch {
			continue
		}
		if e.Seen < oldest {
			best, oldest = slot, e.Seen
		}
		if seen++; seen == sample {
			break
		}
	}
	return best
}

// Delete evicts a live slot.
func (t *FlowTable[K, V]) Delete(slot uint32) {
	if t.Live(slot) {
		t.remove(slot, EvictedDeleted)
	}
}

func (t *FlowTable[K, V]) remove(slot uint32, why Eviction) {
	e := &t.entries[slot]
	t.evict(slot, e, why)
	t.index.Delete(e.tag, slot)
	e.Seen, e.link = free, t.freed
	t.freed = slot
	t.live--
}

// Live reports whether a slot holds an entry.
func (t *FlowTable[K, V]) Live(slot uint32) bool {
	return slot < t.used && t.entries[slot].Seen != free
}

// Sweep tests the next n slots, going round the table. It evicts entries that were last seen more than the idle timeout
// before now. It returns the number of evictions. Ten calls in each idle timeout, of a tenth of the slots each, keep
// the table tidy.
func (t *FlowTable[K, V]) Sweep(now int64, n int) (evicted int) {
	for range min(n, int(t.used)) {
		if t.sweep >= t.used {
			t.sweep = 0
		}
		if e := &t.entries[t.sweep]; e.Seen != free && e.Seen < now-t.idle {
			t.remove(t.sweep, EvictedIdle)
			t.stats.Idle++
			evicted++
		}
		t.sweep++
	}
	return evicted
}

// InBatch reports whether the last Find or FindAll used a live slot.
func (t *FlowTable[K, V]) InBatch(slot uint32) bool { return t.entries[slot].link == t.batch }

// All returns the live entries in the order of their slots. The entry that the loop is at may be deleted.
func (t *FlowTable[K, V]) All() iter.Seq2[uint32, *FlowEntry[K, V]] {
	return func(yield func(uint32, *FlowEntry[K, V]) bool) {
		for slot := range t.used {
			if e := &t.entries[slot]; e.Seen != free && !yield(slot, e) {
				return
			}
		}
	}
}
