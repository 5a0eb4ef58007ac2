package ipfix

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Limits bound the state of exporters, for any traffic.
type Limits struct {
	Exporters int           // addresses with ports
	Templates int           // of all exporters together
	Elements  int           // of all templates together
	Parked    int           // data sets that wait for a template, of one exporter
	Bytes     int           // of those of all exporters together
	ParkedFor time.Duration // how long a data set waits
}

// DefaultLimits are room for a large network, in about 100 MB at most.
func DefaultLimits() Limits {
	return Limits{Exporters: 10_000, Templates: 10_000, Elements: 1 << 20, Parked: 64, Bytes: 64 << 20, ParkedFor: 30 * time.Minute}
}

const (
	// idleFor is how long an exporter with templates is silent, or a template not used, before another one may have
	// its place.
	idleFor = int64(time.Hour)
	// looked is the number of candidates for removal.
	looked = 8
	// newFor is how long a template that no record used has its place.
	newFor = int64(time.Minute)
	// mostRates bounds the samplers of a domain whose rates are kept.
	mostRates = 256
	// mostDomains bounds the domains of an exporter that are followed.
	mostDomains = 1024
	// mostCounted bounds the templates of an exporter whose records are counted by themselves.
	mostCounted = 256
)

// Source is the sender of messages: templates belong to an address and a port.
type Source struct {
	Addr decode.Addr
	Port uint16
}

// Store is the state of all exporters. Any number of goroutines may use it. A message locks its exporter alone.
type Store struct {
	limits  Limits
	options Options

	mu       sync.Mutex
	sessions map[Source]*Session
	owners   map[owner]*domain // of the numbers under a hardware id of an address

	epoch                       atomic.Uint64 // changes when a session is gone
	templates, elements, parked atomic.Int64
	changed                     atomic.Uint64 // templates that came, changed or left
	fresh                       chan struct{} // holds one when a template came or changed
	learned                     []Named       // guarded by mu
	names                       int           // that were learned in all
	refused                     atomic.Uint64 // templates and exporters for which there was no room
	evicted                     atomic.Uint64
	expired                     atomic.Uint64 // data sets that waited in vain
	parkedEvicted               atomic.Uint64 // of these, those that left for want of room
}

type owner struct {
	addr decode.Addr
	hwID uint8
}

// NewStore makes a store without exporters.
func NewStore(l Limits, o Options) *Store {
	return &Store{limits: l, options: o, sessions: map[Source]*Session{}, owners: map[owner]*domain{}, fresh: make(chan struct{}, 1)}
}

// Session is the state of one exporter. Its lock is held while a message is read.
type Session struct {
	sync.Mutex
	Source Source

	store     *Store
	templates map[templateKey]*Template
	domains   map[domainKey]*domain
	asked     struct { // of the domains, the one that was asked for last
		key    domainKey
		domain *domain
	}
	parked   []parkedSet
	last     int64 // when a message came, ns since 1970
	gone     bool
	elements int // of its templates
	counts   map[templateKey]*count
	delays   map[[2]uint32]*DelayStats
	learned  map[uint64]string // names of interfaces and reasons that were learned
	rate     uint32            // of samples without another source of it; 0 without a setting
	waiting  uint64            // data sets that came before their template, ever
	past     *past             // nil until a message with records came
	recent   struct {
		key templateKey
		t   *Template
	}
}

type templateKey struct {
	version, id uint16
	domain      uint32
}

type domainKey struct {
	version uint16
	domain  uint32
}

type count struct {
	records uint64
	kind    Kind
}

// parkedSet is a data set that waits for its template.
type parkedSet struct {
	key   templateKey
	since int64
	data  []byte
}

// Epoch changes when sessions that Session returned are no longer to be used.
func (st *Store) Epoch() uint64 { return st.epoch.Load() }

// Session returns the session of a source, nil if there is no room for another one. A caller keeps it until Epoch
// changes.
func (st *Store) Session(src Source, now int64) *Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.sessions[src]
	if s != nil {
		return s
	}
	if len(st.sessions) >= st.limits.Exporters && !st.forget(now) {
		st.refused.Add(1)
		return nil
	}
	s = &Session{Source: src, store: st, templates: map[templateKey]*Template{}, domains: map[domainKey]*domain{}, last: now, rate: st.options.rate(src.Addr)}
	st.sessions[src] = s
	return s
}

// forget makes room for a session. Of some candidates it removes the one that is silent for longest, if that has no
// template or is silent for longer than idleFor.
func (st *Store) forget(now int64) bool {
	var oldest *Session
	n := 0
	for _, s := range st.sessions {
		if s.TryLock() {
			if (len(s.templates) == 0 || now-s.last > idleFor) && (oldest == nil || s.last < oldest.last) {
				oldest = s
			}
			s.Unlock()
		}
		if n++; n == looked {
			break
		}
	}
	if oldest == nil || !oldest.TryLock() {
		return false
	}
	defer oldest.Unlock()
	oldest.drop()
	delete(st.sessions, oldest.Source)
	st.evicted.Add(1)
	st.epoch.Add(1)
	return true
}

// drop empties a session that is no longer used.
func (s *Session) drop() {
	for k, t := range s.templates {
		s.remove(k, t)
	}
	for _, p := range s.parked {
		s.store.parked.Add(-int64(len(p.data)))
	}
	for k, d := range s.domains {
		if o := (owner{s.Source.Addr, uint8(k.domain)}); s.store.owners[o] == d {
			delete(s.store.owners, o)
		}
	}
	s.parked, s.gone = nil, true
}

func (s *Session) remove(k templateKey, t *Template) {
	delete(s.templates, k)
	s.elements -= len(t.Fields)
	s.store.templates.Add(-1)
	s.store.elements.Add(-int64(len(t.Fields)))
	s.store.changed.Add(1)
	s.recent.t = nil
}

// Begin locks the session for a message that arrived at now, in ns since 1970. It returns false if the session was
// removed.
func (s *Session) Begin(now int64) bool {
	s.Lock()
	if s.gone {
		s.Unlock()
		return false
	}
	s.last = now
	return true
}

// Template returns the template of a data set, nil if it did not come yet.
func (s *Session) Template(m *Message, id uint16) *Template {
	k := templateKey{m.Version, id, m.Domain}
	if s.recent.t == nil || s.recent.key != k {
		s.recent.key, s.recent.t = k, s.templates[k]
	}
	if s.recent.t != nil {
		s.recent.t.used = s.last
	}
	return s.recent.t
}

// Empty reports whether no template of the exporter is known.
func (s *Session) Empty() bool { return len(s.templates) == 0 }

// Define records a definition. It returns the template if it is new or has changed.
func (s *Session) Define(m *Message, d *Definition) (t *Template, e decode.Error) {
	k := templateKey{m.Version, d.ID, m.Domain}
	old := s.templates[k]
	switch {
	case d.Fields == 0 && m.Version == V10:
		s.withdraw(k, d.Options)
		return nil, e
	case old != nil && (old.Scopes > 0) == d.Options && bytes.Equal(old.raw, d.Raw):
		return nil, e
	}
	fail := func(field string, reason decode.Reason) (*Template, decode.Error) {
		return nil, decode.Error{Format: m.Format(), Field: field, Offset: d.At, Reason: reason}
	}
	if old != nil {
		s.remove(k, old)
	}
	if !s.room(d.Fields) {
		s.store.refused.Add(1)
		return fail("field_count", decode.Unsupported)
	}
	if t = compile(m.Version, m.Domain, d, &s.store.options); t == nil {
		return fail("field_count", decode.BadCount)
	}
	s.put(k, t)
	return t, e
}

func (s *Session) put(k templateKey, t *Template) {
	s.templates[k] = t
	s.elements += len(t.Fields)
	t.used = s.last - idleFor + newFor
	s.store.templates.Add(1)
	s.store.elements.Add(int64(len(t.Fields)))
	s.store.changed.Add(1)
	s.recent.t = nil
	select {
	case s.store.fresh <- struct{}{}:
	default: // there is one that was not taken
	}
}

// withdraw removes templates: one, or with the number of a set all templates of the domain from such sets.
func (s *Session) withdraw(k templateKey, options bool) {
	for other, t := range s.templates {
		if other == k || k.id < 256 && other.version == k.version && other.domain == k.domain && (t.Scopes > 0) == options {
			s.remove(other, t)
		}
	}
}

// room makes room for a template of so many elements. If the store is full, an exporter with more than its share
// loses one of its own templates. Else another exporter loses a template that was not used for idleFor. Templates in
// use stay, and the newcomer is refused.
func (s *Session) room(elements int) bool {
	st := s.store
	for st.templates.Load() >= int64(st.limits.Templates) || st.elements.Load()+int64(elements) > int64(st.limits.Elements) {
		n := max(st.count(), 1)
		share := len(s.templates) >= max(st.limits.Templates/n, 1) || s.elements > st.limits.Elements/n
		if !(share && s.evict(s.last, true) || st.evict(s)) {
			return false
		}
		st.evicted.Add(1)
	}
	return true
}

// evict removes the least used of some candidate templates, if that was not used for idleFor or anyOne is set.
func (s *Session) evict(now int64, anyOne bool) bool {
	var key templateKey
	var least *Template
	n := 0
	for k, t := range s.templates {
		if least == nil || t.used < least.used {
			key, least = k, t
		}
		if n++; n == looked {
			break
		}
	}
	if least == nil || !anyOne && now-least.used < idleFor {
		return false
	}
	s.remove(key, least)
	return true
}

// evict removes a template of one of some sessions other than beside.
func (st *Store) evict(beside *Session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := 0
	for _, s := range st.sessions {
		if s != beside && s.TryLock() {
			done := s.evict(beside.last, false)
			if s.Unlock(); done {
				return true
			}
		}
		if n++; n == looked {
			break
		}
	}
	return false
}

func (st *Store) count() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.sessions)
}

// Park keeps a data set until its template comes. Of an exporter that has too many, the oldest one leaves.
func (s *Session) Park(m *Message, set *Set, now int64) {
	st := s.store
	s.waiting++
	s.expire(now)
	for len(s.parked) > 0 && (len(s.parked) >= st.limits.Parked || st.parked.Load()+int64(len(set.Data)) > int64(st.limits.Bytes)) {
		s.unpark(0)
		st.expired.Add(1)
		st.parkedEvicted.Add(1)
	}
	if st.limits.Parked == 0 || st.parked.Load()+int64(len(set.Data)) > int64(st.limits.Bytes) {
		st.expired.Add(1)
		st.parkedEvicted.Add(1)
		return
	}
	st.parked.Add(int64(len(set.Data)))
	s.parked = append(s.parked, parkedSet{templateKey{m.Version, set.ID, m.Domain}, now, bytes.Clone(set.Data)})
}

func (s *Session) unpark(i int) {
	s.store.parked.Add(-int64(len(s.parked[i].data)))
	s.parked = slices.Delete(s.parked, i, i+1)
}

// expire removes data that waited for too long.
func (s *Session) expire(now int64) {
	for len(s.parked) > 0 && now-s.parked[0].since > int64(s.store.limits.ParkedFor) {
		s.unpark(0)
		s.store.expired.Add(1)
	}
}

// Release calls f for each set that waited for t, in the order in which they came.
func (s *Session) Release(t *Template, now int64, f func(set *Set)) {
	s.expire(now)
	k := templateKey{t.Version, t.ID, t.Domain}
	for i := 0; i < len(s.parked); {
		if s.parked[i].key != k {
			i++
			continue
		}
		set := Set{ID: t.ID, Data: s.parked[i].data}
		s.unpark(i)
		f(&set)
	}
}

// Count counts records of a template.
func (s *Session) Count(t *Template, records uint32) {
	k := templateKey{t.Version, t.ID, t.Domain}
	c := s.counts[k]
	if c == nil {
		if len(s.counts) >= mostCounted {
			return
		}
		if s.counts == nil {
			s.counts = map[templateKey]*count{}
		}
		c = &count{}
		s.counts[k] = c
	}
	c.kind = t.View.Kind
	c.records += uint64(records)
}

// Numbers returns the sequence numbers of a message's records, and whether the message is a copy. Its bytes are data,
// and it arrived at now, in ns since 1970. A copy has the numbers of the original, and nothing of it is to be
// counted. For every other message, End is called after the last record.
func (s *Session) Numbers(m *Message, data []byte, now int64) (n Numbered, twice Twice) {
	d := s.domain(m)
	i, twice := s.twice(m, d, data, now)
	switch {
	case twice == Copy:
		return s.past.list[i].Numbered, twice
	case d != nil:
		n = s.numbers(m, d)
	}
	if i >= 0 {
		s.past.list[i].Numbered = n
	}
	return n, twice
}

// numbers is Numbers of a message that is no copy: see [domain.number].
func (s *Session) numbers(m *Message, d *domain) (n Numbered) {
	first, records, message := d.number(m.Seq)
	if !records && !message {
		return n
	}
	if !d.owner {
		d.owner = s.store.own(owner{s.Source.Addr, uint8(m.Domain)}, d)
	}
	return Numbered{first, records && d.owner, message && d.owner}
}

// own reports whether the numbers of d are those that are reported under a hardware id.
func (st *Store) own(o owner, d *domain) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.owners[o] == nil {
		st.owners[o] = d
	}
	return st.owners[o] == d
}

// End ends a message of so many records and fields. With unknown, further records could not be counted.
func (s *Session) End(m *Message, records, fields uint32, unknown bool) {
	if d := s.domain(m); d != nil {
		d.end(records, fields, unknown)
	}
}

func (s *Session) domain(m *Message) *domain {
	k := domainKey{m.Version, m.Domain}
	if s.asked.domain != nil && s.asked.key == k { // nearly always
		return s.asked.domain
	}
	d := s.domains[k]
	if d == nil && len(s.domains) < mostDomains {
		d = &domain{}
		s.domains[k] = d
	}
	s.asked.key, s.asked.domain = k, d
	return d
}

// SetRate keeps the sampling rate of a sampler of the message's domain; sampler 0 is that of records that name none.
func (s *Session) SetRate(m *Message, sampler uint64, rate uint32) {
	d := s.domain(m)
	if d == nil {
		return
	}
	if d.rates == nil {
		d.rates = map[uint64]uint32{}
	}
	if _, ok := d.rates[sampler]; ok || len(d.rates) < mostRates {
		d.rates[sampler] = rate
	}
}

// Rate returns the sampling rate of a sampler, or of all records of a template, 1 if it is unknown. A record that
// names no sampler is of the only known one.
func (s *Session) Rate(m *Message, sampler uint64, template uint16) uint32 {
	d := s.domain(m)
	if d == nil || len(d.rates) == 0 {
		return max(s.rate, 1)
	}
	for _, k := range [...]uint64{sampler, SamplerOf(template), 0} {
		if r, ok := d.rates[k]; ok {
			return max(r, 1)
		}
	}
	if sampler == 0 && len(d.rates) == 1 {
		for k, r := range d.rates {
			if k>>63 == 0 {
				return max(r, 1)
			}
		}
	}
	return max(s.rate, 1)
}

// DefaultRate is the exporter's sampling rate by the settings, 1 without one.
func (s *Session) DefaultRate() uint32 { return max(s.rate, 1) }

// Figures holds the counts of a store.
type Figures struct {
	Exporters, Templates, Waiting     int    // now; data sets that wait
	Refused, Evicted, Expired, Parked uint64 // ever; data sets that came before their template are parked
	ParkedEvicted                     uint64 // ever; those of Expired that left for want of room, before their time
}

// Status is the status of one exporter.
type Status struct {
	Source    Source
	Templates int
	Waiting   []Waiting // for templates
	Tallies   []Tally
	Delays    []DelayStats
	Last      int64 // when a message came, ns since 1970
}

// Waiting is a template that data sets wait for.
type Waiting struct {
	Version, ID uint16
	Domain      uint32
	Sets        int
	Since       int64
}

// Tally counts the records of a template, and states their kind.
type Tally struct {
	Version, ID uint16
	Domain      uint32
	Kind        Kind
	Records     uint64
}

// Named is a name that an exporter reports: that of an interface, or of a reason for which it drops packets.
type Named struct {
	Addr   decode.Addr
	Node   uint32
	Index  uint32 // of the interface
	Name   string // of it; empty for a reason
	Reason uint8
	Why    string // the name of the reason; empty for an interface
}

const (
	// mostNames bounds the names that are reported, and mostLearned those of one exporter.
	mostNames   = 1 << 16
	mostLearned = 1 << 12
	// longest is the longest name that is kept.
	longest = 64
)

// Learn keeps the name of an interface of a node, for Learned, if it is new or another than before.
func (s *Session) Learn(node, index uint32, name []byte) {
	name = bytes.TrimRight(name, "\x00 ")
	if name = name[:min(len(name), longest)]; len(name) > 0 {
		s.learn(uint64(node)<<32|uint64(index), name, "")
	}
}

// LearnReason records the name of a node's drop reason for Learned. It calls why if the reason is new.
func (s *Session) LearnReason(node uint32, reason uint8, why func(uint8) string) {
	k := uint64(node)<<32 | 1<<31 | uint64(reason)
	if _, ok := s.learned[k]; !ok {
		s.learn(k, nil, why(reason))
	}
}

func (s *Session) learn(k uint64, name []byte, why string) {
	if old, ok := s.learned[k]; ok && old == string(name) || !ok && len(s.learned) >= mostLearned {
		return
	}
	if s.learned == nil {
		s.learned = map[uint64]string{}
	}
	s.learned[k] = string(name)
	x := Named{Addr: s.Source.Addr, Node: uint32(k >> 32), Index: uint32(k) &^ (1 << 31), Name: s.learned[k], Why: why}
	if why != "" {
		x.Index, x.Reason = 0, uint8(k)
	}
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.names++; st.names <= mostNames {
		st.learned = append(st.learned, x)
	}
}

// Learned returns the names that exporters reported since the last call.
func (st *Store) Learned() (list []Named) {
	st.mu.Lock()
	defer st.mu.Unlock()
	list, st.learned = st.learned, nil
	return list
}

// DelayStats holds the reported delays on the path to a node, by the interfaces of packets there.
type DelayStats struct {
	Ingress, Egress uint32 // ifIndex; 0 is none
	Records         uint64
	Packets         uint64 // that the means are of
	Last            int64  // when the last record came, ns since 1970
	Min, Max        uint64 // ns
	Mean            float64
	weight          float64
}

// mostDelays bounds the pairs of interfaces of an exporter whose delays are kept.
const mostDelays = 256

// AddDelay adds up delays of packets that went through two interfaces.
func (s *Session) AddDelay(ingress, egress uint32, d *decode.PathDelay) {
	k := [2]uint32{ingress, egress}
	x := s.delays[k]
	if x == nil {
		if len(s.delays) >= mostDelays {
			return
		}
		if s.delays == nil {
			s.delays = map[[2]uint32]*DelayStats{}
		}
		x = &DelayStats{Ingress: ingress, Egress: egress, Min: ^uint64(0)}
		s.delays[k] = x
	}
	x.Records++
	x.Last = s.last
	x.Packets += d.Packets
	add := func(has decode.DelayField, v uint64) {
		if d.Has&has != 0 {
			x.Min, x.Max = min(x.Min, v), max(x.Max, v)
		}
	}
	add(decode.DelayMin, d.Min)
	add(decode.DelayMax, d.Max)
	if add(decode.DelayMean, d.Mean); d.Has&decode.DelayMean != 0 {
		w := float64(max(d.Packets, 1))
		x.weight += w
		x.Mean += (float64(d.Mean) - x.Mean) * w / x.weight
	}
}

// Figures returns the counters of the store.
func (st *Store) Figures() (f Figures) {
	f.Exporters, f.Templates = st.count(), int(st.templates.Load())
	f.Refused, f.Evicted, f.Expired = st.refused.Load(), st.evicted.Load(), st.expired.Load()
	f.ParkedEvicted = st.parkedEvicted.Load()
	for _, s := range st.list() {
		s.Lock()
		f.Waiting += len(s.parked)
		f.Parked += s.waiting
		s.Unlock()
	}
	return f
}

// list returns all sessions.
func (st *Store) list() (list []*Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.sessions {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Session) int {
		return cmp.Or(bytes.Compare(a.Source.Addr[:], b.Source.Addr[:]), cmp.Compare(a.Source.Port, b.Source.Port))
	})
	return list
}

// Status returns the state of each exporter, by address and port.
func (st *Store) Status() (all []Status) {
	for _, s := range st.list() {
		s.Lock()
		x := Status{Source: s.Source, Templates: len(s.templates), Last: s.last}
		for _, d := range s.delays {
			if x.Delays = append(x.Delays, *d); d.Min > d.Max {
				x.Delays[len(x.Delays)-1].Min = 0
			}
		}
		for _, p := range s.parked {
			w := Waiting{Version: p.key.version, ID: p.key.id, Domain: p.key.domain, Sets: 1, Since: p.since}
			if i := slices.IndexFunc(x.Waiting, func(o Waiting) bool { return o.Version == w.Version && o.ID == w.ID && o.Domain == w.Domain }); i >= 0 {
				x.Waiting[i].Sets++
			} else {
				x.Waiting = append(x.Waiting, w)
			}
		}
		for k, c := range s.counts {
			x.Tallies = append(x.Tallies, Tally{k.version, k.id, k.domain, c.kind, c.records})
		}
		s.Unlock()
		slices.SortFunc(x.Tallies, func(a, b Tally) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.ID, b.ID))
		})
		slices.SortFunc(x.Delays, func(a, b DelayStats) int {
			return cmp.Or(cmp.Compare(a.Ingress, b.Ingress), cmp.Compare(a.Egress, b.Egress))
		})
		all = append(all, x)
	}
	return all
}

// Changes counts the templates that were added, changed or removed. A saved state is current while Changes is the
// same.
func (st *Store) Changes() uint64 { return st.changed.Load() }

// Fresh returns a channel with one value if templates were added or changed since the last one. It is for one
// goroutine.
func (st *Store) Fresh() <-chan struct{} { return st.fresh }

// Saved is a template for a later run.
type Saved struct {
	Source      Source
	Version, ID uint16
	Domain      uint32
	Options     bool
	Raw         []byte // from its id on, as it was on the wire
}

// Save returns all templates.
func (st *Store) Save() (all []Saved) {
	for _, s := range st.list() {
		s.Lock()
		from := len(all)
		for k, t := range s.templates {
			all = append(all, Saved{s.Source, k.version, k.id, k.domain, t.Scopes > 0, t.raw})
		}
		s.Unlock()
		slices.SortFunc(all[from:], func(a, b Saved) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.ID, b.ID))
		})
	}
	return all
}

// Restore adds a template of an earlier run. It returns false if it is invalid, or if there is no room.
func (st *Store) Restore(t *Saved, now int64) bool {
	var ds Definitions
	var d Definition
	set := Set{ID: 2, Data: t.Raw}
	if t.Version == V9 {
		set.ID = 0
	}
	if t.Options {
		set.ID++
	}
	m := Message{Version: t.Version, Domain: t.Domain}
	if ds.Start(t.Version, &set); t.Version != V9 && t.Version != V10 || !ds.Next(&d) || len(d.Raw) != len(t.Raw) || d.ID != t.ID || d.Fields == 0 {
		return false
	}
	s := st.Session(t.Source, now)
	if s == nil || !s.Begin(now) {
		return false
	}
	defer s.Unlock()
	_, e := s.Define(&m, &d)
	return e.Reason == 0
}
