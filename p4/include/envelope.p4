// SPDX-License-Identifier: Apache-2.0
// The control that makes a report of a clone. headers_t has REPORT_MEMBERS.
#ifndef ENVELOPE_P4
#define ENVELOPE_P4

// Envelope puts a report's headers in front of the packet and cuts it. The caller has made hdr.report but for its length, and
// says how many words of metadata there are and how long the packet is.
control Envelope(inout headers_t hdr, in bit<32> node, in bit<6> hardware, in bit<8> to, in bit<16> length, in bit<8> words) {
    register<bit<32>>(16384) sequence; // by collector and hardware id: 64 for each collector
    bit<16> limit = 0;
    bit<32> number = 0;

    // Where reports go: addresses of the next hop, of this switch and of the collector; how much of a packet they hold.
    action send(bit<48> dst_mac, bit<48> src_mac, bit<32> src, bit<32> dst, bit<16> src_port, bit<16> dst_port, bit<16> most) {
        hdr.report_ethernet.setValid();
        hdr.report_ethernet.dst = dst_mac;
        hdr.report_ethernet.src = src_mac;
        hdr.report_ethernet.type = TYPE_IPV4;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.dscp = 0;
        hdr.report_ipv4.ecn = 0;
        hdr.report_ipv4.id = 0;
        hdr.report_ipv4.reserved = 0;
        hdr.report_ipv4.dont_fragment = 1;
        hdr.report_ipv4.more_fragments = 0;
        hdr.report_ipv4.offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.proto = PROTO_UDP;
        hdr.report_ipv4.src = src;
        hdr.report_ipv4.dst = dst;
        hdr.report_udp.setValid();
        hdr.report_udp.src = src_port;
        hdr.report_udp.dst = dst_port;
        hdr.report_udp.checksum = 0;
        limit = most;
    }

    table collector {
        key = { to: exact; }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 256;
    }

    // Reading and writing stand in one action, so that no two packets get the same number.
    action count() {
        bit<32> index = (bit<32>)(to ++ hardware);
        sequence.read(number, index);
        sequence.write(index, number + 1);
    }

    apply {
        collector.apply();
        if (hdr.report_ethernet.isValid() && hdr.report_ipv4.isValid() && hdr.report_udp.isValid()) {
            count();
            // Whole words: up to three bytes at the end of the packet are left out.
            bit<16> inner = length & 0xfffc;
            if (inner > limit) {
                inner = limit & 0xfffc;
            }
            if (inner > REPORT_LARGEST) {
                inner = REPORT_LARGEST;
            }
            bit<16> behind = 20 + ((bit<16>)words << 2) + inner; // group header, first word and main contents before it
            hdr.group.setValid();
            hdr.group.version = 2;
            hdr.group.hardware = hardware;
            hdr.group.sequence = (bit<22>)number;
            hdr.group.node = node;
            hdr.report.metadata = words;
            hdr.report.len = 2 + words + (bit<8>)(inner >> 2);
            hdr.report_udp.len = 8 + behind;
            hdr.report_ipv4.len = 28 + behind;
            truncate((bit<32>)(42 + behind));
        }
    }
}

#endif
