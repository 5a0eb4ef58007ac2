"""Writes golden.csv: what switches of hopscope's own coding schemes write, in Python and one switch after the other.

    python3 golden.py > golden.csv

The path of k hops is the nodes 37·i + 11 modulo 754 for i = 1 to k; raw values are 2654435761·i modulo 2^32.
"""
import zlib

M32, M64 = 2**32 - 1, 2**64 - 1
HOPS, VALUES, LAYER, FRAGMENT = 1, 2, 3, 4


def crc(x):
    return zlib.crc32((x & M32).to_bytes(4, "big"))


def finish(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


class Mix:
    def key(self, seed, id, function):
        return finish(seed << 32 ^ id ^ (function * 0xD6E8FEB86659FD93 & M64))

    def hash(self, key, x):
        x = x + key & M32
        x ^= x >> 17
        x = x * 0xED5AD4BB & M32
        x = x + (key >> 32) & M32
        x ^= x >> 11
        x = x * 0xAC4C1B51 & M32
        x ^= x >> 15
        x = x * 0x31848BAB & M32
        return x ^ x >> 14

    def layer(self, seed, id, function):
        return self.key(seed, id, function) >> 32

    def vector(self, key, j):
        return finish(key + (j + 1) * 0x9E3779B97F4A7C15 & M64)


class CRC:
    def key(self, seed, id, function):
        return crc(crc(seed + function * 0x85EBCA6B) + id)

    def hash(self, key, x):
        return crc(key + crc(key + crc(x)))

    def layer(self, seed, id, function):
        return self.hash(self.key(seed, id, function), 0)

    def vector(self, key, j):
        return self.hash(key, 2 * j) | self.hash(key, 2 * j + 1) << 32


def threshold(p):
    return max(1, round(p * 2**32))


def packet(s, id, instance):
    h, seed = s["hash"], s["seed"] + instance * 0x9E3779B9 & M32
    tau, layers = round(s["tau"] * 2**32), len(s["p"])
    if s["tau"] == 1:
        tau = 2**32
    g, layer = h.layer(seed, id, LAYER), 0
    while layer < layers and g >= tau + layer * (2**32 - tau) // layers:
        layer += 1
    f = -(-s["q"] // s["bits"])
    fragment = h.layer(seed, id, FRAGMENT) * f >> 32 if f > 1 else 0
    return h.key(seed, id, HOPS), h.key(seed, id, VALUES), layer, fragment


def writes(s, key, layer, i):
    t = 2**32 // i if layer == 0 else threshold(s["p"][layer - 1])
    if not s["vectors"]:
        return s["hash"].hash(key, i) < t
    g = 0
    for j in range(32):
        g = g << 1 | s["hash"].vector(key, j) >> (i - 1) & 1
    return g < t


def value(s, key, fragment, i):
    if s["q"]:
        raw = 2654435761 * i & M32 & (1 << s["q"]) - 1
        return raw >> fragment * s["bits"] & (1 << s["bits"]) - 1
    return s["hash"].hash(key, (37 * i + 11) % 754) >> 32 - s["bits"]


SCHEMES = {}
for hash in Mix, CRC:
    for vectors in False, True:
        for name, bits, instances, tau, p, q in (
            ("baseline", 8, 1, 1, [], 0),
            ("hybrid", 8, 2, 0.5, [0.1], 0),
            ("layers", 3, 5, 0.25, [0.0625, 0.3, 0.5], 0),
            ("wide", 32, 2, 0.5, [0.25], 0),
            ("fragments", 7, 1, 0.5, [0.125], 32),
        ):
            name = " ".join([hash.__name__.lower(), name] + ["vectors"] * vectors)
            SCHEMES[name] = dict(hash=hash(), seed=20200810, bits=bits, instances=instances, tau=tau, p=p, q=q, vectors=vectors)

print("scheme,id,hops,writers,digest")
for name, s in SCHEMES.items():
    for id in 0, 1, 2, 3, 500, 65535, 65536, 4294967295:
        for k in 1, 5, 59, 64:
            digest, sets = 0, []
            for n in range(s["instances"]):
                hops, values, layer, fragment = packet(s, id, n)
                d, writers = 0, 0
                for i in range(1, k + 1):
                    if writes(s, hops, layer, i):
                        v = value(s, values, fragment, i)
                        d, writers = (v, 1 << i - 1) if layer == 0 else (d ^ v, writers | 1 << i - 1)
                digest |= d << n * s["bits"]
                sets.append("%x" % writers)
            print("%s,%d,%d,%s,%x" % (name, id, k, " ".join(sets), digest))
