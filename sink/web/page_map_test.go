package web

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

const mapDrawn = `document.querySelector("#map-box").dataset.laid === "yes" && document.querySelector("#map-note").textContent.includes("with values")`

// showMap opens the page of srv and waits until its map is drawn.
func (b *browser) showMap(t *testing.T, srv *Server, hash string) {
	t.Helper()
	b.do(t, chromedp.Navigate(srv.URL()+hash))
	b.wait(t, loaded)
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, mapDrawn)
	b.settle(t, 150*time.Millisecond) // the next frames
}

// onMap returns the places of a link's ends in the window, and the colour of the map at a place.
const onMap = `(async () => {
	const box = document.querySelector("#map-box"), canvas = box.querySelector("canvas"), r = box.getBoundingClientRect();
	const [kx, ky, tx, ty] = box.dataset.view.split(" ").map(Number);
	const m = await (await fetch("/api/map")).json(), at = new Map(m.nodes.map(n => [n.id, [n.x * kx + tx, n.y * ky + ty]]));
	const copy = new OffscreenCanvas(canvas.width, canvas.height), c = copy.getContext("2d", { willReadFrequently: true });
	c.drawImage(canvas, 0, 0);
	const ratio = canvas.width / canvas.clientWidth;
	return {
		r, at, m,
		along: (d, t) => {
			const l = m.links[d >> 1], [a, b] = d % 2 ? [at.get(l.b), at.get(l.a)] : [at.get(l.a), at.get(l.b)];
			const dx = b[0] - a[0], dy = b[1] - a[1], n = Math.hypot(dx, dy), off = 3.2;
			return [a[0] + dx * t - dy / n * off, a[1] + dy * t + dx / n * off];
		},
		colour: (x, y) => [...c.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data],
	};
})()`

func (b *browser) await(t *testing.T, js string) []float64 {
	t.Helper()
	eval[bool](t, b, `(window.answer = null, (`+js+`).then(v => window.answer = v), true)`)
	b.wait(t, "window.answer")
	return eval[[]float64](t, b, "window.answer")
}

// linkAt is where a direction is in the window, so far from its beginning.
func (b *browser) linkAt(t *testing.T, d int, along float64) (x, y float64) {
	t.Helper()
	p := b.await(t, fmt.Sprintf(`%s.then(o => { const [x, y] = o.along(%d, %v); return [x + o.r.x, y + o.r.y]; })`, onMap, d, along))
	return p[0], p[1]
}

// linkColour is the colour in which a direction is drawn there.
func (b *browser) linkColour(t *testing.T, d int, along float64) pixel {
	t.Helper()
	p := b.await(t, fmt.Sprintf(`%s.then(o => o.colour(...o.along(%d, %v)))`, onMap, d, along))
	return pixel{RGB: [3]int{int(p[0]), int(p[1]), int(p[2])}, Alpha: int(p[3])}
}

// redrawn runs JavaScript that makes the map be drawn again, and waits until it is.
func (b *browser) redrawn(t *testing.T, js string) {
	t.Helper()
	before := eval[int](t, b, fmt.Sprintf(`((n) => { %s; return n; })(Number(document.querySelector("#map-box").dataset.draws))`, js))
	b.wait(t, fmt.Sprintf(`Number(document.querySelector("#map-box").dataset.draws) > %d`, before))
}

func (b *browser) click(t *testing.T, x, y float64) {
	t.Helper()
	b.do(t, chromedp.MouseClickXY(x, y))
}

// mapScene serves a fat-tree of 20 switches with a hot direction, quiet ones, findings and a control.
func mapScene(t *testing.T, parent context.Context) (*Server, *atlas.Map, *browser, *atomic.Pointer[atlas.LoopView]) {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	m := fabric(4)
	deps := sceneDeps(now)
	deps.Map = func() *atlas.Map { return m }
	var view atomic.Pointer[atlas.LoopView]
	view.Store(sceneLoop(m, []int{6, 13}))
	deps.Loop = view.Load
	key := "10.1.0.2:80 > 10.2.0.1:5001 tcp"
	deps.Paths = func(int) Paths {
		f := inference.FlowStats{Key: mustFlow(key), Packets: 9, Digests: 7, Confidence: 0.6}
		for i, node := range []uint32{13, 5, 1, 9, 17} {
			f.Hops = append(f.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: node}, Inferred: i == 2, Confidence: 0.9})
		}
		return Paths{Known: 1, Marked: 1, Flows: []PathFlow{{FlowStats: f}}}
	}
	srv := serve(t, DefaultConfig(), deps)
	for i := range 8 {
		write(srv, mapWindow(m, uint64(i), now.Add(time.Duration(i-7)*5*time.Second), []int{10, 11, 20}, []int{6}))
	}
	emit(srv, mapFindings(m, now, 6))
	return srv, m, openTab(t, parent, srv), &view
}

// testPageMap looks at the pixels of the map, clicks on it, and switches its layers.
func testPageMap(t *testing.T, parent context.Context) {
	srv, m, b, view := mapScene(t, parent)
	b.showMap(t, srv, "")
	if got := eval[string](t, b, `document.querySelector("#map-box").dataset.drawn`); got != "20 nodes, 32 links" {
		t.Errorf("drawn: %q", got)
	}
	if got := b.text(t, "#map-note"); got != "fat-tree:4 · 20 switches · 32 links · 61 directions with values · epoch 7: steady · 1 of 12 probes in detail" {
		t.Errorf("note: %q", got)
	}
	b.picture(t, "map-dark")
	b.redrawn(t, `document.querySelector("[data-layer=suspicion]").click()`)
	hot, usual := b.linkColour(t, 6, 0.75), b.linkColour(t, 8, 0.3)
	if hot.light() < usual.light()+120 || usual.Alpha < 240 {
		t.Errorf("the hot direction is %v, a usual one %v (alpha %d): not much brighter", hot.RGB, usual.RGB, usual.Alpha)
	}
	b.redrawn(t, `document.querySelector("[data-layer=suspicion]").click()`)
	// A click on a link chooses it, opens its hop, and is in the address.
	b.click(t, 0, 0)
	x, y := b.linkAt(t, 8, 0.3)
	b.settle(t, 50*time.Millisecond)
	call(t, b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseMoved", X: x, Y: y})
	b.wait(t, `!document.querySelector("#tooltip").hidden && document.querySelector("#tooltip").textContent.includes("Latency p99")`)
	if got := b.text(t, "#tooltip strong"); got != "edge-0-0 (13) → agg-0-1 (6)" {
		t.Errorf("the tooltip says %q", got)
	}
	b.click(t, x, y)
	end := m.Links[4].A
	b.wait(t, fmt.Sprintf(`document.querySelector("#hop-title").textContent === "Hop %d → %d"`, end.Node, end.Port))
	if got := eval[string](t, b, `location.hash`); got != "#map=link/13/4/6" {
		t.Errorf("address: %q", got)
	}
	b.wait(t, `document.querySelector("#map-panel").checkVisibility()`)
	b.picture(t, "map-link")
	// The panel leads to the hop, and to probes.
	eval[bool](t, b, `(document.querySelector("#map-panel .map-probes button").click(), true)`)
	b.wait(t, `document.querySelector("#map-panel h3").textContent === "Probe p2" && location.hash === "#map=probe/p2"`)
	b.picture(t, "map-probe")
	eval[bool](t, b, `(document.querySelector("#map-panel .map-ways button").click(), true)`)
	b.wait(t, `document.querySelector("#map-panel .map-hop")`)
	eval[bool](t, b, `(document.querySelector("#map-panel .map-hop").click(), true)`)
	b.wait(t, `location.hash === "#hop=13/4" && document.activeElement.id === "hop"`)
	testMapLayers(t, b)
	// A finding of a link leads to the finding's place.
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	x, y = b.linkAt(t, 6, 0.8)
	b.click(t, x, y)
	b.wait(t, `document.querySelector("#map-panel .map-findings button")`)
	if got := b.text(t, "#map-panel"); !strings.Contains(got, "Critical: High latency") || !strings.Contains(got, "latency p99 deviates by 4.2") {
		t.Errorf("the panel of a suspected link with a finding says %q", got)
	}
	// The control goes on while the page is open.
	next := *view.Load()
	next.Epoch, next.Suspects = 8, nil
	view.Store(&next)
	b.wait(t, `document.querySelector("#map-note").textContent.includes("epoch 8")`)
	if before, after := hot, b.linkColour(t, 13, 0.5); after.RGB == before.RGB {
		t.Error("nothing changed with the suspects")
	}
	b.check(t)
}

// testMapLayers switches layers on and off and compares pixels.
func testMapLayers(t *testing.T, b *browser) {
	t.Helper()
	b.redrawn(t, `document.querySelector("#map-panel .map-close").click()`)
	b.wait(t, `!document.querySelector("#map-panel").checkVisibility()`)
	b.settle(t, 300*time.Millisecond) // the page is still going to the hop
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	// Beside the stroke, where only layers paint.
	beside := func(d int) pixel {
		t.Helper()
		p := b.await(t, fmt.Sprintf(`%s.then(o => { const [x, y] = o.along(%d, 0.3), [u, v] = o.along(%d, 0.31), n = Math.hypot(u - x, v - y); return o.colour(x - (v - y) / n * 2.2, y + (u - x) / n * 2.2); })`, onMap, d, d))
		return pixel{RGB: [3]int{int(p[0]), int(p[1]), int(p[2])}, Alpha: int(p[3])}
	}
	toggle := func(layer string) {
		t.Helper()
		b.redrawn(t, fmt.Sprintf(`document.querySelector('[data-layer=%s]').click()`, layer))
	}
	const covered, finding, detailed = 8, 62, 2
	for _, c := range []struct {
		layer string
		d     int
		on    bool // from the start
	}{{"findings", finding, true}, {"plan", covered, false}, {"attention", detailed, false}} {
		before := beside(c.d)
		toggle(c.layer)
		after := beside(c.d)
		lit, dark := after, before
		if c.on {
			lit, dark = before, after
		}
		if lit.Alpha < dark.Alpha+40 {
			t.Errorf("layer %s: beside direction %d alpha %d with it and %d without", c.layer, c.d, lit.Alpha, dark.Alpha)
		}
		toggle(c.layer)
	}
	// The path of a flow, with the hop that no digest confirms.
	eval[bool](t, b, `((s) => { s.value = s.options[1].value; s.dispatchEvent(new Event("change")); return true; })(document.querySelector(".map-flow"))`)
	b.wait(t, `document.querySelector("#map-keys").textContent.includes("hop that no digest confirms") && location.hash.includes("flow=10.1.0.2")`)
	b.picture(t, "map-path")
	eval[bool](t, b, `(document.querySelectorAll(".map-layer").forEach((x) => x.getAttribute("aria-pressed") === "false" && x.click()), true)`)
	b.scheme(t, "light")
	b.picture(t, "map-layers-light")
	b.scheme(t, "dark")
	eval[bool](t, b, `((s) => { s.value = ""; s.dispatchEvent(new Event("change")); return true; })(document.querySelector(".map-flow"))`)
	toggle("plan")
	toggle("attention")
}

// testPageMapKeyboard uses no pointer, and comes by an address.
func testPageMapKeyboard(t *testing.T, parent context.Context) {
	srv, _, b, _ := mapScene(t, parent)
	b.showMap(t, srv, "#map=node/17&by=queue_p99&layers=findings,plan")
	b.wait(t, `document.querySelector("#map-panel h3")?.textContent === "edge-2-0 (17)"`)
	if got := eval[string](t, b, `document.querySelector("#map-controls [aria-pressed=true]").dataset.value + " " + [...document.querySelectorAll(".map-layer[aria-pressed=true]")].map(x => x.dataset.layer)`); got != "queue_p99 findings,plan" {
		t.Errorf("the address chose %q", got)
	}
	b.press(t, "m")
	b.wait(t, `document.activeElement.classList.contains("map-top")`)
	before := eval[string](t, b, `document.querySelector("#map-box").dataset.view`)
	b.press(t, "+", kb.ArrowLeft)
	b.wait(t, `document.querySelector("#map-box").dataset.view !== `+fmt.Sprintf("%q", before))
	b.press(t, "0")
	b.wait(t, `document.querySelector("#map-box").dataset.view === `+fmt.Sprintf("%q", before))
	b.press(t, kb.Tab)
	eval[bool](t, b, `(document.querySelector("#map-list summary").focus(), true)`)
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelectorAll(".map-data tbody tr").length === 10`)
	if got := strings.Join(strings.Fields(b.text(t, ".map-data tbody tr:first-child")), " "); !strings.HasPrefix(got, "agg-0-0 (5) → core-1 (2) 1.35 MB finding: critical · suspected") {
		t.Errorf("the list begins with %q", got)
	}
	b.picture(t, "map-list")
	eval[bool](t, b, `(document.querySelector(".map-data tbody tr:first-child button").focus(), true)`)
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("#hop-title").textContent === "Hop 5 → 4" && location.hash.startsWith("#map=link/5/4/2")`)
	eval[bool](t, b, `((i) => { i.value = "edge-3-1"; return i.dispatchEvent(new Event("input")); })(document.querySelector("#map-list input"))`)
	b.wait(t, `document.querySelectorAll(".map-data tbody tr").length === 4`)
	b.check(t)
}

// testPageMapFlows has no topology: links come from flows, and before them there is a hint.
func testPageMapFlows(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	w := newScene(7, 20, 4).window(20, now.Add(-5*time.Second))
	for i := range w.Flows {
		w.Flows[i].Hops = w.Flows[i].Hops[:1]
	}
	write(srv, w)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, `document.querySelector("#map-empty").checkVisibility() && document.querySelector("#map-empty").textContent.includes("topology: FILE")`)
	b.picture(t, "map-empty")
	newScene(7, 20, 4).fill(srv, 3, now.Add(10*time.Second))
	b.wait(t, mapDrawn)
	b.wait(t, `/^20 nodes, \d\d links$/.test(document.querySelector("#map-box").dataset.drawn)`)
	if got := b.text(t, "#map-note"); !strings.HasSuffix(got, "learned from the paths of flows") {
		t.Errorf("note: %q", got)
	}
	if n := eval[int](t, b, `document.querySelectorAll(".map-layer").length`); n != 1 {
		t.Errorf("%d layers without a control, want that of findings alone", n)
	}
	b.picture(t, "map-flows")
	// The same network stands in the same places again.
	before := eval[string](t, b, `document.querySelector("#map-box").dataset.view`)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	eval[bool](t, b, `(document.querySelector("#map").scrollIntoView(), true)`)
	b.wait(t, mapDrawn)
	if after := eval[string](t, b, `document.querySelector("#map-box").dataset.view`); after != before {
		t.Errorf("the view of the same network is %s after %s", after, before)
	}
	b.check(t)
}

// testPageMapHostile has names that would do harm where text becomes markup.
func testPageMapHostile(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	m := &atlas.Map{Name: hostile[0]}
	for i, h := range hostile {
		m.Nodes = append(m.Nodes, atlas.Node{ID: uint32(i + 1), Name: h, Tier: hostile[1], Pod: -1, Plane: 1 << 40})
		if i > 0 {
			m.Links = append(m.Links, atlas.Link{Name: h, A: leaving(uint32(i), 2), B: leaving(uint32(i+1), 1), Speed: 1e300})
		}
	}
	view := &atlas.LoopView{Phase: hostile[0], Suspects: []atlas.LoopSuspect{{LinkEnd: leaving(1, 2), Why: hostile[1]}}, Probes: []atlas.LoopProbe{{ID: hostile[2], Links: []atlas.LinkEnd{leaving(1, 2)}, Detailed: true}}}
	deps := sceneDeps(now)
	deps.Map = func() *atlas.Map { return m }
	deps.Loop = func() *atlas.LoopView { return view }
	srv := serve(t, DefaultConfig(), deps)
	write(srv, mapWindow(m, 1, now, nil, nil))
	emit(srv, []inference.Finding{{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical, Start: now.UnixNano(), Node: 1, EgressIf: 2, Element: inference.ElementOfHop(inference.HopKey{Node: 1, EgressIf: 2}), Text: hostile[0]}})
	b := openTab(t, parent, srv)
	b.showMap(t, srv, "#map=link/1/2/2")
	b.wait(t, `document.querySelector("#map-panel .map-probes button")`)
	eval[bool](t, b, `(document.querySelector("#map-list").open = true, document.querySelector("#map-panel .map-probes button").click(), true)`)
	b.wait(t, `document.querySelectorAll(".map-data tbody tr").length > 5`)
	b.picture(t, "map-hostile")
	b.do(t, chromedp.Navigate(srv.URL()+`#map=node/1%3Cscript%3E&by=__proto__&layers=constructor,%22%3E&flow=`+strings.Repeat("W", 5000)))
	b.wait(t, mapDrawn)
	if eval[bool](t, b, `"harm" in window`) {
		t.Error("a name of the map ran as a script")
	}
	if n := eval[int](t, b, `document.querySelectorAll("main script, main svg[onload], main img:not([src='/favicon.svg'])").length`); n != 0 {
		t.Errorf("%d elements were made of names", n)
	}
	if w := eval[int](t, b, `document.documentElement.scrollWidth`); w > 1280 {
		t.Errorf("long names make the page %d px wide", w)
	}
	b.check(t)
}

// testPageMapLarge has 1,125 switches. It has to draw them, and no element for each.
func testPageMapLarge(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	m := fabric(30)
	deps := sceneDeps(now)
	deps.Map = func() *atlas.Map { return m }
	view := sceneLoop(m, []int{6, 9000})
	deps.Loop = func() *atlas.LoopView { return view }
	cfg := DefaultConfig()
	cfg.MaxHops, cfg.HistoryWindows = 65536, 10
	srv := serve(t, cfg, deps)
	write(srv, mapWindow(m, 1, now, []int{10, 11, 20}, []int{6}))
	emit(srv, mapFindings(m, now, 6))
	b := openTab(t, parent, srv)
	b.showMap(t, srv, "")
	if got := eval[string](t, b, `document.querySelector("#map-box").dataset.drawn`); got != "1125 nodes, 13500 links, 480 bundles" {
		t.Errorf("drawn: %q", got)
	}
	if n := eval[int](t, b, `document.querySelectorAll("*").length`); n > 2500 {
		t.Errorf("%d elements", n)
	}
	b.picture(t, "map-large")
	t.Logf("frames while the whole map is moved: %s", b.frames(t))
	b.scheme(t, "light")
	b.picture(t, "map-large-light")
	b.scheme(t, "dark")
	for range 4 {
		eval[bool](t, b, `(document.querySelector("#map-zoom button").click(), true)`)
	}
	b.wait(t, `document.querySelector("#map-box").dataset.drawn === "1125 nodes, 13500 links"`)
	b.picture(t, "map-large-closer")
	t.Logf("frames while a part of it is moved: %s", b.frames(t))
	eval[bool](t, b, `(document.querySelectorAll(".map-layer").forEach((x) => x.getAttribute("aria-pressed") === "false" && x.click()), true)`)
	b.picture(t, "map-large-layers")
	b.showMap(t, srv, "#map=link/679/16/226")
	b.wait(t, `document.querySelector("#map-panel .map-findings")`)
	b.picture(t, "map-large-link")
	b.check(t)
}

// frames moves the map with the pointer for 60 frames and returns how long they took.
func (b *browser) frames(t *testing.T) string {
	t.Helper()
	p := b.await(t, `new Promise((done) => {
		const top = document.querySelector(".map-top"), r = top.getBoundingClientRect(), times = [], draws = [];
		const at = (type, x) => top.dispatchEvent(new PointerEvent(type, { pointerId: 1, isPrimary: true, button: 0, clientX: r.x + x, clientY: r.y + 200, bubbles: true }));
		top.setPointerCapture = () => undefined;
		at("pointerdown", 400);
		const began = performance.now();
		let last = began, n = 0;
		const step = (now) => {
			times.push(now - last);
			draws.push(Number(document.querySelector(".map-canvas").dataset.ms));
			last = now;
			at("pointermove", 400 + 150 * Math.sin(++n / 8));
			if (n < 60 && now - began < 8000) requestAnimationFrame(step);
			else {
				at("pointerup", 400);
				const q = (list, p) => list.sort((a, b) => a - b)[Math.floor(p * (list.length - 1))];
				done([q(times, 0.5), q(times, 0.95), q(draws, 0.5), q(draws, 0.95)]);
			}
		};
		requestAnimationFrame(step);
	})`)
	return fmt.Sprintf("median %.0f ms, p95 %.0f ms; of them in the page's own code %.1f and %.1f ms", p[0], p[1], p[2], p[3])
}
