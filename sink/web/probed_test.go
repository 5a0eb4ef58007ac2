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

// probedStats are a hundred probes of a path in a window.
func probedStats(path uint32, lost uint64, ns uint64) inference.ProbeStats {
	s := inference.ProbeStats{
		ProbeKey: inference.ProbeKey{From: decode.AddrFrom4([]byte{10, 0, 0, 1}), To: decode.AddrFrom4([]byte{10, 0, 0, 2}), Path: path},
		Sent:     100, Received: 100 - lost, Missed: lost, Forward: int64(lost), Judgement: inference.Judged,
	}
	if lost < 100 {
		s.Delay = inference.Summary{Count: 100 - lost, P50: ns, P90: ns, P99: 2 * ns, Max: 2 * ns}
	} else {
		s.Judgement = inference.TooFew
	}
	return s
}

// Paths of probes are listed, those first that lose the greatest share, then the slowest; those that stand for many are not.
func TestAPIProbed(t *testing.T) {
	srv := counterServer(t, 20, func(n int) *inference.Window {
		w := &inference.Window{Probes: []inference.ProbeStats{{Sent: 7}, probedStats(1, 0, 1000), probedStats(2, 0, 2000), probedStats(3, 100, 0)}}
		if n == 20 {
			w.Probes[2] = probedStats(2, 50, 5000)
		}
		return w
	})
	var got struct {
		Total int
		Paths []probedRow
	}
	get(t, srv, "/api/probed", &got)
	var lines []string
	for _, x := range got.Paths {
		lines = append(lines, fmt.Sprintf("%s>%s %d sent %d received %d lost %d (%d out) p50 %v p99 %v %s last %d", x.From, x.To, x.Path, x.Sent, x.Received, x.Lost, x.Forward, x.DelayP50, x.DelayP99, x.Judgement, x.LastMS))
	}
	want := []string{
		"10.0.0.1>10.0.0.2 3 sent 1200 received 0 lost 1200 (1200 out) p50 NaN p99 NaN too-few last 21000",
		"10.0.0.1>10.0.0.2 2 sent 1200 received 1150 lost 50 (50 out) p50 5000 p99 10000 judged last 21000",
		"10.0.0.1>10.0.0.2 1 sent 1200 received 1200 lost 0 (0 out) p50 1000 p99 2000 judged last 21000",
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) || got.Total != 3 {
		t.Errorf("%d paths\n%q\nwant\n%q", got.Total, lines, want)
	}
	second := &inference.Window{Start: 20e9, End: 21e9, Probes: []inference.ProbeStats{probedStats(2, 0, 1000)}}
	srv.history.replace(second, nil)
	srv.history.add(second)
	if rows, _ := srv.history.listProbed(names.Search{}, nil, ask.Page{Limit: 10}); rows[1].Lost != 0 || rows[1].Path != 2 || rows[1].Sent != 1200 {
		t.Errorf("after a window came again: %+v", rows[1])
	}
}

// Paths of probes beyond the table are counted as left out.
func TestProbedBound(t *testing.T) {
	srv := counterServer(t, 1, func(int) *inference.Window {
		w := &inference.Window{}
		for path := range uint32(20) {
			w.Probes = append(w.Probes, probedStats(path+1, 0, 1))
		}
		return w
	})
	if _, total := srv.history.listProbed(names.Search{}, nil, ask.Page{Limit: 100}); total != 16 || len(srv.LeftOut()) != 1 || !strings.Contains(srv.LeftOut()[0], "paths of probes") {
		t.Fatalf("%d paths, left out %q", total, srv.LeftOut())
	}
}

// testPageProbed opens the page of a network in which agents alone report.
func testPageProbed(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	srv := serve(t, DefaultConfig(), sceneDeps(now))
	w := &inference.Window{Start: now.UnixNano() - 1e9, End: now.UnixNano()}
	for path := range uint32(18) {
		w.Probes = append(w.Probes, probedStats(path+1, 0, 1e6))
	}
	w.Probes[2] = probedStats(3, 25, 2e6)
	srv.history.add(w)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelectorAll("#probed tbody tr").length === 15`)
	texts := eval[[]string](t, b, `[...document.querySelectorAll("#probed tbody tr")].map((r) => [...r.cells].map((c) => c.textContent).join("|"))`)
	if !strings.HasPrefix(texts[0], "10.0.0.1 → 10.0.0.2|3|100|75|25.0\u202f%|0|0|0|0|2\u202fms|4\u202fms|") {
		t.Errorf("the worst path is %q", texts[0])
	}
	if note := eval[string](t, b, `document.querySelector("#probed-note").textContent`); !strings.Contains(note, "18 paths") || !strings.HasSuffix(note, "+3 not shown") {
		t.Errorf("the note is %q", note)
	}
	if eval[bool](t, b, `document.querySelector("#nav-probed").hidden || !document.querySelector("#empty").hidden`) {
		t.Error("a page with paths of probes calls itself empty, or has no link to them")
	}
	b.picture(t, "probed")
}
