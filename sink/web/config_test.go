package web

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	def := DefaultConfig()
	if err := def.Validate(); err != nil {
		t.Errorf("DefaultConfig: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string // in the error; none means that it is fine
	}{
		{"off", func(c *Config) { c.Listen, c.TLSCertFile = "", "x" }, nil},
		{"localhost", func(c *Config) { c.Listen = "localhost:80" }, nil},
		{"IPv6 loopback", func(c *Config) { c.Listen = "[::1]:8080" }, nil},
		{"mapped loopback", func(c *Config) { c.Listen = "[::ffff:127.0.0.1]:8080" }, nil},
		{"all addresses", func(c *Config) { c.Listen = ":8080" }, []string{"token_file: required because :8080"}},
		{"all IPv4 addresses", func(c *Config) { c.Listen = "0.0.0.0:8080" }, []string{"token_file: required"}},
		{"a name may be anything", func(c *Config) { c.Listen = "collector.example:8080" }, []string{"token_file: required"}},
		{"with token", func(c *Config) { c.Listen, c.TokenFile = ":8080", "/etc/token" }, nil},
		{"no port", func(c *Config) { c.Listen = "127.0.0.1" }, []string{`listen: "127.0.0.1" is not host:port`}},
		{"port too large", func(c *Config) { c.Listen = "127.0.0.1:65536" }, []string{`listen: port "65536" is outside`}},
		{"named port", func(c *Config) { c.Listen = "127.0.0.1:http" }, []string{"listen: port"}},
		{"key without certificate", func(c *Config) { c.TLSKeyFile = "k" }, []string{"tls_cert_file, tls_key_file: both or neither"}},
		{"allowed host with scheme", func(c *Config) { c.AllowedHosts = []string{"ok.example", "http://x"} }, []string{`allowed_hosts[1]: "http://x"`}},
		{"all at once", func(c *Config) { c.Listen, c.TLSCertFile, c.AllowedHosts = ":1", "c", []string{""} },
			[]string{"token_file", "tls_cert_file", "allowed_hosts[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			c.change(&cfg)
			err := cfg.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("Validate() = %v, want %q", err, c.want)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("Validate() = %v, want %q in it", err, w)
				}
			}
		})
	}
}
