package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/ingest/peer"
)

// Config holds the addresses of Kafka, and the identity of its client.
type Config struct {
	Brokers      []string      `yaml:"brokers" doc:"First brokers, as HOST:PORT; one reachable broker names the others."`
	Prefix       string        `yaml:"prefix" doc:"Prefix of all topics and groups. Two fleets on one Kafka need two."`
	TLS          bool          `yaml:"tls" doc:"Encrypt, and check the brokers' certificates."`
	CAFile       string        `yaml:"ca_file" doc:"PEM file of the authorities of the brokers' certificates. Empty is the system's."`
	CertFile     string        `yaml:"cert_file" doc:"PEM file of the certificate for the brokers, with key_file; read for every connection."`
	KeyFile      string        `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
	ServerName   string        `yaml:"server_name" doc:"Name in the brokers' certificates, if it is not the host of their address."`
	TLSInsecure  bool          `yaml:"tls_insecure" doc:"Accept any certificate. A machine in between can read the password and change data."`
	SASL         string        `yaml:"sasl" doc:"Method of login. SCRAM hides the password from the broker." oneof:"none|plain|scram-sha-256|scram-sha-512"`
	User         string        `yaml:"user" doc:"Name to log in with."`
	PasswordFile string        `yaml:"password_file" doc:"File with the password, read for every connection."`
	PasswordEnv  string        `yaml:"password_env" doc:"Environment variable with the password, instead of password_file."`
	Timeout      time.Duration `yaml:"timeout" doc:"Longest wait for a connection, and for the answer to one request." range:"100ms..10m"`
}

// DefaultConfig is a broker on the same machine without any security.
func DefaultConfig() Config {
	return Config{Brokers: []string{"127.0.0.1:9092"}, Prefix: "hopscope.", SASL: "none", Timeout: 10 * time.Second}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Target returns where records go, for display.
func (c *Config) Target() string {
	return fmt.Sprintf("%s, topics %s*", strings.Join(c.Brokers, ","), c.Prefix)
}

// Topic returns the name of a topic with the prefix.
func (c *Config) Topic(name string) string { return c.Prefix + name }

// names returns the topics of a fleet with the prefix.
func (c *Config) names() []string {
	var names []string
	for _, t := range []string{Windows, Reports, Series, State, Roster, Plans} {
		names = append(names, c.Topic(t))
	}
	return names
}

// The topics of a fleet, without the prefix.
const (
	Windows = "windows"
	Reports = "reports"
	Series  = "series"
	State   = "state"
	Roster  = "roster"
	Plans   = "plans"
)

// maxPrefix leaves room for the longest name below Kafka's 249 characters.
const maxPrefix = 200

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Brokers) == 0 {
		wrong("brokers: are missing")
	}
	for i, b := range c.Brokers {
		host, port, err := net.SplitHostPort(b)
		if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 1 || n > 65535 || strings.ContainsAny(b, ", \t") {
			wrong("brokers[%d]: %q is not HOST:PORT", i, b)
		}
	}
	if len(c.Prefix) > maxPrefix || strings.ContainsFunc(c.Prefix, notInTopic) {
		wrong("prefix: %q is not up to %d letters, digits, dots, dashes and underscores", c.Prefix, maxPrefix)
	}
	if !c.TLS && (c.CAFile != "" || c.CertFile != "" || c.ServerName != "" || c.TLSInsecure) {
		wrong("tls: is off, so ca_file, cert_file, server_name and tls_insecure have no effect; turn it on or remove them")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		wrong("cert_file: needs key_file, and the other way round")
	}
	if c.TLSInsecure && (c.CAFile != "" || c.ServerName != "") {
		wrong("tls_insecure: contradicts ca_file and server_name; choose")
	}
	login := c.SASL != "none"
	if !login && (c.User != "" || c.PasswordFile != "" || c.PasswordEnv != "") {
		wrong("sasl: is none, so user, password_file and password_env have no effect; choose a mechanism or remove them")
	}
	if login && c.User == "" {
		wrong("user: is missing")
	}
	if login && c.PasswordFile == "" && c.PasswordEnv == "" {
		wrong("password_file: is missing")
	}
	if c.PasswordFile != "" && c.PasswordEnv != "" {
		wrong("password_file: password_env is set too; choose one")
	}
	return errors.Join(errs...)
}

func notInTopic(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
}

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *Config) CheckFiles() error {
	var errs []error
	if c.PasswordFile != "" {
		_, err := c.password()
		errs = append(errs, err)
	}
	_, _, err := peer.Optional(c.CAFile, c.CertFile, c.KeyFile)
	return errors.Join(append(errs, err)...)
}

// password reads the password from its place in the settings.
func (c *Config) password() (string, error) {
	return peer.Secret("password", c.PasswordFile, c.PasswordEnv)
}

// security makes the TLS settings of one connection out of the files as they are now.
func (c *Config) security() (*tls.Config, error) {
	authorities, certificate, err := peer.Optional(c.CAFile, c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		InsecureSkipVerify: c.TLSInsecure, MinVersion: tls.VersionTLS12, ServerName: c.ServerName, RootCAs: authorities, Certificates: certificate,
	}, nil
}
