package agent

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/stamp"
)

// network is a network of its own that a thread holds until the test ends.
type network struct {
	tid  int
	jobs chan func()
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	n := &network{jobs: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.tid = unix.Gettid()
		ready <- err
		for job := range n.jobs {
			job()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(n.jobs) })
	return n
}

// do runs a function in the network.
func (n *network) do(job func()) {
	done := make(chan struct{})
	n.jobs <- func() { job(); close(done) }
	<-done
}

// ip runs commands of iproute2 in the network.
func (n *network) ip(t testing.TB, lines ...string) {
	t.Helper()
	n.do(func() {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", line, err, out)
			}
		}
	})
}

// set writes settings of the kernel's network.
func (n *network) set(t testing.TB, values ...string) {
	t.Helper()
	n.do(func() {
		for _, v := range values {
			name, value, _ := strings.Cut(v, "=")
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWays sweeps ports over two routers of Linux with two links between them, over IPv4 and IPv6. Both links are
// found, and two ports cover all of them. When a link leaves the routes, its ports are noticed in the second look.
func TestWays(t *testing.T) {
	testkit.Long(t)
	namespace(t) // the host that measures: 10.0.0.1 on host0; net0 goes to the first router
	first, second, far := newNetwork(t), newNetwork(t), newNetwork(t)
	here := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v: %s", line, err, out)
			}
		}
	}
	here("address add 2001:db8:0::1/64 dev host0 nodad", fmt.Sprint("link set net0 netns ", first.tid),
		"link add a1 type veth peer name b1", "link add a2 type veth peer name b2", "link add c0 type veth peer name d0",
		fmt.Sprint("link set a1 netns ", first.tid), fmt.Sprint("link set a2 netns ", first.tid), fmt.Sprint("link set b1 netns ", second.tid), fmt.Sprint("link set b2 netns ", second.tid),
		fmt.Sprint("link set c0 netns ", second.tid), fmt.Sprint("link set d0 netns ", far.tid))
	router := []string{"ipv4/ip_forward=1", "ipv6/conf/all/forwarding=1", "ipv4/fib_multipath_hash_policy=1", "ipv6/fib_multipath_hash_policy=1",
		"ipv4/icmp_errors_use_inbound_ifaddr=1", "ipv4/icmp_ratelimit=0", "ipv6/icmp/ratelimit=0", "ipv6/conf/default/accept_dad=0"}
	first.set(t, router...)
	second.set(t, router...)
	first.ip(t, "link set lo up", "address add 10.0.0.2/24 dev net0", "address add 2001:db8:0::2/64 dev net0 nodad", "link set net0 up",
		"address add 10.1.1.1/24 dev a1", "address add 10.1.2.1/24 dev a2", "address add 2001:db8:1::1/64 dev a1 nodad", "address add 2001:db8:2::1/64 dev a2 nodad", "link set a1 up", "link set a2 up")
	second.ip(t, "link set lo up", "address add 10.1.1.2/24 dev b1", "address add 10.1.2.2/24 dev b2", "address add 2001:db8:1::2/64 dev b1 nodad", "address add 2001:db8:2::2/64 dev b2 nodad",
		"link set b1 up", "link set b2 up", "address add 10.9.0.1/24 dev c0", "address add 2001:db8:9::1/64 dev c0 nodad", "link set c0 up",
		"route add 10.0.0.0/24 via 10.1.1.1", "route add 2001:db8:0::/64 via 2001:db8:1::1")
	first.ip(t, "route add 10.9.0.0/24 nexthop via 10.1.1.2 nexthop via 10.1.2.2", "route add 2001:db8:9::/64 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2")
	far.ip(t, "link set lo up", "address add 10.9.0.2/24 dev d0", "address add 2001:db8:9::2/64 dev d0 nodad", "link set d0 up", "route add default via 10.9.0.1", "route add default via 2001:db8:9::1")
	here("route add default via 10.0.0.2", "route add default via 2001:db8:0::2")
	if t.Failed() {
		t.Fatal("the network is not there")
	}
	reflector, _ := stampConfig(t, "far")
	reflector.STAMP.Reflector.Listen = []string{"10.9.0.2:8620", "[2001:db8:9::2]:8620"}
	var b *Agent
	var err error
	far.do(func() { b, err = Open(reflector, (&logLines{}).logger()) })
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, b)
	near, collector := stampConfig(t, "near")
	near.STAMP.Trace, near.STAMP.Interval = 2*time.Second, 20*time.Millisecond
	near.STAMP.Sessions = []STAMPSession{{To: "10.9.0.2:8620", Port: 49152, Ports: 16}, {To: "[2001:db8:9::2]:8620", Name: "six", Port: 49152, Ports: 16}}
	a := openAgent(t, near)
	a.stamp.reopen = time.Hour // in the network of another thread
	runAgent(t, a)
	ways := func() (list []stamp.Way) {
		x := statusOf(a, "")
		for _, w := range x.Ways() {
			list = append(list, w.Way)
		}
		return list
	}
	wait(t, "ways of all ports", func() bool {
		list := ways()
		return len(list) == 32 && !slices.ContainsFunc(list, func(w stamp.Way) bool { return len(w.Hops) != 2 || slices.Contains(w.Hops, netip.Addr{}) })
	})
	list := ways()
	by := func(address string) (n int) {
		for _, w := range list {
			if w.Hops[1] == netip.MustParseAddr(address) {
				n++
			}
		}
		return n
	}
	if list[0].Hops[0] != netip.MustParseAddr("10.0.0.2") || by("10.1.1.2") == 0 || by("10.1.2.2") == 0 || by("10.1.1.2")+by("10.1.2.2") != 16 {
		t.Errorf("ways over IPv4: %v", list[:16])
	}
	if list[16].From != netip.MustParseAddr("2001:db8::1") || by("2001:db8:1::2")+by("2001:db8:2::2") != 16 {
		t.Errorf("ways over IPv6: %v", list[16:])
	}
	if p := stamp.Choose(list[:16], stamp.ByInterface, false, 10, 1); len(p.Chosen) != 2 || !p.Smallest() || p.Links != 4 {
		t.Errorf("over IPv4 %+v", p)
	}
	wait(t, "answers over all ways", func() bool { // those of IPv6 may have to find their neighbours first
		return !slices.ContainsFunc(statusOf(a, "").STAMP, func(s sessionAnswer) bool { return s.Silent || s.Failed > 0 })
	})
	reported := reportedWays(t, collector, len(list))
	for i, w := range list {
		if got := reported[netip.AddrPortFrom(w.From, 49152+uint16(i%16))]; !slices.Equal(got, w.Hops) {
			t.Errorf("reported is %v, and the way is %v", got, w.Hops)
		}
	}

	moved := by("10.1.2.2")
	first.ip(t, "route replace 10.9.0.0/24 via 10.1.1.2")
	wait(t, "other ways", func() bool {
		n := 0
		for _, s := range statusOf(a, "").STAMP[:16] {
			if s.Way.Hops[1] == netip.MustParseAddr("10.1.1.2") {
				n++
			}
		}
		return n == 16
	})
	later := 0
	for _, s := range statusOf(a, "").STAMP {
		if s.Way.Epoch == 2 {
			later++
		}
	}
	if later != moved {
		t.Errorf("%d ports have a second way, want %d", later, moved)
	}
}

// reportedWays reads a collector's socket until it has the ways of n sessions, by their address and port.
func reportedWays(t *testing.T, collector *net.UDPConn, n int) map[netip.AddrPort][]netip.Addr {
	t.Helper()
	ways := map[netip.AddrPort][]netip.Addr{}
	dec := demux.New(profileOf(t, "auto"))
	for buf := make([]byte, 9216); len(ways) < n; {
		size, err := collector.Read(buf)
		if err != nil {
			t.Fatalf("%d ways are reported: %v", len(ways), err)
		}
		var batch decode.Batch
		dec.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:size], 0)
		for _, r := range batch.Reports {
			if r.Kind != decode.KindProbes || len(r.Rare.Probes.Way) == 0 {
				continue
			}
			var hops []netip.Addr
			for _, a := range r.Rare.Probes.Way {
				hops = append(hops, a.Netip())
			}
			ways[netip.AddrPortFrom(r.Flow.Src.Netip(), r.Flow.SrcPort)] = hops
		}
	}
	return ways
}

// TestFewAnswers traces sixteen ports behind a router that answers once a second: each of them has its turn.
func TestFewAnswers(t *testing.T) {
	testkit.Long(t)
	namespace(t)
	router, far := newNetwork(t), newNetwork(t)
	for _, line := range []string{
		fmt.Sprint("link set net0 netns ", router.tid), "link add c0 type veth peer name d0", fmt.Sprint("link set c0 netns ", router.tid), fmt.Sprint("link set d0 netns ", far.tid),
		"route add default via 10.0.0.2",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	router.set(t, "ipv4/ip_forward=1", "ipv4/icmp_ratelimit=1000")
	router.ip(t, "link set lo up", "address add 10.0.0.2/24 dev net0", "link set net0 up", "address add 10.9.0.1/24 dev c0", "link set c0 up")
	far.ip(t, "link set lo up", "address add 10.9.0.2/24 dev d0", "link set d0 up", "route add default via 10.9.0.1")
	if t.Failed() {
		t.Fatal("the network is not there")
	}
	reflector, _ := stampConfig(t, "far")
	reflector.STAMP.Reflector.Listen = []string{"10.9.0.2:8620"}
	var b *Agent
	var err error
	far.do(func() { b, err = Open(reflector, (&logLines{}).logger()) })
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, b)
	near, _ := stampConfig(t, "near")
	near.STAMP.Trace, near.STAMP.Interval = time.Second, 20*time.Millisecond
	near.STAMP.Sessions = []STAMPSession{{To: "10.9.0.2:8620", Port: 49152, Ports: 16}}
	a := openAgent(t, near)
	a.stamp.reopen = time.Hour // in the network of another thread
	runAgent(t, a)
	wait(t, "ways of all ports", func() bool {
		x := statusOf(a, "")
		return len(x.Ways()) == 16
	})
}
