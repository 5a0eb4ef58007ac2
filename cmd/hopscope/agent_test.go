package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agentPlans plans probes for a small network, as the page of the agent does, and returns where the files are.
func agentPlans(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	topology := "name: lab\nnodes:\n  - {name: leaf-1, host_ports: [9]}\n  - {name: leaf-2, host_ports: [9]}\n  - spine-1\n  - spine-2\n" +
		"links: [[leaf-1, spine-1], [leaf-1, spine-2], [leaf-2, spine-1], [leaf-2, spine-2]]\n"
	if err := os.WriteFile(at("lab.yaml"), []byte(topology), 0o600); err != nil {
		t.Fatal(err)
	}
	save := func(name string, args ...string) {
		out, err := program(append(args, "--topology", at("lab.yaml"), "--format", "json")...).Output()
		if err != nil {
			t.Fatalf("hopscope %q: %v", args, err)
		}
		if err := os.WriteFile(at(name), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("probes.json", "plan", "cover", "--sr=int-probe", "--depots", "leaf-1,leaf-2", "--max-hops", "2")
	save("path.json", "plan", "cover", "--sr", "--depots", "leaf-1,leaf-2", "--max-hops", "2")
	save("schedule.json", "plan", "schedule", "--probes", at("probes.json"), "--period", "100ms")
	save("attention.json", "plan", "attention", "--probes", at("probes.json"), "--suspicious", "leaf-1--spine-1")
	return dir
}

// TestAgentCheck says what an agent would do with plans as they are written, and what is wrong with others.
func TestAgentCheck(t *testing.T) {
	dir := agentPlans(t)
	settings := func(text string) string { return writeFile(t, text) }
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--interface x --name leaf-1 --probes probes.json", 0, "no problems; agent leaf-1\nsends "},
		{"--interface x --name leaf-1 --probes probes.json --schedule schedule.json --attention attention.json", 0, "of them in detail"},
		{"--interface x --name core-1 --probes probes.json", 0, `no probe of the plan is sent by "core-1": its agents are leaf-1`},
		{"--interface x", 0, "no problems; there is no plan: name files"},
		{"--interface x", 0, "\nthis machine has no interface x; "},
		{"--interface x --name leaf-1 --probes probes.json", 0, "\nthis machine has no interface x; "},
		{"--stamp 192.0.2.1 --stamp 192.0.2.2:8620", 0, "no problems; there is no interface, and so STAMP alone\nsends 2 sessions of STAMP, 20 packets a second, at most 20.8 kbit/s, without authentication\n"},
		{"--reflect 8620 --reflect 192.0.2.6:8620", 0, "answers STAMP at 127.0.0.1:8620, to programs of this machine\nanswers STAMP at 192.0.2.6:8620, to all that reach it\n"},
		{"--interface x --name leaf-1 --probes probes.json --reflect 8620", 0, "answers STAMP at 127.0.0.1:8620"},
		{"--reflect eth0", exitUsage, "stamp.reflector.listen[0]: "},
		{"--config " + settings("stamp: {sessions: [{to: a}], keys: nowhere}"), exitUsage, "stamp.keys: open nowhere"},
		{"--config " + settings("stamp: {sessions: [{to: \"192.0.2.1\", ioam: true}]}"), exitUsage, "stamp.sessions[0]: ioam needs IPv6, and to is 192.0.2.1"},
		{"--config " + settings("stamp: {sessions: [{to: a, dscps: [0, 64]}]}"), exitUsage, "stamp.sessions[0].dscps: "},
		{"--config " + settings("stamp: {ioam: {nodes: 21}, sessions: [{to: a, ioam: true}]}"), exitUsage, "stamp.ioam.nodes: 21 routers with 12 bytes each are more than the 244 bytes that routers take"},
		{"--config " + settings("stamp: {sessions: [{to: \"2001:db8::1\", ioam: true, dscps: [0, 46]}, {to: b, segments: [\"2001:db8::2\"]}], reflector: {listen: [\"8620\"], ioam: true}}"), 0,
			"2 of them with an IOAM trace of namespace 0 and type 0xc20000, for 8 routers with 12 bytes each; this needs CAP_NET_RAW\n1 of them over segments of SRv6\n" +
				"answers STAMP at 127.0.0.1:8620, to programs of this machine; reports their IOAM traces\n"},
		{"", exitUsage, "interface: is missing; \"ip link\" lists them, and stamp.sessions or stamp.reflector.listen need none"},
		{"--probes probes.json", exitUsage, "interface: is missing"},
		{"--interface x --probes path.json", exitUsage, "a route of INT-path has no place for an INT header: plan with --sr=int-probe"},
		{"--interface x --probes schedule.json", exitUsage, `this is a plan of kind "schedule"`},
		{"--interface x --probes nowhere.json", exitUsage, "no such file"},
		{"--interface x --schedule schedule.json", exitUsage, "plan.probes: are missing"},
		{"--interface x --name leaf-1 --probes probes.json --interval 1us", exitUsage, "plan.interval: "},
		{"--interface x --name leaf-1 --probes probes.json --interval 20us", exitUsage, "probes a second, and its limit is 10000 (probes_per_second)"},
		{"--interface x --dialect y", exitUsage, "plan.dialect: "},
		{"--interface x --probes probes.json --config " + settings("controller: {address: \"c:1\", name: c, ca_file: a, cert_file: b, key_file: c}"), exitUsage, "controller: plan names files too"},
		{"--interface x --config " + settings("controller: {address: \"c:1\", name: c, ca_file: nowhere.pem, cert_file: b, key_file: c}"), exitUsage, "controller.ca_file: open nowhere.pem"},
		{"--config " + settings("interface: x\nnope: 1\n"), exitUsage, "nope"},
		{"--config " + settings("interface: x\nname: leaf-1\n") + " --probes probes.json", 0, "agent leaf-1"},
	} {
		cmd := program(append([]string{"agent", "--check"}, strings.Fields(c.args)...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		status := 0
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			status = e.ExitCode()
		}
		if status != c.status || !strings.Contains(string(out), c.want) {
			t.Errorf("agent --check %s: status %d, want %d\n%s\nwant %q", c.args, status, c.status, out, c.want)
		}
	}
}

// TestAgentTraces has the status of a reflector name the outcomes of traces, where there are some.
func TestAgentTraces(t *testing.T) {
	for _, c := range []struct{ traces, want string }{
		{`,"traces":{"whole":5,"empty":2}`, "traces     5 whole, 0 without room for all routers, 2 that no router filled in, 0 malformed\n"}, {"", ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"name":"far","reflector":{"listen":["[2001:db8:9::2]:8620"],"answered":7`+c.traces+`}}`)
		}))
		defer s.Close()
		out, err := program("agent", "status", "--url", s.URL).Output()
		if _, line, _ := strings.Cut(string(out), " sessions\n"); err != nil || line != c.want {
			t.Errorf("%v\n%s\nwant %q", err, out, c.want)
		}
	}
}

// TestAgentWays asks two agents for the ways of their ports, and holds what is chosen of them.
func TestAgentWays(t *testing.T) {
	serve := func(status string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, status) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	way := func(from, to string, port int, epoch int, hops string) string {
		return fmt.Sprintf(`{"name":"%s %d","way":{"from":"%s","to":"%s","port":%d,"hops":[%s],"epoch":%d}}`, to, port, from, to, port, hops, epoch)
	}
	one := serve(`{"stamp":[` + strings.Join([]string{
		way("10.0.0.1", "10.0.0.2", 49152, 1, `"10.1.0.1","10.2.0.1"`), way("10.0.0.1", "10.0.0.2", 49153, 2, `"10.1.0.1","10.2.0.2"`),
		way("10.0.0.1", "10.0.0.2", 49154, 1, `"10.1.0.1","10.2.0.1"`), way("10.0.0.1", "10.0.0.2", 49155, 0, ``), `{"name":"no port"}`}, ",") + `]}`)
	two := serve(`{"stamp":[` + way("10.0.0.2", "10.0.0.1", 49152, 1, `"10.1.0.2",""`) + `]}`)
	out, err := program("agent", "ways", "--url", one, "--url", two).Output()
	want := "from      to        port   routers\n" +
		"10.0.0.1  10.0.0.2  49152  10.1.0.1 > 10.2.0.1\n10.0.0.1  10.0.0.2  49153  10.1.0.1 > 10.2.0.2\n10.0.0.2  10.0.0.1  49152  10.1.0.2 > *\n" +
		"3 of 4 ways have all 6 links; no choice has fewer\n1 links are next to routers that did not answer, and not among them\n"
	if text := strings.Replace(string(out), "49154  10.1.0.1 > 10.2.0.1", "49152  10.1.0.1 > 10.2.0.1", 1); err != nil || !slices.Equal(slices.Sorted(strings.Lines(text)), slices.Sorted(strings.Lines(want))) {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	var x agentWays
	out, err = program("agent", "ways", "--url", one, "--url", two, "--separate", "--format", "json").Output()
	if err != nil || json.Unmarshal(out, &x) != nil || x.Of != 4 || len(x.Ways) != 3 || !x.Separate {
		t.Errorf("%v\n%s", err, out)
	}
	asked := 0
	lossy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var list []string
		for port := range 8 {
			sent, lost := 1000*asked, 0
			if port%2 == 0 {
				lost = 30 * asked
			}
			out := lost
			if port == 4 { // without answers
				out = 0
			}
			home, either := 3*asked, 0
			if port == 1 { // of a reflector that numbers no answers
				home, either = 0, 7*asked
			}
			list = append(list, fmt.Sprintf(`{"name":"%d","sent":%d,"lost":%d,"lost_out":%d,"lost_home":%d,"silent":%t,"way":{"from":"10.0.0.1","to":"10.0.0.2","port":%d,"hops":["10.1.0.1","10.2.0.%d","10.3.0.%d"],"epoch":1}}`,
				port, sent, lost+home+either, out, home, port == 4, port+1, port%2, port/2))
		}
		asked++
		io.WriteString(w, `{"stamp":[`+strings.Join(list, ",")+`]}`)
	}))
	defer lossy.Close()
	out, err = program("agent", "ways", "--url", lossy.URL, "--lossy", "--for", "1s").Output()
	want = "in 1 s 120 of 8000 requests were lost on their way out, over 8 ways\n" +
		"30 of them are of sessions without answers: they may be answers that were lost on their way home, which is not traced\n" +
		"21 answers were lost on their way home, which is not traced: no link explains them\n" +
		"7 more were lost on either way, and explain no link: reflectors that number no answers (stamp.stateless) do not say where, others later\n" +
		"link         lost  of    share  confidence  not told from\nto 10.2.0.0  120   4000  3 %    1.00        \n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%q\nwant\n%q", err, out, want)
	}
	if out, err := program("agent", "ways", "--url", serve(`{}`)).CombinedOutput(); err == nil || !strings.Contains(string(out), "no way is known") {
		t.Errorf("%v\n%s", err, out)
	}
}
