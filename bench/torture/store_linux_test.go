//go:build torture

package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

// held is the content of a store, by its own count.
type held struct {
	reports  int64            // sum of exporter.reports
	lost     int64            // sum of exporter.lost
	down     int64            // sum of exporter.down
	hops     int64            // sum of hop.count
	points   int64            // points of all series: one for each series and time
	bySeries map[string]int64 // the same by measurement
}

// count asks the store for all that it has.
func count(t *testing.T, s *servertest.Influx) held {
	t.Helper()
	h := held{bySeries: map[string]int64{}}
	points := map[string]bool{}
	rows := s.MustQuery(`from(bucket: BUCKET) |> range(start: -2h, stop: 2h) |> filter(fn: (r) => not exists r.writer)`)
	for _, row := range rows {
		var key strings.Builder
		for _, k := range slices.Sorted(maps.Keys(row)) {
			if k != "_field" && k != "_value" && k != "_start" && k != "_stop" && k != "result" && k != "table" {
				fmt.Fprintf(&key, "%s=%v ", k, row[k])
			}
		}
		measurement := row["_measurement"].(string)
		if !points[key.String()] {
			points[key.String()] = true
			h.points++
			h.bySeries[measurement]++
		}
		n, ok := row["_value"].(int64)
		if !ok {
			continue
		}
		switch measurement + "." + row["_field"].(string) {
		case "exporter.reports":
			h.reports += n
		case "exporter.lost":
			h.lost += n
		case "exporter.down":
			h.down += n
		case "hop.count":
			h.hops += n
		}
	}
	return h
}

// balance fills in r from what was sent, what the store has and what the runs said that they lost. Losses by sequence
// numbers are those that the store has, or those of the summaries if windows may be gone with what they held.
func (p *place) balance(r *result, sent int64, fromStore bool) held {
	p.t.Helper()
	h := count(p.t, p.opt.server)
	// A report counts as stored by its hops. The rows of exporters are another count of the same. If windows were
	// lost, the two differ by the reports that were between them when a window ended.
	r.Sent, r.Stored = sent, h.hops/hops
	if h.hops%hops != 0 {
		p.t.Errorf("the store has %d hops, which is no multiple of %d", h.hops, hops)
	}
	lossy := false
	for _, run := range p.runs {
		lossy = lossy || run.summary == nil
		if run.summary != nil {
			lossy = lossy || run.summary.Ledger.Dropped["spool"]+run.summary.Ledger.Dropped["sink-queue"]+run.summary.Ledger.Dropped["rejected"] > 0
		}
	}
	if !lossy && h.hops != hops*h.reports {
		p.t.Errorf("the store has %d reports of exporters and %d hops, which is not %d each", h.reports, h.hops, hops)
		r.Unaccounted = max(r.Unaccounted, h.reports-h.hops/hops)
		r.Doubled = max(r.Doubled, h.hops/hops-h.reports)
	}
	if fromStore {
		r.Lost["on the way"] += h.lost
		r.Lost["down"] += h.down
	}
	for _, run := range p.runs {
		if run.summary == nil {
			continue
		}
		if !fromStore {
			for _, e := range run.summary.Exporters {
				r.Lost["on the way"] += e.Lost
			}
		}
		for stage, n := range run.summary.Ledger.Dropped {
			if stage != "kernel" && (stage != "down" || !fromStore) { // the sequence numbers have counted it already
				r.Lost[stage] += n
			}
		}
	}
	if n := len(p.runs); n > 0 && p.runs[n-1].summary != nil {
		if left := sum(p.runs[n-1].summary.Ledger.InFlight); left != 0 {
			p.t.Errorf("the last run left %v in flight", p.runs[n-1].summary.Ledger.InFlight)
		}
	}
	r.settle()
	return h
}

func startStore(t *testing.T, version string) *servertest.Influx {
	t.Helper()
	return servertest.StartInflux(t, version)
}

// trailer sends the last reports slowly, so that numbers which are missing before them are reported.
func (s *sender) trailer() {
	s.send(exporters*20, 2000)
	time.Sleep(700 * time.Millisecond) // windows end
}
