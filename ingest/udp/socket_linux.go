package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// socket is one member of the SO_REUSEPORT group of an address. One worker reads it.
type socket struct {
	fd       int
	addr     netip.AddrPort
	granted  int // receive buffer in the unit of the configuration, half of what the kernel counts
	received int // datagrams since the worker's last nap
	only     ingest.Kind
	count    counters
	ingest.Place
}

// openGroup opens n sockets on one address; all is the whole list of addresses.
func openGroup(a netip.AddrPort, all []netip.AddrPort, n int, cfg *Config) ([]*socket, error) {
	var group []*socket
	fail := func(err error) ([]*socket, error) {
		for _, k := range group {
			_ = unix.Close(k.fd) // the first error is the one to return
		}
		return nil, fmt.Errorf("udp: listen on %v: %w", a, explain(err, a))
	}
	dual := a.Addr() == netip.IPv6Unspecified() &&
		!slices.Contains(all, netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port()))
	for i := range n {
		k, err := open(a, dual, cfg.ReceiveBufferBytes, i > 0, n > 1)
		if err != nil {
			return fail(err)
		}
		group = append(group, k)
		a = k.addr // port 0 was replaced by the port that the others are to join
	}
	if cfg.Steering == SteerSpread && n > 1 {
		if err := spread(group[0].fd, n); err != nil {
			return fail(err)
		}
	}
	return group, nil
}

// open binds one socket. The first of a group must find the address free; later ones join, if it is shared.
func open(a netip.AddrPort, dual bool, bufferBytes int, join, share bool) (_ *socket, err error) {
	family := unix.AF_INET
	if a.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	set := func(name string, level, opt, v int) {
		if err == nil {
			if e := unix.SetsockoptInt(fd, level, opt, v); e != nil {
				err = fmt.Errorf("set %s: %w", name, e)
			}
		}
	}
	if family == unix.AF_INET6 {
		only := 1
		if dual {
			only = 0
		}
		set("IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
	}
	set("SO_TIMESTAMPNS", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	set("SO_RXQ_OVFL", unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if join {
		set("SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err != nil {
		return nil, err
	}
	k := &socket{fd: fd}
	if k.granted, err = setReceiveBuffer(fd, bufferBytes); err != nil {
		return nil, err
	}
	sa, err := sockaddr(a)
	if err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, sa); err != nil {
		return nil, err
	}
	if share { // after bind: see the package comment
		set("SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err != nil {
		return nil, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("getsockname: %w", err)
	}
	k.addr = netip.AddrPortFrom(a.Addr(), boundPort(bound))
	return k, nil
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if z := a.Addr().Zone(); z != "" {
		if n, err := strconv.ParseUint(z, 10, 32); err == nil {
			sa.ZoneId = uint32(n)
			return sa, nil
		}
		ifi, err := net.InterfaceByName(z)
		if err != nil {
			return nil, fmt.Errorf("zone %q is no interface of this machine: %w", z, err)
		}
		sa.ZoneId = uint32(ifi.Index)
	}
	return sa, nil
}

func boundPort(sa unix.Sockaddr) uint16 {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port)
	case *unix.SockaddrInet6:
		return uint16(sa.Port)
	}
	return 0
}

// setReceiveBuffer requests n bytes, past the system's limit if the process may, and returns the granted size. The
// kernel doubles the value to make room for its own bookkeeping, and reports the doubled one.
func setReceiveBuffer(fd, n int) (granted int, err error) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, n) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, n); err != nil {
			return 0, fmt.Errorf("set SO_RCVBUF: %w", err)
		}
	}
	doubled, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0, fmt.Errorf("read SO_RCVBUF back: %w", err)
	}
	return doubled / 2, nil
}

// bufferNotice returns the remedy if the kernel granted less than was requested, or "".
func bufferNotice(k *socket, asked int) string {
	if k.granted >= asked {
		return ""
	}
	return fmt.Sprintf("receive buffer of %v: asked for %d bytes, the kernel granted %d; bursts above that are lost: "+
		"raise the limit (sysctl -w net.core.rmem_max=%d) or grant CAP_NET_ADMIN", k.addr, asked, k.granted, asked)
}

// Ancillary load of classic BPF: a random number (linux/filter.h, SKF_AD_OFF + SKF_AD_RANDOM).
const skfRandom = 0xfffff000 + 56

// spread makes the kernel pick a socket of the group at random for every datagram.
func spread(fd, n int) error {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: skfRandom},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(n)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	if err != nil {
		return fmt.Errorf("attach the program of steering %q (SO_ATTACH_REUSEPORT_CBPF): %w", SteerSpread, err)
	}
	return nil
}

// deafen makes the kernel turn away everything that still arrives. It counts that as dropped.
func (k *socket) deafen() error {
	prog := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	return unix.SetsockoptSockFprog(k.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: 1, Filter: &prog[0]})
}

// observeDrops brings the drop counter up to date and returns the memory that waiting datagrams hold.
func (k *socket) observeDrops() (bufferedBytes int) {
	m, ok := meminfo(k.fd)
	if !ok {
		return 0 // before Linux 4.12; SO_RXQ_OVFL alone counts there
	}
	k.count.drops.observe(m[unix.SK_MEMINFO_DROPS])
	return int(m[unix.SK_MEMINFO_RMEM_ALLOC])
}

// explain adds what to do about an error of opening a socket.
func explain(err error, a netip.AddrPort) error {
	var hint string
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		hint = fmt.Sprintf("another program receives there (\"ss -ulpn sport = %d\" names it); stop it or choose another port", a.Port())
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		hint = "ports below net.ipv4.ip_unprivileged_port_start (1024 unless changed) need CAP_NET_BIND_SERVICE; grant it or choose a higher port"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		hint = "no interface of this machine has the address (\"ip address\" lists them)"
	case errors.Is(err, unix.EAFNOSUPPORT):
		hint = "this machine has no IPv6; listen on an IPv4 address"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		hint = "too many open files; raise the limit (ulimit -n, LimitNOFILE) or lower workers"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
