// SPDX-License-Identifier: Apache-2.0
// One's complement arithmetic, as the checksums of IP, TCP and UDP have it.
#ifndef CHECKSUM_P4
#define CHECKSUM_P4

// fold makes a one's complement sum out of one with carries.
bit<16> fold(in bit<32> sum) {
    bit<32> s = (sum & 0xffff) + (sum >> 16);
    return (bit<16>)((s & 0xffff) + (s >> 16));
}

// sum32 and sum64 are the sums of the 16-bit words of a number.
bit<32> sum32(in bit<32> v) {
    return (v >> 16) + (v & 0xffff);
}

bit<32> sum64(in bit<64> v) {
    return (bit<32>)v[63:48] + (bit<32>)v[47:32] + (bit<32>)v[31:16] + (bit<32>)v[15:0];
}

// changed is a checksum after words have gone from the packet and others have come, each given as their sum (RFC 1624,
// equation 3).
bit<16> changed(in bit<16> checksum, in bit<32> gone, in bit<32> come) {
    return ~fold((bit<32>)(~checksum) + (bit<32>)(~fold(gone)) + come);
}

#endif
