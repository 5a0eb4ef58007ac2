// SPDX-License-Identifier: Apache-2.0
// INT-MD 2.1 in IPv4, IPv6 and VLAN, over TCP and UDP: source, transit and sink node, with telemetry report 2.0. It is hopscope.p4
// without its other parts.
//
// A source marks packets by DSCP (NPT 0) or UDP port (NPT 1) and puts shim and header behind the UDP header, or behind the
// first 20 bytes of that of TCP: options stay whole behind the stack. Every node but the sink node adds its block when the
// packet leaves its queue. The sink node's own values are in the header of its report; it takes INT out, and restores what the
// source changed. Packets that are dropped, and queues that are long, are reported as far as v1model shows them.
//
// docs/p4.md says what a control plane writes.
#ifndef WITH_ASSIGNED
#define WITH_ASSIGNED 0
#endif
#define WITH_FANT 0
#define WITH_PINT 0
#define WITH_PROBES 0
#define WITH_ECMP 0
#define WITH_CPU 0
#include "hopscope.p4"
