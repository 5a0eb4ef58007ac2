package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the greatest size of a file that is read: one of more than a megabyte is no settings file.
const maxFile = 1 << 20

// LoadFile reads the file over the values that into, a pointer to a settings struct, already holds.
// All problems of the file are reported together, as [*Problems].
func LoadFile(path string, into any) error {
	_, err := ReadFile(path, into)
	return err
}

// Load is LoadFile for bytes; name is the file in errors.
func Load(name string, data []byte, into any) error {
	_, err := Read(name, data, into)
	return err
}

// File is a settings file that was read.
type File struct {
	Name     string
	Warnings []Problem      // of keys that are read under an old name
	lines    map[string]int // by path
}

// Line is the line of the path, or of the nearest thing around it that has one; 0 where there is none.
func (f *File) Line(path string) int {
	if f == nil {
		return 0
	}
	return lineFor(f.lines, path)
}

// ReadFile is LoadFile that also returns the positions of the keys, whatever is wrong with them.
func ReadFile(path string, into any) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	defer f.Close()
	// A size is not asked for: a pipe has none.
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read settings %s: more than %d bytes", path, maxFile)
	}
	return Read(path, data, into)
}

// Read is ReadFile for bytes.
func Read(name string, data []byte, into any) (*File, error) {
	l := loader{lines: map[string]int{}, moved: map[string]string{}, root: reflect.ValueOf(into).Elem()}
	if r, ok := into.(retired); ok {
		l.retired = r.Retirements()
	}
	if r, ok := into.(renamed); ok {
		l.renames = r.Renames()
	}
	err := l.load(name, data, into)
	return &File{name, l.warnings, l.lines}, err
}

func (l *loader) load(name string, data []byte, into any) error {
	found, wrong := tokens(data)
	if wrong != nil {
		return &Problems{name, []Problem{*wrong}}
	}
	file, err := parser.Parse(found, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return &Problems{name, []Problem{syntaxProblem(err)}}
	}
	v := reflect.ValueOf(into).Elem()
	for i, doc := range file.Docs {
		if doc.Body == nil { // and no token either
			continue
		}
		if i > 0 {
			l.add(doc.GetToken().Position.Line, "", "a second document; one file holds one")
			break
		}
		l.read(doc.Body, v, "")
	}
	l.validate(v, "")
	return NewProblems(name, l.problems)
}

// Check is Load without a file: it holds the struct's own values against their ranges and rules.
func Check(of any) error {
	l := loader{lines: map[string]int{}}
	l.validate(reflect.ValueOf(of).Elem(), "")
	return NewProblems("settings", l.problems)
}

func syntaxProblem(err error) Problem {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		return Problem{Line: y.GetToken().Position.Line, Text: y.GetMessage()}
	}
	return Problem{Text: strings.TrimSpace(err.Error())}
}

type loader struct {
	problems []Problem
	warnings []Problem
	lines    map[string]int // where each path was set
	broken   map[string]bool

	root    reflect.Value
	renames []Rename
	retired []Retire
	moved   map[string]string // old names that were read, by the new ones
}

func (l *loader) add(line int, path, format string, args ...any) {
	l.problems = append(l.problems, Problem{line, path, fmt.Sprintf(format, args...)})
	if l.broken == nil {
		l.broken = map[string]bool{}
	}
	l.broken[path] = true
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// read sets v from the node and remembers on which line.
func (l *loader) read(n ast.Node, v reflect.Value, path string) {
	l.lines[path] = lineOf(n)
	if v.Kind() == reflect.Pointer {
		if _, null := n.(*ast.NullNode); null {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct:
		l.readStruct(n, v, path)
	case v.Kind() == reflect.Slice:
		l.readSlice(n, v, path)
	default:
		l.readScalar(n, v, path)
	}
}

func (l *loader) readStruct(n ast.Node, v reflect.Value, path string) {
	values := valuesOf(n)
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	case *ast.NullNode:
		return
	default:
		l.add(lineOf(n), path, "want keys and values, got %q", oneLine(n))
		return
	}
	seen := map[string]bool{}
	for _, kv := range values {
		key := keyOf(kv)
		at := join(path, key)
		field, ok := fieldByKey(v.Type(), key)
		switch {
		case !ok && (l.readRenamed(kv, v, path) || l.readRetired(kv, path)):
		case !ok:
			l.add(lineOf(kv.Key), at, "unknown key%s", suggest(key, keysOf(v.Type())))
		case l.moved[at] != "":
			l.add(lineOf(kv.Key), at, "given twice: %s is its old name, in line %d", l.moved[at], l.lines[at])
		case seen[key]:
			l.add(lineOf(kv.Key), at, "given twice")
		default:
			seen[key] = true
			l.read(kv.Value, v.FieldByIndex(field.Index), at)
		}
	}
}

func (l *loader) readSlice(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if _, null := n.(*ast.NullNode); !null {
			l.add(lineOf(n), path, "want a list, got %q", oneLine(n))
			return
		}
		seq = &ast.SequenceNode{}
	}
	if len(seq.Values) == 0 {
		v.SetZero()
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		l.read(item, out.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(out)
}

func (l *loader) readScalar(n ast.Node, v reflect.Value, path string) {
	switch n.(type) {
	case *ast.NullNode:
		return // a key without a value keeps the default
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		l.add(lineOf(n), path, "want %s, got a list or a mapping", describe(v.Type()))
		return
	}
	text := n.GetToken().Value
	if s, ok := n.(*ast.LiteralNode); ok {
		text = s.Value.Value
	}
	if err := setScalar(v, text); err != nil {
		l.add(lineOf(n), path, "%q is not %s", text, describe(v.Type()))
	}
}

var durationType = reflect.TypeFor[time.Duration]()

func setScalar(v reflect.Value, text string) error {
	if v.Type() == durationType {
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return err
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 0, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetUint(u)
	case reflect.Float64, reflect.Float32:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("settings: no reading of %s", v.Type())
	}
	return nil
}

// validate holds every value against its tags, then calls Validate from the leaves up.
func (l *loader) validate(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			l.validate(v.Elem(), path)
		}
		return
	case reflect.Slice:
		for i := range v.Len() {
			if at := path + "[" + strconv.Itoa(i) + "]"; !l.broken[at] {
				l.validate(v.Index(i), at)
			}
		}
		return
	case reflect.Struct:
	default:
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		at, fv := join(path, f.key), v.FieldByIndex(f.Index)
		if l.broken[at] {
			continue
		}
		if text := violation(fv, f.Tag); text != "" {
			l.add(l.lineFor(at), at, "%s", text)
		}
		l.validate(fv, at)
	}
	if !v.CanAddr() {
		return
	}
	if c, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		var rules []Problem // several may be about one key
		for _, p := range named(v, path, c.Validate()) {
			if l.broken[p.Path] {
				continue // a value of which the problem is known
			}
			rules = append(rules, Problem{l.lineFor(p.Path), p.Path, p.Text})
		}
		for _, p := range rules {
			l.add(p.Line, p.Path, "%s", p.Text)
		}
	}
}

// named returns the problems that err joins, of the struct v at the path. "key: what is wrong" names a key of the struct,
// which may be one in a list, "key[2]".
func named(v reflect.Value, path string, err error) (problems []Problem) {
	for _, err := range unjoin(err) {
		p := Problem{Path: path, Text: err.Error()}
		if key, rest, found := strings.Cut(p.Text, ": "); found {
			name, _, _ := strings.Cut(key, "[")
			if _, ok := fieldByKey(v.Type(), name); ok {
				p.Path, p.Text = join(path, key), rest
			}
		}
		problems = append(problems, p)
	}
	return problems
}

// CheckFiles reads the files that the settings struct of points to names: it calls CheckFiles of each part that has
// such a method. Load and Check read no file but that of the settings.
func CheckFiles(of any) []Problem { return checkFiles(nil, reflect.ValueOf(of).Elem(), "") }

func checkFiles(out []Problem, v reflect.Value, path string) []Problem {
	if v.Kind() != reflect.Struct {
		return out
	}
	for _, f := range fieldsOf(v.Type()) {
		out = checkFiles(out, v.FieldByIndex(f.Index), join(path, f.key))
	}
	if c, ok := v.Addr().Interface().(interface{ CheckFiles() error }); ok {
		out = append(out, named(v, path, c.CheckFiles())...)
	}
	return out
}

func (l *loader) lineFor(path string) int { return lineFor(l.lines, path) }

// lineFor is the line of the path, or of the nearest thing around it that has one.
func lineFor(lines map[string]int, path string) int {
	for path != "" {
		if line := lines[path]; line > 0 {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// violation returns how a value breaks its range or oneof tag, or "".
func violation(v reflect.Value, tag reflect.StructTag) string {
	if v.Kind() == reflect.Slice && tag.Get("range")+tag.Get("oneof") != "" && v.Type().Elem().Kind() != reflect.Struct {
		for i := range v.Len() {
			if text := violation(v.Index(i), tag); text != "" {
				return text
			}
		}
		return ""
	}
	if set := tag.Get("oneof"); set != "" && !slices.Contains(strings.Split(set, "|"), v.String()) {
		return fmt.Sprintf("%q is none of %s", v.String(), strings.ReplaceAll(set, "|", ", "))
	}
	lo, hi, ok := strings.Cut(tag.Get("range"), "..")
	if !ok {
		return ""
	}
	low, high := reflect.New(v.Type()).Elem(), reflect.New(v.Type()).Elem()
	if setScalar(low, lo) != nil || setScalar(high, hi) != nil {
		return "has an unreadable range " + tag.Get("range")
	}
	if less(v, low) || less(high, v) {
		return fmt.Sprintf("%s is outside %s..%s", format(v), lo, hi)
	}
	return ""
}

func less(a, b reflect.Value) bool {
	switch {
	case a.CanInt():
		return a.Int() < b.Int()
	case a.CanUint():
		return a.Uint() < b.Uint()
	default:
		return !(a.Float() >= b.Float()) // NaN is outside of everything
	}
}

func fieldByKey(t reflect.Type, key string) (field, bool) {
	for _, f := range fieldsOf(t) {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

func keysOf(t reflect.Type) (keys []string) {
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// suggest returns "; did you mean x?" for the nearest known key, or the keys there are.
func suggest(key string, keys []string) string {
	best, at := 1+len(key)/2, ""
	for _, k := range keys {
		if d := distance(key, k); d < best {
			best, at = d, k
		}
	}
	if at != "" {
		return "; did you mean " + at + "?"
	}
	return "; known here: " + strings.Join(keys, ", ")
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func oneLine(n ast.Node) string {
	const most = 80
	s, _, _ := strings.Cut(strings.TrimSpace(n.String()), "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..." // not within a character
	}
	return s
}
