// SPDX-License-Identifier: Apache-2.0
// Frames that are not IP, such as ARP and LLDP: a table passes them on, hands them to the controller, or drops them.
#ifndef OTHER_P4
#define OTHER_P4

control Other(inout headers_t hdr, inout standard_metadata_t sm) {
    bit<16> type = 0; // behind a VLAN tag

    @name(".ingress.pass") action pass(bit<9> port) {
        sm.egress_spec = port;
    }

    @name(".ingress.punt") action punt() {
        sm.egress_spec = CPU_PORT;
    }

    @name(".ingress.drop") action drop() {
        mark_to_drop(sm);
    }

    @name(".ingress.other") table other {
        key = {
            sm.ingress_port: ternary;
            hdr.ethernet.dst: ternary;
            type: ternary;
        }
        actions = { pass; punt; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        type = hdr.vlan.isValid() ? hdr.vlan.type : hdr.ethernet.type;
        other.apply();
    }
}

#endif
