package receiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// httpClient posts documents to one address. Its errors are those of a [sink.Writer]. A *[sink.PermanentError] means
// that the server read the document and refused it. Any other error is a *[sink.RetryError], with Config set if only
// an operator can fix it.
type httpClient struct {
	Name    string      // of the sink, which errors begin with
	URL     string      // may hold a secret: no error quotes it
	Header  http.Header // of every request
	Secrets []string    // are cut out of the server's answers
	NoPages bool        // a success with a page is not the server's

	http      *http.Client
	transport *http.Transport
}

// maxAnswer is how much of an answer is read, of its head as of its body.
const maxAnswer = 64 << 10

// maxMessage is how much of it is logged.
const maxMessage = 500

// Open reads the certificates. It does not connect.
func (c *httpClient) Open(conf *peer.TLS, timeout time.Duration) error {
	transport, err := conf.Transport(timeout, maxAnswer)
	if err != nil {
		return err
	}
	c.transport = transport
	c.http = &http.Client{Transport: transport, Timeout: timeout,
		// A POST that is redirected may become a GET, whose success proves nothing about the document.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return nil
}

// Close ends idle connections.
func (c *httpClient) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// httpError is the answer of a server, or the reason why there is none.
type httpError struct {
	Name    string // of the sink
	Status  int    // of HTTP; 0 when there was no answer
	Message string // the server's words, cut
	Err     error  // why there was no answer
}

func (e *httpError) Error() string {
	switch {
	case e.Status == 0:
		return fmt.Sprintf("%s: no answer: %v", e.Name, e.Err)
	case e.Message == "":
		return fmt.Sprintf("%s: %d %s", e.Name, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s: %d %s: %s", e.Name, e.Status, http.StatusText(e.Status), e.Message)
}

// Unwrap returns the cause of a missing answer.
func (e *httpError) Unwrap() error { return e.Err }

// post sends a document. Any 2xx answer is a success, except a page where the server sends none.
func (c *httpClient) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return &sink.RetryError{Err: &httpError{Name: c.Name, Err: errors.New("the address cannot be used")}, Config: true}
	}
	r.Header = c.Header.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if u, ok := errors.AsType[*url.Error](err); ok { // it quotes the address
			err = u.Err
		}
		return &sink.RetryError{Err: &httpError{Name: c.Name, Err: err}, Config: peer.WrongSecurity(err), Doubt: peer.Connected(err)}
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	e := &httpError{Name: c.Name, Status: resp.StatusCode, Message: c.message(answer)}
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300 && c.NoPages && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		// A portal or a proxy answers everything like that. Taking it for the server would lose all in silence.
		e.Message = "the answer is a web page, so this is not the right server: " + e.Message
		return &sink.RetryError{Err: e, Config: true}
	case s >= 200 && s < 300:
		return nil
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests:
	case s < 400:
		e.Message = "redirects are not followed; set the address that it leads to"
		return &sink.RetryError{Err: e, Config: true}
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusNotFound, s == http.StatusProxyAuthRequired,
		s == http.StatusNotImplemented, s == http.StatusHTTPVersionNotSupported:
		// What looks into requests on the way forbids single ones.
		return &sink.RetryError{Err: e, Config: true, After: peer.RetryAfter(resp.Header), Doubt: s == http.StatusForbidden}
	case s < 500:
		return &sink.PermanentError{Err: e}
	}
	return &sink.RetryError{Err: e, After: peer.RetryAfter(resp.Header), Doubt: resp.StatusCode != http.StatusTooManyRequests}
}

// message makes one line of a server's answer, which may be a page, and may repeat the request.
func (c *httpClient) message(answer []byte) string {
	text := strings.ToValidUTF8(string(answer), "?")
	for _, secret := range c.Secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return cutText(text, maxMessage)
}

// cutText shortens a text to at most n bytes, at a rune, with a sign that something is missing.
func cutText(text string, n int) string {
	const sign = "…"
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:max(n-len(sign), 0)], "") + sign
}

// checkAddress returns the error in an address. No error quotes it, since many addresses are secrets.
func checkAddress(name, text string, tls *peer.TLS) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: is not an address", name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s: must be http://HOST:PORT/PATH or https://HOST:PORT/PATH", name)
	case u.User != nil:
		return fmt.Errorf("%s: must not hold a user or password; use token_file", name)
	case u.Fragment != "":
		return fmt.Errorf("%s: must not have a # and what follows it", name)
	case u.Scheme == "http" && tls.Used():
		return fmt.Errorf("%s: is http, so ca_file, cert_file and tls_insecure have no effect; use https or remove them", name)
	}
	return nil
}

// secretsOf returns the parts of an address that may be secrets: path and query are all that many servers ask for. Short ones are no
// secrets.
func secretsOf(address string) (secrets []string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	for _, part := range []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery} {
		if len(part) >= 8 {
			secrets = append(secrets, part)
		}
	}
	return secrets
}

// siteOf is the part of an address that is no secret: without path and query.
func siteOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an address"
	}
	return u.Scheme + "://" + u.Host
}
