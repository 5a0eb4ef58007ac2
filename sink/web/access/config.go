package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxTokens bounds max_tokens.
const maxTokens = 4096

// Config holds the roles of clients of the page and its API.
type Config struct {
	Dir            string        `yaml:"dir" doc:"Directory of tokens by role and of the log of changes. Empty keeps the page and its API read-only."`
	OpenRole       string        `yaml:"open_role" doc:"Role of every request without a configured login, on a loopback address alone." oneof:"viewer|operator|admin"`
	TrustedProxies []string      `yaml:"trusted_proxies" doc:"Addresses or prefixes of reverse proxies. X-Forwarded-For, X-Forwarded-Proto and user_header of other senders are ignored and counted."`
	UserHeader     string        `yaml:"user_header" doc:"Header in which trusted proxies name the user, such as X-Forwarded-User. The proxy must remove it from what clients send."`
	GroupsHeader   string        `yaml:"groups_header" doc:"Header in which they name the user's groups, separated by commas, such as X-Forwarded-Groups."`
	Members        `yaml:""`     // of both kinds of logins
	AllowedOrigins []string      `yaml:"allowed_origins" doc:"Origins of pages, such as https://wiki.example, whose scripts may use the API with a bearer token (CORS)."`
	SessionIdle    time.Duration `yaml:"session_idle" doc:"Time without use after which a session ends." range:"1m..720h"`
	SessionLife    time.Duration `yaml:"session_lifetime" doc:"Time from its login after which a session ends." range:"1m..8760h"`
	MaxSessions    int           `yaml:"max_sessions" doc:"Most open sessions; the least recently used makes room." range:"1..65536"`
	MaxTokens      int           `yaml:"max_tokens" doc:"Most tokens by role; further ones are refused." range:"1..4096"`
	OIDC           OIDC          `yaml:"oidc" doc:"Login by OpenID Connect."`
	ChangesBytes   int64         `yaml:"changes_bytes" doc:"Size of the log of changes, in two files; the older one makes room." range:"65536..1073741824"`
}

// SetDefaults makes c the default settings, which change nothing of a page with one token or none.
func (c *Config) SetDefaults() {
	*c = Config{OpenRole: "viewer", SessionIdle: 12 * time.Hour, SessionLife: 7 * 24 * time.Hour, MaxSessions: 1024, MaxTokens: 256, ChangesBytes: 16 << 20}
	c.OIDC.SetDefaults()
}

// Logins reports whether the settings have a way to log in, other than by the one token of the page.
func (c *Config) Logins() bool { return c.UserHeader != "" || c.OIDC.Issuer != "" }

// Validate names all problems between the fields at once.
func (c *Config) Validate() error {
	errs := c.Members.validate()
	if _, err := prefixes(c.TrustedProxies); err != nil {
		errs = append(errs, err)
	}
	for _, h := range []struct{ key, name string }{{"user_header", c.UserHeader}, {"groups_header", c.GroupsHeader}} {
		if h.name != "" && !headerName(h.name) {
			errs = append(errs, fmt.Errorf("%s: %q is no name of a header", h.key, h.name))
		}
	}
	if c.UserHeader != "" && len(c.TrustedProxies) == 0 {
		errs = append(errs, errors.New("trusted_proxies: needed by user_header: name the addresses of the proxy, such as 127.0.0.1"))
	}
	if c.GroupsHeader != "" && c.UserHeader == "" {
		errs = append(errs, errors.New("groups_header: needs user_header"))
	}
	if c.Logins() && !c.any() {
		errs = append(errs, errors.New("viewers: no login has a role: name users or groups under viewers, operators or admins"))
	}
	for i, o := range c.AllowedOrigins {
		if u, err := url.Parse(o); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			errs = append(errs, fmt.Errorf("allowed_origins[%d]: %q is no origin such as https://wiki.example", i, o))
		}
	}
	if c.SessionIdle > c.SessionLife {
		errs = append(errs, errors.New("session_idle: is longer than session_lifetime"))
	}
	return errors.Join(errs...)
}

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *Config) CheckFiles() error {
	if c.Dir == "" {
		return nil
	}
	if info, err := os.Stat(c.Dir); err == nil && !info.IsDir() {
		return fmt.Errorf("dir: %s is no directory", c.Dir)
	}
	if _, err := openTokens(filepath.Join(c.Dir, tokensName), c.MaxTokens); err != nil {
		return fmt.Errorf("dir: %w", err)
	}
	return nil
}

// Memory is the most memory that sessions, tokens, the newest changes and wrong logins take, in bytes.
func (c *Config) Memory() int64 {
	const session, token, wrong = 1 << 10, maxTokenBytes, 160
	return int64(c.MaxSessions)*session + int64(c.MaxTokens)*token + mostKept*3<<10 + mostAddrs*wrong
}

func headerName(name string) bool {
	return textproto.CanonicalMIMEHeaderKey(name) == http.CanonicalHeaderKey(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
}

// prefixes reads addresses and prefixes.
func prefixes(list []string) (out []netip.Prefix, err error) {
	var errs []error
	for i, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				a = a.Unmap().WithZone("")
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("trusted_proxies[%d]: %q is no address and no prefix such as 10.0.0.0/24", i, text))
			continue
		}
		out = append(out, p.Masked())
	}
	return out, errors.Join(errs...)
}
