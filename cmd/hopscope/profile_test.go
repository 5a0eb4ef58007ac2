package main

import (
	"encoding/json"
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
	if out, err := program("config", "profiles", "nope").CombinedOutput(); err == nil || !strings.Contains(string(out), `no profile "nope"`) {
		t.Errorf("an unknown profile: %s, %v", out, err)
	}
}
