package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// All unsafe code of the package is in this file.

// Offsets in a block of a ring and in the header of a frame (struct tpacket_block_desc, tpacket3_hdr). Numbers there
// have the byte order of the machine.
const (
	blockBytes  = 256 << 10
	blockStatus = 8
	blockFrames = 12 // number of frames
	blockFirst  = 16 // offset of the first

	frameNext   = 0 // offset of the next frame from this one
	frameSec    = 4
	frameNsec   = 8
	frameKept   = 12 // bytes in the ring
	frameLen    = 16 // bytes on the wire
	frameStatus = 20
	frameMAC    = 24 // offset of the bytes
	frameTCI    = 32 // tag that the kernel stripped
	frameTPID   = 36
	frameHeader = 48

	tagBytes = 4
)

// ring is a packet socket with a ring, open on an interface. One worker reads it.
type ring struct {
	fd   int
	mem  []byte
	link uint16
	next int // block to be read
	left int // frames of that block that were not read yet, -1 before it was looked at
	at   int // offset of the next of those in mem
}

// Device is an interface of this machine, as it is now.
type Device struct {
	Index int
	Up    bool
	Link  uint16 // [ingest.LinkEthernet], or [ingest.LinkRaw] for a tunnel of IP
}

// LookUp finds an interface by its name.
func LookUp(name string) (d Device, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return d, fmt.Errorf("%s is no interface of this machine (ip link lists them)", name)
	}
	kind, err := kindOf(name)
	if err != nil {
		return d, fmt.Errorf("interface %s: %w", name, err)
	}
	d = Device{Index: i.Index, Up: i.Flags&net.FlagUp != 0, Link: ingest.LinkEthernet}
	switch kind {
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
	case unix.ARPHRD_NONE, unix.ARPHRD_TUNNEL, unix.ARPHRD_TUNNEL6:
		d.Link = ingest.LinkRaw
	default:
		return d, fmt.Errorf("interface %s is of kind %d, and only Ethernet, loopback and tunnels of IP are read", name, kind)
	}
	return d, nil
}

// kindOf is the kind of an interface, an ARPHRD_ value.
func kindOf(name string) (uint16, error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	err = unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, request)
	return request.Uint16(), err
}

// open opens a ring on a device and joins the group of its interface. Nothing is taken before that: a ring beside its group would
// have the packets of all others, too.
func (g *group) open(d Device, cfg *Config) (_ *ring, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, cfg.explain("open a packet socket", err)
	}
	r := &ring{fd: fd, link: d.Link, left: -1}
	defer func() {
		if err != nil {
			_ = r.close() // the first error is the one to return
		}
	}()
	filter, err := cfg.filter(d.Link == ingest.LinkEthernet)
	if err != nil {
		return nil, err
	}
	blocks := max(4, cfg.RingBytes/blockBytes)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"turn away packets until the ring is ready", func() error { return r.attach(nothing) }},
		{"set TPACKET_V3", r.option(unix.PACKET_VERSION, unix.TPACKET_V3)},
		{"reserve room for a tag", r.option(unix.PACKET_RESERVE, tagBytes)},
		{"leave out what is sent", r.option(unix.PACKET_IGNORE_OUTGOING, 1)},
		{fmt.Sprintf("make a ring of %d bytes (%s.ring_bytes)", blocks*blockBytes, cfg.Section), func() error {
			return unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
				Block_size: blockBytes, Block_nr: uint32(blocks), Frame_size: 2048, Frame_nr: uint32(blocks) * blockBytes / 2048,
				Retire_blk_tov: uint32(cfg.Wait.Milliseconds()),
			})
		}},
		{"map the ring", func() (err error) {
			r.mem, err = unix.Mmap(fd, 0, blocks*blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		}},
		{"bind", func() error {
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: d.Index})
		}},
		{"take packets for other machines (" + cfg.Section + ".promiscuous)", func() error {
			if !cfg.Promiscuous {
				return nil
			}
			return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(d.Index), Type: unix.PACKET_MR_PROMISC})
		}},
		{"join the other rings", func() error { return g.join(fd, d.Index) }},
		{"set the filter", func() error { return r.attach(filter) }},
	} {
		if err := step.do(); err != nil {
			return nil, cfg.explain(step.what, err)
		}
	}
	return r, nil
}

// option returns a step that sets an option of the socket.
func (r *ring) option(name, value int) func() error {
	return func() error { return unix.SetsockoptInt(r.fd, unix.SOL_PACKET, name, value) }
}

// explain adds the failed step and the remedy to an error.
func (c *Config) explain(what string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		err = fmt.Errorf("%w: it needs CAP_NET_RAW (AmbientCapabilities=CAP_NET_RAW in the unit, or setcap cap_net_raw+ep on the program)", err)
	case errors.Is(err, unix.ENOMEM):
		err = fmt.Errorf("%w: the kernel has not so much memory in one piece: make %s.ring_bytes or %[2]s.workers smaller", err, c.Section)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// nothing is a filter that rejects all packets.
var nothing = []bpf.RawInstruction{{Op: unix.BPF_RET | unix.BPF_K}}

// attach puts a filter in place of the one before.
func (r *ring) attach(program []bpf.RawInstruction) error {
	list := make([]unix.SockFilter, len(program))
	for i, p := range program {
		list[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	err := unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]})
	runtime.KeepAlive(list)
	return err
}

// join makes a ring one of those that share the packets of an interface. The first one of a device founds the group, which
// reassembles fragments of IPv4. A single ring is in a group for that, too: by CPU, as the hash of the flow costs 0.3 µs.
func (g *group) join(fd, index int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := unix.PACKET_FANOUT_HASH
	if len(g.slots) == 1 {
		by = unix.PACKET_FANOUT_CPU
	}
	kind := by | unix.PACKET_FANOUT_FLAG_DEFRAG | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	if g.index == index {
		return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, kind<<16|g.id)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, (kind|unix.PACKET_FANOUT_FLAG_UNIQUEID)<<16); err != nil {
		return err
	}
	id, err := unix.GetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	if err != nil {
		return err
	}
	g.index, g.id = index, id&0xffff
	return nil
}

// close releases the ring.
func (r *ring) close() error {
	var err error
	if r.mem != nil {
		err = unix.Munmap(r.mem)
		r.mem = nil
	}
	return errors.Join(err, unix.Close(r.fd))
}

// statistics are what the kernel counted since the last call: packets that the filter took, and those of them that it dropped.
func (r *ring) statistics() (taken, dropped uint64) {
	st, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, 0
	}
	return uint64(st.Packets), uint64(st.Drops)
}

// status is that of the block to be read. The kernel writes it last, and so do we.
func (r *ring) status() *uint32 {
	return (*uint32)(unsafe.Pointer(&r.mem[r.next*blockBytes+blockStatus]))
}

// read appends frames to a batch, as many as the batch has room for, and reports whether the block has more. Without a block that
// the kernel handed over it appends none.
func (r *ring) read(b *ingest.Batch) (more bool) {
	if r.left < 0 {
		if atomic.LoadUint32(r.status())&unix.TP_STATUS_USER == 0 {
			return false
		}
		block := r.mem[r.next*blockBytes:]
		r.left = int(binary.NativeEndian.Uint32(block[blockFrames:]))
		r.at = r.next*blockBytes + int(binary.NativeEndian.Uint32(block[blockFirst:]))
	}
	end := (r.next + 1) * blockBytes
	for r.left > 0 && len(b.Frames) < cap(b.Frames) {
		if r.at < 0 || r.at+frameHeader > end {
			r.left = 0 // the kernel does not do that
			break
		}
		h := r.mem[r.at:end]
		b.Frames = b.Frames[:len(b.Frames)+1]
		r.frame(&b.Frames[len(b.Frames)-1], h)
		r.at += int(binary.NativeEndian.Uint32(h[frameNext:]))
		r.left--
	}
	return r.left > 0
}

// release gives the block back to the kernel, once its frames were handed over.
func (r *ring) release() {
	atomic.StoreUint32(r.status(), unix.TP_STATUS_KERNEL)
	r.left = -1
	if r.next++; r.next*blockBytes == len(r.mem) {
		r.next = 0
	}
}

// frame reads the frame whose header h begins with, and puts the tag back that the kernel stripped: there is room before the bytes.
func (r *ring) frame(f *ingest.Frame, h []byte) {
	at, n := int(binary.NativeEndian.Uint16(h[frameMAC:])), int(binary.NativeEndian.Uint32(h[frameKept:]))
	at = min(at, len(h))
	n = min(n, len(h)-at)
	*f = ingest.Frame{
		Data: h[at : at+n : at+n], Length: int(binary.NativeEndian.Uint32(h[frameLen:])), Link: r.link,
		Time: int64(binary.NativeEndian.Uint32(h[frameSec:]))*1e9 + int64(binary.NativeEndian.Uint32(h[frameNsec:])),
	}
	status := binary.NativeEndian.Uint32(h[frameStatus:])
	if status&unix.TP_STATUS_VLAN_VALID == 0 || r.link != ingest.LinkEthernet || n < 12 || at < frameHeader+tagBytes {
		return
	}
	tpid := uint16(unix.ETH_P_8021Q)
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = binary.NativeEndian.Uint16(h[frameTPID:])
	}
	data := h[at-tagBytes : at+n : at+n]
	copy(data, data[tagBytes:tagBytes+12])
	binary.BigEndian.PutUint16(data[12:], tpid)
	binary.BigEndian.PutUint16(data[14:], uint16(binary.NativeEndian.Uint32(h[frameTCI:])))
	f.Data, f.Length = data, f.Length+tagBytes
}

// bigEndian is a protocol in network byte order, as bind wants it.
func bigEndian(n uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], n)
	return binary.NativeEndian.Uint16(b[:])
}
