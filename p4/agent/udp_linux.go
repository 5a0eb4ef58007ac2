package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/p4/stamp"
)

// udpLine is a socket of STAMP. Receive has one user, and so have send and answer.
type udpLine struct {
	conn    *net.UDPConn
	v6      bool
	control []byte
	out     []byte
	options []byte        // the hop-by-hop header of the packet that came last
	drops   atomic.Uint32 // packets for which the receive buffer had no room, up to the last one that came

	hearing sync.Mutex // what is below
	answers []routerAnswer
}

// routerAnswer is a packet whose TTL ended, as far as the router repeats it.
type routerAnswer struct {
	payload []byte
	from    netip.Addr
}

// mostAnswers are the answers of routers that wait for the trace to take them.
const mostAnswers = stamp.MostHops * stamp.TraceTries

// dropped is how many packets the kernel dropped because the buffer was full.
func (l *udpLine) dropped() uint64 { return uint64(l.drops.Load()) }

// dialUDP opens the socket of a session, which receives from its reflector alone.
func dialUDP(ctx context.Context, s *socketConfig) (*udpLine, error) {
	far, own, err := resolve(ctx, s.from, s.to, s.extended())
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	if own != nil {
		d.LocalAddr = own
	}
	if s.port > 0 {
		if own == nil {
			own = &net.UDPAddr{}
		}
		own.Port = int(s.port)
		d.LocalAddr = own
	}
	var refused error // that the kernel does not take the headers, which is no error of the network
	d.Control = func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			if s.port > 0 { // which sessions to several reflectors may have, and the socket before this one
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			}
			refused = s.extend(int(fd))
		}), err, refused)
	}
	c, err := d.DialContext(ctx, "udp", far.String())
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	l := &udpLine{conn: c.(*net.UDPConn)}
	if s.port > 0 {
		if err := l.enableErrors(); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	if err := l.set(int(s.dscp)<<2, false); err != nil {
		return nil, err // it is closed
	}
	return l, nil
}

// extend has the kernel write the extension headers into all packets of a socket.
func (s *socketConfig) extend(fd int) error {
	if s.hops != nil {
		switch err := unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_HOPOPTS, string(s.hops)); {
		case errors.Is(err, os.ErrPermission):
			return fmt.Errorf("IOAM trace: %w: hop-by-hop options need CAP_NET_RAW; give it to the program or its unit, or leave out ioam", err)
		case err != nil:
			return fmt.Errorf("IOAM trace: %w", err)
		}
	}
	if s.route != nil {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(s.route)); err != nil {
			return fmt.Errorf("segments: %w", err)
		}
	}
	return nil
}

// resolve finds the address of a reflector, HOST:PORT: the first one of the family of from, and IPv4 before IPv6 where from is empty. With only6 it is one of
// IPv6.
func resolve(ctx context.Context, from, to string, only6 bool) (far netip.AddrPort, own *net.UDPAddr, err error) {
	host, text, err := net.SplitHostPort(to)
	if err != nil {
		return far, nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return far, nil, err
	}
	var source netip.Addr
	if from != "" {
		if source, err = netip.ParseAddr(from); err != nil {
			return far, nil, err
		}
		own = net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	var list []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil { // with its zone, which the resolver leaves out
		list = append(list, a)
	} else if list, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return far, nil, err
	}
	for _, six := range []bool{false, true} {
		for _, a := range list {
			if a = a.Unmap(); a.Is6() == six && (six || !only6) && (own == nil || source.Unmap().Is6() == six) {
				return netip.AddrPortFrom(a, uint16(port)), own, nil
			}
		}
	}
	family := "the family of " + from
	if only6 {
		family = "IPv6, which ioam and segments need"
	}
	return far, nil, &net.DNSError{Err: "no address of " + family, Name: host, IsNotFound: true}
}

// listenUDP opens the socket of a reflector, with a receive buffer of that many bytes as far as the kernel grants them.
// With traces it receives hop-by-hop headers, too. The result early is set for an address that the host does not have,
// but may get.
func listenUDP(at netip.AddrPort, buffer int, traces bool) (l *udpLine, early bool, err error) {
	network := "udp4"
	if at.Addr().Unmap().Is6() {
		network = "udp6"
	}
	c, err := net.ListenPacket(network, at.String())
	if early = errors.Is(err, unix.EADDRNOTAVAIL); early {
		free := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1) }) // it is of IPv6, too; without it the address is missing
		}}
		c, err = free.ListenPacket(context.Background(), network, at.String())
	}
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: ports below 1024 need CAP_NET_BIND_SERVICE; take another one, or give it to the program or its unit", err)
	}
	if err != nil {
		return nil, early, err
	}
	l = &udpLine{conn: c.(*net.UDPConn)}
	if l.conn.SetReadBuffer(buffer) == nil { // up to net.core.rmem_max
		if raw, err := l.conn.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) }) // with CAP_NET_ADMIN all of it
		}
	}
	return l, early, l.set(0, traces)
}

// set has the kernel report the time of a packet, its hops and marks, its destination address, and the number of
// dropped ones. Without that, the time is that of reading, and the rest is 0. With traces it reports hop-by-hop headers.
func (l *udpLine) set(tos int, traces bool) error {
	l.v6 = l.local().Addr().Unmap().Is6()
	l.control = make([]byte, 256)
	if traces = traces && l.v6; traces {
		l.control = make([]byte, 256+unix.CmsgSpace(mostHeader))
	}
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return errors.Join(err, l.close())
	}
	err = errors.Join(raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
		level, mark, hops, options := unix.IPPROTO_IP, unix.IP_TOS, unix.IP_TTL, []int{unix.IP_RECVTOS, unix.IP_RECVTTL, unix.IP_PKTINFO}
		if l.v6 {
			level, mark, hops, options = unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_UNICAST_HOPS, []int{unix.IPV6_RECVTCLASS, unix.IPV6_RECVHOPLIMIT, unix.IPV6_RECVPKTINFO}
		}
		for _, o := range options {
			_ = unix.SetsockoptInt(int(fd), level, o, 1)
		}
		err = errors.Join(unix.SetsockoptInt(int(fd), level, mark, tos), unix.SetsockoptInt(int(fd), level, hops, stampTTL))
		if traces {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVHOPOPTS, 1))
		}
	}), err)
	if err != nil {
		return errors.Join(fmt.Errorf("set DSCP, TTL and options: %w", err), l.close())
	}
	return nil
}

// mostHeader are the bytes of the longest hop-by-hop header.
const mostHeader = 256 * 8

// header is the hop-by-hop header of the packet that came last, until the next one; nil for none.
func (l *udpLine) header() []byte { return l.options }

func (l *udpLine) local() netip.AddrPort  { return addrPort(l.conn.LocalAddr()) }
func (l *udpLine) remote() netip.AddrPort { return addrPort(l.conn.RemoteAddr()) }

func addrPort(a net.Addr) netip.AddrPort {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return u.AddrPort()
}

// wake makes receive, send and answer return for ever.
func (l *udpLine) wake() { _ = l.conn.SetDeadline(time.Unix(1, 0)) } // it fails on a socket that is closed, which does the same

func (l *udpLine) close() error {
	if l == nil {
		return nil
	}
	return l.conn.Close()
}

// receive waits for a packet.
func (l *udpLine) receive(b []byte) (n int, a stamp.Arrival, err error) {
	n, control, _, from, err := l.conn.ReadMsgUDPAddrPort(b, l.control)
	if err != nil {
		l.drainErrors()
		return 0, a, err
	}
	l.options = nil
	a = stamp.Arrival{From: from, To: l.local(), At: time.Now().UnixNano()}
	if at := receiveTime(l.control[:control]); at > 0 {
		a.At = at
	}
	for rest := l.control[:control]; len(rest) > 0; {
		h, data, more, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		rest = more
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			l.drops.Store(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) > 0:
			a.TOS = data[0]
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL && len(data) >= 4, h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPLIMIT && len(data) >= 4:
			a.TTL = uint8(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 4:
			a.TOS = uint8(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			a.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte(data[8:12])), a.To.Port())
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			a.To = netip.AddrPortFrom(netip.AddrFrom16([16]byte(data)), a.To.Port())
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPOPTS:
			l.options = data
		}
	}
	return n, a, nil
}

// send sends a request. A network error about an earlier packet stops none.
func (l *udpLine) send(b []byte) error {
	_, err := l.conn.Write(b)
	for range 3 {
		if !expired(err) && !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EACCES) {
			break
		}
		l.drainErrors()
		_, err = l.conn.Write(b)
	}
	return err
}

// answer sends an answer from the address that was asked, with a type of service.
func (l *udpLine) answer(b []byte, a *stamp.Arrival, tos uint8) error {
	var value [4]byte
	binary.NativeEndian.PutUint32(value[:], uint32(tos))
	to := a.To.Addr()
	if l.v6 {
		l.out = appendControl(l.out[:0], unix.IPPROTO_IPV6, unix.IPV6_TCLASS, value[:])
		l.out = append(l.out, unix.PktInfo6(&unix.Inet6Pktinfo{Addr: to.As16()})...)
	} else {
		l.out = appendControl(l.out[:0], unix.IPPROTO_IP, unix.IP_TOS, value[:])
		l.out = append(l.out, unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.Unmap().As4()})...)
	}
	_, _, err := l.conn.WriteMsgUDPAddrPort(b, l.out, a.From)
	return err
}

// clockState is whether the kernel's clock follows another one, and how far it may be off by then.
func clockState() (follows bool, bound time.Duration) {
	var x unix.Timex
	state, err := unix.Adjtimex(&x)
	if err != nil || state == unix.TIME_ERROR || x.Status&unix.STA_UNSYNC != 0 {
		return false, time.Duration(x.Maxerror) * time.Microsecond
	}
	return true, time.Duration(x.Maxerror) * time.Microsecond
}

// enableErrors has the kernel keep errors of routers about packets of the socket.
func (l *udpLine) enableErrors() error {
	level, option := unix.IPPROTO_IP, unix.IP_RECVERR
	if l.remote().Addr().Unmap().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVERR
	}
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }), err)
}

// expired reports whether an error of a socket may be about a packet whose TTL ended.
func expired(err error) bool {
	return errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EPROTO)
}

// sendTTL sends a packet with a TTL, or hop limit. It can be called beside send.
func (l *udpLine) sendTTL(b []byte, ttl int) error {
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TTL)
	if l.v6 {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT
	}
	var value [4]byte
	binary.NativeEndian.PutUint32(value[:], uint32(ttl))
	control := appendControl(make([]byte, 0, 64), level, kind, value[:])
	_, _, err := l.conn.WriteMsgUDP(b, control, nil)
	if expired(err) { // of an earlier packet
		l.drainErrors()
		_, _, err = l.conn.WriteMsgUDP(b, control, nil)
	}
	return err
}

// Errors of sockets, <linux/errqueue.h>: 16 bytes, and behind them the address of the router.
const (
	errorType   = 5 // offset
	errorOrigin = 4
	errorLen    = 16
	originICMP  = 2
	originICMP6 = 3
	expiredICMP = 11 // time exceeded
	expired6    = 3
)

// routers passes to handle the payloads of packets whose TTL ended, as far as routers repeat them, with the routers'
// addresses, since the last call.
func (l *udpLine) routers(handle func(payload []byte, from netip.Addr)) {
	l.drainErrors()
	l.hearing.Lock()
	defer l.hearing.Unlock()
	for i := range l.answers {
		handle(l.answers[i].payload, l.answers[i].from)
	}
	l.answers = l.answers[:0]
}

// drainErrors takes all errors off the socket, which has room for few answers beside them, and keeps those of packets whose TTL ended.
func (l *udpLine) drainErrors() {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return
	}
	l.hearing.Lock()
	defer l.hearing.Unlock()
	b, control := make([]byte, stamp.TraceLen), make([]byte, 512)
	_ = raw.Control(func(fd uintptr) { // a socket that is closed has none
		for {
			n, k, _, _, err := unix.Recvmsg(int(fd), b, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			if from := routerOf(control[:k]); from.IsValid() && len(l.answers) < mostAnswers {
				l.answers = append(l.answers, routerAnswer{slices.Clone(b[:n]), from})
			}
		}
	})
}

// routerOf is the address of the router where the TTL of a packet ended, from the control messages of the error. It is
// the zero address for any other error.
func routerOf(control []byte) netip.Addr {
	for len(control) > 0 {
		h, data, more, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			break
		}
		control = more
		if len(data) < errorLen {
			continue
		}
		switch address := data[errorLen:]; {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_RECVERR && data[errorOrigin] == originICMP && data[errorType] == expiredICMP && len(address) >= 8:
			return netip.AddrFrom4([4]byte(address[4:8]))
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_RECVERR && data[errorOrigin] == originICMP6 && data[errorType] == expired6 && len(address) >= 24:
			return netip.AddrFrom16([16]byte(address[8:24]))
		}
	}
	return netip.Addr{}
}
