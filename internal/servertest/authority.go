package servertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates for a test.
type authority struct {
	// File holds the certificate of the authority.
	File string

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a fresh one, unknown to all others.
func NewAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, File: filepath.Join(t.TempDir(), "authority.pem")}
	a.key = newKey(t)
	der := a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "an authority of tests"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, a.key)
	a.cert, _ = x509.ParseCertificate(der)
	write(t, a.File, block("CERTIFICATE", der))
	return a
}

// Issue makes a certificate for a name (its CN), valid for 127.0.0.1 as a server and as a client. It returns the files
// of the certificate and of its key.
func (a *authority) Issue(name string) (certFile, keyFile string) {
	a.t.Helper()
	dir := a.t.TempDir()
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	a.IssueTo(name, certFile, keyFile)
	return certFile, keyFile
}

// IssueTo is Issue into files that have names, as a renewal does it.
func (a *authority) IssueTo(name, certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	der := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:    []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, certFile, block("CERTIFICATE", der))
	write(a.t, keyFile, block("PRIVATE KEY", pkcs8))
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent := a.cert
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) []byte {
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
	return b.Bytes()
}

// write replaces a file in one step, so that no reader sees half of it.
func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
