package loop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS names the certificate of the controller and who signs those of agents. The files are read again for every connection, so
// that certificates can be renewed under it.
func TLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	read := func() (*tls.Config, error) {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		conf := &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(), NextProtos: []string{"h2"}}
		if !conf.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no PEM certificate", caFile)
		}
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
		return conf, nil
	}
	conf, err := read()
	if err != nil {
		return nil, err
	}
	conf.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return read() }
	return conf, nil
}
