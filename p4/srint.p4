// SPDX-License-Identifier: Apache-2.0
// Source-routed probes: the sender writes the way, and every switch on it writes what it saw.
//
//   INT-path   UDP to 2222, 64 bytes of 4-bit ports, labels of 22 bytes (decode/srint/FORMAT.md)
//   INT-Probe  EtherType 0x0700, 8-bit ports, labels of 32 bytes
//   wide       the route of INT-Probe in front of an IPv4 packet with INT-MD 2.1 over UDP: 8-bit ports, and the sender's
//              instruction bitmap says what switches write. A closer look at a part of the network is another bitmap in
//              other probes; no switch is written.
//
// docs/p4.md says what a control plane writes, and what differs from the programs that were published.
#include <core.p4>
#include <v1model.p4>
#include "include/headers.p4"
#include "include/time.p4"
#include "include/checksum.p4"
#include "include/intmd.p4"
#include "include/route.p4"

struct headers_t {
    ethernet_h     ethernet;
    ROUTE_MEMBERS
    ipv4_h         ipv4;
    ipv4_options_h options;
    udp_h          udp;
    PATH_MEMBERS
    shim_h         shim;
    int_h          int_md;
    BLOCK_HEADERS()
    RESERVED_HEADERS
    stack_h        stack;
}

struct metadata_t {}

#include "include/probes.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_ROUTE: parse_route;
            TYPE_LABELS: parse_labels;
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // A route has an entry at least: with the last one a switch takes the route away.
    state parse_route {
        packet.extract(hdr.route);
        verify(hdr.route.len >= 4 && hdr.route.len <= 34 && (hdr.route.len & 1) == 0, error.BadRoute);
        packet.extract(hdr.entry);
        packet.extract(hdr.entries, ((bit<32>)hdr.route.len - 4) << 3);
        packet.extract(hdr.type2);
        transition select(hdr.type2.type) {
            TYPE_LABELS: parse_labels;
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_labels {
        packet.extract(hdr.labels);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.BadIPv4);
        transition select(hdr.ipv4.ihl) {
            5: parse_l4;
            default: parse_options;
        }
    }

    state parse_options {
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition accept;
    }

    state parse_l4 {
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.offset, hdr.ipv4.proto) {
            (0, 0, PROTO_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst) {
            PATH_PORT: parse_path;
            INT_PORT: parse_shim;
            default: accept;
        }
    }

    state parse_path {
        verify(hdr.udp.len >= PATH_FIXED && hdr.udp.len <= PATH_LONGEST && hdr.ipv4.len >= hdr.udp.len + 20, error.BadRoute);
        packet.extract(hdr.path);
        transition accept;
    }

    state parse_shim {
        packet.extract(hdr.shim);
        verify(hdr.shim.type == INT_MD && hdr.shim.npt == 1 && hdr.shim.len >= 3, error.BadShim);
        verify(hdr.udp.len >= 12 + ((bit<16>)hdr.shim.len << 2) && hdr.ipv4.len >= hdr.udp.len + 20, error.BadShim);
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
    action drop() {
        mark_to_drop(sm);
    }

    // Everything that has no route of its own. As the programs that were published, this changes neither TTL nor addresses.
    action forward(bit<9> port) {
        sm.egress_spec = port;
    }

    table forwarding {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }

    Follow() follow;

    apply {
        if (sm.checksum_error == 1 || (sm.parser_error != error.NoError && !hdr.shim.isValid())) {
            drop(); // a route that cannot be read leads nowhere; INT that cannot be read is payload
        } else if (hdr.route.isValid() || hdr.path.isValid()) {
            follow.apply(hdr, sm);
            if (hdr.type2.isValid() && !hdr.route.isValid()) {
                hdr.ethernet.type = hdr.type2.type;
                hdr.type2.setInvalid();
            }
        } else if (hdr.ipv4.isValid()) {
            forwarding.apply();
        } else {
            drop();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    hop_t hop;
    bit<64> clock = 0;
    bit<16> room = 0;
    bit<5> words = 0;
    bit<16> checksum = 0;
    bit<32> gone = 0; // sums of words that leave the packet, and of those that come
    bit<32> come = 0;
    bit<32> sum = 0;

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

    // The largest IP packet that leaves by a port.
    action set_mtu(bit<16> mtu) {
        room = mtu;
    }

    table port_mtu {
        key = { sm.egress_port: exact; }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = 512;
    }

    action clear_block() {
        CLEAR_BLOCK(hdr, )
        CLEAR_RESERVED(hdr)
    }

    Labels() labels;

    apply {
#ifdef RECORD
        log_msg("intrinsic {} {} {} {} {} {} {} {} {}", { sm.instance_type, sm.ingress_port, sm.egress_port, sm.packet_length,
            sm.ingress_global_timestamp, sm.egress_global_timestamp, sm.enq_timestamp, sm.enq_qdepth, sm.deq_timedelta });
        log_msg("depth {}", { sm.deq_qdepth });
#endif
        device.apply();
        port_mtu.apply();
        if (hdr.labels.isValid() || hdr.path.isValid()) {
            labels.apply(hdr, sm, hop.node, room);
        } else if (hdr.stack.isValid() && hdr.int_md.isValid() && hdr.shim.isValid() && hdr.udp.isValid() && hdr.ipv4.isValid()) {
            // All of INT was read.
            bool fant = hdr.int_md.domain == FANT_DOMAIN;
            hop.ingress = (bit<16>)sm.ingress_port;
            hop.egress = (bit<16>)sm.egress_port;
            hop.latency = (bit<32>)elapsed(sm.ingress_global_timestamp, sm.egress_global_timestamp);
            hop.queue = 0;
            hop.occupancy = (bit<24>)sm.enq_qdepth;
            hop.ingress_time = clock + nanoseconds(sm.ingress_global_timestamp);
            hop.egress_time = clock + nanoseconds(sm.egress_global_timestamp);
            hop.logical_ingress = hop.node << 16 | (bit<32>)sm.ingress_port;
            hop.logical_egress = hop.node << 16 | (bit<32>)sm.egress_port;
            CHECKSUM_INT(checksum, hdr);
            gone = (bit<32>)(~checksum) + ((bit<32>)hdr.udp.len << 1); // the length is in the pseudo header, too
            FILL_BLOCK(hdr, , hop, hdr.int_md.bitmap, words, sum)
            FILL_RESERVED(hdr, hdr.int_md.bitmap, fant, words, sum)
            bit<16> bytes = (bit<16>)words << 2;
            if (words == 0 || words != hdr.int_md.hop_words || (hdr.int_md.domain != 0 && !fant)) {
                clear_block(); // not what this node would add: nobody could divide the stack
            } else if (hdr.int_md.hops_left == 0) {
                clear_block();
                hdr.int_md.exceeded = 1;
            } else if (hdr.ipv4.len + bytes > room || (bit<16>)hdr.shim.len + (bit<16>)words > 255) {
                clear_block();
                hdr.int_md.mtu = 1;
            } else {
                hdr.int_md.hops_left = hdr.int_md.hops_left - 1;
                hdr.shim.len = hdr.shim.len + (bit<8>)words;
                hdr.ipv4.len = hdr.ipv4.len + bytes;
                hdr.udp.len = hdr.udp.len + bytes;
                come = sum;
            }
            CHECKSUM_INT(checksum, hdr);
            come = come + (bit<32>)(~checksum) + ((bit<32>)hdr.udp.len << 1);
            if (hdr.complement.isValid()) {
                hdr.complement.value = 0xffffffff;
                if (hdr.udp.checksum != 0) {
                    hdr.complement.value = (bit<32>)changed(0xffff, gone, come);
                }
            } else if (hdr.udp.checksum != 0) {
                hdr.udp.checksum = changed(hdr.udp.checksum, gone, come);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { UPDATE_IPV4(hdr.ipv4.isValid(), hdr.ipv4, hdr.options); }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        EMIT_ROUTE(packet, hdr)
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.udp);
        EMIT_PATH(packet, hdr)
        packet.emit(hdr.shim);
        packet.emit(hdr.int_md);
        EMIT_BLOCK(packet, hdr, )
        EMIT_RESERVED(packet, hdr)
        packet.emit(hdr.stack);
    }
}

V1Switch(Parse(), Verify(), ingress(), egress(), Update(), Deparse()) main;
