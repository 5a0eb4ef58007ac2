package rate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The bare receivers are the least that receives and counts on each path: no time, no address, no check, no statistics,
// one socket or ring, and nothing for interfaces that come and go. They are what the sources of ingest are held against.

// sum adds up the bytes of datagrams, in any order. A nil one costs a branch a datagram.
type sum struct{ datagrams, bytes, words uint64 }

func (s *sum) add(b []byte) {
	s.datagrams++
	s.bytes += uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		s.words += binary.LittleEndian.Uint64(b)
	}
	for _, c := range b {
		s.words += uint64(c)
	}
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// bareBatch is the datagrams of a system call, and bareNap the pause after fewer, as in ingest/udp.
const (
	bareBatch = 64
	bareNap   = time.Millisecond

	bareRelease = 2 * time.Second // the kernel releases the queue of a closed socket later
)

// bareSocket receives by recvmmsg.
func bareSocket(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
	stopped, cancel := context.WithCancel(context.Background()) // listen closes the socket when its context ends
	defer cancel()
	var to netip.AddrPort
	c, err := listen(stopped, o, func(a netip.AddrPort) { to = a })
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	size := o.UDP.MaxDatagramBytes + 64 // not a multiple of the page, whose first lines would share few sets of the cache
	data, hdrs, iovs := make([]byte, bareBatch*size), make([]mmsghdr, bareBatch), make([]unix.Iovec, bareBatch)
	for i := range hdrs {
		iovs[i].Base = &data[i*size]
		iovs[i].SetLen(o.UDP.MaxDatagramBytes)
		hdrs[i].hdr.Iov = &iovs[i]
		hdrs[i].hdr.SetIovlen(1)
	}
	listening(to)
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		for ctx.Err() == nil {
			var n uintptr
			n, _, errno = unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&hdrs[0])), bareBatch, unix.MSG_DONTWAIT, 0, 0)
			if errno == unix.EAGAIN || errno == unix.EINTR {
				n, errno = 0, 0
			}
			if errno != 0 {
				return
			}
			if o.sum != nil {
				for i := range int(n) {
					o.sum.add(data[i*size:][:hdrs[i].n])
				}
			}
			count.Add(uint64(n))
			if n < bareBatch {
				time.Sleep(bareNap)
			}
		}
	})
	if errno != 0 {
		return errno
	}
	return err
}

// barePacketRing receives by TPACKET_V3 from the loopback interface.
func barePacketRing(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
	to, c, err := turnAway(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	const (
		block, blocks = 256 << 10, 64 // as in ingest/afpacket

		// struct tpacket_block_desc, tpacket3_hdr
		status, frames, first = 8, 12, 16
		next, kept, mac       = 0, 12, 24
	)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	set := func(option, value int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, option, value) }
	err = errors.Join(set(unix.PACKET_VERSION, unix.TPACKET_V3), set(unix.PACKET_IGNORE_OUTGOING, 1), bareFilter(fd, to.Port()),
		unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
			Block_size: block, Block_nr: blocks, Frame_size: 2048, Frame_nr: block / 2048 * blocks, Retire_blk_tov: 10,
		}))
	if err != nil {
		return err
	}
	mem, err := unix.Mmap(fd, 0, block*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	protocol := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: lo.Index}); err != nil {
		return err
	}
	listening(to)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for at := 0; ctx.Err() == nil; {
		b := mem[at*block:][:block]
		word := (*uint32)(unsafe.Pointer(&b[status]))
		if atomic.LoadUint32(word)&unix.TP_STATUS_USER == 0 {
			if _, err := unix.Poll(poll, 10); err != nil && err != unix.EINTR {
				return err
			}
			continue
		}
		n := binary.NativeEndian.Uint32(b[frames:])
		if o.sum != nil {
			h := b[binary.NativeEndian.Uint32(b[first:]):]
			for range n {
				o.sum.add(h[binary.NativeEndian.Uint16(h[mac:]):][:binary.NativeEndian.Uint32(h[kept:])][frameHeaders:])
				h = h[binary.NativeEndian.Uint32(h[next:]):]
			}
		}
		count.Add(uint64(n))
		atomic.StoreUint32(word, unix.TP_STATUS_KERNEL)
		at = (at + 1) % blocks
	}
	return nil
}

// bareFilter lets a packet socket take datagrams of IPv4 to a port, without looking for options.
func bareFilter(fd int, port uint16) error {
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: 5},
		bpf.LoadAbsolute{Off: 23, Size: 1}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 36, Size: 2}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16}, bpf.RetConstant{},
	})
	if err != nil {
		return err
	}
	list := make([]unix.SockFilter, len(program))
	for i, p := range program {
		list[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]})
}

// bareXDP receives by AF_XDP from the loopback interface, in generic mode.
func bareXDP(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) (err error) {
	to, c, err := turnAway(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	const chunk, chunks = 2048, 8192 // as in ingest/afxdp
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	umem, err := unix.Mmap(-1, 0, chunk*chunks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(umem)
	call := func(number uintptr, option int, value unsafe.Pointer, size uintptr) error {
		if _, _, errno := unix.Syscall6(number, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0); errno != 0 {
			return errno
		}
		return nil
	}
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&umem[0]))), Len: chunk * chunks, Size: chunk}
	err = call(unix.SYS_SETSOCKOPT, unix.XDP_UMEM_REG, unsafe.Pointer(&reg), unsafe.Sizeof(reg))
	for _, s := range []struct{ option, n int }{{unix.XDP_UMEM_FILL_RING, chunks}, {unix.XDP_UMEM_COMPLETION_RING, 1}, {unix.XDP_RX_RING, chunks}} {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_XDP, s.option, s.n))
	}
	var at unix.XDPMmapOffsets
	length := uint32(unsafe.Sizeof(at))
	err = errors.Join(err, call(unix.SYS_GETSOCKOPT, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&at), uintptr(unsafe.Pointer(&length))))
	if err != nil {
		return err
	}
	rx, err := unix.Mmap(fd, unix.XDP_PGOFF_RX_RING, int(at.Rx.Desc)+chunks*int(unsafe.Sizeof(unix.XDPDesc{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(rx)
	fill, err := unix.Mmap(fd, unix.XDP_UMEM_PGOFF_FILL_RING, int(at.Fr.Desc)+chunks*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(fill)
	descs := unsafe.Slice((*unix.XDPDesc)(unsafe.Pointer(&rx[at.Rx.Desc])), chunks)
	free := unsafe.Slice((*uint64)(unsafe.Pointer(&fill[at.Fr.Desc])), chunks)
	for i := range free {
		free[i] = uint64(i) * chunk
	}
	produced, consumed := (*uint32)(unsafe.Pointer(&rx[at.Rx.Producer])), (*uint32)(unsafe.Pointer(&rx[at.Rx.Consumer]))
	filled := (*uint32)(unsafe.Pointer(&fill[at.Fr.Producer]))
	atomic.StoreUint32(filled, chunks)
	address := &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(lo.Index)}
	err = unix.Bind(fd, address)
	for deadline := time.Now().Add(bareRelease); err == unix.EBUSY && time.Now().Before(deadline); err = unix.Bind(fd, address) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	program, rings, err := bareSteering(fd, to.Port())
	if err != nil {
		return err
	}
	defer rings.Close()
	defer program.Close()
	attached, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: lo.Index, Flags: link.XDPGenericMode})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	listening(to)
	for read := uint32(0); ctx.Err() == nil; {
		n := min(atomic.LoadUint32(produced)-read, 256)
		for i := range n {
			d := &descs[(read+i)%chunks]
			if o.sum != nil {
				o.sum.add(umem[d.Addr:][:d.Len][frameHeaders:])
			}
			free[(read+i)%chunks] = d.Addr &^ (chunk - 1)
		}
		read += n
		atomic.StoreUint32(consumed, read)
		atomic.StoreUint32(filled, chunks+read)
		count.Add(uint64(n))
		if n < 256 {
			time.Sleep(bareNap)
		}
	}
	return nil
}

// bareSteering is an XDP program that redirects datagrams of IPv4 to a port into the ring of a socket.
func bareSteering(socket int, port uint16) (program *ebpf.Program, rings *ebpf.Map, err error) {
	if rings, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1}); err != nil {
		return nil, nil, err
	}
	network := func(n uint16) int32 { return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))) }
	program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual MIT/GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, frameHeaders), asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R4, asm.R2, 12, asm.Half), asm.JNE.Imm(asm.R4, network(unix.ETH_P_IP), "pass"),
		asm.LoadMem(asm.R4, asm.R2, 23, asm.Byte), asm.JNE.Imm(asm.R4, unix.IPPROTO_UDP, "pass"),
		asm.LoadMem(asm.R4, asm.R2, 36, asm.Half), asm.JNE.Imm(asm.R4, network(port), "pass"),
		asm.LoadMapPtr(asm.R1, rings.FD()), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 2), asm.FnRedirectMap.Call(), asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"), asm.Return(), // XDP_PASS
	}})
	if err == nil {
		err = rings.Update(uint32(0), uint32(socket), ebpf.UpdateAny)
	}
	if err != nil {
		return nil, nil, errors.Join(err, rings.Close())
	}
	return program, rings, nil
}

// bareFile counts the records of a pcap file in the byte order of this machine. It reads by one system call for each
// 256 KiB: in turns over a file in the page cache, that took the least of all sizes from 16 KiB to 1 MiB, and a fifth of
// the time of a mapping, populated or not, whose pages the kernel has to map one by one.
func bareFile(path string, s *sum) (records uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const header, record = 24, 16
	buf := make([]byte, 256<<10)
	if _, err := io.ReadFull(f, buf[:header]); err != nil {
		return 0, fmt.Errorf("header of %s: %w", path, err)
	}
	for have := 0; ; {
		n, err := f.Read(buf[have:])
		b := buf[:have+n]
		for ; len(b) > record; records++ {
			n := record + int(binary.NativeEndian.Uint32(b[8:]))
			if n > len(b) {
				break
			}
			if s != nil {
				s.add(b[record:n][frameHeaders:])
			}
			b = b[n:]
		}
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		have = copy(buf, b)
	}
}
