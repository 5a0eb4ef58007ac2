package rate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/packet"
)

// Sizes of a frame's parts, and of the ring of frames.
const (
	frameHeaders = 14 + packet.IPv4Len + packet.UDPLen
	slotHeader   = 16 // before a frame: how much shorter than the longest it is, negative, and the step of its sequence number
	frameBurst   = 64 // frames that the kernel takes together
)

// frameSender gives frames to the kernel as if an interface had received them. The kernel does so when it tests an
// XDP program with live frames. This program writes the next frame of a ring over each of them and lets it pass, at a
// rate or as long as the receiver follows. A frame takes a tenth of the time of one that leaves a socket, so that the
// receiver and not the sender is at its limit.
type frameSender struct {
	program              *ebpf.Program
	frames, state, count *ebpf.Map
	ring                 []byte // the memory of frames
	control              *frameControl
	received             *atomic.Uint64 // which the receiver counts
	size, slot, slots    int            // of the longest frame, of a slot with it, and how many slots
	device               int
	memory               [][]byte
}

// frameControl is the memory that the program shares with this process.
type frameControl struct {
	cursor  uint64 // frames that left
	runs    uint64 // of the program
	batch   uint64 // frames that may leave before the next look
	looks   uint64 // at time and receiver
	full    uint64 // looks at which the receiver had no room for a burst
	start   uint64 // of the schedule, ns
	rate    uint64 // frames a ns, times 2^32; 0 as fast as possible
	behind  uint64 // frames by which the sender may be late and still catch up
	skipped uint64 // frames that it was later
	window  uint64 // frames that may be on their way; 0 any number
	lost    uint64 // frames on their way that will not come
	limit   uint64 // of cursor
}

// sequenceField is where a datagram has its sequence number, which the program moves on at each turn of the ring.
type sequenceField struct {
	at   int
	mask uint32
}

// turns are the frames that take turns for a number of flows.
func turns(flows int) int { return min(max(1<<16, 2*flows), 1<<20) }

// newFrameSender makes a sender on an interface of this thread's network, of about so many datagrams that take turns.
func newFrameSender(device string, load traffic.Datagrams, turns int) (_ *frameSender, err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	s := &frameSender{device: dev.Index, size: frameHeaders + load.Bytes()}
	s.slot = (slotHeader + s.size + 7) &^ 7
	s.slots = max(1, turns/load.Exporters()) * load.Exporters()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("send frames: %w", err), s.close())
		}
	}()
	if s.frames, s.ring, err = s.share(s.slots, s.slot); err != nil {
		return nil, err
	}
	var mem []byte
	if s.state, mem, err = s.share(1, int(unsafe.Sizeof(frameControl{}))); err != nil {
		return nil, err
	}
	s.control = (*frameControl)(unsafe.Pointer(&mem[0]))
	if s.count, mem, err = s.share(1, 8); err != nil {
		return nil, err
	}
	s.received = (*atomic.Uint64)(unsafe.Pointer(&mem[0]))
	return s, nil
}

// share makes an array of the kernel, and maps it.
func (s *frameSender) share(n, size int) (m *ebpf.Map, mem []byte, err error) {
	const mappable = 1 << 10 // BPF_F_MMAPABLE
	if m, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: uint32(n), Flags: mappable}); err != nil {
		return nil, nil, err
	}
	if mem, err = unix.Mmap(m.FD(), 0, n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	s.memory = append(s.memory, mem)
	return m, mem, nil
}

// fill writes a turn of the load into the ring, to an address.
func (s *frameSender) fill(to netip.AddrPort, load traffic.Datagrams, seq sequenceField) (err error) {
	sequence := func(b []byte) uint32 { return binary.BigEndian.Uint32(b[seq.at:]) & seq.mask }
	payload := func(n int) []byte { return s.ring[n*s.slot+slotHeader+frameHeaders:][:s.size-frameHeaders] }
	for n := range s.slots {
		length := len(load.NextFrom(n%load.Exporters(), payload(n)))
		s.header(n, n%load.Exporters(), to, length)
	}
	next := make([]byte, load.Bytes())
	for e := range load.Exporters() { // the first of the next turn
		load.NextFrom(e, next)
		step := sequence(next) - sequence(payload(e))
		for n := e; n < s.slots; n += load.Exporters() {
			binary.NativeEndian.PutUint64(s.ring[n*s.slot+8:], uint64(step&seq.mask))
		}
	}
	s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual MIT/GPL", Instructions: s.instructions(seq)})
	if err != nil {
		err = fmt.Errorf("send frames: %w", err)
	}
	return err
}

// header writes what stands before a datagram: Ethernet without addresses, as on loopback, IPv4 from an address of the
// exporter, and UDP without checksum.
func (s *frameSender) header(n, exporter int, to netip.AddrPort, length int) {
	b := s.ring[n*s.slot:]
	binary.NativeEndian.PutUint64(b, uint64(frameHeaders+length-s.size))
	be, ip := binary.BigEndian, b[slotHeader+14:]
	be.PutUint16(b[slotHeader+12:], unix.ETH_P_IP)
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	be.PutUint16(ip[2:], uint16(packet.IPv4Len+packet.UDPLen+length))
	be.PutUint32(ip[12:], 198<<24|18<<16|uint32(exporter+1)) // 198.18.0.0/15 is for benchmarks (RFC 2544)
	addr := to.Addr().As4()
	copy(ip[16:], addr[:])
	sum := uint32(0)
	for i := 0; i < packet.IPv4Len; i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	be.PutUint16(ip[10:], ^uint16(sum>>16+sum&0xffff))
	udp := ip[packet.IPv4Len:]
	be.PutUint16(udp, uint16(1024+exporter%60000))
	be.PutUint16(udp[2:], to.Port())
	be.PutUint16(udp[4:], uint16(packet.UDPLen+length))
}

// instructions are the program. Before each burst it looks how many frames may leave, and drops the others of the burst.
func (s *frameSender) instructions(seq sequenceField) asm.Instructions {
	const ctx, state, n, slot, key = asm.R6, asm.R7, asm.R8, asm.R9, -8
	var c frameControl
	load := func(to asm.Register, at uintptr) asm.Instruction { return asm.LoadMem(to, state, int16(at), asm.DWord) }
	store := func(at uintptr, from asm.Register) asm.Instruction {
		return asm.StoreMem(state, int16(at), from, asm.DWord)
	}
	look := func(m *ebpf.Map) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
			asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "drop"),
		}
	}
	add := func(at uintptr, by asm.Register) asm.Instructions {
		return asm.Instructions{load(asm.R3, at), asm.Add.Reg(asm.R3, by), store(at, asm.R3)}
	}
	one := asm.Mov.Imm(asm.R2, 1)
	var p asm.Instructions
	emit := func(list ...asm.Instruction) { p = append(p, list...) }

	emit(asm.Mov.Reg(ctx, asm.R1), asm.StoreImm(asm.RFP, key, 0, asm.Word))
	emit(look(s.state)...)
	emit(asm.Mov.Reg(state, asm.R0), load(n, unsafe.Offsetof(c.runs)), one)
	emit(add(unsafe.Offsetof(c.runs), asm.R2)...)
	emit(asm.And.Imm(n, frameBurst-1), asm.JNE.Imm(n, 0, "frame"))
	emit(add(unsafe.Offsetof(c.looks), asm.R2)...)
	emit(load(n, unsafe.Offsetof(c.limit)), load(asm.R1, unsafe.Offsetof(c.cursor)), asm.Sub.Reg(n, asm.R1))

	// at a rate
	emit(load(asm.R1, unsafe.Offsetof(c.rate)), asm.JEq.Imm(asm.R1, 0, "window"), asm.FnKtimeGetNs.Call())
	emit(load(asm.R1, unsafe.Offsetof(c.start)), asm.Sub.Reg(asm.R0, asm.R1), load(asm.R1, unsafe.Offsetof(c.rate)), asm.Mul.Reg(asm.R0, asm.R1), asm.RSh.Imm(asm.R0, 32))
	for _, at := range []uintptr{unsafe.Offsetof(c.skipped), unsafe.Offsetof(c.cursor)} {
		emit(load(asm.R1, at), asm.Sub.Reg(asm.R0, asm.R1))
	}
	emit(load(asm.R1, unsafe.Offsetof(c.behind)), asm.JSLE.Reg(asm.R0, asm.R1, "due"))
	emit(asm.Mov.Reg(asm.R2, asm.R0), asm.Sub.Reg(asm.R2, asm.R1), asm.Mov.Reg(asm.R0, asm.R1))
	emit(add(unsafe.Offsetof(c.skipped), asm.R2)...)
	emit(asm.JSLE.Reg(n, asm.R0, "window").WithSymbol("due"), asm.Mov.Reg(n, asm.R0))

	// as the receiver follows
	emit(load(asm.R1, unsafe.Offsetof(c.window)).WithSymbol("window"), asm.JEq.Imm(asm.R1, 0, "burst"))
	emit(look(s.count)...)
	emit(asm.LoadMem(asm.R0, asm.R0, 0, asm.DWord))
	for _, at := range []uintptr{unsafe.Offsetof(c.lost), unsafe.Offsetof(c.window)} {
		emit(load(asm.R1, at), asm.Add.Reg(asm.R0, asm.R1))
	}
	emit(load(asm.R1, unsafe.Offsetof(c.cursor)), asm.Sub.Reg(asm.R0, asm.R1), asm.JSGE.Imm(asm.R0, frameBurst, "burst"), one)
	emit(add(unsafe.Offsetof(c.full), asm.R2)...)
	emit(asm.JSLE.Reg(n, asm.R0, "burst"), asm.Mov.Reg(n, asm.R0))

	emit(asm.JSGE.Imm(n, 0, "most").WithSymbol("burst"), asm.Mov.Imm(n, 0))
	emit(asm.JSLE.Imm(n, frameBurst, "some").WithSymbol("most"), asm.Mov.Imm(n, frameBurst))
	emit(store(unsafe.Offsetof(c.batch), n).WithSymbol("some"))

	// a frame
	emit(load(asm.R1, unsafe.Offsetof(c.batch)).WithSymbol("frame"), asm.JEq.Imm(asm.R1, 0, "drop"), asm.Sub.Imm(asm.R1, 1), store(unsafe.Offsetof(c.batch), asm.R1))
	emit(load(n, unsafe.Offsetof(c.cursor)), one)
	emit(add(unsafe.Offsetof(c.cursor), asm.R2)...)
	emit(asm.Mod.Imm(n, int32(s.slots)), asm.StoreMem(asm.RFP, key, n, asm.Word))
	emit(look(s.frames)...)
	emit(asm.Mov.Reg(slot, asm.R0), asm.Mov.Reg(asm.R1, ctx), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, slot), asm.Add.Imm(asm.R3, slotHeader), asm.Mov.Imm(asm.R4, int32(s.size)),
		asm.FnXdpStoreBytes.Call())
	at := int16(slotHeader + frameHeaders + seq.at)
	emit(asm.LoadMem(asm.R1, slot, 8, asm.DWord), asm.LoadMem(asm.R2, slot, at, asm.Word), asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R2), asm.Add.Reg(asm.R3, asm.R1),
		asm.Mov.Imm32(asm.R4, int32(seq.mask)), asm.And.Reg(asm.R3, asm.R4),
		asm.Mov.Imm32(asm.R4, int32(^seq.mask)), asm.And.Reg(asm.R2, asm.R4),
		asm.Or.Reg(asm.R2, asm.R3), asm.HostTo(asm.BE, asm.R2, asm.Word), asm.StoreMem(slot, at, asm.R2, asm.Word))
	emit(asm.LoadMem(asm.R2, slot, 0, asm.DWord), asm.JEq.Imm(asm.R2, 0, "pass"), asm.Mov.Reg(asm.R1, ctx), asm.FnXdpAdjustTail.Call())
	emit(asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"), asm.Return()) // XDP_PASS
	emit(asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), asm.Return()) // XDP_DROP
	return p
}

// sending is how a [frameSender] sends.
type sending struct {
	rate   float64       // frames a second; 0 as fast as possible
	period time.Duration // for how long
	count  uint64        // how many; 0 any number
	window int           // frames on their way to the receiver; 0 any number
}

// departed is what left.
type departed struct {
	frames  uint64
	elapsed time.Duration
	full    float64 // share of looks at which the receiver had no room
}

// send sends. Watch is called every few milliseconds, beside the sending.
func (s *frameSender) send(o sending, watch func()) (r departed, err error) {
	c := s.control
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return r, err
	}
	first := atomic.LoadUint64(&c.cursor)
	c.limit = 1 << 62
	if o.count > 0 {
		c.limit = first + o.count
	}
	c.start, c.skipped, c.batch, c.runs, c.looks, c.full = uint64(now.Nano()), 0, 0, 0, 0, 0
	c.skipped -= first
	c.rate, c.behind, c.window = uint64(o.rate*(1<<32)/1e9), uint64(o.rate*maxBehind.Seconds()), uint64(o.window)
	begin := time.Now()
	runtime.LockOSThread() // which is in the network, and is interrupted
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	done, watched := make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	go func() {
		defer close(watched)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if watch != nil {
				watch()
			}
			if time.Since(begin) >= o.period || atomic.LoadUint64(&c.cursor) >= atomic.LoadUint64(&c.limit) {
				over.Store(true)
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // which ends the call; the runtime ignores it
			}
		}
	}()
	for err == nil && !over.Load() {
		err = s.run()
	}
	close(done)
	<-watched
	return departed{frames: atomic.LoadUint64(&c.cursor) - first, elapsed: time.Since(begin), full: float64(c.full) / float64(max(c.looks, 1))}, err
}

// maxBehind is how far behind its schedule a sender may be and still catch up, as in [traffic.Send].
const maxBehind = 5 * time.Millisecond

// run runs the program until a signal comes.
func (s *frameSender) run() error {
	data := make([]byte, s.size)
	md := struct{ data, end, meta, ingress, queue, egress uint32 }{end: uint32(s.size), ingress: uint32(s.device)}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&data[0])
	pin.Pin(&md)
	attr := struct { // of bpf(2), BPF_PROG_TEST_RUN
		fd, result, dataIn, dataOut uint32
		data, out                   uint64
		repeat, duration            uint32
		contextIn, contextOut       uint32
		context, contextTo          uint64
		flags, cpu, batch, _        uint32
	}{
		fd: uint32(s.program.FD()), dataIn: uint32(len(data)), data: uint64(uintptr(unsafe.Pointer(&data[0]))), repeat: 1 << 31,
		contextIn: uint32(unsafe.Sizeof(md)), context: uint64(uintptr(unsafe.Pointer(&md))), flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES, batch: frameBurst,
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("send frames: %w", errno)
	}
	return nil
}

func (s *frameSender) close() error {
	var errs []error
	for _, mem := range s.memory {
		errs = append(errs, unix.Munmap(mem))
	}
	for _, m := range []*ebpf.Map{s.frames, s.state, s.count} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	if s.program != nil {
		errs = append(errs, s.program.Close())
	}
	return errors.Join(errs...)
}
