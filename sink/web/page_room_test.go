package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/inference/names"
)

// testPageRoom holds that nothing is cut off or drawn over something else where there is little room: links to sections, and nodes of paths.
func testPageRoom(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	var called []names.Node
	for id := range uint32(20) {
		called = append(called, names.Node{ID: id + 1, Name: fmt.Sprintf("leaf-%d.pod-2.site-west", id+1)})
	}
	n := names.New(called, nil, nil)
	deps.Names = func() *names.Names { return n }
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	emit(srv, s.findings(now))
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
	const (
		links = `[...document.querySelectorAll("#nav a, #nav-menu a")].filter((a) => !a.hidden)`
		whole = links + `.every((a) => a.parentElement.id === "nav-menu" || a.getBoundingClientRect().right <= document.querySelector("#nav").getBoundingClientRect().right + 0.5)`
		over  = `(() => {
			const bad = [];
			for (const row of document.querySelectorAll(".flows-data tbody")) {
				let right = row.querySelector(".trend canvas").getBoundingClientRect().right;
				for (const e of row.querySelectorAll(".path .node")) {
					const r = e.getBoundingClientRect();
					if (r.left < right) bad.push(e.textContent);
					right = r.right;
				}
			}
			return bad.join();
		})()`
	)
	b.wait(t, `document.querySelector(".flows-data .node")?.textContent.startsWith("leaf-")`)
	all := eval[int](t, b, links+`.length`)
	for _, width := range []int64{390, 768, 1024, 1280, 1440, 1920} {
		b.size(t, width, 900)
		b.settle(t, 100*time.Millisecond)
		b.wait(t, whole)
		if n := eval[int](t, b, links+`.length`); n != all {
			t.Errorf("%d px: %d links of %d", width, n, all)
		}
		folded := eval[bool](t, b, `document.querySelectorAll("#nav-menu a:not([hidden])").length > 0`)
		if shown := eval[bool](t, b, `!document.querySelector("#nav-more").hidden`); shown != folded {
			t.Errorf("%d px: the menu has links: %v, and is shown: %v", width, folded, shown)
		}
		if bad := eval[string](t, b, over); bad != "" {
			t.Errorf("%d px: nodes of paths lie over what is beside them: %s", width, bad)
		}
		if bad := eval[string](t, b, `[...document.querySelectorAll(".bar > *, .bar nav > :not([hidden])")].filter((e) => e.offsetWidth > 0).flatMap((e, i, all) => {
			const a = e.getBoundingClientRect();
			return all.filter((o) => !o.contains(e) && !e.contains(o) && o.getBoundingClientRect().left < a.right - 0.5 && o.getBoundingClientRect().right > a.left + 0.5).map((o) => e.className + " and " + o.className);
		}).join()`); bad != "" {
			t.Errorf("%d px: parts of the bar lie over each other: %s", width, bad)
		}
		if eval[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%d px: the page is wider than the window", width)
		}
	}
	b.size(t, 390, 844)
	b.wait(t, `document.querySelector("#nav-more-name").textContent === "Sections"`)
	eval[bool](t, b, `(document.querySelector("#nav-more summary").click(), true)`)
	b.wait(t, `document.querySelector("#nav-more").open`)
	b.picture(t, "sections")
	eval[bool](t, b, `(document.querySelector("#nav-menu a[href='#flows']").click(), true)`)
	b.wait(t, `!document.querySelector("#nav-more").open && location.hash === "#flows"`)
	b.check(t)
}
