// SPDX-License-Identifier: Apache-2.0
// Both ends of a route of INT-path: the generator writes a route into an empty probe, and the collector sends a probe with its
// route used up to where its labels are read.
#ifndef PATH_P4
#define PATH_P4

control Ends(inout headers_t hdr, inout standard_metadata_t sm, out bit<1> collected) {
    // The ports of a route, 4 bits each and less 1, the first one lowest. The checksum of UDP becomes 0, as with a label.
    @name(".ingress.generate") action generate(bit<512> ports) {
        hdr.path.setValid();
        hdr.path.ports = ports;
        hdr.ipv4.len = hdr.ipv4.len + PATH_PORTS;
        hdr.udp.len = hdr.udp.len + PATH_PORTS;
        hdr.udp.checksum = 0;
    }

    @name(".ingress.generators") table generators {
        key = {
            sm.ingress_port: exact;
            hdr.empty.id: exact;
        }
        actions = { generate; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    @name(".ingress.collect") action collect(bit<9> port, bit<48> dst_mac, bit<48> src_mac) {
        collected = 1;
        sm.egress_spec = port;
        hdr.ethernet.dst = dst_mac;
        hdr.ethernet.src = src_mac;
    }

    // Where probes to an address end.
    @name(".ingress.collectors") table collectors {
        key = { hdr.ipv4.dst: exact; }
        actions = { collect; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        collected = 0;
        if (hdr.empty.isValid() && hdr.ipv4.isValid() && hdr.udp.isValid()) {
            generators.apply();
            if (!hdr.path.isValid()) {
                mark_to_drop(sm); // no route
                collected = 1;
            }
        }
        if (hdr.path.isValid() && hdr.ipv4.isValid() && hdr.path.ports == 0) {
            collectors.apply();
        }
    }
}

#endif
