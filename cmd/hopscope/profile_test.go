package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/demux"
)

func TestConfigProfiles(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		out, err := program(append([]string{"config", "profiles"}, args...)...).Output()
		if err != nil {
			t.Fatalf("config profiles %q: %v", args, err)
		}
		return string(out)
	}
	table := run()
	var list []demux.Description
	if err := json.Unmarshal([]byte(run("--format", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for i, name := range demux.Profiles() {
		if !strings.Contains(table, "\n"+name+" ") || list[i].Name != name {
			t.Errorf("%s is missing in the list", name)
		}
	}
	for _, want := range []string{"report ports     8090", "DSCP 0x20 mask 0x3f", "64-bit times", "hop latency      us"} {
		if got := run("geant"); !strings.Contains(got, want) {
			t.Errorf("geant lacks %q:\n%s", want, got)
		}
	}
	var one demux.Description
	if err := json.Unmarshal([]byte(run("fabric-tna", "--format", "json")), &one); err != nil || one.DropReasons[29] != "no route" {
		t.Errorf("fabric-tna: %+v, %v", one, err)
	}
	file := filepath.Join(t.TempDir(), "hopscope.yaml")
	text := "exporters:\n  dialects:\n    - {name: my-switch, base: geant, units: {queue_bytes: 80}, wrong_fields: [queue_id]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("my-switch", "--config", file); !strings.Contains(got, "1 is 80 B") || !strings.Contains(got, "queue_id of every hop: the settings say so") {
		t.Errorf("my-switch:\n%s", got)
	}
	if got := run("--config", file); !strings.Contains(got, "\nmy-switch ") {
		t.Errorf("my-switch is missing in the list:\n%s", got)
	}
	if out, err := program("config", "profiles", "nope").CombinedOutput(); err == nil || !strings.Contains(string(out), `no profile "nope"`) {
		t.Errorf("an unknown profile: %s, %v", out, err)
	}
}
