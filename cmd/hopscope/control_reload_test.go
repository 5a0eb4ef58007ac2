package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
)

// TestControlReload changes the network under a running control. At SIGHUP a leaf with its agent and its probes comes,
// a link goes, and another switch replaces one with entries. Suspicious links stay so. Files that do not fit are
// refused and change nothing, and a control that is killed in between continues with its files.
func TestControlReload(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"open": [{"id": "00000000000000a1", "kind": "high-queue", "severity": "critical", "node": "1", "egress_if": "1", "start_ms": 1, "end_ms": 0, "text": "a queue", "element": {"kind": "interface", "node": 1, "egress_if": 1}}], "ended": []}`)
	}))
	defer web.Close()
	dir, config, listen, admin := controlSettings(t, web.URL)
	certificates(t, dir, "controller", "leaf-1", "leaf-2", "leaf-3")
	at := func(name string) string { return filepath.Join(dir, name) }
	small := string(mustRead(t, at("lab.yaml")))
	settings := string(mustRead(t, config))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("small.json", string(mustRead(t, at("probes.json"))))
	large := strings.NewReplacer("  - spine-1\n", "  - {name: leaf-3, host_ports: [9]}\n  - spine-1\n", ", [leaf-2, spine-2]]", ", [leaf-3, spine-1], [leaf-3, spine-2]]").Replace(small)
	write("large.yaml", large)
	plan, err := program("plan", "cover", "--sr=int-probe", "--depots", "leaf-1,leaf-2,leaf-3", "--max-hops", "2", "--topology", at("large.yaml"), "--replan", at("small.json"), "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}

	var log *bytes.Buffer
	var c *exec.Cmd
	start := func() {
		log = &bytes.Buffer{}
		c = program("control", "--config", config)
		c.Stderr = log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	end := func(kill bool) {
		t.Helper()
		if kill {
			_ = c.Process.Kill()
		} else {
			_ = c.Process.Signal(os.Interrupt)
		}
		if err := c.Wait(); err != nil && !kill {
			t.Errorf("control ends with %v\n%s", err, log)
		}
	}
	start()
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	until := func(what string, ok func(s *loop.Status, status int) bool) (s loop.Status) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			cmd := program("control", "status", "--url", admin, "--format", "json")
			out, _ := cmd.Output()
			if s = (loop.Status{}); json.Unmarshal(out, &s) == nil && ok(&s, cmd.ProcessState.ExitCode()) {
				return s
			}
		}
		end(true)
		t.Fatalf("%s: it never came about: %+v\n%s", what, s, log)
		return s
	}
	hangup := func() {
		t.Helper()
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agents := map[string]*pretender{"leaf-1": {}, "leaf-2": {}, "leaf-3": {}}
	for name, p := range agents {
		go func() {
			for ctx.Err() == nil {
				_ = p.follow(ctx, dir, listen, name)
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	steady := func(s *loop.Status) bool { return s.Phase == "steady" && s.InForce == s.Epoch && s.Epoch > 0 }
	has := func(file string) bool {
		b, err := os.ReadFile(at(file))
		return err == nil && strings.Contains(string(b), `"egress.port_mtu"`)
	}
	first := until("a suspect", func(s *loop.Status, status int) bool {
		return status == 0 && steady(s) && len(s.Suspects) == 1 && s.Detailed > 0
	})
	if len(first.Devices) != 3 || !has("spine-1.json") {
		t.Errorf("at first: %+v", first)
	}

	// What is wrong changes nothing, and says why.
	for _, bad := range []struct{ file, text, want string }{
		{"lab.yaml", "name: lab\nnodes: [a", "lab.yaml"},
		{"lab.yaml", strings.Replace(small, "[leaf-1, spine-2], ", "", 1), "does not lead to"},
		{"probes.json", "{", "probes.json"},
		{"control.yaml", strings.Replace(settings, "interval: 50ms", "interval: 1us", 1), "plan.interval"},
		{"control.yaml", strings.Replace(settings, "program: srint", "program: srint, commit: true", 1), "only the entries of a switch can change"},
	} {
		good := string(mustRead(t, at(bad.file)))
		write(bad.file, bad.text)
		before := until("a status", func(*loop.Status, int) bool { return true })
		hangup()
		s := until("refused "+bad.file, func(s *loop.Status, status int) bool {
			return status == exitFailed && s.Loop.NetworksRefused > before.Loop.NetworksRefused
		})
		if !strings.Contains(s.Loop.NetworkRefused, bad.want) || s.Epoch != first.Epoch || s.Loop.Networks != 0 || !steady(&s) {
			t.Errorf("%s is not refused for %q: %+v", bad.file, bad.want, s)
		}
		write(bad.file, good)
	}

	// The larger network: a leaf, its agent and its probes come, a link goes, and entries move from one switch to another.
	become := func(topology, probes, sw string) {
		write("lab.yaml", topology)
		write("probes.json", probes)
		write("control.yaml", strings.NewReplacer("spine-1", sw).Replace(settings)+"log: {level: info}\n")
		hangup()
	}
	become(large, string(plan), "spine-2")
	grown := until("the larger network", func(s *loop.Status, status int) bool {
		return status == 0 && s.Loop.Networks == 1 && steady(s) && len(s.Devices) == 4 && s.Behind == 0 && s.Detailed > 0
	})
	if grown.Epoch <= first.Epoch || len(grown.Suspects) != 1 || grown.Suspects[0].Since != first.Suspects[0].Since || grown.Loop.NetworkRefused != "" {
		t.Errorf("after epoch %d and suspects %+v: %+v", first.Epoch, first.Suspects, grown)
	}
	if has("spine-1.json") || !has("spine-2.json") {
		t.Error("entries are left at the switch that has gone, or missing at the one that has come")
	}
	agents["leaf-3"].mu.Lock()
	if n := len(agents["leaf-3"].plans); n == 0 || len(agents["leaf-3"].plans[n-1].GetProbes()) == 0 {
		t.Error("the new agent has no probes")
	}
	agents["leaf-3"].mu.Unlock()
	out, err := program("control", "log", "--url", admin, "--lines", "1000").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "network-changed") || !strings.Contains(string(out), "network-refused") {
		t.Errorf("log: %v\n%s", err, out)
	}

	// Back again, and killed before it is known how far it came. The next life does what is in the files.
	become(small, string(mustRead(t, at("small.json"))), "spine-1")
	end(true)
	start()
	until("the smaller network", func(s *loop.Status, status int) bool {
		return status == 0 && steady(s) && s.Epoch > grown.Epoch && len(s.Devices) == 3 && has("spine-1.json")
	})
	// And once more by a reload, so that an agent leaves while it follows, and comes back over the same connection.
	for _, n := range []struct {
		topology, probes, sw string
		devices              int
	}{{large, string(plan), "spine-2", 4}, {small, string(mustRead(t, at("small.json"))), "spine-1", 3}, {large, string(plan), "spine-2", 4}} {
		before := until("a status", func(*loop.Status, int) bool { return true })
		become(n.topology, n.probes, n.sw)
		until("another network", func(s *loop.Status, status int) bool {
			return status == 0 && s.Loop.Networks > before.Loop.Networks && steady(s) && s.Epoch > before.Epoch && len(s.Devices) == n.devices && has(n.sw+".json")
		})
		agents["leaf-3"].mu.Lock()
		last := agents["leaf-3"].plans[len(agents["leaf-3"].plans)-1]
		if (len(last.GetProbes()) > 0) != (n.devices == 4) {
			t.Errorf("with %d devices the agent that comes and goes has %d probes", n.devices, len(last.GetProbes()))
		}
		agents["leaf-3"].mu.Unlock()
	}
	end(false)
	cancel()
	for name, p := range agents {
		p.mu.Lock()
		if !slices.IsSortedFunc(p.plans, func(a, b *agentpb.Plan) int { return int(a.GetEpoch()) - int(b.GetEpoch()) }) {
			t.Errorf("epochs of agent %s do not grow", name)
		}
		p.mu.Unlock()
	}
}
