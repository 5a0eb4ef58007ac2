package collector

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// TestPointsRefusedByServer lets another program make hop.count a float first. The server refuses every point of hops
// and takes the others. The ledger counts that by series, equal to the server's own count. No report of such a window
// counts as stored, and the collector is not ready.
func TestPointsRefusedByServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, server *servertest.Influx) {
		theirs := fmt.Sprintf("hop,node=theirs count=0.5 %d\n", time.Now().UnixNano())
		target := fmt.Sprintf("%s/api/v2/write?org=%s&bucket=%s", server.URL, server.Org, strings.ReplaceAll(server.Bucket, "/", "%2F"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(theirs))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Token "+server.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp, err)
		}
		resp.Body.Close()

		cfg := storeConfig(t, server, "")
		cfg.Window = 250 * time.Millisecond
		r := start(t, cfg)
		gen, err := traffic.New(traffic.Config{Seed: 3, Flows: 50, Hops: 5, Exporters: 4, Bytes: 200})
		if err != nil {
			t.Fatal(err)
		}
		sending, stop := context.WithCancel(t.Context())
		sent := make(chan error, 1)
		go func() {
			_, err := traffic.Send(sending, traffic.SendConfig{To: r.Addrs()[0], Rate: 2000}, gen)
			sent <- err
		}()
		r.waitFor("the store to refuse points", func() bool { return r.Balances()[0].Points.Refused > 100 })
		problems := strings.Join(r.NotReady(), "\n")
		if !strings.Contains(problems, "field type conflict") || !strings.Contains(problems, "hopscope spool list "+RefusedDir(cfg.Influx.Spool.Dir)) {
			t.Errorf("NotReady = %q", problems)
		}
		if p := r.Status().Stores[0].Problem; !strings.Contains(p, "the store refused") {
			t.Errorf("the page says %q", p)
		}
		stop()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		r.stop()
		b := r.Balances()
		p := b[0].Points
		t.Log(LedgerLine(&b[0]))
		t.Log(PointsLine(&b[0]))
		if b[0].Unsettled != 0 || p.Unsettled != 0 || b[0].Dropped["rejected"] == 0 || p.Refused != p.Series["hop"].Refused || p.Series["hop"].Stored != 0 {
			t.Errorf("%+v, %+v", b[0], p)
		}
		for series, n := range p.Series {
			if n.Made != n.Stored+n.Refused {
				t.Errorf("%s: %+v", series, n)
			}
		}
		count := func(series, field string) uint64 {
			return uint64(len(server.MustQuery(fmt.Sprintf(`from(bucket: %q) |> range(start: -1h) |> filter(fn: (r) => r._measurement == %q and r._field == %q and r.node != "theirs")`, server.Bucket, series, field))))
		}
		for series, field := range map[string]string{"hop": "count", "exporter": "reports"} {
			if n := count(series, field); n != p.Series[series].Stored || series == "exporter" && n == 0 {
				t.Errorf("%s: the server has %d points, the ledger %+v", series, n, p.Series[series])
			}
		}
		kept := uint64(0)
		names, err := sink.ListRefused(RefusedDir(cfg.Influx.Spool.Dir))
		for _, name := range names {
			e, rerr := sink.ReadRefused(RefusedDir(cfg.Influx.Spool.Dir), name)
			if rerr != nil {
				t.Fatal(rerr)
			}
			kept += e.Points()
		}
		if err != nil || kept != p.Refused {
			t.Errorf("%d points are kept, %v; the ledger says %d", kept, err, p.Refused)
		}
	})
}

// TestReadyAgain has a store refuse, fail by its settings, and mend: the collector is not ready as long as it lasts, and
// then is. A spool that overflows is the same. What a store did not say itself destroys nothing.
func TestReadyAgain(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[http.HandlerFunc]
	set := func(h http.HandlerFunc) { answer.Store(&h) }
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	set(ok)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) }))
	t.Cleanup(server.Close)
	cfg := testConfig()
	cfg.Window = 100 * time.Millisecond
	cfg.Influx.Enabled = true
	cfg.Influx.Config.URL = server.URL
	cfg.Influx.Queue.RetryMin, cfg.Influx.Queue.RetryMax = time.Millisecond, 10*time.Millisecond
	cfg.Influx.Spool.Dir = filepath.Join(t.TempDir(), "influx")
	r := start(t, cfg)
	r.waitFor("readiness", func() bool { return len(r.NotReady()) == 0 })
	gen, err := traffic.New(traffic.Config{Seed: 3, Flows: 50, Hops: 5, Exporters: 4, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: r.Addrs()[0], Rate: 2000, Count: 500}, gen); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		words  string
	}{
		{"a proxy's page", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>400 The plain HTTP request was sent to HTTPS port</html>", http.StatusBadRequest)
		}, "HTTPS port"},
		{"a wrong token", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "401"},
		{"refusals", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Influxdb-Version", "v2.7.12")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"code":"invalid","message":"unable to parse it"}`)
		}, "unable to parse it"},
	} {
		set(tt.answer)
		r.waitFor(tt.name, func() bool { return strings.Contains(strings.Join(r.NotReady(), "\n"), tt.words) })
		set(ok)
		r.waitFor("readiness after "+tt.name, func() bool { return len(r.NotReady()) == 0 })
	}
	r.stop()
	b := r.Balances()
	if p := b[0].Points; b[0].Unsettled != 0 || p.Unsettled != 0 || p.Refused == 0 || p.Stored+p.Refused != p.Made || b[0].Stored+uint64(b[0].Dropped["rejected"]) != b[0].Received {
		t.Errorf("%s\n%s", LedgerLine(&b[0]), PointsLine(&b[0]))
	}
}
