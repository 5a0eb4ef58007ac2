package collector

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// setClock is a wall clock that can be set, beside the monotonic clock of the machine.
type setClock struct {
	base time.Time
	by   atomic.Int64
}

func newSetClock() *setClock { return &setClock{base: time.Now()} }

func (c *setClock) now() (time.Time, time.Duration) {
	now := time.Now()
	return now.Add(time.Duration(c.by.Load())), now.Sub(c.base)
}

func (c *setClock) set(d time.Duration) { c.by.Add(int64(d)) }

// logLines is a log that can be searched while it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// storeConfig is a collector that writes to a server and to Parquet files.
func storeConfig(t *testing.T, server *servertest.Influx, instance string) *program {
	t.Helper()
	cfg := testConfig()
	cfg.Instance = instance
	cfg.DrainTimeout = testkit.Patience // the race detector and a busy machine stretch what is left to write
	cfg.Flows.TopFlows = 20
	cfg.Influx.Enabled = true
	cfg.Influx.Config.URL, cfg.Influx.Config.Org, cfg.Influx.Config.Bucket = server.URL, server.Org, server.Bucket
	if server.Token != "" { // in a file, so that tests with other servers can run meanwhile
		cfg.Influx.Config.TokenFile = filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(cfg.Influx.Config.TokenFile, []byte(server.Token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Influx.Queue.RetryMin, cfg.Influx.Queue.RetryMax = 10*time.Millisecond, 300*time.Millisecond
	cfg.Influx.Spool.Dir = filepath.Join(t.TempDir(), "influx")
	return cfg
}

// send sends reports to a collector until the test stops it, and returns the number.
func send(t *testing.T, r *running, seed uint64, rate float64) (stop func() uint64) {
	t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: seed, Flows: 50, Hops: 5, Exporters: 4, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sent uint64
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := traffic.Send(ctx, traffic.SendConfig{To: r.Addrs()[0], Rate: rate}, gen)
		sent, failed = res.Sent, err
	}()
	return func() uint64 {
		cancel()
		<-done
		if failed != nil {
			t.Fatal(failed)
		}
		return sent
	}
}

// stored sums an integer field of a measurement, as the server has it.
func stored(server *servertest.Influx, measurement, field string) (sum int64) {
	rows := server.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: 0, stop: 2100-01-01T00:00:00Z) |> filter(fn: (r) => r._measurement == %q and r._field == %q)
		|> group() |> sum()`, measurement, field))
	for _, row := range rows {
		sum += row["_value"].(int64)
	}
	return sum
}

// TestClockSetWhileStoring sets the wall clock of a collector that writes to a real server, back within corrections, back
// beyond them, and forward. What the server counts is what was sent, whatever the clock did, and the ledger knows it.
func TestClockSetWhileStoring(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, server *servertest.Influx) {
		for _, tt := range []struct {
			name         string
			corrections  time.Duration
			steps        []time.Duration
			second, held bool
		}{
			{"back", 10 * time.Second, []time.Duration{-2400 * time.Millisecond}, true, false}, // more than a busy machine makes windows late
			{"back too far", 500 * time.Millisecond, []time.Duration{-3 * time.Second}, false, true},
			{"back without corrections", 0, []time.Duration{-2400 * time.Millisecond}, false, true},
			{"forward and back", time.Second, []time.Duration{time.Hour, -time.Hour}, false, true},
			{"around", 10 * time.Second, []time.Duration{-700 * time.Millisecond, 900 * time.Millisecond, -1100 * time.Millisecond, 800 * time.Millisecond, -700 * time.Millisecond}, true, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				cfg := storeConfig(t, server, strings.ReplaceAll(tt.name, " ", "-"))
				cfg.Window, cfg.Corrections = 200*time.Millisecond, tt.corrections
				before := [3]int64{stored(server, "exporter", "reports"), stored(server, "hop", "count"), stored(server, "collector", "reports")}
				clock, log := newSetClock(), &logLines{}
				r := startWith(t, cfg, Options{Now: clock.now, Log: slog.New(slog.NewTextHandler(log, nil))})
				stop := send(t, r, 3, 3000)
				time.Sleep(4 * time.Second) // further than steps go back
				for i, d := range tt.steps {
					clock.set(d)
					// A busy machine may let the collector see it late.
					for end := time.Now().Add(testkit.Patience); strings.Count(log.String(), "the clock was set") <= i && time.Now().Before(end); {
						time.Sleep(5 * time.Millisecond)
					}
					time.Sleep(800 * time.Millisecond)
				}
				sent := stop()
				s := r.stop()
				b := s.Ledger.Balance
				if b.Received != sent || b.Stored != sent || b.Unsettled != 0 {
					t.Errorf("%d sent; %s", sent, LedgerLine(&b))
				}
				hops := int64(0)
				for _, h := range s.Hops {
					hops += int64(h.Reports)
				}
				for i, what := range []struct {
					measurement, field string
					want               int64
				}{{"exporter", "reports", int64(sent)}, {"hop", "count", hops}, {"collector", "reports", int64(sent)}} {
					if got := stored(server, what.measurement, what.field) - before[i]; got != what.want {
						t.Errorf("%s.%s adds up to %d in the store, want %d", what.measurement, what.field, got, what.want)
					}
				}
				if second := stored(server, "collector", "revision") > 0; second != tt.second && !tt.held {
					t.Errorf("windows were written again: %t, want %t", second, tt.second)
				}
				text := log.String()
				if strings.Contains(text, "as far as corrections reach") != tt.held {
					t.Errorf("windows held, as the log has it: %t, want %t\n%s", !tt.held, tt.held, text)
				}
				if n := strings.Count(text, "the clock was set"); n != len(tt.steps) {
					t.Errorf("%d of %d steps are reported\n%s", n, len(tt.steps), text)
				}
				if p := r.Status().Problems; len(p) == 0 || !strings.Contains(p[len(p)-1], "clock: set ") {
					t.Errorf("problems: %q", p)
				}
			})
		}
	})
}

// TestClockSetInFiles reads the rows of a collector whose clock was set back, by the rule of docs/series.md for files.
// A row there does not replace another: of the rows of a point the one with the highest revision counts.
func TestClockSetInFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &canned{workers: 1, batches: 25, frames: datagrams(t, 20), times: func(int, int) int64 { return time.Now().UnixNano() },
			waits: true, before: func(int) { time.Sleep(100 * time.Millisecond) }}
		clock := newSetClock()
		inner := src.before
		src.before = func(batch int) {
			inner(batch)
			if batch == 12 {
				clock.set(-800 * time.Millisecond)
			}
		}
		keep := &keeper{}
		c := newEngine(t, func(p *program) { p.Window, p.Instance = 200*time.Millisecond, "here" },
			Options{Now: clock.now, Sources: []Source{{Name: "memory", Source: src}}, Writers: []sink.WindowWriter{keep}, Detectors: []Detector{&onePerWindow{}}})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		type row struct{ revision, count int64 }
		rows, seen := map[string]row{}, map[string]bool{}
		reports, revised := uint64(0), 0
		for _, w := range keep.windows {
			reports += w.Reports
			for i := range w.Points() {
				p := &w.Points()[i]
				key := fmt.Sprint(p.Measurement, p.Tags, p.Time)
				if p.Measurement == "event" || p.Measurement == "path" {
					if seen[key] {
						t.Errorf("%s is written twice", key)
					}
					seen[key] = true
				}
				var x row
				for _, f := range p.Fields {
					switch f.Key {
					case "revision":
						x.revision = f.Int
					case "count":
						x.count = f.Int
					}
				}
				if p.Measurement != "hop" {
					continue
				}
				if old, second := rows[key]; second {
					revised++
					if x.revision <= old.revision || x.count < old.count {
						t.Errorf("%s is %+v and was %+v", key, x, old)
					}
				}
				rows[key] = x
			}
		}
		counted := int64(0)
		for _, x := range rows {
			counted += x.count
		}
		want := int64(0)
		for _, h := range c.Summary(0, 1000).Hops {
			want += int64(h.Reports)
		}
		if counted != want || reports != 500 || revised == 0 {
			t.Errorf("%d hop records of %d, %d reports, %d rows written again", counted, want, reports, revised)
		}
	})
}

// endsSeen are the times of windows as detectors see them.
type endsSeen struct{ ends []int64 }

func (e *endsSeen) Step(w *inference.Window) []inference.Finding {
	e.ends = append(e.ends, w.End)
	return nil
}

// Detectors see windows in the order in which they were counted, with times that only grow, and each report once.
func TestDetectorsWhileClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &canned{workers: 1, batches: 30, frames: datagrams(t, 20), times: func(int, int) int64 { return time.Now().UnixNano() }, waits: true}
		clock := newSetClock()
		src.before = func(batch int) {
			time.Sleep(100 * time.Millisecond)
			switch batch {
			case 5:
				clock.set(-time.Hour)
			case 10:
				clock.set(2 * time.Hour)
			case 20:
				clock.set(-500 * time.Millisecond)
			}
		}
		seen := &endsSeen{}
		c := newEngine(t, nil, Options{Now: clock.now, Sources: []Source{{Name: "memory", Source: src}}, Detectors: []Detector{seen}})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		for i, end := range seen.ends {
			if i > 0 && end-seen.ends[i-1] < int64(time.Millisecond) {
				t.Errorf("window %d ends at %d, the one before at %d", i, end, seen.ends[i-1])
			}
		}
		if len(seen.ends) < 15 {
			t.Errorf("%d windows", len(seen.ends))
		}
	})
}
