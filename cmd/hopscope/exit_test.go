package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/internal/testkit"
)

// exitOf runs the command in this process and returns what the program would end with.
func exitOf(t *testing.T, args ...string) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetIn(strings.NewReader("{}"))
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil {
		t.Fatalf("hopscope %s did not end", strings.Join(args, " "))
	}
	return exitStatus(err), err
}

// everyCommand returns the commands that do something, without those that cobra adds.
func everyCommand(c *cobra.Command) (list []*cobra.Command) {
	if c.Name() == "completion" || c.Name() == "help" {
		return nil
	}
	list = append(list, c)
	for _, sub := range c.Commands() {
		list = append(list, everyCommand(sub)...)
	}
	return list
}

// written are the flags that say where something is written, which is wrong for one place and right for another.
var written = []string{"svg", "data"}

// anyValue are the flags that may have any value: a name, and what the machine may have in a minute.
var anyValue = []string{"agent --name", "agent --interface"}

// TestExitStatusOfWrongQuestions asks every command wrongly, in every argument and every flag that can be wrong.
func TestExitStatusOfWrongQuestions(t *testing.T) {
	capture, err := os.ReadFile(filepath.Join("..", "..", "decode", "testdata", "int05-in-report05.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"good.pcap":   string(capture),
		"bad.yaml":    "window: 3\n",
		"text":        "this is nothing\n",
		"odd.edges":   "a b\na\n",
		"queries.yml": "bits: 8\nqueries:\n  - {name: a, value: node, aggregation: loop, widths: [4]}\n",
		"i.json":      `{"probes":[{"id":"a","links":["1"]}],"suspicious":["1"]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, setting := range map[string]string{
		"token": "influx: {enabled: true, token_file: nowhere}", "env": "influx: {enabled: true, token_env: HOPSCOPE_NO_SUCH_VARIABLE}",
		"ca":    "influx: {enabled: true, url: https://x, ca_file: text}",
		"cert":  "influx: {enabled: true, url: https://x, cert_file: nowhere, key_file: nowhere}",
		"page":  "web: {token_file: nowhere}",
		"tls":   "web: {tls_cert_file: nowhere, tls_key_file: nowhere}",
		"short": "web: {token_file: i.json}\nwindow: 3", "board": "web: {dashboards: [nowhere]}", "noboard": "web: {dashboards: [text]}",
		"pcap": "pcap: {files: [nowhere]}", "directory": "pcap: {files: [.]}",
		"topology": "pint: {topology: nowhere.gml}", "odd": "pint: {topology: odd.edges}", "tree": "pint: {topology: \"fat-tree:7\"}",
		"plan": "pint: {plans: [nowhere.json]}", "noplan": "pint: {plans: [text]}", "policy": "policy: nowhere", "rules": "policy: text", "seed": "seed_file: nowhere",
	} {
		if err := os.WriteFile(name+".yaml", []byte(setting+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := []string{
		"agent x", "agent --config nowhere", "agent --config .", "agent --config bad.yaml", "agent --collector nonsense", "agent --interface lo --dialect klingon",
		"agent --interface lo --check --probes nowhere", "agent --interface lo --check --probes text", "agent --interface lo --check --schedule nowhere",
		"agent --interface lo --check --probes i.json --schedule text", "agent --interface lo --check --attention text", "agent --stamp :7", "agent --reflect eth0",
		"agent ways x", "agent ways --format xml", "agent ways --answers loopback", "agent ways --rounds -1", "agent ways --for 1ms", "agent ways --lossy --separate", "agent ways --url nonsense", "agent ways --url ftp://x",
		"agent status x", "agent status --format xml", "agent status --url nonsense", "agent status --url ftp://x",
		"nonsense", "--nonsense", "help nonsense", "help plan nonsense", "completion nonsense", "completion bash nonsense",
		"bench", "bench nonsense", "bench pipeline --flows 0", "bench --help",
		"control x", "control --config nowhere", "control --config bad.yaml", "control config x", "demo --control nonsense",
		"control approve x", "control approve --format xml", "control approve --url nonsense",
		"control dry-run x", "control dry-run --format xml", "control dry-run --url nonsense",
		"control log x", "control log --format xml", "control log --url nonsense",
		"control pause x", "control pause --format xml", "control pause --url nonsense",
		"control reject x", "control reject --format xml", "control reject --url nonsense",
		"control resume x", "control resume --format xml", "control resume --url nonsense",
		"control rollback x", "control rollback --format xml", "control rollback --url nonsense",
		"control status x", "control status --format xml", "control status --url nonsense",
		"control wet-run x", "control wet-run --format xml", "control wet-run --url nonsense",
		"collect x", "collect --format xml", "collect --config nowhere", "collect --config .", "collect --config bad.yaml", "collect --config text", "collect --dashboard nowhere", "collect --dashboard .", "collect --dashboard text",
		"config nonsense", "config check", "config check nowhere", "config check .", "config check bad.yaml", "config check text", "config check a b",
		"config print nowhere", "config print bad.yaml", "config print a b",
		"config size a b", "config size nowhere", "config size bad.yaml", "config size --format xml", "config size --reports -1", "config size --reports 500x", "config size --flows 0",
		"config size --path 65", "config size --life 1ms", "config size --unit -1s", "config size --collectors 0",
		"config profiles nonsense", "config profiles a b", "config profiles --format xml",
		"decode", "decode a b", "decode nowhere", "decode .", "decode good.pcap --profile klingon", "decode good.pcap --names nowhere", "decode good.pcap --config nowhere", "config profiles --config nowhere", "decode good.pcap --format xml", "decode good.pcap --report-port 0",
		"decode good.pcap --nodes 9-1", "decode good.pcap --topology fat-tree:7", "decode good.pcap --topology nowhere", "decode good.pcap --nodes 1 --topology fat-tree:4",
		"detect", "detect a b", "detect nowhere", "detect .", "detect text", "detect text --format xml", "detect text --floor 0", "detect text --window 1ms", "detect text --kind colour", "detect text --false-a-day 0",
		"demo x", "demo --format xml", "demo --listen 192.0.2.1:80", "demo --listen nonsense", "demo --listen 127.0.0.1:99999", "demo --duration -1s", "demo --gear token-ring", "demo --plain --gear sonic", "demo --everything --plain", "demo --dashboard nowhere", "demo --dashboard .", "demo --dashboard text",
		"docs a b", "docs nowhere", "docs findings#nowhere", "docs ../go", "docs operating --search spool", "docs --listen nonsense", "docs --listen 127.0.0.1:99999",
		"docs --search spool --listen 127.0.0.1:0",
		"export nonsense", "export images x", "export images", "export images --out e --format gif", "export images --out e --metric colour", "export images --out e --windows 0",
		"export images --out e --url nonsense", "export images --out e --token-file nowhere",
		"flow a b", "flow nonsense", "flow --format xml", "flow --url nonsense", "flow --url ftp://x", "flow --token-file nowhere", "flow --token-file .",
		"find", "find a --format xml", "find a --url nonsense", "find a --token-file nowhere",
		"health x", "health --url nonsense", "health --url ftp://x", "health --timeout 0s", "health --timeout nonsense",
		"top x", "top --format xml", "top --url nonsense", "top --token-file nowhere", "top --sort nope", "top --limit 0", "top --limit 201",
		"plan nonsense",
		"plan attention", "plan attention x", "plan attention --instance nowhere", "plan attention --instance text", "plan attention --instance i.json --method magic",
		"plan attention --instance i.json --format xml", "plan attention --instance i.json --time-limit 0s", "plan attention --instance i.json --alpha 2",
		"plan attention --instance i.json --beta -1", "plan attention --instance i.json --switch-cost -1", "plan attention --instance i.json --detailed z",
		"plan attention --instance i.json --check nowhere", "plan attention --instance i.json --check text", "plan attention --metrics nowhere", "plan attention --metrics text",
		"plan attention --topology fat-tree:7 --probes i.json --suspicious a", "plan attention --topology fat-tree:4 --probes nowhere --suspicious a",
		"plan attention --topology fat-tree:4 --probes i.json --suspicious core-0--core-1",
		"plan cover", "plan cover x", "plan cover --topology fat-tree:7", "plan cover --topology nowhere", "plan cover --topology odd.edges", "plan cover --topology .",
		"plan cover --topology fat-tree:4 --method magic", "plan cover --topology fat-tree:4 --format xml", "plan cover --topology fat-tree:4 --max-hops -1",
		"plan cover --topology fat-tree:4 --max-port -1", "plan cover --topology fat-tree:4 --mtu 0", "plan cover --topology fat-tree:4 --sr=x",
		"plan cover --topology fat-tree:4 --depots nobody", "plan cover --topology fat-tree:4 --skip core-0--core-1", "plan cover --topology fat-tree:4 --check nowhere",
		"plan cover --topology fat-tree:4 --replan text", "plan cover --topology fat-tree:4 --time-limit -1s",
		"plan cover --topology fat-tree:4 --agents nowhere", "plan cover --topology fat-tree:4 --agents text", "plan cover --topology fat-tree:4 --dialect klingon --bitmap 1",
		"plan cover --topology fat-tree:4 --dialect fant --bitmap all", "plan cover --topology fat-tree:4 --dialect fant", "plan cover --topology fat-tree:4 --hosts nobody",
		"plan cover --topology fat-tree:4 --minimise effort", "plan cover --topology fat-tree:4 --minimise delay", "plan cover --topology fat-tree:4 --skip-node nobody",
		"plan diff", "plan diff i.json", "plan diff nowhere i.json", "plan diff text i.json", "plan diff i.json i.json", "plan diff i.json i.json --format xml",
		"plan diff i.json i.json --topology nowhere", "plan diff i.json i.json --instance nowhere",
		"plan delivery", "plan delivery x", "plan delivery --instance nowhere", "plan delivery --instance text", "plan delivery --topology fat-tree:7", "plan delivery --topology fat-tree:4 --method magic",
		"plan delivery --topology fat-tree:4 --loss-test luck", "plan delivery --topology fat-tree:4 --reserve 0.5", "plan delivery --topology fat-tree:4 --format xml",
		"plan delivery --topology fat-tree:4 --check nowhere", "plan delivery --topology fat-tree:4 --time-limit 0s",
		"plan delivery --topology fat-tree:4 --replan nowhere", "plan delivery --topology fat-tree:4 --replan text", "plan delivery --topology fat-tree:4 --churn 1",
		"plan attention --instance i.json --replan nowhere", "plan attention --instance i.json --replan text", "plan attention --instance i.json --churn 1",
		"plan orchestrate --from-collector nowhere", "plan attention --topology fat-tree:4 --probes i.json --from-collector nowhere", "plan queries queries.yml --from-collector nowhere",
		"plan delivery --instance i.json --from-collector nowhere", "plan cover --topology fat-tree:4 --minimise cost --from-collector nowhere",
		"plan orchestrate --from-collector http://127.0.0.1:1 --items 0", "plan delivery --instance i.json --from-collector http://127.0.0.1:1 --report-bytes 0",
		"plan orchestrate --token-file text", "plan attention --instance i.json --token-file text", "plan delivery --instance i.json --token-file text", "plan delivery --reports-of text", "plan delivery --instance i.json --reports-of nowhere", "plan delivery --instance i.json --reports-of text",
		"plan cover --topology fat-tree:4 --token-file text", "plan queries queries.yml --token-file text",
		"plan orchestrate", "plan orchestrate x", "plan orchestrate --instance nowhere", "plan orchestrate --instance text", "plan orchestrate --topology fat-tree:7",
		"plan orchestrate --topology fat-tree:4 --demands nowhere", "plan orchestrate --topology fat-tree:4 --demands text", "plan orchestrate --topology fat-tree:4 --model half",
		"plan orchestrate --topology fat-tree:4 --objective speed", "plan orchestrate --topology fat-tree:4 --method magic", "plan orchestrate --topology fat-tree:4 --redundancy 0",
		"plan orchestrate --topology fat-tree:4 --packet-bytes 0", "plan orchestrate --topology fat-tree:4 --demand-min 20", "plan orchestrate --topology fat-tree:4 --demand-max 0",
		"plan orchestrate --topology fat-tree:4 --capacity-mean 0", "plan orchestrate --topology fat-tree:4 --capacity-stdv -1", "plan orchestrate --topology fat-tree:4 --format xml",
		"plan orchestrate --topology fat-tree:4 --check nowhere", "plan orchestrate --topology fat-tree:4 --time-limit 0s",
		"plan orchestrate --topology fat-tree:4 --class gold", "plan orchestrate --topology fat-tree:4 --replan nowhere", "plan orchestrate --topology fat-tree:4 --replan text",
		"plan schedule", "plan schedule x", "plan schedule --instance nowhere", "plan schedule --instance text", "plan schedule --topology fat-tree:7 --probes i.json",
		"plan schedule --topology fat-tree:4", "plan schedule --topology fat-tree:4 --probes nowhere", "plan schedule --topology fat-tree:4 --probes text",
		"plan schedule --topology fat-tree:4 --probes i.json --agent-limit much", "plan schedule --topology fat-tree:4 --probes i.json --link-limit -1bps",
		"plan schedule --topology fat-tree:4 --probes i.json --class x", "plan schedule --topology fat-tree:4 --probes i.json --skip core-0--core-1",
		"plan schedule --topology fat-tree:4 --probes i.json --format xml", "plan schedule --topology fat-tree:4 --probes i.json --check nowhere",
		"plan schedule --topology fat-tree:4 --probes i.json --replan nowhere", "plan schedule --topology fat-tree:4 --probes i.json --slot 0s",
		"plan queries queries.yml --replan nowhere", "plan queries queries.yml --replan text",
		"plan queries", "plan queries nowhere", "plan queries .", "plan queries text", "plan queries queries.yml --bits 0", "plan queries queries.yml --hash md5", "plan queries queries.yml --format xml",
		"plan queries queries.yml --format p4", "plan queries queries.yml --format entries", "plan queries queries.yml --routing chance", "plan queries queries.yml --topology fat-tree:7", "plan queries queries.yml --check nowhere",
		"plan queries queries.yml --epoch 256", "plan queries queries.yml --time-limit 0s",
		"replay", "replay a b", "replay nowhere", "replay .", "replay good.pcap --profile klingon", "replay good.pcap --format xml", "replay good.pcap --report-port 65536",
		"replay good.pcap --nodes x", "replay good.pcap --topology fat-tree:7", "replay good.pcap --topology nowhere", "replay good.pcap --flows -1", "replay good.pcap --hops -1",
		"replay good.pcap --speed -1", "replay good.pcap --speed NaN", "replay good.pcap --speed Inf", "replay good.pcap --config nowhere", "replay good.pcap --config bad.yaml",
		"replay good.pcap --config token.yaml", "replay good.pcap --config topology.yaml",
		"selftest x", "selftest --format xml", "selftest --config nowhere", "selftest --config bad.yaml", "selftest --config topology.yaml", "selftest --rate -1", "selftest --rate NaN", "selftest --rate 1e9",
		"console x", "console --config nowhere", "console --config bad.yaml",
		"consume x", "consume --config nowhere", "consume --config bad.yaml", "consume --format xml", "consume --from yesterday",
		"top --from yesterday", "top --to 1h", "top --from 1h --to tomorrow", "top --from 1h --to 2h", "top --interfaces --from 1h", "flow 10.0.0.1 --filter 7",
		"findings x", "findings --format xml", "findings --fail-on fatal", "findings --explain nonsense", "findings --explain drops --all", "findings --token-file nowhere", "findings --url nonsense", "findings --file text", "findings --file .",
		"findings ack", "findings ack nonsense", "findings ack node 7", "findings ack drops --file text", "findings ack drops --file nowhere/x",
		"findings accept", "findings accept nonsense", "findings accept drops", "findings accept high-latency --file text", "findings accept --by x", "findings accept --note x",
		"findings accept 00000000000000aa --url nonsense", "findings accept 00000000000000aa --token-file nowhere",
		"findings ack --by x", "findings ack --note x", "findings ack 00000000000000aa --url nonsense", "findings ack 00000000000000aa --token-file nowhere",
		"findings mute", "findings mute x", "findings mute --element spine", "findings mute --kind slow", "findings mute --kind drops --file text",
		"findings mute --kind drops --for -1h", "findings mute --kind drops --until tomorrow", "findings mute --kind drops --until 2020-01-01T00:00:00Z",
		"findings mute --kind drops --for 1h --until 2120-01-01T00:00:00Z", "findings mute --by x", "findings mute --note x",
		"findings unmute", "findings unmute --element spine", "findings unmute --kind slow", "findings unmute --kind drops", "findings unmute --kind drops --file text",
		"findings test", "findings test x", "findings test --config nowhere", "findings test --config bad.yaml",
		"man", "man x", "man --dir=", "version x",
		"kafka nonsense", "kafka topics nonsense", "kafka topics check --config nowhere", "kafka topics check --format xml", "kafka topics create --config nowhere",
		"kafka topics create --format xml",
		"spool nonsense",
		"spool list", "spool list --config nowhere", "spool list --config bad.yaml", "spool list --dir nowhere", "spool list --dir text", "spool list --format xml --dir .",
		"spool show", "spool show --config nowhere x", "spool show --dir nowhere x", "spool show --format xml --dir . x",
		"spool resend", "spool resend --config nowhere", "spool resend --config bad.yaml", "spool resend --format xml",
		"token nonsense", "token create", "token create x", "token create --role viewer", "token create --name x --role king", "token create --name x", "token create --name x --role viewer --expires -1h",
		"token create --name x --role viewer --format xml", "token create --name x --role viewer --url nonsense", "token create --name x --role viewer --token-file nowhere",
		"token list x", "token list --format xml", "token list --url nonsense", "token list --token-file nowhere",
		"token revoke", "token revoke x --format xml", "token revoke x --url nonsense", "token revoke x --token-file nowhere",
		"selftest --duration 1ms", "selftest --flows 0", "selftest --hops -1", "selftest --bytes 1", "selftest --exporters 0",
	}
	for _, name := range []string{"token", "ca", "cert", "page", "tls", "short", "pcap", "directory", "topology", "odd", "tree", "plan", "noplan", "policy", "rules", "seed", "board", "noboard"} {
		asked = append(asked, "config check "+name+".yaml", "collect --config "+name+".yaml")
	}
	asked = append(asked, "collect --config env.yaml") // another environment may have it, so config check only warns
	for _, c := range everyCommand(rootCommand()) {
		path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "hopscope"))
		asked = append(asked, strings.TrimSpace(path+" --no-such-flag"))
		c.Flags().VisitAll(func(f *pflag.Flag) {
			flag := path + " --" + f.Name
			switch {
			case f.Name == "help" || f.Name == "version":
			case f.Value.Type() != "string" && f.Value.Type() != "stringArray" && f.Value.Type() != "stringSlice":
				asked = append(asked, flag+"=nonsense")
			case !slices.Contains(written, f.Name) && !slices.Contains(anyValue, flag) && !slices.ContainsFunc(asked, func(a string) bool {
				return strings.HasPrefix(a, path+" ") && strings.Contains(a, " --"+f.Name)
			}):
				t.Errorf("no wrong value of %s is asked", flag)
			}
		})
	}
	for _, args := range asked {
		if got, err := exitOf(t, strings.Fields(args)...); got != 64 {
			t.Errorf("hopscope %s: status %d, want 64: %v", args, got, err)
		}
	}
}

// TestExitStatusOfFailures asks rightly for what cannot be done.
func TestExitStatusOfFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"text":       "this is nothing\n",
		"empty":      "",
		"two.edges":  "a b\nc d\n",
		"busy.yaml":  "udp: {listen: [\"" + u.LocalAddr().String() + "\"]}\n",
		"page.yaml":  "udp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"" + l.Addr().String() + "\"}\n",
		"spool.yaml": "udp: {listen: [\"127.0.0.1:0\"]}\ninflux: {enabled: true, spool: {dir: text/x}}\n",
		"none.json":  `{"probes":[{"id":"a","links":["1"]}],"suspicious":["9"]}`,
		"plan.json":  `{"probes":[]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{
		"decode text", "decode empty", "replay text", "replay empty",
		"collect --config busy.yaml", "collect --config page.yaml", "collect --config spool.yaml", "demo --listen " + l.Addr().String(),
		"top --url http://127.0.0.1:1", "flow --url http://127.0.0.1:1", "find a --url http://127.0.0.1:1", "health --url http://127.0.0.1:1",
		"plan cover --topology two.edges --depots a", "plan cover --topology fat-tree:4 --svg text/x.svg", "plan cover --topology fat-tree:4 --check plan.json",
		"plan orchestrate --topology two.edges", "plan attention --instance none.json", "demo --data text/x", "man --dir text/x",
	} {
		if got, err := exitOf(t, strings.Fields(args)...); got != 1 {
			t.Errorf("hopscope %s: status %d, want 1: %v", args, got, err)
		}
	}
}
