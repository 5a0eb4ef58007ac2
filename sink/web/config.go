package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// Config holds where the page is served, the access to it, and how much of the past it shows.
type Config struct {
	Listen         string   `yaml:"listen" doc:"Address and port of the page and its API. Empty disables both."`
	TokenFile      string   `yaml:"token_file" doc:"File with the access token (at least 16 characters). Required beyond loopback."`
	TLSCertFile    string   `yaml:"tls_cert_file" doc:"PEM file with the server's certificate chain. Empty serves plain HTTP."`
	TLSKeyFile     string   `yaml:"tls_key_file" doc:"PEM file with the key of the certificate."`
	AllowedHosts   []string `yaml:"allowed_hosts" doc:"Host names of the page without a token, beside localhost and IP addresses."`
	Topology       string   `yaml:"topology" doc:"Network on the map, in the form of pint.topology. Empty takes that, or else the links of flows."`
	Dashboards     []string `yaml:"dashboards" doc:"Files of dashboards that the page offers, 32 at most, with links, paths and flows beside each other. Changes count at once."`
	HistoryWindows int      `yaml:"history_windows" doc:"Windows on the page: 180 are 15 minutes of 5 s windows." range:"10..2880"`
	MaxHops        int      `yaml:"max_hops" doc:"Hops on the page, of 40 bytes a window, and as many interfaces with counters (696) and paths of probes (728)." range:"16..65536"`
	MaxFlows       int      `yaml:"max_flows" doc:"Flows on the page, of 12 bytes a window and 16 more a hop." range:"16..16384"`
	MaxExporters   int      `yaml:"max_exporters" doc:"Exporters kept for the page. One costs 36 bytes a window." range:"16..65536"`
	MaxFindings    int      `yaml:"max_findings" doc:"Findings on the page; the oldest go first, ended ones before open ones." range:"16..10000"`
	MaxConnections int      `yaml:"max_connections" doc:"Open connections; for a new one the longest idle one is closed. When all are busy, 16 more serve health checks and metrics." range:"8..65536"`
	MaxStreams     int      `yaml:"max_streams" doc:"Open event streams, one a page." range:"1..4096"`
	BasePath       string   `yaml:"base_path" doc:"Path below which a reverse proxy serves the page, such as /hopscope, and may remove it. Empty is the root."`
	Control        string   `yaml:"control" doc:"admin.listen of a hopscope control on this machine that operators command from the page: http://HOST:PORT or unix:PATH."`

	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" doc:"Longest time for requests to end at a stop." range:"100ms..1m"`
	Access          access.Config `yaml:"access" doc:"Roles of clients on the page and its API, by their logins."`
}

// DefaultConfig serves on loopback and keeps a quarter of an hour of 5 s windows.
func DefaultConfig() Config {
	c := Config{
		Listen:          "127.0.0.1:8080",
		HistoryWindows:  180,
		MaxHops:         4096,
		MaxFlows:        512,
		MaxExporters:    1024,
		MaxFindings:     500,
		MaxConnections:  256,
		MaxStreams:      64,
		ShutdownTimeout: 5 * time.Second,
	}
	c.Access.SetDefaults()
	return c
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate names all problems between the fields at once.
func (c *Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	var errs []error
	loopback, err := isLoopback(c.Listen)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("listen: %w", err))
	case !loopback && c.TokenFile == "" && !c.Access.Logins():
		errs = append(errs, fmt.Errorf("token_file: required because %s is not a loopback address; "+
			"write 16 or more random characters to a file (openssl rand -hex 24), name a login under access, or listen on 127.0.0.1", c.Listen))
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		errs = append(errs, errors.New("tls_cert_file, tls_key_file: both or neither"))
	}
	if p := c.BasePath; p != "" && (path.Clean(p) != p || p[0] != '/' || p == "/" || strings.Trim(p, basePathSet) != "") {
		errs = append(errs, fmt.Errorf("base_path: %q is no path such as /hopscope, with no / at its end", p))
	}
	if len(c.Dashboards) > atlas.MaxDashboards {
		errs = append(errs, fmt.Errorf("dashboards: %d files, at most %d", len(c.Dashboards), atlas.MaxDashboards))
	}
	for i, h := range c.AllowedHosts {
		if h == "" || strings.ContainsAny(h, ":/ *") {
			errs = append(errs, fmt.Errorf("allowed_hosts[%d]: %q is not a host name (no scheme, no port)", i, h))
		}
	}
	return errors.Join(errs...)
}

// basePathSet are the characters that need no escape in a path.
const basePathSet = "/-_.~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *Config) CheckFiles() error {
	if c.Listen == "" {
		return nil
	}
	var errs []error
	if c.TokenFile != "" {
		if _, err := peer.Token(c.TokenFile); err != nil {
			errs = append(errs, fmt.Errorf("token_file: %w", err))
		}
	}
	if c.TLSCertFile != "" && c.TLSKeyFile != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile); err != nil {
			errs = append(errs, fmt.Errorf("tls_cert_file: %w", err))
		}
	}
	for i, f := range c.Dashboards {
		if _, err := atlas.ReadDashboardFile(f); err != nil {
			errs = append(errs, fmt.Errorf("dashboards[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// isLoopback reports whether only this machine can reach the address. A host name other than localhost may resolve to anything, so it
// counts as reachable.
func isLoopback(listen string) (bool, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("%q is not host:port", listen)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("port %q is outside 0..65535", port)
	} else if n == 0 && port != "0" {
		return false, fmt.Errorf("port %q is not a plain number", port)
	}
	return peer.Loopback(host), nil
}

// Memory is the most memory that the page takes, in bytes: what it remembers, and an answer for every connection.
func (c *Config) Memory() int64 {
	if c.Listen == "" {
		return 0
	}
	const row, near, answer = 256, 128, 64 << 10 // a row's key and place in its table; what follows a hop, for the map; a connection with its buffers and its answer
	windows := int64(c.HistoryWindows)
	return int64(c.MaxHops)*(2*row+int64(unsafe.Sizeof(interfaceSeries{})+unsafe.Sizeof(probedSeries{}))) + int64(c.MaxHops)*(row+near+windows*int64(unsafe.Sizeof(cell{}))) +
		int64(c.MaxFlows)*(row+maxChanges*512+inference.MostSights*int64(unsafe.Sizeof(inference.FlowSight{}))+windows*(int64(unsafe.Sizeof(flowCell{}))+maxPositions*int64(unsafe.Sizeof(positionCell{})))) +
		probeWindows*int64(c.MaxFlows)*(row+probePathMost*int64(unsafe.Sizeof(ask.ProbeHop{})+2*unsafe.Sizeof(ask.ProbeQuantile{}))) +
		int64(c.MaxExporters)*(row+windows*int64(unsafe.Sizeof(exporterCell{}))) +
		int64(c.MaxFindings)*2048 + int64(c.MaxConnections)*answer + c.Access.Memory()
}
