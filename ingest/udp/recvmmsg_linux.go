package udp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// All unsafe code of the package is in this file: x/sys has neither recvmmsg nor a getsockopt for an array of words.

// mmsghdr is struct mmsghdr of recvmmsg(2); Go pads it like C.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// controlLen holds a time and a drop counter, and leaves room for a message that was not asked for.
const controlLen = 96

// ring is the memory that recvmmsg fills: one slot a datagram with its header, address, control messages and bytes.
// One worker owns it and uses it for all of its sockets.
type ring struct {
	hdrs    []mmsghdr
	iovs    []unix.Iovec
	names   []unix.RawSockaddrInet6 // the longer of the two families
	control [][controlLen / 8]uint64
	data    []byte
	stride  int // from one datagram's bytes to the next
	size    int // of which may be used
}

func newRing(batch, datagram int) *ring {
	// Slots start on cache lines, but not a multiple of the page apart. Otherwise the first lines of all slots, the
	// only ones that a short report touches, would share a few sets of the cache.
	stride := (datagram + 63) &^ 63
	if stride%4096 == 0 {
		stride += 64
	}
	r := &ring{
		hdrs:    make([]mmsghdr, batch),
		iovs:    make([]unix.Iovec, batch),
		names:   make([]unix.RawSockaddrInet6, batch),
		control: make([][controlLen / 8]uint64, batch),
		data:    make([]byte, batch*stride),
		stride:  stride,
		size:    datagram,
	}
	for i := range r.hdrs {
		h := &r.hdrs[i].hdr
		r.iovs[i].Base = &r.data[i*stride]
		r.iovs[i].SetLen(datagram)
		h.Iov = &r.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Control = (*byte)(unsafe.Pointer(&r.control[i]))
		r.reset(h)
	}
	return r
}

// reset restores what the kernel overwrites.
func (r *ring) reset(h *unix.Msghdr) {
	h.Namelen = unix.SizeofSockaddrInet6
	h.SetControllen(controlLen)
	h.Flags = 0
}

// receive takes what the socket has, as much as fits. No datagram is the error EAGAIN.
func (r *ring) receive(fd int) (int, unix.Errno) {
	for {
		// MSG_TRUNC makes the kernel return the length on the wire, also of a datagram that it cut.
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.hdrs[0])),
			uintptr(len(r.hdrs)), unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// frame reads slot i into f and gets the slot ready for the next call. The drop counter is there once the
// kernel dropped something.
func (r *ring) frame(i int, f *ingest.Frame) (drops uint32, hasDrops bool) {
	m := &r.hdrs[i]
	length := int(m.n)
	at := i * r.stride
	f.Data = r.data[at : at+min(length, r.size) : at+r.size]
	f.Length = length
	f.Src = sender(&r.names[i], m.hdr.Namelen)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&r.control[i])), controlLen)
	f.Time, drops, hasDrops = parseControl(b[:min(int(m.hdr.Controllen), controlLen)])
	r.reset(&m.hdr)
	return drops, hasDrops
}

// sender reads the address that the kernel wrote. IPv4 is returned as IPv4, whatever the socket. A zone is left out,
// since nothing behind the source replies.
func sender(name *unix.RawSockaddrInet6, n uint32) netip.AddrPort {
	switch {
	case name.Family == unix.AF_INET && n >= unix.SizeofSockaddrInet4:
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port(&v4.Port))
	case name.Family == unix.AF_INET6 && n >= unix.SizeofSockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr).Unmap(), port(&name.Port))
	}
	return netip.AddrPort{}
}

// port reads a port, which is in network byte order.
func port(p *uint16) uint16 { return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(p))[:]) }

// parseControl reads the receive time (ns since 1970, 0 without one) and the drop counter. b must be aligned to 8
// bytes. A message that runs past b ends the reading.
func parseControl(b []byte) (ns int64, drops uint32, hasDrops bool) {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < unix.CmsgLen(0) || n > len(b) {
			break
		}
		data := b[unix.CmsgLen(0):n]
		if h.Level == unix.SOL_SOCKET {
			switch {
			case h.Type == unix.SO_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
				ns = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
			case h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
				drops, hasDrops = binary.NativeEndian.Uint32(data), true
			}
		}
		b = b[min(unix.CmsgSpace(len(data)), len(b)):]
	}
	return ns, drops, hasDrops
}

// meminfo reads the memory and drop counters of a socket, indexed by the SK_MEMINFO constants.
func meminfo(fd int) (m [unix.SK_MEMINFO_VARS]uint32, ok bool) {
	n := uint32(unsafe.Sizeof(m))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&n)), 0)
	return m, errno == 0 && n >= 4*(unix.SK_MEMINFO_DROPS+1)
}
