package sequence

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Tracker counts per exporter. It has one owner and takes no lock.
type Tracker struct {
	cfg     Config
	places  *Places
	entries []entry
	seen    []uint64 // windows of the entries, in their order, words each
	words   int
	index   []slot // open addressing, linear probing, at most half full
	last    uint32 // entry of the last report
	seed    uint64
	stats   Stats
}

// Stats is the state of a Tracker and what it counted since New.
type Stats struct {
	Exporters int    // known now
	Refused   uint64 // reports of exporters for which there was no place
	Forgotten uint64 // exporters
}

// space is the identity of a sequence number space, packed for quick comparison: the address in two words, then node,
// hardware id, width of the numbers (0 for reports without one) and, in the lowest bit, whether no node was named
// where one is optional.
type space struct{ addr0, addr1, rest uint64 }

const anonymous = 1

func newSpace(addr *decode.Addr, node uint32, hwID, width uint8) space {
	le := binary.LittleEndian
	return space{le.Uint64(addr[:]), le.Uint64(addr[8:]), uint64(node)<<32 | uint64(hwID)<<16 | uint64(width)<<8}
}

// nameless is the space of the reports that belong to the same device and do not name it.
func (sp space) nameless() space {
	sp.rest = sp.rest&0xffff00 | anonymous
	return sp
}

func (sp space) isAnonymous() bool { return sp.rest&anonymous != 0 }

func (sp space) width() uint8 { return uint8(sp.rest >> 8) }

func (sp space) key() (k inference.ExporterKey) {
	binary.LittleEndian.PutUint64(k.Addr[:], sp.addr0)
	binary.LittleEndian.PutUint64(k.Addr[8:], sp.addr1)
	k.Node, k.HWID = uint32(sp.rest>>32), uint8(sp.rest>>16)
	return k
}

type slot struct {
	space
	entry uint32 // +1; 0 is an empty slot
}

type entry struct {
	space
	sequence
	alias     bool  // reports that name no node count here; if the space is anonymous, no node is known yet
	times     uint8 // reports ever, up to 2
	reports   uint64
	events    uint64
	malformed uint64
	last      int64
}

// Places is the number of exporters that several trackers may still take together.
type Places struct {
	all  int64
	left atomic.Int64
}

// NewPlaces makes n places.
func NewPlaces(n int) *Places {
	p := &Places{all: int64(n)}
	p.left.Store(p.all)
	return p
}

// take takes a place, if one is left.
func (p *Places) take() bool {
	if p.left.Add(-1) >= 0 {
		return true
	}
	p.left.Add(1)
	return false
}

// crowded reports whether at most a quarter of the places is left.
func (p *Places) crowded() bool { return p.left.Load() <= p.all/4 }

// New takes all memory that the tracker will use. cfg must be valid. The seed keeps senders from choosing addresses and
// nodes that collide in the table; results do not depend on it.
func New(cfg Config, seed uint64) *Tracker { return NewShared(cfg, seed, NewPlaces(cfg.MaxExporters)) }

// NewShared is New for one of several trackers that share places. Each has room for all of them; memory that it does not
// use is never touched, and so is not taken from the system.
func NewShared(cfg Config, seed uint64, places *Places) *Tracker {
	words := cfg.Window / 64
	return &Tracker{
		cfg:     cfg,
		places:  places,
		seed:    seed,
		entries: make([]entry, 0, cfg.MaxExporters),
		seen:    make([]uint64, cfg.MaxExporters*words),
		words:   words,
		// An entry has up to two names.
		index: make([]slot, 1<<bits.Len(uint(4*cfg.MaxExporters-1))),
	}
}

// Observe counts one report, whether it could be read to its end or not. Reports that have no exporter are passed over.
func (t *Tracker) Observe(r *decode.Report) {
	if r.Has&decode.HasExporter == 0 {
		return
	}
	var width uint8
	if r.Has&decode.HasSeq != 0 {
		width = min(max(r.SeqBits, 1), 32)
	}
	var sp space
	if r.Has&decode.HasNodeID != 0 {
		sp = newSpace(&r.Exporter, r.NodeID, r.HWID, width)
	} else if sp = newSpace(&r.Exporter, 0, r.HWID, width); r.Version == decode.V05 && width != 0 {
		sp = sp.nameless()
	}
	i := t.last
	if i >= uint32(len(t.entries)) || t.entries[i].space != sp {
		var ok bool
		if i, ok = t.lookup(sp, r.Version == decode.V05); !ok {
			t.stats.Refused++
			return
		}
		t.last = i
	}
	e := &t.entries[i]
	e.times = min(e.times+1, 2)
	e.last = r.Time
	if r.Err.Reason == 0 {
		e.reports++
		if r.Kind == decode.KindDrop || r.Kind == decode.KindQueue {
			e.events++
		}
	} else {
		e.malformed++
	}
	if r.FirstOfGroup && width != 0 {
		e.observe(r.Seq, t.window(int(i)), uint32(t.cfg.MaxGap))
	}
}

// lookup finds the entry of a space, or makes one. Where nodes are optional, a space without a node shares the entry of
// the first node at its address.
func (t *Tracker) lookup(sp space, optional bool) (uint32, bool) {
	s := t.slot(sp)
	if s.entry != 0 {
		return s.entry - 1, true
	}
	optional = optional && !sp.isAnonymous() && sp.width() != 0
	shared := uint32(0)
	if optional {
		if shared = t.slot(sp.nameless()).entry; shared != 0 {
			if e := &t.entries[shared-1]; e.isAnonymous() { // the node of these reports shows itself
				e.space = sp
				*s = slot{sp, shared}
				return shared - 1, true
			}
		}
	}
	if !t.places.take() {
		return 0, false
	}
	t.entries = append(t.entries, entry{space: sp, sequence: sequence{width: max(sp.width(), 1)}, alias: sp.isAnonymous()})
	i := len(t.entries) - 1
	clear(t.window(i))
	*s = slot{sp, uint32(i + 1)}
	if optional && shared == 0 {
		t.entries[i].alias = true
		*t.slot(sp.nameless()) = slot{sp.nameless(), uint32(i + 1)}
	}
	return uint32(i), true
}

// window is the bitmap of an entry.
func (t *Tracker) window(i int) []uint64 { return t.seen[i*t.words:][:t.words] }

// slot finds the place of a space in the index, empty if it is not there.
func (t *Tracker) slot(sp space) *slot {
	const m0, m1, m2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3
	hi, lo := bits.Mul64(sp.addr0^m0^t.seed, sp.addr1^m1)
	hi, lo = bits.Mul64(sp.rest^m2, hi^lo^t.seed)
	mask := uint64(len(t.index) - 1)
	for i := (hi ^ lo) & mask; ; i = (i + 1) & mask {
		if s := &t.index[i]; s.entry == 0 || s.space == sp {
			return s
		}
	}
}

// Cut appends what was counted since the last cut, ordered by address, node and hardware id, and starts the next
// window. Silent exporters are there with no reports until they are forgotten. end is the end of the window, in ns
// since 1970.
func (t *Tracker) Cut(dst []inference.ExporterStats, end int64) []inference.ExporterStats {
	n := len(dst)
	crowded := t.places.crowded()
	forgotten := 0
	for i := range t.entries {
		e := &t.entries[i]
		silent := e.reports == 0 && e.malformed == 0
		// An invented sender must not keep the place of a real one: when places are rare, whoever came only once goes
		// first.
		if silent && (end-e.last > int64(t.cfg.ForgetAfter) || crowded && e.times < 2) {
			forgotten++
			continue
		}
		dst = append(dst, inference.ExporterStats{
			ExporterKey: e.key(),
			Reports:     e.reports, Events: e.events, Malformed: e.malformed, Last: e.last, Sequenced: e.sequenced,
			Lost: e.lost, Duplicated: e.duplicated, Reordered: e.reordered, Restarts: e.restarts,
		})
		e.counts, e.reports, e.events, e.malformed = counts{}, 0, 0, 0
		if k := i - forgotten; k != i {
			t.entries[k] = *e
			copy(t.window(k), t.window(i))
		}
	}
	if forgotten > 0 {
		t.entries = t.entries[:len(t.entries)-forgotten]
		t.places.left.Add(int64(forgotten))
		t.stats.Forgotten += uint64(forgotten)
		t.reindex()
	}
	slices.SortFunc(dst[n:], func(a, b inference.ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) })
	return merge(dst, n)
}

func (t *Tracker) reindex() {
	clear(t.index)
	for i := range t.entries {
		e := &t.entries[i]
		*t.slot(e.space) = slot{e.space, uint32(i + 1)}
		if e.alias {
			*t.slot(e.nameless()) = slot{e.nameless(), uint32(i + 1)}
		}
	}
}

// Stats tells the state of the tracker.
func (t *Tracker) Stats() Stats {
	s := t.stats
	s.Exporters = len(t.entries)
	return s
}

// Merge adds up the statistics that several trackers cut for the same window, sorts them as Cut does, and returns the
// result in all's memory. An exporter whose reports reached more than one tracker has gaps in each of them: reports of
// one exporter belong to one tracker.
func Merge(all []inference.ExporterStats) []inference.ExporterStats {
	slices.SortStableFunc(all, func(a, b inference.ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) })
	return merge(all, 0)
}

// merge adds up neighbours with the same key, from index n on. One exporter can have several number spaces, of several
// widths or none.
func merge(s []inference.ExporterStats, n int) []inference.ExporterStats {
	k := n
	for _, x := range s[n:] {
		if k == n || s[k-1].ExporterKey != x.ExporterKey {
			s[k] = x
			k++
			continue
		}
		p := &s[k-1]
		p.Reports += x.Reports
		p.Events += x.Events
		p.Malformed += x.Malformed
		p.Lost += x.Lost
		p.Provisional += x.Provisional
		p.Duplicated += x.Duplicated
		p.Reordered += x.Reordered
		p.Late += x.Late
		p.Down += x.Down
		p.Restarts += x.Restarts
		p.Last = max(p.Last, x.Last)
		p.Sequenced = p.Sequenced || x.Sequenced
	}
	return s[:k]
}
