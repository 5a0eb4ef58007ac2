package loop

import (
	"crypto/tls"

	"github.com/hopscope/hopscope/ingest/peer"
)

// TLS returns the settings of a TLS server, of files with the certificate of the controller and the authorities that sign those of
// agents. The files are read again for every connection, so that certificates can be renewed under it.
func TLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	read := func() (*tls.Config, error) {
		authorities, certificate, err := peer.Mutual(caFile, certFile, keyFile)
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities, Certificates: certificate, NextProtos: []string{"h2"},
		}, nil
	}
	conf, err := read()
	if err != nil {
		return nil, err
	}
	conf.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return read() }
	return conf, nil
}
