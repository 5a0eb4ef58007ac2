package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/loop"
)

// labSwitches are the four switches of the laboratory of tests, between the interfaces of two hosts. They forward probes by their
// routes and report nothing of themselves.
type labSwitches struct {
	hosts map[string]int // sockets, by leaf
	ways  map[string]string
	lossy atomic.Pointer[string] // direction that loses every twentieth probe; "" for none
	done  sync.WaitGroup
	stop  atomic.Bool
}

func startLabSwitches(t *testing.T, interfaces map[string]string) *labSwitches {
	t.Helper()
	s := &labSwitches{hosts: map[string]int{}, ways: map[string]string{
		"leaf-1:1": "spine-1", "leaf-1:2": "spine-2", "leaf-2:1": "spine-1", "leaf-2:2": "spine-2",
		"spine-1:1": "leaf-1", "spine-1:2": "leaf-2", "spine-2:1": "leaf-1", "spine-2:2": "leaf-2",
	}}
	s.lossy.Store(new(string))
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var all [2]byte
	binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
	protocol := binary.NativeEndian.Uint16(all[:])
	for leaf, name := range interfaces {
		ifi, err := net.InterfaceByName(name)
		must(err)
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
		must(err)
		t.Cleanup(func() { unix.Close(fd) })
		must(unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index, Protocol: protocol}))
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) // for a machine that is busy
		wait := unix.NsecToTimeval(int64(50 * time.Millisecond))
		must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
		s.hosts[leaf] = fd
	}
	for leaf, fd := range s.hosts {
		s.done.Go(func() { s.forward(t, leaf, fd) })
	}
	t.Cleanup(func() { s.stop.Store(true); s.done.Wait() })
	return s
}

// forward takes what the host of a leaf sends.
func (s *labSwitches) forward(t *testing.T, leaf string, fd int) {
	buf := make([]byte, 2048)
	passed := 0
	for !s.stop.Load() {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err != nil { // it waited for long enough
			continue
		}
		if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		frame, at, lost := append([]byte(nil), buf[:n]...), leaf, false
		for at != "" && len(frame) > 14 && binary.BigEndian.Uint16(frame[12:]) == srint.TypeRoute {
			port := 0
			if frame, port, err = srint.PopProbePort(frame, 12); err != nil {
				t.Error(err)
				return
			}
			if port == 9 { // its host
				if fd, ok := s.hosts[at]; ok && !lost && unix.Send(fd, frame, 0) != nil {
					t.Errorf("nothing can be sent to the host of %s", at)
				}
				break
			}
			out := fmt.Sprintf("%s:%d", at, port)
			if at = s.ways[out]; out == *s.lossy.Load() {
				passed++
				lost = lost || passed%20 == 0
			}
		}
	}
}

// TestControlRounds runs a control and two agents as programs, over gRPC with mutual TLS, and switches that report nothing. As long
// as no probe gets lost, nothing is suspected, also when an agent starts anew, is stopped for a while, or the control does. A line
// that loses one of twenty probes, and nothing else, is suspected and gets detail.
func TestControlRounds(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	runtime.LockOSThread() // and never unlocked, so that no other test finds itself there
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("this test makes a network namespace (%v), which needs CAP_SYS_ADMIN: run it as root, or under unshare --user --map-root-user --net", err)
	}
	for _, line := range []string{
		"link set lo up",
		"link add name host1 type veth peer name net1", "address add 10.0.0.1/32 dev host1", "link set host1 up", "link set net1 up",
		"link add name host2 type veth peer name net2", "address add 10.0.0.2/32 dev host2", "link set host2 up", "link set net2 up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("this test joins interfaces (ip %s: %v: %s), which needs iproute2 (.ci/namespaces.sh installs it) and CAP_NET_ADMIN", line, err, out)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"open": [], "ended": [], "windows": []}`)
	}))
	defer page.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := program("plan", "cover", "--sr=int-probe", "--depots", "leaf-1,leaf-2", "--max-hops", "2", "--directed", "--topology", at("lab.yaml"), "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	write("probes.json", string(plan))
	write("control.yaml", strings.NewReplacer("http://127.0.0.1:1", page.URL, "agents: [{name: leaf-1, address: 192.0.2.1}]", "agents: [{name: leaf-1, address: 10.0.0.1}, {name: leaf-2, address: 10.0.0.2}]",
		"interval: 50ms", "interval: 20ms").Replace(string(mustRead(t, config))))
	network := startLabSwitches(t, map[string]string{"leaf-1": "net1", "leaf-2": "net2"})
	start := func(log *lockedBuffer, args ...string) *exec.Cmd {
		t.Helper()
		c := program(args...)
		c.Stderr = log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	var logs [3]lockedBuffer
	agents := make([]*exec.Cmd, 3)
	run := func(k int) {
		t.Helper()
		name := fmt.Sprintf("leaf-%d", k)
		write(name+".yaml", fmt.Sprintf("name: %s\ninterface: host%d\nnode_id: %d\nstatus: {listen: \"127.0.0.1:%d\"}\ncontroller: {address: \"%s\", name: controller, ca_file: %s, cert_file: %s, key_file: %s, plan_file: %s}\n",
			name, k, 100+k, 9470+k, listen, at("ca.pem"), at(name+".pem"), at(name+".key"), at(name+".plan")))
		agents[k] = start(&logs[k], "agent", "--config", at(name+".yaml"))
	}
	run(1)
	run(2)
	control := start(&logs[0], "control", "--config", config)
	until := func(what string, ok func(s *loop.Status) bool) (s loop.Status) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			out, _ := program("control", "status", "--url", admin, "--format", "json").Output()
			if s = (loop.Status{}); json.Unmarshal(out, &s) == nil && ok(&s) {
				return s
			}
		}
		t.Fatalf("%s: it never came about: %+v %+v\n%s\n%s\n%s", what, s, s.Rounds, logs[0].text(), logs[1].text(), logs[2].text())
		return s
	}
	// Quiet: as many more rounds of four probes are known, and none is lost.
	quiet := func(what string, more uint64) {
		t.Helper()
		from := uint64(0)
		until(what, func(s *loop.Status) bool {
			if s.Rounds == nil {
				return false
			}
			if from == 0 {
				from = s.Rounds.Sent + 1
			}
			if len(s.Suspects) > 0 || s.Rounds.Lost > 0 || s.Rounds.Refused > 0 {
				t.Fatalf("%s: suspects %+v, rounds %+v", what, s.Suspects, *s.Rounds)
			}
			return s.Rounds.Sent > from+more && s.Rounds.Probes == 4
		})
	}
	quiet("quiet", 400)
	_ = agents[1].Process.Kill()
	_ = agents[1].Wait()
	run(1)
	quiet("an agent was killed and starts again", 200)
	_ = agents[2].Process.Signal(unix.SIGSTOP)
	time.Sleep(1500 * time.Millisecond) // longer than rounds take to settle
	_ = agents[2].Process.Signal(unix.SIGCONT)
	quiet("an agent stood still", 200)
	_ = control.Process.Kill()
	_ = control.Wait()
	control = start(&logs[0], "control", "--config", config)
	quiet("the control was killed and starts again", 200)

	lossy := "leaf-1:2"
	network.lossy.Store(&lossy)
	s := until("a suspect with detail", func(s *loop.Status) bool {
		return len(s.Suspects) > 0 && s.InForce == s.Epoch && s.Detailed > 0
	})
	// The probe that crosses it crosses another line, too, which no other one does.
	for _, x := range s.Suspects {
		if !strings.HasPrefix(x.Link, "leaf-1:2--spine-2:1") && !strings.HasPrefix(x.Link, "spine-2:2--leaf-2:2") || !strings.Contains(x.Why, "rounds of the probes that cross it got lost") || !s.Links[x.Link].Detailed {
			t.Errorf("%s is suspected: %s", x.Link, x.Why)
		}
	}
	if len(s.Suspects) != 2 || s.Rounds.Lost < 4 {
		t.Errorf("suspects %+v, rounds %+v", s.Suspects, *s.Rounds)
	}
	t.Logf("of %d rounds %d lost: %s", s.Rounds.Sent, s.Rounds.Lost, s.Suspects[0].Why)
	network.lossy.Store(new(string))
	until("well again", func(s *loop.Status) bool { return len(s.Suspects) == 0 && s.Detailed == 0 && s.InForce == s.Epoch })
	if err := control.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := control.Wait(); err != nil {
		t.Errorf("control ends with %v\n%s", err, logs[0].text())
	}
}
