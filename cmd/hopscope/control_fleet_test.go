package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// TestControlFleet runs two controls of one network. The one in charge turns a finding of the merged windows into a
// plan and is killed. The other one continues above its epochs, with the same probes in detail.
func TestControlFleet(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	text := string(mustRead(t, config))
	listens, admins, configs := []string{listen, testkit.FreeAddr(t)}, []string{admin, admin + "-2"}, make([]string, 2)
	for i := range configs {
		configs[i] = filepath.Join(dir, fmt.Sprintf("control-%d.yaml", i))
		s := strings.NewReplacer(listen, listens[i], `"`+admin+`"`, `"`+admins[i]+`"`, filepath.Join(dir, "journal"), filepath.Join(dir, fmt.Sprintf("journal-%d", i))).Replace(text)
		s += fmt.Sprintf("fleet: {enabled: true, name: control-%d, session: 6s, kafka: {brokers: [\"%s\"], prefix: \"%s\", timeout: 3s}}\n", i, b.Addr, b.Prefix)
		if err := os.WriteFile(configs[i], []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Without its topic a control says what to do, and ends.
	if out, err := program("control", "--config", configs[0]).CombinedOutput(); err == nil || !strings.Contains(string(out), "hopscope kafka topics create") {
		t.Errorf("without topics: %v\n%s", err, out)
	}
	b.CreateTopic(b.Prefix+brokers.Plans, 1, "cleanup.policy=compact")
	b.CreateTopic(b.Prefix+brokers.Series, 1)
	life := func(i int) *exec.Cmd {
		c := program("control", "--config", configs[i])
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	until := func(i int, what string, ok func(s *loop.Status) bool) (s loop.Status) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			out, _ := program("control", "status", "--url", admins[i], "--format", "json").Output()
			if s = (loop.Status{}); json.Unmarshal(out, &s) == nil && ok(&s) {
				return s
			}
		}
		t.Fatalf("control %d: %s: it never came about: %+v", i, what, s)
		return s
	}
	first := life(0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agents := map[string]*pretender{"leaf-1": {}, "leaf-2": {}}
	for name, p := range agents {
		for _, at := range listens {
			go func() {
				for ctx.Err() == nil {
					_ = p.follow(ctx, dir, at, name)
				}
			}()
		}
	}
	until(0, "first plan", func(s *loop.Status) bool { return s.InForce == 1 && s.Phase == "steady" && s.Detailed == 0 })

	var answers []ask.Finding
	if err := json.Unmarshal([]byte(`[{"id": "00000000000000a1", "kind": "high-queue", "severity": "critical", "node": "1", "egress_if": "1", "start_ms": 1, "end_ms": 0, "text": "a queue", "element": {"kind": "interface", "node": 1, "egress_if": 1}}]`), &answers); err != nil {
		t.Fatal(err)
	}
	end := fleet.Label(time.Now().UnixNano(), int64(time.Second))
	w := inference.Window{Start: end - int64(time.Second), End: end}
	whole, err := fleet.EncodeWhole(fleet.NewCodec(0, window.Limits{}), "store-1", fleet.NewDocument("lab", &fleet.Assembled{Start: w.Start, End: w.End}, &w, ask.OpenFindings(answers)))
	if err != nil {
		t.Fatal(err)
	}
	lc := brokers.DefaultLogConfig()
	lc.HeaderKey = fleet.HeaderKey
	if _, err := brokers.NewLog(b.Client(), lc).Append(t.Context(), b.Prefix+brokers.Series, 0, ingest.Message{Head: []byte("strange"), Value: []byte("strange")}, ingest.Message{Head: whole.Head.Append(nil), Value: whole.Value}); err != nil {
		t.Fatal(err)
	}
	s := until(0, "a suspect of the fleet", func(s *loop.Status) bool {
		return s.InForce == s.Epoch && s.Epoch > 1 && s.Detailed > 0 && s.Phase == "steady"
	})
	if len(s.Suspects) != 1 || !strings.Contains(s.Suspects[0].Why, "a queue") {
		t.Errorf("suspects %+v", s.Suspects)
	}

	second := life(1)
	stands := until(1, "standing by", func(s *loop.Status) bool { return s.Standby != nil && s.Standby.InCharge == "control-0" })
	if stands.Phase != loop.StandingBy || stands.Standby.Term == 0 {
		t.Errorf("a control that stands by says %+v, %+v", stands, stands.Standby)
	}
	says := "this control stands by: control-0 is in charge"
	if out, err := program("control", "status", "--url", admins[1]).CombinedOutput(); err != nil || !strings.Contains(string(out), says) {
		t.Errorf("status of a control that stands by: %v\n%s", err, out)
	}
	if out, err := program("control", "pause", "--url", admins[1]).CombinedOutput(); err == nil || !strings.Contains(string(out), "not done: "+says) {
		t.Errorf("a command to a control that stands by: %v\n%s", err, out)
	}
	if out, err := program("control", "log", "--url", admins[1]).CombinedOutput(); err != nil {
		t.Errorf("log of a control that stands by: %v\n%s", err, out)
	}
	page := func(i int, path string) (int, string) { t.Helper(); return adminPage(t, admins[i], path) }
	pages := func(i, ready int, metrics ...string) {
		t.Helper()
		if code, text := page(i, "/healthz"); code != http.StatusOK {
			t.Errorf("control %d, /healthz: %d %s", i, code, text)
		}
		if code, text := page(i, "/readyz"); code != ready || (code != http.StatusOK) != strings.Contains(text, says) {
			t.Errorf("control %d, /readyz: %d %s", i, code, text)
		}
		_, text := page(i, "/metrics")
		for _, m := range metrics {
			if !strings.Contains(text, "\n"+m+"\n") {
				t.Errorf("control %d, /metrics has no %q:\n%s", i, m, text)
			}
		}
	}
	pages(0, http.StatusOK, "hopscope_control_in_charge 1", "hopscope_control_terms_total 1", fmt.Sprintf("hopscope_control_epoch %d", s.Epoch))
	pages(1, http.StatusServiceUnavailable, "hopscope_control_in_charge 0", "hopscope_control_terms_total 0")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	next := until(1, "taking over", func(s *loop.Status) bool { return s.Epoch > 0 && s.InForce == s.Epoch && s.Phase == "steady" })
	if next.Epoch <= s.Epoch || next.Detailed != s.Detailed || len(next.Suspects) != 1 {
		t.Errorf("after epoch %d with %d probes in detail comes epoch %d with %d, and suspects %+v", s.Epoch, s.Detailed, next.Epoch, next.Detailed, next.Suspects)
	}
	pages(1, http.StatusOK, "hopscope_control_in_charge 1", "hopscope_control_terms_total 1")
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the second control ends with %v", err)
	}
	cancel()
	for name, p := range agents {
		p.mu.Lock()
		last, detailed := new(agentpb.Plan), false
		for _, m := range p.plans {
			// An agent that answers late is sent the same plan again.
			if m.GetEpoch() < last.GetEpoch() || m.GetEpoch() == last.GetEpoch() && !proto.Equal(m, last) {
				t.Errorf("agent %s got epoch %d after %d", name, m.GetEpoch(), last.GetEpoch())
			}
			now := false
			for _, q := range m.GetProbes() {
				now = now || q.GetDetailed()
			}
			if detailed && !now {
				t.Errorf("epoch %d turns what looked closer off at agent %s", m.GetEpoch(), name)
			}
			last, detailed = m, now
		}
		p.mu.Unlock()
	}
}

// adminPage gets a path of a control at a socket.
func adminPage(t *testing.T, admin, path string) (int, string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(admin, "unix:"))
	}}}
	r, err := c.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}
