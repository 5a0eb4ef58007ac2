package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// team is a page with a token by each role, and a browser.
type team struct {
	srv    *Server
	tokens map[access.Role]string
	parent context.Context
	host   string
}

func newTeam(t *testing.T, parent context.Context, change func(*Config, *Deps)) *team {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	x := &team{}
	x.srv, x.tokens = newTeamServer(t, func(cfg *Config, deps *Deps) {
		cfg.Listen, *deps = "127.0.0.1:0", sceneDeps(now)
		if change != nil {
			change(cfg, deps)
		}
	})
	s := newScene(4, 20, 4)
	s.fill(x.srv, 40, now)
	front := httptest.NewServer(x.srv.Handler())
	t.Cleanup(front.Close)
	u, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	x.host, x.parent = u.Host, parent
	return x
}

// login opens a tab of its own as a role.
func (x *team) login(t *testing.T, role access.Role) *browser {
	t.Helper()
	b := openTab(t, x.parent, x.srv)
	b.host = x.host
	b.do(t, chromedp.Navigate("http://"+x.host+"/"))
	b.wait(t, `location.pathname === "/login" && document.activeElement.id === "token"`)
	b.do(t, chromedp.SendKeys(chromedp.ID("token"), x.tokens[role]+kb.Enter))
	b.wait(t, `location.pathname === "/"`)
	b.wait(t, loaded)
	b.wait(t, `document.querySelector("#who-name").textContent === "`+role.String()+` · `+role.String()+`"`)
	return b
}

// focus puts the focus on an element, as the key Tab does.
func (b *browser) focus(t *testing.T, js string) {
	t.Helper()
	if !eval[bool](t, b, `(() => { const e = `+js+`; e?.focus(); return document.activeElement === e; })()`) {
		t.Fatalf("%s cannot have the focus", js)
	}
}

// refused forgets the browser's own words about a change that the page had to refuse.
func (b *browser) refused(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = slices.DeleteFunc(b.complaints, func(c string) bool { return strings.Contains(c, "status of 400") && strings.HasSuffix(c, "/api/"+path) })
}

// TestPageTeam makes and revokes a token and ends a session as an admin, by keys alone, and holds that other roles see nothing of it.
func TestPageTeam(t *testing.T) {
	x := newTeam(t, startBrowser(t), nil)
	viewer, operator := x.login(t, access.Viewer), x.login(t, access.Operator)
	for name, b := range map[string]*browser{"viewer": viewer, "operator": operator} {
		if got := eval[string](t, b, `["tokens", "sessions", "nav-tokens"].filter((id) => !document.getElementById(id).hidden).join()`); got != "" {
			t.Errorf("a %s is shown %s", name, got)
		}
		if n := eval[int](t, b, `document.querySelectorAll("#tokens tbody tr, #sessions tbody tr").length`); n != 0 {
			t.Errorf("a %s has %d rows of tokens and sessions in the page", name, n)
		}
	}
	operator.wait(t, `!document.querySelector("#changes").hidden && document.querySelectorAll("#changes-body tbody tr").length === 3`) // the tokens of the roles
	b := x.login(t, access.Admin)
	b.wait(t, `document.querySelectorAll("#tokens-body tbody tr").length === 3 && document.querySelectorAll("#sessions-body tbody tr").length === 3`)
	if n := eval[int](t, b, `document.querySelectorAll("#sessions-body .own:not([hidden])").length`); n != 1 {
		t.Errorf("%d sessions are that of this browser", n)
	}

	// A name that is taken is refused, with the reason.
	create := func(name string) {
		b.focus(t, `document.querySelector("#tokens form input")`)
		b.do(t, chromedp.SendKeys(chromedp.ID("token-name"), name+kb.Enter))
	}
	create("viewer")
	b.wait(t, `document.querySelector("#tokens form [role=alert]").textContent.startsWith("No token was made: ")`)
	eval[bool](t, b, `(document.querySelector("#tokens form input").value = "", true)`)
	create("grafana")
	b.wait(t, `document.querySelectorAll("#tokens-body tbody tr").length === 4 && document.activeElement.textContent === "Copy"`)
	secret := b.text(t, ".secret code")
	res := request(x.srv, http.MethodGet, "/api/whoami", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) })
	var who access.Whoami
	if err := json.NewDecoder(res.Body).Decode(&who); err != nil || who.User != "grafana" || who.Role != access.Viewer {
		t.Fatalf("the secret on the page is that of %+v (%v)", who, err)
	}
	eval[bool](t, b, `(document.querySelector("#tokens").scrollIntoView(), true)`)
	b.picture(t, "team")
	b.press(t, kb.Enter)
	b.wait(t, `/^(Copied|The browser does not let)/.test(document.querySelector(".secret [role=status]").textContent)`)
	eval[bool](t, b, `([...document.querySelectorAll(".secret button")].find((b) => b.textContent === "I have stored it").click(), true)`)
	b.wait(t, `document.querySelector(".secret").hidden && !document.body.textContent.includes("`+secret+`")`)

	// A click that cannot be taken back is confirmed; the question begins at the button that does nothing.
	const row = `[...document.querySelectorAll("#tokens-body tbody tr")].find((r) => r.cells[0].textContent === "grafana")`
	b.focus(t, row+`.querySelector("button")`)
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("dialog[open]") && document.activeElement.textContent === "Cancel"`)
	b.press(t, "q", kb.Escape) // keys of the page mean nothing in a question
	b.wait(t, `!document.querySelector("dialog[open]") && document.activeElement.getAttribute("aria-label") === "Revoke grafana"`)
	if n := x.srv.gate.Stats().Tokens; n != 4 {
		t.Errorf("%d tokens after a question that was closed", n)
	}
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("dialog[open]")`)
	b.press(t, kb.Tab, kb.Enter)
	b.wait(t, `document.querySelectorAll("#tokens-body tbody tr").length === 3 && document.querySelector("#tokens > .result").textContent.startsWith("Revoked grafana")`)
	if res := request(x.srv, http.MethodGet, "/api/whoami", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token: %s", res.Status)
	}

	eval[bool](t, b, `([...document.querySelectorAll("#sessions-body tbody tr")].find((r) => r.cells[0].textContent.startsWith("operator")).querySelector("button").click(), true)`)
	b.wait(t, `document.querySelector("dialog[open] .primary")`)
	eval[bool](t, b, `(document.querySelector("dialog[open] .primary").click(), true)`)
	b.wait(t, `document.querySelectorAll("#sessions-body tbody tr").length === 2`)
	if n := x.srv.gate.Stats().Sessions; n != 2 {
		t.Errorf("%d sessions are open", n)
	}

	// All of it is in the log, of which one kind can be chosen.
	b.wait(t, `[...document.querySelectorAll("#changes-body tbody tr")].map((r) => r.cells[4].textContent).join() === "sessions/end,tokens/revoke,tokens/create,tokens/create,tokens/create,tokens/create,tokens/create,tokens/create"`)
	eval[bool](t, b, `(() => { const s = document.querySelector("#changes-action"); s.value = "control"; return s.dispatchEvent(new Event("change")); })()`)
	b.wait(t, `document.querySelector("#changes-body").textContent === "Nothing of this kind was changed."`)
	for i := range 25 {
		do(t, x.srv, testToken, "tokens/create", fmt.Sprintf(`{"name":"n%d","role":"viewer"}`, i), 200)
	}
	eval[bool](t, b, `(() => { const s = document.querySelector("#changes-action"); s.value = "tokens"; return s.dispatchEvent(new Event("change")); })()`)
	b.wait(t, `document.querySelectorAll("#changes-body tbody tr").length === 20 && !document.querySelector("#changes-older").disabled`)
	eval[bool](t, b, `(document.querySelector("#changes-older").click(), true)`)
	b.wait(t, `document.querySelectorAll("#changes-body tbody tr").length === 12 && document.querySelector("#changes-older").disabled && !document.querySelector("#changes-newest").disabled`)
	b.refused("tokens/create")
	b.check(t)
	viewer.check(t)
}

// steered is a control of probes whose plans wait for approval.
type steered struct {
	mu    sync.Mutex
	state ask.ControlState
	heard []string
	gone  bool
}

func (s *steered) command(_ context.Context, verb string, epoch uint32, author string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, fmt.Sprint(verb, " ", epoch, " ", author))
	x := &s.state
	switch verb {
	case "pause", "resume":
		x.Paused = verb == "pause"
	case "dry-run", "wet-run":
		x.DryRun = verb == "dry-run"
	case "approve":
		x.Back, x.InForce, x.Epoch, x.Waiting = x.InForce, epoch, epoch, 0
	case "rollback":
		return errors.New("the plan before is of another network")
	}
	return nil
}

func (s *steered) ask(context.Context) (ask.ControlState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return ask.ControlState{}, errors.New("no control answers at http://127.0.0.1:9465, which web.control names")
	}
	return s.state, nil
}

// TestPageControl commands the control of probes as an operator: what makes no sense is disabled with its reason, what cannot be taken
// back is asked, and a refusal is shown. Viewers have the state alone.
func TestPageControl(t *testing.T) {
	s := &steered{state: ask.ControlState{Phase: "steady", Epoch: 7, InForce: 7, Waiting: 8, WaitsWhy: "link 3-4 is suspected"}}
	x := newTeam(t, startBrowser(t), func(_ *Config, deps *Deps) { deps.Command, deps.Control = s.command, s.ask })
	viewer := x.login(t, access.Viewer)
	viewer.wait(t, `!document.querySelector("#control").hidden && document.querySelector(".control-state").textContent.includes("epoch 7 is in force")`)
	if n := eval[int](t, viewer, `document.querySelectorAll("#control button").length`); n != 0 {
		t.Errorf("a viewer has %d buttons", n)
	}
	b := x.login(t, access.Operator)
	button := func(name string) string { return `document.querySelector("#control [data-do=` + name + `]")` }
	b.wait(t, `!document.querySelector("#probed").hidden && !document.querySelector("#nav-probed").hidden && `+button("pause"))
	if got, want := b.text(t, ".control-state"), "Control: all devices have the plan · epoch 7 is in force · epoch 8 waits for approval (link 3-4 is suspected)"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
	barred := func() string {
		return eval[string](t, b, `[...document.querySelectorAll("#control button[aria-disabled=true]")].map((b) => b.textContent + ": " + document.getElementById(b.getAttribute("aria-describedby")).textContent).join(" | ")`)
	}
	if got, want := barred(), "Resume: It is not paused. | Roll back: There is no plan before this one. | End dry run: It is no dry run."; got != want {
		t.Errorf("disabled: %q, want %q", got, want)
	}
	eval[bool](t, b, `(document.querySelector("#probed").scrollIntoView(), true)`)
	b.picture(t, "control")
	// One that makes no sense has its place in the order of keys, says why, and sends nothing.
	b.focus(t, button("rollback"))
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("#control [role=status]").textContent === "Roll back: there is no plan before this one."`)
	b.focus(t, button("pause"))
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("#control [role=status]").textContent === "Done: pause." && `+button("pause")+`.getAttribute("aria-disabled") === "true" && !`+button("resume")+`.hasAttribute("aria-disabled")`)
	b.focus(t, button("approve"))
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("dialog[open] p").textContent === "The plan of epoch 8 is installed."`)
	b.press(t, kb.Tab, kb.Enter)
	b.wait(t, `document.querySelector(".control-state").textContent.includes("epoch 8 is in force") && `+button("approve")+`.title === "No plan waits for approval."`)
	b.focus(t, button("rollback"))
	b.press(t, kb.Enter)
	b.wait(t, `document.querySelector("dialog[open]")`)
	b.press(t, kb.Tab, kb.Enter)
	b.wait(t, `document.querySelector("#control [role=status]").textContent === "Not done: The plan before is of another network."`)
	s.mu.Lock()
	heard := strings.Join(s.heard, ", ")
	s.gone = true
	s.mu.Unlock()
	if want := "pause 0 operator, approve 8 operator, rollback 0 operator"; heard != want {
		t.Errorf("the control heard %q, want %q", heard, want)
	}
	b.settle(t, 1100*time.Millisecond) // an answer of control serves all pages for a second
	write(x.srv, newScene(4, 20, 4).window(1, time.Now()))
	eval[bool](t, b, `(document.querySelector("#hops-filter").dispatchEvent(new Event("input")), true)`) // loads the page anew
	b.wait(t, `document.querySelector(".control-state").textContent.startsWith("No control answers at http://127.0.0.1:9465") && document.querySelectorAll("#control button:not([aria-disabled])").length === 0`)
	viewer.check(t)
	b.refused("control")
	b.check(t)

	alone := newTeam(t, x.parent, nil).login(t, access.Operator)
	if !eval[bool](t, alone, `document.querySelector("#control").hidden && document.querySelectorAll("#control button").length === 0`) {
		t.Error("there are buttons where no control can be commanded")
	}
}

// testPageSystems shows what the planning systems decided, and how to switch on the others. What they say is text.
func testPageSystems(t *testing.T, parent context.Context) {
	control := &steered{state: ask.ControlState{Phase: "steady", Epoch: 7, InForce: 7, Systems: []ask.System{
		{System: "probes", State: ask.SystemInForce, Decided: []string{"16 probes that cross 64 directions of links"}, Installed: []string{"epoch 7 at 8 of 8 agents"}, Brought: []string{"<b>90</b> rounds"}},
		{System: "into", State: ask.SystemWaiting, Why: "the plan waits for approval"},
	}}}
	now := time.Now()
	deps := sceneDeps(now)
	deps.Command, deps.Control = control.command, control.ask
	deps.Digests = func() *ask.Digests {
		return &ask.Digests{Plans: []ask.QueryPlan{{Epoch: 1, Bits: 16, Queries: []string{"path"}}}}
	}
	srv := serve(t, DefaultConfig(), deps)
	newScene(7, 20, 4).fill(srv, sceneWindows, now)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelectorAll(".systems-data tbody tr").length === 5`)
	rows := eval[string](t, b, `[...document.querySelectorAll(".systems-data tbody tr")].map((r) => r.dataset.system + " " + r.dataset.state).join()`)
	if want := "probes in-force,into waiting,pint planned,fant off,rft off"; rows != want {
		t.Errorf("systems %s, want %s", rows, want)
	}
	row := func(name string) string { return b.text(t, ".systems-data [data-system="+name+"]") }
	for name, says := range map[string][]string{
		"probes": {"In force", "16 probes that cross 64 directions of links", "epoch 7 at 8 of 8 agents", "<b>90</b> rounds"},
		"into":   {"Waits for approval", "the plan waits for approval"},
		"pint":   {"Planned, not carried out", "epoch 1: path in a digest of 16 bits"},
		"fant":   {"Off", "To switch it on: run hopscope control with collector.url"},
		"rft":    {"Off", "To switch it on: plan with hopscope plan delivery"},
	} {
		for _, text := range says {
			if got := row(name); !strings.Contains(got, text) {
				t.Errorf("%s is %q, want %q in it", name, got, text)
			}
		}
	}
	if note := b.text(t, "#systems-note"); note != "3 systems of 5 switched on" {
		t.Errorf("the note is %q", note)
	}
	eval[bool](t, b, `(document.querySelector("#systems").scrollIntoView(), true)`)
	b.picture(t, "systems")
	for _, link := range eval[[]string](t, b, `[...document.querySelectorAll(".systems-data a")].map((a) => a.getAttribute("href"))`) {
		page, _, _ := strings.Cut(strings.TrimPrefix(link, "docs/"), "#")
		if _, err := os.Stat("../../docs/" + page + ".md"); err != nil {
			t.Errorf("link %s: %v", link, err)
		}
	}
	b.check(t)
}

// testPageSort sorts every table by clicks and keys: the order is in the head of the table, in the address, and that of all rows and not
// of those that the page has.
func testPageSort(t *testing.T, parent context.Context) {
	srv, _, b, now := openScene(t, parent)
	w := &inference.Window{Start: now.UnixNano() - 5e9, End: now.UnixNano()}
	for i := range uint32(18) {
		p := probedStats(i+1, uint64(i%5), uint64(1e6+1e5*i))
		w.Probes = append(w.Probes, p)
		errors := uint64(i) * 7 % 18 // the share of which falls: by themselves interfaces have another order
		w.Interfaces = append(w.Interfaces, counted(i+1, 3, decode.Counters{Has: decode.CountInPackets | decode.CountInErrors, InPackets: 100 * (errors*errors + 1), InErrors: errors}))
	}
	srv.history.add(w)
	b.do(t, chromedp.Reload())
	b.wait(t, loaded)
	b.wait(t, `document.querySelectorAll(".interfaces-data tbody tr").length === 15 && document.querySelectorAll(".probed-data tbody tr").length === 15`)
	head := func(table, text string) string {
		return `[...document.querySelectorAll(".` + table + `-data thead th")].find((h) => h.textContent === "` + text + `")`
	}
	column := func(table string, i int) string {
		return eval[string](t, b, fmt.Sprintf(`[...document.querySelectorAll(".%s-data tbody tr")].map((r) => r.cells[%d]?.textContent).join()`, table, i))
	}
	sorted := func(table, text, want string) {
		t.Helper()
		b.wait(t, head(table, text)+`.getAttribute("aria-sort") === "`+want+`"`)
		if n := eval[int](t, b, `document.querySelectorAll(".`+table+`-data [aria-sort]").length`); n != 1 {
			t.Errorf("%s: %d columns say that the table is sorted by them", table, n)
		}
	}
	// By a click, and the other way around by a key.
	eval[bool](t, b, `(`+head("interfaces", "Errors in")+`.firstElementChild.click(), true)`)
	sorted("interfaces", "Errors in", "descending")
	b.wait(t, `document.querySelector(".interfaces-data tbody tr").cells[6].textContent === "17"`)
	if got := column("interfaces", 6); got != "17,16,15,14,13,12,11,10,9,8,7,6,5,4,3" {
		t.Errorf("errors of all interfaces, the greatest first: %s", got)
	}
	if note := b.text(t, "#interfaces-note"); !strings.Contains(note, ", sorted by Errors in, descending") || !strings.HasSuffix(note, "+3 not shown") {
		t.Errorf("the note is %q", note)
	}
	b.focus(t, head("interfaces", "Errors in")+`.firstElementChild`)
	b.press(t, kb.Enter)
	sorted("interfaces", "Errors in", "ascending")
	b.wait(t, `document.querySelector(".interfaces-data tbody tr").cells[6].textContent === "0"`)
	if got := column("interfaces", 6); got != "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14" {
		t.Errorf("errors of all interfaces, the least first: %s", got)
	}
	if got := eval[string](t, b, `location.search`); got != "?sort-interfaces=in_errors.asc" {
		t.Errorf("the address is %q", got)
	}
	if !eval[bool](t, b, `document.activeElement === `+head("interfaces", "Errors in")+`.firstElementChild`) {
		t.Error("the head has lost the focus")
	}
	eval[bool](t, b, `(document.querySelector("#interfaces-pager button:last-child").click(), true)`)
	b.wait(t, `document.querySelectorAll(".interfaces-data tbody tr").length === 3 && document.querySelector(".interfaces-data tbody tr").cells[6].textContent === "15"`)
	// An address has the order, also with that of another table, a filter and a range beside it.
	b.do(t, chromedp.Navigate(srv.URL()+"?sort-interfaces=in_errors.asc&sort-probed=delay_p99_ns.desc&sort-flows=changes.nonsense&sort-hops=nonsense.asc"))
	b.wait(t, loaded)
	sorted("interfaces", "Errors in", "ascending")
	sorted("probed", "Delay p99", "descending")
	sorted("flows", "Path changes", "descending")
	sorted("hops", "p99", "descending")
	b.wait(t, `document.querySelector(".probed-data tbody tr")?.cells[1].textContent === "18"`)
	if got := column("probed", 1); got != "18,17,16,15,14,13,12,11,10,9,8,7,6,5,4" {
		t.Errorf("paths by delay: %s", got)
	}
	// A third choice gives the list its own order back.
	for range 2 {
		b.focus(t, head("probed", "Delay p99")+`.firstElementChild`)
		b.press(t, " ")
	}
	b.wait(t, `!document.querySelector(".probed-data [aria-sort]") && !location.search.includes("sort-probed") && document.querySelector(".probed-data tbody tr").cells[4].textContent !== "0"`)

	eval[bool](t, b, `(`+head("hops", "Hop")+`.firstElementChild.click(), true)`)
	sorted("hops", "Hop", "ascending")
	b.wait(t, `document.querySelector(".hops-data tbody th").textContent.startsWith("1 → ") && document.querySelector("#hops-note").textContent === "sorted by Hop, ascending"`)
	eval[bool](t, b, `(`+head("exporters", "Lost")+`.firstElementChild.click(), true)`)
	sorted("exporters", "Lost", "descending")
	b.wait(t, `document.querySelector("#exporters-note").textContent.includes("sorted by Lost, descending")`)
	if eval[bool](t, b, `document.querySelectorAll(".data thead th button.sort").length < 40`) {
		t.Error("there are columns that cannot be sorted by")
	}
	// Findings are no table: their buttons say which is on.
	const bar = `[...document.querySelectorAll("#findings-sort button")]`
	first := `document.querySelector(".finding-group:not(.ended) .finding-place").textContent`
	eval[bool](t, b, `(`+bar+`.find((b) => b.textContent === "Place").click(), true)`)
	b.wait(t, bar+`.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.getAttribute("aria-label")).join() === "Place, ascending"`)
	up := eval[string](t, b, first)
	eval[bool](t, b, `(`+bar+`.find((b) => b.textContent === "Place").click(), true)`)
	b.wait(t, `document.querySelector("#findings-note").textContent.endsWith("sorted by Place, descending") && `+first+` !== `+fmt.Sprintf("%q", up))
	b.check(t)
}
