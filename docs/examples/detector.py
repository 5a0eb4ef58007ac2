# A detector of another origin for `hopscope-bench findings --algorithm "python3 docs/examples/detector.py"`. A finding is open while the
# 90th percentile is far from its running mean, by the running deviation, and three windows longer.
import json, sys
p = json.load(sys.stdin)["problem"]
found = []
for windows in p["hops"]:
    spans, mean, deviation, calm = [], None, 0, 3
    for t, (count, least, p50, p90, p99) in enumerate(windows):
        mean = p90 if mean is None else mean
        calm += 1
        if t > 300 and abs(p90 - mean) > 8 * deviation + 1:
            if calm > 3:
                spans.append({"from": t, "to": t + 1})
            calm = 0
        else:
            weight = 1 / min(t + 1, 300)
            mean, deviation = mean + weight * (p90 - mean), deviation + weight * (abs(p90 - mean) - deviation)
        if calm <= 3 and spans:
            spans[-1]["to"] = t + 1
    found.append(spans)
print(json.dumps({"hops": found}))
