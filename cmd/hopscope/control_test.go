package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// certificates writes an authority, and certificates with their keys for names, into a directory.
func certificates(t *testing.T, dir string, names ...string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var signer *ecdsa.PrivateKey
	var parent *x509.Certificate
	for k, name := range append([]string{"ca"}, names...) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(k + 1)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		if parent == nil {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
			parent, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
		must(err)
		b, err := x509.MarshalECPrivateKey(key)
		must(err)
		must(os.WriteFile(filepath.Join(dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		must(os.WriteFile(filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b}), 0o600))
	}
}

// pretender follows a control as an agent does, takes every plan, and sends none of its probes.
type pretender struct {
	keeps bool                // its plan, and says so when it connects anew
	took  func(*agentpb.Plan) // called for every plan; may be nil

	mu    sync.Mutex
	plans []*agentpb.Plan
}

// inForce is the epoch that it says it has when it connects.
func (p *pretender) inForce() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.plans); p.keeps && n > 0 {
		return p.plans[n-1].GetEpoch()
	}
	return 0
}

func (p *pretender) follow(ctx context.Context, dir, address, name string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: "controller", RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})))
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := agentpb.NewPlansClient(conn).Follow(ctx, grpc.WaitForReady(true))
	if err == nil {
		err = s.Send(&agentpb.Answer{Agent: name, InForce: p.inForce()})
	}
	for err == nil {
		var m *agentpb.Plan
		if m, err = s.Recv(); err == nil {
			p.mu.Lock()
			p.plans = append(p.plans, m)
			p.mu.Unlock()
			if p.took != nil {
				p.took(m)
			}
			err = s.Send(&agentpb.Answer{Agent: name, InForce: m.GetEpoch(), About: m.GetEpoch()})
		}
	}
	return err
}

// controlSettings are those of a control of a small network, with plans, certificates and a switch whose entries go to a file.
func controlSettings(t *testing.T, collector string) (dir, config, listen, admin string) {
	t.Helper()
	dir = agentPlans(t)
	certificates(t, dir, "controller", "leaf-1", "leaf-2")
	at := func(name string) string { return filepath.Join(dir, name) }
	listen, admin = testkit.FreeAddr(t), "unix:"+at("admin")
	entries := `{"entries": [{"table": "egress.port_mtu", "match": [{"value": "0x05"}], "action": "set_mtu", "params": ["0x05dc"]}]}`
	if err := os.WriteFile(at("entries.json"), []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	config = at("control.yaml")
	text := fmt.Sprintf(`topology: %s
first_node_id: 1
plan: {probes: [%s], interval: 50ms}
agents: [{name: leaf-1, address: 192.0.2.1}]
controller: {listen: "%s", ca_file: %s, cert_file: %s, key_file: %s}
collector: {url: "%s"}
loop: {cycle: 1s, timeout: 900ms, grace: 10ms, clear_after: 2}
journal: {file: %s}
switches: [{name: spine-1, file: %s, program: srint, entries: %s}]
admin: {listen: "%s"}
`, at("lab.yaml"), at("probes.json"), listen, at("ca.pem"), at("controller.pem"), at("controller.key"), collector, at("journal"), at("spine-1.json"), at("entries.json"), admin)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, config, listen, admin
}

// TestControl runs the program with agents that follow it and a collector that answers. The first plan is for all, a
// finding turns probes to detail, and its end turns them back. Commands are carried out, the switch has its entry, and
// a second life continues above the epochs of the first.
func TestControl(t *testing.T) {
	var mu sync.Mutex
	open := "[]"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, `{"open": %s, "ended": []}`, open)
	}))
	defer web.Close()
	dir, config, listen, admin := controlSettings(t, web.URL)
	out, err := program("control", "--config", config, "--check").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "of 2 agents pass") {
		t.Fatalf("--check: %v\n%s", err, out)
	}
	life := func() (stop func()) {
		c := program("control", "--config", config)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return func() {
			_ = c.Process.Signal(os.Interrupt)
			if err := c.Wait(); err != nil {
				t.Errorf("control ends with %v", err)
			}
		}
	}
	ask := func(args ...string) (s loop.Status, status int) {
		out, err := program(append(append([]string{"control"}, args...), "--url", admin, "--format", "json")...).Output()
		if x := (*exec.ExitError)(nil); errors.As(err, &x) {
			status = x.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if args[0] == "status" {
			_ = json.Unmarshal(out, &s)
		} else {
			var said loop.Reply
			_ = json.Unmarshal(out, &said)
			s = said.Status
		}
		return s, status
	}
	until := func(what string, ok func(s *loop.Status, status int) bool) (s loop.Status) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			var status int
			if s, status = ask("status"); ok(&s, status) {
				return s
			}
		}
		t.Fatalf("%s: it never came about: %+v", what, s)
		return s
	}
	stop := life()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agents := map[string]*pretender{"leaf-1": {}, "leaf-2": {}}
	for name, p := range agents {
		go func() {
			for ctx.Err() == nil {
				_ = p.follow(ctx, dir, listen, name)
			}
		}()
	}
	until("first plan", func(s *loop.Status, status int) bool {
		return status == 0 && s.InForce == 1 && s.Detailed == 0 && s.Probes > 0 && s.Phase == "steady"
	})
	b, err := os.ReadFile(filepath.Join(dir, "spine-1.json"))
	if err != nil || !strings.Contains(string(b), `"egress.port_mtu"`) || !strings.Contains(string(b), `"hopscope"`) {
		t.Errorf("the switch has %v, %s", err, b)
	}
	mu.Lock()
	open = `[{"id": "00000000000000a1", "kind": "high-queue", "severity": "critical", "node": "1", "egress_if": "1", "start_ms": 1, "end_ms": 0, "text": "a queue", "element": {"kind": "interface", "node": 1, "egress_if": 1}}]`
	mu.Unlock()
	s := until("a suspect", func(s *loop.Status, _ int) bool { return s.InForce == s.Epoch && s.Epoch > 1 && s.Detailed > 0 })
	if len(s.Suspects) != 1 || !strings.HasPrefix(s.Suspects[0].Link, "leaf-1:1--") || !strings.Contains(s.Suspects[0].Why, "a queue") || !s.Links[s.Suspects[0].Link].Detailed {
		t.Errorf("suspects %+v, links %+v", s.Suspects, s.Links)
	}
	if s, status := ask("pause"); status != 0 || !s.Paused {
		t.Errorf("pause: status %d, %+v", status, s)
	}
	mu.Lock()
	open = "[]"
	mu.Unlock()
	until("no suspect", func(s *loop.Status, _ int) bool { return len(s.Suspects) == 0 })
	if s, _ := ask("status"); s.Detailed == 0 {
		t.Error("a paused control turns probes back")
	}
	if _, status := ask("approve"); status != exitFailed {
		t.Errorf("approve without a plan that waits: status %d", status)
	}
	// The page of a collector has the same state and commands, by web.control.
	if v := pageState(t, admin); !v.Paused || v.InForce != s.InForce || v.Back == 0 || v.Phase != "steady" || v.Waiting != 0 {
		t.Errorf("the page is told %+v of a pause", v)
	}
	if err := commandOf(admin)(t.Context(), "approve", 0, "alice"); err == nil || err.Error() != "no plan waits" {
		t.Errorf("the page's approve without a plan that waits: %v", err)
	}
	if err := commandOf(admin)(t.Context(), "resume", 0, "alice"); err != nil || pageState(t, admin).Paused {
		t.Errorf("the page's resume: %v", err)
	}
	last := until("well again", func(s *loop.Status, status int) bool {
		return status == 0 && s.InForce == s.Epoch && s.Epoch > 2 && s.Detailed == 0
	})
	out, err = program("control", "log", "--url", admin).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "planned") || !strings.Contains(string(out), "pause by ") {
		t.Errorf("log: %v\n%s", err, out)
	}
	stop()
	if _, status := ask("status"); status != exitFailed {
		t.Errorf("of a control that has ended: status %d", status)
	}
	if _, err := stateOf(admin)(t.Context()); err == nil || !strings.Contains(err.Error(), "web.control") {
		t.Errorf("the page is told of a control that has ended: %v", err)
	}
	stop = life()
	until("second life", func(s *loop.Status, status int) bool {
		return status == 0 && s.InForce >= last.Epoch && s.Phase == "steady"
	})
	stop()
	cancel()
	for name, p := range agents {
		p.mu.Lock()
		epoch := uint32(0)
		for _, m := range p.plans {
			if m.GetEpoch() < epoch {
				t.Errorf("agent %s got epoch %d after %d", name, m.GetEpoch(), epoch)
			}
			epoch = m.GetEpoch()
		}
		if len(p.plans) < 3 {
			t.Errorf("agent %s got %d plans", name, len(p.plans))
		}
		p.mu.Unlock()
	}
}

// pageState is the state of a control as the page of a collector asks for it.
func pageState(t *testing.T, at string) ask.ControlState {
	t.Helper()
	s, err := stateOf(at)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestControlSettings: what is wrong with settings is said all at once, before anything runs, with status 64.
func TestControlSettings(t *testing.T) {
	_, config, _, _ := controlSettings(t, "http://127.0.0.1:1")
	good, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("the settings have no %q", old)
		}
		return writeFile(t, strings.Replace(string(good), old, new, 1))
	}
	for _, c := range []struct {
		config string
		want   []string
	}{
		{"", []string{"--config is missing"}},
		{"nowhere.yaml", []string{"nowhere.yaml"}},
		{writeFile(t, "loop: {cycle: 1s, timeout: 2s}\nadmin: {listen: \"0.0.0.0:1\"}\nswitches: [{name: a, program: x}]\nnope: 1\n"),
			[]string{"topology: is missing", "plan.probes: are missing", "loop.timeout: 2s is not below cycle", "admin.listen: 0.0.0.0:1: commands have no password", "controller.ca_file: is missing", "switches[0]", "nope"}},
		{with("first_node_id", "#"), nil},
		{with("probes: [", "attention: x, probes: ["), []string{"plan.attention: which probes look closer is decided here"}},
		{with("interval: 50ms", "interval: 50ms, detailed: \"0x7000\""), []string{"detailed bitmap 0x7000 does not ask for the node id"}},
		{with("name: leaf-1", "name: leaf-9"), []string{`no probe of the plan begins or ends at "leaf-9"`}},
		{with("name: spine-1", "name: spine-9"), []string{`the topology has no node "spine-9"`}},
		{with("ca.pem", "nothing.pem"), []string{"controller.ca_file: open "}},
		{with("lab.yaml", "nothing.yaml"), []string{"nothing.yaml"}},
		{with("entries: ", "entries: /nowhere"), []string{"switches[0].entries"}},
	} {
		args := []string{"control", "--check"}
		if c.config != "" {
			args = append(args, "--config", c.config)
		}
		out, err := program(args...).CombinedOutput()
		x := (*exec.ExitError)(nil)
		switch {
		case c.want == nil && err != nil:
			t.Errorf("%v\n%s", err, out)
		case c.want != nil && (!errors.As(err, &x) || x.ExitCode() != exitUsage):
			t.Errorf("want %q: %v\n%s", c.want, err, out)
		}
		for _, w := range c.want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%q is not in\n%s", w, out)
			}
		}
	}
}

// TestControlJournalHeld: a second control with the journal of a running one names its owner and ends as a usage error.
// In a fleet it does so before it is in charge. It changes nothing, and mere questions work. The remains of a killed
// control are no obstacle.
func TestControlJournalHeld(t *testing.T) {
	dir, config, _, admin := controlSettings(t, "http://127.0.0.1:1")
	journal := filepath.Join(dir, "journal")
	settings := string(mustRead(t, config))
	other := strings.Replace(settings, `"`+admin+`"`, `"`+admin+`-2"`, 1)
	life := func() *exec.Cmd {
		t.Helper()
		c := program("control", "--config", config)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		for end := time.Now().Add(testkit.Patience); ; time.Sleep(20 * time.Millisecond) {
			out, err := program("control", "log", "--url", admin).CombinedOutput()
			if err == nil && strings.Contains(string(out), "answered") {
				return c
			}
			if time.Now().After(end) {
				t.Fatalf("no answer of the switch in the log: %v\n%s", err, out)
			}
		}
	}
	first := life()
	for _, text := range []string{other, other + "fleet: {enabled: true, kafka: {brokers: [\"127.0.0.1:1\"]}}\n"} {
		out, err := program("control", "--config", writeFile(t, text)).CombinedOutput()
		x := (*exec.ExitError)(nil)
		if !errors.As(err, &x) || x.ExitCode() != exitUsage {
			t.Errorf("a second control ends with %v\n%s", err, out)
		}
		if want := fmt.Sprintf("journal.file: %s: another control holds this journal (process %d)", journal, first.Process.Pid); !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out, err := program("control", "--config", config, "--check").CombinedOutput(); err != nil {
		t.Errorf("--check beside a control that runs: %v\n%s", err, out)
	}
	if out, err := program("control", "log", "--url", admin).CombinedOutput(); err != nil || !strings.Contains(string(out), "answered") {
		t.Errorf("the log of the first one afterwards: %v\n%s", err, out)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	if info, err := os.Stat(journal + ".lock"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock of a control that was killed: %v, %v", err, info)
	}
	second := life()
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the next life ends with %v", err)
	}
}
