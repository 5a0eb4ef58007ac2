// SPDX-License-Identifier: Apache-2.0
// Source-routed probes: the sender writes the way, and every switch on it writes what it saw. headers_t has ROUTE_MEMBERS
// behind Ethernet and VLAN, and PATH_MEMBERS behind UDP.
#ifndef ROUTE_P4
#define ROUTE_P4

#define PATH_PORT 16w2222
#define TYPE_ROUTE 16w0x0700
#define TYPE_LABELS 16w0x0701
#define PATH_FIXED 16w76   // UDP header, route and action id
#define PATH_LABEL 16w22
#define PATH_EMPTY 16w12   // UDP header and action id: a probe that a generator gives its route
#define PATH_PORTS 16w64
#define PATH_LONGEST 16w2892 // 128 labels

header path_route_h {
    bit<512> ports; // 4 bits each, less 1, the next one lowest
}

header empty_h {
    bit<32> id; // action id
}

header path_label_h {
    bit<8>  device;
    bit<9>  ingress;
    bit<9>  egress;
    bit<48> ingress_time; // us, as published
    bit<32> enq_time;
    bit<19> enq_depth;
    bit<32> queue_delay;
    bit<19> deq_depth;
}

header route_h {
    bit<8> reserved;
    bit<8> len; // bytes: 2 and 2 for each entry
}

header entry_h {
    bit<8> reserved;
    bit<8> port;
}

// Entries behind the first one, 15 at most.
#if WITH_VARBIT
header entries_h {
    varbit<240> rest;
}
#define ENTRIES_MEMBERS entries_h entries;
#define EMIT_ENTRIES(packet, hdr) packet.emit(hdr.entries);
#else
#define ENTRIES_MEMBERS piece128_h entries8; piece64_h entries4; piece32_h entries2; piece16_h entries1;
#define EMIT_ENTRIES(packet, hdr) packet.emit(hdr.entries8); packet.emit(hdr.entries4); packet.emit(hdr.entries2); packet.emit(hdr.entries1);
#endif

header type_h {
    bit<16> type;
}

header labels_h {
    bit<8> type;
    bit<8> count;
}

header label_h {
    bit<8>  device;
    bit<8>  ingress;
    bit<8>  egress;
    bit<8>  reserved;
    bit<48> ingress_time; // us, as published
    bit<48> egress_time;
    bit<32> enq_time;
    bit<8>  reserved2;
    bit<24> enq_depth;
    bit<32> queue_delay;
    bit<8>  reserved3;
    bit<24> deq_depth;
}

#define ROUTE_MEMBERS route_h route; entry_h entry; ENTRIES_MEMBERS type_h type2; labels_h labels; label_h label;
#define PATH_MEMBERS path_route_h path; path_label_h path_label;
#define EMIT_ROUTE(packet, hdr) \
    packet.emit(hdr.route); packet.emit(hdr.entry); EMIT_ENTRIES(packet, hdr) packet.emit(hdr.type2); packet.emit(hdr.labels); packet.emit(hdr.label);
#define EMIT_PATH(packet, hdr) packet.emit(hdr.path); packet.emit(hdr.path_label);

#endif
