package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/peer"
)

// Config is the settings of the addresses and bounds for receiving metrics.
type Config struct {
	Ports           []Port        // beside those of GRPC and HTTP, by the list of ports of all sources
	Enabled         bool          `yaml:"enabled" doc:"Receive OTLP metrics (docs/formats.md) at grpc and http, beside ports. It disables the default of ports."`
	GRPC            string        `yaml:"grpc" doc:"TCP address for OTLP over gRPC, host:port. Empty serves none."`
	HTTP            string        `yaml:"http" doc:"TCP address of OTLP over HTTP, host:port, path /v1/metrics. Empty serves none."`
	TLSCertFile     string        `yaml:"tls_cert_file" doc:"PEM file of the server's certificate chain, for both addresses. Empty serves without TLS."`
	TLSKeyFile      string        `yaml:"tls_key_file" doc:"PEM file with its key."`
	TLSClientCAFile string        `yaml:"tls_client_ca_file" doc:"PEM file of the authorities that sign senders' certificates. Empty requires none."`
	MaxRequestBytes int           `yaml:"max_request_bytes" doc:"Longest request, unpacked; longer ones are refused." range:"65536..67108864"`
	MaxRequests     int           `yaml:"max_requests" doc:"Requests received or waiting at a time. Senders of further ones are asked to retry." range:"1..1024"`
	MaxConnections  int           `yaml:"max_connections" doc:"Connections to each address; further ones wait until one ends." range:"1..65536"`
	Timeout         time.Duration `yaml:"timeout" doc:"Longest time to receive and read a request, and for a handshake." range:"100ms..10m"`
}

// Port is an address to receive on.
type Port struct {
	Addr  string // host:port
	HTTP  bool   // else gRPC
	Spare bool   // where another program has it, the others are received on without it
}

// ports are all addresses.
func (c *Config) ports() (list []Port) {
	if c.Enabled || len(c.Ports) == 0 {
		for _, p := range []Port{{Addr: c.GRPC}, {Addr: c.HTTP, HTTP: true}} {
			if p.Addr != "" {
				list = append(list, p)
			}
		}
	}
	return append(list, c.Ports...)
}

// DefaultConfig receives for this machine alone, once it is switched on.
func DefaultConfig() Config {
	return Config{
		GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318", MaxRequestBytes: 4 << 20, MaxRequests: 32, MaxConnections: 256, Timeout: 10 * time.Second,
	}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate returns every problem that ranges do not show.
func (c *Config) Validate() error {
	var errs []error
	for _, a := range []struct{ key, addr string }{{"grpc", c.GRPC}, {"http", c.HTTP}} {
		if a.addr == "" {
			continue
		}
		_, port, err := net.SplitHostPort(a.addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is no host:port such as 127.0.0.1:4317", a.key, a.addr))
		}
	}
	if c.Enabled && c.GRPC == "" && c.HTTP == "" {
		errs = append(errs, errors.New("grpc, http: one of them is needed where enabled is true"))
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		errs = append(errs, errors.New("tls_cert_file, tls_key_file: both or neither"))
	}
	if c.TLSClientCAFile != "" && c.TLSCertFile == "" {
		errs = append(errs, errors.New("tls_client_ca_file: needs tls_cert_file, since senders show certificates over TLS alone"))
	}
	return errors.Join(errs...)
}

// tls reads the files; it is nil where there are none.
func (c *Config) tls() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	authorities, certificate, err := peer.Optional(c.TLSClientCAFile, c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificate}
	if authorities != nil {
		conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, authorities
	}
	return conf, nil
}

// Open makes a [Source] of these settings, with its sockets open; nil where it has no address.
func (c Config) Open() (ingest.Source, error) {
	if !c.Enabled && len(c.Ports) == 0 {
		return nil, nil
	}
	s, err := New(c)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	return s, nil
}

// Metrics are the numbers that are published about this kind of source.
func (c Config) Metrics() []ingest.Metric {
	return []ingest.Metric{
		{Name: "requests_total", Help: "Requests to export metrics that were handed on.", Value: func(s *ingest.Stats) uint64 { return s.Frames }},
		{Name: "bytes_total", Help: "Bytes of requests that were handed on, unpacked.", Value: func(s *ingest.Stats) uint64 { return s.Bytes }},
		{Name: "busy_total", Help: "Requests refused for lack of room; senders are asked to retry.", Value: func(s *ingest.Stats) uint64 { return s.Refused }},
		{Name: "too_long_total", Help: "Requests refused as longer than otlp.max_request_bytes.", Value: func(s *ingest.Stats) uint64 { return s.TooLong }},
		{Name: "damaged_total", Help: "Broken requests, and those in other forms or protocols.", Value: func(s *ingest.Stats) uint64 { return s.Damaged }},
	}
}
