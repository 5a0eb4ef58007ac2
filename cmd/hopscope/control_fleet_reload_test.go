package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
)

// TestControlFleetReload changes the network under two controls of a fleet, which have files of their own. The standby
// reads them at SIGHUP and logs their errors. After a takeover it continues with the network that it read last, also
// while the files are being edited. Without Kafka both report that, and nothing is pushed; once it is back, one of them
// is in charge.
func TestControlFleetReload(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	certificates(t, dir, "controller", "leaf-1", "leaf-2", "leaf-3")
	at := func(name string, i int) string { return filepath.Join(dir, fmt.Sprintf("%s-%d", name, i)) }
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	small, probes := string(mustRead(t, filepath.Join(dir, "lab.yaml"))), string(mustRead(t, filepath.Join(dir, "probes.json")))
	large := strings.NewReplacer("  - spine-1\n", "  - {name: leaf-3, host_ports: [9]}\n  - spine-1\n", ", [leaf-2, spine-2]]", ", [leaf-2, spine-2], [leaf-3, spine-1], [leaf-3, spine-2]]").Replace(small)
	write(filepath.Join(dir, "large.yaml"), large)
	plan, err := program("plan", "cover", "--sr=int-probe", "--depots", "leaf-1,leaf-2,leaf-3", "--max-hops", "2", "--topology", filepath.Join(dir, "large.yaml"), "--replan", filepath.Join(dir, "probes.json"), "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := string(mustRead(t, config))
	listens, lives := []string{listen, testkit.FreeAddr(t)}, make([]*controlLife, 2)
	for i := range lives {
		write(at("lab", i), small)
		write(at("probes", i), probes)
		path, socket := at("control", i)+".yaml", fmt.Sprintf("%s-%d", admin, i)
		s := strings.NewReplacer(listen, listens[i], `"`+admin+`"`, `"`+socket+`"`, filepath.Join(dir, "journal"), at("journal", i),
			filepath.Join(dir, "lab.yaml"), at("lab", i), filepath.Join(dir, "probes.json"), at("probes", i)).Replace(text)
		s = strings.Replace(s, "agents: [{name: leaf-1, address: 192.0.2.1}]\n", "", 1)
		s += fmt.Sprintf("log: {level: info}\nfleet: {enabled: true, name: control-%d, session: 6s, kafka: {brokers: [\"%s\"], prefix: \"%s\", timeout: 3s}}\n", i, b.Addr, b.Prefix)
		write(path, s)
		lives[i] = &controlLife{t: t, config: path, admin: socket, log: &heardLog{}}
	}
	t.Cleanup(func() {
		for i, l := range lives {
			if t.Failed() {
				t.Logf("control %d:\n%s", i, l.log)
			}
		}
	})
	b.CreateTopic(b.Prefix+brokers.Plans, 1, "cleanup.policy=compact")
	b.CreateTopic(b.Prefix+brokers.Series, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agents := map[string]*pretender{"leaf-1": {}, "leaf-2": {}, "leaf-3": {}}
	for name, p := range agents {
		for _, address := range listens {
			go func() {
				for ctx.Err() == nil {
					_ = p.follow(ctx, dir, address, name)
					time.Sleep(20 * time.Millisecond)
				}
			}()
		}
	}
	stands := func(charge string, status int) func(s *loop.Status, got int) bool {
		return func(s *loop.Status, got int) bool {
			return got == status && s.Standby != nil && s.Standby.InCharge == charge
		}
	}
	lives[0].start()
	first := lives[0].until("the first plan", func(s *loop.Status, status int) bool { return status == 0 && isSteady(s) && len(s.Devices) == 3 })
	lives[1].start()
	lives[1].until("standing by", stands("control-0", 0))

	// What is wrong with its files, the standby control says at once; it changes nothing.
	write(at("lab", 1), "name: lab\nnodes: [a")
	lives[1].hangup()
	s := lives[1].until("a refusal of who stands by", stands("control-0", exitFailed))
	if !strings.Contains(s.Standby.Refused, "lab-1") {
		t.Errorf("who stands by refuses for %q", s.Standby.Refused)
	}
	write(at("lab", 1), large)
	write(at("probes", 1), string(plan))
	lives[1].hangup()
	lives[1].until("the larger network at who stands by", stands("control-0", 0))
	if s := lives[0].until("a status", func(*loop.Status, int) bool { return true }); s.Epoch != first.Epoch || s.Loop.Networks != 0 {
		t.Errorf("a reload of who stands by changes what is in force: %+v", s)
	}
	write(at("lab", 0), large)
	write(at("probes", 0), string(plan))
	lives[0].hangup()
	grown := lives[0].until("the larger network", func(s *loop.Status, status int) bool {
		return status == 0 && isSteady(s) && s.Loop.Networks == 1 && len(s.Devices) == 4 && s.Epoch > first.Epoch && s.Behind == 0
	})

	// The one in charge is killed while the files of the other one are being edited.
	write(at("probes", 1), "{")
	_ = lives[0].end(os.Kill)
	taken := lives[1].until("taking over with the network read last", func(s *loop.Status, status int) bool {
		return status == exitFailed && isSteady(s) && len(s.Devices) == 4 && s.Loop.NetworkRefused != ""
	})
	if taken.Epoch <= grown.Epoch || taken.Probes != grown.Probes || !strings.Contains(taken.Loop.NetworkRefused, "probes-1") {
		t.Errorf("after epoch %d with %d probes: %+v", grown.Epoch, grown.Probes, taken)
	}
	write(at("probes", 1), string(plan))
	lives[1].hangup()
	lives[1].until("files that fit again", func(s *loop.Status, status int) bool { return status == 0 && isSteady(s) && s.Loop.Networks == 1 })
	// The next one in charge takes what its files say now, which it was not asked to read again.
	lives[0].start()
	lives[0].until("standing by in its turn", stands("control-1", 0))
	write(at("lab", 0), small)
	write(at("probes", 0), probes)
	if err := lives[1].process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	shrunk := lives[0].until("taking over from one that stands still", func(s *loop.Status, status int) bool {
		return status == 0 && isSteady(s) && s.Epoch > taken.Epoch && len(s.Devices) == 3
	})
	if err := lives[1].process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	lives[1].until("not in charge any more", stands("control-0", 0))
	if !strings.Contains(lives[0].log.String(), "in charge") || !strings.Contains(lives[1].log.String(), "not in charge any more") {
		t.Error("the logs do not name the one in charge")
	}

	// Without Kafka no control is known to be in charge, and nothing is pushed.
	b.Pause()
	lives[1].until("who stands by does not know", func(s *loop.Status, status int) bool {
		return status == exitFailed && s.Standby != nil && s.Standby.Term == 0 && strings.Contains(s.Standby.Why, "cannot read which one is in charge")
	})
	lives[0].until("who was in charge does not know either", func(s *loop.Status, status int) bool {
		return status == exitFailed && s.Standby != nil && strings.Contains(s.Standby.Why, "cannot read which one is in charge")
	})
	if code, text := adminPage(t, lives[0].admin, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "cannot read which one is in charge") {
		t.Errorf("/readyz without Kafka: %d %s", code, text)
	}
	if code, text := adminPage(t, lives[0].admin, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz without Kafka: %d %s", code, text)
	}
	count := func() (n int) {
		for _, p := range agents {
			p.mu.Lock()
			n += len(p.plans)
			p.mu.Unlock()
		}
		return n
	}
	before := count()
	for _, l := range lives {
		l.hangup()
	}
	lives[1].until("it reads its files all the same", func(*loop.Status, int) bool {
		return strings.Count(lives[1].log.String(), `"msg":"settings reloaded"`) >= 3
	})
	if n := count(); n != before {
		t.Errorf("%d plans are pushed without Kafka", n-before)
	}
	b.Continue()
	within(t, "one is in charge again", func() bool {
		for _, l := range lives {
			if s := l.until("a status", func(*loop.Status, int) bool { return true }); s.Standby == nil && isSteady(&s) && s.Epoch > shrunk.Epoch {
				return true
			}
		}
		return false
	})
	for i, l := range lives {
		if err := l.end(os.Interrupt); err != nil {
			t.Errorf("control %d ends with %v", i, err)
		}
	}
	cancel()
	for name, p := range agents {
		p.mu.Lock()
		if !slices.IsSortedFunc(p.plans, func(a, b *agentpb.Plan) int { return int(a.GetEpoch()) - int(b.GetEpoch()) }) {
			t.Errorf("epochs of agent %s do not grow", name)
		}
		p.mu.Unlock()
	}
}

// TestStandbyAfterTerm: between its own term and the next one's, a control says that it is not in charge any more.
func TestStandbyAfterTerm(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	topic := b.Prefix + brokers.Plans
	b.CreateTopic(topic, 1, "cleanup.policy=compact")
	log := brokers.NewLog(b.Client(), brokers.DefaultLogConfig())
	cfg := brokers.LeadConfig{Log: log, Topic: topic, Name: "x" + strings.Repeat("ä", 99), Timeout: 30 * time.Second}
	s := &steer.Standby{InCharge: inCharge(brokers.NewObserver(cfg))}
	says := func(want string) loop.Standby {
		t.Helper()
		var x loop.Standby
		within(t, want, func() bool { x = s.Now(t.Context()); return strings.Contains(x.Why, want) })
		return x
	}
	says("none has been in charge yet")
	cfg.Group = brokers.NewGroup(b.Client(), log, brokers.GroupConfig{Name: b.Prefix + controlGroup, Topics: map[string]int{topic: 1}, Session: time.Minute, Rebalance: 10 * time.Second}, nil)
	if err := brokers.Lead(t.Context(), cfg, func(ctx context.Context, term *brokers.Term) error {
		x := says("is in charge (term 1)")
		if want := "x" + strings.Repeat("ä", 49); x.InCharge != want {
			t.Errorf("the one in charge is %q, want %q", x.InCharge, want)
		}
		s.Own.Store(term.Number())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if x := says("this control is not in charge any more, and none has taken over yet"); x.InCharge != "" || x.Term != 0 {
		t.Errorf("after its term: %+v", x)
	}
}
