package afxdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// All unsafe code of the package is in this file.

// ring is one of the rings that a socket shares with the kernel (struct xdp_ring): its writer moves the producer, its reader the
// consumer. Both count modulo 2^32.
type ring struct {
	mem                []byte
	producer, consumer *uint32
	flags              *uint32
	mask               uint32
	base               unsafe.Pointer // of the descriptors
}

// socket is a socket of a queue, with the memory of its frames. One worker reads it.
type socket struct {
	fd       int
	queue    int
	umem     []byte
	rx, fill ring
	wakeup   bool // the kernel may want to be woken for more chunks
	zeroCopy bool

	received, filled uint32 // consumer of rx, producer of fill
	taken            uint32 // descriptors of the batch that is handed over
}

// openSocket opens a socket at a queue of an interface. It receives nothing before it is in the map of a program.
func openSocket(c *Config, index, queue int, generic bool) (_ *socket, err error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket of AF_XDP: %w", err)
	}
	s := &socket{fd: fd, queue: queue}
	defer func() {
		if err != nil {
			_ = s.close() // the first error is the one to return
		}
	}()
	n := c.chunks()
	if s.umem, err = unix.Mmap(-1, 0, n*chunkBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("reserve %d bytes for frames (%s.umem_bytes): %w", n*chunkBytes, c.Section, err)
	}
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&s.umem[0]))), Len: uint64(len(s.umem)), Size: chunkBytes}
	if err := setsockopt(fd, unix.XDP_UMEM_REG, unsafe.Pointer(&reg), unsafe.Sizeof(reg)); err != nil {
		return nil, fmt.Errorf("register %d bytes for frames (%s.umem_bytes; LimitMEMLOCK in the unit, ulimit -l): %w", len(s.umem), c.Section, err)
	}
	for _, size := range []struct{ option, n int }{{unix.XDP_UMEM_FILL_RING, n}, {unix.XDP_UMEM_COMPLETION_RING, 1}, {unix.XDP_RX_RING, n}} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, size.option, size.n); err != nil {
			return nil, fmt.Errorf("make rings of %d frames: %w", n, err)
		}
	}
	var at unix.XDPMmapOffsets
	if err := getsockopt(fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&at), unsafe.Sizeof(at)); err != nil {
		return nil, fmt.Errorf("ask for the places of rings: %w", err)
	}
	if s.rx, err = mapRing(fd, unix.XDP_PGOFF_RX_RING, at.Rx, n, int(unsafe.Sizeof(unix.XDPDesc{}))); err != nil {
		return nil, err
	}
	if s.fill, err = mapRing(fd, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr, n, 8); err != nil {
		return nil, err
	}
	for i := range n {
		*(*uint64)(unsafe.Add(s.fill.base, 8*i)) = uint64(i * chunkBytes)
	}
	s.filled = uint32(n)
	atomic.StoreUint32(s.fill.producer, s.filled)
	return s, s.bind(c, index, generic)
}

// bind binds the socket to its queue, with zero-copy where the settings and the driver allow it.
func (s *socket) bind(c *Config, index int, generic bool) error {
	address := unix.SockaddrXDP{Ifindex: uint32(index), QueueID: uint32(s.queue)}
	switch {
	case c.Copy == CopyAlways || generic:
		address.Flags = unix.XDP_COPY
	case c.Copy == CopyNever:
		address.Flags = unix.XDP_ZEROCOPY
	}
	if s.wakeup = c.NeedWakeup; s.wakeup {
		address.Flags |= unix.XDP_USE_NEED_WAKEUP
	}
	err := unix.Bind(s.fd, &address)
	for deadline := time.Now().Add(releaseTime); err == unix.EBUSY && time.Now().Before(deadline); err = unix.Bind(s.fd, &address) {
		time.Sleep(10 * time.Millisecond)
	}
	if err == unix.EINVAL && s.wakeup { // an older kernel does not know it
		s.wakeup, address.Flags = false, address.Flags&^unix.XDP_USE_NEED_WAKEUP
		err = unix.Bind(s.fd, &address)
	}
	if err != nil {
		return fmt.Errorf("bind to queue %d: %w", s.queue, err)
	}
	var options uint32
	if err := getsockopt(s.fd, unix.XDP_OPTIONS, unsafe.Pointer(&options), unsafe.Sizeof(options)); err == nil { // since Linux 5.3
		s.zeroCopy = options&unix.XDP_OPTIONS_ZEROCOPY != 0
	}
	return nil
}

// releaseTime is how long the kernel may take to release the queue of a socket that was closed, as by a collector before.
const releaseTime = 2 * time.Second

// pollsBusily lets calls of wake run the driver, for up to that time.
func (s *socket) pollsBusily(d time.Duration) error {
	return errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1),
		unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, int(max(1, min(d.Microseconds(), 1000)))))
}

// mapRing maps a ring of n descriptors of a size.
func mapRing(fd int, place int64, at unix.XDPRingOffset, n, size int) (r ring, err error) {
	if r.mem, err = unix.Mmap(fd, place, int(at.Desc)+n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return r, fmt.Errorf("map a ring: %w", err)
	}
	word := func(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }
	r.producer, r.consumer, r.mask, r.base = word(at.Producer), word(at.Consumer), uint32(n-1), unsafe.Pointer(&r.mem[at.Desc])
	if at.Flags != 0 && at.Flags != at.Consumer { // kernels before 5.4 have none
		r.flags = word(at.Flags)
	}
	return r, nil
}

// waiting is the number of received frames, of which those that were read are not released.
func (s *socket) waiting() int {
	return int(min(atomic.LoadUint32(s.rx.producer)-s.received, s.rx.mask+1))
}

// read appends received frames to a batch, as many as it has room for. They lie in the memory of the socket until release. Now is
// the time in the two clocks, of which the kernel's is that of stamps.
func (s *socket) read(b *ingest.Batch, now clock) {
	n := min(s.waiting(), cap(b.Frames)-len(b.Frames))
	for i := range n {
		d := (*unix.XDPDesc)(unsafe.Add(s.rx.base, uintptr((s.received+uint32(i))&s.rx.mask)*unsafe.Sizeof(unix.XDPDesc{})))
		b.Frames = append(b.Frames, s.frame(d.Addr, d.Len, now))
	}
	s.taken = uint32(n)
}

// frame is the frame at an address. Neither it nor its length can lead out of the memory.
func (s *socket) frame(addr uint64, length uint32, now clock) ingest.Frame {
	at := int(min(addr, uint64(len(s.umem))))
	end := min(at+int(length), len(s.umem))
	f := ingest.Frame{Data: s.umem[at:end:end], Length: int(length), Link: ingest.LinkEthernet, Time: now.wall}
	if at%chunkBytes >= stampBytes {
		mark := s.umem[at-stampBytes : at]
		if stamp := int64(binary.NativeEndian.Uint64(mark)); stamp > now.monotonic-int64(stampAge) && stamp <= now.monotonic {
			f.Time = now.wall - (now.monotonic - stamp)
		}
		binary.NativeEndian.PutUint64(mark, 0) // the next frame here may have none
	}
	return f
}

// stampAge is the greatest age of a frame's time that is believed.
const stampAge = time.Minute

// release gives the chunks of the frames that were read last back to the kernel.
func (s *socket) release() {
	for i := range s.taken {
		d := (*unix.XDPDesc)(unsafe.Add(s.rx.base, uintptr((s.received+i)&s.rx.mask)*unsafe.Sizeof(unix.XDPDesc{})))
		*(*uint64)(unsafe.Add(s.fill.base, 8*uintptr((s.filled+i)&s.fill.mask))) = d.Addr &^ (chunkBytes - 1)
	}
	s.received, s.filled = s.received+s.taken, s.filled+s.taken
	atomic.StoreUint32(s.rx.consumer, s.received)
	atomic.StoreUint32(s.fill.producer, s.filled)
	s.taken = 0
	if s.wakeup && s.fill.flags != nil && atomic.LoadUint32(s.fill.flags)&unix.XDP_RING_NEED_WAKEUP != 0 {
		s.wake()
	}
}

// wake lets the driver receive more.
func (s *socket) wake() {
	_, _, _ = unix.Recvfrom(s.fd, nil, unix.MSG_DONTWAIT) // EAGAIN and ENETDOWN say nothing that poll does not
}

// statistics are the kernel's counts since the socket was opened.
func (s *socket) statistics() (st unix.XDPStatistics) {
	_ = getsockopt(s.fd, unix.XDP_STATISTICS, unsafe.Pointer(&st), unsafe.Sizeof(st)) // zeros, then
	return st
}

// close releases the socket and its memory.
func (s *socket) close() error {
	errs := []error{unix.Close(s.fd)}
	for _, mem := range [][]byte{s.rx.mem, s.fill.mem, s.umem} {
		if mem != nil {
			errs = append(errs, unix.Munmap(mem))
		}
	}
	return errors.Join(errs...)
}

// clock is one moment in two clocks, ns.
type clock struct{ wall, monotonic int64 }

// monotonicBase is a moment of the clock that programs of the kernel read, and the same one of this process.
type monotonicBase struct {
	at    time.Time
	nanos int64
}

// newBase reads both clocks at nearly the same moment: it takes the closest of several readings.
func newBase() (b monotonicBase, err error) {
	closest := time.Hour
	for range 16 {
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return b, fmt.Errorf("read the monotonic clock: %w", err)
		}
		if d := time.Since(before); d < closest {
			closest, b = d, monotonicBase{before.Add(d / 2), ts.Nano()}
		}
	}
	return b, nil
}

// now reads both clocks.
func (b monotonicBase) now() clock {
	t := time.Now()
	return clock{wall: t.UnixNano(), monotonic: b.nanos + int64(t.Sub(b.at))}
}

func setsockopt(fd, option int, value unsafe.Pointer, n uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), n, 0); errno != 0 {
		return errno
	}
	return nil
}

func getsockopt(fd, option int, value unsafe.Pointer, n uintptr) error {
	size := uint32(n)
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return errno
	}
	return nil
}
