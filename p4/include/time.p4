// SPDX-License-Identifier: Apache-2.0
// Time.
#ifndef TIME_P4
#define TIME_P4

// BMv2 counts microseconds since its start. This is the one place where they become nanoseconds: times 1000, which is
// 1024 - 16 - 8, so that a target without multiplication does the same.
bit<64> nanoseconds(in bit<48> us) {
    bit<64> t = (bit<64>)us;
    return (t << 10) - (t << 4) - (t << 3);
}

// A difference of two times of the switch, modulo 2^48 us; what is kept of it in 32 bits wraps at 2^32 ns.
bit<64> elapsed(in bit<48> from, in bit<48> to) {
    return nanoseconds(to - from);
}

#endif
