#!/usr/bin/env python3
"""Prints the longest chains of a program that p4c-bm2-ss compiled.

    p4c-bm2-ss -DWITH_PINT=0 -o part.json hopscope.p4
    chain.py part.json ...

Of ingress and egress each: how many nodes there are (tables, conditions, and statements outside of tables), the most that one packet
passes, and the longest chain of tables and statements in which each reads what the one before has written, itself or in a condition
in front of it. A switch with stages needs at least as many stages, unless its compiler joins some.
"""
import functools
import json
import sys


def fields(v):
    """The fields in an expression, or in a list of them."""
    if isinstance(v, list):
        return set().union(*map(fields, v)) if v else set()
    if not isinstance(v, dict):
        return set()
    if v.get("type") == "field":
        return {".".join(v["value"])}
    if v.get("type") == "header":
        return {v["value"] + ".$valid$"}
    if v.get("type") == "register_array":
        return {"register " + v["value"]}
    if v.get("type") == "calculation":
        return {"calculation " + v["value"]}
    return set().union(*(fields(x) for x in v.values() if isinstance(x, (dict, list))), set())


def effects(action, sums, members):
    """What an action reads and writes."""
    reads, writes = set(), set()
    for p in action["primitives"]:
        args = p["parameters"]
        written = 0
        if p["op"] in ("assign", "register_read", "add_header", "remove_header", "mark_to_drop", "modify_field_with_hash_based_offset", "assign_header"):
            written = 1
        if p["op"] == "register_write":
            writes |= fields(args[:1])
        writes |= fields(args[:written])
        reads |= fields(args[written:])
        if p["op"] == "assign_header":
            writes |= {f"{args[0]['value']}.{f}" for f in members[args[0]["value"]]}
            reads |= {f"{args[1]['value']}.{f}" for f in members[args[1]["value"]]}
    for name in [x for x in reads if x.startswith("calculation ")]:
        reads |= sums.get(name[12:], set())
    return reads, writes


def longest(program, pipe):
    sums = {c["name"]: fields(c["input"]) for c in program["calculations"]}
    types = {t["name"]: [f[0] for f in t["fields"]] for t in program["header_types"]}
    members = {h["name"]: types[h["header_type"]] for h in program["headers"]}
    actions = {a["id"]: effects(a, sums, members) for a in program["actions"]}
    nodes, reads, writes = {}, {}, {}
    for t in pipe["tables"]:
        nodes[t["name"]] = set(t["next_tables"].values()) | {t.get("base_default_next")}
        reads[t["name"]] = {".".join(k["target"]) for k in t["key"]} | set().union(*(actions[i][0] for i in t["action_ids"]))
        writes[t["name"]] = set().union(*(actions[i][1] for i in t["action_ids"]))
    for c in pipe["conditionals"]:
        nodes[c["name"]] = {c["true_next"], c["false_next"]}
        reads[c["name"]], writes[c["name"]] = fields(c["expression"]), set()
    nodes = {n: {x for x in next if x} for n, next in nodes.items()}

    @functools.cache
    def behind(n):
        return frozenset().union(*({x} | behind(x) for x in nodes[n]))

    @functools.cache
    def passes(n):
        return 1 + max(map(passes, nodes[n]), default=0)

    conditions = {c["name"] for c in pipe["conditionals"]}

    @functools.cache
    def guards(n):
        """What is behind one outcome of a condition, and not behind the other."""
        ways = [{x} | behind(x) for x in nodes[n]] + [set()] * (2 - len(nodes[n]))
        return frozenset(ways[0] ^ ways[1]) if n in conditions else frozenset()

    @functools.cache
    def depends(n):
        return (n not in conditions) + max((depends(x) for x in behind(n) if writes[n] & reads[x] or x in guards(n)), default=0)

    first = pipe["init_table"]
    return len(nodes), passes(first) if first else 0, max(map(depends, nodes), default=0)


def main():
    sys.setrecursionlimit(10000)
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path) as f:
            program = json.load(f)
        for pipe in program["pipelines"]:
            print("%s, %s: %d nodes, %d in a row, %d dependent" % (path, pipe["name"], *longest(program, pipe)))


main()
