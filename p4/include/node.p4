// SPDX-License-Identifier: Apache-2.0
// INT-MD at a switch: the source of INT, and what every node does when a packet leaves its queue.
#ifndef INT_NODE_P4
#define INT_NODE_P4

#if WITH_FANT
#define INT_COUNTS , in counts_t counts
#else
#define INT_COUNTS
#endif

// What a node adds nothing to: a domain that it does not know. With assignments it knows that of packets that are assigned to it.
#if WITH_ASSIGNED
#ifndef INTO_DOMAIN
#define INTO_DOMAIN 16w0x1470
#endif
#define FOREIGN(hdr) (hdr.int_md.domain != 0 && !fant && !(hdr.int_md.domain == INTO_DOMAIN && mine == 1))
#if WITH_PINT // which has an action carry, too
#define ASSIGNED_CARRY ".egress.into.carry"
#define ASSIGNED_EXTRACT ".egress.into.extract"
#else
#define ASSIGNED_CARRY ".egress.carry"
#define ASSIGNED_EXTRACT ".egress.extract"
#endif
#else
#define FOREIGN(hdr) (hdr.int_md.domain != 0 && !fant)
#endif

// IntSource marks packets of watched flows, for the egress.
control IntSource(inout headers_t hdr, inout metadata_t meta) {
    bit<32> share = 0;
    bit<32> lot = 0;

    // The instructions for packets of a flow. share is of them: those whose hash is not above it are marked.
    @name(".ingress.track") action track(bit<32> below, bit<16> bitmap, bit<16> domain, bit<8> hops, bit<1> by_port) {
        meta.source = 1;
        share = below;
        meta.bitmap = bitmap;
        meta.domain = domain;
        meta.hops = hops;
        meta.by_port = by_port;
    }

    @name(".ingress.watch") table watch {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.proto: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
        }
        actions = { track; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        watch.apply();
        bit<16> ident = hdr.ipv4.isValid() ? hdr.ipv4.id : 16w0;
        if (hdr.udp.isValid()) {
            hash(lot, HashAlgorithm.crc32, 32w0, { ident, hdr.udp.src, hdr.udp.dst, hdr.udp.len, hdr.udp.checksum }, 64w0x100000000);
        } else if (hdr.tcp.isValid()) {
            hash(lot, HashAlgorithm.crc32, 32w0, { ident, hdr.tcp.src, hdr.tcp.dst, hdr.tcp.seq, hdr.tcp.ack, hdr.tcp.offset,
                hdr.tcp.flags, hdr.tcp.window, hdr.tcp.checksum, hdr.tcp.urgent }, 64w0x100000000);
        }
        if (lot > share) {
            meta.source = 0;
        }
    }
}

// IntNode adds the node's block, or takes INT out as the sink node, and clones what is reported. A clone becomes a report, of which
// the caller makes the rest: words counts the metadata. counts are those of the port.
control IntNode(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm, in bit<1> cloned, in bit<32> node, in bit<64> clock,
        in bit<16> mtu, in bit<1> to_host, in bit<32> sink_session, out bit<8> report_words INT_COUNTS) {
    @name(".egress.reported") register<bit<48>>(512) reported; // when the queue of a port was reported last, us
    hop_t hop;
    bit<16> room = 0;
    bit<1> sink = 0;
    bit<32> session = 0;
    bit<5> words = 0;
    bit<16> grown = 0;
    bit<16> checksum = 0;
    bit<32> gone = 0; // sums of words that leave the packet, and of those that come
    bit<32> come = 0;
    bit<32> sum = 0;
    bit<1> came_with = 0;
    bit<1> watched = 0;
    bit<19> threshold = 0;
    bit<48> gap = 0;
    bit<48> last = 0;
    bit<32> queue_session = 0;
    bit<8> queue_collector = 0;
    bit<16> queue_bitmap = 0;

    // A queue of so many packets is congested. It is reported when a packet leaves it that is no probe, not more often than once in
    // so many us; bitmap says what about, for packets that carry no INT.
    @name(".egress.watch_queue") action watch_queue(bit<19> packets, bit<48> us, bit<32> clone_session, bit<8> collector, bit<16> bitmap) {
        watched = 1;
        threshold = packets;
        gap = us;
        queue_session = clone_session;
        queue_collector = collector;
        queue_bitmap = bitmap;
    }

    @name(".egress.queues") table queues {
        key = { sm.egress_port: exact; }
        actions = { watch_queue; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action take_turn() {
        reported.read(last, (bit<32>)sm.egress_port);
        bool due = last == 0 || sm.egress_global_timestamp - last >= gap;
        last = due ? sm.egress_global_timestamp : last;
        reported.write((bit<32>)sm.egress_port, last);
        watched = due ? 1w1 : 1w0;
    }

    action clear_block() {
        CLEAR_BLOCK(hdr, )
        CLEAR_RESERVED(hdr)
    }

    action insert() {
        hdr.shim.setValid();
        hdr.shim.type = INT_MD;
        hdr.shim.npt = 0;
        hdr.shim.reserved = 0;
        hdr.shim.len = 3;
        hdr.int_md.setValid();
        hdr.int_md.version = INT_VERSION;
        hdr.int_md.discard = 0;
        hdr.int_md.exceeded = 0;
        hdr.int_md.mtu = 0;
        hdr.int_md.reserved = 0;
        hdr.int_md.hops_left = meta.hops;
        hdr.int_md.bitmap = meta.bitmap;
        hdr.int_md.domain = meta.domain;
        hdr.int_md.ds_bitmap = 0;
        hdr.int_md.ds_flags = 0;
        hdr.stack.setValid();
    }

#if WITH_ASSIGNED
    bit<1> mine = 0;     // this interface adds its values to the packet
    bit<1> extracts = 0; // and takes INT out, as the last one assigned to the flow
    bit<32> into_session = 0;
    bit<8> into_collector = 0;

    // The packet's flow carries the values of this interface. A packet without INT gets it here, with this bitmap.
    @name(ASSIGNED_CARRY) action carry(bit<16> bitmap) {
        mine = 1;
        meta.bitmap = bitmap;
    }

    @name(ASSIGNED_EXTRACT) action extract(bit<16> bitmap, bit<32> clone_session, bit<8> collector) {
        mine = 1;
        extracts = 1;
        meta.bitmap = bitmap;
        into_session = clone_session;
        into_collector = collector;
    }

    @name(".egress.assigned") table assigned {
        key = {
            meta.src: exact;
            meta.dst: exact;
            meta.proto: exact;
            meta.src_port: exact;
            meta.dst_port: exact;
            sm.egress_port: exact;
        }
        actions = { carry; extract; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
#endif

    apply {
        report_words = 0;
        room = mtu;
        sink = to_host;
        session = sink_session;
        hop.node = node;
        hop.ingress = (bit<16>)meta.ingress;
        hop.egress = (bit<16>)meta.egress;
        hop.latency = (bit<32>)elapsed(meta.came, meta.left);
        hop.queue = 0;
        hop.occupancy = (bit<24>)meta.depth;
        hop.ingress_time = clock + nanoseconds(meta.came);
        hop.egress_time = clock + nanoseconds(meta.left);
        hop.logical_ingress = hop.node << 16 | (bit<32>)meta.ingress;
        hop.logical_egress = hop.node << 16 | (bit<32>)meta.egress;

        bool has_int = hdr.shim.isValid() && hdr.int_md.isValid() && hdr.stack.isValid(); // all of it was read
        bit<16> ip_len = hdr.ipv6.isValid() ? hdr.ipv6.len + 40 : hdr.ipv4.len;
        if (cloned == 1) {
            if (hdr.kept_shim.isValid() && hdr.kept_int_md.isValid() && hdr.kept_stack.isValid()) { // INT, as it came to the sink node
                hdr.shim = hdr.kept_shim;
                hdr.int_md = hdr.kept_int_md;
                hdr.kept_shim.setInvalid();
                hdr.kept_int_md.setInvalid();
                MOVE_STACK(hdr, , kept_)
                grown = 4 + ((bit<16>)hdr.shim.len << 2);
                CHECKSUM_INT(checksum, hdr);
                come = (bit<32>)(~checksum);
                CHECKSUM_STACK(checksum, hdr);
                come = come + (bit<32>)(~checksum);
                if (hdr.shim.npt == 1 && hdr.udp.isValid()) {
                    gone = (bit<32>)hdr.udp.dst;
                    come = come + INT_PORT;
                    hdr.udp.dst = INT_PORT;
                } else if (hdr.ipv4.isValid()) {
                    hdr.ipv4.dscp = INT_DSCP;
                } else if (hdr.ipv6.isValid()) {
                    hdr.ipv6.dscp = INT_DSCP;
                }
                has_int = true;
            }
        } else {
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid()) {
                CHECKSUM_INT(checksum, hdr);
                gone = (bit<32>)(~checksum);
                came_with = 1;
            }
#if WITH_ASSIGNED
            // A packet that carries INT of another kind, or is about to, is left to that. So is what was not read whole.
            if (meta.source == 0 && meta.probe == 0 && (hdr.udp.isValid() || hdr.tcp.isValid()) && hdr.shim.isValid() == has_int &&
                (!hdr.shim.isValid() || hdr.int_md.domain == INTO_DOMAIN)) {
                assigned.apply();
            }
            if (mine == 1 && came_with == 0) {
                meta.source = 1;
                meta.domain = INTO_DOMAIN;
                meta.hops = 255;
                meta.by_port = 0;
            }
            if (extracts == 1) {
                sink = 1;
                session = into_session;
                meta.collector = into_collector;
            }
#endif
            if (meta.source == 1 && ip_len + 16 <= room) {
                insert();
                grown = 16;
                has_int = true;
                if (meta.by_port == 1 && hdr.udp.isValid()) {
                    hdr.shim.npt = 1;
                    hdr.shim.original = hdr.udp.dst;
                    gone = (bit<32>)hdr.udp.dst;
                    come = INT_PORT;
                    hdr.udp.dst = INT_PORT;
                } else if (hdr.ipv4.isValid()) {
                    hdr.shim.original = (bit<16>)(hdr.ipv4.dscp ++ 2w0);
                    hdr.ipv4.dscp = INT_DSCP;
                } else if (hdr.ipv6.isValid()) {
                    hdr.shim.original = (bit<16>)(hdr.ipv6.dscp ++ 2w0);
                    hdr.ipv6.dscp = INT_DSCP;
                }
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid() && (sink == 0 || came_with == 0)) {
                bool fant = hdr.int_md.domain == FANT_DOMAIN;
                FILL_BLOCK(hdr, , hop, hdr.int_md.bitmap, words, sum)
#if WITH_FANT
                counts_t known = NO_COUNTS;
                if (fant) {
                    known = counts;
                }
                FILL_COUNTS(hdr, hdr.int_md.bitmap, fant, known, words, sum)
#else
                FILL_RESERVED(hdr, hdr.int_md.bitmap, fant, words, sum)
#endif
                if (came_with == 0) {
                    hdr.int_md.hop_words = words;
                }
                bit<16> bytes = (bit<16>)words << 2;
                if (sink == 1) {
                    clear_block(); // the report's header has it
                } else if (words == 0 || words != hdr.int_md.hop_words || FOREIGN(hdr)) {
                    clear_block(); // not what this node would add: nobody could divide the stack
                } else if (hdr.int_md.hops_left == 0) {
                    clear_block();
                    hdr.int_md.exceeded = 1;
                } else if (ip_len + grown + bytes > room || (bit<16>)hdr.shim.len + (bit<16>)words > 255) {
                    clear_block();
                    hdr.int_md.mtu = 1;
                } else {
                    hdr.int_md.hops_left = hdr.int_md.hops_left - 1;
                    hdr.shim.len = hdr.shim.len + (bit<8>)words;
                    grown = grown + bytes;
                    come = come + sum;
                }
            }
            meta.size = meta.size + grown;
            queues.apply();
            if (watched == 1 && sm.enq_qdepth >= threshold) {
                meta.congested = 1;
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid() && hdr.stack.isValid() && sink == 1) {
                meta.asked = hdr.int_md.bitmap & 0x7f80; // all but node id, which every report has, and what is reserved
#if WITH_ASSIGNED
                if (hdr.int_md.domain == INTO_DOMAIN && mine == 0) {
                    meta.asked = 0; // INT that no assigned interface took out: the values of this one are not in it
                }
#endif
                if (session != 0) {
                    meta.about = OF_SINK;
                    meta.session = session;
                    clone_preserving_field_list(CloneType.E2E, session, REPORT_FIELDS);
                }
                hdr.kept_shim = hdr.shim;
                hdr.kept_int_md = hdr.int_md;
                if (came_with == 1) {
                    CHECKSUM_STACK(checksum, hdr);
                    gone = gone + (bit<32>)(~checksum);
                }
                grown = grown - (4 + ((bit<16>)hdr.shim.len << 2));
                if (hdr.shim.npt == 1 && hdr.udp.isValid()) {
                    gone = gone + INT_PORT;
                    come = come + (bit<32>)hdr.shim.original;
                    hdr.udp.dst = hdr.shim.original;
                } else if (hdr.ipv4.isValid()) {
                    hdr.ipv4.dscp = hdr.shim.original[7:2];
                } else if (hdr.ipv6.isValid()) {
                    hdr.ipv6.dscp = hdr.shim.original[7:2];
                }
                if (hdr.int_md.discard == 1) {
                    mark_to_drop(sm);
                }
                hdr.shim.setInvalid();
                hdr.int_md.setInvalid();
                MOVE_STACK(hdr, kept_, )
                has_int = false;
            } else if (meta.congested == 1 && meta.dscp != PROBE_DSCP && meta.probe == 0) {
                take_turn();
                if (watched == 1) {
                    meta.about = OF_QUEUE;
                    meta.session = queue_session;
                    meta.collector = queue_collector;
                    meta.asked = queue_bitmap & 0x7f80;
                    if (has_int && hdr.int_md.isValid()) {
                        meta.asked = hdr.int_md.bitmap & 0x7f80;
                    }
                    clone_preserving_field_list(CloneType.E2E, queue_session, REPORT_FIELDS);
                }
            }
            if (has_int && hdr.shim.isValid() && hdr.int_md.isValid()) {
                CHECKSUM_INT(checksum, hdr);
                come = come + (bit<32>)(~checksum);
            }
        }

        // Lengths, and the checksum of TCP or UDP. What nobody changed stays, whatever it is.
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.len = hdr.ipv4.len + grown;
        } else if (hdr.ipv6.isValid()) {
            hdr.ipv6.len = hdr.ipv6.len + grown;
        }
        bit<1> complemented = 0;
        bit<16> complement = 0xffff;
        if (hdr.complement.isValid() && cloned == 0) {
            hdr.complement.value = 0xffffffff;
            complemented = 1;
        }
        if (hdr.tcp.isValid()) {
            gone = gone + (bit<32>)meta.l4_len;
            come = come + (bit<32>)(meta.l4_len + grown);
            if (complemented == 1) {
                complement = changed(0xffff, gone, come);
            } else if (gone != come) {
                hdr.tcp.checksum = changed(hdr.tcp.checksum, gone, come);
            }
        } else if (hdr.udp.isValid()) {
            gone = gone + ((bit<32>)hdr.udp.len << 1);
            hdr.udp.len = hdr.udp.len + grown;
            come = come + ((bit<32>)hdr.udp.len << 1);
            if (hdr.udp.checksum == 0) {
                complemented = 0; // there is none to keep right
            } else if (complemented == 1) {
                complement = changed(0xffff, gone, come);
            } else if (gone != come) {
                hdr.udp.checksum = changed(hdr.udp.checksum, gone, come);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
        }
        if (complemented == 1 && hdr.complement.isValid()) {
            hdr.complement.value = (bit<32>)complement;
        }

        if (cloned == 1) {
            hdr.report.setValid();
            hdr.report.type = 1;
            hdr.report.inner = 3;
            hdr.report.dropped = 0;
            hdr.report.congested = meta.congested;
            hdr.report.tracked = 0;
            hdr.report.transit = 0;
            hdr.report.reserved = 0;
            hdr.report.bitmap = meta.asked;
            hdr.report.domain = 0;
            hdr.report.ds_bitmap = 0;
            hdr.report.ds_status = 0;
            if (has_int) {
                hdr.report.tracked = 1;
            }
            if (meta.about == OF_DROP) {
                hdr.report.dropped = 1;
                hop.egress = 0xffff; // it had none yet, nor a queue
                hdr.report_drop.setValid();
                hdr.report_drop.queue = 0xff;
                hdr.report_drop.reason = meta.reason;
                hdr.report_drop.pad = 0;
                report_words = 1;
            } else if (meta.about == OF_QUEUE) {
                hdr.report.transit = hdr.report.tracked;
            }
#if WITH_ASSIGNED
            if (has_int && hdr.int_md.isValid() && hdr.int_md.domain == INTO_DOMAIN) {
                hdr.report.transit = 1; // it has some interfaces of the way, and is no path
            }
#endif
            FILL_BLOCK(hdr, report_, hop, meta.asked, report_words, sum)
        }
    }
}

#endif
