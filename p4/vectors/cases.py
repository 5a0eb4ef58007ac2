"""The groups of packets that record.py sends, and the tables that the switch has meanwhile."""
import json
import math
import os
import struct
import sys
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from frames import *
import tables


@dataclass
class Group:
    name: str
    commands: list
    packets: list = field(default_factory=list)  # name, port, frame or list of frames, seconds to wait before


LOGARITHMS = "# logarithms: "


def expand(commands):
    """The entries that a comment "# logarithms: TABLES" stands for: 1024 in each table, those of decode/pint.LogEntry and ExpEntry."""
    out = []
    for c in commands:
        if c.startswith(LOGARITHMS):
            for table in c[len(LOGARITHMS):].split():
                for i in range(1024):
                    if table.endswith(".log"):
                        lo, hi = 1 + i / 1024, 1 + (i + 1) / 1024
                        v = math.floor(math.log2(lo * hi) / 2 * 65536 + 0.5)
                    else:
                        v = math.floor(2 ** ((i + 0.5) / 1024) * (1 << 24) + 0.5)
                    out.append(f"table_add {table} {table.rsplit('.', 1)[0]}.entry {i} => {v}")
    return out


def groups(program):
    return {"srint": srint, "intmd": intmd, "into": into, "pint": pint, "rft": rft, "hopscope": hopscope}[program]()


# srint


def wide(ports, bitmap=0xF161, domain=0xFA17, ends=None, data=b"HPRBpayload!", **kw):
    flags = kw.pop("ip", {})
    return route(ports, 0x0800, ipv4(17, udp(int_md(bitmap, npt=1, original=17769, domain=domain, flags=4, **kw) + data, 0xC001, 17768, ends), **flags))


def srint():
    device = ["table_set_default egress.device set_device 7 5000000000", "table_add egress.port_mtu set_mtu 4 => 180", "table_add egress.port_mtu set_mtu 2 => 9000",
              "table_add ingress.forwarding forward 10.0.2.0/24 => 2", "table_add ingress.forwarding drop 10.0.3.0/24 =>"]
    label = bytes(range(22))
    probe = lambda ports, **kw: ethernet(0x0800, ipv4(17, udp(path(ports, **kw), dport=2222)))
    paths = [
        ("first hop", 1, probe([2, 4, 1])),
        ("second hop", 3, ethernet(0x0800, ipv4(17, udp(path([4, 1], label), dport=2222)))),
        ("checksum below 22", 1, ethernet(0x0800, ipv4(17, udp(path([2]), dport=2222), ident=0x6D8B))),
        ("port that is not there", 1, probe([16])),
        ("no room in the MTU", 1, ethernet(0x0800, ipv4(17, udp(path([4, 1], label * 3), dport=2222)))),
        ("126 labels", 1, ethernet(0x0800, ipv4(17, udp(path([2], label * 126), dport=2222)))),
        ("128 labels", 1, ethernet(0x0800, ipv4(17, udp(path([2], label * 128), dport=2222)))),
        ("129 labels", 1, ethernet(0x0800, ipv4(17, udp(path([2], label * 129), dport=2222)))),
        ("UDP length short", 1, ethernet(0x0800, ipv4(17, udp(path([2]), dport=2222, length=75)))),
        ("UDP length beyond IP", 1, ethernet(0x0800, ipv4(17, udp(path([2]), dport=2222, length=98)))),
        ("cut in the route", 1, ethernet(0x0800, ipv4(17, udp(path([2]), dport=2222))[:80])),
        ("IPv4 checksum wrong", 1, ethernet(0x0800, ipv4(17, udp(path([2]), dport=2222), broken=1))),
        ("IPv4 options: an ordinary packet", 1, ethernet(0x0800, ipv4(17, udp(path([3]), dport=2222), options=b"\1\1\1\0"))),
        ("fragment: an ordinary packet", 1, ethernet(0x0800, ipv4(17, udp(path([3]), dport=2222), flags=1))),
        ("no probe", 1, ethernet(0x0800, ipv4(17, udp(b"payload", dport=53)))),
        ("TCP", 1, ethernet(0x0800, ipv4(6, tcp(b"payload")))),
        ("dropped by an entry", 1, ethernet(0x0800, ipv4(17, udp(b"payload", dport=53), dst="10.0.3.1"))),
        ("no entry", 1, ethernet(0x0800, ipv4(17, udp(b"payload", dport=53), dst="10.9.3.1"))),
        ("IPv4 header of 16 bytes", 1, ethernet(0x0800, b"\x44" + ipv4(17, udp(b"payload"))[1:])),
        ("IPv6", 1, ethernet(0x86DD, ipv6(17, udp(b"payload")))),
    ]
    labels = bytes([0, 0])
    probes = [
        ("two entries", 1, route([3, 2], 0x0701, labels)),
        ("last entry", 2, route([2], 0x0701, bytes([0, 1]) + bytes(range(32)))),
        ("16 entries", 1, route([3] * 16, 0x0701, labels)),
        ("padding", 1, route([3, 2], 0x0701, labels + bytes(36))),
        ("255 labels", 1, route([3], 0x0701, bytes([0, 255]) + bytes(32 * 255))),
        ("other payload", 1, route([3, 2], 0x1234, b"anything")),
        ("route used up", 1, ethernet(0x0701, bytes([0, 1]) + bytes(range(32)))),
        ("length 2", 1, route([3], 0x0701, labels, length=2)),
        ("length odd", 1, route([3, 2], 0x0701, labels, length=5)),
        ("length 36", 1, route([3] * 17, 0x0701, labels)),
        ("length beyond the frame", 1, route([3, 2], 0x0701, labels, length=34)),
        ("cut before the labels' number", 1, route([3, 2], 0x0701, b"")),
    ]
    block = struct.pack(">I", 0x11111111)
    wides = [
        ("basic, FANT", 1, wide([3, 2])),
        ("detailed, FANT", 1, wide([3, 2], 0xFFFF)),
        ("basic, INT 2.1", 1, wide([3, 2], 0xF000, 0)),
        ("detailed, INT 2.1", 1, wide([3, 2], 0xFF80, 0)),
        ("all bits, INT 2.1", 1, wide([3, 2], 0xFFFF, 0)),
        ("last entry, on a stack", 1, wide([3], 0xF161, stack=block * 8)),
        ("route used up, by the table", 1, ethernet(0x0800, ipv4(17, udp(int_md(0x8000, npt=1, stack=block) + b"data", dport=17768)))),
        ("plain IPv4 behind a route", 1, route([3, 2], 0x0800, ipv4(17, udp(b"payload", dport=53)))),
        ("checksum", 1, wide([3, 2], 0xF000, 0, ENDS4)),
        ("checksum and odd payload", 1, wide([3, 2], 0xFF80, 0, ENDS4, data=b"odd")),
        ("checksum complement", 1, wide([3, 2], 0xF161, ends=ENDS4)),
        ("no hops left", 1, wide([3, 2], ends=ENDS4, hops=0)),
        ("no room in the MTU", 1, wide([4, 2], 0xF161, ends=ENDS4, data=bytes(100))),
        ("shim's length at its end", 1, wide([3, 2], 0x8000, 0, stack=block * 252)),
        ("width that is not the bitmap's", 1, wide([3, 2], 0xF000, 0, ml=5)),
        ("nothing asked", 1, wide([3, 2], 0, 0)),
        ("domain of others", 1, wide([3, 2], 0xF000, 0x4142)),
        ("version 1", 1, wide([3, 2], version=1)),
        ("INT-MX", 1, wide([3, 2], kind=3)),
        ("shim of two words", 1, wide([3, 2], length=2)),
        ("shim longer than UDP", 1, wide([3, 2], length=60)),
        ("NPT 0", 1, route([3], 0x0800, ipv4(17, udp(int_md(0x8000) + b"data", dport=17768)))),
        ("cut in the stack", 1, wide([3, 2], 0xF161, stack=block * 8)[:90]),
    ]
    burst = ["set_queue_rate 20 2", "set_queue_rate 20 3"]
    bursts = [("INT-path", 1, [probe([2])] * 5), ("INT-Probe", 1, [route([3], 0x0701, labels)] * 5), ("wide", 1, [wide([3])] * 5)]
    return [Group("queue", device + burst, bursts), Group("INT-path", device, paths), Group("INT-Probe", device, probes), Group("wide", device, wides),
            Group("device 0 by default", ["table_add ingress.forwarding forward 10.0.2.0/24 => 2"], [("first hop", 1, probe([2, 4, 1]))])]


# intmd


ROUTES = ["table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.2.0/24 => 2 0x020000000012 0x020000000010",
          "table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.4.0/24 => 4 0x020000000014 0x020000000010",
          "table_add ingress.forward.forwarding4 ingress.forward.no_route 10.0.9.0/24 =>",
          "table_add ingress.forward.forwarding6 ingress.forward.forward fd00:0:0:0:0:0:0:0/16 => 2 0x020000000012 0x020000000010"]
COLLECTOR = ["mirroring_add 100 5", "table_add egress.envelope.collector send 1 => 0x020000000099 0x020000000010 10.255.0.7 10.255.0.1 49152 32766 400"]
ANY = "0&&&0 0&&&0"
PROBE = 27 # the mark of agents' probes, a DSCP


# BMv2 takes the entry with the smallest priority; P4Runtime has it the other way round.
def watch(action, *params, table="ingress.watch", proto="17&&&255", dport="0&&&0", priority=5):
    return f"table_add {table} {action} {ANY} {proto} 0&&&0 {dport} => {' '.join(map(str, params))} {priority}".replace("=>  ", "=> ")


def plain4(**kw):
    return ethernet(0x0800, ipv4(17, udp(b"0123456789abcdef", 4000, 53, ENDS4), **kw))


def with_int(bitmap=0xF000, l4="udp", ends=ENDS4, data=b"payload", npt=0, original=None, ip=None, checksum=None, vlan=None, options=b"", **kw):
    dport = 17768 if npt == 1 else 53
    original = (0x0A << 2 if npt == 0 else 53) if original is None else original
    part = int_md(bitmap, npt=npt, original=original, **kw)
    dscp = (ip or {}).get("dscp", 0 if npt == 1 else 0x17)
    ip = {k: v for k, v in (ip or {}).items() if k != "dscp"}
    if l4 == "udp":
        proto, body = 17, udp(part + data, 4000, dport, ends, checksum)
    else:
        proto, body = 6, tcp(part + options + data, ends=ends)
        body = body[:12] + bytes([(20 + len(options)) // 4 << 4]) + body[13:16] + b"\0\0" + body[18:]
        body = body[:16] + struct.pack(">H", ~fold(pseudo(*ends, 6, len(body)) + body) & 0xFFFF) + body[18:]
    if ends is ENDS6:
        return ethernet(0x86DD, ipv6(proto, body, dscp=dscp), vlan) if vlan is None else ethernet(0x86DD, b"", vlan)[:16] + struct.pack(">H", 0x86DD) + ipv6(proto, body, dscp=dscp)
    return ethernet(0x0800, ipv4(proto, body, dscp=dscp, **ip), vlan)


def intmd():
    block = lambda n: bytes(range(1, 1 + 4 * n))
    device = ["table_set_default egress.device set_device 9 1700000000000000000"]
    edge = ["table_add ingress.ingress_port host 1 => 3 0", "table_add ingress.ingress_port host 3 => 4 1", "table_add ingress.ingress_port fabric 4 => 5"]
    everything = 0xFFFFFFFF
    source = device + edge + ROUTES + ["table_add egress.egress_port to_fabric 4 => 100",
                                       watch("track", everything, 0xFF80, 0, 8, 0),
                                       watch("track", everything, 0xF001, 0, 8, 0, dport="54&&&65535", priority=1),
                                       watch("track", everything, 0xF161, 0xFA17, 8, 0, dport="55&&&65535", priority=1),
                                       watch("track", everything, 0x8000, 0, 0, 0, dport="56&&&65535", priority=1),
                                       watch("track", 0x7FFFFFFF, 0x8000, 0, 8, 0, dport="57&&&65535", priority=1),
                                       watch("track", everything, 0xC000, 0, 8, 1, dport="58&&&65535", priority=1),
                                       watch("NoAction", dport="59&&&65535", priority=1),
                                       watch("track", everything, 0xD000, 0, 8, 0, proto="6&&&255")]
    to = lambda port, data=b"payload", **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, port, ENDS4), **kw))
    sources = [
        ("UDP", 1, to(53)), ("UDP without checksum", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 53)))),
        ("checksum complement", 1, to(54)), ("complement without checksum", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 54)))),
        ("FANT", 1, to(55)), ("no hops", 1, to(56)), ("DSCP to restore", 1, to(53, dscp=0x2A)),
        *((f"sampled by hash {n}", 1, to(57, bytes([n]))) for n in range(4)),
        ("by port", 1, to(58)), ("not watched", 1, to(59)),
        ("TCP", 1, ethernet(0x0800, ipv4(6, tcp(b"payload", ends=ENDS4)))),
        ("TCP with options", 1, ethernet(0x0800, ipv4(6, tcp(b"payload", ends=ENDS4, options=bytes.fromhex("0101080a0000000100000001"))))),
        ("IPv6", 1, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 53, ENDS6)))),
        ("IPv6 and TCP", 1, ethernet(0x86DD, ipv6(6, tcp(b"payload", ends=ENDS6), dscp=5))),
        ("IPv6 by port", 1, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 58, ENDS6)))),
        ("VLAN", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 53, ENDS4)), 42)),
        ("VLAN and IPv6", 1, SWITCH + HOST + bytes.fromhex("8100002a86dd") + ipv6(17, udp(b"payload", 4000, 53, ENDS6))),
        ("VLAN with something else", 1, ethernet(0x0806, bytes(28), 42)),
        ("IPv4 options", 1, to(53, options=b"\1\1\1\0")), ("fragment", 1, to(53, flags=1)), ("later fragment", 1, to(53, offset=8)),
        ("ICMP", 1, ethernet(0x0800, ipv4(1, bytes(8)))), ("ICMPv6", 1, ethernet(0x86DD, ipv6(58, bytes(8)))),
        ("no room for the header", 1, to(53, bytes(60), dst="10.0.4.1")), ("room for the header only", 1, to(53, bytes(50), dst="10.0.4.1")),
        ("from the fabric", 4, to(53)), ("ARP", 1, ethernet(0x0806, bytes(28))), ("cut in UDP", 1, to(53)[:38]),
        ("INT from a host", 1, with_int()), ("INT from a host that may", 3, with_int()),
        ("IPv4 checksum wrong", 1, to(53, broken=0x100)), ("IPv4 header of 16 bytes", 1, ethernet(0x0800, b"\x44" + ipv4(17, udp(b"payload"))[1:])),
    ]
    transit = device + ROUTES + ["table_add egress.egress_port to_fabric 4 => 100"]
    transits = [
        ("UDP", 4, with_int()), ("UDP without checksum", 4, with_int(ends=None)), ("on a stack", 4, with_int(stack=block(8))),
        ("all of INT 2.1", 4, with_int(0xFF80)), ("all bits", 4, with_int(0xFFFF)), ("all of FANT", 4, with_int(0xFFFF, domain=0xFA17)),
        ("complement", 4, with_int(0xF001)), ("complement without checksum", 4, with_int(0xF001, ends=None)),
        ("by port", 4, with_int(npt=1)), ("TCP", 4, with_int(l4="tcp")), ("TCP options", 4, with_int(l4="tcp", options=bytes.fromhex("0101080a0000000100000001"))),
        ("IPv6", 4, with_int(ends=ENDS6)), ("IPv6 and TCP", 4, with_int(l4="tcp", ends=ENDS6)), ("VLAN", 4, with_int(vlan=42)), ("VLAN and IPv6", 4, with_int(ends=ENDS6, vlan=42)),
        ("no hops left", 4, with_int(hops=0)), ("no hops left, complement", 4, with_int(0xF001, hops=0)), ("E was set", 4, with_int(hops=0, flags=2)),
        ("last hop", 4, with_int(hops=1)), ("no room in the MTU", 4, with_int(data=bytes(40), ip={"dst": "10.0.4.1"}, ends=(ENDS4[0], address4("10.0.4.1")))),
        ("length at its end", 4, with_int(0x8000, stack=bytes(4 * 252))), ("length one below its end", 4, with_int(0x8000, stack=bytes(4 * 251))),
        ("width that is not the bitmap's", 4, with_int(ml=3)), ("nothing asked", 4, with_int(0)), ("domain of others", 4, with_int(domain=0x4142)),
        ("D set", 4, with_int(flags=4)), ("version 1", 4, with_int(version=1)), ("INT-MX", 4, with_int(kind=3)), ("length 2", 4, with_int(length=2)),
        ("longer than UDP", 4, with_int(length=20)), ("longer than TCP", 4, with_int(l4="tcp", length=40)), ("NPT 2", 4, with_int(npt=2)),
        ("by port with NPT 0", 4, ethernet(0x0800, ipv4(17, udp(int_md(0x8000), 4000, 17768, ENDS4)))),
        ("cut in the stack", 4, with_int(stack=block(8))[:70]), ("cut in the header", 4, with_int()[:50]), ("no INT", 4, to(53)),
    ]
    sink = device + edge + ROUTES + COLLECTOR + ["table_add egress.egress_port to_host 2 => 1500 100 1", "table_add egress.egress_port to_host 4 => 1500 0 0",
                                                 watch("track", everything, 0xFF80, 0, 8, 0)]
    sinks = [
        ("UDP", 4, with_int(0xF000, stack=block(8))), ("sequence number", 4, with_int(0xF000, stack=block(4))),
        ("all of INT 2.1", 4, with_int(0xFF80, stack=block(12))), ("FANT", 4, with_int(0xFFFF, domain=0xFA17, stack=block(22))),
        ("UDP without checksum", 4, with_int(ends=None, stack=block(4))), ("by port", 4, with_int(npt=1, stack=block(4))),
        ("TCP", 4, with_int(l4="tcp", stack=block(4))), ("TCP options", 4, with_int(l4="tcp", stack=block(4), options=bytes.fromhex("0101080a0000000100000001"))),
        ("IPv6", 4, with_int(ends=ENDS6, stack=block(4))), ("IPv6 by port", 4, with_int(ends=ENDS6, npt=1, stack=block(4))), ("VLAN", 4, with_int(vlan=42, stack=block(4))),
        ("complement", 4, with_int(0xF001, stack=block(5))), ("E and M", 4, with_int(flags=3, hops=0, stack=block(4))),
        ("D: nobody gets it", 4, with_int(flags=4, stack=block(4))), ("empty stack", 4, with_int()), ("length no multiple of four", 4, with_int(stack=block(4), data=b"12345")),
        ("cut to the limit", 4, with_int(stack=block(4), data=bytes(600))), ("nobody to report to", 4, with_int(stack=block(4), ip={"dst": "10.0.4.1"}, ends=(ENDS4[0], address4("10.0.4.1")))),
        ("source and sink node in one", 1, to(53)), ("no INT", 4, to(53)), ("version 1 stays", 4, with_int(version=1)), ("other hardware id", 3, with_int(stack=block(4))),
    ]
    drop = device + edge + ROUTES + COLLECTOR + [f"table_add ingress.drops report_drop {r} => 100 1" for r in (26, 29, 80)] + [
        watch("ingress.deny", table="ingress.acl", dport="666&&&65535"), watch("NoAction", table="ingress.acl", dport="667&&&65535")]
    drops = [
        ("TTL 1", 4, to(53, ttl=1)), ("TTL 0", 4, to(53, ttl=0)), ("hop limit 1", 4, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 53, ENDS6), hops=1))),
        ("no route", 4, to(53, dst="10.7.0.1")), ("no route by an entry", 4, to(53, dst="10.0.9.1")), ("no route for IPv6", 4, ethernet(0x86DD, ipv6(17, udp(b"x"), dst=bytes(16)))),
        ("denied", 1, to(666)), ("not denied", 1, to(667)), ("INT inside", 4, with_int(ip={"ttl": 1}, stack=block(4))), ("INT from a host", 1, with_int(stack=block(4))),
    ]
    quiet = device + ROUTES + ["table_add ingress.drops NoAction 29 =>"]
    probe = lambda **kw: with_int(npt=1, original=17769, flags=4, ip={"dscp": PROBE}, stack=block(4), **kw)
    queue = device + ROUTES + COLLECTOR + ["table_add egress.queues watch_queue 2 => 0 0 100 1 0x5c00", "table_add egress.queues watch_queue 4 => 0 60000000 100 1 0x5000"]
    queues = [
        ("no INT", 4, to(53)), ("INT", 4, with_int(stack=block(4))), ("probe", 4, to(53, dscp=PROBE)), ("probe with INT", 4, probe()),
        ("probe, before the first in a minute", 4, to(53, dscp=PROBE, dst="10.0.4.1")), ("first in a minute", 4, to(53, dst="10.0.4.1")), ("second in a minute", 4, to(53, dst="10.0.4.1")),
    ]
    long = device + ROUTES + COLLECTOR + ["set_queue_rate 20 2", "table_add egress.queues watch_queue 2 => 2 0 100 1 0x5c00"]
    longs = [("five packets", 4, [to(53)] * 5), ("five packets with INT", 4, [with_int(0xFF80, stack=block(12))] * 5),
             ("five packets, two of them probes", 4, [to(53)] * 2 + [to(53, dscp=PROBE)] * 2 + [to(53)])]
    longer = sink + ["set_queue_rate 20 2", "table_add egress.queues watch_queue 2 => 2 0 100 1 0x5c00"]
    deep = device + ROUTES + ["table_add egress.queues watch_queue 2 => 1000 0 100 1 0x5c00", "mirroring_add 100 5", "table_add ingress.drops report_drop 29 => 100 2"]
    return [Group("source", source, sources), Group("transit", transit, transits), Group("sink", sink, sinks), Group("drop", drop, drops),
            Group("drop without reports", quiet, [("no route", 4, to(53, dst="10.7.0.1"))]), Group("queue", queue, queues),
            Group("long queue", long, longs), Group("long queue to hosts", longer, longs[1:2] + [("five probes", 4, [probe()] * 5)]),
            Group("below the threshold, and no collector", deep, [("short queue", 4, to(53)), ("no route", 4, to(53, dst="10.7.0.1"))])]


# into


INTO = 0x1470 # the domain of INT that assigned interfaces put in


def assigned(action, port, *params, proto=17, ends=ENDS4, sport=4000, dport=53):
    key = " ".join(str(int.from_bytes(x, "big")) if len(x) == 4 else ":".join(f"{v:x}" for v in struct.unpack(">8H", x)) for x in ends)
    return f"table_add egress.assigned {action} {key} {proto} {sport} {dport} {port} => {' '.join(map(str, params))}".rstrip()


def into():
    """What intmd does, and flows that are assigned to interfaces: port 2 leads to hosts, and 3 and 4 to other switches."""
    block = lambda n: bytes(range(1, 1 + 4 * n))
    device = ["table_set_default egress.device set_device 9 1700000000000000000", "table_add ingress.ingress_port host 1 => 3 0", "table_add ingress.ingress_port host 3 => 4 1",
              "table_add egress.egress_port to_host 2 => 1500 100 1", "table_add egress.egress_port to_fabric 4 => 100", "table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.5.0/24 => 3 0x020000000013 0x020000000010"]
    end = lambda net: (ENDS4[0], address4(f"10.0.{net}.1"))
    to = lambda net, data=b"payload", dport=53, **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, dport, end(net)), dst=f"10.0.{net}.1", **kw))
    tcp4 = lambda net: ethernet(0x0800, ipv4(6, tcp(b"payload", ends=end(net)), dst=f"10.0.{net}.1"))
    carried = lambda net=2, **kw: with_int(domain=INTO, ends=end(net), ip={"dst": f"10.0.{net}.1"}, **kw)
    flows = [assigned("carry", 4, 0xF000, ends=end(4)), assigned("carry", 3, 0xF000, ends=end(5)), assigned("carry", 3, 0xFF80, ends=end(5), sport=3333, dport=80, proto=6),
             assigned("extract", 2, 0xF000, 100, 1), assigned("extract", 2, 0xF000, 100, 1, proto=6, sport=3333, dport=80), assigned("extract", 2, 0xF000, 100, 1, ends=ENDS6),
             assigned("extract", 3, 0xF000, 100, 1, ends=end(5), dport=54), assigned("extract", 3, 0xF000, 0, 0, ends=end(5), dport=55), assigned("carry", 2, 0xF000, dport=56),
             assigned("carry", 2, 0xF001, dport=57), assigned("NoAction", 3, ends=end(5), dport=58)]
    first = [
        ("first interface, UDP", 1, to(5)), ("first interface, TCP", 1, tcp4(5)), ("no room for the header", 1, to(4, bytes(60))), ("room for the header only", 1, to(4, bytes(50))),
        ("UDP without checksum", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 53), dst="10.0.5.1"))), ("DSCP to restore", 1, to(5, dscp=0x2A)),
        ("other flow", 1, to(5, dport=59)), ("entry that does nothing", 1, to(5, dport=58)), ("fragment", 1, to(5, flags=1)), ("ICMP", 1, ethernet(0x0800, ipv4(1, bytes(8), dst="10.0.5.1"))),
        ("VLAN", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 53, end(5)), dst="10.0.5.1"), 42)),
    ]
    middle = [
        ("middle interface", 4, carried(5, stack=block(4))), ("middle interface, by port", 4, carried(5, npt=1, stack=block(4))), ("other bitmap than the packet's", 4, carried(5, bitmap=0xF800, stack=block(6))),
        ("flow without an assignment here", 4, with_int(domain=INTO, ends=(ENDS4[0], address4("10.0.5.2")), ip={"dst": "10.0.5.2"}, stack=block(4))),
        ("no hops left", 4, carried(5, hops=0)), ("no room in the MTU", 4, carried(4, data=bytes(40))), ("width that is not the bitmap's", 4, carried(5, ml=3)),
        ("INT of another domain", 4, with_int(ends=end(5), ip={"dst": "10.0.5.1"})), ("INT of an unknown domain", 4, with_int(domain=0x4142, ends=end(5), ip={"dst": "10.0.5.1"})),
        ("INT that was not read whole", 4, carried(5, stack=block(4), length=40)), ("INT from a host", 1, carried(5)), ("INT from a host that may", 3, carried(4)),
    ]
    last = [
        ("first and last interface in one", 1, to(2)), ("last interface", 4, carried(stack=block(8))), ("sequence number", 4, carried(stack=block(4))), ("TCP", 4, with_int(l4="tcp", domain=INTO, stack=block(4))),
        ("IPv6", 4, with_int(domain=INTO, ends=ENDS6, stack=block(4))), ("last interface towards the fabric", 1, to(5, dport=54)), ("nobody to report to", 1, to(5, dport=55)),
        ("port to hosts that only carries", 1, to(2, dport=56)), ("checksum complement", 1, to(2, dport=57)), ("hosts behind, no assignment", 4, with_int(domain=INTO, ends=(ENDS4[0], address4("10.0.2.9")), ip={"dst": "10.0.2.9"}, stack=block(4))),
        ("INT of another domain", 4, with_int(stack=block(4))), ("D: nobody gets it", 4, carried(flags=4, stack=block(4))),
    ]
    # A source that tracks a flow goes before an assignment.
    tracked = [watch("track", 0xFFFFFFFF, 0x8000, 0, 8, 0)]
    both = [("tracked and assigned", 1, to(5)), ("tracked and extracted", 1, to(2))]
    queue = device + ROUTES + COLLECTOR + flows + ["table_add egress.queues watch_queue 3 => 0 0 100 1 0x5c00", "table_add egress.queues watch_queue 2 => 0 0 100 1 0x5c00"]
    common = device + ROUTES + COLLECTOR + flows
    return intmd() + [Group("first interface", common, first), Group("middle interface", common, middle), Group("last interface", common, last),
                      Group("tracked", common + tracked, both), Group("assigned, and a queue", queue, first[:1] + middle[:1] + last[:2])]


# rft


def rft():
    """What into does, and reports over assigned paths."""
    block = lambda n: bytes(range(1, 1 + 4 * n))
    device = ["table_set_default egress.device set_device 9 1700000000000000000", "table_add ingress.ingress_port host 1 => 3 0", "table_add ingress.ingress_port fabric 4 => 5"]
    send = lambda to, server: f"table_add egress.envelope.collector send {to} => 0x020000000002 0x020000000001 10.0.0.9 {server} 32766 32766 900"
    sink = device + ROUTES + COLLECTOR + [send(128, "10.0.8.1"), send(129, "10.0.8.2"), "table_add egress.egress_port to_host 2 => 1500 100 1"]
    path = lambda action, port, *params, src="10.0.0.9", priority=1: f"table_add ingress.deliver.paths {action} {src} {port} => {' '.join(map(str, params))} {priority}".replace("=>  ", "=> ")
    share = lambda action, lots, *params: f"table_add egress.spread.share {action} {lots} => {' '.join(map(str, params))}"
    reports = [(f"report {n}", 4, with_int(stack=block(4))) for n in range(12)] + [("cut", 4, with_int(stack=block(4), data=bytes(1000)))] * 3
    dear = (1 << 40) - 1
    point = sink + [share("take", "0x0000/1", 128, 0xC001), share("take", "0x8000/2", 129, 0xC002), share("withhold", "0xe000/3"),
                    path("charge", "0xC001&&&0xffff", 3, 1, 1000, 1000), path("charge", "0xC002&&&0xffff", 4, 2, dear, 1), path("refuse", "0&&&0", priority=9)]
    report = lambda port=0xC001, src="10.0.0.9", **kw: ethernet(0x0800, ipv4(17, udp(b"report", port, 32766, None), src=src, dst="10.0.8.1", **kw))
    way = device + ROUTES + [path("pass", "0xC001&&&0xffff", 2), path("NoAction", "0xC003&&&0xffff"), path("refuse", "0&&&0", priority=9)]
    ways = [
        ("on its way", 4, report()), ("unknown tag", 4, report(0xC002)), ("no action", 4, report(0xC003)), ("other address", 4, report(src="10.0.0.8")),
        ("from a host", 1, report()), ("TTL 1", 4, report(ttl=1)), ("TCP", 4, ethernet(0x0800, ipv4(6, tcp(b"report"), src="10.0.0.9", dst="10.0.8.1"))),
        ("IPv6", 4, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 53, ENDS6)))), ("INT", 4, with_int(stack=block(4))), ("no UDP", 4, report()[:38]),
    ]
    return into() + [Group("point", point, reports), Group("no collector", [c for c in point if "send" not in c], reports[:4]), Group("on the way", way, ways)]


# pint


HERE = os.path.dirname(os.path.abspath(__file__))
PLANS = [json.load(open(os.path.join(HERE, f"plan-{bits}.json"))) for bits in (24, 46)]
NARROW, WIDE = (p["epoch"] for p in PLANS)


def line(port, rate, base, shift):
    """The constants of a line of rate bytes a second and a base time in ns, as decode/pint.NewLine makes them."""
    constant = lambda x: math.floor(math.log2(x) * 65536 + 0.5) & 0xFFFFFFFF
    n = base.bit_length() - 1
    cell = (base << (63 - n) << 1 & (1 << 64) - 1) >> 54
    lo, hi = 1 + cell / 1024, 1 + (cell + 1) / 1024
    table = (n << 16) + math.floor(math.log2(lo * hi) / 2 * 65536 + 0.5)
    return f"table_add egress.line.lines line {port} => {base} {constant(base)} {constant((1 << 24) * 1e9 / rate / base)} {table} {shift}"


LOGS = LOGARITHMS + " ".join([f"egress.line.{t}.log" for t in ("log_idle", "log_average", "log_queue", "log_sent")] +
                             [f"egress.line.{t}.exp" for t in ("exp_decay", "exp_queue", "exp_sent")] +
                             [f"egress.{q}.encode.{t}" for q in ("latency", "utilization") for t in ("log_rnd.log", "exp_gap.exp")])


def pint_header(epoch, hops, ident, digest, kind=0x0800):
    return struct.pack(">BBHIQ", epoch, hops, kind, ident, digest)


def digested(epoch, hops, ident, digest, vlan=None, data=b"payload", **kw):
    inner = ipv4(17, udp(data, 4000, 53, ENDS4), **kw)
    return ethernet(0x88B5, pint_header(epoch, hops, ident, digest) + inner, vlan)


def pint():
    device = ["table_set_default egress.device set_device 9"] + ROUTES + COLLECTOR + tables.limits() + [LOGS, line(2, 10_000, 1_000_000_000, 18)]
    plans = tables.entries(PLANS[0]) + tables.entries(PLANS[1])
    everything = 0xFFFFFFFF
    host = ["table_add ingress.ingress_port host 1 => 3", "table_add ingress.ingress_port fabric 4 => 5",
            watch("ingress.carry", everything, NARROW, 0), watch("ingress.carry", everything, WIDE, 1, dport="54&&&65535", priority=1),
            watch("ingress.carry", 0x7FFFFFFF, WIDE, 1, dport="57&&&65535", priority=1), watch("NoAction", dport="59&&&65535", priority=1),
            watch("ingress.carry", everything, NARROW, 0, proto="6&&&255")]
    fabric = ["table_add egress.egress_port to_fabric 2 => 1500 100 1 0", "table_add egress.egress_port to_fabric 4 => 60 0 0 0"]
    to = lambda port, data=b"payload", **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, port, ENDS4), **kw))
    sources = [("UDP", 1, to(53)), ("by IPv4's identification", 1, to(54, ident=1)), ("identification that changes", 1, to(54, ident=2, flags=2)),
               ("identification that does not", 1, to(54, ident=2, flags=2)), ("once more, other payload", 1, to(54, b"more", ident=2, flags=2)),
               ("the same without DF", 1, to(54, ident=2)),
               *((f"sampled by hash {n}", 1, to(57, ident=100 + n)) for n in range(4)), ("not watched", 1, to(59)),
               ("TCP", 1, ethernet(0x0800, ipv4(6, tcp(b"payload", ends=ENDS4)))), ("IPv6", 1, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 54, ENDS6)))),
               ("IPv6 and TCP", 1, ethernet(0x86DD, ipv6(6, tcp(b"payload", ends=ENDS6)))), ("VLAN", 1, ethernet(0x0800, ipv4(17, udp(b"payload", 4000, 53, ENDS4)), 42)),
               ("VLAN and IPv6", 1, SWITCH + HOST + bytes.fromhex("8100002a86dd") + ipv6(17, udp(b"payload", 4000, 53, ENDS6))),
               ("no room", 1, to(53, bytes(40), dst="10.0.4.1")), ("from the fabric", 4, to(53)), ("digest from a host", 1, digested(NARROW, 1, 7, 0)),
               ("IPv4 options", 1, to(53, options=b"\1\1\1\0")), ("fragment", 1, to(53, flags=1)), ("ICMP", 1, ethernet(0x0800, ipv4(1, bytes(8)))),
               ("ICMPv6", 1, ethernet(0x86DD, ipv6(58, bytes(8)))), ("ARP", 1, ethernet(0x0806, bytes(28))), ("ARP in a VLAN", 1, ethernet(0x0806, bytes(28), 42)),
               ("no route", 1, to(53, dst="10.7.0.1")), ("no route by an entry", 1, to(53, dst="10.0.9.1")), ("TTL 1", 1, to(53, ttl=1)),
               ("hop limit 1", 1, ethernet(0x86DD, ipv6(17, udp(b"x", 4000, 53), hops=1))), ("no route for IPv6", 1, ethernet(0x86DD, ipv6(17, udp(b"x"), dst=bytes(16)))),
               ("IPv4 checksum wrong", 1, to(53, broken=1)), ("IPv4 header of 16 bytes", 1, ethernet(0x0800, b"\x44" + ipv4(17, udp(b"payload"))[1:]))]
    transits = [(f"epoch {e}, hop {h}, id {i}", 4, digested(e, h - 1, i, d)) for e, d in ((NARROW, 0), (WIDE, 0x123456789ABC)) for h in (1, 2, 5, 64) for i in range(10, 16)]
    transits += [("epoch that no plan has", 4, digested(6, 2, 10, 0x55)), ("hop 65", 4, digested(NARROW, 64, 10, 0x55)), ("hop number at its end", 4, digested(NARROW, 255, 10, 0x55)),
                 ("VLAN", 4, digested(NARROW, 2, 10, 0, 42)), ("something else inside", 4, ethernet(0x88B5, pint_header(NARROW, 2, 10, 0, 0x0806) + bytes(28))),
                 ("IPv6 inside", 4, ethernet(0x88B5, pint_header(WIDE, 2, 10, 0, 0x86DD) + ipv6(17, udp(b"payload", 4000, 53, ENDS6)))), ("cut in the header", 4, digested(NARROW, 2, 10, 0)[:24])]
    transits += [("after a pause", 4, digested(NARROW, 2, 13, 0), 1.2), ("more than a line holds", 4, [digested(NARROW, 2, i, 0) for i in range(10, 16)])]
    sink = ["table_add egress.egress_port to_host 2 => 1500 100 1", "table_add egress.egress_port to_host 4 => 1500 0 0"]
    # Probes between packets, 1500 bytes each and right behind them: what the packets are told does not change by them.
    wide6 = lambda dscp: ethernet(0x88B5, pint_header(WIDE, 2, 10, 0, 0x86DD) + ipv6(17, udp(b"payload", 4000, 53, ENDS6), dscp=dscp))
    big = lambda dscp: digested(WIDE, 2, 11, 0, data=bytes(1200), dscp=dscp)
    probes = [("probe on an idle line", 4, big(PROBE)), ("first packet", 4, big(0)), ("probe behind it", 4, big(PROBE)), ("probe over IPv6", 4, wide6(PROBE)),
              ("packet behind probes", 4, big(0)), ("packet over IPv6", 4, wide6(0)), ("probe without a digest", 4, to(53, bytes(1200), dscp=PROBE)),
              ("packets and probes in a queue", 4, [big(0), big(PROBE), big(0), big(PROBE), big(0)])]
    sinks = [(f"epoch {e}, id {i}", 4, digested(e, 4, i, 0x123456)) for e in (NARROW, WIDE, 6) for i in (10, 11, 12)]
    sinks += [("VLAN", 4, digested(NARROW, 2, 10, 0, 42)), ("source and last switch in one", 1, to(53)), ("no digest", 4, to(53)),
              ("a switch did not write", 4, digested(NARROW, 255, 10, 0x55)), ("hop 64", 4, digested(NARROW, 63, 10, 0x55)), ("hop 65", 4, digested(NARROW, 64, 10, 0x55)),
              ("nobody to report to", 4, ethernet(0x88B5, pint_header(NARROW, 2, 10, 0) + ipv4(17, udp(b"payload", 4000, 53), dst="10.0.4.1")))]
    # Packets whose digest holds this node's own hash, and a counter that is full: a loop.
    def own(plan, ident):
        """This node's hash and its place in the digest, None where the packet has none."""
        lot = tables.keyed(tables.salt(plan["seed"], tables.SET), ident, 0)
        slots = next(x["slots"] for x in plan["sets"] if x["first"] <= lot <= x["last"])
        at, query = [s["shift"] for s in slots if s["query"] == "loop"], plan["queries"][3]
        bits = query["bits"] - query.get("matches", 0).bit_length()
        h = tables.keyed(tables.salt(plan["seed"] + 4 * tables.QUERY_STEP, tables.VALUES), ident, 9) >> (32 - bits)
        return (h, bits, at[0]) if at else None
    loops = []
    for p in PLANS:
        for i in [i for i in range(10, 60) if own(p, i)][:3]:
            h, bits, at = own(p, i)
            for c in range(p["queries"][3].get("matches", 0) + 1):
                loops.append((f"epoch {p['epoch']}, own hash, counter {c}, id {i}", 4, digested(p["epoch"], 3, i, (h | c << bits) << at)))
        loops.append((f"epoch {p['epoch']}, first hop does not compare", 4, digested(p["epoch"], 0, i, (h | c << bits) << at)))
    marked = lambda frame: frame[:15] + b"\xff" + frame[16:] # hops 255
    quiet = ["table_add egress.egress_port to_fabric 2 => 1500 100 1 60000000"]
    lost = ["table_add egress.egress_port to_host 2 => 1500 100 9"]
    return [Group("source", device + host + plans + fabric, sources), Group("transit", device + ["set_queue_rate 20 2"] + plans + fabric, transits), Group("last switch", device + plans + sink + host, sinks),
            Group("loop", device + plans + fabric, loops), Group("loop, once a minute", device + plans + quiet, loops),
            Group("no collector", device + plans + lost, sinks[:1]), Group("probes", device + ["set_queue_rate 20 2"] + plans + fabric, probes), Group("no plan", device[:-2] + fabric, transits[:2]),
            Group("no plan in the last switch", device[:-2] + sink, sinks[:1]),
            Group("loop that a switch did not write into", device + plans + fabric, [(name, port, marked(frame)) for name, port, frame in loops[:4]])]



# hopscope


ALL = "0&&&0"
CPU = 510


def trust(action, port=None, kind=None, mac=None, dst=None, priority=5):
    """An entry of ingress.probes; kind is 1 for routes, 2 for paths, 3 for digests."""
    key = [f"{port}&&&511" if port else ALL, f"{kind}&&&3" if kind else ALL, f"0x{mac}&&&0xffffffffffff" if mac else ALL, f"{int.from_bytes(address4(dst), 'big')}&&&0xffffffff" if dst else ALL]
    return f"table_add ingress.probes {action} {' '.join(key)} => {priority}"


def other(action, *params, port=None, mac=None, kind=None, priority=5):
    key = [f"{port}&&&511" if port else ALL, f"0x{mac}&&&0xffffffffffff" if mac else ALL, f"0x{kind:x}&&&0xffff" if kind else ALL]
    return f"table_add ingress.other ingress.{action} {' '.join(key)} => {' '.join(map(str, (*params, priority)))}"


def moved(commands):
    """Commands for one of the other programs as hopscope.p4 takes them."""
    out = []
    for c in commands:
        w = c.split()
        if c.startswith("table_set_default egress.device") and len(w) == 4:
            c += " 1700000000000000000"
        elif c.startswith("table_add ingress.ingress_port host") and len(w) == 6:
            c += " 0"
        elif c.startswith("table_add ingress.watch ingress.carry"):
            c = c.replace("ingress.watch ingress.carry", "ingress.pint_watch ingress.pint_carry")
        elif c.startswith("table_add egress.egress_port to_fabric") and len(w) == 9:
            out.append(" ".join(w[:6]))
            c = f"table_add egress.loops report_loops {w[3]} => {' '.join(w[6:])}"
        elif c.startswith("table_add egress.port_mtu set_mtu"):
            c = c.replace("egress.port_mtu set_mtu", "egress.egress_port to_fabric")
        elif c.startswith("table_add ingress.forwarding"):
            continue
        elif c.startswith("table_add egress.assigned ") and "NoAction" not in c:
            c = c.replace("egress.assigned ", "egress.assigned egress.into.")
        out.append(c)
    return out


def hopscope():
    """What the other programs do, as far as this one does it too, and everything at once."""
    groups = []
    for g in into():
        groups.append(Group("INT: " + g.name, moved(g.commands), g.packets))
    followed = [trust("follow", 1), trust("follow", 2), trust("follow", 3)]
    for g in srint()[:4]:
        groups.append(Group("probes: " + g.name, moved(g.commands) + ROUTES + followed, g.packets))
    for g in pint():
        if g.name in ("source", "transit", "last switch", "loop", "loop, once a minute", "probes", "no plan"):
            groups.append(Group("PINT: " + g.name, moved(g.commands) + [trust("follow", 4, 3)], g.packets))
    block = lambda n: bytes(range(1, 1 + 4 * n))
    device = ["table_set_default egress.device set_device 9 1700000000000000000", "table_add ingress.ingress_port host 1 => 3 0", "table_add ingress.ingress_port host 3 => 4 1", "table_add ingress.ingress_port fabric 4 => 5",
              "table_add egress.egress_port to_host 2 => 1500 100 1"] + ROUTES
    path4 = lambda ports, vlan=None, **kw: ethernet(0x0800, ipv4(17, udp(path(ports), 4000, 2222, ENDS4), **kw), vlan)
    to = lambda port, data=b"payload", vlan=None, **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, port, ENDS4), **kw), vlan)
    to6 = lambda port, vlan=None, data=b"payload", **kw: SWITCH + HOST + (struct.pack(">HH", 0x8100, vlan) if vlan is not None else b"") + b"\x86\xdd" + ipv6(17, udp(data, 4000, port, ENDS6), **kw)
    tag = lambda frame, vlan=42: frame[:12] + struct.pack(">HH", 0x8100, vlan) + frame[12:]
    labels = bytes([0, 0])

    # Next hops by the flow: ports 2, 3 and 4 of group 7, and one that is not there.
    spread = [f"table_add ingress.forward.forwarding4 ingress.forward.spread 10.8.0.0/16 => 7 3", "table_add ingress.forward.forwarding6 ingress.forward.spread fd08:0:0:0:0:0:0:0/16 => 7 3",
              "table_add ingress.forward.forwarding4 ingress.forward.spread 10.9.0.0/16 => 8 2", "table_add ingress.forward.member ingress.forward.no_route 8 0 =>"]
    spread += [f"table_add ingress.forward.member ingress.forward.forward 7 {n} => {n + 2} 0x02000000001{n + 2} 0x020000000010" for n in range(3)]
    far6 = bytes.fromhex("fd08") + bytes(13) + b"\1"
    flow4 = lambda port, dst="10.8.0.1", **kw: ethernet(0x0800, ipv4(17, udp(b"payload", 4000 + port, 53), dst=dst, **kw), kw.pop("vlan", None))
    flows = [(f"IPv4, flow {n}", 1, flow4(n)) for n in range(12)] + [(f"IPv6, flow {n}", 1, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000 + n, 53), dst=far6))) for n in range(6)]
    flows += [("TCP", 1, ethernet(0x0800, ipv4(6, tcp(b"payload"), dst="10.8.0.1"))), ("VLAN", 1, tag(flow4(1))), ("VLAN and IPv6", 1, tag(ethernet(0x86DD, ipv6(17, udp(b"payload", 4001, 53), dst=far6)))),
              ("first fragment", 1, flow4(1, flags=1)), ("later fragment", 1, flow4(1, offset=8)), ("ICMP", 1, ethernet(0x0800, ipv4(1, bytes(8), dst="10.8.0.1"))),
              *((f"member that is not there, flow {n}", 1, flow4(n, dst="10.9.0.1")) for n in range(3)), ("TTL 1", 1, flow4(1, ttl=1)),
              ("INT by port goes the way of its flow", 4, ethernet(0x0800, ipv4(17, udp(int_md(0x8000, npt=1, original=53, stack=block(1)) + b"payload", 4001, 17768), dst="10.8.0.1")))]
    salts = lambda n: [f"table_set_default ingress.forward.salt set_salt {n}"]
    groups += [Group("ECMP", device + spread, flows), Group("ECMP, salted", device + spread + salts(0x9E3779B9), flows), Group("ECMP, other salt", device + spread + salts(3), flows)]

    # Frames that are not IP, and the controller's.
    arp = ethernet(0x0806, bytes.fromhex("0001080006040001") + HOST + address4("10.0.1.1") + bytes(6) + address4("10.0.1.254"))
    lldp = bytes.fromhex("0180c200000e") + HOST + bytes.fromhex("88cc") + bytes.fromhex("0207040200000000010403050161060200780000")
    everybody = b"\xff" * 6 + arp[6:]
    frames = [other("pass", 4, port=1, kind=0x0806), other("punt", kind=0x0806, mac="ffffffffffff", priority=1), other("punt", kind=0x88CC), other("drop", port=3), other("pass", 1, port=4, kind=0x0806)]
    out = lambda port, frame: struct.pack(">H", port << 7) + frame
    punts = [("ARP passed", 1, arp), ("ARP passed, VLAN", 1, tag(arp)), ("ARP to everybody punted", 1, everybody), ("ARP to everybody punted, VLAN", 1, tag(everybody)), ("LLDP punted", 2, lldp), ("the answer passed", 4, arp),
             ("dropped by an entry", 3, arp), ("no entry", 2, arp), ("802.3", 1, SWITCH + HOST + struct.pack(">H", 38) + bytes(38)), ("cut in the header of IPv4", 1, to(53)[:30]), ("cut in the header of IPv6", 1, to6(53)[:50]), ("double VLAN", 1, tag(tag(to(53)), 7)),
             ("packet-out, LLDP", CPU, out(3, lldp)), ("packet-out, ARP", CPU, out(1, arp)), ("packet-out, IPv4 with a wrong checksum", CPU, out(2, to(53, broken=1))), ("packet-out, TTL 1", CPU, out(4, to6(53, hops=1))),
             ("packet-out, a path", CPU, out(4, path4([2]))), ("route to the controller", 4, to(53, dst="10.0.6.1"))]
    controller = ["table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.6.0/24 => 510 0x020000000016 0x020000000010"]
    groups.append(Group("CPU port", device + COLLECTOR + frames + controller, punts))

    # What hosts send is theirs, though it looks like a probe or a digest: on its way into the network, and through it.
    wild = route([3, 2], 0x0800, ipv4(6, tcp(b"payload", ends=ENDS4)))
    hosts = [
        ("2222, a path inside", 1, path4([3, 4])), ("2222, 100 bytes", 1, to(2222, bytes(range(100)))), ("2222, short", 1, to(2222, b"x")), ("2222, checksum 0", 1, ethernet(0x0800, ipv4(17, udp(path([3]), 4000, 2222)))),
        ("2222, a wrong checksum", 1, ethernet(0x0800, ipv4(17, udp(path([3]), 4000, 2222, checksum=0x1234)))), ("2222, VLAN", 1, path4([3], 42)), ("2222, IPv6", 1, to6(2222, data=path([3]))), ("2222, VLAN and IPv6", 1, to6(2222, 42, path([3]))),
        ("2222, options", 1, path4([3], options=b"\1\1\1\0")), ("2222, fragment", 1, path4([3], flags=1)), ("2222, length wrong", 1, ethernet(0x0800, ipv4(17, udp(path([3]), 4000, 2222, length=98)))), ("2222, TTL 1", 1, path4([3], ttl=1)),
        ("2222 with INT", 4, with_int(stack=block(4)).replace(struct.pack(">HH", 4000, 53), struct.pack(">HH", 4000, 2222))),
        ("2222 through the fabric", 4, path4([3], dst="10.0.2.77")), ("2222 through the fabric, VLAN", 4, path4([3], 42, dst="10.0.2.77")),
        ("0x0700, TCP inside", 1, wild), ("0x0700, labels", 1, route([3, 2], 0x0701, labels)), ("0x0700, a wrong checksum inside", 1, route([3, 2], 0x0800, ipv4(17, udp(b"x"), broken=1))), ("0x0700, INT inside", 1, wide([3, 2])),
        ("0x0700, cut", 1, wild[:17]), ("0x0700, length odd", 1, route([3, 2], 0x0701, labels, length=5)), ("0x0700, VLAN", 1, tag(wild)), ("0x0700, IPv4 of 16 bytes", 1, route([3, 2], 0x0800, b"\x44" + ipv4(17, udp(b"payload"))[1:])),
        ("0x0701", 1, ethernet(0x0701, bytes([0, 1]) + bytes(range(32)))), ("digest", 1, digested(NARROW, 1, 7, 0x55)), ("digest, VLAN", 1, digested(NARROW, 1, 7, 0x55, 42)), ("digest, cut", 1, digested(NARROW, 1, 7, 0)[:20]),
        ("digest around a wrong checksum", 1, digested(NARROW, 1, 7, 0x55, broken=1)),
    ]
    passed = [other("pass", 4, port=1, kind=k) for k in (0x0700, 0x0701, 0x88B5)]
    agents = [trust("follow", 4, 2, dst="10.0.2.1"), trust("follow", 3), trust("follow", 4, 3), trust("ordinary", 1, 2, dst="10.0.2.78", priority=1)]
    track = [watch("track", 0xFFFFFFFF, 0xF000, 0, 8, 0), "table_add egress.egress_port to_fabric 4 => 1500", "table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.5.0/24 => 4 0x020000000014 0x020000000010"]
    watched = [("2222, a path inside, with INT", 1, path4([3, 4], dst="10.0.5.1")), ("2222, a path inside, with INT, VLAN", 1, path4([3, 4], 42, dst="10.0.5.1")), ("2222, short, with INT", 1, to(2222, b"x", dst="10.0.5.1")),
               ("2222 of a host to an agent's address", 1, path4([3], dst="10.0.2.78"))]
    groups += [Group("hosts", device + COLLECTOR + passed + agents, hosts), Group("hosts, nothing passed", device + COLLECTOR + agents, hosts[15:]),
               Group("hosts, discarded", device + COLLECTOR + passed + [trust("discard", 1), trust("discard", 1, 2, priority=1)], hosts), Group("hosts, with INT", device + COLLECTOR + agents + track, watched)]

    # Probes in VLAN and IPv6, and what must not happen to them.
    wide6 = lambda ports, **kw: route(ports, 0x86DD, ipv6(17, udp(int_md(kw.pop("bitmap", 0xF161), npt=1, original=17769, domain=0xFA17, flags=4, **kw) + b"HPRBpayload!", 0xC001, 17768, ENDS6)))
    probes = [("path, VLAN", 3, path4([2, 4], 42)), ("path, TTL 1", 3, path4([2], ttl=1)), ("route, VLAN", 3, tag(route([4, 2], 0x0701, labels))), ("last entry, VLAN", 3, tag(route([4], 0x0701, labels))),
              ("wide", 3, wide([4, 2], ends=ENDS4)), ("wide to a host", 3, wide([2], ends=ENDS4, stack=block(8))), ("wide, VLAN", 3, tag(wide([4, 2], ends=ENDS4))), ("wide, IPv6", 3, wide6([4, 2])), ("wide, IPv6 to a host, VLAN", 3, tag(wide6([2], stack=block(8)))),
              ("wide marked by DSCP", 3, route([4], 0x0800, with_int(stack=block(4))[14:])), ("INT of an assignment", 3, route([4], 0x0800, with_int(domain=INTO, stack=block(4))[14:])), ("TCP behind a route", 3, route([4], 0x0800, ipv4(6, tcp(b"payload", ends=ENDS4)))),
              ("wrong checksum behind a route", 3, route([4], 0x0800, ipv4(17, udp(b"payload"), broken=1))), ("path to an agent from the fabric", 4, path4([2])), ("path from the fabric by a route used up", 4, path4([2], dst="10.0.2.9")), ("route used up", 3, ethernet(0x0701, bytes([0, 1]) + bytes(range(32))))]
    congested = ["table_add egress.queues watch_queue 2 => 0 0 100 1 0x5c00", "table_add egress.queues watch_queue 4 => 0 0 100 1 0x5c00"]
    plan = tables.limits() + [LOGS, line(2, 10_000, 1_000_000_000, 18), line(4, 10_000, 1_000_000_000, 18)] + tables.entries(PLANS[1])
    digest = [watch("ingress.pint_carry", 0xFFFFFFFF, WIDE, 1, table="ingress.pint_watch", proto=ALL)]
    tracked = [watch("track", 0xFFFFFFFF, 0xF000, 0, 8, 0, proto=ALL)]
    groups.append(Group("probes: VLAN and IPv6, everything else on", device + COLLECTOR + agents + track[1:] + congested + plan + digest + tracked + [assigned("egress.into.carry", 4, 0xF000)], probes))

    # Everything on one switch.
    everything = device + COLLECTOR + spread + salts(77) + frames + controller + agents + track[1:] + plan + digest + [
        watch("track", 0xFFFFFFFF, 0xF000, 0, 8, 0, dport="54&&&65535"), watch("track", 0xFFFFFFFF, 0x8000, 0, 8, 1, dport="55&&&65535"), assigned("egress.into.extract", 2, 0xF000, 100, 1, dport=56), assigned("egress.into.carry", 4, 0xF000, ends=(ENDS4[0], address4("10.0.5.1")), dport=56),
        "table_add egress.queues watch_queue 3 => 0 0 100 1 0x5c00", "table_add egress.loops NoAction 3 =>"] + [f"table_add ingress.drops report_drop {r} => 100 1" for r in (26, 29, 80)] + [watch("ingress.deny", table="ingress.acl", dport="666&&&65535")]
    both4 = lambda net=2, n=1, **kw: (lambda f: f[:12] + struct.pack(">H", 0x88B5) + pint_header(WIDE, 2, 10 + n, 0x123456789ABC) + f[14:])(with_int(ends=(ENDS4[0], address4(f"10.0.{net}.1")), ip={"dst": f"10.0.{net}.1"}, stack=block(4), **kw))
    both6 = lambda n=1, **kw: (lambda f: f[:12] + struct.pack(">H", 0x88B5) + pint_header(WIDE, 2, 10 + n, 0x123456789ABC, 0x86DD) + f[14:])(with_int(ends=ENDS6, stack=block(4), **kw))
    end5 = (ENDS4[0], address4("10.0.5.1"))
    to5 = lambda port, data=b"payload", vlan=None, **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, port, end5), dst="10.0.5.1", **kw), vlan)
    mix = []
    for name, vlan in (("", None), (", VLAN", 42)):
        v = (lambda f: f) if vlan is None else tag
        mix += [("digest alone" + name, 1, v(to5(53))), ("INT and digest" + name, 1, v(to5(54))), ("INT by port and digest" + name, 1, v(to5(55))), ("assigned and digest" + name, 1, v(to5(56))),
                ("TCP, digest" + name, 1, v(ethernet(0x0800, ipv4(6, tcp(b"payload", ends=end5), dst="10.0.5.1")))), ("both from a host to a host" + name, 1, v(to(54))), ("extracted, and a digest" + name, 1, v(to(56))), ("IPv6, both" + name, 1, v(to6(54))), ("IPv6, digest" + name, 1, v(to6(53))),
                ("both pass" + name, 4, v(both4(5))), ("both end here" + name, 4, v(both4())), ("both end here, by port" + name, 4, v(both4(npt=1))), ("both end here, IPv6" + name, 4, v(both6())), ("both end here, TCP" + name, 4, v(both4(l4="tcp"))),
                ("digest ends here" + name, 4, v(digested(WIDE, 2, 20, 0x99))), ("no plan, INT ends here" + name, 4, v(both4().replace(pint_header(WIDE, 2, 11, 0x123456789ABC), pint_header(6, 2, 11, 0x123456789ABC)))),
                ("spread, with a queue" + name, 1, v(flow4(4))), ("probe" + name, 3, v(path4([2]))), ("wide" + name, 3, v(wide([4], ends=ENDS4))), ("ARP" + name, 1, v(arp)), ("LLDP" + name, 1, v(lldp)), ("no room for both" + name, 1, v(to5(54, bytes(1440)))),
                ("room for INT alone" + name, 1, v(to5(54, bytes(1440 - 4)))), ("room for a digest" + name, 4, v(both4(5, data=bytes(1380)))), ("denied" + name, 1, v(to(666))), ("TTL 1, with a digest" + name, 4, v(digested(WIDE, 2, 20, 0x99, ttl=1))), ("no route" + name, 4, v(to(53, dst="10.7.0.1"))), ("2222 of a host" + name, 1, v(path4([3], dst="10.0.5.1"))), ("0x0700 of a host" + name, 1, v(wild))]
    groups.append(Group("everything", everything, mix))

    # The controller behind a sink node: reports have no header of packet-in. And a group without members.
    sink = ["table_add egress.egress_port to_host 510 => 1500 100 1", "table_add ingress.forward.forwarding4 ingress.forward.spread 10.11.0.0/16 => 9 0", "table_add ingress.forward.forwarding6 ingress.forward.spread fd11:0:0:0:0:0:0:0/16 => 9 0"]
    int6 = with_int(ends=(ENDS4[0], address4("10.0.6.1")), ip={"dst": "10.0.6.1"}, stack=block(4))
    groups.append(Group("controller behind a sink node, and no members", everything + sink, [
        ("INT", 4, int6), ("INT, VLAN", 4, tag(int6)), ("both", 4, both4(6)), ("digest", 4, digested(WIDE, 2, 20, 0x99, dst="10.0.6.1")), ("from a host", 1, to(54, dst="10.0.6.1")), ("neither", 4, to(53, dst="10.0.6.1")),
        ("no members", 1, flow4(1, dst="10.11.0.1")), ("no members, IPv6", 4, ethernet(0x86DD, ipv6(17, udp(b"payload", 4000, 53), dst=bytes.fromhex("fd11") + bytes(13) + b"\1")))]))
    groups += counters(device + COLLECTOR + agents + track[1:], passed) + ends(device + COLLECTOR)
    return groups


def segment_header(kind, data):
    """A routing header of IPv6 with one address, and UDP behind it."""
    return bytes([17, 2, kind, 0, 0, 0, 0, 0]) + address6(1, 2) + udp(data, 4000, 53, ENDS6)


def counters(device, passed):
    """Counters of interfaces (FANT): what came before is read by probes with all bits."""
    shown = ["table_add egress.counts egress.show_counts 2 =>", "table_add egress.counts egress.show_counts 4 =>", "table_add egress.counts NoAction 3 =>"]
    to = lambda port, data=b"payload", vlan=None, **kw: ethernet(0x0800, ipv4(17, udp(data, 4000, port, ENDS4), **kw), vlan)
    six = lambda proto, payload, vlan=None: ethernet(0x86DD, ipv6(proto, payload), vlan)
    read = lambda ports, bitmap=0xFFFF, **kw: wide(ports, bitmap, ends=ENDS4, **kw)
    block = bytes(range(1, 17))
    arp = ethernet(0x0806, bytes.fromhex("0001080006040001") + HOST + address4("10.0.1.1") + bytes(6) + address4("10.0.1.254"))
    traffic = [
        ("nothing before", 3, read([2])), ("IPv4", 1, to(53)), ("VLAN", 1, to(53, vlan=42)), ("IPv6", 1, six(17, udp(b"payload", 4000, 53, ENDS6))), ("after IPv4 and IPv6", 3, read([2])),
        ("segment routing of IPv6", 1, six(43, segment_header(4, b"payload"))), ("VLAN and segment routing", 1, six(43, segment_header(4, b"longer payload"), 42)), ("another routing header", 1, six(43, segment_header(0, b"payload"))),
        ("routing header cut", 1, six(43, b"\x11\x02")), ("routing header cut behind a route", 3, route([2], 0x86DD, ipv6(43, b"\x11\x02"))), ("segment routing behind a route", 3, route([2], 0x86DD, ipv6(43, segment_header(4, b"payload")))),
        ("after segment routing", 3, read([2])), ("path", 3, ethernet(0x0800, ipv4(17, udp(path([2]), 4000, 2222)))), ("route", 3, route([2], 0x0701, bytes([0, 0]))), ("after source routes", 3, read([2])),
        ("dropped by the D bit", 4, with_int(flags=4, stack=block)), ("dropped by the D bit again", 4, with_int(flags=4, stack=block, l4="tcp")), ("INT for a host", 4, with_int(stack=block)), ("after the D bit, with its report at another port", 3, read([2])),
        ("dropped in ingress", 1, to(53, dst="10.0.9.1")), ("TTL 1", 1, to(53, ttl=1)), ("after drops of ingress", 3, read([2])), ("basic", 3, read([2], 0xF161)), ("behind another node", 3, read([2], stack=bytes(88))),
        ("INT 2.1 has no such counters", 3, read([2], domain=0)), ("a port that shows none", 3, read([3])), ("frame that is not IP", 1, ethernet(0x0701, b"anything")), ("ARP", 1, arp), ("other port", 3, read([4])),
        ("0x0700 of a host with segment routing inside", 1, route([2], 0x86DD, ipv6(43, segment_header(4, b"payload")))), ("0x0700 of a host with IPv4 and the D bit inside", 1, route([2], 0x0800, with_int(flags=4, stack=block)[14:])), ("2222 of a host", 1, ethernet(0x0800, ipv4(17, udp(path([3]), 4000, 2222), dst="10.0.4.1"))), ("other port again", 3, read([4])),
        ("by a source", 1, to(55)), ("after a source", 3, read([2])),
    ]
    frames = passed + [other("pass", 4, port=1, kind=0x0806)]
    source = [watch("track", 0xFFFFFFFF, 0xFFFF, 0xFA17, 8, 0, dport="55&&&65535")]
    groups = [Group("counters of interfaces", device + frames + source + shown, traffic)]
    # Reports leave by port 5, which shows its counters to a probe.
    groups.append(Group("counters of reports", device + shown + ["table_add egress.counts egress.show_counts 5 =>"], [("INT for a host", 4, with_int(stack=block)), ("and again", 4, with_int(stack=block, data=b"longer payload")), ("after reports", 3, read([5]))]))
    # A queue that is full drops what the egress never sees.
    full = device + shown + ["set_queue_depth 3 2", "set_queue_rate 20 2"]
    burst = [to(53, bytes(4 * n), ident=n) for n in range(12)]
    groups.append(Group("counters of a full queue", full, [("burst", 3, burst), ("after a burst", 3, read([2]), 2), ("burst of IPv6", 3, [six(17, udp(bytes(n), 4000, 53, ENDS6)) for n in range(9)]), ("after another burst", 3, read([2]), 2)]))
    return groups


def ends(device):
    """Both ends of routes of INT-path: generators at ports 1 and 3, and a collector for two addresses."""
    number = lambda ports: int.from_bytes(path(ports)[:64], "big")
    generate = lambda port, ident, ports: f"table_add ingress.generators ingress.generate {port} {ident} => {number(ports):#x}"
    entries = [generate(3, 1, [4, 2, 3]), generate(3, 2, [2]), generate(3, 3, [1]), generate(3, 4, [16] * 128), generate(3, 0xFFFFFFFF, [4]), "table_add ingress.generators NoAction 3 9 =>",
               "table_add ingress.collectors ingress.collect 10.0.8.1 => 2 0x020000000018 0x020000000010", "table_add ingress.collectors ingress.collect 10.0.8.2 => 511 0x020000000018 0x020000000010",
               "table_add ingress.collectors NoAction 10.0.8.3 =>", "table_add egress.egress_port to_fabric 4 => 118"]
    follow = [trust("follow", 3), trust("follow", 4, 2)]
    empty = lambda ident, vlan=None, more=b"", ends=None, length=None, **kw: ethernet(0x0800, ipv4(17, udp(struct.pack(">I", ident) + more, 4000, 2222, ends, length=length), **kw), vlan)
    probe = lambda ports, dst, labels=b"", **kw: ethernet(0x0800, ipv4(17, udp(path(ports, labels), 4000, 2222), dst=dst, **kw))
    label = bytes(range(22))
    generated = [
        ("three switches", 3, empty(1)), ("one switch", 3, empty(2)), ("port 1", 3, empty(3)), ("128 entries", 3, empty(4)), ("highest id", 3, empty(0xFFFFFFFF)), ("VLAN", 3, empty(1, 42)), ("checksum", 3, empty(1, ends=ENDS4)),
        ("bytes behind UDP", 3, empty(1, more=bytes(14), length=12)), ("TTL 1", 3, empty(1, ttl=1)), ("no room for a label", 3, empty(1, length=12, more=bytes(8))), ("no entry", 3, empty(5)), ("an entry of no action", 3, empty(9)), ("no entry at this port", 4, empty(1)),
        ("of a host", 1, empty(1)), ("of a host, VLAN", 1, empty(1, 42)), ("options", 3, empty(1, options=b"\1\1\1\0")), ("fragment", 3, empty(1, flags=1)), ("IPv4 checksum wrong", 3, empty(1, broken=1)), ("length beyond IP", 3, empty(1, length=12, **{"dst": "10.0.2.1"})[:38]),
        ("11 bytes", 3, empty(1, length=11)), ("13 bytes", 3, empty(1, more=b"x")), ("cut", 3, empty(1)[:44]), ("IP shorter than UDP", 3, ethernet(0x0800, ipv4(17, udp(struct.pack(">I", 1), 4000, 2222), length=31))), ("a whole probe", 3, probe([4, 2], "10.0.2.1")),
        ("generated where it is collected", 3, empty(3, dst="10.0.8.1")), ("IPv6", 3, ethernet(0x86DD, ipv6(17, udp(struct.pack(">I", 1), 4000, 2222, ENDS6)))),
    ]
    collected = [
        ("route used up", 4, probe([1], "10.0.8.1", label * 3)), ("route used up, VLAN", 4, (lambda f: f[:12] + struct.pack(">HH", 0x8100, 42) + f[12:])(probe([1], "10.0.8.1", label))), ("route not used up", 4, probe([2], "10.0.8.1", label)), ("highest entry left", 4, probe([1] * 127 + [2], "10.0.8.1", label)),
        ("address without a collector", 4, probe([1], "10.0.8.9", label)), ("an entry of no action", 4, probe([1], "10.0.8.3", label)), ("a port that drops", 4, probe([1], "10.0.8.2", label)), ("TTL 1", 4, probe([1], "10.0.8.1", ttl=1)), ("from a host", 1, probe([1], "10.0.8.1")),
        ("no labels", 3, probe([1], "10.0.8.1")), ("128 labels", 3, probe([1], "10.0.8.1", label * 128)), ("wrong checksum", 4, probe([1], "10.0.8.1", broken=1)),
    ]
    inside = [watch("track", 0xFFFFFFFF, 0xF000, 0, 8, 0, dport="2222&&&65535")]
    # A plan of "hopscope plan cover --sr" by tables.py: at its first node and at its last one.
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "plan-paths.json")) as f:
        plan = json.load(f)
    hosts = {"spine-1": {"address": "10.0.8.9", "mac": "02:00:00:00:00:19", "switch_mac": "02:00:00:00:00:10"}}
    planned = lambda node: device + [tables.as_command(*e) for e in tables.path_entries(plan, node, hosts)] + [trust("follow")]
    return [Group("INT-path: first node of a plan", planned("spine-0"), [("empty", 4, empty(1, dst="10.0.8.9")), ("of no probe", 4, empty(2, dst="10.0.8.9"))]),
            Group("INT-path: last node of a plan", planned("spine-1"), [("route used up", 3, probe([1], "10.0.8.9", label * 6)), ("on its way", 1, probe([2, 1, 3, 2], "10.0.8.9", label * 2))]),
            Group("INT-path: generator", device + entries + follow, generated), Group("INT-path: collector", device + entries + follow, collected),
            Group("INT-path: empty probes of hosts, with INT", device + entries + follow + inside + ["table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.5.0/24 => 3 0x020000000013 0x020000000010"], [("12 bytes to 2222, with INT", 1, empty(1, dst="10.0.5.1"))])]
