package p4rt

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/sink/flock"
)

// Files keeps the entries of one switch in a file of plain JSON, for programs that install them by other means. The file is replaced
// in one step and synced before Write returns. It has one writer: two of them would undo what the other did.
type Files struct {
	path  string
	info  *Info
	owner string
	mu    sync.Mutex
}

var _ Installer = (*Files)(nil)

// maxFile bounds what is read.
const maxFile = 64 << 20

// OpenFiles opens a file that may not exist yet. Its content is read, and refused if it does not fit the program. The
// owner is written beside every entry.
func OpenFiles(path string, info *Info, owner string) (*Files, error) {
	if err := checkOwner(owner); err != nil {
		return nil, err
	}
	f := &Files{path: path, info: info, owner: owner}
	_, err := f.load()
	return f, err
}

// document is the content of the file.
type document struct {
	Entries []entryJSON `json:"entries"`
}

type entryJSON struct {
	Table    string      `json:"table"`
	Default  bool        `json:"default,omitempty"`
	Match    []matchJSON `json:"match,omitempty"`
	Priority int32       `json:"priority,omitempty"`
	Action   string      `json:"action"`
	Params   []string    `json:"params,omitempty"`
	Owner    string      `json:"owner,omitempty"`
}

type matchJSON struct {
	Value  string `json:"value"`
	To     string `json:"to,omitempty"`
	Prefix int    `json:"prefix,omitempty"`
}

// WriteJSON writes entries as [Files] keeps them.
func WriteJSON(w io.Writer, entries []p4.Entry) error {
	doc := document{Entries: make([]entryJSON, len(entries))}
	for i := range entries {
		e := &entries[i]
		out := entryJSON{Table: e.Table, Default: e.Default(), Priority: e.Priority, Action: e.Action, Owner: e.Owner}
		for _, m := range e.Match {
			j := matchJSON{Value: m.Value.String(), Prefix: m.Prefix}
			if m.To != "" {
				j.To = m.To.String()
			}
			out.Match = append(out.Match, j)
		}
		for _, p := range e.Params {
			out.Params = append(out.Params, p.String())
		}
		doc.Entries[i] = out
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(doc)
}

// ReadJSON reads what [WriteJSON] wrote. Whether entries fit a program is for callers that have one.
func ReadJSON(b []byte) ([]p4.Entry, error) {
	if len(b) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var doc document
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the document")
	}
	entries := make([]p4.Entry, len(doc.Entries))
	for i, in := range doc.Entries {
		e := p4.Entry{Table: in.Table, Priority: in.Priority, Action: in.Action, Owner: in.Owner}
		if in.Default == (len(in.Match) > 0) {
			return nil, fmt.Errorf("entry %d, of table %q: want either a key or default", i+1, cut(in.Table))
		}
		for _, m := range in.Match {
			v, err := parseValue(m.Value)
			match := p4.Match{Value: v, Prefix: m.Prefix}
			if err == nil && m.To != "" {
				match.To, err = parseValue(m.To)
			}
			if err != nil {
				return nil, fmt.Errorf("entry %d, of table %q: %w", i+1, cut(in.Table), err)
			}
			e.Match = append(e.Match, match)
		}
		for _, p := range in.Params {
			v, err := parseValue(p)
			if err != nil {
				return nil, fmt.Errorf("entry %d, of table %q: %w", i+1, cut(in.Table), err)
			}
			e.Params = append(e.Params, v)
		}
		entries[i] = e
	}
	return entries, nil
}

// parseValue reads a number such as 0x0a01.
func parseValue(s string) (p4.Value, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) == 0 || len(b) > maxValue {
		return "", fmt.Errorf("%q is no number such as 0x0a01", cut(s))
	}
	return p4.Bytes(b), nil
}

// load returns the content of the file.
func (f *Files) load() (*p4.Store, error) {
	s := p4.NewStore(f.info.Tables())
	in, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	entries, err := ReadJSON(b)
	for i := range entries {
		if err == nil {
			var was bool
			if was, err = s.Put(entries[i]); was && err == nil {
				err = fmt.Errorf("%v is there twice", &entries[i])
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("entries in %s: %w", f.path, err)
	}
	return s, nil
}

// Read implements [Installer].
func (f *Files) Read(ctx context.Context, tables ...string) ([]p4.Entry, error) {
	which, err := f.info.named(tables)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	var all []p4.Entry
	for _, t := range which {
		all = append(all, s.Read(t.Name)...)
	}
	return all, ctx.Err()
}

// Write implements [Installer]. The file changes once, or not at all.
func (f *Files) Write(ctx context.Context, updates []Update) ([]error, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	for i := range updates {
		if err := checkOwner(updates[i].Entry.Owner); err != nil {
			return nil, err
		}
	}
	steps, errs := prepare(f.info, updates, "")
	if errs != nil {
		return errs, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.load()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	errs = carry(s, steps, updates, f.owner)
	if err := f.save(s); err != nil {
		return nil, err
	}
	return errs, nil
}

// carry carries out steps in tables. It returns nil if all succeeded.
func carry(s *p4.Store, steps []step, updates []Update, owner string) []error {
	errs := make([]error, len(updates))
	failed, last := false, 0
	for _, x := range steps {
		if failed && x.level != last {
			errs[x.at] = ErrSkipped
			continue
		}
		errs[x.at] = apply(s, updates[x.at], owner)
		failed, last = failed || errs[x.at] != nil, x.level
	}
	if !failed {
		return nil
	}
	return errs
}

func apply(s *p4.Store, u Update, owner string) error {
	e := u.Entry
	if e.Owner == "" {
		e.Owner = owner
	}
	switch {
	case u.Op == Delete && e.Default():
		if s.Has(&e) {
			return s.Delete(&e)
		}
		return nil
	case u.Op == Delete:
		return s.Delete(&e)
	case e.Default():
		_, err := s.Put(e)
		return err
	case u.Op == Modify:
		return s.Modify(e)
	}
	return s.Insert(e)
}

// save replaces the file.
func (f *Files) save(s *p4.Store) error {
	return flock.Replace(f.path, 0o600, func(w io.Writer) error { return WriteJSON(w, s.Read("")) })
}
