package console

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// table is a roster that is there, or not.
type table struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func (r *table) Refresh(context.Context) (changed []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.values {
		changed = append(changed, key)
	}
	return changed, r.err
}

func (r *table) Get(key string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[key]
	return v, ok
}

// TestConsoleReady holds when a console is ready, what it says until then, and that each of its metrics is published.
func TestConsoleReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := &table{err: errors.New("no broker answers")}
		c := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Roster: records, Missing: func(context.Context) []string { return []string{"roster", "series"} }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx, nil) }()
		time.Sleep(time.Second)
		if got := c.NotReady(); got != "no broker answers" {
			t.Errorf("without a broker: %q", got)
		}
		if s := c.Status(); len(s.MissingTopics) != 2 || s.Problem != "no broker answers" {
			t.Errorf("without a broker: %+v", s)
		}
		records.mu.Lock()
		records.err = nil
		now := time.Now().UnixNano()
		member := func(name string, updated int64, left bool) {
			m := roster.Member{Role: roster.Collector, Name: name, Boot: 1, Version: "v9", Start: now, Updated: updated, Rate: 50, Left: left}
			if records.values == nil {
				records.values = map[string][]byte{}
			}
			records.values[roster.MemberKey(m.Role, m.Name)] = m.Append(nil)
		}
		member("a", now+int64(time.Hour), false)
		member("old", now-1, true)
		records.values["nonsense"] = []byte("{")
		records.mu.Unlock()
		time.Sleep(2 * MostWait)
		if got := c.NotReady(); got != "" {
			t.Errorf("with a roster: %q", got)
		}
		s := c.Status()
		states := map[string]string{}
		for _, m := range s.Members {
			states[m.Name] = m.State
		}
		if states["a"] != roster.Alive || states["old"] != roster.Left || s.ReportsPerSecond != 50 || !strings.Contains(strings.Join(s.Problems, "\n"), "no consumer runs") {
			t.Errorf("with a roster: %+v, %v", states, s.Problems)
		}
		published := map[string]bool{}
		families, err := c.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			published[f.GetName()] = true
		}
		for _, m := range Metrics {
			if !published[m.Name] && m.Name != metricReports.Name && m.Name != metricLeftOut.Name { // no member has a ledger, and there is no page
				t.Errorf("%s is not published", m.Name)
			}
		}
		cancel()
		<-done
	})
}
