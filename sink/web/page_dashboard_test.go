package web

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// sceneDashboard is a dashboard of the scene's network.
const sceneDashboard = `title: Night shift
panels:
  - link: leaf-4:3
    title: Uplink of leaf 4
  - path: [4:3, 5:1, 9:2]
    show: queue
  - flow: 10.0.0.2:32768 > 10.2.1.3:443 tcp
  - link: nowhere:1
`

// Dashboards of the settings are read anew for each request, and a page may bring one of its own.
func TestDashboards(t *testing.T) {
	cfg := DefaultConfig()
	file := filepath.Join(t.TempDir(), "night.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("panels:\n  - lnk: 7:3\n")
	cfg.Dashboards = []string{file}
	if err := cfg.CheckFiles(); err == nil || !strings.Contains(err.Error(), `dashboards[0]: `+file+`: line 2: "lnk" is no key of a panel: it has flow, link, path, show, title`) {
		t.Errorf("%v", err)
	}
	write(sceneDashboard)
	if err := cfg.CheckFiles(); err != nil {
		t.Error(err)
	}
	deps := sceneDeps(sceneTime)
	deps.Names = func() *names.Names { return names.New([]names.Node{{ID: 4, Name: "leaf-4"}}, nil, nil) }
	srv, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	got := askFor[atlas.DashboardList](t, srv, "/api/dashboards", http.StatusOK).Dashboards
	if len(got) != 1 || got[0].Name != "night" || got[0].Title != "Night shift" || len(got[0].Panels) != 4 || got[0].Panels[0].Hops[0].Node != "4" || got[0].Panels[3].Problem == "" {
		t.Errorf("%+v", got)
	}
	write("panels: []\n")
	if got = askFor[atlas.DashboardList](t, srv, "/api/dashboards", http.StatusOK).Dashboards; !strings.Contains(got[0].Problem, "night.yaml: line 1: has no panels: list links, paths or flows") {
		t.Errorf("%+v", got)
	}
}

// testPageMatrix goes through the picture of switches by switches with the keyboard, and opens a link from it.
func testPageMatrix(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	newScene(7, 20, 4).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	eval[bool](t, b, `(document.querySelector("#map-matrix").open = true, document.querySelector("#map-matrix").scrollIntoView(), true)`)
	b.wait(t, `/^Latency p99: 20 × 20 switches, \d+ of \d+ links with values; the row sends/.test(document.querySelector(".matrix-note").textContent)`)
	eval[bool](t, b, `(document.querySelector(".matrix-scroller").focus({ preventScroll: true }), true)`)
	b.wait(t, `/^\d+ → \d+, Latency p99 /.test(document.querySelector("#announce-cell").textContent)`) // the worst link first
	first := b.text(t, "#announce-cell")
	b.picture(t, "matrix")
	b.press(t, kb.ArrowLeft, kb.ArrowUp, kb.ArrowRight)
	b.wait(t, `document.querySelector("#announce-cell").textContent !== `+strconv.Quote(first))
	b.press(t, kb.Enter)
	b.wait(t, `location.hash.startsWith("#map=link/") && !document.querySelector("#map-panel").hidden`)
	eval[bool](t, b, `(URL.createObjectURL = (x) => { window.saved = x.type + " " + (x.size > 500); return "about:blank"; }, HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }, document.querySelector(".matrix-head [title='Save as PNG']").click(), true)`)
	b.wait(t, `window.savedAs === "matrix-of-links-latency-p99.png" && window.saved === "image/png true"`)
	b.size(t, 390, 844)
	b.settle(t, 300*time.Millisecond)
	if eval[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than a phone")
	}
	b.check(t)
}

// testPageLoading holds that the page claims nothing before it knows the network.
func testPageLoading(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	held := make(chan struct{})
	status := deps.Status
	deps.Status = func() Status {
		<-held
		return status()
	}
	srv := serve(t, DefaultConfig(), deps)
	newScene(7, 20, 4).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.settle(t, 300*time.Millisecond)
	if got := b.text(t, "#findings-list"); got != "Loading the findings." {
		t.Errorf("before anything is known, the findings are %q", got)
	}
	if got := b.text(t, "#verdict-title"); got != "Loading" {
		t.Errorf("before anything is known, the verdict is %q", got)
	}
	close(held)
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#findings-list").innerText.startsWith("Nothing stands out.")`)
	b.check(t)
}

// testPageDashboard opens a dashboard of the settings, changes it, saves it as a file, and opens that.
func testPageDashboard(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	dir := t.TempDir()
	file := filepath.Join(dir, "night.yaml")
	if err := os.WriteFile(file, []byte(sceneDashboard), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, deps := DefaultConfig(), sceneDeps(now)
	cfg.Dashboards = []string{file}
	deps.Names = func() *names.Names { return names.New([]names.Node{{ID: 4, Name: "leaf-4"}}, nil, nil) }
	deps.Past = pastScene(t, now)
	srv := serve(t, cfg, deps)
	newScene(7, 20, 4).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()+"#dashboard=night"))
	b.wait(t, `document.querySelectorAll(".panel").length === 4`)
	b.wait(t, `[...document.querySelectorAll(".panel-note")].every((n) => n.textContent !== "Loading")`)
	for i, want := range []string{"Latency p50", "Sum of medians", "Path changes"} {
		b.wait(t, `document.querySelectorAll(".panel")[`+string(rune('0'+i))+`].innerText.includes("`+want+`") && document.querySelectorAll(".panel")[`+string(rune('0'+i))+`].querySelector(".u-over")`)
	}
	if got := b.text(t, ".panel:nth-child(1) h3"); got != "Uplink of leaf 4" {
		t.Errorf("the first panel is %q", got)
	}
	if got := b.text(t, ".panel:nth-child(4) .panel-note"); !strings.HasPrefix(got, `"nowhere:1" is no link: write node:interface by number`) {
		t.Errorf("a link that is not known: %q", got)
	}
	if got := b.text(t, "#dashboard-note"); got != "4 panels, of the file night" {
		t.Errorf("note: %q", got)
	}
	b.settle(t, 300*time.Millisecond)
	b.picture(t, "dashboard")

	// A panel is removed, and a hop and a flow are added: the file of the settings stays as it is.
	eval[bool](t, b, `(document.querySelector(".panel:nth-child(4) .panel-remove").click(), true)`)
	b.wait(t, `document.querySelectorAll(".panel").length === 3 && document.querySelector(".dashboard-title").value === "Night shift, changed"`)
	eval[bool](t, b, `(location.hash = "#hop=7/1", true)`)
	b.wait(t, `document.querySelector("#hop-title").textContent === "Hop 7 → 1"`)
	eval[bool](t, b, `(document.querySelector("#hop-add").click(), true)`)
	b.wait(t, `document.querySelectorAll(".panel").length === 4 && document.querySelector("#announce").textContent === "7 → 1 is on the dashboard"`)
	eval[bool](t, b, `(document.querySelector(".flow-key").click(), true)`)
	b.wait(t, `document.querySelectorAll(".flow-add button").length === 2`)
	eval[bool](t, b, `(document.querySelectorAll(".flow-add button").forEach((x) => x.click()), true)`)
	b.wait(t, `document.querySelectorAll(".panel").length === 5`) // the busiest flow is there already, its path is not

	// What is saved is read again, here and by the settings.
	eval[bool](t, b, `(window.saved = null, URL.createObjectURL = (x) => (x.text().then((text) => { window.saved = text; }), "about:blank"), HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }, true)`)
	eval[bool](t, b, `([...document.querySelectorAll("#dashboard-controls button")].find((x) => x.textContent === "Save as file").click(), true)`)
	b.wait(t, `window.saved !== null`)
	saved := eval[string](t, b, `window.saved`)
	d, err := atlas.ReadDashboard(saved)
	if err != nil || d.Title != "Night shift, changed" || len(d.Panels) != 5 || d.Panels[1].Show != "queue" || d.Panels[3].Of[0] != "7:1" || d.Panels[2].Kind != "flow" || d.Panels[4].Kind != "path" {
		t.Errorf("%v\n%s", err, saved)
	}
	if got := eval[string](t, b, `window.savedAs`); got != "night-shift-changed.yaml" {
		t.Errorf("the file is called %q", got)
	}
	open := func(text string) {
		t.Helper()
		quoted, _ := json.Marshal(text) // texts can be written
		eval[bool](t, b, `(() => {
			const input = document.querySelector("#dashboard-controls input[type=file]"), files = new DataTransfer();
			files.items.add(new File([`+string(quoted)+`], "mine.yaml"));
			input.files = files.files;
			input.dispatchEvent(new Event("change"));
			return true;
		})()`)
	}
	open("panels:\n  - lnk: 7:3\n")
	b.wait(t, `document.querySelector(".dashboard-error").textContent.includes('line 2: "lnk" is no key of a panel')`)
	open("title: Two\npanels:\n  - link: 9:2\n  - link: 9:3\n    show: use\n")
	b.wait(t, `document.querySelectorAll(".panel").length === 2 && document.querySelector(".dashboard-title").value === "Two" && document.querySelector(".dashboard-error").hidden`)

	// It stays for the next time, in the past too, and on a phone.
	b.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(srv.URL()+"?last=1d&compare=1#dashboard="))
	b.wait(t, `document.querySelectorAll(".panel").length === 2 && document.querySelector(".panel-note").textContent.includes("in the range")`)
	b.size(t, 390, 844)
	b.settle(t, 300*time.Millisecond)
	if eval[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than a phone")
	}
	b.picture(t, "dashboard-phone")
	eval[bool](t, b, `([...document.querySelectorAll("#dashboard-controls button")].find((x) => x.textContent === "Remove all").click(), true)`)
	b.wait(t, `!document.querySelector(".dashboard-empty").hidden`)
	b.mu.Lock()
	b.complaints = slices.DeleteFunc(b.complaints, func(c string) bool { return strings.Contains(c, "400") && strings.Contains(c, "api/dashboards/read") }) // the browser's own line about the file that was refused
	b.mu.Unlock()
	b.check(t)
}
