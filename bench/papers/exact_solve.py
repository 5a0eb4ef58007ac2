"""Solves mixed integer programmes, one JSON object a line on standard input, and answers each with one line."""
import json
import os
import sys

import highspy

# HiGHS prints its version when it is made, before it can be asked to be quiet: only answers go to standard output.
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

INF = highspy.kHighsInf


def solve(m):
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 1e-7)
    h.setOptionValue("time_limit", 60.0)
    for low, high in m["bounds"]:
        h.addVar(low, INF if high is None else high)
    for k, cost in enumerate(m["cost"]):
        h.changeColCost(k, cost)
    for k in m["integer"]:
        h.changeColIntegrality(k, highspy.HighsVarType.kInteger)
    for r in m["rows"]:
        low = -INF if r["low"] is None else r["low"]
        high = INF if r["high"] is None else r["high"]
        h.addRow(low, high, len(r["at"]), r["at"], r["value"])
    h.run()
    status = h.modelStatusToString(h.getModelStatus())
    if status == "Optimal":
        return {"status": status, "objective": h.getInfo().objective_function_value, "x": list(h.getSolution().col_value)}
    return {"status": status}


for line in sys.stdin:
    print(json.dumps(solve(json.loads(line))), file=answers, flush=True)
