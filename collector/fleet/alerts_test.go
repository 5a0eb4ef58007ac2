package fleet

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// ownerOf makes the owner of a fleet, with a receiver of alerts or without one.
func ownerOf(t *testing.T, alerts bool) *ownerTask {
	t.Helper()
	var cfg Config
	cfg.SetDefaults()
	limits, admission, events := testAnalysis()
	opt := Options{ID: "x", Log: slog.New(slog.DiscardHandler), Params: roster.NewParams("fleet", testSlices, testWindow, testSeed), Limits: limits, Admission: admission, Events: events}
	opt.Alerts.SetDefaults()
	opt.Alerts.File = filepath.Join(t.TempDir(), "alerts.yaml")
	if alerts {
		opt.Stores = []stores.Store{{Name: "webhook", Writer: &memory{points: map[string]string{}}, Queue: sink.DefaultQueueConfig(), Alerts: true}}
	}
	c, err := New(cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := c.newOwner(&worker{c: c, status: &shared[partitionStatus]{}})
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

// TestAlertsInCheckpoints hands the alerts of a fleet from one owner to the next: what is open is not sent again, and its end is.
// Checkpoints with alerts and without them are read by consumers with receivers and without.
func TestAlertsInCheckpoints(t *testing.T) {
	first := ownerOf(t, true)
	start := int64(1_800_000_000) * 1e9
	f := inference.Finding{ID: 5, Kind: inference.HighLatency, Severity: inference.Warning, Start: start, Node: 7, Element: inference.ElementOfNode(7)}
	emit := func(o *ownerTask, at int64, found ...inference.Finding) (out []string) {
		for _, a := range o.w.c.alerting.Step(at, found, nil) {
			if a.Status != notify.Heartbeat {
				out = append(out, a.Status.String()+" "+a.Key)
			}
		}
		return out
	}
	if got := emit(first, start, f); !reflect.DeepEqual(got, []string{"firing high-latency node 7"}) {
		t.Fatalf("reported %q", got)
	}
	state := first.appendState(nil)

	next := ownerOf(t, true)
	if err := next.readState(state); err != nil {
		t.Fatal(err)
	}
	if got := emit(next, start+1e9); got != nil { // the finding is still open, and no detector publishes it again
		t.Errorf("reported %q", got)
	}
	f.End = start + 2e9
	if got := emit(next, f.End, f); !reflect.DeepEqual(got, []string{"resolved high-latency node 7"}) {
		t.Errorf("reported %q", got)
	}

	plain := ownerOf(t, false)
	if err := plain.readState(state); err != nil {
		t.Errorf("without receivers: %v", err)
	}
	old := plain.appendState(nil)
	upgraded := ownerOf(t, true)
	if err := upgraded.readState(old); err != nil {
		t.Errorf("checkpoint of an earlier version: %v", err)
	}
	f.End = 0
	if got := emit(upgraded, start, f); !reflect.DeepEqual(got, []string{"firing high-latency node 7"}) {
		t.Errorf("reported %q", got)
	}
	if err := upgraded.readState(state[:len(state)-1]); err == nil {
		t.Error("a checkpoint that is cut is read")
	}
	// A consumer counts no reports of a receiver, and starts over from nothing when its partition comes again.
	if b := upgraded.w.c.Balances(); len(b) != 1 || b[0].Sink != "" {
		t.Errorf("balances %+v", b)
	}
	if _, err := upgraded.w.c.newOwner(upgraded.w); err != nil {
		t.Fatal(err)
	}
	if got := emit(upgraded, start, f); !reflect.DeepEqual(got, []string{"firing high-latency node 7"}) {
		t.Errorf("reported %q", got)
	}
}
