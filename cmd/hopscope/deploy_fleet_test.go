package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// units are the services of deploy.
func units(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(deploy + "*.service")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no units: %v", err)
	}
	return paths
}

// systemd takes the units as they are, but for the path of the program.
func TestUnitsVerify(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd on this machine; the other tests of units ran")
		return
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range units(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), "=/usr/bin/hopscope ", "="+program+" ")
		if changed == string(text) {
			t.Errorf("%s does not start /usr/bin/hopscope", path)
		}
		copied := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool, "verify", copied).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
