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
	Nodes       []string     `yaml:"nodes" doc:"Attributes of a resource or of a data point that can name the node: a name, an address or a number. The first that is there counts; where none is, the sender's address does."`
	MemoryBytes int64        `yaml:"memory_bytes" doc:"Most memory of what is remembered of streams of data points, some 200 bytes and 8 for each bucket. What finds no room is refused and counted." range:"65536..17179869184"`
	Rules       []MetricRule `yaml:"rules" doc:"What metrics mean, before the built-in rules for Cumulus and SONiC. The first that fits a data point counts."`
}

// MetricRule defines the meaning of the data points of a metric.
type MetricRule struct {
	Metric    string   `yaml:"metric" doc:"Name of the metric; a * at its end stands for anything."`
	Where     []string `yaml:"where" doc:"Attributes that a data point must have, as key=value."`
	Interface string   `yaml:"interface" doc:"Attribute with the egress interface. The number of a queue can follow behind a bar (Ethernet1|3). Empty is for all of the node."`
	Queue     string   `yaml:"queue" doc:"Attribute with the number of the queue."`
	Statistic string   `yaml:"statistic" doc:"What the values are: latency or queue, as a gauge or a histogram; utilization, as a gauge; octets (sent) and in-octets (received), counted; packets, errors and discards by direction, such as in-packets, counted; drops or errors of no direction, counted; speed of the interface; none for what is not to be counted as unread." oneof:"latency|queue|utilization|octets|speed|drops|errors|in-packets|out-packets|in-errors|out-errors|in-discards|out-discards|in-octets|none"`
	Unit      string   `yaml:"unit" doc:"Unit of the values, whatever they say of it themselves. Empty is ns, bytes, bit/s or a ratio." oneof:"|ns|us|ms|s|bytes|kib|mib|bit/s|mbit/s|gbit/s|ratio|percent"`
	Speed     float64  `yaml:"speed" doc:"Speed of the interfaces in bit/s, for octets and in-octets where neither a metric nor the inventory has it. 0 is not known." range:"0..1e15"`
	Reason    uint8    `yaml:"reason" doc:"Reason of drops, and of errors and discards where no metric counts packets, as reports of sFlow number them: 139 is unknown."`
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
