package ioam_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
)

// A switch that numbers IFA 131 has added itself to a packet.
func ExampleIFA() {
	b := packet.AppendIPv4(nil, &packet.IPv4{TTL: 64, Proto: 131, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 48)
	b = append(b, 0x2f, packet.ProtoUDP, ioam.FlagInband, 64, 0x10, 0x64, 0x23, 0x44, 0, 8, 0, 0, 0xff, 0, 7, 8)
	b = append(b, 0x10, 0, 7, 63, 0x40, 0, 0, 0, 0, 2, 0, 1)
	b = append(b, make([]byte, 20)...)

	var p packet.Packet
	p.Frame(packet.LinkRaw, b, len(b))
	var batch decode.Batch
	ioam.IFA{Protocols: []uint8{131}}.NewReader().Read(&batch, &p, b)
	r := batch.Reports[0]
	fmt.Println(r.Hops[0].NodeID, r.Hops[0].IngressIf, r.Hops[0].EgressIf, r.Flags.AppendNames(nil))
	// Output: 7 1 2 [inband]
}
