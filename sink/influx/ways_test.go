package influx

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
)

// TestSeveralPaths sends the queries of docs/pint.md to a server. A flow whose path with the greatest share changes
// stays one series, with the path of each window.
func TestSeveralPaths(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/pint.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```flux\n")
	query, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("docs/pint.md has no query in Flux")
	}
	key, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:5001 tcp")
	if err != nil {
		t.Fatal(err)
	}
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		now := time.Now().Truncate(time.Second)
		for i, f := range []inference.FlowStats{
			{PathID: 1, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 7}}}},
			{PathID: 2, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 8}}}, Share: .5, Others: []inference.FlowPath{{Nodes: []uint32{7}, Share: .25}}},
		} {
			f.Key = key
			window := sink.NewWindow("here", &inference.Window{End: now.Add(time.Duration(i-4) * time.Minute).UnixNano(), Flows: []inference.FlowStats{f}}, nil)
			if err := w.Write(t.Context(), window.Batch()); err != nil {
				t.Fatal(err)
			}
		}
		shares := map[any]any{}
		for _, r := range s.MustQuery(strings.ReplaceAll(query, `"hopscope"`, "BUCKET")) {
			shares[r["nodes"]] = r["share"]
		}
		if len(shares) != 2 || shares["8"] != .5 || shares["7"] != .25 {
			t.Errorf("shares %v", shares)
		}
		series, paths := map[any]bool{}, map[any]bool{}
		for _, r := range s.MustQuery(all("flow") + ` |> filter(fn: (r) => r._field == "path")`) {
			series[[2]any{r["flow"], r["hop"]}] = true
			paths[r["_value"]] = true
		}
		if len(series) != 1 || !paths["0000000000000001"] || !paths["0000000000000002"] {
			t.Errorf("series %v, paths %v", series, paths)
		}
	})
}
