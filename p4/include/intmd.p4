// SPDX-License-Identifier: Apache-2.0
// INT-MD 2.1: shim, header, and the block that a node adds. decode/intmd/FORMAT.md draws them.
#ifndef INTMD_P4
#define INTMD_P4

#define INT_MD 4w1
#define INT_VERSION 4w2

// The domain of FANT: bits 12 to 14 of the bitmap have 8 bytes.
#define FANT_DOMAIN 16w0xfa17

header shim_h {
    bit<4>  type;
    bit<2>  npt;      // 0: DSCP below; 1: UDP's destination port
    bit<2>  reserved;
    bit<8>  len;      // words behind the shim: header and stack
    bit<16> original;
}

header int_h {
    bit<4>  version;
    bit<1>  discard;
    bit<1>  exceeded; // E: a node found no hops left
    bit<1>  mtu;      // M: a node found no room
    bit<12> reserved;
    bit<5>  hop_words;
    bit<8>  hops_left;
    bit<16> bitmap;
    bit<16> domain;
    bit<16> ds_bitmap;
    bit<16> ds_flags;
}

// The stack as it came. Its length is known from the shim, and nobody looks inside.
#if WITH_VARBIT
header stack_h {
    varbit<8064> words; // 252 words at most: the shim counts to 255
}
#define STACK_MEMBERS(p) stack_h p##stack;
#define EMIT_STACK(packet, hdr) packet.emit(hdr.stack);
#define MOVE_STACK(hdr, to, from) hdr.to##stack = hdr.from##stack; hdr.from##stack.setInvalid();
#define STACK_OF(hdr) hdr.stack.words
#else
// Without a field: it says that all pieces have been read.
header stack_h {}
#define STACK_MEMBERS(p) stack_h p##stack; piece4096_h p##stack128; piece2048_h p##stack64; piece1024_h p##stack32; piece512_h p##stack16; \
    piece256_h p##stack8; piece128_h p##stack4; piece64_h p##stack2; piece32_h p##stack1;
#define EMIT_STACK(packet, hdr) packet.emit(hdr.stack128); packet.emit(hdr.stack64); packet.emit(hdr.stack32); packet.emit(hdr.stack16); \
    packet.emit(hdr.stack8); packet.emit(hdr.stack4); packet.emit(hdr.stack2); packet.emit(hdr.stack1);
#define MOVE_PIECE(hdr, to, from, piece) hdr.to##piece = hdr.from##piece; hdr.from##piece.setInvalid();
#define MOVE_STACK(hdr, to, from) MOVE_PIECE(hdr, to, from, stack) MOVE_PIECE(hdr, to, from, stack128) MOVE_PIECE(hdr, to, from, stack64) \
    MOVE_PIECE(hdr, to, from, stack32) MOVE_PIECE(hdr, to, from, stack16) MOVE_PIECE(hdr, to, from, stack8) MOVE_PIECE(hdr, to, from, stack4) \
    MOVE_PIECE(hdr, to, from, stack2) MOVE_PIECE(hdr, to, from, stack1)
#define STACK_OF(hdr) hdr.stack128.bytes, hdr.stack128.more, hdr.stack64.bytes, hdr.stack32.bytes, hdr.stack16.bytes, hdr.stack8.bytes, hdr.stack4.bytes, \
    hdr.stack2.bytes, hdr.stack1.bytes
#endif

header word_h {
    bit<32> value;
}

header double_h {
    bit<64> value;
}

header interfaces_h {
    bit<16> ingress;
    bit<16> egress;
}

header logical_h {
    bit<32> ingress;
    bit<32> egress;
}

header occupancy_h {
    bit<8>  id;
    bit<24> value;
}

// What a node knows about one packet.
struct hop_t {
    bit<32> node;
    bit<16> ingress;
    bit<16> egress;
    bit<32> latency;      // ns, modulo 2^32
    bit<8>  queue;
    bit<24> occupancy;    // packets that were in the queue when this one came
    bit<64> ingress_time; // ns
    bit<64> egress_time;
    bit<32> logical_ingress;
    bit<32> logical_egress;
}

// Members of headers_t: a block, in the order of the bitmap.
#define BLOCK_HEADERS(p) \
    word_h p##node; interfaces_h p##interfaces; word_h p##latency; occupancy_h p##queue; double_h p##ingress_time; \
    double_h p##egress_time; logical_h p##logical; word_h p##utilization; occupancy_h p##buffer;
#define RESERVED_HEADERS \
    word_h bit9; word_h bit10; word_h bit11; word_h bit12; word_h bit13; word_h bit14; \
    double_h wide12; double_h wide13; double_h wide14; word_h complement;

#define EMIT_BLOCK(packet, hdr, p) \
    packet.emit(hdr.p##node); packet.emit(hdr.p##interfaces); packet.emit(hdr.p##latency); packet.emit(hdr.p##queue); \
    packet.emit(hdr.p##ingress_time); packet.emit(hdr.p##egress_time); packet.emit(hdr.p##logical); \
    packet.emit(hdr.p##utilization); packet.emit(hdr.p##buffer);
#define EMIT_RESERVED(packet, hdr) \
    packet.emit(hdr.bit9); packet.emit(hdr.bit10); packet.emit(hdr.bit11); packet.emit(hdr.bit12); packet.emit(hdr.wide12); \
    packet.emit(hdr.bit13); packet.emit(hdr.wide13); packet.emit(hdr.bit14); packet.emit(hdr.wide14); packet.emit(hdr.complement);

// Fills a block of headers for a bitmap, counts its words and sums them. v1model shows neither the load of a line nor
// buffers, so that these are all ones, which INT 2.1 (section 5.8) reads as invalid.
#define FILL_BLOCK(hdr, p, hop, bitmap, n, s) \
    if (bitmap[15:15] == 1) { hdr.p##node.setValid(); hdr.p##node.value = hop.node; n = n + 1; s = s + sum32(hop.node); } \
    if (bitmap[14:14] == 1) { hdr.p##interfaces.setValid(); hdr.p##interfaces.ingress = hop.ingress; \
        hdr.p##interfaces.egress = hop.egress; n = n + 1; s = s + (bit<32>)hop.ingress + (bit<32>)hop.egress; } \
    if (bitmap[13:13] == 1) { hdr.p##latency.setValid(); hdr.p##latency.value = hop.latency; n = n + 1; s = s + sum32(hop.latency); } \
    if (bitmap[12:12] == 1) { hdr.p##queue.setValid(); hdr.p##queue.id = hop.queue; hdr.p##queue.value = hop.occupancy; \
        n = n + 1; s = s + sum32(hop.queue ++ hop.occupancy); } \
    if (bitmap[11:11] == 1) { hdr.p##ingress_time.setValid(); hdr.p##ingress_time.value = hop.ingress_time; \
        n = n + 2; s = s + sum64(hop.ingress_time); } \
    if (bitmap[10:10] == 1) { hdr.p##egress_time.setValid(); hdr.p##egress_time.value = hop.egress_time; \
        n = n + 2; s = s + sum64(hop.egress_time); } \
    if (bitmap[9:9] == 1) { hdr.p##logical.setValid(); hdr.p##logical.ingress = hop.logical_ingress; \
        hdr.p##logical.egress = hop.logical_egress; n = n + 2; s = s + sum32(hop.logical_ingress) + sum32(hop.logical_egress); } \
    if (bitmap[8:8] == 1) { hdr.p##utilization.setValid(); hdr.p##utilization.value = 0xffffffff; n = n + 1; s = s + 0x1fffe; } \
    if (bitmap[7:7] == 1) { hdr.p##buffer.setValid(); hdr.p##buffer.id = 0xff; hdr.p##buffer.value = 0xffffff; n = n + 1; s = s + 0x1fffe; }

// The rest of a block in a packet: what is reserved is all ones, and the checksum complement is 0 until it is known.
#define FILL_WORD(hdr, name, n, s) hdr.name.setValid(); hdr.name.value = 0xffffffff; n = n + 1; s = s + 0x1fffe;
#define FILL_DOUBLE(hdr, name, n, s) hdr.name.setValid(); hdr.name.value = 0xffffffffffffffff; n = n + 2; s = s + 0x3fffc;
#define FILL_RESERVED(hdr, bitmap, fant, n, s) \
    if (bitmap[6:6] == 1) { FILL_WORD(hdr, bit9, n, s) } \
    if (bitmap[5:5] == 1) { FILL_WORD(hdr, bit10, n, s) } \
    if (bitmap[4:4] == 1) { FILL_WORD(hdr, bit11, n, s) } \
    if (bitmap[3:3] == 1) { if (fant) { FILL_DOUBLE(hdr, wide12, n, s) } else { FILL_WORD(hdr, bit12, n, s) } } \
    if (bitmap[2:2] == 1) { if (fant) { FILL_DOUBLE(hdr, wide13, n, s) } else { FILL_WORD(hdr, bit13, n, s) } } \
    if (bitmap[1:1] == 1) { if (fant) { FILL_DOUBLE(hdr, wide14, n, s) } else { FILL_WORD(hdr, bit14, n, s) } } \
    if (bitmap[0:0] == 1) { hdr.complement.setValid(); hdr.complement.value = 0; n = n + 1; }

#define CLEAR_BLOCK(hdr, p) \
    hdr.p##node.setInvalid(); hdr.p##interfaces.setInvalid(); hdr.p##latency.setInvalid(); hdr.p##queue.setInvalid(); \
    hdr.p##ingress_time.setInvalid(); hdr.p##egress_time.setInvalid(); hdr.p##logical.setInvalid(); \
    hdr.p##utilization.setInvalid(); hdr.p##buffer.setInvalid();
#define CLEAR_RESERVED(hdr) \
    hdr.bit9.setInvalid(); hdr.bit10.setInvalid(); hdr.bit11.setInvalid(); hdr.bit12.setInvalid(); hdr.bit13.setInvalid(); \
    hdr.bit14.setInvalid(); hdr.wide12.setInvalid(); hdr.wide13.setInvalid(); hdr.wide14.setInvalid(); hdr.complement.setInvalid();

// Checksums, as TCP and UDP take them, of shim and header, and of a stack: complements of their sums.
#define CHECKSUM_INT(result, hdr) \
    hash(result, HashAlgorithm.csum16, 16w0, { hdr.shim.type, hdr.shim.npt, hdr.shim.reserved, hdr.shim.len, hdr.shim.original, \
        hdr.int_md.version, hdr.int_md.discard, hdr.int_md.exceeded, hdr.int_md.mtu, hdr.int_md.reserved, hdr.int_md.hop_words, \
        hdr.int_md.hops_left, hdr.int_md.bitmap, hdr.int_md.domain, hdr.int_md.ds_bitmap, hdr.int_md.ds_flags }, 32w0x10000)
#define CHECKSUM_STACK(result, hdr) \
    hash(result, HashAlgorithm.csum16, 16w0, { STACK_OF(hdr) }, 32w0x10000)

#endif
