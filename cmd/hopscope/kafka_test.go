package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink/kafka"
)

// fleetFile writes settings of a member of a fleet.
func fleetFile(t *testing.T, b *servertest.Broker, prefix, more string) string {
	t.Helper()
	dir := t.TempDir()
	seed := filepath.Join(dir, "seed")
	if err := os.WriteFile(seed, []byte("a seed of tests only"), 0o600); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, fmt.Sprintf("window: 1s\nseed_file: %q\n%s\nkafka: {enabled: true, brokers: [%q], prefix: %q, slices: 2, spool: {dir: %q}}\n",
		seed, more, b.Addr, prefix, filepath.Join(dir, "spool")))
}

// runs runs the program and returns its output and its status.
func runs(t *testing.T, args ...string) (out, problem string, status int) {
	t.Helper()
	c := program(args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		status = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), status
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestKafkaTopics(t *testing.T) {
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	file := fleetFile(t, b, "a.", `udp: {listen: ["127.0.0.1:0"]}`)

	out, problem, status := runs(t, "kafka", "topics", "check", "--config", file)
	if status != 1 {
		t.Errorf("without topics the status is %d\n%s%s", status, out, problem)
	}
	says(t, out, "a.windows", "a.roster", "hopscope kafka topics create")
	says(t, problem, "5 problems")

	// A collector says what is missing, and does not start.
	_, problem, status = runs(t, "collect", "--config", file)
	if status != exitUsage {
		t.Errorf("without a roster the status is %d", status)
	}
	says(t, problem, "hopscope kafka topics create")

	out, problem, status = runs(t, "kafka", "topics", "create", "--config", file, "--retention", "30h")
	if status != 0 {
		t.Fatalf("status %d\n%s", status, problem)
	}
	says(t, out, "a.windows: created", "a.state: created", "a.roster, key fleet: created")
	out, _, status = runs(t, "kafka", "topics", "create", "--config", file, "--format", "json")
	var made []kafka.Created
	if err := json.Unmarshal([]byte(out), &made); err != nil || status != 0 || len(made) != 7 || made[0].Created || made[6].Created {
		t.Errorf("again: %v, status %d, %s", err, status, out)
	}
	deviations := func(file string) (list []kafka.Deviation, problems int) {
		t.Helper()
		out, problem, status := runs(t, "kafka", "topics", "check", "--config", file, "--format", "json")
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v in %s (%s)", err, out, problem)
		}
		for _, d := range list {
			if d.Problem {
				problems++
			}
		}
		if (status != 0) != (problems > 0) || status > 1 {
			t.Errorf("%d problems give status %d", problems, status)
		}
		return list, problems
	}
	list, problems := deviations(file)
	for _, d := range list {
		if d.What != "replication" || d.Problem { // there is one broker
			t.Errorf("%+v", d)
		}
	}
	if len(list) != 6 || problems != 0 {
		t.Errorf("%d deviations, %d of them problems", len(list), problems)
	}

	// Other parameters are reported, and are not written over those of the fleet unless that is wanted.
	seed := string(mustRead(t, file))
	other := writeFile(t, strings.Replace(seed, "window: 1s", "window: 3s", 1))
	_, problem, status = runs(t, "kafka", "topics", "create", "--config", other)
	if status != exitUsage {
		t.Errorf("other parameters give status %d", status)
	}
	says(t, problem, "window: the fleet has 1s, this member 3s")
	_, problem, status = runs(t, "collect", "--config", other)
	if status != exitUsage {
		t.Errorf("a collector of another fleet ends with status %d", status)
	}
	says(t, problem, "window: the fleet has 1s, this member 3s")
	if list, problems := deviations(other); problems != 1 || !strings.Contains(fmt.Sprint(list), "window: the fleet has 1s") {
		t.Errorf("%+v", list)
	}
	if out, problem, status = runs(t, "kafka", "topics", "create", "--config", other, "--replace"); status != 0 {
		t.Errorf("status %d\n%s", status, problem)
	}
	says(t, out, "a.roster, key fleet: created")
	for _, m := range b.Read("a.roster", 0, 0) {
		if bytes.Contains(m.Value, []byte("a seed of tests only")) {
			t.Error("the roster has the seed")
		}
	}

	// Topics that were made by hand.
	b.CreateTopic("b.windows", 1, "retention.ms=3600000", "max.message.bytes=100000")
	b.CreateTopic("b.reports", 3, "cleanup.policy=compact")
	b.CreateTopic("b.series", 1, "retention.ms=7200000", "retention.bytes=1000000000")
	b.CreateTopic("b.roster", 1)
	hand := fleetFile(t, b, "b.", `udp: {listen: ["127.0.0.1:0"]}`)
	out, problem, status = runs(t, "kafka", "topics", "check", "--config", hand)
	if status != 1 {
		t.Errorf("status %d\n%s", status, problem)
	}
	for _, want := range [][]string{
		{"problem", "b.windows", "partitions", "1", "2"},
		{"problem", "b.windows", "retention.ms", "3600000", "86400000"},
		{"problem", "b.windows", "max.message.bytes", "100000"},
		{"warning", "b.windows", "message.timestamp.type", "CreateTime", "LogAppendTime"},
		{"warning", "b.reports", "partitions", "3", "2"},
		{"problem", "b.reports", "cleanup.policy", "compact", "delete"},
		{"warning", "b.series", "retention.ms", "7200000", "604800000"},
		{"warning", "b.series", "retention.bytes", "1000000000"},
		{"problem", "b.state", "topic", "none"},
		{"problem", "b.roster", "cleanup.policy", "delete", "compact"},
		{"problem", "b.roster", "parameters", "none"},
	} {
		found := false
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) >= len(want) && f[0] == want[0] && f[1] == want[1] && f[2] == want[2] {
				found = true
				says(t, line, want...)
			}
		}
		if !found {
			t.Errorf("nothing says %v in\n%s", want, out)
		}
	}

	for _, wrong := range [][]string{
		{"kafka", "topics", "check"},
		{"kafka", "topics", "create", "--config", file, "--replication", "99"},
		{"kafka", "topics", "create", "--config", file, "--retention", "1s"},
		{"kafka", "topics", "check", "--config", file, "--format", "xml"},
		{"kafka", "topics", "check", "--config", file, "--timeout", "0s"},
		{"kafka", "topics", "check", "--config", writeFile(t, "kafka: {enabled: true}\n")},
		{"kafka", "topics", "check", "--config", writeFile(t, "kafka: {brokers: [nowhere]}\n")},
	} {
		if _, problem, status := runs(t, wrong...); status != exitUsage {
			t.Errorf("%v: status %d, %s", wrong, status, problem)
		}
	}
	b.Stop()
	_, problem, status = runs(t, "kafka", "topics", "check", "--config", file, "--timeout", "5s")
	if status != exitFailed {
		t.Errorf("without a broker the status is %d", status)
	}
	says(t, problem, b.Addr)
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMemberOfFleet runs a collector of a fleet: its windows come to Kafka, and it says so, comes and leaves.
func TestMemberOfFleet(t *testing.T) {
	testkit.Long(t)
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	capture := filepath.Join("..", "..", "decode", "testdata", "geant-int10-reports.pcap")
	file := fleetFile(t, b, "c.", fmt.Sprintf("instance: east\nexporters: {profile: geant}\npcap: {files: [%q]}\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}", capture))
	if _, problem, status := runs(t, "kafka", "topics", "create", "--config", file); status != 0 {
		t.Fatal(problem)
	}
	c := program("collect", "--config", file)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	log := newLogReader(t, stderr)
	url := log.wait("serving the page")["url"].(string)
	reports := func() (sum uint64) {
		for i := range 2 {
			for _, m := range b.Read("c.windows", i, 0) {
				h, err := fleet.ReadHead(m.Header(fleet.HeaderKey))
				if err != nil || h.From != "east" || h.Kind != fleet.Part {
					t.Fatalf("%v: %+v", err, h)
				}
				sum += h.Reports
			}
		}
		return sum
	}
	for deadline := time.Now().Add(testkit.Patience); reports() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no window came")
		}
	}
	metrics := get(t, url+"metrics", 200)
	says(t, metrics, "hopscope_fleet_member 1\n", "hopscope_fleet_extra_partitions 0\n", "# HELP hopscope_fleet_records_total ")
	for _, m := range fleetMetrics {
		says(t, metrics, "# HELP "+m.Name+" ")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log.drain()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	var said []*roster.Member
	var members roster.Roster
	for _, m := range b.Read("c.roster", 0, 0) {
		if err := members.Add(string(m.Key), m.Value); err != nil {
			t.Fatal(err)
		}
		if string(m.Key) != "collector/east" {
			continue
		}
		s, err := roster.ReadMember(string(m.Key), m.Value)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, s)
		if e := members.Expected(); len(e) != 1 || e[0].Name != "east" || e[0].Boot != s.Boot || e[0].Since <= 0 || e[0].Since%int64(time.Second) != 0 || (e[0].Until > 0) != s.Left {
			t.Errorf("what it said is read as %+v", e)
		}
	}
	if len(said) < 2 {
		t.Fatalf("it reported %d times how it is", len(said))
	}
	first, last := said[0], said[len(said)-1]
	if first.Left || !last.Left || first.Boot == 0 || last.Boot != first.Boot || last.Name != "east" || last.Window == 0 {
		t.Errorf("first %+v, last %+v", first, last)
	}
	if run := last.Run; run == nil || run.Received == 0 || run.Stored != run.Received || run.Stored != reports() {
		t.Errorf("the ledger of the run is %+v, and %d reports came", run, reports())

		// Its orderly end is one: its last window closes, and no consumer waits for a further one.
		g, err := fleet.NewGate(fleet.Options{Window: int64(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		g.Expect(members.Expected())
		var heads []fleet.Head
		for _, m := range b.Read("c.windows", 0, 0) {
			h, err := fleet.ReadHead(m.Header(fleet.HeaderKey))
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, h)
		}
		other := heads[0]
		other.From, other.Boot, other.Seq = "west", 1, 0
		for range 3 { // another collector goes on
			other.Seq++
			other.End = last.Window + int64(other.Seq)*int64(time.Second)
			heads = append(heads, other)
		}
		offset, closed, ownLast := int64(0), int64(0), int64(0)
		add := func(h *fleet.Head) fleet.Verdict {
			t.Helper()
			v, err := g.Add(h, offset, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			offset++
			return v
		}
		for i := range heads {
			if add(&heads[i]); heads[i].From == "east" {
				ownLast = max(ownLast, heads[i].End)
			}
		}
		for {
			h, ok := g.Due(other.End + 1)
			if !ok {
				break
			}
			v := add(&h)
			if closed = h.End; len(v.Closing.Missing)+len(v.Closing.Dead) > 0 && h.End >= last.Window {
				t.Errorf("window to %d misses %v", h.End, v.Closing.Missing)
			}
		}
		if closed != other.End || ownLast != last.Window {
			t.Errorf("windows are closed up to %d of %d; the last one of the collector ends at %d, and it says %d", closed, other.End, ownLast, last.Window)
		}
		if len(said[0].Faults) == 0 || len(last.Faults) > 0 || last.Run.Sink != "kafka" || said[len(said)-2].Pages == nil {
			t.Errorf("problems %q at first, %q at last, of %+v", said[0].Faults, last.Faults, last)
		}
	}
}
