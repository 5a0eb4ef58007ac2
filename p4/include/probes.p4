// SPDX-License-Identifier: Apache-2.0
// What a switch does to source-routed probes. headers_t has ROUTE_MEMBERS and PATH_MEMBERS.
#ifndef PROBES_P4
#define PROBES_P4

// Follow takes the next step of a route. With the last entry of a route in front of other headers, that goes, too, and type2 is
// the EtherType of what follows. TTL and addresses stay, as published.
control Follow(inout headers_t hdr, inout standard_metadata_t sm) {
    apply {
        if (hdr.route.isValid()) {
            sm.egress_spec = (bit<9>)hdr.entry.port;
            hdr.entry.setInvalid();
            if (hdr.route.len == 4) {
                hdr.route.setInvalid();
            } else {
                hdr.route.len = hdr.route.len - 2;
            }
        } else {
            sm.egress_spec = (bit<9>)hdr.path.ports[3:0] + 1;
            hdr.path.ports = hdr.path.ports >> 4;
        }
    }
}

// Labels writes what the switch saw into a probe of INT-Probe or INT-path, as far as there is room for it.
control Labels(inout headers_t hdr, in standard_metadata_t sm, in bit<32> node, in bit<16> room) {
    action push_label() {
        hdr.label.setValid();
        hdr.label.device = (bit<8>)node;
        hdr.label.ingress = (bit<8>)sm.ingress_port;
        hdr.label.egress = (bit<8>)sm.egress_port;
        hdr.label.reserved = 0;
        hdr.label.ingress_time = sm.ingress_global_timestamp;
        hdr.label.egress_time = sm.egress_global_timestamp;
        hdr.label.enq_time = sm.enq_timestamp;
        hdr.label.reserved2 = 0;
        hdr.label.enq_depth = (bit<24>)sm.enq_qdepth;
        hdr.label.queue_delay = sm.deq_timedelta;
        hdr.label.reserved3 = 0;
        hdr.label.deq_depth = (bit<24>)sm.deq_qdepth;
        hdr.labels.count = hdr.labels.count + 1;
    }

    // The checksum of UDP becomes 0, as published; that of IPv4 is right.
    action push_path_label() {
        hdr.path_label.setValid();
        hdr.path_label.device = (bit<8>)node;
        hdr.path_label.ingress = sm.ingress_port;
        hdr.path_label.egress = sm.egress_port;
        hdr.path_label.ingress_time = sm.ingress_global_timestamp;
        hdr.path_label.enq_time = sm.enq_timestamp;
        hdr.path_label.enq_depth = sm.enq_qdepth;
        hdr.path_label.queue_delay = sm.deq_timedelta;
        hdr.path_label.deq_depth = sm.deq_qdepth;
        hdr.ipv4.len = hdr.ipv4.len + PATH_LABEL;
        hdr.udp.len = hdr.udp.len + PATH_LABEL;
        hdr.udp.checksum = 0;
    }

    apply {
        if (hdr.labels.isValid()) {
            if (hdr.labels.count < 255) {
                push_label();
            }
        } else if (hdr.path.isValid() && hdr.udp.isValid() && hdr.ipv4.isValid()) {
            if (hdr.udp.len + PATH_LABEL <= PATH_LONGEST && hdr.ipv4.len + PATH_LABEL <= room) {
                push_path_label();
            }
        }
    }
}

#endif
