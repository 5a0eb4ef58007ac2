#!/usr/bin/env python3
"""Records what a program does to packets on BMv2's simple_switch.

    record.py --switch simple_switch --cli simple_switch_CLI --compiler p4c-bm2-ss [--out DIR] [PROGRAM ...]

Each group of cases.py gets a switch of its own, in a network namespace with a pair of interfaces for every port. Packets go in one
by one; what comes out of every port is written down with the tables and with what the switch measured itself. README.md says how
the files look. A file grows by each group under the name PROGRAM.json.part, and is renamed when it is whole.
"""
import argparse
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

import cases

PORTS = [1, 2, 3, 4, 5, 510]  # reports leave by 5; 510 is the controller's
SPACE = os.environ.get("P4VECTORS") or f"p4vectors-{os.getpid()}"
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 3, 263, 8, 16
FIELDS = ["instance", "ingress_port", "egress_port", "packet_length", "ingress_us", "egress_us", "enqueued_us", "enqueue_depth", "queue_us"]


COVERED = {"states": r"entering state '(.*)'", "tables": r"Applying table '(.*)'"}


def run(*args, **kw):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw).stdout


def inside(*args, **kw):
    return run("ip", "netns", "exec", SPACE, *args, **kw)


def make_space():
    subprocess.run(["ip", "netns", "del", SPACE], stderr=subprocess.DEVNULL)
    run("ip", "netns", "add", SPACE)
    inside("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    inside("ip", "link", "set", "lo", "up")
    for port in PORTS:
        inside("ip", "link", "add", f"s{port}", "mtu", "9000", "type", "veth", "peer", "name", f"h{port}", "mtu", "9000")
        for end in "sh":
            inside("ip", "link", "set", f"{end}{port}", "up")


def tagged(frame, extra):
    """The frame with its VLAN tag, which the kernel takes out of what it receives."""
    for level, kind, data in extra:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", data[:20])
            if status & VLAN_VALID:
                return frame[:12] + struct.pack(">HH", tpid or 0x8100, tci) + frame[12:]
    return frame


class Switch:
    def __init__(self, args, code, directory, covered):
        self.covered = covered
        self.log = os.path.join(directory, "log")
        self.args = args
        links = [x for p in PORTS for x in ("-i", f"{p}@s{p}")]
        self.process = subprocess.Popen([args.switch, *links, "--thrift-port", "9099", "--log-console", "--log-flush", "-L", "trace", code],
                                        stdout=open(self.log, "w"), stderr=subprocess.DEVNULL)
        self.read, self.table = 0, None
        self.await_commands()
        self.sockets = {}
        for port in PORTS:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) # hears nothing until it is bound, not even the loopback device
            s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            s.bind((f"h{port}", ETH_P_ALL))
            self.sockets[s.fileno()] = (port, s)

    def await_commands(self):
        for _ in range(100):
            if self.process.poll() is not None:
                sys.exit(f"{self.args.switch} ended with code {self.process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", 9099), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{self.args.switch} takes no commands")

    def configure(self, commands):
        out = subprocess.run([*self.args.cli.split(), "--thrift-port", "9099"], input="\n".join(commands) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        if re.search(r"Error|Invalid|Unknown|not found|Traceback", out):
            sys.exit("simple_switch_CLI: " + "\n".join(l for l in out.splitlines() if re.search(r"Error|Invalid|Unknown|not found|Traceback", l)))

    def passes(self):
        """What the switch logged about passes through its egress since the last call."""
        with open(self.log) as f:
            f.seek(self.read)
            lines = f.readlines()
            self.read = f.tell()
        found = []
        for line in lines:
            for kind, pattern in COVERED.items():
                if m := re.search(pattern, line):
                    self.covered[kind].add(m.group(1))
            if m := re.search(r"Applying table '(.*)'", line):
                self.table = m.group(1)
            if (m := re.search(r"Action entry is (\S+)", line)) and self.table:
                self.covered["actions"].add(self.table + " " + m.group(1))
            m = re.search(r"intrinsic ([0-9a-fx ]+)", line)
            if m:
                found.append(dict(zip(FIELDS, (int(v, 0) for v in m.group(1).split()))))
            m = re.search(r"depth (\w+)", line)
            if m and found and "dequeue_depth" not in found[-1]:
                found[-1]["dequeue_depth"] = int(m.group(1), 0)
        return found

    def send(self, port, frames):
        for _, (p, s) in self.sockets.items():
            if p == port:
                for f in frames:
                    s.send(f)
        # Until nothing has happened for a while, neither in the log nor at a port.
        out, size, end = [], 0, time.monotonic() + 0.25
        while time.monotonic() < end:
            ready = select.select(list(self.sockets), [], [], 0.05)[0]
            now = os.path.getsize(self.log)
            if ready or now != size:
                size, end = now, time.monotonic() + 0.25
            for fd in ready:
                p, s = self.sockets[fd]
                data, extra, _, address = s.recvmsg(1 << 16, 256)
                if address[2] != socket.PACKET_OUTGOING:
                    data = tagged(data, extra)
                    out.append({"port": p, "frame": data.hex()})
        return sorted(out, key=lambda o: o["port"]) # those of one port in their order

    def close(self):
        self.process.terminate()
        self.process.wait()
        for _, (_, s) in self.sockets.items():
            s.close()


def compile(args, program, directory):
    code = os.path.join(args.load or directory, program + ".json")
    if args.load:
        return code
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([*args.compiler.split(), "-DRECORD", "-o", code, program + ".p4"], check=True, cwd=os.path.dirname(here))
    return code


def check_tables(code, groups):
    """Ends if a command names a table that the program lacks."""
    with open(code) as f:
        known = {t["name"] for p in json.load(f)["pipelines"] for t in p["tables"]}
    for group in groups:
        for c in group.commands:
            if (m := re.match(r"table_\w+ (\S+)", c)) and m.group(1) not in known:
                sys.exit(f"{group.name}: {c!r}: the program has no such table")


def record(args, program, code, group, covered):
    with tempfile.TemporaryDirectory() as d:
        switch = Switch(args, code, d, covered)
        try:
            switch.configure([c for c in group.commands if not c.startswith("#")] + cases.expand(group.commands))
            switch.passes()
            packets = []
            for name, port, frame, *pause in group.packets:
                time.sleep(sum(pause))
                frames = frame if isinstance(frame, list) else [frame]
                out = switch.send(port, frames)
                p = {"name": name, "in": {"port": port, "frame": frames[0].hex()}}
                if len(frames) > 1:
                    p["behind"] = [{"port": port, "frame": f.hex()} for f in frames[1:]]
                packets.append({**p, "passes": switch.passes(), "out": out})
                print(f"{program}/{group.name}/{name}: {len(out)} out", file=sys.stderr)
            return {"name": group.name, "commands": group.commands, "packets": packets}
        finally:
            switch.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--switch", default="simple_switch")
    p.add_argument("--cli", default="simple_switch_CLI")
    p.add_argument("--compiler", default="p4c-bm2-ss")
    p.add_argument("--load", help="directory of programs that were compiled with -DRECORD, instead of a compiler")
    p.add_argument("--resume", action="store_true", help="go on behind the groups of PROGRAM.json.part, which the same program has to have made")
    p.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    p.add_argument("programs", nargs="*", default=["srint", "intmd", "into", "pint", "rft", "hopscope"])
    args = p.parse_args()
    if "P4VECTORS" not in os.environ: # once more, in the namespace
        make_space()
        code = subprocess.call(["ip", "netns", "exec", SPACE, sys.executable, *sys.argv], env={**os.environ, "P4VECTORS": SPACE})
        subprocess.run(["ip", "netns", "del", SPACE], stderr=subprocess.DEVNULL)
        sys.exit(code)
    for program in args.programs:
        with tempfile.TemporaryDirectory() as d:
            code = compile(args, program, d)
            covered, groups, planned = {k: set() for k in ("states", "tables", "actions")}, [], cases.groups(program)
            check_tables(code, planned)
            path = os.path.join(args.out, program + ".json")
            if args.resume and os.path.exists(path + ".part"):
                with open(path + ".part") as f:
                    part = json.load(f)
                groups = part["groups"]
                covered = {k: set(v) for k, v in part["covered"].items()}
                if [(g["name"], g["commands"]) for g in groups] != [(g.name, g.commands) for g in planned[:len(groups)]]:
                    sys.exit(f"{path}.part is of other cases")
            for group in planned[len(groups):]:
                groups.append(record(args, program, code, group, covered))
                with open(path + ".part", "w") as f:
                    json.dump({"program": program, "covered": {k: sorted(x for x in v if not x.startswith("tbl_")) for k, v in covered.items()}, "groups": groups}, f, indent=1)
                    f.write("\n")
            os.replace(path + ".part", path)


main()
