package afxdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// Verdicts of a program (enum xdp_action).
const (
	verdictPass     = 2
	verdictRedirect = 4
)

// Fields of the context of a program (struct xdp_md).
const (
	ctxData  = 0
	ctxEnd   = 4
	ctxMeta  = 8
	ctxQueue = 16
)

// Sizes in bytes, and places from the last EtherType's header on.
const (
	etherLen, ipv4Len, ipv6Len, udpLen = 14, 20, 40, 8

	maxTags    = 3 // which the program passes over, as many as the filter of afpacket and the kernel do before it
	stampBytes = 8 // that the program puts before a frame
)

// The registers of the program.
const (
	ctx   = asm.R6
	start = asm.R7 // of the frame, less the tags that were passed
	end   = asm.R8
	stamp = asm.R9
	value = asm.R0
	to    = asm.R1
)

// program returns the instructions that steer frames into the rings, and a map of these rings by queue. Steered is a UDP
// datagram to one of the ports, from or to one of the addresses, and with SteerEtherTypes a frame of one of the EtherTypes.
// Everything else passes to the kernel: fragments, packets with options or extension headers, frames that are longer
// than room. The rings of afpacket have them.
//
// A steered frame has the time of CLOCK_MONOTONIC in the 8 bytes before it. Where the driver has no room there it has none.
//
// All offsets are constants, so that the verifier needs no CAP_PERFMON.
func program(c *Config, rings int, room int32) (asm.Instructions, error) {
	prefixes, err := ingest.Prefixes("addresses", c.Addresses)
	if err != nil {
		return nil, err
	}
	if len(c.Datagrams) == 0 && !(c.SteerEtherTypes && len(c.EtherTypes) > 0) {
		return nil, errors.New("there is no port to steer (ports, " + c.Section + ".ports)")
	}
	p := asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		asm.LoadMem(start, ctx, ctxData, asm.Word),
		asm.LoadMem(end, ctx, ctxEnd, asm.Word),
		asm.Mov.Reg(to, start),
		asm.Add.Imm(to, room+1),
		asm.JLE.Reg(to, end, "pass"),
	}
	p = append(p, need(etherLen+ipv4Len+udpLen)...)
	p = append(p, asm.LoadMem(value, start, 12, asm.Half))
	for i := range maxTags {
		for _, tag := range [...]uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD, unix.ETH_P_QINQ1} {
			p = append(p, asm.JEq.Imm(value, network(tag), fmt.Sprintf("tag%d", i)))
		}
		p = append(p, asm.Ja.Label("untagged"))
		passed := need(etherLen + ipv4Len + udpLen)
		p = append(p, asm.Add.Imm(start, 4).WithSymbol(fmt.Sprintf("tag%d", i)))
		p = append(append(p, passed...), asm.LoadMem(value, start, 12, asm.Half))
	}
	p = append(p, here("untagged"))
	if c.SteerEtherTypes {
		for _, t := range c.EtherTypes {
			p = append(p, asm.JEq.Imm(value, network(t), "take"))
		}
	}
	// The verifier refuses what cannot be reached: a family without an address has no instructions.
	six, four := within(prefixes, netip.Addr.Is6), within(prefixes, netip.Addr.Is4)
	if four {
		p = append(p, asm.JEq.Imm(value, network(unix.ETH_P_IP), "ipv4"))
	}
	if !six {
		p = append(p, asm.Ja.Label("pass"))
	} else {
		p = append(p, asm.JNE.Imm(value, network(unix.ETH_P_IPV6), "pass"))
		p = append(p, need(etherLen+ipv6Len+udpLen)...)
		p = append(p,
			asm.LoadMem(value, start, etherLen+6, asm.Byte), asm.JNE.Imm(value, unix.IPPROTO_UDP, "pass"))
		p = append(p, addresses(prefixes, netip.Addr.Is6, "six", etherLen+8, etherLen+24)...)
		p = append(p, asm.LoadMem(value, start, etherLen+ipv6Len+2, asm.Half), asm.Ja.Label("ports"))
	}
	if four {
		p = append(p,
			asm.LoadMem(value, start, etherLen, asm.Byte).WithSymbol("ipv4"), asm.JNE.Imm(value, 0x45, "pass"), // version 4, no options
			asm.LoadMem(value, start, etherLen+9, asm.Byte), asm.JNE.Imm(value, unix.IPPROTO_UDP, "pass"),
			asm.LoadMem(value, start, etherLen+6, asm.Half), asm.And.Imm(value, network(0x3fff)), asm.JNE.Imm(value, 0, "pass")) // a fragment
		p = append(p, addresses(prefixes, netip.Addr.Is4, "four", etherLen+12, etherLen+16)...)
		p = append(p, asm.LoadMem(value, start, etherLen+ipv4Len+2, asm.Half))
	}

	p = append(p, here("ports"))
	for _, port := range slices.Sorted(maps.Keys(c.Datagrams)) {
		p = append(p, asm.JEq.Imm(value, network(port), "take"))
	}
	p = append(p,
		asm.Mov.Imm(asm.R0, verdictPass).WithSymbol("pass"), asm.Return(),

		// The time goes before the frame, where the driver has room.
		asm.Mov.Reg(asm.R1, ctx).WithSymbol("take"),
		asm.Mov.Imm(asm.R2, -stampBytes),
		asm.FnXdpAdjustMeta.Call(),
		asm.JNE.Imm(asm.R0, 0, "redirect"),
		asm.LoadMem(stamp, ctx, ctxMeta, asm.Word),
		asm.LoadMem(asm.R1, ctx, ctxData, asm.Word),
		asm.Mov.Reg(asm.R2, stamp),
		asm.Add.Imm(asm.R2, stampBytes),
		asm.JGT.Reg(asm.R2, asm.R1, "redirect"),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(stamp, 0, asm.R0, asm.DWord),

		asm.LoadMapPtr(asm.R1, rings).WithSymbol("redirect"),
		asm.LoadMem(asm.R2, ctx, ctxQueue, asm.Word),
		asm.Mov.Imm(asm.R3, verdictPass), // for a queue without a ring
		asm.FnRedirectMap.Call(),
		asm.Return(),
	)
	return p, nil
}

// here does nothing, at a label.
func here(label string) asm.Instruction { return asm.Mov.Reg(to, to).WithSymbol(label) }

// within reports whether packets of a family can be within the prefixes, of which none means all.
func within(prefixes []netip.Prefix, family func(netip.Addr) bool) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return family(p.Addr()) })
}

// need passes a frame that has not n bytes behind the tags.
func need(n int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(to, start), asm.Add.Imm(to, n), asm.JGT.Reg(to, end, "pass")}
}

// addresses passes a packet whose address at neither src nor dst is in one of the prefixes of a family. Without prefixes, or with
// all of the family, it lets all go on.
func addresses(prefixes []netip.Prefix, family func(netip.Addr) bool, name string, src, dst int16) (p asm.Instructions) {
	if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Bits() == 0 && family(p.Addr()) }) {
		return nil
	}
	found := "found-" + name
	for i, prefix := range prefixes {
		if !family(prefix.Addr()) {
			continue
		}
		for k, at := range [...]int16{src, dst} {
			other := fmt.Sprintf("%s-%d-%d", name, i, k)
			addr := prefix.Addr().AsSlice()
			for word := 0; 32*word < prefix.Bits(); word++ {
				var mask [4]byte
				binary.BigEndian.PutUint32(mask[:], ^uint32(0)<<max(0, 32*(word+1)-prefix.Bits()))
				p = append(p,
					asm.LoadMem(value, start, at+int16(4*word), asm.Word),
					asm.And.Imm32(value, int32(binary.NativeEndian.Uint32(mask[:]))),
					asm.JNE.Imm32(value, int32(binary.NativeEndian.Uint32(addr[4*word:])), other))
			}
			p = append(p, asm.Ja.Label(found), here(other))
		}
	}
	return append(p, asm.Ja.Label("pass"), here(found))
}

// network is a number as a program loads it from a frame, which has it in network byte order.
func network(n uint16) int32 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], n)
	return int32(binary.NativeEndian.Uint16(b[:]))
}

// load makes the map of rings by queue, and loads the program.
func load(c *Config, queues int) (rings *ebpf.Map, p *ebpf.Program, err error) {
	rings, err = ebpf.NewMap(&ebpf.MapSpec{Name: "hopscope_rings", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues)})
	if err != nil {
		return nil, nil, fmt.Errorf("make a map of rings: %w", err)
	}
	list, err := program(c, rings.FD(), roomBytes)
	if err == nil {
		p, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "hopscope_steer", Type: ebpf.XDP, License: "Apache-2.0", Instructions: list})
	}
	if err != nil {
		rings.Close()
		return nil, nil, fmt.Errorf("load the XDP program: %w", err)
	}
	return rings, p, nil
}
