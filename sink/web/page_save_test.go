package web

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// saves makes the page hand its files to the test: window.files has the text of a CSV file, and size and colours of a PNG, by name.
const saves = `(() => {
	window.files = {};
	let blob = null;
	URL.createObjectURL = (x) => { blob = x; return "about:blank"; };
	HTMLAnchorElement.prototype.click = function () {
		const name = this.download, b = blob;
		if (b.type.startsWith("text/csv")) b.text().then((t) => { window.files[name] = t; });
		else createImageBitmap(b).then((i) => {
			const c = new OffscreenCanvas(i.width, i.height).getContext("2d");
			c.drawImage(i, 0, 0);
			const d = new Uint32Array(c.getImageData(0, 0, i.width, i.height).data.buffer);
			window.files[name] = JSON.stringify({ width: i.width, height: i.height, colours: new Set(d).size, clear: d.some((p) => p >>> 24 === 0) });
		});
	};
	return true;
})()`

// testPageSave saves every table and chart of the page, and reads the files.
func testPageSave(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Unread = sceneUnread
	deps.Paths = func(n int) Paths { return scenePaths(n) }
	deps.Map = func() *atlas.Map { return pastMap }
	n := names.New([]names.Node{{ID: 4, Name: `=HYPERLINK("http://x","y")`}, {ID: 5, Name: "+1"}, {ID: 6, Name: "leaf, 6"}}, nil, nil)
	deps.Names = func() *names.Names { return n }
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	emit(srv, s.findings(now))
	w := &inference.Window{Start: now.UnixNano() - 5e9, End: now.UnixNano()}
	p := probedStats(1, 2, 1e6)
	p.Forward = -3
	w.Probes = []inference.ProbeStats{p}
	srv.history.add(w)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	eval[bool](t, b, saves)
	eval[bool](t, b, `(document.querySelectorAll("#map-matrix, #map-list, #ledger").forEach((d) => { d.open = true; }), document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, `/with values/.test(document.querySelector(".matrix-note").textContent) && document.querySelector(".map-data tbody tr")`)
	eval[bool](t, b, `(document.querySelector(".flows-data .flow-key").click(), true)`)
	b.wait(t, `document.querySelector(".flow-detail .chart canvas")`)
	// save presses the buttons of a kind in a place, one after the other, and returns what the last one saved.
	save := func(place, kind, file string) string {
		t.Helper()
		eval[bool](t, b, fmt.Sprintf(`(document.querySelector(%q).click(), true)`, place+` [title="Save as `+kind+`"]`))
		b.wait(t, fmt.Sprintf(`%q in window.files`, file))
		return eval[string](t, b, fmt.Sprintf(`window.files[%q]`, file))
	}
	table := func(place, file string) [][]string {
		t.Helper()
		text := save(place, "CSV", file)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %v, %d rows:\n%s", file, err, len(rows), text)
		}
		return rows
	}
	column := func(rows [][]string, head string) []string {
		t.Helper()
		i := slices.Index(rows[0], head)
		if i < 0 {
			t.Fatalf("no column %q in %q", head, rows[0])
		}
		var out []string
		for _, r := range rows[1:] {
			out = append(out, r[i])
		}
		return out
	}

	hops := table("#hops", "slowest-hops.csv")
	if len(hops) != 81 { // all pages of the table
		t.Errorf("%d rows of hops, want 80 and a head", len(hops))
	}
	if p99 := column(hops, "Latency p99 (ns)"); len(p99[0]) < 4 || strings.ContainsAny(p99[0], " µ,") {
		t.Errorf("latencies are not raw: %q", p99[:3])
	}
	named := map[string]string{}
	for i, node := range column(hops, "Node") {
		named[node] = column(hops, "Name")[i]
	}
	for node, want := range map[string]string{"4": `'=HYPERLINK("http://x","y") (4)`, "5": "'+1 (5)", "6": "leaf, 6 (6)", "7": "7 → "} {
		if !strings.HasPrefix(named[node], want) {
			t.Errorf("node %s is %q in the file, want %q", node, named[node], want)
		}
	}
	b.do(t, chromedp.SetValue(chromedp.ID("hops-filter"), "leaf"))
	eval[bool](t, b, `document.querySelector("#hops-filter").dispatchEvent(new Event("input")), delete window.files["slowest-hops.csv"]`)
	b.wait(t, `document.querySelector("#hops-pager").textContent.startsWith("1–4 of 4")`)
	if hops = table("#hops", "slowest-hops.csv"); len(hops) != 5 {
		t.Errorf("%d rows of the hops that the filter leaves, want 4 and a head", len(hops))
	}
	if way := column(table("#probed", "probes.csv"), "Lost on the way out"); way[0] != "-3" {
		t.Errorf("a number below zero is %q", way[0])
	}
	if flows := table("#flows", "flows.csv"); len(flows) != 27 {
		t.Errorf("%d rows of flows, want 26 and a head", len(flows))
	}
	for place, file := range map[string]string{
		"#exporters": "exporters.csv", "#findings": "findings.csv", "#paths": "paths-from-digests.csv", "#unread": "not-understood.csv", "#systems": "plans.csv", "#ledger": "loss-ledger.csv",
		"#map-list": "links.csv", "#map-zoom": "map-latency-p99.csv", "#map-matrix": "matrix-of-links-latency-p99.csv",
	} {
		table(place, file)
	}
	picture := table("#network-controls", "network-status-latency-p99.csv")
	if len(picture) != 81 || len(picture[0]) != 3+sceneWindows {
		t.Errorf("the network status has %d rows and %d columns", len(picture), len(picture[0]))
	}
	if chart := table("#hop .chart:first-child", eval[string](t, b, `"latency-of-" + document.querySelector("#hop-title").textContent.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") + ".csv"`)); len(chart) < sceneWindows || chart[0][1] != "p50 (ns)" {
		t.Errorf("the chart has %d rows: %q", len(chart), chart[0])
	}
	// What is drawn has a ground, and more on it.
	for place, file := range map[string]string{"#network-controls": "network-status-latency-p99.png", "#map-zoom": "map-latency-p99.png", "#map-matrix": "matrix-of-links-latency-p99.png"} {
		if got := save(place, "PNG", file); !strings.Contains(got, `"clear":false`) || strings.Contains(got, `"colours":1,`) {
			t.Errorf("%s: %s", file, got)
		}
	}
	eval[bool](t, b, `(window.files = {}, document.querySelectorAll(".chart [title='Save as PNG']").forEach((x) => x.click()), true)`)
	b.wait(t, `Object.keys(window.files).length >= 3`)
	if got := eval[string](t, b, `Object.values(window.files).filter((f) => !(JSON.parse(f).colours > 8)).join()`); got != "" {
		t.Errorf("charts have next to nothing drawn: %s", got)
	}
	// Every table and chart has its buttons.
	if got := eval[string](t, b, `[...document.querySelectorAll("main table, main figure")].map((e) => e.closest("figure, details, section")).filter((e) => !e.hidden && !e.querySelector("[title='Save as CSV']")).map((e) => e.id || e.className).join()`); got != "" {
		t.Errorf("without a button to save: %s", got)
	}
	b.picture(t, "save")
	b.check(t)
}
