#!/usr/bin/env python3
"""Prints the table entries of a plan for a switch, as simple_switch_CLI takes them.

    hopscope plan queries --format json queries.json > plan.json
    tables.py plan.json | simple_switch_CLI

    hopscope plan cover --topology lab.yaml --sr --format json > plan.json
    tables.py plan.json --node leaf-1 [--hosts hosts.json] [--json] | simple_switch_CLI

A plan of queries (PINT) has hash crc, and of each kind of query one at most: a path of one or two instances, latency, utilization, loops. The
entries are those of decode/pint: the tests make the same plan there and compare what switches wrote.

A plan of probes (INT-path) has routes. A node generates the probes that begin there: an empty probe by the port of its sender, whose action id is
the number of the probe in the plan, from 1 on, gets the route. With hosts, routes end at their last node, which collects the probes by
destination: hosts.json has, by the last node's name, the address of the host there, its MAC address, and that of the switch to it:

    {"leaf-2": {"address": "10.0.2.1", "mac": "02:00:00:00:00:12", "switch_mac": "02:00:00:00:00:10"}}

With --json entries are as hopscope control takes them in switches[].entries.
"""
import argparse
import json
import math
import struct
import sys
import zlib

HOPS, VALUES, LAYER, SET, ROUNDING = 1, 2, 3, 5, 6  # functions of a packet id
QUERY_STEP, INSTANCE_STEP = 0x632BE5AB, 0x9E3779B9
WORD = 1 << 32


def crc(x):
    return zlib.crc32(struct.pack(">I", x % WORD))


def salt(seed, function):
    """What is added to a packet's id to make the key of a function."""
    return crc(seed + function * 0x85EBCA6B)


def keyed(k, ident, x):
    key = crc(k + ident)
    return crc(key + crc(key + crc(x)))


def powers(ratio, bits, unit):
    levels = [0, unit]
    while len(levels) < 1 << bits and levels[-1] < (1 << 64) - 1:
        levels.append(max(min(levels[-1] * ratio >> 32, (1 << 64) - 1), levels[-1] + 1))
    return levels


def levels(bits, unit, most):
    """Those of pint.NewCode with kind multiplicative: the smallest ratio, in 2^-32, that reaches the maximum."""
    low, high = WORD, (1 << 64) - 1
    while high - low > 1:
        mid = low + (high - low) // 2
        if powers(mid, bits, unit)[-1] >= most:
            high = mid
        else:
            low = mid
    return powers(high, bits, unit)


def log2(x):
    """In 2^-16, rounded to the nearest."""
    return math.floor(math.log2(x) * 65536 + 0.5)


def code(query, epoch, bits, unit, most):
    control, out = f"egress.{query}.encode", []
    list_ = levels(bits, unit, most)
    for i, low in enumerate(list_[:-1]):
        out.append(f"table_add {control}.code {control}.level {epoch} {low}->{list_[i + 1] - 1} => {i} {low} {log2(list_[i + 1] - low)} 1")
    return out + [f"table_add {control}.code {control}.last {epoch} {list_[-1]}->{(1 << 64) - 1} => {len(list_) - 1} 1"]


def layers(name, epoch, tau, xor):
    """Layers share the hashes: Baseline up to tau, the rest the XOR layers in equal parts."""
    first = end = round(tau * WORD) if xor else WORD
    out = [f"table_add egress.{name}.layer egress.{name}.baseline {epoch} 0->{end - 1} => 1"] if end else []
    for i, p in enumerate(xor):
        upto = end + (i + 1) * (WORD - end) // len(xor)
        if upto > first:
            out.append(f"table_add egress.{name}.layer egress.{name}.xor {epoch} {first}->{upto - 1} => {max(1, round(p * WORD)) - 1} 1")
        first = upto
    return out


def query_entries(plan, i, q):
    epoch, seed = plan["epoch"], plan.get("seed", 0) + (i + 1) * QUERY_STEP
    kind, bits = (q["aggregation"], q["value"]), q["bits"]
    slots = [(n, s["shift"]) for n, set_ in enumerate(plan["sets"]) for s in set_["slots"] if s["query"] == q["name"]]
    ones = lambda n: (1 << n) - 1
    if kind == ("static", "node") and q["instances"] <= 2:
        out = []
        for n in range(q["instances"]):
            x, name = seed + n * INSTANCE_STEP, f"path{n}"
            out += [f"table_add egress.{name}.slot egress.{name}.use {epoch} {s} => {at + n * bits} {ones(bits)} {32 - bits} {salt(x, HOPS)} {salt(x, VALUES)} {salt(x, LAYER)}" for s, at in slots]
            out += layers(name, epoch, q.get("tau", 0), q.get("xor") or [])
        return out
    if kind == ("dynamic", "latency") and q["instances"] == 1:
        return [f"table_add egress.latency.slot egress.latency.use {epoch} {s} => {at} {ones(bits)} {salt(seed, HOPS)} {salt(seed, ROUNDING)}" for s, at in slots] + \
            code("latency", epoch, bits, q.get("min_value", 1), q["max_value"])
    if kind == ("per-packet", "utilization"):
        return [f"table_add egress.utilization.slot egress.utilization.use {epoch} {s} => {at} {ones(bits)} {salt(plan.get('seed', 0), ROUNDING + i)}" for s, at in slots] + \
            code("utilization", epoch, bits, q.get("min_value", 1), q["max_value"])
    if kind == ("loop", "node"):
        matches = q.get("matches", 0)
        return [f"table_add egress.loop.slot egress.loop.use {epoch} {s} => {at} {ones(bits)} {bits - matches.bit_length()} {matches} {salt(seed, VALUES)} {salt(seed, HOPS)}" for s, at in slots]
    sys.exit(f"tables.py: query {q['name']!r}: pint.p4 does not compute {q['aggregation']} of {q['value']} with {q['instances']} instances")


def entries(plan):
    if plan["hash"] != "crc":
        sys.exit(f"tables.py: the plan's hash is {plan['hash']}: switches have crc")
    names = [q["aggregation"] for q in plan["queries"]]
    if len(set(names)) < len(names):
        sys.exit("tables.py: two queries are of one kind, and pint.p4 has room for one of each")
    epoch = plan["epoch"]
    out = [f"table_add egress.plan egress.set_plan {epoch} => {salt(plan.get('seed', 0), SET)} {int(plan['bits'] > 32)}"]
    out += [f"table_add egress.pint_set egress.carry {epoch} {s['first']}->{s['last']} => {n} 1" for n, s in enumerate(plan["sets"])]
    for i, q in enumerate(plan["queries"]):
        out += query_entries(plan, i, q)
    return out


def limits():
    """The entries of all plans: hop i replaces what is in a packet of the Baseline layer with probability 1/i."""
    return [f"table_add egress.pint_replace egress.at_most {i} => {WORD // i - 1}" for i in range(1, 65)]


MOST_PORT, MOST_HOPS = 16, 128 # of a route of INT-path


def route_number(ports):
    """The number that a route is: 4 bits a port, less 1, the first one lowest."""
    return sum(p - 1 << 4 * i for i, p in enumerate(ports))


def check_route(ident, ports):
    if len(ports) > MOST_HOPS or any(not 1 <= p <= MOST_PORT for p in ports):
        sys.exit(f"tables.py: probe {ident}: a route has {MOST_HOPS} ports from 1 to {MOST_PORT} at most")


def path_entries(plan, node, hosts):
    """Entries as (table, match, action, parameters), in numbers."""
    generators, collectors = [], {}
    for number, q in enumerate(plan["probes"], 1):
        host = hosts.get(q["collector"])
        if not q.get("route") or not q.get("agent_port") or not q.get("collector_port"):
            sys.exit(f"tables.py: probe {q['id']}: no route of INT-path from port to port: plan with --sr int-path, and with agents at switches")
        ports = list(q["ports"]) + ([] if host else [q["collector_port"]])
        check_route(q["id"], ports)
        if host:
            # A used-up route looks like one whose entries lead to port 1: the collector takes both.
            for i, n in enumerate(q["nodes"][:-1]):
                if n == q["collector"] and all(p == 1 for p in ports[i:]):
                    sys.exit(f"tables.py: probe {q['id']}: {n} would collect it before its end, since only ports 1 are left of its route")
        if q["agent"] == node:
            generators.append(("ingress.generators", (q["agent_port"], number), "generate", (route_number(ports),)))
        if host and q["collector"] == node:
            address = int.from_bytes(bytes(int(x) for x in host["address"].split(".")), "big")
            mac = lambda name: int(host[name].replace(":", ""), 16)
            collectors[address] = ("ingress.collectors", (address,), "collect", (q["collector_port"], mac("mac"), mac("switch_mac")))
    return list(collectors.values()) + generators


def as_command(table, match, action, params):
    number = lambda v: f"{v:#x}" if v >> 32 else str(v)
    return f"table_add {table} ingress.{action} {' '.join(map(number, match))} => {' '.join(map(number, params))}"


def as_json(entries):
    number = lambda v: "0x" + v.to_bytes(max(1, (v.bit_length() + 7) // 8), "big").hex()
    return json.dumps({"entries": [{"table": t, "match": [{"value": number(v)} for v in match], "action": action, "params": [number(v) for v in params]} for t, match, action, params in entries]}, indent=1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("plan")
    p.add_argument("--node", help="switch, of a plan of probes")
    p.add_argument("--hosts", help="file with the hosts that collect probes")
    p.add_argument("--json", action="store_true", help="entries for hopscope control")
    args = p.parse_args()
    with open(args.plan) as f:
        plan = json.load(f)
    if "probes" not in plan:
        print("\n".join(limits() + entries(plan)))
        return
    if not args.node:
        sys.exit("tables.py: --node names the switch of a plan of probes")
    hosts = {}
    if args.hosts:
        with open(args.hosts) as f:
            hosts = json.load(f)
    list_ = path_entries(plan, args.node, hosts)
    print(as_json(list_) if args.json else "\n".join(as_command(*e) for e in list_))


if __name__ == "__main__":
    main()
