package web

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/sink/web/access"
)

// TestPageAccess logs in below a path of a reverse proxy, as an operator and as a viewer, changes something, and logs out.
func TestPageAccess(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	srv, tokens := newTeamServer(t, func(cfg *Config, deps *Deps) {
		cfg.Listen, cfg.BasePath, cfg.Access.TrustedProxies = "127.0.0.1:0", "/hop/scope", []string{"127.0.0.1"}
		*deps = sceneDeps(now)
		deps.Rules = filepath.Join(t.TempDir(), "alerts.yaml")
	})
	s := newScene(4, 20, 4)
	s.fill(srv, 40, now)
	emit(srv, s.findings(now))
	backend := httptest.NewServer(srv.Handler())
	t.Cleanup(backend.Close)
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	parent := startBrowser(t)
	login := func(role access.Role) *browser {
		b := openTab(t, parent, srv)
		b.host = at.Host
		b.do(t, chromedp.Navigate(proxy.URL+"/hop/scope"))
		b.wait(t, `location.pathname === "/hop/scope/login" && document.activeElement.id === "token"`)
		b.do(t, chromedp.SendKeys(chromedp.ID("token"), tokens[role]+kb.Enter))
		b.wait(t, `location.pathname === "/hop/scope/"`)
		b.wait(t, loaded)
		b.wait(t, `document.querySelector("#who-name").textContent === "`+role.String()+` · `+role.String()+`"`)
		return b
	}
	b := login(access.Operator)
	const card = `document.querySelector(".finding")`
	b.wait(t, card+`?.querySelector(".finding-actions") && !`+card+`.querySelector(".finding-actions").hidden`)
	eval[bool](t, b, `(`+card+`.querySelector(".finding-actions").open = true)`)
	if eval[bool](t, b, card+`.querySelector("[data-do=ack]").disabled`) {
		t.Error("an operator cannot acknowledge")
	}
	eval[bool](t, b, `(`+card+`.querySelector(".finding-actions input").value = "line card", `+card+`.querySelector("[data-do=ack]").click(), true)`)
	b.wait(t, card+`.querySelector(".finding-attended").textContent.startsWith("Acknowledged by operator: line card")`)
	b.wait(t, `document.querySelector("#changes-body td:nth-child(5)")?.textContent === "findings/ack"`)
	b.picture(t, "access")
	b.check(t)
	b.do(t, chromedp.Click(chromedp.ID("logout")))
	b.wait(t, `location.pathname === "/hop/scope/login"`)
	if n := srv.gate.Stats(); n.Sessions != 0 || n.Logins != 1 {
		t.Errorf("%+v", n)
	}
	b = login(access.Viewer)
	b.wait(t, card+`?.querySelector("[data-do=ack]")?.disabled === true && `+card+`.querySelector("[data-do=ack]").title === "This needs the role operator; you have viewer."`)
	b.wait(t, card+`.querySelector(".finding-attended").textContent.startsWith("Acknowledged by operator")`)
	if !eval[bool](t, b, `document.querySelector("#changes").hidden`) {
		t.Error("a viewer is shown the log of changes")
	}
	b.check(t)
}
