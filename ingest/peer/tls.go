package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// TLS is the settings by which a client and its server authenticate each other. It is inlined in the settings of a
// client.
type TLS struct {
	CAFile      string `yaml:"ca_file" doc:"PEM file of the authorities of the server's certificate. Empty is the system's."`
	CertFile    string `yaml:"cert_file" doc:"PEM file of the certificate shown to the server; needs key_file."`
	KeyFile     string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
	TLSInsecure bool   `yaml:"tls_insecure" doc:"Accept any certificate. A machine in between can read the token."`
}

// Used reports whether a setting is made that means nothing without TLS.
func (c *TLS) Used() bool { return c.CAFile != "" || c.CertFile != "" || c.TLSInsecure }

// Problems returns the errors that single values do not show. It is not named Validate, because the embedding settings
// would inherit that.
func (c *TLS) Problems() error {
	var errs []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, errors.New("cert_file: needs key_file, and the other way round"))
	}
	if c.TLSInsecure && c.CAFile != "" {
		errs = append(errs, errors.New("tls_insecure: contradicts ca_file; choose one"))
	}
	return errors.Join(errs...)
}

// Config reads the files.
func (c *TLS) Config() (*tls.Config, error) {
	authorities, certificate, err := Optional(c.CAFile, c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{InsecureSkipVerify: c.TLSInsecure, MinVersion: tls.VersionTLS12, RootCAs: authorities, Certificates: certificate}, nil
}

// Transport makes the connections. Everything has a limit. A server that accepts and then stays silent costs timeout
// at most. The head of an answer has at most header bytes.
func (c *TLS) Transport(timeout time.Duration, header int64) (*http.Transport, error) {
	conf, err := c.Config()
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: min(timeout, 5*time.Second)}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return LastWord(conn), nil
		},
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    min(timeout, 5*time.Second),
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: header,
		ForceAttemptHTTP2:      true,
	}, nil
}

// WrongSecurity reports whether there was no answer because the two sides disagree about TLS, which does not mend itself.
func WrongSecurity(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // how crypto/tls reports the server's alert
		return true
	}
	return strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}
