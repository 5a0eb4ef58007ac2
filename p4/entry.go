package p4

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"
)

// Value is a number of any width, big-endian and in the canonical form of P4Runtime: as short as it can be, one byte at
// least. Equal numbers are equal Values.
type Value string

// Uint makes a Value of a number.
func Uint(v uint64) Value {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return Bytes(b[:])
}

// Uints returns the values of several numbers, as the parameters of an action.
func Uints(list ...uint64) (v []Value) {
	for _, n := range list {
		v = append(v, Uint(n))
	}
	return v
}

// Bytes makes a Value of big-endian bytes, such as those of an address.
func Bytes(b []byte) Value {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) == 0 {
		return "\x00"
	}
	return Value(b)
}

// Uint64 is the number, or its lowest 64 bits.
func (v Value) Uint64() (n uint64) {
	for _, c := range []byte(v) {
		n = n<<8 | uint64(c)
	}
	return n
}

// Width is the number of bits that it takes.
func (v Value) Width() int {
	if v == "" {
		return 0
	}
	return 8*(len(v)-1) + bits.Len8(v[0])
}

// Append appends the number in that many bytes, or its lowest ones.
func (v Value) Append(dst []byte, size int) []byte {
	if len(v) > size {
		v = v[len(v)-size:]
	}
	return append(append(dst, make([]byte, size-len(v))...), v...)
}

func (v Value) String() string { return "0x" + hex.EncodeToString([]byte(v)) }

// canonical reports whether v is as short as it can be.
func (v Value) canonical() bool { return len(v) == 1 || len(v) > 1 && v[0] != 0 }

// above compares numbers.
func (v Value) above(w Value) bool {
	if len(v) != len(w) {
		return len(v) > len(w)
	}
	return v > w
}

// Match is one field of a key.
type Match struct {
	Value  Value // the number, or the first of a range
	To     Value // ternary: the mask; range: the last number
	Prefix int   // longest prefix: its length in bits
}

// Number matches one number exactly.
func Number(v uint64) Match { return Match{Value: Uint(v)} }

// Between matches a range with both ends.
func Between(first, last uint64) Match { return Match{Value: Uint(first), To: Uint(last)} }

// Masked matches the bits of a mask; a mask of 0 matches everything.
func Masked(v, mask uint64) Match { return Match{Value: Uint(v & mask), To: Uint(mask)} }

// Entry is a line of a table.
type Entry struct {
	Table    string
	Match    []Match // in the order of the table's key; nil for the default action
	Priority int32   // of tables with ternary fields or ranges: the highest that matches wins; above 0
	Action   string
	Params   []Value
	Owner    string // mark of its controller; switches keep it and do nothing with it
}

// Default reports whether the entry is the default action of its table.
func (e *Entry) Default() bool { return e.Match == nil }

// String returns, for example, "pint_set 0x07 0x00..0xffffffff => carry(0x01)".
func (e *Entry) String() string {
	var s strings.Builder
	s.WriteString(e.Table)
	for _, m := range e.Match {
		s.WriteString(" " + m.Value.String())
		switch {
		case m.To != "":
			s.WriteString(".." + m.To.String())
		case m.Prefix > 0:
			s.WriteString("/")
		}
	}
	s.WriteString(" => " + e.Action + "(")
	for i, p := range e.Params {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(p.String())
	}
	s.WriteString(")")
	return s.String()
}

// Key identifies the entry among those of all tables: two entries with one Key cannot both be in a switch.
func (e *Entry) Key() string {
	var room [96]byte
	return string(e.appendKey(append(append(room[:0], e.Table...), 0)))
}

// SameAction reports whether both entries have the same action and parameters.
func (e *Entry) SameAction(o *Entry) bool {
	return e.Action == o.Action && slices.Equal(e.Params, o.Params)
}

func (e *Entry) appendKey(b []byte) []byte {
	if e.Default() {
		return append(b, "default"...)
	}
	for k := range e.Match {
		m := &e.Match[k]
		for _, v := range [...]Value{m.Value, m.To} {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(v))), v...)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(m.Prefix))
	}
	return binary.BigEndian.AppendUint32(b, uint32(e.Priority))
}
