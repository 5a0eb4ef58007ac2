package emu

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode/telemetry"
)

// recording is a sequence of datagrams in one piece of memory, to be replayed faster than they can be made.
type recording struct {
	data    []byte
	list    []recorded
	streams []stream
}

type recorded struct {
	at       int64
	off, end int
	from     netip.AddrPort
	port     uint16
	stream   int32 // -1 for probes
}

// stream is the sequence of one exporter and hardware id. Its numbers go from first+low to first+high, which are not
// those of the first and the last datagram if some were late.
type stream struct {
	first, mask uint32
	low, high   int64
}

type streamKey struct {
	from netip.AddrPort
	hw   uint8
}

// recordLimit bounds the virtual time that Record waits for datagrams.
const recordLimit = time.Hour

// Record runs the network until count datagrams are there.
func Record(n *Network, count int) (*recording, error) {
	r := &recording{list: make([]recorded, 0, count)}
	streams := make(map[streamKey]int32)
	end := n.Now() + recordLimit
	for len(r.list) < count {
		if n.Now() >= end || len(n.events.Heap) == 0 {
			return nil, fmt.Errorf("record: %d of %d datagrams in %v of virtual time", len(r.list), count, n.Now())
		}
		n.Run(n.Now()+time.Millisecond, func(d Datagram) {
			if len(r.list) == count {
				return
			}
			e := recorded{at: int64(d.At), off: len(r.data), end: len(r.data) + len(d.Payload), from: d.From, port: d.Port, stream: -1}
			r.data = append(r.data, d.Payload...)
			if at, mask, hw := telemetry.SequenceAt(d.Payload); !d.Probe {
				k := streamKey{d.From, hw}
				v := be.Uint32(d.Payload[at:]) & mask
				i, ok := streams[k]
				if !ok {
					i = int32(len(r.streams))
					streams[k] = i
					r.streams = append(r.streams, stream{first: v, mask: mask})
				}
				s := &r.streams[i]
				past := int64((v - s.first) & mask)
				if past > int64(mask)/2 {
					past -= int64(mask) + 1
				}
				s.low, s.high = min(s.low, past), max(s.high, past)
				e.stream = i
			}
			r.list = append(r.list, e)
		})
	}
	return r, nil
}

// Len is the number of datagrams.
func (r *recording) Len() int { return len(r.list) }

// Bytes is the number of bytes in all payloads.
func (r *recording) Bytes() int { return len(r.data) }

// At returns datagram i. Its payload belongs to the recording.
func (r *recording) At(i int) Datagram {
	e := &r.list[i]
	return Datagram{At: time.Duration(e.at), From: e.from, Port: e.port, Payload: r.data[e.off:e.end:e.end], Probe: e.stream < 0}
}

// Renumber raises every sequence number as if the same datagrams came again after the last one. A recording can then be
// sent repeatedly without looking like duplicates.
func (r *recording) Renumber() {
	for i := range r.list {
		e := &r.list[i]
		if e.stream < 0 {
			continue
		}
		s := &r.streams[e.stream]
		b := r.data[e.off:e.end]
		at, mask, _ := telemetry.SequenceAt(b)
		v := be.Uint32(b[at:])
		be.PutUint32(b[at:], v&^mask|(v+uint32(s.high-s.low+1))&mask)
	}
}
