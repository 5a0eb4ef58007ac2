//go:build check

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
)

// Every query runs on a real server that holds a few points of every series, and finds something there.
func TestDashboardQueriesRun(t *testing.T) {
	s := servertest.StartInflux(t, servertest.Influx2)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(s.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	c := influx.DefaultConfig()
	c.URL, c.Org, c.Bucket, c.TokenFile = s.URL, s.Org, s.Bucket, token
	w, err := influx.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	points := examples(time.Now())
	for i := range points {
		if err := sink.CheckPoint(&points[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(t.Context(), &sink.Batch{Points: points}); err != nil {
		t.Fatal(err)
	}
	// What Grafana puts in the place of its variables.
	replace := strings.NewReplacer("${node:regex}", ".*", "${instance:regex}", ".*", "${exporter:regex}", ".*", "${flow}", "10.0.0.1:80 > 10.0.0.2:5001 tcp")
	prelude := fmt.Sprintf("option v = {timeRangeStart: -10m, timeRangeStop: now(), windowPeriod: 10s, defaultBucket: %q}\n", s.Bucket)
	for where, q := range loadDashboard(t).queries() {
		rows, err := s.Query(prelude + replace.Replace(q))
		if err != nil {
			t.Errorf("%s: %v\n%s", where, err, q)
		} else if len(rows) == 0 {
			t.Errorf("%s: finds nothing\n%s", where, q)
		}
	}
}
