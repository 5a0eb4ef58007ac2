package p4

import (
	"errors"
	"fmt"
	"slices"
)

// Kind is the way in which a field of a key is compared.
type Kind uint8

// The kinds of matches.
const (
	Exact Kind = iota
	Longest
	Ternary
	Range
)

// Field is a field of a key.
type Field struct {
	Name string
	Bits int
	Kind Kind
}

// Param is a parameter of an action.
type Param struct {
	Name string
	Bits int
}

// Action is an action of a table, with its parameters.
type Action struct {
	Name   string
	Params []Param
}

// Table is a table of a program.
type Table struct {
	Name    string
	Key     []Field
	Actions []Action
	Size    int // entries, without the default action
}

// ordered reports whether entries need a priority.
func (t *Table) ordered() bool {
	return slices.ContainsFunc(t.Key, func(f Field) bool { return f.Kind >= Ternary })
}

// exact reports whether a key is one number for each field.
func (t *Table) exact() bool {
	return !slices.ContainsFunc(t.Key, func(f Field) bool { return f.Kind != Exact })
}

// Why an entry is refused.
var (
	ErrInvalid  = errors.New("entry does not fit the program")
	ErrFull     = errors.New("table is full")
	ErrExists   = errors.New("entry is there already")
	ErrNotFound = errors.New("entry is not there")
)

// Check returns what is wrong with an entry; the error is an [ErrInvalid].
func (t *Table) Check(e *Entry) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("table %s: %s: %w", t.Name, fmt.Sprintf(format, args...), ErrInvalid)
	}
	if !e.Default() && len(e.Match) != len(t.Key) {
		return bad("a key of %d fields, want %d", len(e.Match), len(t.Key))
	}
	if need := t.ordered() && !e.Default(); need != (e.Priority > 0) || e.Priority < 0 {
		return bad("priority %d", e.Priority)
	}
	for i, m := range e.Match {
		f := &t.Key[i]
		if what := f.wrong(&m); what != "" {
			return bad("field %s: %s", f.Name, what)
		}
	}
	k := slices.IndexFunc(t.Actions, func(a Action) bool { return a.Name == e.Action })
	if k < 0 {
		return bad("no action %q", e.Action)
	}
	params := t.Actions[k].Params
	if len(params) != len(e.Params) {
		return bad("action %s with %d parameters, want %d", e.Action, len(e.Params), len(params))
	}
	for i, p := range params {
		if v := e.Params[i]; !v.canonical() || v.Width() > p.Bits {
			return bad("action %s: parameter %s: %v is no number of %d bits", e.Action, p.Name, v, p.Bits)
		}
	}
	return nil
}

// wrong returns what is wrong with a match.
func (f *Field) wrong(m *Match) string {
	if !m.Value.canonical() || m.Value.Width() > f.Bits {
		return fmt.Sprintf("%v is no number of %d bits", m.Value, f.Bits)
	}
	two := f.Kind >= Ternary
	switch {
	case two && (!m.To.canonical() || m.To.Width() > f.Bits):
		return fmt.Sprintf("%v is no number of %d bits", m.To, f.Bits)
	case !two && m.To != "", f.Kind != Longest && m.Prefix != 0, m.Prefix < 0, m.Prefix > f.Bits:
		return "it is matched in another way"
	case f.Kind == Range && m.Value.above(m.To):
		return fmt.Sprintf("no number is from %v to %v", m.Value, m.To)
	case f.Kind == Ternary && !within(m.Value, m.To), f.Kind == Longest && !m.Value.endsIn(f.Bits-m.Prefix):
		return fmt.Sprintf("%v has bits that are not compared", m.Value)
	}
	return ""
}

// endsIn reports whether the lowest bits of v, as many as zeros, are zero.
func (v Value) endsIn(zeros int) bool {
	for i := 0; i < len(v) && zeros > 0; i, zeros = i+1, zeros-8 {
		mask := byte(0xff)
		if zeros < 8 {
			mask = 1<<zeros - 1
		}
		if v.at(i)&mask != 0 {
			return false
		}
	}
	return true
}

// at is the i-th byte from the end.
func (v Value) at(i int) byte {
	if i < len(v) {
		return v[len(v)-1-i]
	}
	return 0
}

// within reports whether v has no bit that the mask has not.
func within(v, mask Value) bool {
	for i := range len(v) {
		if v.at(i)&^mask.at(i) != 0 {
			return false
		}
	}
	return true
}

// Store is the contents of all tables of a switch.
type Store struct {
	order  []*Rows
	byName map[string]*Rows
}

// NewStore makes empty tables.
func NewStore(program []Table) *Store {
	s := &Store{byName: make(map[string]*Rows, len(program))}
	for _, t := range program {
		c := newRows(t)
		s.order, s.byName[t.Name] = append(s.order, c), c
	}
	return s
}

// Rows is the contents of one table. It is nil if the program has no such table.
func (s *Store) Rows(name string) *Rows { return s.byName[name] }

// tableOf returns the table of an entry that fits it.
func (s *Store) tableOf(e *Entry) (*Rows, error) {
	c := s.byName[e.Table]
	if c == nil {
		return nil, fmt.Errorf("table %s: the program has none: %w", e.Table, ErrInvalid)
	}
	return c, nil
}

// Put inserts an entry, or sets the action of the entry with the same key. It reports whether the entry was there.
func (s *Store) Put(e Entry) (was bool, err error) {
	c, err := s.tableOf(&e)
	if err != nil {
		return false, err
	}
	if err := c.Check(&e); err != nil {
		return false, err
	}
	return c.put(&e)
}

// Insert is Put for an entry that must not be there yet, and Modify for one that must.
func (s *Store) Insert(e Entry) error {
	if s.Has(&e) {
		return fmt.Errorf("table %s: %w", e.Table, ErrExists)
	}
	_, err := s.Put(e)
	return err
}

// Modify sets another action of an entry. The error is [ErrNotFound] if the entry is missing.
func (s *Store) Modify(e Entry) error {
	if c, err := s.tableOf(&e); err != nil {
		return err
	} else if err := c.Check(&e); err != nil {
		return err
	}
	if !s.Has(&e) {
		return fmt.Errorf("table %s: %w", e.Table, ErrNotFound)
	}
	_, err := s.Put(e)
	return err
}

// Has reports whether there is an entry with the same key.
func (s *Store) Has(e *Entry) bool {
	c := s.byName[e.Table]
	return c != nil && c.has(e)
}

// Delete takes out the entry with the same key; its action does not matter.
func (s *Store) Delete(e *Entry) error {
	c, err := s.tableOf(e)
	if err != nil {
		return err
	}
	if !c.has(e) {
		return fmt.Errorf("table %s: %w", e.Table, ErrNotFound)
	}
	c.remove(e)
	return nil
}

// Read returns the entries of a table, or of all tables for "". A default action comes last.
func (s *Store) Read(name string) (entries []Entry) {
	for _, c := range s.order {
		if name != "" && name != c.Name {
			continue
		}
		for _, r := range c.list {
			entries = append(entries, r.Entry)
		}
		if c.other != nil {
			entries = append(entries, c.other.Entry)
		}
	}
	return entries
}

// Len is the number of entries of a table, without its default action.
func (s *Store) Len(name string) int {
	if c := s.byName[name]; c != nil {
		return len(c.list)
	}
	return 0
}

// Find returns the entry that applies to a key, or the default action, or nil. The entry belongs to the store.
func (s *Store) Find(name string, key ...Value) *Entry {
	c := s.byName[name]
	if c == nil || len(key) != len(c.Key) {
		return nil
	}
	var room [keyRoom]byte
	b := room[:0]
	for i, v := range key {
		if v.Width() > c.Key[i].Bits {
			return nil
		}
		b = v.Append(b, c.Key[i].size())
	}
	if r := c.Find(b); r != &nothing {
		return &r.Entry
	}
	return nil
}
