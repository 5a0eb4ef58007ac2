"""Frames for cases.py, byte by byte. Nothing here is random, so that the same cases are recorded again."""
import struct

HOST = bytes.fromhex("020000000001")
SWITCH = bytes.fromhex("020000000002")


def fold(b):
    b = b + b"\0" * (len(b) & 1)
    s = sum(struct.unpack(f">{len(b) // 2}H", b))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s


def ethernet(kind, payload, vlan=None):
    tag = struct.pack(">HH", 0x8100, vlan) if vlan is not None else b""
    return SWITCH + HOST + tag + struct.pack(">H", kind) + payload


def address4(text):
    return bytes(int(x) for x in text.split("."))


def address6(last, net=1):
    return bytes.fromhex("fd00") + bytes(11) + bytes([net, 0, last])


def ipv4(proto, payload, dst="10.0.2.1", src="10.0.1.1", ttl=64, dscp=0, ident=0x1234, flags=0, offset=0, options=b"", length=None, broken=0):
    n = 20 + len(options)
    total = n + len(payload) if length is None else length
    h = struct.pack(">BBHHHBBH", 0x40 | n // 4, dscp << 2, total, ident, flags << 13 | offset, ttl, proto, 0) + address4(src) + address4(dst) + options
    return h[:10] + struct.pack(">H", (~fold(h) & 0xFFFF) ^ broken) + h[12:] + payload


def ipv6(proto, payload, dst=None, src=None, hops=64, dscp=0):
    return struct.pack(">IHBB", 6 << 28 | dscp << 22, len(payload), proto, hops) + (src or address6(1)) + (dst or address6(1, 2)) + payload


def pseudo(src, dst, proto, length):
    return src + dst + struct.pack(">II", length, proto)


def udp(payload, sport=1111, dport=2222, ends=None, checksum=None, length=None):
    """ends are the two addresses: with them the checksum is right, without it is 0."""
    n = 8 + len(payload) if length is None else length
    h = struct.pack(">HHHH", sport, dport, n, 0) + payload
    c = 0
    if ends:
        c = ~fold(pseudo(*ends, 17, n) + h) & 0xFFFF or 0xFFFF
    if checksum is not None:
        c = checksum
    return h[:6] + struct.pack(">H", c) + h[8:]


def tcp(payload, sport=3333, dport=80, ends=None, options=b"", seq=1000):
    h = struct.pack(">HHIIBBHHH", sport, dport, seq, 1, (20 + len(options)) // 4 << 4, 0x18, 0xFFFF, 0, 0) + options + payload
    c = ~fold(pseudo(*ends, 6, len(h)) + h) & 0xFFFF if ends else 0
    return h[:16] + struct.pack(">H", c) + h[18:]


ENDS4 = (address4("10.0.1.1"), address4("10.0.2.1"))
ENDS6 = (address6(1), address6(1, 2))


def words(bitmap, fant=False):
    return sum((2 if b in (4, 5, 6) or fant and b in (12, 13, 14) else 1) for b in range(16) if bitmap >> (15 - b) & 1)


def int_md(bitmap, hops=8, stack=b"", npt=0, original=0, domain=0, version=2, flags=0, ml=None, kind=1, length=None):
    """Shim, header and stack. flags are D, E and M, in this order from the highest of three bits."""
    n = 3 + len(stack) // 4 if length is None else length
    ml = words(bitmap, domain == 0xFA17) if ml is None else ml
    return struct.pack(">BBHBBBBHHHH", kind << 4 | npt << 2, n, original, version << 4 | flags << 1, 0, ml, hops, bitmap, domain, 0, 0) + stack


def path(ports, labels=b"", action=5):
    number = 0
    for i, p in enumerate(ports):
        number |= (p - 1) << (4 * i)
    return number.to_bytes(64, "big") + labels + struct.pack(">I", action)


def route(ports, kind, payload, length=None):
    n = 2 + 2 * len(ports) if length is None else length
    return ethernet(0x0700, bytes([0, n]) + b"".join(bytes([0, p]) for p in ports) + struct.pack(">H", kind) + payload)
