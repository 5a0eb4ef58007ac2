# Suspects of another origin for `hopscope-bench loop --algorithm "python3 docs/examples/suspects.py"`. A link is suspected where probes
# that cross it lost half of their rounds in two cycles, and no other probe that crosses it came through.
import json, sys
p = json.load(sys.stdin)["problem"]
past, suspected = {}, []
for cycle in p["cycles"]:
    lossy, clean, now = set(), set(), {}
    for probe, x in enumerate(cycle):
        sent, lost = past.get(probe, (0, 0))
        now[probe] = x["sent"], x["lost"]
        if 2 * (lost + x["lost"]) >= sent + x["sent"] > 0:
            lossy |= set(p["probes"][probe])
        elif x["sent"] > x["lost"]:
            clean |= set(p["probes"][probe])
    suspected.append(sorted(lossy - clean))
    past = now
print(json.dumps({"cycles": suspected}))
