package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/sink/web/atlas"
)

// drag moves the pressed pointer over a part of an element, from one share of its width to another.
func (b *browser) drag(t *testing.T, selector string, from, to float64) {
	t.Helper()
	eval[bool](t, b, fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({ block: "center" }), true)`, selector))
	b.settle(t, 200*time.Millisecond)
	box := eval[struct{ X, Y, Width, Height float64 }](t, b, fmt.Sprintf(`(r => ({ X: r.x, Y: r.y, Width: r.width, Height: r.height }))(document.querySelector(%q).getBoundingClientRect())`, selector))
	at := func(kind input.DispatchMouseEventType, share float64) {
		t.Helper()
		call(t, b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: box.X + share*box.Width, Y: box.Y + box.Height/2, Button: "left", Buttons: 1, ClickCount: 1})
	}
	at("mouseMoved", from)
	at("mousePressed", from)
	at("mouseMoved", (from+to)/2)
	at("mouseMoved", to)
	at("mouseReleased", to)
}

// testPagePast looks back over a day of the history, zooms, compares, and comes back.
func testPagePast(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Past, deps.Map = pastScene(t, now), func() *atlas.Map { return pastMap }
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)

	// An address that was sent.
	b.do(t, chromedp.Navigate(srv.URL()+"?last=1d#hop=4/3"))
	b.wait(t, `document.querySelector("#range-note").textContent.includes("in steps of 10")`)
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#hop-note").textContent.includes("of the whole range")`)
	if got := b.text(t, "#network-note"); !strings.HasPrefix(got, "3 hops × 14") {
		t.Errorf("network: %q", got)
	}
	if got := b.text(t, ".hops-data tbody tr:first-child th"); !strings.HasPrefix(got, "4 → 3") {
		t.Errorf("the slowest hop is %q", got)
	}
	if got := b.text(t, "#verdict-title"); got != "The past" {
		t.Errorf("verdict: %q", got)
	}
	if got := b.text(t, "#findings-note"); got != "0 open · 1 ended" {
		t.Errorf("findings: %q", got)
	}
	if got := b.text(t, "#range-lacks"); !strings.Contains(got, "columns are gaps") {
		t.Errorf("what it lacks: %q", got)
	}
	// The tables and the map are of the same time.
	for id, want := range map[string]string{"exporters": "sums from ", "interfaces": "counters of 2 interfaces from ", "probed": "1 path from "} {
		if got := b.text(t, "#"+id+"-note"); !strings.HasPrefix(got, want) {
			t.Errorf("the note of %s is %q", id, got)
		}
	}
	if got := b.text(t, ".exporters-data tbody"); !strings.Contains(got, "10.0.0.4") || strings.Contains(got, "Receiving") {
		t.Errorf("exporters: %q", got)
	}
	if got := b.text(t, "#flows-table"); !strings.Contains(got, "The history keeps hops, interfaces, exporters and probes, and no flows.") {
		t.Errorf("flows: %q", got)
	}
	if n := eval[int](t, b, `document.querySelectorAll(".flows-data tbody tr").length`); n != 0 {
		t.Errorf("%d flows of the present are shown", n)
	}
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, `/2 directions with values · from .* to /.test(document.querySelector("#map-note").textContent)`)
	b.picture(t, "past-map")
	eval[bool](t, b, `(document.querySelector("#exporters").scrollIntoView(), true)`)
	b.picture(t, "past-tables")
	if !eval[bool](t, b, `document.querySelector("[data-value='1d']").getAttribute("aria-pressed") === "true" && !document.querySelector("#range-present").hidden`) {
		t.Error("the chosen range is not shown, or that other tables show the present")
	}
	b.picture(t, "past")

	// Zoom: the congested hour is between seven and six hours ago.
	b.drag(t, "#hop .u-over", 16.0/24, 19.0/24)
	b.wait(t, `new URLSearchParams(location.search).has("from") && document.querySelector("#range-note").textContent.includes("in steps of 1")`)
	zoomed := eval[struct{ From, To float64 }](t, b, `(q => ({ From: Number(q.get("from")), To: Number(q.get("to")) }))(new URLSearchParams(location.search))`)
	if hours := (zoomed.To - zoomed.From) / 3.6e6; hours < 2.5 || hours > 3.5 || now.Sub(time.UnixMilli(int64(zoomed.From))) > 9*time.Hour || now.Sub(time.UnixMilli(int64(zoomed.To))) < 4*time.Hour {
		t.Errorf("zoomed to %v to %v, now is %v", time.UnixMilli(int64(zoomed.From)), time.UnixMilli(int64(zoomed.To)), now)
	}
	b.wait(t, `location.hash === "#hop=4/3"`)
	if got := b.text(t, "#hop .chart-key:nth-last-child(2)"); !strings.Contains(got, "p99") {
		t.Errorf("chart: %q", got)
	}

	// The day before.
	eval[bool](t, b, `(document.querySelector("#range-compare").click(), true)`)
	b.wait(t, `document.querySelector("#hop .chart figcaption").textContent.includes("p99 the day before")`)
	b.wait(t, `location.search.includes("compare=1")`)
	// Tables and the map have the differences, of which the list can be sorted by each.
	b.wait(t, `document.querySelector("#range-lacks").textContent.includes("Compared with ")`)
	eval[bool](t, b, `([...document.querySelectorAll(".hops-data thead .change button")].find((x) => x.textContent === "p99 change").click(), true)`)
	b.wait(t, `location.search.includes("sort-hops=latency_p99_change.desc")`)
	b.wait(t, `/^\+[12](\.\d+)?.ms$/.test(document.querySelector(".hops-data tbody tr:first-child td:nth-last-child(3)").textContent) && document.querySelector(".hops-data tbody tr:first-child th").innerText.startsWith("4 → 3")`)
	b.wait(t, `document.querySelector(".exporters-data tbody tr td:nth-last-child(2)").textContent.startsWith("+")`)
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, `document.querySelector("#map-note").textContent.endsWith("coloured by the change from the day before") && document.querySelector("#map-legend .changes")`)
	b.picture(t, "past-compared-map")
	eval[bool](t, b, `(document.querySelector("#hops").scrollIntoView(), true)`)
	b.picture(t, "past-compared")
	eval[bool](t, b, `([1, 2].forEach(() => [...document.querySelectorAll(".hops-data thead .change button")].find((x) => x.textContent === "p99 change").click()), true)`)
	b.wait(t, `!location.search.includes("sort-hops")`)

	// A reload shows the same, and Back leads out again.
	address := eval[string](t, b, `location.href`)
	b.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	b.wait(t, `document.querySelector("#range-note").textContent.includes("in steps of 1") && document.querySelector("#range-compare").checked`)
	b.wait(t, `document.querySelector("#hop .chart figcaption")?.textContent.includes("p99 the day before")`)

	eval[bool](t, b, `(document.querySelector("#range-choice [data-value='']").click(), true)`)
	b.wait(t, `location.search === "" && document.querySelector("#range-note").textContent.startsWith("History since")`)
	b.wait(t, `document.querySelector("#network-note").textContent.startsWith("80 hops") && document.querySelector("#verdict-title").textContent !== "The past"`)
	eval[bool](t, b, `(history.back(), true)`)
	b.wait(t, `document.querySelector("#verdict-title").textContent === "The past" && document.querySelector("#range-note").textContent.includes("in steps of 1")`)

	// A range from one time to another.
	eval[bool](t, b, `(document.querySelector("#range-from").value = "2020-01-01T00:00", document.querySelector("#range-to").value = "2020-01-02T00:00", document.querySelector("#range-show").click(), true)`)
	b.wait(t, `document.querySelector("#range-lacks").textContent.startsWith("The history is from ")`)
	b.check(t)
}

// testPageNoHistory says what to set where there is none.
func testPageNoHistory(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Past.None = "no history: set history.dir, or enable a store with a spool"
	srv := serve(t, DefaultConfig(), deps)
	newScene(7, 20, 4).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#range-note").textContent === "No history: set history.dir, or enable a store with a spool."`)
	if eval[bool](t, b, `[...document.querySelectorAll("#range button")].some(b => !b.disabled)`) {
		t.Error("a range can be chosen")
	}
	b.check(t)
}
