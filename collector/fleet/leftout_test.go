package fleet

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
)

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Ten times as many windows, records and bytes come to partitions as their limits allow. Each report that finds no
// room is in the sentence and the metric of its limit. One line of the log has it, though no window ends.
func TestConsumerLimits(t *testing.T) {
	const most, times = 2, 10
	const places = "consume.max_records and consume.max_open"
	for name, tt := range map[string]struct {
		setting             string
		collectors, windows int
		limit               func(cfg *Config, size int64)
	}{
		"windows": {places, 2, most * times, func(cfg *Config, _ int64) { cfg.MaxOpen = most }},
		"records": {places, 2, most * times, func(cfg *Config, _ int64) { cfg.MaxRecords = most }},
		"bytes":   {"consume.window_bytes", times + 1, 1, func(cfg *Config, size int64) { cfg.WindowBytes = size }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.collectors)
			var size int64 // of the largest record
			sent, first := uint64(0), [testSlices]uint64{}
			room := [testSlices]int{} // records that there is room for
			for p := range room {
				room[p] = most
				if tt.windows == 1 {
					room[p] = 1
				}
			}
			for _, name := range w.names[:tt.collectors-1] { // the last one is waited for, so that no window ends
				for n := range tt.windows {
					for _, r := range w.make(name, n) {
						w.send([]fleet.Out{r})
						size = max(size, int64(len(r.Value)))
						sent += r.Head.Reports
						if room[r.Partition] > 0 {
							room[r.Partition]--
							first[r.Partition] += r.Head.Reports
						}
					}
				}
			}
			w.at(tt.windows)
			var log lines
			c := w.consume("a", func(cfg *Config, o *Options) {
				cfg.Patience = 1000
				tt.limit(cfg, size)
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
			})
			want := sent
			for p := range first {
				want -= first[p]
			}
			if want < sent*8/10 {
				t.Fatalf("only %d of %d reports are to be left out", want, sent)
			}
			w.eventually(fmt.Sprintf("%d reports are left out", want), func() bool { return leftOut(t, c, tt.setting) == float64(want) })
			said := strings.Join(c.LeftOut(), "\n")
			if !strings.HasPrefix(said, inference.Count(want)+" reports of ") || !strings.HasSuffix(said, ": raise "+tt.setting) {
				t.Errorf("it says %q", said)
			}
			if n := strings.Count(log.String(), "left out by a limit"); n != 1 || !strings.Contains(log.String(), ": raise "+tt.setting) {
				t.Errorf("%d lines:\n%s", n, log.String())
			}
		})
	}
}

// leftOut is the metric of what a limit left out.
func leftOut(t *testing.T, c *consumer, setting string) float64 {
	t.Helper()
	var g prometheus.Gatherer = c.Registry()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "hopscope_left_out" && m.GetLabel()[0].GetValue() == setting {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}
