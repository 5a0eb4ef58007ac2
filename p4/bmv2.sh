#!/bin/sh
# Runs each program on three BMv2 switches in a row, with a collector behind them, and shows what its page knows.
#
#   h1 ── 1 s1 2 ── 1 s2 2 ── 1 s3 2 ── h2        port 5 of each switch leads to the collector
#
# SWITCH, CLI and HOPSCOPE are simple_switch or simple_switch_grpc, simple_switch_CLI and hopscope; without HOPSCOPE it is built.
# Switches with P4Runtime serve it on ports 9551 to 9553, besides what the CLI needs. Root is needed, for network namespaces. Arguments are the programs: srint, intmd, pint, hopscope, or nothing for all of them.
# With hopscope, IPv4, IPv6, VLAN, ARP, INT, PINT and probes run at once, and what h2 receives is compared with what h1 sent.
set -eu
cd "$(dirname "$0")"
SWITCH=${SWITCH:-simple_switch} CLI=${CLI:-simple_switch_CLI}
SPACE=p4bmv2-$$
DIR=$(mktemp -d)
HOPSCOPE=${HOPSCOPE:-$DIR/hopscope}
[ -x "$HOPSCOPE" ] || go build -o "$HOPSCOPE" ../cmd/hopscope

in_space() { ip netns exec $SPACE "$@"; }

stop() {
	for f in "$DIR"/*.pid; do
		[ -f "$f" ] && kill "$(cat "$f")" 2>/dev/null && rm "$f"
	done
	sleep 1
}
trap 'stop || :; ip netns del $SPACE 2>/dev/null || :; rm -rf "$DIR"' EXIT INT TERM

start() { # NAME COMMAND...: in the background, until stop
	name=$1
	shift
	ip netns exec $SPACE "$@" > "$DIR/$name.log" 2>&1 &
	echo $! > "$DIR/$name.pid"
}

link() { # END END: two ends of a line
	in_space ip link add "$1" mtu 9000 type veth peer name "$2" mtu 9000
	in_space ip link set "$1" up
	in_space ip link set "$2" up
}

ip netns add $SPACE
in_space sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
in_space ip link set lo up
link h1 s1p1; link s1p2 s2p1; link s2p2 s3p1; link s3p2 h2
for s in 1 2 3; do
	link c$s s${s}p5
	in_space ip link set c$s address 02:00:00:00:00:99
	in_space ip addr add 10.255.$s.1/24 dev c$s
done
in_space ip addr add 10.0.2.1/24 dev h2
in_space ip link set h2 address 02:00:00:00:00:12

routes() { # the switch S sends everything for 10.0.2.0/24 to the right
	echo "table_add ingress.forward.forwarding4 ingress.forward.forward 10.0.2.0/24 => 2 0x020000000012 0x020000000010"
	echo "mirroring_add 100 5"
	echo "table_add egress.envelope.collector send 1 => 0x020000000099 0x020000000010 10.255.$1.$((10 + $1)) 10.255.$1.1 49152 32766 400"
}

tables_srint() {
	echo "table_set_default egress.device set_device $1 0"
	echo "table_add ingress.forwarding forward 10.0.2.0/24 => 2"
}

tables_intmd() {
	routes "$1"
	echo "table_set_default egress.device set_device $1 0"
	[ "$1" != 1 ] || echo "table_add ingress.ingress_port host 1 => 0 0"
	[ "$1" != 1 ] || echo "table_add ingress.watch track 0&&&0 0&&&0 17&&&255 0&&&0 0&&&0 => 0xffffffff 0xfc00 0 8 0 1"
	[ "$1" != 3 ] || echo "table_add egress.egress_port to_host 2 => 1500 100 1"
}

tables_pint() {
	routes "$1"
	echo "table_set_default egress.device set_device $1"
	[ "$1" != 1 ] || echo "table_add ingress.ingress_port host 1 => 0"
	[ "$1" != 1 ] || echo "table_add ingress.watch ingress.carry 0&&&0 0&&&0 17&&&255 0&&&0 0&&&0 => 0xffffffff 236 0 1"
	[ "$1" != 3 ] || echo "table_add egress.egress_port to_host 2 => 1500 100 1"
	python3 tables.py vectors/plan-24.json
}

tables_hopscope() {
	routes "$1"
	echo "table_add ingress.forward.forwarding6 ingress.forward.forward fd00:0:0:0:0:0:0:0/16 => 2 0x020000000012 0x020000000010"
	echo "table_set_default egress.device set_device $1 0"
	echo "table_add ingress.other ingress.pass 1&&&511 0&&&0 0x0806&&&0xffff => 2 1"
	echo "table_add ingress.probes follow 1&&&511 2&&&3 0&&&0 0x0a000201&&&0xffffffff => 1" # to the address of an agent
	[ "$1" = 1 ] || echo "table_add ingress.probes follow 1&&&511 3&&&3 0&&&0 0&&&0 => 1"
	[ "$1" != 1 ] || echo "table_add ingress.ingress_port host 1 => 0 0"
	[ "$1" != 1 ] || echo "table_add ingress.watch track 0&&&0 0&&&0 17&&&255 0&&&0 53&&&65535 => 0xffffffff 0xfc00 0 8 0 1"
	[ "$1" != 1 ] || echo "table_add ingress.pint_watch ingress.pint_carry 0&&&0 0&&&0 17&&&255 0&&&0 54&&&65535 => 0xffffffff 236 0 1"
	[ "$1" != 3 ] || echo "table_add egress.egress_port to_host 2 => 1500 100 1"
	python3 tables.py vectors/plan-24.json
}

failed=0
for program in ${*:-srint intmd pint hopscope}; do
	for s in 1 2 3; do
		target=
		case $SWITCH in *_grpc) target="-- --grpc-server-addr 127.0.0.1:955$s" ;; esac
		start switch$s "$SWITCH" -i 1@s${s}p1 -i 2@s${s}p2 -i 5@s${s}p5 --thrift-port 909$s bmv2/$program.json $target
	done
	cat > "$DIR/hopscope.yaml" <<-YAML
		window: 1s
		instance: bmv2
		udp:
		  listen: [10.255.1.1:32766, 10.255.2.1:32766, 10.255.3.1:32766, 10.0.2.1:2222]
		exporters:
		  profiles: [{prefix: 10.0.1.0/24, profile: int-path}]
		pint:
		  nodes: 1-3
		  plans: [$PWD/vectors/plan-24.json]
	YAML
	sleep 2
	for s in 1 2 3; do
		tables_$program $s | in_space $CLI --thrift-port 909$s > "$DIR/cli.log" 2>&1
		if grep -q "Error\|Invalid\|Unknown" "$DIR/cli.log"; then
			grep "Error\|Invalid\|Unknown" "$DIR/cli.log" >&2
			exit 1
		fi
	done
	start collector "$HOPSCOPE" collect --config "$DIR/hopscope.yaml"
	sleep 1
	in_space python3 - $program <<-'PYTHON' || failed=1
		import socket, sys, time
		sys.dont_write_bytecode = True
		sys.path.insert(0, "vectors")
		from frames import *
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("h1", 0))
		heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
		heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
		heard.bind(("h2", 3))
		# Frames by kind, and the payload that h2 gets of each; probes change on their way.
		to = lambda i, port, vlan=None, dst="10.0.2.1": ethernet(0x0800, ipv4(17, udp(struct.pack(">I", i) + b"payload", 4000 + (vlan or 0), port, ENDS4), dst=dst, ident=i), vlan)
		probe = lambda i: ethernet(0x0800, ipv4(17, udp(path([2, 2, 2], action=i), dport=2222), ident=i))
		user = lambda i: ethernet(0x0800, ipv4(17, udp(path([5, 5, 5], action=i), 4000, 2222), dst="10.0.2.2", ident=i))
		arp = bytes.fromhex("0001080006040001") + HOST + address4("10.0.1.1") + bytes(6) + address4("10.0.2.1")
		kinds = {"srint": [probe], "intmd": [lambda i: to(i, 53)], "pint": [lambda i: to(i, 53)], "hopscope": [
		    probe, user, lambda i: to(i, 53), lambda i: to(i, 54), lambda i: to(i, 53, 42), lambda i: to(i, 80, 43),
		    lambda i: ethernet(0x86DD, ipv6(17, udp(struct.pack(">I", i) + b"payload", 4000, 53, ENDS6))), lambda i: ethernet(0x0806, arp + struct.pack(">H", i))]}
		# What is sent and has to come, behind Ethernet, VLAN, TTL and checksum of IPv4.
		def core(f):
		    kind, at = f[12:14], 14
		    if kind == b"\x81\x00":
		        kind, at = f[16:18], 18
		    b = f[at:]
		    return kind + (b[:8] + b[9:10] + b[12:] if kind == b"\x08\x00" else b[:7] + b[8:] if kind == b"\x86\xdd" else b)
		want = []
		for i in range(100):
		    for kind in kinds[sys.argv[1]]:
		        f = kind(i)
		        if kind is not probe:
		            want.append(core(f))
		        s.send(bytes.fromhex("020000000012") + f[6:]) # the address of h2: probes keep it
		    time.sleep(0.03)
		got, heard_last = [], time.monotonic()
		heard.settimeout(0.2)
		while time.monotonic() - heard_last < 2:
		    try:
		        f, address = heard.recvfrom(1 << 16)
		    except TimeoutError:
		        continue
		    if address[2] != socket.PACKET_OUTGOING:
		        got.append(core(f))
		        heard_last = time.monotonic()
		lost = len(want) - sum(1 for x in set(want) if x in set(got))
		print(f"h2 got {len(got)} frames, and lacks {lost} of {len(want)} that it should get as they were sent")
		sys.exit(lost > 0)
	PYTHON
	sleep 3
	echo "== $program: what the page shows"
	in_space python3 - $program <<-'PYTHON' || failed=1
		import json, sys, urllib.request
		get = lambda what: json.load(urllib.request.urlopen("http://127.0.0.1:8080/api/" + what))
		seen = {w: get(w) for w in ("flows", "hops", "exporters")}
		for what, v in seen.items():
		    print(what, json.dumps(v)[:1200])
		if sys.argv[1] == "srint": # probes are no flows: their hops are on the page
		    sys.exit(0 if seen["hops"]["total"] == 3 else "the page does not have three hops")
		nodes = [[h["node"] for h in f.get("path") or []] for f in seen["flows"]["flows"]]
		whole = nodes.count(["1", "2", "3"])
		want = 4 if sys.argv[1] == "hopscope" else 1 # INT in IPv4, VLAN and IPv6, and PINT
		sys.exit(0 if whole >= want else f"the page has the paths {nodes}, want 1, 2, 3 in {want}")
	PYTHON
	stop
done
exit $failed
