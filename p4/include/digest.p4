// SPDX-License-Identifier: Apache-2.0
// The header that carries a digest, and what PINT's queries do to it: the hashes of decode/pint (family crc), and one control for
// each kind of query.
#ifndef DIGEST_P4
#define DIGEST_P4

#ifndef PINT_TYPE
#define PINT_TYPE 0x88b5
#endif

#define PINT_LENGTH 16w16
#define PINT_DOMAIN 16w0x5049
#define HOPS_MISSING 8w255 // a switch did not write, so that the digest cannot be read

header pint_h {
    bit<8>  epoch; // of the plan
    bit<8>  hops;  // switches that have written into the digest, or HOPS_MISSING
    bit<16> type;  // EtherType of what follows
    bit<32> id;    // of the packet, as the hashes take it
    bit<64> digest;
}

// Domain specific metadata of a report.
header told_h {
    bit<8>  epoch;
    bit<8>  hops;
    bit<16> reserved;
    bit<32> id;
    bit<32> low;
}

header again_h {
    bit<8>  times;
    bit<24> reserved;
}

#define TOLD_MEMBERS told_h told; word_h told_high; again_h told_again;
#define CLEAR_TOLD(hdr) hdr.told.setInvalid(); hdr.told_high.setInvalid(); hdr.told_again.setInvalid();
#define EMIT_TOLD(packet, hdr) packet.emit(hdr.told); packet.emit(hdr.told_high); packet.emit(hdr.told_again);

// CRC-32 as in Ethernet over 4 bytes in network order: base + crc mod max with a base of 0 and a max of 2^32.
#define CRC(result, word) hash(result, HashAlgorithm.crc32, 32w0, { word }, 64w0x100000000)

// hash x = crc(key + crc(key + crc(x))), with key = crc(k + packet id). k chooses the function.
control Hash(in bit<32> k, in bit<32> id, in bit<32> x, out bit<32> h) {
    apply {
        bit<32> key;
        bit<32> word = k + id;
        CRC(key, word);
        word = x;
        CRC(h, word);
        word = key + h;
        CRC(h, word);
        word = key + h;
        CRC(h, word);
    }
}

// Encode rounds v to one of two neighbouring codes: up if v - lo is above gap * rnd / 2^32, of which the product comes from
// logarithms. log_gap is log2(gap) in 2^-16, rounded to the nearest.
control Encode(in bit<8> epoch, in bit<64> v, in bit<32> rnd, out bit<64> value) {
    bit<64> lo = 0;
    int<32> log_gap = 0;
    bit<1> rounds = 0;
    int<32> y = 0;
    bit<64> point = 0;

    action level(bit<16> code, bit<64> low, bit<32> log_of_gap) {
        value = (bit<64>)code;
        lo = low;
        log_gap = (int<32>)log_of_gap;
        rounds = 1;
    }

    action last(bit<16> code) {
        value = (bit<64>)code;
    }

    table code {
        key = { epoch: exact; v: range; }
        actions = { level; last; }
        default_action = last(0);
        size = 8192;
    }

    Log2() log_rnd;
    Exp2() exp_gap;

    apply {
        value = 0;
        code.apply();
        if (rounds == 1) {
            if (rnd != 0) {
                log_rnd.apply((bit<64>)rnd, y);
                exp_gap.apply(log_gap + y - (32 << 16), point);
            }
            if (v - lo > point) {
                value = value + 1;
            }
        }
    }
}

// Path is one instance of a coding scheme: Baseline or XOR, by the layer of the packet. limit is that of the hop in the
// Baseline layer, 2^32 / hop - 1.
control Path(inout bit<64> d, in bit<8> epoch, in bit<8> set, in bit<32> id, in bit<32> hop, in bit<32> limit, in bit<32> node) {
    bit<8> shift = 0;
    bit<64> mask = 0;
    bit<8> cut = 0;
    bit<32> hops_k = 0;
    bit<32> values_k = 0;
    bit<32> layer_k = 0;
    bit<32> at_most = 0;
    bit<32> h = 0;
    bit<1> carried = 0;
    bit<1> fold_in = 0;

    // The digest's bits are mask, from shift on; 32 - cut of them. The rest are the constants of three functions.
    action use(bit<8> lowest, bit<64> ones, bit<8> drop, bit<32> k_hops, bit<32> k_values, bit<32> k_layer) {
        shift = lowest;
        mask = ones;
        cut = drop;
        hops_k = k_hops;
        values_k = k_values;
        layer_k = k_layer;
        carried = 1;
    }

    table slot {
        key = { epoch: exact; set: exact; }
        actions = { use; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    action baseline() {
        at_most = limit;
    }

    action xor(bit<32> most) {
        at_most = most;
        fold_in = 1;
    }

    table layer {
        key = { epoch: exact; h: range; }
        actions = { baseline; xor; }
        default_action = baseline();
        size = 64;
    }

    Hash() hashed;

    apply {
        slot.apply();
        if (carried == 1) {
            hashed.apply(layer_k, id, 0, h);
            layer.apply();
            hashed.apply(hops_k, id, hop, h);
            if (h <= at_most) {
                hashed.apply(values_k, id, node, h);
                bit<64> own = (bit<64>)(h >> cut) << shift;
                if (fold_in == 0) {
                    d = d & ~(mask << shift);
                }
                d = d ^ own;
            }
        }
    }
}

// Dynamic lets Baseline pick one hop's value. Every hop rounds with a hash of its own number.
control Dynamic(inout bit<64> d, in bit<8> epoch, in bit<8> set, in bit<32> id, in bit<32> hop, in bit<32> limit, in bit<64> v) {
    bit<8> shift = 0;
    bit<64> mask = 0;
    bit<32> hops_k = 0;
    bit<32> rounding_k = 0;
    bit<32> h = 0;
    bit<64> value = 0;
    bit<1> carried = 0;

    action use(bit<8> lowest, bit<64> ones, bit<32> k_hops, bit<32> k_rounding) {
        shift = lowest;
        mask = ones;
        hops_k = k_hops;
        rounding_k = k_rounding;
        carried = 1;
    }

    table slot {
        key = { epoch: exact; set: exact; }
        actions = { use; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    Hash() hashed;
    Encode() encode;

    apply {
        slot.apply();
        if (carried == 1) {
            hashed.apply(hops_k, id, hop, h);
            if (h <= limit) {
                hashed.apply(rounding_k, id, hop, h);
                encode.apply(epoch, v, h, value);
                d = (d & ~(mask << shift)) | ((value & mask) << shift);
            }
        }
    }
}

// Largest keeps the largest value along the path. All hops round alike, by a hash of the packet id.
control Largest(inout bit<64> d, in bit<8> epoch, in bit<8> set, in bit<32> id, in bit<64> v) {
    bit<8> shift = 0;
    bit<64> mask = 0;
    bit<32> rounding_k = 0;
    bit<32> h = 0;
    bit<64> value = 0;
    bit<1> carried = 0;

    action use(bit<8> lowest, bit<64> ones, bit<32> k_rounding) {
        shift = lowest;
        mask = ones;
        rounding_k = k_rounding;
        carried = 1;
    }

    table slot {
        key = { epoch: exact; set: exact; }
        actions = { use; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    Hash() hashed;
    Encode() encode;

    apply {
        slot.apply();
        if (carried == 1) {
            hashed.apply(rounding_k, id, 0, h);
            encode.apply(epoch, v, h, value);
            value = value & mask;
            if (value > ((d >> shift) & mask)) {
                d = (d & ~(mask << shift)) | (value << shift);
            }
        }
    }
}

// Loop is Algorithm 2 of PINT: a switch that finds its own hash in a packet counts, and reports what has counted far enough.
control Loop(inout bit<64> d, in bit<8> epoch, in bit<8> set, in bit<32> id, in bit<32> hop, in bit<32> limit, in bit<32> node, out bit<8> again) {
    bit<8> shift = 0;
    bit<64> mask = 0;
    bit<8> width = 0;
    bit<64> most = 0;
    bit<32> values_k = 0;
    bit<32> hops_k = 0;
    bit<32> h = 0;
    bit<1> carried = 0;

    // The digest's bits are mask, from shift on: bits of hash, the counter above them, up to matches.
    action use(bit<8> lowest, bit<64> ones, bit<8> bits, bit<8> matches, bit<32> k_values, bit<32> k_hops) {
        shift = lowest;
        mask = ones;
        width = bits;
        most = (bit<64>)matches;
        values_k = k_values;
        hops_k = k_hops;
        carried = 1;
    }

    table slot {
        key = { epoch: exact; set: exact; }
        actions = { use; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    Hash() hashed;

    apply {
        again = 0;
        slot.apply();
        if (carried == 1) {
            hashed.apply(values_k, id, node, h);
            bit<64> own = (bit<64>)(h >> (32 - width));
            bit<64> part = (d >> shift) & mask;
            bit<64> count = part >> width;
            bit<64> stored = part - (count << width);
            if (hop > 1 && stored == own) {
                if (count >= most) {
                    again = (bit<8>)most + 1;
                } else {
                    count = count + 1;
                }
            }
            hashed.apply(hops_k, id, hop, h);
            if (h <= limit) {
                stored = own;
                count = 0;
            }
            d = (d & ~(mask << shift)) | (((count << width) | stored) << shift);
        }
    }
}

// Line is how full a line is, in 2^-16, by HPCC's average over a base round-trip time, as decode/pint.Line computes it. Registers
// hold what the program writes itself: the average in 2^-24, the last packet's bytes and its time. A probe is told what another
// packet would be told, and leaves no trace in them; in the queue it counts as all packets do, which is the switch's to count.
control Line(in bit<9> port, in bit<64> now, in bit<32> bytes, in bit<32> packets, in bit<1> probe, out bit<64> load) {
    register<bit<32>>(512) average;
    register<bit<32>>(512) sent_bytes;
    register<bit<64>>(512) sent_time;
    bit<64> base = 0;
    int<32> log_base = 0;
    int<32> log_bytes = 0;
    int<32> log_base_cell = 0;
    bit<8> packet_shift = 0;
    bit<1> known = 0;
    bit<32> u = 0;
    bit<32> sent = 0;
    bit<64> last = 0;

    // The base time in ns, its logarithm, that of the units of the average in a byte a base time, and the logarithm of the base
    // as the table has it, all in 2^-16. A packet in the queue counts 2^size_shift bytes.
    action line(bit<64> base_ns, bit<32> log_of_base, bit<32> log_of_bytes, bit<32> table_log_of_base, bit<8> size_shift) {
        base = base_ns;
        log_base = (int<32>)log_of_base;
        log_bytes = (int<32>)log_of_bytes;
        log_base_cell = (int<32>)table_log_of_base;
        packet_shift = size_shift;
        known = 1;
    }

    table lines {
        key = { port: exact; }
        actions = { line; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action load_state() {
        average.read(u, (bit<32>)port);
        sent_bytes.read(sent, (bit<32>)port);
        sent_time.read(last, (bit<32>)port);
    }

    action store_state() {
        average.write((bit<32>)port, u);
        sent_bytes.write((bit<32>)port, bytes);
        sent_time.write((bit<32>)port, now);
    }

    Log2() log_idle;
    Log2() log_average;
    Log2() log_queue;
    Log2() log_sent;
    Exp2() exp_decay;
    Exp2() exp_queue;
    Exp2() exp_sent;

    apply {
        load = 0;
        lines.apply();
        if (known == 1) {
            load_state();
            if (u != 0 || sent != 0 || last != 0) {
                bit<64> idle = now - last;
                bit<64> tau = idle > base ? base : idle;
                int<32> y_idle;
                int<32> y;
                bit<64> part;
                bit<64> sum = (bit<64>)u;
                log_idle.apply(idle, y_idle);
                int<32> y_tau = idle >= base ? log_base_cell : y_idle;
                if (tau == base) {
                    sum = 0;
                } else if (sum != 0 && tau != 0) {
                    log_average.apply(sum, y);
                    exp_decay.apply(y + y_tau - log_base, part);
                    sum = part > sum ? 0 : sum - part;
                }
                bit<64> queue = (bit<64>)packets << packet_shift;
                if (queue != 0 && tau != 0) {
                    log_queue.apply(queue, y);
                    exp_queue.apply(y + log_bytes + y_tau - log_base, part);
                    part = part > 0xffffffff ? 0xffffffff : part;
                    sum = sum + part > 0xffffffff ? 0xffffffff : sum + part;
                }
                if (sent != 0) {
                    log_sent.apply((bit<64>)sent, y);
                    y = y + log_bytes;
                    if (idle > base) {
                        y = y + log_base - y_idle;
                    }
                    exp_sent.apply(y, part);
                    part = part > 0xffffffff ? 0xffffffff : part;
                    sum = sum + part > 0xffffffff ? 0xffffffff : sum + part;
                }
                u = (bit<32>)sum;
                load = sum >> 8;
            }
            if (probe == 0) {
                store_state();
            }
        }
    }
}

#endif
