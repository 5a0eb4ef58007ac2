package sink

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// brief writes the points of some measurements.
func brief(points []Point) (out []string) {
	for _, p := range points {
		var b strings.Builder
		b.WriteString(p.Measurement)
		for _, t := range p.Tags {
			if t.Key == "hop" || t.Key == "rank" {
				fmt.Fprintf(&b, " %s=%s", t.Key, t.Value)
			}
		}
		for _, f := range p.Fields {
			switch f.Key {
			case "path", "node", "nodes":
				fmt.Fprintf(&b, " %s", f.Str)
			case "share", "confidence", "unexplained":
				fmt.Fprintf(&b, " %s=%g", f.Key, f.Float)
			case "paths", "set", "set_paths", "unsettled":
				fmt.Fprintf(&b, " %s=%d", f.Key, f.Int)
			}
		}
		out = append(out, b.String())
	}
	return out
}

// What a flow with several paths has in series: its path as any flow, and all of them with their shares.
func TestSeriesOfSeveralPaths(t *testing.T) {
	hops := []inference.FlowHop{{HopKey: inference.HopKey{Node: 1}}, {HopKey: inference.HopKey{Node: 7}}}
	other := func(share, confidence float64, nodes ...uint32) inference.FlowPath {
		return inference.FlowPath{Nodes: nodes, Share: share, Confidence: confidence}
	}
	sets := []inference.FlowPaths{{Share: .25, Paths: [][]uint32{{1, 8}, {1, 9}}}}
	for name, tt := range map[string]struct {
		flow inference.FlowStats
		want []string
	}{
		"one path": {inference.FlowStats{PathID: 16, Hops: hops}, []string{"flow hop=0 0000000000000010 1", "flow hop=1 0000000000000010 7"}},
		"at once": {inference.FlowStats{PathID: 16, Hops: hops, Share: .5, Confidence: .75, Unexplained: .125, Others: []inference.FlowPath{other(.125, 1, 1, 8), other(.25, 1, 1, 9)}},
			[]string{"flow hop=0 0000000000000010 1 share=0.5 paths=3 unexplained=0.125", "flow hop=1 0000000000000010 7 share=0.5 paths=3 unexplained=0.125",
				"flow_path rank=0 1 > 7 share=0.5 confidence=0.75", "flow_path rank=1 1 > 9 share=0.25 confidence=1", "flow_path rank=2 1 > 8 share=0.125 confidence=1"}},
		"in turn": {inference.FlowStats{PathID: 16, Hops: hops[:1], Others: []inference.FlowPath{other(0, .5, 1, 8)}},
			[]string{"flow hop=0 0000000000000010 1 paths=2", "flow_path rank=0 1", "flow_path rank=1 1 > 8 confidence=0.5"}},
		"not told apart": {inference.FlowStats{Hops: hops[:1], Inseparable: sets, Partial: true},
			[]string{"flow hop=0 0000000000000000 1 paths=2 unexplained=0", "flow_path rank=0 1 > 8 share=0.25 set=1 set_paths=2", "flow_path rank=1 1 > 9 share=0.25 set=1 set_paths=2"}},
		"nothing in common": {inference.FlowStats{Inseparable: sets, Partial: true},
			[]string{"flow_path rank=0 1 > 8 share=0.25 set=1 set_paths=2", "flow_path rank=1 1 > 9 share=0.25 set=1 set_paths=2"}},
		"unsettled":      {inference.FlowStats{PathID: 16, Hops: hops[:1], Unsettled: true}, []string{"flow hop=0 0000000000000010 1 unsettled=1"}},
		"not its series": {inference.FlowStats{Folded: true, Packets: 1, PathID: 16, Hops: hops, Share: .5, Others: []inference.FlowPath{other(.25, 1, 1, 9)}}, []string{"flow hop=0 0000000000000000 other"}},
	} {
		w := inference.Window{Flows: []inference.FlowStats{tt.flow}}
		points := NewWindow("here", &w, nil).Points()
		for i := range points {
			if err := CheckPoint(&points[i]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := brief(points); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	many := inference.FlowStats{PathID: 1, Hops: hops, Share: .01}
	for i := range uint32(200) {
		many.Others = append(many.Others, other(.001, 1, 1, i))
	}
	w := inference.Window{Flows: []inference.FlowStats{many}}
	if n := len(NewWindow("here", &w, nil).Points()); n != 2+maxWays {
		t.Errorf("%d points of a flow with 201 paths", n)
	}
}
