// SPDX-License-Identifier: Apache-2.0
// Routing of IPv4 and IPv6, as plain as it can be. reason says why a packet has no way to go, and is 0 if it has. With
// WITH_ECMP a route may have several next hops.
#ifndef FORWARD_P4
#define FORWARD_P4

#define REASON_TTL 8w26
#define REASON_NO_ROUTE 8w29
#define REASON_DENIED 8w80

control Forward(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t sm, inout bit<8> reason) {
#if WITH_ECMP
    bit<32> word = 0;
    bit<32> flow = 0;
    bit<16> group = 0;
    bit<16> count = 0;
    bit<16> chosen = 0;
#endif

    action forward(bit<9> port, bit<48> dst_mac, bit<48> src_mac) {
        sm.egress_spec = port;
        hdr.ethernet.dst = dst_mac;
        hdr.ethernet.src = src_mac;
    }

    action no_route() {
        reason = REASON_NO_ROUTE;
    }

#if WITH_ECMP
    // One of so many members of a group, by the flow. Without members there is no route.
    action spread(bit<16> to_group, bit<16> members) {
        group = to_group;
        count = members;
        reason = members == 0 ? REASON_NO_ROUTE : 8w0;
    }

    // What the switch adds to the hash of a flow, so that switches in a row choose independently.
    action set_salt(bit<32> value) {
        word = value;
    }

    table salt {
        actions = { set_salt; }
        default_action = set_salt(0);
        size = 1;
    }

    table member {
        key = { group: exact; chosen: exact; }
        actions = { forward; no_route; }
        default_action = no_route();
        size = 4096;
    }

#define SPREAD spread;
#else
#define SPREAD
#endif
    table forwarding4 {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; SPREAD no_route; }
        default_action = no_route();
        size = 1024;
    }

    table forwarding6 {
        key = { hdr.ipv6.dst: lpm; }
        actions = { forward; SPREAD no_route; }
        default_action = no_route();
        size = 1024;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl <= 1) {
                reason = REASON_TTL;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                forwarding4.apply();
            }
        } else {
            if (hdr.ipv6.hop_limit <= 1) {
                reason = REASON_TTL;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                forwarding6.apply();
            }
        }
#if WITH_ECMP
        if (count != 0) {
            // The port as the sender wrote it: INT by port has it in the shim. The sum breaks the linearity of the CRC, which would
            // let all switches choose alike.
            bit<16> dst_port = meta.dst_port;
            if (hdr.shim.isValid() && hdr.shim.npt == 1) {
                dst_port = hdr.shim.original;
            }
            salt.apply();
            hash(flow, HashAlgorithm.crc32, 32w0, { meta.src, meta.dst, meta.proto, meta.src_port, dst_port }, 64w0x100000000);
            word = word + flow;
            hash(chosen, HashAlgorithm.crc32, 16w0, { word }, count);
            member.apply();
        }
#endif
    }
}

#endif
