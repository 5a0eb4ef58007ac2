package agent

import (
	"fmt"
	"net"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/p4/probe"
)

// Plans of ten times what the settings allow are refused whole. So are plans with frames above the least MTU at all
// (the shim of INT ends below twice of it). The figure is in the error, a metric, the status and the text of readiness,
// and is logged once. The plan before stays in force.
func TestLimitsOfPlans(t *testing.T) {
	cfg, _ := testConfig(t)
	most := map[string]float64{"send_limit_bps": 100e3, "receive_limit_bps": 100e3, "probes_per_second": 100, "max_probes": 40, "MTU": 576}
	cfg.SendLimit, cfg.ReceiveLimit, cfg.ProbesPerSecond, cfg.MaxProbes, cfg.MTU = 1e12, 1e12, 1e8, 1<<14, 9000
	plan := func(epoch uint32, probes int, interval time.Duration, hops int) *probe.Plan {
		p := &probe.Plan{Epoch: epoch, Dialect: probe.FANT, Basic: 0xf000, Detailed: 0xffff}
		for k := range probes {
			p.Probes = append(p.Probes, probe.Probe{ID: fmt.Sprint("p", k), Route: make([]int, hops), Interval: interval, Agent: cfg.Name, Detailed: hops > 2})
		}
		return p
	}
	comes := plan(4, 40, 35*time.Millisecond, 2) // from others
	for k := range comes.Probes {
		comes.Probes[k].Agent, comes.Probes[k].Collector = "another", cfg.Name
	}
	for _, x := range []struct {
		setting, figure string
		set             func(c *Config, most float64)
		p               *probe.Plan
	}{
		{"max_probes", `would send ([0-9.e+]+) probes,`, func(c *Config, n float64) { c.MaxProbes = int(n) }, plan(2, 400, time.Hour, 2)},
		{"probes_per_second", `would send ([0-9.e+]+) probes a second`, func(c *Config, n float64) { c.ProbesPerSecond = n }, plan(3, 40, 40*time.Millisecond, 2)},
		{"receive_limit_bps", `would receive ([0-9.e+]+) bit/s`, func(c *Config, n float64) { c.ReceiveLimit = n }, comes},
		{"MTU", `would be an IP packet of ([0-9]+) bytes`, func(c *Config, n float64) { c.MTU = int(n) }, plan(5, 1, time.Second, 16)},
		{"send_limit_bps", `would send ([0-9.e+]+) bit/s`, func(c *Config, n float64) { c.SendLimit = n }, plan(6, 40, 30*time.Millisecond, 2)},
	} {
		t.Run(x.setting, func(t *testing.T) {
			namespace(t)
			cfg := cfg
			x.set(&cfg, most[x.setting])
			var logged logLines
			a, err := Open(cfg, logged.logger())
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if _, err := a.Adopt(plan(1, 4, time.Second, 2), "test"); err != nil {
				t.Fatal(err)
			}
			_, err = a.Adopt(x.p, "test")
			if err == nil {
				t.Fatal("the plan is in force")
			}
			s := a.Status()
			var figure float64
			if m := regexp.MustCompile(x.figure).FindStringSubmatch(s.Refused); m != nil {
				figure, _ = strconv.ParseFloat(m[1], 64)
			}
			times := 9.99
			if x.setting == "MTU" { // a shim of INT counts its words in 8 bits, so that no plan is ten times the least MTU
				times = 1.7
			}
			if figure < times*most[x.setting] || !strings.Contains(s.Refused, x.setting) || s.Epoch != 1 || !strings.Contains(s.Refused, err.Error()) {
				t.Errorf("status %+v", s)
			}
			if code, text := ready(t, a); code != 200 || text != "ready\nthe last plan was refused: "+s.Refused+"\n" {
				t.Errorf("%d, %s", code, text)
			}
			if x := statusOf(a, ""); x.Problem() != "the last plan was refused: "+s.Refused {
				t.Errorf("%q", x.Problem())
			}
			w := httptest.NewRecorder()
			pageOf(t, a).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			if !strings.Contains(w.Body.String(), "hopscope_agent_plans_refused_total 1\n") || strings.Count(logged.String(), "plan refused") != 1 {
				t.Errorf("%s\n%s", w.Body, logged.String())
			}
			if _, err := a.Adopt(plan(7, 4, time.Second, 2), "test"); err != nil {
				t.Fatal(err)
			}
			if code, text := ready(t, a); code != 200 || text != "ready\n" {
				t.Errorf("%d, %s", code, text)
			}
		})
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
	frame := walkAlong(t, templateOf(t, planOfOne(probe.INT21, false, 3, 2), 5).AppendFrame(nil, 42), probe.INT21, 2)
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
