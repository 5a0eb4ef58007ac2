package collector

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// points turns a window and its findings into points of the stored series (sink/series.go lists them). Every point's
// time is the window's end, so writing a window twice changes nothing.
func points(w *inference.Window, findings []inference.Finding) []sink.Point {
	b := make(pointList, 0, len(w.Hops)+4*len(w.Flows)+len(w.Exporters)+len(w.Paths)+len(findings))
	for i := range w.Hops {
		h := &w.Hops[i]
		b.add(w.End, "hop", hopTags(h.HopKey), hopFields(h))
	}
	for i := range w.Flows {
		b.addFlow(w.End, &w.Flows[i])
	}
	for i := range w.Paths {
		c := &w.Paths[i]
		b.add(c.Time, "path", []sink.Tag{{Key: "flow", Value: c.Flow.String()}}, []sink.Field{
			sink.IntField("hops", int64(len(c.To))),
			sink.IntField("changes", int64(c.Changes)),
			sink.IntField("packets", int64(c.Packets)),
			sink.StringField("nodes", PathString(c.To)),
			sink.StringField("before", PathString(c.From)),
			sink.StringField("path", hex(c.PathID)),
		})
	}
	for i := range w.Exporters {
		e := &w.Exporters[i]
		b.add(w.End, "exporter", []sink.Tag{
			{Key: "address", Value: e.Addr.String()}, {Key: "hw_id", Value: utoa(e.HWID)}, {Key: "node", Value: utoa(e.Node)},
		}, []sink.Field{
			sink.IntField("reports", int64(e.Reports)),
			sink.IntField("lost", e.Lost),
			sink.IntField("duplicated", int64(e.Duplicated)),
			sink.IntField("reordered", int64(e.Reordered)),
			sink.IntField("restarts", int64(e.Restarts)),
			sink.IntField("malformed", int64(e.Malformed)),
		})
	}
	b.addFindings(findings)
	return b
}

type pointList []sink.Point

func (b *pointList) add(time int64, measurement string, tags []sink.Tag, fields []sink.Field) {
	*b = append(*b, sink.Point{Measurement: measurement, Tags: tags, Fields: fields, Time: time})
}

func (b *pointList) addFlow(end int64, f *inference.FlowStats) {
	name := f.Key.String()
	for i := range f.Hops {
		h := &f.Hops[i]
		fields := []sink.Field{
			sink.IntField("count", int64(h.Latency.Count)),
			sink.IntField("packets", int64(f.Packets)),
			sink.StringField("path", hex(f.PathID)),
			sink.StringField("node", utoa(h.Node)),
			sink.IntField("egress_if", int64(h.EgressIf)),
		}
		fields = appendLatency(fields, &h.Latency)
		fields = appendQueue(fields, &h.Queue)
		b.add(end, "flow", []sink.Tag{{Key: "flow", Value: name}, {Key: "hop", Value: strconv.Itoa(i)}}, fields)
	}
}

func (b *pointList) addFindings(findings []inference.Finding) {
	for i := range findings {
		f := &findings[i]
		flow := ""
		if f.Flow.IPVersion != 0 {
			flow = f.Flow.String()
		}
		// The nanoseconds keep two findings of one kind, node and window from sharing a point.
		b.add(f.Updated+int64(f.ID%1e6), "event", []sink.Tag{
			{Key: "kind", Value: f.Kind.String()}, {Key: "node", Value: utoa(f.Node)}, {Key: "severity", Value: f.Severity.String()},
		}, []sink.Field{
			sink.FloatField("value", f.Value), sink.FloatField("baseline", f.Baseline), sink.StringField("flow", flow),
			sink.StringField("text", f.Text), sink.StringField("id", hex(f.ID)), sink.IntField("start", f.Start), sink.IntField("end", f.End),
		})
	}
}

func hopTags(k inference.HopKey) []sink.Tag {
	if k.Other {
		return []sink.Tag{{Key: "egress_if", Value: "other"}, {Key: "node", Value: "other"}}
	}
	return []sink.Tag{{Key: "egress_if", Value: utoa(k.EgressIf)}, {Key: "node", Value: utoa(k.Node)}}
}

func hopFields(h *inference.HopStats) []sink.Field {
	fields := make([]sink.Field, 0, 9)
	fields = append(fields, sink.IntField("count", int64(h.Count)))
	fields = appendLatency(fields, &h.Latency)
	fields = appendQueue(fields, &h.Queue)
	if h.HasUtilization {
		fields = append(fields, sink.FloatField("tx_utilization_max", h.Utilization))
	}
	return fields
}

// appendLatency and appendQueue add nothing for a distribution without values: no value is not zero.
func appendLatency(f []sink.Field, s *inference.Summary) []sink.Field {
	if s.Count == 0 {
		return f
	}
	return append(f, sink.IntField("latency_p50", int64(s.P50)), sink.IntField("latency_p90", int64(s.P90)),
		sink.IntField("latency_p99", int64(s.P99)), sink.IntField("latency_max", int64(s.Max)))
}

func appendQueue(f []sink.Field, s *inference.Summary) []sink.Field {
	if s.Count == 0 {
		return f
	}
	return append(f, sink.IntField("queue_p50", int64(s.P50)), sink.IntField("queue_p99", int64(s.P99)), sink.IntField("queue_max", int64(s.Max)))
}

// PathString gives "1 > 7 > 3".
func PathString(hops []inference.HopKey) string {
	nodes := make([]string, len(hops))
	for i, h := range hops {
		nodes[i] = utoa(h.Node)
	}
	return strings.Join(nodes, " > ")
}

// hex gives 16 digits.
func hex(id uint64) string {
	s := strconv.FormatUint(id, 16)
	return strings.Repeat("0", 16-len(s)) + s
}

func utoa[T uint8 | uint32](n T) string { return strconv.FormatUint(uint64(n), 10) }

// sortedKeys gives the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
