//go:build torture

package torture

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/internal/servertest"
)

// disk is between the program and the files below a directory. A filter in the kernel (seccomp(2),
// SECCOMP_RET_USER_NOTIF) asks it about every write and every sync. It needs no privilege, and no change of the
// program.
type disk struct {
	dir      string
	full     atomic.Bool  // writes get ENOSPC
	broken   atomic.Bool  // syncs get EIO
	folders  atomic.Bool  // those of directories do, and no others
	slowness atomic.Int64 // of a sync, in nanoseconds
	refused  atomic.Int64 // calls that got an error
	slowed   atomic.Int64
}

const diskEnv = "HOPSCOPE_TORTURE_DISK"

// asked are the system calls that the filter asks about.
var asked = []uint32{unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC}

// attach makes cmd start behind the filter: this program starts, sets the filter up, hands its other end over and becomes
// what cmd was.
func (d *disk) attach(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "filter")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, diskEnv+"="+socket, diskEnv+"_PROGRAM="+cmd.Path)
	cmd.Path = self
	go func() {
		defer l.Close()
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		oob := make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
		if err != nil {
			return
		}
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil || len(messages) != 1 {
			return
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return
		}
		d.serve(fds[0])
	}()
}

// notification and answer are struct seccomp_notif and struct seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type answer struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// serve answers until the program is gone. Each call is answered by itself, so that a slow sync holds up no other call.
func (d *disk) serve(fd int) {
	defer unix.Close(fd)
	for {
		var n notification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			if e == unix.EINTR || e == unix.ENOENT {
				continue
			}
			return
		}
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		reply := func() {
			unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		}
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0]))
		if err != nil || !strings.HasPrefix(path, d.dir) {
			reply()
			continue
		}
		sync := n.nr == unix.SYS_FSYNC || n.nr == unix.SYS_FDATASYNC
		switch {
		case sync && d.broken.Load():
			d.refused.Add(1)
			a.flags, a.error = 0, -int32(unix.EIO)
		case sync && d.folders.Load() && isDir(path):
			d.refused.Add(1)
			a.flags, a.error = 0, -int32(unix.EIO)
		case !sync && d.full.Load():
			d.refused.Add(1)
			a.flags, a.error = 0, -int32(unix.ENOSPC)
		case sync && d.slowness.Load() > 0:
			d.slowed.Add(1)
			go func() {
				time.Sleep(time.Duration(d.slowness.Load()))
				reply()
			}()
			continue
		}
		reply()
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// runChild is the work of the started copy of this program. It returns false if this is no such copy.
func runChild() bool {
	socket := os.Getenv(diskEnv)
	if socket == "" {
		return false
	}
	if err := becomeFiltered(socket); err != nil {
		fmt.Fprintln(os.Stderr, "torture: a filter for system calls (seccomp) cannot be set up here:", err)
		os.Exit(1)
	}
	return true
}

func becomeFiltered(socket string) error {
	runtime.LockOSThread() // the filter is one of this thread, which becomes the program
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	raw, err := c.File()
	if err != nil {
		return err
	}
	code := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number of the call
	for i, nr := range asked {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(asked) - i), K: nr})
	}
	code = append(code,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	env := os.Environ()
	args := append([]string{os.Getenv(diskEnv + "_PROGRAM")}, os.Args[1:]...)
	fd := int(raw.Fd())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	listener, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return e
	}
	// From here on this thread must not write but by sendmsg, until a reader answers.
	if err := unix.Sendmsg(fd, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, env)
}

func diskRows() []row {
	// away runs while the store is away and the disk is what during makes it, and then lets everything be stored.
	away := func(sync, more string, during func(d *disk), after func(d *disk)) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			d := &disk{}
			p := newPlace(t, placeOptions{server: server, disk: d, window: "100ms", spool: "    sync: " + sync + "\n" + more})
			d.dir = p.spoolDir()
			c := p.start()
			s := newSender(t, p.udp)
			s.send(1000, rate)
			for range short(1, 10) {
				server.Stop()
				s.send(1000, rate)
				during(d)
				s.send(3000, rate)
				after(d)
				s.send(1000, rate)
				server.Start()
				s.send(1000, rate)
			}
			s.trailer()
			c.drained()
			c.stop()
			if d.refused.Load()+d.slowed.Load() == 0 {
				t.Error("the disk was not asked for anything, so nothing was tested")
			}
			if d.refused.Load() > 0 && !strings.Contains(p.logged(), "spool") {
				t.Errorf("no line of the log reports the disk\n%s", p.logged())
			}
			r.Remark = fmt.Sprintf("%d calls failed, %d slowed down", d.refused.Load(), d.slowed.Load())
			p.balance(r, s.sent.Load(), true)
		}
	}
	full := func(on bool) func(d *disk) { return func(d *disk) { d.full.Store(on) } }
	broken := func(on bool) func(d *disk) { return func(d *disk) { d.broken.Store(on) } }
	folders := func(on bool) func(d *disk) { return func(d *disk) { d.folders.Store(on) } }
	slow := func(each time.Duration) func(d *disk) { return func(d *disk) { d.slowness.Store(int64(each)) } }
	// overflow runs while the store is away for longer than there is room.
	overflow := func(spool, queue, stage string, full bool) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			d := &disk{}
			p := newPlace(t, placeOptions{server: server, disk: d, window: "100ms", spool: spool, queue: queue})
			d.dir = p.spoolDir()
			c := p.start()
			s := newSenderOf(t, p.udp, 8)
			s.send(500, rate)
			// A write whose answer the store's end cuts off may have been taken or not. If it is given up later, that
			// is unknown; here none is on its way.
			time.Sleep(300 * time.Millisecond)
			c.drained()
			server.Stop()
			d.full.Store(full)
			s.send(short(8000, 40000), rate)
			if status, body := c.get("/readyz"); status == http.StatusOK {
				t.Errorf("ready while windows are lost: %s", body)
			}
			d.full.Store(false)
			server.Start()
			s.send(1000, rate)
			s.trailer()
			c.drained()
			c.stop()
			p.balance(r, s.sent.Load(), false)
			if r.Lost[stage] == 0 {
				t.Errorf("nothing is counted as lost at %s, so there was room and nothing was tested", stage)
			}
		}
	}
	return []row{
		{name: "store away for longer than the spool has room", run: overflow("    segment_bytes: 16384\n    max_bytes: 131072\n", "", "spool", false)},
		{name: "store away for longer than the queue has room, no spool", run: overflow("    enabled: false\n", "    max_bytes: 65536\n", "sink-queue", false)},
		{name: "disk full for longer than the queue has room", run: overflow("", "    max_bytes: 65536\n", "sink-queue", true)},
		{name: "disk full while the store is away (ENOSPC)", run: away("interval", "", full(true), full(false))},
		{name: "disk full, and a segment ends there", first: true, run: away("each", "    segment_bytes: 8192\n", full(true), full(false))},
		{name: "fsync fails while the store is away (EIO)", run: away("each", "", broken(true), broken(false))},
		{name: "fsync fails with sync: interval", run: away("interval", "    sync_interval: 50ms\n", broken(true), broken(false))},
		{name: "fsync of directories fails (EIO)", run: away("each", "    segment_bytes: 16384\n", folders(true), folders(false))},
		{name: "fsync takes 300 ms", run: away("each", "", slow(300*time.Millisecond), slow(0))},
	}
}
