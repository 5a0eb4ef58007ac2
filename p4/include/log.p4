// SPDX-License-Identifier: Apache-2.0
// Logarithms and powers from tables, with which a switch multiplies and divides without either (PINT, appendix C). A control
// plane writes the 1024 entries of each table: those of decode/pint.LogEntry and ExpEntry.
#ifndef LOG_P4
#define LOG_P4

// y = log2(x) in 2^-16; 0 for 0.
control Log2(in bit<64> x, out int<32> y) {
    bit<32> n = 64;
    bit<32> fraction = 0;
    bit<10> cell = 0;

    action zeros(bit<32> count) {
        n = count;
    }

    // How many zeros are in front of the first one.
    table leading {
        key = { x: ternary; }
        actions = { zeros; }
        const default_action = zeros(64);
        const entries = {
            0x8000000000000000 &&& 0x8000000000000000: zeros(0);
            0x4000000000000000 &&& 0xc000000000000000: zeros(1);
            0x2000000000000000 &&& 0xe000000000000000: zeros(2);
            0x1000000000000000 &&& 0xf000000000000000: zeros(3);
            0x800000000000000 &&& 0xf800000000000000: zeros(4);
            0x400000000000000 &&& 0xfc00000000000000: zeros(5);
            0x200000000000000 &&& 0xfe00000000000000: zeros(6);
            0x100000000000000 &&& 0xff00000000000000: zeros(7);
            0x80000000000000 &&& 0xff80000000000000: zeros(8);
            0x40000000000000 &&& 0xffc0000000000000: zeros(9);
            0x20000000000000 &&& 0xffe0000000000000: zeros(10);
            0x10000000000000 &&& 0xfff0000000000000: zeros(11);
            0x8000000000000 &&& 0xfff8000000000000: zeros(12);
            0x4000000000000 &&& 0xfffc000000000000: zeros(13);
            0x2000000000000 &&& 0xfffe000000000000: zeros(14);
            0x1000000000000 &&& 0xffff000000000000: zeros(15);
            0x800000000000 &&& 0xffff800000000000: zeros(16);
            0x400000000000 &&& 0xffffc00000000000: zeros(17);
            0x200000000000 &&& 0xffffe00000000000: zeros(18);
            0x100000000000 &&& 0xfffff00000000000: zeros(19);
            0x80000000000 &&& 0xfffff80000000000: zeros(20);
            0x40000000000 &&& 0xfffffc0000000000: zeros(21);
            0x20000000000 &&& 0xfffffe0000000000: zeros(22);
            0x10000000000 &&& 0xffffff0000000000: zeros(23);
            0x8000000000 &&& 0xffffff8000000000: zeros(24);
            0x4000000000 &&& 0xffffffc000000000: zeros(25);
            0x2000000000 &&& 0xffffffe000000000: zeros(26);
            0x1000000000 &&& 0xfffffff000000000: zeros(27);
            0x800000000 &&& 0xfffffff800000000: zeros(28);
            0x400000000 &&& 0xfffffffc00000000: zeros(29);
            0x200000000 &&& 0xfffffffe00000000: zeros(30);
            0x100000000 &&& 0xffffffff00000000: zeros(31);
            0x80000000 &&& 0xffffffff80000000: zeros(32);
            0x40000000 &&& 0xffffffffc0000000: zeros(33);
            0x20000000 &&& 0xffffffffe0000000: zeros(34);
            0x10000000 &&& 0xfffffffff0000000: zeros(35);
            0x8000000 &&& 0xfffffffff8000000: zeros(36);
            0x4000000 &&& 0xfffffffffc000000: zeros(37);
            0x2000000 &&& 0xfffffffffe000000: zeros(38);
            0x1000000 &&& 0xffffffffff000000: zeros(39);
            0x800000 &&& 0xffffffffff800000: zeros(40);
            0x400000 &&& 0xffffffffffc00000: zeros(41);
            0x200000 &&& 0xffffffffffe00000: zeros(42);
            0x100000 &&& 0xfffffffffff00000: zeros(43);
            0x80000 &&& 0xfffffffffff80000: zeros(44);
            0x40000 &&& 0xfffffffffffc0000: zeros(45);
            0x20000 &&& 0xfffffffffffe0000: zeros(46);
            0x10000 &&& 0xffffffffffff0000: zeros(47);
            0x8000 &&& 0xffffffffffff8000: zeros(48);
            0x4000 &&& 0xffffffffffffc000: zeros(49);
            0x2000 &&& 0xffffffffffffe000: zeros(50);
            0x1000 &&& 0xfffffffffffff000: zeros(51);
            0x800 &&& 0xfffffffffffff800: zeros(52);
            0x400 &&& 0xfffffffffffffc00: zeros(53);
            0x200 &&& 0xfffffffffffffe00: zeros(54);
            0x100 &&& 0xffffffffffffff00: zeros(55);
            0x80 &&& 0xffffffffffffff80: zeros(56);
            0x40 &&& 0xffffffffffffffc0: zeros(57);
            0x20 &&& 0xffffffffffffffe0: zeros(58);
            0x10 &&& 0xfffffffffffffff0: zeros(59);
            0x8 &&& 0xfffffffffffffff8: zeros(60);
            0x4 &&& 0xfffffffffffffffc: zeros(61);
            0x2 &&& 0xfffffffffffffffe: zeros(62);
            0x1 &&& 0xffffffffffffffff: zeros(63);
        }
    }

    action entry(bit<16> value) {
        fraction = (bit<32>)value;
    }

    table log {
        key = { cell: exact; }
        actions = { entry; }
        default_action = entry(0);
        size = 1024;
    }

    apply {
        y = 0;
        leading.apply();
        if (n < 64) {
            bit<64> mantissa = (x << (bit<8>)n) << 1;
            cell = mantissa[63:54];
            log.apply();
            y = (int<32>)(((63 - n) << 16) + fraction);
        }
    }
}

// x = 2^(y / 2^16), rounded to an integer; all ones if it is more than 64 bits hold.
control Exp2(in int<32> y, out bit<64> x) {
    bit<64> mantissa = 0;
    bit<10> cell = 0;

    action entry(bit<32> value) {
        mantissa = (bit<64>)value;
    }

    table exp {
        key = { cell: exact; }
        actions = { entry; }
        default_action = entry(0);
        size = 1024;
    }

    apply {
        bit<32> bits = (bit<32>)y;
        cell = bits[15:6];
        exp.apply();
        int<32> power = (y >> 16) - 24; // entries have 24 bits behind the point
        if (power >= 40) {
            x = 0xffffffffffffffff;
        } else if (power >= 0) {
            bit<32> up = (bit<32>)power;
            x = mantissa << (bit<8>)up;
        } else if (power < -26) {
            x = 0;
        } else {
            bit<32> down = (bit<32>)(-power);
            x = (mantissa + (64w1 << (bit<8>)(down - 1))) >> (bit<8>)down;
        }
    }
}

#endif
