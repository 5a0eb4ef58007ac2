package rate

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// known is a collector that [Peers] can set up: for each payload a program, for each output its arguments.
type known struct {
	name     string
	programs map[string]string // by payload, as they are installed
	port     uint16
	outputs  map[string]func(s *scene) (args []string, err error) // by name of the output
	without  map[string]string                                    // why an output is missing
	own      ownCount

	topics []string // arguments that make its topics in Kafka, before the file of its settings; nil: it makes them itself
}

// ownCount is where a collector states the datagrams that it lost. One without a page and a log states none.
type ownCount struct {
	page, metric string         // Prometheus metrics, and the beginning of the samples that add up
	log          *regexp.Regexp // of a line, with the number as its group; without a group each line is one
	unit         string
}

// scene is where a collector runs: its own directory, and the broker's address.
type scene struct{ payload, dir, broker string }

// softflowd begins the names of payloads that it makes.
const softflowd = "softflowd-"

// protocol is that of the payload.
func (s *scene) protocol() string { return strings.TrimPrefix(s.payload, softflowd) }

// file is a file of the scene, which is written first if it has a text.
func (s *scene) file(name, text string) (string, error) {
	path := filepath.Join(s.dir, name)
	if text == "" {
		return path, nil
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// outputNames are all outputs, and payloadNames the payloads of known collectors.
var (
	outputNames  = []string{"discard", "file", "kafka"}
	payloadNames = []string{"sflow", "ipfix", "netflow9", "softflowd-ipfix", "softflowd-netflow9"}
)

// topic is where collectors write in Kafka.
const topic = "peers"

// all has a program for every payload.
func all(program string) map[string]string {
	return map[string]string{"sflow": program, "ipfix": program, "netflow9": program}
}

// conf starts a program with a file of settings behind flag.
func conf(flag, name, text string, out ...string) func(*scene) ([]string, error) {
	return func(s *scene) ([]string, error) {
		r := strings.NewReplacer("DIR", s.dir, "BROKER", s.broker, "TOPIC", topic, "PROTOCOL", telegrafProtocols[s.protocol()], "PLUGIN", pmacctPorts[s.protocol()])
		path, err := s.file(name, r.Replace(text+strings.Join(out, "")))
		if flag == "" {
			return []string{path}, err
		}
		return append(strings.Fields(r.Replace(flag)), path), err
	}
}

// words starts a program with arguments.
func words(line string) func(*scene) ([]string, error) {
	return func(s *scene) ([]string, error) {
		return strings.Fields(strings.NewReplacer("DIR", s.dir, "BROKER", s.broker, "TOPIC", topic, "SCHEME", goflowSchemes[s.protocol()], "VFLOW", vflowFlags[s.protocol()]).Replace(line)), nil
	}
}

var (
	telegrafProtocols = map[string]string{"sflow": "sflow v5", "ipfix": "ipfix", "netflow9": "netflow v9"}
	goflowSchemes     = map[string]string{"sflow": "sflow", "ipfix": "netflow", "netflow9": "netflow"}
	pmacctPorts       = map[string]string{"sflow": "sfacctd", "ipfix": "nfacctd", "netflow9": "nfacctd"}
	vflowFlags        = map[string]string{
		"sflow":    "-sflow-port 6343 -sflow-topic peers -ipfix-enabled=false -netflow9-enabled=false",
		"ipfix":    "-ipfix-port 6343 -ipfix-topic peers -ipfix-rpc-enabled=false -sflow-enabled=false -netflow9-enabled=false",
		"netflow9": "-netflow9-port 6343 -netflow9-topic peers -sflow-enabled=false -ipfix-enabled=false",
	}
)

const (
	ourSettings    = "ports: [\"127.0.0.1:6343\"]\nweb: {listen: \"127.0.0.1:8090\"}\nhistory: {dir: \"DIR/history\"}\n"
	goflow         = "-listen SCHEME://127.0.0.1:6343 -format bin -addr 127.0.0.1:8090 "
	vflow          = "VFLOW -netflow5-enabled=false -pid-file DIR/pid -stats-http-addr 127.0.0.1 -stats-http-port 8090 -ipfix-tpl-cache-file DIR/ipfix -netflow9-tpl-cache-file DIR/netflow9 "
	telegrafInput  = "[agent]\n  omit_hostname = true\n[[inputs.netflow]]\n  service_address = \"udp://127.0.0.1:6343\"\n  protocol = \"PROTOCOL\"\n"
	pmacctSettings = "PLUGIN_ip: 127.0.0.1\nPLUGIN_port: 6343\nPLUGIN_disable_checks: false\naggregate: src_host, dst_host, src_port, dst_port, proto, in_iface, out_iface\n"
)

// peersKnown are the collectors of the table, the first one ours. Buffers and workers are their own defaults.
var peersKnown = []known{
	{name: "hopscope", programs: all("hopscope"), port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"discard": conf("collect --config", "hopscope.yaml", ourSettings),
			"file":    conf("collect --config", "hopscope.yaml", ourSettings, "parquet: {enabled: true, dir: \"DIR/out\", rotate_interval: 1s}\n"),
			"kafka": func(s *scene) ([]string, error) {
				if _, err := s.file("seed", "the same in a whole fleet\n"); err != nil {
					return nil, err
				}
				return conf("collect --config", "hopscope.yaml", ourSettings, "window: 1s\nseed_file: \"DIR/seed\"\nkafka: {enabled: true, brokers: [\"BROKER\"], prefix: TOPIC.}\n")(s)
			},
		},
		own:    ownCount{page: "127.0.0.1:8090/metrics", metric: "hopscope_udp_kernel_dropped_total", unit: "datagrams"},
		topics: []string{"kafka", "topics", "create", "--config"}},
	{name: "goflow2", programs: all("goflow2"), port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"discard": words(goflow + "-transport file -transport.file /dev/null"),
			"file":    words(goflow + "-transport file -transport.file DIR/out"),
			"kafka":   words(goflow + "-transport kafka -transport.kafka.brokers BROKER -transport.kafka.topic TOPIC"),
		},
		own: ownCount{page: "127.0.0.1:8090/metrics", metric: "goflow2_flow_dropped_packets_total", unit: "datagrams"}},
	{name: "vflow", programs: all("vflow"), port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"discard": words(vflow + "-producer-enabled=false"),
			"kafka": func(s *scene) ([]string, error) {
				if _, err := s.file("mq.conf", "brokers: [\""+s.broker+"\"]\n"); err != nil {
					return nil, err
				}
				return words(vflow + "-mqueue-conf mq.conf -config DIR/vflow.conf")(s)
			},
		},
		without: map[string]string{"file": "it writes to message queues and sockets alone"}},
	{name: "Telegraf", programs: all("telegraf"), port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"discard": conf("--config", "telegraf.conf", telegrafInput, "[[outputs.discard]]\n"),
			"file":    conf("--config", "telegraf.conf", telegrafInput, "[[outputs.file]]\n  files = [\"DIR/out\"]\n"),
			"kafka":   conf("--config", "telegraf.conf", telegrafInput, "[[outputs.kafka]]\n  brokers = [\"BROKER\"]\n  topic = \"TOPIC\"\n"),
		},
		own: ownCount{log: regexp.MustCompile(`buffer overflow; (\d+) metrics`), unit: "records, at its full buffer"}},
	{name: "nfdump", programs: map[string]string{"sflow": "sfcapd", "ipfix": "nfcapd", "netflow9": "nfcapd"}, port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"file": func(s *scene) ([]string, error) {
				if err := os.Mkdir(filepath.Join(s.dir, "out"), 0o700); err != nil {
					return nil, err
				}
				return words("-b 127.0.0.1 -p 6343 -w DIR/out")(s)
			},
		},
		without: map[string]string{"discard": "it always writes files", "kafka": "it has no such output"},
		own:     ownCount{log: regexp.MustCompile(`Sequence Errors: (\d+)`), unit: "gaps, at its end"}},
	{name: "pmacct", programs: map[string]string{"sflow": "sfacctd", "ipfix": "nfacctd", "netflow9": "nfacctd"}, port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"discard": conf("-f", "pmacct.conf", pmacctSettings, "plugins: print\nprint_refresh_time: 10\nprint_output_file: /dev/null\n"),
			"file":    conf("-f", "pmacct.conf", pmacctSettings, "plugins: print\nprint_refresh_time: 1\nprint_output_file: DIR/out\nprint_output: csv\nprint_output_file_append: true\n"),
			"kafka":   conf("-f", "pmacct.conf", pmacctSettings, "plugins: kafka\nkafka_broker_host: 127.0.0.1\nkafka_broker_port: 9092\nkafka_topic: TOPIC\nkafka_refresh_time: 1\n"),
		},
		own: ownCount{log: regexp.MustCompile(`Missing data detected|expecting flow`), unit: "gaps, in its log"}},
	{name: "akvorado inlet", programs: all("akvorado"), port: 6343,
		outputs: map[string]func(*scene) ([]string, error){
			"kafka": func(s *scene) ([]string, error) {
				decoder := goflowSchemes[s.protocol()]
				return conf("inlet", "akvorado.yaml", "http:\n  listen: 127.0.0.1:8090\nkafka:\n  brokers:\n    - BROKER\n  topic: TOPIC\nflow:\n  inputs:\n    - type: udp\n      decoder: "+decoder+"\n      listen: 127.0.0.1:6343\n      workers: 1\n")(s)
			},
		},
		without: map[string]string{"discard": "its inlet writes to Kafka alone, undecoded", "file": "its inlet writes to Kafka alone, undecoded"},
		own:     ownCount{page: "127.0.0.1:8090/api/v0/inlet/metrics", metric: "akvorado_inlet_flow_input_udp_in_dropped_packets_total", unit: "datagrams"}},
}

// peersAbsent are collectors that read none of the payloads, or are not to be had as source or package.
var peersAbsent = [][2]string{
	{"Vector", "no registry has it as a package: the crate of this name is another program"},
	{"Fluent Bit", "no registry has it as a package, and none of its inputs reads flow records"},
	{"akvorado outlet", "it decodes what the inlet wrote to Kafka, and writes to ClickHouse alone"},
}

// program is the path of the program for a payload, in dir or where the system looks.
func (k *known) program(dir, payload string) (string, error) {
	name := k.programs[strings.TrimPrefix(payload, softflowd)]
	if dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return filepath.Abs(path)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no program %s is installed", name)
	}
	return path, nil
}

// count is what a collector states of its loss so far, or "" if it states none.
func (c *ownCount) count(log string) (string, error) {
	if c.page == "" && c.log == nil {
		return "", nil
	}
	sum := 0.0
	if c.page != "" {
		client := http.Client{Timeout: 10 * time.Second}
		r, err := client.Get("http://" + c.page)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK { // its samples would be 0
			return "", fmt.Errorf("its page of metrics: %s", r.Status)
		}
		lines := bufio.NewScanner(io.LimitReader(r.Body, 64<<20))
		for lines.Scan() {
			at := strings.LastIndexByte(lines.Text(), ' ')
			if v, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil && strings.HasPrefix(lines.Text(), c.metric) {
				sum += v
			}
		}
		if err := lines.Err(); err != nil {
			return "", err
		}
	} else {
		b, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}
		for _, m := range c.log.FindAllSubmatch(b, -1) {
			n := 1.0
			if len(m) > 1 {
				if n, err = strconv.ParseFloat(string(m[1]), 64); err != nil {
					return "", err
				}
			}
			sum += n
		}
	}
	return fmt.Sprintf("%.0f %s", sum, c.unit), nil
}
