package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// Alertmanager names the Alertmanager that receives alerts, and holds its settings.
type Alertmanager struct {
	URL              string   `yaml:"url" doc:"Address of the Alertmanager, http or https, without /api/v2/alerts."`
	TokenFile        string   `yaml:"token_file" doc:"File with a token, sent as Authorization: Bearer."`
	TokenEnv         string   `yaml:"token_env" doc:"Environment variable with the token, instead of token_file."`
	Labels           []string `yaml:"labels" doc:"Further labels of all alerts, as name=value."`
	Page             string   `yaml:"page" doc:"Address of the page, as the link of alerts. Empty gives no link."`
	Heartbeats       bool     `yaml:"heartbeats" doc:"Send the signs of life, as an alert hopscope-heartbeat that always fires."`
	peer.TLS         `yaml:",inline" shared:"TLS"`
	HeartbeatTimeout time.Duration `yaml:"heartbeat_timeout" doc:"hopscope-heartbeat ends when no sign of life has come for this long." range:"1m..72h"`
	Timeout          time.Duration `yaml:"timeout" doc:"Longest wait for the answer to one request." range:"100ms..10m"`
}

// SetDefaults makes c the default settings: an Alertmanager on the same machine.
func (c *Alertmanager) SetDefaults() {
	*c = Alertmanager{URL: "http://127.0.0.1:9093", Heartbeats: true, HeartbeatTimeout: 15 * time.Minute, Timeout: 10 * time.Second}
}

// Alerts reports that this store takes alerts.
func (c Alertmanager) Alerts() bool { return true }

// Target returns where alerts go, for display.
func (c Alertmanager) Target() string { return siteOf(c.URL) }

// Doc returns what the switch, the queue and the spool of this store are for.
func (c Alertmanager) Doc(key string) string {
	return map[string]string{
		"enabled": "Send alerts to an Alertmanager.",
	}[key]
}

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Alertmanager) Validate() error {
	errs := []error{checkAddress("url", c.URL, &c.TLS)}
	if u, err := url.Parse(c.URL); err == nil && (u.RawQuery != "" || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/api/v2/alerts")) {
		errs = append(errs, errors.New("url: must end before /api/v2/alerts"))
	}
	if c.TokenFile != "" && c.TokenEnv != "" {
		errs = append(errs, errors.New("token_file: token_env is set too; choose one"))
	}
	if c.Page != "" {
		if err := checkAddress("page", c.Page, &peer.TLS{}); err != nil {
			errs = append(errs, err)
		}
	}
	_, err := c.labels()
	return errors.Join(append(errs, err, c.TLS.Problems())...)
}

// labelName matches the names that every version of Alertmanager takes.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ownLabels are the labels that an alert has by itself.
var ownLabels = []string{"alertname", "severity", "element", "instance"}

// labels reads the fixed labels.
func (c *Alertmanager) labels() (map[string]string, error) {
	labels := map[string]string{}
	var errs []error
	for i, line := range c.Labels {
		name, value, ok := strings.Cut(line, "=")
		switch {
		case !ok || value == "":
			errs = append(errs, fmt.Errorf("labels: entry %d: must be name=value", i+1))
		case !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
			errs = append(errs, fmt.Errorf("labels: entry %d: %q is no name of a label: letters, digits and _", i+1, name))
		case slices.Contains(ownLabels, name):
			errs = append(errs, fmt.Errorf("labels: entry %d: every alert has %s by itself", i+1, name))
		case labels[name] != "":
			errs = append(errs, fmt.Errorf("labels: entry %d: %s is set twice", i+1, name))
		case !utf8.ValidString(value):
			errs = append(errs, fmt.Errorf("labels: entry %d: the value is not UTF-8", i+1))
		default:
			labels[name] = value
		}
	}
	return labels, errors.Join(errs...)
}

// client reads the token and the certificates.
func (c *Alertmanager) client() (*httpClient, error) {
	client := &httpClient{Name: "alertmanager", URL: strings.TrimSuffix(c.URL, "/") + "/api/v2/alerts", NoPages: true,
		Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"hopscope"}}}
	token, tokenErr := peer.Header("token", c.TokenFile, c.TokenEnv)
	if token != "" {
		client.Header.Set("Authorization", "Bearer "+token)
		client.Secrets = []string{token}
	}
	if err := errors.Join(tokenErr, client.Open(&c.TLS, c.Timeout)); err != nil {
		return nil, err
	}
	return client, nil
}

// CheckFiles reads the files that the settings name.
func (c *Alertmanager) CheckFiles() error {
	_, err := c.client()
	return err
}

// Open makes an [AlertmanagerWriter] of these settings.
func (c Alertmanager) Open() (sink.Writer, error) {
	return sink.Opened(newAlertmanager(c))
}
