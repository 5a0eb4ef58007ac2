//go:build !linux

package agent

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/p4/stamp"
)

// udpLine is a socket of STAMP, which only Linux has as it is needed here.
type udpLine struct{}

var errSTAMP = errors.New("packets of STAMP need the time of receipt, the TTL and the DSCP of the kernel, which are read on Linux only")

func dialUDP(context.Context, *socketConfig) (*udpLine, error)      { return nil, errSTAMP }
func expired(error) bool                                            { return false }
func (*udpLine) sendTTL([]byte, int) error                          { return errSTAMP }
func (*udpLine) routers(func([]byte, netip.Addr))                   {}
func listenUDP(netip.AddrPort, int, bool) (*udpLine, bool, error)   { return nil, false, errSTAMP }
func (*udpLine) header() []byte                                     { return nil }
func (*udpLine) local() netip.AddrPort                              { return netip.AddrPort{} }
func (*udpLine) remote() netip.AddrPort                             { return netip.AddrPort{} }
func (*udpLine) wake()                                              {}
func (*udpLine) dropped() uint64                                    { return 0 }
func (*udpLine) close() error                                       { return nil }
func (*udpLine) receive([]byte) (n int, a stamp.Arrival, err error) { return 0, a, errSTAMP }
func (*udpLine) send([]byte) error                                  { return errSTAMP }
func (*udpLine) answer(b []byte, a *stamp.Arrival, tos uint8) error { return errSTAMP }
func clockState() (follows bool, bound time.Duration)               { return false, 0 }
