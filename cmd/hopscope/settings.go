package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/ingest/afpacket"
	"github.com/hopscope/hopscope/ingest/afxdp"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/otlp"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/sink/history"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/jsonl"
	"github.com/hopscope/hopscope/sink/kafka"
	"github.com/hopscope/hopscope/sink/notify/receiver"
	"github.com/hopscope/hopscope/sink/parquet"
	"github.com/hopscope/hopscope/sink/web"
)

// config holds all settings of the program. One line here registers a source or a store: its settings, their reference,
// its metrics and its part of the loss ledger follow from it.
type config struct {
	collector.Config   `yaml:""`
	Ports              []string              `yaml:"ports" doc:"Ports, as [ADDRESS:]PORT [TYPE], by default at 127.0.0.1; [::] is every address. Type auto, or none, recognises telemetry reports, sFlow, IPFIX and NetFlow 9; reports, sflow and ipfix read that alone. otlp-grpc and otlp-http are TCP ports for OTLP metrics. Default ports that are in use are left out with a warning."`
	UDP                udp.Config            `yaml:"udp" doc:"Report datagrams from the network."`
	AFPacket           afpacket.Config       `yaml:"afpacket" doc:"Packets of interfaces through kernel rings (Linux)."`
	AFXDP              afxdp.Config          `yaml:"afxdp" doc:"Report datagrams of interfaces through AF_XDP, around the kernel's network stack (Linux)."`
	PCAP               pcapfile.FollowConfig `yaml:"pcap" doc:"Captures beside the sockets."`
	OTLP               otlp.Config           `yaml:"otlp" doc:"Metrics of OpenTelemetry from switches."`
	collector.Analysis `yaml:""`
	Influx             collector.StoreConfig[influx.Config]         `yaml:"influx" doc:"Series to InfluxDB 2, or 1.8 through its compatibility API."`
	Parquet            collector.StoreConfig[parquet.Config]        `yaml:"parquet" doc:"Series to Parquet files."`
	JSONL              collector.StoreConfig[jsonl.Config]          `yaml:"jsonl" doc:"Series and findings as JSON lines."`
	Kafka              collector.StoreConfig[kafka.Config]          `yaml:"kafka" doc:"A fleet: windows of many collectors, merged by consumers over Apache Kafka."`
	Webhook            collector.StoreConfig[receiver.Webhook]      `yaml:"webhook" doc:"Alerts to a server, as JSON or by a template."`
	Alertmanager       collector.StoreConfig[receiver.Alertmanager] `yaml:"alertmanager" doc:"Alerts to Prometheus Alertmanager."`
	Syslog             collector.StoreConfig[receiver.Syslog]       `yaml:"syslog" doc:"Alerts as messages of syslog."`
	Consume            fleet.Config                                 `yaml:"consume" doc:"How a consumer merges the windows of a fleet."`
	Web                web.Config                                   `yaml:"web" doc:"The page, the metrics and the health checks."`
	History            history.Config                               `yaml:"history" doc:"The past on the page: windows on disk, merged to minutes, hours and days."`
	Log                logConfig                                    `yaml:"log" doc:"What is written to standard error."`

	file *settings.File // that was read, if any
}

// renames are the keys that were called otherwise in the last two minor versions.
var renames []settings.Rename

// Renames makes files with old names readable, with a warning.
func (*config) Renames() []settings.Rename { return renames }

// retired are the keys that mean nothing any more.
var retired = []settings.Retire{
	{Key: "events.history", Instead: limitsOfHops},
	{Key: "events.threshold", Instead: limitsOfHops},
	{Key: "events.relative_floor", Instead: limitsOfHops},
	{Key: "events.start_after", Instead: limitsOfHops},
}

const limitsOfHops = "all limits of hops follow from events.false_a_day, the false findings a day that are accepted"

// Retirements makes files with such keys readable, with a warning.
func (*config) Retirements() []settings.Retire { return retired }

// defaultConfig is a collector on loopback that stores nothing but shows everything.
func defaultConfig() config {
	var c config
	settings.SetDefaults(&c)
	c.Ports = slices.Clone(defaultPorts)
	c.listen()
	return c
}

// kafkaOf returns the brokers of the fleet.
func kafkaOf(c *config) brokers.Config { return c.Kafka.Config.Config }

// readConfig reads the file over the defaults, and returns what is wrong with its values.
func readConfig(path string) (cfg config, err error) {
	cfg = defaultConfig()
	if path != "" {
		cfg.file, err = settings.ReadFile(path, &cfg)
		cfg.listen()
	}
	return cfg, err
}

// rereadConfig is loadConfig for a file that was read before, which can be read again when it is a file.
func rereadConfig(path string) (config, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return config{}, fmt.Errorf("%s is no regular file, and cannot be read again", path)
	}
	return loadConfig(path)
}

// loadConfig is readConfig for settings that are to be right as far as their values show.
func loadConfig(path string) (config, error) {
	cfg, err := readConfig(path)
	return cfg, wrongInput(err)
}
