package kafka

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"no broker", func(c *Config) { c.Brokers = nil }, "brokers: are missing"},
		{"no port", func(c *Config) { c.Brokers = []string{"a:1", "kafka"} }, `brokers[1]: "kafka" is not HOST:PORT`},
		{"two in one", func(c *Config) { c.Brokers = []string{"a:1,b:2"} }, "brokers[0]: "},
		{"prefix", func(c *Config) { c.Prefix = "a/b" }, "prefix: "},
		{"TLS is off", func(c *Config) { c.CAFile = "ca.pem" }, "tls: is off"},
		{"half a pair", func(c *Config) { c.TLS, c.CertFile = true, "cert.pem" }, "cert_file: needs key_file"},
		{"insecure and safe", func(c *Config) { c.TLS, c.TLSInsecure, c.CAFile = true, true, "ca.pem" }, "tls_insecure: contradicts"},
		{"no mechanism", func(c *Config) { c.User = "alice" }, "sasl: is none"},
		{"no user", func(c *Config) { c.SASL, c.PasswordEnv = "plain", "P" }, "user: is missing"},
		{"no password", func(c *Config) { c.SASL, c.User = "plain", "alice" }, "password_file: is missing"},
		{"two passwords", func(c *Config) { c.SASL, c.User, c.PasswordFile, c.PasswordEnv = "plain", "alice", "f", "P" }, "password_file: password_env is set too"},
	} {
		conf := DefaultConfig()
		c.set(&conf)
		if err := conf.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	conf := DefaultConfig()
	if err := conf.Validate(); err != nil {
		t.Error(err)
	}
}

func TestCheckFiles(t *testing.T) {
	conf := DefaultConfig()
	conf.SASL, conf.User, conf.PasswordFile = "plain", "alice", file(t, " \n")
	conf.TLS, conf.CAFile, conf.CertFile, conf.KeyFile = true, file(t, "no PEM"), file(t, "no PEM"), file(t, "no PEM")
	err := conf.CheckFiles()
	for _, want := range []string{"password_file: ", "is empty", "ca_file: ", "holds no PEM certificate", "cert_file: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := conf.Dial("x"); err == nil {
		t.Error("a client without its files")
	}
}
