package afpacket

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
)

// Numbers in headers that the filter matches.
const (
	etherIPv4, etherIPv6         = 0x0800, 0x86dd
	etherVLAN, etherQinQ, oldTag = 0x8100, 0x88a8, 0x9100
	protoUDP                     = 17
	maxTags                      = 2    // which the filter passes over, beside the one that the kernel strips
	maxInstructions              = 4096 // of a program that the kernel takes (BPF_MAXINSNS)
)

// filter returns the kernel program that takes the packets of the settings. The program returns how many bytes of a
// frame to keep, 0 for a rejected one. With ethernet, frames begin with an Ethernet header rather than with that of
// IP.
//
// X holds how many bytes of tags were passed. A load beyond the end of the frame rejects it.
func (c *Config) filter(ethernet bool) ([]bpf.RawInstruction, error) {
	accept := bpf.RetConstant{Val: uint32(c.MaxFrameBytes)}
	if c.Everything {
		return bpf.Assemble([]bpf.Instruction{accept})
	}
	prefixes, err := c.prefixes()
	if err != nil {
		return nil, err
	}
	l3 := uint32(0)
	if ethernet {
		l3 = 14
	}
	v4, v6 := c.ipv4(l3, prefixes, accept), c.ipv6(l3, prefixes, accept)
	program := []bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegX}}
	isIPv4, isIPv6 := uint32(etherIPv4), uint32(etherIPv6)
	if ethernet {
		program = append(append(program, etherType()...), oneOf(c.EtherTypes, accept)...)
	} else {
		isIPv4, isIPv6 = 4, 6
		program = append(program, bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4})
	}
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: isIPv4, SkipTrue: 1}, bpf.Jump{Skip: 3}, // to v4
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: isIPv6, SkipTrue: 1}, reject, bpf.Jump{Skip: uint32(len(v4))})
	program = slices.Concat(program, v4, v6)
	if len(program) > maxInstructions {
		return nil, fmt.Errorf("ports, ether_types, protocols and addresses make a filter of %d instructions, more than the %d of the kernel: name fewer, or set everything", len(program), maxInstructions)
	}
	return bpf.Assemble(program)
}

var reject = bpf.RetConstant{}

// etherType loads the EtherType behind the tags, and leaves their bytes in X.
func etherType() []bpf.Instruction {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 12, Size: 2}}
	for range maxTags {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherVLAN, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherQinQ, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: oldTag, SkipTrue: 1},
			bpf.Jump{Skip: 4},
			bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: 4}, bpf.TAX{},
			bpf.LoadIndirect{Off: 12, Size: 2})
	}
	return program
}

// oneOf takes a frame for which A is one of values.
func oneOf[T uint8 | uint16](values []T, accept bpf.Instruction) (program []bpf.Instruction) {
	for _, v := range values {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(v), SkipTrue: 1}, accept)
	}
	return program
}

// ipv4 ends the program for a packet of IPv4.
func (c *Config) ipv4(l3 uint32, prefixes []netip.Prefix, accept bpf.Instruction) []bpf.Instruction {
	program := addresses(prefixes, l3+12, l3+16, netip.Addr.Is4)
	program = append(program, bpf.LoadIndirect{Off: l3 + 9, Size: 1})
	program = append(program, oneOf(c.Protocols, accept)...)
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoUDP, SkipTrue: 1}, reject,
		bpf.LoadIndirect{Off: l3 + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x1fff, SkipTrue: 1}, reject, // a later fragment has no ports
		bpf.LoadIndirect{Off: l3, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 15}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.TAX{},
		bpf.LoadIndirect{Off: l3 + 2, Size: 2})
	return append(append(program, oneOf(c.ports(), accept)...), reject)
}

// ipv6 ends the program for a packet of IPv6.
func (c *Config) ipv6(l3 uint32, prefixes []netip.Prefix, accept bpf.Instruction) []bpf.Instruction {
	program := addresses(prefixes, l3+8, l3+24, netip.Addr.Is6)
	program = append(program, bpf.LoadIndirect{Off: l3 + 6, Size: 1})
	program = append(program, oneOf(c.Protocols, accept)...)
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoUDP, SkipTrue: 1}, reject,
		bpf.LoadIndirect{Off: l3 + 42, Size: 2})
	return append(append(program, oneOf(c.ports(), accept)...), reject)
}

// addresses rejects a packet whose address at neither src nor dst is in one of the prefixes of a family. Without prefixes it lets
// all pass.
func addresses(prefixes []netip.Prefix, src, dst uint32, family func(netip.Addr) bool) (program []bpf.Instruction) {
	if len(prefixes) == 0 {
		return nil
	}
	program = []bpf.Instruction{reject}
	for _, p := range slices.Backward(prefixes) { // each is put before what follows it
		if !family(p.Addr()) {
			continue
		}
		for _, at := range [...]uint32{dst, src} {
			program = append(within(p, at, uint32(len(program))), program...)
		}
	}
	return program
}

// within jumps over the next skip instructions if the address at a place is in p.
func within(p netip.Prefix, at, skip uint32) (program []bpf.Instruction) {
	program = []bpf.Instruction{bpf.Jump{Skip: skip}}
	addr := p.Addr().AsSlice()
	for word := (p.Bits() - 1) / 32; word >= 0; word-- {
		mask := ^uint32(0)
		if n := p.Bits() - 32*word; n < 32 {
			mask <<= 32 - n
		}
		value := binary.BigEndian.Uint32(addr[4*word:])
		program = append([]bpf.Instruction{
			bpf.LoadIndirect{Off: at + uint32(4*word), Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(program))},
		}, program...)
	}
	return program
}
