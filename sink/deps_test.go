package sink

import (
	"os/exec"
	"strings"
	"testing"
)

// What the rooms of the sinks may not import, and why.
func TestImports(t *testing.T) {
	const ours = "github.com/hopscope/hopscope/"
	rooms := []struct {
		pkg       string
		forbidden map[string]string
	}{
		{".", map[string]string{
			ours + "decode/demux": "a sink knows windows, not reports", ours + "inference/shard": "a sink receives windows and makes none", ours + "ingest": "a sink is behind the pipeline", ours + "collector": "the engine drives the sinks",
			ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics",
			"github.com/goccy/go-yaml": "the program reads settings", "net/http": "the queue knows no protocol",
		}},
		{"./spool", map[string]string{ours + "sink/influx": "the spool keeps bytes", ours + "decode": "the spool keeps bytes", "net": "the spool is files", "log/slog": "the program logs"}},
		{"./influx", map[string]string{ours + "decode/demux": "a sink knows windows, not reports", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./jsonl", map[string]string{
			ours + "decode/demux": "a sink knows windows, not reports", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all",
			"log/slog": "the program logs", "net/http": "lines go to files", "encoding/json": "lines are written without reflection",
		}},
		{"./history", map[string]string{ours + "decode/demux": "a sink knows windows, not reports", ours + "inference/shard": "a sink makes no windows", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "net/http": "the history is files", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./kafka", map[string]string{ours + "decode/demux": "a sink knows windows, and reports that were decoded", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./notify/receiver", map[string]string{ours + "decode/demux": "a sink knows alerts, not reports", ours + "inference/shard": "a sink makes no windows", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./web", map[string]string{ours + "decode/demux": "a sink knows windows, not reports", ours + "inference/shard": "a sink receives windows and makes none", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./web/access", map[string]string{ours + "inference/events": "who may do what depends on no finding", ours + "collector": "the engine drives the sinks", ours + "cmd": "only the program sees all", "log/slog": "the program logs", "github.com/prometheus/": "the program has the metrics"}},
		{"./parquet", map[string]string{
			ours + "ingest": "a sink is behind the pipeline", ours + "cmd": "only the program sees all", "log/slog": "the program logs",
			"google.golang.org/grpc": "it would add megabytes to the program for Arrow's Flight, which nobody calls",
		}},
	}
	for _, room := range rooms {
		out, err := exec.Command("go", "list", "-deps", room.pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		for _, dep := range deps {
			if dep == ours+"ingest/retry" {
				continue // waits between attempts, and nothing of a source
			}
			for prefix, why := range room.forbidden {
				if dep == prefix || strings.HasPrefix(dep, strings.TrimSuffix(prefix, "/")+"/") && prefix != "net" {
					t.Errorf("%s imports %s: %s", room.pkg, dep, why)
				}
			}
		}
	}
}
