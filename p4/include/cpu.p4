// SPDX-License-Identifier: Apache-2.0
// The port of the controller: packets leave and come by it as P4Runtime's packet-in and packet-out.
#ifndef CPU_P4
#define CPU_P4

#ifndef CPU_PORT
#define CPU_PORT 9w510
#endif

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_h {
    bit<9> egress_port;
    bit<7> pad;
}

#endif
