package agent

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace puts the calling test into a network of its own, with two interfaces host0 and net0 that are joined, and lo. Sockets that
// the test's goroutine opens from now on are there. The thread ends with the test, and the network with its last socket.
func namespace(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked, so that no other test finds itself there
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("this test makes a network namespace (%v), which needs CAP_SYS_ADMIN: run it as root, or as\n"+
			"\tunshare --user --map-root-user --net go test ./p4/agent", err)
	}
	for _, line := range []string{
		"link set lo up",
		"link add name host0 type veth peer name net0",
		"address add 10.0.0.1/24 dev host0",
		"link set host0 up",
		"link set net0 up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("this test joins two interfaces (ip %s: %v: %s), which needs iproute2, veth in the kernel and CAP_NET_ADMIN: .ci/namespaces.sh installs the first",
				line, err, out)
		}
	}
}
