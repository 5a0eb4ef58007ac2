// SPDX-License-Identifier: Apache-2.0
// PINT: switches write into a digest that a packet carries, by an execution plan that is in their tables.
//
// The first switch puts a header behind Ethernet and VLAN; the last one takes it out and reports the digest in telemetry report
// 2.0. The header says by which plan the digest is written. Tables have the epoch of a plan in their keys, so that a switch holds
// two plans, acts on the packet's, and a packet never meets both.
//
// docs/p4.md draws the header and says what a control plane writes.
#include <core.p4>
#include <v1model.p4>
#include "include/headers.p4"
#include "include/time.p4"
#include "include/intmd.p4"
#include "include/report.p4"
#include "include/log.p4"
#include "include/digest.p4"

struct headers_t {
    REPORT_MEMBERS
    TOLD_MEMBERS
    ethernet_h     ethernet;
    vlan_h         vlan;
    pint_h         pint;
    ipv4_h         ipv4;
    ipv4_options_h options;
    ipv6_h         ipv6;
    udp_h          udp;
    tcp_h          tcp;
}

struct metadata_t {
    bit<8>   proto;
    bit<128> src;
    bit<128> dst;
    bit<16>  src_port;
    bit<16>  dst_port;
    bit<1>   carries;
    bit<8>   epoch; // of the plan for packets that this switch is the first one of
    bit<32>  id;
    // For the report that a clone becomes.
    @field_list(REPORT_FIELDS) bit<8>  collector;
    @field_list(REPORT_FIELDS) bit<6>  hardware;
    @field_list(REPORT_FIELDS) bit<16> size;
    @field_list(REPORT_FIELDS) bit<8>  told_epoch;
    @field_list(REPORT_FIELDS) bit<8>  told_hops;
    @field_list(REPORT_FIELDS) bit<32> told_id;
    @field_list(REPORT_FIELDS) bit<64> told_digest;
    @field_list(REPORT_FIELDS) bit<1>  wide;
    @field_list(REPORT_FIELDS) bit<8>  again;
}

#include "include/forward.p4"
#include "include/envelope.p4"

#define PINT_WATCH ".ingress.watch"
#define PINT_CARRY ".ingress.carry"
#include "include/pint.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: parse_vlan;
            PINT_TYPE: parse_pint;
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            PINT_TYPE: parse_pint;
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_pint {
        packet.extract(hdr.pint);
        transition select(hdr.pint.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.BadIPv4);
        meta.proto = hdr.ipv4.proto;
        meta.src = (bit<128>)hdr.ipv4.src;
        meta.dst = (bit<128>)hdr.ipv4.dst;
        transition select(hdr.ipv4.ihl) {
            5: parse_whole;
            default: parse_options;
        }
    }

    state parse_options {
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_whole;
    }

    state parse_whole {
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.offset, hdr.ipv4.proto) {
            (0, 0, PROTO_UDP): parse_udp;
            (0, 0, PROTO_TCP): parse_tcp;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.proto = hdr.ipv6.next;
        meta.src = hdr.ipv6.src;
        meta.dst = hdr.ipv6.dst;
        transition select(hdr.ipv6.next) {
            PROTO_UDP: parse_udp;
            PROTO_TCP: parse_tcp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src;
        meta.dst_port = hdr.udp.dst;
        transition accept;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src;
        meta.dst_port = hdr.tcp.dst;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { VERIFY_IPV4(hdr.ipv4, hdr.options); }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<1> edge = 0;
    bit<8> reason = 0;

    action host(bit<6> hardware) {
        edge = 1;
        meta.hardware = hardware;
    }

    action fabric(bit<6> hardware) {
        meta.hardware = hardware;
    }

    table ingress_port {
        key = { sm.ingress_port: exact; }
        actions = { host; fabric; }
        default_action = fabric(0);
        size = 512;
    }

    DigestSource() source;
    Forward() forward;

    apply {
        ingress_port.apply();
        if (sm.checksum_error == 1 || sm.parser_error == error.BadIPv4 || (!hdr.ipv4.isValid() && !hdr.ipv6.isValid())) {
            mark_to_drop(sm); // nothing to route by
        } else if (edge == 1 && hdr.pint.isValid()) {
            mark_to_drop(sm); // hosts write no digests
        } else {
            if (edge == 1 && (hdr.udp.isValid() || hdr.tcp.isValid())) {
                source.apply(hdr, meta, sm);
            }
            forward.apply(hdr, meta, sm, reason);
            if (reason != 0) {
                mark_to_drop(sm);
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<32> node = 0;
    bit<16> room = 0;
    bit<1> sink = 0;
    bit<32> session = 0;
    bit<48> gap = 0;
    bit<64> load = 0;
    bit<1> tells = 0;
    bit<8> words = 0;

    action set_device(bit<32> id) {
        node = id;
    }

    table device {
        actions = { set_device; }
        default_action = set_device(0);
        size = 1;
    }

    // Another switch is behind a port, or hosts are and this is the last switch. Loops are reported to the same collector, at
    // most once in so many us.
    action to_fabric(bit<16> mtu, bit<32> clone_session, bit<8> collector, bit<48> us) {
        room = mtu;
        session = clone_session;
        meta.collector = collector;
        gap = us;
    }

    action to_host(bit<16> mtu, bit<32> clone_session, bit<8> collector) {
        room = mtu;
        session = clone_session;
        meta.collector = collector;
        sink = 1;
    }

    table egress_port {
        key = { sm.egress_port: exact; }
        actions = { to_fabric; to_host; }
        default_action = to_fabric(1500, 0, 0, 0);
        size = 512;
    }

    Line() line;
    Digest() pint;
    DigestReport() told;
    NoDigest() remove;
    Envelope() envelope;

    apply {
#ifdef RECORD
        log_msg("intrinsic {} {} {} {} {} {} {} {} {}", { sm.instance_type, sm.ingress_port, sm.egress_port, sm.packet_length,
            sm.ingress_global_timestamp, sm.egress_global_timestamp, sm.enq_timestamp, sm.enq_qdepth, sm.deq_timedelta });
        log_msg("depth {}", { sm.deq_qdepth });
#endif
        device.apply();
        if (sm.instance_type == EGRESS_CLONE) {
            told.apply(hdr, meta, words);
            envelope.apply(hdr, node, meta.hardware, meta.collector, meta.size, words);
            if (!hdr.report_ethernet.isValid()) {
                mark_to_drop(sm);
            }
        } else {
            egress_port.apply();
            bit<1> probe = (hdr.ipv4.isValid() && hdr.ipv4.dscp == PROBE_DSCP) || (hdr.ipv6.isValid() && hdr.ipv6.dscp == PROBE_DSCP) ? 1w1 : 1w0;
            line.apply(sm.egress_port, nanoseconds(sm.egress_global_timestamp), sm.packet_length, (bit<32>)sm.enq_qdepth, probe, load);
            meta.size = (bit<16>)sm.packet_length;
            if (hdr.pint.isValid()) {
                meta.size = meta.size - PINT_LENGTH;
            }
            pint.apply(hdr, meta, sm, node, load, room, sink, gap, tells);
            if (tells == 1 && session != 0) {
                clone_preserving_field_list(CloneType.E2E, session, REPORT_FIELDS);
            }
        }
        // The last switch takes the header out, and no report holds it.
        if (sink == 1 || sm.instance_type == EGRESS_CLONE) {
            remove.apply(hdr);
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        UPDATE_IPV4(hdr.ipv4.isValid(), hdr.ipv4, hdr.options);
        UPDATE_REPORT(hdr);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        EMIT_REPORT(packet, hdr)
        EMIT_TOLD(packet, hdr)
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pint);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
    }
}

V1Switch(Parse(), Verify(), ingress(), egress(), Update(), Deparse()) main;
