// INT-MD 2.1 in IPv4, IPv6 and VLAN, over TCP and UDP: source, transit and sink node, with telemetry report 2.0.
//
// A source marks packets by DSCP (NPT 0) or UDP port (NPT 1) and puts shim and header behind the UDP header, or behind the
// first 20 bytes of that of TCP: options stay whole behind the stack. Every node but the sink node adds its block when the
// packet leaves its queue. The sink node's own values are in the header of its report; it takes INT out, and restores what the
// source changed. Packets that are dropped, and queues that are long, are reported as far as v1model shows them.
//
// docs/p4.md says what a control plane writes.
#include <core.p4>
#include <v1model.p4>
#include "include/headers.p4"
#include "include/time.p4"
#include "include/checksum.p4"
#include "include/intmd.p4"

const bit<2> OF_SINK = 1;
const bit<2> OF_DROP = 2;
const bit<2> OF_QUEUE = 3;

// What a node adds nothing to: a domain that it does not know. into.p4 knows one more, of packets that are assigned to it.
#ifdef INTO
#define FOREIGN(hdr) (hdr.int_md.domain != 0 && !fant && !(hdr.int_md.domain == INTO_DOMAIN && mine == 1))
#else
#define FOREIGN(hdr) (hdr.int_md.domain != 0 && !fant)
#endif

#include "include/report.p4"

struct headers_t {
    REPORT_MEMBERS
    ethernet_h     ethernet;
    vlan_h         vlan;
    ipv4_h         ipv4;
    ipv4_options_h options;
    ipv6_h         ipv6;
    udp_h          udp;
    tcp_h          tcp;
    shim_h         shim;
    int_h          int_md;
    BLOCK_HEADERS()
    RESERVED_HEADERS
    stack_h        stack;
    // What the sink node has taken out, for the report. It is in no packet.
    shim_h         kept_shim;
    int_h          kept_int_md;
    stack_h        kept_stack;
}

#include "include/forward.p4"
#include "include/envelope.p4"
#ifdef RFT
#include "include/delivery.p4"
#endif

struct metadata_t {
    bit<16>  l4_len; // TCP or UDP with everything in it, modulo 2^16
    bit<8>   proto;
    bit<6>   dscp;
    bit<128> src;
    bit<128> dst;
    bit<16>  src_port;
    bit<16>  dst_port;
    // What the source was told.
    bit<1>   source;
    bit<1>   by_port;
    bit<8>   hops;
    bit<16>  bitmap;
    bit<16>  domain;
    // For the report that a clone becomes.
    @field_list(REPORT_FIELDS) bit<2>  about;
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
#ifdef RFT
    @field_list(DELIVERY_FIELDS) bit<1> own; // a report of this switch, which has come back
#endif
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: parse_vlan;
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.BadIPv4);
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
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_whole;
    }

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
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src;
        meta.dst_port = hdr.udp.dst;
        transition select(hdr.udp.dst, meta.dscp) {
            (INT_PORT, _): parse_by_port;
            (_, INT_DSCP): parse_udp_by_dscp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src;
        meta.dst_port = hdr.tcp.dst;
        transition select(meta.dscp) {
            INT_DSCP: parse_tcp_by_dscp;
            default: accept;
        }
    }

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
        packet.extract(hdr.stack, ((bit<32>)hdr.shim.len - 3) << 5);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { VERIFY_IPV4(hdr.ipv4, hdr.options); }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<1> edge = 0;
    bit<1> trusted = 0;
    bit<32> share = 0;
    bit<32> lot = 0;

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

    // The instructions for packets of a flow. share is of them: those whose hash is not above it are marked.
    action track(bit<32> below, bit<16> bitmap, bit<16> domain, bit<8> hops, bit<1> by_port) {
        meta.source = 1;
        share = below;
        meta.bitmap = bitmap;
        meta.domain = domain;
        meta.hops = hops;
        meta.by_port = by_port;
    }

    table watch {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.proto: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
        }
        actions = { track; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

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

    Forward() forward;
#ifdef RFT
    Deliver() deliver;
    bit<1> delivered = 0;
    bit<1> undelivered = 0;
#endif

    apply {
        meta.ingress = sm.ingress_port;
        meta.came = sm.ingress_global_timestamp;
#ifdef RFT
        if (meta.own == 0) {
            ingress_port.apply();
        }
#else
        ingress_port.apply();
#endif
        if (sm.checksum_error == 1 || sm.parser_error == error.BadIPv4 || (!hdr.ipv4.isValid() && !hdr.ipv6.isValid())) {
            mark_to_drop(sm); // nothing to route by
        } else {
            if (edge == 1 && hdr.shim.isValid() && trusted == 0) {
                deny();
            } else {
                acl.apply();
            }
            if (edge == 1 && !hdr.shim.isValid() && (hdr.udp.isValid() || hdr.tcp.isValid())) {
                watch.apply();
                bit<16> ident = hdr.ipv4.isValid() ? hdr.ipv4.id : 16w0;
                if (hdr.udp.isValid()) {
                    hash(lot, HashAlgorithm.crc32, 32w0, { ident, hdr.udp.src, hdr.udp.dst, hdr.udp.len, hdr.udp.checksum }, 64w0x100000000);
                } else if (hdr.tcp.isValid()) {
                    hash(lot, HashAlgorithm.crc32, 32w0, { ident, hdr.tcp.src, hdr.tcp.dst, hdr.tcp.seq, hdr.tcp.ack, hdr.tcp.offset,
                        hdr.tcp.flags, hdr.tcp.window, hdr.tcp.checksum, hdr.tcp.urgent }, 64w0x100000000);
                }
                if (lot > share) {
                    meta.source = 0;
                }
            }
#ifdef RFT
            if (meta.reason == 0 && edge == 0 && hdr.ipv4.isValid() && hdr.udp.isValid() && !hdr.shim.isValid()) {
                deliver.apply(hdr, sm, delivered, undelivered);
            }
            if (undelivered == 1) {
                mark_to_drop(sm); // counted, and not reported: that would be one more report
            }
            if (meta.reason == 0 && delivered == 0) {
                forward.apply(hdr, sm, meta.reason);
            }
#else
            if (meta.reason == 0) {
                forward.apply(hdr, sm, meta.reason);
            }
#endif
            if (meta.reason != 0) {
                drops.apply();
                mark_to_drop(sm);
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<48>>(512) reported; // when the queue of a port was reported last, us
    hop_t hop;
    bit<16> room = 0;
    bit<1> sink = 0;
    bit<32> session = 0;
    bit<5> words = 0;
    bit<8> report_words = 0;
    bit<16> grown = 0;
    bit<16> checksum = 0;
    bit<32> gone = 0; // sums of words that leave the packet, and of those that come
    bit<32> come = 0;
    bit<32> sum = 0;
    bit<1> came_with = 0;
    bit<64> clock = 0;
    bit<1> watched = 0;
    bit<19> threshold = 0;
    bit<48> gap = 0;
    bit<48> last = 0;
    bit<32> queue_session = 0;
    bit<8> queue_collector = 0;
    bit<16> queue_bitmap = 0;

    // The node's id, and what its clock shows when BMv2 starts, in nanoseconds.
    action set_device(bit<32> node, bit<64> start) {
        hop.node = node;
        clock = start;
    }

    table device {
        actions = { set_device; }
        default_action = set_device(0, 0);
        size = 1;
    }

    // Another switch is behind a port, or hosts are and this is the sink node. mtu is the largest IP packet.
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

    // A queue of so many packets is congested. It is reported when a packet leaves it that is no probe, not more often than once in
    // so many us; bitmap says what about, for packets that carry no INT.
    action watch_queue(bit<19> packets, bit<48> us, bit<32> clone_session, bit<8> collector, bit<16> bitmap) {
        watched = 1;
        threshold = packets;
        gap = us;
        queue_session = clone_session;
        queue_collector = collector;
        queue_bitmap = bitmap;
    }

    table queues {
        key = { sm.egress_port: exact; }
        actions = { watch_queue; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action take_turn() {
        reported.read(last, (bit<32>)sm.egress_port);
        bool due = last == 0 || sm.egress_global_timestamp - last >= gap;
        last = due ? sm.egress_global_timestamp : last;
        reported.write((bit<32>)sm.egress_port, last);
        watched = due ? 1w1 : 1w0;
    }

    action clear_block() {
        CLEAR_BLOCK(hdr, )
        CLEAR_RESERVED(hdr)
    }

    action insert() {
        hdr.shim.setValid();
        hdr.shim.type = INT_MD;
        hdr.shim.npt = 0;
        hdr.shim.reserved = 0;
        hdr.shim.len = 3;
        hdr.int_md.setValid();
        hdr.int_md.version = INT_VERSION;
        hdr.int_md.discard = 0;
        hdr.int_md.exceeded = 0;
        hdr.int_md.mtu = 0;
        hdr.int_md.reserved = 0;
        hdr.int_md.hops_left = meta.hops;
        hdr.int_md.bitmap = meta.bitmap;
        hdr.int_md.domain = meta.domain;
        hdr.int_md.ds_bitmap = 0;
        hdr.int_md.ds_flags = 0;
        hdr.stack.setValid();
    }

#ifdef INTO
    bit<1> mine = 0;     // this interface adds its values to the packet
    bit<1> extracts = 0; // and takes INT out, as the last one assigned to the flow
    bit<32> into_session = 0;
    bit<8> into_collector = 0;

    // The packet's flow carries the values of this interface. A packet without INT gets it here, with this bitmap.
    action carry(bit<16> bitmap) {
        mine = 1;
        meta.bitmap = bitmap;
    }

    action extract(bit<16> bitmap, bit<32> clone_session, bit<8> collector) {
        mine = 1;
        extracts = 1;
        meta.bitmap = bitmap;
        into_session = clone_session;
        into_collector = collector;
    }

    table assigned {
        key = {
            meta.src: exact;
            meta.dst: exact;
            meta.proto: exact;
            meta.src_port: exact;
            meta.dst_port: exact;
            sm.egress_port: exact;
        }
        actions = { carry; extract; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
#endif

    Envelope() envelope;
#ifdef RFT
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
        bool cloned = sm.instance_type == INGRESS_CLONE || sm.instance_type == EGRESS_CLONE;
#ifdef RFT
        if (meta.own == 1) {
            truncate((bit<32>)hdr.ipv4.len + 14); // BMv2 does not cut what comes back
        }
#endif
        device.apply();
        if (!cloned) {
            meta.egress = sm.egress_port;
            meta.depth = sm.enq_qdepth;
            meta.left = sm.egress_global_timestamp;
            egress_port.apply();
        }
        hop.ingress = (bit<16>)meta.ingress;
        hop.egress = (bit<16>)meta.egress;
        hop.latency = (bit<32>)elapsed(meta.came, meta.left);
        hop.queue = 0;
        hop.occupancy = (bit<24>)meta.depth;
        hop.ingress_time = clock + nanoseconds(meta.came);
        hop.egress_time = clock + nanoseconds(meta.left);
        hop.logical_ingress = hop.node << 16 | (bit<32>)meta.ingress;
        hop.logical_egress = hop.node << 16 | (bit<32>)meta.egress;

        bool has_int = hdr.shim.isValid() && hdr.int_md.isValid() && hdr.stack.isValid(); // all of it was read
        bit<16> ip_len = hdr.ipv6.isValid() ? hdr.ipv6.len + 40 : hdr.ipv4.len;
        if (cloned) {
            if (hdr.kept_shim.isValid() && hdr.kept_int_md.isValid() && hdr.kept_stack.isValid()) { // INT, as it came to the sink node
                hdr.shim = hdr.kept_shim;
                hdr.int_md = hdr.kept_int_md;
                hdr.stack = hdr.kept_stack;
                hdr.kept_shim.setInvalid();
                hdr.kept_int_md.setInvalid();
                hdr.kept_stack.setInvalid();
                grown = 4 + ((bit<16>)hdr.shim.len << 2);
                CHECKSUM_INT(checksum, hdr);
                come = (bit<32>)(~checksum);
                CHECKSUM_STACK(checksum, hdr);
                come = come + (bit<32>)(~checksum);
                if (hdr.shim.npt == 1 && hdr.udp.isValid()) {
                    gone = (bit<32>)hdr.udp.dst;
                    come = come + INT_PORT;
                    hdr.udp.dst = INT_PORT;
                } else if (hdr.ipv4.isValid()) {
                    hdr.ipv4.dscp = INT_DSCP;
                } else if (hdr.ipv6.isValid()) {
                    hdr.ipv6.dscp = INT_DSCP;
                }
                has_int = true;
            }
        } else {
            meta.size = (bit<16>)sm.packet_length;
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid()) {
                CHECKSUM_INT(checksum, hdr);
                gone = (bit<32>)(~checksum);
                came_with = 1;
            }
#ifdef INTO
            // A packet that carries INT of another kind, or is about to, is left to that. So is what was not read whole.
            if (meta.source == 0 && (hdr.udp.isValid() || hdr.tcp.isValid()) && hdr.shim.isValid() == has_int &&
                (!hdr.shim.isValid() || hdr.int_md.domain == INTO_DOMAIN)) {
                assigned.apply();
            }
            if (mine == 1 && came_with == 0) {
                meta.source = 1;
                meta.domain = INTO_DOMAIN;
                meta.hops = 255;
                meta.by_port = 0;
            }
            if (extracts == 1) {
                sink = 1;
                session = into_session;
                meta.collector = into_collector;
            }
#endif
            if (meta.source == 1 && ip_len + 16 <= room) {
                insert();
                grown = 16;
                has_int = true;
                if (meta.by_port == 1 && hdr.udp.isValid()) {
                    hdr.shim.npt = 1;
                    hdr.shim.original = hdr.udp.dst;
                    gone = (bit<32>)hdr.udp.dst;
                    come = INT_PORT;
                    hdr.udp.dst = INT_PORT;
                } else if (hdr.ipv4.isValid()) {
                    hdr.shim.original = (bit<16>)(hdr.ipv4.dscp ++ 2w0);
                    hdr.ipv4.dscp = INT_DSCP;
                } else if (hdr.ipv6.isValid()) {
                    hdr.shim.original = (bit<16>)(hdr.ipv6.dscp ++ 2w0);
                    hdr.ipv6.dscp = INT_DSCP;
                }
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid() && (sink == 0 || came_with == 0)) {
                bool fant = hdr.int_md.domain == FANT_DOMAIN;
                FILL_BLOCK(hdr, , hop, hdr.int_md.bitmap, words, sum)
                FILL_RESERVED(hdr, hdr.int_md.bitmap, fant, words, sum)
                if (came_with == 0) {
                    hdr.int_md.hop_words = words;
                }
                bit<16> bytes = (bit<16>)words << 2;
                if (sink == 1) {
                    clear_block(); // the report's header has it
                } else if (words == 0 || words != hdr.int_md.hop_words || FOREIGN(hdr)) {
                    clear_block(); // not what this node would add: nobody could divide the stack
                } else if (hdr.int_md.hops_left == 0) {
                    clear_block();
                    hdr.int_md.exceeded = 1;
                } else if (ip_len + grown + bytes > room || (bit<16>)hdr.shim.len + (bit<16>)words > 255) {
                    clear_block();
                    hdr.int_md.mtu = 1;
                } else {
                    hdr.int_md.hops_left = hdr.int_md.hops_left - 1;
                    hdr.shim.len = hdr.shim.len + (bit<8>)words;
                    grown = grown + bytes;
                    come = come + sum;
                }
            }
            meta.size = meta.size + grown;
            queues.apply();
            if (watched == 1 && sm.enq_qdepth >= threshold) {
                meta.congested = 1;
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid() && hdr.stack.isValid() && sink == 1) {
                meta.about = OF_SINK;
                meta.asked = hdr.int_md.bitmap & 0x7f80; // all but node id, which every report has, and what is reserved
#ifdef INTO
                if (hdr.int_md.domain == INTO_DOMAIN && mine == 0) {
                    meta.asked = 0; // INT that no assigned interface took out: the values of this one are not in it
                }
#endif
                if (session != 0) {
                    clone_preserving_field_list(CloneType.E2E, session, REPORT_FIELDS);
                }
                hdr.kept_shim = hdr.shim;
                hdr.kept_int_md = hdr.int_md;
                hdr.kept_stack = hdr.stack;
                if (came_with == 1) {
                    CHECKSUM_STACK(checksum, hdr);
                    gone = gone + (bit<32>)(~checksum);
                }
                grown = grown - (4 + ((bit<16>)hdr.shim.len << 2));
                if (hdr.shim.npt == 1 && hdr.udp.isValid()) {
                    gone = gone + INT_PORT;
                    come = come + (bit<32>)hdr.shim.original;
                    hdr.udp.dst = hdr.shim.original;
                } else if (hdr.ipv4.isValid()) {
                    hdr.ipv4.dscp = hdr.shim.original[7:2];
                } else if (hdr.ipv6.isValid()) {
                    hdr.ipv6.dscp = hdr.shim.original[7:2];
                }
                if (hdr.int_md.discard == 1) {
                    mark_to_drop(sm);
                }
                hdr.shim.setInvalid();
                hdr.int_md.setInvalid();
                hdr.stack.setInvalid();
                has_int = false;
            } else if (meta.congested == 1 && meta.dscp != PROBE_DSCP) {
                take_turn();
                if (watched == 1) {
                    meta.about = OF_QUEUE;
                    meta.collector = queue_collector;
                    meta.asked = queue_bitmap & 0x7f80;
                    if (has_int && hdr.int_md.isValid()) {
                        meta.asked = hdr.int_md.bitmap & 0x7f80;
                    }
                    clone_preserving_field_list(CloneType.E2E, queue_session, REPORT_FIELDS);
                }
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid()) {
                CHECKSUM_INT(checksum, hdr);
                come = come + (bit<32>)(~checksum);
            }
        }

        // Lengths, and the checksum of TCP or UDP. What nobody changed stays, whatever it is.
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.len = hdr.ipv4.len + grown;
        } else if (hdr.ipv6.isValid()) {
            hdr.ipv6.len = hdr.ipv6.len + grown;
        }
        bit<1> complemented = 0;
        bit<16> complement = 0xffff;
        if (hdr.complement.isValid() && !cloned) {
            hdr.complement.value = 0xffffffff;
            complemented = 1;
        }
        if (hdr.tcp.isValid()) {
            gone = gone + (bit<32>)meta.l4_len;
            come = come + (bit<32>)(meta.l4_len + grown);
            if (complemented == 1) {
                complement = changed(0xffff, gone, come);
            } else if (gone != come) {
                hdr.tcp.checksum = changed(hdr.tcp.checksum, gone, come);
            }
        } else if (hdr.udp.isValid()) {
            gone = gone + ((bit<32>)hdr.udp.len << 1);
            hdr.udp.len = hdr.udp.len + grown;
            come = come + ((bit<32>)hdr.udp.len << 1);
            if (hdr.udp.checksum == 0) {
                complemented = 0; // there is none to keep right
            } else if (complemented == 1) {
                complement = changed(0xffff, gone, come);
            } else if (gone != come) {
                hdr.udp.checksum = changed(hdr.udp.checksum, gone, come);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
        }
        if (complemented == 1 && hdr.complement.isValid()) {
            hdr.complement.value = (bit<32>)complement;
        }

        if (cloned) {
            hdr.report.setValid();
            hdr.report.type = 1;
            hdr.report.inner = 3;
            hdr.report.dropped = 0;
            hdr.report.congested = meta.congested;
            hdr.report.tracked = 0;
            hdr.report.transit = 0;
            hdr.report.reserved = 0;
            hdr.report.bitmap = meta.asked;
            hdr.report.domain = 0;
            hdr.report.ds_bitmap = 0;
            hdr.report.ds_status = 0;
            if (has_int) {
                hdr.report.tracked = 1;
            }
            if (meta.about == OF_DROP) {
                hdr.report.dropped = 1;
                hop.egress = 0xffff; // it had none yet, nor a queue
                hdr.report_drop.setValid();
                hdr.report_drop.queue = 0xff;
                hdr.report_drop.reason = meta.reason;
                hdr.report_drop.pad = 0;
                report_words = 1;
            } else if (meta.about == OF_QUEUE) {
                hdr.report.transit = hdr.report.tracked;
            }
#ifdef INTO
            if (has_int && hdr.int_md.isValid() && hdr.int_md.domain == INTO_DOMAIN) {
                hdr.report.transit = 1; // it has some interfaces of the way, and is no path
            }
#endif
            FILL_BLOCK(hdr, report_, hop, meta.asked, report_words, sum)
#ifdef RFT
            spread.apply(meta.collector, tag, unassigned);
            if (unassigned == 0) {
                envelope.apply(hdr, hop.node, meta.hardware, meta.collector, meta.size, report_words);
            }
            if (tag != 0 && hdr.report_ethernet.isValid()) {
                hdr.report_udp.src = tag;
                meta.own = 1;
                recirculate_preserving_field_list(DELIVERY_FIELDS);
            }
#else
            envelope.apply(hdr, hop.node, meta.hardware, meta.collector, meta.size, report_words);
#endif
            if (!hdr.report_ethernet.isValid()) {
                mark_to_drop(sm); // no collector
            }
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
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.shim);
        packet.emit(hdr.int_md);
        EMIT_BLOCK(packet, hdr, )
        EMIT_RESERVED(packet, hdr)
        packet.emit(hdr.stack);
    }
}

V1Switch(Parse(), Verify(), ingress(), egress(), Update(), Deparse()) main;
