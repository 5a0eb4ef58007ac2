package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// tab opens a page in a real browser.
func tab(t *testing.T, url string) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); path == "" && err == nil {
			path = p
		}
	}
	if path == "" {
		t.Fatal("the page is tested in a real browser and none was found; on Debian: apt-get install chromium (or say where one is in CHROMIUM)")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // the sandbox refuses root
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s in %s: %v", url, path, err)
	}
	return ctx
}

// shows waits until a condition of JavaScript holds on the page.
func shows(t *testing.T, page context.Context, condition string) {
	t.Helper()
	var err error
	if testkit.Await(func() bool {
		var ok bool
		ok, err = chromedp.Run(page, chromedp.Evaluate[bool]("!!("+condition+")"))
		return ok
	}) {
		return
	}
	note, _ := chromedp.Run(page, chromedp.Evaluate[string](`document.querySelector("#map-note")?.innerText + "\n" + document.body.innerText.slice(0, 2000)`)) // for the message
	t.Fatalf("waiting for %s: %v\npage: %s", condition, err, note)
}

// TestDemoInBrowser follows one fault through the map in a real browser. Before it, nothing is suspected. Then the link
// is, probes on it measure in detail, and a click on it leads to its hop and its finding. After it, attention has gone
// back. Virtual time stands still while the browser looks.
func TestDemoInBrowser(t *testing.T) {
	fault := emu.Fault{Kind: emu.CrossTraffic, At: 20 * time.Second, For: 14 * time.Second, Node: "agg-0-0", Peer: "core-0", Value: 0.95}
	s, c, _ := newSteered(t, func(cfg *emu.Config) { cfg.Script, cfg.Repeat = []emu.Fault{fault}, 0 }, 70*time.Second)
	network := mapOf(s.Network.Graph(), nodeIDs(s.Network))
	var view atomic.Pointer[atlas.LoopView] // of the last step
	cfg := web.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	page, err := web.New(cfg, web.Deps{
		Status: func() web.Status { return web.Status{Start: s.epoch, Window: time.Second} }, Ledger: func() []sink.Balance { return nil },
		Map: mapOnPage(network), Loop: view.Load,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.AddWriter(page)
	if err := page.Listen(); err != nil {
		t.Fatal(err)
	}

	stages, goOn := make(chan string), make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reported := map[string]bool{}
	stage := func(name string, reached bool) {
		if reached && !reported[name] {
			reported[name] = true
			stages <- name
			<-goOn
		}
	}
	s.each = func(at time.Duration) {
		view.Store(viewOf(s.Loop.Controller(), s.Links))
		closer := len(s.detailedAtAgents("agg-0-0:3--core-0:1"))
		stage("quiet", at >= 18*time.Second)
		stage("closer", closer > 0 && at >= 25*time.Second)
		stage("over", reported["closer"] && closer == 0 && at >= 60*time.Second && s.Loop.Controller().Status().Phase == control.Steady)
	}
	ended := make(chan error, 1)
	go func() {
		err := c.Run(ctx)
		ended <- err
		close(stages)
	}()
	var browser context.Context
	defer func() {
		cancel()
		close(goOn) // where a look has failed, the network still waits
		for range stages {
		}
	}()
	row := func(text string) string { // of the list of links
		return `[...document.querySelectorAll(".map-data tbody tr")].some(r => ` + text + `)`
	}
	const faulty = `/^agg-0-0 \(5\) → core-0 \(1\)/.test(r.innerText.replace(/\s+/g, " "))`
	for name := range stages {
		switch name {
		case "quiet":
			browser = tab(t, page.URL())
			shows(t, browser, `document.querySelector("#map-box")?.dataset.laid === "yes"`)
			shows(t, browser, `/steady · 0 of \d+ probes in detail/.test(document.querySelector("#map-note").textContent)`)
			shows(t, browser, `(document.querySelector("#map-list").open = true)`)
			shows(t, browser, `((i) => { i.value = "agg-0-0"; return i.dispatchEvent(new Event("input")); })(document.querySelector("#map-list input"))`)
			shows(t, browser, row(faulty)+` && !`+row(`r.innerText.includes("suspected")`))
		case "closer":
			shows(t, browser, `/[1-9]\d* of \d+ probes in detail/.test(document.querySelector("#map-note").textContent)`)
			shows(t, browser, row(faulty+` && r.innerText.includes("suspected")`))
			shows(t, browser, `[...document.querySelectorAll(".map-data tbody tr")].filter(r => `+faulty+`).map(r => r.querySelector("button").click()).length`)
			shows(t, browser, `document.querySelector("#hop-title").textContent === "Hop 5 → 3" && location.hash.startsWith("#map=link/5/3/1")`)
			shows(t, browser, `document.querySelector("#map-panel .map-findings button") && document.querySelector("#map-panel .map-probes button")`)
		case "over":
			shows(t, browser, `/steady · 0 of \d+ probes in detail/.test(document.querySelector("#map-note").textContent)`)
			shows(t, browser, `!`+row(`r.innerText.includes("suspected")`))
			shows(t, browser, `!document.querySelector("#map-panel .map-findings button")`)
		}
		goOn <- true
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, name := range []string{"quiet", "closer", "over"} {
		if !reported[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		t.Errorf("the demonstration never came to: %s", strings.Join(missing, ", "))
	}
}
