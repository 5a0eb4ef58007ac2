package emu

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
)

// Hosts get what was sent: the sink node restores addresses, ports, DSCP, lengths and checksums, whatever was put in.
func TestDeliveredPacketsAreRestored(t *testing.T) {
	for _, tt := range truthCases() {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.IPv6Share, cfg.PacketRate = 0.4, 3000
			tt.edit(&cfg)
			last := map[decode.FlowKey]uint32{}
			count := 0
			cfg.Observe = func(j *Journey) {
				b := j.Frame[ethLen:]
				proto, l4 := checkPacket(t, b, j.length-ethLen)
				ttl, dscp := b[8], b[1]>>2
				if j.Key.IPVersion == 6 {
					ttl, dscp = b[7], b[0]<<2&0x3c|b[1]>>6
				}
				data := l4[udpLen:]
				if proto == tcp {
					data = l4[l4[12]>>4*4:]
				}
				if proto != j.Key.Proto || be.Uint16(l4) != j.Key.SrcPort || be.Uint16(l4[2:]) != j.Key.DstPort {
					t.Fatalf("%v arrives as protocol %d, %x", j.Key, proto, l4[:4])
				}
				if int(ttl) != 64-len(j.Hops) || dscp == markDSCP {
					t.Fatalf("%v arrives after %d hops with TTL %d, DSCP %#02x", j.Key, len(j.Hops), ttl, dscp)
				}
				if int(be.Uint32(data)) != j.Flow {
					t.Fatalf("flow %d got a packet of flow %d", j.Flow, be.Uint32(data))
				}
				if !bytes.Equal(data[8:], make([]byte, len(data)-8)) {
					t.Fatalf("payload %x", data)
				}
				if k := be.Uint32(data[4:]); k < last[j.Key] {
					t.Fatalf("%v: packet %d after packet %d", j.Key, k, last[j.Key])
				} else {
					last[j.Key] = k
				}
				count++
			}
			mustNew(t, cfg, 2).Run(300*time.Millisecond, func(Datagram) {})
			if count < 500 {
				t.Errorf("%d packets arrived", count)
			}
		})
	}
}

// The packets inside of reports have right lengths and checksums too, between all nodes.
func TestPacketsInReportsAreRight(t *testing.T) {
	for _, d := range []Dialect{md21, md10, FANT, mx21, XD20} {
		for _, m := range []marker{MarkDSCP, MarkPort} {
			for _, instructions := range []uint16{0xff00, 0x8001} {
				cfg := DefaultConfig()
				cfg.Dialect, cfg.Marker, cfg.Instructions, cfg.IPv6Share = d, m, instructions, 0.4
				cfg.MaxHops = 5
				cfg.IPReports, cfg.InnerBytes = true, payloadKept                                     // what is cut away must be zeros
				cfg.Script = []Fault{{Kind: DenyFlows, For: time.Second, Node: "core-0", Value: 0.5}} // drop reports from the middle
				n, count := mustNew(t, cfg, 4), 0
				n.Run(200*time.Millisecond, func(dg Datagram) {
					b := dg.Payload[8+4+8+4*int(dg.Payload[10]):]
					if d == md10 {
						b = dg.Payload[4*int(dg.Payload[0]&15):]
					}
					total := int(binary.BigEndian.Uint16(b[2:]))
					if b[0]>>4 == 6 {
						total = int(binary.BigEndian.Uint16(b[4:])) + 40
					}
					proto, l4 := checkPacket(t, b[:min(len(b), total)], total)
					if proto == udp && be.Uint16(l4[2:]) == markPort && l4[8]>>2&3 == 2 { // the TCP packet behind NPT 2
						ip := bytes.Clone(b[:20])
						if b[0]>>4 == 6 {
							ip = bytes.Clone(b[:40])
						}
						seg := l4[8+4+4*int(l4[9]):]
						setInner(ip, len(seg))
						checkPacket(t, append(ip, seg...), len(ip)+len(seg))
					}
					count++
				})
				if count < 100 {
					t.Errorf("%v: %d reports", d, count)
				}
			}
		}
	}
}

// setInner makes an IP header that of a TCP packet with a segment of the given length.
func setInner(ip []byte, length int) {
	if ip[0]>>4 == 6 {
		ip[6] = tcp
		be.PutUint16(ip[4:], uint16(length))
		return
	}
	ip[9] = tcp
	be.PutUint16(ip[2:], uint16(20+length))
	be.PutUint16(ip[10:], 0)
	be.PutUint16(ip[10:], ^checksum(ip))
}

// The sums used while packets change agree with the definition in RFC 1071.
func TestChecksumArithmetic(t *testing.T) {
	const seed = 9
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 20_000 {
		b := make([]byte, 2*(1+r.IntN(40)))
		for i := range b {
			b[i] = byte(r.Uint32()) * byte(r.IntN(2)) * byte(r.IntN(3)/2*255|r.IntN(2))
		}
		if got, want := headers.Fold(headers.Sum(b)), checksum(b); got != want && !(got^want == 0xffff && (got == 0 || want == 0)) {
			t.Fatalf("seed %d round %d: sum(%x) = %#04x, want %#04x", seed, round, b, got, want)
		}
		// Change one word under a checksum in the first one.
		be.PutUint16(b, 0)
		be.PutUint16(b, ^checksum(b))
		if len(b) > 2 && checksum(b[2:]) != 0 {
			at := 2 + 2*r.IntN(len(b)/2-1)
			old, now := be.Uint16(b[at:]), uint16(r.Uint32())
			be.PutUint16(b[at:], now)
			if checksum(b[2:]) == 0 {
				continue // all zeros: a header never is
			}
			headers.UpdateChecksum(b[:2], uint64(old), uint64(now))
			if c := checksum(b); c != 0xffff {
				t.Fatalf("seed %d round %d: after %04x became %04x the sum of %x is %#04x", seed, round, old, now, b, c)
			}
		}
	}
	for _, s := range []uint64{0, 1, 0xffff, 0x10000, 0xffffffff, 1<<63 - 1, ^uint64(0)} {
		if got, want := uint64(headers.Fold(s))%0xffff, s%0xffff; got != want {
			t.Errorf("headers.Fold(%#x) = %#x, want %#x modulo 0xffff", s, got, want)
		}
	}
}
