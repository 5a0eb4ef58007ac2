package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	attentionsolve "github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/show"
)

// orchestrateInstanceJSON is the JSON of an instance, in which flows name the interfaces that a problem has by number.
type orchestrateInstanceJSON struct {
	Interfaces []orchestrateInterfaceJSON `json:"interfaces"`
	Flows      []orchestrateFlowJSON      `json:"flows"`
}

// orchestrateInterfaceJSON is an interface, or a direction of a link, with telemetry to be collected.
type orchestrateInterfaceJSON struct {
	ID     string `json:"id"`
	Demand int64  `json:"demand"`           // items
	Weight int64  `json:"weight,omitempty"` // in what is left out; its demand where left out
}

// orchestrateFlowJSON is a flow of production packets.
type orchestrateFlowJSON struct {
	ID         string   `json:"id"`
	Capacity   int64    `json:"capacity,omitempty"`     // items that a packet can carry
	Rate       float64  `json:"rate,omitempty"`         // packets a second
	Class      string   `json:"class,omitempty"`        // of traffic
	Sizes      []int64  `json:"packet_sizes,omitempty"` // bytes of packets, instead of a capacity
	Interfaces []string `json:"interfaces"`             // those passed, in the order of packets
}

// schemas are the files of docs/schemas, each with what its JSON is.
var schemas = map[string]struct {
	title string
	of    any
	kind  string // of a plan
}{
	"plan-cover":           {"Plan of hopscope plan cover", cover.Plan{}, "cover"},
	"plan-attention":       {"Plan of hopscope plan attention", attention.Plan{}, "attention"},
	"plan-orchestrate":     {"Plan of hopscope plan orchestrate", orchestrate.Plan{}, "orchestrate"},
	"plan-delivery":        {"Plan of hopscope plan delivery", delivery.Plan{}, "delivery"},
	"plan-schedule":        {"Plan of hopscope plan schedule", schedule.Plan{}, "schedule"},
	"plan-queries":         {"Plan of hopscope plan queries", querymix.Plan{}, "queries"},
	"diff":                 {"Difference of two plans, of hopscope plan diff", show.PlanDiff{}, "diff"},
	"categories":           {"Metrics divided, of hopscope plan attention --metrics", attentionsolve.Categories{}, ""},
	"instance-attention":   {"Instance of hopscope plan attention", attention.Problem{}, ""},
	"instance-orchestrate": {"Instance of hopscope plan orchestrate", orchestrateInstanceJSON{}, ""},
	"instance-delivery":    {"Instance of hopscope plan delivery", delivery.Problem{}, ""},
	"instance-schedule":    {"Instance of hopscope plan schedule", schedule.Problem{}, ""},
	"instance-queries":     {"Queries of hopscope plan queries (YAML or JSON)", querymix.Problem{}, ""},
	"metrics":              {"Metrics of hopscope plan attention --metrics (YAML)", attentionsolve.Metrics{}, ""},
}

// needed are the keys that objects of instances cannot do without. In plans these are all that are always written.
var needed = map[reflect.Type][]string{
	reflect.TypeFor[attention.Problem]():         {"probes"},
	reflect.TypeFor[attention.Trace]():           {"id"},
	reflect.TypeFor[orchestrateInstanceJSON]():   {"interfaces", "flows"},
	reflect.TypeFor[delivery.Problem]():          {"nodes"},
	reflect.TypeFor[delivery.Node]():             {"id", "kind"},
	reflect.TypeFor[delivery.Link]():             {"a", "b"},
	reflect.TypeFor[schedule.Problem]():          {"probes"},
	reflect.TypeFor[attentionsolve.Metrics]():    {"metrics"},
	reflect.TypeFor[attentionsolve.Metric]():     {"name", "bytes"},
	reflect.TypeFor[orchestrateInterfaceJSON]():  {"id", "demand"},
	reflect.TypeFor[orchestrateFlowJSON]():       {"id", "interfaces"},
	reflect.TypeFor[attentionsolve.Categories](): {"basic", "detailed", "instructions"},
}

// words are the values of types that have but a few.
var words = map[reflect.Type][]any{
	reflect.TypeFor[planner.Proof]():     {planner.Verified, planner.Claimed},
	reflect.TypeFor[planner.Op]():        {planner.OpAdd, planner.OpRemove, planner.OpChange},
	reflect.TypeFor[delivery.NodeKind](): {delivery.PointNode, delivery.ServerNode, delivery.SwitchNode},
	reflect.TypeFor[delivery.LossTest](): {delivery.LossPath, delivery.LossJoint, delivery.LossExact, delivery.LossChernoff},
	reflect.TypeFor[cover.Measure]():     {cover.Links, cover.Delay, cover.Bytes, cover.Cost},
}

// said describes the keys that have no comment of their own, since their name says it. A key with the name of a type before
// it is meant of that type alone.
var said = map[string]string{
	"a": "One end.", "b": "The other end.",
	"acceptance": "Share of the points that are served.", "added_links": "Links that have to be built.", "agent": "Node or host that sends.",
	"agent_port": "Port of that host.", "aggregation": "How values are put together.", "algorithm": "How the plan was made.",
	"assignment": "Paths on which points send.", "basic": "What is measured always.", "basic_bytes": "Bytes that a hop adds then.", "bits": "Bits.", "bytes_per_second": "On all links that it passes.",
	"capacity_gbps": "Capacity in Gbit/s.", "collector": "Node or host that receives.", "collector_host": "Host that receives.", "collector_port": "Port of that host.",
	"cost": "What it costs to measure in detail; the number of links where left out.", "deadline_ms": "Time in ms in which reports must be at the server.",
	"detail": "Why, with figures.", "detailed": "What is measured in detail.", "detailed_bytes": "Bytes that a hop adds then.",
	"entries": "Entries.", "epoch": "Number of the plan, which packets carry.", "first": "First value of the hash.", "last": "Last value of the hash.",
	"floor_price": "Dual price of the frequency.", "flow": "Id of the flow.", "flows": "Flows.", "flows_used": "Flows that carry items.", "freshness": "Hops over which items are carried before they are reported.",
	"id": "Stable id.", "instances": "Instances; 1 where left out.", "instructions": "Instruction bitmaps.", "interface": "Id of the interface.",
	"interfaces": "Interfaces.", "interval_ms": "Time between two starts.", "items": "Telemetry items.", "kind": "What it does.", "latency_ms": "Latency in ms.",
	"left_out": "What is not served.", "link": "Name of the link.", "link_limit_bps": "Most that probes may take of a link.", "links": "Names of links.",
	"links_lower_bound": "Proven: no plan that serves as many adds fewer.", "load_gbps": "What of that is taken, in Gbit/s.", "load_max": "Items of the flow that carries most.",
	"longest": "Length of the longest probe, in links.", "lower_bound": "Proven: no plan that leaves out no more has a smaller objective.",
	"matches": "Matches before a loop is reported.", "max": "Largest.", "max_value": "Largest value.", "mean": "Mean.", "metrics": "Metrics.", "min": "Smallest.",
	"min_value": "Smallest value that is told from 0.", "name": "Name.", "next_hop": "Node behind that port.", "nodes": "Nodes.", "not_probed": "Links that no probe passes.",
	"not_seen": "Links that are not seen in time.", "not_sent": "Ids of probes that are not needed.", "objective": "How good the plan is: less is better.",
	"of": "What is shown.", "op": "What the step does.", "optimal": "Both bounds are met: no plan is better.", "out_port": "Port that reports leave by.",
	"packets": "Packets to the answer.", "period_ms": "Time in which links are seen.", "point": "Id of the measurement point.", "points": "Measurement points.",
	"port_a": "Port at one end.", "port_b": "Port at the other end.", "probes": "Probes.", "proof": "What became of the claims of a plan that was read.",
	"queries": "Queries.", "query": "Name of the query.", "rate_gbps": "Rate in Gbit/s.", "reason": "Why.", "relations": "Which metric shows which.", "rules": "What it forwards where.",
	"seed": "Of the hashes.", "sent": "Probes that are sent.", "served": "Points that are served.", "server": "Id of the server.", "servers": "Servers that get reports.",
	"sets": "Sets of queries that travel together.", "share": "Share of the packets.", "shares": "Items that travel on several flows.", "shows": "What shows it.",
	"slot_ms": "Length of a slot in ms.", "slots": "Places in the digest.", "space_bytes": "Memory of a flow.", "split": "Items of an interface may travel on several flows.",
	"stats": "How good the plan is.", "switch": "Id of the switch.", "tag": "Tag of the path.", "topology": "Name of the topology.", "unserved": "What is not served, and why.",
	"value": "What is asked for.", "variance": "Variance of the lengths.", "weight": "Weight in what is left out.", "widths": "Ways to code it.",
	"xor": "Probability of a hop to write, by XOR layer.",

	"orchestrate.Plan.objective": "Concentrate or balance.",
}

type object = map[string]any

// schemaWriter makes JSON Schemas of Go types. Descriptions are the comments in their source.
type schemaWriter struct {
	t        *testing.T
	defs     object
	comments map[string]map[string]string // by package and type: those of fields, and of the type itself under ""
}

func (w *schemaWriter) schema(name string) object {
	s := schemas[name]
	w.defs = object{}
	root := w.object(reflect.TypeOf(s.of))
	if s.kind != "" {
		properties := root["properties"].(object)
		properties["kind"] = object{"const": s.kind, "description": "The family of the plan."}
		properties["version"] = object{"const": planner.Version, "description": "Version of this format."}
		root["required"] = append([]string{"kind", "version"}, root["required"].([]string)...)
	}
	root["$schema"], root["$id"], root["title"] = "https://json-schema.org/draft/2020-12/schema", "https://hopscope.invalid/schemas/"+name+".schema.json", s.title
	if len(w.defs) > 0 {
		root["$defs"] = w.defs
	}
	return root
}

// of returns the schema of a value.
func (w *schemaWriter) of(t reflect.Type) object {
	if list := words[t]; list != nil {
		return object{"enum": list}
	}
	switch t {
	case reflect.TypeFor[querymix.Fraction]():
		return object{"anyOf": []any{object{"type": "number"}, object{"type": "string", "pattern": `^[^/]+(/[^/]+)?$`}}}
	case reflect.TypeFor[querymix.Width]():
		return object{"anyOf": []any{object{"type": "integer"}, object{"type": "string", "pattern": "^([0-9]+x)?[0-9]+$"}, w.object(t)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": w.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Struct:
		name := strings.TrimSuffix(t.Name(), "JSON")
		if w.defs[name] == nil {
			w.defs[name] = object{} // it may hold itself
			w.defs[name] = w.object(t)
		}
		return object{"$ref": "#/$defs/" + name}
	}
	w.t.Fatalf("no schema for %v", t)
	return nil
}

// object returns the schema of a struct.
func (w *schemaWriter) object(t reflect.Type) object {
	properties, required := object{}, []string{}
	var fields func(t reflect.Type)
	fields = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && tag == "":
				fields(f.Type)
				continue
			case tag == "-" || !f.IsExported():
				continue
			}
			v := w.of(f.Type)
			text := w.comment(t, f.Name)
			if text == "" {
				text = said[t.String()+"."+tag]
			}
			if text == "" {
				text = said[tag]
			}
			if text == "" {
				w.t.Errorf("%v: the key %q has no description: its field has no comment, and the list of what is said by names not either", t, tag)
			}
			v["description"] = text
			properties[tag] = v
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				required = append(required, tag)
			}
		}
	}
	fields(t)
	if list, ok := needed[t]; ok {
		required = list
	} else if strings.HasSuffix(t.PkgPath(), "/querymix") && t.Name() == "Width" {
		required = []string{"bits"}
	}
	o := object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if text := w.comment(t, ""); text != "" {
		o["description"] = text
	}
	return o
}

// comment is that of a field of a type, or of the type itself.
func (w *schemaWriter) comment(t reflect.Type, field string) string {
	key := t.PkgPath() + "." + t.Name()
	if w.comments[key] == nil {
		w.read(t.PkgPath())
	}
	return w.comments[key][field]
}

// read collects the comments of a package.
func (w *schemaWriter) read(pkg string) {
	dir, pattern := filepath.Join("..", "..", filepath.FromSlash(strings.TrimPrefix(pkg, "github.com/hopscope/hopscope/"))), "*.go"
	if !strings.HasPrefix(pkg, "github.com/hopscope/hopscope/planner") { // package main, which this is
		dir = "."
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.TypeSpec)
				body, ok := s.Type.(*ast.StructType)
				if !ok {
					continue
				}
				list := map[string]string{"": sentence(g.Doc.Text())}
				for _, f := range body.Fields.List {
					text := f.Comment.Text()
					if text == "" {
						text = f.Doc.Text()
					}
					for _, n := range f.Names {
						list[n.Name] = sentence(text)
					}
				}
				w.comments[pkg+"."+s.Name.Name] = list
			}
		}
	}
}

// sentence makes one of a comment: one line, a capital letter and a full stop.
func sentence(comment string) string {
	s := strings.Join(strings.Fields(comment), " ")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// TestPagesSchemas holds docs/schemas against the types that are written and read.
func TestPagesSchemas(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "schemas")
	there, err := filepath.Glob(filepath.Join(dir, "*.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if _, ok := schemas[strings.TrimSuffix(filepath.Base(path), ".schema.json")]; !ok {
			t.Errorf("%s is the schema of nothing", path)
		}
	}
	w := &schemaWriter{t: t, comments: map[string]map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(w.schema(name)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".schema.json")
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s differs from what the program writes and reads (%v); write it with: make docs", path, err)
		}
	}
}
