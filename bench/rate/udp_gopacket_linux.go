//go:build cgo

package rate

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/gopacket/afpacket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	ours "github.com/hopscope/hopscope/ingest/afpacket"
)

func init() {
	receivers = append(receivers, receiver{"ring-gopacket", "gopacket/afpacket, which needs C", runGopacketRing})
}

// runGopacketRing makes a receiver of gopacket's ring on the loopback interface, without copies. It has as much
// memory as the one of ingest/afpacket, and a filter of the kernel for datagrams to the port.
func runGopacketRing(ctx context.Context, o receiverOptions, count *atomic.Uint64, listening func(netip.AddrPort)) error {
	to, c, err := turnAway(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	const block = 256 << 10 // as in ingest/afpacket
	ring, err := afpacket.NewTPacket(afpacket.OptInterface("lo"), afpacket.SocketRaw, afpacket.TPacketVersion3,
		afpacket.OptFrameSize(4096), afpacket.OptBlockSize(block), afpacket.OptNumBlocks(ours.DefaultConfig().RingBytes/block), afpacket.OptBlockTimeout(10*time.Millisecond), afpacket.OptPollTimeout(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer ring.Close()
	drop := bpf.RetConstant{Val: 0}
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType}, // the loopback interface shows each frame twice: as it goes out and as it comes in
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 7},
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: 5},
		bpf.LoadAbsolute{Off: 14 + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 14 + 20 + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(to.Port()), SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		drop,
	})
	if err != nil {
		return err
	}
	if err := ring.SetBPF(filter); err != nil {
		return err
	}
	for timeouts := 0; timeouts < 3 && ctx.Err() == nil; { // frames of others are in the ring from before its filter
		switch _, _, err := ring.ZeroCopyReadPacketData(); {
		case errors.Is(err, afpacket.ErrTimeout):
			timeouts++
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		}
	}
	listening(to)
	for ctx.Err() == nil {
		switch _, _, err := ring.ZeroCopyReadPacketData(); {
		case err == nil:
			count.Add(1)
		case !errors.Is(err, afpacket.ErrTimeout) && !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return nil
}
