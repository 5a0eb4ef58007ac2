package influx

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// Config is the settings of the server that is written to.
type Config struct {
	URL           string `yaml:"url" doc:"Address of the server, http or https, with a path prefix if needed."`
	Org           string `yaml:"org" doc:"Organisation, by name. Empty for InfluxDB 1.8."`
	Bucket        string `yaml:"bucket" doc:"Bucket, by name. For InfluxDB 1.8: database/retention-policy."`
	TokenFile     string `yaml:"token_file" doc:"File with the token, or user:password for InfluxDB 1.8."`
	TokenEnv      string `yaml:"token_env" doc:"Environment variable with the token, instead of token_file."`
	peer.TLS      `yaml:",inline" shared:"TLS"`
	Timeout       time.Duration `yaml:"timeout" doc:"Longest wait for the answer to one request." range:"100ms..10m"`
	BatchPoints   int           `yaml:"batch_points" doc:"Most points sent in one request." range:"1..100000"`
	SplitRequests int           `yaml:"split_requests" doc:"Most requests at a try to separate refused points from others; the next try continues. 0 is 1." range:"0..10000"`
	Gzip          bool          `yaml:"gzip" doc:"Compress requests, for distant servers: a sixth of the bytes for some 6 µs a point."`
}

// DefaultConfig writes to a server on the same machine.
func DefaultConfig() Config {
	return Config{
		URL:           "http://127.0.0.1:8086",
		Org:           "hopscope",
		Bucket:        "hopscope",
		Timeout:       10 * time.Second,
		BatchPoints:   5000,
		SplitRequests: 64,
	}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Open makes a writer of these settings.
func (c Config) Open() (sink.Writer, error) {
	return sink.Opened(New(c))
}

// Target returns where points go, for display.
func (c Config) Target() string { return fmt.Sprintf("%s, bucket %s", c.URL, c.Bucket) }

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Config) Validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		// A *url.Error quotes the whole text, which may hold a password.
		errs = append(errs, errors.New("url: is not an address"))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		errs = append(errs, errors.New("url: must be http://HOST:PORT or https://HOST:PORT"))
	default:
		if u.User != nil {
			errs = append(errs, errors.New("url: must not hold a user or password; use token_file"))
		}
		if u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, errors.New("url: must end with its path"))
		}
		if u.Scheme == "http" && (c.TLS.Used()) {
			errs = append(errs, errors.New("url: is http, so ca_file, cert_file and tls_insecure have no effect; use https or remove them"))
		}
	}
	if c.Bucket == "" {
		errs = append(errs, errors.New("bucket: is missing"))
	}
	if c.Org == "" && !strings.Contains(c.Bucket, "/") {
		errs = append(errs, errors.New("org: is missing (only InfluxDB 1.8 has none, and there bucket is database/retention-policy)"))
	}
	if c.TokenFile != "" && c.TokenEnv != "" {
		errs = append(errs, errors.New("token_file: token_env is set too; choose one"))
	}
	return errors.Join(append(errs, c.TLS.Problems())...)
}

// token reads the token from its place in the settings. It may be empty: InfluxDB 1.8 has no token when authentication
// is off.
func (c *Config) token() (string, error) {
	return peer.Header("token", c.TokenFile, c.TokenEnv)
}

// Doc returns what the switch, the queue and the spool of this store are for.
func (c Config) Doc(key string) string {
	return map[string]string{
		"enabled": "Write to InfluxDB.",
	}[key]
}

// Bytes of a point in a request, by the spool of a run of "hopscope-bench sizing"; how many times fewer these are
// compressed; and the processor time of a point.
const (
	pointBytes = 220
	gzipped    = 6
	pointUnits = .5
)

// Output is what the store is expected to write.
func (c *Config) Output(v *sink.Volume) sink.Output {
	each := float64(pointBytes)
	if c.Gzip {
		each /= gzipped
	}
	return sink.Output{Takes: true, Network: v.Points * each, Units: v.Points * pointUnits, Rests: fmt.Sprintf("%.0f points a second, of %.0f bytes each", v.Points, each)}
}
