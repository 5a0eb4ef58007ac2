package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// MaxToken bounds the file of a token, in bytes.
const MaxToken = 64 << 10

// maxAnswer bounds the answer of a program, in bytes.
const maxAnswer = 64 << 20

// Asker is a client of the page of a running program, with the flags that name the page.
type Asker struct {
	URL, TokenFile, Format string

	Program string // that answers; "" for a collector
	Flag    string // the flag with the address; "" for --url
	Setting string // the key of the settings with the address, in place of a flag
}

// Flags adds the flags to c.
func (a *Asker) Flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.URL, "url", "http://127.0.0.1:8080", "page of the running collector")
	f.StringVar(&a.TokenFile, "token-file", "", "file with the page's token, where it wants one")
	f.StringVar(&a.Format, "format", "table", "table or json")
}

// CheckURL checks that address, the value of a flag, is that of a page.
func CheckURL(flag, address string) error {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return Usagef("--%s %q is not http://HOST:PORT or https://HOST:PORT", flag, address)
	}
	return nil
}

// Get requests path and reads the answer into v, or copies it to out where JSON was asked for.
func (a *Asker) Get(ctx context.Context, path string, v any, out io.Writer) error {
	if err := CheckFormat(a.Format); err != nil {
		return err
	}
	if err := CheckURL(cmp.Or(a.Flag, "url"), a.URL); err != nil {
		return err
	}
	body, err := a.get(ctx, path)
	if err != nil {
		return err
	}
	return a.decode(body, v, out)
}

// Post requests a change with a body in JSON, and reads the answer as [Asker.Get] does.
func (a *Asker) Post(ctx context.Context, path string, body, v any, out io.Writer) error {
	if err := CheckFormat(a.Format); err != nil {
		return err
	}
	if err := CheckURL(cmp.Or(a.Flag, "url"), a.URL); err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer, err := a.send(ctx, http.MethodPost, path, text)
	if err != nil {
		return err
	}
	return a.decode(answer, v, out)
}

// decode reads an answer into v, or copies it to out where JSON was asked for.
func (a *Asker) decode(body []byte, v any, out io.Writer) error {
	if a.Format == "json" {
		_, err := fmt.Fprintf(out, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s does not answer as a collector does: %w", a.URL, err)
	}
	return nil
}

// Into requests path and reads the answer into v, whatever the format is.
func (a *Asker) Into(ctx context.Context, path string, v any) error {
	table := *a
	table.Format = "table"
	return table.Get(ctx, path, v, io.Discard)
}

// get requests path and returns the body of the answer.
func (a *Asker) get(ctx context.Context, path string) ([]byte, error) {
	return a.send(ctx, http.MethodGet, path, nil)
}

// send sends a request, and returns the body of the answer.
func (a *Asker) send(ctx context.Context, method, path string, text []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.URL, "/")+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if text != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.TokenFile != "" {
		token, err := ReadFile(a.TokenFile, MaxToken)
		if err != nil {
			return nil, WrongInput(fmt.Errorf("read token: %w", err))
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if errors.As(err, new(*tls.CertificateVerificationError)) {
			return nil, fmt.Errorf("the certificate of %s is not trusted: the environment variable SSL_CERT_FILE can name a file of authorities: %w", a.URL, err)
		}
		return nil, fmt.Errorf("no %s answers at %s (another one: %s): %w", cmp.Or(a.Program, "collector"), a.URL, cmp.Or(a.Setting, "--"+cmp.Or(a.Flag, "url")), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer of %s: %w", a.URL, err)
	case res.StatusCode == http.StatusUnauthorized && a.TokenFile != "":
		return nil, fmt.Errorf("%s refuses the token of %s: it is wrong, expired or revoked", a.URL, a.TokenFile)
	case res.StatusCode == http.StatusUnauthorized && a.Setting != "":
		return nil, fmt.Errorf("%s wants a token: set token_file", a.URL)
	case res.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants a token: --token-file", a.URL)
	case res.StatusCode != http.StatusOK:
		var problem struct{ Error string }
		if json.Unmarshal(body, &problem) != nil || problem.Error == "" {
			problem.Error = res.Status
		}
		return nil, fmt.Errorf("%s: %s", a.URL, problem.Error)
	}
	return body, nil
}
