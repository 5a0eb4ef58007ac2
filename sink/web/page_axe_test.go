//go:build check

package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/docs"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// TestPageAxe holds that axe-core finds no violation on the page, the login and each page of the documentation, in both themes and three sizes. Pages of
// the documentation have one layout: outside the rounds of the night, each has one theme and size, which differ from one to the next.
func TestPageAxe(t *testing.T) {
	const axe = "ui/node_modules/axe-core/axe.min.js"
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("%v: run `make web`", err)
	}
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	control := &steered{state: ask.ControlState{Phase: "steady", Epoch: 7, InForce: 7, Systems: []ask.System{{System: "into", State: ask.SystemFailed, Why: "no flow is listed", Decided: []string{"nothing"}}}}}
	deps.Command, deps.Control, deps.Unread, deps.Past = control.command, control.ask, sceneUnread, pastScene(t, now)
	deps.Paths = func(n int) Paths { return scenePaths(n) }
	deps.Map = func() *atlas.Map { return pastMap }
	deps.Names = func() *names.Names { return names.New([]names.Node{{ID: 4, Name: "leaf-4"}}, nil, nil) }
	board := filepath.Join(t.TempDir(), "night.yaml")
	if err := os.WriteFile(board, []byte(sceneDashboard), 0o600); err != nil {
		t.Fatal(err)
	}
	withBoard := DefaultConfig()
	withBoard.Dashboards = []string{board}
	full := serve(t, withBoard, deps)
	s := newScene(7, 20, 4)
	s.fill(full, sceneWindows, now)
	emit(full, s.findings(now))
	w := &inference.Window{Start: now.UnixNano() - 5e9, End: now.UnixNano()}
	for i := range uint32(4) {
		w.Probes = append(w.Probes, probedStats(i+1, uint64(i), 1e6))
	}
	full.history.add(w)
	empty := serve(t, DefaultConfig(), sceneDeps(now))
	cfg := DefaultConfig()
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.TokenFile, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	locked := serve(t, cfg, sceneDeps(now))
	parent := startBrowser(t)
	type page struct {
		name  string
		srv   *Server
		path  string
		ready string
	}
	pages := []page{
		{"all", full, "", loaded + ` && document.querySelectorAll(".systems-data tbody tr").length === 5`},
		{"dashboard", full, "#dashboard=night", `document.querySelectorAll(".panel .u-over").length > 1`},
		{"past", full, "?last=1d&compare=1", `document.querySelector("#range-note").textContent.includes("in steps of 10")`},
		{"empty", empty, "", `!document.querySelector("#empty").hidden`},
		{"login", locked, "login", `document.querySelector("#token")`},
		{"wrong token", locked, "login?token=wrong", `document.querySelector("#token") && document.body.innerText.includes("That is not the token")`},
		{"docs", full, "docs/", `document.querySelector("h1")`},
		{"search", full, "docs/search?q=queue", `document.querySelector(".hits li")`},
	}
	always := len(pages)
	for _, g := range docs.Pages {
		for _, name := range g.Pages {
			pages = append(pages, page{name, full, "docs/" + name, `document.querySelector("h1")`})
		}
	}
	sizes := [][2]int64{{1280, 800}, {768, 1024}, {390, 844}}
	for i, page := range pages {
		b := openTab(t, parent, page.srv)
		b.do(t, chromedp.Navigate(page.srv.URL()+page.path))
		b.wait(t, page.ready)
		eval[bool](t, b, `(document.querySelectorAll("#map-matrix, #map-list").forEach((d) => { d.open = true; }), true)`)
		eval[bool](t, b, string(script)+"\ntrue")
		for j, theme := range []string{"dark", "light"} {
			b.scheme(t, theme)
			for k, size := range sizes {
				if i >= always && !testkit.Night() && i%(2*len(sizes)) != j*len(sizes)+k {
					continue
				}
				b.size(t, size[0], size[1])
				b.settle(t, 300*time.Millisecond)
				found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`, chromedp.EvalAwaitPromise))
				if err != nil {
					t.Fatalf("%s, %s, %v: %v", page.name, theme, size, err)
				}
				if len(found) > 0 {
					t.Errorf("%s, %s, %v: %d violations\n%s", page.name, theme, size, len(found), strings.Join(found, "\n"))
				}
			}
		}
	}
}
