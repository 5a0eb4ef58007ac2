package web

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

var update = flag.Bool("update", false, "write openapi.json and docs/api.md")

const (
	module      = "github.com/hopscope/hopscope/"
	openAPIFile = "openapi.json"
	apiPage     = "../../docs/api.md"
)

// object is a JSON object in the order of its names.
type object = map[string]any

// describer writes the types of answers as JSON schemas, with the comments that stand with them in the code.
type describer struct {
	t        *testing.T
	types    object                       // by name
	comments map[string]map[string]string // by package and type, then by field; the type's own by ""
	read     map[string]bool              // packages
}

// schema returns the schema of a type. Structs with a name become a type of the document.
func (d *describer) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[ask.Value]():
		return object{"type": []string{"number", "null"}}
	case t == reflect.TypeFor[inference.Element]():
		return d.element()
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		d.t.Fatalf("%v writes its JSON itself: it needs a schema here", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := d.schema(t.Elem())
		if kind, ok := s["type"].(string); ok {
			s["type"] = []string{kind, "null"}
			return s
		}
		return object{"anyOf": []object{s, {"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.ref(t)
	}
	d.t.Fatalf("no schema of %v", t)
	return nil
}

// element is what [inference.Element] writes by hand.
func (d *describer) element() object {
	text, number := object{"type": "string"}, object{"type": "integer", "minimum": 0}
	d.types["Element"] = object{"type": "object", "description": "Element is a part of the network, such as {\"kind\":\"link\",\"node\":7,\"peer\":9,\"text\":\"link 7–9\"}. A field that does not apply is absent.",
		"properties": object{"kind": object{"type": "string", "description": "node, interface, link, exporter, flow, route or collector"}, "node": number, "egress_if": number, "peer": number, "peer_if": number,
			"address": text, "hw_id": number, "flow": text, "prefix": text, "text": object{"type": "string", "description": "the whole element, as in sentences"}},
		"required": []string{"kind", "text"}, "additionalProperties": false}
	return object{"$ref": "#/components/schemas/Element"}
}

func (d *describer) ref(t reflect.Type) object {
	t = answered(t)
	name := d.name(t)
	if _, done := d.types[name]; !done {
		d.types[name] = nil // a type may contain itself
		s := object{"type": "object", "properties": object{}, "required": []string{}, "additionalProperties": false}
		if text := d.comment(t, ""); text != "" {
			s["description"] = strings.ReplaceAll(text, t.Name()+" ", name+" ")
		}
		d.fields(t, s)
		d.types[name] = s
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// name returns the name of a type in the document: that of the type without the words that say how it is used.
func (d *describer) name(t reflect.Type) string {
	name := strings.TrimSuffix(strings.TrimSuffix(t.Name(), "Doc"), "Answer")
	if pkg := path.Base(t.PkgPath()); pkg != "web" && pkg != "ask" && !strings.HasPrefix(strings.ToLower(name), pkg) {
		name = pkg + strings.ToUpper(name[:1]) + name[1:]
	}
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}

func (d *describer) fields(t reflect.Type, s object) {
	for f := range fieldsOf(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			d.fields(embedded, s)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			d.t.Errorf("field %s of %v has no name in JSON", f.Name, t)
		}
		optional := strings.Contains(options, "omitempty")
		of := f.Type
		if optional && of.Kind() == reflect.Pointer {
			of = of.Elem() // it is absent, and not null
		}
		field := d.schema(of)
		if text := d.comment(t, f.Name); text != "" {
			field["description"] = text
		}
		s["properties"].(object)[tag] = field
		if !optional {
			s["required"] = append(s["required"].([]string), tag)
		}
	}
}

// answered returns the type that a row embeds which is in JSON nothing but that, or else the type itself.
func answered(t reflect.Type) reflect.Type {
	var in reflect.Type
	for f := range fieldsOf(t) {
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && in == nil:
			in = f.Type
		case f.IsExported():
			return t
		}
	}
	if in != nil {
		return in
	}
	return t
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// comment returns what stands with a field of a type, or with the type itself where the field is "".
func (d *describer) comment(t reflect.Type, field string) string {
	if !d.read[t.PkgPath()] {
		d.read[t.PkgPath()] = true
		d.readPackage(t.PkgPath())
	}
	return d.comments[t.PkgPath()+"."+t.Name()][field]
}

func (d *describer) readPackage(pkg string) {
	dir := "../../" + strings.TrimPrefix(pkg, module)
	entries, err := os.ReadDir(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				t := spec.(*ast.TypeSpec)
				st, ok := t.Type.(*ast.StructType)
				if !ok {
					continue
				}
				texts := map[string]string{"": oneLine(g.Doc)}
				for _, field := range st.Fields.List {
					for _, n := range field.Names {
						texts[n.Name] = strings.TrimSpace(oneLine(field.Doc) + " " + oneLine(field.Comment))
					}
				}
				d.comments[pkg+"."+t.Name.Name] = texts
			}
		}
	}
}

// oneLine is a comment without the signs of links.
func oneLine(c *ast.CommentGroup) string {
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(c.Text()), " "))
}

// parameter describes a parameter of an endpoint.
func parameter(p *param) object {
	s := object{"type": "string"}
	if p.kind == "integer" {
		s = object{"type": p.kind, "minimum": p.least, "maximum": p.most}
	}
	if len(p.enum) > 0 {
		s["enum"] = p.enum
	}
	return object{"name": p.name, "in": "query", "description": p.about, "required": p.required, "schema": s}
}

// document returns the API as OpenAPI 3.1.
func (d *describer) document() object {
	failed := func(about string) object {
		return object{"description": about, "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
	}
	d.types["Problem"] = object{"type": "object", "description": "Problem is the answer to a request that failed.",
		"properties": object{"error": object{"type": "string", "description": "what is wrong, and what would be right"}}, "required": []string{"error"}, "additionalProperties": false}
	paths := object{}
	for i := range endpoints {
		e := &endpoints[i]
		content := object{e.media: object{"schema": object{"type": "string"}}}
		if e.answer != nil {
			content = object{"application/json": object{"schema": d.schema(reflect.TypeOf(e.answer))}}
		}
		params := []object{}
		for k := range e.params {
			params = append(params, parameter(&e.params[k]))
		}
		op := object{"summary": e.about, "operationId": strings.ReplaceAll(e.path, "/", "_"), "x-role": e.role.String(),
			"security": []object{{"bearer": []string{e.role.String()}}, {"session": []string{e.role.String()}}, {"proxy": []string{e.role.String()}}},
			"responses": object{
				"200": object{"description": "the answer", "content": content},
				"401": failed("the token is missing or wrong"), "403": failed("the role does not allow it"), "421": failed("the Host header is another one"), "429": failed("too many wrong tokens came from this address"),
			}}
		if e.role == access.Viewer {
			op["security"] = append(op["security"].([]object), object{}) // where no login is configured
		}
		responses := op["responses"].(object)
		if len(params) > 0 {
			op["parameters"] = params
			responses["400"] = failed("a parameter is wrong")
		}
		if slices.ContainsFunc(e.params, func(p param) bool { return p.required }) || strings.Contains(e.about, "404") {
			responses["404"] = failed("there is no such thing")
		}
		method := methodOf(e)
		if !e.change && e.answer != nil {
			responses["304"] = object{"description": "the answer has the ETag that If-None-Match names"}
		}
		if e.change {
			op["description"] = "A browser sends csrf of whoami in the header " + access.CSRFHeader + "."
			responses["409"] = failed("this program, as it is configured, cannot do it")
		}
		if e.body != nil {
			op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(e.body))}}}
			responses["400"], responses["507"] = failed("the body is wrong"), failed("it cannot be recorded, and is not done")
		}
		paths["/api/v1/"+e.path] = object{method: op}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "hopscope", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "What a collector, or the console of a fleet, shows. Changes take POST. Times are milliseconds since 1970, latencies nanoseconds, queues bytes, utilisation a ratio. A value that was not reported is null."},
		"servers": []object{{"url": "/"}},
		"paths":   paths,
		"components": object{"schemas": d.types, "securitySchemes": object{
			"bearer":  object{"type": "http", "scheme": "bearer", "description": "a token by role, or the text of web.token_file, which has the role admin"},
			"session": object{"type": "apiKey", "in": "cookie", "name": access.CookieName, "description": "set by /login"},
			"proxy":   object{"type": "apiKey", "in": "header", "name": "X-Forwarded-User", "description": "the header of web.access.user_header, from a trusted proxy alone"},
		}},
	}
}

func describe(t *testing.T) []byte {
	d := &describer{t: t, types: object{}, comments: map[string]map[string]string{}, read: map[string]bool{}}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "\t")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d.document()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOpenAPI holds openapi.json and docs/api.md against the code.
func TestOpenAPI(t *testing.T) {
	doc := describe(t)
	page := []byte(apiMarkdown(t, doc))
	if *update {
		for file, data := range map[string][]byte{openAPIFile: doc, apiPage: page} {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for file, want := range map[string][]byte{openAPIFile: doc, apiPage: page} {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code answers (%v): go test ./sink/web -run TestOpenAPI -update", file, err)
		}
	}
}

// apiParameter is a parameter of a path as OpenAPI has it.
type apiParameter struct {
	Name, Description string
	Required          bool
	Schema            struct {
		Type             string
		Minimum, Maximum *int64
		Enum             []string
	}
}

// isChange reports whether a column is the change of another one.
func isChange(column string) bool { return strings.HasSuffix(column, "_change") }

// methodOf is the method of an endpoint, as OpenAPI names it.
func methodOf(e *endpoint) string {
	if e.change {
		return "post"
	}
	return "get"
}

// apiMarkdown writes the page of the API.
func apiMarkdown(t *testing.T, doc []byte) string {
	var api struct {
		Info  struct{ Description string }
		Paths map[string]map[string]struct {
			Summary     string
			Role        string `json:"x-role"`
			RequestBody struct {
				Content map[string]struct {
					Schema map[string]any
				}
			}
			Parameters []apiParameter
			Responses  map[string]struct {
				Content map[string]struct {
					Schema map[string]any
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]map[string]any
				Required    []string
			}
		}
	}
	if err := json.Unmarshal(doc, &api); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# The API\n\n" + api.Info.Description + "\n\n" +
		"Every path begins with `/api/v1/`; without `v1/` it is the newest version. `/api/openapi.json` has this page for programs, as OpenAPI 3.1. With [a login](access.md), each request has\n" +
		"the header `Authorization: Bearer TOKEN`; a path without a role needs `viewer`. Errors have a status of 400 and above, and [the reason](#problem).\n" +
		"Each answer in JSON has an `ETag`; a request whose `If-None-Match` has it gets status 304 in place of the same bytes.\n\n" +
		"## Parameters\n\nSeveral paths have these.\n\n")
	paramText := func(q apiParameter) string {
		text := q.Description
		if q.Schema.Minimum != nil && *q.Schema.Maximum <= 1<<31 {
			text += fmt.Sprintf("; %d to %d", *q.Schema.Minimum, *q.Schema.Maximum)
		}
		if plain := slices.DeleteFunc(slices.Clone(q.Schema.Enum), isChange); len(plain) > 0 {
			text += ": `" + strings.Join(plain, "`, `") + "`"
			if changes := q.Schema.Enum[len(plain):]; len(changes) > 0 {
				text += "; with `compare` also `" + changes[0] + "` to `" + changes[len(changes)-1] + "`"
			}
		}
		if q.Required {
			text = "required; " + text
		}
		return fmt.Sprintf("- `%s`: %s\n", q.Name, text)
	}
	times := map[string]int{} // of parameters that are alike
	for i := range endpoints {
		for _, q := range api.Paths["/api/v1/"+endpoints[i].path][methodOf(&endpoints[i])].Parameters {
			text := paramText(q)
			if times[text]++; times[text] == 2 {
				b.WriteString(text)
			}
		}
	}
	b.WriteString("\n## Paths\n")
	for i := range endpoints {
		p, method := "/api/v1/"+endpoints[i].path, methodOf(&endpoints[i])
		get := api.Paths[p][method]
		fmt.Fprintf(&b, "\n### `%s %s`\n\n%s.%s", strings.ToUpper(method), p, upper(get.Summary), roleText(get.Role))
		for _, c := range get.RequestBody.Content {
			fmt.Fprintf(&b, " Body: %s.", kindOf(c.Schema))
		}
		for media, c := range get.Responses["200"].Content {
			kind := kindOf(c.Schema)
			if endpoints[i].answer == nil {
				kind = media
			}
			fmt.Fprintf(&b, " Answer: %s.\n", kind)
		}
		var names []string
		own := ""
		for _, q := range get.Parameters {
			if text := paramText(q); times[text] > 1 {
				names = append(names, "`"+q.Name+"`")
			} else {
				own += text
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "[Parameters](#parameters): %s.\n", strings.Join(names, ", "))
		}
		if own != "" {
			b.WriteString("\n" + own)
		}
	}
	b.WriteString("\n## Types\n\nA field with ? may be absent. A field without a type is a text, a number or a boolean, `T[]` a list, `{T}` an object with values of that type.\n")
	described := map[string]bool{} // types that the summaries of their paths describe
	for _, e := range endpoints {
		if e.answer != nil && e.body == nil {
			for _, c := range api.Paths["/api/v1/"+e.path][methodOf(&e)].Responses["200"].Content {
				ref, _ := c.Schema["$ref"].(string)
				described[path.Base(ref)] = true
			}
		}
	}
	fieldText := func(name, field string) string {
		s := api.Components.Schemas[name]
		text, _ := s.Properties[field]["description"].(string)
		if text == "" {
			return ""
		}
		return fmt.Sprintf("`%s`%s: %s\n", field, inBrackets(kindOf(s.Properties[field])), text)
	}
	types := map[string]int{} // that have the field with this text
	for name, s := range api.Components.Schemas {
		for field := range s.Properties {
			types[fieldText(name, field)]++
		}
	}
	b.WriteString("\nSeveral types have these fields with the same meaning:\n\n")
	for _, text := range slices.Sorted(maps.Keys(types)) {
		if text != "" && types[text] >= 3 {
			b.WriteString("- " + text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(api.Components.Schemas)) {
		s := api.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if s.Description != "" && (!described[name] || strings.Contains(s.Description, ". ")) {
			b.WriteString(upper(strings.TrimPrefix(s.Description, name+" is ")) + "\n\n")
		}
		var plain []string // fields without a text of their own
		for _, field := range fieldOrder(doc, name) {
			mark := "?"
			if slices.Contains(s.Required, field) {
				mark = ""
			}
			label, kind := fmt.Sprintf("`%s`%s", field, mark), inBrackets(kindOf(s.Properties[field]))
			text, _ := s.Properties[field]["description"].(string)
			if text == "" || types[fieldText(name, field)] >= 3 {
				plain = append(plain, label+kind)
				continue
			}
			fmt.Fprintf(&b, "- %s%s: %s\n", label, kind, text)
		}
		if len(plain) > 0 {
			fmt.Fprintf(&b, "- %s\n", strings.Join(plain, ", "))
		}
	}
	return b.String()
}

// inBrackets writes the type of a field, unless it is a text, a number or a boolean.
func inBrackets(kind string) string {
	switch kind {
	case "string", "integer", "number", "number|null", "integer|null", "boolean":
		return ""
	}
	return " (" + kind + ")"
}

// fieldOrder lists the fields of a type, required ones first, in the order of their names.
func fieldOrder(doc []byte, name string) []string {
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	if json.Unmarshal(doc, &api) != nil {
		return nil
	}
	s := api.Components.Schemas[name]
	fields := slices.Clone(s.Required)
	var rest []string
	for f := range s.Properties {
		if !slices.Contains(fields, f) {
			rest = append(rest, f)
		}
	}
	slices.Sort(rest)
	return append(fields, rest...)
}

// kindOf writes a schema as a type.
func kindOf(s map[string]any) string {
	if ref, ok := s["$ref"].(string); ok {
		name := path.Base(ref)
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	if choices, ok := s["anyOf"].([]any); ok {
		return kindOf(choices[0].(map[string]any)) + "|null"
	}
	switch kind := s["type"].(type) {
	case []any:
		return fmt.Sprintf("%v|null", kind[0])
	case string:
		switch kind {
		case "array":
			of := kindOf(s["items"].(map[string]any))
			if strings.Contains(of, "|") {
				of = "(" + of + ")"
			}
			return of + "[]"
		case "object":
			return "{" + kindOf(s["additionalProperties"].(map[string]any)) + "}"
		}
		return kind
	}
	return ""
}

// roleText says which role an endpoint needs, where that is not the first one.
func roleText(role string) string {
	if role == access.Viewer.String() {
		return ""
	}
	return " Role: `" + role + "`."
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// TestAnswersHold asks every endpoint of a collector, and of the console of a fleet, and holds the answer against the
// schema.
func TestAnswersHold(t *testing.T) {
	schemas := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(describe(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.AddResource("hopscope.json", doc); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{
		"hop": "node=4:3", "flow": "key=" + url.QueryEscape("10.1.1.2:32865 > 10.3.0.3:5201 tcp"), "explain": "id=000000000000000b", "find": "q=4", "flows": "limit=200",
		"hops": "limit=200", "exporters": "limit=200",
	}
	for name, srv := range openAPIServers(t) {
		for i := range endpoints {
			e := &endpoints[i]
			if e.answer == nil || e.change { // changes have tests of their own
				continue
			}
			target := "/api/v1/" + e.path + "?" + asked[e.path]
			if name == "history" {
				target += fmt.Sprintf("&from=%d&to=%d", sceneTime.Add(-24*time.Hour).UnixMilli(), sceneTime.UnixMilli())
			}
			res := request(srv, http.MethodGet, target)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			ref := fmt.Sprintf("hopscope.json#/paths/%s/get/responses/%d/content/application~1json/schema", strings.ReplaceAll("/api/v1/"+e.path, "/", "~1"), res.StatusCode)
			schema, err := schemas.Compile(ref)
			if err != nil {
				t.Errorf("%s: %s answers %s, of which openapi.json has nothing: %v", name, target, res.Status, err)
				continue
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err != nil {
				t.Errorf("%s: %s: %v", name, target, err)
				continue
			}
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s: %s: %v", name, target, err)
			}
		}
	}
}

// openAPIServers have something in every list: of a collector on a map with names, and of the console of a fleet.
func openAPIServers(t *testing.T) map[string]*Server {
	t.Helper()
	m := fabric(4)
	view := sceneLoop(m, []int{3, 9})
	deps := sceneDeps(sceneTime)
	named := names.New([]names.Node{{ID: 4, Name: "core-3", Site: "", Interfaces: []names.Interface{{ID: 3, Name: "Ethernet3", Speed: 25e9}}, DropReasons: map[uint8]string{29: "full"}}},
		[]names.Host{{Prefix: netip.MustParsePrefix("10.1.1.0/24"), Name: "storage"}}, map[uint8]string{77: "no route"})
	deps.Names = func() *names.Names { return named }
	deps.Map = func() *atlas.Map { return m }
	deps.Loop = func() *atlas.LoopView { return view }
	deps.Unread = sceneUnread
	key := "10.1.1.2:32865 > 10.3.0.3:5201 tcp"
	deps.Paths = func(int) Paths { return Paths{Known: 1, Sprayed: 1, Flows: []PathFlow{sprayedFlow(key)}} }
	deps.PathsOf = func([]decode.FlowKey) []PathFlow { return []PathFlow{sprayedFlow(key)} }
	collector, err := New(DefaultConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(7, 20, 4)
	s.fill(collector, sceneWindows, sceneTime)
	write(collector, mapWindow(m, 5, sceneTime, nil, []int{3}))
	emit(collector, append(s.findings(sceneTime), mapFindings(m, sceneTime, 3)...))
	collector.history.add(&inference.Window{Start: sceneTime.UnixNano() - 5e9, End: sceneTime.UnixNano(),
		Interfaces: []inference.InterfaceStats{counted(4, 3, decode.Counters{Has: decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors, InPackets: 1000, OutPackets: 10, InErrors: 1})},
		Probes:     []inference.ProbeStats{probedStats(1, 0, 1000), probedStats(3, 100, 0)}})
	probe := inference.FlowStats{Key: mustFlow("10.0.0.9:30000 > 10.0.0.10:2222 udp"), Packets: 3, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 4, EgressIf: 3}, Latency: inference.Summary{Count: 3, P50: 5, P90: 6, P99: 7}}}}
	collector.probes.keep(&inference.Window{Start: 1e9, End: 2e9, Reports: 3, Flows: []inference.FlowStats{probe}}, []string{"other"})

	console, err := New(DefaultConfig(), fleetDeps(sceneTime, fleetScene(sceneTime)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w := s.window(i, sceneTime.Add(time.Duration(i)*s.length))
		replace(console, w.Window, "west-2")
	}
	emit(console, s.findings(sceneTime))
	deps.Past = pastScene(t, sceneTime)
	looking, err := New(DefaultConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	emit(looking, s.findings(sceneTime))
	return map[string]*Server{"collector": collector, "console": console, "history": looking}
}
