package sink

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Series describes one measurement as stores hold it. Points and the reference of stored series are made from
// [AllSeries], and the shipped dashboards are checked against it.
type Series struct {
	Measurement string
	Doc         string // the object of a point, from its noun on
	Tags        []TagSpec
	Fields      []FieldSpec
}

// TagSpec describes a tag. All tags of a series are on every point of it.
type TagSpec struct{ Key, Doc string }

// FieldSpec describes a field. A field whose value was not reported is absent from the point, never zero.
type FieldSpec struct {
	Key  string
	Kind FieldKind
	Unit string // "ns", "bytes", "ratio", or empty for counts and text
	Doc  string
}

func (k FieldKind) String() string { return [...]string{"integer", "float", "string"}[min(k, String)] }

// AllSeries are the stored series, in the order of the reference. The time of a point is the end of its window,
// unless Doc states another.
var AllSeries = []Series{hops.Series, nameless.Series, flows.Series, sights.Series, ways.Series, paths.Series, events.Series, exporters.Series, interfaces.Series, probes.Series, runs.Series, called.Series}

// points makes the points of a window and its findings. A point's time is the window's end or follows from the object
// of the point, so that writing a window twice changes nothing.
func points(w *Window) []Point {
	b := make([]Point, 0, len(w.Hops)+len(w.Nameless)+4*len(w.Flows)+len(w.Exporters)+len(w.Interfaces)+len(w.Probes)+len(w.Paths)+len(w.Findings)+1)
	for i := range w.Hops {
		b = hops.append(b, w, w.End, &w.Hops[i])
	}
	for i := range w.Nameless {
		b = nameless.append(b, w, w.End, &w.Nameless[i])
	}
	var rest flowHop // of all flows without series of their own
	for i := range w.Flows {
		f := &w.Flows[i]
		if f.Folded {
			rest.fold(f)
			continue
		}
		name := f.Key.String()
		for at := range f.Hops {
			b = flows.append(b, w, w.End, &flowHop{f, &f.Hops[at], name, at})
		}
		for at := range f.Sights {
			b = sights.append(b, w, w.End, &flowSight{&f.Sights[at], name})
		}
		b = appendWays(b, w, f, name)
	}
	if rest.flow != nil {
		b = flows.append(b, w, w.End, &rest)
	}
	var folded int64 // the time of the last path change of such a flow: two of them never share a point
	for i := range w.Paths {
		c := &w.Paths[i]
		at := c.Time
		if c.Folded {
			at = max(at, folded+1)
			folded = at
		}
		b = paths.append(b, w, at, c)
	}
	var foldedSum inference.ExporterStats
	for i := range w.Exporters {
		if e := &w.Exporters[i]; e.Folded {
			foldedSum.Add(e)
			foldedSum.Folded = true
		} else {
			b = exporters.append(b, w, w.End, e)
		}
	}
	if foldedSum.Folded {
		b = exporters.append(b, w, w.End, &foldedSum)
	}
	b = appendInterfaces(b, w)
	for i := range w.Probes {
		b = probes.append(b, w, w.End, &w.Probes[i])
	}
	for i := range w.Findings {
		// The nanoseconds keep two findings of one kind, node and window from sharing a point.
		f := &w.Findings[i]
		b = events.append(b, w, f.Updated+int64(f.ID%1e6), f)
	}
	for i := range w.Names {
		b = called.append(b, w, w.End, &w.Names[i])
	}
	if w.Run != nil {
		b = runs.append(b, w, w.End+w.Run.offset(), w.Run)
	}
	return b
}

// offset keeps two runs that write under one name from sharing a point, so that both can be seen.
func (r *Run) offset() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Boot)) // it never fails
	return int64(h.Sum64() % 1e6)
}

// The series, each with how its points are made: a point for every item of type T that a window has.

var hops = series("hop", "Hop of one window: a node and its egress interface.",
	[]tag[inference.HopStats]{
		{"egress_if", "egress interface; 0 if unknown",
			func(h *inference.HopStats) string { return h.EgressName() }},
		{"node", "node ID",
			func(h *inference.HopStats) string { return h.NodeName() }},
	},
	slices.Concat(
		distribution(func(h *inference.HopStats) (count uint64, latency, queue *inference.Summary) {
			return h.Count, &h.Latency, &h.Queue
		}),
		[]field[inference.HopStats]{
			{FieldSpec{"tx_utilization_max", Float, "ratio", "utilisation of the egress interface, maximum"},
				func(h *inference.HopStats) (Field, bool) { return Field{Float: h.Utilization}, h.HasUtilization }},
		},
		bounds("latency", "ns", func(h *inference.HopStats) *inference.Bounds { return h.Latency.Bounds }),
		bounds("queue", "bytes", func(h *inference.HopStats) *inference.Bounds { return h.Queue.Bounds }),
	)).revised()

// bounds are what quantiles leave open whose values came in buckets.
func bounds(of, unit string, get func(*inference.HopStats) *inference.Bounds) []field[inference.HopStats] {
	some := func(key, unit, doc string, value func(*inference.Bounds) uint64) field[inference.HopStats] {
		return field[inference.HopStats]{FieldSpec{of + key, Int, unit, doc}, func(h *inference.HopStats) (Field, bool) {
			b := get(h)
			if b == nil {
				return Field{}, false
			}
			return Field{Int: int64(value(b))}, true
		}}
	}
	return []field[inference.HopStats]{
		some("_p50_low", unit, "lower bound of "+of+"_p50, from a histogram of the device; "+of+"_p50 is the upper bound", func(b *inference.Bounds) uint64 { return b.P50 }),
		some("_p99_low", unit, "lower bound of "+of+"_p99, likewise", func(b *inference.Bounds) uint64 { return b.P99 }),
		some("_beyond", "", "values beyond its last bucket, where quantiles are too low", func(b *inference.Bounds) uint64 { return b.Open }),
	}
}

// flowHop is one hop of one of the busiest flows.
type flowHop struct {
	flow *inference.FlowStats
	hop  *inference.FlowHop
	name string // of the flow
	at   int    // position in the path
}

// fold adds a flow that has no series of its own.
func (h *flowHop) fold(f *inference.FlowStats) {
	if h.flow == nil {
		h.flow, h.hop, h.name = &inference.FlowStats{Folded: true}, &inference.FlowHop{HopKey: inference.HopKey{Other: true}}, otherName
	}
	h.flow.Packets += f.Packets
}

// otherName is the value of tags for everything without a series of its own.
const (
	otherName = "other"
	noneName  = "none"
)

var flows = series("flow", "Hop of one of the busiest flows, in one window.",
	[]tag[flowHop]{
		{"flow", "key of the flow", func(f *flowHop) string { return f.name }},
		{"hop", "position in the path, from 0", func(f *flowHop) string { return strconv.Itoa(f.at) }},
	},
	slices.Concat(
		distribution(func(f *flowHop) (count uint64, latency, queue *inference.Summary) {
			return f.hop.Latency.Count, &f.hop.Latency, &f.hop.Queue
		}),
		[]field[flowHop]{
			integer("packets", "", "reports of the flow in the window, equal on all hops", func(f *flowHop) uint64 { return f.flow.Packets }),
			text("path", "path identifier, 16 hexadecimal digits; of several paths that of the greatest share, or zeros if digests do not distinguish it "+
				"(hops that are not in all paths are then left out)",
				func(f *flowHop) string { return inference.FormatID(f.flow.PathID) }),
			text("node", "node ID of the hop", func(f *flowHop) string { return f.hop.NodeName() }),
			integer("egress_if", "", "egress interface of the hop", func(f *flowHop) uint32 { return f.hop.EgressIf }),
			{FieldSpec{"share", Float, "ratio", "share of the flow's packets on this path; absent with one path at a time"},
				func(f *flowHop) (Field, bool) { return Field{Float: f.flow.Share}, f.flow.Share > 0 }},
			{FieldSpec{"paths", Int, "", "paths of the flow in `flow_path`; absent for one"},
				func(f *flowHop) (Field, bool) { n := countWays(f.flow); return Field{Int: int64(n)}, n > 1 }},
			{FieldSpec{"unexplained", Float, "ratio", "share of packets on none of these paths, or with wrong digests; absent with one path at a time"},
				func(f *flowHop) (Field, bool) { return Field{Float: f.flow.Unexplained}, f.flow.Sprayed() }},
			{FieldSpec{"unsettled", Int, "", "1 while digests contradict the path and other paths are undecided"},
				func(f *flowHop) (Field, bool) { return Field{Int: 1}, f.flow.Unsettled }},
		})).revised()

var paths = series("path", "Path change, at the time of the first report from the new path.",
	[]tag[inference.PathChange]{
		{"flow", "key of the flow", func(c *inference.PathChange) string {
			return unlessFolded(c.Folded, c.Flow.String())
		}},
	},
	[]field[inference.PathChange]{
		integer("hops", "", "hops of the new path", func(c *inference.PathChange) int { return len(c.To) }),
		integer("changes", "", "path changes since the flow was first seen", func(c *inference.PathChange) uint32 { return c.Changes }),
		integer("packets", "", "reports of the flow on the former path", func(c *inference.PathChange) uint64 { return c.Packets }),
		text("nodes", "node IDs of the new path, first hop first", func(c *inference.PathChange) string { return inference.NodePath(c.To) }),
		text("before", "node IDs of the former path, first hop first", func(c *inference.PathChange) string { return inference.NodePath(c.From) }),
		text("path", "path identifier, 16 hexadecimal digits", func(c *inference.PathChange) string { return inference.FormatID(c.PathID) }),
	})

var events = series("event", "Change of a finding: start, end, rise of severity, another element, start or end of a rest. Its time is that of the "+
	"change plus id mod 1000000 nanoseconds, so that two findings never share a point.",
	[]tag[inference.Finding]{
		{"kind", "[kind](findings.md#kinds) of the finding",
			func(f *inference.Finding) string { return f.Kind.String() }},
		{"node", `node ID; "none" for findings without a node, such as those of a flow`,
			func(f *inference.Finding) string { return unlessFolded(f.Folded, unlessNone(f.HasNode(), f.Node)) }},
		{"severity", inference.NameList(inference.Severities(), "or"), func(f *inference.Finding) string { return f.Severity.String() }},
	},
	[]field[inference.Finding]{
		number("value", "observed value, in the unit that text names", func(f *inference.Finding) float64 { return f.Value }),
		number("baseline", "usual value or limit", func(f *inference.Finding) float64 { return f.Baseline }),
		text("flow", "key of the flow; empty if the finding has none", (*inference.Finding).FlowText),
		text("text", "evidence in one sentence", func(f *inference.Finding) string { return f.Text }),
		text("id", "id of the finding, from its start to its end", (*inference.Finding).IDText),
		integer("start", "ns", "end of the first window with the cause, since 1970", func(f *inference.Finding) int64 { return f.Start }),
		integer("end", "ns", "end of the cause, since 1970; 0 while it lasts", func(f *inference.Finding) int64 { return f.End }),
		someText("element", `element, such as "link 7–9"`,
			func(f *inference.Finding) string { return f.Element.String() }),
		someText("cause", "id of the finding that explains this one", (*inference.Finding).CauseText),
		{FieldSpec{"evidence", Int, "", "findings that this one explains"},
			func(f *inference.Finding) (Field, bool) { return Field{Int: int64(f.Evidence)}, f.Evidence > 0 }},
		{FieldSpec{"learning", Int, "", "1 while the usual values of the place are being learnt"},
			func(f *inference.Finding) (Field, bool) { return Field{Int: 1}, f.Learning }},
		someText("statistic", `statistic of value, such as "p99 latency"`,
			func(f *inference.Finding) string { return f.Statistic }),
	})

var exporters = series("exporter", "Exporter in one window: one space of sequence numbers.",
	[]tag[inference.ExporterStats]{
		{"address", "source address of the datagrams",
			func(e *inference.ExporterStats) string { return unlessFolded(e.Folded, e.Addr.String()) }},
		{"hw_id", "subsystem of the reporting node", func(e *inference.ExporterStats) string { return unlessFolded(e.Folded, decimal(uint32(e.HWID))) }},
		{"node", `node ID in the report header; "none" without one`,
			func(e *inference.ExporterStats) string {
				return unlessFolded(e.Folded, unlessNone(!e.Nameless, e.Node))
			}},
	},
	[]field[inference.ExporterStats]{
		integer("reports", "", "reports received", func(e *inference.ExporterStats) uint64 { return e.Reports }),
		integer("lost", "", "sequence numbers missing after the reorder window; negative if late reports correct an earlier window", func(e *inference.ExporterStats) int64 { return e.Lost }),
		integer("provisional", "", "sequence numbers missing at the end of the window, within the reorder window", func(e *inference.ExporterStats) uint64 { return e.Provisional }),
		integer("duplicated", "", "reports received twice", func(e *inference.ExporterStats) uint64 { return e.Duplicated }),
		integer("reordered", "", "reports received after later ones", func(e *inference.ExporterStats) uint64 { return e.Reordered }),
		integer("late", "", "reports received after the reorder window", func(e *inference.ExporterStats) uint64 { return e.Late }),
		integer("down", "", "sequence numbers missed while no collector ran", func(e *inference.ExporterStats) uint64 { return e.Down }),
		integer("restarts", "", "restarts of the exporter's sequence numbers", func(e *inference.ExporterStats) uint64 { return e.Restarts }),
		integer("malformed", "", "reports that a decoder rejected", func(e *inference.ExporterStats) uint64 { return e.Malformed }),
	}).revised()

var runs = series("collector", "Window of a live collector; replays write none. Its time is that "+
	"of the window plus less than 1000000 nanoseconds by the run, so that two collectors of one name do not overwrite each other.",
	nil,
	[]field[Run]{
		text("boot", "id of the run, new after each start", func(r *Run) string { return r.Boot }),
		integer("start", "ns", "start of the run, since 1970", func(r *Run) int64 { return r.Start }),
		text("version", "version of the program", func(r *Run) string { return r.Version }),
		integer("reports", "", "reports counted in the window, without malformed and dropped ones", func(r *Run) uint64 { return r.Reports }),
		integer("held", "", "1 while the clock was set back further than `corrections`; else 0",
			func(r *Run) int64 {
				if r.Held {
					return 1
				}
				return 0
			}),
	}).revised()

var called = series("names", "Name of a node or interface, from the [inventory](inventory.md), written in the first "+
	"window, after a change of the inventory, and in the first window of each day (UTC). Tags of other series are numbers, so that a "+
	"new name begins no new series; [join them](inventory.md#series) with this one.",
	[]tag[names.Row]{
		{"egress_if", "interface; 0 for the node itself", func(r *names.Row) string { return decimal(r.EgressIf) }},
		{"node", "node ID", func(r *names.Row) string { return decimal(r.Node) }},
	},
	[]field[names.Row]{
		text("name", "name of the node; may be empty", func(r *names.Row) string { return r.Name }),
		someText("interface", "name of the interface", func(r *names.Row) string { return r.Interface }),
		someText("site", "site of the node", func(r *names.Row) string { return r.Site }),
		{FieldSpec{"speed", Float, "", "speed of the interface in bits a second"},
			func(r *names.Row) (Field, bool) { return Field{Float: r.Speed}, r.Speed > 0 }},
	})

// distribution is the part that hops and flows share. A distribution without values gives no field: no value is not zero.
func distribution[T any](of func(*T) (count uint64, latency, queue *inference.Summary)) []field[T] {
	quantile := func(key, unit, doc string, get func(latency, queue *inference.Summary) (uint64, bool)) field[T] {
		return field[T]{FieldSpec{key, Int, unit, doc}, func(x *T) (Field, bool) {
			_, latency, queue := of(x)
			n, ok := get(latency, queue)
			return Field{Int: int64(n)}, ok
		}}
	}
	return []field[T]{
		integer("count", "", "hop records in the window", func(x *T) uint64 { n, _, _ := of(x); return n }),
		quantile("latency_p50", "ns", "hop latency, median", func(l, _ *inference.Summary) (uint64, bool) { return l.P50, l.Count > 0 }),
		quantile("latency_p90", "ns", "hop latency, 90th percentile", func(l, _ *inference.Summary) (uint64, bool) { return l.P90, l.Count > 0 }),
		quantile("latency_p99", "ns", "hop latency, 99th percentile", func(l, _ *inference.Summary) (uint64, bool) { return l.P99, l.Count > 0 }),
		quantile("latency_max", "ns", "hop latency, maximum", func(l, _ *inference.Summary) (uint64, bool) { return l.Max, l.Count > 0 }),
		quantile("queue_p50", "bytes", "queue occupancy, median", func(_, q *inference.Summary) (uint64, bool) { return q.P50, q.Count > 0 }),
		quantile("queue_p99", "bytes", "queue occupancy, 99th percentile", func(_, q *inference.Summary) (uint64, bool) { return q.P99, q.Count > 0 }),
		quantile("queue_max", "bytes", "queue occupancy, maximum", func(_, q *inference.Summary) (uint64, bool) { return q.Max, q.Count > 0 }),
	}
}

// seriesOf is a series whose points are made of items of type T.
type seriesOf[T any] struct {
	Series
	tags   []tag[T]
	fields []field[T]
	place  int  // of the instance among the tags
	redone bool // points have the field revision
}

// The tag and the field that do not depend on what a point is about.
var (
	instanceTag   = TagSpec{"instance", "name of the collector or its fleet"}
	revisionField = FieldSpec{"revision", Int, "", "number of earlier versions of the point, after the clock was set back"}
)

type tag[T any] struct {
	key, doc string
	value    func(*T) string
}

// field makes one field, without key and kind; it returns false if the item has no such value.
type field[T any] struct {
	FieldSpec
	value func(*T) (Field, bool)
}

func series[T any](measurement, doc string, tags []tag[T], fields []field[T]) *seriesOf[T] {
	s := &seriesOf[T]{Series: Series{Measurement: measurement, Doc: doc}, tags: tags, fields: fields}
	for _, t := range tags {
		s.Tags = append(s.Tags, TagSpec{t.key, t.doc})
		if t.key < instanceTag.Key {
			s.place++
		}
	}
	s.Tags = slices.Insert(s.Tags, s.place, instanceTag)
	for _, f := range fields {
		s.Fields = append(s.Fields, f.FieldSpec)
	}
	return s
}

// revised makes s a series whose points can be written again with more in them.
func (s *seriesOf[T]) revised() *seriesOf[T] {
	s.redone = true
	s.Fields = append(s.Fields, revisionField)
	return s
}

func integer[T any, N ~int | ~int64 | ~uint32 | ~uint64](key, unit, doc string, value func(*T) N) field[T] {
	return field[T]{FieldSpec{key, Int, unit, doc}, func(x *T) (Field, bool) { return Field{Int: int64(value(x))}, true }}
}

func number[T any](key, doc string, value func(*T) float64) field[T] {
	return field[T]{FieldSpec{key, Float, "", doc}, func(x *T) (Field, bool) { return Field{Float: value(x)}, true }}
}

func text[T any](key, doc string, value func(*T) string) field[T] {
	return field[T]{FieldSpec{key, String, "", doc}, func(x *T) (Field, bool) { return Field{Str: value(x)}, true }}
}

// someText is a text that is absent where it is empty.
func someText[T any](key, doc string, value func(*T) string) field[T] {
	return field[T]{FieldSpec{key, String, "", doc}, func(x *T) (Field, bool) {
		s := value(x)
		return Field{Str: s}, s != ""
	}}
}

// append adds the point of x, which is in w.
func (s *seriesOf[T]) append(dst []Point, w *Window, time int64, x *T) []Point {
	p := Point{Measurement: s.Measurement, Time: time, Tags: make([]Tag, 0, len(s.Tags)), Fields: make([]Field, 0, len(s.Fields))}
	for i := range s.tags {
		if i == s.place {
			p.Tags = append(p.Tags, Tag{instanceTag.Key, w.Instance})
		}
		p.Tags = append(p.Tags, Tag{s.tags[i].key, s.tags[i].value(x)})
	}
	if s.place == len(s.tags) {
		p.Tags = append(p.Tags, Tag{instanceTag.Key, w.Instance})
	}
	for i := range s.fields {
		if f, ok := s.fields[i].value(x); ok {
			f.Key, f.Kind = s.fields[i].Key, s.fields[i].Kind
			p.Fields = append(p.Fields, f)
		}
	}
	if s.redone && w.Revision > 0 {
		p.Fields = append(p.Fields, IntField(revisionField.Key, int64(w.Revision)))
	}
	return append(dst, p)
}

// unlessNone is the id of a node where there is one: absent is not 0.
func unlessNone(some bool, node uint32) string {
	if !some {
		return noneName
	}
	return decimal(node)
}

func unlessFolded(folded bool, name string) string {
	if folded {
		return otherName
	}
	return name
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// FindSeries returns the description of a measurement, or nil.
func FindSeries(measurement string) *Series {
	for i := range AllSeries {
		if AllSeries[i].Measurement == measurement {
			return &AllSeries[i]
		}
	}
	return nil
}

// Field returns the description of a field, or nil.
func (s *Series) Field(key string) *FieldSpec {
	for i := range s.Fields {
		if s.Fields[i].Key == key {
			return &s.Fields[i]
		}
	}
	return nil
}

// CheckPoint returns an error if p differs from AllSeries. The causes are an unknown measurement or field, a field of
// another kind, and tags that are missing, unknown or out of order.
func CheckPoint(p *Point) error {
	s := FindSeries(p.Measurement)
	if s == nil {
		return fmt.Errorf("measurement %q is not in the list of series", p.Measurement)
	}
	for i, t := range p.Tags {
		if i >= len(s.Tags) || s.Tags[i].Key != t.Key {
			return fmt.Errorf("%s: tag %d is %q, want %v", p.Measurement, i, t.Key, s.Tags)
		}
	}
	if len(p.Tags) != len(s.Tags) {
		return fmt.Errorf("%s: %d tags, want %v", p.Measurement, len(p.Tags), s.Tags)
	}
	if len(p.Fields) == 0 {
		return fmt.Errorf("%s: no field", p.Measurement)
	}
	for _, f := range p.Fields {
		switch spec := s.Field(f.Key); {
		case spec == nil:
			return fmt.Errorf("%s: field %q is not in the list of series", p.Measurement, f.Key)
		case spec.Kind != f.Kind:
			return fmt.Errorf("%s: field %q is of kind %v, want %v", p.Measurement, f.Key, f.Kind, spec.Kind)
		}
	}
	return nil
}
