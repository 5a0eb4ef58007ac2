package p4rt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// authority signs certificates into files of a folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.sign(t, "ca", true)
	return a
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(t *testing.T, name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// Switch and controller know each other by certificates, or not at all.
func TestTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	ours.sign(t, "switch", false)
	ours.sign(t, "controller", false)
	others.sign(t, "controller", false)
	cert, err := tls.LoadX509KeyPair(ours.file("switch.pem"), ours.file("switch.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	b := newBench(t, "intmd")
	address, stop, err := b.StartAt("127.0.0.1:0", grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := func(name, ca string, own *authority) *Client {
		cfg := b.config(t, "intmd")
		cfg.Address, cfg.Plaintext = address, false
		var err error
		if cfg.TLS, err = LoadTLS(name, ca, own.file("controller.pem"), own.file("controller.key")); err != nil {
			t.Fatal(err)
		}
		return dial(t, cfg)
	}
	c := ready(t, client("switch", ours.file("ca.pem"), ours))
	if errs, err := c.Write(within(t), inserts(route(0, 1))); errs != nil || err != nil {
		t.Error(errs, err)
	}
	for _, tt := range []struct {
		what string
		bad  *Client
		want string
	}{
		{"another name", client("leaf", ours.file("ca.pem"), ours), "certificate is valid for switch, not leaf"},
		{"another authority", client("switch", others.file("ca.pem"), ours), "certificate signed by unknown authority"},
		{"a stranger as control", client("switch", ours.file("ca.pem"), others), "remote error: tls: "}, // what the switch says of it
	} {
		var s State
		until(t, tt.what, func() bool {
			s = tt.bad.State()
			return s.Problem != nil && s.Problem.Error() != ErrUnreachable.Error()
		})
		if s.Connected || !errors.Is(s.Problem, ErrUnreachable) || !strings.Contains(s.Problem.Error(), tt.want) {
			t.Errorf("%s: %+v, want %q", tt.what, s, tt.want)
		}
	}
	// Without TLS the switch does not listen.
	cfg := b.config(t, "intmd")
	cfg.Address = address
	plain := dial(t, cfg)
	until(t, "plaintext is refused", func() bool {
		s := plain.State()
		return s.Problem != nil && s.Problem.Error() != ErrUnreachable.Error()
	})
	if s := plain.State(); s.Connected {
		t.Errorf("%+v", s)
	}
}

func TestLoadTLSRefuses(t *testing.T) {
	a := newAuthority(t)
	a.sign(t, "c", false)
	junk := filepath.Join(a.dir, "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, ca, cert, key, want string }{
		{"", a.file("ca.pem"), a.file("c.pem"), a.file("c.key"), "name: is missing"},
		{"s", a.file("nowhere"), a.file("c.pem"), a.file("c.key"), "ca_file"},
		{"s", junk, a.file("c.pem"), a.file("c.key"), "holds no PEM certificate"},
		{"s", a.file("ca.pem"), junk, a.file("c.key"), "cert_file"},
		{"s", a.file("ca.pem"), a.file("c.pem"), a.file("ca.key"), "cert_file"},
	} {
		if _, err := LoadTLS(tt.name, tt.ca, tt.cert, tt.key); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Address: "a:1", Plaintext: true, Election: Election{Low: 1}, Pipeline: pipeline(t, "srint")}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Address = "" }, "address: is missing"},
		{func(c *Config) { c.Plaintext = false }, "either TLS or plaintext"},
		{func(c *Config) { c.TLS = &tls.Config{} }, "either TLS or plaintext"},
		{func(c *Config) { c.Pipeline = nil }, "pipeline: is missing"},
		{func(c *Config) { c.Commit, c.Pipeline = true, &Pipeline{Info: c.Pipeline.Info} }, "no program to commit"},
		{func(c *Config) { c.Election = Election{} }, "election id: must not be 0"},
		{func(c *Config) { c.Owner = strings.Repeat("x", 65) }, "owner: want a text"},
		{func(c *Config) { c.Owner = "\xff" }, "owner: want a text"},
		{func(c *Config) { c.Timeout = -1 }, "timeout: -1ns"},
		{func(c *Config) { c.batchUpdates = -1 }, "batch updates: -1"},
	} {
		cfg := good
		tt.change(&cfg)
		if _, err := Dial(cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if !(Election{High: 1}).Above(Election{Low: 9}) || !(Election{1, 2}).Above(Election{1, 1}) || (Election{1, 1}).Above(Election{1, 1}) {
		t.Error("ids are compared wrongly")
	}
}
