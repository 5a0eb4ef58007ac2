package rate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
	"github.com/hopscope/hopscope/ingest/afxdp"
	"github.com/hopscope/hopscope/ingest/udp"
)

// receiver is one way to receive. It counts its datagrams until its process ends.
type receiver struct {
	name, text string
	run        func(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error
}

// receiverOptions go from the sender's process to the receiver's.
type receiverOptions struct {
	Name       string
	UDP        udp.Config
	FlowBytes  int64 // memory of the flow table
	CPUProfile string
	Counts     bool // the third file is memory with the count
	sum        *sum // of datagrams of bare receivers, in tests
}

var receivers = []receiver{
	{"plain", "net.UDPConn, a datagram a call", runPlain},
	{"batch", "x/net ReadBatch", runReadBatch},
	{"discard", "ingest/udp", runSource(newDiscard, one)},
	{"spread", "ingest/udp, 4 sockets, steering spread", runSource(newDiscard, four)},
	{"decode", "ingest/udp and decoders", runSource(newDecoder, one)},
	{"pipeline", "ingest/udp, decoders, exporters, flows, sketches, windows", runSource(newPipeline, one)},
	{"bare", "recvmmsg, and nothing else", bareSocket},
	{"ring", "ingest/afpacket", runRing(packetRing, newDiscard)},
	{"ring-pipeline", "ingest/afpacket, decoders, exporters, flows, sketches, windows", runRing(packetRing, newPipeline)},
	{"ring-bare", "TPACKET_V3, and nothing else", barePacketRing},
	{"xdp", "ingest/afxdp", runRing(xdpRing, newDiscard)},
	{"xdp-pipeline", "ingest/afxdp, decoders, exporters, flows, sketches, windows", runRing(xdpRing, newPipeline)},
	{"xdp-bare", "AF_XDP, and nothing else", bareXDP},
}

func one(c *udp.Config) { c.Workers = 1 }

func four(c *udp.Config) { c.Workers, c.Steering = 4, udp.SteerSpread }

func newDiscard(receiverOptions) (func(*ingest.Batch), error) { return func(*ingest.Batch) {}, nil }

func lookupReceiver(name string) (receiver, error) {
	for _, r := range receivers {
		if r.name == name {
			return r, nil
		}
	}
	return receiver{}, fmt.Errorf("no receiver %q", name)
}

// serve is the receiver's process. It reads its options as JSON from standard input and prints its address. After
// that it answers every further line with the number of received datagrams, until the input ends.
func serve() error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o receiverOptions
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	r, err := lookupReceiver(o.Name)
	if err != nil {
		return err
	}
	stop, err := startProfile(o.CPUProfile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	count := new(atomic.Uint64)
	if o.Counts {
		mem, err := unix.Mmap(3, 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map the count: %w", err)
		}
		count = (*atomic.Uint64)(unsafe.Pointer(&mem[0]))
	}
	done := make(chan error, 1)
	go func() { done <- r.run(ctx, o, count, func(a netip.AddrPort) { fmt.Println(a) }) }()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			if _, err := in.ReadBytes('\n'); err != nil {
				return
			}
			asked <- struct{}{}
		}
	}()
	for {
		select {
		case _, ok := <-asked:
			if ok {
				fmt.Println(count.Load())
				continue
			}
			cancel()
			err = <-done
		case err = <-done: // the count has ended; the parent sees that the process ended
		}
		stop()
		return err
	}
}

// runSource makes a receiver of ingest/udp and a function for its batches.
func runSource(build func(receiverOptions) (func(*ingest.Batch), error), change func(*udp.Config)) func(context.Context, receiverOptions, *atomic.Uint64, func(netip.AddrPort)) error {
	return func(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
		change(&o.UDP)
		s, err := udp.New(o.UDP)
		if err != nil {
			return err
		}
		for _, n := range s.Notices() {
			fmt.Fprintln(os.Stderr, n)
		}
		handle, err := build(o)
		if err != nil {
			return err
		}
		listening(s.Addrs()[0])
		return s.Run(ctx, func(_ int, b *ingest.Batch) {
			handle(b)
			count.Add(uint64(len(b.Frames)))
		})
	}
}

// turnAway opens a socket that refuses all datagrams while a ring receives them, so that the kernel answers none of
// them.
func turnAway(ctx context.Context, o receiverOptions) (to netip.AddrPort, c *net.UDPConn, err error) {
	none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	c, err = listen(ctx, o, func(a netip.AddrPort) { to = a }, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none[0]})
	})
	return to, c, err
}

// onLoopback are the settings of one worker that reads datagrams to a port from the loopback interface.
func onLoopback(c *afpacket.Config, to netip.AddrPort, o receiverOptions) {
	c.Interfaces, c.Workers, c.MaxFrameBytes, c.Datagrams = []string{afpacket.Loopback}, 1, o.UDP.MaxDatagramBytes, map[uint16]ingest.Kind{to.Port(): ingest.Anything}
}

func packetRing(to netip.AddrPort, o receiverOptions) (ingest.Source, error) {
	cfg := afpacket.DefaultConfig()
	onLoopback(&cfg, to, o)
	return afpacket.New(cfg)
}

// xdpRing has as much memory as packetRing. It fails where it would read through AF_PACKET.
func xdpRing(to netip.AddrPort, o receiverOptions) (ingest.Source, error) {
	cfg := afxdp.DefaultConfig()
	onLoopback(&cfg.Config, to, o)
	s, err := afxdp.New(cfg)
	if err != nil {
		return nil, err
	}
	if n := s.Notices(); len(n) > 0 {
		return nil, errors.Join(errors.New(n[0]), s.Close())
	}
	return s, nil
}

// runRing makes a receiver of rings of the loopback interface.
func runRing(open func(netip.AddrPort, receiverOptions) (ingest.Source, error), build func(receiverOptions) (func(*ingest.Batch), error)) func(context.Context, receiverOptions, *atomic.Uint64, func(netip.AddrPort)) error {
	return func(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
		to, c, err := turnAway(ctx, o)
		if err != nil {
			return err
		}
		defer c.Close()
		s, err := open(to, o)
		if err != nil {
			return err
		}
		handle, err := build(o)
		if err != nil {
			return err
		}
		listening(to)
		return s.Run(ctx, func(_ int, b *ingest.Batch) {
			handle(b)
			count.Add(uint64(len(b.Frames)))
		})
	}
}

// listen opens a socket of package net with the same buffer that ingest/udp has.
func listen(ctx context.Context, o receiverOptions, listening func(netip.AddrPort), options ...func(fd int) error) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, o.UDP.ReceiveBufferBytes)
			for _, set := range options {
				err = errors.Join(err, set(int(fd)))
			}
		})
		if cerr != nil {
			return cerr
		}
		return err
	}}
	p, err := lc.ListenPacket(ctx, "udp4", o.UDP.Listen[0])
	if err != nil {
		return nil, err
	}
	c := p.(*net.UDPConn)
	context.AfterFunc(ctx, func() { c.Close() })
	listening(c.LocalAddr().(*net.UDPAddr).AddrPort())
	return c, nil
}

func runPlain(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
	c, err := listen(ctx, o, listening)
	if err != nil {
		return err
	}
	buf := make([]byte, o.UDP.MaxDatagramBytes)
	for {
		if _, _, err := c.ReadFromUDPAddrPort(buf); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		count.Add(1)
	}
}

func runReadBatch(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
	c, err := listen(ctx, o, listening)
	if err != nil {
		return err
	}
	p := ipv4.NewPacketConn(c)
	ms := make([]ipv4.Message, o.UDP.BatchSize)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, o.UDP.MaxDatagramBytes)}
	}
	for {
		n, err := p.ReadBatch(ms, 0)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		count.Add(uint64(n))
	}
}
