package sink

import "fmt"

// Series describes one measurement: what a store holds under its name. The list in [AllSeries] is what points are
// made from, what the reference of stored series is written from, and what shipped dashboards are held against.
type Series struct {
	Measurement string
	Doc         string // one point per what
	Tags        []TagSpec
	Fields      []FieldSpec
}

// TagSpec describes a tag. All tags of a series are on every point of it.
type TagSpec struct{ Key, Doc string }

// FieldSpec describes a field. A field whose value nobody reported is absent from the point, never zero.
type FieldSpec struct {
	Key  string
	Kind FieldKind
	Unit string // "ns", "bytes", "ratio", or empty for counts and text
	Doc  string
}

func (k FieldKind) String() string { return [...]string{"integer", "float", "string"}[min(k, String)] }

// distribution is the part that hops and flows share.
func distribution(rest ...FieldSpec) []FieldSpec {
	return append([]FieldSpec{
		{"count", Int, "", "hop records in the window"},
		{"latency_p50", Int, "ns", "time in the device, median"},
		{"latency_p90", Int, "ns", "time in the device, 90th percentile"},
		{"latency_p99", Int, "ns", "time in the device, 99th percentile"},
		{"latency_max", Int, "ns", "time in the device, largest"},
		{"queue_p50", Int, "bytes", "queue occupancy, median"},
		{"queue_p99", Int, "bytes", "queue occupancy, 99th percentile"},
		{"queue_max", Int, "bytes", "queue occupancy, largest"},
	}, rest...)
}

// AllSeries are the stored series, in the order of the reference. The time of a point is the end of its window,
// except where Doc says otherwise.
var AllSeries = []Series{
	{
		Measurement: "hop",
		Doc:         "One point per window and hop: a node and the interface by which packets left it.",
		Tags: []TagSpec{
			{"egress_if", "egress interface; 0 where the device did not say, \"other\" for what had no place in the table"},
			{"node", "node ID; \"other\" for all hops that had no place in the table"},
		},
		Fields: distribution(FieldSpec{"tx_utilization_max", Float, "ratio", "share of the egress interface in use, largest"}),
	},
	{
		Measurement: "flow",
		Doc:         "One point per window, flow and hop, for the busiest flows.",
		Tags: []TagSpec{
			{"flow", "the flow's key as text"},
			{"hop", "position in the path, 0 is the first hop"},
		},
		Fields: distribution(
			FieldSpec{"packets", Int, "", "reports of the flow in the window, the same on all its hops"},
			FieldSpec{"path", String, "", "path identifier, 16 hexadecimal digits"},
			FieldSpec{"node", String, "", "node ID of the hop"},
			FieldSpec{"egress_if", Int, "", "egress interface of the hop"},
		),
	},
	{
		Measurement: "path",
		Doc:         "One point per path change; its time is that of the first report from the new path.",
		Tags:        []TagSpec{{"flow", "the flow's key as text"}},
		Fields: []FieldSpec{
			{"hops", Int, "", "hops of the new path"},
			{"changes", Int, "", "path changes since the flow was first seen"},
			{"packets", Int, "", "reports of the flow on the path that it left"},
			{"nodes", String, "", "node IDs of the new path, first hop first"},
			{"before", String, "", "node IDs of the path that it left, first hop first"},
			{"path", String, "", "path identifier, 16 hexadecimal digits"},
		},
	},
	{
		Measurement: "event",
		Doc: "One point per finding when it starts, when its severity rises, and when it ends. Its time is that of the " +
			"change plus id mod 1000000 nanoseconds, so that two findings never share a point.",
		Tags: []TagSpec{
			{"kind", "path-change, drops, exporter-loss, exporter-silence, high-latency, high-queue, strange-digests or routing-loop"},
			{"node", "node ID; 0 for findings about a flow"},
			{"severity", "info, warning or critical"},
		},
		Fields: []FieldSpec{
			{"value", Float, "", "what was seen, in the unit that text names"},
			{"baseline", Float, "", "what was expected"},
			{"flow", String, "", "the flow's key as text, empty where no flow is meant"},
			{"text", String, "", "the evidence in one sentence"},
			{"id", String, "", "the finding; the same from its start to its end"},
			{"start", Int, "ns", "end of the window in which the cause was first seen, since 1970"},
			{"end", Int, "ns", "when the cause ended, since 1970; 0 as long as it lasts"},
		},
	},
	{
		Measurement: "exporter",
		Doc:         "One point per window and sequence number space.",
		Tags: []TagSpec{
			{"address", "source address of the datagrams"},
			{"hw_id", "subsystem of the reporting node"},
			{"node", "node ID in the report header"},
		},
		Fields: []FieldSpec{
			{"reports", Int, "", "reports received"},
			{"lost", Int, "", "sequence numbers missing; negative when late reports filled gaps of an earlier window"},
			{"duplicated", Int, "", "reports received twice"},
			{"reordered", Int, "", "reports received late"},
			{"restarts", Int, "", "times that the exporter began to count anew"},
			{"malformed", Int, "", "reports that a decoder rejected"},
		},
	},
}

// FindSeries gives the description of a measurement, or nil.
func FindSeries(measurement string) *Series {
	for i := range AllSeries {
		if AllSeries[i].Measurement == measurement {
			return &AllSeries[i]
		}
	}
	return nil
}

// Field gives the description of a field, or nil.
func (s *Series) Field(key string) *FieldSpec {
	for i := range s.Fields {
		if s.Fields[i].Key == key {
			return &s.Fields[i]
		}
	}
	return nil
}

// CheckPoint says what about p is not as AllSeries has it: an unknown measurement or field, a field of another kind,
// tags missing, unknown or out of order.
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
