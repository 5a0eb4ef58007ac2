package settings

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
)

// Keys yields the full names of all keys with their ranges or choices, such as "influx.queue.max_bytes". The keys of a list follow
// its name and "[]".
func Keys(of any) iter.Seq2[string, string] {
	return func(yield func(name, allowed string) bool) {
		walkKeys(reflect.ValueOf(of).Elem(), "", "", yield)
	}
}

func walkKeys(v reflect.Value, path, title string, yield func(name, allowed string) bool) bool {
	for _, f := range fieldsOf(v.Type()) {
		if t := elementOf(f.Type); t.Kind() == reflect.Struct {
			at := join(path, f.key)
			if !walkKeys(reflect.New(t).Elem(), at, at+brackets(f.Type), yield) {
				return false
			}
		} else if !yield(join(title, f.key), allowedText(f.StructField)) {
			return false
		}
	}
	return true
}

// elementOf is the type of the settings that a field holds, refers to or lists.
func elementOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}

// brackets marks the name of a list.
func brackets(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		return "[]"
	}
	return ""
}

// Page is a page of settings that [Reference] wrote, and what it has the settings of.
type Page struct {
	Name string // of its file
	Of   any
}

// Reference writes a Markdown list of every key with its default and range. What several sections hold, by the tag "shared" with
// a title, has one list below that title, to which these sections link. A section also links to an earlier one, of this page or of
// others, for the keys that are the same there. Lists can be read in a terminal and on a narrow page.
func Reference(w io.Writer, of any, others ...Page) error {
	known := map[string]string{}
	for _, p := range others {
		other := referrer{shared: map[string]*shared{}, known: known, page: p.Name}
		other.writeAll(p.Of)
	}
	r := referrer{shared: map[string]*shared{}, known: known}
	r.writeAll(of)
	_, err := w.Write(r.b.Bytes())
	return err
}

// referrer writes a reference.
type referrer struct {
	b      bytes.Buffer
	titles []string // of shared, in their order
	shared map[string]*shared
	page   string            // name of its file; "" for the page that is written
	known  map[string]string // the link to the section that has a row first
}

func (r *referrer) writeAll(of any) {
	v := reflect.ValueOf(of).Elem()
	r.collect(v, "")
	r.write(v, "")
	for _, title := range r.titles {
		r.writeShared(title)
	}
}

// shared is a part of the settings that several sections hold.
type shared struct {
	v       reflect.Value // of the first one
	doc     string        // of the key that holds it, unless a section has another
	holders []string
	differs map[string]bool // keys whose defaults are not the same in all
}

// collect finds the shared parts.
func (r *referrer) collect(v reflect.Value, path string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Type.Kind() != reflect.Struct || key == "" && option != "inline" && !f.Anonymous {
			continue
		}
		at := path
		if key != "" {
			at = join(path, key)
		}
		title := f.Tag.Get("shared")
		if title == "" {
			r.collect(v.Field(i), at)
			continue
		}
		s := r.shared[title]
		if s == nil {
			s = &shared{v: v.Field(i), doc: f.Tag.Get("doc"), differs: map[string]bool{}}
			r.shared[title], r.titles = s, append(r.titles, title)
		}
		s.holders = append(s.holders, "`"+at+"`")
		for _, in := range fieldsOf(f.Type) {
			if format(s.v.FieldByIndex(in.Index)) != format(v.Field(i).FieldByIndex(in.Index)) {
				s.differs[in.key] = true
			}
		}
	}
}

// row is the line of a key.
func row(key, values, meaning string) string {
	if values != "" {
		values = " (" + values + ")"
	}
	return fmt.Sprintf("- `%s`%s: %s\n", key, values, meaning)
}

// fewestSame is the number of keys from which on a link to another section replaces their lines.
const fewestSame = 3

// writeRows writes the lines of the keys of a section. Lines that another section has as well become one with a link to it, in the
// place of the first, if they are enough or the whole section.
func (r *referrer) writeRows(rows, keys []string, path string) {
	same := map[string][]string{} // keys by link
	for i, line := range rows {
		if link := r.known[line]; link != "" && keys[i] != "" {
			same[link] = append(same[link], keys[i])
		}
	}
	linked := map[string]bool{}
	for i, line := range rows {
		link := r.known[line]
		if n := len(same[link]); keys[i] == "" || n < fewestSame && n < len(rows) {
			r.b.WriteString(line)
		} else if !linked[link] {
			linked[link] = true
			r.b.WriteString(row(strings.Join(same[link], "`, `"), "", "as in "+link+"."))
		}
		if link == "" && path != "" && !strings.Contains(path, ".") {
			r.known[line] = fmt.Sprintf("[`%s`](%s#%[1]s)", path, r.page)
		}
	}
}

// writeShared writes the section of a shared part.
func (r *referrer) writeShared(title string) {
	s := r.shared[title]
	fmt.Fprintf(&r.b, "## %s\n\n%s\n\n", title, strings.TrimSpace(s.doc+" Keys of "+strings.Join(s.holders, ", ")+"."))
	for _, f := range fieldsOf(s.v.Type()) {
		values := valuesCell(s.v.FieldByIndex(f.Index), f.StructField)
		if s.differs[f.key] {
			values = "by section"
		}
		r.b.WriteString(row(f.key, values, docOf(s.v, &f)))
	}
	r.b.WriteString("\n")
}

// link refers to a shared part, with the defaults that are those of v alone.
func (r *referrer) link(title string, v reflect.Value) string {
	text := fmt.Sprintf("[%s](#%s)", title, strings.ToLower(title))
	for _, f := range fieldsOf(v.Type()) {
		if r.shared[title].differs[f.key] {
			text += fmt.Sprintf(", `%s` is %s", f.key, defaultCell(v.FieldByIndex(f.Index)))
		}
	}
	return text + "."
}

func (r *referrer) write(v reflect.Value, path string) {
	var nested []field
	var rows, keys []string // of keys alone, "" for links to shared parts
	inlined := map[string]bool{}
	for _, f := range fieldsOf(v.Type()) {
		part := f.Tag.Get("shared")
		if part == "" && elementOf(f.Type).Kind() == reflect.Struct {
			nested = append(nested, f)
			continue
		}
		title := sharedAround(v, &f)
		if part != "" {
			text := r.link(part, v.FieldByIndex(f.Index))
			if doc := docOf(v, &f); doc != r.shared[part].doc {
				text = doc + " " + text
			}
			rows, keys = append(rows, row(f.key, "", text)), append(keys, "")
		} else if title == "" {
			rows, keys = append(rows, row(f.key, valuesCell(v.FieldByIndex(f.Index), f.StructField), docOf(v, &f))), append(keys, f.key)
		} else if !inlined[title] {
			inlined[title] = true
			var around []string
			own := ""
			for _, in := range fieldsOf(v.Type()) {
				if sharedAround(v, &in) != title {
					continue
				}
				around = append(around, in.key)
				if doc := docOf(v, &in); doc != in.Tag.Get("doc") {
					own += fmt.Sprintf(" `%s`: %s", in.key, doc)
				}
			}
			rows, keys = append(rows, row(strings.Join(around, "`, `"), "", fmt.Sprintf("[%s](#%s).%s", title, strings.ToLower(title), own))), append(keys, "")
		}
	}
	if len(rows) > 0 {
		r.writeRows(rows, keys, path)
		r.b.WriteString("\n")
	}
	for _, f := range nested {
		at, fv := join(path, f.key), v.FieldByIndex(f.Index)
		if fv.Kind() != reflect.Struct {
			fv = reflect.New(fv.Type().Elem()).Elem()
		}
		fmt.Fprintf(&r.b, "%s `%s`\n\n", strings.Repeat("#", 2+strings.Count(at, ".")), at+brackets(f.Type))
		if doc := docOf(v, &f); doc != "" {
			fmt.Fprintf(&r.b, "%s\n\n", doc)
		}
		r.write(fv, at)
	}
}

// sharedAround returns the title of the shared part that contains a key inline.
func sharedAround(v reflect.Value, f *field) string {
	for i := 1; i < len(f.Index); i++ {
		if title := v.Type().FieldByIndex(f.Index[:i]).Tag.Get("shared"); title != "" {
			return title
		}
	}
	return ""
}

// valuesCell is the default of a key, and what it may be.
func valuesCell(v reflect.Value, f reflect.StructField) string {
	values, allowed := defaultCell(v), allowedText(f)
	if values != "" && allowed != "" {
		values += "; "
	}
	return values + allowed
}

func defaultCell(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, "`"+format(v.Index(i))+"`")
		}
		return strings.Join(items, ", ")
	case v.Kind() == reflect.String && v.Len() == 0:
		return ""
	}
	return "`" + format(v) + "`"
}

// allowedText is the range or the choices of a key, and "list" for a list; "" for any text.
func allowedText(f reflect.StructField) string {
	text := f.Tag.Get("range")
	if text == "" {
		text = strings.ReplaceAll(strings.TrimPrefix(f.Tag.Get("oneof"), "|"), "|", ", ")
	}
	switch {
	case f.Type.Kind() != reflect.Slice:
		return text
	case text == "":
		return "list"
	}
	return "list of " + text
}
