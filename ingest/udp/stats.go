package udp

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/hopscope/hopscope/ingest"
)

// socketStats is one socket's part of the statistics. It shows which socket is overrun, and how full it is.
type socketStats struct {
	ingest.Stats
	Addr          netip.AddrPort
	Worker        int
	bufferBytes   int // receive buffer as granted, in the unit of the configuration
	bufferedBytes int // memory that waiting datagrams hold now, of 2 * bufferBytes; 0 where the system does not report it
}

// counters are written by one worker and read by any goroutine.
type counters struct {
	frames, bytes, truncated, refused atomic.Uint64
	left                              atomic.Uint64 // still in the socket when draining took too long
	drops                             dropCounter
	_                                 [64]byte // the next socket's counters belong to another CPU
}

func (c *counters) stats() ingest.Stats {
	return ingest.Stats{
		Frames:        c.frames.Load(),
		Bytes:         c.bytes.Load(),
		KernelDropped: c.drops.total.Load() + c.left.Load(),
		Truncated:     c.truncated.Load(),
		Refused:       c.refused.Load(),
	}
}

func sum(sockets []socketStats) ingest.Stats {
	var t ingest.Stats
	for i := range sockets {
		t.Frames += sockets[i].Frames
		t.Bytes += sockets[i].Bytes
		t.KernelDropped += sockets[i].KernelDropped
		t.Truncated += sockets[i].Truncated
		t.Refused += sockets[i].Refused
	}
	return t
}

// spare is an address that another program has, and that the settings do not name themselves.
func spare(a netip.AddrPort, err error) ingest.Input {
	return ingest.Input{Name: a.String(), Problem: err.Error() + "; nothing is received there: name the ports that are wanted in the setting ports"}
}

// problems are those of inputs, one sentence each.
func problems(list []ingest.Input) (out []string) {
	for _, in := range list {
		out = append(out, in.Problem)
	}
	return out
}

// inputs describes each address once, whichever workers read it. The notices are those of opening, in the order of the
// addresses.
func inputs(sockets []socketStats, notices []string) []ingest.Input {
	var out []ingest.Input
	for i := range sockets {
		name := sockets[i].Addr.String()
		at := slices.IndexFunc(out, func(in ingest.Input) bool { return in.Name == name })
		if at < 0 {
			at = len(out)
			out = append(out, ingest.Input{Name: name})
		}
		out[at].Frames += sockets[i].Frames
	}
	for i, n := range notices {
		out[min(i, len(out)-1)].Problem = n
	}
	return out
}

// dropCounter extends a 32-bit counter of the kernel to 64 bits: its low half is the kernel's value. Samples come from
// two places and can arrive out of order. One that is behind by less than half the range is therefore old, not a wrap.
type dropCounter struct {
	total atomic.Uint64
}

func (d *dropCounter) observe(kernel uint32) {
	for {
		old := d.total.Load()
		ahead := int32(kernel - uint32(old))
		if ahead <= 0 || d.total.CompareAndSwap(old, old+uint64(ahead)) {
			return
		}
	}
}

// add counts one batch.
func (c *counters) add(frames, bytes, truncated, refused int) {
	c.frames.Add(uint64(frames))
	c.bytes.Add(uint64(bytes))
	if truncated > 0 {
		c.truncated.Add(uint64(truncated))
	}
	if refused > 0 {
		c.refused.Add(uint64(refused))
	}
}
