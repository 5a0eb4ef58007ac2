package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// TestDemoEverything runs the demonstration with all planning systems, and waits until the page shows of each what it
// decided, what is installed, and what it brought.
func TestDemoEverything(t *testing.T) {
	testkit.Long(t)
	dir := t.TempDir()
	log := &lockedBuffer{}
	board := filepath.Join(dir, "night.yaml")
	if err := os.WriteFile(board, []byte("title: Night shift\npanels: [{link: \"5:3\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program("demo", "--everything", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", dir, "--dashboard", board)
	c.Stdout = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("the demonstration ends with %v", err)
		}
	})
	page := ""
	within(t, "the address of the page", func() bool {
		_, rest, ok := strings.Cut(log.text(), "The page:")
		page, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
		return ok && page != ""
	})
	if boards := get(t, page+"api/dashboards", 200); !strings.Contains(boards, `"title":"Night shift"`) || strings.Contains(boards, `"problem"`) {
		t.Errorf("the page offers the dashboards %s", boards)
	}
	var list ask.SystemList
	system := func(name string) (s ask.System) {
		for _, x := range list.Systems {
			if x.System == name {
				s = x
			}
		}
		return s
	}
	carried := regexp.MustCompile(`servers receive [0-9.]*[1-9][0-9.]* Mbit/s of reports; switches sent [1-9]`)
	const interfaces = "20 of 20 assigned interfaces are reported"
	if !testkit.Await(func() bool {
		list = ask.SystemList{}
		if err := json.Unmarshal([]byte(get(t, page+"api/systems", 200)), &list); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"probes", "into", "pint", "fant", "rft"} {
			if s := system(name); s.State != ask.SystemInForce || len(s.Decided) == 0 || len(s.Installed) == 0 || len(s.Brought) == 0 {
				return false
			}
		}
		return strings.Contains(strings.Join(system("into").Brought, "; "), interfaces) && strings.Contains(strings.Join(system("into").Installed, "; "), "6 of 6 switches hold") &&
			len(carried.FindStringSubmatch(strings.Join(system("rft").Brought, "; "))) > 0
	}) {
		t.Errorf("not all systems are in force: %+v", list)
	}
	if brought := strings.Join(system("rft").Brought, "; "); !strings.Contains(brought, "refused 0 reports") {
		t.Errorf("reports are lost while assignments change: %s", brought)
	}
	for _, name := range []string{"into.json", "rft.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a plan is not kept: %v", err)
		}
	}
}
