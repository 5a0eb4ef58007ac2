package influx

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
)

// block returns the code of a language in docs/inventory.md.
func block(t *testing.T, language, with string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "```"+language+"\n")[1:] {
		if code, _, ok := strings.Cut(part, "```"); ok && strings.Contains(code, with) {
			return code
		}
	}
	t.Fatalf("docs/inventory.md has no %s with %q", language, with)
	return ""
}

// TestNames sends the queries of docs/inventory.md to a server. Hops come back under the latest names of their nodes,
// and a rename begins no new series.
func TestNames(t *testing.T) {
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
		w := writerTo(t, s, nil)
		now := time.Now().Truncate(time.Second)
		for i, rows := range [][]names.Row{
			{{Node: 17, Name: "old"}, {Node: 17, EgressIf: 3, Name: "old", Interface: "Ethernet3", Speed: 1e10}, {Node: 18, Name: "spine 1", Site: "berlin"}},
			{{Node: 17, Name: "leaf-3"}, {Node: 17, EgressIf: 3, Name: "leaf-3", Interface: "Ethernet3", Speed: 1e10}, {Node: 18, Name: "spine 1", Site: "berlin"}},
			nil,
		} {
			window := sink.NewWindow("here", &inference.Window{End: now.Add(time.Duration(i-4) * time.Minute).UnixNano()}, nil)
			for _, n := range []uint32{17, 18, 19} {
				window.Hops = append(window.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n, EgressIf: 3}, Count: 1, Latency: inference.Summary{Count: 1, P99: uint64(n) * 1000}})
			}
			window.Names = rows
			if err := w.Write(t.Context(), window.Batch()); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range s.MustQuery(strings.ReplaceAll(block(t, "flux", "join"), `"hopscope"`, "BUCKET")) {
			if r["_value"].(int64) == 17_000 && r["name"] != "leaf-3" || r["_value"].(int64) == 18_000 && r["name"] != "spine 1" {
				t.Errorf("%v", r)
			}
			got = append(got, r["node"].(string)+":"+r["egress_if"].(string)+" "+r["name"].(string))
		}
		slices.Sort(got)
		want := []string{"17:3 leaf-3", "17:3 leaf-3", "17:3 leaf-3", "18:3 spine 1", "18:3 spine 1", "18:3 spine 1"}
		if !slices.Equal(got, want) {
			t.Errorf("joined: %q, want %q", got, want)
		}
		series := map[any]bool{}
		for _, r := range s.MustQuery(all("hop") + ` |> filter(fn: (r) => r._field == "latency_p99")`) {
			series[[2]any{r["node"], r["egress_if"]}] = true
		}
		if len(series) != 3 {
			t.Errorf("hops are in %d series, want 3", len(series))
		}
		if s.Version == servertest.Influx2 {
			return // InfluxQL goes through the compatibility API, which is 1.8's
		}
		db, rp, _ := strings.Cut(s.Bucket, "/")
		res, err := http.Get(s.URL + "/query?" + url.Values{"db": {db}, "rp": {rp}, "q": {block(t, "sql", "GROUP BY \"node\"")}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		var answer struct {
			Results []struct {
				Series []struct {
					Tags   map[string]string
					Values [][]any
				}
			}
		}
		if err != nil || json.Unmarshal(body, &answer) != nil || len(answer.Results) != 1 {
			t.Fatalf("%s, %v", body, err)
		}
		latest := map[string]any{}
		for _, s := range answer.Results[0].Series {
			latest[s.Tags["node"]] = s.Values[0][1]
		}
		if len(latest) != 2 || latest["17"] != "leaf-3" || latest["18"] != "spine 1" {
			t.Errorf("InfluxQL gives %v", latest)
		}
	})
}
