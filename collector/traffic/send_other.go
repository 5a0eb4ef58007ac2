//go:build !linux

package traffic

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// sender sends through package net, a datagram a call.
type sender struct {
	conns []*net.UDPConn
	data  []byte
	lens  []int
	size  int
}

func newSender(to netip.AddrPort, sockets, burst, size int, gso bool) (*sender, error) {
	if gso {
		return nil, errors.New("UDP_SEGMENT: only Linux has it")
	}
	s := &sender{data: make([]byte, burst*size), lens: make([]int, burst), size: size}
	for range sockets {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			s.close()
			return nil, err
		}
		s.conns = append(s.conns, c)
	}
	return s, nil
}

func (s *sender) close() {
	for _, c := range s.conns {
		_ = c.Close() // nothing is buffered that could be lost
	}
}

func (s *sender) slot(i int) []byte { return s.data[i*s.size : (i+1)*s.size : (i+1)*s.size] }

func (s *sender) setLen(i, n int) { s.lens[i] = n }

func (s *sender) send(socket, n int) (refused uint64, err error) {
	for i := range n {
		for {
			_, err := s.conns[socket].Write(s.slot(i)[:s.lens[i]])
			if errors.Is(err, syscall.ECONNREFUSED) {
				refused++
				continue
			}
			if err != nil {
				return refused, err
			}
			break
		}
	}
	return refused, nil
}

func nap(d time.Duration) { time.Sleep(d) }
