package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"time"
)

// adminTimeout bounds a request to [Admin], and maxAnswer its answer in bytes.
const (
	adminTimeout = 10 * time.Second
	maxAnswer    = 64 << 20
)

// Errors of [AskAdmin].
var (
	ErrURL      = errors.New("is neither http://HOST:PORT nor unix:PATH")
	ErrNoAnswer = errors.New("no answer")
)

// RefusedError is an answer of [Admin] with another status than 200.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// noAnswer is an [ErrNoAnswer] with its cause. Its method Is is that of package errors.
type noAnswer struct{ error }

func (e noAnswer) Unwrap() error      { return e.error }
func (noAnswer) Is(target error) bool { return target == ErrNoAnswer }

// AskAdmin sends a request to [Admin] at http://HOST:PORT or unix:PATH, and reads the answer. A POST carries the name of the
// user of this process.
func AskAdmin(ctx context.Context, at, method, path string) ([]byte, error) {
	name := "an operator"
	if method == http.MethodPost {
		if u, err := user.Current(); err == nil && u.Username != "" {
			name = u.Username
		}
	}
	return AskAdminAs(ctx, at, method, path, name)
}

// AskAdminAs is [AskAdmin] in the name of an author.
func AskAdminAs(ctx context.Context, at, method, path, author string) ([]byte, error) {
	client, base := http.DefaultClient, strings.TrimSuffix(at, "/")
	if file, ok := strings.CutPrefix(at, "unix:"); ok && file != "" {
		base = "http://localhost"
		client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", file)
		}}}
	} else if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" {
		return nil, fmt.Errorf("%q %w", at, ErrURL)
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		req.Header.Set(adminHeader, author)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, noAnswer{err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil && res.StatusCode != http.StatusOK {
		err = &RefusedError{strings.TrimSpace(string(body))}
	}
	return body, err
}
