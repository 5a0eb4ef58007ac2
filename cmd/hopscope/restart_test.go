package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	hopscope "github.com/hopscope/hopscope/collector"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestKilled kills the collector with SIGKILL at random moments while exporters send numbered reports. One stop in the
// middle and the last one are orderly. The sent reports are those in the store by its own count, and those that the
// collector counts as lost over all runs.
func TestKilled(t *testing.T) {
	version := servertest.InfluxVersions[0]
	server := servertest.StartInflux(t, version)
	t.Setenv("HOPSCOPE_TEST_TOKEN", cmp.Or(server.Token, "1.8 asks for none"))
	to := netip.MustParseAddrPort(testkit.FreeAddr(t)) // each run has it
	spool := filepath.Join(t.TempDir(), "influx")
	settings := settingsFile(t, fmt.Sprintf(`window: 250ms
udp: {listen: [%q], workers: 2}
web: {listen: "127.0.0.1:0"}
influx: {enabled: true, url: %q, org: %q, bucket: %q, token_env: HOPSCOPE_TEST_TOKEN, spool: {dir: %q}}
log: {level: info, format: json}
`, to, server.URL, server.Org, server.Bucket, spool))

	const hops, exporters = 5, 4
	gen, err := traffic.New(traffic.Config{Seed: 3, Flows: 50, Hops: hops, Exporters: exporters, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, settings)
	sending, stopSending := context.WithCancel(t.Context())
	sent := make(chan traffic.Result, 1)
	go func() {
		r, err := traffic.Send(sending, traffic.SendConfig{To: to, Rate: 2000}, gen)
		if err != nil {
			t.Error(err)
		}
		sent <- r
	}()
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	// What is lost before a window has the exporters cannot be known.
	known := fmt.Sprintf(`from(bucket: %q) |> range(start: -1h) |> filter(fn: (r) => r._measurement == "exporter")`, server.Bucket)
	if !testkit.Await(func() bool {
		seen := map[string]bool{}
		for _, row := range server.MustQuery(known) {
			seen[fmt.Sprint(row["exporter"], row["node"], row["hw_id"])] = true
		}
		return len(seen) == exporters
	}) {
		t.Fatal("no window has all exporters")
	}
	const kills = 10
	for i := range kills + 1 {
		time.Sleep(time.Duration(rng.IntN(900)) * time.Millisecond)
		if i == kills/2 {
			c.cmd.Process.Signal(syscall.SIGTERM)
		} else {
			c.cmd.Process.Kill()
		}
		<-c.ended
		c.cmd.Wait()
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		c = start(t, settings)
	}
	time.Sleep(time.Second)
	stopSending()
	total := (<-sent).Sent
	time.Sleep(time.Second)
	c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.ended
	c.cmd.Wait()
	var s struct {
		Ledger hopscope.LedgerSummary `json:"loss_ledger"`
	}
	if err := json.Unmarshal(c.out.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, c.out.Bytes())
	}
	if s.Ledger.AllRuns == nil || len(s.Ledger.AllRuns.Sinks) != 1 {
		t.Fatalf("seed %d: %s", seed, c.out.Bytes())
	}
	b := s.Ledger.AllRuns.Sinks[0]
	stored := uint64(0)
	for _, row := range server.MustQuery(fmt.Sprintf(`from(bucket: %q) |> range(start: -1h) |> filter(fn: (r) => r._measurement == "hop" and r._field == "count")`, server.Bucket)) {
		stored += uint64(row["_value"].(int64))
	}
	if stored%hops != 0 {
		t.Errorf("%d hops are stored, of reports of %d each", stored, hops)
	}
	stored /= hops
	lost := uint64(0)
	for _, n := range b.Dropped {
		lost += uint64(n)
	}
	// What the kernel dropped shortly before a kill is missed by its number as well.
	kernel := uint64(b.Dropped["kernel"])
	t.Logf("seed %d: %d sent; the store has %d; over %d runs %s", seed, total, stored, s.Ledger.AllRuns.Runs, hopscope.LedgerLine(&b))
	if b.Stored != stored || stored+lost < total || stored+lost > total+kernel || b.Unsettled != 0 || b.Dropped["down"] == 0 {
		t.Errorf("seed %d: %d sent, the store has %d, counted as lost %d: %d unaccounted", seed, total, stored, lost, int64(total)-int64(stored)-int64(lost))
	}
}
