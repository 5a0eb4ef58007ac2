package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

func TestPage(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, now)
	srv.Findings(s.findings(now))
	b := openBrowser(t, srv)
	b.size(t, 1280, 800)
	b.scheme(t, "dark")
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelectorAll(".hops-data tbody tr").length === 8`)
	b.wait(t, `document.querySelectorAll(".chart canvas").length === 2`)
	b.picture(t, "dark")
	b.size(t, 1280, 2200)
	b.picture(t, "dark-whole")
	b.scheme(t, "light")
	b.picture(t, "light-whole")
	b.size(t, 1280, 800)
	b.picture(t, "light")
	b.check(t)
}
