// SPDX-License-Identifier: Apache-2.0
// PINT at a switch: which packets carry a digest, what the switch writes into it, and what the last one reports.
#ifndef PINT_P4
#define PINT_P4

// DigestSource decides which packets of watched flows carry a digest from here on, and by which plan.
control DigestSource(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t sm) {
    @name(".ingress.last_id") register<bit<17>>(4096) last_id; // by flow: 1 and the IPv4 identification of its last packet
    @name(".ingress.stuck_ids") counter(512, CounterType.packets) stuck_ids; // by ingress port: packets whose identification is that of the one before
    bit<32> share = 0;
    bit<32> lot = 0;
    bit<32> flow = 0;
    bit<17> now = 0;
    bit<17> last = 0;
    bit<1> by_ip = 0;

    // Packets of a flow whose hash is not above below carry a digest by the plan of that epoch. With ip_id their id is the
    // identification of IPv4, as far as it changes, and else a hash of the L4 header.
    @name(PINT_CARRY) action carry(bit<32> below, bit<8> epoch, bit<1> ip_id) {
        meta.carries = 1;
        share = below;
        meta.epoch = epoch;
        by_ip = ip_id;
    }

    @name(PINT_WATCH) table watch {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.proto: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
        }
        actions = { carry; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    action remember() {
        last_id.read(last, flow);
        last_id.write(flow, now);
    }

    apply {
        watch.apply();
        if (meta.carries == 1) {
            if (hdr.udp.isValid()) {
                hash(meta.id, HashAlgorithm.crc32, 32w0, { hdr.udp.src, hdr.udp.dst, hdr.udp.len, hdr.udp.checksum }, 64w0x100000000);
            } else if (hdr.tcp.isValid()) {
                hash(meta.id, HashAlgorithm.crc32, 32w0, { hdr.tcp.src, hdr.tcp.dst, hdr.tcp.seq, hdr.tcp.ack, hdr.tcp.offset,
                    hdr.tcp.flags, hdr.tcp.window, hdr.tcp.checksum, hdr.tcp.urgent }, 64w0x100000000);
            }
            if (by_ip == 1 && hdr.ipv4.isValid()) {
                // A sender that sets DF may leave the identification as it is (RFC 6864), and all its packets would be one.
                hash(flow, HashAlgorithm.crc32, 32w0, { meta.src, meta.dst, meta.proto, meta.src_port, meta.dst_port }, 32w4096);
                now = 1w1 ++ hdr.ipv4.id;
                remember();
                if (hdr.ipv4.dont_fragment == 1 && last == now) {
                    stuck_ids.count((bit<32>)sm.ingress_port);
                } else {
                    meta.id = (bit<32>)hdr.ipv4.id;
                }
            }
            bit<32> word = meta.id;
            CRC(lot, word);
            if (lot > share) {
                meta.carries = 0;
            }
        }
    }
}

// Digest writes into the digest of a packet, which it gives to one that has to carry it and has none. tells is whether the digest is
// reported: behind the last switch, and where a loop was found, not more often than once in gap us.
control Digest(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t sm, in bit<32> node, in bit<64> load, in bit<16> room,
        in bit<1> last_switch, in bit<48> gap, out bit<1> tells) {
    @name(".egress.looped") register<bit<48>>(512) looped; // when a loop was reported at a port last, us
    @name(".egress.incomplete") counter(512, CounterType.packets) incomplete; // by egress port: packets to hosts whose digest was kept back
    bit<48> last = 0;
    bit<1> due = 0;
    bit<1> known = 0;
    bit<32> set_k = 0;
    bit<32> lot = 0;
    bit<8> set = 255;
    bit<32> limit = 0;
    bit<32> hop = 0;
    bit<8> again = 0;

    // The plans that this switch holds. A digest by another one is left alone, marked, and not reported.
    @name(".egress.set_plan") action set_plan(bit<32> k_set, bit<1> wide_digest) {
        set_k = k_set;
        meta.wide = wide_digest;
        known = 1;
    }

    @name(".egress.plan") table plan {
        key = { hdr.pint.epoch: exact; }
        actions = { set_plan; NoAction; }
        default_action = NoAction();
        size = 4;
    }

    @name(".egress.carry") action carry(bit<8> which) {
        set = which;
    }

    // The set of queries of a packet.
    @name(".egress.pint_set") table pint_set {
        key = { hdr.pint.epoch: exact; lot: range; }
        actions = { carry; }
        default_action = carry(255);
        size = 64;
    }

    @name(".egress.at_most") action at_most(bit<32> most) {
        limit = most;
    }

    @name(".egress.nobody") action nobody() {
        known = 0;
    }

    // 2^32 / hop - 1, the same in all plans. Beyond the last entry nobody writes; that is so for packets that are marked, too.
    @name(".egress.pint_replace") table pint_replace {
        key = { hop: exact; }
        actions = { at_most; nobody; }
        default_action = nobody();
        size = 64;
    }

    action take_turn() {
        looped.read(last, (bit<32>)sm.egress_port);
        due = (last == 0 || sm.egress_global_timestamp - last >= gap) ? 1w1 : 1w0;
        last = due == 1 ? sm.egress_global_timestamp : last;
        looped.write((bit<32>)sm.egress_port, last);
    }

    Hash() hashed;
    @name(".egress.path0") Path() path0;
    @name(".egress.path1") Path() path1;
    @name(".egress.latency") Dynamic() latency;
    @name(".egress.utilization") Largest() utilization;
    @name(".egress.loop") Loop() loop;

    apply {
        tells = 0;
        if (!hdr.pint.isValid() && meta.carries == 1) {
            bit<16> ip_len = hdr.ipv6.isValid() ? hdr.ipv6.len + 40 : hdr.ipv4.len;
            if (ip_len + PINT_LENGTH <= room) {
                hdr.pint.setValid();
                hdr.pint.epoch = meta.epoch;
                hdr.pint.hops = 0;
                hdr.pint.id = meta.id;
                hdr.pint.digest = 0;
                if (hdr.vlan.isValid()) {
                    hdr.pint.type = hdr.vlan.type;
                    hdr.vlan.type = PINT_TYPE;
                } else {
                    hdr.pint.type = hdr.ethernet.type;
                    hdr.ethernet.type = PINT_TYPE;
                }
            }
        }
        if (hdr.pint.isValid()) {
            if (hdr.pint.hops != HOPS_MISSING) {
                hdr.pint.hops = hdr.pint.hops + 1;
            }
            hop = (bit<32>)hdr.pint.hops;
            plan.apply();
            pint_replace.apply();
            if (known == 1) {
                hashed.apply(set_k, hdr.pint.id, 0, lot);
                pint_set.apply();
                path0.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node);
                path1.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node);
                latency.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit,
                    elapsed(sm.ingress_global_timestamp, sm.egress_global_timestamp));
                utilization.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, load);
                loop.apply(hdr.pint.digest, hdr.pint.epoch, set, hdr.pint.id, hop, limit, node, again);
            } else {
                hdr.pint.hops = HOPS_MISSING;
            }
            meta.told_epoch = hdr.pint.epoch;
            meta.told_hops = hdr.pint.hops;
            meta.told_id = hdr.pint.id;
            meta.told_digest = hdr.pint.digest;
            meta.again = again;
            if (again != 0) {
                take_turn();
            }
            if (known == 0) {
                if (last_switch == 1) {
                    incomplete.count((bit<32>)sm.egress_port);
                }
            } else if (last_switch == 1 || due == 1) {
                tells = 1;
            }
        }
    }
}

// NoDigest takes the digest out of a packet.
control NoDigest(inout headers_t hdr) {
    apply {
        if (hdr.pint.isValid()) {
            if (hdr.vlan.isValid()) {
                hdr.vlan.type = hdr.pint.type;
            } else {
                hdr.ethernet.type = hdr.pint.type;
            }
            hdr.pint.setInvalid();
        }
    }
}

// DigestReport fills the report of a digest; words counts its metadata.
control DigestReport(inout headers_t hdr, in metadata_t meta, out bit<8> words) {
    apply {
        words = 3;
        hdr.told.setValid();
        hdr.told.epoch = meta.told_epoch;
        hdr.told.hops = meta.told_hops;
        hdr.told.reserved = 0;
        hdr.told.id = meta.told_id;
        hdr.told.low = meta.told_digest[31:0];
        hdr.report.setValid();
        hdr.report.type = 1;
        hdr.report.inner = 3;
        hdr.report.dropped = 0;
        hdr.report.congested = 0;
        hdr.report.tracked = 1;
        hdr.report.transit = 0;
        hdr.report.reserved = 0;
        hdr.report.bitmap = 0;
        hdr.report.domain = PINT_DOMAIN;
        hdr.report.ds_bitmap = 0xe000;
        hdr.report.ds_status = 0;
        if (meta.wide == 1) {
            hdr.told_high.setValid();
            hdr.told_high.value = meta.told_digest[63:32];
            hdr.report.ds_bitmap = hdr.report.ds_bitmap | 0x1000;
            words = words + 1;
        }
        if (meta.again != 0) {
            hdr.told_again.setValid();
            hdr.told_again.times = meta.again;
            hdr.told_again.reserved = 0;
            hdr.report.ds_bitmap = hdr.report.ds_bitmap | 0x0800;
            words = words + 1;
        }
    }
}

#endif
