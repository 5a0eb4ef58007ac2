package otlp

import (
	"encoding/json"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	decoder "github.com/hopscope/hopscope/decode/otlp"
)

// FuzzFromJSON accepts only what the standard library takes for JSON. The result has as many points as a plain walk
// finds, and is the same after a round trip through text.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"resourceMetrics":null}`, `{"resourceMetrics":[{}]}`, `{"resourceMetrics":[null]}`,
		`{"resourceMetrics":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"leaf1"}}]},"scopeMetrics":[{"scope":{"name":"s"},"metrics":[` +
			`{"name":"if_in_errors","unit":"1","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{"timeUnixNano":"1800000000000000000","asInt":"3",` +
			`"attributes":[{"key":"interface","value":{"stringValue":"swp1"}},{"key":"tc","value":{"intValue":1}}]},{"asDouble":"NaN"}]}},` +
			`{"name":"h","histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints":[{"count":"6","bucketCounts":["1",2,3],"explicitBounds":[1,2.5],` +
			`"exemplars":[{"spanId":"eee19b7ec3c1b174","asDouble":1e300}]}]}},{"name":"g","gauge":{"dataPoints":[{},{"flags":1}]}},` +
			`{"name":"e","exponentialHistogram":{"dataPoints":[{"scale":3,"zeroCount":1,"positive":{"offset":-70,"bucketCounts":["1"]}}]}}]}]}],"new":{"a":[1,{"b":null}]}}`,
		`{"resource_metrics":[{"scope_metrics":[{"metrics":[{"summary":{"data_points":[{"quantile_values":[{"quantile":0.5,"value":-0}]}]}}]}]}]}`,
	} {
		f.Add([]byte(s))
	}
	s := &Source{}
	f.Fuzz(func(t *testing.T, text []byte) {
		data, err := s.fromJSON(text)
		if err != nil {
			if data != nil {
				t.Fatalf("%d bytes beside %v", len(data), err)
			}
			return
		}
		var any map[string]any
		if err := json.Unmarshal(text, &any); err != nil {
			t.Fatalf("it is taken, and no JSON: %v", err)
		}
		if n, derr := decoder.Points(data); derr == nil && n != pointsIn(any) || derr != nil && derr.Offset > len(data) {
			t.Fatalf("%d points and %v, want %d", n, derr, pointsIn(any))
		}
		var m, second metrics.MetricsData
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		back, err := protojson.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if data, err = s.fromJSON(back); err != nil {
			t.Fatalf("%s: %v", back, err)
		}
		if err := proto.Unmarshal(data, &second); err != nil || !proto.Equal(&m, &second) {
			t.Fatalf("%v became %v, %v", &m, &second, err)
		}
	})
}

// pointsIn walks through a request as it is specified.
func pointsIn(request map[string]any) (n int) {
	for _, r := range listIn(request, "resourceMetrics", "resource_metrics") {
		for _, s := range listIn(r, "scopeMetrics", "scope_metrics") {
			for _, m := range listIn(s, "metrics") {
				for _, kind := range []string{"gauge", "sum", "histogram", "exponentialHistogram", "exponential_histogram", "summary"} {
					m, _ := m.(map[string]any)
					n += len(listIn(m[kind], "dataPoints", "data_points"))
				}
			}
		}
	}
	return n
}

func listIn(in any, names ...string) []any {
	m, _ := in.(map[string]any)
	for _, name := range names {
		if list, ok := m[name].([]any); ok {
			return list
		}
	}
	return nil
}
