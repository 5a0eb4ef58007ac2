// SPDX-License-Identifier: Apache-2.0
// Counters of interfaces: the metrics of FANT (Appl. Sci. 15(2), 892, table 2) that INT 2.1 lacks. The program alone writes them.
// decode/intmd/FORMAT.md draws them.
#ifndef FANT_P4
#define FANT_P4

#define IPV6_ROUTING 8w43
#define SEGMENT_ROUTING 8w4 // type of the routing header

// What has passed an interface: packets in the upper half, bytes of frames in the lower one. Both go on modulo 2^32, and step over
// all ones, which stands for no count.
struct counts_t {
    bit<32> sent; // packets
    bit<64> dropped;
    bit<64> segment;
    bit<64> ipv4;
    bit<64> ipv6;
}

// Fills what INT 2.1 reserves: the counts for FANT, and all ones for others. The checksum complement is 0 until it is known.
#define COUNT_WORD(hdr, name, count, n, s) hdr.name.setValid(); hdr.name.value = count; n = n + 1; s = s + sum32(hdr.name.value);
#define COUNT_DOUBLE(hdr, name, count, n, s) hdr.name.setValid(); hdr.name.value = count; n = n + 2; s = s + sum64(hdr.name.value);
#define FILL_COUNTS(hdr, bitmap, fant, counts, n, s) \
    if (bitmap[6:6] == 1) { COUNT_WORD(hdr, bit9, counts.sent, n, s) } \
    if (bitmap[5:5] == 1) { COUNT_WORD(hdr, bit10, counts.dropped[63:32], n, s) } \
    if (bitmap[4:4] == 1) { COUNT_WORD(hdr, bit11, counts.dropped[31:0], n, s) } \
    if (bitmap[3:3] == 1) { if (fant) { COUNT_DOUBLE(hdr, wide12, counts.segment, n, s) } else { FILL_WORD(hdr, bit12, n, s) } } \
    if (bitmap[2:2] == 1) { if (fant) { COUNT_DOUBLE(hdr, wide13, counts.ipv4, n, s) } else { FILL_WORD(hdr, bit13, n, s) } } \
    if (bitmap[1:1] == 1) { if (fant) { COUNT_DOUBLE(hdr, wide14, counts.ipv6, n, s) } else { FILL_WORD(hdr, bit14, n, s) } } \
    if (bitmap[0:0] == 1) { hdr.complement.setValid(); hdr.complement.value = 0; n = n + 1; }

#define NO_COUNTS { 32w0xffffffff, 64w0xffffffffffffffff, 64w0xffffffffffffffff, 64w0xffffffffffffffff, 64w0xffffffffffffffff }

bit<32> shown(in bit<32> count) {
    return count == 0xffffffff ? 32w0 : count;
}

// counted is a pair of counts, and one more packet.
bit<64> counted(in bit<64> pair, in bit<32> bytes) {
    return (pair[63:32] + 1) ++ (pair[31:0] + bytes);
}

// Offer counts what the ingress hands to a port. A packet keeps the counts, so that its egress knows how many before it did not come
// so far: the queue dropped them. A port has one queue.
control Offer(in bit<9> port, in bit<32> length, out bit<64> total) {
    @name(".ingress.offered") register<bit<64>>(512) offered;

    action offer() {
        offered.read(total, (bit<32>)port);
        total = counted(total, length);
        offered.write((bit<32>)port, total);
    }

    apply { offer(); }
}

// Packets, and packets and bytes of IPv4. Reports count there, too.
register<bit<32>>(512) sent_packets;
register<bit<64>>(512) sent_ipv4;

// Count counts a packet that leaves by a port, and shows the counts of ports that a table names.
control Count(in bit<9> port, in bit<32> length, in bit<64> offered, in bit<1> segment, in bit<1> v4, in bit<1> v6, inout counts_t counts) {
    @name(".egress.passed") register<bit<64>>(512) passed;
    @name(".egress.sent_segment") register<bit<64>>(512) sent_segment;
    @name(".egress.sent_ipv6") register<bit<64>>(512) sent_ipv6;
    bit<64> before = 0;
    bit<32> packets = 0;
    bit<64> segments = 0;
    bit<64> old = 0;
    bit<64> new = 0;
    bit<1> visible = 0;

    @name(".egress.show_counts") action show_counts() {
        visible = 1;
    }

    @name(".egress.counts") table show {
        key = { port: exact; }
        actions = { show_counts; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action pass() {
        passed.read(before, (bit<32>)port);
        before = counted(before, length);
        passed.write((bit<32>)port, before);
    }

    action count() {
        sent_packets.read(packets, (bit<32>)port);
        packets = packets + 1;
        sent_packets.write((bit<32>)port, packets);
    }

    action count_segment() {
        sent_segment.read(segments, (bit<32>)port);
        segments = segment == 1 ? counted(segments, length) : segments;
        sent_segment.write((bit<32>)port, segments);
    }

    action count_ipv4() {
        sent_ipv4.read(old, (bit<32>)port);
        old = v4 == 1 ? counted(old, length) : old;
        sent_ipv4.write((bit<32>)port, old);
    }

    action count_ipv6() {
        sent_ipv6.read(new, (bit<32>)port);
        new = v6 == 1 ? counted(new, length) : new;
        sent_ipv6.write((bit<32>)port, new);
    }

    apply {
        count();
        count_segment();
        count_ipv4();
        count_ipv6();
        pass();
        show.apply();
        if (visible == 1) {
            counts.sent = shown(packets);
            counts.dropped = shown(offered[63:32] - before[63:32]) ++ shown(offered[31:0] - before[31:0]);
            counts.segment = shown(segments[63:32]) ++ shown(segments[31:0]);
            counts.ipv4 = shown(old[63:32]) ++ shown(old[31:0]);
            counts.ipv6 = shown(new[63:32]) ++ shown(new[31:0]);
        }
    }
}

// CountReport counts a report that leaves. The ingress did not offer it.
control CountReport(in bit<9> port, in bit<32> length) {
    bit<32> packets = 0;
    bit<64> old = 0;

    action count() {
        sent_packets.read(packets, (bit<32>)port);
        sent_packets.write((bit<32>)port, packets + 1);
        sent_ipv4.read(old, (bit<32>)port);
        sent_ipv4.write((bit<32>)port, counted(old, length));
    }

    apply { count(); }
}

#endif
