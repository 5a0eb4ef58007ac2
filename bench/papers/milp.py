# The mathematical programmes of INTO, equations 1 to 11, by HiGHS: for `hopscope-bench planner orchestrate --algorithm
# ".cache/python/bin/python bench/papers/milp.py"`. It stops a tenth before its time ends, with the best plan found.
import json, os, sys
import highspy

# HiGHS prints its version when it is made: only the answer goes to standard output.
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
q = json.load(sys.stdin)
if q["family"] != "orchestrate":
    sys.exit("these programmes orchestrate")
interfaces, flows = q["problem"]["interfaces"], q["problem"]["flows"]
concentrate = q["objective"] == "concentrate"
h = highspy.Highs()
for option, value in (("output_flag", False), ("threads", 1), ("time_limit", 0.9 * q["seconds"])):
    h.setOptionValue(option, value)
columns = 0


def variable(cost, high, kind=highspy.HighsVarType.kInteger):
    global columns
    h.addVar(0, high)
    h.changeColCost(columns, cost)
    h.changeColIntegrality(columns, kind)
    columns += 1
    return columns - 1


most = None if concentrate else variable(1, highspy.kHighsInf, highspy.HighsVarType.kContinuous)
x, over = {}, [[] for _ in interfaces]
for f, flow in enumerate(flows):
    at = [variable(0, 1) for _ in flow["interfaces"]]
    load = [float(interfaces[i]["demand"]) for i in flow["interfaces"]]
    for i, k in zip(flow["interfaces"], at):
        x[k] = (i, f)
        over[i].append(k)
    if concentrate:
        h.addRow(-highspy.kHighsInf, 0, len(at) + 1, at + [variable(1, 1)], load + [-float(flow["capacity"])])
    else:
        h.addRow(-highspy.kHighsInf, flow["capacity"], len(at), at, load)
        h.addRow(-highspy.kHighsInf, 0, len(at) + 1, at + [most], load + [-1.0])
for row in over:
    h.addRow(1, 1, len(row), row, [1.0] * len(row))
h.run()
values = h.getSolution().col_value
if not h.getSolution().value_valid:
    sys.exit("no plan in time: " + h.modelStatusToString(h.getModelStatus()))
plan = {interfaces[i]["id"]: flows[f]["id"] for k, (i, f) in x.items() if values[k] > 0.5}
print(json.dumps({"objective": q["objective"], "assignment": plan}), file=answers)
