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

#ifndef PINT_TYPE
#define PINT_TYPE 0x88b5
#endif

const bit<16> PINT_LENGTH = 16;
const bit<16> PINT_DOMAIN = 0x5049;
const bit<8> HOPS_MISSING = 255; // a switch did not write, so that nobody can read the digest

header pint_h {
    bit<8>  epoch; // of the plan
    bit<8>  hops;  // switches that have written into the digest, or HOPS_MISSING
    bit<16> type;  // EtherType of what follows
    bit<32> id;    // of the packet, as the hashes take it
    bit<64> digest;
}

// Domain specific metadata of a report.
header told_h {
    bit<8>  epoch;
    bit<8>  hops;
    bit<16> reserved;
    bit<32> id;
    bit<32> low;
}

header again_h {
    bit<8>  times;
    bit<24> reserved;
}

struct headers_t {
    REPORT_MEMBERS
    told_h         told;
    word_h         told_high;
    again_h        told_again;
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
    bit<1>   source;
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
    register<bit<17>>(4096) last_id; // by flow: 1 and the IPv4 identification of its last packet
    counter(512, CounterType.packets) stuck_ids; // by ingress port: packets whose identification is that of the one before
    bit<1> edge = 0;
    bit<32> share = 0;
    bit<32> lot = 0;
    bit<32> flow = 0;
    bit<17> now = 0;
    bit<17> last = 0;
    bit<1> by_ip = 0;
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

    // Packets of a flow whose hash is not above below carry a digest by the plan of that epoch. With ip_id their id is the
    // identification of IPv4, as far as it changes, and else a hash of the L4 header.
    action carry(bit<32> below, bit<8> epoch, bit<1> ip_id) {
        meta.source = 1;
        share = below;
        meta.epoch = epoch;
        by_ip = ip_id;
    }

    table watch {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.proto: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
        }
        actions = { carry; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    action remember() {
        last_id.read(last, flow);
        last_id.write(flow, now);
    }

    Forward() forward;

    apply {
        ingress_port.apply();
        if (sm.checksum_error == 1 || sm.parser_error == error.BadIPv4 || (!hdr.ipv4.isValid() && !hdr.ipv6.isValid())) {
            mark_to_drop(sm); // nothing to route by
        } else if (edge == 1 && hdr.pint.isValid()) {
            mark_to_drop(sm); // hosts write no digests
        } else {
            if (edge == 1 && (hdr.udp.isValid() || hdr.tcp.isValid())) {
                watch.apply();
            }
            if (meta.source == 1) {
                if (hdr.udp.isValid()) {
                    hash(meta.id, HashAlgorithm.crc32, 32w0, { hdr.udp.src, hdr.udp.dst, hdr.udp.len, hdr.udp.checksum }, 64w0x100000000);
                } else if (hdr.tcp.isValid()) {
                    hash(meta.id, HashAlgorithm.crc32, 32w0, { hdr.tcp.src, hdr.tcp.dst, hdr.tcp.seq, hdr.tcp.ack, hdr.tcp.offset,
                        hdr.tcp.flags, hdr.tcp.window, hdr.tcp.checksum, hdr.tcp.urgent }, 64w0x100000000);
                }
                if (by_ip == 1 && hdr.ipv4.isValid()) {
                    // A sender that sets DF may leave the identification as it is (RFC 6864), and all its packets would be one.
                    hash(flow, HashAlgorithm.crc32, 32w0, { meta.src, meta.dst, meta.proto, meta.src_port, meta.dst_port }, 32w4096);
                    now = 1w1 ++ hdr.ipv4.id;
                    remember();
                    if (hdr.ipv4.dont_fragment == 1 && last == now) {
                        stuck_ids.count((bit<32>)sm.ingress_port);
                    } else {
                        meta.id = (bit<32>)hdr.ipv4.id;
                    }
                }
                bit<32> word = meta.id;
                CRC(lot, word);
                if (lot > share) {
                    meta.source = 0;
                }
            }
            forward.apply(hdr, sm, reason);
            if (reason != 0) {
                mark_to_drop(sm);
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<48>>(512) looped; // when a loop was reported at a port last, us
    counter(512, CounterType.packets) incomplete; // by egress port: packets to hosts whose digest was kept back
    bit<32> node = 0;
    bit<16> room = 0;
    bit<1> sink = 0;
    bit<32> session = 0;
    bit<48> gap = 0;
    bit<48> last = 0;
    bit<1> due = 0;
    bit<1> known = 0;
    bit<32> set_k = 0;
    bit<32> lot = 0;
    bit<8> set = 255;
    bit<32> limit = 0;
    bit<32> hop = 0;
    bit<64> load = 0;
    bit<8> again = 0;
    bit<8> words = 3;

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

    // The plans that this switch holds. A digest by another one is left alone, marked, and not reported.
    action set_plan(bit<32> k_set, bit<1> wide_digest) {
        set_k = k_set;
        meta.wide = wide_digest;
        known = 1;
    }

    table plan {
        key = { hdr.pint.epoch: exact; }
        actions = { set_plan; NoAction; }
        default_action = NoAction();
        size = 4;
    }

    action carry(bit<8> which) {
        set = which;
    }

    // The set of queries of a packet.
    table pint_set {
        key = { hdr.pint.epoch: exact; lot: range; }
        actions = { carry; }
        default_action = carry(255);
        size = 64;
    }

    action at_most(bit<32> most) {
        limit = most;
    }

    action nobody() {
        known = 0;
    }

    // 2^32 / hop - 1, the same in all plans. Beyond the last entry nobody writes; that is so for packets that are marked, too.
    table pint_replace {
        key = { hop: exact; }
        actions = { at_most; nobody; }
        default_action = nobody();
        size = 64;
    }

    action take_turn() {
        looped.read(last, (bit<32>)sm.egress_port);
        due = (last == 0 || sm.egress_global_timestamp - last >= gap) ? 1w1 : 1w0;
        last = due == 1 ? sm.egress_global_timestamp : last;
        looped.write((bit<32>)sm.egress_port, last);
    }

    Hash() hashed;
    Path() path0;
    Path() path1;
    Dynamic() latency;
    Largest() utilization;
    Loop() loop;
    Line() line;
    Envelope() envelope;

    apply {
#ifdef RECORD
        log_msg("intrinsic {} {} {} {} {} {} {} {} {}", { sm.instance_type, sm.ingress_port, sm.egress_port, sm.packet_length,
            sm.ingress_global_timestamp, sm.egress_global_timestamp, sm.enq_timestamp, sm.enq_qdepth, sm.deq_timedelta });
        log_msg("depth {}", { sm.deq_qdepth });
#endif
        device.apply();
        if (sm.instance_type == EGRESS_CLONE) {
            hdr.told.setValid();
            hdr.told.epoch = meta.told_epoch;
            hdr.told.hops = meta.told_hops;
            hdr.told.reserved = 0;
            hdr.told.id = meta.told_id;
            hdr.told.low = meta.told_digest[31:0];
            hdr.report.setValid();
            hdr.report.type = 1;
            hdr.report.inner = 3;
            hdr.report.dropped = 0;
            hdr.report.congested = 0;
            hdr.report.tracked = 1;
            hdr.report.transit = 0;
            hdr.report.reserved = 0;
            hdr.report.bitmap = 0;
            hdr.report.domain = PINT_DOMAIN;
            hdr.report.ds_bitmap = 0xe000;
            hdr.report.ds_status = 0;
            if (meta.wide == 1) {
                hdr.told_high.setValid();
                hdr.told_high.value = meta.told_digest[63:32];
                hdr.report.ds_bitmap = hdr.report.ds_bitmap | 0x1000;
                words = words + 1;
            }
            if (meta.again != 0) {
                hdr.told_again.setValid();
                hdr.told_again.times = meta.again;
                hdr.told_again.reserved = 0;
                hdr.report.ds_bitmap = hdr.report.ds_bitmap | 0x0800;
                words = words + 1;
            }
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
            } else if (meta.source == 1) {
                bit<16> ip_len = hdr.ipv6.isValid() ? hdr.ipv6.len + 40 : hdr.ipv4.len;
                if (ip_len + PINT_LENGTH <= room) {
                    hdr.pint.setValid();
                    hdr.pint.epoch = meta.epoch;
                    hdr.pint.hops = 0;
                    hdr.pint.id = meta.id;
                    hdr.pint.digest = 0;
                    if (hdr.vlan.isValid()) {
                        hdr.pint.type = hdr.vlan.type;
                        hdr.vlan.type = PINT_TYPE;
                    } else {
                        hdr.pint.type = hdr.ethernet.type;
                        hdr.ethernet.type = PINT_TYPE;
                    }
                }
            }
            if (hdr.pint.isValid()) {
                if (hdr.pint.hops != HOPS_MISSING) {
                    hdr.pint.hops = hdr.pint.hops + 1;
                }
                hop = (bit<32>)hdr.pint.hops;
                plan.apply();
                pint_replace.apply();
                if (known == 1) {
                    hashed.apply(set_k, hdr.pint.id, 0, lot);
                    pint_set.apply();
                    path0.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node);
                    path1.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node);
                    latency.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit,
                        elapsed(sm.ingress_global_timestamp, sm.egress_global_timestamp));
                    utilization.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, load);
                    loop.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node, again);
                } else {
                    hdr.pint.hops = HOPS_MISSING;
                }
                meta.told_epoch = hdr.pint.epoch;
                meta.told_hops = hdr.pint.hops;
                meta.told_id = hdr.pint.id;
                meta.told_digest = hdr.pint.digest;
                meta.again = again;
                if (again != 0) {
                    take_turn();
                }
                if (known == 0) {
                    if (sink == 1) {
                        incomplete.count((bit<32>)sm.egress_port);
                    }
                } else if (session != 0 && (sink == 1 || due == 1)) {
                    clone_preserving_field_list(CloneType.E2E, session, REPORT_FIELDS);
                }
            }
        }
        // The last switch takes the header out, and no report holds it.
        if (hdr.pint.isValid() && (sink == 1 || sm.instance_type == EGRESS_CLONE)) {
            if (hdr.vlan.isValid()) {
                hdr.vlan.type = hdr.pint.type;
            } else {
                hdr.ethernet.type = hdr.pint.type;
            }
            hdr.pint.setInvalid();
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        UPDATE_IPV4(hdr.ipv4, hdr.options);
        UPDATE_REPORT(hdr);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        EMIT_REPORT(packet, hdr)
        packet.emit(hdr.told);
        packet.emit(hdr.told_high);
        packet.emit(hdr.told_again);
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
