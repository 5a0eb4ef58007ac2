package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const isolatedEnv = "HOPSCOPE_ISOLATED_TEST"

// Isolated runs the calling test again in a process with a network of its own, in which host0 and net0 are joined. It
// reports whether this is that process.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(isolatedEnv) == t.Name() {
		quiet := "/proc/sys/net/ipv6/conf/all/disable_ipv6" // its multicast has the next header 0
		if err := os.WriteFile(quiet, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, line := range []string{"link set lo up", "link add name host0 type veth peer name net0", "link set host0 up", "link set net0 up"} {
			IP(t, line)
		}
		return true
	}
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), isolatedEnv+"="+t.Name())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := child.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in a network namespace, which needs CAP_SYS_ADMIN (root, or unshare --user --map-root-user --net): %v\n%s", err, out)
	}
	return false
}

// IP runs the command ip.
func IP(t testing.TB, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s (.ci/namespaces.sh installs iproute2)", line, err, out)
	}
}

// FrameSender sends frames out of an interface. The kernel has room for a few hundred frames in transit, so the sender waits
// for those of the reader now and then.
type FrameSender struct {
	Wanted uint64 // frames sent that the reader takes

	t      testing.TB
	fd     int
	taken  func() uint64
	before uint64 // taken then
}

// NewFrameSender opens a sender at an interface. The function taken counts what the reader took so far.
func NewFrameSender(t testing.TB, index int, taken func() uint64) *FrameSender {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
		t.Fatal(err)
	}
	return &FrameSender{t: t, fd: fd, taken: taken, before: taken()}
}

// Send sends a frame, which is one of those that the reader takes if wanted is set.
func (s *FrameSender) Send(frame []byte, wanted bool) {
	s.t.Helper()
	defer func() {
		if !wanted {
			return
		}
		if s.Wanted++; s.Wanted%100 == 0 {
			Until(s.t, "the ring had what was sent", func() bool { return s.taken()-s.before >= s.Wanted })
		}
	}()
	for {
		_, err := unix.Write(s.fd, frame)
		if err == unix.ENOBUFS { // the queue of the interface is full for a moment
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
}
