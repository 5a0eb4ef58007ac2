package agent

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
)

// fabric is what is behind interface net0: it leads every probe over all switches of its route, and sends it back.
type fabric struct {
	line    *line
	dialect probe.Dialect
	drop    func(n int) bool                  // of the frames that came
	change  atomic.Pointer[func(back []byte)] // what it does to frames that go back
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func startFabric(t testing.TB, dialect probe.Dialect, drop func(n int) bool) *fabric {
	t.Helper()
	ifi, err := net.InterfaceByName("net0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	f := &fabric{dialect: dialect, drop: drop}
	if f.line, err = openLine(&cfg, ifi.Index); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.done.Go(func() { f.run(t, ctx) })
	t.Cleanup(func() {
		f.stop()
		f.done.Wait()
		f.line.close()
	})
	return f
}

func (f *fabric) run(t testing.TB, ctx context.Context) {
	out, arrived := make([]byte, 0, 2048), 0
	for ctx.Err() == nil {
		n, err := f.line.rx.receive(20 * time.Millisecond)
		if err != nil {
			t.Error(err)
			return
		}
		for k := range n {
			frame, _ := f.line.rx.frame(k)
			if arrived++; f.drop != nil && f.drop(arrived) {
				continue
			}
			hops := (int(frame[15]) - 2) / 2
			out = append(out[:0], frame...)
			back := walkAlong(t, out, f.dialect, hops)
			if change := f.change.Load(); change != nil {
				(*change)(back)
			}
			// A line that a test takes down takes nothing.
			if err := unix.Send(f.line.tx.fd, back, 0); err != nil && err != unix.ENETDOWN && err != unix.ENOBUFS {
				t.Error(err)
			}
		}
	}
}

// testConfig is an agent on interface host0 that reports to a socket of its own.
func testConfig(t testing.TB) (Config, *net.UDPConn) {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	cfg := DefaultConfig()
	cfg.Name, cfg.Interface, cfg.Collectors = "edge-0-0", "host0", []string{c.LocalAddr().String()}
	return cfg, c
}

// logLines keeps what is logged.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// runAgent runs an agent until the test ends, and returns the function that ends it before.
func runAgent(t testing.TB, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// wait waits until ok, for as long as a busy machine may need.
func wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, "there is "+what, ok)
}

// TestThereAndBack sends the probes of plan files over a real interface through a model of a fabric that loses one of
// seven. The collector reads every hop of the probes that came back, and the counts of the others.
func TestThereAndBack(t *testing.T) {
	namespace(t)
	cfg, collector := testConfig(t)
	var lost atomic.Int64
	startFabric(t, probe.INT21, func(n int) bool {
		if n%7 == 3 {
			lost.Add(1)
			return true
		}
		return false
	})
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	p := &probe.Plan{Epoch: 3, Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80, Probes: []probe.Probe{
		{ID: "p1", Route: []int{1, 2, 3}, Interval: 5 * time.Millisecond, Phase: time.Millisecond, Agent: cfg.Name, Collector: cfg.Name},
		{ID: "p2", Route: []int{4}, Interval: 10 * time.Millisecond, Agent: cfg.Name, Collector: cfg.Name, Detailed: true},
		{ID: "other", Route: []int{4}, Interval: 10 * time.Millisecond, Agent: "edge-1-0", Collector: "edge-1-1"},
	}}
	if _, err := a.Adopt(p, "test"); err != nil {
		t.Fatal(err)
	}
	stop := runAgent(t, a)
	dec := demux.New(profileOf(t, "auto"))
	slots, probes := map[uint16]int64{}, map[uint16]int{}
	buf := make([]byte, 9216)
	for reports := 0; reports < 60; {
		n, err := collector.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		var b decode.Batch
		dec.Datagram(&b, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:n], 0)
		for _, r := range b.Reports {
			if r.Kind == decode.KindDrop || r.Kind == decode.KindProbes { // a round that does not come, where the machine takes its time with the rest; or the counts of a path
				continue
			}
			reports++
			if err := r.Error(); err != nil {
				t.Fatal(err)
			}
			x := p.Probes[r.Flow.SrcPort-probe.FirstPort]
			probes[r.Flow.SrcPort]++
			if len(r.Hops) != len(x.Route) || r.Flow.DstPort != probe.OriginalPort {
				t.Fatalf("%s came with %d hops, and flow %v", x.ID, len(r.Hops), r.Flow)
			}
			for k, h := range r.Hops {
				if h.NodeID != uint32(100+k) || int(h.EgressIf) != x.Route[k] || h.Set(decode.HopBufferOccupancy) != x.Detailed {
					t.Fatalf("hop %d of %s is %+v", k, x.ID, h)
				}
			}
			sent := int64(0) // the last 8 bytes of the datagram's last report
			for _, c := range buf[n-8 : n] {
				sent = sent<<8 | int64(c)
			}
			if len(b.Reports) == 1 {
				slot := (sent - int64(x.Phase)) / int64(x.Interval)
				if slots[r.Flow.SrcPort] >= slot {
					t.Fatalf("%s was sent twice in one interval, or before its time: %d after %d", x.ID, slot, slots[r.Flow.SrcPort])
				}
				slots[r.Flow.SrcPort] = slot
			}
		}
	}
	if len(probes) != 2 {
		t.Errorf("reports about %v", probes)
	}
	wait(t, "probe on its way", func() bool { s := a.Stats(); return s.Lost > 0 })
	stop()
	s := a.Stats()
	if s.Sent == 0 || s.SendErrors != 0 || s.Received == 0 || s.Received > s.Sent || s.Lost > lost.Load() || s.Twice != 0 || s.OldEpoch != 0 ||
		s.Frames != s.Received || s.ReportErrors != 0 || s.Datagrams == 0 || s.Unfollowed != 0 || s.KernelDropped != 0 {
		t.Errorf("%+v, and the fabric lost %d", s, lost.Load())
	}
	total := uint64(0)
	for _, n := range s.Transit.Count {
		total += n
	}
	if total != s.Received {
		t.Errorf("%d probes have the kernel's time of receipt, of %d", total, s.Received)
	}
	if !strings.Contains(logged.String(), "plan in force") {
		t.Errorf("logged: %s", logged.String())
	}
}

// TestFilter sends frames that are no probes. The kernel's filter keeps them away from the agent. Broken frames with
// our mark, or with the end of a probe, are counted by their reason.
func TestFilter(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
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
	runAgent(t, a)
	good := walkAlong(t, templateOf(t, planOfOne(probe.INT21, false, 3, 2), 5).AppendFrame(nil, 42), probe.INT21, 2)
	send := func(change func(b []byte)) {
		b := append([]byte(nil), good...)
		change(b)
		if err := unix.Send(l.tx.fd, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []func(b []byte){
		func(b []byte) { b[15] = 0 },                 // another mark
		func(b []byte) { b[36] = 1 },                 // another port, which no checksum covers here
		func(b []byte) { b[23] = 6 },                 // TCP
		func(b []byte) { b[20] = 0x20 },              // a fragment
		func(b []byte) { b[12], b[13] = 0x86, 0xdd }, // another type
	} {
		send(change) // it ends as a probe does, and was one
		send(func(b []byte) {
			change(b)
			b[len(b)-probe.PayloadLen] = 0
		})
	}
	send(func(b []byte) { b[14+28] = 0xf0 })                  // no such shim
	send(func(b []byte) { b[len(b)-probe.PayloadLen] = 0 })   // no such payload
	send(func(b []byte) { copy(b[12:], []byte{7, 0, 0, 4}) }) // a route with an entry left
	send(func([]byte) {})
	send(func([]byte) {})
	wait(t, "probe that came again", func() bool { s := a.Stats(); return s.Received == 2 && s.Twice == 1 }) // which is counted after it
	if s := a.Stats(); s.Frames != 10 || s.Malformed != [probe.NumReasons]uint64{probe.BadINT: 1, probe.BadPayload: 1, probe.Unfinished: 1, probe.Foreign: 1, probe.Corrupt: 4} || s.Twice != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAdopt holds which plans are refused, and that the one before stays.
func TestAdopt(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	plan := func(epoch uint32, interval time.Duration) *probe.Plan {
		p := planOfOne(probe.INT21, false, 1, 2)
		p.Epoch, p.Probes[0].Agent, p.Probes[0].Interval = epoch, cfg.Name, interval
		return p
	}
	for _, c := range []struct {
		plan *probe.Plan
		want string
	}{
		{plan(5, time.Second), ""},
		{plan(5, time.Second), ""}, // the same one again
		{plan(5, time.Minute), "epoch 5 is in force with another plan"},
		{plan(4, time.Second), "there is a later plan: epoch 5 is in force"},
		{plan(6, 20*time.Microsecond), "would send 50000 probes a second"},
		{plan(7, time.Minute), ""},
	} {
		before := a.Status().Epoch
		_, err := a.Adopt(c.plan, "test")
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("epoch %d: %v, want %q", c.plan.Epoch, err, c.want)
		}
		s := a.Status()
		if err != nil && (s.Epoch != before || !strings.Contains(s.Refused, c.want)) || err == nil && (s.Epoch != c.plan.Epoch || s.Refused != "") {
			t.Errorf("epoch %d: the status says %+v", c.plan.Epoch, s)
		}
	}
	if s := a.Stats(); s.Accepted != 3 || s.Refused != 3 {
		t.Errorf("%d accepted, %d refused", s.Accepted, s.Refused)
	}
}

// TestOpen names what is missing.
func TestOpen(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
	for _, c := range []struct {
		want   string
		change func(c *Config)
	}{
		{`interface nowhere: route ip+net: no such network interface ("ip link" lists them)`, func(c *Config) { c.Interface = "nowhere" }},
		{"interface net0 has no IPv4 address", func(c *Config) { c.Interface = "net0" }},
		{"interface: is missing", func(c *Config) { c.Interface = "" }},
		{"collectors[0]", func(c *Config) { c.Collectors = []string{"x"} }},
	} {
		bad := cfg
		c.change(&bad)
		if _, err := Open(bad, (&logLines{}).logger()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// With CAP_NET_RAW and nothing else it opens, and without it says so: on this thread, and only on this one.
	var caps [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&head, &caps[0]); err != nil {
		t.Fatal(err)
	}
	caps[0].Effective, caps[1].Effective = 1<<unix.CAP_NET_RAW, 0
	if err := unix.Capset(&head, &caps[0]); err != nil {
		t.Fatal(err)
	}
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatalf("with CAP_NET_RAW alone: %v", err)
	}
	a.Close()
	caps[0].Effective = 0
	if err := unix.Capset(&head, &caps[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg, (&logLines{}).logger()); err == nil || !strings.Contains(err.Error(), "needs CAP_NET_RAW, and not root") {
		t.Errorf("without CAP_NET_RAW: %v", err)
	}
}
