package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// interfacesAnswer is the answer as a client reads it.
type interfacesAnswer struct {
	Total      int
	Interfaces []interfaceRow
}

// counterServer has windows of a second. Function make returns the rows of window n, from 1.
func counterServer(t *testing.T, windows int, make func(n int) *inference.Window) *Server {
	t.Helper()
	cfg, deps := DefaultConfig(), sceneDeps(sceneTime)
	cfg.MaxHops = 16
	deps.Names = func() *names.Names {
		return names.New([]names.Node{{ID: 7, Name: "leaf-7", Interfaces: []names.Interface{{ID: 3, Name: "Ethernet3", Speed: 25e9}}}}, nil, nil)
	}
	srv, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= windows; n++ {
		w := make(n)
		w.Start, w.End = int64(n)*1e9, int64(n+1)*1e9
		srv.history.add(w)
	}
	return srv
}

func counted(node, port uint32, c decode.Counters) inference.InterfaceStats {
	c.Interface = port
	return inference.InterfaceStats{Node: node, Counters: c, Samples: 1}
}

// Interfaces without a hop, and in windows without any other row, are listed: those that lose the greatest share first, then the busiest.
func TestAPIInterfaces(t *testing.T) {
	const packets = decode.CountInPackets | decode.CountOutPackets
	srv := counterServer(t, 20, func(n int) *inference.Window {
		w := &inference.Window{Interfaces: []inference.InterfaceStats{
			counted(7, 3, decode.Counters{Has: packets | decode.CountInErrors, InPackets: 1000, OutPackets: 10, InErrors: 1}),
			counted(7, 4, decode.Counters{Has: packets | decode.CountOutDiscards | decode.CountInOctets | decode.CountOutOctets, InOctets: 1 << 40, OutOctets: 7, InPackets: 1000, OutPackets: 10, OutDiscards: 1}),
			counted(8, 1, decode.Counters{Has: packets | decode.CountRxUtilization, InPackets: 5, RxUtilization: uint16(100 * n)}), counted(8, 2, decode.Counters{Has: packets, InPackets: 5}),
		}}
		if n == 1 { // and never again
			w.Interfaces = append(w.Interfaces, counted(9, 1, decode.Counters{Has: decode.CountOutErrors, OutErrors: 4}))
		}
		w.Hops = []inference.HopStats{{HopKey: inference.HopKey{Node: 8, EgressIf: 2}, Count: 1, HasUtilization: true, Utilization: .5,
			Queue: inference.Summary{Count: 1, P50: 10, P99: 900, Max: 1000}}}
		return w
	})
	var got interfacesAnswer
	get(t, srv, "/api/interfaces", &got)
	count := func(n *uint64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	var lines []string
	for _, x := range got.Interfaces {
		lines = append(lines, fmt.Sprintf("%s:%s %.0f use %v/%v queue %v in %s/%s/%s out %s/%s/%s last %d octets %s/%s", x.Node, x.Interface, x.Speed, x.Received, x.Utilization, x.QueueP99,
			count(x.InPackets), count(x.InErrors), count(x.InDiscards), count(x.OutPackets), count(x.OutErrors), count(x.OutDiscards), x.LastMS, count(x.InOctets), count(x.OutOctets)))
	}
	// Twelve windows of each; of 9:1 the one in which its counters came. JSON's null leaves 0 here.
	want := []string{
		"9:1 0 use NaN/NaN queue NaN in -/-/- out -/4/- last 2000 octets -/-",
		"7:4 0 use NaN/NaN queue NaN in 12000/-/- out 120/-/12 last 21000 octets 13194139533312/84",
		"7:3 25000000000 use NaN/NaN queue NaN in 12000/12/- out 120/-/- last 21000 octets -/-",
		"8:2 0 use NaN/0.5 queue 900 in 60/-/- out 0/-/- last 21000 octets -/-",
		"8:1 0 use 0.2/NaN queue NaN in 60/-/- out 0/-/- last 21000 octets -/-",
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) || got.Total != 5 {
		t.Errorf("%d interfaces\n%q\nwant\n%q", got.Total, lines, want)
	}
	get(t, srv, "/api/interfaces?limit=2&offset=4", &got)
	if got.Total != 5 || len(got.Interfaces) != 1 || got.Interfaces[0].Interface != "1" || got.Interfaces[0].Node != "8" {
		t.Errorf("the last page is %+v", got)
	}
}

// A window that comes again replaces its former counts, and interfaces beyond the table are counted as left out.
func TestInterfacesBound(t *testing.T) {
	srv := counterServer(t, 2, func(int) *inference.Window {
		w := &inference.Window{}
		for port := range uint32(20) {
			w.Interfaces = append(w.Interfaces, counted(1, port+1, decode.Counters{Has: decode.CountInErrors, InErrors: 1}))
		}
		return w
	})
	rows, total := srv.history.listInterfaces(names.Search{}, nil, ask.Page{Limit: 100})
	if total != 16 || len(rows) != 16 || len(srv.LeftOut()) != 1 {
		t.Fatalf("%d of %d interfaces, left out %q", len(rows), total, srv.LeftOut())
	}
	second := &inference.Window{Start: 1e9, End: 2e9, Interfaces: []inference.InterfaceStats{counted(1, rows[0].key.EgressIf, decode.Counters{Has: decode.CountInErrors, InErrors: 50})}}
	srv.history.replace(second, nil)
	srv.history.add(second)
	rows, _ = srv.history.listInterfaces(names.Search{}, nil, ask.Page{Limit: 100})
	sum := uint64(0)
	for i := range rows {
		sum += *rows[i].InErrors
	}
	if sum != 16+50 {
		t.Errorf("%d errors after a window came again, want %d", sum, 16+50)
	}
}

// testPageInterfaces opens the page of a network that sends counters alone.
func testPageInterfaces(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Names = func() *names.Names {
		return names.New([]names.Node{{ID: 7, Name: "leaf-7", Interfaces: []names.Interface{{ID: 3, Name: "Ethernet3", Speed: 25e9}}}}, nil, nil)
	}
	srv := serve(t, DefaultConfig(), deps)
	w := &inference.Window{Start: now.UnixNano() - 1e9, End: now.UnixNano()}
	for port := range uint32(18) {
		w.Interfaces = append(w.Interfaces, counted(7, port+1, decode.Counters{Has: decode.CountInPackets | decode.CountInErrors | decode.CountRxUtilization, InPackets: 20_000, InErrors: uint64(port & 2), RxUtilization: 3700}))
	}
	w.Interfaces[2].InErrors = 5
	srv.history.add(w)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelectorAll("#interfaces tbody tr").length === 15`)
	texts := eval[[]string](t, b, `[...document.querySelectorAll("#interfaces tbody tr")].map((r) => [...r.cells].map((c) => c.textContent).join("|"))`)
	if !strings.Contains(texts[0], "Ethernet3") || !strings.Contains(texts[0], "|25\u202fGbit/s|37.0\u202f%|–|20\u202fk|–|5|–|–|–|–|") {
		t.Errorf("the worst interface is %q", texts[0])
	}
	if note := eval[string](t, b, `document.querySelector("#interfaces-note").textContent`); !strings.Contains(note, "18 interfaces") || !strings.HasSuffix(note, "+3 not shown") {
		t.Errorf("the note is %q", note)
	}
	if eval[bool](t, b, `document.querySelector("#nav-interfaces").hidden || !document.querySelector("#empty").hidden`) {
		t.Error("a page with interfaces calls itself empty, or has no link to them")
	}
	b.picture(t, "interfaces")
}
