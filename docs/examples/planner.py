# A planner of another origin for `hopscope-bench planner cover attention --algorithm "python3 docs/examples/planner.py"`: it
# reads an instance and prints the decisions of a plan. Covers are walks along links that no walk has passed; where probes begin and
# end at depots, one walk passes each link in both directions. Attention goes to the probe with the most new suspicious links per cost.
import json, sys
sys.setrecursionlimit(100000)
q = json.load(sys.stdin)
p = q["problem"]
if q["family"] == "cover":
    free = {n: [] for n in p["nodes"]}
    for l in p["links"]:
        free[l["a"]].append(l["b"]), free[l["b"]].append(l["a"])
    def pass_link(a, b):
        free[a].remove(b), free[b].remove(a)
    def tour(a, walk):
        while free[a]:
            b = free[a][0]
            pass_link(a, b)
            walk.append(b)
            tour(b, walk)
            walk.append(a)
        return walk
    walks = []
    if p.get("depots"):
        walks.append(tour(p["depots"][0], [p["depots"][0]]))
    while any(free.values()):
        walk = [max(free, key=lambda n: (len(free[n]) % 2, len(free[n])))]
        while free[walk[-1]]:
            walk.append(free[walk[-1]][0])
            pass_link(walk[-2], walk[-1])
        walks.append(walk)
    print(json.dumps({"probes": [{"nodes": w} for w in walks]}))
elif q["family"] == "attention":
    left, chosen = set(p["suspicious"]), []
    while left:
        best = max(p["probes"], key=lambda t: len(left & set(t["links"])) / t["cost"])
        if not left & set(best["links"]):
            break
        left -= set(best["links"])
        chosen.append({"id": best["id"]})
    print(json.dumps({"probes": chosen}))
else:
    sys.exit("this planner knows covers and attention")
