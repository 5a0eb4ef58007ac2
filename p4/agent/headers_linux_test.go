package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/stamp"
)

// line6 is three networks behind the test's own one, 2001:db8::1 on host0, in a line over IPv6: two routers with two
// links between them, and the far host 2001:db8:9::2.
type line6 struct{ first, second, far *network }

func newLine6(t testing.TB) *line6 {
	t.Helper()
	namespace(t)
	n := &line6{newNetwork(t), newNetwork(t), newNetwork(t)}
	here(t, "address add 2001:db8:0::1/64 dev host0 nodad", fmt.Sprint("link set net0 netns ", n.first.tid),
		"link add a1 type veth peer name b1", "link add a2 type veth peer name b2", "link add c0 type veth peer name d0",
		fmt.Sprint("link set a1 netns ", n.first.tid), fmt.Sprint("link set a2 netns ", n.first.tid), fmt.Sprint("link set b1 netns ", n.second.tid),
		fmt.Sprint("link set b2 netns ", n.second.tid), fmt.Sprint("link set c0 netns ", n.second.tid), fmt.Sprint("link set d0 netns ", n.far.tid))
	for _, r := range []*network{n.first, n.second} {
		r.set(t, "ipv6/conf/all/forwarding=1", "ipv6/icmp/ratelimit=0", "ipv6/conf/default/accept_dad=0")
	}
	n.first.ip(t, "link set lo up", "address add 2001:db8:0::2/64 dev net0 nodad", "link set net0 up",
		"address add 2001:db8:1::1/64 dev a1 nodad", "address add 2001:db8:2::1/64 dev a2 nodad", "link set a1 up", "link set a2 up")
	n.second.ip(t, "link set lo up", "address add 2001:db8:1::2/64 dev b1 nodad", "address add 2001:db8:2::2/64 dev b2 nodad", "link set b1 up", "link set b2 up",
		"address add 2001:db8:9::1/64 dev c0 nodad", "link set c0 up", "route add 2001:db8:0::/64 via 2001:db8:1::1")
	n.far.ip(t, "link set lo up", "address add 2001:db8:9::2/64 dev d0 nodad", "link set d0 up", "route add default via 2001:db8:9::1")
	here(t, "route add default via 2001:db8:0::2")
	if t.Failed() {
		t.Fatal("the network is not there")
	}
	return n
}

// here runs commands of iproute2 in the network of the test.
func here(t testing.TB, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
}

// reflector runs an agent in the far network that answers requests and reports their traces to a socket there.
func (n *line6) reflector(t testing.TB) (*Agent, *net.UDPConn) {
	t.Helper()
	var b *Agent
	var collector *net.UDPConn
	var err error
	n.far.do(func() {
		var cfg Config
		cfg, collector = stampConfig(t, "far")
		cfg.STAMP.Reflector.Listen, cfg.STAMP.Reflector.IOAM = []string{"[2001:db8:9::2]:8620"}, true
		b, err = Open(cfg, (&logLines{}).logger())
	})
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, b)
	return b, collector
}

// TestTraces sends requests with a trace of IOAM over two routers of the kernel, which add themselves. The far agent
// reports it, and a collector reads it as a trace of the session's flow. A trace with room for one router says that the
// second one had none. Routers leave one of another namespace empty, and nothing is reported of it.
func TestTraces(t *testing.T) {
	testkit.Long(t)
	n := newLine6(t)
	n.first.set(t, "ipv6/ioam6_id=11", "ipv6/conf/net0/ioam6_enabled=1", "ipv6/conf/net0/ioam6_id=101", "ipv6/conf/a1/ioam6_id=102")
	n.second.set(t, "ipv6/ioam6_id=12", "ipv6/conf/b1/ioam6_enabled=1", "ipv6/conf/b1/ioam6_id=201", "ipv6/conf/c0/ioam6_id=202")
	n.first.ip(t, "route add 2001:db8:9::/64 via 2001:db8:1::2")
	fills := true
	for _, r := range []*network{n.first, n.second} {
		r.do(func() {
			out, err := exec.Command("ip", "ioam", "namespace", "add", "123").CombinedOutput()
			if fills = err == nil; err != nil && !strings.Contains(string(out), "not permitted") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	b, collector := n.reflector(t)
	sender := func(name string, set func(c *STAMP)) *Agent {
		cfg, _ := stampConfig(t, name)
		cfg.STAMP.Interval = 20 * time.Millisecond
		cfg.STAMP.IOAM.Namespace = 123
		cfg.STAMP.Sessions = []STAMPSession{{To: "[2001:db8:9::2]:8620", IOAM: true, DSCP: 10, SSID: 5}}
		set(&cfg.STAMP)
		a := openAgent(t, cfg)
		a.stamp.reopen = time.Hour // in the network of another thread
		runAgent(t, a)
		return a
	}
	traces := func(outcome stamp.Outcome) uint64 {
		_, answers := b.STAMP()
		return answers.Traces[outcome]
	}
	a := sender("near", func(*STAMP) {})
	wait(t, "answers to requests with a trace", func() bool { return sessionOf(t, a).Received > 10 })
	if !fills { // only the machine's own root can have the kernel know a namespace
		wait(t, "count of traces that no router filled in", func() bool { return traces(stamp.Empty) > 10 })
		t.Log("the routers know no namespace, so that no trace has data; as root of the machine they do")
		return
	}
	next := func(ok func(r *decode.Report) bool) *decode.Report {
		t.Helper()
		dec, buf := demux.New(profileOf(t, "auto")), make([]byte, 9216)
		_ = collector.SetReadDeadline(time.Now().Add(testkit.Patience))
		for {
			k, err := collector.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			var batch decode.Batch
			dec.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), slices.Clone(buf[:k]), 0)
			for _, r := range batch.Reports {
				if err := r.Error(); err != nil {
					t.Fatal(err)
				}
				if ok(r) {
					return r
				}
			}
		}
	}
	r := next(func(r *decode.Report) bool { return r.Kind == decode.KindTrace })
	x := &r.AddRare().IOAM
	if len(r.Hops) != 2 || !r.WholePath() || r.Flags&(decode.Active|decode.Tracked|decode.Overflow) != decode.Active|decode.Tracked || r.Format != decode.TelemetryReport || r.NodeID != b.cfg.reportedNode() ||
		r.TTL != 253 || x.Namespace != 123 || x.TraceType != 0xc20000 || x.RemainingLen != 6*3 || len(x.Nodes) != 2 || x.Nodes[0].HopLimit != 254 || x.Nodes[1].HopLimit != 253 {
		t.Fatalf("%+v\n%+v", r, x)
	}
	for k, want := range []decode.Hop{{NodeID: 11, IngressIf: 101, EgressIf: 102}, {NodeID: 12, IngressIf: 201, EgressIf: 202}} {
		if h := &r.Hops[k]; h.NodeID != want.NodeID || h.IngressIf != want.IngressIf || h.EgressIf != want.EgressIf || !h.Set(decode.HopNodeID|decode.HopIngressIf|decode.HopEgressIf|decode.HopQueueOccupancy) {
			t.Errorf("hop %d is %+v, want %+v", k, *h, want)
		}
	}
	from := sessionOf(t, a).From
	if k := r.Flow; k.SrcAddr() != from || k.DstAddr() != netip.MustParseAddr("2001:db8:9::2") || k.DstPort != stamp.Port || k.Proto != packet.ProtoUDP || k.SrcPort != a.stamp.sessions[0].line.local().Port() {
		t.Errorf("of flow %v", k)
	}
	if page := pageText(t, b); !strings.Contains(page, `hopscope_agent_stamp_traces_total{outcome="whole"} `) || strings.Contains(page, `hopscope_agent_stamp_traces_total{outcome="whole"} 0`) {
		t.Error(page)
	}
	if s := statusOf(b, ""); s.Reflector.Traces["whole"] == 0 || len(s.Reflector.Traces) != 1 {
		t.Errorf("%+v", s.Reflector)
	}

	sender("small", func(c *STAMP) { c.IOAM.Nodes, c.Sessions[0].SSID = 1, 6 })
	r = next(func(r *decode.Report) bool { return r.Kind == decode.KindTrace && r.Flags&decode.Overflow != 0 })
	if len(r.Hops) != 1 || r.Hops[0].NodeID != 11 || r.WholePath() || traces(stamp.Overflow) == 0 {
		t.Errorf("%+v", r)
	}

	sender("foreign", func(c *STAMP) { c.IOAM.Namespace, c.Sessions[0].SSID = 77, 7 })
	wait(t, "count of traces that no router filled in", func() bool { return traces(stamp.Empty) > 10 })
	if n := traces(stamp.Malformed); n != 0 {
		t.Errorf("%d traces are malformed", n)
	}
}

// pageText is the page of metrics of an agent.
func pageText(t testing.TB, a *Agent) string {
	t.Helper()
	w := httptest.NewRecorder()
	pageOf(t, a).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestSegments sends requests over two routers, of which the first one has no route to the far host. Only those that
// pass a segment at the second one come there, over the link of the segment.
func TestSegments(t *testing.T) {
	testkit.Long(t)
	n := newLine6(t)
	n.second.set(t, "ipv6/conf/all/seg6_enabled=1", "ipv6/conf/b2/seg6_enabled=1")
	n.far.set(t, "ipv6/conf/all/seg6_enabled=1", "ipv6/conf/d0/seg6_enabled=1")
	n.reflector(t)
	cfg, _ := stampConfig(t, "near")
	cfg.STAMP.Interval = 20 * time.Millisecond
	cfg.STAMP.Sessions = []STAMPSession{
		{To: "[2001:db8:9::2]:8620", Name: "direct"}, {To: "[2001:db8:9::2]:8620", Name: "over a segment", Segments: []string{"2001:db8:2::2"}},
		{To: "[2001:db8:9::2]:8620", Name: "over two", Segments: []string{"2001:db8:2::2", "2001:db8:1::2"}},
	}
	n.second.set(t, "ipv6/conf/b1/seg6_enabled=1")
	a := openAgent(t, cfg)
	a.stamp.reopen = time.Hour // in the network of another thread
	runAgent(t, a)
	wait(t, "answers to requests over segments", func() bool {
		list, _ := a.STAMP()
		return list[1].Received > 10 && list[2].Received > 10
	})
	list, _ := a.STAMP()
	if list[0].Received > 0 || list[0].Sent == 0 && list[0].Failed == 0 {
		t.Errorf("without a route: %+v", list[0])
	}
	counted := n.first.sent(t, "a2")
	wait(t, "further packets on the link of the segment", func() bool { return n.first.sent(t, "a2") > counted+10 })
}

// sent is the number of packets that an interface has sent.
func (n *network) sent(t testing.TB, face string) (packets uint64) {
	t.Helper()
	n.do(func() {
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			t.Error(err)
			return
		}
		_, rest, _ := strings.Cut(string(b), face+":")
		if columns := strings.Fields(rest); len(columns) > 9 { // eight of what was received, and the bytes
			packets, err = strconv.ParseUint(columns[9], 10, 64)
		}
		if err != nil || packets == 0 && rest == "" {
			t.Errorf("%v in %s", err, b)
		}
	})
	return packets
}

// TestHeadersOnWire sends a request with a trace and a segment, and reads its frame from the line: the trace is before
// the segment, which is the destination, and the checksum is that of the packet at its end.
func TestHeadersOnWire(t *testing.T) {
	namespace(t)
	here(t, "address add 2001:db8:0::1/64 dev host0 nodad", "neighbor add 2001:db8:0::7 lladdr 02:00:00:00:00:07 dev host0", "route add 2001:db8:9::/64 via 2001:db8:0::7")
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_IPV6)))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	peer, err := net.InterfaceByName("net0")
	if err != nil {
		t.Fatal(err)
	}
	patience := unix.NsecToTimeval(int64(testkit.Patience))
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_IPV6), Ifindex: peer.Index}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience)); err != nil {
		t.Fatal(err)
	}
	c := STAMP{IOAM: stamp.IOAM{Namespace: 123, Type: "0xc20000", Nodes: 2}}
	s := single{STAMPSession: STAMPSession{To: "[2001:db8:9::2]:8620", IOAM: true, Segments: []string{"2001:db8:0::7"}, Port: 49152}}
	x, err := c.socket(&s, &stamp.Plan{DSCP: 46})
	if err != nil {
		t.Fatal(err)
	}
	l, err := dialUDP(t.Context(), &x)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	payload := []byte("the payload of a request")
	if err := l.send(payload); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2000)
	for {
		k, _, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		if b = b[:k]; len(b) > 54 && b[20] == 0 && b[54] == 43 { // no report of multicast groups
			break
		}
		b = b[:cap(b)]
	}
	b = b[14:]
	hops, segment, end := netip.MustParseAddr("2001:db8:0::1"), netip.MustParseAddr("2001:db8:0::7"), netip.MustParseAddr("2001:db8:9::2")
	if got := binary.BigEndian.Uint32(b) >> 20 & 0xff; got != 46<<2 || b[7] != stampTTL || netip.AddrFrom16([16]byte(b[8:])) != hops || netip.AddrFrom16([16]byte(b[24:])) != segment {
		t.Errorf("IPv6 header %x", b[:40])
	}
	want := slices.Clone(x.hops)
	want[0] = 43
	if h := b[40 : 40+len(want)]; !slices.Equal(h, want) {
		t.Errorf("hop-by-hop header %x, want %x", h, want)
	}
	r := b[40+len(want):]
	if r[0] != 17 || r[1] != 4 || r[2] != 4 || r[3] != 1 || r[4] != 1 || netip.AddrFrom16([16]byte(r[8:])) != end || netip.AddrFrom16([16]byte(r[24:])) != segment {
		t.Errorf("routing header %x", r[:40])
	}
	u := r[40:]
	addresses := append(hops.AsSlice(), end.AsSlice()...)
	if string(u[8:]) != string(payload) || packet.Fold(packet.PseudoHeader(addresses, packet.ProtoUDP, len(u))+packet.Sum(u)) != 0xffff {
		t.Errorf("UDP %x", u)
	}
}

// TestTraceRights is a session with a trace in a process that may not send one: the error says what it needs.
func TestTraceRights(t *testing.T) {
	namespace(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var d [2]unix.CapUserData
		if err := unix.Capget(&h, &d[0]); err != nil {
			done <- err
			return
		}
		d[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&h, &d[0]); err != nil {
			done <- err
			return
		}
		cfg := DefaultConfig()
		cfg.STAMP.Sessions = []STAMPSession{{To: "[::1]:8620", IOAM: true}}
		a, err := Open(cfg, (&logLines{}).logger())
		if err == nil {
			err = fmt.Errorf("it is open: %w", a.Close())
		}
		done <- err
	}()
	if err := <-done; !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "session [::1]:8620: IOAM trace: operation not permitted: hop-by-hop options need CAP_NET_RAW") {
		t.Error(err)
	}
}

// TestClassesOnWire sends requests of three classes over sockets to a reflector that reads the class from the packets,
// and loses those of one. The session of that class has the losses, and so has its path at the collector.
func TestClassesOnWire(t *testing.T) {
	namespace(t)
	for _, at := range []string{"127.0.0.1", "::1"} {
		l, _, err := listenUDP(netip.AddrPortFrom(netip.MustParseAddr(at), 0), 1<<16, false)
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		var seen [64]atomic.Int64 // by DSCP
		ports := make(chan [2]uint16, 1024)
		go func() {
			engine := stamp.Reflector{Stateful: true, Sessions: 10, Rate: 1e6}
			buf, out := make([]byte, 9000), make([]byte, 0, 9000)
			for {
				k, a, err := l.receive(buf)
				if err != nil {
					return // it is closed
				}
				seen[a.TOS>>2].Add(1)
				select {
				case ports <- [2]uint16{a.From.Port(), uint16(a.TOS)}:
				default:
				}
				if a.TOS>>2 == 10 {
					continue
				}
				if answer, tos, err := engine.Reply(out, buf[:k], &a, time.Now().UnixNano(), 0); err == nil {
					_ = l.answer(answer, &a, tos) // the session may be over
				}
			}
		}()
		cfg, collector := stampConfig(t, "near")
		cfg.STAMP.Timeout = 50 * time.Millisecond
		cfg.STAMP.Sessions = []STAMPSession{{To: l.local().String(), Name: "x", DSCPs: []int{0, 10, 46}}}
		a := openAgent(t, cfg)
		stop := runAgent(t, a)
		wait(t, "loss of one class", func() bool {
			list, _ := a.STAMP()
			return list[0].Received > 10 && list[2].Received > 10 && list[1].Lost > 10
		})
		list, _ := a.STAMP()
		if len(list) != 3 || list[0].Name != "x dscp 0" || list[1].Name != "x dscp 10" || list[2].Name != "x dscp 46" || list[1].Received != 0 {
			t.Errorf("%+v", list)
		}
		lost, received := map[uint32]uint32{}, map[uint32]uint32{}
		dec, buf := demux.New(profileOf(t, "auto")), make([]byte, 9216)
		_ = collector.SetReadDeadline(time.Now().Add(testkit.Patience))
		for lost[decode.ClassPath(2, 10)] < 10 || received[decode.ClassPath(1, 0)] < 10 || received[decode.ClassPath(3, 46)] < 10 {
			k, err := collector.Read(buf)
			if err != nil {
				t.Fatal(err, lost)
			}
			var batch decode.Batch
			dec.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:k], 0)
			for _, r := range batch.Reports {
				if r.Kind == decode.KindProbes {
					lost[r.Rare.Probes.Path] += r.Rare.Probes.Missed
					received[r.Rare.Probes.Path] += r.Rare.Probes.Received
				}
			}
		}
		if received[decode.ClassPath(2, 10)] != 0 || len(lost) != 3 {
			t.Errorf("at the collector: lost %v, received %v", lost, received)
		}
		stop()
		for d := range seen {
			if some := seen[d].Load() > 0; some != slices.Contains([]int{0, 10, 46}, d) {
				t.Errorf("%s: %d packets with DSCP %d", at, seen[d].Load(), d)
			}
		}
		classes := map[uint16]uint16{}
		for range len(ports) {
			p := <-ports
			if before, known := classes[p[0]]; known && before != p[1] {
				t.Errorf("port %d has types of service %d and %d", p[0], before, p[1])
			}
			classes[p[0]] = p[1]
		}
		if len(classes) != 3 {
			t.Errorf("ports and types of service: %v", classes)
		}
	}
}
