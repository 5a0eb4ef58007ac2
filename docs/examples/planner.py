# A planner of another origin for `hopscope-bench planner cover attention --algorithm "python3 docs/examples/planner.py"`. Covers are
# Euler trails: where probes begin and end at depots one of them passes each link twice, and otherwise links that are not there join odd
# nodes in pairs, and trails are cut at these. Attention goes to the probe with the most new suspicious links per cost.
import json, sys, networkx as nx
q = json.load(sys.stdin)
p = q["problem"]
if q["family"] == "cover":
    g, walks = nx.MultiGraph([(l["a"], l["b"]) for l in p["links"]]), []
    if p.get("depots"):
        g.add_edges_from(list(g.edges()))
        walks = [[u for u, _ in nx.eulerian_circuit(g, p["depots"][0])] + [p["depots"][0]]]
    for part in [] if walks else list(nx.connected_components(g)):
        odd = [n for n in part if g.degree(n) % 2]
        g.add_edges_from((a, b, "new") for a, b in zip(odd[1::2], odd[2::2]))
        walks.append([])
        for u, v, key in nx.eulerian_path(g.subgraph(part), keys=True):
            walks[-1] = walks[-1] or [u]
            walks.append([]) if key == "new" else walks[-1].append(v)
    print(json.dumps({"probes": [{"nodes": w} for w in walks]}))
elif q["family"] == "attention":
    left, chosen = set(p["suspicious"]), []
    while any(left & set(t["links"]) for t in p["probes"]):
        best = max(p["probes"], key=lambda t: len(left & set(t["links"])) / t["cost"])
        left -= set(best["links"])
        chosen.append({"id": best["id"]})
    print(json.dumps({"probes": chosen}))
else:
    sys.exit("this planner knows covers and attention")
