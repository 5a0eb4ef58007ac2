package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	tables "github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
)

// p4Switch is an emulated switch behind P4Runtime with mutual TLS, whose certificate carries its name.
type p4Switch struct {
	*p4rttest.Server
	name, dir, at string
	stop          func()
	streams       atomic.Int64 // that are open
}

// newP4Switch starts a switch without a program. Its certificate is in the folder.
func newP4Switch(t *testing.T, dir, name string) *p4Switch {
	t.Helper()
	s := &p4Switch{name: name, dir: dir, at: "127.0.0.1:0"}
	s.Server = p4rttest.New(0, func(_ *configpb.P4Info, code []byte) (p4rttest.Tables, error) {
		if len(code) == 0 {
			return nil, errors.New("no program")
		}
		sw, err := programs.New("srint")
		if err != nil {
			return nil, err
		}
		return sw.Store(), nil
	})
	s.begin(t)
	t.Cleanup(func() { s.end() })
	return s
}

// begin serves, at the same address as before.
func (s *p4Switch) begin(t *testing.T) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(s.dir, s.name+".pem"), filepath.Join(s.dir, s.name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(mustRead(t, filepath.Join(s.dir, "ca.pem")))
	s.at, s.stop, err = s.StartAt(s.at, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if strings.HasSuffix(info.FullMethod, "/StreamChannel") {
				s.streams.Add(1)
				defer s.streams.Add(-1)
			}
			return h(srv, ss)
		}))
	if err != nil {
		t.Fatal(err)
	}
}

func (s *p4Switch) end() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// owners are those of the entries for the ports of the switch, by port.
func (s *p4Switch) owners() map[uint64]string {
	list := map[uint64]string{}
	s.Inspect(func(x p4rttest.Tables) {
		if x == nil {
			return
		}
		for _, e := range x.Read("egress.port_mtu") {
			if !e.Default() {
				list[e.Match[0].Value.Uint64()] = e.Owner
			}
		}
	})
	return list
}

// strange has another controller write an entry for a port.
func (s *p4Switch) strange(t *testing.T, port uint64) {
	t.Helper()
	s.Inspect(func(x p4rttest.Tables) {
		if err := x.Insert(tables.Entry{Table: "egress.port_mtu", Match: []tables.Match{tables.Number(port)}, Action: "set_mtu", Params: []tables.Value{tables.Uint(1500)}, Owner: "somebody"}); err != nil {
			t.Error(err)
		}
	})
}

func (s *p4Switch) setting(entries string) string {
	return fmt.Sprintf("{name: %s, address: \"%s\", tls_name: %s, program: srint, commit: true, entries: %s}", s.name, s.at, s.name, entries)
}

// heard keeps what is posted.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) post(e control.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, fmt.Sprintf("%T %+v", e, e))
}

// all returns what was heard, without the package names of types.
func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// within waits for something that will be.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	if !testkit.Await(is) {
		t.Fatalf("it never came about: %s", what)
	}
}

// TestSwitchWatch connects, disconnects and takes over real switches. The loop learns that a switch is there once it
// can be written, and that it is gone with the reason. It learns of another controller only if it has had the switch
// and the network still has it.
func TestSwitchWatch(t *testing.T) {
	dir := t.TempDir()
	certificates(t, dir, "controller", "spine-1")
	at := func(name string) string { return filepath.Join(dir, name) }
	s := newP4Switch(t, dir, "spine-1")
	cfg := defaultControlConfig()
	cfg.P4Runtime = steer.SwitchTLS{CAFile: at("ca.pem"), CertFile: at("controller.pem"), KeyFile: at("controller.key")}
	c := steer.Switch{Name: "spine-1", Address: s.at, TLSName: "spine-1", Program: "srint", Commit: true}
	open := func(c steer.Switch, term uint64) (*steer.ServedSwitch, *heard, *heardLog) {
		t.Helper()
		h, l := &heard{}, &heardLog{}
		load := make(chan bool, 10)
		post := func(e control.Event) {
			if p, is := e.(control.Program); is { // which the loop would load
				load <- p.Load
				return
			}
			h.post(e)
		}
		x, err := (&steer.SwitchesConfig{TLS: cfg.P4Runtime, Timeout: cfg.Loop.Timeout, Term: term, Log: slog.New(slog.NewTextHandler(l, nil))}).Open(&c, post)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for may := range load {
				if may {
					_ = x.Client().Commit(t.Context()) // what came of it is heard
				}
			}
		}()
		t.Cleanup(func() { x.Close(); close(load); <-ended })
		return x, h, l
	}
	is := func(h *heard, want ...string) func() bool {
		return func() bool {
			got := h.all()
			return len(got) == len(want) && !slices.ContainsFunc(want, func(w string) bool {
				return !strings.Contains(got[slices.Index(want, w)], w)
			})
		}
	}

	x, h, _ := open(c, 5)
	within(t, "it is there", is(h, "Up"))
	s.end()
	within(t, "it is gone", func() bool {
		l := h.all()
		return len(l) == 2 && strings.Contains(l[1], "control.Down") && strings.Contains(l[1], "cannot be reached")
	})
	s.begin(t)
	within(t, "it is there again", func() bool { l := h.all(); return len(l) == 3 && strings.Contains(l[2], "control.Up") })
	gone := s.Demote()
	within(t, "another controller takes it over", func() bool { return len(h.all()) == 5 })
	if l := h.all(); !strings.Contains(l[3], "control.Down") || !strings.Contains(l[3], "another controller is primary") || !strings.Contains(l[4], "control.Superseded") || !strings.Contains(l[4], "switch spine-1") {
		t.Errorf("taken over: %q", l)
	}

	// A controller that comes when it is taken already has nothing to give up.
	_, h2, log2 := open(c, 6)
	within(t, "the log says that another controller is primary", func() bool { return strings.Contains(log2.String(), "another controller is primary") })
	gone()
	within(t, "it is free", func() bool { l := h2.all(); return len(l) == 1 && strings.Contains(l[0], "control.Up") })

	// The first one has a lower term, and the switch has left its network: its holder is no rival.
	x.SetLeft(true)
	before := len(h.all())
	_, h3, _ := open(c, 7)
	within(t, "the third has it", func() bool { return len(h3.all()) == 1 })
	within(t, "the second hears of it", func() bool { l := h2.all(); return strings.Contains(l[len(l)-1], "control.Superseded") })
	within(t, "the first sees who leads", func() bool { return x.Client().State().Leader.High == 7 })
	if l := h.all()[before:]; slices.ContainsFunc(l, func(e string) bool { return strings.Contains(e, "Superseded") }) {
		t.Errorf("a switch that has left stands the loop down: %q", l)
	}

	// A switch with the certificate of another one is none, and the log says so.
	wrong := c
	wrong.TLSName = "spine-9"
	_, h4, log4 := open(wrong, 8)
	within(t, "the log names the certificate", func() bool { return strings.Contains(log4.String(), "certificate is valid for spine-1, not spine-9") })
	if l := h4.all(); len(l) != 0 {
		t.Errorf("of a switch that cannot be trusted: %q", l)
	}
	if strings.Contains(log2.String()+log4.String(), "PRIVATE") {
		t.Error("a key is in the log")
	}
}

// heardLog is a log that is read while it is written.
type heardLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *heardLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *heardLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// controlLife runs a control of settings as a program, with agents that follow it.
type controlLife struct {
	t             *testing.T
	config, admin string
	log           *heardLog
	end           func(sig os.Signal) error
	process       *os.Process
}

func (l *controlLife) start() {
	l.t.Helper()
	c := program("control", "--config", l.config)
	c.Stderr = l.log
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.process = c.Process
	ended := false
	l.end = func(sig os.Signal) error {
		if ended {
			return nil
		}
		ended = true
		_ = c.Process.Signal(sig)
		return c.Wait()
	}
	l.t.Cleanup(func() { _ = l.end(os.Kill) })
}

func (l *controlLife) hangup() {
	l.t.Helper()
	if err := l.process.Signal(syscall.SIGHUP); err != nil {
		l.t.Fatal(err)
	}
}

func (l *controlLife) until(what string, ok func(s *loop.Status, status int) bool) (s loop.Status) {
	l.t.Helper()
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		cmd := program("control", "status", "--url", l.admin, "--format", "json")
		out, _ := cmd.Output()
		if s = (loop.Status{}); json.Unmarshal(out, &s) == nil && ok(&s, cmd.ProcessState.ExitCode()) {
			return s
		}
	}
	l.t.Fatalf("%s: it never came about: %+v\n%s", what, s, l.log)
	return s
}

func isSteady(s *loop.Status) bool { return s.Phase == "steady" && s.InForce == s.Epoch && s.Epoch > 0 }

// TestControlReloadSwitches: at SIGHUP switches with P4Runtime come and go. One that leaves has none of our entries
// then, all of those of others, and no connection. One that is unreachable when it leaves is cleaned when it comes
// back. It may return in between, also at another address.
func TestControlReloadSwitches(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	certificates(t, dir, "controller", "leaf-1", "leaf-2", "spine-1", "spine-2")
	at := func(name string) string { return filepath.Join(dir, name) }
	one, two := newP4Switch(t, dir, "spine-1"), newP4Switch(t, dir, "spine-2")
	moved := newP4Switch(t, dir, "spine-2")
	text := string(mustRead(t, config))
	before, _, _ := strings.Cut(text, "switches: ")
	_, after, _ := strings.Cut(text, "admin: ")
	become := func(switches ...string) {
		t.Helper()
		s := fmt.Sprintf("%sswitches: [%s]\np4runtime: {ca_file: %s, cert_file: %s, key_file: %s}\nlog: {level: info}\nadmin: %s", before, strings.Join(switches, ", "), at("ca.pem"), at("controller.pem"), at("controller.key"), after)
		if err := os.WriteFile(config, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries := at("entries.json")
	become(one.setting(entries))
	l := &controlLife{t: t, config: config, admin: admin, log: &heardLog{}}
	l.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.log)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, p := range map[string]*pretender{"leaf-1": {}, "leaf-2": {}} {
		go func() {
			for ctx.Err() == nil {
				_ = p.follow(ctx, dir, listen, name)
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	settled := func(devices int, networks uint64) func(s *loop.Status, status int) bool {
		return func(s *loop.Status, status int) bool {
			return status == 0 && isSteady(s) && len(s.Devices) == devices && s.Loop.Networks == networks
		}
	}
	holds := func(s *p4Switch, want map[uint64]string) bool { return fmt.Sprint(s.owners()) == fmt.Sprint(want) }
	ours, both, theirs := map[uint64]string{5: "hopscope"}, map[uint64]string{5: "hopscope", 6: "somebody"}, map[uint64]string{6: "somebody"}

	l.until("the first network", settled(3, 0))
	if !holds(one, ours) {
		t.Errorf("spine-1 has %v", one.owners())
	}
	one.strange(t, 6)

	// One comes.
	become(one.setting(entries), two.setting(entries))
	l.hangup()
	l.until("a switch more", settled(4, 1))
	within(t, "spine-2 has its entry", func() bool { return holds(two, ours) }) // of the plan of the next cycle
	if !holds(one, both) {
		t.Errorf("spine-1 has %v", one.owners())
	}
	two.strange(t, 6)

	// One leaves.
	become(two.setting(entries))
	l.hangup()
	l.until("a switch less", settled(3, 2))
	within(t, "the connection of spine-1 ends", func() bool { return one.streams.Load() == 0 })
	if !holds(one, theirs) || !holds(two, both) {
		t.Errorf("spine-1 has %v, spine-2 %v", one.owners(), two.owners())
	}

	// One leaves that cannot be reached, and is cleaned when it can.
	two.end()
	l.until("spine-2 gone", func(s *loop.Status, status int) bool { return status == exitFailed })
	become(one.setting(entries))
	l.hangup()
	l.until("the other switch alone", settled(3, 3))
	if !holds(two, both) || !holds(one, both) {
		t.Errorf("spine-1 has %v, spine-2 %v", one.owners(), two.owners())
	}
	const waits = "keeps its entries until it can be written" // logged once for each reason
	within(t, "the log says what stays", func() bool { return strings.Contains(l.log.String(), waits) })
	two.begin(t)
	within(t, "spine-2 is cleaned", func() bool { return holds(two, theirs) && two.streams.Load() == 0 })
	out, err := program("control", "log", "--url", admin, "--lines", "1000").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "out of it, which has left the network") {
		t.Errorf("log: %v\n%s", err, out)
	}

	// It comes, leaves while it cannot be reached, and comes back at another address.
	become(one.setting(entries), two.setting(entries))
	l.hangup()
	l.until("spine-2 again", settled(4, 4))
	within(t, "spine-2 has its entry again", func() bool { return holds(two, both) })
	two.end()
	waited := strings.Count(l.log.String(), waits)
	l.until("spine-2 gone again", func(s *loop.Status, status int) bool { return status == exitFailed })
	become(one.setting(entries))
	l.hangup()
	l.until("spine-2 left", settled(3, 5))
	within(t, "what it owes is waited for", func() bool { return strings.Count(l.log.String(), waits) > waited })
	become(one.setting(entries), moved.setting(entries))
	l.hangup()
	l.until("another spine-2", settled(4, 6))
	within(t, "the new spine-2 has its entry", func() bool { return holds(moved, ours) })

	// A switch that has left and runs another program when it comes back is not loaded with ours.
	moved.end()
	waited = strings.Count(l.log.String(), waits)
	l.until("the new spine-2 gone", func(s *loop.Status, status int) bool { return status == exitFailed })
	become(one.setting(entries))
	l.hangup()
	l.until("the new spine-2 left", settled(3, 7))
	within(t, "what it owes is waited for", func() bool { return strings.Count(l.log.String(), waits) > waited })
	moved.Unload()
	moved.begin(t)
	within(t, "it is let go", func() bool {
		return strings.Count(l.log.String(), `"msg":"switch has left the network","switch":"spine-2"`) == 2
	})
	moved.Inspect(func(x p4rttest.Tables) {
		if x != nil {
			t.Error("a program was loaded into a switch that had left")
		}
	})
	if err := l.end(os.Interrupt); err != nil {
		t.Errorf("control ends with %v\n%s", err, l.log)
	}
	if !holds(one, both) {
		t.Errorf("what the end of the control leaves at spine-1: %v", one.owners())
	}
}
