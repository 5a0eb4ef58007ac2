package agent

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Plans of ten times what the settings allow are refused whole, counted, and named by the status; the plan before stays in force.
func TestLimitsOfPlans(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
	cfg.SendLimit, cfg.ReceiveLimit, cfg.ProbesPerSecond, cfg.MaxProbes, cfg.MTU = 100e3, 100e3, 100, 40, 576
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	plan := func(epoch uint32, probes int, interval time.Duration, hops int) *Plan {
		p := &Plan{Epoch: epoch, Dialect: FANT, Basic: 0xf000, Detailed: 0xffff}
		for k := range probes {
			p.Probes = append(p.Probes, Probe{ID: fmt.Sprint("p", k), Route: make([]int, hops), Interval: interval, Agent: cfg.Name, Detailed: hops > 2})
		}
		return p
	}
	if _, err := a.Adopt(plan(1, 4, time.Second, 2), "test"); err != nil {
		t.Fatal(err)
	}
	comes := plan(4, 40, 35*time.Millisecond, 2) // from others
	for k := range comes.Probes {
		comes.Probes[k].Agent, comes.Probes[k].Collector = "another", cfg.Name
	}
	slow := plan(3, 40, 40*time.Millisecond, 2) // a thousand a second
	for _, x := range []struct {
		setting, want string
		p             *Plan
	}{
		{"max_probes", "would send 400 probes", plan(2, 400, time.Hour, 2)},
		{"probes_per_second", "would send 1000 probes a second", slow},
		{"receive_limit_bps", "would receive", comes},
		{"mtu", "above the MTU of 576", plan(5, 1, time.Second, 9)},
	} {
		before := a.Stats().Refused
		_, err := a.Adopt(x.p, "test")
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.setting, err, x.want)
		}
		if s := a.Status(); a.Stats().Refused != before+1 || s.Epoch != 1 || !strings.Contains(s.Refused, x.want) {
			t.Errorf("%s: %d refused, status %+v", x.setting, a.Stats().Refused, s)
		}
	}
	a.cfg.ProbesPerSecond = 1e6
	if _, err := a.Adopt(plan(6, 40, 30*time.Millisecond, 2), "test"); err == nil || !strings.Contains(err.Error(), "would send 1.") || !strings.Contains(a.Status().Refused, "bit") {
		t.Errorf("send_limit_bps: %v", err)
	}
}

// More frames come at once than the receive buffer has room for: each is read, or counted as dropped by the kernel.
func TestLimitsOfBuffer(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
	cfg.ReceiveBufferBytes = 4096
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.InterfaceByName("net0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := openLine(&cfg, other.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	frame := walk(t, template(t, onePlan(INT21, false, 3, 2), 5).AppendFrame(nil, 42), INT21, 2)
	// The agent does not read yet, and its buffer has room for a few.
	const sent = 200
	for range sent {
		if err := unix.Send(l.tx.fd, frame, 0); err != nil {
			t.Fatal(err)
		}
	}
	runAgent(t, a)
	wait(t, "frame that the kernel dropped, and count of all", func() bool { s := a.Stats(); return s.KernelDropped > sent/2 && s.Frames+s.KernelDropped == sent })
}
