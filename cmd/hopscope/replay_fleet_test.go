package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// storedLines are the points of a store of JSON lines, the last one of each, without the fields that only a fleet has.
func storedLines(t *testing.T, file string, series ...string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range bytes.Lines(data) {
		var p struct {
			Measurement, Time string
			Tags              map[string]string
			Fields            map[string]json.RawMessage
		}
		if json.Unmarshal(line, &p) != nil {
			continue // it is being written
		}
		if !slices.Contains(series, p.Measurement) {
			continue
		}
		delete(p.Fields, "revision")
		fields, err := json.Marshal(p.Fields)
		if err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprint(p.Measurement, p.Time, p.Tags)] = string(fields)
	}
	return out
}

// Two collectors replay a half each of a capture into a fleet. Its consumer stores what one process stores of the whole
// capture: hops, exporters, busiest flows and paths. This includes digests and whatever goes through topic reports.
func TestReplayIntoAFleet(t *testing.T) {
	testkit.Long(t)
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	for _, tt := range []struct {
		name, file, settings string
		raw                  bool
	}{
		{"digests", frozen("pint-mininet.pcap.gz"), "window: 1s\nexporters: {profile: pint-mininet}\npint: {nodes: 0-127}\n", true},
		{"postcards without a flow", captures + "postcard-reports.pcap", "window: 1s\nexporters: {profile: postcard-braine}\n", false},
		{"all", captures + "geant-int10-reports.pcap", "window: 1s\nexporters: {profile: geant}\n", true},
		{"reports", captures + "geant-int10-reports.pcap", "window: 1s\nexporters: {profile: geant}\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prefix, which := strings.ReplaceAll(tt.name, " ", "-")+".", "needed"
			if tt.name == "all" {
				which = "all"
			}
			dir := t.TempDir()
			seed := filepath.Join(dir, "seed")
			if err := os.WriteFile(seed, []byte("a seed of tests, long enough"), 0o600); err != nil {
				t.Fatal(err)
			}
			settings := func(instance, more string) string {
				return settingsFile(t, fmt.Sprintf("instance: %s\nseed_file: %q\nlog: {format: json}\ndrain_timeout: 5m\n%s%s", instance, seed, tt.settings, more))
			}
			stored := func(name string) (file, settings string) {
				file = filepath.Join(dir, name+".jsonl")
				return file, fmt.Sprintf("jsonl: {enabled: true, path: %q, spool: {enabled: false}}\n", file)
			}
			bus := func(enabled bool, name string) string {
				return fmt.Sprintf("kafka: {enabled: %v, brokers: [%q], prefix: %q, slices: 2, reports: %s, spool: {dir: %q}}\n", enabled, b.Addr, prefix, which, filepath.Join(dir, name))
			}
			series := []string{"hop", "exporter", "flow", "path"}

			whole, store := stored("one")
			must(t, "replay", tt.file, "--config", settings("fleet", store))
			want := storedLines(t, whole, series...)
			if len(want) == 0 {
				t.Fatal("the capture gives no points")
			}

			must(t, "kafka", "topics", "create", "--config", settings("admin", bus(true, "admin")), "--retention", "30h")
			frames := readCapture(t, tt.file)
			for i, half := range [][]frame{frames[:len(frames)/2], frames[len(frames)/2:]} {
				name := fmt.Sprint("half-", i)
				must(t, "replay", writeCapture(t, half), "--config", settings(name, bus(true, name)))
			}
			reports := uint64(0)
			for i := range 2 {
				for _, m := range b.Read(prefix+"reports", i, 0) {
					if h, err := fleet.ReadHead(m.Header(fleet.HeaderKey)); err != nil || h.Kind == fleet.Reports {
						reports += h.Reports
					}
				}
			}
			if (reports > 0) != tt.raw {
				t.Errorf("%d reports went one by one", reports)
			}

			merged, store := stored("merged")
			var log bytes.Buffer
			cmd := command("consume", "--config", settings("consumer", bus(false, "c")+"web: {listen: \"127.0.0.1:0\"}\nconsume: {session: 6s, drain: 2s, checkpoint: 500ms, patience: 2}\n"+store))
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("%v\n%s", err, &log)
				}
			}()
			var got map[string]string
			for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
				if got = storedLines(t, merged, series...); maps.Equal(got, want) {
					return
				}
			}
			var diff []string
			for k, v := range want {
				if got[k] != v {
					diff = append(diff, fmt.Sprintf("%s\n\tgot  %s\n\twant %s", k, got[k], v))
				}
			}
			for k := range got {
				if want[k] == "" {
					diff = append(diff, "too much: "+k)
				}
			}
			slices.Sort(diff)
			t.Errorf("%d of %d points differ:\n%s", len(diff), len(want), strings.Join(diff[:min(8, len(diff))], "\n"))
		})
	}
}
