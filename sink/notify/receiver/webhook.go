package receiver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// Webhook is the settings of the address that alerts are posted to, and of their form.
type Webhook struct {
	URL          string   `yaml:"url" doc:"Address that alerts are posted to, http or https."`
	URLFile      string   `yaml:"url_file" doc:"File with the address, instead of url, where it is itself the permission to post."`
	URLEnv       string   `yaml:"url_env" doc:"Environment variable with the address, instead of url."`
	TokenFile    string   `yaml:"token_file" doc:"File with a token, sent as Authorization: Bearer."`
	TokenEnv     string   `yaml:"token_env" doc:"Environment variable with the token, instead of token_file."`
	Headers      []string `yaml:"headers" doc:"Further headers, as Name: value, without secrets."`
	HeaderFiles  []string `yaml:"header_files" doc:"Headers with values in files, as Name: FILE."`
	HeaderEnv    []string `yaml:"header_env" doc:"Headers with values in environment variables, as Name: VARIABLE."`
	TemplateFile string   `yaml:"template_file" doc:"File of a Go template for the body of an alert. Empty sends JSON."`
	ContentType  string   `yaml:"content_type" doc:"Type of the body. For JSON, the template must give JSON for all texts."`
	Heartbeats   bool     `yaml:"heartbeats" doc:"Send the signs of life, too."`
	peer.TLS     `yaml:",inline" shared:"TLS"`
	Timeout      time.Duration `yaml:"timeout" doc:"Longest wait for the answer to one request." range:"100ms..10m"`
}

// SetDefaults makes c the default settings. There is no default for the address.
func (c *Webhook) SetDefaults() {
	*c = Webhook{ContentType: "application/json", Timeout: 10 * time.Second}
}

// Alerts reports that this store takes alerts.
func (c Webhook) Alerts() bool { return true }

// Target returns where alerts go, for display. Of an address it holds only the server, since the rest may be a secret.
func (c Webhook) Target() string {
	switch {
	case c.URLFile != "":
		return "the address in " + c.URLFile
	case c.URLEnv != "":
		return "the address in $" + c.URLEnv
	}
	return siteOf(c.URL)
}

// Doc returns what the switch, the queue and the spool of this store are for.
func (c Webhook) Doc(key string) string {
	return map[string]string{
		"enabled": "Post alerts to a server.",
	}[key]
}

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Webhook) Validate() error {
	var errs []error
	switch n := countSet(c.URL, c.URLFile, c.URLEnv); {
	case n == 0:
		errs = append(errs, errors.New("url: is missing, and so are url_file and url_env"))
	case n > 1:
		errs = append(errs, errors.New("url: only one of url, url_file and url_env may be set"))
	case c.URL != "":
		errs = append(errs, checkAddress("url", c.URL, &c.TLS))
	}
	if c.TokenFile != "" && c.TokenEnv != "" {
		errs = append(errs, errors.New("token_file: token_env is set too; choose one"))
	}
	if c.ContentType == "" || !plainHeader(c.ContentType) {
		errs = append(errs, errors.New("content_type: must be a type such as application/json"))
	}
	errs = append(errs, c.validateHeaders()...)
	return errors.Join(append(errs, c.TLS.Problems())...)
}

func countSet(texts ...string) (n int) {
	for _, t := range texts {
		if t != "" {
			n++
		}
	}
	return n
}

// fixedHeaders are headers that have settings of their own, or that HTTP makes.
var fixedHeaders = []string{"Content-Type", "Content-Length", "Host", "Connection", "Transfer-Encoding", "Trailer", "Upgrade", "Te"}

// secretHeaders are headers whose values may not be in the settings.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token"}

func (c *Webhook) validateHeaders() (errs []error) {
	seen := map[string]bool{}
	for _, list := range []struct {
		key   string
		lines []string
	}{{"headers", c.Headers}, {"header_files", c.HeaderFiles}, {"header_env", c.HeaderEnv}} {
		for i, line := range list.lines {
			name, value, ok := splitHeader(line)
			problem := ""
			switch {
			case !ok:
				problem = "must be Name: value"
			case slices.Contains(fixedHeaders, name):
				problem = name + " cannot be set here"
			case seen[name]:
				problem = name + " is set twice"
			case name == "Authorization" && c.TokenFile+c.TokenEnv != "":
				problem = "Authorization is set by token_file and token_env, too"
			case list.key == "headers" && slices.Contains(secretHeaders, name):
				problem = name + " is a secret; use header_files or header_env"
			case !plainHeader(value):
				problem = name + " has a value with a line break or another character that no header has"
			}
			if problem != "" {
				errs = append(errs, fmt.Errorf("%s: entry %d: %s", list.key, i+1, problem))
			}
			seen[name] = true
		}
	}
	return errs
}

// splitHeader divides "Name: value".
func splitHeader(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	token := func(r rune) bool {
		return r > ' ' && r < 0x7f && !strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	}
	ok = ok && name != "" && value != "" && !strings.ContainsFunc(name, func(r rune) bool { return !token(r) })
	return textproto.CanonicalMIMEHeaderKey(name), value, ok
}

func plainHeader(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// json reports whether the body has to be JSON.
func (c *Webhook) json() bool {
	kind, _, _ := strings.Cut(strings.ToLower(c.ContentType), ";")
	kind = strings.TrimSpace(kind)
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// client reads the address, the headers and the certificates.
func (c *Webhook) client() (*httpClient, error) {
	var errs []error
	address, err := peer.Header("url", c.URLFile, c.URLEnv)
	if address = cmp.Or(address, c.URL); err == nil {
		err = checkAddress("url", address, &c.TLS)
	}
	errs = append(errs, err)
	client := &httpClient{Name: "webhook", URL: address, Header: http.Header{"Content-Type": {c.ContentType}, "User-Agent": {"hopscope"}}}
	client.Secrets = append(client.Secrets, secretsOf(address)...)
	token, err := peer.Header("token", c.TokenFile, c.TokenEnv)
	if errs = append(errs, err); token != "" {
		client.Header.Set("Authorization", "Bearer "+token)
		client.Secrets = append(client.Secrets, token)
	}
	for _, line := range c.Headers {
		name, value, _ := splitHeader(line)
		client.Header.Set(name, value)
	}
	for i, list := range [][]string{c.HeaderFiles, c.HeaderEnv} {
		for n, line := range list {
			name, source, _ := splitHeader(line)
			file, env := source, ""
			if i == 1 {
				file, env = "", source
			}
			value, err := peer.Header("header", file, env)
			if err != nil {
				err = fmt.Errorf("%s: entry %d: %w", [...]string{"header_files", "header_env"}[i], n+1, err)
			}
			errs = append(errs, err)
			client.Header.Set(name, value)
			client.Secrets = append(client.Secrets, value)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return client, client.Open(&c.TLS, c.Timeout)
}

// CheckFiles reads the files that the settings name, and tries the template.
func (c *Webhook) CheckFiles() error {
	_, clientErr := c.client()
	_, templateErr := c.body()
	return errors.Join(clientErr, templateErr)
}

// Open makes a [WebhookWriter] of these settings.
func (c Webhook) Open() (sink.Writer, error) {
	return sink.Opened(newWebhook(c))
}
