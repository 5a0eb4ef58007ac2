package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// TestExportImages writes the window of two switches in all formats, and nothing where there is nothing to write.
func TestExportImages(t *testing.T) {
	m := &atlas.Map{Name: "two", Nodes: []atlas.Node{{ID: 7, Name: "left"}, {ID: 9, Name: "right"}}, Links: []atlas.Link{{A: atlas.LinkEnd{Node: 7, Port: 3}, B: atlas.LinkEnd{Node: 9, Port: 1}}}}
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }, Map: func() *atlas.Map { return m }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	dir := t.TempDir()
	export := func(url, format string) (string, error) {
		out, err := program("export", "images", "--url", url, "--format", format, "--out", filepath.Join(dir, format)).CombinedOutput()
		return string(out), err
	}
	if out, err := export(server.URL, "png"); err == nil || !strings.Contains(out, "shows 0 windows and 1 links so far") {
		t.Errorf("without a window: %v, %s", err, out)
	}
	w := sink.NewWindow("here", &inference.Window{End: time.Unix(1_800_000_000, 0).UnixNano(), Reports: 3, Hops: []inference.HopStats{
		{HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: 3, Queue: inference.Summary{Count: 3, P50: 1000, P90: 1500, P99: 2000, Max: 2500}},
		{HopKey: inference.HopKey{Node: 9, EgressIf: 5}, Count: 3},
	}}, nil)
	if err := page.WriteWindow(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"png": "0000.png", "npy": "queue_p99.npy", "arrow": "queue_p99.arrow"}
	for format, name := range files {
		out, err := export(server.URL, format)
		if err != nil || !strings.HasPrefix(out, "1 windows of 2 x 2 switches, 1 of 2 values present, in ") || !strings.Contains(out, "1 hops are on no link") {
			t.Errorf("%s: %v, %s", format, err, out)
		}
		for _, name := range []string{name, "nodes.csv", "windows.csv"} {
			if info, err := os.Stat(filepath.Join(dir, format, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", format, err)
			}
		}
		if out, err := export(server.URL, format); err == nil || !strings.Contains(out, "has files already") {
			t.Errorf("%s again: %v, %s", format, err, out)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "png", "nodes.csv")); string(got) != "row,node,name\n0,7,left\n1,9,right\n" {
		t.Errorf("%q", got)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "png", "windows.csv")); string(got) != "window,end\n0,2027-01-15T08:00:00.000Z\n" {
		t.Errorf("%q", got)
	}

	// An answer of something else names no file outside of the directory, and no values that are not there.
	for _, answer := range []string{
		`{"metric":"../../x","nodes":[{"id":1}],"directions":[[0,1]],"windows":[1],"values":[[1]]}`, `{"metric":"x"}`, `[]`, `{"nodes":[{"id":1}],"directions":[[0,0]],"windows":[1],"values":[[1,2]]}`,
	} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(answer)) }))
		out, err := program("export", "images", "--url", hostile.URL, "--out", filepath.Join(dir, "hostile")).CombinedOutput()
		hostile.Close()
		if _, serr := os.Stat(filepath.Join(dir, "hostile")); err == nil || serr == nil {
			t.Errorf("%s: %v, %s", answer, err, out)
		}
	}
}
