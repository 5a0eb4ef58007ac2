package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Rename is a key, or a whole section, that was called otherwise before. Files with the old name are read, with a warning,
// until two minor versions have passed. Paths are those of the whole file; keys of entries of lists, "list[].key", can
// only be renamed within their entry.
type Rename struct {
	Old, New string
	Since    string // the version that knows the new name first, "0.4"
}

// graceful is for how many minor versions an old name is read.
const graceful = 2

// renamed is a settings struct, that of a whole file, with keys that were called otherwise before.
type renamed interface{ Renames() []Rename }

// until is the version that does not read the old name any more.
func (r *Rename) until() (string, error) {
	major, minor, err := parseVersion(r.Since)
	return fmt.Sprintf("%d.%d", major, minor+graceful), err
}

func parseVersion(v string) (major, minor int, err error) {
	a, b, ok := strings.Cut(strings.TrimPrefix(v, "v"), ".")
	b, _, _ = strings.Cut(b, ".")
	if major, err = strconv.Atoi(a); err == nil {
		minor, err = strconv.Atoi(b)
	}
	if !ok || err != nil || major < 0 || minor < 0 {
		return 0, 0, fmt.Errorf("%q is no version such as 0.4", v)
	}
	return major, minor, nil
}

// CheckRenames returns the errors in the renames of a settings struct at a version. These are impossible names, and
// old ones that are no longer to be read.
func CheckRenames(of any, version string) (problems []string) {
	r, ok := of.(renamed)
	if !ok {
		return nil
	}
	major, minor, err := parseVersion(version)
	if err != nil {
		return []string{err.Error()}
	}
	t := reflect.TypeOf(of).Elem()
	for _, r := range r.Renames() {
		until, err := r.until()
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", r.Old, err))
			continue
		}
		if _, ok := typeAt(t, r.Old); ok {
			problems = append(problems, r.Old+": the old name is a key")
		}
		if _, ok := typeAt(t, r.New); !ok {
			problems = append(problems, r.New+": the new name is no key")
		}
		if strings.Contains(r.Old+r.New, "[]") && parent(r.Old) != parent(r.New) {
			problems = append(problems, r.Old+": a key of a list's entries moves elsewhere")
		}
		if m, n, _ := parseVersion(until); major > m || major == m && minor >= n {
			problems = append(problems, fmt.Sprintf("%s: the old name was read until %s: take the rename away", r.Old, until))
		}
	}
	return problems
}

// typeAt follows a path through a settings struct.
func typeAt(t reflect.Type, path string) (reflect.Type, bool) {
	for key := range strings.SplitSeq(path, ".") {
		key, list := strings.CutSuffix(key, "[]")
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil, false
		}
		f, ok := fieldByKey(t, key)
		if !ok || list && f.Type.Kind() != reflect.Slice {
			return nil, false
		}
		if t = f.Type; list {
			t = t.Elem()
		}
	}
	return t, true
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// pattern is a path without the numbers of entries.
func pattern(path string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(path, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("[]")
		_, path, _ = strings.Cut(after, "]")
	}
}

// readRenamed reads a key that struct v at the path lacks, if the key is an old name or contains old names. It reports
// whether it is.
func (l *loader) readRenamed(kv *ast.MappingValueNode, v reflect.Value, path string) bool {
	at := join(path, keyOf(kv))
	p, section := pattern(at), false
	for i := range l.renames {
		r := &l.renames[i]
		section = section || strings.HasPrefix(r.Old, p+".")
		if r.Old != p {
			continue
		}
		to, key, from := r.New, r.New, l.root
		if parent(r.Old) == parent(r.New) && v.IsValid() { // also in an entry of a list
			key = strings.TrimPrefix(r.New[len(parent(r.New)):], ".")
			to, from = join(path, key), v
		}
		until, _ := r.until()
		if line := l.lines[to]; line > 0 {
			l.add(lineOf(kv.Key), at, "given twice: it is the old name of %s, which is in line %d", to, line)
			return true
		}
		l.warnings = append(l.warnings, Problem{lineOf(kv.Key), at, fmt.Sprintf("is called %s since version %s; the old name is read until %s", to, r.Since, until)})
		l.moved[to] = at
		l.read(kv.Value, fieldAt(from, key), to)
		return true
	}
	if !section {
		return false
	}
	if _, null := kv.Value.(*ast.NullNode); !null && valuesOf(kv.Value) == nil {
		l.add(lineOf(kv.Value), at, "want keys and values, got %q", oneLine(kv.Value))
	}
	for _, inner := range valuesOf(kv.Value) {
		if !l.readRenamed(inner, reflect.Value{}, at) {
			l.add(lineOf(inner.Key), join(at, keyOf(inner)), "unknown key")
		}
	}
	return true
}

// fieldAt follows a path without lists through a value.
func fieldAt(v reflect.Value, path string) reflect.Value {
	for key := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		f, _ := fieldByKey(v.Type(), key)
		v = v.FieldByIndex(f.Index)
	}
	return v
}

func keyOf(kv *ast.MappingValueNode) string { return strings.Trim(kv.Key.String(), `"'`) }

// valuesOf returns the keys and values of a mapping.
func valuesOf(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}
