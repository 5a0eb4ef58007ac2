// SPDX-License-Identifier: Apache-2.0
// Delivery of reports over assigned paths at assigned rates (RFT). A path is a source address and a UDP source port: the
// switch that makes a report, and the tag of one of its paths to a collector. headers_t has REPORT_MEMBERS.
#ifndef DELIVERY_P4
#define DELIVERY_P4

#define DELIVERY_FIELDS 2 // what a report keeps when it comes back into the switch that made it

// Spread assigns a path to a report before it gets its headers. Without an entry reports leave as without RFT.
control Spread(inout bit<8> collector, inout bit<16> tag, inout bit<1> refused) {
    register<bit<16>>(1) turn;
    counter(1, CounterType.packets) unassigned;
    bit<16> lot = 0;

    action take(bit<8> to, bit<16> path) {
        collector = to;
        tag = path;
    }

    // No path is assigned to it.
    action withhold() {
        refused = 1;
        unassigned.count(0);
    }

    table share {
        key = { lot: lpm; }
        actions = { take; withhold; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    // Steps of the golden ratio: among any number of reports in a row, each prefix of lots has its share, with an error of
    // a few reports at most.
    action draw() {
        turn.read(lot, 0);
        lot = lot + 40503;
        turn.write(0, lot);
    }

    apply {
        draw();
        share.apply();
    }
}

// Deliver sends reports on by their path. Packets of other addresses than those of its entries are none of its business.
control Deliver(inout headers_t hdr, inout standard_metadata_t sm, inout bit<1> done, inout bit<1> dropped) {
    register<bit<64>>(1024) free; // when what a path has carried is paid for by its rate, in 2^-16 us
    counter(1024, CounterType.packets) sent;
    counter(1024, CounterType.packets) refused;
    bit<10> path = 0;
    bit<64> price = 0;
    bit<64> most = 0;
    bit<1> metered = 0;
    bit<1> over = 0;

    // A switch on the way.
    action pass(bit<9> port) {
        done = 1;
        sm.egress_spec = port;
    }

    // The switch that made it. A byte costs so many 2^-24 us, and reports may come earlier by so many us than the rate allows.
    action charge(bit<9> port, bit<10> index, bit<40> cost, bit<32> burst) {
        done = 1;
        sm.egress_spec = port;
        metered = 1;
        path = index;
        price = ((bit<64>)hdr.ipv4.len + 14) * (bit<64>)cost >> 8;
        most = (bit<64>)burst << 16;
    }

    action refuse() {
        done = 1;
        over = 1;
    }

    table paths {
        key = {
            hdr.ipv4.src: exact;
            hdr.udp.src: ternary;
        }
        actions = { pass; charge; refuse; NoAction; }
        default_action = NoAction();
        size = 4096;
    }

    // The virtual scheduling algorithm (ITU-T I.371). Times are compared modulo 2^64.
    action collect() {
        bit<64> now = (bit<64>)sm.ingress_global_timestamp << 16;
        bit<64> then = 0;
        free.read(then, (bit<32>)path);
        bit<64> ahead = then - now;
        ahead = ahead[63:63] == 1 ? 64w0 : ahead;
        over = ahead > most ? 1w1 : 1w0;
        then = ahead > most ? then : now + ahead + price;
        free.write((bit<32>)path, then);
    }

    apply {
        paths.apply();
        if (done == 1) {
            if (metered == 1) {
                collect();
            }
            if (over == 1) {
                refused.count((bit<32>)path);
                dropped = 1;
            } else if (hdr.ipv4.ttl <= 1) {
                dropped = 1; // it went round in circles
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                sent.count((bit<32>)path);
            }
        }
    }
}

#endif
