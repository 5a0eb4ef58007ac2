# A decoder of another origin for `hopscope-bench pint --algorithm "python3 docs/examples/decoder.py"`. A digest of which one writer is
# unknown leaves the switches whose hash completes it, and switches one after the other are linked.
import json, sys, networkx as nx
p = json.load(sys.stdin)["problem"]
links, hops, paths = nx.Graph(p["links"]), range(p["hops"]), []
for flow in p["flows"]:
    fit, before = [set(range(p["nodes"])) for _ in hops], 0
    digests = [(d["writers"], d["digest"], bytes.fromhex(d["hashes"])) for d in flow["digests"]]
    while before != (before := sum(map(len, fit))):
        for writers, digest, hashes in digests:
            unknown = [h for h in writers if len(fit[h]) > 1]
            if len(unknown) == 1:
                for h in set(writers) - set(unknown):
                    digest ^= hashes[min(fit[h])]
                fit[unknown[0]] = {n for n in fit[unknown[0]] if hashes[n] == digest}
        for h in [*hops][1:]:
            fit[h] &= set().union(*(links[n] for n in fit[h - 1]))
        for h in [*hops][:0:-1]:
            fit[h - 1] &= set().union(*(links[n] for n in fit[h]))
    paths.append([min(f) for f in fit] if before == p["hops"] else None)
print(json.dumps({"paths": paths}))
