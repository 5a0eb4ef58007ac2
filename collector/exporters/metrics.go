package exporters

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/otlp"
)

// MetricConfig defines the meaning of metrics of OpenTelemetry.
type MetricConfig struct {
	Nodes       []string     `yaml:"nodes" doc:"Attributes with the node, as name, address or number; the first present one counts. Without any it is the sender's address."`
	MemoryBytes int64        `yaml:"memory_bytes" doc:"Most memory for streams of data points, some 200 bytes and 8 a bucket each. Further streams are refused." range:"65536..17179869184"`
	Rules       []MetricRule `yaml:"rules" doc:"Meanings of metrics, before the built-in rules for Cumulus and SONiC; the first match counts."`
}

// MetricRule defines the meaning of the data points of a metric.
type MetricRule struct {
	Metric    string   `yaml:"metric" doc:"Name of the metric; a * at its end stands for anything."`
	Where     []string `yaml:"where" doc:"Attributes that a data point must have, as key=value."`
	Interface string   `yaml:"interface" doc:"Attribute with the egress interface, optionally with a queue behind a bar (Ethernet1|3). Empty is the whole node."`
	Queue     string   `yaml:"queue" doc:"Attribute with the number of the queue."`
	Statistic string   `yaml:"statistic" doc:"Meaning of the values. Gauges or histograms: latency, queue. Gauges: utilization, speed. Counters: octets (sent), in-octets (received); packets, errors and discards by direction, such as in-packets; drops, errors (no direction). none: not counted as unread." oneof:"latency|queue|utilization|octets|speed|drops|errors|in-packets|out-packets|in-errors|out-errors|in-discards|out-discards|in-octets|none"`
	Unit      string   `yaml:"unit" doc:"Unit of the values, in place of their own. Empty is ns, bytes, bit/s or a ratio." oneof:"|ns|us|ms|s|bytes|kib|mib|bit/s|mbit/s|gbit/s|ratio|percent"`
	Speed     float64  `yaml:"speed" doc:"Speed of interfaces in bit/s for octets and in-octets, where neither metric nor inventory has it. 0 is unknown." range:"0..1e15"`
	Reason    uint8    `yaml:"reason" doc:"Drop reason by the numbers of sFlow, also for errors and discards where no metric counts packets; 139 is unknown."`
}

// unitsOf are the units that a statistic can have.
var unitsOf = map[string][]string{
	"latency": {"", "ns", "us", "ms", "s"}, "queue": {"", "bytes", "kib", "mib"}, "utilization": {"", "ratio", "percent"},
	"octets": {"", "bytes", "kib", "mib"}, "in-octets": {"", "bytes", "kib", "mib"}, "speed": {"", "bit/s", "mbit/s", "gbit/s"}, "drops": {""}, "errors": {""}, "none": {""},
	"in-packets": {""}, "out-packets": {""}, "in-errors": {""}, "out-errors": {""}, "in-discards": {""}, "out-discards": {""},
}

// Validate checks what the tags of a rule cannot express.
func (r *MetricRule) Validate() error {
	var errs []error
	if name := strings.TrimSuffix(r.Metric, "*"); name == "" || strings.Contains(name, "*") {
		errs = append(errs, fmt.Errorf("metric: %q is no name, and none with a * at its end", r.Metric))
	}
	for i, w := range r.Where {
		if key, _, ok := strings.Cut(w, "="); !ok || key == "" {
			errs = append(errs, fmt.Errorf("where[%d]: %q is no key=value", i, w))
		}
	}
	if units, ok := unitsOf[r.Statistic]; ok && !slices.Contains(units, r.Unit) {
		errs = append(errs, fmt.Errorf("unit: %s is in no %s", r.Statistic, r.Unit))
	}
	ofInterface := slices.Contains([]string{"utilization", "octets", "in-octets", "speed"}, r.Statistic) || otlp.Statistic(slices.Index(otlp.Statistics, r.Statistic)).Counts()
	if ofInterface && r.Interface == "" {
		errs = append(errs, fmt.Errorf("interface: %s is of an interface, and needs its attribute", r.Statistic))
	}
	return errors.Join(errs...)
}

// metricUnits are those of reports made of metrics, with the reasons of sFlow.
var metricUnits = func() decode.Units {
	reasons := demux.SFlowReasons()
	return decode.DefaultUnits.With(decode.Units{DropReasons: &reasons})
}()

// Decoding returns the settings by which metrics are read, with a seed for hashes.
func (c *MetricConfig) Decoding(seed uint64) otlp.Config {
	out := otlp.Config{Nodes: c.Nodes, MemoryBytes: c.MemoryBytes, Seed: seed, Units: &metricUnits}
	for i := range c.Rules {
		r := &c.Rules[i]
		rule := otlp.Rule{
			Metric: r.Metric, Interface: r.Interface, Queue: r.Queue, Joint: true, Scale: otlp.Units[r.Unit], Speed: r.Speed, Reason: r.Reason,
			Statistic: otlp.Statistic(slices.Index(otlp.Statistics, r.Statistic)),
		}
		for _, w := range r.Where {
			key, value, _ := strings.Cut(w, "=")
			rule.Where = append(rule.Where, [2]string{key, value})
		}
		out.Rules = append(out.Rules, rule)
	}
	out.Rules = append(out.Rules, otlp.Builtin()...)
	return out
}

func defaultMetrics() MetricConfig {
	return MetricConfig{Nodes: []string{"host.name", "hostname", "net.host.name", "switch", "device"}, MemoryBytes: 64 << 20}
}
