//go:build torture

package torture

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink/influx"
)

// inProcess is the settings of a collector within the test.
type inProcess struct {
	collector.Config   `yaml:""`
	UDP                udp.Config `yaml:"udp"`
	collector.Analysis `yaml:""`
	Influx             collector.StoreConfig[influx.Config] `yaml:"influx"`
}

// clockRows set the wall clock of a collector that runs within the test; its monotonic clock goes on.
func clockRows() []row {
	stepped := func(steps ...time.Duration) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			var cfg inProcess
			settings.SetDefaults(&cfg)
			cfg.Window, cfg.Shards = 250*time.Millisecond, 2
			cfg.UDP.Listen, cfg.UDP.Workers = []string{"127.0.0.1:0"}, 1
			cfg.Flows.MemoryBytes = 16 << 20
			token := filepath.Join(t.TempDir(), "token")
			if err := writeSecret(token, server.Token); err != nil {
				t.Fatal(err)
			}
			cfg.Influx.Enabled = true
			cfg.Influx.Config.URL, cfg.Influx.Config.Org, cfg.Influx.Config.Bucket = server.URL, server.Org, server.Bucket
			cfg.Influx.Config.TokenFile = token
			cfg.Influx.Spool.Dir = filepath.Join(t.TempDir(), "spool")
			var offset atomic.Int64
			base := time.Now()
			opt := collector.Options{Seed: 1, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: func() (time.Time, time.Duration) {
				now := time.Now()
				return now.Round(0).Add(time.Duration(offset.Load())), now.Sub(base)
			}}
			var err error
			if opt.Sources, err = collector.OpenSources(&cfg); err != nil {
				t.Fatal(err)
			}
			if opt.Stores, opt.Reports, err = collector.OpenStores(&cfg, collector.Live); err != nil {
				t.Fatal(err)
			}
			c, err := collector.New(cfg.Config, cfg.Analysis, opt)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			s := newSender(t, c.Addrs()[0])
			s.send(1000, rate)
			for _, step := range steps {
				offset.Add(int64(step))
				s.send(short(2000, 8000), rate)
			}
			s.trailer()
			stop()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sum := c.Summary(1, 1)
			h := count(t, server)
			r.Sent, r.Stored = s.sent.Load(), h.hops/hops
			if h.hops != hops*h.reports {
				t.Errorf("the store has %d reports of exporters and %d hops, which is not %d each", h.reports, h.hops, hops)
			}
			for _, e := range sum.Exporters {
				r.Lost["on the way"] += e.Lost
			}
			for stage, n := range sum.Ledger.Dropped {
				if stage != "kernel" {
					r.Lost[stage] += n
				}
			}
			if n := sum.Ledger.Unsettled; n != 0 {
				t.Errorf("the ledger does not add up: %d unsettled", n)
			}
			r.Remark = fmt.Sprint("steps ", steps)
			r.settle()
		}
	}
	return []row{
		{name: "the clock is set back and forward by seconds", run: stepped(-3*time.Second, 5*time.Second, -1100*time.Millisecond, 700*time.Millisecond)},
		{name: "the clock is set back by 40 s", run: stepped(-40 * time.Second)},
		{name: "the clock is set back again and again", run: stepped(-2*time.Second, -2*time.Second, -2*time.Second, -2*time.Second)},
		{name: "the clock is set back further than corrections reach", run: stepped(-20*time.Minute, 20*time.Minute)},
		{name: "the clock is set forward by half an hour, and back", run: stepped(30*time.Minute, -30*time.Minute)},
	}
}

func writeSecret(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
