// SPDX-License-Identifier: Apache-2.0
// One program for a switch: routing of IPv4 and IPv6 with ECMP, INT-MD 2.1 as source, transit and sink node, assignments of INTO,
// counters of FANT, PINT, source-routed probes, and a CPU port.
//
// A part can be left out when compiling, by -DWITH_INT=0, -DWITH_ASSIGNED=0, -DWITH_FANT=0, -DWITH_PINT=0, -DWITH_PROBES=0,
// -DWITH_ECMP=0 and -DWITH_CPU=0; -DWITH_DELIVERY=1 adds assigned paths of reports, of RFT, and -DWITH_VARBIT=0 reads what has no fixed length in
// pieces of fixed ones. What is in the program does nothing until tables switch it on, but for routing.
//
// Packets of users are theirs: what looks like a probe or a digest is one only if it comes from a port that a table trusts.
//
// docs/p4.md says what a control plane writes.
#include <core.p4>
#include <v1model.p4>

#ifndef WITH_INT
#define WITH_INT 1
#endif
#ifndef WITH_ASSIGNED // INTO: assigned interfaces add their values
#define WITH_ASSIGNED WITH_INT
#endif
#ifndef WITH_FANT // counters of interfaces
#define WITH_FANT WITH_INT
#endif
#ifndef WITH_PINT
#define WITH_PINT 1
#endif
#ifndef WITH_PROBES
#define WITH_PROBES 1
#endif
#ifndef WITH_ECMP
#define WITH_ECMP 1
#endif
#ifndef WITH_CPU // packets to and from the controller, and frames that are not IP
#define WITH_CPU 1
#endif
#ifndef WITH_DELIVERY // RFT: reports leave over assigned paths
#define WITH_DELIVERY 0
#endif
#define WITH_REPORTS (WITH_INT || WITH_PINT)

#include "include/headers.p4"
#include "include/time.p4"
#include "include/checksum.p4"
#include "include/intmd.p4"
#if WITH_FANT
#include "include/fant.p4"
#endif
#include "include/report.p4"
#if WITH_CPU
#include "include/cpu.p4"
#endif
#if WITH_PROBES
#include "include/route.p4"
#endif
#if WITH_PINT
#include "include/log.p4"
#include "include/digest.p4"
#endif

#if WITH_FANT
#define COUNTS , counts
#else
#define COUNTS
#endif

#if WITH_FANT
const bit<9> DROP_PORT = 511;
#endif

// What clones are reports of.
const bit<3> OF_SINK = 1;
const bit<3> OF_DROP = 2;
const bit<3> OF_QUEUE = 3;
const bit<3> OF_DIGEST = 4;

// What a packet looks like, and is if its port is trusted.
#if WITH_PROBES
const bit<2> KIND_ROUTE = 1;  // EtherType 0x0700: a route in front
#endif
#if WITH_PROBES || WITH_PINT || WITH_FANT
const bit<2> KIND_PATH = 2;   // UDP to 2222: a route behind
#endif
#if WITH_PROBES || WITH_PINT
const bit<2> KIND_DIGEST = 3; // EtherType of PINT
#endif

struct headers_t {
#if WITH_CPU
    packet_in_h    packet_in;
    packet_out_h   packet_out;
#endif
    REPORT_MEMBERS
#if WITH_PINT
    TOLD_MEMBERS
#endif
    ethernet_h     ethernet;
    vlan_h         vlan;
#if WITH_PINT
    pint_h         pint;
#endif
#if WITH_PROBES
    ROUTE_MEMBERS
#endif
    ipv4_h         ipv4;
    OPTIONS_MEMBERS
    ipv6_h         ipv6;
    udp_h          udp;
#if WITH_PROBES
    PATH_MEMBERS
    empty_h        empty;
#endif
    tcp_h          tcp;
    shim_h         shim;
    int_h          int_md;
    BLOCK_HEADERS()
    RESERVED_HEADERS
    STACK_MEMBERS()
    // What the sink node has taken out, for the report. It is in no packet.
    shim_h         kept_shim;
    int_h          kept_int_md;
    STACK_MEMBERS(kept_)
}

#if WITH_DELIVERY
#include "include/delivery.p4"
#endif

struct metadata_t {
    bit<2>   kind;
    bit<1>   probe;  // it is followed, as a route or a path
    bit<1>   plain;  // the packet leaves as it came
#if !WITH_VARBIT
    bit<8>   pieces; // units that are to be read
#endif
    bit<4>   ihl;    // 0 for IPv6
    bit<16>  l4_len; // TCP or UDP with everything in it, modulo 2^16
    bit<8>   proto;
    bit<6>   dscp;
    bit<128> src;
    bit<128> dst;
    bit<16>  src_port;
    bit<16>  dst_port;
    // Settings of the source of INT, from its table of watched flows.
    bit<1>   source;
    bit<1>   by_port;
    bit<8>   hops;
    bit<16>  bitmap;
    bit<16>  domain;
#if WITH_FANT
    bit<1>   segment; // IPv6 with a header of segment routing
    bit<64>  offered; // to the egress port, with this packet
    bit<32>  length;  // as it came: BMv2 counts a route that goes in ingress no more
#endif
#if WITH_PINT
    // Settings of the source of digests, from its table of watched flows.
    bit<1>   carries;
    bit<8>   epoch;
    bit<32>  id;
#endif
    // For the report that a clone becomes.
    @field_list(REPORT_FIELDS) bit<3>  about;
    @field_list(REPORT_FIELDS) bit<32> session;
    @field_list(REPORT_FIELDS) bit<8>  collector;
    @field_list(REPORT_FIELDS) bit<6>  hardware;
    @field_list(REPORT_FIELDS) bit<8>  reason;
    @field_list(REPORT_FIELDS) bit<1>  congested;
    @field_list(REPORT_FIELDS) bit<16> asked;     // bitmap of the report
    @field_list(REPORT_FIELDS) bit<16> size;      // of the packet, from Ethernet on
    @field_list(REPORT_FIELDS) bit<9>  ingress;
    @field_list(REPORT_FIELDS) bit<9>  egress;
    @field_list(REPORT_FIELDS) bit<19> depth;
    @field_list(REPORT_FIELDS) bit<48> came;      // us
    @field_list(REPORT_FIELDS) bit<48> left;
#if WITH_PINT
    // The report of INT about a packet whose digest is reported first: it is made of the clone for that.
    @field_list(REPORT_FIELDS) bit<3>  next_about;
    @field_list(REPORT_FIELDS) bit<8>  next_collector;
    @field_list(REPORT_FIELDS) bit<16> next_size;
    @field_list(REPORT_FIELDS) bit<8>  told_epoch;
    @field_list(REPORT_FIELDS) bit<8>  told_hops;
    @field_list(REPORT_FIELDS) bit<32> told_id;
    @field_list(REPORT_FIELDS) bit<64> told_digest;
    @field_list(REPORT_FIELDS) bit<1>  wide;
    @field_list(REPORT_FIELDS) bit<8>  again;
#endif
#if WITH_DELIVERY
    @field_list(DELIVERY_FIELDS) bit<1> own; // a report of this switch, which has come back
#endif
}

#include "include/forward.p4"
#if WITH_CPU
#include "include/other.p4"
#endif
#if WITH_REPORTS
#include "include/envelope.p4"
#endif
#if WITH_INT
#include "include/node.p4"
#endif
#if WITH_PINT
#define PINT_WATCH ".ingress.pint_watch"
#define PINT_CARRY ".ingress.pint_carry"
#include "include/pint.p4"
#endif
#if WITH_PROBES
#include "include/probes.p4"
#include "include/path.p4"
#endif

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
#if WITH_CPU
        transition select(sm.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
#endif
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: parse_vlan;
#if WITH_PROBES
            TYPE_ROUTE: parse_route;
#endif
#if WITH_PINT
            PINT_TYPE: parse_pint;
#endif
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
#if WITH_PROBES
            TYPE_ROUTE: parse_route;
#endif
#if WITH_PINT
            PINT_TYPE: parse_pint;
#endif
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

#if WITH_PINT
    state parse_pint {
        meta.kind = KIND_DIGEST;
        packet.extract(hdr.pint);
        transition select(hdr.pint.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
#endif

#if WITH_PROBES
    // A route has an entry at least: with the last one a switch takes the route away.
    state parse_route {
        meta.kind = KIND_ROUTE;
        packet.extract(hdr.route);
        verify(hdr.route.len >= 4 && hdr.route.len <= 34 && (hdr.route.len & 1) == 0, error.BadRoute);
        packet.extract(hdr.entry);
#if WITH_VARBIT
        packet.extract(hdr.entries, ((bit<32>)hdr.route.len - 4) << 3);
        transition parse_type2;
    }
#else
        meta.pieces = (hdr.route.len - 4) >> 1;
        transition parse_entries8;
    }

    PARSE_PIECE(entries8, meta.pieces[3:3], parse_entries4)
    PARSE_PIECE(entries4, meta.pieces[2:2], parse_entries2)
    PARSE_PIECE(entries2, meta.pieces[1:1], parse_entries1)
    PARSE_PIECE(entries1, meta.pieces[0:0], parse_type2)
#endif

    state parse_type2 {
        packet.extract(hdr.type2);
        transition select(hdr.type2.type) {
            TYPE_LABELS: parse_labels;
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_labels {
        packet.extract(hdr.labels);
        transition accept;
    }

    state parse_path {
        meta.kind = KIND_PATH;
        transition select(hdr.udp.len) {
            PATH_EMPTY: parse_empty;
            default: parse_ports;
        }
    }

    state parse_empty {
        verify(hdr.udp.len <= meta.l4_len, error.BadRoute);
        packet.extract(hdr.empty);
        transition accept;
    }

    state parse_ports {
        verify(hdr.udp.len >= PATH_FIXED && hdr.udp.len <= PATH_LONGEST && hdr.udp.len <= meta.l4_len, error.BadRoute);
        packet.extract(hdr.path);
        transition accept;
    }
#endif

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.BadIPv4);
        meta.ihl = hdr.ipv4.ihl;
        meta.proto = hdr.ipv4.proto;
        meta.dscp = hdr.ipv4.dscp;
        meta.l4_len = hdr.ipv4.len - ((bit<16>)hdr.ipv4.ihl << 2);
        meta.src = (bit<128>)hdr.ipv4.src;
        meta.dst = (bit<128>)hdr.ipv4.dst;
        transition select(hdr.ipv4.ihl) {
            5: parse_whole;
            default: parse_options;
        }
    }

    state parse_options {
#if WITH_VARBIT
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_whole;
    }
#else
        meta.pieces = (bit<8>)(hdr.ipv4.ihl - 5);
        transition parse_options8;
    }

    PARSE_PIECE(options8, meta.pieces[3:3], parse_options4)
    PARSE_PIECE(options4, meta.pieces[2:2], parse_options2)
    PARSE_PIECE(options2, meta.pieces[1:1], parse_options1)
    PARSE_PIECE(options1, meta.pieces[0:0], parse_whole)
#endif

    // A fragment has no place for INT, and those behind the first have no L4 header.
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
        meta.dscp = hdr.ipv6.dscp;
        meta.l4_len = hdr.ipv6.len;
        meta.src = hdr.ipv6.src;
        meta.dst = hdr.ipv6.dst;
        transition select(hdr.ipv6.next) {
            PROTO_UDP: parse_udp;
            PROTO_TCP: parse_tcp;
#if WITH_FANT
            IPV6_ROUTING: parse_routing;
#endif
            default: accept;
        }
    }

#if WITH_FANT
    state parse_routing {
        transition select(packet.lookahead<bit<24>>()[7:0]) {
            SEGMENT_ROUTING: parse_segment;
            default: accept;
        }
    }

    state parse_segment {
        meta.segment = 1;
        transition accept;
    }
#endif

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src;
        meta.dst_port = hdr.udp.dst;
        transition select(hdr.udp.dst, meta.dscp, meta.ihl, meta.kind) {
#if WITH_INT
            (INT_PORT, _, _, _): parse_by_port;
            (_, INT_DSCP, _, _): parse_udp_by_dscp;
#endif
#if WITH_PROBES
            (PATH_PORT, _, 5, 0): parse_path;
#endif
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src;
        meta.dst_port = hdr.tcp.dst;
        transition select(meta.dscp) {
#if WITH_INT
            INT_DSCP: parse_tcp_by_dscp;
#endif
            default: accept;
        }
    }

#if WITH_INT
    state parse_by_port {
        packet.extract(hdr.shim);
        verify(hdr.shim.npt == 1 && hdr.udp.len >= 12 + ((bit<16>)hdr.shim.len << 2) && hdr.udp.len <= meta.l4_len, error.BadShim);
        transition parse_int;
    }

    state parse_udp_by_dscp {
        packet.extract(hdr.shim);
        verify(hdr.shim.npt == 0 && hdr.udp.len >= 12 + ((bit<16>)hdr.shim.len << 2) && hdr.udp.len <= meta.l4_len, error.BadShim);
        transition parse_int;
    }

    state parse_tcp_by_dscp {
        packet.extract(hdr.shim);
        verify(hdr.shim.npt == 0 && meta.l4_len >= 24 + ((bit<16>)hdr.shim.len << 2), error.BadShim);
        transition parse_int;
    }

    state parse_int {
        verify(hdr.shim.type == INT_MD && hdr.shim.len >= 3, error.BadShim);
        packet.extract(hdr.int_md);
        verify(hdr.int_md.version == INT_VERSION, error.BadINT);
#if WITH_VARBIT
        packet.extract(hdr.stack, ((bit<32>)hdr.shim.len - 3) << 5);
        transition accept;
    }
#else
        meta.pieces = hdr.shim.len - 3;
        transition parse_stack128;
    }

    PARSE_PIECE(stack128, meta.pieces[7:7], parse_stack64)
    PARSE_PIECE(stack64, meta.pieces[6:6], parse_stack32)
    PARSE_PIECE(stack32, meta.pieces[5:5], parse_stack16)
    PARSE_PIECE(stack16, meta.pieces[4:4], parse_stack8)
    PARSE_PIECE(stack8, meta.pieces[3:3], parse_stack4)
    PARSE_PIECE(stack4, meta.pieces[2:2], parse_stack2)
    PARSE_PIECE(stack2, meta.pieces[1:1], parse_stack1)
    PARSE_PIECE(stack1, meta.pieces[0:0], parse_stack)

    state parse_stack {
        hdr.stack.setValid();
        transition accept;
    }
#endif
#endif
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { VERIFY_IPV4(hdr.ipv4, hdr.options); }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<1> edge = 0;
    bit<1> trusted = 0;
#if WITH_PROBES || WITH_PINT
    counter(512, CounterType.packets) untrusted; // by ingress port: what looks like a probe or a digest, dropped as a table has it
    bit<1> followed = 0;
    bit<1> discarded = 0;
#endif
    counter(256, CounterType.packets) dropped; // by reason

    // Hosts are behind a port. What they send is watched, and INT that they send is none, unless they are trusted: agents
    // whose probes carry INT are. The hardware id is that of the port's subsystem.
    action host(bit<6> hardware, bit<1> trust) {
        edge = 1;
        trusted = trust;
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

#if WITH_PROBES || WITH_PINT
    // What looks like a probe or a digest is followed, is a packet like others, or is dropped and counted.
    action follow() {
        followed = 1;
    }

    action ordinary() {
    }

    action discard() {
        discarded = 1;
    }

    table probes {
        key = {
            sm.ingress_port: ternary;
            meta.kind: ternary;
            hdr.ethernet.dst: ternary;
            meta.dst: ternary;
        }
        actions = { follow; ordinary; discard; }
        default_action = ordinary();
        size = 1024;
    }
#endif

#if WITH_INT
    action deny() {
        meta.reason = REASON_DENIED;
    }

    table acl {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.proto: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
        }
        actions = { deny; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    // A packet that is dropped for a reason is reported. Queues that are full drop without asking the program.
    action report_drop(bit<32> session, bit<8> collector) {
        meta.about = OF_DROP;
        meta.collector = collector;
        meta.asked = 0x4801; // interfaces, ingress time, drop reason
        meta.ingress = sm.ingress_port;
        meta.egress = 0x1ff;
        meta.came = sm.ingress_global_timestamp;
        meta.size = (bit<16>)sm.packet_length;
        clone_preserving_field_list(CloneType.I2E, session, REPORT_FIELDS);
    }

    table drops {
        key = { meta.reason: exact; }
        actions = { report_drop; NoAction; }
        default_action = NoAction();
        size = 256;
    }

    IntSource() source;
#endif
#if WITH_PINT
    DigestSource() digest_source;
#endif
#if WITH_PROBES
    Ends() path;
    Follow() route;
    bit<1> collected = 0;
#endif
#if WITH_FANT
    Offer() offer;
#endif
#if WITH_CPU
    Other() other;
#endif
    Forward() forward;
#if WITH_DELIVERY
    Deliver() deliver;
    bit<1> delivered = 0;
    bit<1> undelivered = 0;
#endif

    apply {
        meta.ingress = sm.ingress_port;
        meta.came = sm.ingress_global_timestamp;
#if WITH_DELIVERY
        if (meta.own == 0)
#endif
        ingress_port.apply();
#if WITH_PROBES || WITH_PINT
        if (meta.kind != 0) {
            probes.apply();
            meta.probe = meta.kind == KIND_DIGEST ? 1w0 : followed;
            if (followed == 0 && meta.kind != KIND_PATH) {
                meta.plain = 1;
            }
        }
#endif
        if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid()) {
            meta.plain = ~meta.probe;
        }
#if WITH_CPU
        if (hdr.packet_out.isValid()) {
            meta.plain = 1;
            meta.probe = 0;
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else
#endif
#if WITH_PROBES || WITH_PINT
        if (discarded == 1) {
            untrusted.count((bit<32>)sm.ingress_port);
            mark_to_drop(sm);
        } else
#endif
#if WITH_PROBES
        if (meta.probe == 1) {
            if (sm.checksum_error == 1 || (sm.parser_error != error.NoError && !hdr.shim.isValid())) {
                mark_to_drop(sm); // a route that cannot be read leads nowhere; INT that cannot be read is payload
            } else {
                path.apply(hdr, sm, collected);
                if (collected == 0) {
                    route.apply(hdr, sm);
                }
                if (hdr.type2.isValid() && !hdr.route.isValid()) {
                    if (hdr.vlan.isValid()) {
                        hdr.vlan.type = hdr.type2.type;
                    } else {
                        hdr.ethernet.type = hdr.type2.type;
                    }
                    hdr.type2.setInvalid();
                }
            }
        } else
#endif
        if (meta.plain == 1) {
#if WITH_CPU
            other.apply(hdr, sm);
#else
            mark_to_drop(sm);
#endif
        } else if (sm.checksum_error == 1 || sm.parser_error == error.BadIPv4) {
            mark_to_drop(sm); // nothing to route by
        } else {
#if WITH_INT
            if (edge == 1 && hdr.shim.isValid() && trusted == 0) {
                deny();
            } else {
                acl.apply();
            }
            if (edge == 1 && !hdr.shim.isValid() && (hdr.udp.isValid() || hdr.tcp.isValid())) {
                source.apply(hdr, meta);
            }
#endif
#if WITH_PINT
            if (edge == 1 && !hdr.pint.isValid() && (hdr.udp.isValid() || hdr.tcp.isValid())) {
                digest_source.apply(hdr, meta, sm);
            }
#endif
#if WITH_DELIVERY
            if (meta.reason == 0 && edge == 0 && hdr.ipv4.isValid() && hdr.udp.isValid() && !hdr.shim.isValid()) {
                deliver.apply(hdr, sm, delivered, undelivered);
            }
            if (undelivered == 1) {
                mark_to_drop(sm); // counted, and not reported: that would be one more report
            }
            if (delivered == 0)
#endif
            if (meta.reason == 0) {
                forward.apply(hdr, meta, sm, meta.reason);
            }
            if (meta.reason != 0) {
                dropped.count((bit<32>)meta.reason);
#if WITH_INT
                drops.apply();
#endif
#if WITH_INT && WITH_PINT
                if (hdr.pint.isValid()) {
                    meta.size = meta.size - PINT_LENGTH; // no report has the digest
                }
#endif
                mark_to_drop(sm);
            }
        }
#if WITH_FANT
        if (sm.egress_spec != DROP_PORT) {
            meta.length = sm.packet_length;
#if WITH_DELIVERY
            if (meta.own == 1 && hdr.ipv4.isValid()) {
                meta.length = (bit<32>)hdr.ipv4.len + 14; // the egress cuts it
            }
#endif
            offer.apply(sm.egress_spec, meta.length, meta.offered);
        }
#endif
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<32> node_id = 0;
    bit<64> clock = 0;
    bit<16> room = 0;
    bit<16> int_room = 0; // less what a digest takes
    bit<1> sink = 0;
    bit<32> session = 0;
    bit<8> words = 0;
#if WITH_PINT
    bit<64> load = 0;
    bit<32> digest_session = 0;
    bit<8> digest_collector = 0;
    bit<48> gap = 0;
    bit<1> tells = 0;
#endif

    // The node's id, and what its clock shows when BMv2 starts, in nanoseconds.
    action set_device(bit<32> node, bit<64> start) {
        node_id = node;
        clock = start;
    }

    table device {
        actions = { set_device; }
        default_action = set_device(0, 0);
        size = 1;
    }

    // Another switch is behind a port, or hosts are and this is the sink node, which reports INT and digests. mtu is the largest IP
    // packet.
    action to_fabric(bit<16> mtu) {
        room = mtu;
    }

    action to_host(bit<16> mtu, bit<32> clone_session, bit<8> collector) {
        room = mtu;
        sink = 1;
        session = clone_session;
        meta.collector = collector;
    }

    table egress_port {
        key = { sm.egress_port: exact; }
        actions = { to_fabric; to_host; }
        default_action = to_fabric(1500);
        size = 512;
    }

#if WITH_PINT
    // Loops that digests show at a port to another switch are reported, at most once in so many us.
    action report_loops(bit<32> clone_session, bit<8> collector, bit<48> us) {
        digest_session = clone_session;
        digest_collector = collector;
        gap = us;
    }

    table loops {
        key = { sm.egress_port: exact; }
        actions = { report_loops; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    Line() line;
    Digest() pint;
    DigestReport() told;
    NoDigest() remove;
#endif
#if WITH_INT
    IntNode() int_node;
#endif
#if WITH_FANT
    Count() count;
    CountReport() count_report;
    counts_t counts = NO_COUNTS;
#endif
#if WITH_PROBES
    Labels() labels;
#endif
#if WITH_REPORTS
    Envelope() envelope;
#endif
#if WITH_DELIVERY && WITH_REPORTS
    Spread() spread;
    bit<16> tag = 0;
    bit<1> unassigned = 0;
#endif

    apply {
#ifdef RECORD
        log_msg("intrinsic {} {} {} {} {} {} {} {} {}", { sm.instance_type, sm.ingress_port, sm.egress_port, sm.packet_length,
            sm.ingress_global_timestamp, sm.egress_global_timestamp, sm.enq_timestamp, sm.enq_qdepth, sm.deq_timedelta });
        log_msg("depth {}", { sm.deq_qdepth });
#endif
#if WITH_DELIVERY
        if (meta.own == 1) {
            truncate((bit<32>)hdr.ipv4.len + 14); // BMv2 does not cut what comes back
        }
#endif
        device.apply();
#if WITH_CPU
        hdr.packet_in.setInvalid(); // of which this may be a clone
#endif
#if WITH_PINT
        CLEAR_REPORT(hdr) // the same
        CLEAR_TOLD(hdr)
#endif
        bit<1> cloned = sm.instance_type == INGRESS_CLONE || sm.instance_type == EGRESS_CLONE ? 1w1 : 1w0;
        if (cloned == 0) {
            meta.egress = sm.egress_port;
            meta.depth = sm.enq_qdepth;
            meta.left = sm.egress_global_timestamp;
            meta.size = (bit<16>)sm.packet_length;
            egress_port.apply();
#if WITH_CPU
            if (sm.egress_port == CPU_PORT) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = sm.ingress_port;
                hdr.packet_in.pad = 0;
            }
#endif
#if WITH_PINT
            bit<1> probe = meta.probe == 1 || (meta.plain == 0 && meta.dscp == PROBE_DSCP) ? 1w1 : 1w0;
            line.apply(sm.egress_port, nanoseconds(sm.egress_global_timestamp), sm.packet_length, (bit<32>)sm.enq_qdepth, probe, load);
#endif
#if WITH_PROBES
            if (meta.probe == 1) {
                sink = 0; // what a probe has gathered is its receiver's
                labels.apply(hdr, sm, node_id, room);
            }
#endif
            int_room = room;
#if WITH_PINT
            if (meta.plain == 0 && hdr.pint.isValid()) {
                meta.size = meta.size - PINT_LENGTH; // no report has the digest
                if (sink == 0) {
                    int_room = room - PINT_LENGTH;
                }
            }
            if (sink == 1) {
                digest_session = session;
                digest_collector = meta.collector;
            } else {
                loops.apply();
            }
#endif
#if WITH_FANT
            // With the D bit the sink node drops a packet, as its queue might have done.
            bit<1> discards = sink & ~meta.plain;
            if (!hdr.stack.isValid() || !hdr.int_md.isValid() || hdr.int_md.discard == 0) {
                discards = 0;
            }
            if (discards == 0) {
                bit<1> ip = meta.plain == 0 || meta.kind == 0 || meta.kind == KIND_PATH ? 1w1 : 1w0; // what is in other frames is their own
                count.apply(sm.egress_port, meta.length, meta.offered, meta.probe | (meta.segment & ip), ip & (bit<1>)hdr.ipv4.isValid(),
                    ip & (bit<1>)hdr.ipv6.isValid(), counts);
            }
#endif
        }
#if WITH_INT
        if (meta.plain == 0 && meta.about != OF_DIGEST && (hdr.ipv4.isValid() || hdr.ipv6.isValid())) {
            int_node.apply(hdr, meta, sm, cloned, node_id, clock, int_room, sink, session, words COUNTS);
        }
#endif
#if WITH_PINT
        if (cloned == 0 && meta.plain == 0) {
            pint.apply(hdr, meta, sm, node_id, load, room, sink, gap, tells);
            if (tells == 1 && digest_session != 0) {
                meta.next_about = meta.about;
                meta.next_collector = meta.collector;
                meta.next_size = meta.size;
                meta.about = OF_DIGEST;
                meta.collector = digest_collector;
                if (hdr.kept_shim.isValid()) {
                    meta.size = meta.size - (4 + ((bit<16>)hdr.kept_shim.len << 2)); // without INT, which the other report has
                }
                clone_preserving_field_list(CloneType.E2E, digest_session, REPORT_FIELDS); // in place of INT's
            }
        } else if (cloned == 1 && meta.about == OF_DIGEST) {
            told.apply(hdr, meta, words);
        }
        if (cloned == 1 || (sink == 1 && meta.plain == 0)) {
            remove.apply(hdr);
        }
#endif
#if WITH_REPORTS
        if (cloned == 1) {
#if WITH_DELIVERY
            spread.apply(meta.collector, tag, unassigned);
            if (unassigned == 0)
#endif
            envelope.apply(hdr, node_id, meta.hardware, meta.collector, meta.size, words);
#if WITH_DELIVERY
            if (tag != 0 && hdr.report_ethernet.isValid() && hdr.report_udp.isValid()) {
                hdr.report_udp.src = tag;
                meta.own = 1;
                recirculate_preserving_field_list(DELIVERY_FIELDS);
            }
#endif
            if (!hdr.report_ethernet.isValid()) {
                mark_to_drop(sm); // no collector
            }
#if WITH_FANT
            bit<1> leaves = hdr.report_ethernet.isValid() && hdr.report_ipv4.isValid() ? 1w1 : 1w0;
#if WITH_DELIVERY
            leaves = leaves & ~meta.own;
#endif
            if (leaves == 1 && hdr.report_ipv4.isValid()) {
                count_report.apply(sm.egress_port, (bit<32>)hdr.report_ipv4.len + 14);
            }
#endif
#if WITH_PINT
            if (meta.next_about != 0) {
                meta.about = meta.next_about;
                meta.collector = meta.next_collector;
                meta.size = meta.next_size;
                meta.next_about = 0;
                clone_preserving_field_list(CloneType.E2E, meta.session, REPORT_FIELDS);
            }
#endif
        }
#endif
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        UPDATE_IPV4(hdr.ipv4.isValid() && meta.plain == 0, hdr.ipv4, hdr.options);
        UPDATE_REPORT(hdr);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
#if WITH_CPU
        packet.emit(hdr.packet_in);
#endif
        EMIT_REPORT(packet, hdr)
#if WITH_PINT
        EMIT_TOLD(packet, hdr)
#endif
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
#if WITH_PINT
        packet.emit(hdr.pint);
#endif
#if WITH_PROBES
        EMIT_ROUTE(packet, hdr)
#endif
        packet.emit(hdr.ipv4);
        EMIT_OPTIONS(packet, hdr)
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.shim);
        packet.emit(hdr.int_md);
        EMIT_BLOCK(packet, hdr, )
        EMIT_RESERVED(packet, hdr)
        EMIT_STACK(packet, hdr)
#if WITH_PROBES
        EMIT_PATH(packet, hdr) // of a packet that is not followed INT stands in front of it
        packet.emit(hdr.empty);
#endif
    }
}

V1Switch(Parse(), Verify(), ingress(), egress(), Update(), Deparse()) main;
