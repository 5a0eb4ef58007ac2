package web

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// testPageFleet opens the page of a fleet of which collectors are missing.
func testPageFleet(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	f := fleetScene(now)
	f.Members[0].Name, f.Members[0].Problems = hostile[1], []string{hostile[0], hostile[9]}
	var shown atomic.Pointer[Fleet]
	shown.Store(f)
	deps := fleetDeps(now, f)
	status := deps.Status
	deps.Status = func() Status {
		s := status()
		s.Fleet = shown.Load()
		return s
	}
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	for i := range 40 {
		var missing []string
		if i >= 38 {
			missing = []string{"c-3", "c-4"}
		}
		replace(srv, s.window(sceneWindows-40+i, now.Add(-time.Duration(39-i)*s.length)).Window, missing...)
	}
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	b.wait(t, `document.querySelectorAll(".collectors-data tbody tr").length === 5 && document.querySelectorAll(".consumers-data tbody tr").length === 2`)
	if got := b.text(t, "#fleet-title") + ": " + b.text(t, "#fleet-note"); got != "Fleet backbone: 5 collectors · 2 consumers · 16 slices · 2 windows without a collector" {
		t.Errorf("fleet: %q", got)
	}
	if got := b.text(t, "#figure-members"); got != "3 of 6" {
		t.Errorf("members alive: %q, want 3 of 6", got)
	}
	if got := b.text(t, "#verdict-title") + ": " + b.text(t, "#verdict-detail"); !strings.HasPrefix(got, "Part of the fleet is in trouble: collector c-3: missing · collector c-4: dead") {
		t.Errorf("verdict: %q", got)
	}
	row := func(table string, i int) string {
		return strings.Join(strings.Fields(b.text(t, fmt.Sprintf(".%s-data tbody tr:nth-child(%d)", table, i))), " ")
	}
	for i, want := range []string{"Dead c-4 v0.9.0 40 k", "Missing c-3 v0.9.0 40 k", "Alive <img src=x onerror=\"window.harm=1\">", "Alive c-2 clock: set back by 3s v0.9.0", "Left c-5 v0.9.0"} {
		if got := row("collectors", i+1); !strings.HasPrefix(got, want) {
			t.Errorf("collector %d: %q, want it to begin with %q", i, got, want)
		}
	}
	if got, want := row("collectors", 2), "1 M 990 k 9,990 10 (<0.01 %) 0 B"; !strings.Contains(got, want) {
		t.Errorf("a collector's ledger: %q, want %q in it", got, want)
	}
	for i, want := range []string{"Missing store-2 influx: connection refused v0.8.0 0", "Alive store-1 v0.9.0 33 80 k 12 "} {
		if got := row("consumers", i+1); !strings.HasPrefix(got, want) {
			t.Errorf("consumer %d: %q, want it to begin with %q", i, got, want)
		}
	}
	if got := eval[string](t, b, `[...document.querySelectorAll(".fleet-data a")].map(a => a.getAttribute("href") + " " + a.rel).join()`); !strings.HasPrefix(got, "http://10.0.0.4:8080/ noopener noreferrer,") || strings.Contains(got, "javascript") {
		t.Errorf("links: %s", got)
	}
	if eval[bool](t, b, `"harm" in window || document.querySelectorAll("main img, main script").length > 0`) {
		t.Error("a member's text became markup")
	}
	// The ledgers, added up, with the identity.
	if got, want := b.text(t, "#ledger-line"), "5,000,000 received = 3,900,000 stored + 1,099,950 in flight + 50 dropped (<0.01 %)"; got != want {
		t.Errorf("ledger: %q, want %q", got, want)
	}
	eval[bool](t, b, `(document.querySelector("#ledger").open = true, true)`)
	b.wait(t, `document.querySelectorAll(".ledger-data tbody tr").length === 25`)
	for _, want := range []string{"In Kafka, not merged yet\t1,000,000", "Merged, waiting for the store\t50,000", "Too late for correction\t3", "when it was killed\t7", "Unaccounted for\t0"} {
		if got := b.text(t, ".ledger-data tbody"); !strings.Contains(got, want) {
			t.Errorf("the ledger's table does not say %q:\n%s", want, got)
		}
	}
	eval[bool](t, b, `(document.querySelector("#ledger").open = false, true)`)
	// Windows that miss collectors say so, to eyes and to screen readers.
	b.press(t, "1")
	b.wait(t, `document.activeElement.classList.contains("bitmap-scroller")`)
	said := func() string { return eval[string](t, b, `document.querySelector("#announce-cell").textContent`) }
	if got := said(); !strings.Contains(got, "without collectors c-3, c-4") {
		t.Errorf("the newest window is announced as %q", got)
	}
	b.press(t, kb.ArrowLeft, kb.ArrowLeft)
	if got := said(); strings.Contains(got, "without") {
		t.Errorf("a whole window is announced as %q", got)
	}
	if eval[bool](t, b, `document.querySelector(".legend-missing").hidden`) {
		t.Error("the legend does not say what the mark of a missing collector is")
	}
	const axis = `(() => { const c = document.querySelector(".bitmap-axis"), r = c.width / c.clientWidth;
		const x = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true });
		x.drawImage(c, 0, 0);
		return [c.width - 8 * r, c.width / 2].map(at => [...x.getImageData(Math.round(at), Math.round(r), 1, 1).data].join()); })()`
	if got := eval[[]string](t, b, axis); got[0] != "247,184,75,255" || got[1] == got[0] {
		t.Errorf("pixels above the axis, under the newest window and in the middle: %v, want the colour of warnings under the newest alone", got)
	}
	// The newest window comes again, whole now.
	replace(srv, s.window(sceneWindows-1, now).Window)
	b.wait(t, `document.querySelector("#fleet-note").textContent.endsWith("1 window without a collector")`)
	// An older one does: the page asks for all of them.
	replace(srv, s.window(sceneWindows-2, now.Add(-s.length)).Window)
	b.wait(t, `document.querySelector("#fleet-note").textContent.endsWith("16 slices") && document.querySelector(".legend-missing").hidden`)
	// A collector comes back.
	second := *f
	second.Members = append([]roster.Row{}, f.Members...)
	second.Members[2].State = roster.Alive
	shown.Store(&second)
	replace(srv, s.window(sceneWindows, now.Add(s.length)).Window)
	b.wait(t, `document.querySelector("#figure-members").textContent === "4\u202fof\u202f6" || document.querySelector("#figure-members").textContent === "4 of 6"`)
	b.wait(t, `document.querySelectorAll(".collectors-data tr[data-level=ok]").length === 1`)
	b.press(t, "6")
	b.wait(t, `document.activeElement.id === "fleet"`)
	b.picture(t, "fleet")
	for _, scheme := range []string{"dark", "light"} {
		b.scheme(t, scheme)
		if r := eval[struct {
			Texts int      `json:"texts"`
			Bad   []string `json:"bad"`
		}](t, b, contrast); len(r.Bad) > 0 || r.Texts < 50 {
			t.Errorf("%s: %d texts, too little contrast:\n%s", scheme, r.Texts, strings.Join(r.Bad, "\n"))
		}
	}
	b.size(t, 1280, 2600)
	b.picture(t, "fleet-whole")
	b.size(t, 400, 3600)
	b.wait(t, `document.documentElement.scrollWidth <= 400`)
	b.check(t)

	// A collector's page has nothing of it.
	_, _, b, _ = openScene(t, parent)
	if eval[bool](t, b, `!["#fleet", "#nav-fleet", "#figure-members-box", ".legend-missing"].every(s => document.querySelector(s).hidden)`) {
		t.Error("the page of one collector shows parts of a fleet's")
	}
}

// testPageFleetEmpty begins before the topics are made and goes on until the first window.
func testPageFleetEmpty(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	var shown atomic.Pointer[Fleet]
	deps := fleetDeps(now, &Fleet{})
	status, ledger := deps.Status, deps.Ledger
	deps.Status = func() Status {
		s := status()
		s.Fleet = shown.Load()
		return s
	}
	deps.Ledger = ledger
	srv := serve(t, DefaultConfig(), deps)
	b := openTab(t, parent, srv)
	all := fleetScene(now).Members
	for _, c := range []struct {
		fleet Fleet
		want  []string
	}{
		{Fleet{Name: "x", Problem: "broker 10.0.0.1:9092: connection refused"}, []string{"Kafka cannot be read", "broker 10.0.0.1:9092: connection refused", "hopscope kafka topics check"}},
		{Fleet{Name: "x", Problem: "topics are missing", MissingTopics: []string{"hopscope.series", "hopscope.roster"}},
			[]string{"The fleet's topics are not there yet", "hopscope.series, hopscope.roster", "hopscope kafka topics create --config FILE"}},
		{Fleet{Name: "x", Behind: 1200}, []string{"Reading the last windows", "1,200 records"}},
		{Fleet{Name: "x"}, []string{"No collector has joined this fleet yet", "enabled: true", "hopscope collect --config FILE", "hopscope consume --config FILE"}},
		{Fleet{Name: "x", Members: all[:1]}, []string{"no consumer merges", "1 collector joined"}},
		{Fleet{Name: "x", Members: all}, []string{"No window has been merged yet", "5 collectors joined", "2 consumers joined"}},
	} {
		shown.Store(&c.fleet)
		b.do(t, chromedp.Navigate(srv.URL()))
		b.wait(t, `!document.querySelector("#empty").hidden && document.querySelector("#empty .steps")`)
		got := b.text(t, "#empty")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("the page does not say %q:\n%s", want, got)
			}
		}
		if eval[bool](t, b, `!document.querySelector("#board").hidden || document.querySelector("#fleet").hidden`) {
			t.Errorf("%s: the page shows empty tables, or no members", c.want[0])
		}
	}
	b.picture(t, "fleet-empty")
	newScene(1, 20, 4).fill(srv, 3, now)
	b.wait(t, `document.querySelector("#empty").hidden && !document.querySelector("#board").hidden`)
	b.check(t)
}
