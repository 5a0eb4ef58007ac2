package agent

import (
	"strings"
	"testing"
)

// TestValidate finds what ranges do not say.
func TestValidate(t *testing.T) {
	good := DefaultConfig()
	good.Interface = "eth0"
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want   string
		change func(c *Config)
	}{
		{"interface: is missing", func(c *Config) { c.Interface = "" }},
		{`address: "::1" is no IPv4 address`, func(c *Config) { c.Address = "::1" }},
		{"destination: ", func(c *Config) { c.Destination = "x" }},
		{"peer_mac: ", func(c *Config) { c.PeerMAC = "02:00:00:00:00:00:00:01" }},
		{"collectors: are missing", func(c *Config) { c.Collectors = nil }},
		{"plan.probes: are missing", func(c *Config) { c.Files.Schedule = "x" }},
		{`plan.basic: "0x10000" is no bitmap`, func(c *Config) { c.Files.Basic = "0x10000" }},
		{"controller: plan names files too", func(c *Config) {
			c.Files.Probes = []string{"x"}
			c.Controller = Controller{"c:1", "c", "ca", "cert", "key", ""}
		}},
		{"controller.name: is missing, and without it any certificate", func(c *Config) { c.Controller = Controller{"c:1", "", "ca", "cert", "key", ""} }},
		{"controller.cert_file: is missing", func(c *Config) { c.Controller = Controller{"c:1", "c", "ca", "", "", ""} }},
		{"controller.address: is missing, so that", func(c *Config) { c.Controller.Name = "c" }},
		{"controller.address: \"c\" is not HOST:PORT", func(c *Config) { c.Controller = Controller{"c", "c", "ca", "cert", "key", ""} }},
	} {
		bad := good
		c.change(&bad)
		if err := bad.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
