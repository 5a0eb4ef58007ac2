package web

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/inference/names"
)

// testPageFind searches by the keyboard, goes to what is found, and filters tables by the page's address.
func testPageFind(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	n := names.New([]names.Node{{ID: 4, Name: "core-3"}}, []names.Host{{Prefix: netip.MustParsePrefix("10.1.1.0/24"), Name: "storage"}}, nil)
	deps.Names = func() *names.Names { return n }
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	emit(srv, s.findings(now))
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)

	const shown, hidden = `document.getElementById("find").getAttribute("aria-expanded") === "true"`, `document.getElementById("find-list").hidden`
	b.press(t, "/")
	b.wait(t, `document.activeElement.id === "find"`)
	write := func(text string) { // in place of what the field has: the protocol types the / into it, which keys do not
		t.Helper()
		eval[bool](t, b, fmt.Sprintf(`(f => { f.value = %q; f.dispatchEvent(new Event("input")); return true; })(document.getElementById("find"))`, text))
	}
	write("core-3")
	b.wait(t, shown)
	b.wait(t, `document.querySelectorAll("#find-list [role=option]").length >= 4`)
	b.picture(t, "find")
	if text := b.text(t, "#find-list"); !strings.Contains(text, "Nodes") || !strings.Contains(text, "core-3 (4)") || !strings.Contains(text, "Latency at core-3") {
		t.Errorf("core-3 finds %q", text)
	}
	// The second is an interface.
	b.press(t, kb.ArrowDown)
	b.wait(t, `document.getElementById(document.getElementById("find").getAttribute("aria-activedescendant")).innerText.includes("core-3 (4) port 1")`)
	b.press(t, kb.Enter)
	b.wait(t, hidden+` && location.hash === "#hop=4/1"`)
	b.wait(t, `document.getElementById("hop-title").innerText.includes("core-3")`)

	// A host leads to its flows, one of which opens.
	b.press(t, "/")
	write("storage")
	b.wait(t, `[...document.querySelectorAll("#find-list a")].some(a => a.innerText.includes("storage (10.1.1.2)"))`)
	eval[bool](t, b, `([...document.querySelectorAll("#find-list a")].find(a => a.getAttribute("href").startsWith("#flow=")).click(), true)`)
	b.wait(t, `document.querySelectorAll(".flows-data tbody").length === 1 && document.querySelector(".flow-detail") !== null`)
	if filter := eval[string](t, b, `document.getElementById("flows-filter").value`); filter != "10.1.1.2:32865 > 10.3.0.3:5201 tcp" {
		t.Errorf("the flows are filtered by %q", filter)
	}

	// A filter is in the address, and an address filters.
	eval[bool](t, b, `(f => { f.value = "core-3"; f.dispatchEvent(new Event("input")); return true; })(document.getElementById("hops-filter"))`)
	b.wait(t, `location.hash === "#hops=core-3" && document.querySelectorAll(".hops-data tbody tr").length === 4`)
	b.do(t, chromedp.Navigate("about:blank"))
	b.do(t, chromedp.Navigate(srv.URL()+"#exporters=192.0.2.7"))
	b.wait(t, `document.querySelectorAll(".exporters-data tbody tr").length === 1`)
	eval[bool](t, b, `(location.hash = "#exporters=elsewhere", true)`)
	b.wait(t, `document.getElementById("exporters-table").innerText.includes("No exporter matches “elsewhere”.")`)

	// What nothing has is said; Escape closes, then leaves.
	b.press(t, "/")
	write("nowhere")
	b.wait(t, `document.getElementById("find-list").innerText.includes("Nothing has “nowhere”")`)
	b.press(t, kb.Escape)
	b.wait(t, hidden+` && document.activeElement.id === "find"`)
	b.press(t, kb.Escape)
	b.wait(t, `document.activeElement.id !== "find"`)
	b.check(t)
}
