package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
)

const stampKeys = "1 000102030405060708090a0b0c0d0e0f\n2 101112131415161718191a1b1c1d1e1f\n"

// stampConfig is an agent without an interface that reports to a socket of its own.
func stampConfig(t testing.TB, name string) (Config, *net.UDPConn) {
	t.Helper()
	cfg, collector := testConfig(t)
	cfg.Name, cfg.Interface = name, ""
	cfg.STAMP.Interval = 5 * time.Millisecond
	return cfg, collector
}

// openAgent opens an agent whose settings are right.
func openAgent(t testing.TB, cfg Config) *Agent {
	t.Helper()
	a, err := Open(cfg, (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sessionOf is the only session of an agent.
func sessionOf(t testing.TB, a *Agent) stampStatus {
	t.Helper()
	list, _ := a.STAMP()
	if len(list) != 1 {
		t.Fatalf("%d sessions", len(list))
	}
	return list[0]
}

// relay is a network between a session and the reflector of a test. It loses, repeats, delays and changes the first
// packets of each way.
type relay struct {
	conn                        *net.UDPConn
	out, home, twice, corrupted atomic.Int64 // what it did
	passed                      atomic.Int64 // requests
}

// relayed are the packets that a relay does something to; all others pass.
const relayed = 200

func startRelay(t testing.TB, reflector netip.AddrPort) *relay {
	t.Helper()
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	r := &relay{conn: listen()}
	far := listen()
	var sender atomic.Pointer[netip.AddrPort]
	go func() {
		b := make([]byte, 9000)
		for n := 1; ; n++ {
			k, from, err := r.conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			sender.Store(&from)
			if n > 1 && n < relayed && n%7 == 0 {
				r.out.Add(1)
				continue
			}
			r.passed.Add(1)
			_, _ = far.WriteToUDPAddrPort(b[:k], reflector) // a test that ends closes it
		}
	}()
	go func() {
		b := make([]byte, 9000)
		for n := 1; ; n++ {
			k, err := far.Read(b)
			if err != nil {
				return
			}
			to := *sender.Load()
			switch {
			case n == 1 || n >= relayed:
			case n%11 == 0:
				r.home.Add(1)
				continue
			case n%13 == 0:
				r.twice.Add(1)
				_, _ = r.conn.WriteToUDPAddrPort(b[:k], to)
			case n%17 == 0: // one that is changed comes before the right one
				r.corrupted.Add(1)
				b[30] ^= 1 // of the time that the request was sent, or of what is zero
				_, _ = r.conn.WriteToUDPAddrPort(b[:k], to)
				b[30] ^= 1
			}
			_, _ = r.conn.WriteToUDPAddrPort(b[:k], to)
		}
	}()
	return r
}

// TestSTAMP has two agents over real sockets, with a network between them that loses requests and answers, and repeats
// and changes some. The session counts all of it, by direction, and the collector learns of every loss.
func TestSTAMP(t *testing.T) {
	for _, c := range []struct {
		name string
		keys string
		set  func(c *STAMP)
	}{
		{"open", "", func(*STAMP) {}},
		{"authenticated", stampKeys, func(c *STAMP) { c.Size, c.CoS, c.Times = 400, true, "ptp" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			far, _ := stampConfig(t, "far")
			far.STAMP.Reflector.Listen = []string{"0"} // on loopback
			near, collector := stampConfig(t, "near")
			if c.keys != "" {
				near.STAMP.Keys = keyFile(t, c.keys)
				far.STAMP.Reflector.Keys = keyFile(t, "2 101112131415161718191a1b1c1d1e1f\n1 000102030405060708090a0b0c0d0e0f\n")
			}
			b := openAgent(t, far)
			runAgent(t, b)
			_, answers := b.STAMP()
			at := netip.MustParseAddrPort(answers.Listen[0])
			if !at.Addr().IsLoopback() {
				t.Errorf("a port alone is at %v", at)
			}
			r := startRelay(t, at)
			near.STAMP.Sessions = []STAMPSession{{To: r.conn.LocalAddr().String(), Name: "relayed"}}
			c.set(&near.STAMP)
			a := openAgent(t, near)
			runAgent(t, a)
			var s stampStatus
			wait(t, "count of all that the network did", func() bool {
				s = sessionOf(t, a)
				return r.passed.Load() > relayed+20 && int64(s.Forward) == r.out.Load() && int64(s.Back) == r.home.Load() && s.Lost == s.Forward+s.Back &&
					int64(s.Twice) == r.twice.Load() && int64(s.Corrupt) == r.corrupted.Load()
			})
			if r.out.Load() < 20 || r.home.Load() < 10 || r.twice.Load() < 5 || s.Remarked+s.Restarts+s.Failed != 0 || s.Trip.Count == 0 || s.Trip.Max <= 0 {
				t.Errorf("%+v", s.Counts)
			}
			dec := demux.New(profileOf(t, "auto"))
			buf := make([]byte, 9216)
			var reported decode.ProbeCounts
			delays := 0
			for missed := int64(0); missed < r.out.Load()+r.home.Load() || int64(reported.Forward) != r.out.Load() || int64(reported.Back) != r.home.Load() ||
				int64(reported.Twice) != r.twice.Load() || int64(reported.Corrupt) != r.corrupted.Load() || delays == 0; {
				n, err := collector.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				var batch decode.Batch
				dec.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:n], 0)
				for _, x := range batch.Reports {
					if x.Kind == decode.KindProbes && x.Err.Reason == 0 && x.Flow.DstPort == stamp.Port && x.Rare.Probes.Path == 1 && x.NodeID == a.cfg.reportedNode() {
						reported.Forward += x.Rare.Probes.Forward
						reported.Back += x.Rare.Probes.Back
						reported.Twice += x.Rare.Probes.Twice
						reported.Corrupt += x.Rare.Probes.Corrupt
						reported.Sent += x.Rare.Probes.Sent
						reported.Received += x.Rare.Probes.Received
						reported.Missed += x.Rare.Probes.Missed
						for _, d := range x.Rare.Probes.Delays {
							delays += int(d.Count)
						}
						continue
					}
					if err := x.Error(); err != nil || x.Kind != decode.KindDrop || x.DropReason != probe.DropMissing || x.Flow.DstPort != stamp.Port || x.Flow.Proto != 17 {
						t.Fatalf("%v: %+v", err, x)
					}
					missed++
				}
			}
			if s = sessionOf(t, a); reported.Sent == 0 || uint64(reported.Sent) > s.Sent || uint64(reported.Received) > s.Received || uint64(reported.Missed) > s.Missed || uint64(delays) > s.Received {
				t.Errorf("the collector was given %+v and %d delays, of %+v", reported, delays, s.Counts)
			}
			page := pageOf(t, a)
			for _, want := range []string{
				fmt.Sprintf("hopscope_agent_stamp_lost_out{session=\"relayed\"} %d\n", r.out.Load()), fmt.Sprintf("hopscope_agent_stamp_lost_home{session=\"relayed\"} %d\n", r.home.Load()),
				`hopscope_agent_stamp_delay_seconds{quantile="0.5",session="relayed",way="trip"} `, `hopscope_agent_stamp_silent{session="relayed"} 0`,
			} {
				wait(t, want, func() bool { // a slow machine may take an answer for lost for a while
					w := httptest.NewRecorder()
					page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
					return strings.Contains(w.Body.String(), want)
				})
			}
			if code, text := ready(t, a); code != 200 || text != "ready\n" {
				t.Errorf("%d, %s", code, text)
			}
		})
	}
}

// TestSTAMPNamespaces has agents in two network namespaces with a line between them, over IPv4 and IPv6, with DSCP and
// TTL. While the line is down the session has no answers, and afterwards it has them again.
func TestSTAMPNamespaces(t *testing.T) {
	namespace(t)
	inet := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	inet("address add 2001:db8::1/64 dev host0 nodad")
	here, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(here)
	// The other network is that of another thread, which holds it until the test ends.
	tid, opened, over := make(chan int), make(chan error), make(chan struct{})
	defer close(over)
	moved := make(chan struct{})
	far, _ := stampConfig(t, "far")
	far.STAMP.Reflector.Listen = []string{"0.0.0.0:8620", "[::]:8620"}
	far.STAMP.Reflector.Allow = []string{"10.0.0.0/24", "2001:db8::/64"}
	var b *Agent
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			opened <- err
			return
		}
		tid <- unix.Gettid()
		<-moved
		for _, line := range []string{"link set lo up", "address add 10.0.0.2/24 dev net0", "address add 2001:db8::2/64 dev net0 nodad", "link set net0 up"} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				opened <- fmt.Errorf("ip %s: %w: %s", line, err, out)
				return
			}
		}
		var err error
		b, err = Open(far, (&logLines{}).logger())
		opened <- err
		<-over
	}()
	select {
	case id := <-tid:
		inet(fmt.Sprint("link set net0 netns ", id))
		close(moved)
	case err := <-opened:
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	runAgent(t, b)
	near, _ := stampConfig(t, "near")
	near.STAMP.Timeout, near.STAMP.CoS, near.STAMP.DSCP = time.Second, true, 10
	near.STAMP.Sessions = []STAMPSession{{To: "10.0.0.2:8620"}, {To: "[2001:db8::2]:8620", Name: "six", DSCP: 46, From: "2001:db8::1"}}
	var logged logLines
	a, err := Open(near, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	a.stamp.reopen = time.Hour // in the network of another thread
	runAgent(t, a)
	both := func(ok func(s *stampStatus) bool) func() bool {
		return func() bool {
			list, _ := a.STAMP()
			return ok(&list[0]) && ok(&list[1])
		}
	}
	wait(t, "answer over both", both(func(s *stampStatus) bool { return s.Received > 20 && !s.Silent }))
	list, _ := a.STAMP()
	for _, s := range list {
		if s.Remarked+s.Corrupt+s.Twice != 0 {
			t.Errorf("%s: %d remarked, %d corrupt, %d twice", s.Name, s.Remarked, s.Corrupt, s.Twice)
		}
	}
	inet("link set host0 down")
	wait(t, "word of the silence", both(func(s *stampStatus) bool { return s.Silent && s.Failed > 10 }))
	if text := (&StatusAnswer{STAMP: statusOf(a, "").STAMP}).silence(); !strings.HasPrefix(text, "2 of 2 sessions of STAMP have no answers, such as 10.0.0.2:8620: ") {
		t.Error(text)
	}
	inet("link set host0 up")
	inet("address replace 2001:db8::1/64 dev host0 nodad") // which goes with the line
	wait(t, "answer again", both(func(s *stampStatus) bool { return !s.Silent && s.Received > list[0].Received+100 }))
	_, answers := b.STAMP()
	if answers.Sessions < 2 || answers.Answered == 0 {
		t.Errorf("%+v", answers)
	}
}

// TestSTAMPSilence is an absent reflector: the status reports it, with the reason, and the agent continues.
func TestSTAMPSilence(t *testing.T) {
	cfg, _ := stampConfig(t, "near")
	cfg.STAMP.Sessions, cfg.STAMP.Timeout = []STAMPSession{{To: testkit.FreeAddr(t), Name: "gone"}}, 50*time.Millisecond
	a := openAgent(t, cfg)
	runAgent(t, a)
	wait(t, "word of the silence", func() bool {
		x := statusOf(a, "")
		return strings.HasPrefix(x.Problem(), "1 of 1 sessions of STAMP have no answers, such as gone: ") && strings.Contains(x.Problem(), "connection refused")
	})
	if s := sessionOf(t, a); s.Lost == 0 || s.Received != 0 || s.Forward+s.Back != 0 {
		t.Errorf("%+v", s.Counts)
	}
	if code, text := ready(t, a); code != 200 {
		t.Errorf("%d, %s", code, text)
	}
}

// TestSTAMPBoot is a host without its address and names when the agent starts. The agent reports that, continues, and
// measures as soon as they are there.
func TestSTAMPBoot(t *testing.T) {
	far, _ := stampConfig(t, "far")
	far.STAMP.Reflector.Listen = []string{"0"}
	b := openAgent(t, far)
	runAgent(t, b)
	_, answers := b.STAMP()
	cfg, _ := stampConfig(t, "near")
	cfg.STAMP.Sessions = []STAMPSession{{To: answers.Listen[0], Name: "address", From: "192.0.2.77"}, {To: "reflector.example:8620", Name: "name"}}
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	var up atomic.Bool
	a.stamp.retry = time.Millisecond
	a.stamp.dial = func(ctx context.Context, c *socketConfig) (*udpLine, error) {
		other := *c
		switch {
		case up.Load():
			other.from, other.to = "127.0.0.1", answers.Listen[0]
		case c.from == "":
			return nil, &net.DNSError{Err: "no such host", Name: c.to, IsNotFound: true}
		}
		return dialUDP(ctx, &other)
	}
	runAgent(t, a)
	wait(t, "word of what is missing", func() bool {
		list, _ := a.STAMP()
		return strings.Contains(list[0].Why, "cannot assign requested address") && strings.Contains(list[1].Why, "no such host")
	})
	if x := statusOf(a, ""); !strings.HasPrefix(x.Problem(), "2 of 2 sessions of STAMP have no answers, such as address: ") || x.STAMP[1].Reflector != "reflector.example:8620" {
		t.Errorf("%s, %+v", x.Problem(), x.STAMP)
	}
	wait(t, "line of the log", func() bool { return strings.Contains(logged.String(), "no such host") })
	list, _ := a.STAMP()
	if x := list[0]; x.Sent+x.Failed+x.Lost != 0 {
		t.Errorf("without a socket: %+v", x)
	}
	up.Store(true)
	wait(t, "answer of both", func() bool {
		list, _ := a.STAMP()
		return list[0].Received > 10 && list[1].Received > 10 && !list[0].Silent && !list[1].Silent && list[1].Reflector == answers.Listen[0]
	})
}

// TestSTAMPListen is a reflector at addresses that the host gets after the agent has started.
func TestSTAMPListen(t *testing.T) {
	namespace(t)
	cfg, _ := stampConfig(t, "both")
	cfg.STAMP.Reflector.Listen = []string{"10.0.0.77:8620", "[2001:db8:7::1]:8620"}
	cfg.STAMP.Sessions = []STAMPSession{{To: "10.0.0.77:8620"}}
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	a.stamp.reopen = time.Hour // in the network of another thread
	if text := logged.String(); !strings.Contains(text, "address=10.0.0.77:8620") || !strings.Contains(text, "[2001:db8:7::1]:8620") {
		t.Error(text)
	}
	runAgent(t, a)
	if out, err := exec.Command("ip", "address", "add", "10.0.0.77/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wait(t, "answer", func() bool { return sessionOf(t, a).Received > 10 })
}

// TestSTAMPMoved is a reflector whose name has another address after a while. Until then the session keeps its socket, and with it its flow.
func TestSTAMPMoved(t *testing.T) {
	far, _ := stampConfig(t, "far")
	far.STAMP.Reflector.Listen = []string{"0"}
	b := openAgent(t, far)
	runAgent(t, b)
	_, answers := b.STAMP()
	gone, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close() // it does not answer
	cfg, _ := stampConfig(t, "near")
	cfg.STAMP.Sessions, cfg.STAMP.Timeout = []STAMPSession{{To: gone.LocalAddr().String(), Name: "moved"}}, 50*time.Millisecond
	a := openAgent(t, cfg)
	var moved atomic.Bool
	var tries atomic.Int64
	a.stamp.retry, a.stamp.reopen = time.Millisecond, time.Millisecond
	a.stamp.dial = func(ctx context.Context, c *socketConfig) (*udpLine, error) {
		tries.Add(1)
		other := *c
		if moved.Load() {
			other.to = answers.Listen[0]
		}
		return dialUDP(ctx, &other)
	}
	runAgent(t, a)
	ports := map[netip.AddrPort]bool{}
	wait(t, "look for another address", func() bool {
		_ = gone.SetReadDeadline(time.Now().Add(time.Second))
		if _, from, err := gone.ReadFromUDPAddrPort(make([]byte, 100)); err == nil {
			ports[from] = true
		}
		return tries.Load() > 5
	})
	if len(ports) != 1 {
		t.Errorf("requests came from %v", ports)
	}
	moved.Store(true)
	wait(t, "answer", func() bool {
		s := sessionOf(t, a)
		return s.Received > 10 && !s.Silent && s.Reflector == answers.Listen[0]
	})
}

// A request that the socket has not taken yet is not sent: the count never goes back.
func TestSTAMPSending(t *testing.T) {
	cfg, _ := stampConfig(t, "near")
	cfg.STAMP.Sessions = []STAMPSession{{To: "127.0.0.1:8620"}}
	a := openAgent(t, cfg)
	s := a.stamp.sessions[0]
	s.session.Append(nil, time.Now().UnixNano(), 0, 0)
	s.sending = true
	if x := sessionOf(t, a); x.Sent != 0 {
		t.Errorf("%d sent", x.Sent)
	}
	if s.sending = false; sessionOf(t, a).Sent != 1 {
		t.Error("the request was not sent")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// A socket that is woken lets none wait, whether to receive or to send.
func TestSTAMPWake(t *testing.T) {
	l, err := dialUDP(t.Context(), &socketConfig{from: "127.0.0.1", to: "127.0.0.1:8620"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.wake()
	if _, _, err := l.receive(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := l.send([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestSTAMPResolve finds addresses of the family that requests come from.
func TestSTAMPResolve(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"", "192.0.2.1:8620", "192.0.2.1:8620"}, {"", "[2001:db8::1]:862", "[2001:db8::1]:862"}, {"", "[fe80::1%lo]:7", "[fe80::1%lo]:7"}, {"::1", "[::1]:7", "[::1]:7"},
		{"", "[::ffff:192.0.2.1]:7", "192.0.2.1:7"}, {"192.0.2.9", "[2001:db8::1]:862", ""},
	} {
		far, own, err := resolve(t.Context(), c.from, c.to, false)
		if c.want == "" {
			if err == nil || !passes(err) {
				t.Errorf("%s: %v, %v", c.to, far, err)
			}
			continue
		}
		if err != nil || far.String() != c.want || (own == nil) != (c.from == "") {
			t.Errorf("%s: %v from %v, %v", c.to, far, own, err)
		}
	}
	if far, _, err := resolve(t.Context(), "", "192.0.2.1:8620", true); err == nil || !passes(err) || !strings.Contains(err.Error(), "IPv6, which ioam and segments need") {
		t.Errorf("%v, %v", far, err)
	}
	if far, _, err := resolve(t.Context(), "", "[2001:db8::1]:862", true); err != nil || !far.Addr().Is6() {
		t.Errorf("%v, %v", far, err)
	}
}

// TestSTAMPHostile sends the reflector truncated, forged and replayed packets, and too many. They are counted by their
// reason, no answer is longer than its request, and sessions beyond max_sessions get none.
func TestSTAMPHostile(t *testing.T) {
	cfg, _ := stampConfig(t, "far")
	cfg.STAMP.Reflector.Listen, cfg.STAMP.Reflector.Keys = []string{"127.0.0.1:0"}, keyFile(t, stampKeys)
	cfg.STAMP.Reflector.Sessions, cfg.STAMP.Reflector.Rate = 2, 20
	a := openAgent(t, cfg)
	runAgent(t, a)
	_, answers := a.STAMP()
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(answers.Listen[0]))
	k, err := probe.ReadKeys(cfg.STAMP.Reflector.Keys)
	if err != nil {
		t.Fatal(err)
	}
	keys := stamp.NewKeys(k.Secrets())
	q := stamp.Request{Seq: 1, Error: 0x8001}
	good := q.Append(nil, stamp.Authenticated)
	keys.Sign(good, 0)
	forged := append([]byte(nil), good...)
	forged[3]++
	dial := func() *net.UDPConn {
		c, err := net.DialUDP("udp", nil, to)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	send := func(c *net.UDPConn, b []byte) {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	first := dial()
	for _, b := range [][]byte{good[:111], good[:44], {}, forged, make([]byte, stamp.MostLen+1)} {
		send(first, b)
	}
	counts := func() stampAnswers { _, x := a.STAMP(); return x }
	wait(t, "count of what is refused", func() bool {
		x := counts()
		return x.Refused[stamp.Short] == 3 && x.Refused[stamp.BadMAC] == 1 && x.Refused[stamp.Long] == 1 && x.Answered == 0
	})
	buf := make([]byte, 9216)
	for n := range 5 { // a request that is replayed has answers with numbers of their own
		send(first, good)
		got, err := first.Read(buf)
		var x stamp.Answer
		if err != nil || got != len(good) || keys.Verify(buf[:got]) != 0 || x.Decode(buf[:got], stamp.Authenticated) != nil || x.Seq != uint32(n) || x.TTL != 64 {
			t.Fatalf("answer %d: %d bytes, %+v, %v", n, got, x, err)
		}
	}
	second := dial()
	send(second, good)
	if _, err := second.Read(buf); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		send(dial(), good)
	}
	wait(t, "sessions without room", func() bool { x := counts(); return x.Refused[stamp.NoRoom] == 3 && x.Sessions == 2 })
	wait(t, "answers beyond the rate", func() bool {
		for range 30 {
			send(first, good)
		}
		return counts().Refused[stamp.OverRate] > 0
	})
}

// More comes at once than a receive buffer has room for: what the kernel drops is counted with the next packet that comes.
func TestSTAMPBuffer(t *testing.T) {
	cfg, _ := stampConfig(t, "far")
	cfg.STAMP.Reflector.Listen, cfg.ReceiveBufferBytes = []string{"0"}, 65536
	a := openAgent(t, cfg) // which does not read yet
	_, answers := a.STAMP()
	c, err := net.Dial("udp", answers.Listen[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := stamp.Request{}
	b := append(q.Append(nil, stamp.Open), make([]byte, 4000)...)
	const sent = 2000
	for range sent {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	runAgent(t, a)
	wait(t, "count of what was dropped", func() bool {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		_, x := a.STAMP()
		return x.Dropped > sent/10
	})
}

// TestSTAMPSettings names what is wrong with settings.
func TestSTAMPSettings(t *testing.T) {
	for _, c := range []struct {
		want string
		set  func(c *Config)
	}{
		{"stamp.sessions[0]: \"a b\" is not HOST or HOST:PORT", func(c *Config) { c.STAMP.Sessions[0].To = "a b" }},
		{"stamp.sessions[0]: from is no address: \"x\"", func(c *Config) { c.STAMP.Sessions[0].From = "x" }},
		{"stamp.sessions[0]: of from 2001:db8::1 and to 192.0.2.1 one is IPv4", func(c *Config) { c.STAMP.Sessions[0].From = "2001:db8::1" }},
		{"stamp.reflector.allow[0]: \"::ffff:10.0.0.0/104\" is no network", func(c *Config) { c.STAMP.Reflector.Allow = []string{"::ffff:10.0.0.0/104"} }},
		{"stamp.sessions[1]: sessions[0] has the name \"192.0.2.1\" too", func(c *Config) { c.STAMP.Sessions = append(c.STAMP.Sessions, c.STAMP.Sessions[0]) }},
		{"stamp.sessions[1]: sessions[0] sends from one of its ports to 192.0.2.1:862 too", func(c *Config) {
			c.STAMP.Sessions = []STAMPSession{{To: "192.0.2.1", Port: 49152, Ports: 4}, {To: "192.0.2.1:862", Name: "again", Port: 49155, DSCP: 46}}
		}},
		{"stamp.size: 20 bytes; packets like these have 44, or 48 to 9000", func(c *Config) { c.STAMP.Size = 20 }},
		{"stamp.interval: 60000 requests would wait for their answers", func(c *Config) { c.STAMP.Interval, c.STAMP.Timeout = time.Millisecond, time.Minute }},
		{"stamp.reflector.listen[0]: \"eth0\" is neither ADDRESS:PORT nor a port", func(c *Config) { c.STAMP.Reflector.Listen = []string{"eth0"} }},
		{"stamp.reflector.allow[0]: \"10.0.0.1\" is no network", func(c *Config) { c.STAMP.Reflector.Allow = []string{"10.0.0.1"} }},
		{"are above probes_per_second or send_limit_bps", func(c *Config) { c.ProbesPerSecond = 5 }},
		{"stamp.sessions: 1025", func(c *Config) { c.STAMP.Sessions = make([]STAMPSession, 1025) }},
		{"interface: is missing", func(c *Config) { c.STAMP.Sessions = nil }},
		{"interface: is missing", func(c *Config) { c.Controller.Address = "c:1" }},
	} {
		cfg, _ := stampConfig(t, "x")
		cfg.STAMP.Interval, cfg.STAMP.Sessions = 100*time.Millisecond, []STAMPSession{{To: "192.0.2.1"}}
		c.set(&cfg)
		if err := cfg.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	cfg, _ := stampConfig(t, "x")
	cfg.STAMP.Interval, cfg.STAMP.Sessions = 100*time.Millisecond, []STAMPSession{{To: "192.0.2.1", Port: 49152, Ports: 4}, {To: "192.0.2.2", Port: 49152, Ports: 4}, {To: "192.0.2.1:862", Name: "next", Port: 49156}}
	if err := cfg.check(); err != nil {
		t.Errorf("ports of their own: %v", err)
	}
	s := STAMPSession{}
	for _, c := range [][2]string{{"192.0.2.1", "192.0.2.1:862"}, {"2001:db8::1", "[2001:db8::1]:862"}, {"host", "host:862"}, {"host:1", "host:1"}, {"[::1]:7", "[::1]:7"}} {
		if s.To = c[0]; s.reflector() != c[1] {
			t.Errorf("%s is %s, want %s", c[0], s.reflector(), c[1])
		}
	}
	for _, c := range []struct {
		set  STAMPReflector
		want string
	}{
		{STAMPReflector{Listen: []string{"8620"}, Keys: "k"}, "127.0.0.1:8620, to programs of this machine that have a key\n"},
		{STAMPReflector{Listen: []string{"192.0.2.6:8620"}, Keys: "k"}, "192.0.2.6:8620, to all that have a key\n"},
		{STAMPReflector{Listen: []string{"192.0.2.6:8620"}, Keys: "k", Allow: []string{"192.0.2.0/24", "10.0.0.0/8"}}, "192.0.2.6:8620, to 192.0.2.0/24, 10.0.0.0/8 that have a key\n"},
	} {
		var text strings.Builder
		if err := (&STAMP{Reflector: c.set}).describe(&text); err != nil || text.String() != "answers STAMP at "+c.want {
			t.Errorf("%q, %v, want %q", text.String(), err, c.want)
		}
	}
	cfg, _ = stampConfig(t, "x")
	cfg.STAMP.Keys = keyFile(t, "1 00\n")
	if err := cfg.STAMP.CheckFiles(); err == nil || !strings.Contains(err.Error(), "keys: ") {
		t.Error(err)
	}
}
