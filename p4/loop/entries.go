package loop

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/p4/table"
	"github.com/hopscope/hopscope/planner/control"
)

// Owner is what is written beside every entry of a controller, with the epoch of the plan that uses it: "hopscope@7", and
// "hopscope" beside those that all plans share. What has another owner is a stranger's.
type Owner string

// DefaultOwner is that of a network with one controller.
const DefaultOwner Owner = "hopscope"

// of is the owner of an entry of an epoch.
func (o Owner) of(epoch uint32) string {
	if epoch == 0 {
		return string(o)
	}
	return fmt.Sprintf("%s@%d", o, epoch)
}

// epoch reads it back; ok is false for strangers.
func (o Owner) epoch(owner string) (epoch uint32, ok bool) {
	rest, ok := strings.CutPrefix(owner, string(o))
	if !ok || rest == "" {
		return 0, ok
	}
	digits, ok := strings.CutPrefix(rest, "@")
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), ok && err == nil && n > 0 && o.of(uint32(n)) == owner
}

type keyJSON struct {
	Table    string     `json:"t"`
	Match    []matchKey `json:"m,omitempty"`
	Default  bool       `json:"d,omitempty"`
	Priority int32      `json:"p,omitempty"`
}

type matchKey struct {
	Value  string `json:"v"`
	To     string `json:"to,omitempty"`
	Prefix int    `json:"n,omitempty"`
}

type valueJSON struct {
	Action string   `json:"a"`
	Params []string `json:"p,omitempty"`
}

func hexOf(v table.Value) string { return hex.EncodeToString([]byte(v)) }

// EntryOf is an entry of a table as the controller keeps it.
func EntryOf(e *table.Entry, epoch uint32) control.Entry {
	k := keyJSON{Table: e.Table, Default: e.Default(), Priority: e.Priority}
	for _, m := range e.Match {
		k.Match = append(k.Match, matchKey{hexOf(m.Value), hexOf(m.To), m.Prefix})
	}
	v := valueJSON{Action: e.Action}
	for _, p := range e.Params {
		v.Params = append(v.Params, hexOf(p))
	}
	return control.Entry{Epoch: epoch, Key: text(&k), Value: text(&v)}
}

// text is JSON of texts and numbers, which always have one. If it had none, the way back would be refused with an error.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// tableEntry is the way back.
func tableEntry(x *control.Entry, owner Owner) (e table.Entry, err error) {
	var k keyJSON
	var v valueJSON
	if err = json.Unmarshal([]byte(x.Key), &k); err == nil {
		err = json.Unmarshal([]byte(x.Value), &v)
	}
	if err != nil {
		return e, fmt.Errorf("entry %.100q: %w", x.Key, err)
	}
	value := func(s string) table.Value {
		b, herr := hex.DecodeString(s)
		if herr != nil && err == nil {
			err = fmt.Errorf("entry %.100q: %w", x.Key, herr)
		}
		return table.Value(b)
	}
	e = table.Entry{Table: k.Table, Priority: k.Priority, Action: v.Action, Owner: owner.of(x.Epoch)}
	if !k.Default {
		e.Match = []table.Match{}
	}
	for _, m := range k.Match {
		e.Match = append(e.Match, table.Match{Value: value(m.Value), To: value(m.To), Prefix: m.Prefix})
	}
	for _, p := range v.Params {
		e.Params = append(e.Params, value(p))
	}
	return e, err
}

// Fits says which entries tables would not take.
func Fits(tables []table.Table, list []table.Entry) error {
	s := table.NewStore(tables)
	var errs []error
	for k := range list {
		if _, err := s.Put(list[k]); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", &list[k], err))
		}
	}
	return errors.Join(errs...)
}
