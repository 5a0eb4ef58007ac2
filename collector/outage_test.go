package collector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestStoreAwayAndKilled takes InfluxDB away while reports keep coming, and kills it with SIGKILL in the middle of
// writes. When it is back, every window's point is there exactly once: what it holds is what the Parquet files hold.
// The outage lasts as long as HOPSCOPE_SOAK says.
func TestStoreAwayAndKilled(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	outage := soak(t)
	servertest.EachInflux(t, func(t *testing.T, server *servertest.Influx) {
		cfg := storeConfig(t, server, "")
		cfg.Window = 250 * time.Millisecond
		cfg.Parquet.Enabled = true
		cfg.Parquet.Config.Dir = t.TempDir()
		cfg.Parquet.Spool.Dir = filepath.Join(t.TempDir(), "parquet")
		r := start(t, cfg)

		gen, err := traffic.New(traffic.Config{Seed: 3, Flows: 50, Hops: 5, Exporters: 4, Bytes: 200})
		if err != nil {
			t.Fatal(err)
		}
		sending, stopSending := context.WithCancel(t.Context())
		sent := make(chan error, 1)
		go func() {
			_, err := traffic.Send(sending, traffic.SendConfig{To: r.Addrs()[0], Rate: 2000}, gen)
			sent <- err
		}()
		seed := testkit.Seed(t)
		rng := rand.New(rand.NewPCG(seed, 0))
		// Windows end every 250 ms, so kills at random moments hit the server before, during and after writes.
		for range 5 {
			time.Sleep(time.Duration(200+rng.IntN(300)) * time.Millisecond)
			server.Kill()
			server.Start()
		}
		server.Stop()
		time.Sleep(outage)
		server.Start()
		stopSending()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		r.waitFor("the spool to be empty", func() bool { return r.ledger.Snapshot()[0].InFlight["spool"] == 0 })
		s := r.stop()
		for _, b := range s.Ledger.Sinks {
			if t.Log(LedgerLine(&b)); b.Stored != b.Received || b.Unsettled != 0 {
				t.Errorf("seed %d: not everything is stored: %s", seed, LedgerLine(&b))
			}
		}

		want := parquetHops(t, cfg.Parquet.Config.Dir)
		got := map[string]int64{}
		rows := server.MustQuery(fmt.Sprintf(`from(bucket: %q) |> range(start: -1h) |> filter(fn: (r) => r._measurement == "hop" and r._field == "count")`, server.Bucket))
		for _, row := range rows {
			key := fmt.Sprintf("%d %v %v", row["_time"].(time.Time).UnixNano(), row["node"], row["egress_if"])
			if _, twice := got[key]; twice {
				t.Errorf("point %s is there twice", key)
			}
			got[key] = row["_value"].(int64)
		}
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("seed %d: InfluxDB holds %d hop points, the Parquet files %d", seed, len(got), len(want))
		}
		for key, n := range want {
			if got[key] != n {
				t.Fatalf("seed %d: point %s is %d in InfluxDB, %d in the Parquet files", seed, key, got[key], n)
			}
		}
		t.Logf("%d hop points, each once in both stores", len(got))
	})
}

// parquetHops reads count of all rows of the hop dataset, by time and tags, and wants each row once.
func parquetHops(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "hop", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Parquet files in %s: %v", dir, err)
	}
	out := map[string]int64{}
	for _, name := range files {
		for _, row := range servertest.ReadParquet(t, name).Rows {
			key := fmt.Sprintf("%d %s %s", row["time"], row["node"], row["egress_if"])
			if _, twice := out[key]; twice {
				t.Errorf("row %s is in the Parquet files twice", key)
			}
			out[key] = row["count"].(int64)
		}
	}
	return out
}
