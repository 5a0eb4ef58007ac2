package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/p4/probe"
)

// line is the agent's way to the network: a socket that sends and one that receives.
type line struct {
	tx      *txSocket
	rx      *rxSocket
	granted int // receive buffer, at most the requested one
	asked   int
}

// packetIgnoreOutgoing is PACKET_IGNORE_OUTGOING of linux/if_packet.h, from Linux 4.20 on.
const packetIgnoreOutgoing = 23

// htons is a protocol number in the byte order of the network.
func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// openLine opens both sockets on an interface.
func openLine(cfg *Config, ifindex int) (l *line, err error) {
	l = &line{asked: cfg.ReceiveBufferBytes}
	defer func() {
		if err != nil {
			_ = l.close() // the first error is the one to return
		}
	}()
	fd, err := packetSocket()
	if err != nil {
		return l, err
	}
	l.tx = newTx(fd, cfg.BatchSize)
	// Frames go to the driver without a queue of the kernel: what is due now is not to wait behind other traffic of the host.
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return l, fmt.Errorf("set PACKET_QDISC_BYPASS: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex}); err != nil { // protocol 0: it receives nothing
		return l, fmt.Errorf("bind the socket that sends: %w", err)
	}
	if fd, err = packetSocket(); err != nil {
		return l, err
	}
	l.rx = newRx(fd, cfg.BatchSize, frameSize(cfg.MTU))
	if err := l.listen(cfg, fd); err != nil {
		return l, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex, Protocol: htons(unix.ETH_P_ALL)}); err != nil {
		return l, fmt.Errorf("bind the socket that receives: %w", err)
	}
	return l, nil
}

// frameSize is the memory for a frame that comes.
func frameSize(mtu int) int { return mtu + 64 }

// packetSocket opens a socket that is bound to nothing yet, so that nothing is received before the filter is there.
func packetSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return -1, fmt.Errorf("%w: sending and receiving frames needs CAP_NET_RAW, and not root: "+
			"\"setcap cap_net_raw+ep\" on the program, or AmbientCapabilities=CAP_NET_RAW in its unit", err)
	}
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return -1, fmt.Errorf("%w: this kernel, or the sandbox around the program, has no packet sockets (AF_PACKET)", err)
	}
	return fd, err
}

// listen sets what the receiving socket is to do, before it is bound.
func (l *line) listen(cfg *Config, fd int) error {
	filter := probeFilter(uint8(cfg.Mark))
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return fmt.Errorf("attach the filter of probes: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, packetIgnoreOutgoing, 1); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return fmt.Errorf("set PACKET_IGNORE_OUTGOING: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, cfg.ReceiveBufferBytes) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, cfg.ReceiveBufferBytes); err != nil {
			return fmt.Errorf("set SO_RCVBUF: %w", err)
		}
	}
	doubled, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return fmt.Errorf("read SO_RCVBUF back: %w", err)
	}
	l.granted = doubled / 2 // the kernel doubles it, to make room for its own bookkeeping
	return nil
}

// notice reports that the kernel granted less than requested, or is "".
func (l *line) notice() string {
	if l.granted >= l.asked {
		return ""
	}
	return fmt.Sprintf("asked for %d bytes, the kernel granted %d: raise the limit (sysctl -w net.core.rmem_max=%d) or grant CAP_NET_ADMIN", l.asked, l.granted, l.asked)
}

// up reports whether the interface of a name is up and has a carrier. If that cannot be read it returns true: sending
// fails then.
func (l *line) up(name string) bool {
	flags, err := interfaceFlags(l.tx.fd, name)
	return err != nil || flags&unix.IFF_UP != 0 && flags&unix.IFF_RUNNING != 0
}

func (l *line) close() error {
	var errs []error
	if l.tx != nil {
		errs = append(errs, unix.Close(l.tx.fd))
	}
	if l.rx != nil {
		errs = append(errs, unix.Close(l.rx.fd))
	}
	return errors.Join(errs...)
}

// probeFilter lets through IPv4 packets over UDP to the port of INT with the mark of probes, and frames whose route has entries left.
// So it does what ends as probes do: a bit of its headers may have been changed on the way, which is to be counted.
func probeFilter(mark uint8) []unix.SockFilter {
	const (
		half  = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		octet = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		has   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		all   = 1 << 18
	)
	return []unix.SockFilter{
		{Code: half, K: 12},
		{Code: equal, K: typeRoute, Jt: 20}, // 1: taken
		{Code: equal, K: 0x0800, Jf: 10},    // 2: looked at from its end, as all below
		{Code: octet, K: 15},                // type of service
		{Code: unix.BPF_ALU | unix.BPF_AND, K: 0xfc},
		{Code: equal, K: uint32(mark) << 2, Jf: 7}, // 5
		{Code: octet, K: 23},
		{Code: equal, K: unix.IPPROTO_UDP, Jf: 5}, // 7
		{Code: half, K: 20},
		{Code: has, K: 0x3fff, Jt: 3},                           // 9: a fragment
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 14}, // X is the size of the IP header
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 16},
		{Code: equal, K: probe.INTPort, Jt: 9}, // 12: taken
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: probe.EthernetLen + probe.PacketLen, Jf: 8}, // 14: left out
		{Code: unix.BPF_ALU | unix.BPF_SUB, K: probe.SignedLen},
		{Code: unix.BPF_MISC | unix.BPF_TAX},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: probe.SignedLen - probe.PayloadLen},
		{Code: equal, K: probe.Magic, Jt: 3}, // 18: taken
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND},
		{Code: equal, K: probe.Magic, Jt: 1}, // 20: taken
		{Code: unix.BPF_RET | unix.BPF_K},
		{Code: unix.BPF_RET | unix.BPF_K, K: all}, // 22
		{Code: unix.BPF_RET | unix.BPF_K},
	}
}

// sharpenTimers makes the kernel wake this thread when it asked to be, instead of up to 50 µs later together with others.
func sharpenTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) } // without it all is less exact, and right

// sleep waits for d, or for a signal.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // after an early wake-up nothing is due yet
}

// advice is the advice for a reason for which the card refuses frames, appended to the reason.
func advice(why error) string {
	switch {
	case errors.Is(why, unix.ENETDOWN):
		return ": \"ip link\" says why it is down"
	case errors.Is(why, unix.EMSGSIZE):
		return ": raise the MTU of the interface (\"ip link set mtu\")"
	case errors.Is(why, unix.ENOBUFS), errors.Is(why, unix.EAGAIN):
		return ": its queue is full or it has no carrier; lower send_limit_bps, or look at the cable"
	}
	return ""
}
