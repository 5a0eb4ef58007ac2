package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/hopscope/hopscope/collector/settings"
)

// named is a file that a setting names.
type named struct {
	key, path string
	secret    bool
}

// namedFiles are the files that settings name, apart from captures, which are read as they grow.
func namedFiles(cfg *config) (list []named) {
	add := func(key, path string, secret bool) {
		if path != "" {
			list = append(list, named{key, path, secret})
		}
	}
	pem := func(section, ca, cert, key string) {
		add(section+".ca_file", ca, false)
		add(section+".cert_file", cert, false)
		add(section+".key_file", key, true)
	}
	if c := &cfg.Influx.Config; cfg.Influx.Enabled {
		add("influx.token_file", c.TokenFile, true)
		pem("influx", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c := &cfg.Webhook.Config; cfg.Webhook.Enabled {
		add("webhook.url_file", c.URLFile, true)
		add("webhook.token_file", c.TokenFile, true)
		for i, h := range c.HeaderFiles {
			_, file, _ := strings.Cut(h, ":")
			add(fmt.Sprintf("webhook.header_files[%d]", i), strings.TrimSpace(file), true)
		}
		add("webhook.template_file", c.TemplateFile, false)
		pem("webhook", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c := &cfg.Alertmanager.Config; cfg.Alertmanager.Enabled {
		add("alertmanager.token_file", c.TokenFile, true)
		pem("alertmanager", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c := &cfg.Syslog.Config; cfg.Syslog.Enabled {
		pem("syslog", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c := &cfg.Kafka.Config; cfg.Kafka.Enabled {
		add("kafka.password_file", c.PasswordFile, true)
		pem("kafka", c.CAFile, c.CertFile, c.KeyFile)
	}
	if c := &cfg.Web; c.Listen != "" {
		add("web.token_file", c.TokenFile, true)
		if o := &c.Access.OIDC; o.Issuer != "" {
			add("web.access.oidc.client_secret_file", o.ClientSecretFile, true)
			add("web.access.oidc.ca_file", o.CAFile, false)
		}
		add("web.topology", c.Topology, false)
		for i, p := range c.Dashboards {
			add(fmt.Sprintf("web.dashboards[%d]", i), p, false)
		}
		add("web.tls_cert_file", c.TLSCertFile, false)
		add("web.tls_key_file", c.TLSKeyFile, true)
	}
	add("seed_file", cfg.SeedFile, true)
	add("inventory", cfg.Inventory, false)
	add("policy", cfg.Policy, false)
	add("pint.topology", cfg.PINT.Topology, false)
	for i, p := range cfg.PINT.Plans {
		add(fmt.Sprintf("pint.plans[%d]", i), p, false)
	}
	return list
}

// checkRegular refuses what is there and is no file: a FIFO can be read once, and by one.
func checkRegular(cfg *config, v *verdict) {
	for _, f := range namedFiles(cfg) {
		if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
			v.odd = true
			v.problem(f.key, "%s is no regular file", f.path)
		}
	}
}

// checkSecrets warns of secrets that others on this machine can read. The group may read a file of another user, since that can be
// how this process reads it.
func checkSecrets(cfg *config, v *verdict) {
	credentials := os.Getenv("CREDENTIALS_DIRECTORY") // of systemd, which guards them otherwise
	for _, f := range namedFiles(cfg) {
		info, err := os.Stat(f.path)
		if !f.secret || err != nil || credentials != "" && strings.HasPrefix(filepath.Clean(f.path), filepath.Clean(credentials)+"/") {
			continue
		}
		if readers, ok := settings.Readers(info); ok {
			v.warn(f.key, "%s can be read by %s on this machine (mode %04o): chmod 600", f.path, readers, info.Mode().Perm())
		}
	}
}

// checkExposure warns of secrets that cross the network in the clear.
func checkExposure(cfg *config, v *verdict) {
	if c := &cfg.Web; c.Listen != "" && c.TokenFile != "" && c.TLSCertFile == "" && !loopback(c.Listen) {
		v.warn("web.token_file", "the page is served at %s without TLS, so that its token can be read on the way: set web.tls_cert_file, or listen on 127.0.0.1 behind a proxy", c.Listen)
	}
	clear := func(section, address string, secret bool) {
		if u, err := url.Parse(address); secret && err == nil && u.Scheme == "http" && !loopback(net.JoinHostPort(u.Hostname(), "0")) {
			v.warn(section+".url", "is http, so that the token can be read on the way to %s", u.Hostname())
		}
	}
	if c := &cfg.Influx.Config; cfg.Influx.Enabled {
		clear("influx", c.URL, c.TokenFile != "" || c.TokenEnv != "")
	}
	if c := &cfg.Webhook.Config; cfg.Webhook.Enabled {
		clear("webhook", c.URL, c.TokenFile != "" || c.TokenEnv != "" || len(c.HeaderFiles)+len(c.HeaderEnv) > 0)
	}
	if c := &cfg.Alertmanager.Config; cfg.Alertmanager.Enabled {
		clear("alertmanager", c.URL, c.TokenFile != "" || c.TokenEnv != "")
	}
}

// checkFleetExposure warns of windows and passwords of a fleet that cross the network in the clear.
func checkFleetExposure(cfg *config, v *verdict) {
	c := &cfg.Kafka.Config
	if !cfg.Kafka.Enabled || c.TLS && !c.TLSInsecure {
		return
	}
	for i, b := range c.Brokers {
		if loopback(b) {
			continue
		}
		what := "every machine on the way to %s can read and change what the fleet sees: set kafka.tls"
		if c.SASL == "plain" {
			what = "the password and all that the fleet sees can be read and changed on the way to %s: set kafka.tls"
		}
		if c.TLS {
			v.warn("kafka.tls_insecure", "any server that answers at %s is taken for a broker: name its authority in kafka.ca_file", b)
		} else {
			v.warn(fmt.Sprintf("kafka.brokers[%d]", i), what, b)
		}
		return
	}
}

// loopback reports whether an address of host and port is of this machine alone.
func loopback(address string) bool { return settings.Loopback(address) }
