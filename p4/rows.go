package p4

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Rows is the contents of one table. Packets find its entries without allocation.
type Rows struct {
	Table
	entries map[string]*Row // by index
	dense   []*Row          // by number, of a table with one exact field of few bits
	lengths []length        // of prefixes, longest first, of a table with a prefix alone
	ranges  []*Row          // by their first number, of a table with a range behind exact fields
	overlap int             // neighbours in ranges that have a number in common
	list    []*Row          // by priority and, among equals, in the order in which they came
	other   *Row            // the default action; nil for none
}

// Row is an entry as packets find it.
type Row struct {
	Entry
	args  []uint64 // the lowest 64 bits of each parameter
	first []byte   // the numbers of its key, each in the bytes of its field
	to    []byte   // masks, or the last numbers of ranges
}

// length counts the prefixes of one length.
type length struct{ bits, count int }

// nothing applies to a key where no entry does.
var nothing Row

// Arg is a parameter of the action, or its lowest 64 bits; 0 if there is none.
func (r *Row) Arg(i int) uint64 {
	if i >= len(r.args) {
		return 0
	}
	return r.args[i]
}

const (
	// denseBits is how wide a field may be that entries are kept by number for.
	denseBits = 10
	// keyRoom is enough for the keys of all programs, so that they are put together on the stack.
	keyRoom = 96
)

// size is the number of bytes of a field in a key.
func (f *Field) size() int { return (f.Bits + 7) / 8 }

func newRows(t Table) *Rows { return &Rows{Table: t, entries: map[string]*Row{}} }

// prefixes reports whether the key is a prefix alone.
func (c *Rows) prefixes() bool { return len(c.Key) == 1 && c.Key[0].Kind == Longest }

// makeRow prepares an entry for packets. An entry that does not fit the key has no row.
func (c *Rows) makeRow(e *Entry) (r *Row, ok bool) {
	r = &Row{Entry: *e}
	for _, p := range e.Params {
		r.args = append(r.args, p.Uint64())
	}
	if len(e.Match) != len(c.Key) {
		return r, e.Default()
	}
	for i := range e.Match {
		m, f := &e.Match[i], &c.Key[i]
		if m.Value.Width() > f.Bits || m.To.Width() > f.Bits || m.Prefix < 0 || m.Prefix > f.Bits {
			return r, false
		}
		r.first = m.Value.Append(r.first, f.size())
		switch f.Kind {
		case Exact:
			r.to = append(r.to, slices.Repeat([]byte{0xff}, f.size())...)
		case Longest:
			at := len(r.to)
			r.to = append(r.to, make([]byte, f.size())...)
			mask(r.to[at:], m.Prefix, f.Bits)
		default:
			r.to = m.To.Append(r.to, f.size())
		}
	}
	return r, true
}

// mask sets the first bits of a field that is as wide as bits.
func mask(b []byte, prefix, bits int) {
	for i := bits - prefix; i < bits; i++ {
		b[len(b)-1-i/8] |= 1 << (i % 8)
	}
}

// index is the row's key in the map of entries: of exact fields and prefixes that of a packet.
func (c *Rows) index(r *Row) string {
	b := slices.Clone(r.first)
	switch {
	case c.exact():
	case c.prefixes():
		b = append(b, byte(r.Match[0].Prefix))
	default:
		b = append(b, r.to...)
		b = binary.BigEndian.AppendUint32(b, uint32(r.Priority))
	}
	return string(b)
}

// same returns the row with the key of an entry, or nil.
func (c *Rows) same(e *Entry) *Row {
	if e.Default() {
		return c.other
	}
	r, ok := c.makeRow(e)
	if !ok {
		return nil
	}
	if old := c.entries[c.index(r)]; old != nil && old.Priority == e.Priority && slices.Equal(old.Match, e.Match) {
		return old
	}
	return nil
}

func (c *Rows) has(e *Entry) bool { return c.same(e) != nil }

// put inserts an entry that has been checked.
func (c *Rows) put(e *Entry) (was bool, err error) {
	r, _ := c.makeRow(e)
	if e.Default() {
		was, c.other = c.other != nil, r
		return was, nil
	}
	index := c.index(r)
	old := c.entries[index]
	switch {
	case old != nil:
		c.list[slices.Index(c.list, old)] = r
		if c.ranged() {
			c.ranges[slices.Index(c.ranges, old)] = r
		}
	case len(c.list) >= c.Size:
		return false, fmt.Errorf("table %s: %d entries: %w", c.Name, c.Size, ErrFull)
	default:
		at := len(c.list)
		for at > 0 && c.rank(c.list[at-1]) < c.rank(r) {
			at--
		}
		c.list = slices.Insert(c.list, at, r)
		c.countPrefix(r, 1)
		c.addRange(r)
	}
	c.entries[index] = r
	if c.numbered() {
		if c.dense == nil {
			c.dense = make([]*Row, 1<<c.Key[0].Bits)
		}
		c.dense[number(r.first)] = r
	}
	return old != nil, nil
}

// remove takes out an entry that is there.
func (c *Rows) remove(e *Entry) {
	r := c.same(e)
	if e.Default() {
		c.other = nil
		return
	}
	at := slices.Index(c.list, r)
	c.list = slices.Delete(c.list, at, at+1)
	delete(c.entries, c.index(r))
	c.countPrefix(r, -1)
	c.dropRange(r)
	if c.numbered() {
		c.dense[number(r.first)] = nil
	}
}

// countPrefix keeps the lengths of the prefixes that are there.
func (c *Rows) countPrefix(r *Row, by int) {
	if !c.prefixes() {
		return
	}
	at, ok := slices.BinarySearchFunc(c.lengths, r.Match[0].Prefix, func(l length, bits int) int { return bits - l.bits })
	if !ok {
		c.lengths = slices.Insert(c.lengths, at, length{bits: r.Match[0].Prefix})
	}
	if c.lengths[at].count += by; c.lengths[at].count == 0 {
		c.lengths = slices.Delete(c.lengths, at, at+1)
	}
}

// ranged reports whether the key is exact fields with a range behind them.
func (c *Rows) ranged() bool {
	last := len(c.Key) - 1
	return last >= 0 && c.Key[last].Kind == Range && !slices.ContainsFunc(c.Key[:last], func(f Field) bool { return f.Kind != Exact })
}

// addRange and dropRange keep the ranges in order, and count neighbours that overlap.
func (c *Rows) addRange(r *Row) {
	if !c.ranged() {
		return
	}
	at, _ := slices.BinarySearchFunc(c.ranges, r.first, (*Row).compare)
	c.overlap -= c.meet(at-1, at)
	c.ranges = slices.Insert(c.ranges, at, r)
	c.overlap += c.meet(at-1, at) + c.meet(at, at+1)
}

func (c *Rows) dropRange(r *Row) {
	if !c.ranged() {
		return
	}
	at := slices.Index(c.ranges, r)
	c.overlap -= c.meet(at-1, at) + c.meet(at, at+1)
	c.ranges = slices.Delete(c.ranges, at, at+1)
	c.overlap += c.meet(at-1, at)
}

func (r *Row) compare(key []byte) int { return bytes.Compare(r.first, key) }

// meet is 1 if the range at i reaches the one at j, and else 0.
func (c *Rows) meet(i, j int) int {
	if i >= 0 && j < len(c.ranges) && c.within(c.ranges[i], c.ranges[j].first) {
		return 1
	}
	return 0
}

// within reports whether a key that is not below a range is in it.
func (c *Rows) within(r *Row, key []byte) bool {
	at := len(key) - c.Key[len(c.Key)-1].size()
	return bytes.Equal(key[:at], r.first[:at]) && bytes.Compare(key[at:], r.to[at:]) <= 0
}

// inRange finds the only range that a number can be in.
func (c *Rows) inRange(key []byte) *Row {
	lo, hi := 0, len(c.ranges)
	for lo < hi {
		if mid := (lo + hi) / 2; bytes.Compare(c.ranges[mid].first, key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 && c.within(c.ranges[lo-1], key) {
		return c.ranges[lo-1]
	}
	return c.rest()
}

// rank orders entries: priorities, or lengths of prefixes.
func (c *Rows) rank(r *Row) int {
	n := int(r.Priority)
	for i, f := range c.Key {
		if f.Kind == Longest {
			n += r.Match[i].Prefix
		}
	}
	return n
}

// numbered reports whether entries are kept by number.
func (c *Rows) numbered() bool {
	return len(c.Key) == 1 && c.Key[0].Kind == Exact && c.Key[0].Bits <= denseBits
}

// number is that of a key of at most 8 bytes.
func number(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// At is Find for a key of one number.
func (c *Rows) At(n uint64) *Row {
	if n < uint64(len(c.dense)) {
		if r := c.dense[n]; r != nil {
			return r
		}
		return c.rest()
	}
	var room [8]byte
	binary.BigEndian.PutUint64(room[:], n)
	return c.Find(room[8-c.Key[0].size():])
}

// Empty reports whether only the default action applies.
func (c *Rows) Empty() bool { return len(c.list) == 0 }

// Find returns the row that applies to a key, or the default action. Each field takes as many whole bytes as its bits
// need. Where nothing applies, the row has an empty action. The row belongs to the table.
func (c *Rows) Find(key []byte) *Row {
	switch {
	case len(c.list) == 0:
		return c.rest()
	case len(c.lengths) > 0:
		return c.longest(key)
	case len(c.ranges) > 0 && c.overlap == 0:
		return c.inRange(key)
	case c.exact():
		if r := c.entries[string(key)]; r != nil {
			return r
		}
		return c.rest()
	}
	for _, r := range c.list {
		if c.matches(r, key) {
			return r
		}
	}
	return c.rest()
}

// rest returns the default action, or nothing.
func (c *Rows) rest() *Row {
	if c.other != nil {
		return c.other
	}
	return &nothing
}

// longest takes one look-up for each length of a prefix that is there.
func (c *Rows) longest(key []byte) *Row {
	var room [17]byte
	for _, l := range c.lengths {
		b := room[:copy(room[:16], key)+1]
		last := len(b) - 1
		for i, spare := last-1, c.Key[0].Bits-l.bits; spare > 0; i, spare = i-1, spare-8 {
			b[i] &= 0xff << min(spare, 8)
		}
		b[last] = byte(l.bits)
		if r := c.entries[string(b)]; r != nil {
			return r
		}
	}
	return c.rest()
}

// matches compares a key field by field, long ones by words.
func (c *Rows) matches(r *Row, key []byte) bool {
	at := 0
	for i := range c.Key {
		f := &c.Key[i]
		n := f.size()
		first, to, k := r.first[at:at+n], r.to[at:at+n], key[at:at+n]
		at += n
		if f.Kind == Range {
			if bytes.Compare(k, first) < 0 || bytes.Compare(k, to) > 0 {
				return false
			}
			continue
		}
		for len(k) >= 8 {
			le := binary.LittleEndian
			if (le.Uint64(k)^le.Uint64(first))&le.Uint64(to) != 0 {
				return false
			}
			k, first, to = k[8:], first[8:], to[8:]
		}
		for j := range k {
			if (k[j]^first[j])&to[j] != 0 {
				return false
			}
		}
	}
	return true
}
