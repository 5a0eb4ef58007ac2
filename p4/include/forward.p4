// Routing of IPv4 and IPv6, as plain as it can be. reason says why a packet has no way to go, and is 0 if it has.
#ifndef FORWARD_P4
#define FORWARD_P4

#define REASON_TTL 8w26
#define REASON_NO_ROUTE 8w29
#define REASON_DENIED 8w80

control Forward(inout headers_t hdr, inout standard_metadata_t sm, inout bit<8> reason) {
    action forward(bit<9> port, bit<48> dst_mac, bit<48> src_mac) {
        sm.egress_spec = port;
        hdr.ethernet.dst = dst_mac;
        hdr.ethernet.src = src_mac;
    }

    action no_route() {
        reason = REASON_NO_ROUTE;
    }

    table forwarding4 {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; no_route; }
        default_action = no_route();
        size = 1024;
    }

    table forwarding6 {
        key = { hdr.ipv6.dst: lpm; }
        actions = { forward; no_route; }
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
    }
}

#endif
