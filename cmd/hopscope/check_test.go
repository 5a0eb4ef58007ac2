package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestConfigCheck gives settings to config check, and wants every problem and warning, and no other.
func TestConfigCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"kept", "other", "captures"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("kept", "link"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"token": 0o600, "open": 0o644, "group": 0o640, "captures/a.pcap": 0o600} {
		if err := os.WriteFile(name, []byte("0123456789abcdef\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name, text string
		problems   []string // each in a line of its own
		warnings   []string
	}{
		{"nothing", "", nil, nil},
		{"all at once", "udp: {workers: -1, listen: [\"localhost:99999\", \"x:1\"], nap: 7s}\nweb: {max_hops: 1, listen: \"0.0.0.0:80\"}\n",
			[]string{"line 1: udp.workers: -1 is outside", "port 99999 is above 65535", `"x" is a name`, "udp.nap: 7s is outside", "line 2: web.max_hops: 1 is outside", "line 2: web.token_file: required"}, nil},
		{"one spool for two", "influx: {enabled: true, spool: {dir: kept/s}}\nparquet: {enabled: true, spool: {dir: ./kept//s}}\n", []string{"parquet.spool.dir: ./kept//s is also where the spool of influx"}, nil},
		{"through a link", "influx: {enabled: true, spool: {dir: kept/s}}\nparquet: {enabled: true, spool: {dir: link/s}}\n", []string{"parquet.spool.dir: link/s is also where"}, nil},
		{"inside", "influx: {enabled: true, spool: {dir: kept}}\nparquet: {enabled: true, spool: {dir: link/new/p}}\n", []string{"link/new/p lies inside of kept"}, nil},
		{"around", "influx: {enabled: true, spool: {dir: kept/a}}\nparquet: {enabled: true, spool: {dir: kept}}\n", []string{"parquet.spool.dir: kept holds kept/a"}, nil},
		{"files in a spool", "parquet: {enabled: true, dir: kept/p, spool: {dir: kept}}\n", []string{"kept/p lies inside of kept, where the spool of parquet"}, nil},
		{"lines among files", "parquet: {enabled: true, dir: kept}\njsonl: {enabled: true, path: link/x.jsonl}\n", []string{"jsonl.path: link/x.jsonl lies inside of kept"}, nil},
		{"writes what it reads", "pcap: {files: [captures/a.pcap]}\njsonl: {enabled: true, path: captures/a.pcap}\n", []string{"pcap.files[0]: captures/a.pcap is also where the lines of jsonl"}, nil},
		{"beside each other", "influx: {enabled: true, spool: {dir: kept/a}}\nparquet: {enabled: true, dir: kept/ab, spool: {dir: kept/abc}}\n", nil, nil},
		{"switched off", "influx: {enabled: false, spool: {dir: kept}, token_file: nowhere}\nparquet: {enabled: true, spool: {dir: kept}}\n", nil, nil},
		{"a FIFO for a token", "influx: {enabled: true, token_file: fifo}\n", []string{"influx.token_file: fifo is no regular file"}, nil},
		{"a directory for a network", "pint: {topology: kept}\n", []string{"pint.topology: kept is no regular file"}, nil},
		{"a device for a plan", "pint: {plans: [/dev/zero]}\n", []string{"pint.plans[0]: /dev/zero is no regular file"}, nil},
		{"a token for everybody", "influx: {enabled: true, token_file: open}\n", nil, []string{"influx.token_file: open can be read by all users on this machine (mode 0644)"}},
		{"a token for the group", "influx: {enabled: true, token_file: group}\n", nil, []string{"group can be read by its group"}},
		{"a page in the clear", "web: {listen: \"0.0.0.0:8080\", token_file: token}\n", nil, []string{"web.token_file: the page is served at 0.0.0.0:8080 without TLS"}},
		{"a page on loopback", "web: {token_file: token}\n", nil, nil},
		{"receivers of alerts", "webhook: {enabled: true, url: \"http://hook.example/x\", token_file: open, header_files: [\"X-Key: group\"], spool: {dir: kept/a}}\nalertmanager: {enabled: true, token_file: open, url: \"https://127.0.0.1:9093\", spool: {dir: kept/b}}\n", nil,
			[]string{"webhook.token_file: open can be read by all users", "webhook.header_files[0]: group can be read by its group", "alertmanager.token_file: open can be read", "webhook.url: is http"}},
		{"maintenance", "alerts: {maintenance: [{element: nod 7}, {kind: drops, from: 2026-12-01T00:00:00Z, until: 2026-12-03T00:00:00Z, every: 24h}]}\n",
			[]string{"alerts.maintenance[0].element: \"nod 7\" is no element", "alerts.maintenance[1].every: is shorter"}, nil},
		{"a password in an address", "webhook: {enabled: true, url: \"http://user:password@127.0.0.1:9/x\"}\n", []string{"webhook.url: must not hold a user or password"}, nil},
		{"a rate that cannot be", "events: {false_a_day: -1}\n", []string{"events.false_a_day: -1 is outside"}, nil},
		{"a seed that is short", "seed_file: fifo\n", []string{"seed_file: fifo is no regular file"}, nil},
		{"a seed for everybody", "seed_file: open\n", nil, []string{"seed_file: open can be read by all users"}},
		{"more memory than there is", "flows: {memory_bytes: 1099511627776}\n", nil, []string{"flows.memory_bytes: the settings allow"}},
		{"a store in the clear", "influx: {enabled: true, url: \"http://store.example:8086\", token_file: token}\n", nil, []string{"influx.url: is http"}},
		{"a fleet", "seed_file: token\nkafka: {enabled: true, spool: {dir: kept}}\n", nil, nil},
		{"a fleet without a seed", "kafka: {enabled: true, spool: {dir: kept}}\n", []string{"seed_file: is missing"}, nil},
		{"a fleet and a store", "seed_file: token\nkafka: {enabled: true, spool: {dir: kept/a}}\ninflux: {enabled: true, spool: {dir: kept/b}}\n", []string{"influx: is enabled beside kafka"}, nil},
		{"a fleet with wrong settings", "seed_file: token\nkafka: {enabled: true, fleet: \"a b\", brokers: [kafka], slices: 0, sasl: plain, spool: {dir: kept}}\n",
			[]string{"kafka.fleet: \"a b\" is no name", "kafka.brokers[0]: \"kafka\" is not HOST:PORT", "kafka.slices: 0 is outside", "kafka.user: is missing", "kafka.password_file: is missing"}, nil},
		{"a fleet in the clear", "seed_file: token\nkafka: {enabled: true, brokers: [\"127.0.0.1:9092\", \"kafka.example:9092\"], sasl: plain, user: east, password_file: open, spool: {dir: kept}}\n", nil,
			[]string{"kafka.password_file: open can be read by all users", "kafka.brokers[1]: the password and all that the fleet sees"}},
		{"a fleet with anybody", "seed_file: token\nkafka: {enabled: true, brokers: [\"kafka.example:9092\"], tls: true, tls_insecure: true, spool: {dir: kept}}\n", nil, []string{"kafka.tls_insecure: any server that answers"}},
		{"a password that is not there", "seed_file: token\nkafka: {enabled: true, sasl: plain, user: east, password_env: NOWHERE_OF_TESTS, spool: {dir: kept}}\n", nil, []string{"kafka.password_env: the environment variable NOWHERE_OF_TESTS is not set"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if err := os.WriteFile("s.yaml", []byte(x.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c := rootCommand()
			var out, errs bytes.Buffer
			c.SetArgs([]string{"config", "check", "s.yaml"})
			c.SetOut(&out)
			c.SetErr(&errs)
			err := c.ExecuteContext(t.Context())
			problems := ""
			if err != nil {
				problems = err.Error()
			}
			same := func(kind, text string, lines int, want []string) {
				if lines != len(want) {
					t.Errorf("%d %s, want %d:\n%s", lines, kind, len(want), text)
				}
				for _, w := range want {
					if !strings.Contains(text, w) {
						t.Errorf("no %q among the %s:\n%s", w, kind, text)
					}
				}
			}
			same("problems", problems, strings.Count(problems, "\n"), x.problems)
			same("warnings", errs.String(), strings.Count(errs.String(), "\n"), x.warnings)
			if want := map[bool]int{true: 64, false: 0}[len(x.problems) > 0]; exitStatus(err) != want {
				t.Errorf("exit status %d, want %d", exitStatus(err), want)
			}
		})
	}
}
