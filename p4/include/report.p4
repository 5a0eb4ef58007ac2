// SPDX-License-Identifier: Apache-2.0
// Telemetry report 2.0: one report in a datagram, around a packet that the replication engine cloned.
// decode/telemetry/FORMAT.md draws it.
#ifndef REPORT_P4
#define REPORT_P4

// What is preserved of a packet's metadata in its clone.
#define REPORT_FIELDS 1

#define REPORT_LARGEST 16w900 // of a packet in a report: its length counts 254 words

header group_h {
    bit<4>  version;
    bit<6>  hardware;
    bit<22> sequence;
    bit<32> node;
}

header report_h {
    bit<4> type;
    bit<4> inner;
    bit<8> len;      // words behind this one
    bit<8> metadata; // words of metadata
    bit<1> dropped;
    bit<1> congested;
    bit<1> tracked;
    bit<1> transit;
    bit<4> reserved;
    bit<16> bitmap;
    bit<16> domain;
    bit<16> ds_bitmap;
    bit<16> ds_status;
}

header drop_h {
    bit<8>  queue;
    bit<8>  reason;
    bit<16> pad;
}

#define REPORT_MEMBERS \
    ethernet_h report_ethernet; ipv4_h report_ipv4; udp_h report_udp; group_h group; report_h report; BLOCK_HEADERS(report_) drop_h report_drop;
#define EMIT_REPORT(packet, hdr) \
    packet.emit(hdr.report_ethernet); packet.emit(hdr.report_ipv4); packet.emit(hdr.report_udp); packet.emit(hdr.group); \
    packet.emit(hdr.report); EMIT_BLOCK(packet, hdr, report_) packet.emit(hdr.report_drop);

#define CLEAR_REPORT(hdr) \
    hdr.report_ethernet.setInvalid(); hdr.report_ipv4.setInvalid(); hdr.report_udp.setInvalid(); CLEAR_BLOCK(hdr, report_) hdr.report_drop.setInvalid();

#define UPDATE_REPORT(hdr) \
    update_checksum(hdr.report_ipv4.isValid(), { hdr.report_ipv4.version, hdr.report_ipv4.ihl, hdr.report_ipv4.dscp, \
        hdr.report_ipv4.ecn, hdr.report_ipv4.len, hdr.report_ipv4.id, hdr.report_ipv4.reserved, hdr.report_ipv4.dont_fragment, \
        hdr.report_ipv4.more_fragments, hdr.report_ipv4.offset, hdr.report_ipv4.ttl, hdr.report_ipv4.proto, hdr.report_ipv4.src, \
        hdr.report_ipv4.dst }, hdr.report_ipv4.checksum, HashAlgorithm.csum16)

#endif
