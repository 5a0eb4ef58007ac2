package afxdp

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
)

// port is an interface, with the program that steers its frames, and the sockets of its queues.
type port struct {
	name  string
	cfg   *Config
	slots []*slot                                // by worker
	on    func(worker int, f func() error) error // calls f on the CPU of a worker

	mu      sync.Mutex
	index   int       // of the device that was opened last, even in vain
	link    link.Link // of the program to that device; nil if none is attached
	text    string    // how its frames come
	problem string    // why they come through AF_PACKET alone, since a device was opened again
}

// open opens a device, in the driver or else in the kernel behind it. Without one of them all of its frames come through
// AF_PACKET.
func (p *port) open(d afpacket.Device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index = d.Index
	if d.Link != ingest.LinkEthernet {
		return errors.New("its packets have no Ethernet header")
	}
	var errs []error
	for _, mode := range []string{ModeDriver, ModeGeneric} {
		if p.cfg.Mode != mode && p.cfg.Mode != ModeAuto || mode == ModeGeneric && p.cfg.Copy == CopyNever {
			continue
		}
		err := p.attach(d, mode == ModeGeneric)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s mode: %w", mode, err))
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOBUFS) {
			break // the other mode would not help
		}
	}
	if len(errs) == 2 {
		return explain(fmt.Errorf("%w; %w", errs[0], errs[1]))
	}
	return explain(errs[0])
}

// attach attaches a program to a device, and opens the sockets to which it steers frames.
func (p *port) attach(d afpacket.Device, generic bool) (err error) {
	rings, steer, err := load(p.cfg, p.cfg.queues())
	if err != nil {
		return err
	}
	defer rings.Close() // the program keeps it
	defer steer.Close() // the link keeps it
	flag, mode := link.XDPDriverMode, "driver mode"
	if generic {
		flag, mode = link.XDPGenericMode, "generic mode"
	}
	// Before sockets: a mode that the device has not leaves none that the kernel would release with delay.
	attached, err := link.AttachXDP(link.XDPOptions{Program: steer, Interface: d.Index, Flags: flag})
	if err != nil {
		return fmt.Errorf("attach the XDP program: %w", err)
	}
	var sockets []*socket
	defer func() {
		if err != nil { // which is the one to return
			_ = attached.Close()
			for _, s := range sockets {
				_ = s.close()
			}
		}
	}()
	for queue := range p.cfg.queues() {
		var s *socket
		err := p.on(queue%len(p.slots), func() (err error) { s, err = openSocket(p.cfg, d.Index, queue, generic); return err })
		if queue > 0 && errors.Is(err, unix.EINVAL) {
			break // the device has no more queues
		}
		if err != nil {
			return err
		}
		sockets = append(sockets, s)
		if p.cfg.BusyPoll > 0 {
			if err := s.pollsBusily(p.cfg.BusyPoll); err != nil {
				return fmt.Errorf("set %s.busy_poll: %w", p.cfg.Section, err)
			}
		}
		if err := rings.Update(uint32(queue), uint32(s.fd), ebpf.UpdateAny); err != nil {
			return fmt.Errorf("enter the ring of queue %d: %w", queue, err)
		}
	}
	p.link = attached
	how := "copy"
	if sockets[0].zeroCopy {
		how = "zero-copy"
	}
	p.text = fmt.Sprintf("AF_XDP, %s, %s, %d queues", mode, how, len(sockets))
	p.hand(sockets)
	return nil
}

// hand gives each slot its sockets, in place of those before.
func (p *port) hand(sockets []*socket) {
	for i, k := range p.slots {
		var own []*socket
		for n := i; n < len(sockets); n += len(p.slots) {
			own = append(own, sockets[n])
		}
		k.mu.Lock()
		for _, s := range k.next { // that no worker took over
			_ = s.close()
		}
		k.next = own
		k.mu.Unlock()
		k.changed.Store(true)
	}
}

// detach ends the steering. All further frames go to the kernel, and through it to AF_PACKET.
func (p *port) detach() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil {
		return nil
	}
	err := p.link.Close()
	p.link = nil
	return err
}

// look follows the device of the interface. One that was removed leaves its sockets deaf, and a new one is opened once it is up.
// It reports whether workers have other sockets now.
func (p *port) look() bool {
	d, err := afpacket.LookUp(p.name)
	p.mu.Lock()
	index := p.index
	p.mu.Unlock()
	switch {
	case err == nil && d.Index == index, err == nil && !d.Up, err != nil && index == 0:
		return false
	case err != nil:
		err = p.detach() // the kernel has done so
		p.mu.Lock()
		p.index = 0
		p.hand(nil)
		p.mu.Unlock()
	default:
		_ = p.detach() // of a device that is gone
		err = p.open(d)
		if err != nil {
			p.hand(nil)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problem = ""
	if err != nil {
		p.problem = alone(p.name, err)
	}
	return true
}

// alone says why the frames of an interface come through AF_PACKET.
func alone(name string, err error) string {
	return fmt.Sprintf("%s is read through AF_PACKET alone, since AF_XDP is not possible: %v", name, err)
}

// explain adds the remedy to an error.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: it needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF (AmbientCapabilities= in the unit, or setcap cap_net_raw,cap_net_admin,cap_bpf+ep on the program)", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: another program has XDP or this queue (ip link show, bpftool net)", err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%w: this kernel, or the sandbox around the program, has no AF_XDP (RestrictAddressFamilies= in the unit)", err)
	}
	return err
}

// slot is the place of one worker at one interface: its sockets there now, and the counts since the start. The worker reads the
// rings of the sockets; any goroutine may read the statistics.
type slot struct {
	port *port
	ingest.Place
	changed atomic.Bool // next is to be taken over

	frames, bytes, truncated atomic.Uint64 // handed over

	mu      sync.Mutex // guards the rest; the worker alone changes sockets
	sockets []*socket
	next    []*socket
	closed  ingest.Stats // of sockets that were closed
}

// replace puts the next sockets in place, and closes those before. Frames that they hold are lost, and counted.
func (k *slot) replace() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed.Store(false)
	var errs []error
	for _, s := range k.sockets {
		add(&k.closed, s)
		left := uint64(s.waiting())
		k.closed.KernelDropped += left
		k.closed.RingDropped += left
		errs = append(errs, s.close())
	}
	k.sockets, k.next = k.next, nil
	return errors.Join(errs...)
}

// add adds the kernel's counts of a socket.
func add(sum *ingest.Stats, s *socket) {
	st := s.statistics()
	sum.KernelDropped += st.Rx_dropped + st.Rx_ring_full
	sum.RingDropped += st.Rx_dropped
	sum.RingFull += st.Rx_ring_full
	sum.FillEmpty += st.Rx_fill_ring_empty_descs
	sum.InvalidDescriptors += st.Rx_invalid_descs
}

// stats are the counts of all sockets that were open here.
func (k *slot) stats() ingest.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	sum := k.closed
	for _, s := range k.sockets {
		add(&sum, s)
	}
	sum.Frames, sum.Bytes, sum.Truncated = k.frames.Load(), k.bytes.Load(), k.truncated.Load()
	sum.Steered = sum.Frames
	return sum
}

// waiting is the number of frames in the rings. The worker alone may ask.
func (k *slot) waiting() (n int) {
	for _, s := range k.sockets {
		n += s.waiting()
	}
	return n
}
