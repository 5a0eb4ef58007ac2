package sequence

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Tracker counts per exporter. It has one owner and takes no lock.
type Tracker struct {
	cfg      Config
	places   *Places
	room     room
	entries  []entry
	index    []slot                  // open addressing, linear probing, at most half full
	guests   []uint32                // entries of exporters that have not proven themselves
	cursor   int                     // where the next guest is looked for that makes room
	recent   [1 << recentBits]uint32 // entries of the last reports, by a hash that any sender can compute
	own      int64                   // places taken of those that only this tracker has
	proven   int64                   // exporters that are no guests
	key      decode.HashKey
	door     door
	outside  outside
	stats    Stats
	copies   copyRoom
	runs     int  // of numbers that are published of each sequence
	believes bool // exporters count
	reported window.Partial
}

// Stats is the state of a Tracker and what it counted since New.
type Stats struct {
	Exporters int    // known now
	Refused   uint64 // reports of exporters for which there was no place, or that lost it to others
	forgotten uint64 // exporters
	displaced uint64 // of these, those that made room for others before they had proven themselves

	// Unwatched is how many exporters had no place in the last window in which there were such. If More is set it is a
	// lower bound, since a tracker distinguishes only some thousands.
	Unwatched int
	More      bool
}

// space is the identity of a sequence number space, packed for quick comparison. It holds the address in two words,
// then node, hardware id and width of the numbers (0 for reports without one). The lowest bits hold whether no node was
// named, and whether one is optional then. The last word is the destination of the reports.
type space struct{ addr0, addr1, rest, to uint64 }

const (
	anonymous = 1 // no node was named, where one is optional
	unnamed   = 2 // no node was named
)

func newSpace(addr *decode.Addr, to uint64, node uint32, hwID, width uint8) space {
	le := binary.LittleEndian
	return space{le.Uint64(addr[:]), le.Uint64(addr[8:]), uint64(node)<<32 | uint64(hwID)<<16 | uint64(width)<<8, to}
}

// nameless is the space of the reports that belong to the same device and do not name it.
func (sp space) nameless() space {
	sp.rest = sp.rest&0xffff00 | anonymous | unnamed
	return sp
}

func (sp space) isAnonymous() bool { return sp.rest&anonymous != 0 }

func (sp space) width() uint8 { return uint8(sp.rest >> 8) }

func (sp space) addr() (a decode.Addr) {
	binary.LittleEndian.PutUint64(a[:], sp.addr0)
	binary.LittleEndian.PutUint64(a[8:], sp.addr1)
	return a
}

func (sp space) key() inference.ExporterKey {
	return inference.ExporterKey{Addr: sp.addr(), Node: uint32(sp.rest >> 32), HWID: uint8(sp.rest >> 16), Nameless: sp.rest&unnamed != 0}
}

type slot struct {
	space
	entry uint32 // +1; 0 is an empty slot
}

type entry struct {
	space
	reports uint64
	last    int64
	copying
	sequence
	times     uint8 // reports ever, up to 2
	alias     bool  // reports that name no node count here; if the space is anonymous, no node is known yet
	proven    bool  // holds its place; the others are guests
	timed     bool  // upAt and uptime are set
	windows   uint8 // with reports, up to 2
	events    uint64
	malformed uint64
	since     int64  // time of the first report
	recent    uint32 // reports lately, before this window
	waiting   uint16 // reports that wait to be distinguished from copies
	uptime    uint32 // ms since the exporter began, from its datagram that was received at upAt
	upAt      int64
	began     int64 // when it was seen to have begun anew, by its uptime; 0 is never
}

const (
	// An exporter proves itself by reports that span at least provenAfter, in ns, and come in at least provenWindows
	// windows.
	provenAfter   = 1e9
	provenWindows = 2
	// sample is how many guests are compared for the one that makes room.
	sample = 8
)

// New takes the memory that the tracker needs, but for longer records of sequences. cfg must be valid. The seed keeps
// senders from choosing addresses and nodes that collide in the table; results do not depend on it.
func New(cfg Config, seed uint64) *Tracker { return NewShared(cfg, seed, NewPlaces(cfg, 1)) }

// NewShared is New for one of several trackers that share places. Each has room for all of them; memory that it does not
// use is never touched, and so is not taken from the system.
func NewShared(cfg Config, seed uint64, places *Places) *Tracker {
	return &Tracker{
		cfg:     cfg,
		places:  places,
		room:    room{longest: uint32(cfg.longest()), maxGap: uint32(cfg.MaxGap), places: places},
		key:     decode.NewHashKey(seed),
		copies:  newCopyRoom(&cfg, places.trackers),
		outside: outside{most: mostOutside / places.trackers},
		entries: make([]entry, 0, cfg.MaxExporters),
		// An entry has up to two names.
		index: make([]slot, 1<<bits.Len(uint(4*cfg.MaxExporters-1))),
	}
}

// ReportNumbers makes the tracker keep which numbers came in a window, for [Tracker.Numbers]: of each sequence up to so
// many runs. It is called before the first report, for collectors that are some of several. 0 keeps nothing.
func (t *Tracker) ReportNumbers(runs int) { t.runs = runs }

// Believe takes exporters for ones that count from their first number on, so that [Tracker.Numbers] lists one number as
// well. It is called before the first report, where what is tracked is a part of the reports of exporters that are
// known to count.
func (t *Tracker) Believe() { t.believes = true }

// Numbers adds to p the numbers that came in the window that Cut ended last, and those that the run before did not
// account for. It is called once after each Cut.
func (t *Tracker) Numbers(p *window.Partial) {
	for i := range t.reported.Numbers() {
		p.AddNumbers(&t.reported.Numbers()[i])
	}
	for i := range t.reported.Gaps() {
		p.AddGap(&t.reported.Gaps()[i])
	}
}

// Observe counts one report, whether it could be read to its end or not. Reports that have no exporter are passed over.
// None is a copy, since its bytes are not known.
func (t *Tracker) Observe(r *decode.Report) { t.observe(r, 0, false) }

// observe is Observe of a report whose datagram has a sum. A known copy is one by the evidence of its decoder, and has
// the same number as before.
func (t *Tracker) observe(r *decode.Report, sum uint32, knownCopy bool) *entry {
	if r.Has&decode.HasExporter == 0 {
		return nil
	}
	e := t.entryOf(r, &r.Exporter, r.To, r.NodeID, r.HWID, r.Time)
	if e == nil {
		return nil
	}
	e.last = r.Time
	switch numbered := r.FirstOfGroup && r.Has&decode.HasSeq != 0; {
	case knownCopy && (numbered || r.Has&decode.HasSeq == 0):
		e.duplicated++
	case numbered && !knownCopy:
		if r.Format == decode.SFlow && r.Has&decode.HasHeaderTime != 0 && t.beganAnew(e, r, sum) {
			e.verdict = counted
			break
		}
		e.verdict = t.number(e, r.Seq, r.Time, sum, r.HeaderTime)
	}
	if r.Err.Reason == 0 {
		e.reports++
		if r.Kind == decode.KindDrop || r.Kind == decode.KindQueue {
			e.events++
		}
	} else {
		e.malformed++
	}
	return e
}

// ObserveLazy counts one lazy report. It sets Copy of a copy. If r has to wait for other reports to be decided, the
// tracker takes it and sets Waits of the rest in its place. Later [Tracker.Decided] returns it. [Tracker.Decided]
// returns it.
func (t *Tracker) ObserveLazy(r *decode.Lazy) {
	if r.Shape == nil {
		report := r.Report()
		if e := t.observe(report, r.Sum, r.Copy); e != nil && !r.Copy && e.verdict != counted && report.Err.Reason == 0 && report.Has&decode.HasSeq != 0 {
			t.put(e, r)
		}
		return
	}
	common := &r.Shape.Common
	if common.Has&decode.HasExporter == 0 {
		return
	}
	e := t.entryOf(common, &r.Exporter, r.To, r.NodeID, r.HWID, r.Time)
	if e == nil {
		return
	}
	e.last = r.Time
	e.reports++
	if common.FirstOfGroup && common.Has&decode.HasSeq != 0 {
		if e.verdict = t.number(e, r.Seq, r.Time, r.Sum, r.HeaderTime); e.verdict != counted {
			t.put(e, r)
		}
	}
}

// put treats r by the verdict.
func (t *Tracker) put(e *entry, r *decode.Lazy) {
	switch e.verdict {
	case isCopy:
		r.Copy = true
	case isAlike:
		r.Alike = true
	default:
		t.wait(e, r)
	}
}

// entryOf returns the entry that a report counts in, nil if it is refused. Of r it uses the fields that are not
// arguments.
func (t *Tracker) entryOf(r *decode.Report, addr *decode.Addr, to uint64, node uint32, hwID uint8, at int64) *entry {
	var width uint8
	if r.Has&decode.HasSeq != 0 {
		width = min(max(r.SeqBits, 1), 32)
	}
	var sp space
	if r.Has&decode.HasNodeID != 0 {
		sp = newSpace(addr, to, node, hwID, width)
	} else if sp = newSpace(addr, to, 0, hwID, width); r.Version == decode.V05 && width != 0 {
		sp = sp.nameless()
	} else {
		sp.rest |= unnamed
	}
	recent := &t.recent[(sp.addr1>>32+sp.rest+sp.rest>>32)*0x9e3779b97f4a7c15>>(64-recentBits)]
	i := *recent
	if i >= uint32(len(t.entries)) || t.entries[i].space != sp {
		var ok bool
		if i, ok = t.lookup(sp, r.Version == decode.V05, at); !ok {
			t.stats.Refused++
			t.outside.add(sp.exporterHash(&t.key))
			return nil
		}
		*recent = i
	}
	e := &t.entries[i]
	if e.times < 2 {
		e.times++
	}
	return e
}

// recentBits is the binary logarithm of how many entries are found again without a look into the index.
const recentBits = 10

// lookup finds the entry of a space, or makes one. Where nodes are optional, a space without a node shares the entry of
// the first node at its address.
func (t *Tracker) lookup(sp space, optional bool, at int64) (uint32, bool) {
	if s := t.slot(sp); s.entry != 0 {
		return s.entry - 1, true
	}
	optional = optional && !sp.isAnonymous() && sp.width() != 0
	alias := sp.isAnonymous()
	if optional {
		shared := t.slot(sp.nameless()).entry
		if shared != 0 {
			if e := &t.entries[shared-1]; e.isAnonymous() { // the node of these reports shows itself
				e.space = sp
				*t.slot(sp) = slot{sp, shared}
				return shared - 1, true
			}
		}
		alias = shared == 0
	}
	i, knocks, ok := t.admit(sp)
	if !ok {
		return 0, false
	}
	t.outside.drop(sp.exporterHash(&t.key))
	e := &t.entries[i]
	*e = entry{space: sp, sequence: sequence{width: max(sp.width(), 1), seen: t.room.record(), sequenced: t.believes && sp.width() > 0}, alias: alias, since: at, recent: knocks}
	e.index = i
	if t.runs > 0 {
		e.log = newNumberLog(t.runs, 0, t.room.longest)
	}
	t.name(i)
	return i, true
}

// admit finds a place for a newcomer: a free one, or that of a guest.
func (t *Tracker) admit(sp space) (i, knocks uint32, ok bool) {
	if !t.places.claimPlace() {
		if t.own == t.places.reserve {
			return t.displace(sp)
		}
		t.own++
	}
	i = uint32(len(t.entries))
	t.entries = append(t.entries, entry{})
	t.guests = append(t.guests, i)
	return i, 0, true
}

// displace gives a newcomer the place of a guest. Of some guests that it examines, it takes the one that was heard the
// least, if the newcomer knocks more often. Senders that are invented anew for every report, or that take turns,
// displace no exporter that reports more often than each of them.
func (t *Tracker) displace(sp space) (i, knocks uint32, ok bool) {
	if len(t.guests) == 0 {
		return 0, 0, false
	}
	knocks = t.door.knock(sp.hash(&t.key), t.places.trackers)
	weakest, least := uint32(0), knocks
	for k := range min(sample, len(t.guests)) {
		i := t.guests[(t.cursor+k)%len(t.guests)]
		if n := t.entries[i].strength(); n < least {
			weakest, least = i, n
		}
	}
	t.cursor = (t.cursor + sample) % len(t.guests)
	if least == knocks {
		return 0, 0, false
	}
	e := &t.entries[weakest]
	t.stats.Refused += e.reports + e.malformed
	t.stats.forgotten++
	t.stats.displaced++
	t.outside.add(e.exporterHash(&t.key))
	t.decide(e, false)
	t.unname(weakest)
	t.room.giveBack(e.seen)
	return weakest, knocks - 1, true // what it knocks for is counted as a report
}

// strength is how often an exporter was heard lately.
func (e *entry) strength() uint32 { return e.recent + uint32(min(e.reports+e.malformed, 1<<30)) }

// hash hashes a space with a key that senders do not know.
func (sp *space) hash(key *decode.HashKey) uint64 {
	return key.Words(sp.addr0, sp.addr1, sp.rest, sp.to)
}

// exporterHash hashes the exporter of a space, which may have several.
func (sp *space) exporterHash(key *decode.HashKey) uint64 {
	return key.Words(sp.addr0, sp.addr1, sp.rest>>16, 0)
}

// slot finds the place of a space in the index, empty if it is not there.
func (t *Tracker) slot(sp space) *slot {
	mask := uint64(len(t.index) - 1)
	for i := sp.hash(&t.key) & mask; ; i = (i + 1) & mask {
		if s := &t.index[i]; s.entry == 0 || s.space == sp {
			return s
		}
	}
}

// name puts the names of an entry into the index.
func (t *Tracker) name(i uint32) {
	e := &t.entries[i]
	*t.slot(e.space) = slot{e.space, i + 1}
	if e.alias {
		*t.slot(e.nameless()) = slot{e.nameless(), i + 1}
	}
}

// unname takes the names of an entry out of the index.
func (t *Tracker) unname(i uint32) {
	e := &t.entries[i]
	t.remove(e.space)
	if e.alias && !e.isAnonymous() {
		t.remove(e.nameless())
	}
}

// remove takes a space out of the index, and moves the spaces behind it to where they are found.
func (t *Tracker) remove(sp space) {
	mask := uint64(len(t.index) - 1)
	i := sp.hash(&t.key) & mask
	for t.index[i].space != sp || t.index[i].entry == 0 {
		if t.index[i].entry == 0 {
			return
		}
		i = (i + 1) & mask
	}
	for k := (i + 1) & mask; t.index[k].entry != 0; k = (k + 1) & mask {
		if home := t.index[k].hash(&t.key) & mask; (k-home)&mask >= (k-i)&mask {
			t.index[i] = t.index[k]
			i = k
		}
	}
	t.index[i] = slot{}
}

// door counts the reports of exporters without a place: a count-min sketch of two rows, halved now and then.
type door struct {
	rows  [2][]uint8
	since int64
}

const (
	// doorLength is the number of counters in a row of all trackers together.
	doorLength = 1 << 18
	// doorTurn is the time after which the counters are halved, in ns.
	doorTurn = 10e9
)

// knock counts one more of a hash, and returns how many there were lately, or more, where others share all its counters.
func (d *door) knock(hash uint64, trackers int) uint32 {
	if d.rows[0] == nil {
		for i := range d.rows {
			d.rows[i] = make([]uint8, max(doorLength/trackers, 64))
		}
	}
	least := uint8(math.MaxUint8)
	for i, row := range d.rows {
		n := &row[uint32(hash>>(32*i))%uint32(len(row))]
		if *n < math.MaxUint8 {
			*n++
		}
		least = min(least, *n)
	}
	return uint32(least)
}

// turn lets what was long ago count less.
func (d *door) turn(end int64) {
	if d.rows[0] == nil || end-d.since < doorTurn {
		return
	}
	d.since = end
	for _, row := range d.rows {
		for i := range row {
			row[i] /= 2
		}
	}
}

// Cut appends what was counted since the last cut, ordered by address, node and hardware id, and starts the next
// window. Silent exporters are there with no reports until they are forgotten. end is the end of the window, in ns
// since 1970.
func (t *Tracker) Cut(dst []inference.ExporterStats, end int64) []inference.ExporterStats {
	n := len(dst)
	t.DecideAll()
	nearlyFull, full := t.places.nearlyFull(), t.places.left.Load() <= 0
	forgotten := 0
	t.reported.DropAcross()
	for i := range t.entries {
		e := &t.entries[i]
		silent := e.reports == 0 && e.malformed == 0
		// An invented sender must not keep the place of a real one: when places are rare, an exporter that came only
		// once goes first.
		if silent && (end-e.last > int64(t.cfg.ForgetAfter) || nearlyFull && e.times < 2) {
			forgotten++
			if e.proven {
				t.proven--
			}
			t.room.giveBack(e.seen)
			continue
		}
		if e.log != nil {
			e.publish(&t.reported, &e.space, e.reports+e.malformed)
		}
		e.cut(end, &t.room)
		dst = append(dst, inference.ExporterStats{
			ExporterKey: e.key(),
			Reports:     e.reports, Events: e.events, Malformed: e.malformed, Last: e.last, Sequenced: e.sequenced || e.resumed,
			Lost: e.lost, Provisional: uint64(e.provisional), Duplicated: e.duplicated, Reordered: e.reordered,
			Late: e.late, Down: e.down, Restarts: e.restarts,
		})
		t.judge(e, end, full)
		e.recent = e.strength() / 2
		e.counts, e.reports, e.events, e.malformed = counts{}, 0, 0, 0
		if k := i - forgotten; k != i {
			t.entries[k] = *e
			t.entries[k].index = uint32(k)
		}
	}
	if forgotten > 0 {
		clear(t.entries[len(t.entries)-forgotten:])
		t.entries = t.entries[:len(t.entries)-forgotten]
		t.stats.forgotten += uint64(forgotten)
		own := min(t.own, int64(forgotten))
		t.own -= own
		t.places.left.Add(int64(forgotten) - own)
		t.reindex()
	}
	t.guests, t.cursor = t.guests[:0], 0
	for i := range t.entries {
		if !t.entries[i].proven {
			t.guests = append(t.guests, uint32(i))
		}
	}
	t.door.turn(end)
	t.outside.cut()
	slices.SortFunc(dst[n:], func(a, b inference.ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) })
	return merge(dst, n)
}

// judge lets an exporter that has proven itself hold its place. While places are rare, it makes one a guest again that
// has been silent for long.
func (t *Tracker) judge(e *entry, end int64, full bool) {
	if e.reports > 0 {
		e.windows = min(e.windows+1, provenWindows)
	}
	if e.proven {
		if full && end-e.last > max(int64(t.cfg.ForgetAfter)/32, 60e9) {
			e.proven, e.trusted, e.windows = false, false, 0
			t.proven--
		}
		return
	}
	if e.windows < provenWindows || e.last-e.since < provenAfter {
		return
	}
	// The places that a tracker has for itself stay with guests.
	if t.proven >= int64(len(t.entries))-t.own {
		if t.own == 0 || !t.places.claimPlace() {
			return
		}
		t.own--
	}
	e.proven, e.trusted = true, true
	t.proven++
}

// Settle counts all that is provisional as lost at the next cut: after the last report.
func (t *Tracker) Settle() {
	for i := range t.entries {
		t.entries[i].settle()
	}
}

func (t *Tracker) reindex() {
	clear(t.index)
	for i := range t.entries {
		t.name(uint32(i))
	}
}

// Stats returns the state of the tracker.
func (t *Tracker) Stats() Stats {
	s := t.stats
	s.Exporters, s.Unwatched, s.More = len(t.entries), t.outside.last, t.outside.lastMore
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
