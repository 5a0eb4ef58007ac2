package collector

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestTwoCollectorsOneBucket lets two collectors count at the same time into one bucket. Under two names the store holds all that
// both counted, and neither has a problem to report. Under one name each learns of the other.
func TestTwoCollectorsOneBucket(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, server *servertest.Influx) {
		for _, names := range [][2]string{{"left", "right"}, {"same", "same"}} {
			t.Run(strings.Join(names[:], " and "), func(t *testing.T) {
				before := stored(server, "exporter", "reports")
				var both [2]*running
				var stops [2]func() uint64
				logs := [2]*logLines{{}, {}}
				for i, name := range names {
					cfg := storeConfig(t, server, name)
					cfg.Window = 200 * time.Millisecond
					both[i] = startWith(t, cfg, Options{Log: slog.New(slog.NewTextHandler(logs[i], nil))})
					stops[i] = send(t, both[i], 3, 2000) // the same seed: the same exporters, hops and flows
				}
				reported := func(r *running) bool {
					return slices.ContainsFunc(r.Status().Problems, func(p string) bool { return strings.HasPrefix(p, "instance: ") })
				}
				same := names[0] == names[1]
				if same {
					both[0].waitFor("both to know of each other", func() bool { return reported(both[0]) && reported(both[1]) })
				} else {
					time.Sleep(5 * time.Second) // twice the time between two checks
				}
				sent := int64(stops[0]() + stops[1]())
				for i, r := range both {
					if reported(r) != same {
						t.Errorf("problems of collector %d: %q", i, r.Status().Problems)
					}
					if r.NotReady() != nil {
						t.Errorf("collector %d is not ready: %q", i, r.NotReady())
					}
					r.stop()
					if text := logs[i].String(); strings.Contains(text, "another run writes under this instance's name") != same || strings.Contains(text, "cannot check") {
						t.Errorf("log of collector %d:\n%s", i, text)
					}
				}
				if got := stored(server, "exporter", "reports") - before; !same && got != sent {
					t.Errorf("the store counts %d reports of %d", got, sent)
				} else if same && got >= sent {
					t.Errorf("the store counts %d reports of %d; then names do not matter", got, sent)
				}
			})
		}
	})
}

// A run that follows another one under its name is no rival of it.
func TestRestartIsNoRival(t *testing.T) {
	testkit.Long(t)
	server := servertest.StartInflux(t, servertest.InfluxVersions[0])
	log := &logLines{}
	for range 2 {
		cfg := storeConfig(t, server, "here")
		r := startWith(t, cfg, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		time.Sleep(2500 * time.Millisecond)
		if p := r.Status().Problems; len(p) > 0 {
			t.Errorf("problems: %q", p)
		}
		r.stop()
	}
	if text := log.String(); strings.Contains(text, "another run") {
		t.Error(text)
	}
}

// What can be the name of an instance, and what it is where the settings say nothing.
func TestInstanceNames(t *testing.T) {
	for name, good := range map[string]bool{
		"": true, "a": true, "Collector-1.example_net": true, strings.Repeat("x", 253): true,
		strings.Repeat("x", 254): false, "a b": false, "a,b": false, "a=b": false, "ä": false, "a/b": false, "a\n": false, "'": false, `"`: false,
	} {
		cfg := testConfig()
		cfg.Instance = name
		if err := settings.Check(cfg); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	cfg := testConfig()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.InstanceName(); len(got) != len(host) || strings.ContainsFunc(got, notInName) {
		t.Errorf("the host %q gives the name %q", host, got)
	}
}
