package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// loaded holds once everything that the page shows at first is there.
const loaded = `document.querySelectorAll(".hops-data tbody tr").length > 0 && document.querySelectorAll(".chart canvas").length === 2 &&
	document.querySelector(".bitmap-canvas").width > 300`

// TestPage drives the real page of a real server in a real browser.
func TestPage(t *testing.T) {
	testkit.Long(t)
	parent := startBrowser(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, context.Context)
	}{
		{"network", testPageNetwork},
		{"tables", testPageTables},
		{"find", testPageFind},
		{"findings", testPageFindings},
		{"what was judged", testPageJudged},
		{"keyboard", testPageKeyboard},
		{"new windows", testPageWindows},
		{"empty", testPageEmpty},
		{"hostile", testPageHostile},
		{"many hops", testPageManyHops},
		{"connection", testPageConnection},
		{"login", testPageLogin},
		{"contrast", testPageContrast},
		{"paths", testPagePaths},
		{"unread", testPageUnread},
		{"interfaces", testPageInterfaces},
		{"probed", testPageProbed},
		{"sort", testPageSort},
		{"systems", testPageSystems},
		{"left out by limits", testPageLeftOut},
		{"fleet", testPageFleet},
		{"fleet without windows", testPageFleetEmpty},
		{"map", testPageMap},
		{"map by keyboard", testPageMapKeyboard},
		{"map of flows", testPageMapFlows},
		{"map of hostile names", testPageMapHostile},
		{"large map", testPageMapLarge},
		{"past", testPagePast},
		{"dashboard", testPageDashboard},
		{"matrix", testPageMatrix},
		{"loading", testPageLoading},
		{"no history", testPageNoHistory},
		{"room", testPageRoom},
		{"save", testPageSave},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, parent) })
	}
}

// openScene serves the scene and opens its page.
func openScene(t *testing.T, parent context.Context) (*Server, *scene, *browser, time.Time) {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	emit(srv, s.findings(now))
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	return srv, s, b, now
}

// pixels returns the average colour of the middle of a cell, and how much the cell's pixels differ.
const pixels = `(() => {
	const canvas = document.querySelector(".bitmap-canvas"), box = document.querySelector(".bitmap-scroller");
	const copy = new OffscreenCanvas(canvas.width, canvas.height), c = copy.getContext("2d", { willReadFrequently: true });
	c.drawImage(canvas, 0, 0);
	const ratio = canvas.width / canvas.clientWidth;
	const left = 112, width = box.clientWidth - left - 2;
	return (row, column, columns, rowHeight) => {
		const x = (left + (column + 0.5) * width / columns) * ratio, y = (row + 0.4) * rowHeight * ratio;
		const d = c.getImageData(Math.round(x) - 4, Math.round(y) - 3, 9, 6).data;
		let sum = [0, 0, 0], light = [];
		for (let i = 0; i < d.length; i += 4) { for (let k = 0; k < 3; k++) sum[k] += d[i+k]; light.push(d[i] + d[i+1] + d[i+2]); }
		return { rgb: sum.map(v => Math.round(v / (d.length / 4))), contrast: Math.max(...light) - Math.min(...light), alpha: d[3] };
	};
})()`

type pixel struct {
	RGB      [3]int `json:"rgb"`
	Contrast int    `json:"contrast"`
	Alpha    int    `json:"alpha"`
}

func (p pixel) light() int { return p.RGB[0] + p.RGB[1] + p.RGB[2] }

// testPageNetwork looks at the pixels of the picture.
func testPageNetwork(t *testing.T, parent context.Context) {
	_, s, b, _ := openScene(t, parent)
	b.picture(t, "dark")
	b.press(t, "s") // by node: rows stand where the scene has them
	b.wait(t, `document.querySelector("[data-value=node]").getAttribute("aria-pressed") === "true"`)
	b.settle(t, 100*time.Millisecond) // the next frame
	height := eval[float64](t, b, `(h => h / Math.floor(h / 18))(document.querySelector(".bitmap-scroller").clientHeight)`)
	at := func(row, column int) pixel {
		t.Helper()
		return eval[pixel](t, b, fmt.Sprintf(`(%s)(%d, %d, %d, %v)`, pixels, row, column, sceneWindows, height))
	}
	hot, before := at(sceneHot, sceneWindows-5), at(sceneHot, sceneHotFrom-20)
	if hot.light() < before.light()+120 {
		t.Errorf("hop %d→%d: congested cells are %v, earlier ones %v: not much brighter", s.hops[sceneHot].node, s.hops[sceneHot].egressIf, hot.RGB, before.RGB)
	}
	if before.Alpha != 255 || before.light() < 60 {
		t.Errorf("a quiet cell is %v (alpha %d), want the dark end of viridis", before.RGB, before.Alpha)
	}
	// All rows in sight are full of cells.
	for row := range 20 {
		if p := at(row, 30); p.Alpha != 255 || p.RGB[2] < 70 {
			t.Errorf("row %d, window 30: %v is not a colour of viridis' dark half", row, p.RGB)
		}
	}
	// The row of the silent switch: scroll it into sight.
	eval[bool](t, b, `(document.querySelector(".bitmap-scroller").scrollTop = 1e6, true)`)
	b.settle(t, 200*time.Millisecond)
	top := eval[float64](t, b, `document.querySelector(".bitmap-scroller").scrollTop`)
	eval[bool](t, b, fmt.Sprintf(`(document.querySelector(".bitmap-scroller").scrollTop = %v, true)`, height*20))
	b.settle(t, 200*time.Millisecond)
	if top < height*40 {
		t.Errorf("the picture scrolls by %v px, want about %v", top, height*55)
	}
	silent := (sceneSilent-1)*4 - 20
	gap, beside := at(silent, (sceneGapFrom+sceneGapTo)/2), at(silent, sceneGapTo+8)
	if gap.RGB[2] > 70 || gap.Contrast == 0 {
		t.Errorf("windows without a report are %v with contrast %d, want hatched ground", gap.RGB, gap.Contrast)
	}
	if beside.RGB[2] < 80 {
		t.Errorf("behind the gap: %v, want a colour", beside.RGB)
	}
	// Another quantity gives another picture and legend.
	b.press(t, "q")
	b.wait(t, `document.querySelector(".legend-title").textContent === "Queue occupancy p99"`)
	b.press(t, "p")
	b.wait(t, `document.querySelector(".legend-title").textContent === "Queue occupancy max"`)
	if ticks := b.text(t, ".legend-ticks"); !strings.Contains(ticks, "kB") {
		t.Errorf("legend of the queue: %q, want kB in it", ticks)
	}
	b.press(t, "u")
	b.wait(t, `document.querySelector(".legend-title").textContent === "Link use max"`)
	if ticks := b.text(t, ".legend-ticks"); !strings.Contains(ticks, "%") {
		t.Errorf("legend of link use: %q, want %% in it", ticks)
	}
	b.press(t, "l", "d")
	b.wait(t, `document.querySelector("[data-value=yes]").getAttribute("aria-pressed") === "true"`)
	b.picture(t, "dense")
	b.scheme(t, "light")
	b.picture(t, "dense-light")
	b.check(t)
}

// testPageTables reads the tables.
func testPageTables(t *testing.T, parent context.Context) {
	_, _, b, now := openScene(t, parent)
	if got := b.text(t, "#verdict-title"); got != "3 findings open, worst: critical" {
		t.Errorf("verdict: %q", got)
	}
	if got := b.text(t, "#verdict-detail"); !strings.HasPrefix(got, "High latency at hop 4 → 3 since ") {
		t.Errorf("verdict's detail: %q", got)
	}
	if got, want := b.text(t, "#rate"), "16.2 k"; got != want {
		t.Errorf("reports per second: %q, want %q", got, want)
	}
	if got, want := b.text(t, "#ledger-line"), "12,431,009 received = 12,369,514 stored + 61,478 in flight + 17 dropped (<0.01 %) · influx"; got != want {
		t.Errorf("ledger: %q, want %q", got, want)
	}
	if got := b.text(t, ".hops-data tbody tr:first-child th"); got != "4 → 3" {
		t.Errorf("slowest hop: %q, want 4 → 3", got)
	}
	for i, unit := range map[int]string{2: "µs", 4: "µs", 6: "kB", 7: "%"} {
		if got := b.text(t, fmt.Sprintf(".hops-data tbody tr:first-child > :nth-child(%d)", i)); !strings.HasSuffix(got, " "+unit) {
			t.Errorf("slowest hop, column %d: %q, want a value in %s", i, got, unit)
		}
	}
	if got := b.text(t, "#hop-title"); got != "Hop 4 → 3" {
		t.Errorf("hop panel: %q, want the worst hop from the start", got)
	}
	if got := b.text(t, "#hops-pager"); !strings.HasPrefix(got, "1–8 of 80") {
		t.Errorf("pager: %q", got)
	}
	eval[bool](t, b, `(document.querySelector("#hops-pager button:last-child").click(), true)`)
	b.wait(t, `document.querySelector("#hops-pager").textContent.startsWith("9–16 of 80")`)
	eval[bool](t, b, `(document.querySelector(".hops-data tbody tr:first-child button").click(), true)`)
	b.wait(t, `document.querySelector("#hop-title").textContent === "Hop " + document.querySelector(".hops-data tbody tr:first-child th").innerText`)

	// The second flow changed its path.
	if got := b.text(t, ".flows-data tbody:nth-of-type(2) td:nth-child(5)"); !strings.HasPrefix(got, "1 change, last ") {
		t.Errorf("path changes of the second flow: %q", got)
	}
	if got := b.text(t, ".flows-data tbody:nth-of-type(2) .slowest .node"); got != "4" {
		t.Errorf("slowest node of the second flow: %q, want 4", got)
	}
	eval[bool](t, b, `(document.querySelector(".flows-data tbody:nth-of-type(2) .flow-key").click(), true)`)
	b.wait(t, `document.querySelectorAll(".flow-detail canvas").length === 1 && document.querySelectorAll(".flow-changes li").length === 1`)
	eval[bool](t, b, `(document.querySelector("#ledger").open = true, true)`)
	b.wait(t, `document.querySelectorAll(".ledger-data tbody tr").length === 21`)
	if got := b.text(t, ".ledger-data tbody"); !strings.Contains(got, "Malformed\t17\t17") {
		t.Errorf("ledger's table:\n%s", got)
	}
	b.size(t, 1280, 2900)
	b.picture(t, "whole-dark")
	b.scheme(t, "light")
	b.picture(t, "whole-light")
	b.size(t, 1920, 1080)
	b.picture(t, "wide")
	b.size(t, 400, 3600)
	b.picture(t, "narrow")
	// Charts follow the window with the next frame, not at once.
	b.wait(t, `document.documentElement.scrollWidth <= 400`)
	b.size(t, 1280, 800)

	for state, want := range map[string]string{"critical": "Silent", "warning": "Losing", "ok": "Receiving"} {
		if got := b.text(t, fmt.Sprintf(`.exporters-data tr[data-level=%s] .state`, state)); !strings.HasPrefix(got, want) {
			t.Errorf("exporter's state %s: %q, want %s", state, got, want)
		}
	}
	b.do(t, chromedp.SetValue(chromedp.ID("flows-filter"), "no such flow"))
	eval[bool](t, b, `document.querySelector("#flows-filter").dispatchEvent(new Event("input"))`)
	b.wait(t, `document.querySelector("#flows .placeholder").innerText.includes("No flow matches")`)
	_ = now
	b.check(t)
}

// testPageJudged checks that the verdict without findings is about judged values, and not about all values.
func testPageJudged(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	few := inference.Coverage{Seen: 80, Few: 80, MinRecords: 5, Warmup: 60, Window: time.Second, Times: 10}
	young, some, most := few, few, few
	young.Few, young.Young = 20, 60
	some.Few, some.Judged = 40, 40
	most.Few, most.Judged = 1, 79
	for _, c := range []struct {
		coverage             *inference.Coverage
		level, title, detail string
	}{
		{nil, "info", "No findings", "What was judged is not known here. 80 hops and"},
		{&few, "info", "Nothing can be judged", "80 hops seen, 0 judged: 80 had fewer than 5 records in a window of 1s; windows of 10s would be long enough."},
		{&young, "info", "Nothing is judged yet", "80 hops seen, 0 judged: 60 had fewer than 60 windows to learn from, 20 had fewer than"},
		{&some, "info", "Quiet where it can be judged", "Nothing stands out there. 80 hops seen, 40 judged: 40 had"},
		{&most, "ok", "Quiet where it can be judged", "Nothing stands out there. 80 hops seen, 79 judged: 1 had"},
		{&inference.Coverage{Seen: 80, Judged: 80, NoLatency: 48}, "ok", "Quiet where it can be judged", "Nothing stands out there. 80 hops seen, 80 judged: of 48 no latency is known."},
		{&inference.Coverage{Seen: 80, Judged: 80}, "ok", "All quiet", "Nothing stands out. All 80 hops judged, "},
	} {
		status := deps.Status()
		status.Coverage = c.coverage
		served := deps
		served.Status = func() Status { return status } // the pages of the cases before still ask theirs
		srv := serve(t, DefaultConfig(), served)
		newScene(3, 20, 4).fill(srv, 10, now)
		b := openTab(t, parent, srv)
		b.do(t, chromedp.Navigate(srv.URL()))
		b.wait(t, loaded)
		if got := b.text(t, "#verdict-title"); got != c.title {
			t.Errorf("%+v: title %q, want %q", c.coverage, got, c.title)
		}
		if got := b.text(t, "#verdict-detail"); !strings.HasPrefix(got, c.detail) {
			t.Errorf("%+v: detail %q, want %q", c.coverage, got, c.detail)
		}
		if got := eval[string](t, b, `document.querySelector("#verdict").dataset.level`); got != c.level {
			t.Errorf("%+v: level %q, want %q", c.coverage, got, c.level)
		}
	}
}

// testPageLeftOut sees what limits left out below the ledger, those of the page behind those of the collector.
func testPageLeftOut(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	status := deps.Status()
	status.LeftOut = []string{"36 exporters are not watched: raise exporters.tracking.max_exporters"}
	deps.Status = func() Status { return status }
	cfg := DefaultConfig()
	cfg.MaxHops = 16
	srv := serve(t, cfg, deps)
	newScene(3, 20, 4).fill(srv, 10, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	const want = `^Left out by limits: 36 exporters are not watched: raise exporters\.tracking\.max_exporters · [\d,]+ rows of hops are not on the page, .*: raise web\.max_hops$`
	if got := b.text(t, "#ledger-left-out"); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("left out: %q, want %q", got, want)
	}
	deps.Status = sceneDeps(now).Status
	srv = serve(t, DefaultConfig(), deps)
	newScene(3, 20, 4).fill(srv, 10, now)
	b = openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	if !eval[bool](t, b, `document.querySelector("#ledger-left-out").hidden`) {
		t.Errorf("left out: %q", b.text(t, "#ledger-left-out"))
	}
}

// testPageFindings sends findings while the page is open.
func testPageFindings(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	s := newScene(3, 20, 4)
	s.fill(srv, 100, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	if got := b.text(t, "#verdict-title"); got != "All quiet" {
		t.Errorf("verdict without findings: %q", got)
	}
	b.picture(t, "quiet")
	f := inference.Finding{ID: 1 << 60, Kind: inference.HighQueue, Severity: inference.Warning, Start: now.UnixNano(), Node: 2, EgressIf: 3, Value: 8e5, Text: "Queue occupancy p99 is 800 KB."}
	emit(srv, []inference.Finding{f})
	b.wait(t, `document.querySelectorAll(".finding-group:not(.ended) .finding").length === 1`)
	if got := b.text(t, ".finding"); !strings.Contains(got, "Warning") || !strings.Contains(got, "Queue building up") || !strings.Contains(got, "Hop 2 → 3") || !strings.Contains(got, f.Text) {
		t.Errorf("finding: %q", got)
	}
	if got, want := eval[string](t, b, `document.querySelector(".finding-body").firstElementChild.textContent`), "Queue at node 2, port 3: 800 kB, usually empty"; got != want {
		t.Errorf("the card begins with %q, want %q", got, want)
	}
	if got := b.text(t, "#verdict-title"); got != "1 finding open, worst: warning" {
		t.Errorf("verdict: %q", got)
	}
	if got := eval[string](t, b, `document.querySelector("#announce").textContent`); got != "New finding, warning: Queue building up, Hop 2 → 3. "+f.Text {
		t.Errorf("screen readers hear %q", got)
	}
	eval[bool](t, b, `(location.hash = "#finding=1000000000000000", true)`)
	b.wait(t, `document.querySelector(".finding-explain").open && document.querySelectorAll(".finding-explain strong").length > 4`)
	for _, want := range []string{"What to do: look for what is sent there now", "events.queue_floor_bytes", "Where to look next"} {
		if got := b.text(t, ".finding-explain"); !strings.Contains(got, want) {
			t.Errorf("no %q in the explanation %q", want, got)
		}
	}
	b.picture(t, "explained")
	f.Severity = inference.Critical
	emit(srv, []inference.Finding{f})
	b.wait(t, `document.querySelector(".finding").dataset.severity === "critical" && document.title === "(1!) hopscope"`)
	eval[bool](t, b, `(document.querySelector(".finding-place").click(), true)`)
	b.wait(t, `document.querySelector("#hop-title").textContent === "Hop 2 → 3"`)
	f.Resting = true
	emit(srv, []inference.Finding{f})
	b.wait(t, `document.querySelector(".finding").dataset.rests === "true" && document.title === "hopscope"`)
	if got, want := b.text(t, "#verdict-title")+": "+b.text(t, "#verdict-detail"), "Nothing stands out now, 1 finding at rest: Queue building up at hop 2 → 3 is as usual at present, and may come back."; got != want {
		t.Errorf("verdict while it rests: %q, want %q", got, want)
	}
	f.Resting = false
	emit(srv, []inference.Finding{f})
	b.wait(t, `document.querySelector(".finding").dataset.rests === "false" && document.title === "(1!) hopscope"`)
	f.End = now.Add(5 * time.Second).UnixNano()
	emit(srv, []inference.Finding{f})
	b.wait(t, `document.querySelectorAll(".ended .finding").length === 1 && document.querySelectorAll(".finding").length === 1`)
	if got := b.text(t, "#verdict-title"); got != "All quiet" {
		t.Errorf("verdict after the end: %q", got)
	}
	testCausesFold(t, b, srv, now)
	b.check(t)
	// At a broken link the cause stands above the lost probes that it brings forth, although these are worse.
	probes, err := decode.ParseFlow("10.0.0.1:49152 > 10.0.3.1:17769 udp")
	if err != nil {
		t.Fatal(err)
	}
	lost := inference.Finding{ID: 3 << 60, Kind: inference.ProbeLoss, Severity: inference.Critical, Start: now.UnixNano(), Flow: probes, Element: inference.ElementOfFlow(probes), Value: 1, Text: "lost"}
	broken := inference.Finding{ID: 2 << 60, Kind: inference.PathChanged, Severity: inference.Warning, Start: now.Add(-9 * time.Second).UnixNano(), Element: inference.ElementOfLink(2, 3), Value: 24, Evidence: 3, Text: "broken"}
	emit(srv, []inference.Finding{lost, broken})
	b.wait(t, `((texts) => texts.includes("broken") && texts.at(-1) === "lost")([...document.querySelectorAll(".finding-group:not(.ended) .finding-text")].map((x) => x.textContent))`)
	if got := b.text(t, "#verdict-detail"); strings.Contains(got, "Probes lost") {
		t.Errorf("the verdict names another finding than the first card: %q", got)
	}
}

// testCausesFold wants a cause on the page once, with its evidence folded below it.
func testCausesFold(t *testing.T, b *browser, srv *Server, now time.Time) {
	t.Helper()
	const cause = 1<<60 + 9
	at := func(id uint64, node, egress uint32) inference.Finding {
		return inference.Finding{ID: id, Kind: inference.HighLatency, Severity: inference.Warning, Start: now.UnixNano(), Node: node, EgressIf: egress,
			Element: inference.ElementOfHop(inference.HopKey{Node: node, EgressIf: egress}), Text: "p99 is 9 ms."}
	}
	alone := at(1<<60+1, 4, 1)
	emit(srv, []inference.Finding{alone})
	b.wait(t, `document.querySelectorAll(".finding-group:not(.ended) .finding").length === 1`)
	alone.Cause = cause
	other := at(1<<60+2, 4, 2)
	other.Cause = cause
	both := at(cause, 4, 0)
	both.Evidence, both.Text = 2, "node 4 explains 2 high-latency"
	emit(srv, []inference.Finding{alone, other, both})
	b.wait(t, `document.querySelector("#verdict-title").textContent === "1 finding open, worst: warning"`)
	b.wait(t, `document.querySelectorAll(".finding-group:not(.ended) .finding").length === 1`)
	b.wait(t, `document.querySelector(".finding-group:not(.ended) .finding-place").textContent === "Node 4"`)
	const folded = `document.querySelector(".finding-group:not(.ended) .finding-evidence")`
	if got := eval[string](t, b, folded+`.querySelector("summary").textContent`); got != "Evidence: 2 findings" {
		t.Errorf("the fold says %q", got)
	}
	if got := eval[bool](t, b, folded+`.open`); got {
		t.Error("the evidence is not folded")
	}
	eval[bool](t, b, `(`+folded+`.querySelector("summary").click(), true)`)
	b.wait(t, folded+`.open && `+folded+`.querySelectorAll("li").length === 2`)
	if got := b.text(t, ".finding-group:not(.ended) .finding-evidence ul"); !strings.Contains(got, "Hop 4 → 1") || !strings.Contains(got, "Hop 4 → 2") {
		t.Errorf("evidence: %q", got)
	}
	eval[bool](t, b, `(`+folded+`.querySelector("li .finding-place").click(), true)`)
	b.wait(t, `document.querySelector("#hop-title").textContent === "Hop 4 → 1"`)
	other.Cause, both.Cause = both.ID, other.ID // a circle
	emit(srv, []inference.Finding{other, both})
	b.wait(t, `document.querySelectorAll(".finding-group:not(.ended) .finding").length === 2`)
}

// testPageKeyboard uses no pointer.
func testPageKeyboard(t *testing.T, parent context.Context) {
	_, _, b, _ := openScene(t, parent)
	b.press(t, kb.Tab)
	if got := eval[string](t, b, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q, want the skip link", got)
	}
	b.press(t, "1")
	b.wait(t, `document.activeElement.classList.contains("bitmap-scroller")`)
	said := func() string { return eval[string](t, b, `document.querySelector("#announce-cell").textContent`) }
	if got := said(); !strings.HasPrefix(got, "Node 4, egress interface 3, Latency p99 ") || !strings.Contains(got, "critical: High latency") {
		t.Errorf("the first cell is announced as %q", got)
	}
	b.press(t, kb.ArrowLeft, kb.ArrowLeft, kb.ArrowDown)
	second := said()
	if strings.HasPrefix(second, "Node 4, egress interface 3,") || !strings.Contains(second, "Latency p99 ") || strings.Contains(second, "critical") {
		t.Errorf("the cell below is announced as %q", second)
	}
	b.wait(t, `!document.querySelector("#tooltip").hidden`)
	b.picture(t, "keyboard")
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("#hop-title").textContent !== "Hop 4 → 3"`)
	node, _, _ := strings.Cut(strings.TrimPrefix(second, "Node "), ",")
	if got := b.text(t, "#hop-title"); !strings.HasPrefix(got, "Hop "+node+" → ") {
		t.Errorf("Enter on %q opened %q", second, got)
	}
	b.press(t, "1", kb.End)
	first := said()
	b.press(t, kb.Home)
	if got := said(); got == first {
		t.Errorf("Home and End give the same cell: %q", got)
	}
	b.press(t, "?")
	b.wait(t, `document.querySelector("#help").open`)
	b.picture(t, "help")
	b.press(t, kb.Escape)
	b.wait(t, `!document.querySelector("#help").open`)
	b.press(t, "/")
	b.wait(t, `document.activeElement.id === "find"`)
	b.press(t, "l") // is text here, not a key
	if got := eval[string](t, b, `document.activeElement.value`); !strings.HasSuffix(got, "l") {
		t.Errorf("the filter holds %q after typing l", got)
	}
	b.check(t)
}

// testPageWindows writes windows while the page is open. Nothing may jump.
func testPageWindows(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	s := newScene(5, 20, 4)
	s.fill(srv, 20, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#network-note").textContent.startsWith("80 hops × 20 windows")`)
	b.picture(t, "young")
	const layout = `JSON.stringify([...document.querySelectorAll(".card, .data thead, .bitmap-canvas, .charts")].map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }))`
	before := eval[string](t, b, layout)
	for i := range 3 {
		write(srv, s.window(sceneWindows+i, now.Add(time.Duration(i+1)*s.length)))
		b.wait(t, fmt.Sprintf(`document.querySelector("#network-note").textContent.startsWith("80 hops × %d windows")`, 21+i))
	}
	if after := eval[string](t, b, layout); after != before {
		t.Errorf("the layout moved:\n%s\n%s", before, after)
	}
	b.check(t)
}

// testPageEmpty begins without any data.
func testPageEmpty(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Status = func() Status {
		return Status{
			Version: "v0.1.0", Start: now.Add(-12 * time.Second), Window: 5 * time.Second, Settings: []Setting{{"Window", "5 s"}},
			Sources: []Source{{Kind: "udp", Address: "127.0.0.1:32766", Detail: "telemetry report 0.5, 1.0 and 2.0"}},
		}
	}
	var received atomic.Uint64 // the server asks while the test counts
	deps.Ledger = func() []sink.Balance {
		n := received.Load()
		return []sink.Balance{{Sink: "web", Received: n, InFlight: map[string]int64{}, Dropped: map[string]int64{"malformed": int64(n)}}}
	}
	srv := serve(t, DefaultConfig(), deps)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `!document.querySelector("#empty").hidden && document.querySelector("#empty .steps")`)
	got := b.text(t, "#empty")
	for _, want := range []string{"No report has arrived yet", "127.0.0.1:32766", "telemetry report 0.5, 1.0 and 2.0", `"collectorPort": 32766`, "hopscope demo", "udp port 32766"} {
		if !strings.Contains(got, want) {
			t.Errorf("the empty page does not say %q:\n%s", want, got)
		}
	}
	if shown := eval[bool](t, b, `!document.querySelector("#board").hidden`); shown {
		t.Error("the empty page shows empty tables")
	}
	b.picture(t, "empty-dark")
	b.scheme(t, "light")
	b.picture(t, "empty-light")
	b.check(t)

	// Something arrives and nothing of it can be read.
	received.Store(120)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelector("#empty h2")?.textContent.startsWith("Datagrams arrive")`)
	if got := b.text(t, "#empty .lead"); !strings.Contains(got, "120 received") || !strings.Contains(got, "malformed") {
		t.Errorf("with malformed datagrams only the page says %q", got)
	}
	// Only an exporter is known, which has no hop to draw.
	write(srv, sink.NewWindow("here", &inference.Window{End: now.Add(-time.Minute).UnixNano(), Exporters: []inference.ExporterStats{
		{ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, 1})}, Reports: 4},
	}}, nil))
	b.wait(t, `document.querySelector(".bitmap-none").textContent === "No hop has been reported in the kept windows."`)
	newScene(1, 20, 4).fill(srv, 3, now)
	b.wait(t, `document.querySelector(".bitmap-none").hidden`)
	b.wait(t, `document.querySelector("#empty").hidden && !document.querySelector("#board").hidden`)
	b.wait(t, loaded)
	b.check(t)
}

// hostile are texts that would do harm where text becomes markup.
var hostile = []string{
	`<script>window.harm=1</script>`, `<img src=x onerror="window.harm=1">`, `"><svg onload=window.harm=1>`, `</script><script>window.harm=1</script>`,
	`javascript:window.harm=1`, "'+(window.harm=1)+'", "${window.harm=1}", "\u202enetwork\u2028\x00\x1b[31m", "\xff\xfe<b>", strings.Repeat("W", 256),
}

func testPageHostile(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	status := deps.Status
	deps.Status = func() Status {
		s := status()
		s.Version, s.Sources = hostile[0], []Source{{Kind: hostile[1], Address: hostile[2], Problem: hostile[3]}}
		return s
	}
	srv := serve(t, DefaultConfig(), deps)
	// Names of hops, flows and exporters are made of numbers; the longest of them come beside the texts.
	const largest = 1<<32 - 1
	w := &inference.Window{End: now.UnixNano()}
	var found []inference.Finding
	for i, h := range hostile {
		hop := inference.HopKey{Node: largest - uint32(i), EgressIf: largest}
		latency := inference.Summary{Count: 5, P50: 500, P99: uint64(1000 * (i + 1))}
		flow := mustFlow(fmt.Sprintf("[2001:db8:1234:5678:9abc:def0:1234:%x]:65535 > [2001:db8:1234:5678:9abc:def0:1234:5678]:65535 proto 255", 0x1000+i))
		w.Hops = append(w.Hops, inference.HopStats{HopKey: hop, Count: 5, Latency: latency})
		w.Flows = append(w.Flows, inference.FlowStats{Key: flow, Packets: uint64(i + 1), Hops: []inference.FlowHop{{HopKey: hop, Latency: latency}}})
		w.Paths = append(w.Paths, inference.PathChange{Time: w.End, Flow: flow, From: []inference.HopKey{hop}, To: []inference.HopKey{hop}})
		w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Addr: flow.Src, Node: largest, HWID: 255}, Reports: 5})
		found = append(found, inference.Finding{ID: uint64(i), Kind: inference.PacketDrops, Severity: inference.Warning, Start: w.End, Node: 7, Text: h})
	}
	write(srv, sink.NewWindow("here", w, found))
	tab := openTab(t, parent, srv)
	tab.do(t, chromedp.Navigate(srv.URL()))
	tab.wait(t, loaded)
	tab.wait(t, fmt.Sprintf(`document.querySelectorAll(".finding").length === %d`, len(hostile)))
	// Open everything that shows names.
	eval[bool](t, tab, `(document.querySelectorAll(".hops-data button, .flows-data .flow-key, .flows-data .node").forEach(b => b.click()), true)`)
	tab.wait(t, `document.querySelectorAll(".flow-detail canvas").length === 1`)
	tab.press(t, "1", kb.ArrowDown, kb.ArrowDown, kb.Enter)
	if eval[bool](t, tab, `"harm" in window`) {
		t.Error("a name from the network ran as a script")
	}
	if n := eval[int](t, tab, `document.querySelectorAll("main script, main b b, main svg[onload], main img:not([src='/favicon.svg'])").length`); n != 0 {
		t.Errorf("%d elements were made of names", n)
	}
	if got := eval[string](t, tab, `[...document.querySelectorAll(".finding-text")].map(e => e.textContent).join("\n")`); !strings.Contains(got, hostile[0]) || !strings.Contains(got, hostile[1]) {
		t.Errorf("findings do not show the text as it is:\n%s", got)
	}
	if w := eval[int](t, tab, `document.documentElement.scrollWidth`); w > 1280 {
		t.Errorf("long names make the page %d px wide", w)
	}
	tab.size(t, 1280, 2600)
	tab.picture(t, "hostile")
	tab.check(t)
}

// testPageManyHops has as many hops as the default configuration keeps. The page must not hold an element for each.
func testPageManyHops(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	cfg := DefaultConfig()
	srv := serve(t, cfg, sceneDeps(now))
	newScene(2, 512, 8).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	if got := b.text(t, "#network-note"); !strings.HasPrefix(got, "4,096 hops × 170 windows") {
		t.Errorf("note: %q", got)
	}
	if n := eval[int](t, b, `document.querySelectorAll("*").length`); n > 2500 {
		t.Errorf("%d elements for 4096 hops", n)
	}
	b.press(t, "s", "1")
	b.do(t, chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierShift)))
	b.wait(t, `document.querySelector("#announce-cell").textContent.startsWith("Node 512, egress interface 8,")`)
	b.wait(t, `document.querySelector(".bitmap-scroller").scrollTop > 60000`)
	b.press(t, "d")
	b.picture(t, "many")
	b.check(t)
}

// testPageConnection stops the server under the page and starts it again.
func testPageConnection(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	cfg := DefaultConfig()
	start := func(listen string) (*Server, func()) {
		t.Helper()
		cfg.Listen = listen
		srv, err := New(cfg, sceneDeps(now))
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Listen(); err != nil {
			t.Fatal(err)
		}
		newScene(4, 20, 4).fill(srv, 40, now)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx) }()
		return srv, func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	}
	srv, stop := start("127.0.0.1:0")
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#live-text").textContent === "Live"`)
	b.check(t)
	stop()
	b.wait(t, `!document.querySelector("#banner").hidden`)
	if got := b.text(t, "#banner-text"); !strings.HasPrefix(got, "The collector was stopped at ") {
		t.Errorf("banner: %q", got)
	}
	if got := b.text(t, "#verdict-title"); got != "Status unknown" {
		t.Errorf("without a connection the page claims %q", got)
	}
	b.picture(t, "lost")
	_, stop = start(b.host)
	defer stop()
	b.wait(t, `document.querySelector("#banner").hidden && document.querySelector("#live-text").textContent === "Live"`)
	b.wait(t, `document.querySelector("#network-note").textContent.startsWith("80 hops × 40 windows")`)
	b.wait(t, `document.querySelector("#verdict-title").textContent === "All quiet"`)
}

// testPageLogin comes without the token first.
func testPageLogin(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	cfg := DefaultConfig()
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.TokenFile, []byte("correct-horse-battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, cfg, sceneDeps(now))
	newScene(4, 20, 4).fill(srv, 40, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `location.pathname === "/login" && document.activeElement.id === "token"`)
	b.picture(t, "login")
	b.check(t)
	b.do(t, chromedp.SendKeys(chromedp.ID("token"), "a-wrong-token-is-no-token"+kb.Enter))
	b.wait(t, `!document.querySelector(".login-error").hidden`)
	b.do(t, chromedp.SendKeys(chromedp.ID("token"), "correct-horse-battery"+kb.Enter))
	b.wait(t, `location.pathname === "/"`)
	b.wait(t, loaded)
	if eval[bool](t, b, `document.cookie !== ""`) {
		t.Error("scripts can read the cookie")
	}
}

// contrast finds texts that are hard to read: less than 4.5:1, or 3:1 for large ones (WCAG 2.2, 1.4.3).
const contrast = `(() => {
	const parse = (s) => { const m = s.match(/[\d.]+/g).map(Number); return /^color\(srgb/.test(s) ? [m[0]*255, m[1]*255, m[2]*255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const l = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
	const ground = (e) => { const stack = []; for (; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor)); return stack.reverse().reduce((b, a) => over(a, b), [255, 255, 255, 1]); };
	const bad = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let texts = 0;
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
		if (!text || !e.checkVisibility() || e.closest(".hidden, :disabled, .legend-ticks, canvas")) continue;
		texts++;
		const s = getComputedStyle(e), b = ground(e), f = over(parse(s.color), b);
		const [hi, lo] = [light(f), light(b)].sort((x, y) => y - x);
		const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700;
		const ratio = (hi + 0.05) / (lo + 0.05);
		if (ratio < (large ? 3 : 4.5)) bad.add(ratio.toFixed(2) + ":1 " + s.color + " " + (e.className || e.tagName) + " " + text.slice(0, 30));
	}
	return { texts, bad: [...bad] };
})()`

func testPageContrast(t *testing.T, parent context.Context) {
	srv, _, b, _ := openScene(t, parent)
	eval[bool](t, b, `(document.querySelector("#ledger").open = true, document.querySelector(".flow-key").click(), true)`)
	b.wait(t, `document.querySelectorAll(".flow-detail canvas").length === 1`)
	look := func(what string) {
		t.Helper()
		r := eval[struct {
			Texts int      `json:"texts"`
			Bad   []string `json:"bad"`
		}](t, b, contrast)
		if r.Texts < 10 {
			t.Errorf("%s: only %d texts were looked at", what, r.Texts)
		}
		if len(r.Bad) > 0 {
			t.Errorf("%s: too little contrast:\n%s", what, strings.Join(r.Bad, "\n"))
		}
	}
	look("dark")
	b.scheme(t, "light")
	look("light")
	b.press(t, "?")
	look("help, light")
	b.press(t, kb.Escape)
	empty := serve(t, srv.cfg, sceneDeps(time.Now()))
	b = openTab(t, parent, empty)
	b.do(t, chromedp.Navigate(empty.URL()))
	b.wait(t, `document.querySelector("#empty .steps")`)
	look("empty, dark")
	b.scheme(t, "light")
	look("empty, light")
}
