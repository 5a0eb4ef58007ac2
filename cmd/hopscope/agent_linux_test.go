package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/sink/web/ask"
	"golang.org/x/sys/unix"
)

// TestAgent runs an agent as a program in a network namespace of its own. The agent sends the probes of plan files,
// reports them when asked, and takes a new plan at SIGHUP. It keeps the old plan when the new one is wrong, and ends in
// order.
func TestAgent(t *testing.T) {
	dir := agentPlans(t)
	ownNetwork(t)
	var log lockedBuffer
	settings := writeFile(t, "window: 1s\n")
	collects := program("collect", "--config", settings)
	collects.Dir = dir
	if err := collects.Start(); err != nil {
		t.Fatal(err)
	}
	defer collects.Process.Kill()
	running := program("agent", "--interface", "host0", "--name", "leaf-1", "--probes", "probes.json", "--interval", "10ms")
	running.Dir, running.Stderr = dir, &log
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer running.Process.Kill()
	ask := func() (x agent.StatusAnswer) {
		out, err := program("agent", "status", "--format", "json").Output()
		if err == nil {
			err = json.Unmarshal(out, &x)
		}
		if err != nil {
			return agent.StatusAnswer{}
		}
		return x
	}
	until := func(what string, ok func(x *agent.StatusAnswer) bool) agent.StatusAnswer {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); ; time.Sleep(20 * time.Millisecond) {
			x := ask()
			if ok(&x) {
				return x
			}
			if time.Now().After(end) {
				t.Fatalf("there never is %s: %+v", what, x)
			}
		}
	}
	first := until("probe", func(x *agent.StatusAnswer) bool { return x.Sent > 3 })
	if first.Plan.Epoch == 0 || first.Plan.From != "files" || first.Address != "10.0.0.1" || first.SendErrors != 0 || first.Controller != nil {
		t.Errorf("%+v", first)
	}
	until("word of the probe that leaf-2 would send", func(x *agent.StatusAnswer) bool { return x.Silent == 1 && x.Awaited == 1 && x.Lost > 10 })
	if out, err := program("agent", "status").CombinedOutput(); err == nil || !strings.Contains(string(out), "agent     leaf-1, node 4246656764, 10.0.0.1 on host0\nplan      epoch ") ||
		!strings.Contains(string(out), "1 of 1 probes do not come, such as ") {
		t.Errorf("%v\n%s", err, out)
	}
	until("finding of it", func(*agent.StatusAnswer) bool { // the collector, which has no other reports, does not say that nothing is wrong
		out, _ := program("findings").CombinedOutput()
		return strings.Contains(string(out), "did not come to the agent with node id 4246656764")
	})
	if out, err := program("health", "--url", "http://127.0.0.1:9464").CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("%v\n%s", err, out)
	}
	good, err := os.ReadFile(filepath.Join(dir, "probes.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{good, []byte("{"), good} {
		if err := os.WriteFile(filepath.Join(dir, "probes.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		before := ask()
		if err := running.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if len(text) > 1 {
			until("later plan", func(x *agent.StatusAnswer) bool { return x.Plan.Epoch > before.Plan.Epoch })
			continue
		}
		until("word of a plan that is none", func(*agent.StatusAnswer) bool {
			return strings.Contains(log.text(), "plan refused; the one before stays in force")
		})
		if x := until("probe of the old plan", func(x *agent.StatusAnswer) bool { return x.Sent > before.Sent+3 }); x.Plan.Epoch != before.Plan.Epoch {
			t.Errorf("a plan that is no JSON is in force: %+v", x)
		}
		if out, err := program("agent", "status").CombinedOutput(); err == nil || !strings.Contains(string(out), "the last plan was refused: from files: plan ") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if err := running.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.text())
	}
	for _, want := range []string{"plan in force", "agent runs", "plan refused; the one before stays in force", "agent ends"} {
		if !strings.Contains(log.text(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.text())
		}
	}
	if out, err := program("agent", "status").CombinedOutput(); err == nil || !strings.Contains(string(out), "no agent answers at http://127.0.0.1:9464") {
		t.Errorf("%v\n%s", err, out)
	}
}

// ownNetwork puts the calling test into a network of its own, with two interfaces that are joined, and lo.
func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked, so that no other test finds itself there
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("this test makes a network namespace (%v), which needs CAP_SYS_ADMIN: run it as root, or under unshare --user --map-root-user --net", err)
	}
	for _, line := range []string{"link set lo up", "link add name host0 type veth peer name net0", "address add 10.0.0.1/24 dev host0", "link set host0 up", "link set net0 up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("this test joins two interfaces (ip %s: %v: %s), which needs iproute2 (.ci/namespaces.sh installs it) and CAP_NET_ADMIN", line, err, out)
		}
	}
}

// TestAgentSTAMP runs a reflector and an agent that measures to it and to an absent one, as in the page of the agent.
// The status has both, and the collector has a finding, although no switch reports to it.
func TestAgentSTAMP(t *testing.T) {
	ownNetwork(t)
	dir := t.TempDir()
	run := func(args ...string) {
		c := program(args...)
		c.Dir, c.Stderr = dir, t.Output()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			_ = c.Wait() // it was killed
		})
	}
	run("collect", "--config", writeFile(t, "window: 1s\n"))
	run("agent", "--name", "far", "--reflect", "862", "--config", writeFile(t, "status: {listen: \"127.0.0.1:9465\"}\n"))
	run("agent", "--name", "near", "--stamp", "127.0.0.1", "--stamp", "10.0.0.9:8620")
	testkit.Until(t, "the agent measures, and reports the silence", func() bool {
		var x agent.StatusAnswer
		out, err := program("agent", "status", "--format", "json").Output()
		return err == nil && json.Unmarshal(out, &x) == nil && len(x.STAMP) == 2 && x.STAMP[0].Received > 10 && x.STAMP[0].Trip.P50 > 0 && x.STAMP[1].Silent
	})
	out, err := program("agent", "status").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "agent  near, node ") || !strings.Contains(string(out), ", of STAMP alone\n") || !strings.Contains(string(out), "\n127.0.0.1      ") ||
		!strings.Contains(string(out), "1 of 2 sessions of STAMP have no answers, such as 10.0.0.9:8620") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := program("agent", "status", "--url", "http://127.0.0.1:9465").CombinedOutput(); err != nil || !strings.Contains(string(out), "reflector  127.0.0.1:862: ") {
		t.Errorf("%v\n%s", err, out)
	}
	testkit.Until(t, "the silence is a finding", func() bool {
		out, _ := program("findings").CombinedOutput()
		return strings.Contains(string(out), "did not come to the agent with node id ") && strings.Contains(string(out), "> 10.0.0.9:862 udp") &&
			strings.Contains(string(out), "path 2 from 10.0.0.1 to 10.0.0.9 lost ")
	})
	testkit.Until(t, "the paths of both sessions are in a table", func() bool {
		var x ask.Probed
		out, err := program("top", "--probes", "--format", "json").Output()
		if err != nil || json.Unmarshal(out, &x) != nil || len(x.Paths) != 2 {
			return false
		}
		gone, near := x.Paths[0], x.Paths[1]
		return gone.To == "10.0.0.9" && gone.Received == 0 && gone.Lost > 0 && near.To == "127.0.0.1" && near.Path == 1 && near.Received > 0 && near.Lost == 0 && *near.DelayP99 > 0
	})
	if out, err := program("top", "--probes").CombinedOutput(); err != nil || !strings.Contains(string(out), "10.0.0.1   10.0.0.9   2 ") {
		t.Errorf("%v\n%s", err, out)
	}
}
