package guess

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
)

// recorded is a recording of a public program whose INT stacks are written again, with other bitmaps.
type recorded struct {
	file, profile string
	report        int // bytes of the report's header, with the Ethernet header of the packet inside; 0 in the network
	layout        packet.Layout
}

var recordings = []recorded{
	{"testdata/geant-int10-reports", "geant", 16 + 14, packet.INT10Wide},
	{"testdata/geant-int10-network", "geant", 0, packet.INT10Wide},
	{"testdata/onos-int10-reports", "onos", 16 + 14, packet.INT10},
	{"testdata/onos-int10-network", "onos", 0, packet.INT10},
	{"../internal/plain/testdata/intmd21-3sw-reports", "p4-int-laofan", 8 + 12 + 14, packet.INT2},
	{"../internal/plain/testdata/intmd20-elav-4sw-before-sink", "p4-int-elavinal", 0, packet.INT2Reversed},
	{"testdata/hostint05-reports", "host-int", 16, packet.INT05},
	{"testdata/int05-in-report05", "prometheus-exporter", 12 + 14, packet.INT05},
}

// with writes the stack of a frame again, for another bitmap and so many hops; nil for a frame without INT that the
// profile reads.
func (c *recorded) with(p *demux.Profile, x Sample, bitmap uint16, hops int) *Sample {
	var b decode.Batch
	demux.New(*p).Frame(&b, x.Link, x.Data, x.Length, x.Time)
	if len(b.Reports) != 1 || b.Reports[0].Err.Reason != 0 || len(b.Reports[0].Hops) == 0 || b.Reports[0].Has&decode.HasInstructions == 0 {
		return nil
	}
	be, r := binary.BigEndian, b.Reports[0]
	list := make([]decode.Hop, hops)
	for i := range list {
		list[i] = r.Hops[i%max(len(r.Hops)-1, 1)]
		if i == hops-1 {
			list[i] = r.Hops[len(r.Hops)-1] // that of the sink, whose values may differ
		}
		fill(&list[i], x.Time)
	}
	ip := 14
	if c.report > 0 {
		ip = 14 + 20 + 8 + c.report
	}
	shim := ip + 20 + 8
	if x.Data[ip+9] == 6 {
		if shim = ip + 20 + 20; c.profile == "prometheus-exporter" {
			shim = ip + 20 + int(x.Data[ip+32]>>4)*4 // behind the options
		}
	}
	length, header, tail := shim+2, shim+4, 0 // of 0.5 and 1.0
	begin, old := header+8, 0
	switch {
	case c.layout == packet.INT05:
		tail = 4
		old = 4*int(x.Data[length]) - 12 - tail
	case c.layout == packet.INT2 || c.layout == packet.INT2Reversed:
		length, begin = shim+1, header+12
		old = 4*int(x.Data[length]) - 12
	default:
		old = 4*int(x.Data[length]) - 12
	}
	here := min(old, len(x.Data)-begin) // the switch copies so many bytes, and no more
	out := slices.Clone(x.Data[:begin])
	out = packet.AppendStack(out, c.layout, bitmap, list)
	grown := len(out) - begin - old
	out = append(out, x.Data[begin+here:]...)
	out[length] += byte(grown / 4)
	be.PutUint16(out[header+4:], bitmap)
	if c.layout == packet.INT05 {
		out[header+1], out[header+3] = byte(bits.OnesCount16(bitmap)), byte(hops)
		out[header+2] = max(out[header+2], byte(hops))
	} else {
		out[header+2] = byte(packet.Words(c.layout, bitmap))
	}
	if c.profile != "host-int" { // there the packet had no INT
		grow(out[ip:], grown)
	}
	if c.report > 0 {
		grow(out[14:], len(out)-len(x.Data))
	}
	x.Data, x.Length = out, len(out)
	return &x
}

// grow makes the lengths of IPv4 and of UDP in it larger.
func grow(ip []byte, n int) {
	be := binary.BigEndian
	be.PutUint16(ip[2:], be.Uint16(ip[2:])+uint16(n))
	if ip[9] == 17 {
		be.PutUint16(ip[24:], be.Uint16(ip[24:])+uint16(n))
	}
}

// fill sets the values of a hop that the recording lacks.
func fill(h *decode.Hop, now int64) {
	set := func(f decode.HopField, give func()) {
		if h.Has&f == 0 {
			h.Has |= f
			give()
		}
	}
	set(decode.HopIngressIf|decode.HopEgressIf, func() { h.IngressIf, h.EgressIf = 1, 2 })
	set(decode.HopIngressTime, func() { h.IngressTime, h.TimeBits = uint64(now/1000), 32 })
	set(decode.HopLatency, func() { h.Latency = 100 })
	set(decode.HopEgressTime, func() { h.EgressTime = h.IngressTime + uint64(h.Latency) })
	set(decode.HopQueueID|decode.HopQueueOccupancy, func() { h.QueueID, h.QueueOccupancy = 1, 7 })
	set(decode.HopL2IngressIf|decode.HopL2EgressIf, func() { h.L2IngressIf, h.L2EgressIf = 3, 4 })
	set(decode.HopTxUtilization, func() { h.TxUtilization = 50 })
	set(decode.HopBufferID|decode.HopBufferOccupancy, func() { h.BufferID, h.BufferOccupancy = 1, 9 })
	set(decode.HopQueueCongestion, func() { h.QueueCongestion = 5 })
}

// vlan puts a tag behind the addresses of the outer frame.
func vlan(x Sample) Sample {
	x.Data = slices.Concat(x.Data[:12], []byte{0x81, 0, 0, 7}, x.Data[12:])
	x.Length += 4
	return x
}

// ipv6 replaces the header of the outer packet by one of IPv6.
func ipv6(x Sample) Sample {
	ip := x.Data[14:34]
	header := []byte{0x60 | ip[1]>>4, ip[1] << 4, 0, 0, 0, 0, ip[9], 64}
	binary.BigEndian.PutUint16(header[4:], binary.BigEndian.Uint16(ip[2:])-20)
	header = append(append(header, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ip[12:16]...)
	header = append(append(header, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ip[16:20]...)
	x.Data = slices.Concat(x.Data[:12], []byte{0x86, 0xdd}, header, x.Data[34:])
	x.Length += 20
	return x
}

// moved replaces the port of reports.
func moved(x Sample, port uint16) Sample {
	x.Data = slices.Clone(x.Data)
	binary.BigEndian.PutUint16(x.Data[36:], port)
	return x
}

// bitmaps are those with one to four of the first eight bits, or of the last eight where bits are numbered from the
// other end.
func (c *recorded) bitmaps() (list []uint16) {
	for m := range 256 {
		if n := bits.OnesCount(uint(m)); n >= 1 && n <= 4 {
			b := uint16(m) << 8
			if c.layout == packet.INT2Reversed {
				b = uint16(m)
			}
			if c.layout == packet.INT10Wide && b&0xf000 == 0x3000 {
				continue // its program does not write these two together
			}
			list = append(list, b)
		}
	}
	return list
}

// TestBitmaps holds that an exporter is read, or that its dialect is named, for any content of its stacks. Recordings
// are rewritten with each bitmap of one to four bits and one to five hops, behind a VLAN tag and in IPv6. They are at
// ports that auto reads and at another, as frames and as datagrams of a socket.
func TestBitmaps(t *testing.T) {
	testkit.Long(t)
	ways := []struct {
		name   string
		change func(Sample) Sample
	}{
		{"as recorded", func(x Sample) Sample { return x }},
		{"another port", func(x Sample) Sample { return moved(x, 40001) }},
		{"the port of auto", func(x Sample) Sample { return moved(x, 32766) }},
		{"behind a tag", func(x Sample) Sample { return vlan(moved(x, 40001)) }},
		{"in IPv6", func(x Sample) Sample { return ipv6(moved(x, 40001)) }},
		{"a socket", nil},
	}
	for _, c := range recordings {
		t.Run(c.file, func(t *testing.T) {
			p, _ := demux.Lookup(c.profile)
			list := pcap(t, c.file)
			for k, bitmap := range c.bitmaps() {
				var frames []Sample
				for i := 0; i < len(list) && len(frames) < 2*enough; i++ {
					if x := c.with(&p, list[i], bitmap, 1+k%5); x != nil {
						frames = append(frames, *x)
					}
				}
				if len(frames) == 0 {
					t.Fatal("no frame")
				}
				for i := range frames {
					if !New([]demux.Profile{p}).Explains(&frames[i]) {
						t.Fatalf("%#04x: the profile does not read %x", bitmap, frames[i].Data)
					}
				}
				for w, way := range ways {
					if c.report == 0 && (w == 1 || w == 2 || way.change == nil) {
						continue // packets of the network go to no port of reports
					}
					sent := datagrams(frames)
					if way.change != nil {
						sent = sent[:0]
						for _, x := range frames {
							if c.report == 0 && w > 2 {
								x = []func(Sample) Sample{3: vlan, 4: ipv6}[w](x)
							} else {
								x = way.change(x)
							}
							sent = append(sent, x)
						}
					}
					if text := unexplained(t, sent, c.profile); text != "" {
						t.Errorf("bitmap %#04x, %s: %s", bitmap, way.name, text)
					}
				}
			}
		})
	}
}

// unexplained returns how a profile goes unnamed that reads frames which auto does not; "" if it is named, or auto
// reads them.
func unexplained(t *testing.T, list []Sample, profile string) string {
	f := follow(t, true)
	read := 0
	for i := range list {
		list[i].Time = int64(1e18) + int64(i)*1e8
		f.frames(list[i : i+1])
		if r := f.batch.Reports; len(r) > 0 && r[len(r)-1].Err.Reason == 0 && len(r[len(r)-1].Hops) > 0 {
			read++
		}
	}
	f.watch.Finish()
	got := f.watch.Findings()
	for i := range got {
		if slices.Contains(got[i].Profiles, profile) || got[i].Most == profile {
			return ""
		}
	}
	if read == len(list) {
		return ""
	}
	return fmt.Sprintf("%d of %d frames are read, and findings are %v", read, len(list), got)
}
