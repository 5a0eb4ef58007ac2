// SPDX-License-Identifier: Apache-2.0
// Headers that all programs share, and the numbers that stand in them.
#ifndef HEADERS_P4
#define HEADERS_P4

// What is decided at compile time: -DINT_DSCP=... changes it.
#ifndef INT_DSCP
#define INT_DSCP 0x17
#endif
#ifndef INT_PORT
#define INT_PORT 17768
#endif
// What the agents' probes are marked with: they are left out of what a program counts, so that nobody measures them.
#ifndef PROBE_DSCP
#define PROBE_DSCP 0x1b
#endif

#define TYPE_IPV4 16w0x0800
#define TYPE_IPV6 16w0x86dd
#define TYPE_VLAN 16w0x8100
#define PROTO_TCP 8w6
#define PROTO_UDP 8w17

// standard_metadata.instance_type of BMv2.
#define INGRESS_CLONE 32w1
#define EGRESS_CLONE 32w2

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_h {
    bit<16> tag;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> len;
    bit<16> id;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  proto;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

// With WITH_VARBIT=0 what has no fixed length is read in pieces of 1, 2, 4 ... units, each for a bit of its number of units, the
// highest first: chips have no headers of variable length.
#ifndef WITH_VARBIT
#define WITH_VARBIT 1
#endif

#if WITH_VARBIT
header ipv4_options_h {
    varbit<320> bytes;
}
#define OPTIONS_MEMBERS ipv4_options_h options;
#define OPTIONS_OF(o) o.bytes
#define EMIT_OPTIONS(packet, hdr) packet.emit(hdr.options);
#else
header piece16_h { bit<16> bytes; }
header piece32_h { bit<32> bytes; }
header piece64_h { bit<64> bytes; }
header piece128_h { bit<128> bytes; }
header piece256_h { bit<256> bytes; }
header piece512_h { bit<512> bytes; }
header piece1024_h { bit<1024> bytes; }
header piece2048_h { bit<2048> bytes; }
header piece4096_h { bit<2048> bytes; bit<2048> more; }
#define OPTIONS_MEMBERS piece256_h options8; piece128_h options4; piece64_h options2; piece32_h options1;
#define OPTIONS_OF(o) o##8.bytes, o##4.bytes, o##2.bytes, o##1.bytes
#define EMIT_OPTIONS(packet, hdr) packet.emit(hdr.options8); packet.emit(hdr.options4); packet.emit(hdr.options2); packet.emit(hdr.options1);

// Two states of a parser: piece is read if the number of units has its bit.
#define PARSE_PIECE(piece, number, next) \
    state parse_##piece { transition select(number) { 1w1: extract_##piece; default: next; } } \
    state extract_##piece { packet.extract(hdr.piece); transition next; }
#endif

header ipv6_h {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  label;
    bit<16>  len;
    bit<8>   next;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

header udp_h {
    bit<16> src;
    bit<16> dst;
    bit<16> len;
    bit<16> checksum;
}

// Options of TCP stay in the payload: INT stands before them, and nobody looks at them.
header tcp_h {
    bit<16> src;
    bit<16> dst;
    bit<32> seq;
    bit<32> ack;
    bit<4>  offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

error {
    BadIPv4,  // a header shorter than 20 bytes
    BadShim,  // a type other than INT-MD, a length below 3 words, or one that does not fit what encloses it
    BadINT,   // a version other than 2
    BadRoute  // a source route that no sender can have written
}

// The checksum of IPv4's header is verified, and written anew: a packet whose header was wrong does not come so far.
#define VERIFY_IPV4(h, o) \
    verify_checksum(h.isValid(), { h.version, h.ihl, h.dscp, h.ecn, h.len, h.id, h.reserved, h.dont_fragment, h.more_fragments, \
        h.offset, h.ttl, h.proto, h.src, h.dst, OPTIONS_OF(o) }, h.checksum, HashAlgorithm.csum16)
#define UPDATE_IPV4(when, h, o) \
    update_checksum(when, { h.version, h.ihl, h.dscp, h.ecn, h.len, h.id, h.reserved, h.dont_fragment, h.more_fragments, \
        h.offset, h.ttl, h.proto, h.src, h.dst, OPTIONS_OF(o) }, h.checksum, HashAlgorithm.csum16)

#endif
