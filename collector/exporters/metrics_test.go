package exporters

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/otlp"
)

// Rules of settings go before those that are built in, and mean what they say.
func TestMetricRules(t *testing.T) {
	c := defaultMetrics()
	c.Rules = []MetricRule{{Metric: "lat*", Where: []string{"dir=tx", "a=b=c"}, Interface: "port", Queue: "q", Statistic: "latency", Unit: "us", Reason: 139}}
	if err := c.Rules[0].Validate(); err != nil {
		t.Error(err)
	}
	d := c.Decoding(5)
	if r := d.Rules[0]; r.Metric != "lat*" || r.Statistic != otlp.Latency || r.Scale != 1000 || r.Interface != "port" || r.Queue != "q" || !r.Joint || len(r.Where) != 2 || r.Where[1] != [2]string{"a", "b=c"} {
		t.Errorf("%+v", r)
	}
	if len(d.Rules) != 1+len(otlp.Builtin()) || d.Seed != 5 || d.MemoryBytes != 64<<20 || d.Units.DropReason(142) != "no buffer space" {
		t.Errorf("%d rules, seed %d, %d bytes, reason %q", len(d.Rules), d.Seed, d.MemoryBytes, d.Units.DropReason(142))
	}
	for i, name := range otlp.Statistics {
		if _, ok := unitsOf[name]; !ok || otlp.Statistic(i) > otlp.InOctets {
			t.Errorf("statistic %s has no units", name)
		}
	}
	for _, list := range unitsOf {
		for _, u := range list {
			if otlp.Units[u] == 0 {
				t.Errorf("unit %q has no factor", u)
			}
		}
	}
}

// What is wrong with a rule is said with its key.
func TestMetricRuleValidate(t *testing.T) {
	for want, r := range map[string]MetricRule{
		"metric: ":             {Metric: "a*b", Statistic: "none"},
		"metric: \"*":          {Metric: "*", Statistic: "none"},
		"where[1]: ":           {Metric: "m", Where: []string{"a=b", "c"}, Statistic: "none"},
		"unit: ":               {Metric: "m", Statistic: "latency", Unit: "bytes"},
		"interface: ":          {Metric: "m", Statistic: "octets"},
		"interface: in-errors": {Metric: "m", Statistic: "in-errors"},
		"interface: in-octets": {Metric: "m", Statistic: "in-octets"},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
}
