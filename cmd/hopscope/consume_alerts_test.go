package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

// alertFleet is a fleet on a real broker with consumers that send alerts to one receiver. Its windows are of the recent past,
// so that they come as fast as they can be merged.
type alertFleet struct {
	*fleetTest
	hook    string
	rules   string // file of acknowledgements and mutes, which all consumers read
	start   int64
	windows int
	drops   []uint32 // nodes that drop packets now
	members map[string]*process

	seen int // of those that were published

	mu       sync.Mutex
	reported []reportedAlert
}

type reportedAlert struct {
	Status, Key, Finding string
	Time                 time.Time
}

func newAlertFleet(t *testing.T) *alertFleet {
	f := &alertFleet{
		fleetTest: newBareFleet(t), rules: filepath.Join(t.TempDir(), "alerts.yaml"), members: map[string]*process{},
		start: time.Now().Add(-10 * time.Minute).Truncate(time.Second).UnixNano(),
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var a reportedAlert
		if err := json.Unmarshal(body, &a); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		if err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		f.reported = append(f.reported, a)
		f.mu.Unlock()
	}))
	t.Cleanup(server.Close)
	f.hook = server.URL
	return f
}

func (f *alertFleet) join(name string) {
	f.t.Helper()
	settings := writeFile(f.t, fmt.Sprintf(`instance: %s
window: 1s
seed_file: %s
kafka: {brokers: [%q], prefix: %q, timeout: 2s}
consume: {session: 6s, drain: 2s, checkpoint: 200ms, corrections: 30m, patience: 1000}
alerts: {file: %q, repeat: 20s, heartbeat: 10s}
webhook: {enabled: true, url: %q, heartbeats: true, spool: {dir: %q}}
web: {listen: "127.0.0.1:0"}
log: {format: json}
`, name, f.seed, f.broker.Addr, f.broker.Prefix, f.rules, f.hook, f.t.TempDir()))
	f.members[name] = f.run(settings)
}

// kill ends the owner of the series with -9 and returns its name.
func (f *alertFleet) kill() string {
	f.t.Helper()
	_, owner := f.newest("series", 0, fleet.Whole)
	p := f.members[owner]
	if p == nil {
		f.t.Fatalf("%q owns the series", owner)
	}
	delete(f.members, owner)
	p.end(f.t, syscall.SIGKILL)
	return owner
}

// newest is the label of the last record of a kind, and whose it is.
func (f *alertFleet) newest(topic string, partition int, kind fleet.Kind) (label int64, from string) {
	for _, m := range f.broker.Read(f.broker.Prefix+topic, partition, 0) {
		if h, err := fleet.ReadHead(m.Header(fleet.HeaderKey)); err == nil && h.Kind == kind && h.End >= label {
			label, from = h.End, h.From
		}
	}
	return label, from
}

// pass lets windows pass, until they are published and in a checkpoint.
func (f *alertFleet) pass(n int) {
	f.t.Helper()
	for range n {
		f.windows++
		end := f.start + int64(f.windows)*1e9
		f.sendWith(0, end, func(p *window.Partial) {
			for _, node := range f.drops {
				p.AddDrops(&inference.DropStats{Node: node, Reason: 4, Count: 9, Last: end - 5})
			}
		})
		f.send(1, end)
	}
	want := f.start + int64(f.windows)*1e9
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(100 * time.Millisecond) {
		reported, _ := f.newest("series", 0, fleet.Whole)
		kept, _ := f.newest("state", 2*4, fleet.Chunk)
		if reported >= want && kept >= want {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d windows are reported, %d are in a checkpoint", (reported-f.start)/1e9, f.windows, (kept-f.start)/1e9)
		}
	}
}

// rule writes the file of acknowledgements and mutes, which has some, and waits until the owner of the series follows it.
func (f *alertFleet) rule(text string) {
	f.t.Helper()
	_, owner := f.newest("series", 0, fleet.Whole)
	reads := func() int { return strings.Count(f.members[owner].logged.text(), "acknowledgements and mutes read") }
	before := reads()
	next := f.rules + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, f.rules); err != nil {
		f.t.Fatal(err)
	}
	f.pass(3) // the next window has the file read, and a later one follows it
	testkit.Until(f.t, "the owner reads the file of rules", func() bool { return reads() > before })
	f.pass(1)
}

// expect wants alerts, and no others, since the last call. Signs of life up to now have to have come, too: what is killed next
// has nothing on its way.
func (f *alertFleet) expect(when, want string) {
	f.t.Helper()
	beat := f.start + int64((f.windows-1)/10*10+1)*1e9
	news := func() (text string, all bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		var out []string
		for _, a := range f.reported[f.seen:] {
			if a.Status != "heartbeat" {
				out = append(out, a.Status+" "+a.Key)
			}
		}
		all = slices.ContainsFunc(f.reported, func(a reportedAlert) bool { return a.Status == "heartbeat" && a.Time.UnixNano() == beat })
		return fmt.Sprint(out), all
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(50 * time.Millisecond) {
		if got, all := news(); got == want && all || time.Now().After(deadline) {
			break
		}
	}
	time.Sleep(500 * time.Millisecond) // for what is not to come
	if got, all := news(); got != want || !all {
		f.t.Errorf("%s: reported %s, want %s; all signs of life: %v", when, got, want, all)
	}
	f.mu.Lock()
	f.seen = len(f.reported)
	f.mu.Unlock()
}

// TestFleetAlerts kills the owner of a fleet twice while alerts are open, one of them acknowledged, and one muted. Each cause is sent
// once as firing, repeated at its time, and resolved once, and signs of life go on.
func TestFleetAlerts(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	f := newAlertFleet(t)
	f.join("c-1")
	f.join("c-2")
	f.pass(15)
	f.expect("quiet", "[]")
	f.drops = []uint32{40}
	f.pass(10)
	f.expect("drops", "[firing drops node 40]")

	first := f.kill()
	f.pass(15) // the owner that is gone sent it 10 windows ago
	f.expect("the next owner", "[repeated drops node 40]")
	f.rule("mutes: [{element: node 41}]\nacknowledged: [{alert: drops node 40, at: " + time.Now().UTC().Format(time.RFC3339) + "}]\n")
	f.drops = []uint32{40, 60}
	f.pass(2)
	f.drops = []uint32{40, 60, 41}
	f.pass(45)
	f.expect("acknowledged and muted", "[firing drops node 60 repeated drops node 60 repeated drops node 60]")

	f.join("c-3")
	second := f.kill()
	f.pass(40)
	f.expect("acknowledged and muted, by the third owner", "[repeated drops node 60 repeated drops node 60]")
	f.drops = []uint32{41}
	f.pass(45)
	f.expect("the end of two", "[resolved drops node 40 resolved drops node 60]")
	f.rule("mutes: [{element: node 99}]\n")
	f.expect("the mute ended", "[firing drops node 41]")
	f.drops = nil
	f.pass(45)
	f.expect("the end", "[resolved drops node 41]")

	if _, third := f.newest("series", 0, fleet.Whole); third == first || third == second || first == second {
		t.Errorf("owners were %s, %s and %s", first, second, third)
	}
	// Signs of life, which are of the windows that they came with: none is missing, and none is there twice.
	var beats []int64
	for _, a := range f.reported {
		if a.Status == "heartbeat" {
			beats = append(beats, (a.Time.UnixNano()-f.start)/1e9)
		}
	}
	var want []int64
	for n := beats[0]; n <= int64(f.windows); n += 10 {
		want = append(want, n)
	}
	if !slices.Equal(beats, want) || beats[0] != 1 {
		t.Errorf("signs of life at windows %v", beats)
	}
}
