package packet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// frame writes an Ethernet frame with all of its checksums.
func frame(dst []byte, k *decode.FlowKey, tos, ttl uint8, id uint16, options, payload []byte) []byte {
	size := UDPLen + len(payload)
	if k.Proto == ProtoTCP {
		size = TCPLen + len(options) + len(payload)
	}
	to, from := MAC{2, 0, 0, 0, 0, 2}, MAC{2, 0, 0, 0, 0, 1}
	var addresses []byte
	if k.IPVersion == 6 {
		dst = AppendEthernet(dst, to, from, EtherIPv6)
		dst = AppendIPv6(dst, &IPv6{TrafficClass: tos, HopLimit: ttl, Proto: k.Proto, Src: k.Src, Dst: k.Dst}, size)
		addresses = dst[len(dst)-32:]
	} else {
		dst = AppendEthernet(dst, to, from, EtherIPv4)
		dst = AppendIPv4(dst, &IPv4{TOS: tos, TTL: ttl, Proto: k.Proto, ID: id, Src: [4]byte(k.Src[12:]), Dst: [4]byte(k.Dst[12:])}, size)
		addresses = dst[len(dst)-8:]
	}
	pseudo := PseudoHeader(addresses, k.Proto, size)
	at := len(dst)
	if k.Proto == ProtoTCP {
		dst = append(AppendTCP(dst, &TCP{SrcPort: k.SrcPort, DstPort: k.DstPort, Seq: 1, Ack: 2, Flags: 0x18, Window: 0x2000, Options: options}), payload...)
		binary.BigEndian.PutUint16(dst[at+16:], ^Fold(pseudo+Sum(dst[at:])))
		return dst
	}
	dst = append(AppendUDP(dst, k.SrcPort, k.DstPort, len(payload)), payload...)
	ChecksumUDP(dst[at:], pseudo)
	return dst
}

func key(version, proto uint8) decode.FlowKey {
	k := decode.FlowKey{SrcPort: 1111, DstPort: 2222, Proto: proto, IPVersion: version}
	if version == 4 {
		k.Src, k.Dst = decode.AddrFrom4([]byte{10, 0, 1, 1}), decode.AddrFrom4([]byte{10, 0, 2, 2})
	} else {
		k.Src, k.Dst = decode.Addr{0: 0xfd, 15: 1}, decode.Addr{0: 0xfd, 15: 2}
	}
	return k
}

// The bytes were put together by hand; the checksums were computed by another program.
func TestEncode(t *testing.T) {
	options := unhex(t, "0101080a0000000100000001")
	for _, tt := range []struct {
		name    string
		key     decode.FlowKey
		options []byte
		want    string
	}{
		{"UDP", key(4, ProtoUDP), nil, macs + "0800 4517 0024 1001 0000 4011 53af 0a000101 0a000202 0457 08ae 0010 cab1 4142434445464748"},
		{"TCP", key(4, ProtoTCP), options, macs + "0800 4517 003c 1001 0000 4006 53a2 0a000101 0a000202 " +
			"0457 08ae 00000001 00000002 8018 2000 218c 0000" + "0101080a0000000100000001 4142434445464748"},
		{"IPv6", key(6, ProtoUDP), nil, macs + "86dd 61700000 0010 11 40 fd000000000000000000000000000001 fd000000000000000000000000000002 " +
			"0457 08ae 0010 e7af 4142434445464748"},
	} {
		got := frame(nil, &tt.key, 0x17, 64, 0x1001, tt.options, []byte("ABCDEFGH"))
		if want := unhex(t, tt.want); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	buf, k := make([]byte, 0, 256), key(4, ProtoUDP)
	payload := []byte("payload")
	if n := testing.AllocsPerRun(1000, func() { buf = frame(buf[:0], &k, 0, 64, 1, nil, payload) }); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}

func TestChecksumUpdate(t *testing.T) {
	k := key(4, ProtoUDP)
	b := frame(nil, &k, 0, 64, 1, nil, nil)[EthernetLen : EthernetLen+IPv4Len]
	old := binary.BigEndian.Uint16(b[8:])
	b[8]--
	UpdateChecksum(b[10:12], uint64(old), uint64(binary.BigEndian.Uint16(b[8:])))
	if got := Fold(Sum(b)); got != 0xffff {
		t.Errorf("header %x sums to %#x", b, got)
	}
}

// FuzzRoundTrip holds that the decoder reads what the encoder wrote, with right checksums.
func FuzzRoundTrip(f *testing.F) {
	f.Add(false, false, uint16(1), uint16(2), uint8(3), uint8(4), uint16(5), uint32(6), uint32(7), []byte("x"))
	f.Add(true, true, uint16(80), uint16(33000), uint8(0xff), uint8(255), uint16(0xffff), uint32(1<<31), uint32(1), []byte{})
	f.Fuzz(func(t *testing.T, six, tcp bool, sport, dport uint16, tos, ttl uint8, id uint16, src, dst uint32, payload []byte) {
		payload = payload[:min(len(payload), 2000)]
		k := key(4, ProtoUDP)
		if six {
			k = key(6, ProtoUDP)
		}
		if tcp {
			k.Proto = ProtoTCP
		}
		k.SrcPort, k.DstPort = sport, dport
		binary.BigEndian.PutUint32(k.Src[12:], src)
		binary.BigEndian.PutUint32(k.Dst[12:], dst)
		b := frame(nil, &k, tos, ttl, id, nil, payload)
		var p Packet
		p.Frame(LinkEthernet, b, len(b))
		if p.IP == 0 {
			t.Fatalf("%x is no IP packet", b)
		}
		var got decode.FlowKey
		p.Flow(&got, b)
		if got != k || p.TOS != tos || p.TTL != ttl || !six && p.ID != id || p.End != len(b) || p.Fragment || !p.HasPorts {
			t.Fatalf("%x gives %v and %+v, want %v", b, got, p, k)
		}
		if !tcp && p.UDPEnd(b) != len(b) {
			t.Fatalf("the datagram in %x ends at %d", b, p.UDPEnd(b))
		}
		addresses := b[p.L3+12 : p.L3+20]
		if six {
			addresses = b[p.L3+8 : p.L3+40]
		} else if Fold(Sum(b[p.L3:p.L4])) != 0xffff {
			t.Fatalf("IPv4 checksum of %x", b)
		}
		if Fold(PseudoHeader(addresses, k.Proto, len(b)-p.L4)+Sum(b[p.L4:])) != 0xffff {
			t.Fatalf("checksum of %x", b)
		}
	})
}
