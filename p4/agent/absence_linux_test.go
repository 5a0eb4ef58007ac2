package agent

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
)

// pageOf is the page of an agent.
func pageOf(t testing.TB, a *Agent) http.Handler {
	t.Helper()
	page, err := ServeStatus("127.0.0.1:0", a, "test", func(h http.Handler) http.Handler { return h })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(page.Close)
	return page.server.Handler
}

// ready asks the page of an agent whether it is ready.
func ready(t testing.TB, a *Agent) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	pageOf(t, a).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	return w.Code, w.Body.String()
}

// loopPlan is a plan of probes that an agent sends to itself, every 10 ms.
func loopPlan(name string, probes ...string) *probe.Plan {
	p := &probe.Plan{Epoch: nextEpoch(0), Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80}
	for k, id := range probes {
		p.Probes = append(p.Probes, probe.Probe{ID: id, Route: []int{1, 2, 3}, Interval: 10 * time.Millisecond, Phase: time.Duration(k) * time.Millisecond, Agent: name, Collector: name})
	}
	return p
}

// TestSilence: an agent whose probes never come back, or stop coming, reports that. It counts them, names one, and ends
// the message when they come again.
func TestSilence(t *testing.T) {
	testkit.Long(t)
	namespace(t)
	cfg, _ := testConfig(t)
	var cut atomic.Bool
	cut.Store(true)
	startFabric(t, probe.INT21, func(int) bool { return cut.Load() })
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Adopt(loopPlan(cfg.Name, "p1", "p2"), files); err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	silent := func() bool { x := statusOf(a, ""); return x.Silent == 2 && x.Lost > 0 && x.Awaited == 2 }
	for range 2 { // first of probes of which nothing ever came
		wait(t, "loss of what does not come", silent)
		before := statusOf(a, "").Lost
		wait(t, "more of it", func() bool { return statusOf(a, "").Lost > before+100 })
		x := statusOf(a, "")
		if p := x.Problem(); !strings.Contains(p, "2 of 2 probes do not come, such as p1: ") {
			t.Errorf("the problem is %q", p)
		}
		if code, text := ready(t, a); code != 200 { // its own line is up
			t.Errorf("%d, %s", code, text)
		}
		cut.Store(false)
		wait(t, "probe that comes", func() bool { x := statusOf(a, ""); return x.Silent == 0 && x.Problem() == "" })
		lost := statusOf(a, "").Lost
		received := a.Stats().Received
		wait(t, "hundred probes", func() bool { return a.Stats().Received > received+200 })
		if n := statusOf(a, "").Lost; n < before || n > lost {
			t.Errorf("%d lost, after %d and %d", n, before, lost)
		}
		cut.Store(true)
	}
	if n := strings.Count(logged.String(), "probes do not come back"); n != 2 {
		t.Errorf("it is said %d times:\n%s", n, logged.String())
	}
}

// TestLineDown: an agent whose own line is down is not ready, counts the rounds that it cannot send as not sent, and logs it once.
func TestLineDown(t *testing.T) {
	testkit.Long(t)
	namespace(t)
	cfg, _ := testConfig(t)
	startFabric(t, probe.INT21, nil)
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Adopt(loopPlan(cfg.Name, "p1"), files); err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	wait(t, "probe that comes", func() bool { return a.Stats().Received > 50 })
	for _, line := range []string{"net0", "host0"} {
		for _, to := range []string{"down", "up"} {
			if out, err := exec.Command("ip", "link", "set", line, to).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			wait(t, "line "+to, func() bool { return statusOf(a, "").LineDown == (to == "down") })
			code, text := ready(t, a)
			if to == "down" && (code != 503 || !strings.Contains(text, "the line of interface host0 is down")) || to == "up" && code != 200 {
				t.Errorf("%s %s: %d, %s", line, to, code, text)
			}
			if to == "down" {
				before := statusOf(a, "")
				wait(t, "seconds of probes that are not sent", func() bool { return statusOf(a, "").SendErrors > before.SendErrors+400 })
				// What was under way is lost, and nothing that was not sent is.
				if x, s := statusOf(a, ""), a.Stats(); x.Lost > int64(s.Sent-s.Received) || x.Silent > 0 && s.Sent-s.Received < 2 {
					t.Errorf("%s %s: %d lost, %d silent: %+v", line, to, x.Lost, x.Silent, s)
				}
			}
		}
	}
	up := func() int { return strings.Count(logged.String(), "the line is up again") }
	wait(t, "line of the log that it is up again", func() bool { return up() > 1 })
	if down, up := strings.Count(logged.String(), "the line is down"), up(); down != 2 || up != 2 {
		t.Errorf("%d times down, %d times up:\n%s", down, up, logged.String())
	}
}

// TestPortRefuses: an agent whose port is up and takes no probe is not ready, with the reason. The collector learns
// that the probes were not sent.
func TestPortRefuses(t *testing.T) {
	namespace(t)
	cfg, collector := testConfig(t)
	startFabric(t, probe.INT21, nil)
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Adopt(loopPlan(cfg.Name, "p1", "p2"), files); err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	mtu := func(n string) {
		t.Helper()
		if out, err := exec.Command("ip", "link", "set", "host0", "mtu", n).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var unsent atomic.Int64
	go func() { // until the test closes the socket
		dec, buf := demux.New(profileOf(t, "auto")), make([]byte, 9216)
		for {
			n, err := collector.Read(buf)
			if err != nil {
				return
			}
			var b decode.Batch
			dec.Datagram(&b, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:n], 0)
			for _, r := range b.Reports {
				if r.Kind == decode.KindDrop && r.DropReason == probe.DropUnsent && r.Flow.Src == decode.AddrFrom(a.ends.From) {
					unsent.Add(1)
				}
			}
		}
	}()
	wait(t, "probe that comes", func() bool { return a.Stats().Received > 50 })
	before := statusOf(a, "")
	mtu("68")
	wait(t, "port that refuses", func() bool { return statusOf(a, "").Unsent != "" })
	wait(t, "seconds of it", func() bool { return statusOf(a, "").SendErrors > before.SendErrors+400 })
	var x StatusAnswer
	code, text := 0, ""
	wait(t, "page of one status", func() bool { // the next second counts anew
		x = statusOf(a, "")
		code, text = ready(t, a)
		later := statusOf(a, "")
		return x.Problem() == later.Problem()
	})
	if code != 503 || !strings.Contains(text, "interface host0 does not take all probes: ") || !strings.Contains(text, "message too long: raise the MTU") || x.Problem()+"\n" != text {
		t.Errorf("%d, %s; the status has %q", code, text, x.Problem())
	}
	// What was under way is lost, and nothing that was not sent is.
	if s := a.Stats(); x.Lost > int64(s.Sent-s.Received) || x.Silent > 0 && s.Sent-s.Received < 2 || x.LineDown {
		t.Errorf("%+v, %+v", x, s)
	}
	mtu("1500")
	wait(t, "port that takes them again", func() bool { code, _ := ready(t, a); return code == 200 && statusOf(a, "").Unsent == "" })
	over := func() int { return strings.Count(logged.String(), "all probes are sent again") }
	wait(t, "line of the log that it is over", func() bool { return over() > 0 })
	if begun, over := strings.Count(logged.String(), "probes are not sent"), over(); begun != 1 || over != 1 {
		t.Errorf("%d times refused, %d times over:\n%s", begun, over, logged.String())
	}
	wait(t, "report of a hundred", func() bool { return unsent.Load() >= 100 })
}

// TestFlippedOnTheLine: of 1 % of the frames one bit is changed on a real line. They are counted as corrupt, all of them, and none as lost.
func TestFlippedOnTheLine(t *testing.T) {
	namespace(t)
	cfg, _ := testConfig(t)
	cfg.DigestKeys = keyFile(t, "1 "+strings.Repeat("0a", 32))
	r := rand.New(rand.NewPCG(5, 6))
	var changed atomic.Int64
	f := startFabric(t, probe.INT21, nil)
	f.change.Store(new(func(back []byte) {
		if r.IntN(100) == 0 {
			changed.Add(1)
			bit := 8*12 + r.IntN(8*(len(back)-12))
			back[bit/8] ^= 0x80 >> (bit % 8)
		}
	}))
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	plan := loopPlan(cfg.Name, "p1", "p2", "p3")
	for k := range plan.Probes {
		plan.Probes[k].Interval = 2 * time.Millisecond
	}
	plan.Probes[2].Phase = 0
	if _, err := a.Adopt(plan, files); err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	wait(t, "thousands of probes", func() bool { return a.Stats().Received > 3000 })
	f.change.Store(nil)
	received := a.Stats().Received
	wait(t, "what was under way", func() bool { return a.Stats().Received > received+3000 })
	wait(t, "frame that was changed, or comes late", func() bool {
		s := a.Stats()
		return s.Malformed[probe.Corrupt] >= uint64(changed.Load()) && s.Lost == 0
	})
	s := a.Stats()
	if n := changed.Load(); n == 0 || s.Malformed != [probe.NumReasons]uint64{probe.Corrupt: uint64(n)} || s.Lost != 0 || s.KernelDropped != 0 || s.Odd != 0 {
		t.Errorf("%d were changed: %+v", n, s)
	}
}

// TestMissingReports: the collector learns of every missing round by a drop report with the flow of its probe, and by the
// counts of its path. This holds for probes of the agent, and for those of another agent that never came.
func TestMissingReports(t *testing.T) {
	namespace(t)
	cfg, collector := testConfig(t)
	startFabric(t, probe.INT21, func(int) bool { return true })
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	p := loopPlan(cfg.Name, "p1", "p2", "p3")
	p.Probes[2].Agent = "edge-1-0"
	if _, err := a.Adopt(p, files); err != nil {
		t.Fatal(err)
	}
	stop := runAgent(t, a)
	dec := demux.New(profileOf(t, "auto"))
	drops, buf := map[string]map[uint16]int64{}, make([]byte, 9216)
	all := int64(0)
	type path struct {
		from   string
		number uint32
	}
	missed := map[path]uint32{}
	for len(drops) < 2 || len(drops[a.ends.From.String()]) < 2 || all < 300 || len(missed) < 3 {
		n, err := collector.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		var b decode.Batch
		dec.Datagram(&b, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:n], 0)
		for _, r := range b.Reports {
			if c := r.AddProbes(); r.Kind == decode.KindProbes {
				missed[path{r.Flow.Src.String(), c.Path}] += c.Missed
				if own := r.Flow.Src == decode.AddrFrom(a.ends.From); c.Epoch != p.Epoch || c.Received+c.Late != 0 || r.Flow.DstPort != probe.OriginalPort || own != (c.Sent > 0) || own != (c.Forward > 0) {
					t.Errorf("%v: %+v", r.Flow, c)
				}
				continue
			}
			if err := r.Error(); err != nil || r.Kind != decode.KindDrop || r.DropReason != probe.DropMissing || r.NodeID != cfg.reportedNode() || r.NodeID != probe.AgentNode(cfg.Name) || r.Flow.DstPort != probe.OriginalPort && r.Flow.DstPort != probe.INTPort {
				t.Fatalf("%v: %+v", err, r)
			}
			from := r.Flow.Src.String()
			if drops[from] == nil {
				drops[from] = map[uint16]int64{}
			}
			drops[from][r.Flow.SrcPort]++
			all++
		}
	}
	stop()
	own := a.ends.From.String()
	if len(missed) != 3 || missed[path{own, 1}] == 0 || missed[path{own, 2}] == 0 || missed[path{"0.0.0.0", 3}] == 0 {
		t.Errorf("missed of paths: %v", missed)
	}
	if lost := a.Stats().Lost; len(drops["0.0.0.0"]) != 1 || all > lost {
		t.Errorf("%d reports, %d lost: %v", all, lost, drops)
	}
}
