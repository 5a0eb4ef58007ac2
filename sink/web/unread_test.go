package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/sink/web/ask"
)

func sceneUnread() []Unread {
	return []Unread{
		{Address: "10.0.0.7", Count: 1204, Text: "1204 datagrams are NetFlow 5,\nwhich nothing reads", Sample: []byte{0, 5, 0, 1, 1, 2, 3, 4}},
		{Address: "2001:db8::1%<b>", Count: 3, AtLeast: true, Text: "<script>alert(1)</script>"},
	}
}

// The API lists the data that is not decoded, and returns a sample as a text file, whatever the name of the exporter.
func TestAPIUnread(t *testing.T) {
	deps := sceneDeps(time.Now())
	deps.Unread = sceneUnread
	srv := serve(t, DefaultConfig(), deps)
	var list struct {
		Total     int
		Exporters []ask.UnreadRow
	}
	get(t, srv, "/api/unread", &list)
	if list.Total != 2 || len(list.Exporters) != 2 || list.Exporters[0].Sample != "0005000101020304" || list.Exporters[1].Sample != "" || !list.Exporters[1].AtLeast {
		t.Errorf("%+v", list)
	}
	res, err := http.Get(srv.URL() + "api/sample?address=10.0.0.7")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if d := res.Header.Get("Content-Disposition"); d != `attachment; filename="hopscope-sample-10.0.0.7.txt"` || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%q, %q", d, res.Header)
	}
	if want := "# exporter 10.0.0.7, 1204 datagrams\n# 1204 datagrams are NetFlow 5, which nothing reads\n00000000  00 05 00 01 01 02 03 04"; !strings.Contains(string(b), want) {
		t.Errorf("the sample is %q, without %q", b, want)
	}
	for _, address := range []string{"", "10.0.0.8", "2001:db8::1%25%3Cb%3E"} {
		res, err := http.Get(srv.URL() + "api/sample?address=" + address)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("sample of %q: %s", address, res.Status)
		}
	}
	get(t, serve(t, DefaultConfig(), sceneDeps(time.Now())), "/api/unread", &list)
	if list.Total != 0 || len(list.Exporters) != 0 {
		t.Errorf("without any: %+v", list)
	}
}

// testPageUnread opens the page of a collector without windows, with exporters that it does not understand.
func testPageUnread(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Unread = sceneUnread
	srv := serve(t, DefaultConfig(), deps)
	b := openTab(t, parent, srv)
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, `document.querySelectorAll("#unread tbody tr").length === 2`)
	texts := eval[[]string](t, b, `[...document.querySelectorAll("#unread tbody tr")].map((r) => [...r.cells].map((c) => c.textContent).join("|") + "|" + r.querySelector("a").hidden)`)
	if len(texts) != 2 || texts[0] != "10.0.0.7|1,204|1204 datagrams are NetFlow 5,\nwhich nothing reads|Download|false" || !strings.HasSuffix(texts[1], "|at least 3|<script>alert(1)</script>|Download|true") {
		t.Errorf("the table has %q", texts)
	}
	eval[bool](t, b, `(document.querySelector("#unread").scrollIntoView(), true)`)
	b.picture(t, "unread")
}
