package agent

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// All unsafe code of the package is in this file: x/sys has neither sendmmsg nor recvmmsg, nor SIOCGIFFLAGS.

// mmsghdr is struct mmsghdr of recvmmsg(2); Go pads it like C.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

const typeRoute = 0x0700 // as srint.TypeRoute

// txSlot holds the largest probe that is sent, and is no multiple of a page.
const txSlot = 192

// txSocket sends frames in batches. It has one user.
type txSocket struct {
	fd   int
	hdrs []mmsghdr
	iovs []unix.Iovec
	data []byte
	left []int // slots that the kernel did not take the last time
	why  error // of the last of them; nil without any
}

func newTx(fd, batch int) *txSocket {
	t := &txSocket{fd: fd, hdrs: make([]mmsghdr, batch), iovs: make([]unix.Iovec, batch), data: make([]byte, batch*txSlot)}
	for i := range t.hdrs {
		t.hdrs[i].hdr.Iov = &t.iovs[i]
		t.hdrs[i].hdr.SetIovlen(1)
	}
	return t
}

func (t *txSocket) slots() int { return len(t.hdrs) }

// slot is the empty memory of a frame.
func (t *txSocket) slot(i int) []byte { return t.data[i*txSlot : i*txSlot : (i+1)*txSlot] }

// set sets the content of slot i.
func (t *txSocket) set(i int, frame []byte) {
	t.iovs[i].Base = &frame[0]
	t.iovs[i].SetLen(len(frame))
}

// send sends the first n slots. It returns how many frames and bytes the kernel took. A frame is left out if the kernel
// refuses it, for example because the card's queue is full or the link is down. The error is a permanent one.
func (t *txSocket) send(n int) (sent, bytes int, err error) {
	t.left, t.why = t.left[:0], nil
	for at := 0; at < n; {
		k, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(t.fd), uintptr(unsafe.Pointer(&t.hdrs[at])), uintptr(n-at), 0, 0, 0)
		switch errno {
		case 0:
			for i := range int(k) {
				bytes += int(t.hdrs[at+i].n)
			}
			sent, at = sent+int(k), at+int(k)
		case unix.EINTR:
		case unix.ENXIO, unix.ENODEV, unix.EBADF:
			return sent, bytes, fmt.Errorf("the interface is gone: %w", errno)
		default:
			t.left, t.why = append(t.left, at), errno
			at++
		}
	}
	return sent, bytes, nil
}

// missed are the slots of the last call that the kernel did not take, and why it did not take the last of them.
func (t *txSocket) missed() ([]int, error) { return t.left, t.why }

// controlLen holds a time, and leaves room for a message that was not asked for.
const controlLen = 64

// rxSocket receives frames in batches. It has one user.
type rxSocket struct {
	fd      int
	hdrs    []mmsghdr
	iovs    []unix.Iovec
	control [][controlLen / 8]uint64
	data    []byte
	stride  int
	drops   uint64
}

func newRx(fd, batch, size int) *rxSocket {
	stride := (size + 63) &^ 63
	if stride%4096 == 0 {
		stride += 64 // the first lines of all slots would fall into the same few sets of the cache
	}
	r := &rxSocket{fd: fd, hdrs: make([]mmsghdr, batch), iovs: make([]unix.Iovec, batch), control: make([][controlLen / 8]uint64, batch),
		data: make([]byte, batch*stride), stride: stride}
	for i := range r.hdrs {
		h := &r.hdrs[i].hdr
		r.iovs[i].Base = &r.data[i*stride]
		r.iovs[i].SetLen(stride)
		h.Iov = &r.iovs[i]
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&r.control[i]))
		h.SetControllen(controlLen)
	}
	return r
}

func (r *rxSocket) slots() int { return len(r.hdrs) }

// receive waits for frames, as long as timeout, and takes what there is. An interface that is down has none.
func (r *rxSocket) receive(timeout time.Duration) (int, error) {
	fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(int64(timeout))
	if _, err := unix.Ppoll(fds, &ts, nil); err != nil && err != unix.EINTR {
		return 0, fmt.Errorf("ppoll: %w", err)
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.hdrs[0])), uintptr(len(r.hdrs)), unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	case unix.ENETDOWN: // returned once for each time that the link goes down
		return 0, nil
	}
	return 0, errors.New("recvmmsg: " + errno.Error())
}

// frame returns the i-th frame of the batch with its time of arrival, in ns since 1970, and prepares its slot for the
// next call. A frame longer than the slot is truncated, and no probe.
func (r *rxSocket) frame(i int) (frame []byte, at int64) {
	m := &r.hdrs[i]
	control := unsafe.Slice((*byte)(unsafe.Pointer(&r.control[i])), controlLen)
	at = receiveTime(control[:min(int(m.hdr.Controllen), controlLen)])
	m.hdr.SetControllen(controlLen)
	m.hdr.Flags = 0
	return r.data[i*r.stride:][:min(int(m.n), r.stride)], at
}

// receiveTime reads the time of SO_TIMESTAMPNS, 0 without one. b must be aligned to 8 bytes.
func receiveTime(b []byte) int64 {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < unix.CmsgLen(0) || n > len(b) {
			break
		}
		if data := b[unix.CmsgLen(0):n]; h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		}
		b = b[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(b)):]
	}
	return 0
}

// appendControl appends a control message to dst, whose capacity begins at a multiple of 8 bytes.
func appendControl(dst []byte, level, kind int32, value []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, unix.CmsgSpace(len(value)))...)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&dst[at]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(len(value)))
	copy(dst[at+unix.CmsgLen(0):], value)
	return dst
}

// dropped is how many frames the kernel dropped because the buffer was full. Reading takes them off the kernel's count.
func (r *rxSocket) dropped() uint64 {
	if s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		r.drops += uint64(s.Drops)
	}
	return r.drops
}

// interfaceFlags returns the flags of an interface (netdevice(7)), in the network of the socket.
func interfaceFlags(fd int, name string) (uint16, error) {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFFLAGS, uintptr(unsafe.Pointer(r))); errno != 0 {
		return 0, errno
	}
	return r.Uint16(), nil
}
