"""Builds and reads STAMP packets: without authentication by scapy's contrib.stamp, with it from the drawings of RFC 8762, since scapy
has no such layer. It reads a JSON object a line, and writes one."""

import hashlib
import hmac
import json
import struct
import sys
from decimal import Decimal, getcontext

from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated as Reflected,
    STAMPSessionSenderTestUnauthenticated as Sent,
    STAMPTestTLV,
)
from scapy.utils import EDecimal

getcontext().prec = 60


def estimate(word):
    return ErrorEstimate(S=word >> 15, Z=word >> 14 & 1, scale=word >> 8 & 0x3F, multiplier=word & 0xFF)


def word(e):
    return e.S << 15 | e.Z << 14 | e.scale << 8 | e.multiplier


def stamp(raw, e):
    if e >> 14 & 1:
        return raw
    return EDecimal(Decimal(raw) / (1 << 32))


def raw(value, e):
    if e >> 14 & 1:
        return int(value)
    return int((Decimal(value) * (1 << 32)).to_integral_value())


def digest(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()[:16]


def extensions(x, seq, key):
    """The extensions of RFC 8972, the digest behind all but padding."""
    out = b""
    for t in x.get("tlvs") or []:
        value = bytes.fromhex(t["value"])
        if t["type"] == 8 and not value:
            value = digest(key, struct.pack("!I", seq) + out)
        out += bytes(STAMPTestTLV(flags=t["flags"], type=t["type"], len=len(value), value=value))
    return out


def build(x):
    key = bytes.fromhex(x.get("key", ""))
    tail = extensions(x, x["seq"], key)
    if not key:
        p = Reflected() if x["kind"] == "answer" else Sent()
        p.seq, p.err_estimate, p.ssid = x["seq"], estimate(x["error"]), x["ssid"]
        p.ts = stamp(x["time"], x["error"])  # behind the estimate, which has its format
        if x["kind"] == "answer":
            p.seq_sender, p.err_estimate_sender, p.ttl_sender = x["sender_seq"], estimate(x["sender_error"]), x["ttl"]
            p.ts_rx, p.ts_sender = stamp(x["received"], x["error"]), stamp(x["sender_time"], x["sender_error"])
        return bytes(p) + tail
    if x["kind"] == "answer":
        base = struct.pack("!I12xQHH4xQ8xI12xQH6xB15x", x["seq"], x["time"], x["error"], x["ssid"], x["received"], x["sender_seq"], x["sender_time"], x["sender_error"], x["ttl"])
    else:
        base = struct.pack("!I12xQHH68x", x["seq"], x["time"], x["error"], x["ssid"])
    assert len(base) == 96
    return base + digest(key, base) + tail


def read(x):
    b, key = bytes.fromhex(x["packet"]), bytes.fromhex(x.get("key", ""))
    if key:
        out = dict(zip(("seq", "time", "error", "ssid"), struct.unpack("!I12xQHH", b[:28])))
        if x["kind"] == "answer":
            names = ("seq", "time", "error", "ssid", "received", "sender_seq", "sender_time", "sender_error", "ttl")
            out = dict(zip(names, struct.unpack("!I12xQHH4xQ8xI12xQH6xB15x", b[:96])))
        out["signed"] = hmac.compare_digest(digest(key, b[:96]), b[96:112])
        rest, out["tlvs"] = b[112:], []
        while len(rest) >= 4:
            flags, kind, n = struct.unpack("!BBH", rest[:4])
            out["tlvs"].append(dict(flags=flags, type=kind, value=rest[4 : 4 + n].hex()))
            if kind == 8:
                out["guarded"] = hmac.compare_digest(digest(key, b[:4] + b[112 : len(b) - len(rest)]), rest[4:20])
            rest = rest[4 + n :]
        return out
    p = (Reflected if x["kind"] == "answer" else Sent)(b)
    e = word(p.err_estimate)
    out = dict(seq=p.seq, time=raw(p.ts, e), error=e, ssid=p.ssid)
    if x["kind"] == "answer":
        f = word(p.err_estimate_sender)
        out.update(received=raw(p.ts_rx, e), sender_seq=p.seq_sender, sender_time=raw(p.ts_sender, f), sender_error=f, ttl=p.ttl_sender)
    out["tlvs"] = [dict(flags=int(t.flags), type=t.type, value=bytes(t.value).hex()) for t in p.tlv_objects]
    return out


for line in sys.stdin:
    x = json.loads(line)
    if x["do"] == "build":
        answer = dict(packet=build(x).hex())
    else:
        answer = read(x)
    print(json.dumps(answer), flush=True)
