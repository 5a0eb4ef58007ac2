package traffic

import (
	"fmt"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of sendmmsg(2), which x/sys does not have; Go pads it like C.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// sender owns the sockets, and the memory of one burst.
type sender struct {
	fds  []int
	hdrs []mmsghdr
	iovs []unix.Iovec
	data []byte
	size int
	gso  bool
}

func newSender(to netip.AddrPort, sockets, burst, size int, gso bool) (_ *sender, err error) {
	s := &sender{
		hdrs: make([]mmsghdr, burst), iovs: make([]unix.Iovec, burst), data: make([]byte, burst*size), size: size, gso: gso,
	}
	defer func() {
		if err != nil {
			s.closeSockets()
		}
	}()
	for i := range s.hdrs {
		s.iovs[i].Base = &s.data[i*size]
		s.iovs[i].SetLen(size)
		s.hdrs[i].hdr.Iov = &s.iovs[i]
		s.hdrs[i].hdr.SetIovlen(1)
	}
	family := unix.AF_INET6
	var sa unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if a := to.Addr().Unmap(); a.Is4() {
		family = unix.AF_INET
		sa = &unix.SockaddrInet4{Port: int(to.Port()), Addr: a.As4()}
	}
	for range sockets {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
		if err != nil {
			return nil, fmt.Errorf("socket: %w", err)
		}
		s.fds = append(s.fds, fd)
		if err := unix.Connect(fd, sa); err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		if gso {
			if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, size); err != nil {
				return nil, fmt.Errorf("set UDP_SEGMENT: %w", err)
			}
		}
	}
	// Sleeping to the microsecond needs a thread whose timers are not rounded to 50 of them.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("set timer slack: %w", err)
	}
	return s, nil
}

func (s *sender) close() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // back to the default
	runtime.UnlockOSThread()
	s.closeSockets()
}

func (s *sender) closeSockets() {
	for _, fd := range s.fds {
		_ = unix.Close(fd) // nothing is buffered that could be lost
	}
}

// slot is the memory of datagram i of the burst.
func (s *sender) slot(i int) []byte { return s.data[i*s.size : (i+1)*s.size : (i+1)*s.size] }

// setLen sets how much of slot i is to be sent.
func (s *sender) setLen(i, n int) { s.iovs[i].SetLen(n) }

// send sends the first n slots through one socket. An error about an earlier datagram is counted, and sending goes on.
func (s *sender) send(socket, n int) (refused uint64, err error) {
	fd := s.fds[socket]
	for at := 0; at < n; {
		done, errno := s.call(fd, at, n)
		switch errno {
		case 0:
			at += done
		case unix.ECONNREFUSED:
			refused++
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			nap(burstTime)
		default:
			return refused, errno
		}
	}
	return refused, nil
}

// call hands slots at..n to the kernel and returns how many it took.
func (s *sender) call(fd, at, n int) (int, unix.Errno) {
	if s.gso {
		_, err := unix.Write(fd, s.data[at*s.size:n*s.size])
		if err != nil {
			errno, _ := err.(unix.Errno)
			return 0, errno
		}
		return n - at, 0
	}
	done, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&s.hdrs[at])), uintptr(n-at), 0, 0, 0)
	return int(done), errno
}

// nap sleeps for d, exact to some microseconds on a thread of a sender.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // ends early on a signal; callers look at the clock
}
