// Package peer is the common part of all connections to other programs. It reads what must not stand in settings, by
// the same rules for all. These are secrets, from files or environment variables, and the certificates, keys and
// authorities of TLS. No error quotes a secret. It also keeps the reason that the peer gave for the end of a
// connection, and reads when a server wants to be tried again.
package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret bounds the file of a secret: one that names the wrong file is not to fill the memory.
const maxSecret = 64 << 10

// Secret reads the value of a setting such as "token" from its file or its environment variable, whose settings are token_file and
// token_env. White space around it is ignored. It is "" if neither is named; an empty secret and one with control characters are errors.
func Secret(what, file, env string) (secret string, err error) {
	switch {
	case file != "":
		if secret, err = readSecret(file); err != nil {
			return "", fmt.Errorf("%s_file: %w", what, err)
		}
		if secret == "" {
			return "", fmt.Errorf("%s_file: %s is empty", what, file)
		}
	case env != "":
		if secret = strings.TrimSpace(os.Getenv(env)); secret == "" {
			return "", fmt.Errorf("%s_env: the environment variable %s is not set", what, env)
		}
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", unusable(what)
	}
	return secret, nil
}

// Header reads a secret that is sent in a header of HTTP or as an address, and so is of printable ASCII alone.
func Header(what, file, env string) (string, error) {
	secret, err := Secret(what, file, env)
	if strings.ContainsFunc(secret, func(r rune) bool { return r > '~' }) {
		return "", unusable(what)
	}
	return secret, err
}

func unusable(what string) error {
	return fmt.Errorf("%s: holds a line break or another character that no %s has", what, what)
}

// readSecret returns what the file of a secret holds, without the white space around it.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(b) > maxSecret {
		err = fmt.Errorf("%s: more than %d bytes", path, maxSecret)
	}
	return strings.TrimSpace(string(b)), err
}

// readAuthorities reads the PEM file of those that may sign the other side's certificate.
func readAuthorities(caFile string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %s holds no PEM certificate", caFile)
	}
	return pool, nil
}

// Certificate reads the certificate that is shown to the other side, and its key.
func Certificate(certFile, keyFile string) ([]tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("cert_file: %w", err)
	}
	return []tls.Certificate{cert}, nil
}

// Optional reads those of the three files that are named. Without caFile the authorities are nil, which means those of the system;
// without certFile or keyFile no certificate is shown. The error has the problems of all files.
func Optional(caFile, certFile, keyFile string) (authorities *x509.CertPool, certificate []tls.Certificate, err error) {
	var caErr, certErr error
	if caFile != "" {
		authorities, caErr = readAuthorities(caFile)
	}
	if certFile != "" && keyFile != "" {
		certificate, certErr = Certificate(certFile, keyFile)
	}
	return authorities, certificate, errors.Join(caErr, certErr)
}

// Mutual reads all three files, for two sides that authenticate each other by them alone. A missing name of a file is
// an error.
func Mutual(caFile, certFile, keyFile string) (authorities *x509.CertPool, certificate []tls.Certificate, err error) {
	if authorities, err = readAuthorities(caFile); err == nil {
		certificate, err = Certificate(certFile, keyFile)
	}
	return authorities, certificate, err
}
