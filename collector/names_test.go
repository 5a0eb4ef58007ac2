package collector

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

// nameKeeper keeps the names in windows.
type nameKeeper struct {
	mu       sync.Mutex
	reported []names.Row // in all windows
	windows  int
}

func (*nameKeeper) Name() string                { return "names" }
func (*nameKeeper) Close(context.Context) error { return nil }
func (k *nameKeeper) WriteWindow(_ context.Context, w *sink.Window) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reported, k.windows = append(k.reported, w.Names...), k.windows+1
	return nil
}

func (k *nameKeeper) text() (all string, windows int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.reported {
		all += r.Name + " "
	}
	return all, k.windows
}

// TestInventory changes the inventory of a running collector. Windows hold names only when they change, and a broken
// file leaves everything as it was.
func TestInventory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig()
	cfg.Inventory = path
	if _, err := New(cfg.Config, cfg.Analysis, Options{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("without the file: %v", err)
	}
	write("nodes: [{id: 1, name: a}]\n")
	var k nameKeeper
	c := startWith(t, cfg, Options{Writers: []sink.WindowWriter{&k}})
	settle := func(want string) {
		t.Helper()
		_, before := k.text()
		c.waitFor("windows", func() bool { _, n := k.text(); return n > before+3 })
		if got, _ := k.text(); got != want {
			t.Errorf("windows reported %q, want %q", got, want)
		}
	}
	settle("a ")
	reload := func() {
		t.Helper()
		if err := c.Reload(cfg.Config, cfg.Analysis); err != nil {
			t.Fatal(err)
		}
	}
	write("nodes: [{id: 1, name: b}]\n")
	reload()
	settle("a b ")
	reload()
	settle("a b ")
	write("nodes: [{id: 1, name: b}, {id: 1}]\n")
	reload()
	settle("a b ")
	if got := c.Names().Node(1); got != "b (1)" {
		t.Errorf("after a broken file: %q", got)
	}
	if p := strings.Join(c.Status().Problems, "\n"); !strings.Contains(p, "listed in line 1, too") {
		t.Errorf("the problems are %q", p)
	}
	if got := scrapeValue(t, c.Collector, mNamesFailed.Name); got != 1 {
		t.Errorf("%v failures, want 1", got)
	}
	write("nodes: [{id: 1, name: c}]\n")
	reload()
	settle("a b c ")
	if p := c.Status().Problems; len(p) != 0 {
		t.Errorf("the problems are %q", p)
	}
	c.stop()
}

// scrapeValue returns a metric without labels.
func scrapeValue(t *testing.T, c *Collector, name string) float64 {
	t.Helper()
	families, err := c.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestDropReasonsAreNamed names the drop reasons of a dialect without an inventory, too.
func TestDropReasonsAreNamed(t *testing.T) {
	own := &Exporters{Profile: "auto", Profiles: []ExporterProfile{{Prefix: "10.0.0.0/8", Profile: "mine"}},
		Dialects: []Dialect{{Name: "mine", Base: "fabric-tna", DropReasons: []DialectReason{{Reason: 200, Name: "no service"}}}}}
	var n inventory.Keeper
	if err := OpenNames(&n, &Config{Exporters: *own}, &Analysis{}, &Options{}); err != nil {
		t.Fatal(err)
	}
	if got := n.Names().Text("for reason 200"); got != "for reason no service (200)" {
		t.Errorf("without an inventory: %q", got)
	}
}
