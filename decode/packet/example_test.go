package packet_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// A UDP packet is put together header by header, and found again.
func Example() {
	payload := []byte("hello")
	b := packet.AppendEthernet(nil, packet.MAC{2, 0, 0, 0, 0, 2}, packet.MAC{2, 0, 0, 0, 0, 1}, packet.EtherIPv4)
	ip := packet.IPv4{TTL: 64, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}
	b = packet.AppendIPv4(b, &ip, packet.UDPLen+len(payload))
	b = packet.AppendUDP(b, 1111, 2222, len(payload))
	b = append(b, payload...)

	var p packet.Packet
	p.Frame(packet.LinkEthernet, b, len(b))
	var flow decode.FlowKey
	p.Flow(&flow, b)
	fmt.Printf("%v at byte %d: %s\n", flow, p.L4, b[p.L4+packet.UDPLen:p.UDPEnd(b)])
	// Output: 10.0.1.1:1111 > 10.0.2.2:2222 udp at byte 34: hello
}
