package loop

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/control"
)

// Owner is the mark beside every entry of a controller, with the epoch of the plan that uses it: "hopscope@7", and
// "hopscope" for entries that all plans share. Entries with another owner belong to others.
type Owner string

// DefaultOwner is that of a network with one controller.
const DefaultOwner Owner = "hopscope"

// name is the owner of an entry of an epoch.
func (o Owner) name(epoch uint32) string {
	if epoch == 0 {
		return string(o)
	}
	return string(strconv.AppendUint(append([]byte(o), '@'), uint64(epoch), 10))
}

// epoch reads it back; ok is false for strangers.
func (o Owner) epoch(owner string) (epoch uint32, ok bool) {
	rest, ok := strings.CutPrefix(owner, string(o))
	if !ok || rest == "" {
		return 0, ok
	}
	digits, ok := strings.CutPrefix(rest, "@")
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), ok && err == nil && digits[0] != '0'
}

// The controller keeps an entry as two texts, which are made and read thousands of times in a cycle. The key is the
// table, the priority or "default", and the fields, such as "ipv4_lpm|0|0a000001/32". The mask or the end of a range
// follows the number after "-". The value is the action and its parameters, such as "forward|01". Numbers are
// hexadecimal. A name that has a "|" or a quotation mark is quoted as Go does it. Two entries have one key exactly if
// both cannot be in a switch.
const defaultKey = "default"

func appendName(b []byte, name string) []byte {
	if strings.ContainsAny(name, "|\"") {
		return strconv.AppendQuote(b, name)
	}
	return append(b, name...)
}

func appendHex(b []byte, v p4.Value) []byte {
	const digits = "0123456789abcdef"
	for k := range len(v) {
		b = append(b, digits[v[k]>>4], digits[v[k]&15])
	}
	return b
}

// EntryOf is an entry of a table as the controller keeps it.
func EntryOf(e *p4.Entry, epoch uint32) control.Entry {
	return control.Entry{Epoch: epoch, Key: keyOf(e), Value: valueOf(e)}
}

func keyOf(e *p4.Entry) string {
	var room [128]byte
	b := append(appendName(room[:0], e.Table), '|')
	if e.Default() {
		return string(append(b, defaultKey...))
	}
	b = strconv.AppendInt(b, int64(e.Priority), 10)
	for k := range e.Match {
		m := &e.Match[k]
		b = appendHex(append(b, '|'), m.Value)
		if m.To != "" {
			b = appendHex(append(b, '-'), m.To)
		}
		if m.Prefix != 0 {
			b = strconv.AppendInt(append(b, '/'), int64(m.Prefix), 10)
		}
	}
	return string(b)
}

func valueOf(e *p4.Entry) string {
	var room [128]byte
	b := appendName(room[:0], e.Action)
	for _, p := range e.Params {
		b = appendHex(append(b, '|'), p)
	}
	return string(b)
}

// cutName reads a name, and returns what is behind it and whether there is more.
func cutName(s string) (name, rest string, more bool, err error) {
	if !strings.HasPrefix(s, "\"") {
		name, rest, more = strings.Cut(s, "|")
		return name, rest, more, nil
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err == nil {
		name, err = strconv.Unquote(quoted)
	}
	rest = s[len(quoted):]
	if err == nil && rest != "" {
		if rest, more = strings.CutPrefix(rest, "|"); !more {
			err = strconv.ErrSyntax
		}
	}
	return name, rest, more, err
}

func readHex(s string) (p4.Value, error) {
	var room [64]byte
	b, err := hex.AppendDecode(room[:0], []byte(s))
	return p4.Value(b), err
}

// tableEntry is the way back.
func tableEntry(x *control.Entry, owner string) (e p4.Entry, err error) {
	e.Owner = owner
	if err = readKey(&e, x.Key); err == nil {
		err = readValue(&e, x.Value)
	}
	if err != nil {
		return p4.Entry{}, fmt.Errorf("entry %.100q, %.100q: %w", x.Key, x.Value, err)
	}
	return e, nil
}

func readKey(e *p4.Entry, key string) (err error) {
	var more bool
	if e.Table, key, more, err = cutName(key); err != nil || !more {
		return cmp.Or(err, strconv.ErrSyntax)
	}
	if key == defaultKey {
		return nil
	}
	priority, key, more := strings.Cut(key, "|")
	n, err := strconv.ParseInt(priority, 10, 32)
	if err != nil {
		return err
	}
	e.Priority, e.Match = int32(n), []p4.Match{}
	if more {
		e.Match = make([]p4.Match, 0, 1+strings.Count(key, "|"))
	}
	for more && err == nil {
		var field, prefix string
		var m p4.Match
		field, key, more = strings.Cut(key, "|")
		field, prefix, hasPrefix := strings.Cut(field, "/")
		first, last, hasLast := strings.Cut(field, "-")
		m.Value, err = readHex(first)
		if err == nil && hasLast {
			m.To, err = readHex(last)
		}
		if err == nil && hasPrefix {
			m.Prefix, err = strconv.Atoi(prefix)
		}
		e.Match = append(e.Match, m)
	}
	return err
}

func readValue(e *p4.Entry, value string) (err error) {
	var more bool
	if e.Action, value, more, err = cutName(value); err == nil && more {
		e.Params = make([]p4.Value, 0, 1+strings.Count(value, "|"))
	}
	for more && err == nil {
		var param string
		var v p4.Value
		param, value, more = strings.Cut(value, "|")
		v, err = readHex(param)
		e.Params = append(e.Params, v)
	}
	return err
}

// Fits returns which entries tables would not take.
func Fits(tables []p4.Table, list []p4.Entry) error {
	s := p4.NewStore(tables)
	var errs []error
	for k := range list {
		if _, err := s.Put(list[k]); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", &list[k], err))
		}
	}
	return errors.Join(errs...)
}
